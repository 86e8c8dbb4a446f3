"""docs/tutorials/examples/ldp-budget-piecewise, the numeric example plugin, installed and used by commands."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from example_machines import Machine, copied, installed

TARGET = ("piecewise", "--epsilon", "1", "--lower", "0", "--upper", "100")
STANDARD_ERRORS = 4.5


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied("ldp-budget-piecewise", tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def machine(source: Path, programs: str, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return installed(source, tmp_path_factory.mktemp("machine"), programs)


@pytest.mark.exhaustive
def test_numeric_plugin_own_tests_pass(machine: Machine, source: Path) -> None:
    # The contract is checked below, by `plugin check`.
    chosen = ("-k", "not TestContract")
    told = machine.python("-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, "tests", cwd=source)
    assert " passed" in told
    assert " failed" not in told


@pytest.mark.exhaustive
def test_numeric_plugin_calibrated_has_less_variance_than_laplace(machine: Machine) -> None:
    calibrated = machine.ldp_budget("calibrate", *TARGET, "--users", "10000")
    assert calibrated["guarantee"]["kind"] == "symmetric-pair"
    assert calibrated["guarantee"]["epsilon"] == 1.0
    laplace = machine.ldp_budget("calibrate", "laplace", *TARGET[1:], "--users", "10000")
    # The paper's figures 1 and 2: below Laplace everywhere, and lowest in the middle.
    assert calibrated["utility"]["mse"]["upper"] < laplace["utility"]["mse"]["upper"]
    assert calibrated["utility"]["mse"]["centre"] < 0.8 * calibrated["utility"]["mse"]["upper"]
    assert calibrated["utility"]["bias"] == {"lower": 0.0, "centre": 0.0, "upper": 0.0}


def test_numeric_plugin_runs_a_survey_from_agreement_to_estimate(machine: Machine) -> None:
    users, rows = 3000, []
    for number in range(users):
        rows.append((f"p{number}", number * 37 % 101))
    with open(machine.folder / "ages.csv", "w", newline="") as file:
        csv.writer(file).writerows([("person", "age"), *rows])
    machine.ldp_budget("policy", "set", "default", "--limit", "lifetime=1.5")
    machine.ldp_budget("collection", "add", "ages", *TARGET)
    columns = ("--column", "age", "--user-column", "person")
    released = machine.ldp_budget("randomize", "ages", "ages.csv", *columns, "--out", "out", "--spend")
    assert (released["reports"], released["refused"]) == (users, 0)
    estimated = machine.ldp_budget("estimate", "ages", "out")
    truth = sum(age for _, age in rows) / users
    assert abs(estimated["mean"] - truth) <= STANDARD_ERRORS * estimated["std_error"]
    assert machine.ldp_budget("ledger", "verify")["ok"]
