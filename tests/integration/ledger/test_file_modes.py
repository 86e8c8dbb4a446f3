"""File modes: files about users are readable by their owner only, and reveal no answer."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldp_budget
from command_line import CommandLine
from contract.acts import coin
from ldp_budget import Accountant, LedgerError
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.charged_release import release


@pytest.fixture(autouse=True)
def open_to_everybody() -> Iterator[None]:
    """A umask that grants all rights to all users."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", coin("0.1"))
    return tmp_path / "budget.db"


@pytest.mark.some(3)  # of the files each, and of the modes each
@pytest.mark.parametrize("loose", ["budget.db", "budget.db.key", "budget.db-wal", "budget.db-shm"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o620])
def test_ledger_readable_or_writable_by_others_is_refused_with_the_remedy(path: Path, loose: str, mode: int) -> None:
    with Accountant(path) as accountant:
        assert accountant.spend("alice", coin("0.1"))
        file = path.with_name(loose)
        file.chmod(mode)
        with pytest.raises(LedgerError, match=r"other users have access to .*. Run: chmod 600 ") as refused:
            Accountant(path)
        command = str(refused.value).rpartition("Run: ")[2]
        assert command == f"chmod 600 {file}"
        os.system(command)
        Accountant(path).close()


def test_remedy_for_wrong_modes_names_all_files_for_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "my budget.db"
    Accountant(path).close()
    for file in tmp_path.iterdir():
        file.chmod(0o644)
    with pytest.raises(LedgerError) as refused:
        Accountant(path)
    assert os.system(str(refused.value).rpartition("Run: ")[2]) == 0
    assert set(modes(tmp_path).values()) == {0o600}
    Accountant(path).close()


def test_ledger_files_are_for_their_owner_only(path: Path) -> None:
    with Accountant(path) as accountant:
        accountant.spend("alice", coin("0.1"))
        accountant.backup(path.with_name("copy.db"))
        assert set(modes(path.parent)) == {
            *("budget.db", "budget.db.key", "budget.db-wal", "budget.db-shm"),
            *("copy.db", "copy.db.key"),
        }
        assert set(modes(path.parent).values()) == {0o600}


def test_command_output_files_about_users_are_for_their_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = CommandLine(tmp_path / "l.db")
    (tmp_path / "answers.csv").write_text("user,a\nalice,no\nbob,yes\n")
    (tmp_path / "answers.csv").chmod(0o600)
    run("policy", "set", "default", "--limit", "lifetime=1")
    run("collection", "add", "poll", "rr", "--epsilon", "0.4", "--categories", "no,yes")
    spending = ["--column", "a", "--user-column", "user", "--spend"]
    run("randomize", "poll", "answers.csv", "--out", "reports", *spending)
    run("spend-many", "answers.csv", "poll", "--refused-to", "refused.csv")
    run("ledger", "export", "--to", "journal.jsonl")
    run("ledger", "export", "--csv", "--to", "journal.csv")
    run("ledger", "backup", "copy.db")
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 5
    assert len((tmp_path / "journal.csv").read_text().splitlines()) == 6
    assert {"reports", "refused.csv", "journal.csv", "copy.db", "copy.db.key"} <= set(modes(tmp_path))
    assert set(modes(tmp_path).values()) == {0o600}


# -- OUT.partial ---------------------------------------------------------------------------------------------------


class Stop(Exception):  # noqa: N818
    """Ends a release in its midst."""


def stopped(out: Path, accountant: Accountant, values: list[int]) -> dict[str, Any]:
    """Return the first line of OUT.partial after an interrupted release."""

    def stop(_: int) -> None:
        raise Stop

    poll = Collection("poll", ldp_budget.mechanism("rr")(epsilon=1), ("no", "yes"))
    users = [f"user-{n}" for n in range(len(values))]
    with pytest.raises(Stop):
        release(out, poll, accountant, np.array(values), users, policy="default", on_batch=stop)
    with out.with_name(f"{out.name}.partial").open("rb") as file:
        file.readline()
        header: dict[str, Any] = json.loads(file.readline())
    return header


def test_interrupted_release_reveals_no_answer(path: Path) -> None:
    """Four answers of two values were found in 0.02 s, by trying all sixteen."""
    answers = [1, 0, 0, 1]
    with Accountant(path) as accountant:
        header = stopped(path.with_name("out"), accountant, answers)
        users = [f"user-{n}" for n in range(4)]
        texts = [str(value) for value in header.values()]
        for values in itertools.product((0, 1), repeat=4):
            for kind in (np.int64, np.uint8, np.int32):
                for way in ([users, "default", False], users):
                    digest = hashlib.sha256(np.array(values, kind).tobytes())
                    assert digest.hexdigest() not in texts
                    digest.update(json.dumps(way).encode())
                    assert digest.hexdigest() not in texts
        assert modes(path.parent)["out.partial"] == 0o600
        assert stopped(path.with_name("out"), accountant, answers) == header, "the same input is the same run"
    with Accountant(path.with_name("other.db")) as other:
        other.set_policy("default", ["lifetime=9"])
        assert stopped(path.with_name("second"), other, answers)["input"] != header["input"]
