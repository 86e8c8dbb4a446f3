"""Client programs: a mechanism's client as data, which any device can run.

A program reads the answer as one whole number, `value`. Then it runs its steps in order, and lays out the report. A
step is a name and an expression. An expression is a whole number, the name of an earlier step or of a table, or a
list of an operator and its arguments.

`OPERATORS` is the closed set of operators; an interpreter refuses any other. Each operator is defined by one sentence.
The sentences are the specification: `docs/reference/client-programs.md` is generated from them, and clients in other
languages implement them. A vector is a list of whole numbers; bits are 0 and 1. Divisions round down.

There are no loops, and nothing branches on the answer. A draw is always the outermost operator of a step. So the
stream of random bytes is read in the order of the steps, regardless of the answer.

A program has no floating-point numbers: whole numbers beyond 2**53 - 1 and doubles are text. A double is written as
the shortest decimal that means it. So every language reads and hashes a program in the same way.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .domain import Categories, Interval, Words
from .operator_forms import HUGE, MOST, MOST_DEPTH, NUMBER, ROWS, VECTOR, kind_of_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


# -- the operators ---------------------------------------------------------------------------------------------------


class Operator(NamedTuple):
    """An operator. `kind`: draw (reads the stream), memo (reads the secret), hash, each (number by number) or whole."""

    kind: str
    arguments: tuple[str, ...] | None
    """The names of the arguments; None for any number of whole numbers."""
    sentence: str
    labelled: bool = False
    """True if the first argument is a text instead of an expression."""


def _draw(arguments: str, sentence: str) -> Operator:
    return Operator("draw", tuple(arguments.split()), sentence)


def _memo(arguments: str, sentence: str) -> Operator:
    return Operator("memo", ("label", *arguments.split()), sentence, labelled=True)


def _each(arguments: str, sentence: str) -> Operator:
    return Operator("each", tuple(arguments.split()), sentence)


def _whole(arguments: str, sentence: str) -> Operator:
    return Operator("whole", tuple(arguments.split()), sentence)


DRAWS = ("draw", "memo")
"""Kinds of operators that are allowed only as the outermost operator of a step."""

OPERATORS = {
    # from the stream
    "bit": _draw(
        "t",
        "One with probability t/2**64: nothing is read for t = 0 and t = 2**64, else one byte b, which is compared "
        "with the top byte of t, and where they are equal and the lower 56 bits of t are not all zero seven more, "
        "little-endian, which are compared with those.",
    ),
    "bits": _draw(
        "t n",
        "A vector of n bits as by `bit`: n bytes are read first, then seven for each tie, in order; of more than "
        "2**18 bits so many at a time, and then the next.",
    ),
    "bit_at": _draw(
        "t",
        "The same for a t < 2**64 that was worked out: one byte is always read, and seven more at every tie.",
    ),
    "bits_each": _draw("vector", "A bit, as by `bit`, for each threshold of a vector, one after the other."),
    "below": _draw(
        "b",
        "A whole number, uniform below b <= 2**63: words of 1, 2, 4 or 8 bytes, the fewest that hold b - 1, "
        "little-endian, are read one by one and cut to as many low bits as b - 1 has, until one is below b; "
        "for b = 1 one byte is read too.",
    ),
    "belows": _draw(
        "b n",
        "A vector of n such numbers, in the order in which they were drawn: as many words as are still missing are "
        "read together, and those below b are appended.",
    ),
    "belows_from": _draw("b n", "A vector of n numbers, the i-th (from 0) by `below` b + i; b + n - 1 <= 2**63."),
    "subset": _draw(
        "m n",
        "n different numbers below m, ascending: where 2n <= m, `belows` m n, sorted, and as long as some equal the "
        "one before, these are drawn again by one `belows` and all are sorted; else the numbers that `subset` m "
        "(m - n) leaves out. n <= m, and m <= 2**23 where 2n > m.",
    ),
    "shuffle": _draw(
        "vector",
        "The vector in uniform order: from the last place down to the second, each is swapped with the place that "
        "`below` (place + 1) draws.",
    ),
    "geometric": _draw("t", "How many bits, as by `bit` t < 2**64, are one before the first that is zero."),
    "laplace": _draw(
        "k",
        "The whole part of 2**k times a Laplace deviate, k <= 40: its exponential magnitude by von Neumann's "
        "comparisons of 8-byte words, then a `bit` 2**63 that turns x into -x - 1; see [the stream](#the-stream).",
    ),
    "normal": _draw(
        "k",
        "The whole part of 2**k times a normal deviate, k <= 40, by Karney's Algorithm N, ten proposals side by "
        "side, of which the first that is accepted counts; see [the stream](#the-stream).",
    ),
    # from the secret
    "kept_bits": _memo(
        "v t n", "A vector of n bits: the i-th is 1 where the i-th word of the secret for v is below t."
    ),
    "kept_belows": _memo(
        "v b n", "A vector of n numbers: the i-th word (from 0) of the secret for v modulo b + i; b + n - 1 <= 2**63."
    ),
    "kept_top": _memo("v k", "The k highest bits of the first word of the secret for v."),
    # public hashes
    "polynomial": Operator(
        "hash",
        ("seed", "j", "v", "m"),
        "h_j(v) = floor(m·y / 2**61) with y = (a·x + b)·x + c modulo P = 2**61 - 1, where x and (a, b, c) are words "
        "modulo P: under the key BLAKE2b(seed as text; 32 bytes, personalised `ldp-budget seed`), x is BLAKE2b(v as "
        "text; 8 bytes, personalised `value`) and (a, b, c) BLAKE2b(j as 8 bytes; 24 bytes, personalised "
        "`coefficients`).",
        labelled=True,
    ),
    "bloom": Operator(
        "hash",
        ("seed", "j", "v", "m", "n"),
        "A vector of m bits, 1 at each of the first n words, modulo m, of SHAKE-128 over the text "
        "`ldp-budget bloom 1:` seed `:` j `:` v.",
        labelled=True,
    ),
    # number by number, also over vectors of one length; a single number is combined with each entry of a vector
    "add": _each("a b", "a + b."),
    "sub": _each("a b", "a - b."),
    "mul": _each("a b", "a·b."),
    "div": _each("a b", "a divided by b, rounded down."),
    "mod": _each("a b", "What that division leaves, from 0 to b - 1."),
    "shr": _each("a k", "a divided by 2**k, rounded down."),
    "shl": _each("a k", "a·2**k."),
    "and": _each("a b", "The bits that both have, of numbers >= 0."),
    "xor": _each("a b", "The bits that one of them has alone, of numbers >= 0."),
    "min": _each("a b", "The smaller one of the two."),
    "max": _each("a b", "The larger one of the two."),
    "lt": _each("a b", "1 if a < b, else 0."),
    "ge": _each("a b", "1 if a >= b, else 0."),
    "eq": _each("a b", "1 if a = b, else 0."),
    "where": _each("c a b", "a where c is 1, b where it is 0. Both a and b are worked out, whatever c is."),
    "parity": _each("a", "1 if the number of ones in a >= 0 is odd, else 0."),
    # with whole vectors
    "list": Operator("whole", None, "The vector of its arguments."),
    "at": _whole("vector i", "Entry i of a vector, from 0; of a table of vectors its row i, which is a vector."),
    "put": _whole("vector i a", "The vector with a at place i."),
    "sort": _whole("vector", "The vector in ascending order."),
    "first": _whole("bits", "The place of the first 1, and 0 where there is none."),
    "rank": _whole("vector a", "How many entries are <= a, of a vector in which no entry is below the one before."),
    "onehot": _whole("i n", "n zeros with a 1 at place i."),
    "join": _whole("bits", "The number whose bits these are, the lowest first."),
    "floyd": _whole(
        "vector b",
        "The vector in which, from the left, an entry that stands before it already becomes b - 1 + its place.",
    ),
}


# -- the program -----------------------------------------------------------------------------------------------------


VERSION = 1
"""The version of the operators and of the layout. An interpreter refuses versions that it does not implement."""

Expression: TypeAlias = "int | str | list[Any]"

_EXACT = 2**53 - 1
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,1233}")
_UNSIGNED = re.compile(r"[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?")
_DECIMAL = re.compile(rf"-?{_UNSIGNED.pattern}")
_PLAIN = re.compile(r"[ -~]{0,200}")
"""A label or a seed."""
_WORD_BYTES = 8
_MOST_WORD = 512
"""The most bytes of a word."""
_MOST_DIGITS = 1000
"""The most digits of the weights of a falling table."""


@dataclass(frozen=True)
class Program:
    """A client program: its input, steps and report layout.

    `input`: how an answer becomes `value` (`answers`, `nearest`, `floored`). `report`: how the bytes of a report are
    laid out (`uint`, `packed`, `float64`, `record`). `tables`: named lists of whole numbers, or of such lists.

    `memo`: the part of the answer that a memoised draw depends on, `value` or the name of a step. Reports of one
    secret with an equal memo repeat the same draw, and share a label. `memo` is empty where nothing is drawn from a
    secret.

    Raises ValueError for a program that no interpreter would run: an unknown operator or name, a draw within an
    expression, or a part of the report that is not the name of a step.
    """

    input: Mapping[str, Any]
    steps: tuple[tuple[str, Expression], ...]
    report: Mapping[str, Any]
    tables: Mapping[str, Any] = field(default_factory=dict)
    memo: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.tables, dict):
            raise ValueError(f"tables must be an object of names and tables: got {self.tables!r}")
        names = {"value"}
        for name in (*self.tables, *(name for name, _ in self.steps)):
            if not isinstance(name, str) or not _NAME.fullmatch(name) or name in names:
                raise ValueError(f"each table and step must have its own name, in lower case: got {name!r}")
            names.add(name)
        known = {"value": NUMBER, **{name: _kind_of_table(name, table) for name, table in self.tables.items()}}
        for name, expression in self.steps:
            known[name] = _kind(name, expression, known, top=True)
        _check_report(self.report, {name: known[name] for name, _ in self.steps})
        _check_input(self.input)
        if not isinstance(self.memo, str):
            raise ValueError(f"memo must be a name, or empty: got {self.memo!r}")
        if self.memo and known.get(self.memo) != NUMBER:
            raise ValueError(f"memo must be the name of a step that is a number: got {self.memo!r}")
        if bool(self.memo) != any(_operator(step) in MEMO for _, step in self.steps):
            raise ValueError("memo must be given if and only if a step draws from a secret")

    def to_json(self) -> dict[str, Any]:
        """Return the program as it appears in the public definition of a collection."""
        return {
            "input": dict(self.input),
            "steps": [[name, expression] for name, expression in self.steps],
            "tables": dict(self.tables),
            "report": dict(self.report),
            "memo": self.memo,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Program:
        """Return the program that `to_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        steps = tuple((name, expression) for name, expression in data["steps"])
        return cls(data["input"], steps, data["report"], data["tables"], data["memo"])

    @cached_property
    def size(self) -> int:
        """The size of a report in bytes."""
        return sum(size_of(part) for part in self.report["parts"])

    @cached_property
    def table_values(self) -> dict[str, Any]:
        """The tables as lists of whole numbers, computed once for all runs."""
        return {name: _table(table) for name, table in self.tables.items()}


MEMO = frozenset(name for name, operator in OPERATORS.items() if operator.kind == "memo")


def _operator(expression: Expression) -> str:
    name = expression[0] if isinstance(expression, list) and expression else ""
    return name if isinstance(name, str) else ""


def _kind(place: str, expression: Expression, known: Mapping[str, str], *, top: bool, depth: int = MOST_DEPTH) -> str:
    """Return the kind of an expression after checking its form: a number, a vector, or rows of a table."""
    if isinstance(expression, int) and not isinstance(expression, bool):
        if abs(expression) > _EXACT:
            raise ValueError(f"{place}: a whole number beyond 2**53 - 1 must be a string: got {expression}")
    elif isinstance(expression, str):
        if expression in known:
            return known[expression]
        if not _is_whole(expression):
            raise ValueError(f"{place}: no earlier step or table is named {expression!r}")
    elif depth and isinstance(expression, list) and expression and _operator(expression) in OPERATORS:
        return _kind_of_call(place, expression, known, top, depth)
    else:
        raise ValueError(f"{place}: an expression must be a whole number, a name or an operator: got {expression!r}")
    return NUMBER


def _kind_of_call(place: str, call: list[Any], known: Mapping[str, str], top: bool, depth: int) -> str:
    name, *arguments = call
    operator = OPERATORS[name]
    if operator.kind in DRAWS and not top:
        raise ValueError(f"{place}: {name} draws, so it must be the outermost operator of a step")
    if operator.arguments is not None and len(arguments) != len(operator.arguments):
        raise ValueError(
            f"{place}: the arguments of {name} must be {', '.join(operator.arguments)}: got {len(arguments)} arguments"
        )
    if operator.labelled and not (isinstance(arguments[0], str) and _PLAIN.fullmatch(arguments[0])):
        what = operator.arguments[0]  # type: ignore[index]
        raise ValueError(f"{place}: the {what} must be a string of up to 200 ASCII characters: got {arguments[0]!r}")
    inner = arguments[1:] if operator.labelled else arguments
    kinds = [_kind(place, argument, known, top=False, depth=depth - 1) for argument in inner]
    try:
        return kind_of_call(name, kinds)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _is_whole(number: Any, least: int | None = None) -> bool:
    """True if `number` is written as `whole` writes it, and is at least `least`."""
    if isinstance(number, bool) or not isinstance(number, int | str):
        return False
    if abs(number) > _EXACT if isinstance(number, int) else not _NUMBER.fullmatch(number):
        return False
    return -HUGE < int(number) < HUGE and (least is None or int(number) >= least)


def _is_size(number: Any, least: int = 0, most: int = MOST) -> bool:
    return isinstance(number, int) and _is_whole(number, least) and number <= most


def _is_double(text: Any) -> bool:
    return isinstance(text, str) and _DECIMAL.fullmatch(text) is not None and math.isfinite(float(text))


_PARTS: dict[str, tuple[Callable[[Any], bool], ...]] = {
    "uint": (lambda size: _is_size(size, 1, _WORD_BYTES), _is_size),
    "packed": (_is_size,),
    "float64": (_is_double, _is_double, _is_whole),
}


def _check_report(report: Any, steps: Mapping[str, str]) -> None:
    if not isinstance(report, dict) or set(report) != {"dtype", "shape", "parts"} or not report["parts"]:
        raise ValueError(f"a report must have dtype, shape and at least one of parts: got {report!r}")
    dtype, shape, parts = report["dtype"], report["shape"], report["parts"]
    if not isinstance(dtype, str) or not all(isinstance(each, list) for each in (shape, parts)):
        raise ValueError(f"a report must have dtype as text, and shape and parts as lists: got {report!r}")
    if not all(map(_is_size, shape)):
        raise ValueError(f"the shape of a report must be sizes up to {MOST}: got {shape!r}")
    for part in report["parts"]:
        _check_part(part, steps)
    if (size := sum(map(size_of, parts))) > MOST:
        raise ValueError(f"a report must have at most {MOST} bytes: got {size}")


def _check_part(part: list[Any], steps: Mapping[str, str]) -> None:
    if not isinstance(part, list) or len(part) < 2 or not isinstance(part[0], str):
        raise ValueError(f"a part of a report must be a list of its kind, a name and sizes: got {part!r}")
    kind, name, *more = part
    if kind not in _PARTS:
        raise ValueError(f"a part of a report must be one of {', '.join(_PARTS)}: got {kind!r}")
    if not isinstance(name, str) or steps.get(name) not in ((NUMBER,) if kind == "float64" else (NUMBER, VECTOR)):
        raise ValueError(f"a part of the report must name a step: got {name!r}")
    fits = _PARTS[kind]
    if len(more) != len(fits) or not all(fit(each) for fit, each in zip(fits, more, strict=True)):
        raise ValueError(
            f"a part of the report must have whole numbers, and doubles as strings, after {kind}: got {more}"
        )


def _kind_of_table(name: str, table: Any) -> str:
    if isinstance(table, dict):
        good = set(table) == {"first", "ratio", "digits", "floor", "count"} and _is_whole(table["floor"], 0)
        good = good and _is_size(table["digits"], 1, _MOST_DIGITS) and _is_size(table["count"])
        decimals = [table.get(key) for key in ("first", "ratio")]
        good = good and all(isinstance(each, str) and _UNSIGNED.fullmatch(each) for each in decimals)
        good = good and _is_moderate(table)
        rows = []
    else:
        listed = table if isinstance(table, list) else []
        rows = [row for row in listed if isinstance(row, list)]
        numbers = [number for row in listed for number in (row if isinstance(row, list) else [row])]
        good = isinstance(table, list) and len(listed) <= MOST and all(map(_is_whole, numbers))
        good = good and len(rows) in (0, len(listed)) and len(set(map(len, rows))) <= 1
    if not good:
        expected = "whole numbers, those beyond 2**53 - 1 as strings, lists of them of one length, or a falling table"
        raise ValueError(f"table {name} must be {expected}")
    return ROWS if rows else VECTOR


def _is_moderate(table: dict[str, Any]) -> bool:
    """True if the totals of a falling table are below HUGE. They are worked out only where the weights may grow."""
    first, ratio, floor = Decimal(table["first"]), Decimal(table["ratio"]), int(table["floor"])
    if ratio <= 1 and first < 10**1000 and floor < 10**1000:
        return True
    try:
        return bool(_falling(table)[-1] < HUGE)
    except (ArithmeticError, OverflowError):
        return False


def _check_input(given: Mapping[str, Any]) -> None:
    if not isinstance(given, dict):
        raise ValueError(f"the input must be an object: got {given!r}")
    by = "times" if "times" in given else "step"
    keys = {"answer": {"count", "text"}, "word": {"length"}, "number": {"lower", "upper", "last", by}}
    kind = given.get("kind")
    good = isinstance(kind, str) and kind in keys and set(given) == {"kind", *keys[kind]}
    if good and kind == "answer":
        good = _is_whole(given["count"], 1) and isinstance(given["text"], bool)
    elif good and kind == "word":
        good = _is_size(given["length"], 1, _MOST_WORD)
    elif good:
        good = _is_size(given["last"], 0, _EXACT) and all(_is_double(given[key]) for key in ("lower", "upper", by))
        good = good and _is_range(*(float(given[key]) for key in ("lower", "upper", by)), times=by == "times")
    if not good:
        raise ValueError(f"the input must be as of `answers`, `nearest` or `floored`: got {dict(given)}")


def _is_range(lower: float, upper: float, by: float, *, times: bool) -> bool:
    """True if every number of the range has a point, which no double overflows."""
    if not (lower <= upper and by > 0):
        return False
    try:
        return math.isfinite((upper - lower) * by if times else (upper - lower) / by)
    except OverflowError:
        return False


# -- input: from an answer to a whole number ------------------------------------------------------------------------


def answers(domain: Categories) -> dict[str, Any]:
    """Return the input of a program whose `value` is one of the answers 0..size-1.

    Where the answers are not listed, the client also accepts any text, see `Categories.number_of`. Words are read as
    `Words.number_of` reads them.
    """
    if isinstance(domain, Words):
        return {"kind": "word", "length": domain.length}
    return {"kind": "answer", "count": whole(domain.size), "text": not domain.listed}


def nearest(interval: Interval, times: float, last: int) -> dict[str, Any]:
    """Return the input that maps a number x to the whole number nearest to (x - lower)·times, at most `last`.

    Ties go to the even number. The client computes in doubles.
    """
    return {**_numbers(interval), "times": double(times), "last": whole(last)}


def floored(interval: Interval, step: float, last: int) -> dict[str, Any]:
    """Return the input that maps a number x to the whole part of (x - lower)/step, at most `last`; in doubles."""
    return {**_numbers(interval), "step": double(step), "last": whole(last)}


def _numbers(interval: Interval) -> dict[str, Any]:
    lower, upper = map(double, interval.ends)
    return {"kind": "number", "lower": lower, "upper": upper}


# -- the report ------------------------------------------------------------------------------------------------------


def uint(name: str, largest: int, count: int | None = None) -> dict[str, Any]:
    """Return the layout of a step that is a whole number up to `largest`, or a vector of `count` such numbers.

    The numbers are unsigned, little-endian, of 1, 2, 4 or 8 bytes each.
    """
    size = next(size for size in (1, 2, 4, 8) if largest < 1 << (8 * size))
    shape = [] if count is None else [count]
    kind = "|u1" if size == 1 else f"<u{size}"
    return record([["uint", name, size, count or 1]], kind, shape)


def packed(name: str, columns: int) -> dict[str, Any]:
    """Return the layout of a step that is a vector of `columns` bits.

    Bit i of the vector is bit i % 8 of byte i // 8; bit 0 is the lowest.
    """
    return record([["packed", name, columns]])


def float64(name: str, origin: float, step: float, plus: int = 0) -> dict[str, Any]:
    """Return the layout of the double origin + (r + plus)·step, little-endian, for a step that is a whole number r."""
    return record([["float64", name, double(origin), double(step), whole(plus)]], "<f8", [])


def record(parts: list[list[Any]], dtype: str = "|u1", shape: Iterable[int] | None = None) -> dict[str, Any]:
    """Return the layout of several parts, one after the other.

    `dtype` and `shape` describe one user's row of the array of reports. The default is plain bytes.
    """
    listed = [sum(map(size_of, parts))] if shape is None else [*shape]
    return {"dtype": dtype, "shape": listed, "parts": parts}


def size_of(part: list[Any]) -> int:
    """Return the size of a part of a report in bytes."""
    kind, _, *more = part
    if kind == "uint":
        return int(more[0]) * int(more[1])
    if kind == "packed":
        return -(-int(more[0]) // 8)
    if kind == "float64":
        return 8
    raise ValueError(f"a part of a report must be one of uint, packed, float64: got {kind!r}")


# -- numbers ---------------------------------------------------------------------------------------------------------


def whole(number: int) -> int | str:
    """Return a whole number as a program writes it."""
    return int(number) if abs(number) <= _EXACT else str(int(number))


def double(number: float) -> str:
    """Return a double as a program writes it: the shortest decimal that means it."""
    return repr(float(number))


def falling(first: str, ratio: str, digits: int, floor: int, count: int) -> dict[str, Any]:
    """Return a table of running totals 0, w_0, w_0 + w_1, … of `count` weights that fall geometrically.

    w_i is the whole part of first·ratio^i, and at least `floor`. Each product is rounded down to `digits` digits.
    """
    return {"first": first, "ratio": ratio, "digits": digits, "floor": whole(floor), "count": count}


def _table(table: Any) -> list[Any]:
    if isinstance(table, dict):
        return _falling(table)
    numbers = [[int(n) for n in row] if isinstance(row, list) else int(row) for row in table]
    ascend = not any(isinstance(each, list) for each in numbers) and numbers == sorted(numbers)
    return Ascending(numbers) if ascend else numbers


class Ascending(list[Any]):
    """A table whose numbers ascend, so that `rank` need not look at all of them."""


def _falling(table: dict[str, Any]) -> list[int]:
    context = Context(prec=table["digits"], rounding=ROUND_FLOOR)
    weight, ratio, floor = Decimal(table["first"]), Decimal(table["ratio"]), int(table["floor"])
    totals = [0]
    for _ in range(table["count"]):
        totals.append(totals[-1] + max(int(weight), floor))
        if totals[-1] >= HUGE:
            break
        weight = context.multiply(weight, ratio)
    return Ascending(totals)
