"""Shared checks of the adapters: the origin of an object, its parameters, and their outward rounding.

Another library states its parameters as doubles, which may have been computed. The adapters take the next double
above and its shortest decimal form. So a guarantee is never smaller than the library's; the excess is at most a few
parts in 1e16.
"""

from __future__ import annotations

import math
import sys
from decimal import Context, Decimal
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Approximate, Gaussian, Guarantee, Laplace, Pure, Unbounded, ZeroConcentrated
from ldp_budget.guarantees.fixed_point import UP, float_above
from ldp_budget.guarantees.gaussian_calibration import gaussian_delta

_EXACT = Context(prec=2500)
MOST = Decimal(10**6)
"""The largest amount that a guarantee may state; a larger one is not a guarantee."""


class Read(NamedTuple):
    """The guarantee of an object, and the line that describes it."""

    guarantee: Guarantee
    source: str


# -- origin of an object ---------------------------------------------------------------------------------------


def is_of(cls: type, module: str, name: str) -> bool:
    """True if this very class is the one that a loaded module has under that name."""
    return getattr(sys.modules.get(module), "__dict__", {}).get(name) is cls


def theirs(thing: object, library: str) -> type | None:
    """Return the class of an object if a loaded module of the library defines it, else None.

    Raises `NotSupported` for an instance of a user's subclass, which may do anything.
    """
    kind = type(thing)
    for cls in kind.__mro__:
        module = cls.__module__
        inside = isinstance(module, str) and module.partition(".")[0] == library
        if not inside or not is_of(cls, module, cls.__name__):
            continue
        if cls is kind:
            return kind
        raise NotSupported(
            f"{kind.__qualname__} is a user-defined subclass of {module}.{cls.__qualname__}, which may draw differently",
            hint="To charge its guarantee on trust, use mechanism `declared`.",
        )
    return None


@cache
def release(distribution: str) -> str:
    """Return a distribution with its version, the beginning of a source line."""
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return distribution


# -- parameters ---------------------------------------------------------------------------------------------------


def number(name: str, value: object) -> float:
    """Return a parameter as a double. Raises `NotSupported` for NaN and for an object that only acts as a number."""
    kind = type(value)
    if kind is not float and kind is not int and not _is_number_of_numpy(kind):
        raise NotSupported(f"{name} must be a number: got a {kind.__module__}.{kind.__qualname__}")
    try:
        found = float(value)  # type: ignore[arg-type]
    except OverflowError:
        found = math.inf
    except (TypeError, ValueError):
        raise NotSupported(f"{name} must be a number: got a {kind.__qualname__}") from None
    if math.isnan(found):
        raise NotSupported(f"{name} must be a number: got NaN")
    return found


def _is_number_of_numpy(kind: type) -> bool:
    if not is_of(kind, "numpy", kind.__name__):
        return False
    numpy = sys.modules["numpy"]
    return issubclass(kind, numpy.floating | numpy.integer)


def at_least_zero(name: str, value: object) -> float:
    """Return a parameter that cannot be negative."""
    found = number(name, value)
    if found < 0:
        raise NotSupported(f"{name} must be a number >= 0: got {found!r}")
    return found


def above(value: float) -> Decimal:
    """Return the decimal of the next double above; 0 stays 0."""
    return Decimal(repr(math.nextafter(value, math.inf))) if value else Decimal(0)


def ratio_up(numerator: Decimal, denominator: float) -> Decimal | None:
    """Return the ratio, rounded up; None if it is infinite."""
    if not denominator or math.isinf(denominator):
        return Decimal(0) if denominator else None
    return UP.divide(numerator, Decimal(denominator))


def distance(lower: float, upper: float) -> Decimal:
    """Return the distance between two values, to the last digit of the doubles."""
    return _EXACT.subtract(Decimal(upper), Decimal(lower))


# -- guarantee ----------------------------------------------------------------------------------------------------


def pure(epsilon: Decimal | None) -> Guarantee:
    return Unbounded() if epsilon is None or epsilon > MOST else Pure(epsilon)


def laplace(epsilon: Decimal | None) -> Guarantee:
    return Unbounded() if epsilon is None or epsilon > MOST else Laplace(epsilon)


def zero_concentrated(rho: Decimal | None) -> Guarantee:
    return Unbounded() if rho is None or rho > MOST else ZeroConcentrated(rho)


def approximate(epsilon: Decimal | None, delta: Decimal) -> Guarantee:
    if epsilon is None or epsilon > MOST or delta >= 1:
        return Unbounded()
    return Approximate(epsilon, delta) if delta else Pure(epsilon)


def stated(value: float) -> Decimal | None:
    """Return a stated amount, rounded up; None if it is infinite."""
    return None if math.isinf(value) else above(value)


def gaussian(mu: Decimal | None, epsilon: float | None = None, delta: float | None = None) -> Guarantee:
    """Return Gaussian privacy μ, with the stated (ε, δ) if the noise meets it, else with the true ε of that δ."""
    if mu is None or mu > MOST:
        return Unbounded()
    if not mu:
        return Pure(Decimal(0))
    if epsilon is None or delta is None or not 0 < delta < 1 or not 0 <= epsilon < MOST:
        return Gaussian(mu)
    found = least_epsilon(lambda at: gaussian_delta(at, float_above(mu)) <= delta, epsilon)
    return Gaussian(mu) if found is None else Gaussian(mu, above(found), above(delta))


def least_epsilon(meets, epsilon: float) -> float | None:  # type: ignore[no-untyped-def]
    """Return `epsilon` if it meets the condition, else the least larger one that does; None above a million."""
    if meets(epsilon):
        return epsilon
    low, high = epsilon, max(2 * epsilon, 1e-3)
    while not meets(high):
        if high > MOST / 2:
            return None
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high
