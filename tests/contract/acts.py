"""What the tests of the contract do with a ledger, and the guarantees that they charge."""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal
from hashlib import sha256
from typing import Any

import ldp_budget
from ldp_budget import Accountant, Mechanism
from ldp_budget._files import canonical_json
from ldp_budget.accounting.admin_log import Record, _add
from ldp_budget.accounting.charge_request import Principal
from ldp_budget.accounting.receipts import Receipt
from ldp_budget.guarantees import Guarantee, Memoised
from ldp_budget.registry.collections import Collection
from ldp_budget.sdk.mechanism import Mechanism as Base
from ldp_budget.sdk.parameters import integer

# The longitudinal curve of one memoised value: first report, two, three; then the cap.
CURVE = Memoised(("2.04", "3.39", "4.02"), "4.39")


class Promise(Base):
    """A mechanism that is nothing but a guarantee. It is in no plugin, so no ledger can ask it for anything."""

    name = "promise"
    of = integer("tells two promises apart", default=0)
    promised: Guarantee

    @property
    def guarantee(self) -> Guarantee:
        return self.promised


PROMISED: dict[int, Guarantee] = {}
"""The guarantees by number: a mechanism that knows its guarantee by name and number finds it here."""


def promising(guarantee: Guarantee) -> Mechanism:
    """A mechanism with this guarantee, and a fingerprint of its own."""
    number = int.from_bytes(sha256(canonical_json(guarantee.to_json()).encode()).digest()[:6])
    PROMISED[number] = guarantee
    return type("Promise", (Promise,), {"promised": guarantee})(of=number)


def coin(epsilon: Any) -> Mechanism:
    """A mechanism of the given ε."""
    return ldp_budget.mechanism("randomized-response")(epsilon=epsilon)


def spent(accountant: Accountant, user: str, policy: str = "default") -> dict[str, Decimal]:
    """ε spent in each period of the policy, exactly."""
    limits = accountant.balance(user, policy).limits
    return {state.limit.period: Decimal(state.spent_units.epsilon or 0).scaleb(-9) for state in limits}


def everything(accountant: Accountant) -> list[Any]:
    """Return the visible state of a ledger."""
    return [list(accountant.journal()), accountant.stats(), [policy.to_json() for policy in accountant.policies()]]


def check(accountant: Accountant, expect: str | None = None) -> str:
    """Assert that the ledger verifies; returns its head."""
    verification = accountant.verify(expect)
    assert verification.ok, verification.problems
    return verification.head


def made(accountant: Accountant, name: str, share: str | None = None) -> Principal:
    """The holder of a key that is made here."""
    body = {"scopes": ["spend"], "policies": None, "collections": None, "share": share, "hash": "0" * 64}
    times = dict.fromkeys(("starts", "expires", "until"))
    record = accountant._record_own("key", name, {**body, **times}, expected=len(accountant.records()))
    return Principal(record.number, name, share)


def write_record(accountant: Accountant, kind: str, name: str, body: dict[str, Any]) -> Record:
    """A record of any kind and shape, as an error in the library or a changed one might write it."""
    return _add(accountant._ledger, accountant._caller, kind, name, body, len(accountant.records()))


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Return the results of `work(0)` ... `work(count - 1)`, all started at the same time; exceptions are returned too."""
    results: list[Any] = [None] * count
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            results[number] = work(number)
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


POLL = Collection("poll", coin(1), minimum_group=1)


def content_of(accountant: Accountant, name: str) -> bytes:
    return b"".join(part.content for part in accountant.reports.round("poll", name))


def send(accountant: Accountant, user: str, report: bytes, key: str = "k", of: Collection = POLL) -> Receipt:
    """Send a report as the inbox does."""
    return accountant.reports.take(user, of, report, key=key, label=None, policy="default")


def seal(accountant: Accountant, name: str, together: int | None = None) -> int:
    """Seal a round of `POLL`."""
    accountant.add_collection(POLL)
    return accountant.reports.seal("poll", name, together)
