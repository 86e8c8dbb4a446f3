"""Scoped limits, such as `attribute:health:month=1`: they count the charges with a tag, and those without tags."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ldp_budget
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, KeyConflict, Limit
from ldp_budget.accounting.policies import Policy
from ldp_budget.errors import LedgerError

UNIT = 10**9
TENTH, QUARTER = (ldp_budget.mechanism("oue").calibrate(epsilon=each, domain_size=4) for each in ("0.1", "0.25"))
HEALTH, INCOME, ADS = "attribute:health", "attribute:income", "purpose:ads"
START = datetime(2024, 2, 27, 20, tzinfo=UTC)


def opened(*limits: str, zone: str | None = None, path: str = ":memory:") -> tuple[Accountant, Clock]:
    clock = Clock(START)
    accountant = Accountant(path, clock=clock)
    accountant.set_policy("default", limits, unbounded=True, zone=zone)
    return accountant, clock


def spent(accountant: Accountant, user: str = "alice") -> dict[str, float | None]:
    """The ε that each limit counts now, by the label of the limit."""
    return {each.limit.label: each.spent.epsilon for each in accountant.balance(user).limits}


# -- what counts --------------------------------------------------------------------------------------------------


def test_charge_must_fit_every_scope_or_nothing_is_charged() -> None:
    accountant, _ = opened("lifetime=4", f"{HEALTH}:month=1", f"{ADS}:lifetime=0.3")
    assert accountant.spend("alice", QUARTER, tags=[ADS])
    refused = accountant.spend("alice", QUARTER, tags=[HEALTH, ADS])
    assert (refused.status, refused.binding) == ("refused", (f"{ADS}:lifetime",))
    assert accountant.spend("alice", QUARTER).binding == (f"{ADS}:lifetime",), "nothing says that it is not for ads"
    assert spent(accountant) == {"lifetime": 0.25, f"{HEALTH}:month": 0, f"{ADS}:lifetime": 0.25}
    assert accountant.spend("alice", QUARTER, tags=[HEALTH])


def test_receipt_has_only_the_limits_that_count_the_charge() -> None:
    accountant, _ = opened("lifetime=4", f"{HEALTH}:month=1", f"{ADS}:lifetime=0.5")
    first = accountant.spend("alice", TENTH, tags=[HEALTH], key="k")
    rows = [(row["period"], row.get("scope")) for row in first.to_json()["limits"]]
    assert rows == [("lifetime", None), ("month", HEALTH)]
    assert accountant.spend("alice", TENTH, tags=[HEALTH], key="k") == first._replace(repeated=True)
    assert accountant.quote("alice", TENTH, tags=[ADS], reports=6).binding == (f"{ADS}:lifetime",)


def test_key_is_bound_to_the_tags() -> None:
    accountant, _ = opened("lifetime=4")
    accountant.spend("alice", TENTH, tags=[HEALTH, ADS], key="k")
    assert accountant.spend("alice", TENTH, tags={ADS, HEALTH}, key="k").repeated, "in any order"
    for other in ([HEALTH], []):
        with pytest.raises(KeyConflict):
            accountant.spend("alice", TENTH, tags=other, key="k")


@pytest.mark.parametrize("rule", ["1,1e-6,zcdp", "1,1e-6,gdp", "4,1e-6,renyi:16", "1,1e-6"])
def test_every_rule_that_adds_up_counts_by_scope(rule: str) -> None:
    gaussian = ldp_budget.mechanism("gaussian").calibrate(epsilon="0.4", delta="1e-7", lower=0, upper=1)
    accountant, _ = opened("lifetime=1000,1e-3,zcdp", f"{HEALTH}:lifetime={rule}", f"{ADS}:7d={rule}")
    while accountant.spend("alice", gaussian, tags=[HEALTH]):
        pass
    assert accountant.spend("alice", gaussian, tags=[ADS])
    assert accountant.spend("alice", gaussian).binding[0] == f"{HEALTH}:lifetime"
    assert accountant.verify().ok


def test_share_of_a_scoped_limit_counts_its_callers_charges_with_the_tag() -> None:
    accountant, _ = opened("lifetime=4")
    accountant.set_policy(
        "default", ["lifetime=4", f"{HEALTH}:lifetime=1"], shares={"team": [f"{HEALTH}:lifetime=0.3"]}
    )
    [part] = accountant.policy().shares[0].limits
    assert (part.label, Limit.parse(str(part).partition(":")[2])) == (
        f"{HEALTH}:lifetime (team)",
        Limit("lifetime", "0.3", scope=HEALTH),
    )


def test_plain_lifetime_limit_is_still_needed_beside_scopes() -> None:
    with pytest.raises(InvalidParameter, match="given for the lifetime as well"):
        Policy("default", (Limit("lifetime", 1, scope=HEALTH),))


def test_repeated_limit_of_a_scope_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="once for each period and rule: got attribute:health:day basic"):
        Policy("default", (Limit("lifetime", 4), *[Limit("day", each, scope=HEALTH) for each in (1, 2)]))


def test_limit_with_a_scope_reads_back_from_its_text() -> None:
    limit = Limit("month", 1, "1e-6", "zcdp", scope=HEALTH)
    assert Limit.parse(str(limit)) == limit == Limit.from_json(limit.to_json())
    assert str(limit) == f"{HEALTH}:month=1,0.000001,zcdp"


@pytest.mark.parametrize("tag", ["health", "attribute:", ":health", "attribute:my health", "a:b:c", "", "ä:b", 7])
def test_tag_of_another_form_is_refused(tag: object) -> None:
    accountant, _ = opened("lifetime=4")
    with pytest.raises(InvalidParameter, match="KIND:NAME"):
        accountant.spend("alice", TENTH, tags=[tag])  # type: ignore[list-item]


def test_text_in_place_of_a_list_of_tags_is_refused() -> None:
    accountant, _ = opened("lifetime=4")
    with pytest.raises(InvalidParameter, match="a list of tags"):
        accountant.spend("alice", TENTH, tags=HEALTH)


# -- memoised values ----------------------------------------------------------------------------------------------


def test_tags_of_memoised_reports_are_refused_and_they_count_under_every_scope() -> None:
    """Split by tags, reports of one value would each be charged as the first ones, and may cost more together."""
    rappor = ldp_budget.mechanism("rappor").calibrate(epsilon=1, epsilon_lifetime=2, bits=16, hashes=2, cohorts=4)
    accountant, clock = opened("lifetime=20", f"{HEALTH}:lifetime=20", f"{HEALTH}:7d=20")
    with pytest.raises(InvalidParameter, match="memoize"):
        accountant.spend("alice", rappor, label="value", tags=[HEALTH])
    for _ in range(3):
        assert accountant.spend("alice", rappor, label="value")
        clock.advance(days=4)
    found = spent(accountant)
    assert found["lifetime"] == found[f"{HEALTH}:lifetime"]
    assert accountant.verify().ok


# -- what is found ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ("UPDATE priced_mechanisms SET collection = replace(collection, 'health', 'income')", None),
        ("UPDATE priced_mechanisms SET collection = '' WHERE priced_mechanism = 1", None),
        (f"UPDATE window_sums SET epsilon = 1 WHERE window_name = 'lifetime scope:{HEALTH}'", "were changed"),
        (f"DELETE FROM window_sums WHERE window_name = 'lifetime scope:{HEALTH}'", "were changed"),
        (f"UPDATE window_sums SET epsilon = 1 WHERE window_name = '7d scope:{ADS} 2024-02-27'", "were changed"),
        (f"DELETE FROM window_sums WHERE window_name = '7d scope:{ADS} 2024-02-27'", "were changed"),
        ("UPDATE journal SET priced_mechanism = 1 WHERE priced_mechanism = 2", None),
    ],
)
def test_changed_tag_or_scope_sum_is_found(tmp_path: Path, change: str, refusal: str | None) -> None:
    path = f"{tmp_path}/budget.db"
    accountant, clock = opened("lifetime=4", f"{HEALTH}:lifetime=1", f"{ADS}:7d=1", path=path)
    accountant.spend("alice", TENTH, tags=[HEALTH])
    accountant.spend("alice", TENTH, tags=[ADS])
    accountant.close()
    clock.advance(days=1)
    with sqlite3.connect(path) as database:
        assert database.execute(change).rowcount
    database.close()
    with Accountant(path, clock=clock) as accountant:
        assert not accountant.verify().ok
        if refusal is not None:
            with pytest.raises(LedgerError, match=refusal):
                accountant.spend("alice", TENTH, tags=[HEALTH])


def test_changed_tag_is_refused_when_it_would_decide_a_void_or_a_new_limit(tmp_path: Path) -> None:
    path = f"{tmp_path}/budget.db"
    accountant, clock = opened("lifetime=4", f"{INCOME}:lifetime=1", path=path)
    held = accountant.reserve("alice", TENTH, tags=[HEALTH]).receipt or ""
    accountant.spend("alice", TENTH, tags=[INCOME])
    accountant.close()
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE priced_mechanisms SET collection = ' {INCOME} ' WHERE priced_mechanism = 1")
    database.close()
    with Accountant(path, clock=clock) as accountant:
        with pytest.raises(LedgerError, match="priced mechanism 1 was changed"):
            accountant.void(held)
        with pytest.raises(LedgerError, match="priced mechanism 1 was changed"):
            accountant.set_policy("default", ["lifetime=4", f"{HEALTH}:lifetime=1"])


def test_history_and_journal_name_the_tags() -> None:
    accountant, _ = opened("lifetime=4")
    accountant.spend("alice", TENTH, tags=[ADS, HEALTH])
    assert [row["tags"] for row in accountant.history("alice")] == [[HEALTH, ADS]]
    assert [(row["collection"], row["tags"]) for row in accountant.journal()] == [(None, []), (None, [HEALTH, ADS])]


# -- against a plain model ----------------------------------------------------------------------------------------

TAGS = ([], [HEALTH], [ADS], [HEALTH, ADS], [INCOME], [INCOME, ADS])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["alice", "bob"]),
        st.sampled_from(["0.1", "0.25"]),
        st.sampled_from(TAGS),
        st.sampled_from([0, 0, 1, 5, 24, 71, 24 * 7, 24 * 40]),
        st.sampled_from(["spend", "spend", "spend", "many", "void", "erase", "limit"]),
    ),
    min_size=1,
    max_size=25,
)
LIMITS = [
    ("", "day", "0.4"),
    ("", "7d", "0.9"),
    (HEALTH, "3d", "0.45"),
    (ADS, "month", "0.6"),
    (INCOME, "lifetime", "0.5"),
]
LATER = [("", "28d", "1.1"), (HEALTH, "lifetime", "0.9"), (ADS, "2d", "0.3")]


def texts(limits: list[tuple[str, str, str]]) -> list[str]:
    return [f"{scope}:{period}={epsilon}".removeprefix(":") for scope, period, epsilon in limits]


def counts_on(period: str, day: date, today: date) -> bool:
    if period == "lifetime":
        return True
    if period == "month":
        return (day.year, day.month) == (today.year, today.month)
    days = 1 if period == "day" else int(period.removesuffix("d"))
    return today - timedelta(days=days) < day <= today


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(zone=st.sampled_from([None, "Asia/Seoul", "America/New_York", "Pacific/Apia"]), steps=STEPS)
def test_histories_are_decided_as_by_a_plain_model(
    zone: str | None, steps: list[tuple[str, str, list[str], int, str]]
) -> None:
    """The model keeps a list of charges with their local days and tags, and adds those that count."""
    limits = LIMITS
    accountant, clock = opened(*texts(limits), zone=zone)
    charged: dict[str, list[tuple[date, int, list[str]]]] = {"alice": [], "bob": []}
    erased, local = set[str](), ZoneInfo(zone or "UTC")

    def total(user: str, scope: str, period: str) -> int:
        return sum(
            cost
            for day, cost, tags in charged[user]
            if counts_on(period, day, today) and (not scope or not tags or scope in tags)
        )

    for user, epsilon, tags, hours, act in steps:
        clock.advance(hours=hours)
        today = clock.now.astimezone(local).date()
        if act == "erase":
            accountant.erase(user, unknown=True)
            erased.add(user)
        elif act == "limit" and limits is LIMITS:
            limits = [*LIMITS, *LATER]
            accountant.set_policy("default", texts(limits), unbounded=True, zone=zone)
        mechanism, cost = (TENTH, UNIT // 10) if epsilon == "0.1" else (QUARTER, UNIT // 4)
        fits = user not in erased and all(
            total(user, scope, period) + cost <= int(float(most) * UNIT + 0.5)
            for scope, period, most in limits
            if not scope or not tags or scope in tags
        )
        if act == "many":
            got = accountant.spend_many([user], mechanism, tags=tags).spent == 1
        elif act == "void":
            held = accountant.reserve(user, mechanism, tags=tags)
            got = bool(held)
            if held.receipt and cost == UNIT // 10:
                accountant.void(held.receipt)
        else:
            got = bool(accountant.spend(user, mechanism, tags=tags))
        assert got == fits
        if got and not (act == "void" and cost == UNIT // 10):
            charged[user].append((today, cost, tags))
        if user not in erased:
            states = {
                (each.limit.scope, each.limit.period): each.spent_units.epsilon
                for each in accountant.balance(user).limits
            }
            assert states == {(scope, period): total(user, scope, period) for scope, period, _ in limits}
    assert accountant.verify().ok
    accountant.close()
