"""`inbox seal` warns if reports carry a number of their user that too few users share."""

from __future__ import annotations

from typing import Any

import pytest

import ldp_budget
from ldp_budget.registry.collections import Collection
from ldp_budget_surveys.commands.collection import warn_of_pseudonyms

LOLOHA = {"epsilon_lifetime": 2, "epsilon_first": 1, "domain_size": 9}
BLOOM = {"bits": 16, "hashes": 1, "epsilon": 1, "epsilon_lifetime": 2}


@pytest.mark.parametrize(
    ("name", "options", "reports", "group", "option"),
    [
        ("loloha", LOLOHA, 10_000, None, "--hashes 500"),
        ("loloha", {**LOLOHA, "hashes": 501}, 10_000, None, "--hashes 500"),
        ("loloha", {**LOLOHA, "hashes": 500}, 10_000, None, ""),
        ("loloha", {**LOLOHA, "hashes": 500}, 10_000, 50, "--hashes 200"),
        ("loloha", {**LOLOHA, "hashes": 1}, 20, None, ""),
        ("rappor", {**BLOOM, "cohorts": 64}, 100, None, "--cohorts 5"),
        ("rappor", {**BLOOM, "cohorts": 64, "any_inputs": True}, 100, None, ""),
        ("oue", {"epsilon": 1, "domain_size": 3}, 20, None, ""),
    ],
)
def test_seal_warns_where_fewer_than_a_group_share_a_number(
    name: str,
    options: dict[str, Any],
    reports: int,
    group: int | None,
    option: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    warn_of_pseudonyms(Collection("word", ldp_budget.mechanism(name)(**options)), reports, group)
    told = capsys.readouterr().err
    assert (option in told) if option else not told
