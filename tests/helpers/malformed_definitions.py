"""Definitions of client programs with a change or two, most of which the specification does not define.

A change is made to the JSON of a definition, whose digest is then computed again, or to its text. The same seed gives the same
definitions.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

from client_cases import CASES
from generated_programs import Generator, odd_definition
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.public_definition import About

_NAMED = {"sue": ("a", "b", "c", "d", "무소속"), "ticks": tuple(f"option {i}" for i in range(10))}
_SMALL = (
    *(
        "randomized-response",
        "sue",
        "oue",
        "random-substitution",
        "subset-selection",
        "matrix-substitution",
        "cms of any text",
    ),
    *("rappor", "d-bit-flip", "kept buckets", "one-bit-mean", "a kept bit", "hybrid", "laplace"),
    *(
        "loloha of two cells",
        "heavy-hitters",
        "ticks",
        "any ticks",
        "grid",
        "olh",
        "random-threshold",
        "rounded-response",
    ),
)
_ABOUT = About("A title", "A question?", languages={"ko": {"title": "제목"}, "de-AT": {"question": "Frage?"}})
_HALF = str(2**63)
_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, -1, 3, 8, 9, 40, 41, 64, 200, 201, 255, 256, 512, 513, 2**16, 2**23 + 1, 2**53 - 1),
    *(
        2**53,
        -(2**53),
        2**63,
        2**64,
        1.0,
        1.5,
        1e300,
        -0.0,
        [],
        {},
        [[]],
        [0],
        [1, 2],
        [[1], [1, 2]],
        [[1], 2],
        [[1, 2], [3, 4]],
    ),
    *("", "0", "1", "-1", "-0", "01", "+1", "1.0", "0.5", "1e3", "1e999", "-1.0", "0.0", "nan", " 1", "1 ", "\u0661"),
    *("\uff11", "1e-7", "5E2", "0.30"),
    *(_HALF, str(2**64), str(2**64 - 1), str(2**4096), str(2**4096 - 1), str(1 - 2**4096), "9" * 1234, "9" * 1235),
    *("value", "report", "drawn", "a", "nothing", "_", "A", "a b", "a\n", "\u00e9", "e\u0301", "\u200b", "\ud800"),
    *(
        "\x7f",
        "x" * 200,
        "x" * 201,
        "answer",
        "word",
        "number",
        "uint",
        "packed",
        "float64",
        "text",
        "kind",
        "first",
        "add",
        "bit",
        "constructor",
    ),
    *("__proto__", "a kept bit", "ldp-budget client", "ldp-budget questionnaire", "[", "null", "true"),
)
_KEYS = (
    *(
        "note",
        "labels",
        "at_most",
        "kind",
        "slot",
        "unit",
        "items",
        "answers",
        "count",
        "text",
        "length",
        "times",
        "step",
    ),
    *(
        "lower",
        "upper",
        "last",
        "first",
        "ratio",
        "digits",
        "floor",
        "epsilon",
        "delta",
        "words",
        "relation",
        "limit",
    ),
    *(
        "answer_epsilon",
        "lifetime_epsilon",
        "title",
        "question",
        "purpose",
        "ko",
        "de",
        "한국어",
        "x1-",
        "1",
        "__proto__",
    ),
)
_CALLS: tuple[Any, ...] = (
    *(
        ["bit", _HALF],
        ["below", 3],
        ["list", 1, 2],
        ["list"],
        ["list", ["list", 1]],
        ["at", "value", 0],
        ["sort", "value"],
    ),
    *(["kept_top", "a", "value", 3], ["kept_bits", "a", "value", _HALF, 1], ["polynomial", "s", 1, "value", 3]),
    *(["bloom", "s", 1, "value", 8, 2], ["add", 1, 2, 3], ["add", 1], [], ["nothing", 1], [1, 2], [["add"], 1, 2]),
    *(
        ["where", 1, "value", 0],
        ["add", ["bit", _HALF], 1],
        ["onehot", "value", 4],
        ["put", ["list", 1], 0, ["list", 1]],
    ),
    *(["div", "value", 0], ["shl", 1, 65536], ["first", ["list", 2, 1]], ["rank", ["list", 2, 1], 1]),
)
_TEXTS: tuple[tuple[str, str], ...] = (
    *(
        (": 1,", ": 1.0,"),
        (": 1,", ": 1e0,"),
        (": 1,", ": 01,"),
        (": 0", ": -0"),
        (": 1,", ": NaN,"),
        (", ", ","),
        (": ", " : "),
    ),
    *(
        ('"version"', '"version": 1, "version"'),
        ('"text"', '"text": false, "text"'),
        ("{", "{ "),
        ("}", ",}"),
        ("]", ",]"),
    ),
    *(
        ('"', "'"),
        ("true", "True"),
        ("null", "nul"),
        ('"title"', '"\\u0074itle"'),
        ("/", "\\/"),
        ('"a', '"\\a'),
        (", ", "\t,\t"),
    ),
    *(("\\u", "\\U"), ('"value"', '"value\x01"'), ("{", ""), ("]", ""), ("}", "} "), ("", "\ufeff")),
    *((': "', ': "\\ud800'), (": ", ":\f")),
)


def sealed(definition: dict[str, Any]) -> dict[str, Any]:
    """A definition with its digest, also where its numbers are not whole."""
    rest = {name: value for name, value in definition.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":")).replace("\x7f", "\\u007f")
    return {**rest, "digest": sha256(text.encode()).hexdigest()}


def whole_definitions() -> list[dict[str, Any]]:
    """Definitions of many kinds, as collections have them."""
    made = []
    for name in _SMALL:
        about = _ABOUT if name in _NAMED else About()
        made.append(Collection(name.replace(" ", "-"), CASES[name], _NAMED.get(name), about).definition())
    labelled = {**Collection("rappor", CASES["rappor"]).definition(), "labels": True}
    return json.loads(json.dumps([*made, labelled]))  # type: ignore[no-any-return]


def malformed(seed: int) -> Iterator[str]:
    """Texts of definitions, without end; about one in ten is of a form that the specification defines."""
    chance, generator, known = random.Random(seed), Generator(seed), whole_definitions()
    while True:
        kind = chance.randrange(10)
        base = (
            _falling(generator.definition())
            if kind == 0
            else odd_definition(chance)
            if kind == 1
            else chance.choice(known)
        )
        made = copy.deepcopy(base)
        for _ in range(chance.choice([0, 1, 1, 1, 1, 1, 2, 3])):
            _change(made, chance)
        text = json.dumps(sealed(made) if chance.random() < 0.99 else made, ensure_ascii=chance.random() < 0.5)
        if chance.random() < 0.1:
            old, new = chance.choice(_TEXTS)
            at = text.find(old, chance.randrange(len(text)))
            text = text if at < 0 else text[:at] + new + text[at + len(old) :]
        yield text


def _falling(made: dict[str, Any]) -> dict[str, Any]:
    """A definition with a falling table more."""
    table = {"first": "1048576.5", "ratio": "0.75", "digits": 12, "floor": 3, "count": 6}
    steps = [*made["steps"], ["turn", ["rank", "fall", ["mul", "value", 10**6]]]]
    parts = [*made["report"]["parts"], ["uint", "turn", 1, 1]]
    return {
        **made,
        "tables": {**made["tables"], "fall": table},
        "steps": steps,
        "report": {**made["report"], "parts": parts},
    }


def _change(made: dict[str, Any], chance: random.Random) -> None:
    """One change at a place of a definition: more often near its top than deep in a long list."""
    place: Any = made
    while True:
        keys = [*place] if isinstance(place, dict) else range(len(place))
        if not keys:
            return
        key = chance.choice(keys)
        if not isinstance(place[key], dict | list) or not place[key] or chance.random() < 0.3:
            break
        place = place[key]
    forms: list[Callable[[], Any]] = [lambda: place.__setitem__(key, _other(place[key], chance))] * 4
    forms += [lambda: place.pop(key)]
    if isinstance(place, dict):
        forms += [lambda: place.__setitem__(chance.choice(_KEYS), copy.deepcopy(chance.choice(_ODD)))] * 2
        forms += [lambda: place.__setitem__(chance.choice(_KEYS), place.pop(key))]
    else:
        forms += [lambda: place.insert(key, copy.deepcopy(place[chance.randrange(len(place))]))]
        forms += [lambda: place.append(copy.deepcopy(chance.choice(_ODD)))]
        forms += [lambda: place.__setitem__(key, copy.deepcopy(place[chance.randrange(len(place))]))]
        forms += [lambda: chance.shuffle(place)]
    chance.choice(forms)()


def _other(value: Any, chance: random.Random) -> Any:
    """A value in the place of another one."""
    if isinstance(value, int | str) and not isinstance(value, bool) and chance.random() < 0.3:
        if isinstance(value, int):
            return chance.choice([value + 1, value - 1, str(value), -value])
        return chance.choice([value.upper(), value + "0", [value]])
    return copy.deepcopy(chance.choice(_CALLS if chance.random() < 0.3 else _ODD))
