"""diffprivlib's mechanisms: what is charged is never below what their noise loses, nor below what they state.

What their noise loses is worked out here from the scale that it has, by mpmath, and shares nothing with the adapter.
Where they state it truly, what is charged is at most 1e-9 above.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from foreign_libraries import diffprivlib
from ldp_budget import Accountant, InvalidParameter, Limit, NotSupported, guarantee_of
from ldp_budget.guarantees import Gaussian, Guarantee, Laplace, Unbounded

dpl = diffprivlib()

MPF = mpmath.mpf


def some(draw: random.Random, low: float, high: float) -> float:
    return float(10 ** draw.uniform(low, high))


def point(guarantee: Guarantee) -> tuple[Fraction, Fraction]:
    loss = guarantee.loss()
    assert loss is not None
    return Fraction(loss[0]), Fraction(loss[1])


def assert_stated(guarantee: Guarantee, epsilon: float, delta: float = 0.0) -> None:
    """It is what the mechanism states, rounded up."""
    ours, slack = point(guarantee)
    assert Fraction(epsilon) <= ours <= Fraction(epsilon) + Fraction(max(1.0, epsilon)) / 10**9
    assert Fraction(delta) <= slack <= Fraction(delta) * (1 + Fraction(1, 10**9))


# -- noise ----------------------------------------------------------------------------------------------------------


def of_laplace(draw: random.Random) -> None:
    epsilon, sensitivity = some(draw, -3, 2), some(draw, -6, 6)
    kind = draw.choice([dpl.Laplace, dpl.LaplaceTruncated, dpl.LaplaceFolded])
    bounds = {} if kind is dpl.Laplace else {"lower": 0, "upper": sensitivity * draw.choice([0.5, 1, 3])}
    made = kind(epsilon=epsilon, sensitivity=sensitivity, **bounds)
    apart = max(sensitivity, bounds.get("upper", 0))
    found = guarantee_of(made)
    assert isinstance(found, Laplace)
    scale = Fraction(sensitivity / epsilon)
    assert Fraction(apart) / scale <= Fraction(found.bound) <= Fraction(apart) / scale * (1 + Fraction(1, 10**12))
    if apart == sensitivity:
        assert_stated(found, epsilon)


def of_laplace_with_delta(draw: random.Random) -> None:
    epsilon, delta = some(draw, -3, 1), some(draw, -9, -0.5)
    made = dpl.Laplace(epsilon=epsilon, delta=delta, sensitivity=some(draw, -3, 3))
    assert_stated(guarantee_of(made), epsilon, delta)
    ratio = made.sensitivity / (made.sensitivity / (epsilon - math.log(1 - delta)))
    assert 1 - mpmath.exp((MPF(epsilon) - MPF(ratio)) / 2) <= MPF(delta)


def of_bounded_domain(draw: random.Random) -> None:
    upper = some(draw, -2, 2)
    epsilon = some(draw, -2, 1)
    made = dpl.LaplaceBoundedDomain(
        epsilon=epsilon, sensitivity=upper * draw.choice([0.3, 1.0]), lower=0.0, upper=upper
    )
    ours = float(point(guarantee_of(made))[0])
    made.effective_epsilon()
    scale = made._scale

    def within(value: float) -> float:
        return 1 - (math.exp(-value / scale) + math.exp((value - upper) / scale)) / 2

    lost = 0.0
    for _ in range(50):
        one, other, report = (draw.choice([0, 1, draw.random()]) * upper for _ in range(3))
        odds = (abs(report - other) - abs(report - one)) / scale + math.log(within(other) / within(one))
        lost = max(lost, odds)
    assert lost <= ours * (1 + 1e-12)
    assert ours >= epsilon
    assert math.isclose(ours, max(epsilon, upper / scale), rel_tol=1e-12)
    if made.sensitivity == upper:
        assert_stated(guarantee_of(made), epsilon)


def of_bounded_noise(draw: random.Random) -> None:
    epsilon, delta = some(draw, -2, 1), some(draw, -9, -0.5)
    made = dpl.LaplaceBoundedNoise(epsilon=epsilon, delta=delta, sensitivity=some(draw, -3, 3))
    found = guarantee_of(made)
    assert_stated(found, epsilon, delta)
    made.randomise(0.0)
    assert guarantee_of(made) == found
    with mpmath.workdps(40):
        ends = MPF(float(made._noise_bound)) / MPF(float(made._scale))
        reach = MPF(made.sensitivity) / MPF(float(made._scale))
        lost = (mpmath.exp(reach) - 1) / 2 / (mpmath.exp(ends) - 1)
        assert lost <= MPF(point(found)[1].numerator) / point(found)[1].denominator


def delta_of_gaussian(epsilon: Any, mu: Any) -> Any:
    with mpmath.workdps(400):
        upper = mpmath.erfc((epsilon / mu - mu / 2) / mpmath.sqrt(2)) / 2
        lower = mpmath.erfc((epsilon / mu + mu / 2) / mpmath.sqrt(2)) / 2
        return upper - mpmath.exp(epsilon) * lower


def of_gaussian(draw: random.Random) -> None:
    """The classic formula meets what it states; the analytic one is often too small, and then more is charged."""
    classic = draw.random() < 0.5
    if classic:
        made = dpl.Gaussian(epsilon=some(draw, -3, 0), delta=some(draw, -12, -0.5), sensitivity=some(draw, -3, 3))
    else:
        tiny = draw.choice([-9, -100])
        made = dpl.GaussianAnalytic(
            epsilon=some(draw, -1, 1.3), delta=some(draw, tiny, -0.5), sensitivity=some(draw, -3, 3)
        )
    found = guarantee_of(made)
    assert isinstance(found, Gaussian)
    mu = Fraction(made.sensitivity) / Fraction(float(made._scale))
    assert mu <= Fraction(found.mu) <= mu * (1 + Fraction(1, 10**12))
    ours, slack = (MPF(each.numerator) / each.denominator for each in point(found))
    assert Fraction(made.epsilon) <= point(found)[0]
    exact = MPF(mu.numerator) / mu.denominator
    assert delta_of_gaussian(ours, exact) <= slack
    if delta_of_gaussian(MPF(made.epsilon) * (1 - MPF(10) ** -11), exact) <= MPF(made.delta):
        assert_stated(found, made.epsilon, made.delta)
    else:
        # No more than what the noise loses at that δ.
        assert delta_of_gaussian(ours * (1 - MPF(10) ** -9), exact) > MPF(made.delta)


def of_discrete_gaussian(draw: random.Random) -> None:
    epsilon, delta, sensitivity = some(draw, -1, 0.7), some(draw, -7, -1), draw.randrange(1, 4)
    made = dpl.GaussianDiscrete(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    ours, slack = point(guarantee_of(made))
    sigma = MPF(float(made._scale))
    weight = {
        k: mpmath.exp(-(MPF(k) ** 2) / 2 / sigma**2) for k in range(-int(12 * sigma) - 20, int(12 * sigma) + 20)
    }
    worth = mpmath.exp(MPF(ours.numerator) / ours.denominator)
    lost = sum(max(MPF(0), weight[k] - worth * weight.get(k + sensitivity, MPF(0))) for k in weight)
    assert lost / sum(weight.values()) <= MPF(slack.numerator) / slack.denominator
    assert Fraction(epsilon) <= ours <= Fraction(epsilon) * (1 + Fraction(1, 10**4)) + Fraction(1, 10**9)


def of_geometric(draw: random.Random) -> None:
    epsilon, sensitivity = some(draw, -3, 1), draw.randrange(1, 20)
    kind = draw.choice([dpl.Geometric, dpl.GeometricTruncated, dpl.GeometricFolded])
    bounds = {} if kind is dpl.Geometric else {"lower": -3, "upper": draw.randrange(-3, 30)}
    made = kind(epsilon=epsilon, sensitivity=sensitivity, **bounds)
    apart = max(sensitivity, bounds.get("upper", 0) - bounds.get("lower", 0))
    ours = point(guarantee_of(made))[0]
    true = Fraction(epsilon) * apart / sensitivity
    assert ours >= Fraction(epsilon)
    assert true * (1 - Fraction(1, 10**15)) <= ours <= true * (1 + Fraction(1, 10**12)) + Fraction(1, 10**9)


def of_staircase(draw: random.Random) -> None:
    epsilon = some(draw, -3, 2)
    assert_stated(guarantee_of(dpl.Staircase(epsilon=epsilon, sensitivity=some(draw, -3, 3))), epsilon)


def of_uniform(draw: random.Random) -> None:
    delta = some(draw, -9, -0.4)
    assert_stated(guarantee_of(dpl.Uniform(delta=delta, sensitivity=some(draw, -3, 3))), 0.0, delta)


def of_snapping(draw: random.Random) -> None:
    epsilon, sensitivity, steps = some(draw, -3, 1), some(draw, -2, 2), draw.choice([0.5, 1, 2.5])
    made = dpl.Snapping(epsilon=epsilon, sensitivity=sensitivity, lower=0.0, upper=sensitivity * steps)
    apart = Fraction(sensitivity * steps) / Fraction(sensitivity)
    ours = point(guarantee_of(made))[0] / max(1, math.ceil(apart))
    assert Fraction(epsilon) <= ours <= Fraction(epsilon) * (1 + Fraction(1, 10**9))


# -- choices --------------------------------------------------------------------------------------------------------


def of_binary(draw: random.Random) -> None:
    epsilon = some(draw, -3, 1.1)
    found = guarantee_of(dpl.Binary(epsilon=epsilon, value0="no", value1="yes"))
    ours = point(found)[0]
    grown = float(np.exp(epsilon))
    kept = math.floor(grown / (grown + 1) * 2**53)
    drawn = sum(step / 2**53 * (grown + 1) <= grown for step in range(kept - 4, kept + 5)) + kept - 4
    with mpmath.workdps(40):
        assert mpmath.log(MPF(drawn) / (2**53 - drawn)) <= MPF(ours.numerator) / ours.denominator
    assert Fraction(epsilon) <= ours <= Fraction(epsilon) * (1 + Fraction(1, 10**9)) + Fraction(1, 10**9)


def of_options(draw: random.Random) -> None:
    epsilon = some(draw, -3, 1)
    kind, monotonic = draw.choice([dpl.Exponential, dpl.PermuteAndFlip]), draw.random() < 0.5
    utility = [draw.random() for _ in range(draw.randrange(1, 8))]
    made = kind(epsilon=epsilon, sensitivity=some(draw, -2, 2), utility=utility, monotonic=monotonic)
    assert_stated(guarantee_of(made), epsilon * (2 if monotonic else 1))


def of_categories(draw: random.Random) -> None:
    epsilon = some(draw, -3, 1)
    names = [f"answer {number}" for number in range(draw.randrange(2, 8))]
    if draw.random() < 0.3:
        made = dpl.ExponentialHierarchical(epsilon=epsilon, hierarchy=[names[:1], names[1:]])
    else:
        # As good as balanced, so that the library counts on it.
        slightly = draw.choice([0.0, 1e-6, 0.5])
        pairs = [[a, b, 1 - slightly * draw.random()] for a in names for b in names if a < b]
        made = dpl.ExponentialCategorical(epsilon=epsilon, utility_list=pairs)
    ours = point(guarantee_of(made))[0]
    factor = MPF(epsilon) / (1 if made._balanced_tree else 2) / MPF(made._sensitivity)
    lost = MPF(0)
    for one in names:
        for other in names:
            for said in names:
                odds = factor * MPF(made._get_utility(other, said) - made._get_utility(one, said))
                odds += mpmath.log(MPF(float(made._normalising_constant[other])))
                odds -= mpmath.log(MPF(float(made._normalising_constant[one])))
                lost = max(lost, odds)
    assert lost <= MPF(ours.numerator) / ours.denominator
    assert Fraction(epsilon) <= ours
    assert float(ours) <= max(epsilon, float(lost)) * (1 + 1e-9) + 1e-9


KINDS: list[Callable[[random.Random], None]] = [
    of_laplace,
    of_laplace_with_delta,
    of_bounded_domain,
    of_bounded_noise,
    of_gaussian,
    of_discrete_gaussian,
    of_geometric,
    of_staircase,
    of_uniform,
    of_snapping,
    of_binary,
    of_options,
    of_categories,
]


@pytest.mark.parametrize("count", [2, pytest.param(77, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_guarantee_is_the_loss_of_the_noise(kind: Callable[[random.Random], None], count: int) -> None:
    draw = random.Random(f"{kind.__name__} {count}")
    for _ in range(count):
        kind(draw)


def test_guarantee_exceeds_a_too_small_statement_of_the_library() -> None:
    """At (20, 1e-9) the analytic mechanism's true δ is 9.4 times what it states."""
    found = guarantee_of(dpl.GaussianAnalytic(epsilon=20, delta=1e-9, sensitivity=1))
    assert 21.10 < found.epsilon < 21.11
    assert Decimal("1e-9") <= found.loss()[1] < Decimal("1.0000001e-9")  # type: ignore[index]


# -- what is refused ------------------------------------------------------------------------------------------------


def laplace(**changed: Any) -> Any:
    made = dpl.Laplace(epsilon=1, sensitivity=1)
    vars(made).update(changed)
    return made


class Acts(float):
    """A number that says it is another."""


@pytest.mark.parametrize(
    ("thing", "why"),
    [
        (lambda: dpl.Laplace(epsilon=1, sensitivity=1, random_state=1), "random_state of this Laplace must be None"),
        (lambda: laplace(_rng=random.Random(1)), "random_state of this Laplace must be None"),
        (lambda: laplace(randomise=lambda value: value), "does not have the attributes of one: randomise"),
        (lambda: laplace(epsilon=math.nan), "epsilon must be a number: got NaN"),
        (lambda: laplace(epsilon=-1.0), "epsilon must be a number >= 0: got -1.0"),
        (lambda: laplace(epsilon=Acts(1)), "epsilon must be a number: got a .*Acts"),
        (lambda: laplace(epsilon="1"), "epsilon must be a number: got a builtins.str"),
        (lambda: laplace(epsilon=True), "epsilon must be a number: got a builtins.bool"),
        (lambda: laplace(delta=2.0), "delta must be a number from 0 to 1: got 2.0"),
        (lambda: laplace(epsilon=0.0), "epsilon and delta must not both be 0"),
        (lambda: dpl.GeometricTruncated(epsilon=1, lower=0, upper=10**400), "must be exactly a double"),
        (lambda: dpl.Laplace(epsilon=1, sensitivity=0), "sensitivity must be a finite number > 0"),
        (lambda: laplace(sensitivity=math.inf), "sensitivity must be a finite number > 0"),
        (lambda: dpl.Vector(epsilon=1, function_sensitivity=1, alpha=1, dimension=2), "mechanisms.vector.Vector: "),
        (lambda: dpl.Bingham(epsilon=1), "Bingham: it draws a direction"),
    ],
)
def test_unsupported_object_is_refused_with_the_reason(thing: Callable[[], Any], why: str) -> None:
    with pytest.raises(NotSupported, match=why):
        guarantee_of(thing())


def test_mechanism_without_privacy_is_unbounded() -> None:
    for thing in (
        dpl.Laplace(epsilon=math.inf, sensitivity=1),
        dpl.Laplace(epsilon=1, delta=1, sensitivity=1),
        dpl.Binary(epsilon=40, value0="no", value1="yes"),  # no double is so near 1 that it flips
        laplace(epsilon=1e9),
    ):
        assert guarantee_of(thing) == Unbounded()


def test_guarantee_ignores_overwritten_attributes() -> None:
    made = dpl.Gaussian(epsilon=1, delta=1e-5, sensitivity=1)
    honest = guarantee_of(made)
    made.epsilon = 0.01
    claimed = guarantee_of(made)
    assert isinstance(honest, Gaussian)
    assert isinstance(claimed, Gaussian)
    assert claimed.mu == honest.mu
    assert claimed.epsilon > 0.7
    made = dpl.LaplaceBoundedNoise(epsilon=1, delta=1e-5, sensitivity=1)
    made.randomise(0)
    made.epsilon = 0.01
    with pytest.raises(NotSupported, match="does not match its current parameters"):
        guarantee_of(made)
    options = dpl.Exponential(epsilon=1, sensitivity=1, utility=[0, 1])
    options.epsilon = 0.01
    with pytest.raises(NotSupported, match="its probabilities do not match"):
        guarantee_of(options)
    tree = dpl.ExponentialCategorical(epsilon=1, utility_list=[["a", "b", 1]])
    tree.epsilon = 0.01
    with pytest.raises(NotSupported, match="do not match its current parameters"):
        guarantee_of(tree)
    looks = laplace(__class__=dpl.Staircase)
    with pytest.raises(NotSupported):
        guarantee_of(looks)


def test_subclass_is_refused_and_an_imitator_unknown() -> None:
    class Mine(dpl.Laplace):  # type: ignore[misc, name-defined]
        def randomise(self, value: float) -> float:
            return value

    with pytest.raises(
        NotSupported, match=r"Mine is a user-defined subclass of diffprivlib.mechanisms.laplace.Laplace"
    ):
        guarantee_of(Mine(epsilon=1, sensitivity=1))

    class Laplace:
        __module__ = "diffprivlib.mechanisms.laplace"
        epsilon, delta, sensitivity = 1e-9, 0.0, 1.0

    with pytest.raises(InvalidParameter, match="got an object of diffprivlib"):
        guarantee_of(Laplace())

    class Says:
        __class__ = dpl.Laplace  # type: ignore[assignment]

    with pytest.raises(InvalidParameter, match="Says"):
        guarantee_of(Says())


def test_guarantee_keeps_nothing_of_the_value() -> None:
    made = dpl.Exponential(epsilon=1, sensitivity=1, utility=[0.123, 0.456], candidates=["mine", "yours"])
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=4)])
        assert accountant.spend("alice", made)
        [row] = accountant.history("alice")
    assert not any(text in str(row) for text in ("0.123", "0.456", "mine"))


# -- narrow and large numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["GeometricTruncated", "LaplaceTruncated", "LaplaceFolded"])
def test_bounds_beyond_doubles_are_not_narrowed(kind: str) -> None:
    """Two times in nanoseconds 254 apart round to the same double; the noise is for a distance of 1."""
    made = getattr(dpl, kind)(epsilon=1, sensitivity=1, lower=2**60 + 129, upper=2**60 + 383)
    with pytest.raises(NotSupported, match="must be exactly a double"):
        guarantee_of(made)


def test_integer_utilities_that_could_overflow_are_refused() -> None:
    with pytest.raises(NotSupported, match="must be numbers below"):
        guarantee_of(dpl.Exponential(epsilon=1, sensitivity=1, utility=[2**62, 2**62 + 1]))
    counted = list(np.bincount([0, 0, 1]))
    assert_stated(guarantee_of(dpl.Exponential(epsilon=1, sensitivity=1, utility=counted)), 1)


def test_sensitivity_too_small_to_divide_by_is_unbounded() -> None:
    """The library takes its infinite scale for no noise at all."""
    assert guarantee_of(dpl.PermuteAndFlip(epsilon=1, sensitivity=1e-309, utility=[0.0, 0.0])) == Unbounded()
