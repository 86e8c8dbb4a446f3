"""Reasons of open verdicts: each says why, and what an author can do about it."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import ldp_budget
from ldp_budget import Comparison, Factor, FrequencyMechanism, NumericMechanism, mechanism
from ldp_budget.guarantees import ANY_INPUTS, Copies, Gaussian, Memoised, Pure, SymmetricPair, ZeroConcentrated
from ldp_budget.sdk.parameters import real
from ldp_budget_verify.contract import _left_open, run
from ldp_budget_verify.exact import verify
from ldp_budget_verify.exact.densities import DensityPair, _as_described, check_density
from ldp_budget_verify.exact.dominance import UNPROVEN, check

BIT = Comparison.of(Factor.bit(Fraction(3, 4), Fraction(1, 4)))


class Priced(ldp_budget.Mechanism):
    name = "priced"
    epsilon = real("privacy loss of one report", above=0)
    guarantee: Any = property(lambda self: Pure(self.epsilon))


class Asked(Priced, FrequencyMechanism):
    """Two answers, without a description of their reports."""

    name = "asked"
    answers = 2


class Measured(Priced, NumericMechanism):
    """A number, of which nothing is said."""

    name = "measured"


class Repeating(Asked):
    """Kept bits, of which one report alone is described."""

    name = "repeating"
    guarantee = property(lambda self: Memoised((self.epsilon,), self.epsilon, 2, ANY_INPUTS))

    def compare(self, first: Any, second: Any) -> Comparison:
        return BIT


RANGE = {"lower": 0, "upper": 1}


@pytest.mark.parametrize(
    ("made", "problems"),
    [
        (Priced(epsilon=1), ["mechanism priced names no inputs to compare; define `critical_inputs`"]),
        (Asked(epsilon=1), ["asked describes no channel; define `compare` and `outcomes`"]),
        (
            Measured(epsilon=1, **RANGE),
            ["measured describes no channel; define `compare` and `outcomes`, or a `density`"],
        ),
        (
            Repeating(epsilon=2),
            [f"that the curve holds for {ANY_INPUTS} is not checked; promise it for same change pattern"],
        ),
    ],
    ids=lambda each: each.name if hasattr(each, "name") else "",
)
def test_reason_of_an_unproven_guarantee_names_the_missing_description(made: Any, problems: list[str]) -> None:
    found = verify(made)
    assert found.verdict == UNPROVEN
    for problem, said in zip(problems, found.problems, strict=True):
        assert said.startswith(problem)


def test_reason_asks_for_reports_of_one_memoized_value() -> None:
    class Patterned(Repeating):
        guarantee = property(lambda self: Memoised((self.epsilon,), self.epsilon, 2, "same change pattern"))

    assert verify(Patterned(epsilon=2)).problems == (
        "mechanism repeating describes no repeated reports; define `compare_repeated`",
    )


@pytest.mark.parametrize(
    ("guarantee", "step"),
    [
        (Gaussian(1, 1, "1e-5"), "promise what its finite reports say, by `Pure`"),
        (Copies(1, Memoised((Decimal(1),), 1, 1, ANY_INPUTS)), "promise the memoised one itself"),
    ],
)
def test_reason_of_another_kind_of_guarantee_names_the_checked_kinds(guarantee: Any, step: str) -> None:
    found = check(guarantee, BIT)
    assert (found.verdict, step in found.why) == (UNPROVEN, True)


def test_reason_of_a_claim_equal_to_the_loss_asks_to_round_up() -> None:
    """Bounds of ln 2.333… to a hundred digits are as near as the loss is known; a claim between them is open."""
    thirds = Comparison.of(Factor.bit(Fraction(7, 10), Fraction(3, 10)))
    loss = thirds.loss()
    assert loss is not None
    low, high = loss
    assert low < high
    found = check(Pure(low), thirds)
    assert found.verdict == UNPROVEN
    assert found.why.endswith("the digits that are known do not tell them apart, so round the claim up")
    assert check(Pure(high), thirds).verdict == "holds"


class Shifted(NumericMechanism):
    """A density that is known: e^(-|y - x|)/2 with a bump of its own where asked."""

    name = "shifted"
    epsilon = real("privacy loss of one report", above=0)
    guarantee: Any = property(lambda self: Pure(self.epsilon))

    def log_density(self, report: float, value: float) -> float:
        return -abs(report - value) - math.log(2)

    def density(self, report: float, value: float) -> float:
        return math.exp(self.log_density(report, value))

    def report_breakpoints(self, value: float) -> tuple[float, ...]:
        return (value,)


def test_reason_beyond_doubles_asks_for_a_channel() -> None:
    made = Shifted(epsilon=1, **RANGE)
    pair = DensityPair(made, 0.0, 1.0)
    close = check_density(Pure(Decimal("0.9999999989999999")), pair)
    assert close.verdict == UNPROVEN
    assert "double precision does not tell them apart: promise a little more, or describe what is drawn" in close.why
    other = check_density(ZeroConcentrated(1), pair)
    assert other.why.endswith("describe what is drawn by `compare`, which is checked in fractions")


def test_reason_of_a_missing_breakpoint_asks_for_it() -> None:
    class Unannounced(Shifted):
        def log_density(self, report: float, value: float) -> float:
            plain = super().log_density(report, value)
            return plain + math.log1p(math.sin(20 * report) / 2) if value > 0.5 else plain

    pair = DensityPair(Unannounced(epsilon=9, **RANGE), 0.0, 1.0)
    found = _as_described(pair)
    assert found.verdict == UNPROVEN
    assert found.why.endswith("; name the report where it turns in `report_breakpoints`")


@pytest.mark.parametrize(
    ("check_", "made", "why", "applies"),
    [
        ("memo_is_kept", Asked(epsilon=1), "it memoizes nothing", False),
        (
            "seed_decides",
            Priced(epsilon=1),
            "mechanism priced names no inputs to compare; define `critical_inputs`",
            True,
        ),
        (
            "seed_decides",
            Asked(epsilon=1),
            "mechanism asked has no client, so it cannot randomize; define `randomize`",
            True,
        ),
        ("guarantee_is_exact", Asked(epsilon=1), "asked describes no channel; define `compare` and `outcomes`", True),
    ],
)
def test_reason_of_a_skipped_check_names_the_missing_method(check_: str, made: Any, why: str, applies: bool) -> None:
    found = run(check_, made)
    assert (found.verdict, found.why, found.applies) == ("skipped", why, applies)


def test_reason_does_not_ask_for_a_defined_method() -> None:
    sensitive = mechanism("laplace")(epsilon=1, sensitivity=2)
    found = run("seed_decides", sensitive)
    assert found.verdict == "skipped"
    assert "define" not in found.why


def test_reason_of_a_partial_proof_names_the_open_part() -> None:
    """If a density holds, the distribution of the client program is proved, which leaves nothing open."""
    density, channel = ({"verdict": "holds", "method": method} for method in ("density", "channel"))
    assert _left_open(density, False) == []
    [parts] = _left_open(channel, False)
    assert parts.startswith("`compare` describes only a part of each report")
    assert _left_open(channel, True) == _left_open({**density, "verdict": "unproven"}, False) == []


def test_pair_stated_too_small_is_violated() -> None:
    assert check(SymmetricPair(2, "0.5"), BIT).verdict == "violated"
