"""The length of a charge's path: calls, files and frames of a warm `spend` on a file, counted by the interpreter."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

import ldp_budget
from contract.acts import coin
from ldp_budget import Accountant

REPORT = coin("0.1")
OWN = os.path.dirname(ldp_budget.__file__)


class Charge(NamedTuple):
    """The path of a charge: the functions that were called, in order, and those above the decision."""

    calls: list[tuple[str, str]]
    above: list[str]

    @property
    def files(self) -> list[str]:
        return [file for file, _ in self.calls]

    @property
    def changes(self) -> int:
        return sum(one != other for one, other in zip(self.files, self.files[1:], strict=False))


def counted(call: Any) -> Charge:
    """Return the own calls of all threads while `call` runs."""
    found = Charge([], [])

    def count(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(OWN):
            return
        found.calls.append((os.path.relpath(file, OWN), frame.f_code.co_name))
        if frame.f_code.co_name == "decide" and not found.above:
            above = frame.f_back
            while above is not None:
                if above.f_code.co_filename.startswith(OWN):
                    found.above.append(above.f_code.co_name)
                above = above.f_back

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[Accountant]:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        for number in range(5):
            accountant.spend("alice", REPORT, key=f"before {number}")
        yield accountant


def test_warm_spend_with_a_key_makes_few_calls_in_few_files(warm: Accountant) -> None:
    charge = counted(lambda: warm.spend("alice", REPORT, key="counted"))
    assert ("accounting/admission.py", "decide") in charge.calls
    assert len(charge.calls) <= 95, charge.calls
    assert len(set(charge.files)) <= 14, sorted(set(charge.files))
    assert charge.changes <= 45, charge.files
    assert len(charge.above) <= 8, charge.above


def test_warm_spend_goes_through_the_files_that_the_architecture_draws(warm: Accountant) -> None:
    charge = counted(lambda: warm.spend("alice", REPORT, key="counted"))
    page = Path(__file__).parents[3] / "docs" / "explanation" / "architecture.md"
    section = page.read_text(encoding="utf-8").partition("## The path of one charge")[2].partition("\n## ")[0]
    drawing = section.partition("```text")[2].partition("```")[0]
    drawn = set(re.findall(r"[a-z_]+[.]py", drawing))
    assert drawn == {os.path.basename(file) for file in charge.files}
