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
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from .._json import canonical_json
from ..catalogue.collections import Collection
from ..errors import InvalidParameter, NameTaken, UnknownName
from ..ledger import Ledger, Reading, Transaction
from ..ledger.checkpoints import head_of, take
from ..ledger.clock import BOUND_SECONDS
from ..ledger.entries import RESERVED
from ..ledger.filling import count_at_repair, fill_ahead
from ..ledger.integrity import Integrity
from ..ledger.keeper import Keeper
from ..ledger.keys import check_kind
from ..ledger.listing import charges_of, history_rows, journal_rows, open_reservations, stats
from ..ledger.names import Name, find, place_of
from ..ledger.verifying import check_integrity
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
    LimitState,
    Receipt,
    answer_again,
    name_in,
    receipt_for,
    receipt_of,
)
from .remaining import Remaining, remaining_of
from .request import Request, charge_of, check_digest, check_text
from .reservations import MOST_SECONDS, Resolved, commit, void

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from ..authoring.base import Mechanism
    from ..guarantees.amounts import Costs
    from ..ledger.entries import StoredAnswer
    from ..ledger.store import Store
    from .bulk import Outcome
    from .copying import Copied
    from .idempotency import IdempotencyKey
    from .plans import Plan
    from .request import Charge
    from .simulating import Binding


class Accountant:
    """The privacy budgets of the users of one ledger.

    `ledger`: the path of a file, made with its key if neither exists (unless `create` is false); ":memory:"; the
    address `postgresql://…` of a database (see the guide to scaling); or a `Store`. `clock`: a function that returns
    now, as an aware datetime or in seconds since 1970; for tests and rehearsals. Of the default one, what it jumps
    within this process by more than `clock_bound` seconds is refused. May be shared by threads, and its ledger by
    processes; after a fork it opens the ledger anew.

    `rehearsal`: true makes or opens a rehearsal, a ledger in which nothing counts, to play a survey with a clock of
    your own, and refuses a ledger that counts; false refuses a rehearsal; None opens either. Which of the two it is
    was settled when it was made. Raises `RehearsalError`.
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
        self._read_clock = clock
        self._ledger = Ledger(_open(ledger, create, rehearsal=rehearsal), clock, clock_bound)
        self._keeper = Keeper(self._ledger)
        if len(self._ledger.lanes) > 1:
            self._ledger.after_commit = self._keeper.wake

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
        """Close the ledger."""
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
        Raises `InvalidParameter` where the policy makes no sense, where it changes the rule or δ of a limit that was
        charged already, or where a plan succeeds others and all of them fit no lifetime limit together.

        The windows of a period that nothing limited before are filled from the journal first; others write meanwhile.
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
        """The newest version of a policy. Raises `UnknownName`."""
        with self._ledger.reading() as reading:
            return self._policy(reading, name)[1]

    def policies(self) -> list[Policy]:
        """The newest version of every policy."""
        with self._ledger.reading() as reading:
            return [Policy.read(stored.definition) for stored in reading.newest_policies()]

    def simulate(
        self,
        mechanism: Mechanism,
        *,
        every: str,
        reports: int = 1,
        start: datetime | None = None,
        policy: str = DEFAULT,
    ) -> tuple[Binding, ...]:
        """When each limit of a policy binds first for somebody asked `reports` reports `every` day, week or month.

        By the decisions of a spend, in calendar windows (UTC), from `start`, by default now, and with nothing charged
        before; nothing is written. Reports of a mechanism that memoises repeat one value. A plan comes last, as a
        limit of the period `plan`. Raises `InvalidParameter`, and `NotSupported` where the policy admits no such
        report whatever it costs.
        """
        from .simulating import simulate

        with self._ledger.reading() as reading:
            found = self._policy(reading, policy)[1]
            begun = reading.moment.at if start is None else start
        return simulate(found, mechanism, every=every, start=begun, reports=reports)

    # -- charging ---------------------------------------------------------------------------------------

    def quote(
        self,
        user: str,
        mechanism: Mechanism,
        *,
        reports: int = 1,
        label: str | None = None,
        policy: str = DEFAULT,
    ) -> Receipt:
        """What a spend would cost and whether it would fit; changes nothing."""
        request = Request(self._ledger.key, user, mechanism, reports=reports, policy=policy, label=label)
        with self._ledger.reading(self._ledger.lane_of(request.user_hash)) as reading:
            reading.go_by_the_clock()
            return self._decide(reading, request)[0].receipt(QUOTED)

    def spend(
        self,
        user: str,
        mechanism: Mechanism,
        *,
        reports: int = 1,
        key: str | None = None,
        label: str | None = None,
        digest: str | None = None,
        policy: str = DEFAULT,
        strict: bool = False,
    ) -> Receipt:
        """Charge `reports` reports of `mechanism` to `user`, or refuse.

        `key` makes a retry safe: the same key with the same request returns the stored answer, with another
        request it raises `KeyConflict`. `label` says which memoised value the reports repeat. `digest` (hex) binds
        the report itself to the key. With `strict`, a refusal raises `BudgetExceeded`.
        """
        request = Request(
            self._ledger.key, user, mechanism, reports=reports, policy=policy, label=label, digest=digest, key=key
        )
        return self._charge(request, strict)

    def spend_many(
        self,
        users: Iterable[str],
        mechanism: Mechanism,
        *,
        key: str | None = None,
        digest: str | None = None,
        policy: str = DEFAULT,
        on_batch: Callable[[int, list[str]], None] | None = None,
    ) -> BulkResult:
        """Charge one report to each of many users, in batches; whoever does not fit is refused, the others go on.

        The users may be a stream of any length. Each batch is one transaction in each lane; with a `key`, repeating a
        run skips what was charged; `digest` (hex) binds the reports to it. `on_batch(users, refused)` is called after
        each batch with how many users it had and which were refused; without it, the result names them.
        """
        result = BulkResult()
        charge = charge_of(mechanism)
        identity = ("spend_many", charge.fingerprint, check_digest(digest), policy)
        for number, batch in enumerate(batches(users)):
            bound = batch_key(self._ledger.key, key, number, batch, identity)
            refused: list[str] = []
            for part, (of_part, repeated) in self._charge_batch(charge, policy, batch, bound):
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
        mechanism: Mechanism,
        *,
        reports: int = 1,
        expires: float = 3600,
        key: str | None = None,
        label: str | None = None,
        digest: str | None = None,
        policy: str = DEFAULT,
        strict: bool = False,
    ) -> Receipt:
        """Charge now, and decide within `expires` seconds: `commit` keeps the charge, `void` takes it back.

        What is not voided in time stays charged, for the report may be out already.
        """
        if isinstance(expires, bool) or not isinstance(expires, int | float) or not 0 < expires <= MOST_SECONDS:
            raise InvalidParameter("expires", f"seconds > 0 and <= {MOST_SECONDS}", expires)
        request = Request(
            self._ledger.key,
            user,
            mechanism,
            reports=reports,
            policy=policy,
            label=label,
            digest=digest,
            key=key,
            kind=RESERVED,
            lasts=int(expires * 1_000_000),
        )
        return self._charge(request, strict)

    def commit(self, receipt: str) -> Receipt:
        """Keep what a reservation charged; an expired one answers `expired`. Raises `ReservationConflict`."""
        return self._end(receipt, commit)

    def void(self, receipt: str) -> Receipt:
        """Give back what a reservation charged, while that is possible. Raises `ReservationConflict`."""
        return self._end(receipt, void)

    def balance(self, user: str, policy: str = DEFAULT) -> Balance:
        """What `user` has spent under each limit of `policy`, in the windows that are open now."""
        hashed = self._hash(user)
        with self._ledger.reading(self._ledger.lane_of(hashed)) as reading:
            _, found = self._policy(reading, policy)
            if reading.rows.is_erased(hashed):
                return Balance(user, found, (), erased=True)
            account = reading.account(hashed)
            charges = () if account.number is None else charges_of(reading, account.number)
            quotas = _quotas(reading, found, account.number)
            return Balance(user, found, _limit_states(reading, found, account.spent), quotas, charges)

    def remaining_over_time(self, user: str, policy: str = DEFAULT) -> tuple[Remaining, ...]:
        """What was left of each limit of `policy`, as it is now, from the user's first charge until now.

        It is worked out from the journal. A user who was erased has no limits, as in `balance`.
        """
        hashed = self._hash(user)
        with self._ledger.reading(self._ledger.lane_of(hashed)) as reading:
            _, found = self._policy(reading, policy)
            if reading.rows.is_erased(hashed):
                return ()
            return remaining_of(reading, found, reading.number_of(hashed))

    def erase(self, user: str, *, unknown: bool = False) -> bool:
        """Forget who an account belongs to: keys and labels go, its sum stays, and the user gets no fresh budget.

        Returns whether there was anything to erase, which is no more if it was done before. A user never seen is an
        error, `UnknownName`: it may be misspelt. With `unknown` the name is blocked like any other, for good. Raises
        `LedgerError` where the user is erased, but somebody was reading what was overwritten.
        """
        hashed = self._hash(user)

        def cut_off(transaction: Transaction) -> bool:
            if transaction.rows.is_erased(hashed):
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
        """Copy the ledger, as it is at one moment, and its key (to `path` with `.key`); others may write meanwhile.

        Raises `LedgerError` where something is there already, and for a ledger that `copy_to` has not filled yet.
        """
        self._ledger.backup(path)

    def copy_to(
        self,
        ledger: str | os.PathLike[str] | Store,
        *,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Copied:
        """Move everything to another place, a file or `postgresql://…`, where it goes on as a ledger of the same key.

        This ledger charges nobody any more, from before anything is copied; it can still be read. The other one is of
        no use before all is there and both were verified. Stopped at any point, the same call goes on. Receipts and
        keys stay what they are. Raises `LedgerError` where something else lies there, or where this ledger does not
        verify; then nothing was changed.
        """
        from ..ledger._sqlite import SqliteScratch
        from .copying import copy_ledger

        if str(ledger) == ":memory:":
            raise InvalidParameter("ledger", "a path or postgresql://…, that does not end with this process", ledger)
        scratch = SqliteScratch()
        try:
            open_target = partial(self._half_copied, ledger)
            return copy_ledger(self._ledger, open_target, scratch, on_progress or (lambda done, total: None))
        finally:
            scratch.close()

    def give_up_copy(self, ledger: str | os.PathLike[str] | Store) -> None:
        """Open this ledger again, of which a copy was begun by `copy_to` and is not complete.

        What there is of the copy can never be used, nor gone on with. Raises `LedgerError` where it is complete, or
        is not there: nobody could tell then that nobody is charged there.
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
        """A digest of data, in hex, by which nobody without the ledger's key can guess it."""
        return self._ledger.key.hash(b"data", data.hex()).hex()

    def is_erased(self, user: str) -> bool:
        """Whether `user` was erased, and gets no budget."""
        hashed = self._hash(user)
        with self._ledger.reading(self._ledger.lane_of(hashed)) as reading:
            return reading.rows.is_erased(hashed)

    def repair_clock(self) -> bool:
        """Go on from the clock as it is now, where the newest entries are dated later; says whether they were.

        For a clock that was too far ahead for a while: what was written meanwhile stops every charge. The repair is
        an entry of the journal, and refills nothing: what is dated later counts in the windows that are open now as
        well, and reservations made before it are expired, as nobody knows how old they are. Raises `ClockError` where
        the clock has run away within this process.
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
        """The journal entries of `user`, oldest first; a reservation's `state` says what has become of it."""
        hashed = self._hash(user)
        with self._ledger.reading(self._ledger.lane_of(hashed)) as reading:
            account = reading.number_of(hashed)
            return [] if account is None else history_rows(reading, account)

    def open_reservations(self, most: int = 20) -> list[dict[str, Any]]:
        """The newest reservations that can still be committed or voided, newest first, each with its `receipt`.

        At most so many; of each lane of the ledger the last 50,000 entries are looked at.
        """
        rows = open_reservations(self._ledger, most)
        return [{"receipt": receipt_of(self._ledger.key, row.pop("name")), **row} for row in rows]

    def journal(self) -> Iterator[dict[str, Any]]:
        """Every journal entry in order, as one moment of the ledger saw it; others may write meanwhile."""
        return journal_rows(self._ledger)

    def stats(self) -> dict[str, Any]:
        """Counts of what the ledger holds, and its newest link (`head`)."""
        return stats(self._ledger)

    @property
    def repeated(self) -> dict[str, int]:
        """How often this process, since it opened the ledger, did a piece of work again, by the reason.

        Of a ledger on a server the reason is the code of its error: 40001 for a serialization failure, 40P01 for a
        deadlock, `connection` for one that was lost before the commit was sent. Empty for one in a file.
        """
        return self._ledger.repeated

    def checkpoint(self) -> str:
        """Put down where every lane ends, and return the head of that, to be noted elsewhere for `verify`.

        If nothing was written since the newest checkpoint, that is the one.
        """
        return head_of(take(self._ledger))

    def verify(
        self, expect: str | None = None, *, on_progress: Callable[[int, int], None] | None = None
    ) -> Integrity:
        """Work everything out again: links, sums, costs, seals. `expect` is a `head` that was noted earlier.

        `on_progress(done, total)` is called from time to time with how many steps out of how many are done.
        """
        return check_integrity(self._ledger, expect, on_progress or (lambda done, total: None))

    # -- collections ------------------------------------------------------------------------------------

    def add_collection(self, collection: Collection) -> None:
        """Store a collection. Raises `NameTaken` if another one has that name; the same one again is no error."""
        definition = canonical_json(collection.to_json())

        def store(transaction: Transaction) -> None:
            stored = transaction.rows.collection(collection.name)
            if stored is None:
                transaction.add_collection(collection.name, collection.fingerprint, definition)
            elif stored.definition != definition:
                raise NameTaken("collection", collection.name, "it exists already, with another definition")

        self._ledger.run(store)

    def collection(self, name: str) -> Collection:
        """The collection of that name. Raises `UnknownName`."""
        with self._ledger.reading() as reading:
            stored = reading.rows.collection(name)
            if stored is None:
                raise UnknownName("collection", name, [other.name for other in reading.rows.collections()])
        return Collection.from_json(json.loads(stored.definition))

    def collections(self) -> list[dict[str, Any]]:
        """The definitions of all collections, readable even where a mechanism's plugin is missing."""
        with self._ledger.reading() as reading:
            return [json.loads(stored.definition) for stored in reading.rows.collections()]

    # -- inside a transaction ---------------------------------------------------------------------------

    def _hash(self, user: str) -> bytes:
        return self._ledger.key.hash(b"user", check_text("user", user))

    def _charge(self, request: Request, strict: bool) -> Receipt:
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
        self, charge: Charge, policy: str, users: list[str], key: IdempotencyKey | None
    ) -> Iterator[tuple[list[str], Outcome]]:
        """Charge a batch, each lane's part of it in a transaction of its own; the parts with what came of them."""
        from concurrent.futures import ThreadPoolExecutor

        ledger = self._ledger
        known: Outcome | Parts | None = None
        if len(ledger.lanes) == 1:
            known = ledger.run(self._charge_part(charge, policy, users, key))
        elif key is not None:
            # The whole batch is bound to its key before anybody is charged.
            known = ledger.run(self._binding(charge, policy, users, key), ledger.lane_of(key.hash))
        if isinstance(known, Parts):
            # It was begun before the ledger was copied, in other parts, each of which was charged then or was not.
            assert key is not None
            for lane, part in parts_of(ledger.key, users, known.lanes):
                yield from self._charge_batch(charge, policy, part, part_key(ledger.key, key, lane))
            return
        if known is not None:
            yield users, known
            return
        parts = dict(parts_of(ledger.key, users, len(ledger.lanes)))

        def charged(lane: int) -> tuple[list[str], Outcome]:
            of_lane = None if key is None else part_key(ledger.key, key, lane)
            outcome = ledger.run(self._charge_part(charge, policy, parts[lane], of_lane), lane)
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
        self, charge: Charge, policy: str, users: list[str], key: IdempotencyKey | None
    ) -> Callable[[Transaction], Outcome | Parts]:
        def work(transaction: Transaction) -> Outcome | Parts:
            def act() -> Outcome | Parts:
                return BulkCharge(transaction, charge, *self._policy(transaction, policy)).run(users), False

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
            cost=entry.costs,
            reports=entry.reports,
            limits=_limit_states(transaction, policy, spent),
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
    if isinstance(ledger, str | os.PathLike):
        if str(ledger).startswith(("postgresql://", "postgres://")):
            from ..ledger._postgres import PostgresStore

            return PostgresStore(str(ledger), create=create, secret=secret, rehearsal=rehearsal)
        if "://" in str(ledger):
            scheme = str(ledger).partition("://")[0]  # what follows may be a password
            raise InvalidParameter("ledger", "a path, :memory: or postgresql://…", f"{scheme}://…")
        from ..ledger._sqlite import SqliteStore

        return SqliteStore(ledger, create=create, secret=secret, rehearsal=rehearsal)
    check_kind(ledger.key, ledger.name, rehearsal)
    return ledger


def _limit_states(reading: Reading, policy: Policy, spent: dict[str, Costs]) -> tuple[LimitState, ...]:
    """What was spent under each limit of a policy, in the windows that are open."""
    limits = policy.limits
    return tuple([LimitState(limit, spent[limit.gauge], reading.windows[limit.gauge].ends) for limit in limits])


def _quotas(reading: Reading, policy: Policy, account: int | None) -> tuple[dict[str, Any], ...]:
    """How much of each quota of the policy's plan is used."""
    plan = policy.plan
    if plan is None:
        return ()
    rows = []
    for promise, count in plan.quotas:
        used = reading.quota_used(account, plan.identity, promise)
        rows.append({"guarantee": json.loads(promise), "quota": count, "used": used, "left": count - used})
    return tuple(rows)
