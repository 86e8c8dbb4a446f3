"""The receipt's JSON by hand is the general one, byte for byte."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget.accounting.limits import Limit, Share, ShareLimit, in_zone
from ldp_budget.accounting.receipts import LimitState, Receipt
from ldp_budget.guarantees.fixed_point import LARGEST, Costs
from ldp_budget_service import receipt_text as texts
from ldp_budget_service.api.schemas import receipt_form
from ldp_budget_service.receipt_text import receipt_text

WHOLE = [Limit.parse(text) for text in ("lifetime=4", "day=0.1,1e-9", "week=3.3333333333333333333,1e-6,zcdp")]
WHOLE += [Limit.parse(text) for text in ("attribute:health:28d=2", "purpose:ads:lifetime=4,1e-6,zcdp")]
WHOLE += [Limit.parse(text) for text in ("month=1e6,1e-5,gdp", "day=2,1e-5+1e-7,renyi", "lifetime=1e-9,0.5,zcdp")]
LIMITS = [
    *WHOLE,
    *(in_zone(limit, "0a1b2c3d4e5f6071") for limit in WHOLE[:2]),
    *(ShareLimit(limit, "team-a", 3) for limit in WHOLE[:3]),
    *Share.of("b", WHOLE[3:4]).limits,
]
units = st.none() | st.one_of(
    *(st.integers(0, most) for most in (10, 10**9, 10**15, 10**18, 2**63, 10**24)),
    *(st.integers(10**15 - 3, 10**15 + 3), st.just(0)),
)
costs = st.builds(Costs, units, units, units, units)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda moment: moment.replace(tzinfo=UTC))
moments |= st.just(datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=-3))))
# Only a balance says what comes back when.
states = st.builds(LimitState, st.sampled_from(LIMITS), costs, st.none() | moments, st.just(()))
words = st.text(st.characters(exclude_categories=()), max_size=6)
receipts = st.builds(
    Receipt,
    status=st.sampled_from(["spent", "refused", "quoted", "reserved", "committed", "voided", "expired"]),
    user=st.none() | words,
    policy=words,
    cost_units=costs,
    reports=st.integers(1, 10**9),
    limits=st.lists(states, max_size=4).map(tuple),
    binding=st.lists(words, max_size=2).map(tuple),
    affordable_reports=st.integers(0, 10**9) | st.integers(LARGEST - 1, LARGEST + 1),
    receipt=st.none() | words,
    repeated=st.booleans(),
    why=st.just("") | words,
    checked=st.none() | st.sampled_from(["exact", "audited", "no"]),
)


def general(receipt: Receipt) -> str:
    return json.dumps(receipt_form(receipt), separators=(",", ":"), allow_nan=False)


@given(receipt=receipts)
def test_receipt_text_is_the_general_json(receipt: Receipt) -> None:
    assert receipt_text(receipt) == general(receipt)


@given(number=st.integers(0, 10**15 - 1), digits=st.sampled_from([9, 12, 18]))
def test_amount_below_15_digits_needs_no_rounding_up(number: int, digits: int) -> None:
    assert Decimal(texts._number(number, digits)) == Decimal(number).scaleb(-digits)


def test_receipt_text_of_many_limits_forgets_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_written", {})
    monkeypatch.setattr(texts, "_MOST_LIMITS", 3)
    for number in range(1, 9):
        limit = Limit("day", number)
        receipt = Receipt(
            "spent", "a", "p", Costs(1, 0, 0, 0), 1, (LimitState(limit, Costs(1, 0, 0, 0), None),), receipt="1-a"
        )
        assert receipt_text(receipt) == general(receipt)
        assert len(texts._written) <= 3
