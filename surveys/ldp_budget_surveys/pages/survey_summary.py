"""Facts of a survey for people who decide: who asked, who answered, estimates, budget, and the state of the ledger.

`reports.summary_text` puts the facts into words, and `reports.summary_page` makes one page of them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ldp_budget.accounting.accountant import Accountant
from ldp_budget.errors import LedgerError, UnknownName
from ldp_budget.guarantees.fixed_point import EPSILON_DIGITS, from_units
from ldp_budget.ledger.models import CHARGES, POLICY_SET, VOIDED
from ldp_budget.reports.partial_aggregate import is_partial, open_files
from ldp_budget.reports.public_attributes import count_combinations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from ldp_budget.accounting.budget_client import BudgetClient
    from ldp_budget.accounting.policies import Policy
    from ldp_budget.guarantees import Guarantee
    from ldp_budget.registry.collections import Collection

_UNIT = 10**EPSILON_DIGITS


@dataclass(frozen=True)
class Question:
    """A question as it was asked, the collection that randomizes its answers, and its row of `estimate --json`.

    `row` is None if there are no answers yet. `unit` is the unit of answers that are numbers.
    """

    text: str
    collection: Collection
    row: Mapping[str, Any] | None
    unit: str = ""


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
        cls, collection: Collection, row: Mapping[str, Any] | None, *, organisation: str = ""
    ) -> Subject:
        """Return the subject of a collection: of one question, or of a survey. `row` is that of `estimate --json`."""
        about, survey = collection.about, collection.survey
        if survey is not None:
            return cls(
                collection.name,
                survey.title or survey.name,
                collection.mechanism.guarantee,
                tuple(
                    Question(
                        each.text or each.name, collection.question(each.name), _own_row(row, each.name), each.unit
                    )
                    for each in survey.questions
                ),
                organisation or survey.organisation,
                survey.contact,
                survey.purpose,
                survey.ask,
                survey.policy,
            )
        title = about.title or about.question or collection.name
        question = Question(about.question or title, collection, row)
        return cls(
            collection.name,
            title,
            collection.mechanism.guarantee,
            (question,),
            organisation=organisation,
            contact=about.contact,
            purpose=about.purpose,
        )


def _own_row(row: Mapping[str, Any] | None, name: str) -> Mapping[str, Any] | None:
    """Return the row of a question as that of a collection of its own; None without an answer to it."""
    own = None if row is None else row[name]
    return None if row is None or not own or not own["asked"] else {**own, "reports": row["respondents"]}


@dataclass(frozen=True)
class LimitUse:
    """One limit of a policy, and the most that one account has spent of it by its rule.

    `largest` is infinite without a bound, and None if it was not computed: for windows that begin again.
    """

    period: str
    epsilon: Decimal
    delta: Decimal
    rule: str
    largest: float | None = None


@dataclass(frozen=True)
class PolicyUse:
    """A policy under which respondents were charged, with its limits.

    `raised` are the days since the first charge on which the policy began to allow more; None if they are unknown.
    """

    name: str
    limits: tuple[LimitUse, ...]
    raised: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Charges:
    """The charges of a survey in a ledger: accounts, reports, the days of the first and the last one, and policies.

    `largest` is the largest sum of ε that one account was charged for the survey, and `largest_total` that for
    everything; infinite where nothing bounds a charge. Sums are rounded up.
    """

    accounts: int = 0
    reports: int = 0
    first: str | None = None
    last: str | None = None
    largest: Decimal = Decimal(0)
    largest_total: Decimal = Decimal(0)
    policies: tuple[PolicyUse, ...] = ()


@dataclass(frozen=True)
class LedgerState:
    """The newest head of a ledger and the result of its verification; `ok` is None if it was not verified."""

    head: str | None
    entries: int
    ok: bool | None
    problems: tuple[str, ...] = ()
    refused: int | None = None
    """The refused requests of all surveys that the ledger knows of; None if they are unknown here."""
    charges: int = 0
    policies: int = 0
    """The numbers of entries that charge, and of those that set a policy."""


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
    """All facts of one page. `charges` and `ledger` are None without a ledger."""

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
    twins: tuple[str, ...] = ()
    """A sentence for each pair of files with the same content."""
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
    verify: bool = True,
    public: PublicColumns | None = None,
    twins: Sequence[str] = (),
    weighting: Weighting | None = None,
) -> Summary:
    """Return the facts of a survey, from its estimates and the ledger.

    Reads the whole journal, and with `verify` verifies it. Raises `LedgerError`.
    """
    answered = max((int(each.row["reports"]) for each in subject.questions if each.row is not None), default=0)
    return Summary(
        subject,
        made_at,
        answered,
        tuple(files),
        invited,
        refused,
        uncharged,
        charges=None if ledger is None else charges_of(ledger, subject.charged_as, subject.policy),
        ledger=None if ledger is None else _state_of(ledger, verify),
        public=public,
        twins=tuple(twins),
        weighting=weighting,
    )


def charges_of(ledger: BudgetClient, name: str, planned: str = "default") -> Charges:
    """Return the charges of the collection or survey of that name, from the journal.

    Without a charge, its policies are the `planned` one, if the ledger has it.
    """
    totals: defaultdict[tuple[int, int], float] = defaultdict(float)
    mine: defaultdict[tuple[int, int], float] = defaultdict(float)
    reports, days, policies = 0, list[str](), dict[str, None]()
    for row in ledger.journal():
        if row["account"] is None or not row["reports"]:
            continue
        account = row.get("partition", 0), row["account"]
        back = row["kind"] == "voided"
        units = _units(row["epsilon"], back)
        totals[account] += units
        if row["collection"] == name:
            mine[account] += units
            reports += -row["reports"] if back else row["reports"]
            days.append(str(row["at"]))
            policies[row["policy"]] = None
    return Charges(
        sum(units > 0 for units in mine.values()),
        reports,
        min(days, default=None),
        max(days, default=None),
        _largest(mine.values()),
        _largest(totals.values()),
        tuple(_use_of(ledger, ledger.policy(policy), min(days)) for policy in sorted(policies))
        or _planned(ledger, planned),
    )


def _planned(ledger: BudgetClient, name: str) -> tuple[PolicyUse, ...]:
    """Return the limits of a policy without any use; empty if the ledger does not have it."""
    try:
        limits = ledger.policy(name).limits
    except UnknownName:
        return ()
    return (PolicyUse(name, tuple(LimitUse(each.period, each.epsilon, each.delta, each.rule) for each in limits)),)


def _units(epsilon: float | None, back: bool) -> float:
    """Return a journal row's ε in whole units, which a double holds exactly; infinite if nothing bounds it."""
    if epsilon is None:
        return 0 if back else math.inf
    units = float(round(abs(epsilon) * _UNIT))
    return -units if back else units


def _largest(sums: Iterable[float]) -> Decimal:
    most = max(sums, default=0)
    return Decimal("Infinity") if math.isinf(most) else from_units(int(most), EPSILON_DIGITS)


def _use_of(ledger: BudgetClient, policy: Policy, first: str) -> PolicyUse:
    """Return the limits of a policy, each with the most that one account has spent of it.

    `first` is the time of the first charge.
    """
    raised = None
    if isinstance(ledger, Accountant):
        versions = [row for row in ledger.ledger.overview().policies() if row["policy"] == policy.name]
        raised = tuple(row["at"][:10] for row in versions if row["change"] == "raised" and row["at"] >= first)
    largest: dict[str, float] = {}
    try:
        for balance in ledger.balances(policy=policy.name):
            for state in balance.limits:
                if state.resets_at is None:
                    spent = state.limit.epsilon_of(state.spent_units)
                    largest[state.limit.label] = max(spent, largest.get(state.limit.label, 0))
    except LedgerError:  # an account was changed: the totals are unknown, and the verification says so
        largest = {}
    return PolicyUse(
        policy.name,
        tuple(
            LimitUse(limit.period, limit.epsilon, limit.delta, limit.rule, largest.get(limit.label))
            for limit in policy.limits
        ),
        raised,
    )


def _state_of(ledger: BudgetClient, verify: bool) -> LedgerState:
    refused = None
    if isinstance(ledger, Accountant):
        totals = ledger.ledger.overview().totals()
        refused = totals["refused"] + totals["refused_in_bulk"]
    stats = ledger.stats()
    kinds = stats.get("entries_by_kind", {})
    counts = sum(kinds.get(each, 0) for each in CHARGES if each != VOIDED), kinds.get(POLICY_SET, 0)
    if verify:
        found = ledger.verify()
        return LedgerState(found.head, found.entries, found.ok, found.problems, refused, *counts)
    return LedgerState(stats["head"], stats["entries"], None, (), refused, *counts)
