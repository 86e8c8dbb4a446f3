"""Usage statistics of a ledger: the counts agree with its journal, balances and receipts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from contract.places import InMemory, InToys
from fixed_clock import Clock
from ldp_budget import Accountant, Collection, Limit, mechanism
from ldp_budget.accounting.usage_stats import Overview, level
from ldp_budget_service.api_keys import ApiKeys
from postgres_places import new_ledger

RR = mechanism("randomized-response")
KEPT = mechanism("d-bit-flip")(epsilon=1, buckets=8, bits=2, memoize=True)


SLOW = pytest.mark.exhaustive


@pytest.fixture(
    params=["sqlite", "three partitions", pytest.param("toys", marks=SLOW), pytest.param("postgresql", marks=SLOW)]
)
def ledger(request: pytest.FixtureRequest, clock: Clock) -> Iterator[Accountant]:
    if request.param == "postgresql":
        with Accountant(new_ledger(partitions=3), clock=clock) as made:
            yield made
        return
    place: Any = {"sqlite": InMemory(), "toys": InToys(), "three partitions": InToys(3)}[request.param]
    with place.open(clock) as made:
        yield made


# -- an oracle: the same from the journal, from balances, and from what was answered --------------------------------


def days_in_journal(accountant: Accountant) -> dict[str, Counter[str]]:
    days: dict[str, Counter[str]] = {}
    users: dict[str, set[tuple[int, int]]] = {}
    for row in accountant.journal():
        counts = days.setdefault(row["at"][:10], Counter())
        if row["kind"] in ("spent", "reserved"):
            counts.update(charges=1, reports=row["reports"])
            users.setdefault(row["at"][:10], set()).add((row.get("partition", 0), row["account"]))
        elif row["kind"] == "voided":
            counts.update(voided=row["reports"])
    for day, them in users.items():
        days[day]["users"] = len(them)
    return days


def levels_in_balances(accountant: Accountant, policy: str) -> dict[tuple[str, str], Counter[int]]:
    found: dict[tuple[str, str], Counter[int]] = {}
    for balance in accountant.balances(policy=policy):
        for state in balance.limits:
            used = level(state.limit, state.spent_units)
            found.setdefault((state.limit.period, state.limit.rule), Counter())[used] += 1
    return found


def check(accountant: Accountant, overview: Overview, refused: Counter[tuple[str, str, str]]) -> None:
    """Everything it says, against the oracle."""
    expected = days_in_journal(accountant)
    shown = overview.days(400)
    for row in shown:
        counts = expected.get(row["day"], Counter())
        assert {name: row[name] for name in ("users", "charges", "reports", "voided")} == {
            name: counts[name] for name in ("users", "charges", "reports", "voided")
        }
    assert {day for day, counts in expected.items() if counts["charges"]} <= {row["day"] for row in shown}
    assert {(row["day"], row["policy"], row["limit"]): row["refused"] for row in overview.refusals(400)} == refused
    assert sum(row["refused"] for row in shown) == refused.total() == overview.totals()["refused"]
    for policy in accountant.policies():
        told = {
            (row["period"], row["rule"]): Counter({used: count for used, count in enumerate(row["used"]) if count})
            for row in overview.limits()
            if row["policy"] == policy.name
        }
        balances = levels_in_balances(accountant, policy.name)
        assert told == {
            (limit.period, limit.rule): balances.get((limit.period, limit.rule), Counter()) for limit in policy.limits
        }
    counts = accountant.stats()
    assert (overview.totals()["users"], overview.totals()["erased"]) == (counts["users"], counts["erased"])


@pytest.mark.slow
@pytest.mark.some(2)
def test_overview_agrees_with_journal_balances_and_receipts(ledger: Accountant, clock: Clock) -> None:
    draws = random.Random(7)
    ledger.set_policy("default", [Limit("lifetime", epsilon=6), Limit("day", epsilon=1), Limit("week", epsilon=2)])
    ledger.set_policy("strict", ["lifetime=3,1e-6,zcdp"])
    overview, refused, open_receipts = ledger.ledger.overview(), Counter[tuple[str, str, str]](), list[str]()
    for step in range(160):
        user, day = f"user {draws.randrange(25)}", clock.now.date().isoformat()
        what = draws.random()
        charge = KEPT if what < 0.2 else RR(epsilon=draws.choice(["0.1", "0.4", "0.7"]))
        label = f"value {draws.randrange(2)}" if charge is KEPT else None
        policy = draws.choice(["default", "default", "strict"])
        if what < 0.7:
            receipt = ledger.spend(user, charge, key=f"{step}", label=label, policy=policy)
            erased = ledger.is_erased(user)
            if receipt.status == "refused" and not erased:
                refused[day, policy, " and ".join(receipt.binding)] += 1
        elif what < 0.8:
            receipt = ledger.reserve(user, charge, label=label, policy=policy)
            open_receipts += [receipt.receipt] if receipt.receipt else []
        elif what < 0.84 and open_receipts:
            ledger.void(open_receipts.pop())
            open_receipts.clear()
        elif what < 0.88:
            ledger.spend_many([f"user {number}" for number in range(12)], charge, policy="default")
        elif what < 0.9:
            if not ledger.is_erased(user) and ledger.history(user) and not refused:  # which would go with the user
                ledger.erase(user)
        else:
            clock.advance(hours=draws.choice([1, 9, 30]))
            open_receipts.clear()
        if step == 100:
            ledger.set_policy("default", [Limit("lifetime", epsilon=7), Limit("day", epsilon=1), "month=4"])
        if step % 16 == 0 or step > 156:
            check(ledger, overview, refused)
    assert refused.total() > 5
    check(ledger, ledger.ledger.overview(), refused)


# -- each figure by hand -------------------------------------------------------------------------------------------


def test_refusals_with_a_key_are_counted_once_and_without_one_never(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=2", "day=1"])
    for key in ("a", "a", "b", None):
        assert accountant.spend("alice", RR(epsilon=3), key=key).status == "refused"
    accountant.spend("bob", RR(epsilon="1.5"), key="c")
    overview = accountant.ledger.overview()
    assert overview.refusals() == [
        {"day": "2026-11-21", "policy": "default", "limit": "day", "refused": 1},
        {"day": "2026-11-21", "policy": "default", "limit": "lifetime and day", "refused": 2},
    ]
    assert overview.recent(1) == {"charges": 0, "refused": 3}
    assert overview.summary(1) == {
        **{"totals": overview.totals(), "recent": {"hours": 1, "charges": 0, "refused": 3}},
        **{"ledger": overview.head()},
    }


def test_refusals_without_a_limit_are_counted_as_other(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=9"], relation="any")
    assert accountant.spend("alice", KEPT, key="a").why
    assert [row["limit"] for row in accountant.ledger.overview().refusals()] == ["other"]


def test_overview_contains_no_user(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=4"])
    accountant.add_collection(Collection("coins", RR(epsilon=1)))
    accountant.spend("alice", accountant.collection("coins"), key="monday", note="a note")
    overview = accountant.ledger.overview()
    told = repr([overview.totals(), overview.days(), overview.refusals(), overview.charged(), overview.limits()])
    assert not [word for word in ("alice", "monday", "a note") if word in told]
    assert overview.charged() == [
        {
            "mechanism": "randomized-response",
            "declared": '{"epsilon":"1"}',
            "collection": "coins",
            "tags": [],
            "charges": 1,
            "reports": 1,
            "last": "2026-11-21T12:00:00Z",
        }
    ]


def test_overview_writes_nothing(ledger: Accountant) -> None:
    ledger.set_policy("default", ["lifetime=4"])
    ledger.spend("alice", RR(epsilon=1))
    position, overview = ledger.position(), ledger.ledger.overview()
    partitions = overview.head()["partitions"]
    assert overview.head()["head"] == (ledger.stats()["head"] if partitions == 1 else None)
    assert ledger.position() == position
    head = ledger.checkpoint() if partitions > 1 else ledger.stats()["head"]
    assert overview.head() == {
        **{"head": head, "head_at": "2026-11-21T12:00:00Z", "last_entry_at": "2026-11-21T12:00:00Z"},
        **{"entries": partitions + 1, "partitions": partitions},
    }


# -- the versions of policies ---------------------------------------------------------------------------------------


def test_versions_state_their_author_and_change(accountant: Accountant, clock: Clock) -> None:
    key, _ = ApiKeys(accountant).create("ana", ["policy"])
    for number, limits in enumerate((["lifetime=4", "day=1"], ["lifetime=4", "day=2"], ["lifetime=3", "day=2"])):
        clock.advance(hours=1)
        (accountant.acting_for(key.caller) if number == 1 else accountant).set_policy("default", limits)
    rows = accountant.ledger.overview().policies()
    assert [(row["version"], row["at"], row["by"], row["change"], row["limits"]) for row in rows] == [
        (3, "2026-11-21T15:00:00Z", None, "lowered", ["lifetime=3", "day=2"]),
        (2, "2026-11-21T14:00:00Z", "ana", "raised", ["lifetime=4", "day=2"]),
        (1, "2026-11-21T13:00:00Z", None, "first", ["lifetime=4", "day=1"]),
    ]


def test_totals_count_charges_and_take_back_the_reports_of_voids(accountant: Accountant, coin: Any) -> None:
    accountant.set_policy("default", ["lifetime=9"])
    accountant.spend("alice", coin(1), reports=2)
    accountant.void(accountant.reserve("bob", coin(1)).receipt or "")
    totals = accountant.ledger.overview().totals()
    assert (totals["users"], totals["charges"], totals["reports"]) == (2, 2, 2)
