"""Parameters to check a mechanism with: its own examples, or some found by trying."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...authoring.fields import Choice, Field, Flag, Integer, Matrix, Real
from ...errors import LdpBudgetError, NotSupported, PluginError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...authoring.base import Mechanism

_WANTED = 3
_TRIES, _ENOUGH = 3000, 150
_NUMBERS = ("0.05", "0.1", "0.2", "0.25", "0.3", "0.5", "0.6", "0.75", "0.9", "1", "1.5", "2", "3", "4", "5", "10")
_COUNTS = (1, 2, 3, 4, 5, 7, 8, 10, 16, 32)
_MATRICES = (
    (("0.5", "0.25"), ("0.5", "0.75")),
    (("0.5", "0.25", "0.25"), ("0.25", "0.5", "0.25"), ("0.25", "0.25", "0.5")),
)


def made(cls: type[Mechanism], parameters: Mapping[str, Any]) -> Mechanism:
    """The mechanism with these parameters: calibrated, or built where they stand in a target's place."""
    built = any(name in cls.fields and cls.fields[name].derived for name in parameters)
    return cls(**parameters) if built else cls.calibrate(**parameters)


def examples_of(cls: type[Mechanism]) -> list[dict[str, Any]]:
    """Parameters that `cls` can be built from: its `examples`, else up to three found by a search of its fields.

    The search is the same every time. It prefers parameters with a client, a server and a bounded loss, and such as
    declare different fields. Raises `NotSupported` where it finds none; the class should then give `examples`.
    """
    if cls.examples:
        return [dict(example) for example in cls.examples]
    found = _search(cls)
    if not found:
        raise NotSupported(f"no parameters of {cls.name} were found by trying; give the class `examples`")
    return found


def _search(cls: type[Mechanism]) -> list[dict[str, Any]]:
    """The best of what can be built, and among equals such as declare different fields."""
    chance = random.Random(cls.name)
    seen: Counter[frozenset[str]] = Counter()
    tried: set[str] = set()
    found: list[tuple[int, int, dict[str, Any]]] = []
    tries = [(field, _values(field)) for field in cls.fields.values()]
    for attempt in range(_TRIES):
        parameters = _drawn(tries, chance)
        if repr(parameters) in tried:
            continue
        tried.add(repr(parameters))
        worth, fields = _worth(cls, parameters), frozenset(parameters)
        if worth:
            found.append((-worth, seen[fields], parameters))
            seen[fields] += worth == _BEST
        if len(+seen) >= _WANTED or (attempt >= _ENOUGH and seen.total() >= _WANTED):
            break
    return [parameters for _, _, parameters in sorted(found, key=lambda item: item[:2])[:_WANTED]]


_BEST = 4


def _worth(cls: type[Mechanism], parameters: dict[str, Any]) -> int:
    """0 where it cannot be built; else more for a bounded loss, a client and a server."""
    try:
        mechanism = made(cls, parameters)
        worth = 1 + (mechanism.guarantee.loss() is not None)
    except PluginError:
        raise  # no parameters will mend that
    except Exception:  # whatever is wrong with it, the checks will say of parameters that can be built
        return 0
    try:
        inputs = list(mechanism.critical_inputs())
        reports = mechanism.randomize(np.array(inputs), rng=1, secrets=[bytes(32)] * len(inputs))
        worth += 1
        mechanism.estimate(reports)
    except Exception:
        return worth
    return worth + 1


def _drawn(tries: list[tuple[Field[Any], Sequence[Any]]], chance: random.Random) -> dict[str, Any]:
    """A value for each required field and for some of the others."""
    chosen = [(field, values) for field, values in tries if field.required or chance.random() < 0.4]
    return {field.name: chance.choice(values) if values else _only(field) for field, values in chosen}


def _only(field: Field[Any]) -> Any:
    return True if isinstance(field, Flag) else field.default


def _values(field: Field[Any]) -> Sequence[Any]:
    """What is tried of a field; nothing where there is nothing to choose from."""
    if isinstance(field, Real):
        return _numbers(field)
    if isinstance(field, Integer):
        least = 0 if field.at_least is None else field.at_least
        return [count for count in _COUNTS if count >= least] or [least, least + 1]
    if isinstance(field, Choice):
        return field.choices
    if isinstance(field, Matrix):
        return _MATRICES
    return ()


def _numbers(field: Real) -> list[str]:
    """Plain numbers of its range, for decimals between its bounds some more."""
    found = [text for text in ("0", *_NUMBERS) if _accepts(field, text)]
    low = next((bound for bound in (field.above, field.at_least) if bound is not None), None)
    if not found and low is not None:
        found = [text for text in (str(low), str(low + 1), str(low * 2), str(low * 1.5)) if _accepts(field, text)]
    return found or ["1"]


def _accepts(field: Real, text: str) -> bool:
    try:
        field.parse(text)
    except LdpBudgetError:
        return False
    return True
