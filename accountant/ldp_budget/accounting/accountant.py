"""`Accountant`: who has spent what, and may this be spent as well?

    with Accountant("budget.db") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="4"), Limit("day", epsilon="1")])
        receipt = accountant.spend("alice", oue, key="2026-11-21/alice/party")

One spend is one transaction: it reads the clock, looks the key up, checks every limit of the policy and then writes
the sums of every window, the journal entry and the key, or nothing.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from .._checks import check_call, check_instance, check_name, check_path, check_switch, check_text, check_whole, shown
from .._json import canonical_json
from ..catalogue.collections import Collection
from ..errors import InvalidParameter, NameTaken, UnknownName
from ..ledger import Ledger, Reading, Transaction
from ..ledger.checkpoints import head_of, take
from ..ledger.checkup import check_up
from ..ledger.clock import BOUND_SECONDS, check_bound
from ..ledger.entries import RESERVED
from ..ledger.filling import count_at_repair, fill_ahead
from ..ledger.integrity import Integrity
from ..ledger.keeper import Keeper
from ..ledger.keys import check_kind
from ..ledger.listing import charges_of, history_rows, journal_rows, open_reservations, stats
from ..ledger.names import Name, find, place_of
from ..ledger.verifying import check_integrity
from . import records
from .balances import account_names, all_balances, balances_of, limit_states, quota_states
from .bulk import (
    LANES_TOGETHER,
    BulkCharge,
    BulkResult,
    Parts,
    batch_key,
    batches,
    bind,
    part_key,
    parts_of,
    read_part,
    write_refused,
)
from .charging import account_for, apply
from .decision import Decision, decide
from .idempotency import Kept, once
from .limits import Limit
from .policies import DEFAULT, Policy, follow, keep_periods, propose
from .receipts import (
    QUOTED,
    REFUSED,
    Balance,
    BudgetExceeded,
    Receipt,
    answer_again,
    name_in,
    receipt_for,
    receipt_of,
)
from .remaining import Remaining, remaining_of
from .request import Request, charge_of, check_digest, check_note, mechanism_of
from .reservations import MOST_SECONDS, Resolved, commit, reservation_row, void

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from ..authoring.base import Mechanism
    from ..ledger.entries import StoredAnswer
    from ..ledger.store import Store
    from .bulk import Outcome
    from .copying import Copied
    from .idempotency import IdempotencyKey
    from .plans import Plan
    from .records import Record
    from .request import Charge
    from .simulating import Binding


class Accountant:
    """The privacy budgets of the users of one ledger.

    May be shared by threads, and its ledger by processes; after a fork it opens the ledger anew. Users are texts, of
    at least one character. Whatever reads or writes the ledger may raise `LedgerError`, where that cannot be opened,
    read or trusted; what is said of each call below comes on top.

    Parameters:
        ledger: the path of a file, made with its key if neither exists; ":memory:"; the address `postgresql://…` of a
            database (see the guide to scaling); or a `Store`.
        create: whether it may be made.
        clock: a function that returns now, as an aware datetime or in seconds since 1970; for tests and rehearsals.
        clock_bound: in seconds. If the default clock jumps by more than that within this process, it is refused.
        rehearsal: True makes or opens a rehearsal, a ledger in which nothing counts, to play a survey with a clock of
            your own, and refuses a ledger that counts; False refuses a rehearsal; None opens either. Which of the two
            it is was settled when it was made.

    Raises:
        InvalidParameter: one of them is of another kind.
        LedgerMissing: there is no ledger, and none was to be made.
        RehearsalError: it is a rehearsal and was to be a ledger that counts, or the reverse.
        LedgerError: it cannot be opened or trusted.
        NotSupported: it lies in a database, and what speaks to that is not installed.
    """

    def __init__(
        self,
        ledger: str | os.PathLike[str] | Store,
        *,
        create: bool = True,
        clock: Callable[[], datetime | float] = time.time,
        clock_bound: float = BOUND_SECONDS,
        rehearsal: bool | None = False,
    ) -> None:
        if not callable(clock):
            raise InvalidParameter("clock", "a function that says what time it is", shown(clock))
        check_bound(clock_bound)
        self._read_clock = clock
        self._ledger = Ledger(_open(ledger, create, rehearsal=rehearsal), clock, clock_bound)
        self._keeper = Keeper(self._ledger)
        if len(self._ledger.lanes) > 1:
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
    def rehearsal(self) -> bool:
        """Whether the ledger is a rehearsal, in which nothing counts."""
        return self._ledger.key.rehearsal

    def close(self) -> None:
        """Close the ledger. It may be closed twice, and used no more.

        Raises:
            Nothing.
        """
        self._keeper.close()
        self._ledger.close()

    # -- policies ---------------------------------------------------------------------------------------

    def set_policy(
        self,
        name: str,
        limits: Sequence[Limit | str],
        *,
        relation: str | None = None,
        unbounded: bool = False,
        checked: bool = False,
        plan: Plan | None = None,
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

        Returns:
            The policy as it was stored, with its version.

        Raises:
            InvalidParameter: one of them is of another kind, or the policy makes no sense; it changes the rule or δ
                of a limit that was charged already; or its plan succeeds others, and all of them fit no lifetime
                limit together.
            ClockError: the clock cannot be believed.
        """
        proposed = propose(name, limits, relation=relation, unbounded=unbounded, checked=checked, plan=plan)

        filled: set[str] = set()

        def store(transactions: Sequence[Transaction]) -> tuple[Policy, list[str]]:
            # Every lane has a copy of each policy, and the same version of it.
            stored = transactions[0].find_policy(name)
            previous = None if stored is None else Policy.read(stored.definition)
            # Each of them may have charged what the new version may not change.
            policy, *_ = [follow(transaction, proposed, previous) for transaction in transactions]
            new = [] if policy is previous else keep_periods(transactions, policy, filled)
            if policy is not previous and not new:
                for transaction in transactions:
                    transaction.add_policy(name, policy.version, canonical_json(policy.to_json()))
            return policy, new

        policy, new = self._ledger.run_together(store, self._ledger.lanes)
        while new:
            fill_ahead(self._ledger, new)
            filled.update(new)
            policy, new = self._ledger.run_together(store, self._ledger.lanes)
        return policy

    def policy(self, name: str = DEFAULT) -> Policy:
        """The newest version of a policy.

        Parameters:
            name: of the policy.

        Raises:
            UnknownName: there is none of that name.
            InvalidParameter: the name is no text.
        """
        check_name("name", name)
        with self._ledger.reading() as reading:
            return self._policy(reading, name)[1]

    def policies(self) -> list[Policy]:
        """The newest version of every policy.

        Raises:
            Nothing but `LedgerError`.
        """
        with self._ledger.reading() as reading:
            return [Policy.read(stored.definition) for stored in reading.newest_policies()]

    def simulate(
        self,
        mechanism: Mechanism | Collection,
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
        from .simulating import simulate

        check_name("policy", policy)
        with self._ledger.reading() as reading:
            found = self._policy(reading, policy)[1]
            begun = reading.moment.at if start is None else start
        return simulate(found, mechanism_of(mechanism), every=every, start=begun, reports=reports)

    # -- charging ---------------------------------------------------------------------------------------

    def quote(
        self,
        user: str,
        mechanism: Mechanism | Collection,
        *,
        reports: int = 1,
        label: str | None = None,
        policy: str = DEFAULT,
    ) -> Receipt:
        """What a spend would cost and whether it would fit; changes nothing.

        Parameters:
            user: who would be charged.
            mechanism: a mechanism with its parameters, or a collection, whose mechanism is charged then.
            reports: how many reports, at least one.
            label: which memoised value they repeat.
            policy: the policy to hold it against.

        Returns:
            A receipt that says `quoted`; its `binding` names what stands in the way, if anything does.

        Raises:
            InvalidParameter: one of them is of another kind or out of range.
            UnknownName: there is no such policy.
            ClockError: the clock cannot be believed.
        """
        request = Request(self._ledger.key, user, mechanism, reports=reports, policy=policy, label=label)
        with self._ledger.reading(self._ledger.lane_of(request.user_hash)) as reading:
            reading.go_by_the_clock()
            return self._decide(reading, request)[0].receipt(QUOTED)

    def spend(
        self,
        user: str,
        mechanism: Mechanism | Collection,
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
            mechanism: a mechanism with its parameters; or a collection, whose mechanism is charged then, and which is
                named in the journal.
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
            UnknownName: there is no such policy.
            KeyConflict: the key was used for another request.
            BudgetExceeded: it was refused, and `strict`.
            ClockError: the clock cannot be believed.
        """
        request = Request(
            self._ledger.key,
            user,
            mechanism,
            reports=reports,
            policy=policy,
            label=label,
            digest=digest,
            key=key,
            note=note,
        )
        return self._charge(request, strict)

    def spend_many(
        self,
        users: Iterable[str],
        mechanism: Mechanism | Collection,
        *,
        key: str | None = None,
        digest: str | None = None,
        note: str | None = None,
        policy: str = DEFAULT,
        on_batch: Callable[[int, list[str]], None] | None = None,
    ) -> BulkResult:
        """Charge one report to each of many users, in batches; whoever does not fit is refused, the others go on.

        Each batch is one transaction in each lane of the ledger.

        Parameters:
            users: who is charged, a stream of any length; a user who comes twice is charged twice.
            mechanism: a mechanism with its parameters; or a collection, whose mechanism is charged then, and which is
                named in the journal.
            key: names the run; repeated, it skips what was charged.
            digest: hexadecimal; binds the reports to the key.
            note: one line of at most 500 characters, written beside every charge; each goes with its user.
            policy: the policy to hold it against.
            on_batch: called as `on_batch(users, refused)` after each batch, with how many users it had and which of
                them were refused; without it, the result names these.

        Returns:
            How many were charged, refused, or had been charged by an earlier run of the same key.

        Raises:
            InvalidParameter: one of them is of another kind. Batches before that of a wrong user were charged.
            UnknownName: there is no such policy.
            NotSupported: the policy holds a plan.
            KeyConflict: the key was used for a run of other users, or of something else.
            ClockError: the clock cannot be believed.
        """
        result = BulkResult()
        charge, note = charge_of(mechanism), check_note(note)
        identity = ("spend_many", *charge.identity, check_digest(digest), check_name("policy", policy))
        if key is not None:
            check_text("key", key)
        check_call("on_batch", on_batch)
        for number, batch in enumerate(batches(users)):
            bound = batch_key(self._ledger.key, key, number, batch, identity)
            refused: list[str] = []
            for part, (of_part, repeated) in self._charge_batch(charge, policy, batch, bound, note):
                result.count(len(part), of_part, repeated)
                refused += of_part
            if on_batch is not None:
                on_batch(len(batch), refused)
            else:
                result.refused_users += refused
        return result

    def reserve(
        self,
        user: str,
        mechanism: Mechanism | Collection,
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
            mechanism: a mechanism with its parameters, or a collection, whose mechanism is charged then.
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
            UnknownName: there is no such policy.
            KeyConflict: the key was used for another request.
            BudgetExceeded: it was refused, and `strict`.
            ClockError: the clock cannot be believed.
        """
        if isinstance(expires, bool) or not isinstance(expires, int | float) or not 0 < expires <= MOST_SECONDS:
            raise InvalidParameter("expires", f"seconds > 0 and <= {MOST_SECONDS}", shown(expires))
        request = Request(
            self._ledger.key,
            user,
            mechanism,
            reports=reports,
            policy=policy,
            label=label,
            digest=digest,
            key=key,
            note=note,
            kind=RESERVED,
            lasts=int(expires * 1_000_000),
        )
        return self._charge(request, strict)

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
        return self._end(receipt, commit)

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
        return self._end(receipt, void)

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
        hashed = self._hash(user)
        check_name("policy", policy)
        with self._ledger.reading(self._ledger.lane_of(hashed)) as reading:
            _, found = self._policy(reading, policy)
            if reading.is_erased(hashed):
                return Balance(user, found, (), erased=True)
            account = reading.account(hashed)
            charges = () if account.number is None else charges_of(reading, account.number)
            plan = found.plan
            used = (
                {}
                if plan is None
                else {
                    promise: reading.quota_used(account.number, plan.identity, promise) for promise, _ in plan.quotas
                }
            )
            states = limit_states(reading, found, account.spent)
            return Balance(user, found, states, quota_states(found, used), charges)

    def balances(self, users: Iterable[str] | None = None, policy: str = DEFAULT) -> Iterator[Balance]:
        """The balance of each of many users, in their order, or with None of every account, by its number.

        Without the odometer, which is worked out for each. Of 5,000 at a time those of one lane of the ledger are
        read in one moment.

        Parameters:
            users: whose balances, a stream of any length; None for everybody's.
            policy: the policy to hold them against.

        Raises:
            InvalidParameter: the policy or one of the users is no text.
            UnknownName: there is no such policy.
        """
        self.policy(policy)  # one that there is not is told, even where nobody asks for a balance
        return all_balances(self._ledger, policy) if users is None else balances_of(self._ledger, users, policy)

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
        hashed = self._hash(user)
        check_name("policy", policy)
        with self._ledger.reading(self._ledger.lane_of(hashed)) as reading:
            _, found = self._policy(reading, policy)
            if reading.is_erased(hashed):
                return ()
            return remaining_of(reading, found, reading.number_of(hashed))

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
        hashed = self._hash(user)
        check_switch("unknown", unknown)

        def cut_off(transaction: Transaction) -> bool:
            if transaction.is_erased(hashed):
                return False
            account = transaction.number_of(hashed)
            seen = account is not None or transaction.has_answers(hashed)
            if not seen and not unknown:
                raise UnknownName("user", user, None, "Nothing was erased")
            transaction.erase(hashed, account)
            return seen

        erased = self._ledger.run(cut_off, self._ledger.lane_of(hashed))
        self._ledger.clear_log()
        return erased

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

    def copy_to(
        self,
        ledger: str | os.PathLike[str] | Store,
        *,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Copied:
        """Move everything to another place, a file or `postgresql://…`, where it goes on as a ledger of the same key.

        This ledger charges nobody any more, from before anything is copied; it can still be read. The other one is of
        no use before all is there and both were verified. Stopped at any point, the same call goes on. Receipts and
        keys stay what they are.

        Parameters:
            ledger: the other place, as for `Accountant`.
            on_progress: called as `on_progress(done, total)` from time to time, with steps.

        Returns:
            The names of both, their heads to note, and how much was copied.

        Raises:
            InvalidParameter: one of them is of another kind.
            LedgerError: something else lies there, or this ledger does not verify; then nothing was changed.
            ClockError: the clock cannot be believed.
            NotSupported: it lies in a database, and what speaks to that is not installed.
        """
        check_call("on_progress", on_progress)
        from ..ledger._sqlite import SqliteScratch
        from .copying import copy_ledger

        if isinstance(ledger, str) and ledger == ":memory:":
            raise InvalidParameter("ledger", "a path or postgresql://…, that does not end with this process", ledger)
        scratch = SqliteScratch()
        try:
            open_target = partial(self._half_copied, ledger)
            return copy_ledger(self._ledger, open_target, scratch, on_progress or (lambda done, total: None))
        finally:
            scratch.close()

    def give_up_copy(self, ledger: str | os.PathLike[str] | Store) -> None:
        """Open this ledger again, of which a copy was begun by `copy_to` and is not complete.

        What there is of the copy can never be used, nor gone on with.

        Parameters:
            ledger: the other place, as for `copy_to`.

        Raises:
            InvalidParameter: it is no place of a ledger.
            LedgerError: the copy is complete, or is not there: nobody could tell then that nobody is charged there.
            NotSupported: it lies in a database, and what speaks to that is not installed.
        """
        from .copying import give_up_copy

        target = self._half_copied(ledger, create=False)
        try:
            give_up_copy(self._ledger, target)
        finally:
            target.close()

    def _half_copied(self, ledger: str | os.PathLike[str] | Store, create: bool) -> Ledger:
        return Ledger(_open(ledger, create, self._ledger.key.secret), self._read_clock, half=True)

    def keyed_digest(self, data: bytes) -> str:
        """A digest of data, in hex, by which nobody without the ledger's key can guess it.

        Parameters:
            data: bytes.

        Raises:
            InvalidParameter: they are none.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InvalidParameter("data", "bytes", shown(data))
        return self._ledger.key.hash(b"data", data.hex()).hex()

    def is_erased(self, user: str) -> bool:
        """Whether a user was erased, and gets no budget.

        Parameters:
            user: whom to look for.

        Raises:
            InvalidParameter: it is no text.
        """
        hashed = self._hash(user)
        with self._ledger.reading(self._ledger.lane_of(hashed)) as reading:
            return reading.is_erased(hashed)

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

        def repair(transaction: Transaction) -> bool:
            moment = transaction.repair_clock()
            if moment is not None:
                count_at_repair(transaction, moment)
            return moment is not None

        repaired = [self._ledger.run(repair, lane) for lane in self._ledger.lanes]
        return any(repaired)

    # -- looking at the ledger --------------------------------------------------------------------------

    def history(self, user: str) -> list[dict[str, Any]]:
        """The journal entries of a user, oldest first; a reservation's `state` says what has become of it.

        Parameters:
            user: whose entries.

        Raises:
            InvalidParameter: it is no text.
        """
        hashed = self._hash(user)
        with self._ledger.reading(self._ledger.lane_of(hashed)) as reading:
            account = reading.number_of(hashed)
            return [] if account is None else history_rows(reading, account)

    def open_reservations(self, most: int | None = 20, *, user: str | None = None) -> list[dict[str, Any]]:
        """The reservations that can still be committed or voided, newest first, each with its `receipt`.

        Parameters:
            most: how many of them at most; None for all.
            user: whose; None for everybody's.

        Raises:
            InvalidParameter: one of them is of another kind.
        """
        if most is not None:
            check_whole("most", most)
        rows = open_reservations(self._ledger, None if user is None else self._hash(user), most)
        return [{"receipt": receipt_of(self._ledger.key, row.pop("name")), **row} for row in rows]

    def reservation(self, receipt: str) -> dict[str, Any]:
        """The journal entry of a reservation, with the `state` it is in.

        Parameters:
            receipt: that of the reservation, as `reserve` gave it out.

        Raises:
            UnknownName: this ledger has no such reservation.
            InvalidParameter: the receipt is no text.
        """
        return reservation_row(self._ledger, receipt)

    def journal(self, users: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
        """Every journal entry in order, as one moment of the ledger saw it; others may write meanwhile.

        Users appear as the numbers of their accounts.

        Parameters:
            users: with it each entry has a `user` too: the one of these whose account it is, or None.

        Raises:
            InvalidParameter: one of the users is no text.
        """
        return journal_rows(self._ledger, None if users is None else account_names(self._ledger, users))

    def position(self, user: str | None = None) -> str:
        """Where the journal ends: `LANE:ENTRY` of each lane of the ledger, with commas between.

        Positions of one ledger are compared lane by lane: whatever was written before a position was told is in
        every reading whose own position is not behind it.

        Parameters:
            user: that of the user's lane alone; None for every lane.

        Returns:
            The lanes, each with the number of its newest entry.

        Raises:
            InvalidParameter: the user is no text.
        """
        if user is None:
            return ",".join(f"{lane}:{entries}" for lane, entries in enumerate(self._ledger.entries()))
        lane = self._ledger.lane_of(self._hash(user))
        with self._ledger.reading(lane) as reading:
            return f"{lane}:{reading.end.entries}"

    def stats(self) -> dict[str, Any]:
        """The counts of what the ledger holds, and its newest link (`head`).

        Raises:
            Nothing but `LedgerError`.
        """
        return stats(self._ledger)

    @property
    def repeated(self) -> dict[str, int]:
        """How often this process, since it opened the ledger, did a piece of work again, by the reason.

        Of a ledger on a server the reason is the code of its error: 40001 for a serialization failure, 40P01 for a
        deadlock, `connection` for one that was lost before the commit was sent. Empty for one in a file.
        """
        return self._ledger.repeated

    def check_up(self) -> dict[str, str | None]:
        """Whether somebody could be charged just now, and if not, why; changes nothing.

        Returns:
            What is wrong, or None, with each of three: `schema` (the tables can be read, and the ledger is open),
            `key` (it lies where it lay when the ledger was opened, and is the same) and `clock` (it can be believed).
            `clock` is left out where the tables cannot be read.

        Raises:
            Nothing.
        """
        return check_up(self._ledger)

    def checkpoint(self) -> str:
        """Put down where every lane ends. If nothing was written since the newest checkpoint, that is the one.

        Returns:
            Its head, to be noted elsewhere for `verify`.

        Raises:
            Nothing but `LedgerError`.
        """
        return head_of(take(self._ledger))

    def verify(
        self, expect: str | None = None, *, on_progress: Callable[[int, int], None] | None = None
    ) -> Integrity:
        """Work everything out again: links, sums, costs, seals.

        Parameters:
            expect: a `head` that was noted earlier, before which nothing may have been rolled back.
            on_progress: called as `on_progress(done, total)` from time to time, with steps.

        Returns:
            Whether all is as it was written, and what is not, in words.

        Raises:
            InvalidParameter: one of them is of another kind.
        """
        if expect is not None:
            check_text("expect", expect)
        check_call("on_progress", on_progress)
        return check_integrity(self._ledger, expect, on_progress or (lambda done, total: None))

    # -- records ----------------------------------------------------------------------------------------

    def records(self, first: int = 1) -> list[Record]:
        """The administrative records of the ledger, such as which keys were made, in order.

        Parameters:
            first: the number from which on they are told.

        Raises:
            InvalidParameter: `first` is no whole number from 1.
        """
        return records.read(self._ledger, first)

    def record(self, kind: str, name: str, body: dict[str, Any], *, expected: int) -> Record:
        """Add a record, unless somebody else has added one meanwhile. It is journalled, and stays for good.

        Parameters:
            kind: what it says, such as `key`: small letters and hyphens.
            name: whom or what it is about, at most 200 characters.
            body: the rest, an object that JSON can hold, of at most 100,000 bytes.
            expected: the number of the newest record that was known when this was decided; 0 if there was none.

        Returns:
            The record, with its number.

        Raises:
            RecordConflict: there is a newer one. Nothing was changed.
            InvalidParameter: one of them is of another kind or out of range.
        """
        return records.add(self._ledger, kind, name, body, expected)

    @property
    def newest_record(self) -> int:
        """The number of the newest record that this accountant has read or written; the ledger is not asked."""
        return self._ledger.newest_record

    def now(self) -> datetime:
        """What time it is by the ledger's clock, in UTC; that of the newest entry where it is not to be believed.

        Raises:
            ClockError: the clock of a rehearsal was set to a time before that.
        """
        return self._ledger.now().at.astimezone(UTC)

    # -- collections ------------------------------------------------------------------------------------

    def add_collection(self, collection: Collection) -> None:
        """Store a collection, with the digest of its public definition where it has a client for any device.

        The same one again is no error.

        Parameters:
            collection: what to store.

        Raises:
            NameTaken: another one has that name.
            InvalidParameter: it is no collection.
        """
        check_instance("collection", collection, Collection, "a collection")
        definition = canonical_json(collection.agreed().to_json())

        def store(transaction: Transaction) -> None:
            stored = transaction.rows.collection(collection.name)
            if stored is None:
                transaction.add_collection(collection.name, collection.fingerprint, definition)
            elif Collection.from_json(json.loads(stored.definition)) != collection:
                raise NameTaken("collection", collection.name, "it exists already, with another definition")

        self._ledger.run(store)

    def collection(self, name: str) -> Collection:
        """The collection of that name.

        Parameters:
            name: of the collection.

        Raises:
            UnknownName: there is none of that name.
            NotSupported: its mechanism is missing here.
            InvalidParameter: the name is no text.
        """
        check_name("name", name)
        with self._ledger.reading() as reading:
            stored = reading.rows.collection(name)
            if stored is None:
                raise UnknownName("collection", name, [other.name for other in reading.rows.collections()])
        return replace(Collection.from_json(json.loads(stored.definition)), rehearsal=self.rehearsal)

    def collections(self) -> list[dict[str, Any]]:
        """The definitions of all collections, readable even where a mechanism's plugin is missing.

        Raises:
            Nothing but `LedgerError`.
        """
        with self._ledger.reading() as reading:
            return [json.loads(stored.definition) for stored in reading.rows.collections()]

    # -- inside a transaction ---------------------------------------------------------------------------

    def _hash(self, user: str) -> bytes:
        return self._ledger.key.hash(b"user", check_text("user", user))

    def _charge(self, request: Request, strict: bool) -> Receipt:
        check_switch("strict", strict)
        needs = request.user_hash, None if request.key is None else request.key.hash
        lane = self._ledger.lane_of(request.user_hash)
        receipt = self._ledger.run(lambda transaction: self._charge_in(transaction, request), lane, needs)
        if strict and receipt.status == REFUSED:
            raise BudgetExceeded(receipt)
        return receipt

    def _charge_in(self, transaction: Transaction, request: Request) -> Receipt:
        """Decide, then write; or answer again what was answered under the same key."""
        policy, entry, erased = 0, None, False

        def act() -> Receipt:
            nonlocal policy, entry, erased
            decision, policy = self._decide(transaction, request)
            if not decision.fits:
                erased = decision.account.erased
                return decision.receipt(REFUSED)
            entry = apply(transaction, decision, policy)
            return decision.receipt(request.kind, receipt_for(transaction, entry))

        def write(receipt: Receipt) -> Kept | None:
            # Nothing that leads to an erased user is kept again.
            return None if erased else Kept(receipt.store(policy, transaction.moment.micros), entry)

        def read(stored: StoredAnswer) -> Receipt:
            return answer_again(transaction, request, stored, partial(self._policy_version, transaction))

        return once(transaction, request.key, act, write=write, read=read)

    def _charge_batch(
        self, charge: Charge, policy: str, users: list[str], key: IdempotencyKey | None, note: str | None
    ) -> Iterator[tuple[list[str], Outcome]]:
        """Charge a batch, each lane's part of it in a transaction of its own; the parts with what came of them."""
        from concurrent.futures import ThreadPoolExecutor

        ledger = self._ledger
        known: Outcome | Parts | None = None
        if len(ledger.lanes) == 1:
            known = ledger.run(self._charge_part(charge, policy, users, key, note))
        elif key is not None:
            # The whole batch is bound to its key before anybody is charged.
            known = ledger.run(self._binding(charge, policy, users, key), ledger.lane_of(key.hash))
        if isinstance(known, Parts):
            # It was begun before the ledger was copied, in other parts, each of which was charged then or was not.
            assert key is not None
            for lane, part in parts_of(ledger.key, users, known.lanes):
                yield from self._charge_batch(charge, policy, part, part_key(ledger.key, key, lane), note)
            return
        if known is not None:
            yield users, known
            return
        parts = dict(parts_of(ledger.key, users, len(ledger.lanes)))

        def charged(lane: int) -> tuple[list[str], Outcome]:
            of_lane = None if key is None else part_key(ledger.key, key, lane)
            outcome = ledger.run(self._charge_part(charge, policy, parts[lane], of_lane, note), lane)
            assert not isinstance(outcome, Parts)
            return parts[lane], outcome

        with ThreadPoolExecutor(LANES_TOGETHER) as threads:
            yield from threads.map(charged, sorted(parts))

    def _binding(
        self, charge: Charge, policy: str, users: list[str], key: IdempotencyKey
    ) -> Callable[[Transaction], Outcome | Parts | None]:
        def work(transaction: Transaction) -> Outcome | Parts | None:
            BulkCharge(transaction, charge, *self._policy(transaction, policy))  # what it refuses is not bound
            return bind(transaction, users, key)

        return work

    def _charge_part(
        self, charge: Charge, policy: str, users: list[str], key: IdempotencyKey | None, note: str | None
    ) -> Callable[[Transaction], Outcome | Parts]:
        def work(transaction: Transaction) -> Outcome | Parts:
            def act() -> Outcome | Parts:
                return BulkCharge(transaction, charge, *self._policy(transaction, policy), note).run(users), False

            return once(transaction, key, act, write=write_refused(users), read=read_part(users))

        return work

    def _decide(self, reading: Reading, request: Request) -> tuple[Decision, int]:
        """A decision about the request, and the number of the policy that it was held against."""
        number, policy = self._policy(reading, request.policy)
        return decide(account_for(reading, request, policy), request, policy, reading.windows), number

    def _end(self, receipt: str, how: Callable[[Transaction, str, int], Resolved]) -> Receipt:
        name = name_in(self._ledger.key, check_text("receipt", receipt))
        ended = None if name is None else self._end_named(name, receipt, how)
        if ended is None:
            raise UnknownName("reservation", receipt, [])
        return ended

    def _end_named(
        self, name: Name, receipt: str, how: Callable[[Transaction, str, int], Resolved]
    ) -> Receipt | None:
        ledger = self._ledger

        def end(number: int) -> Callable[[Transaction], Receipt | None]:
            return lambda transaction: self._resolve(transaction, receipt, how, number)

        def end_here(transaction: Transaction) -> Receipt | None:
            # One that was made before the ledger was copied has another place by now.
            return end(name.entry)(transaction) if name.generation == transaction.generation else None

        ended = ledger.run(end_here, name.lane) if name.lane in ledger.lanes else None
        if ended is not None:
            return ended
        with ledger.reading(ledger.lane_of(place_of(ledger.key, name))) as reading:
            found = find(reading, name)
        return None if found is None else ledger.run(end(found[1]), found[0])

    def _resolve(
        self, transaction: Transaction, receipt: str, how: Callable[[Transaction, str, int], Resolved], number: int
    ) -> Receipt:
        entry, state, repeated = how(transaction, receipt, number)
        _, policy = self._policy(transaction, self._policy_version(transaction, entry.policy).name)
        windows = transaction.windows
        spent = {period: transaction.spent(entry.account, window.code) for period, window in windows.items()}
        return Receipt(
            status=state,
            user=None,
            policy=policy.name,
            cost_units=entry.costs,
            reports=entry.reports,
            limits=limit_states(transaction, policy, spent),
            receipt=receipt,
            repeated=repeated,
        )

    def _policy(self, reading: Reading, name: str) -> tuple[int, Policy]:
        """The number of the newest version of a policy, and that version. Raises `UnknownName`."""
        # Never by its number: a transaction that is taken back gives that back as well, and then to another policy.
        stored = reading.policy(name)
        return stored.number, Policy.read(stored.definition)

    def _policy_version(self, reading: Reading, number: int) -> Policy:
        return Policy.read(reading.policy_version(number).definition)


def _open(
    ledger: str | os.PathLike[str] | Store,
    create: bool,
    secret: bytes | None = None,
    rehearsal: bool | None = None,
) -> Store:
    """The store of a ledger; one that is made here gets the secret, if there is one already."""
    check_switch("create", create)
    if rehearsal is not None:
        check_switch("rehearsal", rehearsal)
    if isinstance(ledger, str | os.PathLike):
        if str(ledger).startswith(("postgresql://", "postgres://")):
            from ..ledger._postgres import PostgresStore

            return PostgresStore(str(ledger), create=create, secret=secret, rehearsal=rehearsal)
        if "://" in str(ledger):
            scheme = str(ledger).partition("://")[0]  # what follows may be a password
            raise InvalidParameter("ledger", "a path, :memory: or postgresql://…", f"{scheme}://…")
        from ..ledger._sqlite import SqliteStore

        place = ":memory:" if str(ledger) == ":memory:" else check_path("ledger", ledger)
        return SqliteStore(place, create=create, secret=secret, rehearsal=rehearsal)
    if isinstance(ledger, type) or not all(hasattr(ledger, name) for name in _OF_A_STORE):
        raise InvalidParameter("ledger", "a path, :memory:, postgresql://… or a store", shown(ledger))
    check_kind(ledger.key, ledger.name, rehearsal)
    return ledger


_OF_A_STORE = "name", "key", "lanes", "run", "snapshot"
