"""The kinds of record that the library and its service write themselves, and the required shape of each.

`Accountant.record` refuses these kinds. A stored record of such a kind with another shape is skipped: it grants
nothing, and it cannot undo a revocation or a demand for approvals. `verify` reports it.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..ledger import models
from ..ledger.hash_chain import parse
from .limits import Limit
from .policies import ANY_RELATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..ledger.models import AdminLogEntry

KEY, KEY_REVOKED = "key", "key-revoked"
"""The kinds of record that create and revoke API keys."""
INVITATIONS_REVOKED = "invitations-revoked"
"""The kind of record that revokes invitations."""
DEMANDED, PROPOSED, APPROVED, WITHDRAWN = "approvals-demanded", "proposed", "approved", "withdrawn"
"""The kinds of record of approvals: the demand for them, and the steps of a proposal."""
OVERRIDDEN = "approval-overridden"
"""The kind of record of a policy that was set without the demanded approval, with the reason."""
ACKNOWLEDGED = models.ACKNOWLEDGED
"""The kind of record by which an operator acknowledges problems of entries that a verification found."""
VERIFIED = "verified"
"""The kind of record of a verification."""

SPEND, COLLECT, READ, STATEMENT, POLICY = "spend", "collect", "read", "statement", "policy"
ERASE, AUDIT, ADMIN = "erase", "audit", "admin"
SCOPES = (SPEND, COLLECT, READ, STATEMENT, POLICY, ERASE, AUDIT, ADMIN)
"""The scopes of an API key; `admin` includes all the others."""

KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
"""The permitted names of API keys."""
MOST_REASON = 500
"""The largest number of characters in the reason of a proposal or an override."""

_HASH = re.compile(r"[0-9a-f]{64}")
_DIGEST = re.compile(r"[0-9a-f]{1,128}")
_LARGEST = 2**62


def is_own(kind: str) -> bool:
    """True if the library or its service writes records of this kind itself."""
    return kind in _SHAPES


def fault_of(kind: str, name: str, body: object) -> str | None:
    """Explain why a record cannot be used as its kind; None if it can, or if the kind is not the library's own.

    Parameters:
        kind: of the record.
        name: of the record.
        body: of the record, as it was read.

    Returns:
        The reason in words, or None.
    """
    shape = _SHAPES.get(kind)
    if shape is None:
        return None
    if not isinstance(body, dict):
        return "its body is not an object"
    if kind in (KEY, KEY_REVOKED) and not KEY_NAME.fullmatch(name):
        return "its name is not a valid name of an API key"
    needed, optional = shape
    for member in needed.keys() - body.keys():
        return f"its body lacks {member!r}"
    for member in body.keys() - needed.keys() - optional.keys():
        return f"its body has the unknown member {member[:40]!r}"
    tests = {**needed, **optional}
    wrong = [member for member, value in body.items() if not tests[member](value)]
    if wrong:
        return f"its {wrong[0]!r} cannot be read"
    if kind == KEY and body["share"] is not None and sets_limits(body["scopes"]):
        return "a key of a share may not set the limits of shares"
    if kind == PROPOSED and body["terms"]["name"] != name:
        return "its terms are of another policy"
    return None


def body_of(text: str) -> dict[str, Any] | None:
    """Return the body of a stored record; None if it is not a JSON object."""
    try:
        body = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def name_of_key(number: int, made: AdminLogEntry | None) -> str:
    """Return the name of the API key that a record made; never None, which means the ledger's host."""
    return f"key {number}" if made is None or made.number != number else made.name


def sets_limits(scopes: Iterable[str]) -> bool:
    """True if a key with these scopes could raise its own sub-limit or make a key without a sub-limit."""
    return POLICY in scopes or ADMIN in scopes


# -- the shapes ----------------------------------------------------------------------------------------------


def is_whole(value: Any) -> bool:
    """True if a JSON value is a whole number that can count something."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST


def moment_of(text: Any) -> datetime | None:
    """Parse an aware time and return it in UTC; None for None. Raises `ValueError` for anything else."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError("not a time")
    moment = datetime.fromisoformat(text)
    if moment.utcoffset() is None:
        raise ValueError("not a time with a time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("not a time of the years 1 to 9999 in UTC") from None


def _is_moment(value: Any) -> bool:
    try:
        moment_of(value)
    except ValueError:
        return False
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_names(value: Any) -> bool:
    return value is None or (isinstance(value, list) and bool(value) and all(map(_is_name, value)))


def _is_scopes(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_text(scope) and scope in SCOPES for scope in value)


def _is_share(value: Any) -> bool:
    return value is None or _is_name(value)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _is_whom(value: Any) -> bool:
    return isinstance(value, str) and (value == "" or _DIGEST.fullmatch(value) is not None)


def _is_secret(value: Any) -> bool:
    return is_whole(value) and value >= 1


def _is_reason(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= MOST_REASON


def _is_entries(value: Any) -> bool:
    """True if a value names entries, each with the codes of its acknowledged problems."""
    if not isinstance(value, dict) or not value or not all(map(_is_texts, value.values())):
        return False
    known = set(models.EntryProblem.CODES)
    return all(parse(name) is not None and codes and set(codes) <= known for name, codes in value.items())


def _is_terms(value: Any) -> bool:
    """True if a value has the shape that `policy_approval.terms_of` gives to a policy."""
    try:
        return _check_terms(value)
    except (AttributeError, LookupError, TypeError, ValueError):
        return False


def _check_terms(terms: Any) -> bool:
    if {*terms} - {"zone"} != {"name", "limits", "relation", "unbounded", "checked", "plan", "shares"}:
        return False
    shares = [text.partition(":")[2] for texts in terms["shares"].values() for text in _texts(texts)]
    for text in (*_texts(terms["limits"]), *shares):
        Limit.parse(text)
    plan = terms["plan"]
    return (
        _is_name(terms["name"])
        and terms["relation"] in (None, ANY_RELATION)
        and _is_flag(terms["unbounded"])
        and _is_flag(terms["checked"])
        and _is_text(terms.get("zone", ""))
        and (plan is None or (set(plan) == {"identity", "quotas"} and isinstance(plan["quotas"], list)))
    )


def _texts(value: Any) -> list[str]:
    if not _is_texts(value):
        raise ValueError("not a list of strings")
    found: list[str] = value
    return found


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_Tests = dict[str, "Callable[[Any], bool]"]

_SHAPES: Mapping[str, tuple[_Tests, _Tests]] = {
    KEY: (
        {
            "scopes": _is_scopes,
            "policies": _is_names,
            "collections": _is_names,
            "share": _is_share,
            "starts": _is_moment,
            "expires": _is_moment,
            "until": _is_moment,
            "hash": _is_hash,
        },
        {},
    ),
    KEY_REVOKED: ({}, {}),
    INVITATIONS_REVOKED: ({"user": _is_whom}, {"secret": _is_secret}),
    DEMANDED: ({"demanded": _is_flag}, {}),
    PROPOSED: ({"against": is_whole, "terms": _is_terms}, {"reason": _is_reason}),
    APPROVED: ({"proposal": is_whole}, {}),
    WITHDRAWN: ({"proposal": is_whole}, {}),
    OVERRIDDEN: ({"version": is_whole, "reason": _is_reason, "reasons": _is_texts}, {}),
    ACKNOWLEDGED: ({"entries": _is_entries, "reason": _is_reason}, {}),
    VERIFIED: ({"ok": _is_flag, "entries": is_whole, "head": _is_text, "problems": is_whole}, {}),
}
"""The required and the optional members in the body of each kind, each with the test of its value."""
