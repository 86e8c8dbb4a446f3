"""Random client programs, most of which leak, and what they lose: an oracle that shares no code with any checker.

The oracle runs every step of a program for every answer and every outcome of every draw, in fractions. A run that fails
is an outcome like any report: a person who waits for it learns that the answer is one of those that fail.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any

from ldp_budget.registry.public_definition import digest_of

FAILED = "no report"
_MOST_RUNS = 30_000
_LARGEST = 2**4096


class TooManyOutcomesError(Exception):
    """A program with more outcomes than the oracle lists."""


# -- the oracle ----------------------------------------------------------------------------------------------------


class _FailureError(Exception):
    """A step that the specification does not define for its numbers."""


def loss_of(definition: dict[str, Any]) -> float:
    """The exact ε of a definition of the specified form; infinite if some answer shows for certain."""
    given = definition["input"]
    count = int(given["last"]) + 1 if given["kind"] == "number" else int(given["count"])
    laws = [law_of(definition, value) for value in range(count)]
    outcomes = set().union(*laws)
    if any(outcome not in law for law in laws for outcome in outcomes):
        return math.inf
    return max(_log(max(law[o] for law in laws) / min(law[o] for law in laws)) for o in outcomes)


def _log(ratio: Fraction) -> float:
    return math.log(ratio.numerator) - math.log(ratio.denominator) if ratio > 2 else math.log1p(float(ratio - 1))


def law_of(definition: dict[str, Any], value: int) -> dict[Any, Fraction]:
    """The exact probability of each report of an answer, and of no report."""
    law: dict[Any, Fraction] = {}
    tables = {name: _numbers(table) for name, table in definition["tables"].items()}
    waiting: list[tuple[int, dict[str, Any], Fraction]] = [(0, {**tables, "value": value}, Fraction(1))]
    runs = 0
    while waiting:
        place, known, chance = waiting.pop()
        runs += 1
        if runs > _MOST_RUNS:
            raise TooManyOutcomesError
        if place == len(definition["steps"]):
            try:
                outcome: Any = tuple(_sent(part, known) for part in definition["report"]["parts"])
            except _FailureError:
                outcome = FAILED
            law[outcome] = law.get(outcome, Fraction(0)) + chance
            continue
        name, expression = definition["steps"][place]
        try:
            outcomes = list(_outcomes(expression, known))
        except _FailureError:
            law[FAILED] = law.get(FAILED, Fraction(0)) + chance
            continue
        waiting += [(place + 1, {**known, name: drawn}, chance * p) for drawn, p in outcomes if p]
    return law


def _numbers(table: list[Any]) -> list[Any]:
    return [_numbers(each) if isinstance(each, list) else int(each) for each in table]


def _must(holds: bool) -> None:
    if not holds:
        raise _FailureError


def _sent(part: list[Any], known: dict[str, Any]) -> tuple[int, ...]:
    kind, name, *sizes = part
    row = known[name] if isinstance(known[name], list) else [known[name]]
    if kind == "float64":
        value = Fraction(sizes[0]) + (row[0] + int(sizes[2])) * Fraction(sizes[1])
        _must(abs(value) < 2**1024)
        return (row[0],)
    largest = 1 if kind == "packed" else 256 ** sizes[0] - 1
    _must(len(row) == sizes[-1] and all(0 <= x <= largest for x in row))
    return tuple(row)


def _bit(t: int) -> list[tuple[int, Fraction]]:
    _must(0 <= t <= 2**64)
    return [(0, 1 - Fraction(t, 2**64)), (1, Fraction(t, 2**64))]


def _below(b: int) -> list[tuple[int, Fraction]]:
    _must(1 <= b <= 2**63)
    if b > _MOST_RUNS:
        raise TooManyOutcomesError
    return [(r, Fraction(1, b)) for r in range(b)]


def _kept(b: int) -> list[tuple[int, Fraction]]:
    return [(r, Fraction((2**64 - 1 - r) // b + 1, 2**64)) for r, _ in _below(b)]


def _joint(draws: list[list[tuple[int, Fraction]]]) -> Iterator[tuple[list[int], Fraction]]:
    if math.prod(map(len, draws)) > _MOST_RUNS:
        raise TooManyOutcomesError
    for row in product(*draws):
        yield [x for x, _ in row], math.prod((p for _, p in row), start=Fraction(1))


def _outcomes(expression: Any, known: dict[str, Any]) -> Iterator[tuple[Any, Fraction]]:
    name = expression[0] if isinstance(expression, list) else ""
    kept = name.startswith("kept_")
    given = [_value(each, known) for each in expression[2 if kept else 1 :]] if name in _DRAWS or kept else []
    if name in ("bit", "bit_at"):
        _must(name == "bit" or given[0] < 2**64)
        yield from _bit(given[0])
    elif name == "below":
        yield from _below(given[0])
    elif name in ("bits", "belows", "belows_from", "bits_each"):
        each = {"bits": _bit, "belows": _below}.get(name)
        if name == "bits_each":
            draws = list(map(_bit, given[0]))
        else:
            _must(0 <= given[1] <= 2**23)
            if given[1] > 30:
                raise TooManyOutcomesError
            draws = [each(given[0]) if each else _below(given[0] + place) for place in range(given[1])]
            _ = each(given[0]) if each else _below(given[0])  # also of no draws
        yield from _joint(draws)
    elif name == "subset":
        m, n = given
        _must(1 <= m <= 2**63 and 0 <= n <= m)
        if m > 12:
            raise TooManyOutcomesError
        rows = list(combinations(range(m), n))
        yield from ((list(row), Fraction(1, len(rows))) for row in rows)
    elif kept:
        v, t, n = given
        _must(-(2**63) <= v < 2**63 and 0 <= n <= 2**23)
        _must(0 <= t <= 2**64 if name == "kept_bits" else 1 <= t <= 2**63)
        yield from _joint([_bit(t) if name == "kept_bits" else _kept(t + place) for place in range(n)])
    else:
        yield _value(expression, known), Fraction(1)


_DRAWS = ("bit", "bit_at", "below", "bits", "belows", "belows_from", "bits_each", "subset")


def _value(expression: Any, known: dict[str, Any]) -> Any:
    if not isinstance(expression, list):
        return known[expression] if expression in known else int(expression)
    name, *arguments = expression
    if name == "polynomial":
        function, value, size = (_value(each, known) for each in arguments[1:])
        _must(0 <= function < 2**64 and 1 <= size <= 2**63)
        return _polynomial(arguments[0], function, value, size)
    given = [_value(each, known) for each in arguments]
    found = _WHOLE[name](*given) if name in _WHOLE else _placewise(name, given)
    _must(all(abs(x) < _LARGEST for x in (found if isinstance(found, list) else [found]) if isinstance(x, int)))
    return found


def _polynomial(seed: str, function: int, value: int, size: int) -> int:
    def words(data: bytes, length: int, person: bytes, key: bytes) -> list[int]:
        digest = hashlib.blake2b(data, digest_size=length, person=person, key=key).digest()
        return [int.from_bytes(digest[i : i + 8], "little") % (2**61 - 1) for i in range(0, length, 8)]

    key = hashlib.blake2b(seed.encode(), digest_size=32, person=b"ldp-budget seed").digest()
    (x,) = words(str(value).encode(), 8, b"value", key)
    a, b, c = words(function.to_bytes(8, "little"), 24, b"coefficients", key)
    return size * (((a * x + b) * x + c) % (2**61 - 1)) // 2**61


def _placewise(name: str, given: list[Any]) -> Any:
    sizes = {len(x) for x in given if isinstance(x, list)}
    _must(len(sizes) <= 1)
    if not sizes:
        return _number(name, given)
    if sizes == {0}:  # numbers next to vectors without entries must be in their ranges, too
        _number(name, [x if isinstance(x, int) else int(place == 1) for place, x in enumerate(given)])
    return [_number(name, [x[j] if isinstance(x, list) else x for x in given]) for j in range(max(sizes))]


def _number(name: str, given: list[int]) -> int:
    a, b = given[0], given[-1]
    if name in ("div", "mod"):
        _must(b >= 1)
    if name in ("shl", "shr"):
        _must(0 <= b <= 2**16)
    if name in ("and", "xor", "parity"):
        _must(a >= 0 and b >= 0)
    if name == "where":
        _must(a in (0, 1))
        return given[1] if a else b
    table: dict[str, Callable[[], int]] = {
        "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a // b, "mod": lambda: a % b,
        "shr": lambda: a // 2**b, "shl": lambda: a * 2**b, "and": lambda: a & b, "xor": lambda: a ^ b,
        "min": lambda: min(a, b), "max": lambda: max(a, b), "lt": lambda: int(a < b), "ge": lambda: int(a >= b),
        "eq": lambda: int(a == b), "parity": lambda: bin(a).count("1") % 2,
    }  # fmt: skip
    return table[name]()


def _at(vector: list[Any], place: int) -> Any:
    _must(0 <= place < len(vector))
    return vector[place]


def _put(vector: list[int], place: int, number: int) -> list[int]:
    _at(vector, place)
    return [number if j == place else x for j, x in enumerate(vector)]


def _flags(vector: list[int]) -> list[int]:
    _must(set(vector) <= {0, 1})
    return vector


def _rank(vector: list[int], number: int) -> int:
    _must(all(a <= b for a, b in pairwise(vector)))
    return len([x for x in vector if x <= number])


def _onehot(place: int, size: int) -> list[int]:
    _must(0 <= size <= 2**23)
    if size > 1000:
        raise TooManyOutcomesError
    return _put([0] * size, place, 1)


def _floyd(vector: list[int], least: int) -> list[int]:
    made: list[int] = []
    for place, x in enumerate(vector):
        made = [*made, least - 1 + place if made.count(x) else x]
    return made


_WHOLE: dict[str, Callable[..., Any]] = {
    "list": lambda *numbers: list(numbers),
    "at": _at,
    "put": _put,
    "sort": lambda vector: sorted(vector),
    "first": lambda bits: [*_flags(bits), 1].index(1) % max(1, len(bits)) if bits else 0,
    "rank": _rank,
    "onehot": _onehot,
    "join": lambda bits: int("".join(map(str, reversed(_flags(bits)))) or "0", 2),
    "floyd": _floyd,
}


# -- programs ------------------------------------------------------------------------------------------------------


def sealed(definition: dict[str, Any]) -> dict[str, Any]:
    """The definition with its digest."""
    return {**definition, "digest": digest_of(definition)}


def definition_with(**parts: Any) -> dict[str, Any]:
    """A definition of two answers that these parts replace; it has no digest."""
    return {
        **{
            "format": "ldp-budget client",
            "version": 1,
            "name": "generated",
            "title": "",
            "question": "",
            "purpose": "",
        },
        **{"contact": "", "languages": {}, "answers": None, "mechanism": "none", "fingerprint": "ab" * 32},
        **{"context": "cd" * 32, "input": {"kind": "answer", "count": 2, "text": False}, "tables": {}, "memo": ""},
        "guarantee": {"epsilon": "0.1", "delta": "0.0", "kind": "pure", "relation": "any inputs", "words": ""},
        **parts,
    }


def stating(definition: dict[str, Any], epsilon: float) -> dict[str, Any]:
    """The definition with another ε."""
    text = f"{max(0.0, min(epsilon, 40.0)):.15f}"
    return sealed({**definition, "guarantee": {**definition["guarantee"], "epsilon": text}})


class Generator:
    """Random programs of the specified form."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def definition(self) -> dict[str, Any]:
        """A definition of a random program."""
        chance = self.chance
        self.count = chance.choice([2, 2, 3, 4])
        self.steps: list[Any] = []
        self.numbers: list[Any] = ["value", "value", 0, 1, 2]
        self.vectors: list[tuple[Any, int]] = []
        half = [str(chance.randrange(1, 16) * 2**60) for _ in range(5)]
        low = chance.randrange(2**58, 2**63)
        self.tables = {
            "odds": [*half[: self.count - 1], str(2**63)] if chance.random() < 0.8 else half,
            "few": [chance.randrange(4) for _ in range(chance.choice([self.count, self.count, 3]))],
        }
        self.vectors += [("few", len(self.tables["few"]))]
        draws: list[Any] = [
            ["bit", half[0]],
            ["bit", str(2**63)],
            ["below", chance.choice([2, 3, self.count])],
            ["bits", half[1], self.count],
            ["bit_at", ["add", str(low), ["mul", "value", str(2**61)]]],
            ["bit_at", ["at", "odds", "value"]],
            ["subset", 4, 2],
            ["belows_from", 2, 2],
            ["bits_each", ["list", half[2], half[3]]],
        ]
        for _ in range(chance.randrange(1, 4)):
            self._add(chance.choice(draws))
        for _ in range(chance.randrange(1, 7)):
            self._add(self._number() if chance.random() < 0.7 else self._vector()[0])
        return definition_with(
            input=self._input(), tables=self.tables, steps=self.steps, report=self._report(), answers=None
        )

    def _input(self) -> dict[str, Any]:
        if self.chance.random() < 0.2:
            last = self.count - 1
            return {"kind": "number", "lower": "0.0", "upper": "1.0", "times": f"{last}.0", "last": last}
        return {"kind": "answer", "count": self.count, "text": False}

    def _add(self, expression: Any) -> None:
        name = f"s{len(self.steps)}"
        self.steps.append([name, expression])
        size = self._size_of(expression)
        if size is None:
            self.numbers += [name, name]
        else:
            self.vectors.append((name, size))

    def _size_of(self, expression: Any) -> int | None:
        """The length of a vector; None for a number."""
        if not isinstance(expression, list):
            return dict(self.vectors).get(expression) if isinstance(expression, str) else None
        name = expression[0]
        if name in ("bits", "belows", "belows_from", "subset"):
            return int(expression[2])
        if name in ("bits_each", "list"):
            return len(expression[1]) - 1 if name == "bits_each" else len(expression) - 1
        if name == "onehot":
            return int(expression[2])
        if name in ("put", "sort", "floyd"):
            return self._size_of(expression[1])
        if name in ("at", "first", "rank", "join", "below", "bit", "bit_at", "polynomial"):
            return None
        return next((size for each in expression[1:] if (size := self._size_of(each)) is not None), None)

    def _scalar(self) -> Any:
        pick = self.chance.choice(self.numbers)
        if self.chance.random() < 0.3:
            return ["mod", pick, self.chance.choice([2, 3, self.count])]
        return pick

    def _number(self) -> Any:
        chance, a, b = self.chance, self._scalar(), self._scalar()
        bit = ["mod", self._scalar(), 2] if chance.random() < 0.8 else self._scalar()
        vector, size = chance.choice(self.vectors)
        place = ["mod", a, max(1, size)] if chance.random() < 0.8 else a
        operator = chance.choice(["add", "sub", "mul", "min", "max", "lt", "ge", "eq", "xor", "and", "div", "mod"])
        return chance.choice(
            [
                [operator, a, b],
                ["where", bit, a, b],
                ["where", bit, "value", chance.choice(["value", a])],
                ["at", vector, place],
                ["polynomial", "7", ["mod", self._scalar(), 3], "value", self.count],
                ["parity", a],
                ["mod", ["add", a, b], self.count],
                ["mul", 0, ["at", "few", a]],
                ["first", ["mod", vector, 2] if chance.random() < 0.8 else vector],
                ["join", ["eq", vector, a]],
                ["rank", ["list", 0, 1, 2], a],
                ["shl", 1, ["mod", a, 4]],
                ["shr", a, 1],
            ]
        )

    def _vector(self) -> tuple[Any, int]:
        chance, a = self.chance, self._scalar()
        vector, size = chance.choice(self.vectors)
        made = chance.choice(
            [
                ["put", vector, ["mod", a, max(1, size)], self._scalar()],
                ["put", vector, "value", self._scalar()],
                ["xor", vector, ["mod", a, 2]],
                ["eq", vector, "value"],
                ["onehot", "value", self.count],
                ["sort", vector],
                ["where", ["mod", vector, 2], a, self._scalar()],
                ["add", vector, ["ge", vector, a]],
                ["list", a, self._scalar()],
                ["floyd", vector, 2],
                [chance.choice(["mod", "shl", "and"]), ["list"], a],
            ]
        )
        return made, 0

    def _report(self) -> dict[str, Any]:
        names = [name for name, _ in self.steps]
        sizes = dict(self.vectors)
        parts: list[Any] = []
        for name in self.chance.sample(names, min(len(names), self.chance.choice([1, 1, 1, 2]))):
            kind = self.chance.choice(["uint", "uint", "packed", "float64" if name not in sizes else "uint"])
            if kind == "float64":
                parts.append(["float64", name, "0.5", self.chance.choice(["0.25", "1e300"]), 1])
            else:
                count = sizes.get(name, 1)
                parts.append([kind, name, *([self.chance.choice([1, 2])] if kind == "uint" else []), count])
        return {"dtype": "|u1", "shape": [1], "parts": parts}


# -- steps at the ends of ranges ---------------------------------------------------------------------------------------

_ENDS = (
    *(0, 1, 2, 3, -1, -5, 4095, 4096, 65536, 65537, 2**23, 2**23 + 1, 2**53 - 1, 2**53, -(2**53) - 1),
    *(2**63, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, 2**4095, 2**4096 - 1, 1 - 2**4096),
)


def odd_definition(chance: random.Random) -> dict[str, Any]:
    """A definition of one step with numbers at the ends of all ranges, which often fails, and a report of it."""
    step = _odd_step(chance)
    visible = ["mod", ["add", "odd", str(2**63)], str(2**64)]
    steps = [["odd", step], ["report", visible if chance.random() < 0.7 else "odd"]]
    part: list[Any] = ["uint", "report", 8, chance.choice([0, 1, 1, 1, 2, 2, 3, 4, 5])]
    if chance.random() < 0.2:
        part = ["float64", "report", chance.choice(["0.5", "-1e308"]), chance.choice(["0.25", "1e300"]), str(2**60)]
    return definition_with(
        input={"kind": "answer", "count": 4, "text": False},
        steps=steps,
        report={"dtype": "|u1", "shape": [1], "parts": [part]},
        memo="value" if step[0].startswith("kept") else "",
    )


def _odd_step(chance: random.Random) -> list[Any]:
    def number() -> Any:
        end = chance.choice(_ENDS)
        return (end if abs(end) < 2**53 else str(end)) if chance.random() < 0.5 else chance.choice(known)

    def vector() -> Any:
        rows = [[], [number()], [number(), number()], [0, 1], [1, 1, 0], [0, 1, 2]]
        return ["list", *chance.choice(rows)] if chance.random() < 0.9 else ["onehot", "value", 4]

    def either() -> Any:
        return number() if chance.random() < 0.5 else vector()

    known: list[Any] = ["value", ["sub", "value", 1], ["mul", "value", str(2**60)]]
    few, places = chance.choice([0, 1, 3, 5, -1]), chance.choice([0, 1, 40, 41, -1])
    pairs = ["add", "sub", "mul", "div", "mod", "shr", "shl", "and", "xor", "min", "max", "lt", "ge", "eq"]
    steps: list[list[Any]] = [
        *([name, either(), either()] for name in pairs),
        *(["where", either(), either(), either()], ["parity", either()], ["at", vector(), number()]),
        *(
            ["put", vector(), number(), number()],
            ["sort", vector()],
            ["first", vector()],
            ["rank", vector(), number()],
        ),
        *(["join", vector()], ["floyd", vector(), number()], ["onehot", number(), few]),
        *(["polynomial", "s", number(), number(), number()], ["bloom", "s", number(), number(), number(), few]),
        *(["bit", number()], ["bits", number(), few], ["bit_at", number()], ["bits_each", vector()]),
        *(["below", number()], ["belows", number(), few], ["belows_from", number(), few]),
        *(["subset", chance.choice([number(), 5, 1, 0]), few], ["shuffle", vector()]),
        *(["geometric", chance.choice([0, 5, str(2**63), -1, str(2**64)])], ["laplace", places], ["normal", places]),
        *(["kept_bits", "a", number(), number(), few], ["kept_belows", "b", number(), number(), few]),
        ["kept_top", "c", number(), chance.choice([0, 1, 64, 65, -1])],
    ]
    return chance.choice(steps)


# -- other forms ---------------------------------------------------------------------------------------------------


def undefined(definition: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The definition with one change after which the specification does not define it."""
    changed = json.loads(json.dumps({name: value for name, value in definition.items() if name != "digest"}))
    calls = [call for _, step in changed["steps"] for call in _calls(step)]
    given, steps, part = changed["input"], changed["steps"], changed["report"]["parts"][0]
    odd = chance.choice([True, None, {}, "01", "0_1", "\u0661", "+1", "-0", " 1", "1.0", "nothing", str(2**4096)])
    forms: list[Callable[[], Any]] = [
        lambda: given.update(
            chance.choice([{"extra": 1}, {"kind": "word"}, {"count": odd}, {"text": 0, "kind": "answer"}])
        ),
        lambda: changed.update(answers=["a"] * 7),
        lambda: changed.update(note="a key of its own"),
        lambda: changed.update(version=True),
        lambda: changed.update(memo="value"),
        lambda: changed["guarantee"].update(
            chance.choice([{"answer_epsilon": "0.1"}, {"limit": "1"}, {"epsilon": True}])
        ),
        lambda: changed["report"].update(more=[]),
        lambda: changed["report"]["parts"].append(
            chance.choice([["uint", "value", 1], ["text", "value", 1, 1], "uint"])
        ),
        lambda: part.append(1),
        lambda: steps.append([chance.choice(["01", "0_1", "S", "value", steps[0][0], "a-b", "\u00e9", ""]), 0]),
        lambda: steps.append(["late", chance.choice(["later", odd, ["list", odd], ["add", 1], [], ["nothing", 1]])]),
        lambda: steps.append(["wide", ["put", "few", ["list", 0], 0]]),
        lambda: steps.append(["deep", ["list", "few"]]),
        lambda: steps.append(["inner", ["add", 0, ["bit", str(2**63)]]]),
        lambda: steps.append(["long", ["list", 1], 2]),
        lambda: changed["tables"].update(more=chance.choice([[odd], [[1], 2], [[1], [1, 2]], "12", {"first": "1"}])),
    ]
    if calls:
        call = chance.choice(calls)
        forms += [lambda: call.append(1), lambda: call.pop(), lambda: call.__setitem__(-1, odd)] * 2
    chance.choice(forms)()
    return changed if _differs(changed, definition) else undefined(definition, chance)


def _differs(changed: dict[str, Any], definition: dict[str, Any]) -> bool:
    return json.dumps(changed) != json.dumps({name: value for name, value in definition.items() if name != "digest"})


def _calls(expression: Any) -> Iterator[list[Any]]:
    """The calls of operators that take a fixed number of arguments."""
    if isinstance(expression, list):
        if expression[0] != "list":
            yield expression
        for each in expression[1:]:
            yield from _calls(each)
