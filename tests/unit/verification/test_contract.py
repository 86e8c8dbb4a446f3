"""The contract of mechanisms, checked for the built-in ones; `ldp-budget mechanisms` shows them as checked for it.

The strict form of what a plugin's author inherits: nothing is skipped here. What cannot be checked of a mechanism is
named in `unchecked`, and then it must be so.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from ldp_budget import mechanism, mechanisms
from ldp_budget.guarantees import OneSided
from ldp_budget.registry.certification import PROVED_RANGES
from ldp_budget.registry.plugins import registry
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget_verify import contract
from ldp_budget_verify.contract import CHECKS, NotChecked, examples_of, made
from ldp_budget_verify.testing import MechanismContract
from random_mechanisms import DRAWS, random_mechanisms

MEMO = {"memo_is_kept", "many_reports_stay_within_the_cap"}
CALIBRATED = {"calibration_is_safe"}
LISTED = {"program_law_is_the_channel"}
"""The mechanisms with draws whose outcomes can all be listed."""
ESTIMATED = {"estimator_is_unbiased"}
"""The mechanisms that list the words they find, with a count for no other word."""
UNIT = {"lower": 0, "upper": 1}


@pytest.mark.some(9)
class BuiltIn(MechanismContract):
    unchecked: ClassVar[set[str]] = MEMO

    def check(self, name: str, target: Mapping[str, Any]) -> None:
        instance = made(self.mechanism, target)
        if name in self.unchecked:
            with pytest.raises(NotChecked):
                CHECKS[name](instance)
        else:
            CHECKS[name](instance)

    # These take most of the time; `.ci/run` runs them. Each mechanism's own tests look at its estimates, too; what
    # its program draws is in `test_program_laws`, and what it promises in `test_verification`.
    @pytest.mark.exhaustive
    def test_guarantee_is_exact(self, target: Mapping[str, Any]) -> None:
        super().test_guarantee_is_exact(target)

    @pytest.mark.exhaustive
    def test_client_matches_channel(self, target: Mapping[str, Any]) -> None:
        super().test_client_matches_channel(target)

    @pytest.mark.exhaustive
    def test_program_law_is_the_channel(self, target: Mapping[str, Any]) -> None:
        super().test_program_law_is_the_channel(target)

    @pytest.mark.exhaustive
    def test_audit_finds_no_more(self, target: Mapping[str, Any]) -> None:
        super().test_audit_finds_no_more(target)

    @pytest.mark.exhaustive
    def test_many_reports_stay_within_the_cap(self, target: Mapping[str, Any]) -> None:
        super().test_many_reports_stay_within_the_cap(target)

    @pytest.mark.exhaustive
    def test_fingerprint_is_the_same_elsewhere(self, target: Mapping[str, Any]) -> None:
        super().test_fingerprint_is_the_same_elsewhere(target)

    @pytest.mark.exhaustive
    def test_estimator_is_unbiased(self, target: Mapping[str, Any]) -> None:
        super().test_estimator_is_unbiased(target)

    @pytest.mark.exhaustive
    def test_calibration_is_safe(self, target: Mapping[str, Any]) -> None:
        super().test_calibration_is_safe(target)

    @pytest.mark.exhaustive
    def test_reports_say_no_more_than_described(self, target: Mapping[str, Any]) -> None:
        super().test_reports_say_no_more_than_described(target)

    @pytest.mark.exhaustive
    def test_users_are_drawn_alone_as_together(self, target: Mapping[str, Any]) -> None:
        super().test_users_are_drawn_alone_as_together(target)

    @pytest.mark.exhaustive
    def test_noise_is_used_once(self, target: Mapping[str, Any]) -> None:
        super().test_noise_is_used_once(target)


class OneOfAKind(BuiltIn):
    """The mechanisms that represent others in the shorter run, with their proof and their client together."""

    def test_guarantee_is_exact(self, target: Mapping[str, Any]) -> None:
        self.check("guarantee_is_exact", target)

    def test_client_matches_channel(self, target: Mapping[str, Any]) -> None:
        self.check("client_matches_channel", target)


class TestGaussian(BuiltIn):
    mechanism = mechanism("gaussian")
    targets = ({"epsilon": 1, "delta": "1e-6", "method": "exact", "lower": "-2.5", "upper": 4},)


class TestLaplace(OneOfAKind):
    mechanism = mechanism("laplace")
    targets = ({"epsilon": "0.7", **UNIT},)


class TestStaircase(BuiltIn):
    mechanism = mechanism("staircase")
    unchecked = MEMO
    targets = ({"epsilon": 2, "lower": -1, "upper": 1},)


class TestBoundedLaplace(BuiltIn):
    mechanism = mechanism("bounded-laplace")
    unchecked = MEMO
    targets = ({"epsilon": 1, "lower": 10, "upper": 20},)


class TestBoundedStaircase(BuiltIn):
    mechanism = mechanism("bounded-staircase")
    unchecked = MEMO
    targets = ({"epsilon": 1, **UNIT},)


class TestRandomizedResponse(OneOfAKind):
    mechanism = mechanism("randomized-response")
    targets = ({"epsilon": "0.3"},)


class TestUnaryEncoding(BuiltIn):
    mechanism = mechanism("unary-encoding")
    targets = ({"p": "0.6", "q": "0.2", "domain_size": 9},)
    unchecked = MEMO | CALIBRATED


class TestSymmetricUnaryEncoding(BuiltIn):
    mechanism = mechanism("sue")
    targets = ({"epsilon": 1, "domain_size": 7},)


class TestOptimizedUnaryEncoding(OneOfAKind):
    mechanism = mechanism("oue")
    targets = ({"epsilon": 1, "domain_size": 7},)


class TestRandomSubstitution(OneOfAKind):
    mechanism = mechanism("random-substitution")
    targets = (
        {"epsilon": 1, "domain_size": 5, "draws": 2},
        {"epsilon": 1, "domain_size": 6, "draws": 3, "sampling": "distinct", "ordered": True},
    )


class TestSubsetSelection(BuiltIn):
    mechanism = mechanism("subset-selection")
    targets = ({"epsilon": 1, "domain_size": 7},)


@pytest.mark.slow
class TestProjectiveGeometryResponse(OneOfAKind):
    mechanism = mechanism("pgr")
    targets = ({"epsilon": 1, "domain_size": 40}, {"epsilon": 3, "domain_size": 12})


class TestMatrixSubstitution(BuiltIn):
    mechanism = mechanism("matrix-substitution")
    targets = ({"matrix": [["0.5", "0.25"], ["0.25", "0.5"], ["0.25", "0.25"]]},)
    unchecked = MEMO | CALIBRATED


class TestCountMeanSketch(BuiltIn):
    mechanism = mechanism("cms")
    targets = ({"epsilon": 2, "hashes": 8, "width": 8, "domain_size": 4},)


class TestHadamardCountMeanSketch(BuiltIn):
    mechanism = mechanism("hcms")
    targets = ({"epsilon": 2, "hashes": 8, "width": 8, "domain_size": 4},)


@pytest.mark.slow
class TestLoloha(OneOfAKind):
    mechanism = mechanism("loloha")
    targets = ({"epsilon_lifetime": 2, "epsilon_first": "0.5", "domain_size": 6, "hashes": 8},)
    unchecked = CALIBRATED


class TestHeavyHitters(OneOfAKind):
    mechanism = mechanism("heavy-hitters")
    targets = ({"epsilon": 2, "length": 2, "hashes": 8},)
    unchecked = MEMO | ESTIMATED


class TestOneBitMean(BuiltIn):
    mechanism = mechanism("one-bit-mean")
    targets = ({"epsilon": 1, "maximum": 10},)


@pytest.mark.slow
class TestMemoisedOneBitMean(BuiltIn):
    mechanism = mechanism("one-bit-mean")
    targets = ({"epsilon": 1, "maximum": 10, "rounding": 5, "flip": "0.2"},)
    unchecked = LISTED


class TestHybrid(OneOfAKind):
    mechanism = mechanism("hybrid")
    targets = ({"epsilon": 2, "lower": -3, "upper": 5},)


class TestSquareWave(BuiltIn):
    mechanism = mechanism("square-wave")
    targets = ({"epsilon": 1, **UNIT},)


class TestRoundedResponse(BuiltIn):
    mechanism = mechanism("rounded-response")
    targets = ({"epsilon": 3, **UNIT},)
    unchecked = MEMO | LISTED


class TestRandomThreshold(BuiltIn):
    mechanism = mechanism("random-threshold")
    targets = ({"epsilon": 1, **UNIT}, {"epsilon": 2, "lower": 10, "upper": 5000, "scale": "log"})


class TestLocalHashing(BuiltIn):
    mechanism = mechanism("olh")
    targets = ({"epsilon": 1, "domain_size": 9, "functions": 4},)


class TestGrid(BuiltIn):
    mechanism = mechanism("grid")
    targets = ({"epsilon": 2, "items": 3, "domain_size": 3}, {"epsilon": 4, "items": 3, "domain_size": 2})


class TestTicks(BuiltIn):
    mechanism = mechanism("ticks")
    targets = ({"epsilon": 2, "domain_size": 7, "at_most": 2}, {"epsilon": 1, "domain_size": 5})


class TestDBitFlip(BuiltIn):
    mechanism = mechanism("d-bit-flip")
    targets = ({"epsilon": 1, "buckets": 6, "bits": 3},)


@pytest.mark.slow
class TestMemoisedDBitFlip(OneOfAKind):
    mechanism = mechanism("d-bit-flip")
    targets = (
        {"epsilon": 1, "buckets": 4, "bits": 4, "memoize": True},
        {"epsilon": 1, "buckets": 6, "bits": 3, "memoize": True},
    )
    unchecked: ClassVar[set[str]] = set()


class TestRappor(BuiltIn):
    mechanism = mechanism("rappor")
    targets = (
        {"bits": 8, "hashes": 1, "cohorts": 2, "epsilon": "0.5", "epsilon_lifetime": 1, "domain_size": 3, "seed": 1},
    )
    unchecked = LISTED


# -- the whole of it ------------------------------------------------------------------------------------------


def test_contract_cases_include_every_built_in_mechanism() -> None:
    held = {cls.mechanism for cls in (*BuiltIn.__subclasses__(), *OneOfAKind.__subclasses__()) if cls != OneOfAKind}
    own = {cls for cls, plugin in registry().items() if plugin.own and cls.checkable}
    # The contract draws no vectors, and a guarantee without an ε has tests of its own.
    assert own - held == {mechanism("discrete-gaussian"), mechanism("one-sided")}
    assert held < own


def test_contract_checks_and_tests_agree() -> None:
    tests = {name[5:] for name, _ in inspect.getmembers(MechanismContract) if name.startswith("test_")}
    assert tests == set(CHECKS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("cls", [cls for cls in mechanisms() if cls.name in PROVED_RANGES], ids=lambda cls: cls.name)
def test_contract_finds_parameters_by_trying(cls: type[Mechanism]) -> None:
    examples = examples_of(cls)
    assert len(examples) >= 2
    assert examples == examples_of(cls)
    for parameters in examples:
        instance = made(cls, parameters)
        # Good ones: with a bounded loss, or a bounded η, a client and a server.
        assert instance.guarantee.loss() is not None or isinstance(instance.guarantee, OneSided)
        assert contract.run("aggregates_merge", instance).verdict == contract.PASSED


@pytest.mark.exhaustive
@pytest.mark.parametrize("cls", [cls for cls in mechanisms() if cls.name in PROVED_RANGES], ids=lambda cls: cls.name)
def test_contract_holds_at_parameters_found_by_trying(cls: type[Mechanism]) -> None:
    for parameters in examples_of(cls):
        results = contract.run_all(made(cls, parameters))
        assert [result for result in results if result.verdict == contract.FAILED] == [], parameters


SMALL = 10_000  # answers


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", DRAWS)
def test_clients_draw_their_description_at_random_settings(name: str) -> None:
    drawn = random_mechanisms(name, 8, seed=4)
    small = [each for each in drawn if (getattr(each, "domain_size", None) or 0) < SMALL]
    for instance in small[:3]:
        assert contract.run("client_matches_channel", instance).verdict != contract.FAILED, instance


@pytest.mark.exhaustive
def test_contract_skips_bias_of_an_estimate_that_selects_answers() -> None:
    # Two bits cannot tell 32 answers apart: the lasso has to choose among them.
    coarse = {"bits": 2, "hashes": 1, "cohorts": 5, "epsilon": "0.3", "epsilon_lifetime": "0.6", "domain_size": 32}
    pytest.importorskip("sklearn", reason="no sklearn: pip install 'ldp-budget[interop]'")
    found = contract.run("estimator_is_unbiased", mechanism("rappor")(**coarse))
    assert (found.verdict, found.why) == (
        contract.SKIPPED,
        "a SelectedEstimate does not say that it is unbiased",
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "hashes", "width"), [("cms", 1, 2), ("hcms", 2, 2), ("cms", 1, 4)])
def test_contract_holds_for_a_sketch_of_a_handful_of_cells(name: str, hashes: int, width: int) -> None:
    """These stated too small errors: on average 0.74 of the variance with two functions of two cells."""
    sketch = mechanism(name)(epsilon=5, hashes=hashes, width=width, domain_size=5)
    contract.CHECKS["estimator_is_unbiased"](sketch)
