"""Upgrades to the made-up version that are killed, while another process charges; run by `test_upgrade`.

    python upgrade_killer.py LEDGER KILLS

An upgrade is killed at its n-th step after the verification, which only reads, for n from 0 on; each statement and each
sync of a file is a step. A line of JSON
for each kill says what was found afterwards: the `version` of the tables, the charges that were acknowledged before and
`lost`, if the ledger `holds`, and if the upgrade was done before its n-th step (`whole`). After an upgrade that was
complete the old version is put back, and n begins again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import made_up_version
from ldp_budget import Accountant
from ldp_budget.accounting.upgrade import upgrade
from ldp_budget.ledger.sqlite import SqliteStore, schema
from ldp_budget_postgres import PostgresStore

# What the n-th step is counted by: calls of these names, in C or in Python.
STEPS = {
    "execute",
    "fsync",
    "send_query",
    "send_query_params",
    "send_query_prepared",
    "exec_",
    "exec_params",
    "rename",
}
CHARGES = 3
"""An upgrade begins after so many acknowledged charges of the process beside it."""


def forked(run: Any, *arguments: Any) -> tuple[int, int]:
    """Run a function in a child; return its process and the end of a pipe to which the function writes lines."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(writing, 1)
        try:
            run(*arguments)
            os._exit(0)
        except BaseException as error:
            os.write(1, f"{type(error).__name__} {error}\n".encode())
            os._exit(1)
    os.close(writing)
    return child, reading


def ended(child: int, reading: int) -> tuple[int, list[str]]:
    """Wait for a child; return its status and its lines."""
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode().splitlines()
    return os.waitpid(child, 0)[1], said


def charge(ledger: str, name: str) -> None:
    """Charge users until the ledger refuses, and write each key once its charge is acknowledged."""
    signal.alarm(60)  # a process that is never refused
    with Accountant(ledger, create=False) as accountant:
        for number in range(10**9):
            accountant.spend(f"user-{number % 7}", made_up_version.COIN, key=f"{name}/{number}")
            os.write(1, f"{name}/{number}\n".encode())


def upgrade_until(ledger: str, step: int) -> None:
    """Upgrade, and be killed at a step."""
    made_up_version.install()
    left = [step]

    def count(frame: Any, event: str, argument: Any) -> None:
        name = argument.__name__ if event == "c_call" else frame.f_code.co_name if event == "call" else ""
        if name in STEPS:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    for kind in (SqliteStore, PostgresStore):

        def migrate(store: Any, until: str, _migrate: Any = kind.migrate) -> Any:
            sys.setprofile(count)
            try:
                return _migrate(store, until)
            finally:
                sys.setprofile(None)

        kind.migrate = migrate  # type: ignore[method-assign]
    upgrade(ledger)


def check(ledger: str, newer: bool, keys: list[str]) -> None:
    """Write if the ledger holds, and which of the keys it lacks: a charge with the key would be a new one."""
    if newer:
        made_up_version.install()
    with Accountant(ledger, create=False) as accountant:
        holds = accountant.verify().ok
        lost = []
        for key in keys:
            user = f"user-{int(key.rpartition('/')[2]) % 7}"
            if not accountant.spend(user, made_up_version.COIN, key=key).repeated:
                lost.append(key)
        os.write(1, json.dumps({"holds": holds, "lost": lost}).encode() + b"\n")


class File:
    """A ledger in a file, which is put back from a copy."""

    known = schema.SCHEMA_VERSION

    def __init__(self, ledger: str) -> None:
        self.path, self.kept = Path(ledger), Path(f"{ledger}.kept")
        self.put(self.path, self.kept)

    def put(self, source: Path, target: Path) -> None:
        for ending in ("", "-wal", "-shm", ".key"):
            Path(f"{target}{ending}").unlink(missing_ok=True)
            if Path(f"{source}{ending}").exists():
                shutil.copy(f"{source}{ending}", f"{target}{ending}")

    def version(self) -> int:
        import sqlite3

        connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        try:
            return schema.version_of(connection)
        finally:
            connection.close()

    def put_back(self) -> None:
        self.put(self.kept, self.path)


class Server:
    """A ledger on a server, of which the upgrade is undone."""

    known = made_up_version.SERVER - 1

    def __init__(self, ledger: str) -> None:
        self.url = ledger.partition("?")[0]

    def _run(self, *statements: str) -> Any:
        import psycopg

        with psycopg.connect(self.url) as connection:
            for statement in statements:
                found = connection.execute(statement)
            return found.fetchone() if found.description else None

    def version(self) -> int:
        return int(bytes(self._run("SELECT value FROM meta WHERE name = 'schema'")[0]))

    def put_back(self) -> None:
        self._run("DROP TABLE IF EXISTS remarks", f"UPDATE meta SET value = '{self.known}' WHERE name = 'schema'")


def kill_one(place: File | Server, ledger: str, number: int, step: int) -> dict[str, Any]:
    """Kill an upgrade at a step while a process charges; return what is found afterwards."""
    charger, said = forked(charge, ledger, f"run-{number}")
    heard = b""
    while heard.count(b"\n") < CHARGES:
        heard += os.read(said, 1 << 16)
    status, told = ended(*forked(upgrade_until, ledger, step))
    whole = not os.WIFSIGNALED(status)
    if not whole:
        os.kill(charger, signal.SIGKILL)
    _, lines = ended(charger, said)
    keys = [line for line in [*heard.decode().split(), *lines] if line.startswith("run-") and "/" in line]
    version = place.version()
    found, answer = ended(*forked(check, ledger, version > place.known, keys))
    result = json.loads(answer[-1]) if found == 0 else {"holds": False, "lost": answer}
    refused = any("were upgraded" in line for line in lines)
    return (
        {"step": step, "version": version, "acknowledged": len(keys), "whole": whole, "refused": refused}
        | result
        | ({"failed": told} if whole and status else {})
    )


def main(ledger: str, kills: str) -> None:
    place: File | Server = Server(ledger) if "://" in ledger else File(ledger)
    step = done = 0
    for number in range(10**6):
        told = kill_one(place, ledger, number, step)
        print(json.dumps(told), flush=True)
        step = 0 if told["whole"] else step + 1
        done += not told["whole"]
        if told["version"] > place.known:
            place.put_back()
        if done >= int(kills):
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
