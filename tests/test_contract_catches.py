"""The contract finds every mistake that it is there for: each check fails for a mechanism that breaks its rule."""

from __future__ import annotations

from typing import Any

import pytest

import broken_mechanisms as broken
import careless_mechanisms as careless
from ldp_budget import Mechanism
from ldp_budget.contract import CHECKS, FAILED, PASSED, SKIPPED, Result, run, run_all

OUE = {"epsilon": 1, "domain_size": 5}
UNIT = {"epsilon": 1, "lower": 0, "upper": 1}
SETS = {"gamma": 10, "domain_size": 50, "draws": 4, "sampling": "distinct"}
CHAINED = {"epsilon": 1, "epsilon_lifetime": 4, "domain_size": 10}
MEMO = {"epsilon": 1, "buckets": 5, "bits": 5, "memoize": True}

CAUGHT: list[tuple[type[Mechanism], dict[str, Any], str, str]] = [
    # Mistakes of published software and papers.
    (broken.OnlySetsBits, {}, "guarantee_is_exact", "impossible for another"),
    (broken.OnlySetsBits, {}, "audit_finds_no_more", "promised is 1"),
    (broken.FreshEveryTime, OUE, "guarantee_is_exact", "impossible for another"),
    (broken.FreshEveryTime, OUE, "many_reports_stay_within_the_cap", "50 report"),
    (broken.FreshEveryTime, OUE, "memo_is_kept", "do not depend on the secret"),
    (broken.PrintedRowTwo, {**UNIT, "gamma": "0.75"}, "guarantee_is_exact", "above the claim"),
    (broken.AlgorithmTwoLnGamma, SETS, "guarantee_is_exact", "above the claim"),
    (broken.ChainedGrr, CHAINED, "guarantee_is_exact", "above the claim"),
    (broken.EmitsUnknown, OUE, "bad_input_is_refused", "is accepted"),
    (broken.EmitsUnknown, OUE, "unknown_values_do_not_leak", "sent as it is"),
    (broken.VarianceOff, OUE, "estimator_is_unbiased", "variance"),
    (broken.ClippingEstimator, OUE, "estimator_is_unbiased", "biased"),
    # Slips.
    (careless.ForgetsAFlag, OUE, "parameters_round_trip", "another guarantee"),
    (careless.HashesByHash, OUE, "fingerprint_is_the_same_elsewhere", "another fingerprint"),
    (careless.SpellsAsDeclared, OUE, "fingerprint_is_stable", "has another fingerprint"),
    (careless.OneForAll, OUE, "fingerprint_is_stable", "domain_size does not change"),
    (careless.TakesAnything, OUE, "bad_parameters_are_refused", "unknown parameter is accepted"),
    (careless.RoundsUp, OUE, "calibration_is_safe", "it promises"),
    (careless.NoisierThanSaid, OUE, "client_matches_channel", "chi-square"),
    (careless.FollowsTheCrowd, OUE, "client_matches_channel", "among others"),
    (careless.WiderNoise, UNIT, "client_matches_channel", "density"),
    (careless.WiderNoise, UNIT, "estimator_is_unbiased", "variance"),
    (careless.AlwaysTheSame, OUE, "seed_decides", "without a seed two runs"),
    (careless.IgnoresTheSeed, OUE, "seed_decides", "the same seed gives other"),
    (careless.KeepsNoMemo, MEMO, "memo_is_kept", "do not depend on the secret"),
    (careless.Wraps, OUE, "bad_input_is_refused", "the value -1 is accepted"),
    (careless.Flattens, OUE, "bad_input_is_refused", "a table of values is accepted"),
    (careless.WritesIntoValues, OUE, "inputs_are_left_alone", "read-only"),
    (careless.NeverEmpty, OUE, "no_users_no_reports", "no values give reports"),
    (careless.MergesShares, OUE, "aggregates_merge", "do not merge"),
    (careless.BooleanReports, OUE, "reports_survive_the_file", "damaged"),
    (careless.ShiftsTheMean, UNIT, "estimator_is_unbiased", "biased"),
    (careless.BiasedOnTheSly, UNIT, "estimator_is_unbiased", "biased"),
    (careless.TenPerCentOff, UNIT, "estimator_is_unbiased", "variance"),
]

SLOWLY = (careless.CountsTenPerCentOff, OUE, "estimator_is_unbiased", "variance")


@pytest.mark.parametrize(
    ("cls", "parameters", "check", "why"),
    [*CAUGHT, pytest.param(*SLOWLY, marks=pytest.mark.slow)],
    ids=lambda item: getattr(item, "name", None),
)
def test_a_mistake_is_caught(cls: type[Mechanism], parameters: dict[str, Any], check: str, why: str) -> None:
    found = run(check, cls(**parameters))
    assert found.verdict == FAILED, found
    assert why in found.why


def test_every_check_catches_something() -> None:
    assert {check for _, _, check, _ in CAUGHT} == set(CHECKS)


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [
        (careless.HashesByHash, OUE),
        (careless.RoundsUp, OUE),
        (careless.AlwaysTheSame, OUE),
        (careless.NeverEmpty, OUE),
        pytest.param(careless.TenPerCentOff, UNIT, marks=pytest.mark.slow),
    ],
    ids=lambda item: getattr(item, "name", None),
)
def test_one_slip_fails_one_check(cls: type[Mechanism], parameters: dict[str, Any]) -> None:
    failed = {result.check for result in run_all(cls(**parameters)) if result.verdict == FAILED}
    assert failed == {check for caught, _, check, _ in CAUGHT if caught is cls}


@pytest.mark.parametrize(
    "mechanism",
    [
        careless.TenPerCentOff(**UNIT, share=1),
        pytest.param(careless.CountsTenPerCentOff(**OUE, honest=True), marks=pytest.mark.slow),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_the_honest_twin_passes(mechanism: Mechanism) -> None:
    assert run("estimator_is_unbiased", mechanism) == Result("estimator_is_unbiased", PASSED)


def test_what_says_nothing_is_not_checked() -> None:
    verdicts = {result.check: result for result in run_all(careless.Priced(epsilon=1))}
    assert {check for check, result in verdicts.items() if result.verdict == FAILED} == set()
    assert verdicts["calibration_is_safe"].verdict == PASSED
    assert verdicts["client_matches_channel"] == Result(
        "client_matches_channel", SKIPPED, "priced names no inputs to compare"
    )


def test_an_error_of_the_mechanism_is_a_failure_and_no_crash() -> None:
    class Crashes(careless.Honest):
        name = "crashes"

        def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
            raise ZeroDivisionError("oops")

    found = run("seed_decides", Crashes(**OUE))
    assert (found.verdict, found.why) == (FAILED, "ZeroDivisionError: oops")
