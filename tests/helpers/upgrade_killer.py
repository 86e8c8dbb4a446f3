"""Upgrades to the made-up version that are killed, while another process charges; run by `test_upgrade`.

    python upgrade_killer.py LEDGER KILLS FIRST EVERY

An upgrade is killed at its step FIRST, and so at each step EVERY after it until the upgrade is complete; then a new round
begins. A step is a statement, the end of a transaction, a lock or a sync of a file. They are counted from the end of the
verification, which only reads. A round upgrades in one call, or in two: `pre`, then `post`. The first round of each way
kills before the step; each later one up to `LONGEST` seconds into it.

The process beside it has the version before. Each time it charges in one of `KINDS`, and lives on or is killed as well.
After each kill the ledger must open, verify and have each acknowledged charge once. Then the upgrade is run to its end: the
process beside it must be refused, and each request is repeated with its key. Then the ledger is put back.

A line of JSON for each upgrade says what was found, see `kill_one`.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg

import made_up_version
from ldp_budget import Accountant, LdpBudgetError, LedgerError, LedgerUpgraded
from ldp_budget.accounting.upgrade import upgrade
from ldp_budget.ledger.sqlite import SqliteStore, schema
from ldp_budget.ledger.storage import POST, PRE
from ldp_budget_postgres import PostgresStore
from ldp_budget_postgres.schema import PARTITIONED
from postgres_places import Empty

WAYS = ((POST,), (PRE, POST))
KINDS = ("one", "threads", "list")
USERS = [f"user-{number}" for number in range(7)]
BEFORE = 1
"""What the ledger has charged each user before."""
LONGEST = 0.003
PAUSE, SOON = 0.005, 25
"""Seconds between the first requests of a thread; later ones are rarer, for each is repeated in the end."""
THREADS = 4
PATIENCE = 300.0  # seconds, for steps that take about one

_STEPS_OF_FILES = {os.fsync, os.fdatasync, os.rename, os.truncate, os.ftruncate, fcntl.flock}
_STEP_OF_SERVERS = psycopg.Connection.wait.__code__


# -- processes -----------------------------------------------------------------------------------------------


class Child:
    """A function in a child process; it says lines, which are kept in a file."""

    def __init__(self, file: Path, run: Any, *arguments: Any) -> None:
        self.file = file
        file.write_bytes(b"")
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), 1)
            try:
                run(*arguments)
                os._exit(0)
            except BaseException as error:
                say("failed", type(error).__name__, error)
                os._exit(1)

    @property
    def lines(self) -> list[list[str]]:
        """The words of each complete line so far."""
        return read_words(self.file)

    def wait(self, patience: float = PATIENCE) -> int:
        """Return the status of its end; it is killed if it does not end."""
        deadline = time.monotonic() + patience
        while (found := os.waitpid(self.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                return os.waitpid(self.pid, 0)[1]
            time.sleep(0.001)
        return found[1]

    def answer(self) -> Any:
        """Wait, and return what it said last, as JSON; the words of its failure if it has failed."""
        status = self.wait()
        last = self.lines[-1:]
        return json.loads(" ".join(last[0])) if status == 0 else {"failed": last or f"status {status}"}


def ask(patient: bool, file: Path, run: Any, *arguments: Any) -> Any:
    """Return the answer of a child; with `patient`, of another one while it fails."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = Child(file, run, *arguments).answer()
        if "failed" not in answer or not patient or time.monotonic() > deadline:
            return answer
        time.sleep(0.5)


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)).replace("\n", " ") + "\n").encode())


def read_words(file: Path) -> list[list[str]]:
    return [line.split(" ") for line in file.read_text(encoding="utf-8").split("\n")[:-1]]


# -- the process of the version before -------------------------------------------------------------------------


def charge(ledger: str, kind: str, patient: bool) -> None:
    """Charge until the ledger refuses; say each request before it is sent, and once it is acknowledged.

    With `patient`, a request that fails for another reason than the upgrade is sent again.
    """
    deadline = time.monotonic() + PATIENCE

    def requests(thread: int) -> None:
        try:
            for number in itertools.count():
                users = USERS if kind == "list" else [USERS[number % len(USERS)]]
                key = f"{thread}/{number}"
                say("asked", key, *users)
                while True:
                    try:
                        repeat(accountant, key, users)
                        break
                    except LedgerError as error:
                        if not patient or isinstance(error, LedgerUpgraded) or time.monotonic() > deadline:
                            raise
                        time.sleep(0.2)
                say("done", key, *users)
                time.sleep(PAUSE * (1 if number < SOON else 20))
                if time.monotonic() > deadline:
                    return
        except LdpBudgetError as error:
            say("refused", error, error.__cause__ or "")  # a run over a list says first what it has charged

    with Accountant(ledger, create=False) as accountant:
        threads = [
            threading.Thread(target=requests, args=(number,)) for number in range(THREADS if kind == "threads" else 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    while True:
        try:
            Accountant(ledger, create=False).close()
        except LdpBudgetError as error:
            if patient and not isinstance(error, LedgerUpgraded) and time.monotonic() < deadline:
                time.sleep(0.2)
                continue
            say("late", error)
        return


def repeat(accountant: Accountant, key: str, users: list[str]) -> bool:
    """Send a request, again or for the first time; return False if a charge of one user was not there before."""
    if len(users) > 1:
        accountant.spend_many(users, made_up_version.COIN, key=key)
        return True
    return accountant.spend(users[0], made_up_version.COIN, key=key).repeated


# -- the upgrade, and its kill ---------------------------------------------------------------------------------


def steps_of(frame: Any, event: str, argument: Any) -> bool:
    """True if a call, as `sys.setprofile` sees it, is a step: each is seen once, in C or in Python."""
    if event == "call":
        return frame.f_code is _STEP_OF_SERVERS
    if event != "c_call":
        return False
    of = getattr(argument, "__self__", None)
    return argument in _STEPS_OF_FILES or (
        isinstance(of, sqlite3.Connection | sqlite3.Cursor) and "exec" in argument.__name__
    )


def upgrade_until(ledger: str, way: tuple[str, ...], step: int, seconds: float | None) -> None:
    """Upgrade, and be killed at a step, or some seconds later; stop there and go on if these are None."""
    made_up_version.install()
    left = itertools.count(step, -1)

    def count(frame: Any, event: str, argument: Any) -> None:
        if steps_of(frame, event, argument) and next(left) == 0:
            say("reached")
            if not seconds:
                os.kill(os.getpid(), signal.SIGSTOP if seconds is None else signal.SIGKILL)
                return
            signal.setitimer(signal.ITIMER_REAL, seconds)  # whatever it does then: Python handles no such signal

    for kind in (SqliteStore, PostgresStore):

        def migrate(store: Any, until: str, _migrate: Any = kind.migrate) -> Any:
            sys.setprofile(count)
            try:
                return _migrate(store, until)
            finally:
                sys.setprofile(None)

        kind.migrate = migrate  # type: ignore[method-assign]
    for each in way:
        upgrade(ledger, each)


# -- what is found afterwards ----------------------------------------------------------------------------------


def requests_in(file: Path, word: str) -> dict[str, list[str]]:
    """Return the users of each request that was asked or done, by its key."""
    return {words[1]: words[2:] for words in read_words(file) if words[0] == word}


def compare(accountant: Accountant, said: Path) -> dict[str, int]:
    """Compare the sums with what was acknowledged before, and asked after they were read."""
    done = Counter(itertools.chain.from_iterable(requests_in(said, "done").values()))
    spent = {user: round(float(accountant.balance(user).limits[0].spent.epsilon) / 0.001) - BEFORE for user in USERS}
    asked = Counter(itertools.chain.from_iterable(requests_in(said, "asked").values()))
    return {
        "lost": sum(max(done[user] - spent[user], 0) for user in USERS),
        "doubled": sum(max(spent[user] - asked[user], 0) for user in USERS),
    }


def check(ledger: str, newer: bool, said: Path) -> None:
    """Say if the ledger verifies, and how many charges it lacks or has twice."""
    if newer:
        made_up_version.install()
    with Accountant(ledger, create=False) as accountant:
        problems = accountant.verify().problems
        say(json.dumps({"problems": problems[:3], **compare(accountant, said)}))


def finish(ledger: str, said: Path, living: int) -> None:
    """Run the upgrade to its end, wait until the process beside it is refused, repeat its requests, and check."""
    made_up_version.install()
    upgrade(ledger)
    deadline = time.monotonic() + PATIENCE
    while living and time.monotonic() < deadline and not any(words[0] == "late" for words in read_words(said)):
        time.sleep(0.005)
    done, asked = requests_in(said, "done"), requests_in(said, "asked")
    with Accountant(ledger, create=False) as accountant:
        found = compare(accountant, said)
        for key, users in asked.items():
            was_there = repeat(accountant, key, users)
            found["lost"] += key in done and not was_there
        asked_once = Counter(itertools.chain.from_iterable(asked.values()))
        for user in USERS:
            spent = round(float(accountant.balance(user).limits[0].spent.epsilon) / 0.001) - BEFORE
            found["doubled"] += abs(spent - asked_once[user])
        say(json.dumps({"problems": accountant.verify().problems[:3], **found}))


# -- ledgers that are put back ---------------------------------------------------------------------------------


class File:
    """A ledger in a file, which is put back from a copy."""

    known = schema.SCHEMA_VERSION

    def __init__(self, ledger: str) -> None:
        self.path, self.kept = Path(ledger), Path(f"{ledger}.kept")
        self._put(self.path, self.kept)

    def _put(self, source: Path, target: Path) -> None:
        for ending in ("", "-wal", "-shm", ".key"):
            Path(f"{target}{ending}").unlink(missing_ok=True)
            if Path(f"{source}{ending}").exists():
                shutil.copy(f"{source}{ending}", f"{target}{ending}")

    def version(self) -> int:
        connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        try:
            return schema.version_of(connection)
        finally:
            connection.close()

    def put_back(self) -> None:
        self._put(self.kept, self.path)


class Server:
    """A ledger on a server, which is put back from a copy of its tables."""

    known = made_up_version.SERVER - 1

    def __init__(self, ledger: str) -> None:
        self._kept = Empty(ledger, filled=("meta", *PARTITIONED))

    def version(self) -> int:
        rows = self._kept.connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchall()
        return int(bytes(rows[0][0]))

    def put_back(self) -> None:
        for each in ("TABLE IF EXISTS remarks", "INDEX IF EXISTS journal_by_time"):
            self._kept.connection.execute(f"DROP {each}")  # type: ignore[call-overload, unused-ignore]
        self._kept.restore()


# -- the run ---------------------------------------------------------------------------------------------------


def kill_one(
    ledger: str, place: Any, folder: Path, chance: random.Random, disturb: Any = None, **plan: Any
) -> dict[str, Any]:
    """Upgrade and kill once; or call `disturb` with the upgrade, which may fail then. Return what was planned and found:

    - `killed`, `reached`: the upgrade was killed; it came to the step;
    - `version`: of the tables after the kill;
    - `acknowledged`, `lost`, `doubled`: charges, over both checks;
    - `survived`, `refused`: the process beside it was not killed; it was refused, and so was its next opening;
    - `problems`, `failed`: of the verifications, and what did not work at all.
    """
    kind, survives = chance.choice(KINDS), chance.random() < 2 / 3
    said, first = folder / "charged", chance.randint(1, 5)
    charger = Child(said, charge, ledger, kind, disturb is not None)
    deadline = time.monotonic() + PATIENCE
    while len(requests_in(said, "done")) < first:
        if time.monotonic() > deadline or os.waitpid(charger.pid, os.WNOHANG)[0]:
            raise RuntimeError(f"the process beside it does not charge: {charger.lines[-1:]}")
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.02))
    upgrader = Child(folder / "upgraded", upgrade_until, ledger, plan["way"], plan["step"], plan["seconds"])
    if disturb is not None:
        disturb(upgrader)
    status = upgrader.wait()
    if not survives:
        os.kill(charger.pid, signal.SIGKILL)
        charger.wait()
    version = place.version()
    checks = [
        ask(disturb is not None, folder / "checked", check, ledger, version > place.known, said),
        ask(disturb is not None, folder / "finished", finish, ledger, said, survives),
    ]
    if survives:
        charger.wait()
    ends = [" ".join(words) for words in charger.lines if words[0] not in ("asked", "done")]
    *refusals, late = ends or [""]
    refused = (
        bool(refusals)
        and all("were upgraded to version" in each for each in refusals)
        and "were upgraded to version" in late
    )
    failed = [each["failed"] for each in checks if "failed" in each]
    if not os.WIFSIGNALED(status) and status and disturb is None:
        failed.append(upgrader.lines[-1:])
    if survives and not refused:
        failed.append(ends)
    return {
        **plan,
        "kind": kind,
        "reached": ["reached"] in upgrader.lines,
        "killed": os.WIFSIGNALED(status),
        "ended": upgrader.lines[-1:],
        "version": version,
        "acknowledged": len(requests_in(said, "done")) * (len(USERS) if kind == "list" else 1),
        "lost": sum(each.get("lost", 0) for each in checks),
        "doubled": sum(each.get("doubled", 0) for each in checks),
        "survived": survives,
        "refused": refused,
        "problems": [problem for each in checks for problem in each.get("problems", [])],
        "failed": failed,
    }


def main(ledger: str, kills: str, first: str, every: str) -> None:
    import sqlite_utils  # noqa: F401 - each child would import it again

    chance = random.Random(int(first))
    place: File | Server = Server(ledger) if "://" in ledger else File(ledger)
    with tempfile.TemporaryDirectory() as folder:
        done = 0
        for number in itertools.count():
            way, waits = WAYS[number % len(WAYS)], number >= len(WAYS)
            for step in itertools.count(int(first), int(every)):
                plan = {
                    "round": number,
                    "way": way,
                    "step": step,
                    "seconds": chance.uniform(0, LONGEST) if waits else 0,
                }
                found = kill_one(ledger, place, Path(folder), chance, **plan)
                print(json.dumps(found), flush=True)
                place.put_back()
                done += found["killed"]
                if done >= int(kills):
                    return
                if not found["reached"]:
                    break


if __name__ == "__main__":
    main(*sys.argv[1:])
