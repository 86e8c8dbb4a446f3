"""Charges by callers of every kind, in every grouping, and the check that each entry names the API key of its own item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

from hypothesis import strategies as st

from contract.acts import check, coin, made
from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget.accounting import engine
from ldp_budget.accounting.batch import FEW, Spend
from ldp_budget.accounting.charge_request import ChargeRequest, request_template
from ldp_budget.accounting.principals import LOCAL, Principal
from ldp_budget.ledger.write_queue import Work, run_each
from ledger_inside import ledger_of

WRITERS: tuple[str | None, ...] = (None, "plain", "of-a", "of-b")
SHARES: dict[str, Any] = {"team-a": ["lifetime=4"], "team-b": ["lifetime=5"]}
CHARGES = [coin(epsilon) for epsilon in ("0.25", "0.5", "1")]


class Writers(NamedTuple):
    """A ledger with callers of every kind."""

    accountant: Accountant
    callers: dict[str | None, Principal]

    def acting(self, name: str | None) -> Accountant:
        return self.accountant if name is None else self.accountant.acting_for(self.callers[name])


def writers_on(store: Any) -> Writers:
    accountant = Accountant(store, clock=Clock())
    accountant.set_policy("default", ["lifetime=9"], shares=SHARES)
    callers: dict[str | None, Principal] = {None: LOCAL}
    for name, share in (("plain", None), ("of-a", "team-a"), ("of-b", "team-b")):
        callers[name] = made(accountant, name, share)
    return Writers(accountant, callers)


Groups = list[tuple[int, int, str | None]]
"""The lines of a batch in groups: the mechanism, the number of lines, and their note."""
GROUPS = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from([FEW, 1, FEW - 1, FEW + 3]), st.sampled_from([None, None, "a note"])
    ),
    min_size=1,
    max_size=4,
)
BATCHES = st.tuples(
    st.sampled_from(["batch", "batch", "batch", "each", "keyless", "many", "spend", "reserve", "together"]),
    st.sampled_from(WRITERS[::-1]),
    GROUPS,
    st.booleans(),
)


def lines_of(groups: Groups, mixed: bool, users: Iterator[int], keys: bool = False) -> list[Spend]:
    """Lines of new users: group after group, or one line of each in turn."""
    lists = [
        [
            Spend(f"user {number}", CHARGES[kind], note=note, key="k" if keys else None)
            for number in (next(users) for _ in range(size))
        ]
        for kind, size, note in groups
    ]
    if not mixed:
        return [line for each in lists for line in each]
    return [each[n] for n in range(max(map(len, lists))) for each in lists if n < len(each)]


def write(
    writers: Writers, verb: str, name: str | None, groups: Groups, mixed: bool, users: Iterator[int]
) -> dict[str, str | None]:
    """Charge new users by a verb; return the writer that each must have."""
    accountant, first = writers.acting(name), next(users)
    if verb == "together":
        return charge_together(writers, groups, users)
    lines = lines_of(groups, mixed, users, keys=verb == "each")
    if verb == "batch":
        assert {each.status for each in accountant.spend_batch(lines, key=f"batch {first}")} == {"spent"}
    elif verb in ("each", "keyless"):
        assert all(accountant.spend_each(lines))
    elif verb == "many":
        names = [line.user for line in lines]
        assert accountant.spend_many(names, CHARGES[0], key=f"many {first}").spent == len(names)
    elif verb == "spend":
        assert all(accountant.spend(line.user, line.mechanism, note=line.note) for line in lines)
    else:
        held = [accountant.reserve(line.user, line.mechanism, expires=60) for line in lines]
        assert all(accountant.commit(each.receipt or "") for each in held)
    return {line.user: name for line in lines}


def charge_together(writers: Writers, groups: Groups, users: Iterator[int]) -> dict[str, str | None]:
    """Charge the lines of all writers in one transaction, as a group commit does, with other work between them."""
    ledger = ledger_of(writers.accountant)
    found: dict[str, str | None] = {}
    requests = []
    for place, line in enumerate(lines_of(groups, True, users)):
        name = WRITERS[place % len(WRITERS)]
        found[line.user] = name
        template = request_template(line.mechanism, policy="default", reports=1, label=None, digest=None, note=None)
        partitions = len(ledger.partitions)
        requests.append(
            ChargeRequest(template, ledger.key, line.user, caller=writers.callers[name], partitions=partitions)
        )

    def charge(transactions: Any, items: Sequence[ChargeRequest]) -> list[Any]:
        outcomes = []
        for item in items:
            work = Work(lambda transaction: transaction.by, item.partition, item.api_key)
            assert run_each(transactions, [work]) == [item.api_key]
            outcomes += engine.charge(transactions, [item])
        return outcomes

    assert all(ledger.charge(charge, requests))
    return found


def check_writers(writers: Writers, expected: dict[str, str | None]) -> None:
    accountant = writers.accountant
    assert {user: {row["by"] for row in accountant.history(user)} for user in expected} == {
        user: {name} for user, name in expected.items()
    }
    check(accountant)


def write_all(writers: Writers, batches: list[Any]) -> None:
    """Charge by each of some verbs, and check all entries."""
    with writers.accountant:
        users, expected = count(), dict[str, str | None]()
        for verb, name, groups, mixed in batches:
            expected |= write(writers, verb, name, groups, mixed, users)
        check_writers(writers, expected)
