"""dp-accounting's events: never below what its own accountant says of an order, nor 1e-9 above where it is exact.

Its Rényi accountant is asked under the relation that replaces one record; the amounts of a report are those of the
order, and its largest order's limit is the ε of a report.
"""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from foreign_libraries import events, library
from ldp_budget import Accountant, InvalidParameter, Limit, NotSupported, compose, guarantee_of
from ldp_budget.guarantees import (
    Approximate,
    Copies,
    FinitePair,
    Gaussian,
    Laplace,
    Pure,
    Unbounded,
    ZeroConcentrated,
)
from ldp_budget.registry.third_party import charged_for

ev = events()
ORDERS = [2, 5, 16, 64]


def simple(draw: random.Random) -> Any:
    which = draw.randrange(3)
    if which == 0:
        return ev.GaussianDpEvent(10 ** draw.uniform(-1, 3))
    if which == 1:
        return ev.LaplaceDpEvent(10 ** draw.uniform(-1, 3))
    return ev.RandomizedResponseDpEvent(draw.uniform(0.001, 1), draw.randrange(2, 100))


def one_kind(draw: random.Random) -> Any:
    """One event, alone or several times, however nested."""
    event = simple(draw)
    for _ in range(draw.randrange(4)):
        event = draw.choice(
            [ev.SelfComposedDpEvent(event, draw.randrange(1, 5)), ev.ComposedDpEvent([event] * draw.randrange(1, 4))]
        )
    return event


def many_kinds(draw: random.Random) -> Any:
    return ev.ComposedDpEvent([one_kind(draw) for _ in range(draw.randrange(2, 5))])


def divergences(event: Any) -> list[float]:
    rdp = library("dp_accounting.rdp.rdp_privacy_accountant")
    relation = library("dp_accounting.privacy_accountant").NeighboringRelation.REPLACE_ONE
    accountant = rdp.RdpAccountant(ORDERS, relation)
    accountant.compose(event)
    return [float(each) for each in accountant._rdp]


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_equal_events_match_their_accountant_at_every_order(count: int) -> None:
    draw = random.Random(f"dp-accounting {count}")
    for _ in range(count):
        event = one_kind(draw)
        for order, theirs in zip(ORDERS, divergences(event), strict=True):
            ours = guarantee_of(event).divergence(Decimal(order))
            assert ours is not None
            # Theirs is a double, worked out by a sum that cancels where little is lost.
            assert float(ours) >= theirs * (1 - 1e-12) - 1e-13
            assert float(ours) <= theirs * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("count", [20, pytest.param(150, marks=pytest.mark.exhaustive)])
def test_different_events_are_never_below_their_accountant(count: int) -> None:
    draw = random.Random(f"different {count}")
    for _ in range(count):
        event = many_kinds(draw)
        guarantee = guarantee_of(event)
        for order, theirs in zip(ORDERS, divergences(event), strict=True):
            ours = guarantee.divergence(Decimal(order))
            assert ours is None or float(ours) >= theirs * (1 - 1e-12) - 1e-13


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_epsilon_of_one_event_matches_its_formula(count: int) -> None:
    draw = random.Random(f"epsilon {count}")
    for _ in range(count):
        scale = 10 ** draw.uniform(-3, 5)
        laplace = guarantee_of(ev.LaplaceDpEvent(scale))
        assert isinstance(laplace, Laplace)
        assert 1 / Fraction(scale) <= Fraction(laplace.bound) <= 1 / Fraction(scale) + Fraction(1 + 1 / scale) / 10**9
        assert laplace.epsilon >= 1 / scale
        noise, buckets = draw.uniform(0.001, 1), draw.randrange(2, 200)
        theirs = math.log(buckets / noise - buckets + 1)
        assert theirs - 1e-13 <= guarantee_of(ev.RandomizedResponseDpEvent(noise, buckets)).epsilon <= theirs + 1e-9
        spread, whole = draw.uniform(0.001, 3), draw.randrange(1, 5)
        discrete = guarantee_of(ev.DiscreteLaplaceDpEvent(spread, whole))
        assert Fraction(spread) * whole <= Fraction(discrete.bound) <= Fraction(spread) * whole + Fraction(1, 10**9)  # type: ignore[attr-defined]
        rho = 10 ** draw.uniform(-6, 1)
        concentrated = guarantee_of(ev.ZCDpEvent(rho))
        assert isinstance(concentrated, ZeroConcentrated)
        assert Fraction(rho) <= Fraction(concentrated.rho) <= Fraction(rho) * (1 + Fraction(1, 10**9))


def test_hundred_randomized_responses_are_composed_exactly() -> None:
    """The library's other accountant answers 1.0 for these, and the truth is 83.5."""
    coin = ev.RandomizedResponseDpEvent(2 / (1 + math.e), 2)
    found = guarantee_of(ev.SelfComposedDpEvent(coin, 100))
    assert isinstance(found, Copies)
    assert (found.count, found.of) == (100, guarantee_of(coin))
    assert 83.4 < compose([(found, 1)], delta="1e-6", rule="exact").epsilon < 83.6


def test_composed_events_match() -> None:
    normal, laplace, coin = ev.GaussianDpEvent(2.0), ev.LaplaceDpEvent(4.0), ev.RandomizedResponseDpEvent(0.5, 2)
    both = guarantee_of(ev.ComposedDpEvent([normal, ev.GaussianDpEvent(3.0)]))
    assert isinstance(both, Gaussian)
    assert math.isclose(float(both.mu) ** 2, 1 / 4 + 1 / 9)
    assert math.isclose(guarantee_of(ev.ComposedDpEvent([laplace, coin])).epsilon, 0.25 + math.log(3))
    mixed = guarantee_of(ev.ComposedDpEvent([normal, laplace]))
    assert isinstance(mixed, ZeroConcentrated)
    assert math.isclose(float(mixed.rho), 1 / 8 + 0.25 + math.exp(-0.25) - 1)
    assert guarantee_of(ev.ZCDpEvent(0.1, 0.2)).divergence(Decimal(2)) >= Decimal("0.4")  # type: ignore[operator]


def test_events_without_loss_or_without_privacy_match() -> None:
    for nothing in (ev.NoOpDpEvent(), ev.ComposedDpEvent([]), ev.SelfComposedDpEvent(ev.GaussianDpEvent(1.0), 0)):
        assert guarantee_of(nothing) == Pure(Decimal(0))
    assert guarantee_of(ev.RandomizedResponseDpEvent(0.0, 1)) == Pure(Decimal(0))
    for everything in (
        ev.NonPrivateDpEvent(),
        ev.GaussianDpEvent(0.0),
        ev.LaplaceDpEvent(0.0),
        ev.RandomizedResponseDpEvent(0.0, 4),
        ev.ComposedDpEvent([ev.LaplaceDpEvent(1.0), ev.NonPrivateDpEvent()]),
        ev.ZCDpEvent(math.inf),
    ):
        assert guarantee_of(everything) == Unbounded()
    assert not isinstance(guarantee_of(ev.LaplaceDpEvent(1.0)), Approximate | FinitePair)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (
            lambda: ev.PoissonSampledDpEvent(0.1, ev.GaussianDpEvent(1.0)),
            "PoissonSampledDpEvent: it is about a sample",
        ),
        (lambda: ev.SampledWithoutReplacementDpEvent(9, 3, ev.GaussianDpEvent(1.0)), "it is about a sample"),
        (lambda: ev.SampledWithReplacementDpEvent(9, 3, ev.GaussianDpEvent(1.0)), "it is about a sample"),
        (lambda: ev.SelfComposedDpEvent(ev.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]), 2), "adding one record"),
        (lambda: ev.SingleEpochTreeAggregationDpEvent(1.0, 3), "sums over the records of many users"),
        (lambda: ev.RepeatAndSelectDpEvent(ev.GaussianDpEvent(1.0), 1.0, 1.0), "the best of several runs"),
        (lambda: ev.UnsupportedDpEvent(), "its guarantee is not known"),
        (lambda: ev.GaussianDpEvent(math.nan), "noise_multiplier must be a number: got NaN"),
        (lambda: ev.LaplaceDpEvent(-1.0), "noise_multiplier must be a number >= 0: got -1.0"),
        (lambda: ev.LaplaceDpEvent("2"), "noise_multiplier must be a number: got a builtins.str"),
        (lambda: ev.RandomizedResponseDpEvent(1.5, 3), "must be a number from 0 to 1"),
        (lambda: ev.RandomizedResponseDpEvent(0.5, True), "num_buckets must be a whole number"),
        (lambda: ev.SelfComposedDpEvent(ev.GaussianDpEvent(1.0), -1), "the count of a SelfComposedDpEvent must be"),
        (lambda: ev.SelfComposedDpEvent(ev.GaussianDpEvent(1.0), 1.5), "the count of a SelfComposedDpEvent must be"),
        (lambda: ev.ComposedDpEvent("events"), "must be a list: got a str"),
        (lambda: ev.ComposedDpEvent([1]), "builtins.int is not an event"),
        (
            lambda: library("dp_accounting.rdp.rdp_privacy_accountant").RdpAccountant(),
            "is not an event of dp-accounting",
        ),
    ],
)
def test_unsupported_event_is_refused_by_name(event: Any, why: str) -> None:
    with pytest.raises(NotSupported, match=why):
        guarantee_of(event())


def test_imitator_is_unknown_and_a_subclass_is_refused() -> None:
    class GaussianDpEvent:
        __module__ = "dp_accounting.dp_event"
        noise_multiplier = 1e9

    with pytest.raises(
        InvalidParameter, match=r"thing must be a mechanism with its parameters, .* got an object of dp_acc"
    ):
        guarantee_of(GaussianDpEvent())
    with pytest.raises(NotSupported, match=r"GaussianDpEvent is not an event of dp-accounting"):
        guarantee_of(ev.ComposedDpEvent([GaussianDpEvent()]))

    class Mine(ev.GaussianDpEvent):  # type: ignore[misc, name-defined]
        pass

    with pytest.raises(
        NotSupported, match=r"Mine is a user-defined subclass of dp_accounting.dp_event.GaussianDpEvent"
    ):
        guarantee_of(Mine(1.0))


def test_guarantee_can_be_read_without_the_library() -> None:
    event = ev.SelfComposedDpEvent(ev.RandomizedResponseDpEvent(0.5, 4), 2)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=4)])
        assert accountant.quote("alice", event).binding == ()
        assert accountant.spend("alice", event, key="a").status == "spent"
        assert accountant.spend("alice", event, key="a").repeated
        assert accountant.spend("alice", event).status == "refused"
        [row] = accountant.history("alice")
        assert row["mechanism"] == "declared"
        assert row["declared"]["promise"]["kind"] == "copies"
        assert row["declared"]["source"].startswith("dp-accounting ")
        assert "RandomizedResponseDpEvent(noise_parameter=0.5, num_buckets=4) × 2" in row["declared"]["source"]
        assert accountant.verify().ok
    mechanism = charged_for(event)
    assert mechanism is not None
    assert type(mechanism)(**row["declared"]).fingerprint == row["fingerprint"] == mechanism.fingerprint
