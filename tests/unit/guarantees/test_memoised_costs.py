"""The charge of memoised reports, with and without labels, is never below the exact loss of any history."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp_budget
from ldp_budget.guarantees import Memoised
from ldp_budget.guarantees.fixed_point import LARGEST, ZERO, Costs
from ldp_budget.guarantees.memoised_costs import (
    UNLABELLED,
    LabelCount,
    charged_loss,
    cost_in_window,
    counts_in_window,
    most_reports,
    refund_in_window,
)
from memoised_oracle import CLIENTS, Client, all_lost, most_lost, promise

UNIT = 1e-9


def counts_of(history: Sequence[tuple[int, bool]], before: int) -> dict[bytes, LabelCount]:
    """The counts of a history of cells, each with a label or without, of which the first `before` are earlier."""
    named = [b"cell %d" % cell if labelled else UNLABELLED for cell, labelled in history]
    earlier, done = Counter(named[:before]), Counter(named[before:])
    return {name: LabelCount(earlier[name], done[name]) for name in {*named}}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_oracle_by_cells_agrees_with_whole_observations(client: Client) -> None:
    for history in itertools.product(client.cells, repeat=3):
        assert most_lost(client, [], history) == pytest.approx(all_lost(client, history), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
@given(data=st.data())
def test_charged_loss_covers_the_exact_loss_of_every_history(name: str, data: st.DataObject) -> None:
    client = CLIENTS[name]
    reports = st.tuples(st.sampled_from(client.cells), st.booleans())
    history = data.draw(st.lists(reports, min_size=1, max_size=6))
    before = data.draw(st.integers(0, len(history) - 1))
    cells = [cell for cell, _ in history]
    values = data.draw(st.sampled_from([None, len(client.cells), len(set(cells))]))
    charged = charged_loss(None, promise(client, values), counts_of(history, before)).epsilon
    assert charged is not None
    assert charged * UNIT >= most_lost(client, cells[:before], cells[before:]) - 1e-12


@pytest.mark.slow
def test_charged_loss_of_every_short_history_covers_the_exact_loss() -> None:
    client = CLIENTS["loloha"]
    curve = promise(client, 3)
    reports = list(itertools.product(client.cells, (False, True)))
    for history in itertools.product(reports, repeat=3):
        for before in range(3):
            cells = [cell for cell, _ in history]
            charged = charged_loss(None, curve, counts_of(history, before)).epsilon or 0
            assert charged * UNIT >= most_lost(client, cells[:before], cells[before:]) - 1e-12, (history, before)


def test_lifetime_charge_of_many_reports_without_a_label_is_the_exact_cap() -> None:
    """1,000 LOLOHA reports lose at most g·ε∞, and come as near to it as the kept cells show."""
    loloha = ldp_budget.mechanism("loloha").calibrate(epsilon_lifetime=4, epsilon_first="0.0615", domain_size=50, g=2)
    curve = loloha.guarantee
    assert isinstance(curve, Memoised)
    counts = {UNLABELLED: LabelCount(0, 1000)}
    assert charged_loss(None, curve, counts).epsilon == 8 * 10**9
    assert charged_loss(None, curve, {**counts, b"a": LabelCount(0, 500)}).epsilon == 8 * 10**9


def test_more_labels_than_values_end_the_cap() -> None:
    """They show that the user has more cells than was promised, so each report is charged what it can add."""
    curve = Memoised(("1",), "2", 2)
    counts = {b"a": LabelCount(0, 2), b"b": LabelCount(0, 2), UNLABELLED: LabelCount(0, 9)}
    assert charged_loss(None, curve, counts).epsilon == 4 * 10**9
    assert charged_loss(None, curve, {**counts, b"c": LabelCount(0, 1)}).epsilon == (2 + 2 + 1 + 9) * 10**9


LABELS = (b"a", b"b", b"c", UNLABELLED)
CURVES = st.builds(
    lambda curve, above, values: Memoised(
        tuple(f"{each}" for each in sorted(curve)), f"{max(curve) + above}", values
    ),
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.integers(0, 3),
    st.sampled_from([None, 1, 2, 3, 5]),
)
COUNTS = st.dictionaries(
    st.sampled_from(LABELS), st.builds(LabelCount, st.integers(0, 5), st.integers(0, 5)), max_size=4
)


@pytest.mark.slow
@given(CURVES, COUNTS, st.sampled_from(LABELS), st.integers(1, 4), st.sampled_from([None, "zcdp", "renyi:2"]))
def test_more_reports_or_earlier_ones_never_lower_the_charged_loss(
    curve: Memoised, counts: dict[bytes, LabelCount], label: bytes, reports: int, measure: str | None
) -> None:
    earlier, done = counts.get(label, LabelCount(0, 0))
    now = charged_loss(measure, curve, counts)
    for count in (LabelCount(earlier, done + reports), LabelCount(earlier + reports, done)):
        then = charged_loss(measure, curve, {**counts, label: count})
        assert all(a is None or (b is not None and b <= a) for a, b in zip(then, now, strict=True))
    cost = cost_in_window(measure, curve, counts, label, reports)
    assert now.plus(cost) == charged_loss(measure, curve, {**counts, label: LabelCount(earlier, done + reports)})


@pytest.mark.slow
@given(CURVES, st.lists(st.tuples(st.sampled_from(LABELS), st.integers(1, 3), st.booleans()), max_size=8))
def test_lifetime_sum_of_any_order_with_voids_is_the_charged_loss_of_what_is_left(
    curve: Memoised, steps: list[tuple[bytes, int, bool]]
) -> None:
    reported: dict[bytes, int] = {}
    total, open_ = ZERO, []
    for label, reports, voids in steps:
        if voids and open_:
            label, reports = open_.pop()
            reported[label] -= reports
            refund = refund_in_window(None, curve, reported, reported, label, reports, broken=False, over=False)
            total = total.minus(refund)
        else:
            counts = counts_in_window(reported, reported, label, broken=False)
            total = total.plus(cost_in_window(None, curve, counts, label, reports))
            reported[label] = reported.get(label, 0) + reports
            open_.insert(0, (label, reports))
        left = counts_in_window(reported, reported, UNLABELLED, broken=True)
        assert total == charged_loss(None, curve, left)


@pytest.mark.slow
@given(CURVES, COUNTS, st.sampled_from(LABELS), st.integers(0, 30))
def test_most_reports_is_the_last_number_that_fits(
    curve: Memoised, counts: dict[bytes, LabelCount], label: bytes, room: int
) -> None:
    most = most_reports(None, curve, counts, label, ((0, room * 10**9),))

    def cost(reports: int) -> int:
        return cost_in_window(None, curve, counts, label, reports).epsilon or 0

    assert most == 0 or cost(min(most, 10**6)) <= room * 10**9
    assert most == LARGEST or cost(most + 1) > room * 10**9


def test_amounts_of_other_rules_are_those_of_at_most_all_values() -> None:
    curve = Memoised(("1",), "2", 3)
    one = charged_loss(None, curve, {UNLABELLED: LabelCount(0, 1)})
    many = charged_loss(None, curve, {UNLABELLED: LabelCount(0, 50)})
    assert (many.rho, many.mu_squared) == (one.times(3).rho, one.times(3).mu_squared)
    later = charged_loss("zcdp", curve, {UNLABELLED: LabelCount(4, 1)})
    assert later == Costs(0, 0, Memoised(("4",), "4").costs().rho, 0)
