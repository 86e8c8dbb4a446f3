"""The short notation: a client as a Python method, `client(self, value, draw)`, that is traced to a client program.

`value` and every draw are a `Term`, an expression that is not computed yet. Python's operators and the functions of this
module make further terms. They have the names of the operators of client programs, see `client_program.OPERATORS`, and
mean the same; `and` is written `&`. A list of whole numbers is a table.

    def client(self, value, draw):
        return where(draw.coin(), value, draw.below(self.domain_size))

A program is a straight line, so Python may loop over plain numbers, but cannot branch on a term.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from typing import TYPE_CHECKING, Any

from .client_program import DRAWS, OPERATORS, Program, record, uint, whole
from .operator_forms import check_draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MOST_TERMS = 20_000
"""The most terms that one report is made of."""
_NESTED = 40
"""The most operators within each other before an expression becomes a step of its own."""

_serials = itertools.count()


class OutOfRangeError(ValueError):
    """A draw has an argument beyond the range of its operator, as the fields make it."""


class Term:
    """An expression of a client program. Python's operators write its operators.

    Parameters:
        op: the name of an operator, or `value`.
        given: the arguments: terms, whole numbers, lists of them, and a text where the operator is labelled.

    Raises:
        TypeError: an argument is none of these.
    """

    __hash__ = None  # type: ignore[assignment]  # `==` writes an operator

    def __init__(self, op: str, *given: Any) -> None:
        labelled = op in OPERATORS and OPERATORS[op].labelled
        self.op = op
        self.given = (*given[:labelled], *(_argument(op, each) for each in given[labelled:]))
        self.serial = next(_serials)
        self.depth: int = 1 + max((each.depth for each in self._parts()), default=0)
        if self.depth > MOST_TERMS:
            raise TypeError(f"a report must be made of at most {MOST_TERMS:,} operators")

    def _parts(self) -> Iterator[Term]:
        for each in self.given:
            yield from (part for part in (each if isinstance(each, list) else [each]) if isinstance(part, Term))

    def __repr__(self) -> str:
        return f"<Term {self.op}>"

    def _branch(self, *_: Any) -> Any:
        raise TypeError(
            "a client program cannot branch, loop or compute on a value that is not drawn yet: write where(condition, a, b) "
            "in place of if, and, or and not; min(a, b) and max(a, b) of ldp_budget.sdk.client_notation"
        )

    __bool__ = __index__ = __int__ = __float__ = __iter__ = __len__ = __contains__ = _branch

    def __truediv__(self, _: Any) -> Any:
        raise TypeError("a client program has whole numbers only: write a // b in place of a / b")

    __rtruediv__ = __truediv__

    def __getitem__(self, place: Any) -> Term:
        return Term("at", self, place)

    def __neg__(self) -> Term:
        return Term("sub", 0, self)

    def __gt__(self, other: Any) -> Term:
        return Term("lt", other, self)

    def __le__(self, other: Any) -> Term:
        return Term("ge", other, self)

    def __ne__(self, other: Any) -> Term:  # type: ignore[override]
        return Term("eq", Term("eq", self, other), 0)


def _infix(op: str, *, swap: bool = False) -> Callable[[Term, Any], Term]:
    def call(self: Term, other: Any) -> Term:
        return Term(op, other, self) if swap else Term(op, self, other)

    return call


_SIGNS = {"add": "add", "sub": "sub", "mul": "mul", "floordiv": "div", "mod": "mod", "rshift": "shr", "lshift": "shl"}
_SIGNS |= {"and": "and", "xor": "xor"}
for _sign, _op in _SIGNS.items():
    setattr(Term, f"__{_sign}__", _infix(_op))
    setattr(Term, f"__r{_sign}__", _infix(_op, swap=True))
for _sign in ("lt", "ge", "eq"):
    setattr(Term, f"__{_sign}__", _infix(_sign))


def _argument(op: str, given: Any) -> Any:
    """Return an argument as a term, an int or a list of them."""
    if isinstance(given, Term):
        return given
    if isinstance(given, list | tuple):
        return [_argument(op, each) for each in given]
    try:
        return operator.index(given)
    except TypeError:
        expected = "terms, whole numbers or lists of them"
        raise TypeError(f"the arguments of {op} must be {expected}: got {given!r}") from None


# -- functions, under the names of the operators -----------------------------------------------------------------------


def _function(op: str) -> Callable[..., Term]:
    def write(*given: Any) -> Term:
        expected = OPERATORS[op].arguments
        if expected is not None and len(given) != len(expected):
            raise TypeError(f"{op} takes the arguments {', '.join(expected)}: got {len(given)}")
        return Term(op, *given)

    write.__name__ = write.__qualname__ = op
    write.__doc__ = f"{op}({', '.join(OPERATORS[op].arguments or ('...',))}): {OPERATORS[op].sentence}"
    return write


FUNCTIONS: Mapping[str, Callable[..., Term]] = {
    name: _function(name) for name, each in OPERATORS.items() if each.kind not in DRAWS
}
"""The functions of this module by the names of the operators that do not draw."""


def __getattr__(name: str) -> Callable[..., Term]:
    # Not globals: `min`, `max` and `list` are functions of Python as well.
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# -- draws -------------------------------------------------------------------------------------------------------------


class Draw:
    """The draws of a client, in order. Its methods are the operators that draw, and the two that are calibrated.

    A `coin` is 1 with the largest probability whose exact loss is at most ε; all coins of a client have the same one.

    Parameters:
        threshold: the threshold of a coin, in units of 2**-64.
    """

    def __init__(self, threshold: int) -> None:
        self.threshold = threshold
        self.drawn: list[Term] = []
        self.coins_used = 0

    def coin(self) -> Term:
        """Return the calibrated bit."""
        self.coins_used += 1
        return self._draw("bit", self.threshold)

    def coins(self, n: int) -> Term:
        """Return a vector of n calibrated bits."""
        bits = self._draw("bits", self.threshold, n)
        self.coins_used += n
        return bits

    def __getattr__(self, name: str) -> Any:
        if name in OPERATORS and OPERATORS[name].kind in DRAWS:
            return functools.partial(self._draw, name)
        raise AttributeError(f"draw has no {name!r}: it has coin, coins, {', '.join(DRAW_NAMES)}")

    def _draw(self, op: str, *given: Any) -> Term:
        arguments = OPERATORS[op].arguments
        assert arguments is not None
        if len(given) != len(arguments):
            raise TypeError(f"draw.{op} takes the arguments {', '.join(arguments)}: got {len(given)}")
        if len(self.drawn) >= MOST_TERMS:
            raise TypeError(f"a report must be made of at most {MOST_TERMS:,} draws")
        term = Term(op, *given)
        known = term.given[OPERATORS[op].labelled :]
        if all(isinstance(each, int) for each in known):
            try:
                check_draw(op, list(known))
            except ValueError as error:
                raise OutOfRangeError(f"draw.{error}") from None
        self.drawn.append(term)
        return term


DRAW_NAMES = tuple(name for name, each in OPERATORS.items() if each.kind in DRAWS)
"""The methods of a `Draw` that are operators."""


# -- from terms to a program -------------------------------------------------------------------------------------------


class Trace:
    """A client that ran once on terms: the steps and tables of its program.

    Parameters:
        client: the method, called with a value and a draw.
        threshold: as for `Draw`.

    Raises:
        TypeError: the client branches on a term, returns nothing, or uses a term as no operator takes it.
    """

    def __init__(self, client: Callable[[Term, Draw], Any], threshold: int) -> None:
        draw, value = Draw(threshold), Term("value")
        sent = client(value, draw)
        if sent is None:
            raise TypeError("client returns nothing: it must return the report")
        if isinstance(sent, list | tuple):
            sent = Term("list", *sent)
        if not isinstance(sent, Term):
            raise TypeError(f"client must return a term made of value and draws, or a list of them: got {sent!r}")
        self.coins_used = draw.coins_used
        self.tables: dict[str, Any] = {}
        self._names: dict[int, str] = {value.serial: "value"}
        self._taken: Counter[str] = Counter(("value", "report"))
        lengths: dict[int, int | None] = {}
        terms = _reachable([sent, *draw.drawn])
        uses = Counter(part.serial for term in terms for part in term._parts())
        drawn = {term.serial for term in draw.drawn}
        forms: dict[int, Any] = {value.serial: "value"}
        depths: dict[int, int] = {}
        steps: list[tuple[str, Any]] = []
        for term in terms:
            if term.op == "value":
                continue
            form, lengths[term.serial] = self._form(term, forms), _length(term, lengths)
            depth = depths[term.serial] = 1 + max((depths.get(part.serial, 0) for part in term._parts()), default=0)
            if term is sent or term.serial in drawn or uses[term.serial] > 1 or depth >= _NESTED:
                coin = term.op in ("bit", "bits") and term.given[0] == threshold and term.serial in drawn
                stem = "coin" if coin else term.op
                forms[term.serial] = name = (
                    "report" if term is sent and term.serial not in drawn else self._name(stem)
                )
                steps.append((name, form))
                depths[term.serial] = 0
            else:
                forms[term.serial] = form
        if sent is value:
            steps.append(("report", "value"))
        self.steps = tuple(steps)
        self.report = steps[-1][0] if sent is value else forms[sent.serial]
        self.length = lengths.get(sent.serial)
        self.memo = self._memo(draw.drawn, forms)

    def _form(self, term: Term, forms: dict[int, Any]) -> list[Any]:
        """Return a term as a program writes it."""
        labelled = OPERATORS[term.op].labelled
        found: list[Any] = [term.op, *map(str, term.given[:labelled])]
        for each in term.given[labelled:]:
            if isinstance(each, Term):
                found.append(forms[each.serial])
            elif isinstance(each, int):
                found.append(whole(each))
            elif any(isinstance(part, Term) for part in each):
                found.append(["list", *(forms[x.serial] if isinstance(x, Term) else whole(x) for x in each)])
            else:
                found.append(self._table(each))
        return found

    def _table(self, numbers: list[Any]) -> str:
        rows = [[whole(n) for n in row] if isinstance(row, list) else whole(row) for row in numbers]
        for name, table in self.tables.items():
            if table == rows:
                return name
        name = self._name("table")
        self.tables[name] = rows
        return name

    def _name(self, stem: str) -> str:
        self._taken[stem] += 1
        count = self._taken[stem]
        return stem if count == 1 else f"{stem}{count}"

    def _memo(self, drawn: list[Term], forms: dict[int, Any]) -> str:
        """Return what memoised draws depend on; "" if there are none."""
        kept = [term.given[1] for term in drawn if OPERATORS[term.op].kind == "memo"]
        named = {
            str(forms[each.serial]) for each in kept if isinstance(each, Term) and isinstance(forms[each.serial], str)
        }
        if kept and len(named) != 1:
            why = "memoised draws must all depend on value, or all on one same term that is drawn or used twice"
            raise TypeError(why)
        return next(iter(named), "")

    def program(self, given: Mapping[str, Any]) -> Program:
        """Return the program of answers that are read as `given` says, with the smallest layout of the report.

        Raises:
            ValueError: the program has no valid form, or its report may be negative or too large.
        """
        from .value_ranges import ValueRanges

        parts: dict[str, Any] = {"steps": self.steps, "tables": self.tables, "memo": self.memo}
        ranges = ValueRanges(Program(given, report=record([["uint", self.report, 8, 1]]), **parts))
        low, high = ranges.of_name[self.report]
        count = self.length
        if low < 0:
            raise ValueError(f"a report must not be negative: it may be {low}. Add to it what makes it at least 0")
        if high >= 2**64:
            raise ValueError(f"a report must be below 2**64: it may be {high}")
        if count is not None and high <= 1:
            return Program(given, report=record([["packed", self.report, count]]), **parts)
        return Program(given, report=uint(self.report, high, count), **parts)


def _length(term: Term, lengths: Mapping[int, int | None]) -> int | None:
    """Return how many numbers a term has; None for a single number."""

    def length(each: Any) -> int | None:
        return len(each) if isinstance(each, list) else lengths.get(each.serial) if isinstance(each, Term) else None

    match term.op, term.given:
        case "list", given:
            return len(given)
        case (
            ("bits" | "belows" | "belows_from" | "subset" | "kept_bits" | "kept_belows" | "onehot"),
            (*_, int(count)),
        ):
            return count
        case "bloom", (_, _, _, int(count), _):
            return count
        case "at", ([[*row], *_], _):
            return len(row)
        case "at" | "first" | "rank" | "join" | "polynomial", _:
            return None
    return next((found for found in map(length, term.given) if found is not None), None)


def _reachable(roots: list[Term]) -> list[Term]:
    """Return the terms that these are made of, in the order in which they were written."""
    found, todo = {}, list(roots)
    while todo:
        term = todo.pop()
        if term.serial not in found:
            found[term.serial] = term
            todo += term._parts()
            if len(found) > MOST_TERMS:
                raise TypeError(f"a report must be made of at most {MOST_TERMS:,} operators")
    return [found[serial] for serial in sorted(found)]
