"""Aggregates and estimates of a questionnaire: those of its questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ldp_budget.sdk.estimates import Estimate, check_same

if TYPE_CHECKING:
    from ldp_budget.sdk.estimates import Aggregate


@dataclass
class QuestionnaireAggregate:
    """The aggregate of each question, over those who answered it. `reports` is the number of all respondents."""

    fingerprint: str
    reports: int
    parts: tuple[Aggregate, ...]

    def merge(self, other: QuestionnaireAggregate) -> QuestionnaireAggregate:
        """Add another aggregate of the same questionnaire to this one, exactly, and return this one.

        Raises:
            NotSupported: `other` was made by another questionnaire.
        """
        check_same(self, other)
        self.reports += other.reports
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine.merge(theirs)
        return self


@dataclass(frozen=True)
class QuestionnaireEstimate(Estimate):
    """An estimate for each question, about all respondents; None for a question without a report.

    `reports` is the number of respondents, and `asked` for each question the number of those who answered it.
    """

    reports: int
    questions: dict[str, Estimate | None]
    asked: dict[str, int]

    def __repr__(self) -> str:
        return f"<QuestionnaireEstimate of {self.reports} respondents: {', '.join(self.questions)}>"

    def to_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return the rows of each question, with its name as `question`, and as `asked` how many answered it."""
        return [
            {"question": name, "asked": self.asked[name], **row}
            for name, estimate in self.questions.items()
            if estimate is not None
            for row in estimate.to_rows(level)
        ]
