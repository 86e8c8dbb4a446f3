"""The package's errors carry their data, also from one process to another."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator

import pytest

import ldp_budget
from ldp_budget import Accountant, BudgetExceeded, errors, mechanism
from ldp_budget.errors import (
    ApprovalConflict,
    ApprovalNeeded,
    ClockError,
    InvalidParameter,
    KeyConflict,
    LdpBudgetError,
    LedgerError,
    LedgerKeyMissing,
    LedgerMissing,
    LedgerMoved,
    NameTaken,
    NotSupported,
    OutsideDomain,
    PluginError,
    PublicationError,
    RecordConflict,
    ReportFileError,
    ReservationConflict,
    SandboxError,
    TableError,
    TooFewReports,
    UnknownName,
    UserErased,
)
from ldp_budget.ledger.storage import PartitionsFailedError, UnstorableError
from ldp_budget_cli.errors import FAILURES, to_click_exception
from ldp_budget_service.client import ServiceProblem
from ldp_budget_verify import Broken, NotChecked
from ldp_budget_verify.law import Unknown

ERRORS = [
    LdpBudgetError("something"),
    InvalidParameter("epsilon", "a number > 0", -1),
    OutsideDomain("0, 1 or 2", 3, 7),
    UnknownName("mechanism", "nothing", ["oue", "krr"], "Ask for one"),
    UserErased("alice"),
    NameTaken("collection", "poll", "exists already"),
    PluginError("toy", "it is broken"),
    NotSupported("no such rule"),
    Unknown("independent places: no row is sent"),
    LedgerError("budget.db", "it is locked"),
    LedgerMissing("budget.db"),
    LedgerMoved("budget.db", "moved.db", complete=True),
    PartitionsFailedError("budget.db", "its node failed", [1, 2]),
    UnstorableError("budget.db", "a text holds NUL"),
    Unknown("no rule derives the law of this program"),
    LedgerKeyMissing("budget.db", 2),
    ClockError("budget.db", "it is far behind", repairable=True),
    SandboxError("budget.db", True),
    KeyConflict("k"),
    RecordConflict(3, 4),
    ApprovalNeeded("default", ["it is unbounded"]),
    ApprovalConflict(3, "it was withdrawn"),
    ReservationConflict("7", "void", "committed"),
    ReportFileError("r", "it is truncated"),
    TableError("t", "it is truncated"),
    ServiceProblem("forbidden", "the key lacks the scope", 403),
    Broken("a promise"),
    NotChecked("no way to"),
    TooFewReports(3, 20),
    PublicationError("the counts differ"),
]


# Scripts and answers over HTTP go by these. A new kind of error gets one; none of them ever changes.
CODES = {
    "LdpBudgetError": "error",
    "InvalidParameter": "invalid-parameter",
    "OutsideDomain": "outside-domain",
    "UnknownName": "unknown-name",
    "UserErased": "user-erased",
    "NameTaken": "name-taken",
    "PluginError": "plugin-error",
    "NotSupported": "not-supported",
    "LedgerError": "ledger-error",
    "LedgerMissing": "ledger-missing",
    "LedgerMoved": "ledger-moved",
    "LedgerKeyMissing": "ledger-key-missing",
    "ClockError": "clock-error",
    "SandboxError": "sandbox-error",
    "KeyConflict": "key-conflict",
    "ApprovalConflict": "approval-conflict",
    "ApprovalNeeded": "approval-needed",
    "RecordConflict": "record-conflict",
    "ReservationConflict": "reservation-conflict",
    "ReportFileError": "report-file-error",
    "TableError": "table-error",
    "BudgetExceeded": "budget-exceeded",
}


def refusal() -> BudgetExceeded:
    """A refusal, as it is raised."""
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1", "day=0.5"])
        with pytest.raises(BudgetExceeded) as caught:
            accountant.spend("alice", mechanism("oue")(epsilon=2, domain_size=3), strict=True)
    return caught.value


OURS = ("ldp_budget.", "ldp_budget_service.api", "ldp_budget_surveys.", "ldp_budget_verify")


def kinds(kind: type[LdpBudgetError] = LdpBudgetError) -> Iterator[type[LdpBudgetError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)


def test_error_cases_include_every_class() -> None:
    ours = {kind for kind in kinds() if kind.__module__.startswith(OURS)}
    assert ours == {type(error) for error in [*ERRORS, refusal()]}


def test_public_errors_have_unique_stable_codes() -> None:
    public = {kind.__name__: kind.code for kind in kinds() if kind.__name__ in ldp_budget.__all__}
    assert public == CODES
    assert len(set(CODES.values())) == len(CODES)


def test_command_line_uses_existing_codes_only() -> None:
    assert set(FAILURES) <= set(CODES.values())


def test_foreign_error_is_unchanged() -> None:
    bug = ZeroDivisionError()
    assert to_click_exception(bug) is bug


@pytest.mark.parametrize("error", [*ERRORS, refusal()], ids=lambda error: type(error).__name__)
def test_errors_keep_text_and_attributes_when_pickled(error: LdpBudgetError) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        twin = pickle.loads(pickle.dumps(error, protocol))
        assert type(twin) is type(error)
        assert (str(twin), twin.args, vars(twin)) == (str(error), error.args, vars(error))


def test_error_tree_matches_the_classes() -> None:
    path, drawn = [""], set()
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r" {4}([│├└─ ]*)(\w+)( \(|$)", line):
            depth = len(found[1]) // 4
            path[depth + 1 :] = [found[2]]
            drawn.add((path[depth], found[2]))
    ours = {kind for kind in kinds() if kind.__module__.startswith(OURS)} - {LdpBudgetError}
    pairs = {(base.__name__, kind.__name__) for kind in ours for base in kind.__bases__ if base in kinds()}
    assert drawn == {("", "LdpBudgetError"), *pairs}
