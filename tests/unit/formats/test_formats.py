"""Files of earlier releases are opened, verified and continued by the current code, see `released_files`.

Nothing in a folder is ever written again. A release that changes a format adds a folder.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from client_cases import Bytes
from command_line import CommandLine
from contract.released_ledgers import ReleasedLedgerContract
from format_story import COLLECTIONS
from ldp_budget import Collection, mechanism
from ldp_budget.ledger.sqlite import schema
from ldp_budget.registry import certification, plugins
from ldp_budget.sdk.client_program import Program
from ldp_budget.sdk.domain import Words as WordDomain
from ldp_budget.sdk.interpreter import StreamDraws, read, run
from ldp_budget_verify.shipped_checkers import checker
from released_files import HERE, RELEASES, Released, read_json

MOST_BYTES = 1_500_000
"""How much all of it may come to; a clone keeps it forever."""


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.param
    return folder


@pytest.mark.slow
class TestInFile(ReleasedLedgerContract):
    @pytest.fixture
    def released(self, release: Path, tmp_path: Path) -> Released:
        return Released(release, "file", tmp_path)

    def test_recorded_ledger_has_all_tables_of_its_version(self, released: Released) -> None:
        if released.about["tables"] == schema.SCHEMA_VERSION:
            with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
                schema.create_tables(connection)
                tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            assert {(name,) for name in released.about["rows"]} == set(tables)

    def test_backup_is_the_same_ledger(self, released: Released, tmp_path: Path) -> None:
        backup = tmp_path / "backup.db"
        with released.open() as accountant:
            accountant.backup(backup)
        shutil.copy2(f"{released.place}.key", f"{backup}.key")
        released.place, released.known = str(backup), released.about["tables"]
        with released.open() as accountant:
            assert accountant.verify(expect=released.facts["head"]).ok


def test_every_version_of_the_tables_is_recorded() -> None:
    recorded = {read_json(folder / "file.json.gz")["tables"] for folder in RELEASES}
    assert recorded == set(range(1, schema.SCHEMA_VERSION + 1))


def test_files_of_all_releases_stay_small() -> None:
    assert sum(file.stat().st_size for file in HERE.rglob("*") if file.is_file()) < MOST_BYTES


# -- collections, definitions, reports -----------------------------------------------------------------------


@pytest.mark.some(3)
@pytest.mark.parametrize("name", COLLECTIONS)
def test_collection_of_a_release_has_the_same_definition(release: Path, name: str, tmp_path: Path) -> None:
    shown = read_json(release / "reports.json.gz")["collections"][name]
    found = Collection.from_json(shown)
    assert found == COLLECTIONS[name]
    assert found.fingerprint == shown["fingerprint"]
    assert found.definition() == read_json(release / "draws.json.gz")["definitions"][name]


ENDS = {"low", "high", "share_low", "share_high"}
"""Ends of intervals, which a later release may find tighter."""


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("name", COLLECTIONS)
def test_report_file_of_a_release_gives_the_same_estimate(release: Path, name: str, tmp_path: Path) -> None:
    estimate = CommandLine(Released(release, "file", tmp_path).place).json(
        "estimate", name, release / f"{name}.reports"
    )
    assert _close(estimate, read_json(release / "reports.json.gz")["estimates"][name])


def _close(found: Any, before: Any) -> bool:
    if isinstance(before, dict):
        return all(name in found and _close(found[name], before[name]) for name in before.keys() - ENDS)
    if isinstance(before, list):
        return len(found) == len(before) and all(map(_close, found, before))
    return bool(found == (pytest.approx(before, rel=1e-9, abs=1e-9) if isinstance(before, float) else before))


@pytest.mark.slow
def test_partition_and_partial_of_a_release_give_the_estimate_of_the_report_file(
    release: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    command = CommandLine(Released(release, "file", tmp_path).place)
    estimates = [command.json("estimate", "party", release / f"party.{kind}") for kind in ("parquet", "partial")]
    recorded = read_json(release / "reports.json.gz")["estimates"]["party"]
    for found in estimates:
        assert _close(found["answers"], recorded["answers"])


@pytest.mark.slow
def test_programs_of_a_release_are_those_of_today_and_draw_the_same_reports(release: Path) -> None:
    for case, recorded in read_json(release / "draws.json.gz")["programs"].items():
        made = mechanism(recorded["mechanism"])(**recorded["declared"])
        program = Program.from_json(recorded["program"])
        assert (made.fingerprint, made.client_program()) == (recorded["context"], program), case
        for answer, secret, stream, report in recorded["drawn"]:
            number = made.domain.number_of(answer) if isinstance(made.domain, WordDomain) else answer
            draws = StreamDraws(
                Bytes(bytes.fromhex(stream)), None if secret is None else bytes.fromhex(secret), made.fingerprint
            )
            assert run(program, read(program, number), draws).hex() == report, case


# -- certificates --------------------------------------------------------------------------------------------


def test_certificate_of_a_total_is_proved(release: Path) -> None:
    checker("check_total").check((release / "total.json").read_bytes())


@pytest.mark.slow
def test_certificate_of_a_plugin_is_read_and_no_longer_counts(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate covers the files and the version of ldp-budget: under a later release it stayed "audited"."""
    spec = importlib.util.spec_from_file_location("coin", release / "coin.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "coin", module)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec.loader.exec_module(module)
    installed = SimpleNamespace(own=False, name="ldp-budget-coin", version="1.2")
    found = SimpleNamespace(plugin_of={module.Coin: installed}.get)
    monkeypatch.setattr(certification, "_own_version", lambda: "99.0.0")
    monkeypatch.setattr(plugins, "registry", lambda: found)
    monkeypatch.setenv(certification.VARIABLE, str(release / "certificates.json"))
    certification.forget()
    try:
        assert certification.checked(module.Coin) == "no"
        (kept,) = json.loads(certification.certificates_path().read_bytes())["certificates"]
        assert kept["checked"] == "audited"
    finally:
        certification.forget()
