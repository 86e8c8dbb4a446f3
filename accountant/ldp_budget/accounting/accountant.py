"""`Accountant`: charge local-DP reports to users, within the limits of a policy.

    with Accountant("budget.db") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="4"), Limit("day", epsilon="1")])
        receipt = accountant.spend("alice", oue, key="2026-11-21/alice/party")

One spend is one transaction. It reads the clock, looks up the idempotency key and checks every limit of the policy.
Then it writes the sums of every window, the journal entry and the idempotency record, or nothing at all.
"""

from __future__ import annotations

import copy
import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, Unpack

from .._files import canonical_json
from .._later import Later, accountant_part
from .._validation import check_call, check_instance, check_name, check_path, check_switch, shown
from ..charge_options import DEFAULT, KNOWN, ChargeOptions, QuoteOptions, check_options
from ..errors import InvalidParameter, LdpBudgetError, NameTaken, UnknownName
from ..ledger import Ledger
from ..ledger.calendar import BOUND_SECONDS, check_bound
from ..ledger.models import RESERVED
from ..registry.collections import Collection
from . import connect
from .charge_request import LOCAL, Principal, request_in
from .receipts import REFUSED, BudgetExceeded

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ldp_budget_surveys.publication.books import Books

    from ..ledger import Transaction, checkpoints, export
    from ..ledger.checkpoints import Checkpointer
    from ..ledger.storage import Store
    from ..ledger.verification import Integrity
    from . import (
        admin_log,
        admission,
        batch,
        bulk_run,
        call_options,
        engine,
        ledger_maintenance,
        policy_versions,
        queries,
        reservation_settlement,
        stored_reports,
    )
    from .admin_log import Record
    from .admission import Outcome
    from .batch import Spend, SpendResult
    from .budget_timeline import Binding, Remaining
    from .bulk_run import BulkResult
    from .call_options import Chargeable, PolicyOptions, RunOptions, SeriesOptions
    from .charge_request import ChargeRequest
    from .ledger_maintenance import LedgerOperations
    from .limits import Limit
    from .policies import Policy
    from .receipts import Balance, Receipt
    from .stored_reports import StoredReports
else:
    _ROOMS = "admin_log admission batch bulk_run call_options engine ledger_maintenance policy_versions queries"
    for _name in (*_ROOMS.split(), "reservation_settlement", "stored_reports"):
        globals()[_name] = Later(__name__, __package__, _name)
    checkpoints, export = (Later(__name__, "ldp_budget.ledger", name) for name in ("checkpoints", "export"))

_NEW_NAME = "Choose another name, because reports of the existing definition cannot be mixed with others."


class Accountant:
    """The privacy budgets of all users of one ledger.

    Several threads can share an accountant, and several processes can share its ledger. After a fork, the child
    process opens the ledger again. User ids are texts of at least one character. Blanks at both ends are removed and
    Unicode is normalized (NFC). Every call that reads or writes the ledger can raise `LedgerError`, if the ledger cannot
    be opened, read or trusted. The errors listed with each call come on top.

    Parameters:
        ledger: the path of a file, which is created together with its key file if neither exists; ":memory:"; the URL
            `postgresql://…` of a database (see the guide to scaling); or a `Store`.
        create: True to create the ledger if it does not exist.
        clock: a function that returns the current time, as an aware datetime or in seconds since 1970; for tests and
            sandboxes.
        clock_bound: in seconds. If the default clock jumps by more than this within one process, charges are refused.
        sandbox: True creates or opens a sandbox ledger and refuses any other ledger. A sandbox is a ledger in which
            nothing counts: you can rehearse a survey with a clock of your own. False refuses a sandbox; None opens
            either. A ledger is made as a sandbox or not, and this never changes.

    Raises:
        InvalidParameter: an argument has the wrong type or is out of range.
        LedgerMissing: the ledger does not exist, and `create` is False.
        SandboxError: the ledger is a sandbox and `sandbox` is False, or the reverse.
        LedgerError: the ledger cannot be opened or trusted.
        NotSupported: the ledger is in a database whose driver is not installed.
    """

    _caller: Principal = LOCAL
    _check: Callable[[], None] | None = None
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
            raise InvalidParameter("clock", "a function that returns the time", shown(clock))
        check_bound(clock_bound)
        self._read_clock = clock
        self._ledger = Ledger(connect.open_store(ledger, create, sandbox=sandbox), clock, clock_bound)
        self._keeper: Checkpointer | None = None
        if len(self._ledger.partitions) > 1:
            self._keeper = checkpoints.Checkpointer(self._ledger)
            self._ledger.after_commit = self._keeper.wake

    def __repr__(self) -> str:
        return f"<Accountant of {self.name}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The name of the ledger in messages: the file, or the server and the database, without any password."""
        return self._ledger.name

    @property
    def caller(self) -> Principal:
        """The principal that uses this accountant: the holder of an API key (see `acting_for`), or `LOCAL`."""
        return self._caller

    @property
    def sandbox(self) -> bool:
        """True if the ledger is a sandbox, in which nothing counts."""
        return self._ledger.key.sandbox

    @property
    def ledger(self) -> LedgerOperations:
        """Operations for the operator, on the ledger's host: check the ledger, move it, rotate its key."""
        return ledger_maintenance.LedgerOperations(self._ledger, self._read_clock)

    @property
    def reports(self) -> StoredReports:
        """The reports that respondents sent: stored with their charges, and sealed in rounds."""
        return stored_reports.StoredReports(self._ledger, self._caller)

    @property
    def books(self) -> Books:
        """Data of a publication: the accounts' totals, and the charges of a collection with their marks."""
        found: Books = accountant_part("books").Books(self._ledger)
        return found

    def close(self) -> None:
        """Close the ledger. Calling `close` twice is allowed; any other call after it fails.

        On an accountant that `acting_for` returned, `close` does nothing: closing the original accountant closes
        both.
        """
        if not self._is_view:
            if self._keeper is not None:
                self._keeper.close()
            self._ledger.close()

    def acting_for(self, caller: Principal, *, check: Callable[[], None] | None = None) -> Accountant:
        """The same ledger, used by the holder of an API key.

        Journal entries record the number of the key. Idempotency keys are scoped to the key's name, so two holders
        can use the same one. If the key is bound to a sub-limit, each charge must fit that sub-limit too. Closing the
        parent closes this accountant too. Do not close it yourself.

        Parameters:
            caller: the holder of the key, from `ApiKey.caller`.
            check: called before each part of a batch; raises an error to end the batch there, such as for a key that
                was revoked meanwhile. None for no check.

        Raises:
            InvalidParameter: `caller` is not a `Principal`, or `check` is not callable.
        """
        check_instance("caller", caller, Principal, "a `Principal`")
        view = copy.copy(self)
        view._caller, view._ledger, view._is_view = caller, self._ledger.acting_for(caller.number), True
        view._check = check_call("check", check)
        return view

    # -- policies -----------------------------------------------------------------------------------------------

    def set_policy(self, name: str, limits: Sequence[Limit | str], **options: Unpack[PolicyOptions]) -> Policy:
        """Store a policy, or a new version of a policy that exists; all earlier charges stay charged.

        A policy with a plan that is set again unchanged gets no new version. A known plan keeps its first price.

        Parameters:
            name: of the policy; the policy `default` applies to every call that names no policy.
            limits: a list of limits, each a `Limit` or a text that `Limit.parse` reads. A charge must fit all of
                them.
            options: relation, unbounded, checked, plan, shares, zone, override: see `PolicyOptions` and `PolicyTerms`.

        Returns:
            The policy as it was stored, with its version.

        Raises:
            InvalidParameter: an argument has the wrong type; the policy is contradictory; it changes the rule or δ of
                a limit that was charged already; sub-limits exceed their limit; or its plan succeeds other plans, and
                all of them together do not fit the lifetime limit.
            ApprovalNeeded: the change allows larger charges, this ledger demands approvals, no approval was given,
                and `override` gives no reason.
            NotSupported: `override` is given through an API key, or the machine has no time zone database.
            ClockError: the system clock is not plausible.
        """
        try:
            return policy_versions.set_policy(self._ledger, self._caller, name, limits, **options)
        except TypeError:
            check_options(options, call_options.PolicyOptions)
            raise

    def policy(self, name: str = DEFAULT) -> Policy:
        """The newest version of a policy.

        Parameters:
            name: of the policy.

        Raises:
            UnknownName: no policy has this name.
            InvalidParameter: the name is not a text.
        """
        return policy_versions.policy(self._ledger, name)

    def policies(self) -> list[Policy]:
        """The newest version of every policy.

        Raises:
            LedgerError: the ledger cannot be opened, read or trusted.
        """
        return policy_versions.policies(self._ledger)

    def simulate(self, mechanism: Chargeable, *, every: str, **options: Unpack[SeriesOptions]) -> tuple[Binding, ...]:
        """Predict when each limit of a policy first refuses a user who reports regularly.

        The simulation takes the same decisions as `spend`, in calendar windows, for a user without earlier
        charges. Nothing is written. Reports of a memoizing mechanism repeat one value.

        Parameters:
            mechanism: a mechanism with its parameters, or a collection.
            every: "day", "week" or "month".
            options: reports, start, policy: see `SeriesOptions`.

        Returns:
            One result for each limit. A plan comes last, as a limit of the period `plan`.

        Raises:
            InvalidParameter: an argument has the wrong type or is out of range.
            UnknownName: the policy does not exist.
            NotSupported: the policy never admits such a report, at any budget.
        """
        try:
            return policy_versions.simulate(self._ledger, mechanism, every=every, **options)
        except TypeError:
            check_options(options, call_options.SeriesOptions)
            raise

    # -- charging -----------------------------------------------------------------------------------------------

    def quote(self, user: str, mechanism: Chargeable, **options: Unpack[QuoteOptions]) -> Receipt:
        """Compute the cost of a spend, and if it would fit; change nothing.

        Parameters:
            user: the user who would be charged.
            mechanism: a mechanism with its parameters, a collection, or an object that `guarantee_of` knows.
            options: reports, label, tags, policy: see `QuoteOptions`.

        Returns:
            A receipt with the status `quoted`. If the spend would not fit, its `binding` names the limits that refuse
            it.

        Raises:
            InvalidParameter: an argument has the wrong type or is out of range.
            NotSupported: the object of another library gives no guarantee for two values of one user.
            UnknownName: the policy does not exist.
            ClockError: the system clock is not plausible.
        """
        check_options(options, QuoteOptions)
        request = self._request(user, mechanism, options)
        with self._ledger.reading(request.partition) as reading:
            return engine.quote(reading, request)

    def spend(self, user: str, mechanism: Chargeable, **options: Unpack[ChargeOptions]) -> Receipt:
        """Charge reports of a mechanism to a user, or refuse.

        If the budget refuses a user, that client must not send a report.

        Parameters:
            user: the user who is charged.
            mechanism: a mechanism with its parameters, a collection, or an object that `guarantee_of` knows.
            options: reports, key, label, digest, tags, note, policy, strict: see `ChargeOptions`.

        Returns:
            A receipt with the status `spent` or `refused`. It is true if and only if the report may be sent.

        Raises:
            InvalidParameter: an argument has the wrong type or is out of range. Nothing was charged.
            NotSupported: the object of another library gives no guarantee for two values of one user. Nothing was
                charged.
            UnknownName: the policy does not exist.
            KeyConflict: the key was used for another request.
            BudgetExceeded: the request was refused, and `strict` is True.
            ClockError: the system clock is not plausible.
        """
        strict = options.pop("strict", False)
        request = self._request(user, mechanism, options)
        if strict is not False:
            return self._charge(request, strict)
        outcome = self._ledger.charge(engine.charge, [request])[0]
        return outcome.receipt() if isinstance(outcome, admission.Outcome) else admission.receipt_in(outcome)

    def _request(self, user: str, mechanism: Chargeable, options: QuoteOptions, **more: Any) -> ChargeRequest:
        if not KNOWN.issuperset(options):
            check_options(options)
        return request_in(self._ledger, self._caller, user, mechanism, **options, **more)

    def _charge(self, request: ChargeRequest, strict: bool) -> Receipt:
        check_switch("strict", strict)
        return _answer(self._ledger.charge(engine.charge, [request])[0], strict)

    async def _charge_async(self, request: ChargeRequest, strict: bool) -> Receipt:
        if strict is not False:
            check_switch("strict", strict)
        return _answer((await self._ledger.charge_async(engine.charge, [request]))[0], strict)

    async def spend_async(self, user: str, mechanism: Chargeable, **options: Unpack[ChargeOptions]) -> Receipt:
        """Do the same as `spend` in a task of an event loop, which runs other tasks meanwhile.

        If the task is cancelled, the user may have been charged: ask again by the key.
        """
        strict = options.pop("strict", False)
        return await self._charge_async(self._request(user, mechanism, options), strict)

    async def reserve_async(
        self, user: str, mechanism: Chargeable, *, expires: float = 3600, **options: Unpack[ChargeOptions]
    ) -> Receipt:
        """Do the same as `reserve` in a task of an event loop, which runs other tasks meanwhile."""
        strict = options.pop("strict", False)
        lasts = reservation_settlement.check_expires(expires)
        request = self._request(user, mechanism, options, kind=RESERVED, lasts=lasts)
        return await self._charge_async(request, strict)

    async def balance_async(self, user: str, policy: str = DEFAULT) -> Balance:
        """Do the same as `balance` in a task of an event loop, which runs other tasks meanwhile."""
        from asyncio import to_thread  # an event loop has imported it

        return await to_thread(self.balance, user, policy)

    def spend_many(self, users: Iterable[str], mechanism: Chargeable, **options: Unpack[RunOptions]) -> BulkResult:
        """Charge one report to each of many users, in batches; refuse the users whose limits do not fit it.

        A refused user does not stop the others.

        Parameters:
            users: the users to charge, a stream or a column of any length. A user who is listed twice is charged
                twice.
            mechanism: a mechanism with its parameters, a collection, or an object that `guarantee_of` knows.
            options: key, digest, note, tags, policy, shard, on_batch: see `RunOptions`.

        Returns:
            The number of charges, of refusals, and of charges that an earlier run with the same key made.

        Raises:
            InvalidParameter: an argument has the wrong type. Batches before that of an invalid user were charged.
            UnknownName: the policy does not exist.
            NotSupported: the policy has a plan; or the object of another library gives no guarantee for two values of
                one user.
            KeyConflict: the key was used for a run of other users, or of another request.
            ClockError: the system clock is not plausible.
        """
        try:
            return bulk_run.spend_many(self._ledger, self._caller, users, mechanism, **options)
        except TypeError:
            check_options(options, call_options.RunOptions)
            raise

    def spend_each(self, spends: Sequence[Spend | LdpBudgetError]) -> list[Receipt | LdpBudgetError]:
        """Charge many users, each for a request and with an idempotency key of their own, many in one transaction.

        Parameters:
            spends: one `Spend` for each request, with the arguments of `spend`. For an input that cannot be read,
                give the error that says why; it comes back in its place.

        Returns:
            For each spend what `spend` returns or raises. After a `LedgerError` it can be unknown if a user was
            charged: repeat the same spends with the same keys to find out.

        Raises:
            InvalidParameter: one of `spends` is neither a `Spend` nor an error. No user was charged.
        """
        return batch.spend_each(self._ledger, self._caller, spends, self._check)

    def spend_batch(self, spends: Sequence[Spend | LdpBudgetError], *, key: str) -> list[SpendResult]:
        """Charge many users, each for a request of their own, under one idempotency key.

        The same lines under the same key return the same results; a line that failed is tried again. An empty batch
        with the key that would follow ends a run: it accepts no more lines then.

        Parameters:
            spends: one `Spend` for each line, without a `key`. For an input that cannot be read, give the error that
                says why.
            key: the name of the batch. The keys of single spends are others: they belong to their users.

        Returns:
            A result for each line, in order.

        Raises:
            InvalidParameter: one of `spends` is neither a `Spend` nor an error, or the key is not a text. No user was
                charged.
            KeyConflict: the key was used for other lines. Nothing was charged.
            ClockError: the system clock is not plausible.
        """
        return batch.spend_batch(self._ledger, self._caller, spends, key, self._check)

    def reserve(
        self, user: str, mechanism: Chargeable, *, expires: float = 3600, **options: Unpack[ChargeOptions]
    ) -> Receipt:
        """Charge now, and decide within `expires` seconds: `commit` keeps the charge, `void` reverses it.

        A reservation that is not voided in time stays charged, because the report may have been sent already.

        Parameters:
            user: the user who is charged.
            mechanism: a mechanism with its parameters, a collection, or an object that `guarantee_of` knows.
            expires: seconds, above 0 and at most 366 days.
            options: reports, key, label, digest, tags, note, policy, strict: see `ChargeOptions`.

        Returns:
            A receipt with the status `reserved` or `refused`. Pass the `receipt` of a reserved one to `commit` or
            `void`.

        Raises:
            InvalidParameter: an argument has the wrong type or is out of range. Nothing was charged.
            NotSupported: the object of another library gives no guarantee for two values of one user. Nothing was
                charged.
            UnknownName: the policy does not exist.
            KeyConflict: the key was used for another request.
            BudgetExceeded: the request was refused, and `strict` is True.
            ClockError: the system clock is not plausible.
        """
        strict = options.pop("strict", False)
        lasts = reservation_settlement.check_expires(expires)
        return self._charge(self._request(user, mechanism, options, kind=RESERVED, lasts=lasts), strict)

    def commit(self, receipt: str) -> Receipt:
        """Keep the charge of a reservation.

        Parameters:
            receipt: of the reservation, as `reserve` returned it.

        Returns:
            A receipt with the status `committed`, or `expired` if it was too late. An expired reservation stays
            charged too.

        Raises:
            ReservationConflict: the reservation was voided.
            UnknownName: this ledger has no such reservation.
            InvalidParameter: the receipt is not a text.
            ClockError: the system clock is not plausible.
        """
        return reservation_settlement.end(self._ledger, receipt, reservation_settlement.commit)

    def void(self, receipt: str) -> Receipt:
        """Reverse the charge of a reservation, if it has neither been committed nor expired.

        Parameters:
            receipt: of the reservation, as `reserve` returned it.

        Returns:
            A receipt with the status `voided`.

        Raises:
            ReservationConflict: the reservation was committed or has expired, and stays charged.
            UnknownName: this ledger has no such reservation.
            InvalidParameter: the receipt is not a text.
            ClockError: the system clock is not plausible.
        """
        return reservation_settlement.end(self._ledger, receipt, reservation_settlement.void)

    # -- looking at users ---------------------------------------------------------------------------------------

    def balance(self, user: str, policy: str = DEFAULT) -> Balance:
        """The amounts that a user has spent and has left under each limit of a policy, in the current windows.

        Parameters:
            user: the user; one whom the ledger has never seen has spent nothing.
            policy: the policy to check against.

        Returns:
            A balance. Its `limits` have `spent`, `remaining` and `capacity`, as plain numbers.

        Raises:
            InvalidParameter: an argument is not a text.
            UnknownName: the policy does not exist.
        """
        return queries.balance(self._ledger, user, policy, share=self._caller.share)

    def balances(self, users: Iterable[str] | None = None, policy: str = DEFAULT) -> Iterator[Balance]:
        """The balances of many users, in their order; or of every account, ordered by its number.

        These balances have no odometer, as it takes a computation for each user. Users are read in groups of 5,000.
        Within a group, all users of one partition of the ledger are read from one snapshot.

        Parameters:
            users: a stream of any length; None for all accounts.
            policy: the policy to check against.

        Raises:
            InvalidParameter: the policy or one of the users is not a text.
            UnknownName: the policy does not exist.
        """
        return queries.balances(self._ledger, users, policy, share=self._caller.share)

    def remaining_over_time(self, user: str, policy: str = DEFAULT) -> tuple[Remaining, ...]:
        """The remaining budget of a user over time, for each limit of the policy as it is now.

        The series is computed from the journal and runs from the user's first charge until now. A user who was erased
        has no limits, as in `balance`.

        Parameters:
            user: the user.
            policy: the policy that has the limits.

        Raises:
            InvalidParameter: an argument is not a text.
            UnknownName: the policy does not exist.
        """
        return queries.remaining_over_time(self._ledger, user, policy, share=self._caller.share)

    def history(self, user: str, *, first: int = 1, most: int | None = None) -> list[dict[str, Any]]:
        """The journal entries of a user, oldest first; each reservation has its current `state`.

        A user whom the ledger has never seen has no entries.

        Parameters:
            user: the user.
            first: the number of the first entry to list.
            most: the largest number of entries to list; None for all. The next page begins after the `entry` of the
                last one.

        Raises:
            InvalidParameter: an argument has the wrong type or is out of range.
            UserErased: the user was erased, so the ledger no longer knows which entries were theirs.
        """
        return queries.history(self._ledger, user, first=first, most=most)

    def open_reservations(self, most: int | None = 20, *, user: str | None = None) -> list[dict[str, Any]]:
        """The reservations that can still be committed or voided, newest first, each with its `receipt`.

        Parameters:
            most: the largest number of reservations to list; None for all.
            user: list the reservations of this user; None for all users.

        Raises:
            InvalidParameter: an argument has the wrong type.
        """
        return queries.open_reservations(self._ledger, most, user=user)

    def reservation(self, receipt: str) -> dict[str, Any]:
        """The journal entry of a reservation, with its current `state`.

        Parameters:
            receipt: of the reservation, as `reserve` returned it.

        Raises:
            UnknownName: this ledger has no such reservation.
            InvalidParameter: the receipt is not a text.
        """
        return reservation_settlement.reservation_row(self._ledger, receipt)

    def is_erased(self, user: str) -> bool:
        """True if the user was erased; such a user gets no budget.

        Parameters:
            user: the user.

        Returns:
            True if the user was erased.

        Raises:
            InvalidParameter: the user is not a text.
        """
        return queries.is_erased(self._ledger, user)

    def erase(self, user: str, *, unknown: bool = False) -> bool:
        """Erase a user: unlink the account from the user and delete the user's keys, labels, notes and reports.

        Reports in sealed rounds stay, because nothing links them to a user. The sum of the account stays too. The user
        gets no fresh budget.

        Parameters:
            user: the user to erase.
            unknown: True also blocks a user whom the ledger has never seen, permanently.

        Returns:
            True if there was anything to erase; False if the user was erased before.

        Raises:
            UnknownName: the ledger has never seen the user, who may be misspelled, and `unknown` is False.
            InvalidParameter: an argument has the wrong type.
            LedgerError: the user is erased, but the deleted data is still on disk because a reader was active.
        """
        return ledger_maintenance.erase(self._ledger, user, unknown=unknown)

    # -- looking at the ledger ----------------------------------------------------------------------------------

    def journal(self, users: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
        """Every journal entry in order, from one snapshot of the ledger; other callers can write meanwhile.

        Users appear as the numbers of their accounts.

        Parameters:
            users: adds a `user` to each entry: the one of these users who has the account, or None.

        Raises:
            InvalidParameter: one of the users is not a text.
        """
        return queries.journal(self._ledger, users)

    def position(self, user: str | None = None) -> str:
        """The end of the journal: `PARTITION:ENTRY` for each partition of the ledger, separated by commas.

        Compare two positions of one ledger partition by partition. An entry that was written before a position was
        returned is in every read whose own position is not behind it.

        Parameters:
            user: return only the partition of this user; None for every partition.

        Returns:
            The partitions, each with the number of its newest entry.

        Raises:
            InvalidParameter: the user is not a text.
        """
        return queries.position(self._ledger, user)

    def positions(self, users: Sequence[str]) -> list[str]:
        """The end of the journal for each of several users, from one query.

        Parameters:
            users: the users whose partitions are read.

        Returns:
            `position` of each user.

        Raises:
            InvalidParameter: one of the users is not a text.
        """
        return queries.positions(self._ledger, users)

    def stats(self) -> dict[str, Any]:
        """The numbers of rows in the ledger, and its newest chain head (`head`).

        `entries_by_kind` counts the charges of users. `charges` counts the priced mechanisms: the different mechanisms,
        with their parameters and their collection, that were ever charged. `keys` counts the
        idempotency keys that callers gave: a run or a batch counts once.

        Raises:
            LedgerError: the ledger cannot be opened, read or trusted.
        """
        return export.stats(self._ledger)

    def now(self) -> datetime:
        """The current time by the ledger's clock, in UTC; the time of the newest entry if the clock is not plausible.

        Raises:
            ClockError: the clock of a sandbox was set to a time before its newest entry.
        """
        return self._ledger.now().at.astimezone(UTC)

    @property
    def repeated(self) -> dict[str, int]:
        """The number of transactions that this process has retried since it opened the ledger, by reason.

        For a ledger on a server the reason is the code of the error: 40001 for a serialization failure, 40P01 for a
        deadlock, `connection` for a connection that was lost before the commit was sent. Empty for a ledger in a
        file.
        """
        return self._ledger.repeated

    # -- keeping the ledger -------------------------------------------------------------------------------------

    def checkpoint(self) -> str:
        """Store a checkpoint of the head of every partition; reuse the newest one if nothing was written since.

        Returns:
            The head, as `verify` returns it. Note it outside the ledger, for `verify`.

        Raises:
            LedgerError: the ledger cannot be opened, read or trusted.
        """
        return checkpoints.head_to_note(checkpoints.take(self._ledger))

    def verify(
        self, expect: str | None = None, *, on_progress: Callable[[int, int], None] | None = None
    ) -> Integrity:
        """Verify the ledger: hash chain, row MACs, sums and costs; replay every decision; read every record.

        Parameters:
            expect: a `head` that you noted earlier; the ledger must still contain everything before it.
            on_progress: called as `on_progress(done, total)` from time to time, with steps.

        Returns:
            The result: `ok`, and each problem in words.

        Raises:
            InvalidParameter: an argument has the wrong type.
        """
        return ledger_maintenance.verify(self._ledger, expect, on_progress=on_progress)

    def repair_clock(self) -> bool:
        """Accept the current clock, although the newest entries are dated later.

        Use this after a clock was ahead for a while: the entries written then stop every charge. The repair is an
        entry of the journal and refills nothing. Charges that are dated later count in the current windows as well.
        Reservations made before the repair expire, because their age is unknown.

        Returns:
            True if any entry was dated later.

        Raises:
            ClockError: the clock has jumped within this process.
        """
        return ledger_maintenance.repair_clock(self._ledger)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger, from one snapshot, and its key file; other callers can write meanwhile.

        Parameters:
            path: of the copy; its key file is `path` with `.key`.

        Raises:
            InvalidParameter: `path` is not a path.
            LedgerError: the file already exists, or a move has not completed this ledger yet.
            NotSupported: the ledger is in a database. Use the database's own backup tools.
        """
        self._ledger.backup(check_path("path", path))

    def keyed_digest(self, data: bytes) -> str:
        """The keyed digest of data, in hex; without the ledger's key, it cannot be computed or guessed.

        Parameters:
            data: bytes.

        Raises:
            InvalidParameter: `data` is not bytes.
        """
        return ledger_maintenance.keyed_digest(self._ledger, data)

    # -- collections --------------------------------------------------------------------------------------------

    def add_collection(self, collection: Collection) -> None:
        """Store a collection, with the digest of its public definition if its client runs on any device.

        Storing an equal collection again changes nothing and is not an error.

        Parameters:
            collection: the collection to store.

        Raises:
            NameTaken: a different collection has this name.
            InvalidParameter: `collection` is not a `Collection`.
        """
        check_instance("collection", collection, Collection, "a `Collection`")
        definition = canonical_json(collection.agreed().to_json())

        def store(transaction: Transaction) -> None:
            stored = transaction.collection(collection.name)
            if stored is None:
                transaction.add_collection(collection.name, collection.fingerprint, definition)
            elif Collection.from_json(json.loads(stored.definition)) != collection:
                raise NameTaken(
                    "collection",
                    collection.name,
                    "exists with another definition. Nothing was changed.",
                    hint=_NEW_NAME,
                )

        self._ledger.run(store)

    def collection(self, name: str) -> Collection:
        """The collection with this name.

        Parameters:
            name: of the collection.

        Raises:
            UnknownName: no collection has this name.
            NotSupported: the mechanism of the collection is not installed here.
            InvalidParameter: the name is not a text.
        """
        check_name("name", name)
        with self._ledger.reading() as reading:
            stored = reading.collection(name)
            if stored is None:
                raise UnknownName("collection", name, [other.name for other in reading.collections()])
        return replace(Collection.from_json(json.loads(stored.definition)), sandbox=self._ledger.key.sandbox)

    def collections(self) -> list[dict[str, Any]]:
        """The definitions of all collections, readable even if the plugin of a mechanism is not installed.

        Raises:
            LedgerError: the ledger cannot be opened, read or trusted.
        """
        with self._ledger.reading() as reading:
            return [json.loads(stored.definition) for stored in reading.collections()]

    # -- records ------------------------------------------------------------------------------------------------

    def record(self, kind: str, name: str, body: dict[str, Any], *, expected: int) -> Record:
        """Add a permanent, journaled record to the administrative log, unless another caller has added one meanwhile.

        This call refuses the kinds that the library and its service write themselves, such as `key`. Each of those
        has a call of its own, for example `ApiKeys.create`.

        Parameters:
            kind: a word of your own for the kind of record, such as `note`: small letters and hyphens.
            name: the subject of the record, at most 200 characters.
            body: the content, a JSON object of at most 100,000 bytes.
            expected: the number of the newest record that you have read; 0 if there was none.

        Returns:
            The record, with its number.

        Raises:
            RecordConflict: the log has a newer record. Nothing was changed.
            InvalidParameter: an argument has the wrong type or is out of range, or `kind` is one of the library's
                own.
        """
        return admin_log.record(self._ledger, self._caller, kind, name, body, expected=expected)

    def _record_own(
        self, kind: str, name: str, body: dict[str, Any], *, expected: int, remote: bool = False
    ) -> Record:
        """Add a record of one of the library's own kinds; `remote` says that a client on another machine sent it.

        Raises:
            RecordConflict: the log has a newer record. Nothing was changed.
            ApprovalConflict: the holder of a key makes a key while the ledger demands approvals.
            InvalidParameter: the kind is not one of the library's own, or the body does not have the shape of the
                kind.
        """
        return admin_log.record_own(self._ledger, self._caller, kind, name, body, expected=expected, remote=remote)

    def records(self, first: int = 1) -> list[Record]:
        """The records of the administrative log, such as those of new API keys, in order.

        Parameters:
            first: the number of the first record to list.

        Raises:
            InvalidParameter: `first` is not a whole number from 1.
        """
        return admin_log.records(self._ledger, first)

    @property
    def newest_record(self) -> int:
        """The number of the newest record that this accountant has read or written; no query is made."""
        return self._ledger.newest_record


def _answer(outcome: Outcome | Receipt | LdpBudgetError, strict: bool) -> Receipt:
    """Return the receipt of an outcome, or raise its error; raise `BudgetExceeded` for a `strict` refusal."""
    receipt = admission.receipt_in(outcome)
    if strict and receipt.status == REFUSED:
        raise BudgetExceeded(receipt)
    return receipt
