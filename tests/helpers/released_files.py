"""The files of a release in tests/data/formats: `python tests/helpers/released_files.py VERSION` writes them, once.

A folder has the ledger of `format_story` in a file and on a server, each with what it was (`*.json.gz`), its exported
journal, and its published survey; and report files, definitions, draws and certificates. What is in it is never written
again: `contract.released_ledgers` and `formats/test_formats.py` open it with the code of today.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import ldp_budget
import server_fixture
from client_cases import CASES, vectors
from command_line import CommandLine
from fixed_clock import Clock
from format_story import COLLECTIONS, SECRET, VALUES, facts, stated, tell
from ldp_budget import Accountant
from ldp_budget.accounting.upgrade import upgrade
from ldp_budget.ledger.sqlite import schema
from ldp_budget.registry import certification
from ldp_budget.reports.partial_aggregate import aggregate
from ldp_budget.reports.report_file import ReportWriter
from ldp_budget_postgres.schema import SCHEMA_VERSION as SERVER_VERSION
from ldp_budget_surveys.partitions import PartitionWriter
from ldp_budget_verify import total_certificate

HERE = Path(__file__).parents[1] / "data" / "formats"
RELEASES = sorted(path.parent for path in HERE.glob("*/file.json.gz"))
COIN = '''"""A mechanism of a plugin, to which the certificate in this folder belongs."""

import ldp_budget
from ldp_budget.guarantees import Pure
from ldp_budget.sdk.parameters import real


class Coin(ldp_budget.Mechanism):
    name = "coin"
    epsilon = real("privacy loss of one report", above=0)
    guarantee = property(lambda self: Pure(self.epsilon))
'''


# -- read ----------------------------------------------------------------------------------------------------


class Released:
    """The ledger of a release, loaded into a place of its own."""

    def __init__(self, release: Path, engine: str, scratch: Path) -> None:
        self.release, self.engine, self.scratch = release, engine, scratch
        self.about: dict[str, Any] = read_json(release / f"{engine}.json.gz")
        self.facts: dict[str, Any] = self.about["facts"]
        self.clock = Clock(datetime.fromisoformat(self.about["now"]))
        self.known, self.place = (schema.SCHEMA_VERSION, str(scratch / "ledger.db"))
        if engine == "file":
            _private(Path(self.place), gzip.decompress((release / "file.db.gz").read_bytes()))
            _private(Path(f"{self.place}.key"), bytes.fromhex(self.about["key"]))
        else:
            self.known, self.place = SERVER_VERSION, server_fixture.load(release, bytes.fromhex(self.about["key"]))

    @contextmanager
    def open(self) -> Iterator[Accountant]:
        """Open the ledger, as it is kept or upgraded."""
        if self.about["tables"] != self.known:
            upgrade(self.place)
        with Accountant(self.place, create=False, clock=self.clock) as accountant:
            yield accountant

    def site(self, accountant: Accountant) -> Path:
        """Put the books of the ledger to their place; return the published folder."""
        with tarfile.open(self.release / f"{self.engine}.books.tar.gz") as packed:
            packed.extractall(self.scratch / "books", filter="data")
        shutil.copytree(self.scratch / "books" / "private", accountant.books.folder)
        return self.scratch / "books" / "site"

    def journal(self) -> list[dict[str, Any]]:
        lines = gzip.decompress((self.release / f"{self.engine}.ndjson.gz").read_bytes()).splitlines()
        return [json.loads(line) for line in lines]


def read_json(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def holds(found: Any, recorded: Any) -> bool:
    """True if JSON has all that was recorded; it may have more names."""
    if isinstance(recorded, dict):
        return all(name in found and holds(found[name], value) for name, value in recorded.items())
    if isinstance(recorded, list):
        return len(found) == len(recorded) and all(map(holds, found, recorded))
    return bool(found == recorded)


def _private(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o600)


# -- write ---------------------------------------------------------------------------------------------------


def main(version: str) -> None:
    target = HERE / version
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)  # a ledger is called as it was opened, and no path of a machine is kept
        os.environ.update(XDG_CONFIG_HOME=scratch, LDP_BUDGET_CERTIFICATES="certificates.json")
        write_ledger(target, "file", "ledger.db", Path("file"))
        write_ledger(target, "server", server_fixture.new_place(), Path("server"))
        _write_reports(target)
        _write_draws(target)
        _write_certificates(target)


def write_ledger(target: Path, engine: str, place: str, folder: Path) -> None:
    """Tell the story at a place, and write its ledger to `target`; `folder` gets its other files."""
    folder.mkdir()
    accountant, clock, about = tell(place, folder)
    with accountant:
        about |= {"facts": facts(accountant), "now": clock.now.isoformat(), "library": ldp_budget.__version__}
        books, key = accountant.books.folder, Path(accountant.ledger.key_file).read_bytes()
        journal = "".join(f"{json.dumps(row, default=str)}\n" for row in accountant.journal())
    about |= {"key": key.hex(), "tables": schema.SCHEMA_VERSION if engine == "file" else SERVER_VERSION}
    if engine == "file":
        with closing(sqlite3.connect(place)) as connection:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            about["rows"] = {each: connection.execute(f"SELECT count(*) FROM {each}").fetchone()[0] for each in names}
        _write(target / "file.db.gz", Path(place).read_bytes())
        shutil.copy(folder / "hours.out.partial", target)
    else:
        about["rows"], rows = server_fixture.dump(place)
        _write(target / "server.rows.gz", rows)
    _write(target / f"{engine}.ndjson.gz", journal.encode())
    _write_json(target / f"{engine}.json.gz", about)
    with tarfile.open(target / f"{engine}.books.tar.gz", "w:gz") as packed:
        packed.add(books, "private")
        packed.add(folder / "site", "site")


def _write_reports(target: Path) -> None:
    """Report files of each collection, a partition, a partial aggregate, and what they are estimated to say."""
    command, estimates = CommandLine("ledger.db"), {}
    for name, collection in COLLECTIONS.items():
        reports = collection.mechanism.randomize(VALUES[name], rng=1, secrets=[SECRET] * len(VALUES[name]))
        with ReportWriter(target / f"{name}.reports", collection) as writer:
            writer.write(reports[:5])
            writer.write(reports[5:])
        estimates[name] = command.json("estimate", name, target / f"{name}.reports")
        if name == "party":
            with PartitionWriter(target / "party.parquet", collection, task="one") as partition:
                partition.write(reports)
            aggregate(str(target / "party.parquet"), collection).write(target / "party.partial")
    shown = {name: command.json("collection", "show", name) for name in (*COLLECTIONS, "panel")}
    _write_json(target / "reports.json.gz", {"estimates": estimates, "collections": shown})


def _write_draws(target: Path) -> None:
    """Public definitions of the collections, and the program of each kind of client with reports of given draws."""
    programs = {}
    kinds = {kind.name for kind in ldp_budget.mechanisms()}
    for name, made in CASES.items():
        if made.name not in kinds:
            continue
        rows = [
            [answer, secret and secret.hex(), stream.hex(), report.hex()]
            for answer, secret, stream, report in vectors(name, 2)
        ]
        program = made.client_program().to_json()
        programs[name] = {**stated(made), "context": made.fingerprint, "program": program, "drawn": rows}
    definitions = {name: collection.definition() for name, collection in COLLECTIONS.items()}
    _write_json(target / "draws.json.gz", {"definitions": definitions, "programs": programs})


def _write_certificates(target: Path) -> None:
    """A certificate of a plugin of one module, and one of a total."""
    Path("coin.py").write_text(COIN, encoding="utf-8")
    sys.path.insert(0, ".")
    import coin

    found = {"mechanism": "coin", "checked": "audited", "sources": certification.source_digest(coin.Coin)}
    certification.record({"distribution": "ldp-budget-coin", "version": "1.2", "mechanisms": [found]})
    for name in ("coin.py", "certificates.json"):
        shutil.copy(name, target)
    claim = total_certificate.certificate([(COLLECTIONS["party"].mechanism, 50)], delta="1e-6")
    (target / "total.json").write_bytes(total_certificate.written(claim))


def _write_json(path: Path, value: Any) -> None:
    _write(path, json.dumps(value, default=str).encode())


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
