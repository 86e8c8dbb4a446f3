"""The test vectors of publications: they are those that the product makes, and the checker agrees with each."""

from __future__ import annotations

import base64
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from ldp_budget_verify.shipped_checkers import checker
from published_survey import ROOT

FOLDER = ROOT / "clients" / "check"
VECTORS: dict[str, Any] = json.loads((FOLDER / "vectors.json").read_text(encoding="utf-8"))
CHECKER = checker("check_books")


def test_vectors_are_those_that_the_product_makes() -> None:
    spec = importlib.util.spec_from_file_location("make_vectors", FOLDER / "make_vectors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.text() == (FOLDER / "vectors.json").read_text(encoding="utf-8")


def test_marks_and_leaves_equal_the_vectors() -> None:
    secret = bytes.fromhex(VECTORS["marks"]["secret"])
    assert CHECKER.mark(b"report", secret).hex() == VECTORS["marks"]["report"]
    assert CHECKER.mark(b"charge", secret).hex() == VECTORS["marks"]["charge"]


def test_tree_equals_the_vectors() -> None:
    leaves = [bytes.fromhex(leaf) for leaf in VECTORS["tree"]["leaves"]]
    assert CHECKER.tree_root([CHECKER.leaf_hash(leaf) for leaf in leaves]).hex() == VECTORS["tree"]["root"]
    for index, path in enumerate(VECTORS["tree"]["paths"]):
        found = CHECKER.root_from_path(leaves[index], index, len(leaves), bytes.fromhex(path))
        assert found.hex() == VECTORS["tree"]["root"]


@pytest.mark.slow
@pytest.mark.parametrize("case", VECTORS["surveys"], ids=[each["name"] for each in VECTORS["surveys"]])
def test_survey_of_the_vectors_is_judged_as_stated(case: dict[str, Any], tmp_path: Path) -> None:
    site = tmp_path / "site"
    for name, content in case["files"].items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(base64.b64decode(content))
    receipts = []
    for place, text in enumerate(case.get("receipt_texts") or map(json.dumps, case["receipts"])):
        receipts.append(tmp_path / f"{place}.json")
        receipts[-1].write_text(text, encoding="utf-8")
    proof, seen = tmp_path / "proof", tmp_path / "seen"
    proof.write_text(case["proof"] or "")
    seen.write_text(case.get("seen") or "")
    arguments = [str(site), *(word for key in case["keys"] for word in ("--key", key))]
    arguments += [word for receipt in receipts for word in ("--receipt", str(receipt))]
    arguments += ["--proof", str(proof)] if case["proof"] is not None else []
    arguments += ["--seen", str(seen)] if case.get("seen") else []
    assert CHECKER.main(arguments) == (0 if case["accepted"] else 1)
