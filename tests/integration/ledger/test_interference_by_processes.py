"""Outside interference by other processes with the files of an open ledger."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from contract.acts import check, coin, spent
from ldp_budget import Accountant
from ledger_folders import new_ledger_in, tenths

OTHER = """
import sys
from ldp_budget import Accountant, mechanism
with Accountant(sys.argv[1], create=False) as accountant:
    assert accountant.spend("bob", mechanism("rr")(epsilon="0.1"), key=sys.argv[2]).status == "spent"
"""

FOREIGN = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM journal")
connection.close()
"""


def run(script: str, *arguments: object) -> None:
    """Run a script in a process of its own, which must end well."""
    subprocess.run([sys.executable, "-c", dedent(script), *map(str, arguments)], check=True, timeout=60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger in a folder of its own, closed."""
    return new_ledger_in(tmp_path, lifetime=2)


# -- locks that a process loses by reading its own files ---------------------------------------------------------


@pytest.mark.some(2)
@pytest.mark.parametrize("other", [OTHER, FOREIGN], ids=["ours", "foreign"])
def test_process_reading_its_own_ledger_file_loses_no_spend(path: Path, other: str) -> None:
    """Closing the file drops SQLite's locks on it; the next process to close deleted the log that was in use."""
    answers = []
    with Accountant(path) as accountant:
        accountant.spend("alice", coin("0.1"))
        for number in range(3):
            path.read_bytes()
            run(other, path, number)
            answers += [accountant.spend("alice", coin("0.1"), key=f"{number}/{turn}") for turn in range(3)]
        assert spent(accountant, "alice") == {"lifetime": 1}
        head = check(accountant)
    with Accountant(path, create=False) as accountant:
        assert spent(accountant, "alice") == {"lifetime": 1}
        check(accountant, head)
        again = [accountant.spend("alice", coin("0.1"), key=f"{n}/{turn}") for n in range(3) for turn in range(3)]
        assert [one.receipt for one in again] == [one.receipt for one in answers]
        assert len({one.receipt for one in answers}) == 9
        assert all(one.repeated for one in again)


# -- files that are moved, replaced or deleted -------------------------------------------------------------------


def test_checkpoint_of_another_process_is_not_taken_for_a_copy(path: Path) -> None:
    with Accountant(path) as accountant:
        for number in range(4):
            accountant.spend("alice", coin("0.1"))
            run(
                """
                import sys
                from ldp_budget import Accountant
                with Accountant(sys.argv[1]) as accountant:
                    assert accountant._ledger._store.clear_log()
                """,
                path,
            )
            assert accountant.spend("alice", coin("0.1"), key=str(number)).status == "spent"
        assert tenths(accountant, "alice") == 8
        check(accountant)


# -- two logs for one file ---------------------------------------------------------------------------------------


MOUNTED = """
set -e
mount --bind "$1" "$2"
exec "$3" -c '
import sys
from pathlib import Path
from ldp_budget import Accountant
from ldp_budget.ledger.sqlite import connection
connection._MOUNTS = Path(sys.argv[2])
Accountant(sys.argv[1])' "$2" "$4"
"""


@pytest.mark.parametrize("mounts", ["/proc/self/mountinfo", "/no/such/list"])
def test_ledger_file_mounted_by_itself_is_not_opened(path: Path, tmp_path: Path, mounts: str) -> None:
    """As containers do it: the file is there twice, and each place has a log of its own. Without `/proc` it was
    opened.
    """
    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no right to mount")
    second = tmp_path / "a second\\place.db"
    second.touch()
    shutil.copy(f"{path}.key", f"{second}.key")
    command = ["unshare", "-rm", "sh", "-c", MOUNTED, "sh", str(path), str(second), sys.executable, mounts]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert "it is mounted as a single file" in done.stderr


# -- the key ---------------------------------------------------------------------------------------------------


# -- a ledger that went back -----------------------------------------------------------------------------------
