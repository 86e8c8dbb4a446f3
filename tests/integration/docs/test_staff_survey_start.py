"""The case study of a staff survey: its first 13 weeks run, and plan what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from doc_blocks import STUDIES, page_environment
from study_output import numbers, shown_lines

WEEKS = 13


def test_first_weeks_of_the_study_plan_what_the_page_shows(tmp_path: Path, programs: str) -> None:
    done = subprocess.run(
        [sys.executable, STUDIES / "staff-survey" / "year.py", str(WEEKS)],
        cwd=tmp_path,
        env={**os.environ, **page_environment(tmp_path, programs)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line]
    shown = shown_lines(STUDIES / "staff-survey.md", "sed")
    assert lines[:5] == shown[:5]
    week, quarter = (round(float(each)) for each in re.findall(r"± +(\d+\.\d) points", lines[4]))
    page = (STUDIES / "staff-survey.md").read_text(encoding="utf-8")
    assert f"| a share of yes, in one week | ± {week} points |" in page
    assert f"renewed each week | ± {quarter} points |" in page
    for week in (10, 12):
        [found] = [numbers(line) for line in lines if line.startswith(f"week {week}:")]
        assert found[1] == found[2] > 30
    assert f"{WEEKS} weeks: 39 leave, 39 join, 3 are erased" in done.stdout
    assert sum(line.endswith(f" of {WEEKS}") for line in lines) == 7, "the figures of single weeks"
    assert "verified: no problem" in lines[-1]


def test_prose_of_the_page_has_the_figures_of_its_blocks() -> None:
    page = " ".join((STUDIES / "staff-survey.md").read_text(encoding="utf-8").split())
    shown = shown_lines(STUDIES / "staff-survey.md", "sed")
    inside = [[int(each) for each in line.split()[-3::2]] for line in shown if re.search(r"\d of (40|52)$", line)]
    assert len(inside) == 14
    for rows, text in ((inside[:7], "inside {} of {} intervals"), (inside[7:], "inside {} of {} of single weeks")):
        assert text.format(*(sum(column) for column in zip(*rows, strict=True))) in page
    assert f"{inside[0][1] - inside[0][0]} of {inside[0][1]} intervals miss" in page
    [asked, accepted, refused] = numbers(next(line for line in shown if "physician asks 300" in line))[1:4]
    later = numbers(next(line for line in shown if line.startswith("52 weeks")))[5]
    assert f"refuses {refused:.0f} of {asked:.0f}" in page
    assert f"Of the other {accepted:.0f}, {later:.0f} are refused" in page
