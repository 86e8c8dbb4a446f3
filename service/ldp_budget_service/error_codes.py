"""Error codes of the service: HTTP status and meaning of each. This module needs nothing of HTTP."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from ldp_budget import LdpBudgetError, LedgerError, ReportFileError, TableError
from ldp_budget_service.api.problem_details import members_of

from . import request_attributes

TYPE = "/problems/"
"""Path prefix of problem types; `GET` explains one."""

STATUSES: dict[str, int] = {
    "invalid-parameter": 400,
    "outside-domain": 400,
    "not-supported": 400,
    "report-file-error": 503,
    "table-error": 503,
    "plugin-error": 503,
    "unknown-name": 404,
    "user-erased": 410,
    "name-taken": 409,
    "budget-exceeded": 409,
    "reservation-conflict": 409,
    "record-conflict": 409,
    "approval-needed": 409,
    "approval-conflict": 409,
    "key-conflict": 422,
    "sandbox-error": 503,
    "ledger-missing": 503,
    "ledger-key-missing": 503,
    "ledger-moved": 503,
    "ledger-upgraded": 503,
    "ledger-error": 503,
    "clock-error": 503,
    "error": 503,
    # Raised by the service only.
    "malformed": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not-found": 404,
    "method-not-allowed": 405,
    "in-flight": 409,
    "position-not-reached": 409,
    "too-large": 413,
    "wrong-collection": 409,
    "not-your-turn": 409,
    "too-few-reports": 409,
    "not-published": 404,
    "no-charge": 404,
    "proofs-destroyed": 410,
    "too-much-work": 400,
    "slow-request": 408,
    "too-many-requests": 429,
    "overloaded": 503,
    "not-ready": 503,
    "internal": 500,
}
"""HTTP status of each code."""

_LASTING = {
    "ledger-key-missing",
    "ledger-missing",
    "ledger-moved",
    "ledger-upgraded",
    "plugin-error",
    "sandbox-error",
}
_SOON, _LATER = "1", "60"


def retry_after(code: str) -> dict[str, str]:
    """Return the `Retry-After` header of a code: for every 503, and longer if only the operator can end the cause."""
    if STATUSES.get(code) != HTTPStatus.SERVICE_UNAVAILABLE:
        return {}
    return {"Retry-After": _LATER if code in _LASTING else _SOON}


MEANINGS: dict[str, str] = {
    "invalid-parameter": "A parameter is missing, malformed or out of its range: `option`, `expected`, `found`.",
    "outside-domain": "A value is outside the domain of the mechanism: `domain`, `found`.",
    "not-supported": "The mechanism, the rule or this service does not support the request. `detail` gives the reason.",
    "report-file-error": "Reports cannot be read or written at the moment. Charges are kept. Send the report again.",
    "table-error": "A file of answers or users cannot be read at the moment.",
    "plugin-error": "A mechanism's plugin is broken: `plugin`, `why`.",
    "unknown-name": "No object of this `kind` has this `name`. `known` lists the existing names, if they are not confidential.",
    "user-erased": "The `user` was erased. The ledger no longer knows which entries belong to this user.",
    "name-taken": "The name is already in use.",
    "budget-exceeded": "The charge was refused, and no user was charged. `failed` lists the limits that it does not "
    "fit, with the spent and remaining amounts and the time of the reset. `affordable_reports` is the number of such "
    "reports that still fit.",
    "reservation-conflict": "The reservation has already ended in another way: `state`. Nothing was changed.",
    "record-conflict": "Another writer added a record in the meantime. Nothing was changed. Read the records again first.",
    "approval-needed": "The change allows more charges, so another key holder must approve it first.",
    "approval-conflict": "The proposal cannot be approved, withdrawn or applied: `why`. Nothing was changed.",
    "key-conflict": "The idempotency key was already used for a different request. Use a new key for a new report.",
    "sandbox-error": "The ledger is a sandbox and a real ledger was asked for, or the reverse.",
    "ledger-missing": "The ledger does not exist.",
    "ledger-key-missing": "The key of the ledger was rotated, and this instance does not have the new one. Nothing was charged.",
    "ledger-moved": "The ledger is closed, because it was moved or is being moved. Nothing was charged.",
    "ledger-upgraded": "The tables of the ledger were upgraded, and this instance has an earlier version. Nothing was charged.",
    "ledger-error": "The ledger cannot be used at the moment. If `unknown` is true, it is unknown whether a user was "
    "charged: repeat the request with the same key.",
    "clock-error": "The clock is not plausible. Nothing was charged.",
    "error": "The ledger failed.",
    "malformed": "The request cannot be read: it has another form, or an unknown or repeated member, parameter or header.",
    "unauthorized": "The API key is missing, unknown, revoked, expired or not yet valid.",
    "forbidden": "The API key lacks the scope, or is bound to other policies or collections.",
    "not-found": "This path does not exist.",
    "method-not-allowed": "The path accepts other methods: see the header `Allow`.",
    "in-flight": "Another verification of the ledger is in progress. Try again when it has ended.",
    "position-not-reached": "The journal has not reached `min_position` here yet. Try again in a moment.",
    "too-large": "The body, or a line in it, is too long.",
    "wrong-collection": "The report was drawn with another definition. Fetch that of the collection, and draw a new report.",
    "not-your-turn": "The survey asks this user in another period. Nothing was kept or charged now.",
    "too-few-reports": "There are too few reports for an estimate.",
    "not-published": "The collection is not published, or not since this charge. Try again after the next publication.",
    "no-charge": "No charge of this respondent has this mark. An erased user has no proof.",
    "proofs-destroyed": "The secret of the newest publication was destroyed, so no proof can be made. Proofs that "
    "respondents have stay valid.",
    "too-much-work": "The calculation takes too long, or too much memory. Ask for less.",
    "slow-request": "The request, or its next line, did not arrive in time.",
    "too-many-requests": "The caller sends too many requests. Wait for the seconds in the header `Retry-After`.",
    "overloaded": "Too many requests are in progress. Nothing was done. Try again, with the same key.",
    "not-ready": "The service is not ready: its ledger, its key, its clock or its disk.",
    "internal": "The service failed. The operator finds the cause in the log.",
}
"""Meaning of each code in a sentence."""

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)

_log = logging.getLogger("ldp_budget_service")


class ServiceError(LdpBudgetError):
    """An error that only the service raises. Attribute: `code`."""

    def __init__(self, code: str, why: str, headers: Mapping[str, str] | None = None) -> None:
        self.code = code  # type: ignore[misc]  # each instance has its own code
        self.headers = dict(headers or {})
        super().__init__(why)


def problem_body(code: str, detail: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the body of a problem."""
    status = STATUSES.get(code, 500)
    request_attributes.CURRENT.get().code = code
    body = {"type": TYPE + code, "title": code.replace("-", " ").capitalize(), "status": status, "detail": detail}
    return {**body, **{name: value for name, value in (more or {}).items() if name not in body}}


def as_json(content: Any) -> str:
    """Return one line of JSON; infinities and NaN become null."""
    try:
        return _ENCODER.encode(content)
    except ValueError:
        return _ENCODER.encode(_finite(content))


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def problem_of(error: LdpBudgetError) -> dict[str, Any]:
    """Return the problem that describes a library error."""
    if isinstance(error, ServiceError):
        return problem_body(error.code, str(error))
    if isinstance(error, LedgerError | ReportFileError | TableError):
        # The ledger's location and the reason of the failure are for the operator only.
        _log.error("ledger", extra={"error": str(error)})
    detail, members = members_of(error)
    return problem_body(error.code, detail, members)
