"""The run of extreme parameters names a case that does not end, and continues."""

from __future__ import annotations

from corners import Parameters, run_all


def test_case_that_does_not_end_is_named_and_the_others_continue() -> None:
    cases: list[tuple[str, Parameters]] = [("oue", {"epsilon": 1, "domain_size": 2}), ("no such", {}), ("oue", {})]
    outcomes = [answer.outcome for *_, answer in run_all(cases)]
    assert outcomes == ["answered", "wrong", "refused"]
