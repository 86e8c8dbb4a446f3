"""The checkers as programs of their own: Python without the package, and JavaScript on the same vectors."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checker_vectors import CHECKERS, VECTORS, laws, random_list, totals
from ldp_budget import compose
from ldp_budget_verify.total_certificate import certificate, written

NODE = shutil.which("node")
SCRIPT = """
import { readFileSync } from "node:fs"
const { check } = await import(process.argv[1])
for (const line of readFileSync(0, "utf8").trim().split("\\n")) {
  let verdict = "proved"
  try { check(Buffer.from(line, "hex")) } catch { verdict = "refused" }
  console.log(verdict)
}
"""


def _by_javascript(files: list[bytes]) -> list[str]:
    if NODE is None:
        pytest.skip("no Node.js on this machine")
    asked = "\n".join(data.hex() for data in files) + "\n"
    command = [NODE, "--input-type=module", "--eval", SCRIPT, (CHECKERS / "check_total.mjs").as_uri()]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout.splitlines()


def _alone(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of a folder in a Python that sees no installed package."""
    command = [sys.executable, "-I", "-S", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_check_alone_dispatches_totals_and_laws(tmp_path: Path) -> None:
    for name in ("check.py", "check_total.py", "check_law.py"):
        shutil.copy(CHECKERS / name, tmp_path)
    (tmp_path / "total.json").write_bytes(totals()[0][1])
    (tmp_path / "false.json").write_bytes(next(data for name, data, _ in totals() if name == "a smaller epsilon"))
    by_verdict = {verdict: definition for _, definition, verdict in laws()}
    for verdict, definition in by_verdict.items():
        (tmp_path / f"{verdict}.json").write_text(json.dumps(definition))
    (tmp_path / "other.json").write_text("{}")
    expected = {"total": "PROVED", "false": "REFUSED", "proved": "PROVED", "cannot": "CANNOT", "refused": "REFUSED"}
    for name, verdict in {**expected, "other": "REFUSED", "missing": "REFUSED"}.items():
        done = _alone(tmp_path, "check.py", f"{name}.json")
        assert (done.stdout + done.stderr).startswith(verdict), name
        assert done.returncode == (0 if verdict == "PROVED" else 1)


def test_javascript_checker_agrees_on_every_vector() -> None:
    expected = [verdict for _, _, verdict in totals()]
    found = _by_javascript([data or b"\n" for _, data, _ in totals()])
    assert found == expected


def test_javascript_checker_agrees_on_random_lists() -> None:
    rng = random.Random(8)
    claims = []
    for _ in range(6):
        charges, delta = random_list(rng)
        claim, total = certificate(charges, delta=delta), compose(charges, delta=delta, rule="exact")
        claims += [written(claim), written({**claim, "epsilon": f"{total.lower * 0.9999:.9f}"})]
    assert _by_javascript(claims) == ["proved", "refused"] * 6


def test_vectors_are_those_that_the_maker_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("make_checks", VECTORS / "make_checks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    module.main()
    for name in ("totals.json", "laws.json"):
        assert (tmp_path / name).read_text() == (VECTORS / name).read_text()
