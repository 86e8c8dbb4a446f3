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
    site_run(flower, tmp_path, 8)
    record = (tmp_path / "record.txt").read_text().splitlines()
    trained = [line for line in record if " train " in line]
    updates = [line for line in trained if "'arrays'" in line]
    # The killed run released two rounds; the other one five. Then the ledgers refused.
    assert len(updates) == 14
    assert len(trained) == 20
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
