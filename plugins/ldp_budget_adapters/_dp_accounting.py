"""Adapter for dp-accounting: events, which describe what was drawn, including composed events.

The library's own events compare data sets that differ by adding or removing one record. Here the neighbors are two
values of one user, which means replacing a record. So `noise_multiplier` is read as the noise divided by the largest
distance between two values of the user. An event that states how many records a sample has is refused.

A composition is one guarantee again: equal events are copies. Normal noise adds up in μ². The rest adds up in (Σε,
Σδ)
or Σρ, if all parts have that measure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Copies, FinitePair, Gaussian, Guarantee, Pure, Unbounded
from ldp_budget.guarantees.fixed_point import UP

from ._adapter_helpers import (
    Read,
    approximate,
    at_least_zero,
    gaussian,
    laplace,
    number,
    pure,
    ratio_up,
    release,
    stated,
    theirs,
    zero_concentrated,
)

_MODULE = "dp_accounting.dp_event"
_SHOWN = 3
_RELATIVE = {"noise_multiplier", "rho", "sensitivity"}
"""Parameters that are relative to the distance between two values, or between two data sets."""
_TOO_MANY = 10**18
"""A count that leaves no guarantee. Larger counts are all treated alike, because nesting has no bound."""


def read(thing: object) -> Read | None:
    """Return the guarantee of an event; None if the object is not from dp-accounting."""
    kind = theirs(thing, "dp_accounting")
    if kind is None:
        return None
    leaves = _leaves(thing)
    promises: dict[tuple[Any, ...], Guarantee] = {key: _EVENTS[key[0]](key) for key in leaves}
    counted: Counter[Guarantee] = Counter()
    for key, times in leaves.items():
        counted[promises[key]] += times
    listed = [f"{_shown(key)}{f' × {times}' if times > 1 else ''}" for key, times in leaves.items()]
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    relative = sorted(_RELATIVE.intersection(name for key in leaves for name in _FIELDS[key[0]]))
    condition = f"; {' and '.join(relative)} taken by the largest distance between two values of the user"
    shown = f"{', '.join(listed[:_SHOWN]) or 'nothing'}{more}{condition if relative else ''}"
    return Read(_composed(counted), f"{release('dp-accounting')}: {shown}")


# -- nested events -------------------------------------------------------------------------------------------------


def _leaves(event: object) -> dict[tuple[Any, ...], int]:
    """Return every event that releases something, as its class and parameters, with its count.

    Events are shared and nested to any depth. Each is visited once, in an order in which a container precedes its
    parts.
    """
    order, inside = _in_order(event)
    times = {id(event): 1}
    leaves: dict[tuple[Any, ...], int] = {}
    for part in order:
        count = times.get(id(part), 0)
        if id(part) not in inside:
            key = _key(part)
            leaves[key] = min(leaves.get(key, 0) + count, _TOO_MANY)
            continue
        for child, factor in inside[id(part)]:
            times[id(child)] = min(times.get(id(child), 0) + count * factor, _TOO_MANY)
    return {key: count for key, count in leaves.items() if count}


def _in_order(event: object) -> tuple[list[object], dict[int, list[tuple[object, int]]]]:
    """Return all events, containers first, and the parts of each with their counts."""
    done: list[object] = []
    inside: dict[int, list[tuple[object, int]]] = {}
    state: dict[int, bool] = {}  # False: being visited
    waiting: list[tuple[object, bool]] = [(event, False)]
    while waiting:
        part, closing = waiting.pop()
        if closing:
            state[id(part)] = True
            done.append(part)
            continue
        if id(part) in state:
            if not state[id(part)]:
                raise NotSupported("an event contains itself")
            continue
        state[id(part)] = False
        waiting.append((part, True))
        children = _children(part)
        if children is not None:
            inside[id(part)] = children
            waiting += [(child, False) for child, _ in children if not state.get(id(child), False)]
    return done[::-1], inside


def _children(event: object) -> list[tuple[object, int]] | None:
    """Return the parts of a composed event with their counts; None if it is not composed. Raises `NotSupported`."""
    kind = theirs(event, "dp_accounting")
    name = kind.__name__ if kind is not None and kind.__module__ == _MODULE else None
    if name == "ComposedDpEvent":
        events = event.events  # type: ignore[attr-defined]
        if type(events) is not list and type(events) is not tuple:
            raise NotSupported(f"the events of a ComposedDpEvent must be a list: got a {type(events).__qualname__}")
        often: dict[int, tuple[object, int]] = {}
        for child in events:
            often[id(child)] = child, often.get(id(child), (child, 0))[1] + 1
        return list(often.values())
    if name == "SelfComposedDpEvent":
        count = event.count  # type: ignore[attr-defined]
        if type(count) is not int or count < 0:
            raise NotSupported(f"the count of a SelfComposedDpEvent must be a whole number >= 0: got {count!r}")
        return [(event.event, count)]  # type: ignore[attr-defined]
    if name not in _EVENTS:
        _refuse(event, name)
    return None


def _refuse(event: object, name: str | None) -> None:
    if name is None:
        raise NotSupported(f"{type(event).__module__}.{type(event).__qualname__} is not an event of dp-accounting")
    why = _REFUSED.get(name, "its guarantee for two values of one user is not known")
    raise NotSupported(f"dp_accounting.{name}: {why}")


_SAMPLED = "it is about a sample of many records that stays secret, and not about two values of one user"
_REFUSED = {
    "MixtureOfGaussiansDpEvent": "it is about adding one record to a data set, some of whose records are sampled",
    "PoissonSampledDpEvent": _SAMPLED,
    "RepeatAndSelectDpEvent": "it is about choosing the best of several runs over a data set",
    "SampledWithReplacementDpEvent": _SAMPLED,
    "SampledWithoutReplacementDpEvent": _SAMPLED,
    "SingleEpochTreeAggregationDpEvent": "it is about sums over the records of many users",
    "TruncatedSubsampledGaussianDpEvent": _SAMPLED,
    "UnsupportedDpEvent": "its guarantee is not known",
}


# -- guarantee of one event ----------------------------------------------------------------------------------------


def _key(event: object) -> tuple[Any, ...]:
    """Return an event as its class and plain parameters, independent of its own equality."""
    name = type(event).__name__
    return (name, *(read(field, getattr(event, field)) for field, read in _FIELDS[name].items()))


def _whole(name: str, value: object) -> int:
    if type(value) is not int or value < 1:
        raise NotSupported(f"{name} must be a whole number >= 1: got {value!r}")
    return value


def _share(name: str, value: object) -> float:
    found = number(name, value)
    if not 0 <= found <= 1:
        raise NotSupported(f"{name} must be a number from 0 to 1: got {found!r}")
    return found


def _downward(value: float) -> float:
    """Return the double below: less noise means more loss."""
    return math.nextafter(value, 0)


def _of_gaussian(key: tuple[Any, ...]) -> Guarantee:
    return gaussian(ratio_up(Decimal(1), _downward(key[1])))


def _of_laplace(key: tuple[Any, ...]) -> Guarantee:
    return laplace(ratio_up(Decimal(1), _downward(key[1])))


def _of_discrete_laplace(key: tuple[Any, ...]) -> Guarantee:
    loss = stated(key[1])
    return pure(None if loss is None else UP.multiply(loss, Decimal(key[2])))


def _of_randomized_response(key: tuple[Any, ...]) -> Guarantee:
    """Randomized response over k buckets: with probability 1 - p the user's, else one of all k uniformly."""
    noise, buckets = Fraction(_downward(key[1])), key[2]
    if buckets == 1 or key[1] == 1:
        return Pure(Decimal(0))
    other = noise / buckets
    stay = 1 - noise + other
    if not other or stay / other > 10**300:
        return Unbounded()
    same = (1 - stay - other,) if buckets > 2 else ()
    return FinitePair(((stay, other), *((rest, rest) for rest in same), (other, stay)))


def _of_zero_concentrated(key: tuple[Any, ...]) -> Guarantee:
    # Every order is at least 1, so that ξ + ρα <= (ξ + ρ)α.
    rho, xi = stated(key[1]), stated(key[2])
    return zero_concentrated(None if rho is None or xi is None else UP.add(rho, xi))


_FIELDS: dict[str, Mapping[str, Callable[[str, object], Any]]] = {
    "NoOpDpEvent": {},
    "NonPrivateDpEvent": {},
    "GaussianDpEvent": {"noise_multiplier": at_least_zero},
    "LaplaceDpEvent": {"noise_multiplier": at_least_zero},
    "DiscreteLaplaceDpEvent": {"noise_parameter": at_least_zero, "sensitivity": _whole},
    "RandomizedResponseDpEvent": {"noise_parameter": _share, "num_buckets": _whole},
    "ZCDpEvent": {"rho": at_least_zero, "xi": at_least_zero},
}
_EVENTS: dict[str, Callable[[tuple[Any, ...]], Guarantee]] = {
    "NoOpDpEvent": lambda key: Pure(Decimal(0)),
    "NonPrivateDpEvent": lambda key: Unbounded(),
    "GaussianDpEvent": _of_gaussian,
    "LaplaceDpEvent": _of_laplace,
    "DiscreteLaplaceDpEvent": _of_discrete_laplace,
    "RandomizedResponseDpEvent": _of_randomized_response,
    "ZCDpEvent": _of_zero_concentrated,
}


def _shown(key: tuple[Any, ...]) -> str:
    fields = ", ".join(f"{name}={value!r}" for name, value in zip(_FIELDS[key[0]], key[1:], strict=True))
    return f"{key[0]}({fields})"


# -- guarantee of a composition -----------------------------------------------------------------------------------


def _composed(counted: Mapping[Guarantee, int]) -> Guarantee:
    """Return one guarantee that bounds all of these together, also if each was chosen adaptively."""
    parts = {each: count for each, count in counted.items() if each != Pure(Decimal(0))}
    if not parts:
        return Pure(Decimal(0))
    if any(isinstance(each, Unbounded) or count >= _TOO_MANY for each, count in parts.items()):
        return Unbounded()
    if len(parts) == 1:
        ((only, count),) = parts.items()
        return only if count == 1 else Copies(count, only)
    if all(isinstance(each, Gaussian) for each in parts):
        return gaussian(UP.next_plus(UP.sqrt(_sum(parts, lambda each: each.amounts().mu_squared) or Decimal(0))))
    epsilon = _sum(parts, lambda each: (each.loss() or (None, None))[0])
    delta = _sum(parts, lambda each: (each.loss() or (None, None))[1])
    if epsilon is not None and delta is not None:
        return approximate(epsilon, delta)
    return zero_concentrated(_sum(parts, lambda each: each.amounts().rho))


def _sum(parts: Mapping[Guarantee, int], amount: Callable[[Guarantee], Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for each, count in parts.items():
        part = amount(each)
        if part is None:
            return None
        total = UP.add(total, UP.multiply(part, Decimal(count)))
    return total
