"""Charging many users over HTTP: in batches that the service accepts, one line for each user."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ldp_budget.accounting.batch import FAILED, SPENT_BEFORE, SPENT_RESULT, SpendResult
from ldp_budget.accounting.receipts import REFUSED
from ldp_budget.ledger.models import SPENT

from ..api.problem_details import error_of
from ..api.schemas import charge_body, header_of, sendable

if TYPE_CHECKING:
    from ldp_budget.accounting.batch import Spend
    from ldp_budget.charge_options import ChargeOptions

    from .transport import Service

T = TypeVar("T")

PATH = "/v1/spends:batch"
MOST_KEYED = 500


def charge_batch(service: Service, common: Mapping[str, Any], users: list[str], key: str | None) -> list[Any]:
    """Charge users under a key, with the members `common`; return the answers to their lines."""
    lines = [b'{"user":%b}\n' % _encoded(sendable("user", user)) for user in users]
    first = b'{"common":%b}\n' % _encoded(common) if lines else b""
    return service.exchange(PATH, lines, first=first, key=key)


def result_of(url: str, row: Any) -> SpendResult:
    """Read the answer to a line. Raises LookupError or TypeError."""
    if row["status"] == SPENT:
        return SPENT_BEFORE if row["repeated"] else SPENT_RESULT
    if row["status"] == FAILED:
        return SpendResult(FAILED, error=error_of(url, row["problem"]["status"], row["problem"]))
    return SpendResult(REFUSED, row["repeated"])


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def line_of(spend: Spend) -> bytes:
    """Return a spend as a line with its own key, a new one if it has none. Raises `InvalidParameter`."""
    options: ChargeOptions = {"reports": spend.reports, "policy": spend.policy, "label": spend.label}
    more: ChargeOptions = {"digest": spend.digest, "note": spend.note, "tags": spend.tags}
    body = charge_body(spend.user, spend.mechanism, {**options, **more})
    return json.dumps({**body, "key": header_of(spend.key)}, separators=(",", ":")).encode() + b"\n"


def chunks_of(spends: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split spends into chunks that a service answers in one request."""
    for first in range(0, len(spends), MOST_KEYED):
        yield spends[first : first + MOST_KEYED]
