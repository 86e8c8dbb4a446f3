"""`Accountant`: who has spent what, and may this be spent as well?

    with Accountant("budget.db") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="4"), Limit("day", epsilon="1")])
        receipt = accountant.spend("alice", oue, key="2026-11-21/alice/party")

One spend is one transaction: it reads the clock, looks the key up, checks every limit of the policy and then writes
the sums of every window, the journal entry and the key, or nothing.
"""

from __future__ import annotations

import copy
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from .._validation import check_instance, check_path, shown
from ..errors import InvalidParameter
from ..ledger import Ledger, export
from ..ledger.calendar import BOUND_SECONDS, check_bound
from ..ledger.checkpoints import Checkpointer, head_of, take
from . import admin_log, batch_charging, batch_run, charging, connect, ledger_operations, policy_versions, queries
from . import collections as ledger_collections
from .charge_request import LOCAL, Principal
from .ledger_operations import LedgerOperations
from .policies import DEFAULT
from .reservations import reservation_row

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..errors import LdpBudgetError
    from ..ledger.store import Store
    from ..ledger.verification import Integrity
    from ..registry.collections import Collection
    from ..sdk.mechanism import Mechanism
    from .admin_log import Record
    from .batch_charging import BulkResult
    from .batch_run import BatchRun, Spend
    from .budget_projection import Binding, Remaining
    from .limits import Limit
    from .policies import Plan, Policy
    from .receipts import Balance, Receipt


class Accountant:
    """The privacy budgets of the users of one ledger.

    May be shared by threads, and its ledger by processes; after a fork it opens the ledger anew. Users are texts, of
    at least one character. Whatever reads or writes the ledger may raise `LedgerError`, where that cannot be opened,
    read or trusted; what is said of each call below comes on top.

    Parameters:
        ledger: the path of a file, made with its key if neither exists; ":memory:"; the address `postgresql://…` of a
            database (see the guide to scaling); or a `Store`.
        create: whether it may be made.
        clock: a function that returns now, as an aware datetime or in seconds since 1970; for tests and sandboxes.
        clock_bound: in seconds. If the default clock jumps by more than that within this process, it is refused.
        sandbox: True makes or opens a sandbox, a ledger in which nothing counts, to play a survey with a clock of
            your own, and refuses a ledger that counts; False refuses a sandbox; None opens either. Which of the two
            it is was settled when it was made.

    Raises:
        InvalidParameter: one of them is of another kind.
        LedgerMissing: there is no ledger, and none was to be made.
        SandboxError: it is a sandbox and was to be a ledger that counts, or the reverse.
        LedgerError: it cannot be opened or trusted.
        NotSupported: it lies in a database, and what speaks to that is not installed.
    """

    _caller: Principal = LOCAL
    _is_view = False

    def __init__(
        self,
        ledger: str | os.PathLike[str] | Store,
        *,
        create: bool = True,
        clock: Callable[[], datetime | float] = time.time,
        clock_bound: float = BOUND_SECONDS,
        sandbox: bool | None = False,
    ) -> None:
        if not callable(clock):
            raise InvalidParameter("clock", "a function that says what time it is", shown(clock))
        check_bound(clock_bound)
        self._read_clock = clock
        self._ledger = Ledger(connect.open_store(ledger, create, sandbox=sandbox), clock, clock_bound)
        self._keeper = Checkpointer(self._ledger)
        if len(self._ledger.partitions) > 1:
            self._ledger.after_commit = self._keeper.wake

    def __repr__(self) -> str:
        return f"<Accountant of {self.name}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The ledger as messages name it: the file itself, or the server and the database, without any password."""
        return self._ledger.name

    @property
    def caller(self) -> Principal:
        """Who uses it: the holder of a key, see `acting_for`, or `LOCAL`."""
        return self._caller

    @property
    def sandbox(self) -> bool:
        """Whether the ledger is a sandbox, in which nothing counts."""
        return self._ledger.key.sandbox

    @property
    def ledger(self) -> LedgerOperations:
        """Operations for the operator, on the machine of the ledger: check it, move it, exchange its key."""
        return LedgerOperations(self._ledger, self._read_clock)

    def close(self) -> None:
        """Close the ledger. It may be closed twice, and used no more. What `acting_for` gave is closed with it alone.

        Raises:
            Nothing.
        """
        if not self._is_view:
            self._keeper.close()
            self._ledger.close()

    def acting_for(self, caller: Principal) -> Accountant:
        """The same ledger as the holder of an API key uses it.

        What they change bears the number of their key in the journal, their idempotency keys are told from those of
        others by their name, and what they charge must fit their share as well. It is closed with this one, and
        needs no closing.

        Parameters:
            caller: the holder, as `ApiKey.caller` says.

        Raises:
            InvalidParameter: it is none.
        """
        check_instance("caller", caller, Principal, "a `Principal`")
        view = copy.copy(self)
        view._caller, view._ledger, view._is_view = caller, self._ledger.acting_for(caller.number), True
        return view

    # -- policies -----------------------------------------------------------------------------------------------

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
        """Store a policy, as a new version where there is one of that name; what was spent stays spent.

        With a plan, set again as it is, it stays as it is; a plan that the ledger knows keeps the price it came with.
        The windows of a period that nothing limited before are filled from the journal first; others write meanwhile.

        Parameters:
            name: of the policy; `default` is the one that is held against where none is named.
            limits: a list of limits, each a `Limit` or the text that `Limit.parse` reads; all of them must fit.
            relation: "any" refuses guarantees that hold only for neighbours of the same change pattern.
            unbounded: said aloud where there is no limit for a lifetime.
            checked: refuse mechanisms whose promise nobody has checked, see `certificates`.
            plan: admit only its charges, each up to its quota.
            shares: parts of the limits by name, each a list of limits: what one user is charged by keys that are
                bound to the share must fit these too. None keeps the shares that there are, {} takes them away.
            override: why it is set without the approval that this ledger demands; only on the machine of the ledger.
                A record keeps the reason; `policy show` and the officer's page show it. Nothing is recorded of a
                change that needs no approval.

        Returns:
            The policy as it was stored, with its version.

        Raises:
            InvalidParameter: one of them is of another kind, or the policy makes no sense; it changes the rule or δ
                of a limit that was charged already; shares exceed
                their limit; or its plan succeeds others, and all of them fit no lifetime
                limit together.
            ApprovalNeeded: it raises what may be charged, this ledger demands approvals, no approval was given, and
                `override` gives no reason.
            NotSupported: `override` is given through an API key.
            ClockError: the clock cannot be believed.
        """
        return policy_versions.set_policy(
            self._ledger,
            self._caller,
            name,
            limits,
            relation=relation,
            unbounded=unbounded,
            checked=checked,
            plan=plan,
            shares=shares,
            override=override,
        )

    def policy(self, name: str = DEFAULT) -> Policy:
        """The newest version of a policy.

        Parameters:
            name: of the policy.

        Raises:
            UnknownName: there is none of that name.
            InvalidParameter: the name is no text.
        """
        return policy_versions.policy(self._ledger, name)

    def policies(self) -> list[Policy]:
        """The newest version of every policy.

        Raises:
            Nothing but `LedgerError`.
        """
        return policy_versions.policies(self._ledger)

    def simulate(
        self,
        mechanism: Mechanism | Collection | object,
        *,
        every: str,
        reports: int = 1,
        start: datetime | None = None,
        policy: str = DEFAULT,
    ) -> tuple[Binding, ...]:
        """When each limit of a policy binds first for somebody who is asked again and again.

        By the decisions of a spend, in calendar windows (UTC), and with nothing charged before; nothing is written.
        Reports of a mechanism that memoises repeat one value.

        Parameters:
            mechanism: a mechanism with its parameters, or a collection.
            every: "day", "week" or "month".
            reports: how many reports each time.
            start: when the first are asked, an aware datetime; by default now.
            policy: the policy to hold it against.

        Returns:
            What is found of each limit. A plan comes last, as a limit of the period `plan`.

        Raises:
            InvalidParameter: one of them is of another kind or out of range.
            UnknownName: there is no such policy.
            NotSupported: the policy admits no such report whatever it costs.
        """
        return policy_versions.simulate(
            self._ledger, mechanism, every=every, reports=reports, start=start, policy=policy
        )

    # -- charging -----------------------------------------------------------------------------------------------

    def quote(
        self,
        user: str,
        mechanism: Mechanism | Collection | object,
        *,
        reports: int = 1,
        label: str | None = None,
        policy: str = DEFAULT,
    ) -> Receipt:
        """What a spend would cost and whether it would fit; changes nothing.

        Parameters:
            user: who would be charged.
            mechanism: a mechanism with its parameters; a collection, whose mechanism is charged then; or an object of
                another library, see `guarantee_of`.
            reports: how many reports, at least one.
            label: which memoised value they repeat.
            policy: the policy to hold it against.

        Returns:
            A receipt that says `quoted`; its `binding` names what stands in the way, if anything does.

        Raises:
            InvalidParameter: one of them is of another kind or out of range.
            NotSupported: it is of another library, and says nothing about two values of one user.
            UnknownName: there is no such policy.
            ClockError: the clock cannot be believed.
        """
        return charging.quote(
            self._ledger, self._caller, user, mechanism, reports=reports, label=label, policy=policy
        )

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
        """Charge reports of a mechanism to a user, or refuse.

        Parameters:
            user: who is charged.
            mechanism: a mechanism with its parameters; a collection, whose mechanism is charged then, and which is
                named in the journal; or an object of another library, see `guarantee_of`.
            reports: how many reports, at least one.
            key: makes a retry safe: the same key with the same request returns the stored answer. It is the user's
                own, and stands for one randomised output. Another collection is another request, another note is not.
            label: which memoised value the reports repeat: an opaque name of yours.
            digest: hexadecimal; binds the report itself to the key.
            note: one line of at most 500 characters, kept beside the charge until the user is erased; of a repeated
                request the one that came first stays.
            policy: the policy to hold it against.
            strict: raise `BudgetExceeded` rather than return a refusal.

        Returns:
            A receipt that says `spent` or `refused`; it is true if and only if the report may be sent.

        Raises:
            InvalidParameter: one of them is of another kind or out of range. Nothing was charged.
            NotSupported: it is of another library, and says nothing about two values of one user. Nothing was
                charged.
            UnknownName: there is no such policy.
            KeyConflict: the key was used for another request.
            BudgetExceeded: it was refused, and `strict`.
            ClockError: the clock cannot be believed.
        """
        return charging.spend(
            self._ledger,
            self._caller,
            user,
            mechanism,
            reports=reports,
            key=key,
            label=label,
            digest=digest,
            note=note,
            policy=policy,
            strict=strict,
        )

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
        """Charge one report to each of many users, in batches; whoever does not fit is refused, the others go on.

        Each batch is one transaction in each partition of the ledger.

        Parameters:
            users: who is charged, a stream or a column of any length; a user who comes twice is charged twice.
            mechanism: a mechanism with its parameters; a collection, whose mechanism is charged then, and which is
                named in the journal; or an object of another library, see `guarantee_of`.
            key: names the run; repeated, it skips what was charged. A run that was gone through to its end takes no
                other users, no more of them and no fewer.
            digest: hexadecimal; binds the reports to the key.
            note: one line of at most 500 characters, written beside every charge; each goes with its user.
            policy: the policy to hold it against.
            shard: of a run with a key that several processes share, which batches are charged here: (2, 4) is the
                second of every four. All are to be given the same users, which nobody compares until the run is gone
                through whole; it may go on in any other number of shards, or in none.
            on_batch: called as `on_batch(users, refused)` after each batch, with how many users it had and which of
                them were refused; without it, the result names these.

        Returns:
            How many were charged, refused, or had been charged by an earlier run of the same key.

        Raises:
            InvalidParameter: one of them is of another kind. Batches before that of a wrong user were charged.
            UnknownName: there is no such policy.
            NotSupported: the policy holds a plan; or the mechanism is of another library, and says nothing about two
                values of one user.
            KeyConflict: the key was used for a run of other users, or of something else.
            ClockError: the clock cannot be believed.
        """
        return batch_charging.spend_many(
            self._ledger,
            self._caller,
            users,
            mechanism,
            key=key,
            digest=digest,
            note=note,
            policy=policy,
            shard=shard,
            on_batch=on_batch,
        )

    def spend_each(self, spends: Sequence[Spend | LdpBudgetError]) -> list[Receipt | LdpBudgetError]:
        """Charge many users each for something of their own, with a key of their own, many in a transaction.

        Parameters:
            spends: what `spend` takes, of each; what cannot be read is the error that says why.

        Returns:
            What `spend` returns or raises, for each; also a `LedgerError`, which only the same lines again can tell
            the end of.

        Raises:
            InvalidParameter: one of them is no `Spend`. Nobody was charged.
        """
        return batch_run.spend_each(self._ledger, self._caller, spends)

    def run(self, key: str) -> BatchRun:
        """Charge many users each for something of their own, line by line; see `BatchRun`.

        Parameters:
            key: names the run; repeated from its first line, it tells again what was charged and goes on.

        Returns:
            The run, before its first line.

        Raises:
            InvalidParameter: the key is no text.
        """
        return batch_run.BatchRun(self._ledger, self._caller, key)

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
        """Charge now, and decide within `expires` seconds: `commit` keeps the charge, `void` takes it back.

        What is not voided in time stays charged, for the report may be out already.

        Parameters:
            user: who is charged.
            mechanism: a mechanism with its parameters; a collection, whose mechanism is charged then; or an object of
                another library, see `guarantee_of`.
            reports: how many reports, at least one.
            expires: seconds, above 0 and at most 366 days.
            key: makes a retry safe, as with `spend`.
            label: which memoised value the reports repeat.
            digest: hexadecimal; binds the report itself to the key.
            note: one line of at most 500 characters, kept beside the charge until the user is erased.
            policy: the policy to hold it against.
            strict: raise `BudgetExceeded` rather than return a refusal.

        Returns:
            A receipt that says `reserved`, whose `receipt` is for `commit` and `void`; or `refused`.

        Raises:
            InvalidParameter: one of them is of another kind or out of range. Nothing was charged.
            NotSupported: it is of another library, and says nothing about two values of one user. Nothing was
                charged.
            UnknownName: there is no such policy.
            KeyConflict: the key was used for another request.
            BudgetExceeded: it was refused, and `strict`.
            ClockError: the clock cannot be believed.
        """
        return charging.reserve(
            self._ledger,
            self._caller,
            user,
            mechanism,
            expires=expires,
            reports=reports,
            key=key,
            label=label,
            digest=digest,
            note=note,
            policy=policy,
            strict=strict,
        )

    def commit(self, receipt: str) -> Receipt:
        """Keep what a reservation charged.

        Parameters:
            receipt: that of the reservation, as `reserve` gave it out.

        Returns:
            A receipt that says `committed`, or `expired`: then it stays charged as well.

        Raises:
            ReservationConflict: it was voided.
            UnknownName: this ledger has no such reservation.
            InvalidParameter: the receipt is no text.
            ClockError: the clock cannot be believed.
        """
        return charging.commit(self._ledger, receipt)

    def void(self, receipt: str) -> Receipt:
        """Give back what a reservation charged, while that is possible.

        Parameters:
            receipt: that of the reservation, as `reserve` gave it out.

        Returns:
            A receipt that says `voided`.

        Raises:
            ReservationConflict: it was committed, or has expired, and stays charged.
            UnknownName: this ledger has no such reservation.
            InvalidParameter: the receipt is no text.
            ClockError: the clock cannot be believed.
        """
        return charging.void(self._ledger, receipt)

    # -- looking at users ---------------------------------------------------------------------------------------

    def balance(self, user: str, policy: str = DEFAULT) -> Balance:
        """What a user has spent under each limit of a policy, in the windows that are open now.

        Parameters:
            user: whose balance it is; of somebody never seen it is that of nothing spent.
            policy: the policy to hold it against.

        Returns:
            A balance. In its `limits` are `spent`, `remaining` and `capacity`, plain numbers.

        Raises:
            InvalidParameter: one of them is no text.
            UnknownName: there is no such policy.
        """
        return queries.balance(self._ledger, user, policy, share=self._caller.share)

    def balances(self, users: Iterable[str] | None = None, policy: str = DEFAULT) -> Iterator[Balance]:
        """The balance of each of many users, in their order, or with None of every account, by its number.

        Without the odometer, which is worked out for each. Of 5,000 at a time those of one partition of the ledger are
        read in one moment.

        Parameters:
            users: whose balances, a stream of any length; None for everybody's.
            policy: the policy to hold them against.

        Raises:
            InvalidParameter: the policy or one of the users is no text.
            UnknownName: there is no such policy.
        """
        return queries.balances(self._ledger, users, policy, share=self._caller.share)

    def remaining_over_time(self, user: str, policy: str = DEFAULT) -> tuple[Remaining, ...]:
        """What was left of each limit of a policy, as it is now, from the user's first charge until now.

        It is worked out from the journal. A user who was erased has no limits, as in `balance`.

        Parameters:
            user: whose limits.
            policy: the policy that has them.

        Raises:
            InvalidParameter: one of them is no text.
            UnknownName: there is no such policy.
        """
        return queries.remaining_over_time(self._ledger, user, policy, share=self._caller.share)

    def history(self, user: str, *, first: int = 1, most: int | None = None) -> list[dict[str, Any]]:
        """The journal entries of a user, oldest first; a reservation's `state` says what has become of it.

        A user whom the ledger has never seen has none.

        Parameters:
            user: whose entries.
            first: the number of the entry from which on they are listed.
            most: how many entries at most; None for all. The next ones begin behind the `entry` of the last one.

        Raises:
            InvalidParameter: one of them is of another kind or out of range.
            UserErased: the user was erased, so the ledger no longer knows which entries were theirs.
        """
        return queries.history(self._ledger, user, first=first, most=most)

    def open_reservations(self, most: int | None = 20, *, user: str | None = None) -> list[dict[str, Any]]:
        """The reservations that can still be committed or voided, newest first, each with its `receipt`.

        Parameters:
            most: how many of them at most; None for all.
            user: whose; None for everybody's.

        Raises:
            InvalidParameter: one of them is of another kind.
        """
        return queries.open_reservations(self._ledger, most, user=user)

    def reservation(self, receipt: str) -> dict[str, Any]:
        """The journal entry of a reservation, with the `state` it is in.

        Parameters:
            receipt: that of the reservation, as `reserve` gave it out.

        Raises:
            UnknownName: this ledger has no such reservation.
            InvalidParameter: the receipt is no text.
        """
        return reservation_row(self._ledger, receipt)

    def is_erased(self, user: str) -> bool:
        """Whether a user was erased, and gets no budget.

        Parameters:
            user: whom to look for.

        Raises:
            InvalidParameter: it is no text.
        """
        return queries.is_erased(self._ledger, user)

    def erase(self, user: str, *, unknown: bool = False) -> bool:
        """Forget who an account belongs to: keys, labels and notes go, its sum stays, and there is no fresh budget.

        Parameters:
            user: who is to be forgotten.
            unknown: block the name for good even where it was never seen.

        Returns:
            Whether there was anything to erase, which is no more if it was done before.

        Raises:
            UnknownName: a user never seen, which may be misspelt, and not `unknown`.
            InvalidParameter: one of them is of another kind.
            LedgerError: the user is erased, but somebody was reading what was overwritten.
        """
        return ledger_operations.erase(self._ledger, user, unknown=unknown)

    # -- looking at the ledger ----------------------------------------------------------------------------------

    def journal(self, users: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
        """Every journal entry in order, as one moment of the ledger saw it; others may write meanwhile.

        Users appear as the numbers of their accounts.

        Parameters:
            users: with it each entry has a `user` too: the one of these whose account it is, or None.

        Raises:
            InvalidParameter: one of the users is no text.
        """
        return queries.journal(self._ledger, users)

    def position(self, user: str | None = None) -> str:
        """Where the journal ends: `PARTITION:ENTRY` of each partition of the ledger, with commas between.

        Positions of one ledger are compared partition by partition: whatever was written before a position was told is in
        every reading whose own position is not behind it.

        Parameters:
            user: that of the user's partition alone; None for every partition.

        Returns:
            The partitions, each with the number of its newest entry.

        Raises:
            InvalidParameter: the user is no text.
        """
        return queries.position(self._ledger, user)

    def positions(self, users: Sequence[str]) -> list[str]:
        """Where the journal ends for each of some users, by one look at it.

        Parameters:
            users: whose partitions are told.

        Returns:
            `position` of each.

        Raises:
            InvalidParameter: one of them is no text.
        """
        return queries.positions(self._ledger, users)

    def stats(self) -> dict[str, Any]:
        """The counts of what the ledger holds, and its newest link (`head`).

        Raises:
            Nothing but `LedgerError`.
        """
        return export.stats(self._ledger)

    def now(self) -> datetime:
        """What time it is by the ledger's clock, in UTC; that of the newest entry where it is not to be believed.

        Raises:
            ClockError: the clock of a sandbox was set to a time before that.
        """
        return self._ledger.now().at.astimezone(UTC)

    @property
    def repeated(self) -> dict[str, int]:
        """How often this process, since it opened the ledger, did a piece of work again, by the reason.

        Of a ledger on a server the reason is the code of its error: 40001 for a serialization failure, 40P01 for a
        deadlock, `connection` for one that was lost before the commit was sent. Empty for one in a file.
        """
        return self._ledger.repeated

    # -- keeping the ledger -------------------------------------------------------------------------------------

    def checkpoint(self) -> str:
        """Put down where every partition ends. If nothing was written since the newest checkpoint, that is the one.

        Returns:
            Its head, to be noted elsewhere for `verify`.

        Raises:
            Nothing but `LedgerError`.
        """
        return head_of(take(self._ledger))

    def verify(
        self, expect: str | None = None, *, on_progress: Callable[[int, int], None] | None = None
    ) -> Integrity:
        """Verify the ledger: hash chain, row MACs, sums and costs; decide every charge again; read every record.

        Parameters:
            expect: a `head` that was noted earlier, before which nothing may have been rolled back.
            on_progress: called as `on_progress(done, total)` from time to time, with steps.

        Returns:
            Whether all is as it was written, and what is not, in words.

        Raises:
            InvalidParameter: one of them is of another kind.
        """
        return ledger_operations.verify(self._ledger, expect, on_progress=on_progress)

    def repair_clock(self) -> bool:
        """Go on from the clock as it is now, where the newest entries are dated later; says whether they were.

        For a clock that was too far ahead for a while: what was written meanwhile stops every charge. The repair is
        an entry of the journal, and refills nothing: what is dated later counts in the windows that are open now as
        well, and reservations made before it are expired, as nobody knows how old they are.

        Returns:
            Whether anything was dated later.

        Raises:
            ClockError: the clock has run away within this process.
        """
        return ledger_operations.repair_clock(self._ledger)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger, as it is at one moment, and its key; others may write meanwhile.

        Parameters:
            path: of the copy; the key goes to `path` with `.key`.

        Raises:
            InvalidParameter: it is no path.
            LedgerError: something is there already, or `copy_to` has not filled this ledger yet.
            NotSupported: the ledger lies in a database, which has tools of its own for that.
        """
        self._ledger.backup(check_path("path", path))

    def keyed_digest(self, data: bytes) -> str:
        """A digest of data, in hex, by which nobody without the ledger's key can guess it.

        Parameters:
            data: bytes.

        Raises:
            InvalidParameter: they are none.
        """
        return ledger_operations.keyed_digest(self._ledger, data)

    # -- collections --------------------------------------------------------------------------------------------

    def add_collection(self, collection: Collection) -> None:
        """Store a collection, with the digest of its public definition where it has a client for any device.

        The same one again is no error.

        Parameters:
            collection: what to store.

        Raises:
            NameTaken: another one has that name.
            InvalidParameter: it is no collection.
        """
        ledger_collections.add_collection(self._ledger, collection)

    def collection(self, name: str) -> Collection:
        """The collection of that name.

        Parameters:
            name: of the collection.

        Raises:
            UnknownName: there is none of that name.
            NotSupported: its mechanism is missing here.
            InvalidParameter: the name is no text.
        """
        return ledger_collections.collection(self._ledger, name)

    def collections(self) -> list[dict[str, Any]]:
        """The definitions of all collections, readable even where a mechanism's plugin is missing.

        Raises:
            Nothing but `LedgerError`.
        """
        return ledger_collections.collections(self._ledger)

    # -- records ------------------------------------------------------------------------------------------------

    def record(self, kind: str, name: str, body: dict[str, Any], *, expected: int) -> Record:
        """Add a record, unless somebody else has added one meanwhile. It is journalled, and stays for good.

        The kinds that the library and its service write themselves, such as `key`, are refused: a call of its own,
        for example `ApiKeys.create`, writes such a record.

        Parameters:
            kind: what it says, a word of your own, such as `note`: small letters and hyphens.
            name: whom or what it is about, at most 200 characters.
            body: the rest, an object that JSON can hold, of at most 100,000 bytes.
            expected: the number of the newest record that was known when this was decided; 0 if there was none.

        Returns:
            The record, with its number.

        Raises:
            RecordConflict: there is a newer one. Nothing was changed.
            InvalidParameter: one of them is of another kind or out of range, or `kind` is one of the library's own.
        """
        return admin_log.record(self._ledger, self._caller, kind, name, body, expected=expected)

    def _record_own(
        self, kind: str, name: str, body: dict[str, Any], *, expected: int, remote: bool = False
    ) -> Record:
        """Add a record of one of the library's own kinds, as `record` does for others; `remote`: for another machine.

        Raises:
            RecordConflict: there is a newer one. Nothing was changed.
            ApprovalConflict: the holder of a key makes a key where approvals are demanded.
            InvalidParameter: the kind is not one of the library's own, or the body has not the shape of the kind.
        """
        return admin_log.record_own(self._ledger, self._caller, kind, name, body, expected=expected, remote=remote)

    def records(self, first: int = 1) -> list[Record]:
        """The administrative records of the ledger, such as which keys were made, in order.

        Parameters:
            first: the number from which on they are told.

        Raises:
            InvalidParameter: `first` is no whole number from 1.
        """
        return admin_log.records(self._ledger, first)

    @property
    def newest_record(self) -> int:
        """The number of the newest record that this accountant has read or written; the ledger is not asked."""
        return self._ledger.newest_record


def spend_group(asked: Sequence[tuple[Accountant, Spend | LdpBudgetError]]) -> list[Receipt | LdpBudgetError]:
    """`spend_each` for several callers of one ledger: each spend with the accountant that acts for its caller."""
    return batch_run.spend_group([(accountant._ledger, accountant._caller, spend) for accountant, spend in asked])
