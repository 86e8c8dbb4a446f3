"""The rule of tracked answers: two answers stand for any two, in a program that moves with permutations of them.

Statement. Let the steps use the answer, or the cell that a public map gives it, only as an atom: to compare it with
other answers, to put it into sets, sequences and rows, to skip past it. Then the law of a report under two answers is
that of its *relation* to the two: which of them it is or holds, at which place, and which anonymous answers repeat. The
relation's probabilities depend on the number of answers alone, so they are the same for every two answers.

Proof sketch. Every step of this kind commutes with permutations of the answers, and so do its draws. A permutation
that fixes the two compared answers does not change the law under either. Two reports of one relation differ by such a
permutation, or in parts that are drawn without the answer; so given the relation, the report has one law under both
answers, and the relation is sufficient. A relation that keeps more than the report shows can only raise the loss.

Public map. If the answer enters one step alone, computed with draws that no answer changes, then reports are a mixture
over these draws of the reports of two cells. A mixture is no easier to tell apart than its worst part, by joint
convexity, and two equal cells say nothing. So the law of two different cells bounds that of any two answers.

Masks. A mask that is uniform over the numbers of all cells has the same parity with two different cells half of the
time: the parity with the bits in which they differ, which are not all zero, is fair.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.sdk.channels import Case, Comparison, Factor
from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget.sdk.interpreter import as_reports, bit_of
from ldp_budget.sdk.report_law import Law, Pairs, Unknown, Worst, loss_of
from ldp_budget.sdk.value_ranges import names_in, names_read

from .kept_draws import of_answers
from .symbolic_answers import (
    Ans,
    Bits,
    Buckets,
    Bundle,
    Const,
    Draw,
    Line,
    Marked,
    Members,
    Parity,
    RawSet,
    Row,
    Steps,
    Vec,
)
from .totality import bounds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program

_MOST_BRANCHES = 4000
_MOST_STEPS = 200
"""The most steps of a program in which public maps are looked for."""
_MOST_KEPT = 1 << 24
"""The largest bound of a number that is kept for an answer."""
_NUMBERED = ("answer", "set", "sequence", "marked", "row")
_SHARED_LABEL = "two draws may be made of the same words of the secret"


class Cells(NamedTuple):
    """A public map from answers to cells: the step that is the cell, the steps before it, and the number of cells."""

    step: str
    inner: frozenset[str]
    size: int
    hashed: bool


class TrackedAnswers(Law):
    """The law of the relation of a report to two answers.

    Parameters:
        program: a client program.

    Raises:
        Unknown: a step does not treat answers alike, or has no rule here.
    """

    rule = "tracked answers"
    every_pair = True

    def __init__(self, program: Program) -> None:
        self.program = program
        bounds = bounds_of(program)
        if bounds is None:
            raise Unknown("some answer may come to no report")
        check_labels(program)
        derive_by_first(program, bounds, self._derive)

    def _derive(self, cells: Cells | None) -> None:
        given = self.program.input
        if cells is None and given["kind"] != "answer":
            raise Unknown("the answers are no categories")
        self.cells = cells
        self.answers = int(given["count"]) if cells is None else cells.size
        if self.answers < 2:
            raise Unknown("there are no two answers")
        self.tight, self._kinds, self._public = cells is None, set[Any](), list[set[str]]()
        self._left_out = set[Any]()
        self.public_map = cells is not None
        self.laws = tuple(self._law(own) for own in (0, 1))
        # A relation keeps of what kind the report is, which the report may not show.
        self.alike = len(self._kinds) == 1 and "computed" not in str(self._kinds)
        self.tight &= self.alike
        self.shown = frozenset.intersection(*map(frozenset, self._public))
        if len(self._left_out) > 1:
            raise Unknown("which draw, table or set is sent is chosen by a step that the answer enters")
        if any(sum(law.values()) != 1 for law in self.laws):
            raise Unknown("the branches are not all outcomes")
        if not self.tight and self.laws[0].keys() != self.laws[1].keys():
            raise Unknown("what the report is computed from, or some cell, may rule an answer out")

    def _law(self, own: int, tracked: int = 2) -> dict[Any, Fraction]:
        start: dict[Any, Any] = {name: Const(name) for name in self.program.tables}
        steps, shifts = self.program.steps, dict[str, int]()
        if self.cells is None:
            start["value"] = Ans(own)
        else:
            start[self.cells.step] = Ans(own)
            steps, shifts = self._after_the_map(start)
        run = Steps(steps, start, self.answers, shifts, tracked)
        found: dict[Any, Fraction] = {}
        for weight, env in run.branches(_MOST_BRANCHES):
            parts = [env[part[1]] for part in self.program.report["parts"]]
            self._kinds.add(tuple(map(_kind, parts)))
            self._public.append(set().union(*map(_public_roots, parts)))
            self._left_out.add(tuple(each for part in parts for each in _left_out(part)))
            for chance, relation in _relations(run, [env[part[1]] for part in self.program.report["parts"]], env):
                found[relation] = found.get(relation, Fraction(0)) + weight * chance
        return found

    def _after_the_map(self, start: dict[Any, Any]) -> tuple[Any, dict[str, int]]:
        """Return the steps besides those of the map, with what is known of its draws; and how it reads each draw."""
        assert self.cells is not None
        shifts: dict[str, int] = {}
        steps, inner = [], self.cells.inner
        for name, x in self.program.steps:
            if name in inner | {self.cells.step}:
                for draw, shift in _readings(x):
                    shifts[draw] = min(shifts.get(draw, 64), shift)
        for name, x in self.program.steps:
            if name == self.cells.step:
                continue
            if name not in inner:
                steps.append((name, x))
            elif isinstance(x, list) and OPERATORS[x[0]].kind in ("draw", "memo"):
                bound = int(x[1]) if x[0] == "below" else 0
                start[name] = Draw(name, bound)
                start["use", name] = ("public",)
            else:
                start[name] = Const(name)
        return tuple(steps), shifts

    # -- what follows ------------------------------------------------------------------------------------------------

    def pairs(self) -> list[Pairs]:
        """Return (P, Q) of each relation of a report to the two answers."""
        one, other = self.laws
        return [[(one.get(k, Fraction(0)), other.get(k, Fraction(0))) for k in self.relations]]

    @property
    def relations(self) -> list[Any]:
        """The relations of a report to the two answers, in the order of the outcomes of `comparison`."""
        return sorted({*self.laws[0], *self.laws[1]}, key=lambda relation: (_listed(relation), str(relation)))

    def comparison(self, first: int, second: int) -> Comparison:
        """Return the comparison of two answers, with one outcome for each relation.

        The numbers that carry marks are drawn without the input, so which of the two answers is among them is a case.
        """
        masses, floor, cases = self.factor.masses, self.factor.floor, []
        listed = list(map(_listed, self.relations))
        for _, group in groupby(range(len(masses)), listed.__getitem__):
            places = list(group)
            chance = sum((masses[place][0] for place in places), Fraction(0))
            own = tuple((masses[place][0] / chance, masses[place][1] / chance) for place in places)
            cases.append(Case(chance, (Factor(own, tuple(floor[place] / chance for place in places if floor)),)))
        return Comparison(tuple(cases))

    @functools.cached_property
    def factor(self) -> Factor:
        """The outcomes of two answers, with their floors where they are known."""
        return Factor(tuple(self.pairs()[0]), self._floors())

    def _floors(self) -> tuple[Fraction, ...]:
        """Return for each relation the least share that any answer's reports have of it, see `Comparison.covered`.

        Reports of one relation to three answers have one law under each of the three, and the third stands for all
        others. So the least ratio to P + Q over the relations to three is that of any answer.
        """
        if not self.tight:
            return ()
        least = [min(p, q) for p, q in self.pairs()[0]]
        if self.answers == 2:
            return tuple(least)
        try:
            laws = [self._law(own, 3) for own in range(3)]
        except Unknown:
            return ()
        for place, relation in enumerate(self.relations):
            total = sum(self.pairs()[0][place])
            for three in {*laws[0], *laws[1]}:
                if tuple(map(_to_two, three)) == relation:
                    both = laws[0].get(three, Fraction(0)) + laws[1].get(three, Fraction(0))
                    least[place] = min(least[place], laws[2].get(three, Fraction(0)) / both * total)
        return tuple(least)

    def outcomes(self, reports: Any, first: int, second: int) -> NDArray[np.int64]:
        """Return the outcome of `comparison` of each report."""
        if not self.tight or any(
            len(relation) != 1 or relation[0][0] not in _NUMBERED for relation in self.relations
        ):
            raise NotSupported("reports of several parts are not numbered")
        numbers = {_pair(relation): place for place, relation in enumerate(self.relations)}
        return numbered(related(reports, self.relations[0][0][0], first, second), numbers)

    def worst(self) -> Worst:
        """Return two answers, and the relation with the largest likelihood ratio."""
        one, other = self.laws
        best: tuple[tuple[int, int], Any, Fraction, Fraction] = ((0, 1), self.relations[0], Fraction(1), Fraction(1))
        for pair, sides in (((0, 1), (one, other)), ((1, 0), (other, one))):
            for relation in self.relations:
                p, q = (side.get(relation, Fraction(0)) for side in sides)
                if p * best[3] > best[2] * q:
                    best = pair, relation, p, q
        cells = "" if self.cells is None else " that come to different cells"
        return Worst(best[0], f"relation {best[1]} to two answers{cells}", loss_of(best[2], best[3]))

    def marginal(self) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
        """Return the law of a report's relation to one answer, for users who hold it and for others.

        If a hash maps answers to m cells, another user's answer shares the cell with probability 1/m: an assumption on
        the hash, over the draw of its function.
        """
        if self.cells is not None and not self.cells.hashed:
            raise NotSupported("answers share cells, and how many do is not derived")
        sides: list[dict[Any, Fraction]] = [{}, {}]
        for side, law in zip(sides, self.laws, strict=True):
            for relation, p in law.items():
                seen = tuple(_to_first(each) for each in relation)
                side[seen] = side.get(seen, Fraction(0)) + p
        held, other = sides
        if self.cells is not None:
            other = shared(held, other, self.answers)
        return held, other

    def _curve(self, reports: int | None) -> Fraction:
        cell = "" if self.cells is None else self.cells.step
        return of_answers(self.program, cell, self.answers, _relation_of_own, reports)


def _relation_of_own(program: Program) -> dict[Any, Fraction]:
    """Return the law of the relation of a report to the own answer and another one. Raises Unknown if it may show less."""
    law = TrackedAnswers(program)
    if not law.tight or law.cells is not None:
        raise Unknown("what is kept, or shown, is more than an answer")
    return law.laws[0]


def shared(held: dict[Any, Fraction], other: dict[Any, Fraction], cells: int) -> dict[Any, Fraction]:
    """Return the law of another user's relation to an answer, whose cell that user shares with probability 1/cells."""
    share, none = Fraction(1, cells), Fraction(0)
    return {t: other.get(t, none) * (1 - share) + held.get(t, none) * share for t in {*held, *other}}


# -- relations -------------------------------------------------------------------------------------------------------


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Vec):
        for each in value.each:
            yield from _leaves(each)
    elif isinstance(value, Bundle):
        for each in value.leaves:
            yield from _leaves(each)
    else:
        yield value


def _kind(value: Any) -> Any:
    """Return the kind of a value; "computed" for one that may show less than what it is computed from."""
    if isinstance(value, Vec):
        return tuple(map(_kind, value.each))
    leaves = list(_leaves(value))
    if (
        isinstance(value, Bundle)
        and value.op != "both"
        and any(not isinstance(each, int | Draw | Const) for each in leaves)
    ):
        return "computed"
    return tuple(_form_of(leaf) for leaf in leaves if not isinstance(leaf, int))


def _form_of(leaf: Any) -> Any:
    """Return the kind of a value, and what a row is made of: a relation keeps that, and reports may not show it."""
    name = type(leaf).__name__
    return (name, _elsewhere(leaf.tree)) if isinstance(leaf, Row | Marked) else name


def _public_roots(value: Any) -> set[str]:
    """Return the draws and constants that a value shows."""
    if isinstance(value, Vec) or (isinstance(value, Bundle) and value.op == "both"):
        return set().union(*map(_public_roots, value[0]))
    return {value.root if isinstance(value, Draw) else value.name} if isinstance(value, Draw | Const) else set()


def _left_out(value: Any) -> Iterator[Any]:
    """Yield what a report shows besides its relation: it must be the same on all branches."""
    for leaf in _leaves(value):
        if isinstance(leaf, Draw | Const | RawSet | Bits):
            yield leaf
        elif isinstance(leaf, Members | Line | Marked | Buckets):
            yield type(leaf).__name__, leaf.root, leaf.times if isinstance(leaf, Buckets) else 0


_PUBLIC = (None, "public", "mask")


def _relations(run: Steps, sent: list[Any], env: dict[Any, Any]) -> Iterator[tuple[Fraction, Any]]:
    """Yield how what is sent relates to the two answers, with the probability of each way."""
    leaves = list[Any]()
    for leaf in (each for value in sent for each in _leaves(value)):
        if isinstance(leaf, Draw | RawSet):
            if env.get(("use", leaf.root), (None,))[0] not in _PUBLIC:
                raise Unknown(f"{leaf.root} is sent, which was used with the answer")
        elif isinstance(leaf, Bits):
            how = env.get(("use", leaf.root), (None,))
            if how[0] is None and leaf.size != run.answers:
                continue  # noise that is used for nothing
            if how not in ((None,), ("row", "")) or leaf.size != run.answers:
                raise Unknown(f"{leaf.root} is sent, which was used with the answer")
            leaves.append(Row(("bits", leaf.root, leaf.threshold)))
        elif not isinstance(leaf, Const):
            leaves.append(leaf)
    large: dict[Any, None] = dict.fromkeys(
        each for each in leaves if isinstance(each, Members | Line | Row | Marked | Buckets)
    )
    if len(large) > 1:
        raise Unknown("several sets, sequences or rows are sent")
    shown = [*range(run.tracked), *(each.atom for each in leaves if isinstance(each, Ans))]
    for one in large:
        shown += _atoms(one, env)
    atoms = list(dict.fromkeys(shown))
    if len(atoms) > run.tracked and any(isinstance(each, Marked | Buckets) for each in large):
        raise Unknown("other answers are sent with buckets")
    label = {atom: place for place, atom in enumerate(atoms)}
    states: list[tuple[Fraction, tuple[Any, ...], dict[Any, Any]]] = [(Fraction(1), (), env)]
    for leaf in leaves:
        states = [
            (w * c, (*done, item), after)
            for w, done, known in states
            for c, item, after in _relation(run, leaf, atoms, label, known)
        ]
    for weight, items, _ in states:
        yield weight, items


def _atoms(leaf: Any, env: dict[Any, Any]) -> list[int]:
    """Return the named answers at which something is known of a set, a sequence or a row."""
    if isinstance(leaf, Members):
        return sorted(leaf.plus)
    if isinstance(leaf, Line):
        return [put[1] for put in leaf.puts]
    if isinstance(leaf, Buckets):
        return []
    roots = set(_roots(leaf.tree))
    known = [key[2] for key in env if isinstance(key, tuple) and key[0] == "bit" and key[1] in roots]
    return [*_named_in(leaf.tree), *sorted(known)]


def _roots(tree: Any) -> Iterator[str]:
    if isinstance(tree, tuple):
        if tree[0] == "bits":
            yield tree[1]
        else:
            for each in tree[1:]:
                yield from _roots(each)


def _named_in(tree: Any) -> Iterator[int]:
    if not isinstance(tree, tuple) or tree[0] == "bits":
        return
    if tree[0] == "one":
        yield tree[1]
    elif tree[0] == "put":
        yield tree[2]
        yield from _named_in(tree[1])
    else:
        for each in tree[1:]:
            yield from _named_in(each)


def _elsewhere(tree: Any) -> Any:
    """Return what a row is made of at all places that are not named."""
    if not isinstance(tree, tuple) or tree[0] == "bits":
        return tree
    if tree[0] == "one":
        return 0
    if tree[0] == "put":
        return _elsewhere(tree[1])
    return (tree[0], *map(_elsewhere, tree[1:]))


def _relation(run: Steps, leaf: Any, atoms: list[int], label: dict[int, int], env: dict[Any, Any]) -> Any:
    """Return the outcomes of the relation of one value: its kind, what it is for each shown answer, and its form."""
    one = Fraction(1)
    if isinstance(leaf, int):
        return [(one, ("number", leaf), env)]
    if isinstance(leaf, Ans):
        return [(one, ("answer", label[leaf.atom]), env)]
    if isinstance(leaf, Parity):
        if leaf.atom > 1 or run.tracked > 2:
            raise Unknown("a parity with another answer is sent")
        found = []
        for w, apart, after in run.parities_differ(leaf.root, env):
            own = 1 - leaf.flip
            both = (own, own ^ apart) if leaf.atom == 0 else (own ^ apart, own)
            found.append((w, ("parity", both, leaf.root), after))
        return found
    if isinstance(leaf, Buckets | Marked):
        size = int(leaf.root.rsplit(" ", 1)[1]) if " from " in leaf.root else 1
        return [
            (w * c, ("marked", tuple(bits), _form(leaf)), after)
            for w, held, known in run.drawn_buckets(leaf.root, size, env)
            for c, bits, after in _marks(run, leaf, held, known)
        ]
    if isinstance(leaf, Members):
        if leaf.loose:
            raise Unknown("a set is sent that is not in order")
        return _each_atom(run.member, leaf, atoms, env, ("set",))
    if isinstance(leaf, Line):
        return _each_atom(run.where_is, leaf, atoms, env, ("sequence",))
    if isinstance(leaf, Row) and not leaf.over:
        return _each_atom(lambda row, atom, known: run.place(row.tree, atom, known), leaf, atoms, env, (
            "row", _elsewhere(leaf.tree),
        ))  # fmt: skip
    raise Unknown(f"{type(leaf).__name__.lower()} is sent")


def _each_atom(look: Any, leaf: Any, atoms: list[int], env: Any, form: tuple[Any, ...]) -> Any:
    states: Any = [(Fraction(1), (), env)]
    for atom in atoms:
        states = [(w * c, (*done, v), after) for w, done, known in states for c, v, after in look(leaf, atom, known)]
    return [(w, (form[0], done, *form[1:]), after) for w, done, after in states]


def _form(leaf: Any) -> Any:
    return _elsewhere(leaf.tree) if isinstance(leaf, Marked) else "buckets"


def _marks(run: Steps, leaf: Any, held: tuple[int, ...], env: Any) -> Any:
    """Return the bits that are sent with the tracked answers; -1 for an answer that is not among the buckets."""
    states: Any = [(Fraction(1), (), env)]
    for atom in range(run.tracked):
        if not held[atom]:
            states = [(w, (*done, -1), known) for w, done, known in states]
        elif isinstance(leaf, Buckets):
            states = [(w, (*done, 0), known) for w, done, known in states]
        else:
            states = [
                (w * c, (*done, bit), after)
                for w, done, known in states
                for c, bit, after in run.place(leaf.tree, atom, known)
            ]
    return states


def _to_two(item: tuple[Any, ...]) -> Any:
    """Return the relation to the first two answers alone."""
    if item[0] == "answer":
        return item[0], min(item[1], 2)
    return item if item[0] == "number" else (item[0], item[1][:2], *item[2:])


def _listed(relation: Any) -> tuple[bool, ...]:
    """Return which of the two answers is among numbers that carry marks; empty for other reports."""
    return tuple(each >= 0 for item in relation if item[0] == "marked" for each in item[1])


def _pair(relation: Any) -> tuple[int, int]:
    """Return what a report says of each of the two answers."""
    ((kind, said, *_),) = relation
    return (int(said == 0), int(said == 1)) if kind == "answer" else said


def related(reports: Any, kind: str, first: int, second: int) -> list[NDArray[np.int64]]:
    """Return what each report says of two answers: an array for each.

    An answer is sent, or not; a set holds it; a sequence has it at a place, or -1; a row has its bit; and of marked
    numbers the bit, or -1.
    """
    if kind == "row":
        return [bit_of(reports, answer) for answer in (first, second)]
    rows = as_reports(reports).astype(np.int64)
    if kind == "answer":
        return [(rows.reshape(len(rows)) == answer).astype(np.int64) for answer in (first, second)]
    rows = rows.reshape(len(rows), -1)
    found = []
    for answer in (first, second):
        held = rows >> 1 == answer if kind == "marked" else rows == answer
        place = held.argmax(axis=1)
        said = {"set": 1, "sequence": place, "marked": rows[np.arange(len(rows)), place] & 1}[kind]
        found.append(np.where(held.any(axis=1), said, 0 if kind == "set" else -1))
    return found


def numbered(said: list[NDArray[np.int64]], numbers: dict[tuple[int, int], int]) -> NDArray[np.int64]:
    """Return the numbers of pairs. Raises `NotSupported` for a pair that no report has."""
    width = max(max(pair) for pair in numbers) + 2
    table = np.full(width * width, -1)
    for (one, other), number in numbers.items():
        table[(one + 1) * width + other + 1] = number
    if any(len(each) and (each.max() > width - 2) for each in said):
        raise NotSupported("reports must be those of the client program")
    codes: NDArray[np.int64] = table[(said[0] + 1) * width + said[1] + 1]
    if len(codes) and codes.min() < 0:
        raise NotSupported("reports must be those of the client program")
    return codes


def _to_first(item: tuple[Any, ...]) -> Any:
    """Return the relation to the first answer alone."""
    if item[0] == "answer":
        return item[0], int(item[1] == 0)
    return item if item[0] == "number" else (item[0], item[1][0])


# -- public maps -----------------------------------------------------------------------------------------------------


def check_labels(program: Program) -> None:
    """Raise Unknown if two draws of a program share words of the secret, or if one is visibly not uniform.

    A word modulo b is as likely as another one up to b/2**64. A draw for the answer must be below a small b.
    """
    kept = [x for _, x in program.steps if isinstance(x, list) and OPERATORS[x[0]].kind == "memo"]
    if len({x[1] for x in kept}) < len(kept):
        raise Unknown(_SHARED_LABEL)
    for op, _, v, *given in kept:
        if op == "kept_belows" and not isinstance(v, int) and not 0 < _number(given[0]) <= _MOST_KEPT:
            raise Unknown(f"a kept number must be below a number up to {_MOST_KEPT:,}: got {given[0]}")


def _number(x: Any) -> int:
    """Return a number that is written out, else 0."""
    return int(x) if isinstance(x, int) or (isinstance(x, str) and x.isdecimal()) else 0


def derive_by_first(program: Program, bounds: dict[str, Any], derive: Callable[[Cells | None], None]) -> None:
    """Derive a law from the answers themselves, else from the first public map of the answers by which it is found.

    Raises `Unknown` with the reason of the last one.
    """
    maps = (None, *public_maps(program, bounds))
    for cells in maps:
        try:
            derive(cells)
            return
        except Unknown:
            if cells is maps[-1]:
                raise


def public_maps(program: Program, bounds: dict[str, Any]) -> Iterator[Cells]:
    """Yield each step that the answer goes through, if it is computed with nothing else but public draws."""
    steps = dict(program.steps)
    if len(steps) > _MOST_STEPS:
        return
    for name, x in program.steps:
        size = bounds[name]
        if not isinstance(x, list) or OPERATORS[x[0]].kind in ("draw", "memo"):
            continue
        if size.size is not None or size.low < 0 or size.high > 1 << 40:
            continue
        before = _ancestors(steps, x)
        private = {each for each in before if each == "value" or "value" in _ancestors(steps, steps.get(each, 0))}
        if "value" not in private or not all(_is_public_draw(steps[each]) for each in before if each in steps):
            continue
        outside = [(other, y) for other, y in program.steps if other != name and other not in before]
        read = {each for _, y in outside for each in names_read(y)}
        sent = {part[1] for part in program.report["parts"]}
        if (read | sent) & private:
            continue
        hashed = any(_has_hash(steps.get(each, 0)) for each in {*before, name})
        yield Cells(name, frozenset(before - {"value", *program.tables}), size.high + 1, hashed)


def _ancestors(steps: dict[str, Any], x: Any) -> set[str]:
    found, waiting = set[str](), list(names_in(x))
    while waiting:
        name = waiting.pop()
        if name not in found and not name.lstrip("-").isdecimal():
            found.add(name)
            waiting.extend(names_in(steps.get(name, 0)))
    return found


def _is_public_draw(x: Any) -> bool:
    """True for a draw that no answer changes, and for all that is no draw."""
    if not isinstance(x, list) or OPERATORS[x[0]].kind not in ("draw", "memo"):
        return True
    if x[0] == "below":
        return _number(x[1]) > 0
    return x[0] == "kept_belows" and all(isinstance(each, int) for each in x[2:])


def _has_hash(x: Any) -> bool:
    if not isinstance(x, list):
        return False
    return OPERATORS[x[0]].kind == "hash" or any(map(_has_hash, x[1:]))


def _readings(x: Any, shift: int = 0) -> Iterator[tuple[str, int]]:
    """Yield each name that an expression reads, and how many of its low bits it does not read."""
    if isinstance(x, str):
        yield x, shift
    elif isinstance(x, list):
        if x[0] == "shr" and isinstance(x[1], str) and isinstance(x[2], int):
            yield x[1], x[2]
            return
        for each in x[2 if OPERATORS[x[0]].labelled else 1 :]:
            yield from _readings(each)


def single_draw(program: Program, steps: Any, parts: Any) -> Program:
    """Return a program with other steps and parts of its report."""
    return replace(program, steps=tuple(steps), report={**program.report, "parts": parts})
