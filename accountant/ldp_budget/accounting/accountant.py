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
from typing import TYPE_CHECKING, Self

from .._checks import check_instance, shown
from ..errors import InvalidParameter
from ..ledger import Ledger
from ..ledger.clock import BOUND_SECONDS, check_bound
from ..ledger.keeper import Keeper
from . import agreed, ending, keeping, lines, looking, many, places, records, rekeying, setting, spending
from .books import Books
from .callers import Caller

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from datetime import datetime

    from ..ledger.store import Store


class Accountant(Books):
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
        self._ledger = Ledger(places.open_store(ledger, create, sandbox=sandbox), clock, clock_bound)
        self._keeper = Keeper(self._ledger)
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
    def caller(self) -> Caller:
        """Who uses it: the holder of a key, see `acting_for`, or `LOCAL`."""
        return self._caller

    @property
    def sandbox(self) -> bool:
        """Whether the ledger is a sandbox, in which nothing counts."""
        return self._ledger.key.sandbox

    def close(self) -> None:
        """Close the ledger. It may be closed twice, and used no more. What `acting_for` gave is closed with it alone.

        Raises:
            Nothing.
        """
        if not self._is_view:
            self._keeper.close()
            self._ledger.close()

    def acting_for(self, caller: Caller) -> Accountant:
        """The same ledger as the holder of an API key uses it.

        What they change bears the number of their key in the journal, their idempotency keys are told from those of
        others by their name, and what they charge must fit their share as well. It is closed with this one, and
        needs no closing.

        Parameters:
            caller: the holder, as `ApiKey.caller` says.

        Raises:
            InvalidParameter: it is none.
        """
        check_instance("caller", caller, Caller, "a `Caller`")
        view = copy.copy(self)
        view._caller, view._ledger, view._is_view = caller, self._ledger.acting_for(caller.number), True
        return view

    # -- policies ---------------------------------------------------------------------------------------

    set_policy = setting.set_policy
    policy = setting.policy
    policies = setting.policies
    simulate = setting.simulate

    # -- charging ---------------------------------------------------------------------------------------

    quote = spending.quote
    spend = spending.spend
    spend_many = many.spend_many
    spend_each = lines.spend_each
    run = lines.run
    reserve = spending.reserve
    commit = ending.commit
    void = ending.void
    balance = looking.balance
    balances = looking.balances
    remaining_over_time = looking.remaining_over_time
    erase = keeping.erase
    backup = places.backup
    copy_to = places.copy_to
    give_up_copy = places.give_up_copy
    keyed_digest = keeping.keyed_digest
    is_erased = looking.is_erased
    repair_clock = keeping.repair_clock
    key_states = rekeying.key_states
    prepare_key = rekeying.prepare_key
    discard_key = rekeying.discard_key
    activate_key = rekeying.activate_key

    # -- looking at the ledger --------------------------------------------------------------------------

    history = looking.history
    open_reservations = looking.open_reservations
    reservation = looking.reservation
    journal = looking.journal
    position = looking.position
    positions = looking.positions
    stats = looking.stats
    overview = looking.overview

    @property
    def repeated(self) -> dict[str, int]:
        """How often this process, since it opened the ledger, did a piece of work again, by the reason.

        Of a ledger on a server the reason is the code of its error: 40001 for a serialization failure, 40P01 for a
        deadlock, `connection` for one that was lost before the commit was sent. Empty for one in a file.
        """
        return self._ledger.repeated

    check_up = keeping.check_up
    checkpoint = keeping.checkpoint
    verify = keeping.verify

    # -- records ----------------------------------------------------------------------------------------

    record = records.record
    _record_own = records.record_own
    now = records.now
    records = records.records

    @property
    def newest_record(self) -> int:
        """The number of the newest record that this accountant has read or written; the ledger is not asked."""
        return self._ledger.newest_record

    # -- collections ------------------------------------------------------------------------------------

    add_collection = agreed.add_collection
    collection = agreed.collection
    collections = agreed.collections
