"""Questionnaires: the row, its exact law, the composed guarantee, and estimates that know who was asked."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from ldp_budget import InvalidParameter, NotSupported, OutsideDomain, mechanism
from ldp_budget.guarantees import Approximate, Copies, Guarantee, Laplace, Pure, SymmetricPair
from ldp_budget.registry.certification import checked_at
from ldp_budget_surveys.questionnaires.questionnaire import Question, Questionnaire, composed

MOOD = Question("mood", mechanism("oue")(epsilon=1, domain_size=3), ("good", "fair", "bad"))
SMOKE = Question("smoke", mechanism("randomized-response")(epsilon=1), ("yes", "no"))
SLEEP = Question("sleep", mechanism("laplace")(epsilon=1, lower=0, upper=14), None)
TWO_OF_THREE = Questionnaire(questions=[MOOD, SMOKE, SLEEP], ask=2)
ANSWERS = {"mood": "fair", "smoke": "no", "sleep": 7.5}


# -- the row ------------------------------------------------------------------------------------------------------------


def test_row_has_the_mask_and_the_questions_own_reports() -> None:
    values = TWO_OF_THREE.read_values([ANSWERS, ANSWERS])
    values["asked"] = [0b101, 0b011]
    rows = TWO_OF_THREE.randomize(values, rng=1)
    assert (rows.dtype, rows.shape) == (np.dtype(np.uint8), (2, 1 + 1 + 1 + 8))
    assert rows[:, 0].tolist() == [0b101, 0b011]
    assert rows[0, 2] == 0, "smoke was not asked"
    assert not rows[1, 3:].any(), "sleep was not asked"
    asked, (mood, smoke, sleep) = TWO_OF_THREE.unpack(rows)
    assert asked.tolist() == [[True, False, True], [True, True, False]]
    assert (mood.tolist(), smoke.tolist()) == (rows[:, 1:2].tolist(), [rows[1, 2]])
    assert sleep.tobytes() == rows[0, 3:].tobytes()


@pytest.mark.parametrize(
    "row",
    [
        pytest.param([0b001, 0, 0, *bytes(8)], id="one question"),
        pytest.param([0b111, 0, 0, *bytes(8)], id="three questions"),
        pytest.param([0b1011, 0, 0, *bytes(8)], id="a bit beyond the questions"),
        pytest.param([0b011, 0, 0, *bytes(7), 1], id="a byte of a question that was not asked"),
        pytest.param([0b011, 8, 0, *bytes(8)], id="a report that mood has not"),
        pytest.param([0b011, 0, 2, *bytes(8)], id="a report that smoke has not"),
        pytest.param([0b011, 0, 0], id="too short"),
    ],
)
def test_check_reports_refuses_rows_that_no_client_sends(row: list[int]) -> None:
    with pytest.raises(NotSupported):
        TWO_OF_THREE.check_reports(np.array([row], dtype=np.uint8))


def test_randomize_needs_answers_to_the_asked_questions_only() -> None:
    values = TWO_OF_THREE.read_values([{"mood": "good", "smoke": "yes"}])
    values["asked"] = 0b011
    assert len(TWO_OF_THREE.randomize(values, rng=1)) == 1
    values["asked"] = 0b101
    with pytest.raises(OutsideDomain, match=r"sleep.*no answer"):
        TWO_OF_THREE.randomize(values, rng=1)


def test_read_values_names_question_answer_and_row() -> None:
    with pytest.raises(OutsideDomain, match=r"position 1.*\(mood\)"):
        TWO_OF_THREE.read_values([ANSWERS, {"mood": "awful"}])
    with pytest.raises(InvalidParameter, match="weight"):
        TWO_OF_THREE.read_values([{"weight": 3}])


# -- what a questionnaire may hold --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (Question("asked", SMOKE.mechanism, ("yes", "no")), "none of"),
        (Question("a=b", SMOKE.mechanism, ("yes", "no")), "without"),
        (Question("a", SMOKE.mechanism, ("yes",)), "2 names"),
        (Question("a", SMOKE.mechanism, None), "2 names"),
        (Question("a", SLEEP.mechanism, ("0", "1")), "categories only"),
        (Question("a", mechanism("gaussian")(sigma=10, lower=0, upper=1), None), "with an ε"),
        (Question("a", mechanism("laplace")(epsilon=1), None), "with a client"),
        (
            Question("a", mechanism("d-bit-flip")(epsilon=1, buckets=2, bits=1, memoize=True), ("yes", "no")),
            "not memoize",
        ),
        (Question("mood", SMOKE.mechanism, ("yes", "no")), "twice"),
    ],
)
def test_questionnaire_refuses_questions_it_cannot_hold(question: Question, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        Questionnaire(questions=[MOOD, question], ask=1)


def test_questionnaire_refuses_to_ask_more_than_it_has() -> None:
    with pytest.raises(InvalidParameter, match="from 1 to 1"):
        Questionnaire(questions=[MOOD], ask=2)


def test_questionnaire_is_checked_as_its_weakest_question() -> None:
    assert checked_at(TWO_OF_THREE) == "exact"
    beyond = Question("rare", mechanism("oue")(epsilon="0.000001", domain_size=3), ("a", "b", "c"))
    assert checked_at(beyond.mechanism) == "audited"
    assert checked_at(Questionnaire(questions=[MOOD, beyond], ask=1)) == "audited"


# -- the guarantee ------------------------------------------------------------------------------------------------------


ONE, TWO, HALF = Pure(Decimal(1)), Pure(Decimal(2)), Pure(Decimal("0.5"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("guarantees", "count", "expected"),
    [
        ([ONE, ONE, ONE], 1, ONE),
        ([ONE, ONE, ONE], 2, Copies(2, ONE)),
        ([ONE, Laplace(Decimal(1))], 2, Copies(2, ONE)),
        (
            [SymmetricPair(Decimal(1), Decimal("0.5")), SymmetricPair(Decimal(1), Decimal("0.7"))],
            2,
            Copies(2, SymmetricPair(Decimal(1), Decimal("0.7"))),
        ),
        ([HALF, TWO, ONE], 2, Pure(Decimal(3))),
        ([HALF, TWO, ONE], 1, TWO),
        ([ONE, Approximate(Decimal("0.5"), Decimal("1e-6"))], 1, Approximate(Decimal(1), Decimal("1e-6"))),
        ([ONE, Approximate(TWO.bound, Decimal("1e-6"))], 2, Approximate(Decimal(3), Decimal("1e-6"))),
    ],
)
def test_composed_is_the_loss_of_the_largest_k(guarantees: list[Guarantee], count: int, expected: Guarantee) -> None:
    assert composed(guarantees, count) == expected


def law_of(question: Question, answer: int) -> dict[int, Fraction]:
    """The exact law of one byte of a report, from the probabilities with which the client draws."""
    pairs: Any = question.mechanism.support_probabilities  # type: ignore[attr-defined]
    if question is SMOKE:
        zero = pairs[0][answer]
        return {0: zero, 1: 1 - zero}
    [(keep, noise)] = pairs
    law: dict[int, Fraction] = {}
    for bits in range(8):
        chance = Fraction(1)
        for place in range(3):
            one = keep if place == answer else noise
            chance *= one if bits >> place & 1 else 1 - one
        law[bits] = chance
    return law


@pytest.mark.parametrize("ask", [1, 2])
def test_guarantee_bounds_the_loss_of_every_row_and_is_tight(ask: int) -> None:
    """The whole law of a row is enumerated in fractions, for every mask and every two lists of answers."""
    both = Questionnaire(questions=[MOOD, SMOKE], ask=ask)
    worst = Fraction(0)
    for mask in combinations((0, 1), ask):
        for first in [(mood, smoke) for mood in range(3) for smoke in range(2)]:
            for other in [(mood, smoke) for mood in range(3) for smoke in range(2)]:
                ratio = Fraction(1)
                for place in mask:
                    laws = [law_of((MOOD, SMOKE)[place], answers[place]) for answers in (first, other)]
                    ratio *= max(laws[0][outcome] / laws[1][outcome] for outcome in laws[0])
                worst = max(worst, ratio)
    loss = math.log(worst)
    assert loss <= both.guarantee.epsilon == ask
    assert loss > ask - 1e-6


@pytest.mark.slow
def test_rows_follow_the_questions_laws() -> None:
    """Drawn rows have the enumerated law: chi-square over all rows of two asked questions."""
    both, draws = Questionnaire(questions=[MOOD, SMOKE], ask=2), 20_000
    rows = both.randomize([{"mood": "good", "smoke": "no"}] * draws, rng=3)
    mood, smoke = law_of(MOOD, 0), law_of(SMOKE, 1)
    statistic = sum(
        (((rows[:, 1] == a) & (rows[:, 2] == b)).sum() - draws * float(p * q)) ** 2 / (draws * float(p * q))
        for a, p in mood.items()
        for b, q in smoke.items()
    )
    assert statistic < 15 + 4 * math.sqrt(30)


# -- estimates ----------------------------------------------------------------------------------------------------------


def test_aggregates_of_parts_merge_to_the_whole() -> None:
    rows = TWO_OF_THREE.randomize([ANSWERS] * 300, rng=5)
    whole = TWO_OF_THREE.estimate(rows)
    parts = TWO_OF_THREE.aggregate(rows[:100]).merge(TWO_OF_THREE.aggregate(rows[100:]))
    assert TWO_OF_THREE.estimate(parts).to_rows() == whole.to_rows()
    assert sum(whole.asked.values()) == 600


def test_aggregate_of_another_questionnaire_does_not_merge() -> None:
    rows = TWO_OF_THREE.randomize([ANSWERS] * 3, rng=5)
    other = Questionnaire(questions=[SMOKE, MOOD, SLEEP], ask=2)
    with pytest.raises(NotSupported):
        TWO_OF_THREE.aggregate(rows).merge(other.aggregate(other.randomize([ANSWERS], rng=1)))


def test_estimate_of_a_question_without_reports_is_none() -> None:
    values = TWO_OF_THREE.read_values([ANSWERS] * 10)
    values["asked"] = 0b011
    found = TWO_OF_THREE.estimate(TWO_OF_THREE.randomize(values, rng=1))
    assert (found.questions["sleep"], found.asked["sleep"]) == (None, 0)
    assert {row["question"] for row in found.to_rows()} == {"mood", "smoke"}


def test_estimate_of_all_questions_is_that_of_each_alone() -> None:
    everyone = Questionnaire(questions=[MOOD, SMOKE], ask=2)
    rows = everyone.randomize([{"mood": "fair", "smoke": "no"}] * 200, rng=2)
    _, (mood, _) = everyone.unpack(rows)
    found = everyone.estimate(rows).questions["mood"]
    assert found is not None
    assert found.to_rows() == MOOD.mechanism.estimate(mood).named(MOOD.categories).to_rows()
