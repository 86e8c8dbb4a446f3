"""NVFlare with the budget filter of a site, as real processes: leaks, `kill -9`, concurrent jobs, refusal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from federated_environment import PARTS, ROOT, Environment, kill_all_of, one_federation
from ldp_budget import Accountant

SITES = ("site-1", "site-2")
ADMITTED = 12
"""Updates at ε = 1 and δ = 1e-6 that a lifetime limit of ε = 4 under zcdp admits."""


class Federation:
    """A server and two sites in folders of their own, each a process group."""

    def __init__(self, flare: Environment, folder: Path) -> None:
        self.flare, self.folder, self.running = flare, folder, dict[str, subprocess.Popen[bytes]]()
        env = {"NVFLARE_POC_WORKSPACE": str(folder / "poc")}
        flare.run("nvflare", "poc", "prepare", "-n", "2", input="y\n", env=env, timeout=120)
        (self.kits,) = (folder / "poc").glob("*/prod_00")
        for site in SITES:
            flare.ledger(self.ledger(site), "lifetime=4,1e-6,zcdp")
            terms = {
                "ledger": str(self.ledger(site)),
                "user": site,
                "norm_bound": "1",
                "epsilon": "1",
                "delta": "1e-6",
            }
            budget = {"path": "ldp_budget_adapters.nvflare.BudgetFilter", "direction": "out", "args": terms}
            scope = {"name": "budgeted", "properties": {}, "task_result_filters": [budget]}
            privacy = {"scopes": [scope], "default_scope": "budgeted"}
            (self.kits / site / "local" / "privacy.json").write_text(json.dumps(privacy))

    def ledger(self, site: str) -> Path:
        return self.folder / f"{site}.db"

    def start(self, *names: str) -> None:
        for name in names:
            kit = self.kits / name
            with open(self.folder / f"{name}.log", "ab") as log:
                command = ["bash", str(kit / "startup" / "sub_start.sh"), "--once"]
                here = subprocess.Popen(
                    command, cwd=kit, env=self.flare.env, stdout=log, stderr=log, start_new_session=True
                )
            self.running[name] = here
            time.sleep(5 if name == "server" else 0)

    def kill(self, name: str) -> None:
        """Kill a process and those that it started."""
        process = self.running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kill_all_of(self.kits / name)  # a job is a session of its own, which names the folder of the kit

    def job(self, name: str, rounds: int) -> Path:
        self.flare.run("python", PARTS / "make_job.py", self.folder, name, rounds, self.record, cwd=PARTS)
        return self.folder / name

    @property
    def record(self) -> Path:
        return self.folder / "record.txt"

    def submit(self, *jobs: Path) -> subprocess.Popen[str]:
        command = [str(self.flare.bin / "python"), str(PARTS / "submit.py"), str(self.kits / "admin@nvidia.com")]
        return subprocess.Popen([*command, *map(str, jobs)], env=self.flare.env, stdout=subprocess.PIPE, text=True)

    def charges(self, site: str) -> int:
        with Accountant(self.ledger(site), create=False) as accountant:
            assert accountant.verify().ok
            return len(accountant.history(site))


@pytest.fixture(scope="module")
def flare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("nvflare"), f"{ROOT}[nvflare]")


@pytest.fixture
def federation(flare: Environment, tmp_path: Path) -> Iterator[Federation]:
    made = Federation(flare, tmp_path)
    with one_federation():
        made.start("server", *SITES)
        time.sleep(10)
        yield made
        for name in list(made.running):
            made.kill(name)


UPDATE = re.compile(
    r"\{'DXO': \{'kind': <DataKind\.WEIGHT_DIFF: .*>, "
    r"'data': \{'numpy_key': array\(\[(.*)\], *dtype=float32\)\}, 'meta': \{\}\}\}"
)


def test_filter_lets_nothing_but_charged_noise_leave(federation: Federation) -> None:
    """The job sends 777.125 as NaN, names, shapes, full weights, metrics, meta, an error, a header, by a late filter, …"""
    done, _ = federation.submit(federation.job("leaks", 7)).communicate(timeout=240)
    assert done.splitlines()[-1].startswith("FINISHED:COMPLETED")
    record = federation.record.read_text().splitlines()
    assert len(record) == 14  # and no message
    assert all("__identity_name__" in line for line in record)  # the properties that go with a result
    assert not any("777.125" in line or "secret" in line for line in record)
    assert [federation.charges(site) for site in SITES] == [7, 7]
    for line in record:
        numbers = UPDATE.search(line)
        assert numbers is not None, line
        assert all(abs(float(number)) < 150 for number in numbers[1].split(","))
    more = federation.record.with_name(f"{federation.record.name}.more").read_text()
    assert [more.count(kind) for kind in ("REPLIES", "ERRORS")] == [14, 14]
    assert "OWN __job_heartbeat__" in more
    assert "OWN __task_check__" in more
    assert "777.125" not in more, "replies, messages of the runner, what administrators read"
    received = [path for path in (federation.kits / "server").rglob("*") if path.is_file()]
    assert not [path for path in received if b"777.125" in path.read_bytes() and "custom" not in path.parts]
    errors = [path for site in SITES for path in (federation.kits / site).rglob("error_log.txt")]
    assert errors
    assert not any(b"777.125" in path.read_bytes() for path in errors)


def test_filter_never_overdraws_with_two_jobs_and_a_killed_site(federation: Federation) -> None:
    jobs = [federation.job(name, 5) for name in ("one", "two")]
    waiting = federation.submit(*jobs)
    deadline = time.monotonic() + 120
    while federation.charges("site-1") < 3 and time.monotonic() < deadline:
        time.sleep(0.2)
    federation.kill("site-1")
    before = federation.charges("site-1")
    assert 3 <= before <= ADMITTED
    federation.start("site-1")
    time.sleep(10)
    waiting.terminate()
    waiting.communicate()
    federation.submit(federation.job("three", ADMITTED), federation.job("four", ADMITTED)).communicate(timeout=300)
    for site in SITES:
        with Accountant(federation.ledger(site), create=False) as accountant:
            state = accountant.balance(site).limits[0]
        assert federation.charges(site) == ADMITTED
        assert state.spent_units.rho is not None
        assert state.limit.capacity.rho is not None
        assert state.spent_units.rho <= state.limit.capacity.rho
    left = [line for line in federation.record.read_text().splitlines() if "WEIGHT_DIFF" in line]
    assert len(left) <= 2 * ADMITTED
    assert len(left) >= 2 * before
