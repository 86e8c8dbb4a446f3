"""The tiers of tests: each test file is in one, and a part of a run is always the same."""

from __future__ import annotations

import argparse

import pytest

from tiers import TESTS, TIERS, part, part_of, tier_of, tiers_of


def test_tier_of_every_test_file_is_its_folder() -> None:
    files = list(TESTS.rglob("test_*.py"))
    assert len(files) > 200
    assert [file for file in files if tier_of(file) is None] == []
    assert {tier_of(file) for file in files} == set(TIERS)


def test_tier_outside_the_three_folders_is_none() -> None:
    assert tier_of(TESTS / "helpers") is tier_of(TESTS) is tier_of(TESTS.parent) is None


def test_slow_unit_test_runs_with_the_integration_tests_and_by_its_path(request: pytest.FixtureRequest) -> None:
    assert tiers_of(request.node) == {"unit"}
    request.node.add_marker(pytest.mark.slow)
    assert tiers_of(request.node) == {"integration", "slow"}
    request.node.add_marker(pytest.mark.exhaustive)
    assert tiers_of(request.node) == {"exhaustive"}


def test_part_of_a_run_has_about_its_share_of_the_names() -> None:
    names = [f"tests/unit/test_x.py::test_{number}" for number in range(6_000)]
    sizes = [sum(part_of(name, 6) == each for name in names) for each in range(1, 7)]
    assert sum(sizes) == 6_000
    assert all(800 < size < 1_200 for size in sizes)


def test_part_of_a_test_name_is_stable() -> None:
    assert [part_of(name, 6) for name in ("a", "b", "c")] == [4, 6, 4]


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "a/b", "1/0", "-1/2"])
def test_part_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="1/4"):
        part(text)


def test_part_of_i_of_n_is_read_as_two_numbers() -> None:
    assert part("2/6") == (2, 6)
