"""The modules that a start, a help page, a new ledger and a spend load, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import ldp_budget
import ldp_budget_mechanisms

ROOT = Path(__file__).resolve().parents[3]
ACCOUNTANT = ROOT / "accountant" / "ldp_budget"


# -- the sources ------------------------------------------------------------------------------------------------


def files(*rooms: Path) -> list[Path]:
    found = [path for room in rooms for path in sorted(room.rglob("*.py"))]
    assert len(found) > len(rooms)
    return found


# -- what a fresh process loads -------------------------------------------------------------------------------

REPORT = "import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"


def loaded(code: str, folder: Path) -> set[str]:
    """The modules that a fresh process has loaded after running `code`."""
    environment = {**os.environ, "LDP_BUDGET_LEDGER": str(folder / "ledger.db")}
    command = [sys.executable, "-c", f"{code}\n{REPORT}"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def after_command(folder: Path, *arguments: str) -> set[str]:
    return loaded(f"from ldp_budget_cli.app import cli\ncli({list(arguments)!r}, standalone_mode=False)", folder)


HEAVY = {"numpy", "scipy", "sklearn", "sqlite_utils", "matplotlib", "cryptography"}


# The modules that a spend may load. Others import numpy or scipy at the top, and are imported by these where they are
# needed: how reports are drawn, counted and checked.
LIGHT = [
    *(f"guarantees.{name}" for name in ("fixed_point", "guarantees", "dominating_pairs", "gaussian_calibration")),
    *("sampling", "composition.rules", "composition.filters"),
    *(
        f"sdk.{name}"
        for name in ("mechanism", "parameters", "domain", "frequency_oracle", "numeric_mechanism", "channels")
    ),
    *(f"registry.{path.stem}" for path in files(ACCOUNTANT / "registry")),
    *(f"ledger.{path.stem}" for path in sorted((ACCOUNTANT / "ledger").glob("*.py"))),
    *(f"accounting.{path.stem}" for path in sorted((ACCOUNTANT / "accounting").glob("*.py"))),
]


def test_modules_of_a_spend_import_no_numpy(tmp_path: Path) -> None:
    # Every mechanism declares its fields, its guarantee and its calibration in a module of that kind.
    # Ticks and vectors derive from the classes of estimates, which need numpy; no other mechanism loads them.
    mechanisms = sorted(
        {each.module for each in ldp_budget_mechanisms.MECHANISMS if each.name not in ("ticks", "discrete-gaussian")}
    )
    names = [*mechanisms, *(f"ldp_budget.{name}".removesuffix(".__init__") for name in LIGHT)]
    assert not loaded(f"import {', '.join(names)}", tmp_path) & HEAVY


def test_library_import_loads_few_modules(tmp_path: Path) -> None:
    modules = loaded("import ldp_budget", tmp_path)
    assert {name for name in modules if name.startswith("ldp_budget")} == {"ldp_budget"}
    assert not modules & (HEAVY | {"click", "pluggy", "decimal", "sqlite3"})


def test_help_loads_neither_numbers_nor_mechanisms(tmp_path: Path) -> None:
    modules = after_command(tmp_path, "--help")
    assert not modules & (HEAVY | {"platformdirs", "pluggy", "sqlite3"})
    assert not {name for name in modules if name.startswith("ldp_budget_mechanisms")}


SPENT = [
    ["oue", "--epsilon", "0.1", "--domain-size", "7"],
    ["gaussian", "--epsilon", "0.1", "--delta", "1e-9", "--method", "exact", "--lower", "0", "--upper", "1"],
    ["randomized-response", "--truth", "0.5", "--yes", "0.5"],
    ["bounded-laplace", "--epsilon", "1", "--lower", "0", "--upper", "1"],
    ["bounded-staircase", "--epsilon", "1", "--lower", "0", "--upper", "1"],
    ["pgr", "--epsilon", "0.1", "--domain-size", "1000"],
    ["hybrid", "--epsilon", "0.1", "--lower", "0", "--upper", "1"],
    ["square-wave", "--epsilon", "0.1", "--lower", "0", "--upper", "1"],
]


def test_spends_load_no_heavy_package(tmp_path: Path) -> None:
    """The imports that none of them adds after the others."""
    with ldp_budget.Accountant(tmp_path / "ledger.db") as accountant:
        accountant.set_policy("default", ["lifetime=4,1e-6"])
    too_much = HEAVY | {"platformdirs"}
    code = f"""
import sys
from ldp_budget_cli.app import cli
for mechanism in {SPENT!r}:
    cli(["spend", "alice", *mechanism, "--key", mechanism[0]], standalone_mode=False)
    assert not {too_much!r} & set(sys.modules), mechanism[0]
"""
    assert "sqlite3" in loaded(code, tmp_path)


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0].startswith("ldp_budget")}


REST = [
    *(f"accounting.{name}" for name in ("books", "bulk_run", "decision_replay", "ledger_move", "ledger_maintenance")),
    *(f"accounting.{name}" for name in ("queries", "reservation_settlement", "stored_reports", "budget_timeline")),
    *(f"ledger.{name}" for name in ("checked_sums", "export", "migration_copy", "migration_cutover")),
]
"""Modules that a spend does not need."""


def test_spend_loads_what_it_runs(tmp_path: Path) -> None:
    with ldp_budget.Accountant(tmp_path / "ledger.db") as accountant:
        accountant.set_policy("default", ["lifetime=4,1e-6"])
    found = ours(after_command(tmp_path, "spend", "alice", *SPENT[0]))
    assert "ldp_budget.accounting.engine" in found
    assert not found & {f"ldp_budget.{name}" for name in REST}
    assert len(found) <= 131, sorted(found)


def test_spend_in_python_loads_few_modules_and_one_mechanism(tmp_path: Path) -> None:
    code = """
from ldp_budget import Accountant, Limit, mechanism
with Accountant("ledger.db") as accountant:
    accountant.set_policy("default", [Limit("lifetime", epsilon="4")])
    assert accountant.spend("ada", mechanism("oue")(epsilon=1, domain_size=7))
"""
    found = ours(loaded(code, tmp_path))
    assert len(found) <= 75, sorted(found)
    families = {name for name in found if name.startswith("ldp_budget_mechanisms.") and "._" not in name}
    assert families == {"ldp_budget_mechanisms.unary_encoding"}


def test_estimate_loads_no_charging_engine(tmp_path: Path) -> None:
    after_command(tmp_path, "collection", "add", "party", "oue", "--epsilon", "1", "--categories", "a,b,c")
    (tmp_path / "answers.csv").write_text("user,answer\n" + "".join(f"u{n},{'abc'[n % 3]}\n" for n in range(60)))
    after_command(tmp_path, "randomize", "party", "answers.csv", "--column", "answer", "--out", "reports.bin")
    found = ours(after_command(tmp_path, "estimate", "party", "reports.bin"))
    assert "ldp_budget.reports.estimation" in found
    charging = ("admission", "batch", "bulk_run", "decision_replay", "engine", "policy_versions", "reservations")
    assert not found & {f"ldp_budget.accounting.{name}" for name in charging}


def test_new_ledger_loads_no_migration_code(tmp_path: Path) -> None:
    modules = loaded("import ldp_budget\nldp_budget.Accountant('ledger.db').close()", tmp_path)
    assert "sqlite3" in modules
    assert not modules & (HEAVY | {"pandas"})
