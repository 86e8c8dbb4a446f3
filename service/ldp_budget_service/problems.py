"""Errors as problem details (RFC 9457), each with a stable `type`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from ldp_budget import BudgetExceeded, InvalidParameter, LdpBudgetError
from ldp_budget._validation import shown
from ldp_budget.accounting.receipts import name_of_row
from ldp_budget_service.api.schemas import receipt_form

from .error_codes import STATUSES, TYPE, ServiceError, as_json, problem_body, problem_of, retry_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Scope

MEDIA_TYPE = "application/problem+json"
JSON = re.compile(r"application/(\S+\+)?json\b", re.IGNORECASE)
_OF_STATUS = {
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    408: "slow-request",
    413: "too-large",
}


class Problem(BaseModel):
    """A problem as in RFC 9457. Each kind of error adds members of its own, such as `limits` and
    `affordable_reports` of a refusal, or `option`, `expected` and `found` of a wrong parameter.
    """

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=[f"{TYPE}invalid-parameter"], description="The kind of problem. It never changes.")
    title: str = Field(examples=["Invalid parameter"])
    status: int = Field(examples=[400])
    detail: str = Field(examples=["reports must be a whole number from 1 to 1000000000: got 0"])


def documented(*codes: str, key: bool = True) -> dict[int | str, dict[str, Any]]:
    """Return a route's documentation of these error codes, by status. Several codes may share a status.

    `key`: True if the route requires an API key.
    """
    by_status: dict[int, list[str]] = {}
    refused = ("unauthorized", "forbidden") if key else ()
    for code in (*codes, "malformed", "invalid-parameter", "not-supported", *refused, "slow-request", "too-large"):
        by_status.setdefault(STATUSES[code], []).append(code)
    by_status.setdefault(429, ["too-many-requests"])
    by_status.setdefault(503, ["ledger-error", "ledger-key-missing", "ledger-upgraded", "clock-error", "overloaded"])
    return {status: _described(status, named) for status, named in sorted(by_status.items())}


def _described(status: int, codes: Sequence[str]) -> dict[str, Any]:
    return {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(dict.fromkeys(codes))}",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def problem(
    code: str, detail: str, more: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the response for a problem."""
    body = problem_body(code, detail, more)
    return json_answer(body, body["status"], {**retry_after(code), **(headers or {})}, MEDIA_TYPE)


def json_answer(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None, media_type: str = "application/json"
) -> Response:
    """Return a JSON response.

    It is ASCII, because a text may contain half of a surrogate pair. Numbers without a JSON form become null.
    """
    return Response(as_json(content), status, dict(headers or {}), media_type)


def error_response(error: LdpBudgetError) -> Response:
    """Return the response for a library error."""
    if isinstance(error, BudgetExceeded):
        return refusal(receipt_form(error.receipt), error.receipt.explain())
    body = problem_of(error)
    headers = {**retry_after(error.code), **getattr(error, "headers", {})}
    return json_answer(body, body["status"], headers, MEDIA_TYPE)


def refusal(receipt: Mapping[str, Any], explained: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response for a refused spend: the receipt, with every limit that failed."""
    failed = [limit for limit in receipt["limits"] if name_of_row(limit) in receipt["binding"]]
    rest = {name: value for name, value in receipt.items() if name != "status"}
    return problem("budget-exceeded", explained, {**rest, "outcome": receipt["status"], "failed": failed}, headers)


def in_openapi(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI schema with the schema of problems, without the framework's own error schemas."""
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema()
    for path in schema["paths"].values():
        for operation in path.values():
            if "HTTPValidationError" in str(operation["responses"].get("422")):
                del operation["responses"]["422"]
            if any(parameter["name"] == "min_position" for parameter in operation.get("parameters", ())):
                _add_code(operation["responses"], "position-not-reached")
    return schema


def _add_code(responses: dict[str, Any], code: str) -> None:
    """Document one more code."""
    status = STATUSES[code]
    if str(status) in responses:
        responses[str(status)]["description"] += f", {code}"
    else:
        responses[str(status)] = _described(status, [code])


def install(app: FastAPI) -> None:
    """Make every error of the application a problem, including the framework's errors."""

    @app.exception_handler(LdpBudgetError)
    @app.exception_handler(HTTPException)
    def of_the_request(request: Request, error: LdpBudgetError | HTTPException) -> Response:
        caller = getattr(request.state, "caller", None)
        if caller is not None and isinstance(error, LdpBudgetError):
            error = caller.error(error)
        return response_for(error, request.scope)

    @app.exception_handler(RequestValidationError)
    def of_the_body(request: Request, error: RequestValidationError) -> Response:
        found = request.headers.get("Content-Type", "none")
        return error_response(body_error(error.errors(), error.body, found))


def response_for(error: LdpBudgetError | HTTPException, scope: Scope) -> Response:
    """Return the response for an error of the library or of the framework."""
    if isinstance(error, LdpBudgetError):
        return error_response(error)
    code = _OF_STATUS.get(error.status_code, "malformed")
    detail = str(error.detail)
    if detail == HTTPStatus.NOT_FOUND.phrase:
        detail = f"the path {shown(Request(scope).url.path)} does not exist. GET /openapi.json lists the paths."
    return problem(code, detail, headers=error.headers)


def body_error(errors: Sequence[Any], body: Any, content_type: str) -> LdpBudgetError:
    """Return the error for a body that fails validation, as the framework describes it."""
    if isinstance(body, bytes) and body and not JSON.match(content_type):
        # The framework parses JSON only. Its own error would say that the body is not an object.
        return ServiceError("malformed", f"Content-Type must be application/json: got {content_type}")
    first = errors[0]
    if first["type"] == "json_invalid":
        why = str(first.get("ctx", {}).get("error", "it cannot be read"))
        place = first["loc"][-1]
        at = f" at position {place}" if isinstance(place, int) else ""
        return ServiceError("malformed", f"The body is not valid JSON: {why[:1].lower()}{why[1:]}{at}.")
    if tuple(first["loc"]) == ("body",):
        if first["type"] == "missing":
            return ServiceError("malformed", "the body is missing: it must be a JSON object")
        return ServiceError("malformed", f"the body must be a JSON object: got {shown(first['input'])}")
    return validation_error([{**each, "loc": each["loc"][1:] or each["loc"]} for each in errors])


def validation_error(errors: Sequence[Any]) -> LdpBudgetError:
    """Return the error for validation errors: of the first of them, with the sentences of all."""
    sentences = [str(_invalid(error)) for error in errors]
    if any(error["type"] == "extra_forbidden" for error in errors):
        return ServiceError("malformed", "; ".join(sentences))
    found = _invalid(errors[0])
    found.args = ("; ".join(sentences),)
    return found


_SHOULD = re.compile(r"(?:Input|Value|String|List|Tuple|Dictionary|Set|Data|Object) should (?=be |have |match )")
_PLAIN = {
    "bool": "true or false",
    "dict": "an object",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "model": "an object",
    "string": "a string",
    "tuple": "a list",
}
"""The words for a type, by the first word of the framework's error type, such as `bool_parsing`."""
_COMPARED = {"greater_than_equal": (">=", "ge"), "greater_than": (">", "gt"), "less_than_equal": ("<=", "le")}


def _invalid(error: Any) -> InvalidParameter:
    """Return the `InvalidParameter` of a validation error."""
    place, kind = ".".join(map(str, error["loc"])), str(error["type"])
    if kind == "missing":
        found = InvalidParameter(place, "given")
        found.args = (f"{place} is missing",)
        return found
    return InvalidParameter(place, _expected(kind, error), shown(error["input"]))


def _expected(kind: str, error: Any) -> str:
    """Return the words that complete "it must be …"."""
    if kind == "extra_forbidden":
        return "left out, because this request has no such member"
    if kind in _COMPARED:
        sign, bound = _COMPARED[kind]
        return f"a number {sign} {error['ctx'][bound]:g}"
    if kind == "string_too_short":
        return f"a string of at least {error['ctx']['min_length']} character(s)"
    first, _, rest = kind.partition("_")
    if first in _PLAIN and rest in ("type", "parsing", "attributes_type", "from_float"):
        return _PLAIN[first]
    said = str(error["msg"]).removeprefix("Value error, ")
    return _SHOULD.sub("", said, count=1).removeprefix("be ")
