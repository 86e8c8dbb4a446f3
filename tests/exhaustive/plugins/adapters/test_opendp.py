"""OpenDP's measurements: never below their own map at the range of the domain, and at most 1e-9 above it."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest

import ldp_budget
from foreign_libraries import library, opendp
from ldp_budget import NotSupported, guarantee_of
from ldp_budget.guarantees import Approximate, Guarantee, Pure, Unbounded, ZeroConcentrated

dp = opendp()


def bounded(lower: float, upper: float) -> Any:
    return dp.atom_domain(bounds=(lower, upper), nan=False)


def some_range(draw: random.Random) -> tuple[float, float]:
    lower = draw.choice([0.0, draw.uniform(-100, 100), -(10 ** draw.uniform(-6, 6))])
    return lower, lower + 10 ** draw.uniform(-6, 6)


def laplace(draw: random.Random) -> tuple[Any, Any]:
    lower, upper = some_range(draw)
    made = dp.m.make_laplace(bounded(lower, upper), dp.absolute_distance(T=float), scale=10 ** draw.uniform(-3, 6))
    return made, Fraction(upper) - Fraction(lower)


def gaussian(draw: random.Random) -> tuple[Any, Any]:
    lower, upper = some_range(draw)
    made = dp.m.make_gaussian(bounded(lower, upper), dp.absolute_distance(T=float), scale=10 ** draw.uniform(-2, 6))
    return made, Fraction(upper) - Fraction(lower)


def whole(draw: random.Random) -> tuple[Any, Any]:
    lower = draw.randrange(-1000, 1000)
    upper = lower + draw.randrange(0, 1000)
    domain = dp.atom_domain(bounds=(lower, upper), T=int)
    make = draw.choice([dp.m.make_laplace, dp.m.make_geometric, dp.m.make_gaussian])
    return make(domain, dp.absolute_distance(T=int), scale=10 ** draw.uniform(-1, 4)), upper - lower


def of_two(draw: random.Random) -> tuple[Any, Any]:
    return dp.m.make_randomized_response_bool(draw.uniform(0.5, 1)), 1


def of_many(draw: random.Random) -> tuple[Any, Any]:
    answers = [f"answer {number}" for number in range(draw.randrange(2, 20))]
    return dp.m.make_randomized_response(answers, draw.uniform(1 / len(answers), 1)), 1


def approximate(draw: random.Random) -> tuple[Any, Any]:
    lower, upper = some_range(draw)
    scale = (upper - lower) * 10 ** draw.uniform(-0.5, 3)  # less noise than that overflows in OpenDP
    made = dp.m.make_gaussian(bounded(lower, upper), dp.absolute_distance(T=float), scale=scale)
    width = Fraction(upper) - Fraction(lower)
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(made), 10 ** draw.uniform(-12, -1)), width


def twice(draw: random.Random) -> tuple[Any, Any]:
    made, width = laplace(draw)
    return dp.c.make_composition([made] * draw.randrange(1, 4)), width


KINDS = [laplace, gaussian, whole, of_two, of_many, approximate, twice]


@pytest.mark.parametrize("count", [35, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_guarantee_is_the_map_and_no_less(count: int) -> None:
    draw = random.Random(f"opendp {count}")
    for number in range(count):
        made, width = KINDS[number % len(KINDS)](draw)
        furthest = float(width) if isinstance(width, Fraction) else width
        if isinstance(width, Fraction) and Fraction(furthest) < width:
            furthest = math.nextafter(furthest, math.inf)
        stated = made.map(furthest)
        for ours, theirs in zip(
            amounts(guarantee_of(made)), stated if isinstance(stated, tuple) else [stated], strict=False
        ):
            assert_just_above(ours, theirs)


def amounts(guarantee: Guarantee) -> tuple[Fraction, ...]:
    if isinstance(guarantee, Pure):
        return Fraction(guarantee.bound), Fraction(0)
    if isinstance(guarantee, Approximate):
        return Fraction(guarantee.bound), Fraction(guarantee.slack)
    if isinstance(guarantee, ZeroConcentrated):
        return (Fraction(guarantee.rho),)
    assert isinstance(guarantee, Unbounded)
    return ()


def assert_just_above(ours: Fraction, theirs: float) -> None:
    assert ours > Fraction(theirs) or ours == theirs == 0
    assert ours <= Fraction(theirs) + Fraction(max(1.0, theirs)) / 10**9


def test_guarantee_of_an_infinite_map_is_unbounded() -> None:
    assert guarantee_of(dp.m.make_randomized_response_bool(1.0)) == Unbounded()
    narrow = dp.m.make_laplace(bounded(0.0, 1e9), dp.absolute_distance(T=float), scale=1e-3)
    assert guarantee_of(narrow) == Unbounded()


def test_guarantee_of_a_vector_uses_its_diagonal() -> None:
    numbers = dp.vector_domain(bounded(0.0, 10.0), size=3)
    added = dp.m.make_laplace(numbers, dp.l1_distance(T=float), scale=5.0)
    assert math.isclose(guarantee_of(added).epsilon, 6)
    normal = dp.m.make_gaussian(numbers, dp.l2_distance(T=float), scale=5.0)
    found = guarantee_of(normal)
    assert isinstance(found, ZeroConcentrated)
    assert 6 < found.rho < 6 + 1e-9


def test_guarantee_of_an_odd_width_rounds_up_in_the_distance_type() -> None:
    domain = dp.atom_domain(bounds=(0.1, 0.7), T="f32", nan=False)
    made = dp.m.make_laplace(domain, dp.absolute_distance(T="f32"), scale=2.0)
    lower, upper = domain.bounds
    assert guarantee_of(made).epsilon >= (upper - lower) / 2


COUNT = dp.t.then_count()
REFUSED = {
    "data sets": (
        lambda: (dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()) >> COUNT >> dp.m.then_laplace(1.0),
        "counts the records in which two data sets differ",
    ),
    "no bounds": (
        lambda: dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0),
        "has no bounds, so two values of one user may be any distance apart",
    ),
    "too wide": (
        lambda: dp.m.make_laplace(
            dp.atom_domain(bounds=(-(2**31), 2**31 - 1), T="i32"), dp.absolute_distance(T="i32"), scale=1.0
        ),
        "its map does not take d_in = 4294967295",
    ),
    "no size": (
        lambda: dp.m.make_laplace(dp.vector_domain(bounded(0.0, 1.0)), dp.l1_distance(T=float), scale=1.0),
        "must have a known size and a bounded domain",
    ),
    "a curve": (
        lambda: dp.c.make_zCDP_to_approxDP(gaussian(random.Random(1))[0]),
        "SmoothedMaxDivergence is a curve",
    ),
    "a map of somebody's own": (
        lambda: dp.m.make_user_measurement(
            bounded(0.0, 1.0), dp.absolute_distance(T=float), dp.max_divergence(), lambda x: x, lambda d: 0.0
        ),
        "make_user_measurement: its map is a user-defined function",
    ),
    "and composed": (
        lambda: dp.c.make_composition([REFUSED["a map of somebody's own"][0]()]),  # type: ignore[operator]
        "make_user_measurement: its map is a user-defined function",
    ),
    "orders": (
        lambda: dp.m.make_user_measurement(
            bounded(0.0, 1.0),
            dp.absolute_distance(T=float),
            dp.renyi_divergence(),
            lambda x: x,
            lambda d: lambda order: order,
        ),
        "its map is a user-defined function",
    ),
    "by a constructor of theirs that is not public": (
        lambda: library("opendp._internal")._make_measurement(
            bounded(0.0, 1.0), dp.absolute_distance(T=float), dp.max_divergence(), lambda x: x, lambda d: 0.0
        ),
        "_make_measurement: its map is a user-defined function",
    ),
    "what is asked later": (
        lambda: dp.c.make_adaptive_composition(
            bounded(0.0, 1.0), dp.absolute_distance(T=float), dp.max_divergence(), d_in=1.0, d_mids=[0.5]
        ),
        "make_adaptive_composition: its queries are not known yet",
    ),
    "a filter": (
        lambda: dp.c.make_privacy_filter(
            dp.c.make_fully_adaptive_composition(
                bounded(0.0, 1.0), dp.absolute_distance(T=float), dp.max_divergence()
            ),
            d_in=1.0,
            d_out=2.0,
        ),
        "make_privacy_filter: its queries are not known yet",
    ),
    "a domain": (lambda: bounded(0.0, 1.0), "opendp.mod.AtomDomain is not a measurement"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_measurement_not_about_one_user_is_refused(name: str) -> None:
    make, why = REFUSED[name]
    with pytest.raises(NotSupported, match=why.replace("(", r"\(")):
        guarantee_of(make())  # type: ignore[operator]


def test_measurement_without_its_constructor_is_refused() -> None:
    made = dp.m.make_randomized_response_bool(0.75)
    del made.__opendp_dict__
    with pytest.raises(NotSupported, match="does not state how it was made"):
        guarantee_of(made)


def test_guarantee_ignores_overwritten_attributes() -> None:
    made = dp.m.make_randomized_response_bool(0.75)
    honest = guarantee_of(made)
    made.map = lambda d_in: 0.0
    assert guarantee_of(made) == honest


def test_subclass_is_refused_and_an_imitator_unknown() -> None:
    class Mine(dp.Measurement):  # type: ignore[misc, name-defined]
        _type_ = dp.Measurement._type_

        def __del__(self) -> None:
            """There is nothing of the library's to free."""

        def map(self, d_in: object) -> float:
            return 0.0

    with pytest.raises(NotSupported, match=r"subclass of opendp.mod.Measurement"):
        guarantee_of(Mine())

    class Measurement:
        __module__ = "opendp.mod"
        input_domain, input_metric, output_measure = "AtomDomain(T=bool)", "DiscreteDistance()", "MaxDivergence"

        def map(self, d_in: object) -> float:
            return 0.0

    with pytest.raises(ldp_budget.InvalidParameter, match=r"got an object of opendp\.mod\."):
        guarantee_of(Measurement())
