"""The mechanism contract as pytest tests, for authors of mechanisms to inherit.

    from ldp_budget.testing import MechanismContract

    class TestMyMechanism(MechanismContract):
        mechanism = MyMechanism
        targets = [dict(epsilon=1, domain_size=7), dict(epsilon="0.2", domain_size=3)]

Every test runs once for each target. A test that cannot decide is skipped with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from . import contract

try:
    import pytest
except ImportError:
    raise ImportError("ldp_budget.testing needs pytest: pip install 'ldp-budget[testing]'") from None

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ldp_budget.sdk.mechanism import Mechanism

__all__ = ["MechanismContract"]


class MechanismContract:
    """Tests that every mechanism must pass. Subclasses set `mechanism`; their names begin with `Test`.

    `targets` are mappings of parameters to build the mechanism with; by default `contract.examples_of` it. The
    functions of `ldp_budget_verify.contract` that the tests call document the checks.
    """

    mechanism: ClassVar[type[Mechanism]]
    targets: ClassVar[Sequence[Mapping[str, Any]]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test once for each target."""
        if "target" in metafunc.fixturenames:
            targets = self.targets or contract.examples_of(self.mechanism)
            metafunc.parametrize("target", targets, ids=[_label(target) for target in targets])

    def check(self, name: str, target: Mapping[str, Any]) -> None:
        """Run one check of the contract. Skip the test if the check cannot decide."""
        mechanism = contract.made(self.mechanism, target)
        try:
            contract.CHECKS[name](mechanism)
        except contract.NotChecked as reason:
            pytest.skip(str(reason))

    def test_parameters_round_trip(self, target: Mapping[str, Any]) -> None:
        self.check("parameters_round_trip", target)

    def test_bad_parameters_are_refused(self, target: Mapping[str, Any]) -> None:
        self.check("bad_parameters_are_refused", target)

    def test_fingerprint_is_stable(self, target: Mapping[str, Any]) -> None:
        self.check("fingerprint_is_stable", target)

    def test_fingerprint_is_the_same_elsewhere(self, target: Mapping[str, Any]) -> None:
        self.check("fingerprint_is_the_same_elsewhere", target)

    def test_calibration_is_safe(self, target: Mapping[str, Any]) -> None:
        self.check("calibration_is_safe", target)

    def test_guarantee_is_exact(self, target: Mapping[str, Any]) -> None:
        self.check("guarantee_is_exact", target)

    def test_audit_finds_no_more(self, target: Mapping[str, Any]) -> None:
        self.check("audit_finds_no_more", target)

    def test_memo_is_kept(self, target: Mapping[str, Any]) -> None:
        self.check("memo_is_kept", target)

    def test_many_reports_stay_within_the_cap(self, target: Mapping[str, Any]) -> None:
        self.check("many_reports_stay_within_the_cap", target)

    def test_client_matches_channel(self, target: Mapping[str, Any]) -> None:
        self.check("client_matches_channel", target)

    def test_reports_say_no_more_than_described(self, target: Mapping[str, Any]) -> None:
        self.check("reports_say_no_more_than_described", target)

    def test_reports_have_one_form(self, target: Mapping[str, Any]) -> None:
        self.check("reports_have_one_form", target)

    def test_reports_lie_on_their_grid(self, target: Mapping[str, Any]) -> None:
        self.check("reports_lie_on_their_grid", target)

    def test_users_are_drawn_alone_as_together(self, target: Mapping[str, Any]) -> None:
        self.check("users_are_drawn_alone_as_together", target)

    def test_noise_is_used_once(self, target: Mapping[str, Any]) -> None:
        self.check("noise_is_used_once", target)

    def test_program_draws_what_the_client_draws(self, target: Mapping[str, Any]) -> None:
        self.check("program_draws_what_the_client_draws", target)

    def test_program_law_is_the_channel(self, target: Mapping[str, Any]) -> None:
        self.check("program_law_is_the_channel", target)

    def test_seed_decides(self, target: Mapping[str, Any]) -> None:
        self.check("seed_decides", target)

    def test_bad_input_is_refused(self, target: Mapping[str, Any]) -> None:
        self.check("bad_input_is_refused", target)

    def test_unknown_values_do_not_leak(self, target: Mapping[str, Any]) -> None:
        self.check("unknown_values_do_not_leak", target)

    def test_inputs_are_left_alone(self, target: Mapping[str, Any]) -> None:
        self.check("inputs_are_left_alone", target)

    def test_no_users_no_reports(self, target: Mapping[str, Any]) -> None:
        self.check("no_users_no_reports", target)

    def test_estimator_is_unbiased(self, target: Mapping[str, Any]) -> None:
        self.check("estimator_is_unbiased", target)

    def test_aggregates_merge(self, target: Mapping[str, Any]) -> None:
        self.check("aggregates_merge", target)

    def test_reports_survive_the_file(self, target: Mapping[str, Any]) -> None:
        self.check("reports_survive_the_file", target)


def _label(target: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={value}" for name, value in target.items())
