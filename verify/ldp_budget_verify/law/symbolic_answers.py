"""Symbolic answers: the values of a program's steps where two answers are tracked and all others stay anonymous.

An answer is an *atom*. Atoms 0 and 1 are the two that are compared; larger numbers name anonymous answers as they
appear, all different. A draw that may meet a named atom splits the run into branches, with exact probabilities. What
no step has asked of a draw stays open: which members a random set has besides those asked for, which bits a random row
has at other places. In each branch the open parts have the law that the draw defines, given what is known, whichever
answer the user holds.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from ldp_budget.sampling import ONE
from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget.sdk.interpreter import evaluate
from ldp_budget.sdk.report_law import Unknown

Env: TypeAlias = "dict[Any, Any]"
"""The values of the steps so far, and under tuples what is known of the draws."""
Outcomes: TypeAlias = "list[tuple[Fraction, Any, Env]]"

_MOST_BITS = 12
_MOST_NUMBERS = 16
_MOST_WORK = 100_000
"""The most values that are worked out, on all branches together."""
_ALL = Fraction(1)


class Ans(NamedTuple):
    """An answer."""

    atom: int


class Draw(NamedTuple):
    """A uniform number below `bound`, or what else is drawn without the answer: `bound` is then 0, or -b of many numbers."""

    root: str
    bound: int


class Const(NamedTuple):
    """A table, or a number computed from tables and from draws that the whole law is conditioned on."""

    name: str


class RawSet(NamedTuple):
    """A uniform set of numbers below one less than the answers, ascending or shuffled."""

    root: str
    size: int
    shuffled: bool


class Members(NamedTuple):
    """A uniform set of answers other than one; then without `minus`, and with `plus`. `loose`: not in order."""

    root: str
    size: int
    plus: frozenset[int] = frozenset()
    minus: frozenset[int] = frozenset()
    loose: bool = False


class Line(NamedTuple):
    """A uniform sequence of different answers, all other than one; `puts`: places that have another answer."""

    root: str
    size: int
    puts: tuple[tuple[int, int], ...] = ()


class Bits(NamedTuple):
    """A vector of independent bits."""

    root: str
    threshold: int
    size: int


class Row(NamedTuple):
    """A number for each answer, or for each of the drawn answers `over`; a tree of what each place is made of."""

    tree: Any
    over: str = ""


class Buckets(NamedTuple):
    """A uniform set of answers, drawn without the user's own, in an order that says nothing more; `times` 1 or 2."""

    root: str
    size: int
    times: int = 1


class Marked(NamedTuple):
    """The numbers 2·b + x of all buckets b with their bits x."""

    root: str
    tree: Any


class Masked(NamedTuple):
    """The bits of an answer's number that a drawn mask has too."""

    root: str
    atom: int


class Parity(NamedTuple):
    """The parity of such bits, flipped if `flip` is 1."""

    root: str
    atom: int
    flip: int


class Vec(NamedTuple):
    """A vector, entry by entry."""

    each: tuple[Any, ...]


class Bundle(NamedTuple):
    """A number computed from these values by `op`. It may be sent: it shows at most the values, and all if "both"."""

    leaves: tuple[Any, ...]
    op: str = ""


_OPEN = (Ans, Draw, Const, RawSet, Members, Line, Bits, Row, Buckets, Marked, Parity, int)


class Steps:
    """Runs the steps of a program on symbolic values.

    Parameters:
        steps: the steps to run.
        start: the values that are known before, with the user's own answer.
        answers: the number of answers.
        mask_shifts: for each draw that the hash depends on, how many low bits the hash does not read.
        tracked: how many answers are tracked.
    """

    def __init__(self, steps: Any, start: Env, answers: int, mask_shifts: dict[str, int], tracked: int = 2) -> None:
        self._steps, self._start, self._d, self._shifts = steps, start, answers, mask_shifts
        self.answers, self.tracked = answers, tracked
        self._left = _MOST_WORK
        start["atoms"] = tracked

    def _work(self, amount: int = 1) -> None:
        self._left -= amount
        if self._left < 0:
            raise Unknown("the steps have too many branches")

    def branches(self, most: int) -> list[tuple[Fraction, Env]]:
        """Return the probability and the values of each branch. Raises Unknown for a step without a rule."""
        states = [(_ALL, self._start)]
        for name, x in self._steps:
            try:
                states = [
                    (weight * chance, {**after, name: value})
                    for weight, env in states
                    for chance, value, after in self._step(name, x, env)
                    if chance
                ]
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise Unknown(f"step {name} has no rule: {error}") from None
            if len(states) > most:
                raise Unknown(f"step {name} has more than {most} branches")
        return states

    def _step(self, name: str, x: Any, env: Env) -> Outcomes:
        if isinstance(x, list) and OPERATORS[x[0]].kind in ("draw", "memo"):
            given = x[1:]
            if OPERATORS[x[0]].kind == "memo":
                # The words of one secret are uniform for every value that they are kept for.
                return self._drawn(name, _FRESH[x[0]], given[2:], env)
            return self._drawn(name, x[0], given, env)
        return self._of(x, env)

    # -- draws -------------------------------------------------------------------------------------------------------

    def _drawn(self, name: str, op: str, given: list[Any], env: Env) -> Outcomes:
        found: Outcomes = []
        for chance, values, after in self._all(given, env):
            if op == "shuffle" and isinstance(values[0], RawSet) and not values[0].shuffled:
                found.append((chance, values[0]._replace(shuffled=True), after))
                continue
            if op == "bits_each" and isinstance(values[0], Vec):
                values = [*values[0].each]
            if not all(isinstance(each, int) for each in values):
                raise Unknown(f"{name} draws by {op} from what depends on the answer")
            found += [(chance * w, value, after) for w, value in self._outcomes_of(name, op, values)]
        return found

    def _outcomes_of(self, name: str, op: str, numbers: list[int]) -> list[tuple[Fraction, Any]]:
        if op in ("bit", "bit_at"):
            return _bit(numbers[0])
        if op == "bits_each":
            return _bits(numbers)
        if op == "bits":
            return [(_ALL, Bits(name, *numbers))]
        if op == "below":
            return [(_ALL, Draw(name, numbers[0]))]
        if op == "belows":
            return [(_ALL, self._vector(name, [numbers[0]] * min(numbers[1], _MOST_NUMBERS + 1)))]
        if op == "belows_from":
            if numbers[1] == 1:
                return [(_ALL, Vec((Draw(f"{name} 0", numbers[0]),)))]
            return [(_ALL, Draw(f"{name} from {numbers[0]} {numbers[1]}", 0))]
        if op == "subset":
            return [(_ALL, RawSet(name, numbers[1], shuffled=False) if numbers[0] == self._d - 1 else Draw(name, 0))]
        if op in ("geometric", "laplace", "normal"):
            return [(_ALL, Draw(name, 0))]
        raise Unknown(f"{name} draws by {op}")

    def _vector(self, name: str, bounds: list[int]) -> Any:
        if len(bounds) > _MOST_NUMBERS:
            return Draw(name, -bounds[0])
        return Vec(tuple(Draw(f"{name} {place}", bound) for place, bound in enumerate(bounds)))

    # -- expressions -------------------------------------------------------------------------------------------------

    def _all(self, given: list[Any], env: Env) -> Outcomes:
        states: Outcomes = [(_ALL, [], env)]
        for x in given:
            states = [
                (w * chance, [*done, value], after)
                for w, done, known in states
                for chance, value, after in self._of(x, known)
            ]
        return states

    def _of(self, x: Any, env: Env) -> Outcomes:
        self._work()
        if isinstance(x, int):
            return [(_ALL, x, env)]
        if isinstance(x, str):
            if x in env:
                return [(_ALL, env[x], env)]
            if x == "value":
                raise Unknown("the answer is used besides its hash")
            return [(_ALL, int(x), env)]
        op, *given = x
        if OPERATORS[op].kind == "hash":
            raise Unknown(f"{op} of a value that no cell stands for")
        for pattern in (self._past, self._turned, self._sampled):
            if (found := pattern(op, given, env)) is not None:
                return found
        return [
            (w * chance, value, after)
            for w, values, known in self._all(given, env)
            for chance, value, after in self._call(op, values, known)
        ]

    def _past(self, op: str, given: list[Any], env: Env) -> Outcomes | None:
        """x + (x >= a) makes numbers of the answers other than a into these answers."""
        match op, given:
            case "add", [x, ["ge", y, own]] if x == y:
                pass
            case _:
                return None
        found: Outcomes = []
        for w, (raw, base), known in self._all([x, own], env):
            if not isinstance(base, Ans):
                return None
            if isinstance(raw, Draw) and raw.bound == self._d - 1:
                found += [(w * c, v, e) for c, v, e in self._other(raw, "past", base.atom, known)]
            elif isinstance(raw, Vec) and all(isinstance(r, Draw) and r.bound == self._d - 1 for r in raw.each):
                states: Outcomes = [(w, (), known)]
                for each in raw.each:
                    states = [
                        (c * c2, (*done, v), e2)
                        for c, done, e in states
                        for c2, v, e2 in self._other(each, "past", base.atom, e)
                    ]
                found += [(c, Vec(v), e) for c, v, e in states]
            elif isinstance(raw, RawSet):
                after = _used(known, raw.root, ("past", base.atom, raw.shuffled))
                facts = after.get(("of", raw.root), ((base.atom, False),))
                after = {**after, ("of", raw.root): facts}
                made = Line(raw.root, raw.size) if raw.shuffled else Members(raw.root, raw.size)
                found.append((w, made, after))
            else:
                return None
        return found

    def _turned(self, op: str, given: list[Any], env: Env) -> Outcomes | None:
        """(a + (0 or 1 + x)) modulo the answers is a, or uniform among the others."""
        match op, given:
            case "mod", [["add", cell, ["where", coin, 0, ["add", 1, x]]], size]:
                pass
            case _:
                return None
        found: Outcomes = []
        for w, (base, kept, raw, total), known in self._all([cell, coin, x, size], env):
            good = isinstance(base, Ans) and isinstance(kept, int) and isinstance(raw, Draw)
            if not good or total != self._d or raw.bound != self._d - 1:
                return None
            if kept:
                found.append((w, base, known))
            else:
                found += [(w * c, v, e) for c, v, e in self._other(raw, "turn", base.atom, known)]
        return found

    def _other(self, raw: Draw, how: str, base: int, env: Env) -> Outcomes:
        """Return a uniform answer other than `base`, if any. A number that is used in two ways has no rule."""
        self._work()
        after = _used(env, raw.root, (how, base))
        if ("is", raw.root) in env:
            return [(_ALL, Ans(env["is", raw.root]), after)]
        named = [atom for atom in range(env["atoms"]) if atom != base]
        each = Fraction(1, self._d - (base >= 0))
        self._work(len(named))
        rest = 1 - len(named) * each
        found: Outcomes = [(each, Ans(a), {**after, ("is", raw.root): a}) for a in named]
        if rest > 0:
            fresh = env["atoms"]
            found.append((rest, Ans(fresh), {**after, ("is", raw.root): fresh, "atoms": fresh + 1}))
        return found

    def _sampled(self, op: str, given: list[Any], env: Env) -> Outcomes | None:
        """Floyd's sampling of numbers drawn below d - n + 1, …, d is a uniform set of n answers."""
        if op != "floyd":
            return None
        found: Outcomes = []
        for w, (drawn, least), known in self._all(given, env):
            if isinstance(drawn, Vec) and len(drawn.each) == 1 and isinstance(drawn.each[0], Draw):
                root, start, size = drawn.each[0].root, drawn.each[0].bound, 1
            elif isinstance(drawn, Draw) and " from " in drawn.root:
                root = drawn.root
                start, size = map(int, drawn.root.split(" from ")[1].split())
            else:
                return None
            if least != start or start + size - 1 != self._d:
                return None
            found.append((w, Buckets(root, size), _used(known, root, ("floyd",))))
        return found

    def _call(self, op: str, values: list[Any], env: Env) -> Outcomes:
        self._work()
        if all(isinstance(v, int) or _are_numbers(v) for v in values):
            lists = [list(v.each) if isinstance(v, Vec) else v for v in values]
            found = evaluate([op, *(f"a{place}" for place in range(len(lists)))], _named(lists), None)
            return [(_ALL, Vec(tuple(found)) if isinstance(found, list) else found, env)]
        values, env, chances = self._expanded(op, values, env)
        if chances is not None:
            return [(w * c, v, after) for w, now, e in chances for c, v, after in self._call(op, now, e)]
        if op == "list":
            return [(_ALL, Vec(tuple(values)), env)]
        if OPERATORS[op].kind == "each" and any(isinstance(v, Vec) for v in values):
            if any(_is_vector(v) and not isinstance(v, Vec) for v in values):
                return [(_ALL, Bundle(tuple(values)), env)]
            return self._each(op, values, env)
        if (found := self._special(op, values, env)) is not None:
            return found
        if all(isinstance(v, (*_OPEN, Vec, Bundle)) for v in values):
            return [(_ALL, Bundle(tuple(values), op), env)]
        raise Unknown(f"{op} of {', '.join(type(v).__name__ for v in values)}")

    def _each(self, op: str, values: list[Any], env: Env) -> Outcomes:
        size = next(len(v.each) for v in values if isinstance(v, Vec))
        columns = [v.each if isinstance(v, Vec) else (v,) * size for v in values]
        states: Outcomes = [(_ALL, (), env)]
        for row in zip(*columns, strict=True):
            states = [(w * c, (*done, v), e2) for w, done, e in states for c, v, e2 in self._call(op, [*row], e)]
        return [(w, Vec(v), e) for w, v, e in states]

    def _expanded(self, op: str, values: list[Any], env: Env) -> tuple[list[Any], Env, Outcomes | None]:
        """Return the vectors of a few bits as numbers, where they are used place by place."""
        places = [place for place, v in enumerate(values) if isinstance(v, Bits)]
        if not places:
            return values, env, None
        by_place = any(isinstance(v, Vec) for v in values) or op in ("first", "join", "sort", "rank", "list")
        by_place |= op in ("at", "put") and isinstance(values[1], int)
        lone = OPERATORS[op].kind == "each" and not any(isinstance(v, Row | Buckets) for v in values)
        by_place |= lone and values[places[0]].size != self._d
        if not by_place:
            return values, env, None
        first = values[places[0]]
        if first.size > _MOST_BITS:
            raise Unknown(f"{op} of {first.size} bits")
        found: Outcomes = []
        for w, numbers, after in _by_place(first, env):
            found.append((w, [numbers if v == first else v for v in values], after))
        return values, env, found

    def _special(self, op: str, values: list[Any], env: Env) -> Outcomes | None:
        match op, values:
            case "where", [int(c), (Ans() | Draw()) as a, (Ans() | Draw()) as b] if type(a) is not type(b):
                chosen = a if c else b
                if isinstance(chosen, Draw) and chosen.bound == self._d:
                    return self._other(chosen, "uniform", -1, env)
                return [(_ALL, chosen, env)]
            case "where", [int(c), a, b] if not isinstance(a, Row | Bits) and _is_vector(a) == _is_vector(b):
                return [(_ALL, a if c else b, env)]
            case "eq", [Ans(a), Ans(b)]:
                return [(_ALL, int(a == b), env)]
            case "at", [Vec(each), int(place)]:
                return [(_ALL, each[place], env)]
            case "put", [Vec(each), int(place), v]:
                return [(_ALL, Vec((*each[:place], v, *each[place + 1 :])), env)]
            case "at", [Line() as line, int(place)]:
                return self._at_place(line, place, env)
            case "put", [Line() as line, int(place), Ans(atom)]:
                if (place, atom) in (*line.puts, *env.get(("line", line.root), ())) and place not in dict(line.puts):
                    return [(_ALL, line, env)]  # it is there already
                return [(_ALL, line._replace(puts=(*line.puts, (place, atom))), env)]
            case "at", [Members() as chosen, Draw() as place] if self._is_place(chosen, place):
                return [(w, Ans(a), e) for w, a, e in self._picked(chosen, place, env)]
            case "put", [Members() as chosen, Draw() as place, Ans(atom)] if self._is_place(chosen, place):
                return [(w, self._swapped(chosen, a, atom, e), e) for w, a, e in self._picked(chosen, place, env)]
            case "sort", [Members() as chosen]:
                return [(_ALL, chosen._replace(loose=False), env)]
            case "mul", [2, Buckets(root, size, 1)]:
                return [(_ALL, Buckets(root, size, 2), env)]
            case "eq", [Buckets(root, _, 1), Ans(atom)] if atom < self.tracked:
                return [(_ALL, Row(("one", atom), root), env)]
            case "add", [Buckets(root, _, 2), Row(tree, over)] if over == root and _is_bit(tree):
                return [(_ALL, Marked(root, tree), env)]
            case "and", [Draw() as mask, Ans(atom)] if self._is_mask(mask):
                return [(_ALL, Masked(mask.root, atom), _used(env, mask.root, ("mask",)))]
            case "parity", [Masked(root, atom)]:
                return [(_ALL, Parity(root, atom, 0), env)]
            case ("eq", [Parity(root, atom, flip), int(bit)]) if bit in (0, 1):
                return [(_ALL, Parity(root, atom, flip ^ 1 ^ bit), env)]
            case "add", [Bundle((2, Draw() as mask), "mul"), Parity() as sign]:
                return [(_ALL, Bundle((mask, sign), "both"), env)]
            case ("xor", [Parity(root, atom, flip), int(bit)]) if bit in (0, 1):
                return [(_ALL, Parity(root, atom, flip ^ bit), env)]
        return self._row(op, values, env)

    # -- rows --------------------------------------------------------------------------------------------------------

    def _row(self, op: str, values: list[Any], env: Env) -> Outcomes | None:
        if op == "onehot" and isinstance(values[0], Ans) and values[1] == self._d:
            return [(_ALL, Row(("one", values[0].atom)), env)]
        if op in ("at", "put") and isinstance(values[0], Bits | Row) and isinstance(values[1], Ans):
            row, env = self._as_row(values[0], "", env)
            if row is None:
                return None
            if op == "at":
                return self.place(row.tree, values[1].atom, env)
            if not isinstance(values[2], int):
                return None
            return [(_ALL, Row(("put", row.tree, values[1].atom, values[2])), env)]
        if OPERATORS[op].kind != "each" or not any(isinstance(v, Row | Bits) for v in values):
            return None
        over = next((v.over for v in values if isinstance(v, Row)), "")
        trees = []
        for v in values:
            if isinstance(v, int):
                trees.append(v)
                continue
            row, env = self._as_row(v, over, env)
            if row is None:
                return None
            trees.append(row.tree)
        return [(_ALL, Row((op, *trees), over), env)]

    def _as_row(self, v: Any, over: str, env: Env) -> tuple[Row | None, Env]:
        if isinstance(v, Row):
            return (v if v.over == over else None), env
        if not isinstance(v, Bits):
            return None, env
        size = int(over.rsplit(" ", 1)[1]) if " from " in over else 1 if over else self._d
        if v.size != size:
            return None, env
        return Row(("bits", v.root, v.threshold), over), _used(env, v.root, ("row", over))

    def place(self, tree: Any, atom: int, env: Env) -> Outcomes:
        """Return what a row has at the place of an answer."""
        self._work()
        if isinstance(tree, int):
            return [(_ALL, tree, env)]
        op, *given = tree
        if op == "bits":
            key = ("bit", given[0], atom)
            if key in env:
                return [(_ALL, env[key], env)]
            return [(w, bit, {**env, key: bit}) for w, bit in _bit(given[1])]
        if op == "one":
            return [(_ALL, int(given[0] == atom), env)]
        if op == "put":
            return [(_ALL, given[2], env)] if given[1] == atom else self.place(given[0], atom, env)
        states: Outcomes = [(_ALL, [], env)]
        for each in given:
            states = [(w * c, [*done, v], e2) for w, done, e in states for c, v, e2 in self.place(each, atom, e)]
        return [(w, evaluate([op, *done], {}, None), e) for w, done, e in states]

    # -- sets --------------------------------------------------------------------------------------------------------

    def _is_place(self, chosen: Members, place: Draw) -> bool:
        return place.bound == chosen.size and not (chosen.plus or chosen.minus or chosen.loose)

    def member(self, chosen: Members, atom: int, env: Env) -> Outcomes:
        """Return if an answer is one of the members, 1 or 0."""
        self._work()
        if atom in chosen.plus:
            return [(_ALL, 1, env)]
        if atom in chosen.minus:
            return [(_ALL, 0, env)]
        facts = env["of", chosen.root]
        known = dict(facts)
        if atom in known:
            return [(_ALL, int(known[atom]), env)]
        chance = Fraction(chosen.size - sum(known.values()), self._d - len(known))
        return [
            (w, int(held), {**env, ("of", chosen.root): (*facts, (atom, held))})
            for w, held in ((chance, True), (1 - chance, False))
            if w
        ]

    def _picked(self, chosen: Members, place: Draw, env: Env) -> Outcomes:
        """Return the member at a uniform place."""
        self._work()
        env = _used(env, place.root, ("place", chosen.root))
        if ("at", place.root) in env:
            return [(_ALL, env["at", place.root], env)]
        states: Outcomes = [(_ALL, None, env)]
        for atom in range(env["atoms"]):
            states = [(w * c, None, e2) for w, _, e in states for c, _, e2 in self.member(chosen, atom, e)]
        found: Outcomes = []
        for w, _, e in states:
            held = [atom for atom, inside in e["of", chosen.root] if inside]
            found += [(w * Fraction(1, chosen.size), a, {**e, ("at", place.root): a}) for a in held]
            if rest := chosen.size - len(held):
                fresh = e["atoms"]
                facts = (*e["of", chosen.root], (fresh, True))
                after = {**e, "atoms": fresh + 1, ("at", place.root): fresh, ("of", chosen.root): facts}
                found.append((w * Fraction(rest, chosen.size), fresh, after))
        return found

    def _swapped(self, chosen: Members, away: int, atom: int, env: Env) -> Members:
        """Return the set with an answer in place of a member, not sorted."""
        if atom == away:
            return chosen._replace(loose=True)
        ((_, held, _),) = self.member(chosen, atom, env)  # known, because the place was drawn among all named answers
        if held:
            raise Unknown("a set with an answer twice")
        return Members(chosen.root, chosen.size, frozenset({atom}), frozenset({away}), loose=True)

    def _at_place(self, line: Line, place: int, env: Env) -> Outcomes:
        puts = dict(line.puts)
        if place in puts:
            return [(_ALL, Ans(puts[place]), env)]
        known = env.get(("line", line.root), ())
        taken = dict(known)
        if place in taken:
            return [(_ALL, Ans(taken[place]), env)]
        absent = [atom for atom, _ in env["of", line.root]]
        free = [a for a in range(env["atoms"]) if a not in taken.values() and a not in absent]
        pool = self._d - len(absent) - len(taken)
        found: Outcomes = [
            (Fraction(1, pool), Ans(a), {**env, ("line", line.root): (*known, (place, a))}) for a in free
        ]
        if rest := pool - len(free):
            fresh = env["atoms"]
            after = {**env, "atoms": fresh + 1, ("line", line.root): (*known, (place, fresh))}
            found.append((Fraction(rest, pool), Ans(fresh), after))
        return found

    def where_is(self, line: Line, atom: int, env: Env) -> Outcomes:
        """Return the place of an answer in a sequence, or -1; an answer that is there twice is refused."""
        self._work()
        puts = dict(line.puts)
        own = [place for place, a in puts.items() if a == atom]
        found: Outcomes = []
        for w, place, e in self._drawn_at(line, atom, env):
            places = own + ([place] if place >= 0 and place not in puts else [])
            if len(places) > 1:
                raise Unknown("a sequence with an answer twice")
            found.append((w, places[0] if places else -1, e))
        return found

    def _drawn_at(self, line: Line, atom: int, env: Env) -> Outcomes:
        known, facts = env.get(("line", line.root), ()), env["of", line.root]
        for place, a in known:
            if a == atom:
                return [(_ALL, place, env)]
        if atom in dict(facts):
            return [(_ALL, -1, env)]
        pool = self._d - len(facts) - len(known)
        free = [place for place in range(line.size) if place not in dict(known)]
        found: Outcomes = [
            (Fraction(1, pool), place, {**env, ("line", line.root): (*known, (place, atom))}) for place in free
        ]
        if rest := pool - len(free):
            found.append((Fraction(rest, pool), -1, {**env, ("of", line.root): (*facts, (atom, False))}))
        return found

    def drawn_buckets(self, root: str, size: int, env: Env) -> Outcomes:
        """Return which of the tracked answers are among the buckets."""
        self._work()
        if ("buckets", root) in env:
            return [(_ALL, env["buckets", root], env)]
        states: list[tuple[Fraction, tuple[int, ...]]] = [(_ALL, ())]
        for known in range(self.tracked):
            states = [
                (w * c, (*held, bit))
                for w, held in states
                for chance in (Fraction(size - sum(held), self._d - known),)
                for bit, c in ((1, chance), (0, 1 - chance))
                if c
            ]
        return [(w, held, {**env, ("buckets", root): held}) for w, held in states]

    # -- masks -------------------------------------------------------------------------------------------------------

    def _is_mask(self, mask: Draw) -> bool:
        """True if the low bits of the draw are a uniform mask of the numbers of the answers, whatever the hash is."""
        bits = self._d.bit_length() - 1
        good = self._d == 1 << bits and mask.bound > 0 and mask.bound % self._d == 0
        return good and self._shifts.get(mask.root, bits) >= bits

    def parities_differ(self, root: str, env: Env) -> Outcomes:
        """Return if the mask tells the two tracked answers apart: the parity of the bits in which they differ is fair."""
        self._work()
        if ("apart", root) in env:
            return [(_ALL, env["apart", root], env)]
        return [(Fraction(1, 2), apart, {**env, ("apart", root): apart}) for apart in (0, 1)]


_FRESH = {"kept_bits": "bits", "kept_belows": "belows_from", "kept_top": "top"}


def _is_vector(v: Any) -> bool:
    return isinstance(v, Vec | RawSet | Members | Line | Bits | Row | Buckets | Marked)


def _are_numbers(v: Any) -> bool:
    return isinstance(v, Vec) and all(isinstance(each, int) for each in v.each)


def _named(values: list[Any]) -> dict[str, Any]:
    return {f"a{place}": value for place, value in enumerate(values)}


def _used(env: Env, root: str, how: tuple[Any, ...]) -> Env:
    """Note how a draw is used. A draw that is used in two ways has no rule."""
    before = env.get(("use", root), how)
    if before != how and not (before == ("public",) and how == ("mask",)):
        raise Unknown(f"{root} is used as {before[0]} and as {how[0]}")
    return {**env, ("use", root): how}


def _by_place(bits: Bits, env: Env) -> Outcomes:
    env = _used(env, bits.root, ("places",))
    if ("places", bits.root) in env:
        return [(_ALL, env["places", bits.root], env)]
    every = _bits([bits.threshold] * bits.size)
    return [(w, numbers, {**env, ("places", bits.root): numbers}) for w, numbers in every]


def _bits(thresholds: list[int]) -> list[tuple[Fraction, Vec]]:
    if len(thresholds) > _MOST_BITS:
        raise Unknown(f"{len(thresholds)} bits that are used place by place")
    states: list[tuple[Fraction, tuple[int, ...]]] = [(_ALL, ())]
    for t in thresholds:
        states = [(w * c, (*done, bit)) for w, done in states for c, bit in _bit(t)]
    return [(w, Vec(done)) for w, done in states]


def _bit(t: int) -> list[tuple[Fraction, int]]:
    chance = Fraction(t, ONE)
    return [(w, bit) for w, bit in ((1 - chance, 0), (chance, 1)) if w]


def _is_bit(tree: Any) -> bool:
    """True if a row has only zeros and ones."""
    if isinstance(tree, int):
        return tree in (0, 1)
    op, *given = tree
    if op in ("bits", "one", "eq", "lt", "ge", "parity"):
        return True
    if op == "put":
        return _is_bit(given[0]) and given[2] in (0, 1)
    return op in ("xor", "and", "min", "max", "where") and all(map(_is_bit, given))
