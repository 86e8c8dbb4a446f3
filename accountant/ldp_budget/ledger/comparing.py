"""Do two ledgers hold the same, the one a copy of the other? Everybody's sums in every window, users and counts."""

from __future__ import annotations

import json
from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from .entries import CLOCK, COPIED, MOVED, PERIOD, POLICY_SET, REKEYED, REOPENED
from .reading import parts
from .windows import LIFETIME, gauge_of, gauges_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .copying import Scratch
    from .ledger import Ledger

_ACCOUNTS_TOGETHER = 5_000
_EVERYWHERE = (POLICY_SET, PERIOD, CLOCK, MOVED, REOPENED, COPIED, REKEYED)
"""The kinds of entry that every partition may have by itself."""
_ENTRIES = "entries "


def differences(source: Ledger, target: Ledger, scratch: Scratch) -> Iterator[str]:
    """What the copy `target` holds otherwise than `source`; `scratch` says where accounts and entries went."""
    of_source, of_target = _counts(source), _counts(target)
    for name in sorted(of_source.keys() | of_target.keys()):
        if of_source[name] != of_target[name]:
            yield f"{name}: {of_source[name]} in the ledger and {of_target[name]} in the copy"
    exact = _read_sums(source, scratch)
    limited = _limited(source)
    for partition in target.partitions:
        for one, other in zip_longest(scratch.users(partition), _users(target, partition)):
            if one != other:
                yield f"users: partition {partition} of the copy has other accounts"
                break
        stored = (row for row in _sums(target, partition) if _counts_in(row[1], limited))
        copied = (row for row in scratch.sums(partition) if _counts_in(row[1], limited))
        yield from _compare(partition, copied, stored, exact)


def _compare(
    partition: int, copied: Iterator[tuple[Any, ...]], stored: Iterator[tuple[Any, ...]], exact: bool
) -> Iterator[str]:
    """Rows of sums in one order: what was in the source, and what is in a partition of the copy."""
    was, now = next(copied, None), next(stored, None)
    while was is not None or now is not None:
        if now is None or (was is not None and was[:2] < now[:2]):
            assert was is not None
            yield f"window_sums: account {was[0]}, window {was[1]}, is not in partition {partition} of the copy"
            was = next(copied, None)
        elif was is None or now[:2] < was[:2]:
            if exact:
                yield f"window_sums: account {now[0]}, window {now[1]}, is in partition {partition} of the copy alone"
            now = next(stored, None)
        else:
            if was != now and (exact or not _covers(now[2:], was[2:])):
                yield f"window_sums: account {now[0]}, window {now[1]}, differs in partition {partition} of the copy"
            was, now = next(copied, None), next(stored, None)


def _covers(now: tuple[int | None, ...], was: tuple[int | None, ...]) -> bool:
    """Whether no amount is less than it was; None is unbounded."""
    return all(a is None or (b is not None and a >= b) for a, b in zip(now, was, strict=True))


def size(ledger: Ledger) -> tuple[int, int]:
    """How many accounts there are, and how many entries beside those that every partition may have by itself."""
    counted = _counts(ledger)
    entries = sum(count for name, count in counted.items() if name.startswith(_ENTRIES))
    return counted["users"] + counted["cut_off"], entries


def _counts(ledger: Ledger) -> Counter[str]:
    """How many users, answers, notes and entries of each kind there are, over all partitions."""
    counted: Counter[str] = Counter()
    for partition in ledger.partitions:
        with ledger.reading(partition) as reading:
            counts = reading.rows.counts()
            counted["collections"] += reading.end.collections
        for name in ("users", "erased", "cut_off", "keys", "notes"):
            counted[name] += counts[name]
        for kind, count in counts["entries_by_kind"].items():
            if kind not in _EVERYWHERE:
                counted[_ENTRIES + kind] += count
    return counted


def _read_sums(source: Ledger, scratch: Scratch) -> bool:
    """Put the sums of the source beside its accounts; whether those of the copy must be the very same.

    A repair of the clock in one of several partitions counts, where they are copied into one, for what was charged in
    others before it too. So it may be more there, and never less.
    """
    exact = True
    for partition in source.partitions:
        with source.reading(partition) as reading:
            last = reading.end.accounts
            exact = exact and not (len(source.partitions) > 1 and reading.repairs())
        for first, until in parts(last, _ACCOUNTS_TOGETHER):
            with source.reading(partition) as reading:
                scratch.add_sums((partition, *row) for row in reading.rows.sums(first, until))
    return exact


def _limited(source: Ledger) -> set[str]:
    """The periods that a policy limits; windows of others are not gone by, and may be filled in part."""
    with source.reading() as reading:
        definitions = [json.loads(policy.definition) for policy in reading.rows.policies()]
    return {LIFETIME}.union(*map(gauges_in, definitions))


def _counts_in(window: int, limited: set[str]) -> bool:
    return gauge_of(window) in limited


def _sums(target: Ledger, partition: int) -> Iterator[tuple[Any, ...]]:
    for first, last in _all_parts(target, partition):
        with target.reading(partition) as reading:
            part = [tuple(row) for row in reading.rows.sums(first, last)]
        yield from part


def _users(target: Ledger, partition: int) -> Iterator[tuple[int, bytes | None]]:
    for first, last in _all_parts(target, partition):
        with target.reading(partition) as reading:
            part = [(user.account, user.user_hash) for user in reading.rows.users(first, last)]
        yield from part


def _all_parts(target: Ledger, partition: int) -> Iterator[tuple[int, int]]:
    with target.reading(partition) as reading:
        last = reading.end.accounts
    return parts(last, _ACCOUNTS_TOGETHER)
