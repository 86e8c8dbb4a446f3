"""A questionnaire that is published: reports and charges are proved, and the estimate is not checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldp_budget_verify.shipped_checkers import checker
from published_survey import published_questionnaire

CHECKER = checker("check_books")


@pytest.mark.slow
def test_questionnaire_is_published_and_proved_without_an_estimate(tmp_path: Path) -> None:
    key = published_questionnaire(tmp_path)
    lines = CHECKER.check(tmp_path / "site", [key], [tmp_path / "receipt"], tmp_path / "proof")
    assert "reports   3: yours is one of them" in lines
    assert lines[-1] == "estimate  none of this program is published"
    with pytest.raises(NotImplementedError, match="questionnaire"):
        checker("check_law").check((tmp_path / "site" / "client.json").read_bytes())
