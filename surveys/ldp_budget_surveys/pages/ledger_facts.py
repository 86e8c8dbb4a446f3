"""Facts of a ledger for the page about a survey: its charges, the largest sums of an account, and its verification.

What a ledger on this machine says is confirmed when the page is made, or it is absent. A service sends its journal and
its balances, and verifies them when the page is made.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from ldp_budget.accounting.accountant import Accountant
from ldp_budget.errors import LedgerError, UnknownName
from ldp_budget.guarantees.fixed_point import EPSILON_DIGITS, from_units
from ldp_budget.ledger.calendar import from_micros
from ldp_budget.ledger.models import CHARGES, POLICY_SET, VOIDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from ldp_budget.accounting.budget_client import BudgetClient
    from ldp_budget.accounting.limits import Limit
    from ldp_budget.accounting.policies import Policy

    from .collection_use import CollectionUse

    Progress = Callable[[int, int], None] | None

_UNIT = 10**EPSILON_DIGITS


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
    scope: str = ""


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
    """The newest head of a ledger and the result of its verification; `ok` is None if it was not verified.

    `verified_at` and `verified_head` are the time and the head of the verification.
    """

    head: str | None
    entries: int
    ok: bool | None
    problems: tuple[str, ...] = ()
    refused: int | None = None
    """The refused requests of all surveys that the ledger knows of; None if they are unknown here."""
    charges: int = 0
    policies: int = 0
    """The numbers of entries that charge, and of those that set a policy."""
    verified_at: datetime | None = None
    verified_head: str | None = None


def ledger_facts(
    ledger: BudgetClient, name: str, planned: str, verify: bool | None, on_progress: Progress
) -> tuple[Charges | None, LedgerState]:
    """Return the charges of the collection or survey of that name, and the state of the ledger.

    Without a charge, its policies are the `planned` one, if the ledger has it. With `verify` the ledger is verified;
    with None, unless it was verified on this machine within the last hour. The charges are None if a row that counts
    was changed.
    """
    if isinstance(ledger, Accountant):
        return _here(ledger, name, planned, verify, on_progress)
    return _sent_charges(ledger, name, planned), _sent_state(ledger, verify is not False)


# -- a ledger on this machine --------------------------------------------------------------------------------


def _here(
    ledger: Accountant, name: str, planned: str, verify: bool | None, on_progress: Progress
) -> tuple[Charges | None, LedgerState]:
    operations = ledger.ledger
    last = None if verify else operations.last_verification()
    for known in (last, None) if verify is False else (last,):
        if known is not None or verify is False:
            use, why = _confirmed(ledger, name, None if known is None else known.head, on_progress)
            if use is not None:
                verified = (True, (), from_micros(known.at), known.head) if known else (None, (), None, None)
                return _charges(ledger, use, planned), _state(use, *verified)
    if verify is False:
        return None, LedgerState(None, 0, False, (why,))
    # There is no verification of the last hour, or what it verified was changed since.
    begun = ledger.now()
    found = operations.verify(on_progress=on_progress)
    use, why = _confirmed(ledger, name, None, on_progress)
    problems = found.problems or ((why,) if why else ())
    if use is None:
        return None, LedgerState(found.head, found.entries, False, problems, None, 0, 0, begun, found.head)
    return _charges(ledger, use, planned), _state(use, not problems, problems, begun, found.head)


def _state(
    use: CollectionUse, ok: bool | None, problems: tuple[str, ...], at: datetime | None, head: str | None
) -> LedgerState:
    kinds = use.entries_by_kind
    charges = sum(kinds.get(each, 0) for each in CHARGES if each != VOIDED)
    entries, policies = use.entries, kinds.get(POLICY_SET, 0)
    return LedgerState(use.head, entries, ok, problems, use.refused, charges, policies, at, head)


def _confirmed(
    ledger: Accountant, name: str, head: str | None, on_progress: Progress
) -> tuple[CollectionUse | None, str]:
    """Return the charges, or None and the reason why they are not confirmed."""
    try:
        return ledger.ledger.collection_use(name, head=head, on_progress=on_progress), ""
    except LedgerError as error:
        return None, str(error)


def _charges(ledger: Accountant, use: CollectionUse, planned: str) -> Charges:
    return Charges(
        use.accounts,
        use.reports,
        use.first,
        use.last,
        _epsilon(use.largest),
        _epsilon(use.largest_total),
        tuple(_policy_use(ledger, policy, use) for policy in use.policies) or _planned(ledger, planned),
    )


def _epsilon(units: int | None) -> Decimal:
    return Decimal("Infinity") if units is None else from_units(units, EPSILON_DIGITS)


def _policy_use(ledger: Accountant, policy: str, use: CollectionUse) -> PolicyUse:
    versions = [row for row in ledger.ledger.overview().policies() if row["policy"] == policy]
    raised = [row["at"][:10] for row in versions if row["change"] == "raised" and row["at"] >= (use.first or "")]
    limits = zip(ledger.policy(policy).limits, use.policies[policy], strict=True)
    return PolicyUse(policy, tuple(_limit_use(limit, most) for limit, most in limits), tuple(raised))


def _limit_use(limit: Limit, largest: float | None = None) -> LimitUse:
    return LimitUse(limit.period, limit.epsilon, limit.delta, limit.rule, largest, limit.scope)


# -- a ledger behind a service -------------------------------------------------------------------------------


def _sent_charges(ledger: BudgetClient, name: str, planned: str) -> Charges:
    """Return the charges from the journal."""
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
        tuple(_sent_use(ledger, ledger.policy(policy)) for policy in sorted(policies)) or _planned(ledger, planned),
    )


def _planned(ledger: BudgetClient, name: str) -> tuple[PolicyUse, ...]:
    """Return the limits of a policy without any use; empty if the ledger does not have it."""
    try:
        limits = ledger.policy(name).limits
    except UnknownName:
        return ()
    return (PolicyUse(name, tuple(map(_limit_use, limits))),)


def _units(epsilon: float | None, back: bool) -> float:
    """Return a journal row's ε in whole units, which a double holds exactly; infinite if nothing bounds it."""
    if epsilon is None:
        return 0 if back else math.inf
    units = float(round(abs(epsilon) * _UNIT))
    return -units if back else units


def _largest(sums: Iterable[float]) -> Decimal:
    most = max(sums, default=0)
    return Decimal("Infinity") if math.isinf(most) else from_units(int(most), EPSILON_DIGITS)


def _sent_use(ledger: BudgetClient, policy: Policy) -> PolicyUse:
    """Return the limits of a policy, each with the most that one account has spent of it."""
    largest: dict[str, float] = {}
    try:
        for balance in ledger.balances(policy=policy.name):
            for state in balance.limits:
                if state.resets_at is None:
                    spent = state.limit.epsilon_of(state.spent_units)
                    largest[state.limit.label] = max(spent, largest.get(state.limit.label, 0))
    except LedgerError:  # an account was changed: the totals are unknown, and the verification says so
        largest = {}
    return PolicyUse(policy.name, tuple(_limit_use(limit, largest.get(limit.label)) for limit in policy.limits))


def _sent_state(ledger: BudgetClient, verify: bool) -> LedgerState:
    stats = ledger.stats()
    kinds = stats.get("entries_by_kind", {})
    counts = sum(kinds.get(each, 0) for each in CHARGES if each != VOIDED), kinds.get(POLICY_SET, 0)
    if verify:
        begun = ledger.now()
        found = ledger.verify()
        return LedgerState(found.head, found.entries, found.ok, found.problems, None, *counts, begun, found.head)
    return LedgerState(stats["head"], stats["entries"], None, (), None, *counts)
