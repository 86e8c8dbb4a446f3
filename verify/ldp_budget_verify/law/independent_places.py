"""The rule of independent places: a report is a row whose places are drawn independently, each by its own bits.

Statement. Let a report be a row and public numbers, and let place i of the row be f(b_i, draws of place i), where the
draws of all places are independent, alike and used for nothing else, and b is a row of bits that depends on the answer
and on public draws alone. Then the rows of two answers differ in law only at the places where their bits b differ.
If an answer sets at most h bits, that is at most h places of either answer alone. With P the law of a place whose bit
is one and Q that of a place whose bit is zero, (P, Q)^h × (Q, P)^h bounds every two answers.

Proof sketch. Given the public draws, the law of the row is a product over the places. Places with equal bits have
equal laws, so they are drawn without knowing which of the two answers it is, and may be left out. Leaving out more of
the product is post-processing, so fewer different places are no easier to tell apart. A mixture over the public draws
is no easier to tell apart than its worst part, by joint convexity.

Rows b that are known: a one at the answer's place (`onehot`, `put`) or at that of its cell; a Bloom filter of h words;
and some options of a set of options, (answer >> places) & 1, at different places that are drawn without the answer.
Of n such options, any i may be ticked in the first set alone and the other n - i in the second alone.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget.errors import NotSupported
from ldp_budget.sampling import ONE
from ldp_budget.sdk.channels import Comparison, Factor
from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget.sdk.interpreter import bit_of, evaluate
from ldp_budget.sdk.report_law import Law, Pairs, Unknown, Worst, loss_of
from ldp_budget.sdk.value_ranges import names_read

from .kept_draws import of_places
from .totality import bounds_of
from .tracked_answers import Cells, check_labels, derive_by_first, shared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program

_PUBLIC, _SHOWN = "public", "shown"
_MOST_LEAVES = 8
_MOST_OUTCOMES = 100_000
"""The most outcomes of all pairs together."""


class Own(NamedTuple):
    """The answer, or its cell."""


class Coin(NamedTuple):
    """A single bit, drawn for the own place."""

    name: str
    threshold: int


class Places(NamedTuple):
    """A number of different places among the options, drawn without the answer; twice these if `doubled`."""

    name: str
    options: int
    number: int
    doubled: bool = False


class Ticks(NamedTuple):
    """The answer's bits from these places on."""

    places: Places


class Tree(NamedTuple):
    """A row: what each place is made of, and the number of places."""

    node: Any
    size: int


class Shown(NamedTuple):
    """A row that was combined with public numbers: it shows at most both, and may only be sent."""

    row: Tree


class IndependentPlaces(Law):
    """The law of a row of independent places.

    Parameters:
        program: a client program.

    Raises:
        Unknown: the report is no such row.
    """

    rule = "independent places"
    every_pair = True

    def __init__(self, program: Program) -> None:
        bounds = bounds_of(program)
        if bounds is None:
            raise Unknown("some answer may come to no report")
        check_labels(program)
        self.program = program
        self._uses = Counter(name for _, x in program.steps for name in names_read(x))
        self._uses.update(part[1] for part in program.report["parts"])
        derive_by_first(program, bounds, self._derive)

    def _derive(self, cells: Cells | None) -> None:
        self.cells, self._source, self.bits, self._sent_places = cells, "", 1, False
        self.ticks: Places | None = None
        self._mixed = False
        known: dict[str, Any] = dict.fromkeys(self.program.tables, _PUBLIC)
        given = self.program.input
        if cells is None:
            self._answers = int(given["count"]) if given["kind"] == "answer" else 0
            known["value"] = Own()
        else:
            self._answers = cells.size
            known[cells.step] = Own()
            known |= dict.fromkeys(cells.inner, _PUBLIC)
        for name, x in self.program.steps:
            if name not in known:
                known[name] = self._step(name, x, known)
        sent = dict.fromkeys(part[1] for part in self.program.report["parts"])
        rows = [known[name] for name in sent if known[name] != _PUBLIC]
        if len(rows) != 1 or not isinstance(rows[0], Tree | Shown):
            raise Unknown("not one row is sent")
        row = rows[0].row if isinstance(rows[0], Shown) else rows[0]
        if not self._source:
            raise Unknown("the row does not depend on the answer")
        self.size = row.size
        self.node = row.node
        self.own, self.other = (self._of_place(row.node, own) for own in (1, 0))
        self.public_map = cells is not None
        self.alike = self.ticks is None and not self._mixed
        self.shown = frozenset(name for name in sent if known[name] == _PUBLIC)
        self.tight = (
            cells is None and not (self._mixed and self.ticks is None) and self.bits == 1 and self._shows_places()
        )
        if not self.tight and self.own.keys() != self.other.keys():
            raise Unknown("of two answers whose places differ, if there are any, a report may rule one out")

        keys = len({*self.own, *self.other})
        if sum(_count(keys, own) * _count(keys, other) for own, other in self.apart) > _MOST_OUTCOMES:
            raise Unknown("the places that differ have too many outcomes")

    def _shows_places(self) -> bool:
        """Return True unless the row is of options that are not sent, or that not every set of options has."""
        if self.ticks is None:
            return not self._source.startswith("bloom")
        return self._sent_places and self._answers == 1 << self.ticks.options

    # -- steps -------------------------------------------------------------------------------------------------------

    def _step(self, name: str, x: Any, known: dict[str, Any]) -> Any:
        if not isinstance(x, list) or OPERATORS[x[0]].kind not in ("draw", "memo"):
            return self._of(x, known)
        op, given = x[0], x[1:]
        if OPERATORS[op].kind == "memo":
            op, given = {"kept_bits": "bits", "kept_belows": "belows_from"}.get(op, ""), given[2:]
        numbers = [int(each) if isinstance(each, int) or str(each).isdecimal() else None for each in given]
        if None in numbers:
            if all(self._of(each, known) == _PUBLIC for each in given):
                return _PUBLIC
            raise Unknown(f"{name} is drawn from what depends on the answer")
        if op == "bit":
            return Coin(name, numbers[0])  # type: ignore[arg-type]
        if op == "bits":
            return Tree(("bits", name, numbers[0]), numbers[1])  # type: ignore[arg-type]
        if op == "subset":
            return Places(name, *numbers)  # type: ignore[arg-type]
        if op == "belows_from":
            return ("floyd", name, *numbers)
        if op in ("below", "belows"):
            return _PUBLIC
        raise Unknown(f"{name} draws by {x[0]}")

    def _of(self, x: Any, known: dict[str, Any]) -> Any:
        if isinstance(x, int):
            return x
        if isinstance(x, str):
            if x in known:
                return known[x]
            if x == "value":
                raise Unknown("the answer is used besides its cell")
            return int(x)
        op, *given = x
        if op == "bloom":
            return self._bloom(given, known)
        if OPERATORS[op].kind == "hash":
            if all(self._of(each, known) in (_PUBLIC,) or isinstance(each, int) for each in given[1:]):
                return _PUBLIC
            raise Unknown(f"{op} of the answer")
        return self._call(op, [self._of(each, known) for each in given])

    def _bloom(self, given: list[Any], known: dict[str, Any]) -> Tree:
        _, function, value, size, bits = given
        public = self._of(function, known)
        good = public == _PUBLIC or isinstance(public, int)
        if not good or self._of(value, known) != Own() or not isinstance(size, int) or not isinstance(bits, int):
            raise Unknown("a filter of something else than the answer")
        self.bits = bits
        return self._sourced(f"bloom {given}", size)

    def _sourced(self, source: str, size: int) -> Tree:
        if self._source not in ("", source):
            raise Unknown("the row depends on the answer in two ways")
        self._source = source
        return Tree(("own",), size)

    def _call(self, op: str, values: list[Any]) -> Any:
        if op != "floyd":
            values = [_PUBLIC if isinstance(v, tuple) and v[:1] == ("floyd",) else v for v in values]
        if all(v == _PUBLIC or isinstance(v, int) for v in values):
            return _PUBLIC if _PUBLIC in values else evaluate([op, *values], {}, None)
        match op, values:
            case "onehot", [Own(), int(size)] if size == self._answers:
                return self._sourced("place", size)
            case "put", [Tree(node, size), Own(), Coin() | int() as own] if size == self._answers:
                self._sourced("place", size)
                return Tree(("put", node, own), size)
            case "floyd", [("floyd", str(name), int(start), int(count)), int(least)]:
                if least != start or self._uses[name] != 1:
                    raise Unknown("numbers that are not drawn for different places alone")
                return Places(name, start + count - 1, count)
            case "shr", [Own(), Places() as places] if self.cells is None and not places.doubled:
                if self._answers > 1 << places.options or self._uses["value"] != 1:
                    raise Unknown("options besides those that are drawn")
                return Ticks(places)
            case "and", [Ticks(places), 1]:
                self.ticks = places
                return self._sourced(f"ticks {places.name}", places.number)
        if OPERATORS[op].kind != "each":
            raise Unknown(f"{op} of {_kinds(values)}")
        sizes = {v.size for v in values if isinstance(v, Tree)}
        if len(sizes) == 1 and all(isinstance(v, Tree | int) for v in values):
            return Tree((op, *(v.node if isinstance(v, Tree) else v for v in values)), sizes.pop())
        return self._with_public(op, values)

    def _with_public(self, op: str, values: list[Any]) -> Any:
        """Return a row that is sent with public numbers, such as the places it is of: it shows at most both."""
        if all(v == _PUBLIC or isinstance(v, Places | int) for v in values):
            drawn = values[1] if len(values) == 2 and values[0] == 2 else values[0]
            doubled = op == "mul" and 2 in values and isinstance(drawn, Places) and not drawn.doubled
            return drawn._replace(doubled=True) if doubled else _PUBLIC
        rows = [v for v in values if isinstance(v, Tree | Shown)]
        rest = [v for v in values if not isinstance(v, Tree | Shown)]
        if len(rows) == 1 and all(v == _PUBLIC or isinstance(v, Places | int) for v in rest):
            self._mixed = True
            doubled = any(isinstance(v, Places) and v.doubled for v in rest)
            self._sent_places = op == "add" and doubled and isinstance(rows[0], Tree)
            return rows[0] if isinstance(rows[0], Shown) else Shown(rows[0])
        raise Unknown(f"{op} of {_kinds(values)}")

    # -- one place ---------------------------------------------------------------------------------------------------

    def _of_place(self, node: Any, own: int) -> dict[Any, Fraction]:
        """Return the law of a place whose bit is `own`."""
        draws = dict.fromkeys(_draws_of(node, own))
        if any(self._uses[name] != 1 for name, _ in draws) or len(draws) > _MOST_LEAVES:
            raise Unknown("a draw of a place is used twice, or for something else")
        law: Counter[int] = Counter()
        for row in product((0, 1), repeat=len(draws)):
            chance = _chance(dict(zip(draws, row, strict=True)))
            if chance:
                found = _run(node, own, dict(zip(draws, row, strict=True)))
                law[found] += chance  # type: ignore[assignment]
        return dict(law)  # type: ignore[arg-type]

    def place_given(
        self, own: int, kept: set[str]
    ) -> tuple[list[tuple[Fraction, dict[Any, Fraction]]], int, set[str]]:
        """Return the laws of a place whose bit is `own`, given its bits of the draws named `kept`.

        Returns:
            (weight, law of the place) for each outcome of the kept bits; the number of fresh bits; and all draws.
        """
        draws = dict.fromkeys(_draws_of(self.node, own))
        fixed, fresh = ([each for each in draws if (each[0] in kept) == side] for side in (True, False))
        found = []
        for known in product((0, 1), repeat=len(fixed)):
            law: dict[Any, Fraction] = {}
            for row in product((0, 1), repeat=len(fresh)):
                bits = {**dict(zip(fixed, known, strict=True)), **dict(zip(fresh, row, strict=True))}
                symbol = _run(self.node, own, bits)
                law[symbol] = law.get(symbol, Fraction(0)) + _chance({each: bits[each] for each in fresh})
            found.append((_chance(dict(zip(fixed, known, strict=True))), law))
        return found, len(fresh), {name for name, _ in draws}

    # -- what follows ------------------------------------------------------------------------------------------------

    @property
    def apart(self) -> list[tuple[int, int]]:
        """How many places are the first answer's alone and the second's alone, at worst."""
        if self.ticks is not None:
            return [(count, self.size - count) for count in range(self.size + 1)]
        return [(self.bits, self.bits)]

    def factor(self, *, swapped: bool = False) -> Factor:
        """Return the comparison of a place whose bit is one with a place whose bit is zero."""
        keys = sorted({*self.own, *self.other})
        masses = tuple((self.own.get(k, Fraction(0)), self.other.get(k, Fraction(0))) for k in keys)
        return Factor(tuple((q, p) for p, q in masses) if swapped else masses)

    def comparison(self, first: int, second: int) -> Comparison:
        """Return the comparison of two answers, one factor for each place that differs."""
        own, other = self.apart[0]
        if len(self.apart) > 1:
            own, other = (first & ~second).bit_count(), (second & ~first).bit_count()
            if own + other > self.size:
                raise NotSupported("the two sets differ in more options than a report shows")
        factors = [self.factor()] * own + [self.factor(swapped=True)] * other
        if self.tight and self.ticks is None and self.own.keys() <= self.other.keys():
            # A row is least likely for a third answer whose place shows what the place of an answer shows least.
            keys = sorted(self.other)
            others = tuple(self.other[k] for k in keys)
            least = min(self.own.get(k, Fraction(0)) / self.other[k] for k in keys)
            factors = [
                Factor(factors[0].masses, tuple(least * q for q in others)), Factor(factors[1].masses, others)
            ]  # fmt: skip
        return Comparison.of(*factors)

    def outcomes(self, reports: Any, first: int, second: int) -> NDArray[np.int64]:
        """Return the outcome of `comparison` of each report of a single row of bits."""
        parts, keys = self.program.report["parts"], sorted({*self.own, *self.other})
        if not self.tight or self.ticks is not None or [part[0] for part in parts] != ["packed"] or keys != [0, 1]:
            raise NotSupported("reports that are no row of bits are not numbered")
        return 2 * bit_of(reports, first) + bit_of(reports, second)

    def pairs(self) -> list[Pairs]:
        """Return (P, Q) of all places that differ, outcomes of equal chances merged."""
        one, swapped = self.factor().masses, self.factor(swapped=True).masses
        return [_multiplied([one] * own + [swapped] * other) for own, other in self.apart]

    def worst(self) -> Worst:
        """Return two answers, and what their places show with the largest likelihood ratio."""
        factors = self.factor().masses
        keys = sorted({*self.own, *self.other})
        high = max(range(len(keys)), key=lambda k: _ordered(*factors[k]))
        low = max(range(len(keys)), key=lambda k: _ordered(*factors[k][::-1]))
        ratios = [_ordered(*factors[high]), _ordered(*factors[low][::-1])]
        first = ratios[0] >= ratios[1]
        own, other = self.apart[-1 if first else 0]
        p = factors[high][0] ** own * factors[low][1] ** other
        q = factors[high][1] ** own * factors[low][0] ** other
        words = f"{keys[high]} at {own} places of the first answer, {keys[low]} at {other} places of the second"
        return Worst((0, 1), words, loss_of(p, q))

    def marginal(self) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
        """Return the law of an answer's place, for users who hold the answer and for others; -1 if it is not shown.

        If a hash maps answers to m cells, another user's answer shares the cell with probability 1/m: an assumption on
        the hash, over the draw of its function.
        """
        if self.bits != 1 or self._source.startswith("bloom"):
            raise NotSupported("the places of an answer are several, and answers share them")
        held, other = dict(self.own), dict(self.other)
        if self.ticks is not None:
            shown = Fraction(self.size, self.ticks.options)
            return tuple({-1: 1 - shown, **{k: shown * p for k, p in law.items()}} for law in (held, other))  # type: ignore[return-value]
        if self.cells is not None:
            if not self.cells.hashed:
                raise NotSupported("answers share cells, and how many do is not derived")
            other = shared(held, other, self.size)
        return held, other

    def _curve(self, reports: int | None) -> Fraction:
        return of_places(self.program, self.place_given, self.apart, reports)


def _kinds(values: list[Any]) -> str:
    return ", ".join(v if isinstance(v, str) else type(v).__name__.lower() for v in values)


def _ordered(p: Fraction, q: Fraction) -> tuple[int, Fraction]:
    """Order likelihood ratios, infinite ones last."""
    return (1, p) if not q and p else (0, p / q if q else Fraction(0))


def _draws_of(node: Any, own: int) -> Any:
    if not isinstance(node, tuple):
        return
    if node[0] == "bits":
        yield node[1], node[2]
    elif node[0] == "put":
        if not own:
            yield from _draws_of(node[1], own)
        elif isinstance(node[2], Coin):
            yield node[2].name, node[2].threshold
    else:
        for each in node[1:]:
            yield from _draws_of(each, own)


def _chance(bits: dict[Any, int]) -> Fraction:
    """Return the probability of these bits."""
    chance = Fraction(1)
    for (_, t), bit in bits.items():
        chance *= Fraction(t if bit else ONE - t, ONE)
    return chance


def _run(node: Any, own: int, bits: dict[Any, int]) -> int:
    if isinstance(node, int):
        return node
    if node[0] == "own":
        return own
    if node[0] == "bits":
        return bits[node[1], node[2]]
    if node[0] == "put":
        if not own:
            return _run(node[1], own, bits)
        return node[2] if isinstance(node[2], int) else bits[node[2].name, node[2].threshold]
    return int(evaluate([node[0], *(_run(each, own, bits) for each in node[1:])], {}, None))


def _count(outcomes: int, times: int) -> int:
    """Return how many outcomes that many alike parts have together, in any order."""
    return comb(times + outcomes - 1, times)


def _multiplied(parts: list[Any]) -> Pairs:
    """Return (P, Q) of independent parts together; outcomes with the same chances are added up."""
    if prod(_count(len(part), times) for part, times in Counter(map(tuple, parts)).items()) > _MOST_OUTCOMES:
        raise Unknown("independent parts have too many outcomes together")
    sums: dict[tuple[Fraction, Fraction], int] = {(Fraction(1), Fraction(1)): 1}
    for part, times in Counter(map(tuple, parts)).items():
        after: Counter[tuple[Fraction, Fraction]] = Counter()
        for ((p, q), n), ((a, b), many) in product(sums.items(), _power(part, times).items()):
            after[p * a, q * b] += n * many
        sums = after
    return [(p * n, q * n) for (p, q), n in sums.items()]


def _power(part: Any, times: int) -> dict[tuple[Fraction, Fraction], int]:
    """Return each (P, Q) of a power, with its number of outcomes."""
    found: Counter[tuple[Fraction, Fraction]] = Counter()
    if len(part) == 2:
        (p, q), (a, b) = part
        for ones in range(times + 1):
            found[p**ones * a ** (times - ones), q**ones * b ** (times - ones)] += comb(times, ones)
        return found
    found[Fraction(1), Fraction(1)] = 1
    for _ in range(times):
        after: Counter[tuple[Fraction, Fraction]] = Counter()
        for ((p, q), n), (a, b) in product(found.items(), part):
            after[p * a, q * b] += n
        found = after
    return found
