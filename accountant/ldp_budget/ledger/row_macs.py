"""MACs of accounts: they bind everything that a decision reads of an account to its newest charge.

The MAC of an account is a keyed hash. It covers the user, the number of the newest charge and the used quotas. It
also covers the sums and label counts in the windows that overlap that charge's UTC day. Without the key, an attacker cannot change
one of them, or give a user another account. Older values cannot be restored with their MAC either, because the
journal then has a newer charge. A decision checks the MAC before it uses the values, and each change makes a new MAC.
"""

from __future__ import annotations

import struct
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Any, cast
from weakref import proxy

from ..errors import LedgerError
from ..guarantees.fixed_point import ZERO, Costs, add_amounts, costs_of
from ..guarantees.memoised_costs import UNLABELLED
from .calendar import earlier_on, gauge_of, names_on, windows_on
from .models import CHARGES, AccountMac, AccountMacState, Entry
from .snapshot import USERS_TOGETHER, Account, Replay, parts, promises, sums_in
from .storage import NO_SUM

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from hashlib import blake2b

    from ..guarantees.fixed_point import Amounts
    from .calendar import Window
    from .keyed_hashing import Secret
    from .snapshot import Reading
    from .storage import Batch, Rows

    Sums = dict[str, Amounts]
    """Four amounts by window."""
    WindowAmounts = tuple[Any, ...]
    """A window and four amounts."""
    Counts = dict[tuple[int | str | bytes, ...], int]
    """Reports by window, priced mechanism and label; and the used part of a quota by plan and guarantee."""

_ACCOUNTS_TOGETHER = 5_000
_LAST_DAY = 2_900_000  # in the last year that a calendar supports
_MOST_BEGUN = 10_000
_SUM = len(ZERO)
_STATE = len(AccountMacState._fields)
_QUOTA = 2  # the length of a quota's key; the key of a label count is longer and begins with its window
# Two numbers and a hash of fixed size end the hashed text. So the part before them is hashed once for many accounts.
_bound = Struct("<qq16s").pack


class AccountMacMaker:
    """Makes the MACs of a partition's accounts under a secret; input shared by many accounts is hashed once.

    A MAC covers a text, with the partition, the day and the names of the windows, and then the amounts as numbers of
    64 bits. An unbounded amount is marked in the text, so no number can pass for it.
    """

    def __init__(self, secret: Secret, partition: int) -> None:
        self.secret = secret
        self._partition = partition
        self._begun: dict[tuple[int, tuple[WindowAmounts, ...]], blake2b] = {}
        self._named: dict[tuple[int, tuple[str, ...]], blake2b] = {}

    def begin(self, day: int, sums: tuple[WindowAmounts, ...], counts: Counts) -> blake2b:
        """Return the hasher over sums (rows of a window and its amounts) and over counts; a zero counts as absent."""
        begun = None if counts else self._begun.get((day, sums))
        if begun is not None:
            return begun
        names: list[str] = []
        amounts: list[int | None] = []
        for window, *costs in sorted(sums, key=itemgetter(0)):
            if tuple(costs) != ZERO:
                names.append(window)
                amounts += costs
        begun = self.hasher(day, names, amounts, counts)
        if not counts:
            if len(self._begun) >= _MOST_BEGUN:
                self._begun = {}
            self._begun[day, sums] = begun
        return begun

    def hasher(self, day: int, names: list[str], amounts: list[int | None], counts: Counts) -> blake2b:
        """Return the hasher over the amounts of windows, four for each and not all zero, and over counts."""
        if None in amounts:
            names = [*names, f"unbounded {[place for place, amount in enumerate(amounts) if amount is None]}"]
            amounts = [0 if amount is None else amount for amount in amounts]
        windows = day, tuple(names)
        hasher = (self._named.get(windows) or self._name(windows)).copy()
        try:
            hasher.update(_PACK[len(amounts)](*amounts))
        except struct.error:  # no amount that was ever stored: the MAC will differ
            hasher.update(f"not amounts: {amounts}".encode("utf-8", "surrogatepass"))
        if counts:
            hasher.update(
                f"{sorted([ascii((*key, count)) for key, count in counts.items() if count])}".encode("ascii")
            )
        return hasher

    def mac(
        self, day: int, names: list[str], amounts: list[int | None], counts: Counts, bound: tuple[int, int, bytes]
    ) -> bytes:
        """Return the MAC of amounts and counts, see `hasher`, and of the account, its newest charge and its user."""
        begun = self._named.get((day, tuple(names)))
        if begun is not None and not counts:
            try:
                packed = _PACK_BOUND[len(amounts)](*amounts, *bound)
            except struct.error:  # an unbounded amount, or a value that was never stored
                pass
            else:
                hasher = begun.copy()
                hasher.update(packed)
                return hasher.digest()
        hasher = self.hasher(day, names, amounts, counts)
        hasher.update(_bound(*bound))
        return hasher.digest()

    def _name(self, windows: tuple[int, tuple[str, ...]]) -> blake2b:
        """Return the hasher over the day and the names of windows, and remember it."""
        if len(self._named) >= _MOST_BEGUN:
            self._named = {}
        day, names = windows
        begun = self._named[windows] = self.secret.sums(ascii((self._partition, day, names)).encode("ascii"))
        return begun

    def row_mac(self, account: int, user: bytes, newest: int | None, day: int, sums: Sums, counts: Counts) -> bytes:
        """Return the MAC of an account for a day."""
        rows = tuple([(window, *costs) for window, costs in sums.items()])
        return finish_account_mac(self.begin(day, rows, counts), account, user, newest)


class _Packers(dict[int, "Callable[..., bytes]"]):
    """Functions that pack numbers of 64 bits, by their count, and then what `end` says."""

    def __init__(self, end: str = "") -> None:
        self._end = end

    def __missing__(self, count: int) -> Callable[..., bytes]:
        pack = self[count] = Struct(f"<{count}q{self._end}").pack
        return pack


_PACK = _Packers()
_PACK_BOUND = _Packers("qq16s")
"""With what `_bound` packs after them."""


def finish_account_mac(begun: blake2b, account: int, user: bytes, newest: int | None) -> bytes:
    """Return the MAC of an account whose other values are already hashed."""
    hasher = begun.copy()
    hasher.update(_bound(account, newest or 0, user))
    return hasher.digest()


def counts_of(labels: Iterable[Sequence[Any]], quotas: Iterable[Sequence[Any]], windows: Container[str]) -> Counts:
    """Return the counts that a MAC covers, from rows of label counts in some `windows`, and of used quotas."""
    counts: Counts = {(window, charge, label): n for _, label, charge, window, n in labels if window in windows}
    counts.update({(plan, promise): used for _, plan, promise, used in quotas})
    return counts


def _with_label(key: tuple[Any, ...], again: Callable[[bytes], bytes]) -> tuple[Any, ...]:
    """Return the key of a count with its label converted. The key of a quota has no label."""
    return key if len(key) == _QUOTA or key[2] == UNLABELLED else (*key[:2], again(key[2]))


def _rows(names: Sequence[str], flat: Amounts) -> tuple[WindowAmounts, ...]:
    """Return rows of sums, one for each window, from the concatenated amounts of all windows."""
    rows = [(window, *flat[first : first + _SUM]) for window, first in zip(names, range(0, len(flat), _SUM))]  # noqa: B905
    return tuple([row for row in rows if row[1] != NO_SUM])


def _charged(sums: Iterable[WindowAmounts], costs: Mapping[str, Costs]) -> tuple[WindowAmounts, ...]:
    """Return rows of sums with costs added."""
    charged: dict[str, Amounts] = {row[0]: row[1:] for row in sums}
    for window, cost in costs.items():
        charged[window] = add_amounts(charged[window], cost) if window in charged else cost
    return tuple([(window, *amounts) for window, amounts in charged.items()])


EARLIER = ""
"""In place of the gauge of a covered window: it does not overlap the day, and a sliding limit counts it."""


def covered_windows(windows: Mapping[str, Window], periods: Iterable[str], day: int) -> list[tuple[str, str | None]]:
    """Return the windows of a UTC day in the order in which a MAC covers them, with the gauges of the open ones."""
    gauges: dict[str, str | None] = {window.name: None for window in windows_on(periods, day)}
    gauges.update((window.name, gauge) for gauge, window in windows.items())
    return [(name, gauges.get(name, EARLIER)) for name in sorted(names_on(periods, day))]


class AccountMacs:
    """The accounts that one transaction has checked, with the values that their MACs cover in its windows.

    The objects are the truth of the transaction until `changes` returns what changed, to be written.
    """

    def __init__(self, transaction: Reading, maker: AccountMacMaker | None = None) -> None:
        # A weak reference avoids a cycle, so a transaction is freed as soon as it is done.
        self._transaction: Reading = proxy(transaction)
        self.accounts: dict[int, Account] = {}
        self.changed: set[int] = set()
        """The numbers of the accounts that get a new MAC."""
        self._names: dict[int, frozenset[str]] = {}
        self._gauges: list[tuple[str, str]] = []
        self.covered: list[tuple[str, str | None]] = []
        """The windows that a MAC of today covers, see `covered_windows`; empty until they are known."""
        self._batch: dict[int, tuple[bytes, Amounts]] = {}
        self._maker_now = maker

    def __contains__(self, account: int) -> bool:
        return account in self.accounts

    @property
    def _rows(self) -> Rows:
        return cast("Rows", self._transaction.rows)

    @property
    def _today(self) -> int:
        return self._transaction.moment.day

    def windows_on(self, day: int) -> frozenset[str]:
        """Return the windows of all kept periods that count on a UTC day: those that a MAC of the day covers."""
        if day not in self._names:
            self._names[day] = names_on(self._transaction.periods(), day)
        return self._names[day]

    def _open_windows(self) -> list[tuple[str, str]]:
        """Return the open windows, each with its gauge, in order."""
        if not self._gauges:
            self._gauges = sorted([(window.name, gauge) for gauge, window in self._transaction.windows.items()])
        return self._gauges

    def _covered_windows(self) -> list[tuple[str, str | None]]:
        windows = self._transaction.windows
        if not self.covered:
            self.covered = covered_windows(windows, self._transaction.periods(), self._today)
        return self.covered

    def forget_windows(self) -> None:
        """Drop the cached windows and accounts, because another period is kept from now on."""
        self._names, self._gauges, self.covered = {}, [], []
        self.accounts, self.changed = {}, set()

    # -- checking -------------------------------------------------------------------------------------------

    @property
    def _maker(self) -> AccountMacMaker:
        secret = self._transaction.secret
        if self._maker_now is None or self._maker_now.secret is not secret:
            self._maker_now = AccountMacMaker(secret, self._transaction.partition)
        return self._maker_now

    def load(self, users: list[bytes]) -> dict[bytes, Account | LedgerError]:
        """Read and check the accounts of users; those without one have no number. For a changed account, return the error."""
        transaction, accounts = self._transaction, self.accounts
        windows, maker = self.covered or self._covered_windows(), self._maker_now or self._maker
        today = (transaction._moment or transaction.moment).day
        found: dict[bytes, Account | LedgerError] = {}
        others: list[tuple[Account, AccountMacState]] = []
        recent: list[tuple[Account, bytes]] = []
        nothing = dict.fromkeys(transaction._windows or transaction.windows, ZERO)
        sliding = any(gauge == EARLIER for _, gauge in windows)
        if sliding:
            windows = [each for each in windows if each[1] != EARLIER]
        for row in transaction.rows.accounts(users, [name for name, _ in windows]):
            user, number, newest, day, row_mac, counted = row[:_STATE]
            if number in accounts:
                found[user] = accounts[number]
                continue
            account = found[user] = Account(number, nothing.copy(), user=user, newest=newest)
            spent, first = account.spent, _STATE
            names: list[str] = []
            amounts: list[int | None] = []
            for name, gauge in windows:
                if row[first] is not None:
                    costs = row[first + 1 : first + 5]
                    if gauge is None:
                        account.same_day[name] = costs
                    else:
                        spent[gauge] = costs_of(costs)
                    if costs != ZERO:
                        names.append(name)
                        amounts += costs
                first += 5
            if day != today or counted:
                others.append((account, AccountMacState._make(row[:_STATE])))
            elif sliding:
                recent.append((account, row_mac))
            elif maker.mac(today, names, amounts, {}, (number, newest or 0, user)) == row_mac:
                accounts[number] = account
            else:
                found[user] = self._refusal(number)
        if recent:
            earlier: dict[int, Sums] = {}
            self._add_earlier(earlier, [account.number or 0 for account, _ in recent], [today])
            for account, row_mac in recent:
                number = account.number or 0
                account.same_day.update(earlier.get(number, {}))
                if self._mac_of(account) == row_mac:
                    accounts[number] = account
                else:
                    found[account.user] = self._refusal(number)
        if others:
            found |= self._take_others(others)
        if len(found) < len(users):
            unknown = [user for user in users if user not in found]
            erased = set(transaction.rows.erased(unknown))
            for user in unknown:
                found[user] = Account(None, nothing.copy(), erased=user in erased, user=user)
        return found

    def _take_others(self, others: Sequence[tuple[Account, AccountMacState]]) -> dict[bytes, Account | LedgerError]:
        """Check accounts of another day or with counts: all together, or if one was changed, each by itself."""
        windows = self._open_windows()
        states = {state.account: state for _, state in others}
        sums: dict[int, Sums] = {
            state.account: {**{name: account.spent[gauge] for name, gauge in windows}, **account.same_day}
            for account, state in others
        }
        found: dict[bytes, Account | LedgerError] = {}
        try:
            self.take(states, sums)
        except LedgerError:
            for number, state in states.items():
                try:
                    self.take({number: state}, {number: sums[number]})
                except LedgerError as error:
                    found[state.user] = error
        for number, state in states.items():
            if state.user not in found:
                found[state.user] = self.accounts[number]
        return found

    def check(self, accounts: Iterable[int], *, though_later: bool = False) -> None:
        """Read and check accounts by their numbers. Raises `LedgerError`.

        With `though_later`, accounts with a MAC of a later day are accepted; their windows of today are about to be
        written.
        """
        unknown = [account for account in accounts if account not in self.accounts]
        today = self._overlapping(self._today)
        for first in range(0, len(unknown), _ACCOUNTS_TOGETHER):
            found, sums = self._read(unknown[first : first + _ACCOUNTS_TOGETHER], today)
            self.take(found, sums, though_later)

    def check_batch(self, batch: Batch) -> None:
        """Read and check the accounts of a batch that are known. Raises `LedgerError`."""
        today, maker, names, self._batch = self._today, self._maker, sorted(self.windows_on(self._today)), {}
        begun: dict[Amounts, blake2b] = {}
        others = []
        checked = self._batch
        for account, user, newest, row_mac, *flat in batch.stored_macs(today, names):
            if row_mac is None:
                others.append(account)
                continue
            amounts = tuple(flat)
            hasher = begun.get(amounts)
            if hasher is None:
                hasher = begun[amounts] = maker.begin(today, _rows(names, amounts), {})
            hasher = hasher.copy()
            hasher.update(_bound(account, newest or 0, user))
            if hasher.digest() != row_mac:
                raise self._refusal(account)
            checked[account] = user, amounts
        if self.accounts:
            self.drop(self._batch)
        self.check(others)

    def _read(
        self, accounts: Sequence[int], names: Iterable[str]
    ) -> tuple[dict[int, AccountMacState], dict[int, Sums]]:
        found: dict[int, AccountMacState] = {}
        sums: dict[int, Sums] = {account: {} for account in accounts}
        for row in self._transaction.rows.accounts(accounts, sorted(names), by_number=True):
            state = AccountMacState._make(row[:_STATE])
            found[state.account] = state
            sums[state.account] = {each[0]: costs_of(each[1:]) for each in sums_in(row) if each[0] is not None}
        return found, sums

    def _overlapping(self, day: int) -> frozenset[str]:
        """Return the windows of all kept periods that overlap a UTC day: those that a query of accounts joins."""
        return frozenset([window.name for window in windows_on(self._transaction.periods(), day)])

    def _add_earlier(self, sums: dict[int, Sums], accounts: Sequence[int], days: Iterable[int]) -> None:
        """Add to the sums of accounts those of the earlier days that sliding limits count on some UTC days."""
        for day in days:
            ranges = earlier_on(self._transaction.periods(), day)
            if ranges:
                names = self.windows_on(day)
                for row in self._transaction.rows.sums_between(accounts, ranges):
                    if row[1] in names:
                        sums.setdefault(row[0], {})[row[1]] = row[2:]

    def _read_counts(self, found: Mapping[int, AccountMacState], windows: Container[str]) -> dict[int, Counts]:
        """Return the counts, in some windows, of those accounts that have any."""
        rows = self._transaction.rows
        counted = [account for account, state in found.items() if state.counted]
        return {
            account: counts_of(rows.memoised_counts(account, account), rows.quotas(account, account), windows)
            for account in counted
        }

    def take(
        self, found: Mapping[int, AccountMacState], sums: Mapping[int, Sums], though_later: bool = False
    ) -> None:
        """Check accounts by values already read: their sums in the windows of today. Raises `LedgerError`."""
        today = self._today
        days: dict[int, dict[int, AccountMacState]] = {}
        for account, state in found.items():
            if state.day is None:
                raise self._refusal(account)
            days.setdefault(state.day, {})[account] = state
        for day, those in days.items():
            if day != today and not 0 <= day <= (_LAST_DAY if though_later else today):
                raise self._refusal(next(iter(those)))
            other = self._overlapping(day) - self._overlapping(today)
            before = self._read([*those], other)[1] if other else {}
            self._add_earlier(before, [*those], {day, today})
            counts = self._read_counts(those, self.windows_on(day) | self.windows_on(today))
            for account, state in those.items():
                every = {**sums[account], **before.get(account, {})}
                self._check(account, state, every, counts.get(account, {}), though_later)

    def _check(self, account: int, state: AccountMacState, sums: Sums, counts: Counts, though_later: bool) -> None:
        """Check sums and counts in the windows of today and of the day of the MAC."""
        user, _, newest, day, row_mac, _ = state
        assert day is not None
        names, today = self.windows_on(day), self.windows_on(self._today)
        late = False
        covered, counted = sums, counts
        if day != self._today:
            covered = {window: costs for window, costs in sums.items() if window in names}
            counted = {key: count for key, count in counts.items() if len(key) == _QUOTA or key[0] in names}
            later = any(costs != ZERO for window, costs in sums.items() if window not in names)
            late = later or any(count for key, count in counts.items() if key not in counted)
        if self._maker.row_mac(account, user, newest, day, covered, counted) != row_mac:
            raise self._refusal(account)
        sums = {window: costs for window, costs in sums.items() if window in today}
        counts = {key: count for key, count in counts.items() if len(key) == _QUOTA or key[0] in today}
        if late and not though_later and not self._was_dated_later(account, sums, counts):
            raise self._refusal(account)
        spent = {gauge: Costs._make(sums.get(name, ZERO)) for name, gauge in self._open_windows()}
        same_day = {name: sums[name] for name, gauge in self._covered_windows() if not gauge and name in sums}
        self.accounts[account] = Account(account, spent, user=user, newest=newest, counts=counts, same_day=same_day)

    def _was_dated_later(self, account: int, sums: Sums, counts: Counts) -> bool:
        """True if windows after the newest charge have amounts because the clock was repaired after charges."""
        transaction = self._transaction
        repairs = transaction.repairs()
        if not repairs:
            return False
        replay = Replay(transaction.periods(), promises(transaction), repairs)
        for entry, label in transaction.history(account):
            replay.add(entry, label)
        replayed: Counts = {
            (window, charge, label): count for (label, charge, window), count in replay.labels.items()
        }
        labels = {key: count for key, count in counts.items() if len(key) != _QUOTA}
        counted = labels.items() <= {**dict.fromkeys(labels, 0), **replayed}.items()
        return counted and all(replay.spent_in(window) == costs for window, costs in sums.items())

    def _refusal(self, account: int) -> LedgerError:
        why = f"the sums of account {account} were changed. Nothing was charged. Run: ldp-budget ledger verify"
        return LedgerError(self._transaction.ledger_name, why)

    # -- new MACs -------------------------------------------------------------------------------------------

    def open(self, number: int, account: Account) -> None:
        """Give a new user's account its number."""
        account.number = number
        self.accounts[number] = account

    def open_batch(self, first: int, users: Sequence[bytes]) -> None:
        """Start the values of a batch's new accounts, numbered from `first`."""
        self._batch.update((account, (user, ())) for account, user in enumerate(users, first))

    def charged(self, account: Account, entry: int) -> None:
        """Register the newest charge of a checked account, whose values the caller has changed."""
        account.newest = entry
        assert account.number is not None
        self.changed.add(account.number)

    def spent(self, number: int, window: str) -> Costs | None:
        """Return a sum of a checked account in an open window; None for any other."""
        account = self.accounts.get(number)
        return None if account is None or not self._is_open(window) else account.spent[gauge_of(window)]

    def _is_open(self, window: str) -> bool:
        opened = self._transaction.windows.get(gauge_of(window))
        return opened is not None and opened.name == window

    def set(self, number: int, window: str, costs: Costs) -> bool:
        """Replace a sum of a checked account; return False if the caller must write the row."""
        account = self.accounts.get(number)
        if account is None:
            return False
        self.changed.add(number)
        if not self._is_open(window):
            if window in self.windows_on(self._today):
                account.same_day[window] = costs
                account.before.clear()
            return False
        gauge = gauge_of(window)
        account.spent[gauge] = costs
        account.changed.add(gauge)
        return True

    def count_reports(self, account: int, window: str, charge: int, label: bytes, reports: int) -> None:
        """Replace a label count of an account that was checked."""
        if window in self.windows_on(self._today):
            self.accounts[account].counts[window, charge, label] = reports
        self.changed.add(account)

    def count_used(self, account: int, plan: str, promise: str, used: int) -> None:
        """Replace a used quota of an account that was checked."""
        self.accounts[account].counts[plan, promise] = used
        self.changed.add(account)

    def macs_after(self, accounts: Sequence[int], first: int, costs: Mapping[str, Costs]) -> list[bytes]:
        """Return the MACs of a checked batch after it is charged, in entries from number `first` on."""
        today, maker, names = self._today, self._maker, sorted(self.windows_on(self._today))
        begun: dict[Amounts, blake2b] = {}
        row_macs, checked = [], self.accounts
        for number, account in enumerate(accounts, first):
            if account in checked:
                row_macs.append(self._mac_after(account, number, costs))
                continue
            user, amounts = self._batch[account]
            hasher = begun.get(amounts)
            if hasher is None:
                hasher = begun[amounts] = maker.begin(today, _charged(_rows(names, amounts), costs), {})
            hasher = hasher.copy()
            hasher.update(_bound(account, number, user))
            row_macs.append(hasher.digest())
        self._batch = {}
        return row_macs

    def _mac_after(self, number: int, entry: int, costs: Mapping[str, Costs]) -> bytes:
        account = self.accounts[number]
        for window, cost in costs.items():
            gauge = gauge_of(window)
            account.spent[gauge] = account.spent[gauge].plus(cost)
        account.newest = entry
        return self._mac_of(account)

    def see(self, entry: Entry, number: int) -> None:
        """Register an appended entry as its account's newest charge, if it is a charge."""
        if entry.kind in CHARGES and entry.account in self.accounts:
            self.charged(self.accounts[entry.account], number)

    def changes(self) -> tuple[list[tuple[Any, ...]], list[AccountMac]]:
        """Return the sums and the MACs of the accounts that changed, to be written now."""
        sums: list[tuple[Any, ...]] = []
        row_macs: list[AccountMac] = []
        if not self.changed:
            return sums, row_macs
        windows, maker = self.covered or self._covered_windows(), self._maker_now or self._maker
        transaction = self._transaction
        day = (transaction._moment or transaction.moment).day
        for number in sorted(self.changed):
            account = self.accounts[number]
            changed, spent = account.changed, account.spent
            names: list[str] = []
            amounts: list[int | None] = []
            for name, gauge in windows:
                costs = spent[gauge] if gauge else account.same_day.get(name, ZERO)
                if gauge in changed:
                    sums.append((number, name, *costs))
                if costs != ZERO:
                    names.append(name)
                    amounts += costs
            account.changed = set()
            mac = maker.mac(day, names, amounts, account.counts, (number, account.newest or 0, account.user))
            row_macs.append(AccountMac(number, day, mac))
        self.changed = set()
        return sums, row_macs

    def _mac_of(self, account: Account) -> bytes:
        """Return the MAC of an account's current values."""
        names: list[str] = []
        amounts: list[int | None] = []
        for name, gauge in self._covered_windows():
            costs = account.spent[gauge] if gauge else account.same_day.get(name, ZERO)
            if costs != ZERO:
                names.append(name)
                amounts += costs
        bound = (account.number or 0, account.newest or 0, account.user)
        return self._maker.mac(self._today, names, amounts, account.counts, bound)

    def renew(self, old: Secret, new: Secret) -> None:
        """Make the MACs of all accounts with another secret, which also encrypts users and labels again.

        Raises `LedgerError` if a MAC is invalid under the old one.
        """
        maker = AccountMacMaker(new, self._transaction.partition)

        def again(stored: bytes) -> bytes:
            return new.encrypt_hash(old.decrypt_hash(stored))

        for first, last in parts(self._transaction.end.accounts, _ACCOUNTS_TOGETHER):
            accounts = range(first, last + 1)
            self._renew_stored(accounts, lambda account, day: -1 if day is None else day, maker, again)

    def drop(self, accounts: Iterable[int]) -> None:
        """Drop checked accounts, so that they are read again when needed."""
        for account in accounts:
            self.accounts.pop(account, None)
            self.changed.discard(account)

    def begun_on(self, day: int, sums: Mapping[str, Amounts], counts: Counts) -> blake2b:
        """Return the hasher of a MAC for a day, over those of the sums and counts that a MAC of that day covers.

        `finish_account_mac` makes the MAC of it.
        """
        names = self.windows_on(day)
        covered = tuple([(window, *costs) for window, costs in sums.items() if window in names])
        counted = {key: count for key, count in counts.items() if len(key) == _QUOTA or key[0] in names}
        return self._maker.begin(day, covered, counted)

    def renew_stored(self, accounts: Sequence[int], day_of: Callable[[int, int | None], int]) -> None:
        """Make the MACs of accounts from stored values.

        `day_of` returns the day of the new MAC, given the account and the day of its MAC.
        """
        self.drop(accounts)
        for first in range(0, len(accounts), _ACCOUNTS_TOGETHER):
            self._renew_stored(accounts[first : first + _ACCOUNTS_TOGETHER], day_of, self._maker)

    def _renew_stored(
        self,
        accounts: Sequence[int],
        day_of: Callable[[int, int | None], int],
        maker: AccountMacMaker,
        again: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Write MACs by `maker`. With `again`, each old MAC must be valid, and users and labels are converted."""
        days: dict[int, dict[int, AccountMacState]] = {}
        for account, state in self._read(accounts, ())[0].items():
            days.setdefault(day_of(account, state.day), {})[account] = state
        for day, found in days.items():
            names, rows = self.windows_on(day), []
            sums, counts = self._read([*found], self._overlapping(day))[1], self._read_counts(found, names)
            self._add_earlier(sums, [*found], [day])
            for account, (user, _, newest, _, row_mac, _) in found.items():
                counted = counts.get(account, {})
                if again is not None:
                    if self._maker.row_mac(account, user, newest, day, sums[account], counted) != row_mac:
                        why = f"the user or the sums of account {account} were changed, so the key was not rotated"
                        raise LedgerError(self._transaction.ledger_name, f"{why}. Run: ldp-budget ledger verify")
                    user = again(user)
                    counted = {_with_label(key, again): count for key, count in counted.items()}
                mac = maker.row_mac(account, user, newest, day, sums[account], counted)
                rows.append(AccountMac(account, day, mac))
            self._rows.replace(AccountMac, rows)


def read_accounts(reading: Reading, users: Sequence[bytes]) -> dict[bytes, Account]:
    """Return the accounts of users, checked; each also says whether the user was erased.

    Raises `LedgerError` for an account that was changed.
    """
    macs = AccountMacs(reading)
    accounts: dict[bytes, Account] = {}
    for first in range(0, len(users), USERS_TOGETHER):
        for user, account in macs.load([*dict.fromkeys(users[first : first + USERS_TOGETHER])]).items():
            if isinstance(account, LedgerError):
                raise account
            accounts[user] = account
    return accounts
