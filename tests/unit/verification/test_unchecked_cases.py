"""`verify` never says "holds" of an unchecked case: planted leaks in answers, pairs, values and counts."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ldp_budget
from altered_programs import KEPT, RR, emits, one_of
from client_cases import CASES
from ldp_budget import Comparison, Factor, Mechanism, verify
from ldp_budget.guarantees import Copies, FinitePair, Guarantee, Pure, SymmetricPair
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.client_program import Program, answers, uint
from ldp_budget.sdk.estimates import CountEstimate
from ldp_budget.sdk.parameters import real
from ldp_budget_verify.exact.derived_law import answers_are_alike

MILLION = 10**6
LEAKED = 123_456


class UpperHalf(ldp_budget.FrequencyMechanism):
    """The half of a million answers, flipped with probability 1/4. A plugin, correct except for its program."""

    name = "upper-half"

    epsilon = real("privacy loss of one report", above=0, at_most=20)

    @property
    def answers(self) -> int:
        return MILLION

    @property
    def guarantee(self) -> Guarantee:
        return Pure(self.epsilon)

    def critical_inputs(self) -> tuple[int, ...]:
        return (0, MILLION - 1)

    def compare(self, first: int, second: int) -> Comparison:
        one, other = (Fraction(3 if value >= MILLION // 2 else 1, 4) for value in (first, second))
        return Comparison.of(Factor.bit(one, other))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        return reports & 1

    def client_program(self) -> Program:
        steps = (
            ("half", ["ge", "value", MILLION // 2]),
            ("flip", ["bit", str(threshold(Decimal("0.25"), up=True))]),
            ("report", ["xor", "half", "flip"]),
        )
        return Program(answers(self.domain), steps, uint("report", 255))


def test_verify_of_a_million_answers_that_fall_into_two_ranges_holds() -> None:
    found = verify(UpperHalf(epsilon="1.1"))
    assert (found.verdict, found.program) == ("holds", "holds")
    assert "by the law of the client program all of them" in found.looked_at
    assert verify(UpperHalf(epsilon="1.0986")).verdict == "violated"  # ln 3 is 1.09861


def test_verify_of_a_program_that_leaks_one_of_a_million_answers_is_violated() -> None:
    """A program sent 2 for the answer 123,456 alone; 4 of 10⁶ answers were enumerated: "holds" came out before."""
    made = UpperHalf(epsilon="1.1")
    leak = ["add", ["xor", "half", "flip"], ["mul", 2, ["eq", "value", LEAKED]]]
    found = verify(emits(made, steps=one_of(made, "report", leak)))
    assert (found.verdict, found.program) == ("violated", "violated")
    assert "a report that one input can give is impossible for another" in found.problems[0]


@pytest.mark.slow
def test_verify_of_answers_that_cannot_all_be_looked_at_is_unproven() -> None:
    """The last digits of the answer enter, which no range decides: "unproven", with what was looked at."""
    made = UpperHalf(epsilon="1.1")
    bits = one_of(made, "half", ["and", ["ge", "value", MILLION // 2], ["ge", ["mod", "value", 1000], 0]])
    found = verify(emits(made, steps=bits))
    assert (found.verdict, found.program) == ("unproven", "unproven")
    assert "of the pairs of its 1,000,000 answers" in found.looked_at
    assert "not every one of its 1,000,000 answers was looked at" in found.program_open


# -- one answer among many that cannot be enumerated ----------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "oue of 100",
        "random-substitution",
        "ordered",
        "a subset of 70000",
        "rappor",
        "cms",
        "hcms",
        "d-bit-flip",
        "kept buckets",
    ],
)
def test_answers_of_a_built_in_program_are_alike(name: str) -> None:
    assert answers_are_alike(CASES[name].client_program())


@pytest.mark.parametrize(
    ("name", "step", "expression"),
    [
        ("oue of 100", "row", ["put", "others", "value", ["where", ["eq", "value", 17], 1, "own"]]),
        ("oue of 100", "row", ["put", "others", ["min", "value", 98], "own"]),
        ("cms", "row", ["put", "others", "cell", ["where", ["eq", "cell", 5], 1, "own"]]),
        ("cms", "row", ["put", "others", "cell", ["where", ["eq", "value", 5], 1, "own"]]),
        ("hcms", "sign", ["eq", ["parity", ["and", "place", "cell"]], 1]),
        ("rappor", "permanent", ["xor", "filter", ["where", ["eq", "value", 3], "filter", "flips"]]),
        ("random-substitution", "drawn", ["where", "kept", "value", ["max", "moved", 1]]),
        ("a subset of 70000", "row", ["add", "others", ["ge", "others", 5]]),
        ("a subset of 70000", "report", ["at", "row", 0]),
        ("d-bit-flip", "row", ["xor", ["eq", "buckets", 3], "flips"]),
    ],
)
def test_answers_of_a_program_that_treats_one_in_its_own_way_are_not_alike(
    name: str, step: str, expression: Any
) -> None:
    program = CASES[name].client_program()
    steps = tuple((each, expression if each == step else was) for each, was in program.steps)
    assert not answers_are_alike(dataclasses.replace(program, steps=steps))


@pytest.mark.slow
def test_verify_of_many_answers_one_of_which_is_revealed_is_unproven() -> None:
    """Of 100 answers the seventeenth sends a sure bit; six of them were compared, and it was said to hold."""
    made = CASES["oue of 100"]
    told = one_of(made, "row", ["put", "others", "value", ["where", ["eq", "value", 17], 1, "own"]])
    found = verify(emits(made, steps=told))
    assert found.verdict == "unproven"
    assert "oue describes no channel" in found.problems[0]


# -- all of the guarantee -------------------------------------------------------------------------------------------


def promising(made: Mechanism, promise: Guarantee) -> Mechanism:
    """The mechanism with another promise, and a description that takes all reports for one."""

    class Coarse(type(made)):  # type: ignore[misc]
        guarantee = property(lambda self: promise)

        def compare(self, first: int, second: int) -> Comparison:
            return Comparison.of(Factor.of([Fraction(1)], [Fraction(1)]))

        def outcomes(self, reports: Any, first: int, second: int) -> Any:
            return np.zeros(len(reports), dtype=np.int64)

    return Coarse(**made.declared)


@pytest.mark.parametrize(
    "promise",
    [
        SymmetricPair(1, "0.5"),
        Copies(2, Pure("0.5")),
        Copies(2, SymmetricPair("0.5", "0.9")),
        FinitePair(
            (
                (Fraction(11, 40), Fraction(4, 40)),
                (Fraction(25, 40), Fraction(25, 40)),
                (Fraction(4, 40), Fraction(11, 40)),
            )
        ),
    ],
    ids=["tau", "copies", "copies-tau", "pair"],
)
def test_verify_compares_the_distribution_with_all_of_the_guarantee(promise: Guarantee) -> None:
    """Randomized response at ε = 1 promised a smaller τ, pair, or two copies; ε alone was compared: "holds"."""
    assert promise.epsilon >= 1
    assert promise.costs().rho < Pure(1).costs().rho  # type: ignore[operator]
    found = verify(promising(RR, promise))
    assert (found.verdict, found.program) == ("violated", "violated")


@pytest.mark.parametrize("promise", [SymmetricPair(1, 1), Copies(1, Pure(1)), Copies(2, Pure(1))])
def test_verify_of_a_promise_that_is_wide_enough_holds(promise: Guarantee) -> None:
    assert verify(promising(RR, promise)).program == "holds"


@pytest.mark.slow
def test_verify_compares_every_pair_of_answers() -> None:
    """Only neighboring answers are protected as stated; the first and the third are distinguished with certainty."""
    made = ldp_budget.mechanism("oue")(epsilon=1, domain_size=8)
    leak = one_of(made, "row", ["put", "others", "value", ["where", ["eq", "value", 6], 1, "own"]])
    assert verify(emits(made, steps=leak)).verdict == "violated"


# -- values of one secret -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_verify_of_one_word_of_the_secret_for_all_values_is_violated() -> None:
    """The flips of all values were one word of the secret: two reports show by what their values differ."""
    found = verify(
        emits(KEPT, steps=one_of(KEPT, "flips", ["kept_bits", "bits", 0, *KEPT.client_program().steps[0][1][3:]]))
    )
    assert (found.verdict, found.program) == ("violated", "violated")
    assert "of two values of one secret, a report that one input can give is impossible" in found.problems[0]


@pytest.mark.slow
def test_verify_of_words_that_depend_on_a_draw_is_unproven() -> None:
    """Reports may repeat the noise of other reports, which is not followed."""
    flips = KEPT.client_program().steps[0][1]
    steps = (
        ("coin", ["bit", str(ONE // 2)]),
        ("flips", ["kept_bits", "bits", ["add", "value", "coin"], *flips[3:]]),
        *KEPT.client_program().steps[1:],
    )
    found = verify(emits(KEPT, steps=steps))
    assert found.program == "unproven"
    assert "neither of one value nor shared by all" in found.program_open


@pytest.mark.exhaustive
def test_verify_of_a_cap_of_all_values_that_is_too_small_is_unproven() -> None:
    made = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=4, bits=2, memoize=True)
    assert verify(made).program == "holds"

    class OneValue(type(made)):  # type: ignore[misc]
        guarantee = property(lambda self: dataclasses.replace(made.guarantee, values=1))

    found = verify(OneValue(**made.declared))
    assert found.program == "unproven"
    assert "all values together lose 1 times the cap" in found.program_open


# -- every count ----------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize(("size", "answer"), [(10, 3), (100, 37)])
def test_verify_of_an_estimator_that_is_biased_on_one_answer_is_violated(size: int, answer: int) -> None:
    """The count of one answer of ten is a tenth too large; three other counts were looked at: "holds"."""
    oue = ldp_budget.mechanism("oue")

    class Biased(oue):  # type: ignore[misc, valid-type]
        def estimate(self, reports: Any) -> CountEstimate:
            found = super().estimate(reports)
            counts = found.counts.copy()
            counts[answer] *= 1.1
            return dataclasses.replace(found, counts=counts)

    assert verify(oue(epsilon=1, domain_size=size)).estimator == "holds"
    found = verify(Biased(epsilon=1, domain_size=size))
    assert found.estimator == "violated"
    assert any(f"the count of {answer}" in problem for problem in found.problems)
