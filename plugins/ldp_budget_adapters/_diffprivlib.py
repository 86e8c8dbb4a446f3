"""Adapter for diffprivlib: mechanisms for one user's value, read by the noise that they add and not by their claims.

Each mechanism is read in its current state: the scale of the noise, the sensitivity, the bounds. The sensitivity is
taken as the largest distance between two values of the user. If the bounds are further apart, their distance counts.
If the noise keeps the stated (ε, δ), that is the guarantee. If it does not, the guarantee is the ε that the noise
keeps at that δ: `GaussianAnalytic` often adds too little noise, `GaussianDiscrete` a few parts in a million too
little.

The guarantee is that of the mathematical mechanism: the draws are doubles, which the formula's promise does not
cover. Only `Binary` has so few outcomes that the odds of its doubles are computed.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Guarantee
from ldp_budget.guarantees.fixed_point import UP, ln_up

from ._adapter_helpers import (
    Read,
    above,
    approximate,
    at_least_zero,
    distance,
    gaussian,
    laplace,
    least_epsilon,
    number,
    pure,
    ratio_up,
    release,
    stated,
    theirs,
    zero_concentrated,
)

_HOME = "diffprivlib.mechanisms."
_DECLARE = "To charge its guarantee on trust, use mechanism `declared`."
_OF_ALL = {"epsilon", "delta", "random_state", "_rng"}
_MOST_VALUES = 2000
_MOST_UTILITY = 2.0**60
_MOST_SIGMA = 20_000.0
_DRAWS = 2**53
_LOOSE = 1e-11
"""The relative slack for values that are computed in doubles."""


def read(thing: object) -> Read | None:
    """Return the guarantee of a mechanism; None if the object is not from diffprivlib."""
    kind = theirs(thing, "diffprivlib")
    if kind is None:
        return None
    home, name = kind.__module__, kind.__name__
    known = _KNOWN.get(name) if home.startswith(_HOME) else None
    if known is None:
        why = _REFUSED.get(name, "it is not a mechanism for the value of one user")
        raise NotSupported(f"{home}.{name}: {why}", hint=_DECLARE)
    state = _State(name, vars(thing))
    state.check_names(known.names)
    state.check_randomness()
    state.check_delta()
    try:
        guarantee = known.promise(state)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise NotSupported(f"this {name} cannot be read: {type(error).__name__}: {error}") from None
    shown = ", ".join(f"{field}={state.shown(field)}" for field in ("epsilon", "delta", *known.shown))
    return Read(guarantee, f"{release('diffprivlib')}: {name}({shown}); {state.condition}; of the ideal mechanism")


class _State:
    """The current attributes of a mechanism, and the condition under which they are read."""

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        self.name = name
        self.attributes = dict(attributes)
        self.condition = "any two values of the user"

    def check_names(self, names: set[str]) -> None:
        if set(self.attributes) != names | _OF_ALL:
            odd = sorted(map(str, set(self.attributes) ^ (names | _OF_ALL)))
            raise NotSupported(f"this {self.name} does not have the attributes of one: {', '.join(odd)[:100]}")

    def check_randomness(self) -> None:
        source = self["_rng"]
        system = type(source) is random.SystemRandom and set(vars(source)) <= {"gauss_next"}
        fresh = self.name == "Staircase" and type(source) is np.random.Generator
        if self["random_state"] is not None or not (system or fresh):
            raise NotSupported(
                f"random_state of this {self.name} must be None: a party that knows the seed of the generator could "
                "compute the value"
            )

    def check_delta(self) -> None:
        if not 0 <= number("delta", self["delta"]) <= 1:
            raise NotSupported(f"delta must be a number from 0 to 1: got {self['delta']!r}")
        if not self.epsilon and not self.delta:
            raise NotSupported("epsilon and delta must not both be 0, because no finite noise achieves that")

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]

    def amount(self, name: str) -> float:
        return at_least_zero(name, self[name])

    def positive(self, name: str) -> float:
        found = self.amount(name)
        if not found or math.isinf(found):
            raise NotSupported(f"{name} must be a finite number > 0: got {found!r}")
        return found

    @property
    def epsilon(self) -> float:
        return self.amount("epsilon")

    @property
    def delta(self) -> float:
        return self.amount("delta")

    def no_delta(self) -> None:
        if self.delta:
            raise NotSupported(f"delta must be 0 for a {self.name}: got {self.delta!r}")

    def furthest(self) -> Decimal:
        """Return the largest distance between two values of the user."""
        apart = Decimal(self.positive("sensitivity"))
        self.condition = "two values of the user are at most its sensitivity apart"
        if "lower" not in self.attributes:
            return apart
        lower, upper = self.end("lower"), self.end("upper")
        if lower > upper:
            raise NotSupported(f"lower must be at most upper, {upper!r}: got {lower!r}")
        if math.isinf(lower) or math.isinf(upper):
            return apart
        self.condition = "two values of the user are at most its sensitivity or its bounds apart"
        return max(apart, distance(lower, upper))

    def end(self, name: str) -> float:
        """Return a bound, which must be exactly a double: rounding would move the two ends closer together."""
        found = number(name, self[name])
        if found != self[name]:
            raise NotSupported(f"{name} must be exactly a double: got {self[name]!r}")
        return found

    def shown(self, name: str) -> str:
        found = self[name]
        return repr(found) if isinstance(found, bool) else repr(number(name, found))


# -- numbers --------------------------------------------------------------------------------------------------------


def _at_least(state: _State, loss: Decimal | None) -> Decimal | None:
    """Return the loss, but at least the stated ε."""
    promised = stated(state.epsilon)
    return None if loss is None or promised is None else max(loss, promised)


def _laplace(state: _State) -> Guarantee:
    """Also truncated and folded, which is post-processing of a report that is already private."""
    apart = state.furthest()
    if state.delta >= 1 or math.isinf(state.epsilon):
        return pure(None)
    scale = state.positive("sensitivity") / (state.epsilon - math.log(1 - state.delta))
    if state.delta and apart == Decimal(state.positive("sensitivity")):
        # ε - ln(1 - δ) without a δ, so that at ε it is 1 - √(1 - δ) < δ.
        return approximate(stated(state.epsilon), above(state.delta))
    return laplace(_at_least(state, _times(ratio_up(apart, scale))))


def _times(loss: Decimal | None) -> Decimal | None:
    """Return the loss with slack for a scale that is computed in doubles."""
    return None if loss is None else UP.multiply(loss, _LAST_DIGITS)


_LAST_DIGITS = Decimal("1.000000000000001")


def _bounded_domain(state: _State) -> Guarantee:
    """The density is exp(-|y - x|/b), normalized within the range: the two ends differ the most, by (u - l)/b."""
    lower, upper = state.end("lower"), state.end("upper")
    state.positive("sensitivity")
    state.condition = "two values of the user are anywhere within its bounds"
    if not lower < upper or math.isinf(upper - lower):
        raise NotSupported(f"lower and upper must be finite, with lower < upper: got {lower!r} and {upper!r}")
    if math.isinf(state.epsilon) or state.delta >= 1:
        return pure(None)
    scale = state["_scale"]
    if scale is None:
        # As the library's first draw computes it; narrow numpy numbers use their own arithmetic, which can be far off.
        if any(type(state[name]) not in (float, int, np.float64) for name in _DECIDE):
            raise NotSupported(
                f"{', '.join(_DECIDE)} must be Python floats, because narrower floats give another scale"
            )
        meant = _loaded("laplace", "LaplaceBoundedDomain")
        scale = meant._find_scale(meant(**_stated(state, *_DECIDE)))
    return pure(_at_least(state, ratio_up(distance(lower, upper), at_least_zero("_scale", scale))))


_DECIDE = ("epsilon", "delta", "sensitivity", "lower", "upper")


def _loaded(module: str, name: str) -> Any:
    """Return a class of the library, of which an instance exists."""
    return vars(sys.modules[_HOME + module])[name]


def _stated(state: _State, *names: str) -> dict[str, float]:
    return {name: number(name, state[name]) for name in names}


def _bounded_noise(state: _State) -> Guarantee:
    """Laplace noise within ±B, B = b ln(1 + (e^ε - 1)/2δ): at a distance of S the part outside weighs exactly δ.

    The library computes e^ε - 1 with few digits if ε is small. Then its B is too short, and the true δ is larger.
    """
    state.furthest()
    if not 0 < state.delta < 0.5 or not 0 < state.epsilon < 700:
        raise NotSupported(
            f"epsilon must be in (0, 700) and delta in (0, 0.5): got {state.epsilon!r} and {state.delta!r}"
        )
    scale = state.positive("sensitivity") / state.epsilon
    bound = scale * float(np.log(1 + (np.exp(state.epsilon) - 1) / 2 / state.delta))
    for name, fresh in (("_scale", scale), ("_noise_bound", bound)):
        if state[name] is not None and not math.isclose(number(name, state[name]), fresh, rel_tol=1e-12):
            raise NotSupported(f"its {name} does not match its current parameters")
    if not bound:
        raise NotSupported(f"epsilon is too small for the library to find a bound of the noise: {state.epsilon!r}")
    sticks_out = math.expm1(state.epsilon) / 2 / math.expm1(bound / scale)
    return approximate(stated(state.epsilon), UP.multiply(above(max(state.delta, sticks_out)), _FEW_DIGITS))


_FEW_DIGITS = Decimal("1.00000000001")


def _gaussian(state: _State) -> Guarantee:
    apart = state.furthest()
    return gaussian(ratio_up(apart, state.amount("_scale")), state.epsilon, state.delta)


def _discrete_gaussian(state: _State) -> Guarantee:
    """Integers: ρ = S²/2σ², and the δ of an ε is a difference of tails (Canonne, Kamath and Steinke 2020)."""
    apart, sigma = _whole("sensitivity", state), state.amount("_scale")
    state.furthest()
    if not sigma or state.delta >= 1 or math.isinf(state.epsilon):
        return pure(None)
    if sigma > _MOST_SIGMA or state.epsilon > 700:
        return zero_concentrated(UP.divide(Decimal(apart) ** 2, UP.multiply(Decimal(2), Decimal(sigma) ** 2)))
    far = np.arange(1, int(40 * sigma) + apart + 40, dtype=np.float64)
    tail = np.cumsum(np.exp(-(far**2) / 2 / sigma**2)[::-1])[::-1]  # of all k >= 1, 2, …
    whole = 1 + 2 * float(tail[0])

    def beyond(least: float) -> float:
        """P[Y > least], up to an error of e^-800."""
        first = math.floor(least) + 1
        if first >= 1:
            return float(tail[first - 1]) / whole if first <= len(tail) else 0.0
        return 1 - beyond(-first)

    def meets(epsilon: float) -> bool:
        middle, half = epsilon * sigma**2 / apart, apart / 2
        near, far_off = beyond(middle - half), beyond(middle + half)
        return near * (1 + _LOOSE) - math.exp(epsilon) * far_off * (1 - _LOOSE) <= state.delta

    found = least_epsilon(lambda at: at < 700 and meets(at), state.epsilon)
    return approximate(None if found is None else above(found), above(state.delta))


def _whole(name: str, state: _State) -> int:
    found = state[name]
    if type(found) is not int and not isinstance(found, np.integer):
        raise NotSupported(f"{name} must be a whole number: got {found!r}")
    state.positive(name)
    return int(found)


def _geometric(state: _State) -> Guarantee:
    """Integers: a two-sided geometric distribution e^{-k·r}, r = ε/S; also truncated and folded."""
    state.no_delta()
    _whole("sensitivity", state)
    apart = state.furthest()
    rate = -number("_scale", state["_scale"])
    if rate < 0 or math.isinf(rate):
        return pure(None)
    return pure(_at_least(state, UP.multiply(apart, Decimal(rate))))


def _staircase(state: _State) -> Guarantee:
    state.no_delta()
    state.furthest()
    if not 0 <= number("gamma", state["gamma"]) <= 1:
        raise NotSupported(f"gamma must be a number from 0 to 1: got {state['gamma']!r}")
    return pure(stated(state.epsilon))


def _uniform(state: _State) -> Guarantee:
    """Noise uniform over S/δ: for two values S apart, a fraction δ of the reports is possible for one of them only."""
    state.furthest()
    if state.epsilon or not 0 < state.delta <= 0.5:
        raise NotSupported(f"epsilon must be 0 and delta in (0, 0.5]: got {state.epsilon!r} and {state.delta!r}")
    return approximate(Decimal(0), above(state.delta))


def _snapping(state: _State) -> Guarantee:
    """Values further apart than the sensitivity are several steps apart, each of ε."""
    state.no_delta()
    apart, step = state.furthest(), Decimal(state.positive("sensitivity"))
    bound = (number("upper", state["upper"]) - number("lower", state["lower"])) / 2.0 / float(step)
    if number("_bound", state["_bound"]) != bound:
        raise NotSupported("its _bound does not match its current parameters")
    loss = stated(state.epsilon)
    steps = UP.to_integral_value(UP.divide(apart, step))
    return pure(None if loss is None else UP.multiply(loss, steps))


# -- choices --------------------------------------------------------------------------------------------------------


def _binary(state: _State) -> Guarantee:
    """It flips if u(e^ε + 1) > e^ε, where u is one of 2^53 doubles; the odds are counted over exactly those doubles."""
    state.no_delta()
    if not all(type(state[name]) is str for name in ("value0", "value1")):
        raise NotSupported("value0 and value1 must be strings")
    if state.epsilon > 700:
        return pure(None)
    grown = float(np.exp(state.epsilon))
    low, high = 0, _DRAWS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if middle / _DRAWS * (grown + 1) > grown else (middle + 1, high)
    if low == _DRAWS:
        return pure(None)
    odds = Fraction(low, _DRAWS - low)
    return pure(_at_least(state, ln_up(UP.divide(Decimal(odds.numerator), Decimal(odds.denominator)))))


def _exponential(state: _State) -> Guarantee:
    """It is configured for one value and holds its utilities; they are read here, and none of them is stored."""
    state.no_delta()
    state.positive("sensitivity")
    state.condition = (
        "the utilities of two values of the user are at most its sensitivity apart, its measure and candidates the "
        "same"
    )
    measure = state.attributes.get("measure")
    if measure is not None and not all(at_least_zero("measure", each) >= 0 for each in measure):
        raise NotSupported("measure must be numbers >= 0")
    mechanism = _loaded("exponential", state.name)
    if type(state["monotonic"]) is not bool:
        raise NotSupported(f"monotonic must be True or False: got {state['monotonic']!r}")
    # The library subtracts integers, which wrap around, narrow ones soon: the result may be that of another value.
    utility = [number("utility", each) for each in state["utility"]]
    if any(type(each) not in (float, int, np.float64, np.int64) for each in state["utility"]):
        raise NotSupported("utility must be Python numbers or doubles, because narrower integers wrap around")
    if max(map(abs, utility)) + state.positive("sensitivity") > _MOST_UTILITY:
        raise NotSupported(f"utility must be numbers below {_MOST_UTILITY!r} after the sensitivity is added")
    figures = (state.epsilon, state.positive("sensitivity"), utility, state["monotonic"], measure)
    if math.isinf(state.epsilon / state.positive("sensitivity")):
        return pure(None)
    if not np.array_equal(mechanism._find_probabilities(*figures), state["_probabilities"]):
        raise NotSupported("its probabilities do not match its current parameters")
    loss = stated(state.epsilon)
    # Half the noise is enough if every utility can only rise: between two values some rise and some fall.
    return pure(None if loss is None else loss * 2 if state["monotonic"] else loss)


def _categorical(state: _State) -> Guarantee:
    """All odds are checked: the library's tolerance for "balanced" is loose, so the true ε may exceed the stated one."""
    state.no_delta()
    values, constants = state["_domain_values"], state["_normalising_constant"]
    if not 2 <= len(values) <= _MOST_VALUES or set(values) != set(constants):
        raise NotSupported(f"the domain must have 2 to {_MOST_VALUES} values: got {len(values)}")
    factor = state.epsilon / (1 if state["_balanced_tree"] else 2) / state.positive("_sensitivity")
    apart = np.zeros((len(values), len(values)))
    place = {value: number for number, value in enumerate(values)}
    for (first, second), utility in state["_utility_values"].items():
        apart[place[first], place[second]] = apart[place[second], place[first]] = at_least_zero("utility", utility)
    weights = np.exp(-factor * apart)
    sums = np.array([number("_normalising_constant", constants[value]) for value in values])
    if not np.allclose(weights.sum(axis=1), sums, rtol=1e-9):
        raise NotSupported("its normalizing constants do not match its current parameters")
    logs = -factor * apart - np.log(sums)[:, None]
    loss = float((logs.max(axis=0) - logs.min(axis=0)).max()) * (1 + _LOOSE)
    return pure(_at_least(state, stated(loss)))


# -- known mechanisms ----------------------------------------------------------------------------------------------


class _Known(NamedTuple):
    """The reader of a mechanism: its own attributes, and those that the journal shows."""

    promise: Callable[[_State], Guarantee]
    names: set[str]
    shown: tuple[str, ...]


_NUMBER = {"sensitivity", "_scale"}
_BOUNDED = {"sensitivity", "_scale", "lower", "upper"}
_ENDS = ("sensitivity", "lower", "upper")
_OPTIONS = {"sensitivity", "utility", "candidates", "measure", "monotonic", "_probabilities"}
_TREE = {"_balanced_tree", "_utility_values", "_sensitivity", "_domain_values", "_normalising_constant"}

_KNOWN = {
    "Laplace": _Known(_laplace, _NUMBER, ("sensitivity",)),
    "LaplaceTruncated": _Known(_laplace, _BOUNDED, _ENDS),
    "LaplaceFolded": _Known(_laplace, _BOUNDED, _ENDS),
    "LaplaceBoundedDomain": _Known(_bounded_domain, _BOUNDED, _ENDS),
    "LaplaceBoundedNoise": _Known(_bounded_noise, {*_NUMBER, "_noise_bound"}, ("sensitivity",)),
    "Gaussian": _Known(_gaussian, _NUMBER, ("sensitivity", "_scale")),
    "GaussianAnalytic": _Known(_gaussian, _NUMBER, ("sensitivity", "_scale")),
    "GaussianDiscrete": _Known(_discrete_gaussian, _NUMBER, ("sensitivity", "_scale")),
    "Geometric": _Known(_geometric, _NUMBER, ("sensitivity",)),
    "GeometricTruncated": _Known(_geometric, _BOUNDED, _ENDS),
    "GeometricFolded": _Known(_geometric, _BOUNDED, _ENDS),
    "Staircase": _Known(_staircase, {*_NUMBER, "gamma"}, ("sensitivity", "gamma")),
    "Uniform": _Known(_uniform, {"sensitivity"}, ("sensitivity",)),
    "Snapping": _Known(_snapping, {*_BOUNDED, "_bound"}, _ENDS),
    "Binary": _Known(_binary, {"value0", "value1"}, ()),
    "Exponential": _Known(_exponential, _OPTIONS, ("sensitivity", "monotonic")),
    "PermuteAndFlip": _Known(_exponential, _OPTIONS, ("sensitivity", "monotonic")),
    "ExponentialCategorical": _Known(_categorical, _TREE, ()),
    "ExponentialHierarchical": _Known(_categorical, {*_TREE, "hierarchy", "_list_hierarchy"}, ()),
}
_REFUSED = {
    "Bingham": "it draws a direction from the covariance of a whole data set",
    "Vector": "it perturbs the objective that is minimised over a whole data set",
}
