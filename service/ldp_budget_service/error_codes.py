"""Error codes of the service: HTTP status and meaning of each. This module needs nothing of HTTP."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from ldp_budget import LdpBudgetError, LedgerError, ReportFileError, TableError
from ldp_budget.api.problem_details import members_of

from . import request_context

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
    "too-few-reports": 409,
    "too-much-work": 400,
    "slow-request": 408,
    "too-many-requests": 429,
    "overloaded": 503,
    "not-ready": 503,
    "internal": 500,
}
"""HTTP status of each code."""

MEANINGS: dict[str, str] = {
    "invalid-parameter": "A parameter is missing, malformed or out of its range: `option`, `expected`, `found`.",
    "outside-domain": "A value is not one of those that the mechanism asks for: `domain`, `found`.",
    "not-supported": "The mechanism, the rule or this service cannot do what was asked, and says why.",
    "report-file-error": "Reports cannot be read or written here just now. What was charged is kept; send it again.",
    "table-error": "A file of answers or users cannot be read here just now.",
    "plugin-error": "A mechanism's plugin is broken: `plugin`, `why`.",
    "unknown-name": "Nothing of that `kind` has that `name`; `known` are those there are, where that may be told.",
    "user-erased": "The `user` was erased: the ledger no longer knows which entries were theirs, nor when that was.",
    "name-taken": "The name belongs to something else already.",
    "budget-exceeded": "The charge was refused and nobody was charged: `failed` are the limits that it does not fit, "
    "with what is spent and left and when they begin anew, and `affordable_reports` how many such reports still fit.",
    "reservation-conflict": "The reservation has ended otherwise, and stays as it is: `state`.",
    "record-conflict": "Somebody else has changed something meanwhile. Look again, and decide anew.",
    "approval-needed": "The change raises what may be charged, and another key holder has to approve it first.",
    "approval-conflict": "The proposal cannot be approved, withdrawn or set: its `why` says what is in the way.",
    "key-conflict": "The idempotency key was used for another request. A new report needs a new key.",
    "sandbox-error": "The ledger is a sandbox and was to be one that counts, or the reverse.",
    "ledger-missing": "There is no ledger.",
    "ledger-key-missing": "The ledger's key was rotated, and this instance has not got it. Nothing was charged.",
    "ledger-moved": "The ledger is closed, as it was moved to another place or is being moved. Nothing was charged.",
    "ledger-error": "The ledger cannot be used just now. With `unknown`, nobody knows whether something was charged: "
    "ask again with the same key.",
    "clock-error": "The clock cannot be charged by, and nothing was charged.",
    "error": "Something is wrong with the ledger.",
    "malformed": "The request cannot be read as what this path asks for.",
    "unauthorized": "There is no API key, or none that is good now: unknown, revoked, expired or pending.",
    "forbidden": "The API key has not the scope, or is bound to other policies or collections.",
    "not-found": "There is no such path.",
    "method-not-allowed": "The path takes other methods: `Allow`.",
    "in-flight": "A request with this key is being answered just now. Ask again in a moment, with the same key.",
    "position-not-reached": "The journal is not as far as `min_position` here. Ask again in a moment.",
    "too-large": "The body, or a line of it, is longer than is taken here.",
    "wrong-collection": "The report was drawn from another definition than the collection's. Fetch that, draw anew.",
    "too-few-reports": "There are too few reports to say anything of them that is not about one alone.",
    "too-much-work": "The question takes too long, or too much memory. Ask for less.",
    "slow-request": "The request, or the next line of it, did not arrive in time.",
    "too-many-requests": "The caller asks too often: `Retry-After`.",
    "overloaded": "Too much is under way. Nothing was done: ask again, with the same key.",
    "not-ready": "The service is not ready: its ledger, its key, its clock or its disk.",
    "internal": "Something went wrong in the service; the operator's log says what.",
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
    request_context.current_request().code = code
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
