"""One-sided protection: law, estimate, refusal of the ledger, and what the proof of it finds."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from ldp_budget import Accountant, Limit, mechanism
from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import OneSided, from_json
from ldp_budget.registry.public_definition import guarantee_in_words
from ldp_budget_verify import exact

Garbling = mechanism("one-sided")


@pytest.mark.parametrize("g", ["0.01", "0.3", "0.5", "0.99"])
def test_guarantee_has_no_epsilon_and_the_eta_of_g(g: str) -> None:
    guarantee = Garbling(g=g).guarantee
    found = guarantee.describe()
    assert (found["kind"], found["epsilon"]) == ("one-sided", None)
    with mpmath.workdps(40):
        least = mpmath.log(1 / mpmath.mpf(g))
        assert least <= mpmath.mpf(str(guarantee.eta)) <= least * (1 + mpmath.mpf("1e-20"))
        assert mpmath.mpf(str(guarantee.eta)) <= mpmath.mpf(repr(found["eta"]))


def test_guarantee_read_back_from_json_is_equal() -> None:
    guarantee = Garbling(g="0.3").guarantee
    assert from_json(guarantee.to_json()) == guarantee


def test_channel_keeps_a_yes_and_turns_a_no_with_probability_g() -> None:
    masses = Garbling(g="0.25").compare(1, 0).merged()
    assert sorted(masses) == [(Fraction(0), Fraction(3, 4)), (Fraction(1), Fraction(1, 4))]


def test_one_sided_is_proved_and_a_smaller_eta_is_not() -> None:
    assert exact.verify(Garbling(g="0.3")).verdict == "holds"

    class Boast(Garbling):  # type: ignore[misc, valid-type]
        name = "boast"

        @property
        def guarantee(self) -> OneSided:
            return OneSided(Garbling(g="0.31").guarantee.eta)

    found = exact.verify(Boast(g="0.3"))
    assert found.verdict == "violated"
    assert "of a protected answer" in found.problems[0]


def test_protection_of_the_other_answer_is_violated() -> None:
    class Wrong(Garbling):  # type: ignore[misc, valid-type]
        name = "wrong-side"
        protected = (0,)

    assert exact.verify(Wrong(g="0.3")).verdict == "violated"


def test_guarantee_without_protected_answers_is_unproven() -> None:
    class Silent(Garbling):  # type: ignore[misc, valid-type]
        name = "silent-side"
        protected = ()

    assert exact.verify(Silent(g="0.3")).verdict == "unproven"


def test_estimate_is_that_of_mangat() -> None:
    estimate = Garbling(g="0.3").estimate(np.array([1] * 37 + [0] * 63))
    assert estimate.counts[1] == pytest.approx(100 * (0.37 - 0.3) / 0.7)
    assert estimate.std_errors[1] == pytest.approx(math.sqrt(90 * 0.3 * 0.7) / 0.7)  # 90 of 100 turn a no by chance


@pytest.mark.slow
@pytest.mark.parametrize("holders", [0, 1, 5, 25, 50])
def test_interval_of_the_holders_covers_in_93_of_100_surveys(holders: int) -> None:
    """Every number of turned answers is enumerated with its probability, so nothing is left to luck."""
    made, others, covered = Garbling(g="0.3"), 50 - holders, 0.0
    for turned in range(others + 1):
        weight = math.comb(others, turned) * 0.3**turned * 0.7 ** (others - turned)
        low, high = made.estimate(np.array([1] * (holders + turned) + [0] * (others - turned))).interval(0.95)
        covered += weight * (low[1] <= holders <= high[1])
    assert covered > 0.93


def test_ledger_refuses_a_one_sided_charge_with_the_two_sided_offer() -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="1000000")])
        receipt = accountant.spend("alice", Garbling(g="0.3"), reports=2)
        assert receipt.status == "refused"
        assert "one-sided protection has no finite ε" in receipt.why
        assert "randomized-response --epsilon 1.20397" in receipt.why
        assert not list(accountant.history("alice"))


def test_questionnaire_does_not_mix_one_sided_and_other_questions() -> None:
    from ldp_budget_surveys.questionnaires.questionnaire import Question, Questionnaire

    asked = [
        Question("smoke", mechanism("randomized-response")(epsilon=1), ("no", "yes")),
        Question("harassed", Garbling(g="0.3"), ("no", "yes")),
    ]
    with pytest.raises(InvalidParameter, match="mechanism of harassed must be one with an ε"):
        Questionnaire(questions=asked, ask=1)


def test_respondents_read_which_answer_is_protected() -> None:
    words = guarantee_in_words(Garbling(g="0.3").guarantee)["words"]
    assert words.startswith("Only one answer is protected: a report is at most 3.34 times as likely")


def test_notes_offer_randomized_response_with_its_price() -> None:
    unlimited, offer = Garbling(g="0.3").notes
    assert unlimited.startswith('ε: unlimited. "yes" is deniable: η = 1.20397.')
    assert "randomized-response --epsilon 1.20397" in offer
    assert "1.43 times" in offer


def test_notes_of_a_g_that_rounds_to_one_have_their_price() -> None:
    assert "with 1e+17 times the variance" in Garbling(g="0.99999999999999999").notes[1]


@pytest.mark.parametrize("g", ["0", "1", "0.99999999999999999999999"])
def test_g_outside_its_range_is_refused(g: str) -> None:
    with pytest.raises(InvalidParameter, match="g"):
        Garbling(g=g)
