"""The rule of all outcomes: the law of a program from the list of every outcome of every draw, in fractions.

Statement. If every answer's runs are listed, with the probability of each, then the law of the report is the sum of
the probabilities of the runs that lay it out. Proof sketch: the draws of one run are independent and each has the
probability that its operator defines, so a run has the product; runs are disjoint and exhaust the draws.

The words of a secret are assumed uniform and independent, which relies on SHAKE-256. A word modulo b is assumed
uniform below b, from which it differs by b/2**64. It selects the buckets or functions of a user, and reveals nothing
of the answer. Nothing else is assumed, and nothing is sampled.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, factorial, log2, prod
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.sampling import ONE
from ldp_budget.sdk.channels import Comparison, Factor
from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget.sdk.interpreter import as_reports, evaluate, known_of, laid_out
from ldp_budget.sdk.operator_forms import FORMS, MOST
from ldp_budget.sdk.report_law import Law as _ReportLaw
from ldp_budget.sdk.report_law import Pairs, Unknown, Worst, loss_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ldp_budget.sdk.client_program import Program

Vector: TypeAlias = "list[int]"
Words: TypeAlias = "tuple[str, int]"
"""The words of a secret for a label and a number."""

MOST_OUTCOMES = 200_000


def law(program: Program, value: int, most: int = MOST_OUTCOMES, reports: int = 1) -> dict[bytes, Fraction]:
    """Return the probability of each report of `value`, a whole number as `interpreter.read` makes it of an answer.

    With several `reports` of one secret, return their joint probability, one after the other.

    Raises `NotSupported` if the draws have more than `most` outcomes, or infinitely many.
    """
    return law_of_values(program, [value] * reports, most)


def law_of_values(program: Program, values: Sequence[int], most: int = MOST_OUTCOMES) -> dict[bytes, Fraction]:
    """Return the joint probability of the reports of these values, one after the other, all of one secret."""
    sums = law_of_numerators(program, values, most)
    return {row: sum((Fraction(a, b) for b, a in parts.items()), Fraction(0)) for row, parts in sums.items()}


def law_of_numerators(program: Program, values: Sequence[Any], most: int) -> dict[bytes, dict[int, Any]]:
    """Return the same as numerators by denominator.

    There are few distinct denominators, and fractions would be reduced at every step.
    """
    likely = dict[bytes, dict[int, Any]]()
    for count, run in enumerate(_runs(program, values, _Outcomes(most)), 1):
        if count > most:
            raise _too_many(most)
        parts = likely.setdefault(b"".join(run.sent), {})
        parts[run.below_the_line] = parts.get(run.below_the_line, 0) + run.above_the_line
    return likely


Law: TypeAlias = "frozenset[tuple[bytes, Fraction]]"


def kept_laws(
    program: Program, value: int, shared: frozenset[str], most: int
) -> dict[Any, tuple[Fraction, dict[Law, Fraction]]]:
    """Return the laws of the reports of `value` once the secret is known, with the probability of each law.

    The result has an entry for each outcome of the draws whose labels are `shared`, with the probability of that
    outcome.
    """
    sums: dict[Any, dict[Any, dict[bytes, Fraction]]] = {}
    for count, run in enumerate(_runs(program, [value], _Outcomes(most)), 1):
        if count > most:
            raise _too_many(most)
        words = {label: (how, _frozen(drawn)) for (label, _), (how, drawn) in run.kept.items()}
        common = frozenset(item for item in words.items() if item[0] in shared)
        rows = sums.setdefault(common, {}).setdefault(frozenset(words.items()), {})
        likely = Fraction(run.above_the_line, run.below_the_line)
        rows[run.sent[0]] = rows.get(run.sent[0], Fraction(0)) + likely
    found: dict[Any, tuple[Fraction, dict[Law, Fraction]]] = {}
    for common, kept in sums.items():
        weight = sum((likely for rows in kept.values() for likely in rows.values()), Fraction(0))
        laws: dict[Law, Fraction] = {}
        for rows in kept.values():
            own = sum(rows.values(), Fraction(0))
            if own:
                each = frozenset((row, likely / own) for row, likely in rows.items() if likely)
                laws[each] = laws.get(each, Fraction(0)) + own / weight
        found[common] = weight, laws
    return found


def _frozen(drawn: Any) -> Any:
    return tuple(drawn) if isinstance(drawn, list) else drawn


def _too_many(most: int) -> NotSupported:
    return NotSupported(f"its draws have more than {most} outcomes")


class _Run(NamedTuple):
    """The draws of a run so far, and their probability."""

    known: dict[str, Any]
    """The values of the steps before `place`, in the current report."""
    place: int
    kept: dict[Words, tuple[Any, Any]]
    """The draws from words of the secret, and how they were made."""
    sent: tuple[bytes, ...]
    above_the_line: int
    below_the_line: int


class _Fork(NamedTuple):
    """The outcomes of a draw, each with its numerator; `how` says how a draw was made from `words` of the secret."""

    outcomes: Sequence[tuple[Any, int]]
    denominator: int = 1
    words: Words | None = None
    how: Any = None


def _runs(program: Program, values: Sequence[Any], draws: _Outcomes) -> Iterator[_Run]:
    """Yield every run to its end, one report of each value. Steps before a draw are computed once."""
    waiting = [iter([_Run(known_of(program, values[0]), 0, {}, (), 1, 1)])]
    while waiting:
        run = next(waiting[-1], None)
        if run is None:
            waiting.pop()
            continue
        fork = _next_draw(program, run, draws)
        if fork is not None:
            waiting.append(_branches(program, run, *fork))
            continue
        sent = (*run.sent, laid_out(program, run.known))
        if len(sent) == len(values):
            yield run._replace(sent=sent)
        else:
            waiting.append(iter([run._replace(known=known_of(program, values[len(sent)]), place=0, sent=sent)]))


def _next_draw(program: Program, run: _Run, draws: _Outcomes) -> tuple[int, _Fork] | None:
    """Run the steps up to the next draw; return its place and outcomes, or None if there is no other draw."""
    draws.kept = run.kept
    for place in range(run.place, len(program.steps)):
        name, expression = program.steps[place]
        found = evaluate(expression, run.known, draws)
        if isinstance(found, _Fork):
            return place, found
        run.known[name] = found
    return None


def _branches(program: Program, run: _Run, place: int, fork: _Fork) -> Iterator[_Run]:
    """Yield the run after each outcome."""
    name, below_the_line = program.steps[place][0], run.below_the_line * fork.denominator
    for drawn, numerator in fork.outcomes:
        kept = run.kept if fork.words is None else {**run.kept, fork.words: (fork.how, drawn)}
        known = {**run.known, name: drawn}
        yield _Run(known, place + 1, kept, run.sent, run.above_the_line * numerator, below_the_line)


class _Outcomes:
    """The operators that draw: each returns all of its outcomes."""

    most_size = 2**63
    """No limit of vectors: those that are too long to be drawn have too many outcomes to be listed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.kept: dict[Words, tuple[Any, Any]] = {}

    def _uniform(self, choices: int, every: Iterable[Any]) -> _Fork:
        if choices > self._most:
            raise _too_many(self._most)
        outcomes = [(outcome, 1) for outcome in every]
        return _Fork(outcomes, len(outcomes))

    def _expect(self, choices: int, draws: int) -> None:
        """Raise `NotSupported` if `draws` draws with at least that many choices each have too many outcomes."""
        if choices > 1 and draws * log2(choices) > log2(self._most) + 1:
            raise _too_many(self._most)

    # -- from the stream ----------------------------------------------------------------------------------

    def bit(self, t: int) -> _Fork:
        if not 0 <= t <= ONE:
            raise ValueError(f"the threshold must be from 0 to 2**64: got {t}")
        if t in (0, ONE):
            return _Fork([(int(t == ONE), 1)])
        return _Fork([(0, ONE - t), (1, t)], ONE)

    bit_at = bit

    def bits(self, t: int, n: int) -> _Fork:
        if t not in (0, ONE):
            self._expect(2, n)
        if n > self._most:
            raise _too_many(self._most)
        return self.bits_each([t] * n)

    def bits_each(self, vector: Vector) -> _Fork:
        self._expect(2, sum(t not in (0, ONE) for t in vector))
        each = [self.bit(t) for t in vector]
        bits = product(*([bit for bit, _ in fork.outcomes] for fork in each))
        chances = product(*([numerator for _, numerator in fork.outcomes] for fork in each))
        outcomes = [(list(row), prod(chance)) for row, chance in zip(bits, chances, strict=True)]
        return _Fork(outcomes, prod(fork.denominator for fork in each))

    def below(self, b: int) -> _Fork:
        return self._uniform(b, range(max(1, b)))

    def belows(self, b: int, n: int) -> _Fork:
        self._expect(b, n)
        if n > self._most:
            raise _too_many(self._most)
        return self._uniform(b, map(list, product(range(max(1, b)), repeat=n)))

    def belows_from(self, b: int, n: int) -> _Fork:
        self._expect(max(2, b), n - 1)
        if n and b + n - 1 > self._most:
            raise _too_many(self._most)  # the numbers of the last draw themselves are listed
        each = [range(max(1, b + place)) for place in range(n)]
        return self._uniform(prod(map(len, each)), map(list, product(*each)))

    def subset(self, m: int, n: int) -> _Fork:
        self._expect(2, min(n, m - n))
        if m > self._most:
            raise _too_many(self._most)  # the numbers themselves are listed
        return self._uniform(comb(m, n), map(list, combinations(range(m), n)))

    def shuffle(self, vector: Vector) -> _Fork:
        self._expect(2, len(vector) - 1)
        return self._uniform(factorial(len(vector)), map(list, permutations(vector)))

    def geometric(self, t: int) -> NoReturn:
        raise NotSupported("a geometric draw has endlessly many outcomes")

    def laplace(self, k: int) -> NoReturn:
        raise NotSupported("a Laplace deviate has endlessly many outcomes")

    def normal(self, k: int) -> NoReturn:
        raise NotSupported("a normal deviate has endlessly many outcomes")

    # -- from the secret ----------------------------------------------------------------------------------

    def _once(self, label: str, v: int, how: tuple[Any, ...], draw: Callable[[], _Fork]) -> _Fork:
        """Return the draw that a value already has; `how` says how it is made from its words."""
        words = label, v % ONE  # v is hashed modulo 2**64
        if words not in self.kept:
            return draw()._replace(words=words, how=how)
        before, drawn = self.kept[words]
        if before != how:
            raise NotSupported(f"two draws are made of the same words of the secret, those of {label}")
        return _Fork([(drawn, 1)])

    def kept_bits(self, label: str, v: int, t: int, n: int) -> _Fork:
        return self._once(label, v, ("bits", t, n), lambda: self.bits(t, n))

    def kept_belows(self, label: str, v: int, b: int, n: int) -> _Fork:
        return self._once(label, v, ("belows", b, n), lambda: self.belows_from(b, n))

    def kept_top(self, label: str, v: int, k: int) -> _Fork:
        return self._once(label, v, ("top", k), lambda: self._uniform(1 << k, range(1 << k)))


# -- the rule --------------------------------------------------------------------------------------------------------

_MOST_ANSWERS = 256
_MOST_RUNS = 1 << 17
"""The most runs of all answers together."""
_MOST_ENTRIES = 1 << 24
"""The most entries of vectors of all runs together."""
_MOST_CELLS = 1 << 21
"""The most reports, counted for each pair of answers, of all compared pairs."""


def _entries(program: Program) -> int:
    """Return how many entries the vectors of a run have at most, without those that are drawn and so are few."""
    lengths = dict[str, int]()
    for name, table in program.table_values.items():
        lengths[name] = len(table)

    def of(x: Any) -> tuple[int, int]:
        """Return the length of an expression, and the entries of all of its vectors."""
        if not isinstance(x, list):
            return lengths.get(x, 0) if isinstance(x, str) else 0, 0
        op, *given = x
        each = [of(part) for part in given[OPERATORS[op].labelled :]]
        size = max((length for length, _ in each), default=0)
        if op in ("at", "rank", "first", "join"):
            return 0, sum(entries for _, entries in each) + (0 if op == "at" else size)
        takes = FORMS[op].takes
        sizes = [given[place] for place, wanted in enumerate(takes) if wanted in ("size", "filter")]
        size = max([size, len(given) if op == "list" else 0, *map(_largest, sizes)])
        return size, size + sum(entries for _, entries in each)

    total = 0
    for name, x in program.steps:
        lengths[name], entries = of(x)
        total += entries
    return total


def _largest(size: Any) -> int:
    """Return a length that is written out; the longest one for any other."""
    return int(size) if isinstance(size, int) or str(size).isdecimal() else MOST


def answers_of(program: Program) -> int:
    """Return the number of whole numbers that an answer can be."""
    given = program.input
    if given["kind"] == "word":
        return int(256 ** int(given["length"]))
    return int(given["count"]) if given["kind"] == "answer" else int(given["last"]) + 1


class AllOutcomes(_ReportLaw):
    """The law of every answer, listed.

    Parameters:
        program: a client program.

    Raises:
        Unknown: there are too many answers or outcomes, or some answer comes to no report.
    """

    rule = "all outcomes"
    every_pair = True

    def __init__(self, program: Program, runs: int = _MOST_RUNS) -> None:
        self.program, answers = program, answers_of(program)
        runs = min(runs, _MOST_ENTRIES // max(1, _entries(program)))
        if answers > _MOST_ANSWERS:
            raise Unknown(f"{answers} answers are too many to list, the most are {_MOST_ANSWERS}")
        self.laws = list[dict[bytes, Fraction]]()
        try:
            for value in range(answers):
                self.laws.append(law(program, value, runs // answers))
        except NotSupported as error:
            raise Unknown(str(error)) from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Unknown(f"answer {len(self.laws)} comes to no report: {error}") from None
        distinct = {frozenset(each.items()): value for value, each in reversed([*enumerate(self.laws)])}
        self._distinct = sorted(distinct.values())
        reports = max(map(len, self.laws))
        if len(self._distinct) ** 2 * reports > _MOST_CELLS:
            raise Unknown(f"the pairs of {len(self._distinct)} answers have too many reports to compare")

    def pair(self, first: int, second: int) -> Pairs:
        """Return (P, Q) of each report of two answers, in the order of the reports."""
        one, other = self.laws[first], self.laws[second]
        return [(one.get(row, Fraction(0)), other.get(row, Fraction(0))) for row in self._rows(first, second)]

    def _compared(self) -> list[tuple[int, int]]:
        return list(combinations(self._distinct, 2)) or [(0, 0)]

    def pairs(self) -> list[Pairs]:
        """Return (P, Q) of each report, merged by their probabilities, for every two answers whose laws differ."""
        different = dict[frozenset[Any], Pairs]()
        for first, second in self._compared():
            counted = Counter(self.pair(first, second))
            merged = [(p * many, q * many) for (p, q), many in counted.items()]
            different.setdefault(frozenset(counted.items()), merged)
        return list(different.values())

    def comparison(self, first: int, second: int) -> Comparison:
        """Return the comparison of two answers, with one outcome for each report."""
        rows = self._rows(first, second)
        floor = tuple(min(each.get(row, Fraction(0)) for each in self.laws) for row in rows)
        return Comparison.of(Factor(tuple(self.pair(first, second)), floor))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        """Return the place of each report among those of the two answers."""
        numbers = {row: place for place, row in enumerate(self._rows(first, second))}
        rows = np.ascontiguousarray(as_reports(reports))
        size = rows.nbytes // max(1, len(rows))
        try:
            return np.array([numbers[rows[place].tobytes()] for place in range(len(rows))], np.int64)
        except KeyError:
            raise NotSupported(f"reports must be those of the client program, of {size} bytes") from None

    def _rows(self, first: int, second: int) -> list[bytes]:
        return sorted({*self.laws[first], *self.laws[second]})

    def worst(self) -> Worst:
        """Return the two answers and the report, in hexadecimal, with the largest likelihood ratio."""
        found = ((0, 0), next(iter(self.laws[0])), (Fraction(1), Fraction(1)))
        for pair in self._compared():
            for first, second in (pair, pair[::-1]):
                for row, p in self.laws[first].items():
                    q, (most, least) = self.laws[second].get(row, Fraction(0)), found[2]
                    if p * least > most * q or (not q and not least and p > most):
                        found = (first, second), row, (p, q)
        return Worst(found[0], found[1].hex(), loss_of(*found[2]))

    def marginal(self) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
        """Return the law of the likelihood of a report under an answer, for users who hold the answer and for others."""
        if len(self._distinct) ** 2 < len(self.laws) ** 2 or len(self.laws) < 2:
            raise NotSupported("two answers have one law, so reports do not tell them apart")
        sides: list[dict[Fraction, Fraction]] = [{}, {}]
        for answer, own in enumerate(self.laws):
            for holder, each in enumerate(self.laws):
                sums = dict[Fraction, Fraction]()
                for row, p in each.items():
                    likely = own.get(row, Fraction(0))
                    sums[likely] = sums.get(likely, Fraction(0)) + p
                side = int(holder != answer)
                if sums != sides[side] and sides[side]:
                    raise NotSupported("reports relate to some answers in another way than to others")
                sides[side] = sums
        return sides[0], sides[1]
