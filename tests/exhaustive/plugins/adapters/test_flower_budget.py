"""Flower with the budget of a ledger, in simulations of the real library: leaks, kills, restarts, concurrent runs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from federated_environment import PARTS, ROOT, Environment
from ldp_budget import Accountant


@pytest.fixture(scope="module")
def flower(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("flower"), f"{ROOT}[flower]", "flwr[simulation]>=1.40")


def site_run(flower: Environment, folder: Path, rounds: int, **more: str) -> subprocess.CompletedProcess[str]:
    env = {"FOLDER": str(folder), "RECORD": str(folder / "record.txt"), "ROUNDS": str(rounds), **more}
    return flower.run("python", PARTS / "flower_site.py", env=env, check=False, timeout=240)


def charges(ledger: Path, user: str) -> int:
    with Accountant(ledger, create=False) as accountant:
        assert accountant.verify().ok
        state = accountant.balance(user).limits[0]
        assert state.spent.rho is not None
        assert state.capacity.rho is not None
        assert state.spent.rho <= state.capacity.rho
        return len(accountant.history(user))


UPDATE = re.compile(r"\d+ train \{'arrays': \{'w': array\(\[.*\], *dtype=float32\)\}, .*\}")


def test_site_mod_lets_nothing_but_charged_noise_leave(flower: Environment, tmp_path: Path) -> None:
    for site in ("site-0", "site-1"):
        flower.ledger(tmp_path / f"{site}.db", "lifetime=3,1e-6,zcdp")  # seven updates at ε = 1
    killed = site_run(flower, tmp_path, 9, KILL="2")
    assert killed.returncode == -9
    before = (tmp_path / "record.txt").read_text().count("'arrays'")
    site_run(flower, tmp_path, 8)
    record = (tmp_path / "record.txt").read_text().splitlines()
    trained = [line for line in record if " train " in line]
    updates = [line for line in trained if "'arrays'" in line]
    # Each ledger has room for seven. What the killed run did not release the other one did, in eight rounds of two sites.
    assert len(updates) == 14
    assert len(trained) == before + 16
    assert [charges(tmp_path / f"{site}.db", site) for site in ("site-0", "site-1")] == [7, 7]
    for line in updates:
        assert UPDATE.fullmatch(line), line
        assert "'metrics': {'num-examples': 1}, 'config': {}" in line
        assert all(abs(float(number)) < 400 for number in re.findall(r"-?\d+\.\d*", line))
    assert len({line.split(" ", 2)[2] for line in record if line not in updates}) == 2  # two errors, both constant
    assert "777" not in "".join(line for line in record if line not in updates)
    assert not any("secret" in line or "nan" in line for line in record)


def test_accountant_charges_before_a_round_and_outlives_the_process(flower: Environment, tmp_path: Path) -> None:
    ledger = flower.ledger(tmp_path / "cohort.db", "lifetime=6,1e-6,gdp")  # μ² = 1.43, and 0.25 a round
    env = {"LEDGER": str(ledger)}

    def start(rounds: int) -> subprocess.Popen[str]:
        script = [str(flower.bin / "python"), str(PARTS / "flower_cohort.py")]
        here: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(script, env={**flower.env, **env, "ROUNDS": str(rounds)}, **here)

    runs = [start(3), start(3)]
    said = [run.communicate(timeout=240)[0] for run in runs]
    last = start(1).communicate(timeout=240)[0]
    assert "PrivacyBudgetExhausted" in last
    with Accountant(ledger, create=False) as accountant:
        assert accountant.verify().ok
        assert len(accountant.history("cohort")) == 5
        spent = accountant.balance("cohort").limits[0].spent.epsilon
    assert spent is not None
    assert 5 < spent <= 6
    found = [json.loads(f"[{', '.join(line.split()[1:])}]") for line in last.splitlines() if line.startswith("SPENT")]
    assert found[0][0] == 5
    assert found[0][1] == spent < found[0][2]
    released = sum(text.count("Privacy spent: epsilon") for text in said)
    assert released >= 4


ASKED = """
import sys
from flwr.serverapp import GaussianPrivacyEvent
from ldp_budget import BudgetExceeded
from ldp_budget_adapters.flower import LedgerAccountant
backend = LedgerAccountant(ledger=sys.argv[1], user="cohort")
event = GaussianPrivacyEvent(4.0, 2, 10)
print(backend.would_exceed(event, max_epsilon=1.0), backend.num_releases, backend.would_exceed(event, max_epsilon=2.5))
print(backend.would_exceed(event, count=5), backend.num_releases, backend.would_exceed(event, count=4))
backend.compose(event, count=5)
try:
    backend.compose(event)
except BudgetExceeded:
    print("refused", backend.num_releases, backend.get_delta(5.9) <= 1e-6 < 1.0 == backend.get_delta(1.0))
"""


def test_accountant_answers_as_flowers_protocol_asks(flower: Environment, tmp_path: Path) -> None:
    ledger = flower.ledger(tmp_path / "cohort.db", "lifetime=6,1e-6,gdp")  # five rounds
    done = flower.run("python", "-c", ASKED, ledger)
    assert done.stdout.splitlines() == ["True 0 False", "True 1 False", "refused 2 True"]


@pytest.mark.parametrize("limit", ["lifetime=6,1e-6", "day=6,1e-6,gdp"])
def test_accountant_without_a_limit_for_gaussian_noise_does_not_start(
    flower: Environment, tmp_path: Path, limit: str
) -> None:
    flower.run("ldp-budget", "--ledger", tmp_path / "c.db", "ledger", "init")
    more = ["--unbounded"] if limit.startswith("day") else []
    flower.run("ldp-budget", "--ledger", tmp_path / "c.db", "policy", "set", "default", "--limit", limit, *more)
    done = flower.run("python", "-c", ASKED, tmp_path / "c.db", check=False)
    assert "a policy with a lifetime limit under gdp, zcdp or renyi" in done.stderr
