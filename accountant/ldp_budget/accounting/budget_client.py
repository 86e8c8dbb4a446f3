"""`BudgetClient`: the calls that a local ledger and a ledger behind a service have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, Unpack, runtime_checkable

from ..charge_options import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from ..charge_options import ChargeOptions, QuoteOptions
    from ..errors import LdpBudgetError
    from ..ledger.verification import Integrity
    from ..registry.collections import Collection
    from .admin_log import Record
    from .batch import Spend
    from .budget_timeline import Binding, Remaining
    from .bulk_run import BulkResult
    from .call_options import Chargeable, PolicyOptions, RunOptions, SeriesOptions
    from .limits import Limit
    from .policies import Policy
    from .receipts import Balance, Receipt


@runtime_checkable
class BudgetClient(Protocol):
    """The common interface of `Accountant`, on a ledger, and `ldp_budget.client.Client`, over HTTP.

    Use it as the annotation in code that accepts either. `Accountant` documents the parameters, results and errors of
    each call.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The name of the ledger in messages, without any password; over HTTP the URL of the service."""

    def close(self) -> None:
        """Close the connection. Calling `close` twice is allowed; any other call after it fails."""

    def set_policy(self, name: str, limits: Sequence[Limit | str], **options: Unpack[PolicyOptions]) -> Policy:
        """Store a policy, or a new version of a policy that exists; all earlier charges stay charged."""

    def policy(self, name: str = DEFAULT) -> Policy:
        """The newest version of a policy."""

    def policies(self) -> list[Policy]:
        """The newest version of every policy."""

    def simulate(self, mechanism: Chargeable, *, every: str, **options: Unpack[SeriesOptions]) -> tuple[Binding, ...]:
        """Predict when each limit of a policy first refuses a user who reports regularly."""

    def quote(self, user: str, mechanism: Chargeable, **options: Unpack[QuoteOptions]) -> Receipt:
        """Compute the cost of a spend, and if it would fit; change nothing."""

    def spend(self, user: str, mechanism: Chargeable, **options: Unpack[ChargeOptions]) -> Receipt:
        """Charge reports of a mechanism to a user, or refuse."""

    async def spend_async(self, user: str, mechanism: Chargeable, **options: Unpack[ChargeOptions]) -> Receipt:
        """Do the same as `spend` in a task of an event loop, which runs other tasks meanwhile."""

    def spend_many(self, users: Iterable[str], mechanism: Chargeable, **options: Unpack[RunOptions]) -> BulkResult:
        """Charge one report to each of many users, in batches; refuse the users whose limits do not fit it."""

    def spend_each(self, spends: Sequence[Spend | LdpBudgetError]) -> list[Receipt | LdpBudgetError]:
        """Charge many users, each for a request and with an idempotency key of their own, many in one transaction."""

    def reserve(
        self, user: str, mechanism: Chargeable, *, expires: float = 3600, **options: Unpack[ChargeOptions]
    ) -> Receipt:
        """Charge now, and decide within `expires` seconds: `commit` keeps the charge, `void` reverses it."""

    async def reserve_async(
        self, user: str, mechanism: Chargeable, *, expires: float = 3600, **options: Unpack[ChargeOptions]
    ) -> Receipt:
        """Do the same as `reserve` in a task of an event loop, which runs other tasks meanwhile."""

    def commit(self, receipt: str) -> Receipt:
        """Keep the charge of a reservation."""

    def void(self, receipt: str) -> Receipt:
        """Reverse the charge of a reservation, if it has neither been committed nor expired."""

    def balance(self, user: str, policy: str = DEFAULT) -> Balance:
        """The amounts that a user has spent and has left under each limit of a policy, in the current windows."""

    async def balance_async(self, user: str, policy: str = DEFAULT) -> Balance:
        """Do the same as `balance` in a task of an event loop, which runs other tasks meanwhile."""

    def balances(self, users: Iterable[str] | None = None, policy: str = DEFAULT) -> Iterator[Balance]:
        """The balances of many users, in their order; or of every account, ordered by its number."""

    def remaining_over_time(self, user: str, policy: str = DEFAULT) -> tuple[Remaining, ...]:
        """The remaining budget of a user over time, for each limit of the policy as it is now."""

    def history(self, user: str, *, first: int = 1, most: int | None = None) -> list[dict[str, Any]]:
        """The journal entries of a user, oldest first; each reservation has its current `state`."""

    def open_reservations(self, most: int | None = 20, *, user: str | None = None) -> list[dict[str, Any]]:
        """The reservations that can still be committed or voided, newest first, each with its `receipt`."""

    def reservation(self, receipt: str) -> dict[str, Any]:
        """The journal entry of a reservation, with its current `state`."""

    def is_erased(self, user: str) -> bool:
        """True if the user was erased; such a user gets no budget."""

    def erase(self, user: str, *, unknown: bool = False) -> bool:
        """Erase a user: unlink the account from the user and delete keys, labels, notes and unsealed reports."""

    def journal(self, users: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
        """Every journal entry in order, from one snapshot of the ledger; other callers can write meanwhile."""

    def position(self, user: str | None = None) -> str:
        """The end of the journal: `PARTITION:ENTRY` for each partition of the ledger, separated by commas."""

    def positions(self, users: Sequence[str]) -> list[str]:
        """The end of the journal for each of several users, from one query."""

    def stats(self) -> dict[str, Any]:
        """The numbers of rows in the ledger, and its newest chain head (`head`)."""

    def now(self) -> datetime:
        """The current time by the ledger's clock, in UTC; the time of the newest entry if it is not plausible."""

    @property
    def repeated(self) -> dict[str, int]:
        """The number of transactions or requests that this process has retried, by reason."""

    def checkpoint(self) -> str:
        """Store a checkpoint of the head of every partition; reuse the newest one if nothing was written since."""

    def verify(
        self, expect: str | None = None, *, on_progress: Callable[[int, int], None] | None = None
    ) -> Integrity:
        """Verify the ledger: hash chain, row MACs, sums and costs; replay every decision; read every record."""

    def repair_clock(self) -> bool:
        """Accept the current clock, although the newest entries are dated later."""

    def keyed_digest(self, data: bytes) -> str:
        """The digest of data, in hex, keyed by the ledger's key, or over HTTP by the API key."""

    def add_collection(self, collection: Collection) -> None:
        """Store a collection, with the digest of its public definition if its client runs on any device."""

    def collection(self, name: str) -> Collection:
        """The collection with this name."""

    def collections(self) -> list[dict[str, Any]]:
        """The definitions of all collections, readable even if the plugin of a mechanism is not installed."""

    def record(self, kind: str, name: str, body: dict[str, Any], *, expected: int) -> Record:
        """Add a permanent, journaled record to the administrative log, unless another caller has added one."""

    def records(self, first: int = 1) -> list[Record]:
        """The records of the administrative log, such as those of new API keys, in order."""

    @property
    def newest_record(self) -> int:
        """The number of the newest record that this client has read or written; no query is made."""
