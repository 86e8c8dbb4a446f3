"""MACs of accounts: they bind everything that a decision reads of an account to its newest charge.

The MAC of an account is a keyed hash. It covers the user, the number of the newest charge and the used quotas. It
also covers the sums and label counts in the windows of that charge's day. Without the key, an attacker cannot change
one of them, or give a user another account. Older values cannot be restored with their MAC either, because the
journal then has a newer charge. A decision checks the MAC before it uses the values, and each change makes a new MAC.
"""

from __future__ import annotations

from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Any
from weakref import proxy

from ..errors import LedgerError
from ..guarantees.fixed_point import ZERO, Costs, add_amounts
from .calendar import DAY_MICROS, code_at
from .models import CHARGES, AccountMac, AccountMacState, Entry
from .snapshot import Replay, parts, promises
from .storage import NO_SUM

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from hashlib import blake2b

    from ..guarantees.fixed_point import Amounts
    from .keyfile import Secret
    from .snapshot import Reading
    from .storage import Batch

    Sums = dict[int, Amounts]
    """Four amounts by window."""
    Counts = dict[tuple[int | str | bytes, ...], int]
    """Reports by window, priced mechanism and label; and the used part of a quota by plan and guarantee."""

_ACCOUNTS_TOGETHER = 5_000
_LAST_DAY = 2_900_000  # in the last year that a calendar supports
_MOST_BEGUN = 10_000
_SUM = len(ZERO)
_QUOTA = 2  # the length of a quota's key; the key of a label count is longer and begins with its window
# Two numbers and a hash of fixed size end the hashed text. So the part before them is hashed once for many accounts.
_bound = Struct("<qq16s").pack


class AccountMacMaker:
    """Makes the MACs of a partition's accounts under a secret; input shared by many accounts is hashed once."""

    def __init__(self, secret: Secret, partition: int) -> None:
        self.secret = secret
        self._partition = partition
        self._begun: dict[tuple[int, tuple[Amounts, ...]], blake2b] = {}

    def begin(self, day: int, sums: tuple[Amounts, ...], counts: Counts) -> blake2b:
        """Return the hasher over sums (rows of a window and its amounts) and over counts; a zero counts as absent."""
        if counts:
            return self._begin(day, sums, counts)
        begun = self._begun.get((day, sums))
        if begun is None:
            if len(self._begun) >= _MOST_BEGUN:
                self._begun = {}
            begun = self._begun[day, sums] = self._begin(day, sums, counts)
        return begun

    def _begin(self, day: int, sums: tuple[Amounts, ...], counts: Counts) -> blake2b:
        charged = sorted([tuple(row) for row in sums if tuple(row[1:]) != ZERO], key=itemgetter(0))
        counted = sorted([ascii((*key, count)) for key, count in counts.items() if count])
        return self.secret.sums(f"{self._partition} {day} {charged} {counted}".encode("ascii"))

    def row_mac(self, account: int, user: bytes, newest: int | None, day: int, sums: Sums, counts: Counts) -> bytes:
        """Return the MAC of an account for a day."""
        rows = tuple([(window, *costs) for window, costs in sums.items()])
        return finish_account_mac(self.begin(day, rows, counts), account, user, newest)


def finish_account_mac(begun: blake2b, account: int, user: bytes, newest: int | None) -> bytes:
    """Return the MAC of an account whose other values are already hashed."""
    hasher = begun.copy()
    hasher.update(_bound(account, newest or 0, user))
    return hasher.digest()


def counts_of(labels: Iterable[Sequence[Any]], quotas: Iterable[Sequence[Any]], codes: Container[int]) -> Counts:
    """Return the counts that a MAC covers, from rows of label counts in the windows `codes`, and of used quotas."""
    counts: Counts = {(window, charge, label): n for _, label, charge, window, n in labels if window in codes}
    counts.update({(plan, promise): used for _, plan, promise, used in quotas})
    return counts


def _rows(codes: Sequence[int], flat: Amounts) -> tuple[Amounts, ...]:
    """Return rows of sums, one for each window, from the concatenated amounts of all windows."""
    rows = [(window, *flat[first : first + _SUM]) for window, first in zip(codes, range(0, len(flat), _SUM))]  # noqa: B905
    return tuple([row for row in rows if row[1] != NO_SUM])


def _charged(sums: Iterable[Amounts], costs: Mapping[int, Costs]) -> tuple[Amounts, ...]:
    """Return rows of sums with costs added."""
    charged: dict[int | None, Amounts] = {row[0]: row[1:] for row in sums}
    for window, cost in costs.items():
        charged[window] = add_amounts(charged[window], cost) if window in charged else cost
    return tuple([(window, *amounts) for window, amounts in charged.items()])


class AccountMacs:
    """The accounts that one transaction has checked, and the values their MACs cover in the windows of its day."""

    def __init__(self, transaction: Reading) -> None:
        # A weak reference avoids a cycle, so a transaction is freed as soon as it is done.
        self._transaction: Reading = proxy(transaction)
        self._sums: dict[int, Sums] = {}
        self._counts: dict[int, Counts] = {}
        self._newest: dict[int, int | None] = {}
        self._users: dict[int, bytes] = {}
        self._changed: set[int] = set()
        self._codes: dict[int, frozenset[int]] = {}
        self._batch: dict[int, tuple[bytes, Amounts]] = {}
        self._maker_now: AccountMacMaker | None = None

    def __contains__(self, account: int) -> bool:
        return account in self._sums

    @property
    def _today(self) -> int:
        return self._transaction.moment.day

    def codes_on(self, day: int) -> frozenset[int]:
        """Return the windows of all kept periods that contain a day."""
        if day not in self._codes:
            kept = self._transaction.periods()
            self._codes[day] = frozenset([code_at(gauge, day * DAY_MICROS) for gauge in kept])
        return self._codes[day]

    def forget_windows(self) -> None:
        """Drop the cached windows, because another period is kept from now on."""
        self._codes = {}

    # -- checking -------------------------------------------------------------------------------------------

    @property
    def _maker(self) -> AccountMacMaker:
        secret = self._transaction.secret
        if self._maker_now is None or self._maker_now.secret is not secret:
            self._maker_now = AccountMacMaker(secret, self._transaction.partition)
        return self._maker_now

    def check(self, accounts: Iterable[int], *, though_later: bool = False) -> None:
        """Read and check accounts by their numbers. Raises `LedgerError`.

        With `though_later`, accounts with a MAC of a later day are accepted; their windows of today are about to be
        written.
        """
        unknown = [account for account in accounts if account not in self._sums]
        today = self.codes_on(self._today)
        for first in range(0, len(unknown), _ACCOUNTS_TOGETHER):
            found, sums = self._read(unknown[first : first + _ACCOUNTS_TOGETHER], today)
            self.take(found, sums, though_later)

    def check_batch(self, batch: Batch) -> None:
        """Read and check the accounts of a batch that are known. Raises `LedgerError`."""
        today, maker, codes, self._batch = self._today, self._maker, sorted(self.codes_on(self._today)), {}
        begun: dict[Amounts, blake2b] = {}
        others = []
        checked = self._batch
        for account, user, newest, row_mac, *flat in batch.stored_macs(today, codes):
            if row_mac is None:
                others.append(account)
                continue
            amounts = tuple(flat)
            hasher = begun.get(amounts)
            if hasher is None:
                hasher = begun[amounts] = maker.begin(today, _rows(codes, amounts), {})
            hasher = hasher.copy()
            hasher.update(_bound(account, newest or 0, user))
            if hasher.digest() != row_mac:
                raise self._refusal(account)
            checked[account] = user, amounts
        if self._sums:
            self.drop(self._batch)
        self.check(others)

    def _read(
        self, accounts: Sequence[int], codes: Iterable[int]
    ) -> tuple[dict[int, AccountMacState], dict[int, Sums]]:
        found: dict[int, AccountMacState] = {}
        sums: dict[int, Sums] = {account: {} for account in accounts}
        for account, window, *rest in self._transaction.rows.accounts_by_number(accounts, sorted(codes)):
            found[account] = AccountMacState(*rest[4:])
            if window is not None:
                sums[account][window] = Costs._make(rest[:4])
        return found, sums

    def _read_counts(self, found: Mapping[int, AccountMacState], codes: Container[int]) -> dict[int, Counts]:
        """Return the counts, in the windows `codes`, of those accounts that have any."""
        rows = self._transaction.rows
        counted = [account for account, state in found.items() if state.counted]
        return {
            account: counts_of(rows.memoised_counts(account, account), rows.quotas(account, account), codes)
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
            other = self.codes_on(day) - self.codes_on(today)
            before = self._read([*those], other)[1] if other else {}
            counts = self._read_counts(those, self.codes_on(day) | self.codes_on(today))
            for account, state in those.items():
                every = {**sums[account], **before.get(account, {})}
                self._check(account, state, every, counts.get(account, {}), though_later)

    def _check(self, account: int, state: AccountMacState, sums: Sums, counts: Counts, though_later: bool) -> None:
        """Check sums and counts in the windows of today and of the day of the MAC."""
        newest, day, row_mac, _, user = state
        assert day is not None
        codes, today = self.codes_on(day), self.codes_on(self._today)
        late = False
        covered, counted = sums, counts
        if day != self._today:
            covered = {window: costs for window, costs in sums.items() if window in codes}
            counted = {key: count for key, count in counts.items() if len(key) == _QUOTA or key[0] in codes}
            later = any(costs != ZERO for window, costs in sums.items() if window not in codes)
            late = later or any(count for key, count in counts.items() if key not in counted)
        if self._maker.row_mac(account, user, newest, day, covered, counted) != row_mac:
            raise self._refusal(account)
        sums = {window: costs for window, costs in sums.items() if window in today}
        counts = {key: count for key, count in counts.items() if len(key) == _QUOTA or key[0] in today}
        if late and not though_later and not self._was_dated_later(account, sums, counts):
            raise self._refusal(account)
        self.trust(account, state, sums, counts)

    def trust(self, account: int, state: AccountMacState, sums: Sums, counts: Counts) -> None:
        """Use these sums and counts of an account in the windows of today."""
        self._sums[account], self._counts[account] = sums, counts
        self._newest[account], self._users[account] = state.newest, state.user

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
        why = f"the sums of account {account} were changed; nothing was charged. Run: ldp-budget ledger verify"
        return LedgerError(self._transaction.ledger_name, why)

    # -- new MACs -------------------------------------------------------------------------------------------

    def open(self, account: int, user: bytes) -> None:
        """Start the values of a new account, which has nothing stored."""
        self.trust(account, AccountMacState(None, None, None, False, user), {}, {})

    def open_batch(self, first: int, users: Sequence[bytes]) -> None:
        """Start the values of a batch's new accounts, numbered from `first`."""
        self._batch.update((account, (user, ())) for account, user in enumerate(users, first))

    def set(self, account: int, window: int, costs: Costs) -> None:
        """Replace a sum of an account that was checked."""
        if window in self.codes_on(self._today):
            self._sums[account][window] = costs
        self._changed.add(account)

    def count_reports(self, account: int, window: int, charge: int, label: bytes, reports: int) -> None:
        """Replace a label count of an account that was checked."""
        if window in self.codes_on(self._today):
            self._counts[account][window, charge, label] = reports
        self._changed.add(account)

    def count_used(self, account: int, plan: str, promise: str, used: int) -> None:
        """Replace a used quota of an account that was checked."""
        self._counts[account][plan, promise] = used
        self._changed.add(account)

    def macs_after(self, accounts: Sequence[int], first: int, costs: Mapping[int, Costs]) -> list[bytes]:
        """Return the MACs of a checked batch after it is charged, in entries from number `first` on."""
        today, maker, codes = self._today, self._maker, sorted(self.codes_on(self._today))
        begun: dict[Amounts, blake2b] = {}
        row_macs, checked = [], self._sums
        for number, account in enumerate(accounts, first):
            if account in checked:
                row_macs.append(self._mac_after(account, number, costs))
                continue
            user, amounts = self._batch[account]
            hasher = begun.get(amounts)
            if hasher is None:
                hasher = begun[amounts] = maker.begin(today, _charged(_rows(codes, amounts), costs), {})
            hasher = hasher.copy()
            hasher.update(_bound(account, number, user))
            row_macs.append(hasher.digest())
        self._batch = {}
        return row_macs

    def _mac_after(self, account: int, number: int, costs: Mapping[int, Costs]) -> bytes:
        sums = self._sums[account]
        for window, cost in costs.items():
            sums[window] = add_amounts(sums[window], cost) if window in sums else cost
        self._newest[account] = number
        return self._maker.row_mac(account, self._users[account], number, self._today, sums, self._counts[account])

    def see(self, entry: Entry, number: int) -> None:
        """Register an appended entry as its account's newest charge, if it is a charge."""
        if entry.kind in CHARGES and entry.account in self._sums:
            self._newest[entry.account] = number
            self._changed.add(entry.account)

    def write(self) -> None:
        """Write the MACs of the accounts that changed."""
        if not self._changed:
            return
        day, maker, newest, users = self._today, self._maker, self._newest, self._users
        sums, counts = self._sums, self._counts
        self._transaction.rows.set_account_macs(
            [
                AccountMac(
                    account,
                    day,
                    maker.row_mac(account, users[account], newest[account], day, sums[account], counts[account]),
                )
                for account in sorted(self._changed)
            ]
        )
        self._changed = set()

    def renew(self, old: Secret, new: Secret) -> None:
        """Make the MACs of all accounts with another secret.

        Raises `LedgerError` if a MAC is invalid under the old one.
        """
        partition = self._transaction.partition
        before, after = AccountMacMaker(old, partition), AccountMacMaker(new, partition)
        for first, last in parts(self._transaction.end.accounts, _ACCOUNTS_TOGETHER):
            accounts = range(first, last + 1)
            self._renew_stored(accounts, lambda account, day: -1 if day is None else day, after, before)

    def drop(self, accounts: Iterable[int]) -> None:
        """Drop checked accounts, so that they are read again when needed."""
        for account in accounts:
            for known in (self._sums, self._counts, self._newest, self._users):
                known.pop(account, None)
            self._changed.discard(account)

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
        before: AccountMacMaker | None = None,
    ) -> None:
        """Write MACs by `maker`. With `before`, each old MAC must be valid under that maker, and the days stay."""
        days: dict[int, dict[int, AccountMacState]] = {}
        for account, state in self._read(accounts, ())[0].items():
            days.setdefault(day_of(account, state.day), {})[account] = state
        for day, found in days.items():
            codes, rows = self.codes_on(day), []
            sums, counts = self._read([*found], codes)[1], self._read_counts(found, codes)
            for account, (newest, _, row_mac, _, user) in found.items():
                covered = account, user, newest, day, sums[account], counts.get(account, {})
                if before is not None and before.row_mac(*covered) != row_mac:
                    why = f"the user or the sums of account {account} were changed, so its key is not exchanged"
                    raise LedgerError(self._transaction.ledger_name, f"{why}. Run: ldp-budget ledger verify")
                rows.append(AccountMac(account, day, maker.row_mac(*covered)))
            self._transaction.rows.set_account_macs(rows)
