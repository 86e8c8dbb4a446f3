"""Optional questions in files: a blank cell counts as "no answer"."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import CommandLine


def test_blank_cell_of_an_optional_question_is_no_answer(command: CommandLine, tmp_path: Path) -> None:
    survey, answers, reports = tmp_path / "s.toml", tmp_path / "a.csv", tmp_path / "s.reports"
    survey.write_text(
        '[survey]\nname = "health"\nepsilon = 40\nminimum_group = 1\n'
        '[[question]]\nname = "smoke"\nkind = "yes-no"\noptional = true\n',
        encoding="utf-8",
    )
    answers.write_text("smoke\nyes\n\"\"\nno\nno answer\n", encoding="utf-8")  # fmt: skip
    command("survey", "add", survey)
    command("randomize", "health", answers, "--out", reports)
    found = json.loads(command("estimate", "health", reports, "--json").stdout)["smoke"]["answers"]
    assert {each["answer"]: round(each["count"]) for each in found} == {"yes": 1, "no": 1, "no answer": 2}
