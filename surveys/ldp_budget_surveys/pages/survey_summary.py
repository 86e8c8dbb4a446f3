"""Facts of a survey for people who decide: who asked, who answered, estimates, budget, and the state of the ledger.

`summary_text` puts the facts into words, and `summary_page` makes one page of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ldp_budget.reports.partial_aggregate import is_partial, open_files
from ldp_budget.reports.public_attributes import count_combinations

from ..questionnaires.questionnaire import NO_ANSWER
from ..questionnaires.scales import BELOW, IN_BOX
from ..questionnaires.survey_collection import SurveyCollection
from ..questionnaires.survey_questions import SCALE, YES_NO
from .ledger_facts import Charges, LedgerState, ledger_facts
from .translations import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from ldp_budget.accounting.budget_client import BudgetClient
    from ldp_budget.guarantees import Guarantee
    from ldp_budget.registry.collections import Collection

    from ..questionnaires.survey_questions import SurveyQuestion


@dataclass(frozen=True)
class Question:
    """A question as it was asked, the collection that randomizes its answers, and its row of `estimate --json`.

    `row` is None if there are no answers yet. `unit` is the unit of answers that are numbers. `words` holds the answers in
    the language of the page.
    """

    text: str
    collection: Collection
    row: Mapping[str, Any] | None
    unit: str = ""
    words: Mapping[str, str] = field(default_factory=dict)

    def shown(self, answer: str) -> str:
        """Return an answer in the language of the page."""
        return self.words.get(answer, answer)


@dataclass(frozen=True)
class Subject:
    """The survey as its respondents saw it.

    `charged_as` is the name of the collection or survey in the journal, and `guarantee` the loss of one response.
    """

    charged_as: str
    title: str
    guarantee: Guarantee
    questions: tuple[Question, ...]
    organisation: str = ""
    contact: str = ""
    purpose: str = ""
    asked: int = 1
    """The number of questions that each person answers."""
    policy: str = "default"
    """The policy that the survey names, under which respondents will be charged."""

    @classmethod
    def of_collection(
        cls,
        collection: Collection,
        row: Mapping[str, Any] | None,
        *,
        organisation: str = "",
        language: str = "en",
    ) -> Subject:
        """Return the subject of a collection: of one question, or of a survey.

        Parameters:
            collection: the collection.
            row: that of `estimate --json`; None without a report.
            organisation: who asks, in place of the survey's own.
            language: the language of the texts; those that the survey does not have in it are shown as they are.
        """
        about = collection.about
        if isinstance(collection, SurveyCollection):
            survey = collection.survey
            own = survey.languages.get(language, {})
            return cls(
                collection.name,
                own.get("title") or survey.title or survey.name,
                collection.mechanism.guarantee,
                tuple(
                    _question(each, collection.question(each.name), _own_row(row, each.name), language)
                    for each in survey.shown
                ),
                organisation or survey.organisation,
                survey.contact,
                own.get("purpose") or survey.purpose,
                survey.ask,
                survey.policy,
            )
        own = about.languages.get(language, {})
        title = own.get("title") or about.title or about.question or collection.name
        text = own.get("question") or about.question or title
        question = Question(text, collection, row, words=_words(collection.categories, own.get("answers")))
        return cls(
            collection.name,
            title,
            collection.mechanism.guarantee,
            (question,),
            organisation=organisation,
            contact=about.contact,
            purpose=own.get("purpose") or about.purpose,
        )


def _question(
    asked: SurveyQuestion, collection: Collection, row: Mapping[str, Any] | None, language: str
) -> Question:
    own, say = asked.languages.get(language, {}), texts(language)
    words = {"yes": say("answer.yes"), "no": say("answer.no")} if asked.kind == YES_NO else {}
    words |= {NO_ANSWER: say("answer.none")} if asked.optional else {}
    words |= {IN_BOX: say("answer.box"), BELOW: say("answer.below")} if asked.kind == SCALE else {}
    text = own.get("text") or asked.text or asked.name
    unit = say("answer.nps") if asked.shown_unit != asked.unit else asked.unit
    return Question(text, collection, row, unit, words | _words(asked.categories, own.get("categories")))


def _words(answers: Sequence[str] | None, shown: Sequence[str] | None) -> dict[str, str]:
    """Return answers with their words in the language; the last answer of an optional question has none there."""
    return dict(zip(answers or (), shown or (), strict=False))


def _own_row(row: Mapping[str, Any] | None, name: str) -> Mapping[str, Any] | None:
    """Return the row of a question as that of a collection of its own; None without an answer to it."""
    own = None if row is None else row[name]
    return None if row is None or not own or not own["asked"] else {**own, "reports": row["respondents"]}


@dataclass(frozen=True)
class PublicColumns:
    """The public columns that report files store without noise, and the number of reports of the rarest combination."""

    names: tuple[str, ...]
    smallest: int


def public_columns(files: Sequence[str], collection: Collection) -> PublicColumns | None:
    """Return the public columns of the report files; None if they store none.

    Partials, which store none, are passed over. Raises `ReportFileError`.
    """
    names: dict[str, None] = {}
    counts: Counter[tuple[tuple[str, str], ...]] = Counter()
    for path in files:
        for reports in () if is_partial(path) else open_files(path, collection, {}):
            if reports.public:
                names |= dict.fromkeys(reports.public)
                found = count_combinations(public for _, public in reports.attributed_blocks())
                counts.update({tuple(zip(reports.public, each, strict=True)): of for each, of in found.items()})
    return PublicColumns(tuple(names), min(counts.values(), default=0)) if names else None


@dataclass(frozen=True)
class Weighting:
    """The design of weighted estimates, as the page explains it.

    `weights` is a public column, or the columns of a table of weights; empty for equal weights. `totals` are the
    variables with known totals. `people` is the sum of the weights, if they sum to the population, and `population` the
    size of a finite population correction. `kish` is the design effect of unequal weights alone. `options` are those with
    which `estimate` gives the results, and `table_options` those with which it gives the two-way table.
    """

    weights: str | tuple[str, ...]
    totals: tuple[str, ...]
    strata: tuple[str, ...]
    clusters: str | None
    by: str | None
    people: float | None
    kish: float
    population: float | None = None
    table: Mapping[str, Any] | None = None
    options: str = ""
    table_options: str = ""


@dataclass(frozen=True)
class Summary:
    """All facts of one page. `ledger` is None without a ledger, and `charges` also if nothing confirms them."""

    subject: Subject
    made_at: datetime
    answered: int
    files: tuple[str, ...] = ()
    invited: int | None = None
    refused: int | None = None
    uncharged: int = 0
    """The number of reports in the files that say that their users were not charged."""
    charges: Charges | None = None
    ledger: LedgerState | None = None
    public: PublicColumns | None = None
    twins: tuple[tuple[str, str], ...] = ()
    """The names of each two files with the same content."""
    weighting: Weighting | None = None
    """The design, if the estimates are weighted."""


def summarize(
    subject: Subject,
    made_at: datetime,
    *,
    files: Sequence[str] = (),
    invited: int | None = None,
    refused: int | None = None,
    uncharged: int = 0,
    ledger: BudgetClient | None = None,
    verify: bool | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    public: PublicColumns | None = None,
    twins: Sequence[tuple[str, str]] = (),
    weighting: Weighting | None = None,
) -> Summary:
    """Return the facts of a survey, from its estimates and the ledger.

    What the ledger says is confirmed, or absent. With `verify` the ledger is verified; with None, unless it was
    verified within the last hour. `on_progress` gets the steps done and their number. Raises `LedgerError`.
    """
    charges, state = None, None
    if ledger is not None:
        charges, state = ledger_facts(ledger, subject.charged_as, subject.policy, verify, on_progress)
    answered = max((int(each.row["reports"]) for each in subject.questions if each.row is not None), default=0)
    return Summary(
        subject,
        made_at,
        answered,
        tuple(files),
        invited,
        refused,
        uncharged,
        charges=charges,
        ledger=state,
        public=public,
        twins=tuple(twins),
        weighting=weighting,
    )
