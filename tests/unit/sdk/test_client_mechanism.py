"""What follows from fields and a client: calibration, guarantee, estimates with exact mean and variance."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget.errors import InvalidParameter, NotSupported, PluginError
from ldp_budget.guarantees import Pure
from ldp_budget.registry.plugins import check_mechanism
from ldp_budget.sampling import ONE
from ldp_budget.sdk.client_notation import FUNCTIONS
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.parameters import integer, real
from ldp_budget_verify.law import law_of
from ldp_budget_verify.law.all_outcomes import law
from short_plugins import HadamardResponse, ThreeValued, TickAll

where: Any = FUNCTIONS["where"]
onehot: Any = FUNCTIONS["onehot"]


def made(client: Callable[..., Any], **more: Any) -> Any:
    members = {"name": "made", "epsilon": real("loss", above=0), "domain_size": integer("answers", at_least=2)}
    return type("Made", (FrequencyMechanism,), {**members, "client": client, **more})


Grr = made(lambda self, value, draw: where(draw.coin(), value, draw.below(self.domain_size)))
Sue = made(lambda self, value, draw: onehot(value, self.domain_size) ^ draw.coins(self.domain_size) ^ 1)
Thrice = made(lambda self, value, draw: where(draw.coins(2), value, draw.belows(self.domain_size, 2)))

SMALL = {
    "hadamard": HadamardResponse(epsilon=1, domain_size=5),
    "three-valued": ThreeValued(epsilon="0.7"),
    "tick-all": TickAll(epsilon=2, options=3, shown=2),
    "grr": Grr(epsilon=1, domain_size=4),
    "sue": Sue(epsilon=1, domain_size=4),
    "two draws": Thrice(epsilon=2, domain_size=3),
}


@pytest.mark.parametrize("name", SMALL)
def test_coin_is_the_largest_threshold_within_epsilon(name: str) -> None:
    mechanism = SMALL[name]
    assert mechanism.coin is not None
    losses = [law_of(mechanism._program_at(mechanism.coin + more)).ratio for more in (0, 1)]
    assert losses[0] <= mechanism._most < losses[1]


def test_coin_of_randomized_response_is_the_known_one() -> None:
    grr = Grr(epsilon=1, domain_size=4)
    keep = Fraction(grr.coin, ONE) + (1 - Fraction(grr.coin, ONE)) / 4
    assert float(keep) == pytest.approx(np.e / (np.e + 3), abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_estimator_has_the_exact_mean_and_variance(name: str) -> None:
    mechanism = SMALL[name]
    layout = mechanism.client_program().report
    for value in range(mechanism.domain.size):
        rows = law(mechanism.client_program(), value)
        reports = np.frombuffer(b"".join(rows), layout["dtype"]).reshape(len(rows), *layout["shape"])
        likely = np.array([float(p) for p in rows.values()])
        worths = mechanism.contributions(reports)
        counts = [mechanism.estimate(reports[place : place + 1]).counts for place in range(len(rows))]
        np.testing.assert_allclose(worths, counts, atol=1e-9)
        np.testing.assert_allclose(likely @ worths, mechanism.held([value])[0], atol=1e-9)
        variance = likely @ worths**2 - (likely @ worths) ** 2
        cumulants, held = mechanism.contribution_law, mechanism.held([value])[0]
        stated = np.where(held, cumulants.held, cumulants.other)
        assert (variance <= stated + 1e-9).all()
        if mechanism._estimator is None:
            np.testing.assert_allclose(variance, stated, rtol=1e-9)
            third = likely @ (worths - held) ** 3
            np.testing.assert_allclose(third, np.where(held, cumulants.held_third, cumulants.other_third), atol=1e-8)


@pytest.mark.parametrize("name", SMALL)
def test_aggregate_of_parts_gives_the_estimate_of_all(name: str) -> None:
    mechanism = SMALL[name]
    reports = mechanism.randomize(np.arange(60) % mechanism.domain.size, rng=3)
    total = mechanism.aggregate(reports[:20]).merge(mechanism.aggregate(reports[20:]))
    np.testing.assert_array_equal(mechanism.estimate(total).counts, mechanism.estimate(reports).counts)
    low, high = mechanism.estimate(reports).interval()
    assert (low <= np.clip(mechanism.estimate(reports).counts, 0, 60)).all()
    assert (high >= np.clip(mechanism.estimate(reports).counts, 0, 60)).all()


def test_consistent_counts_of_options_do_not_add_up() -> None:
    mechanism = SMALL["tick-all"]
    estimate = mechanism.estimate(mechanism.randomize([7] * 5000, rng=1), consistent=True)
    np.testing.assert_allclose(estimate.shares, 1, atol=0.2)


@pytest.mark.parametrize(
    ("name", "report"),
    [("hadamard", [8]), ("three-valued", [3]), ("tick-all", [[0, 1]]), ("tick-all", [[0, 6]]), ("sue", [[16]])],
)
def test_report_that_no_client_sends_is_refused(name: str, report: list[Any]) -> None:
    with pytest.raises(NotSupported):
        SMALL[name].aggregate(np.array(report, SMALL[name].client_program().report["dtype"]))


def test_many_answers_are_proved_without_a_list() -> None:
    mechanism = HadamardResponse(epsilon=1, domain_size=1000)
    assert mechanism.guarantee.epsilon == 1
    assert ldp_budget.verify(mechanism).verdict == "holds"


@pytest.mark.slow
def test_too_many_answers_for_a_proof_name_a_number_that_is_proved() -> None:
    def client(self: Any, value: Any, draw: Any) -> Any:
        return where(draw.coin(), value * value % self.domain_size, draw.below(self.domain_size))

    with pytest.raises(
        NotSupported, match=r"no rule proves made with 1,000,003 answers; with domain_size = \d+ it is"
    ):
        _ = made(client)(epsilon=1, domain_size=1_000_003).guarantee


def leak(self: Any, value: Any, draw: Any) -> Any:
    return where(draw.bit(2**63), value, draw.below(self.domain_size))


def test_client_that_loses_too_much_is_refused_with_the_pair_the_report_and_the_loss() -> None:
    mechanism = made(leak)(epsilon=1, domain_size=4)
    with pytest.raises(PluginError, match="does not call") as caught:
        _ = mechanism.guarantee
    assert len(caught.value.evidence["pair"]) == 2
    assert caught.value.evidence["loss"] == pytest.approx(np.log(5))
    with pytest.raises(PluginError):
        mechanism.randomize([0])


def test_client_that_sends_the_answer_has_no_bounded_loss() -> None:
    for client in (lambda self, value, draw: value, lambda self, value, draw: where(draw.coin(), value, value + 1)):
        with pytest.raises(PluginError, match="unbounded") as caught:
            _ = made(client)(epsilon=1, domain_size=4).guarantee
        assert caught.value.evidence["loss"] is None


def test_client_that_ignores_the_answer_is_refused() -> None:
    for client in (lambda self, value, draw: draw.below(4), lambda self, value, draw: draw.coin()):
        with pytest.raises(PluginError, match="do not depend on the answer"):
            _ = made(client)(epsilon=1, domain_size=4).guarantee


def test_epsilon_that_no_threshold_reaches_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be a loss that a 64-bit probability"):
        _ = Grr(epsilon="1e-25", domain_size=4).guarantee


def test_coin_without_epsilon_is_refused() -> None:
    kind = made(lambda self, value, draw: where(draw.coin(), value, draw.below(4)), epsilon=None)
    with pytest.raises(PluginError, match="has no epsilon"):
        _ = kind(domain_size=4).guarantee


def test_client_with_its_own_thresholds_has_the_derived_guarantee() -> None:
    kind = made(lambda self, value, draw: where(draw.bit(ONE // 4), value, draw.below(4)), epsilon=None)
    assert kind(domain_size=4).guarantee.epsilon == pytest.approx(np.log(7 / 3))


def test_declared_guarantee_below_the_law_is_violated() -> None:
    guarantee = property(lambda self: Pure(self.epsilon / 2))
    kind = made(lambda self, value, draw: where(draw.coin(), value, draw.below(4)), guarantee=guarantee)
    assert ldp_budget.verify(kind(epsilon=1, domain_size=4)).verdict == "violated"


def test_class_without_a_number_of_answers_is_refused() -> None:
    kind = made(lambda self, value, draw: where(draw.coin(), value, draw.below(4)), domain_size=None)
    with pytest.raises(PluginError, match="does not say how many answers"):
        _ = kind(epsilon=1).guarantee


@pytest.mark.parametrize("field", ["coin", "support", "contributions", "guarantee", "domain"])
def test_field_that_hides_a_hook_is_refused(field: str) -> None:
    kind = made(lambda self, value, draw: value, **{field: integer("a field")})
    with pytest.raises(PluginError, match="hides an attribute"):
        check_mechanism(kind, frozenset())
