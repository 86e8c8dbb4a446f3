"""Conversion between the package's errors and problem details over HTTP (RFC 9457).

A problem never contains the path of the service's ledger, nor the reason why the ledger cannot be used. Only the
operator of the service may see both.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

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
    RecordConflict,
    ReportFileError,
    ReservationConflict,
    SandboxError,
    TableError,
    UnknownName,
    UserErased,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Members = dict[str, Any]

BUDGET_EXCEEDED = "budget-exceeded"
UNUSABLE = "the ledger cannot be used at the moment"
ROTATED = (
    f"{UNUSABLE}: its key was rotated. Nothing was charged. Retry later with the same idempotency key; the operator must "
    "restart the service."
)
UPGRADED = (
    f"{UNUSABLE}: its tables were upgraded, and this service has an earlier version. Nothing was charged. Retry later with "
    "the same idempotency key; the operator must start the newer version of the service."
)
UNKNOWN = "It is unknown whether something was charged. Repeat the request with the same idempotency key."


class ServiceProblem(LdpBudgetError):  # noqa: N818 - it is called so where it comes from
    """An error that only a service raises, such as an unknown API key or a missing scope.

    Attributes: `code`, the kind of problem, such as `unauthorized` or `forbidden`, and `status`, the HTTP status.
    """

    def __init__(self, code: str, why: str, status: int) -> None:
        self.code = code  # type: ignore[misc]  # each has its own
        self.status = status
        super().__init__(why)


# The members of each error, by its code; each also has its `hint`, if there is one. The ledger's own errors never
# include the path of the ledger, and their hints are for its operator.
_MEMBERS: dict[str, tuple[str, ...]] = {
    "invalid-parameter": ("option", "expected", "found"),
    "outside-domain": ("domain", "found", "position"),
    "unknown-name": ("kind", "name", "known"),
    "user-erased": ("user",),
    "name-taken": ("kind", "name"),
    "plugin-error": ("plugin", "why"),
    "key-conflict": ("key",),
    "reservation-conflict": ("receipt", "state"),
    "record-conflict": ("expected", "newest"),
    "approval-needed": ("policy", "reasons"),
    "approval-conflict": ("proposal", "why"),
    "clock-error": ("repairable", "newest"),
    "sandbox-error": ("sandbox",),
    "ledger-key-missing": ("secret",),
    "ledger-moved": ("complete",),
    "ledger-upgraded": ("known", "found"),
    "ledger-error": ("unknown",),
}
_OF_THE_OPERATOR = (LedgerError, ReportFileError, TableError)

_KINDS: dict[str, type[LdpBudgetError]] = {
    kind.code: kind
    for kind in (
        InvalidParameter,
        OutsideDomain,
        UnknownName,
        UserErased,
        NameTaken,
        PluginError,
        NotSupported,
        KeyConflict,
        ReservationConflict,
        RecordConflict,
        ApprovalNeeded,
        ApprovalConflict,
        LdpBudgetError,
    )
}

_OF_LEDGERS: dict[str, Callable[[str, Mapping[str, Any]], LdpBudgetError]] = {
    "ledger-error": lambda url, said: LedgerError(url, str(said["detail"]), unknown=said.get("unknown") is True),
    "ledger-key-missing": lambda url, said: LedgerKeyMissing(url, int(said.get("secret") or 0)),
    "ledger-missing": lambda url, said: LedgerMissing(url),
    "ledger-moved": lambda url, said: LedgerMoved(url, "another place", complete=said.get("complete") is True),
    "ledger-upgraded": lambda url, said: LedgerUpgraded(
        url, int(said.get("known") or 0), int(said.get("found") or 0)
    ),
    "sandbox-error": lambda url, said: SandboxError(url, said.get("sandbox") is True),
    "clock-error": lambda url, said: ClockError(
        url, str(said["detail"]), repairable=said.get("repairable") is True, newest=_moment(said.get("newest"))
    ),
    # The caller cannot see the service's files either.
    "report-file-error": lambda url, said: ReportFileError(url, str(said["detail"])),
    "table-error": lambda url, said: TableError(url, str(said["detail"])),
}


def members_of(error: LdpBudgetError) -> tuple[str, Members]:
    """Return the `detail` of a problem for this error, and its members.

    Includes everything except paths of the service and their failures.
    """
    members = {name: _plain(getattr(error, name, None)) for name in _MEMBERS.get(error.code, ())}
    if error.hint and not isinstance(error, _OF_THE_OPERATOR):
        members["hint"] = error.hint
    if isinstance(error, ClockError):
        return str(error).removeprefix(f"ledger {error.path}: "), members
    if isinstance(error, LedgerError):
        if isinstance(error, LedgerKeyMissing):
            return ROTATED, members
        if isinstance(error, LedgerUpgraded):
            return UPGRADED, members
        unknown = f". {UNKNOWN}" if error.unknown else ""
        return UNUSABLE + unknown, members
    if isinstance(error, ReportFileError):
        return "reports cannot be stored at the moment", members
    if isinstance(error, TableError):
        return "a table cannot be read at the moment", members
    return str(error), members


def error_of(url: str, status: int, problem: Mapping[str, Any]) -> LdpBudgetError:
    """Return the error that a problem from the service at `url` describes."""
    code, detail = code_of(problem), str(problem.get("detail", ""))
    if code in _OF_LEDGERS:
        return _OF_LEDGERS[code](url, {**problem, "detail": detail})
    kind = _KINDS.get(code)
    if kind is None:
        return ServiceProblem(code, f"{url}: {detail or code}", status)
    # Not by its constructor: the service has already worded the message.
    error = kind.__new__(kind, detail)
    vars(error).update({name: _restored(name, problem.get(name)) for name in _MEMBERS.get(code, ())})
    error.hint = str(problem.get("hint") or "")
    return error


def code_of(problem: Mapping[str, Any]) -> str:
    """Return the code at the end of the problem's `type`; empty if there is none."""
    return str(problem.get("type", "")).rpartition("/")[2]


def _plain(value: object) -> Any:
    """Return the value as JSON; a value that JSON cannot hold becomes text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _restored(name: str, value: Any) -> Any:
    return tuple(value or ()) if name in ("known", "reasons") else value


def _moment(said: object) -> datetime | None:
    return datetime.fromisoformat(said) if isinstance(said, str) else None
