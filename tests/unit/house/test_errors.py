"""Errors: each has a code, crosses the wire and processes with its data, and is drawn in the tree of errors."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

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
    LedgerUpgraded,
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
from ldp_budget_service.api.problem_details import error_of
from ldp_budget_service.client import ServiceProblem
from ldp_budget_service.error_codes import STATUSES, ServiceError
from ldp_budget_service.problems import error_response
from ldp_budget_verify import Broken, NotChecked
from ldp_budget_verify.law import Unknown

URL = "https://budget.example.org"
SECRET_PLACE = "/srv/secret/budget.db"
NEWEST = datetime(2026, 11, 21, 12, tzinfo=UTC)

SAME = [
    LdpBudgetError("something"),
    InvalidParameter("epsilon", "a number > 0", -1),
    InvalidParameter("epsilon", "a number > 0"),
    InvalidParameter("epsilon", "a number > 0", "'one'"),
    OutsideDomain("0, 1 or 2", 3, 7),
    OutsideDomain("0, 1 or 2", "x"),
    UnknownName("mechanism", "nothing", ["oue", "krr"], "Ask for one"),
    UnknownName("policy", "nothing", []),
    UnknownName("user", "nobody", None, "Nothing was erased"),
    UserErased("alice"),
    NameTaken("collection", "poll", "exists already"),
    PluginError("toy", "it is broken"),
    NotSupported("no such rule"),
    KeyConflict("k"),
    ReservationConflict("7", "void", "committed"),
    RecordConflict(3, 4),
    ApprovalNeeded("default", ["lifetime is larger", "day is gone"]),
    ApprovalConflict(4, "it was withdrawn"),
    ApprovalConflict(None, "nobody can"),
]
"""The errors that are transmitted unchanged."""

OF_A_LEDGER = [
    LedgerError(SECRET_PLACE, f"{SECRET_PLACE} is locked"),
    LedgerError(SECRET_PLACE, "it was lost", unknown=True),
    LedgerMissing(SECRET_PLACE),
    LedgerKeyMissing(SECRET_PLACE, 2),
    ClockError(SECRET_PLACE, "it is far behind", repairable=True, newest=NEWEST),
    ClockError(SECRET_PLACE, "it has run away"),
    SandboxError(SECRET_PLACE, True),
    ReportFileError(SECRET_PLACE, f"{SECRET_PLACE} is truncated"),
    TableError(SECRET_PLACE, f"{SECRET_PLACE} is truncated"),
    LedgerMoved(SECRET_PLACE, "another place", complete=True),
    LedgerUpgraded(SECRET_PLACE, 1, 2),
]
"""The errors with a location: the client shows the URL of the service, and the cause stays there."""

INSIDE = [
    Unknown("independent places: no row is sent"),
    PartitionsFailedError("budget.db", "its node failed", [1, 2]),
    UnstorableError("budget.db", "a text holds NUL"),
    ServiceProblem("forbidden", "the key lacks the scope", 403),
    Broken("a promise"),
    NotChecked("no way to"),
    TooFewReports(3, 20),
    PublicationError("the counts differ"),
]
"""The errors that the service does not transmit."""

OF_THE_SERVICE = set(STATUSES) - {error.code for error in [*SAME, *OF_A_LEDGER]} - {BudgetExceeded.code}


OURS = ("ldp_budget.", "ldp_budget_service.api", "ldp_budget_surveys.", "ldp_budget_verify")


def kinds(kind: type[LdpBudgetError] = LdpBudgetError) -> Iterator[type[LdpBudgetError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)


def refusal() -> BudgetExceeded:
    """A refusal, as it is raised."""
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1", "day=0.5"])
        with pytest.raises(BudgetExceeded) as caught:
            accountant.spend("alice", mechanism("oue")(epsilon=2, domain_size=3), strict=True)
    return caught.value


# -- the classes ----------------------------------------------------------------------------------------------------


def test_error_cases_include_every_class() -> None:
    ours = {kind for kind in kinds() if kind.__module__.startswith(OURS)}
    assert ours == {type(error) for error in [*SAME, *OF_A_LEDGER, *INSIDE, refusal()]}


def test_public_errors_have_unique_codes() -> None:
    """The record of the stable interface has each code."""
    public = [kind.code for kind in kinds() if kind.__name__ in ldp_budget.__all__]
    assert len(set(public)) == len(public)


def test_command_line_uses_existing_codes_only() -> None:
    assert set(FAILURES) <= {kind.code for kind in kinds()}


def test_foreign_error_is_unchanged() -> None:
    bug = ZeroDivisionError()
    assert to_click_exception(bug) is bug


@pytest.mark.parametrize("error", [*SAME, *OF_A_LEDGER, *INSIDE, refusal()], ids=lambda error: type(error).__name__)
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


# -- over HTTP ------------------------------------------------------------------------------------------------------


def over_http(error: LdpBudgetError) -> LdpBudgetError:
    """Return the client's error for an error response of the service."""
    answer = error_response(error)
    assert answer.status_code == STATUSES[error.code]
    return error_of(URL, answer.status_code, json.loads(bytes(answer.body)))


def test_error_codes_of_the_library_have_a_status() -> None:
    assert {kind.code for kind in kinds() if kind.__name__ in ldp_budget.__all__} <= set(STATUSES)


@pytest.mark.parametrize("error", SAME, ids=lambda error: type(error).__name__)
def test_error_text_and_attributes_are_transmitted(error: LdpBudgetError) -> None:
    twin = over_http(error)
    assert type(twin) is type(error)
    assert (str(twin), twin.code, vars(twin)) == (str(error), error.code, vars(error))


@pytest.mark.parametrize("error", OF_A_LEDGER, ids=lambda error: type(error).__name__)
def test_error_with_a_ledger_path_hides_the_path(error: Any) -> None:
    twin: Any = over_http(error)
    assert type(twin) is type(error)
    assert SECRET_PLACE not in str(twin)
    assert SECRET_PLACE not in bytes(error_response(error).body).decode()
    assert vars(twin) == {**vars(error), "path": URL}
    assert URL in str(twin)


def test_clock_error_is_transmitted_unchanged() -> None:
    """The time is no secret, and the caller may be able to repair the clock."""
    assert str(over_http(OF_A_LEDGER[4])) == f"ledger {URL}: it is far behind"


@pytest.mark.parametrize("code", sorted(OF_THE_SERVICE))
def test_service_error_has_its_code(code: str) -> None:
    error = over_http(ServiceError(code, "so it is"))
    assert isinstance(error, ServiceProblem)
    assert (error.code, error.status, str(error)) == (code, STATUSES[code], f"{URL}: so it is")


def test_service_error_codes_exist() -> None:
    assert {"unauthorized", "forbidden", "malformed", "in-flight", "too-large", "too-many-requests"} <= OF_THE_SERVICE


@pytest.mark.parametrize(
    "problem",
    [{}, {"type": "about:blank"}, {"type": 7, "detail": None}, {"type": "/problems/unknown-name"}, {"type": "x/of"}],
)
def test_problem_of_a_proxy_is_an_error(problem: dict[str, Any]) -> None:
    assert isinstance(error_of(URL, 400, problem), LdpBudgetError)
