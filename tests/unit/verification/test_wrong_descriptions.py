"""Clients whose description is wrong: the leaks that the contract finds, and those that no sample shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lying_mechanisms as lying
from ldp_budget import Mechanism, mechanism
from ldp_budget.guarantees import Unbounded
from ldp_budget_verify.contract import FAILED, PASSED, SKIPPED, certify, run
from ldp_budget_verify.contract.report_checks import describes_whole_reports
from ldp_budget_verify.contract.statistics import (
    LEAST_TWO_SAMPLE_P,
    Evidence,
    compare_counts,
    compare_samples,
    relate,
)

CAUGHT: list[tuple[type[Mechanism], str, str]] = [
    (lying.TextbookLaplace, "reports_lie_on_their_grid", "20000 of 20000 reports lie off the grid"),
    (lying.LastBit, "reports_lie_on_their_grid", "lie off the grid"),
    (lying.LastStep, "reports_say_no_more_than_described", "bits 0 together: odd in 0 and 1"),
    (lying.DtypeTells, "reports_have_one_form", "1 report(s) of 1 are <u2 of shape (1,), others are |u1"),
    (lying.ByteOrderTells, "reports_have_one_form", "1 report(s) of 1 are >u4 of shape (), others are <u4"),
    (lying.SecondColumn, "reports_say_no_more_than_described", "together: odd in 0 and 1"),
    (lying.PairwiseOnly, "reports_say_no_more_than_described", "are not alike"),
    (lying.ParityTells, "reports_say_no_more_than_described", "are not alike"),
    (lying.RawWhenAlone, "users_are_drawn_alone_as_together", "of a user alone, and in a batch, are not alike"),
    (lying.RawForTheLast, "users_are_drawn_alone_as_together", "of the last of a few, and in a batch, are not alike"),
    (lying.SharedByNeighbours, "noise_is_used_once", "reports of users 1 places apart in a batch are the same"),
    (lying.EverySixteenthCall, "noise_is_used_once", "400 of 400 reports of call"),
    (lying.SameForAllValues, "memo_is_kept", "with one secret reports of 0 and of 4 are not independent"),
    (lying.SameForAllMechanisms, "memo_is_kept", "with one secret reports to SameForAllMechanisms"),
    (lying.KeptAfresh, "memo_is_kept", "drawn again with every generator"),
]


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize(("cls", "check", "why"), CAUGHT, ids=lambda item: getattr(item, "name", None))
def test_contract_finds_a_wrong_description_with_the_reason(cls: type[Mechanism], check: str, why: str) -> None:
    found = run(check, cls(**cls.examples[0]))
    assert found.verdict == FAILED, found
    assert why in found.why


def test_contract_checks_for_wrong_descriptions_each_find_one() -> None:
    assert {check for _, check, _ in CAUGHT} == {
        "memo_is_kept",
        "reports_say_no_more_than_described",
        "reports_have_one_form",
        "reports_lie_on_their_grid",
        "users_are_drawn_alone_as_together",
        "noise_is_used_once",
    }


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(("honest", "check"), dict.fromkeys((cls.__mro__[1], check) for cls, check, _ in CAUGHT))
def test_contract_passes_the_correct_originals(honest: type[Mechanism], check: str) -> None:
    assert honest in lying.HONEST
    assert run(check, honest(**honest.examples[0])).verdict == PASSED


def certificate(cls: type[Mechanism], **options: Any) -> dict[str, Any]:
    made_ = certify([cls], distribution="theirs", version="1", samples=5_000, **options)
    found: dict[str, Any] = made_["mechanisms"][0]
    return found


SLOW = pytest.mark.exhaustive


@SLOW
def test_contract_tries_unusual_settings() -> None:
    found = certificate(lying.HonestWhenLookedAt)
    assert found["checked"] == "no"
    chosen = found["chosen"]
    assert [example["checked"] for example in found["examples"]] == ["audited", "audited"]
    assert 0.3 <= float(chosen[0]["declared"]["epsilon"]) <= 1 <= float(chosen[1]["declared"]["epsilon"]) <= 3
    for example in chosen:
        failed = {check["check"] for check in example["checks"] if check["verdict"] == FAILED}
        assert "client_matches_channel" in failed


@SLOW
@pytest.mark.parametrize("cls", lying.HONEST, ids=lambda cls: cls.name)
def test_contract_rates_a_third_party_client_audited_with_the_reason(cls: type[Mechanism]) -> None:
    found = certificate(cls)
    assert found["checked"] == "audited"
    assert any("which samples support and no proof covers" in reason for reason in found["reasons"])


@SLOW
@pytest.mark.parametrize("cls", lying.UNSEEN, ids=lambda cls: cls.name)
def test_contract_passes_a_leak_that_no_sample_shows(cls: type[Mechanism]) -> None:
    """None of these is noticed: that is why no client that cannot be read is more than "audited"."""
    instance = cls(**cls.examples[0])
    for check in (*{check for _, check, _ in CAUGHT}, "client_matches_channel", "audit_finds_no_more"):
        assert run(check, instance).verdict != FAILED


@SLOW
def test_contract_rates_a_leak_that_no_sample_shows_audited_at_most() -> None:
    found = certificate(lying.OnceInAWhile)
    assert found["checked"] == "audited"
    assert "which samples support and no proof covers" in found["reasons"][0]


def test_contract_sees_if_whole_reports_are_described() -> None:
    assert describes_whole_reports(mechanism("randomized-response")(epsilon=1))
    assert not describes_whole_reports(lying.Bits(epsilon=1, answers_asked=5))
    assert not describes_whole_reports(lying.Number(epsilon=1, lower=0, upper=1))


@SLOW
def test_built_in_clients_are_exact_if_each_release_proves_them() -> None:
    coin = mechanism("randomized-response")
    shown = type(coin.__name__, (coin,), {"examples": ({"epsilon": 1},), "__module__": coin.__module__})
    assert certificate(shown, own=True)["checked"] == "exact"
    assert certificate(shown)["checked"] == "audited"


def test_contract_skips_a_mechanism_without_a_guarantee() -> None:
    flips = mechanism("d-bit-flip")(epsilon=1, buckets=4, bits=4, memoize=True, any_inputs=True)
    assert isinstance(flips.guarantee, Unbounded)
    for check in ("reports_say_no_more_than_described", "noise_is_used_once", "users_are_drawn_alone_as_together"):
        assert run(check, flips).verdict == SKIPPED


# -- the statistics -------------------------------------------------------------------------------------------


def rows(seed: int, users: int, chance: float = 0.3) -> Any:
    bits = np.random.default_rng(seed).random((users, 16)) < chance
    return np.packbits(bits, axis=1, bitorder="little")


@pytest.mark.slow
def test_samples_of_one_distribution_are_rarely_called_different() -> None:
    """Of 400 looks at honest samples none may come near 1e-5, and some must come below a tenth."""
    found = []
    for seed in range(400):
        evidence = Evidence()
        first, second = rows(2 * seed, 600), rows(2 * seed + 1, 300)
        compare_samples(evidence, first, second, "reports", 2)
        features = [np.unpackbits(each[:300], axis=1).astype(bool) for each in (first, second)]
        relate(evidence, features[0], features[1], "reports")
        found.append(evidence.p * evidence.tests)
    assert min(found) > LEAST_TWO_SAMPLE_P
    assert sum(p < 0.1 for p in found) in range(4, 80)


def test_tables_with_rare_outcomes_are_not_called_different() -> None:
    chance = np.random.default_rng(5)
    masses = np.array([0.9, 0.09, *([0.001] * 10)])
    for _ in range(300):
        evidence = Evidence()
        compare_counts(evidence, chance.multinomial(6000, masses), chance.multinomial(300, masses), "reports")
        assert not evidence.verdict()


def test_difference_of_any_three_bits_is_found() -> None:
    first, second = rows(1, 4000, 0.5), rows(2, 4000, 0.5)
    bits = np.unpackbits(second, axis=1, bitorder="little")
    bits[:, 11] = bits[:, 2] ^ bits[:, 7]
    for order, seen in ((2, False), (3, True)):
        evidence = Evidence()
        compare_samples(evidence, first, np.packbits(bits, axis=1, bitorder="little"), "reports", order)
        assert bool(evidence.verdict()) == seen
    assert "bits 2, 7, 11 together" in evidence.why
