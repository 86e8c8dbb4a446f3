"""`BudgetClient`: the calls that a local ledger and a ledger behind a service have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from .policies import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from ..errors import LdpBudgetError
    from ..ledger.verification import Integrity
    from ..registry.collections import Collection
    from ..sdk.mechanism import Mechanism
    from .admin_log import Record
    from .batch_charging import BulkResult
    from .batch_run import Spend
    from .budget_projection import Binding, Remaining
    from .limits import Limit
    from .policies import Plan, Policy
    from .receipts import Balance, Receipt


@runtime_checkable
class BudgetClient(Protocol):
    """What `Accountant` does on a ledger and `ldp_budget.client.Client` over HTTP, by the same names.

    Annotate with it where your code takes either. `Accountant` says what each call takes, returns and raises.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    @property
    def name(self) -> str:
        """The ledger as messages name it, without any password; over HTTP the address of the service."""

    def close(self) -> None:
        """Close it. It may be closed twice, and used no more."""

    def set_policy(
        self,
        name: str,
        limits: Sequence[Limit | str],
        *,
        relation: str | None = None,
        unbounded: bool = False,
        checked: bool = False,
        plan: Plan | None = None,
        shares: dict[str, Sequence[Limit | str]] | None = None,
        override: str | None = None,
    ) -> Policy:
        """Store a policy, as a new version where there is one of that name; what was spent stays spent."""

    def policy(self, name: str = DEFAULT) -> Policy:
        """The newest version of a policy."""

    def policies(self) -> list[Policy]:
        """The newest version of every policy."""

    def simulate(
        self,
        mechanism: Mechanism | Collection | object,
        *,
        every: str,
        reports: int = 1,
        start: datetime | None = None,
        policy: str = DEFAULT,
    ) -> tuple[Binding, ...]:
        """When each limit of a policy binds first for somebody who is asked again and again."""

    def quote(
        self,
        user: str,
        mechanism: Mechanism | Collection | object,
        *,
        reports: int = 1,
        label: str | None = None,
        policy: str = DEFAULT,
    ) -> Receipt:
        """What a spend would cost and whether it would fit; changes nothing."""

    def spend(
        self,
        user: str,
        mechanism: Mechanism | Collection | object,
        *,
        reports: int = 1,
        key: str | None = None,
        label: str | None = None,
        digest: str | None = None,
        note: str | None = None,
        policy: str = DEFAULT,
        strict: bool = False,
    ) -> Receipt:
        """Charge reports of a mechanism to a user, or refuse."""

    def spend_many(
        self,
        users: Iterable[str],
        mechanism: Mechanism | Collection | object,
        *,
        key: str | None = None,
        digest: str | None = None,
        note: str | None = None,
        policy: str = DEFAULT,
        shard: tuple[int, int] | None = None,
        on_batch: Callable[[int, list[str]], None] | None = None,
    ) -> BulkResult:
        """Charge one report to each of many users, in batches; whoever does not fit is refused, the others go on."""

    def spend_each(self, spends: Sequence[Spend | LdpBudgetError]) -> list[Receipt | LdpBudgetError]:
        """Charge many users each for something of their own, with a key of their own, many in a transaction."""

    def reserve(
        self,
        user: str,
        mechanism: Mechanism | Collection | object,
        *,
        reports: int = 1,
        expires: float = 3600,
        key: str | None = None,
        label: str | None = None,
        digest: str | None = None,
        note: str | None = None,
        policy: str = DEFAULT,
        strict: bool = False,
    ) -> Receipt:
        """Charge now, and decide within `expires` seconds: `commit` keeps the charge, `void` takes it back."""

    def commit(self, receipt: str) -> Receipt:
        """Keep what a reservation charged."""

    def void(self, receipt: str) -> Receipt:
        """Give back what a reservation charged, while that is possible."""

    def balance(self, user: str, policy: str = DEFAULT) -> Balance:
        """What a user has spent under each limit of a policy, in the windows that are open now."""

    def balances(self, users: Iterable[str] | None = None, policy: str = DEFAULT) -> Iterator[Balance]:
        """The balance of each of many users, in their order, or with None of every account, by its number."""

    def remaining_over_time(self, user: str, policy: str = DEFAULT) -> tuple[Remaining, ...]:
        """What was left of each limit of a policy, as it is now, from the user's first charge until now."""

    def history(self, user: str, *, first: int = 1, most: int | None = None) -> list[dict[str, Any]]:
        """The journal entries of a user, oldest first; a reservation's `state` says what has become of it."""

    def open_reservations(self, most: int | None = 20, *, user: str | None = None) -> list[dict[str, Any]]:
        """The reservations that can still be committed or voided, newest first, each with its `receipt`."""

    def reservation(self, receipt: str) -> dict[str, Any]:
        """The journal entry of a reservation, with the `state` it is in."""

    def is_erased(self, user: str) -> bool:
        """Whether a user was erased, and gets no budget."""

    def erase(self, user: str, *, unknown: bool = False) -> bool:
        """Forget who an account belongs to. Its sum stays, and there is no fresh budget."""

    def journal(self, users: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
        """Every journal entry in order, as one moment of the ledger saw it; others may write meanwhile."""

    def position(self, user: str | None = None) -> str:
        """Where the journal ends: `PARTITION:ENTRY` of each partition of the ledger, with commas between."""

    def positions(self, users: Sequence[str]) -> list[str]:
        """Where the journal ends for each of some users, by one look at it."""

    def stats(self) -> dict[str, Any]:
        """The counts of what the ledger holds, and its newest link (`head`)."""

    def now(self) -> datetime:
        """What time it is by the ledger's clock, in UTC; that of the newest entry where it is not to be believed."""

    @property
    def repeated(self) -> dict[str, int]:
        """How often this process did a piece of work again, or sent a request again, by the reason."""

    def checkpoint(self) -> str:
        """Put down where every partition ends. If nothing was written since the newest checkpoint, that is the one."""

    def verify(
        self, expect: str | None = None, *, on_progress: Callable[[int, int], None] | None = None
    ) -> Integrity:
        """Verify the ledger: hash chain, row MACs, sums and costs; decide every charge again; read every record."""

    def repair_clock(self) -> bool:
        """Go on from the clock as it is now, where the newest entries are dated later; says whether they were."""

    def keyed_digest(self, data: bytes) -> str:
        """A digest of data, in hex, keyed by the ledger's key, or over HTTP by the API key."""

    def add_collection(self, collection: Collection) -> None:
        """Store a collection, with the digest of its public definition where it has a client for any device."""

    def collection(self, name: str) -> Collection:
        """The collection of that name."""

    def collections(self) -> list[dict[str, Any]]:
        """The definitions of all collections, readable even where a mechanism's plugin is missing."""

    def record(self, kind: str, name: str, body: dict[str, Any], *, expected: int) -> Record:
        """Add a record, unless somebody else has added one meanwhile. It is journalled, and stays for good."""

    def records(self, first: int = 1) -> list[Record]:
        """The administrative records of the ledger, such as which keys were made, in order."""

    @property
    def newest_record(self) -> int:
        """The number of the newest record that was read or written through it; the ledger is not asked."""
