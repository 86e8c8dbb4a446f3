"""Plans of one question by its margin: of people, ε and margin, two give the third.

The margin is the error that 95 of 100 surveys stay below, at the worst share, bias included. It is about the population:

    s² = D·[v(f) + c·f(1 - f)]/n

- v(f) is the variance that randomization adds to one report, f the share of an answer; see `ldp_budget_surveys.planning.margins`.
- f(1 - f) is the variance of sampling. c = (N - n)/(N - 1) for a simple random sample of n of N people (Cochran 1977,
  section 2.6), and 1 for a large population. Only sampling shrinks by it: the noise of a census stays.
- D is the design effect of weights, strata and clusters. For weights it is 1 + cv², with cv their coefficient of variation
  (Kish 1965, section 11.7).

A group is one of G equal parts of the respondents and of the population.

References:
    W. G. Cochran, Sampling Techniques, 3rd edition (1977).
    L. Kish, Survey Sampling (1965).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from decimal import ROUND_UP, Context, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget._validation import check_share
from ldp_budget.errors import InvalidParameter
from ldp_budget.sdk.share_laws import without_replacement

from .notebook_tables import TabularJson
from .planning.margins import MOST_RESPONDENTS, Precision, least_respondents
from .planning.ranking import check_number, frequency_mechanisms

if TYPE_CHECKING:
    from collections.abc import Callable

    from .planning.ranking import Number

MOST_EPSILON = Decimal(20)
"""The largest ε that a plan looks at."""
LEAST_EPSILON = Decimal("0.0001")
_MOST_EFFECT = 1000
_DIGITS = Context(prec=3, rounding=ROUND_UP)
"""An ε that was looked for has three digits, rounded up, so that it keeps the margin when it is typed."""
_TABLE_EPSILONS = (Decimal("0.5"), Decimal(1), Decimal(2))
_TABLE_PEOPLE = (0.5, 1, 2, 4)


@dataclass(frozen=True)
class Sample:
    """How respondents are drawn and asked: the design effect, the size of the population, the number of groups compared, and the
    most ticks if answers are options of which people tick several; see `rank_frequency`.
    """

    design_effect: float = 1.0
    population: int | None = None
    groups: int = 1
    at_most: int | str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.design_effect <= _MOST_EFFECT:
            raise InvalidParameter("deff", f"a design effect from 1 to {_MOST_EFFECT}", self.design_effect)
        if self.population is not None:
            _check_people("population", self.population)
        _check_people("groups", self.groups)

    @property
    def most_respondents(self) -> int:
        return MOST_RESPONDENTS if self.population is None else self.population

    def margin(self, precision: Precision, respondents: int, parts: int = 1) -> float:
        """Return the margin of a share among one of `parts` equal groups."""
        people = max(1, respondents // parts)
        sampling = 1.0
        if self.population is not None:
            population = max(people, self.population // parts)
            sampling = float(without_replacement(people, population)[0])
        return precision.worst(people, sampling, self.design_effect).margin


class Candidate(NamedTuple):
    """A mechanism with its margin."""

    mechanism: str
    margin: float


@functools.lru_cache(maxsize=4096)
def _precisions(epsilon: Decimal, answers: int, at_most: int | str | None) -> tuple[tuple[str, Precision], ...]:
    """Return the precision of each mechanism that the answers can use at this ε."""
    return tuple((each.name, Precision.of(each)) for each in frequency_mechanisms(epsilon, answers, at_most))


def candidates(epsilon: Decimal, answers: int, respondents: int, sample: Sample, parts: int = 1) -> list[Candidate]:
    """Return the mechanisms by their margin, best first; of equal ones, the one that was registered first.

    Parameters:
        epsilon: of one report.
        answers: the number of possible answers.
        respondents: how many people report.
        sample: how they are drawn.
        parts: the margin is that of one of so many groups.
    """
    found = [
        Candidate(name, sample.margin(precision, respondents, parts))
        for name, precision in _precisions(epsilon, answers, sample.at_most)
    ]
    return sorted(found, key=lambda each: float(f"{each.margin:.12g}"))


def plan_question(
    answers: int,
    *,
    epsilon: Number | None = None,
    respondents: int | None = None,
    margin: float | None = None,
    sample: Sample | None = None,
) -> TabularJson:
    """Return the plan of a question with listed answers, as `plan --answers --json` prints it.

    Parameters:
        answers: the number of possible answers.
        epsilon: of one report; None if it is looked for.
        respondents: how many people report; None if the number is looked for.
        margin: the largest margin of error of a share, above 0 and below 1; None if it is looked for.
        sample: how the respondents are drawn; by default a simple random sample of a large population.

    Returns:
        `epsilon`, `respondents`, `margin`, the best `mechanism`, the `runner_up`, and a `table` of margins for other ε and
            numbers of people. `group_margin` with groups. `epsilon` or `respondents` is None if no value gives the margin.

    Raises:
        InvalidParameter: not exactly two of ε, respondents and margin are given, or one is out of range.
    """
    sample = sample or Sample()
    if sum(each is None for each in (epsilon, respondents, margin)) != 1:
        raise InvalidParameter("margin", "given with two of epsilon, respondents and margin", margin)
    if respondents is not None:
        _check_people("respondents", respondents)
        if respondents > sample.most_respondents:
            raise InvalidParameter("population", f"at least the {respondents} respondents", sample.population)
    if margin is not None:
        check_share("margin", margin)
    chosen = None if epsilon is None else _decimal(epsilon)
    frequency_mechanisms(
        Decimal(1) if chosen is None else chosen, answers, sample.at_most
    )  # raises for bad arguments
    if chosen is None and respondents is not None and margin is not None:
        people, wanted = respondents, margin
        chosen = _least_epsilon(lambda each: _best(each, answers, people, sample).margin <= wanted)
    elif chosen is not None and respondents is None and margin is not None:
        at, wanted = chosen, margin
        respondents = least_respondents(
            lambda people: _best(at, answers, people, sample).margin <= wanted, most=sample.most_respondents
        )
    if chosen is None or respondents is None:
        return TabularJson(_without_answer(chosen, respondents, margin), "No value gives this margin", [])
    row = _row(chosen, answers, respondents, sample)
    names = ("mechanism", "epsilon", "respondents", "margin")
    best = {**{name: row[name] for name in names}, "recommended": "yes"}
    return TabularJson(row, f"{answers} answers; margins at 95 % for the population", [best, *row["table"]])


def _row(epsilon: Decimal, answers: int, respondents: int, sample: Sample) -> dict[str, Any]:
    best, *others = candidates(epsilon, answers, respondents, sample)
    row: dict[str, Any] = {
        "epsilon": float(epsilon),
        "respondents": respondents,
        "margin": best.margin,
        "mechanism": best.mechanism,
        "runner_up": _runner_up(best, others),
        "table": table(epsilon, answers, respondents, sample),
    }
    if sample.groups > 1:
        row["group_margin"] = candidates(epsilon, answers, respondents, sample, sample.groups)[0].margin
    return row


def _runner_up(best: Candidate, others: list[Candidate]) -> dict[str, Any] | None:
    """Return the next mechanism with another margin: one of the same margin draws the same reports in other words."""
    different = (each._asdict() for each in others if not math.isclose(each.margin, best.margin, rel_tol=1e-9))
    return next(different, None)


def _without_answer(epsilon: Decimal | None, respondents: int | None, margin: float | None) -> dict[str, Any]:
    found = {"epsilon": None if epsilon is None else float(epsilon), "respondents": respondents, "margin": margin}
    return {**found, "mechanism": None, "runner_up": None, "table": []}


def table(epsilon: Decimal, answers: int, respondents: int, sample: Sample) -> list[dict[str, Any]]:
    """Return the best margins for half, once and twice the ε, and from half to four times the people."""
    epsilons = [each for part in _TABLE_EPSILONS if LEAST_EPSILON <= (each := epsilon * part) <= MOST_EPSILON]
    people = sorted({min(max(1, round(respondents * part)), sample.most_respondents) for part in _TABLE_PEOPLE})
    return [
        {"epsilon": float(each), "respondents": n, "margin": _best(each, answers, n, sample).margin}
        for each in epsilons
        for n in people
    ]


def _best(epsilon: Decimal, answers: int, respondents: int, sample: Sample) -> Candidate:
    return candidates(epsilon, answers, respondents, sample)[0]


def _least_epsilon(enough: Callable[[Decimal], bool]) -> Decimal | None:
    """Return the least ε of three digits that is enough; None if the largest is not."""
    if not enough(MOST_EPSILON):
        return None
    low, high = math.log(LEAST_EPSILON), math.log(MOST_EPSILON)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(_DIGITS.create_decimal(repr(math.exp(middle)))) else (middle, high)
    found = _DIGITS.create_decimal(repr(math.exp(high))).normalize()
    return min(found, MOST_EPSILON)


def _check_people(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_RESPONDENTS:
        raise InvalidParameter(name, f"a whole number from 1 to {MOST_RESPONDENTS}", value)


def _decimal(epsilon: Number) -> Decimal:
    check_number("epsilon", epsilon)
    try:
        found = Decimal(str(epsilon))
    except ArithmeticError:
        raise InvalidParameter("epsilon", "a number", epsilon) from None
    if not (found.is_finite() and LEAST_EPSILON <= found <= MOST_EPSILON):
        raise InvalidParameter("epsilon", f"from {LEAST_EPSILON} to {MOST_EPSILON} in a plan", epsilon)
    return found
