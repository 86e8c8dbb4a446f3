"""Adapter for OpenDP: measurements of one user's value, by the measurement's own privacy map.

The map is evaluated at the largest distance between two values of the user. OpenDP itself rounds the map toward more
loss, and the adapter takes the next double above it. In a bounded domain two values are at most the range apart;
under the discrete distance, 1.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Guarantee
from ldp_budget.guarantees.fixed_point import UP

from ._adapter_helpers import (
    Read,
    approximate,
    at_least_zero,
    distance,
    pure,
    release,
    stated,
    theirs,
    zero_concentrated,
)

_DECLARE = "To charge its guarantee on trust, use mechanism `declared`."
_ABOUT_DATA = ("SymmetricDistance", "InsertDeleteDistance", "ChangeOneDistance", "HammingDistance")
_ASKED_LATER = (
    "make_adaptive_composition",
    "make_fully_adaptive_composition",
    "make_privacy_filter",
    "make_sequential_composition",
)
_MAPS = {"privacy_map", "stability_map"}
"""Arguments for user-defined maps. Any constructor may take one: OpenDP has non-public ones for its extras."""
_WHOLE = ("i", "u")
_HAVE_MAPS = ("Measurement", "Odometer", "Transformation")


def read(thing: object) -> Read | None:
    """Return the guarantee of a measurement; None if the object is not from OpenDP."""
    kind = theirs(thing, "opendp")
    if kind is None:
        return None
    if (kind.__module__, kind.__name__) != ("opendp.mod", "Measurement"):
        raise NotSupported(
            f"{kind.__module__}.{kind.__qualname__} is not a measurement, and only measurements have a guarantee"
        )
    _check_proved(thing)
    domain, metric = _property(thing, "input_domain"), str(_property(thing, "input_metric"))
    measure = str(_property(thing, "output_measure"))
    furthest = _furthest(domain, metric)
    guarantee = _guarantee(measure, _mapped(thing, furthest))
    made = getattr(thing, "__opendp_dict__", {}).get("__function__", "Measurement")
    return Read(
        guarantee,
        f"{release('opendp')}: {made}, {domain}, {metric}, {measure}; by its map at d_in = {furthest!r}, the largest "
        "distance between two values of the domain",
    )


def _property(thing: object, name: str) -> Any:
    """Return an attribute through the class, because the object's own dictionary may hold anything."""
    return getattr(type(thing), name).fget(thing)


def _mapped(thing: Any, furthest: float | int) -> Any:
    try:
        return type(thing).map(thing, furthest)
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise NotSupported(f"its map does not take d_in = {furthest!r}, the range of its domain: {why}") from None


def _check_proved(thing: object) -> None:
    """Refuse a measurement if any of its parts has a map that is a user's Python function."""
    seen: set[int] = set()
    waiting: list[object] = [thing]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        made = getattr(part, "__opendp_dict__", None)
        if type(part).__name__ in _HAVE_MAPS and theirs(part, "opendp") and not isinstance(made, dict):
            raise NotSupported(
                f"this {type(part).__name__} does not state how it was made, so its map cannot be trusted",
                hint=_DECLARE,
            )
        if isinstance(made, dict):
            name = str(made.get("__function__", ""))
            if name in _ASKED_LATER:
                raise NotSupported(
                    f"{name}: its queries are not known yet, and may be user-defined functions",
                    hint="Charge each measurement that it answers.",
                )
            if name.startswith("make_user_") or not _MAPS.isdisjoint(made.get("__kwargs__") or ()):
                raise NotSupported(f"{name}: its map is a user-defined function without a proof", hint=_DECLARE)
            if name == "make_population_amplification":
                raise NotSupported(f"{name}: its guarantee is for a secret sample of many users, not for one user")
            waiting += _parts(made.get("__kwargs__"))
        elif isinstance(part, list | tuple | dict):
            waiting += _parts(part)


def _parts(held: object) -> Iterator[object]:
    if isinstance(held, dict):
        yield from held.values()
    elif isinstance(held, list | tuple):
        yield from held


# -- distance between two values of one user ----------------------------------------------------------------------


def _furthest(domain: Any, metric: str) -> float | int:
    """Return the d_in between any two values of the domain. Raises `NotSupported` if it is unbounded."""
    name, _, rest = metric.partition("(")
    kind = rest.rstrip(")")
    if name == "DiscreteDistance":
        return 1
    if name in _ABOUT_DATA:
        raise NotSupported(
            f"{metric} counts the records in which two data sets differ, and not the distance between two values of one "
            "user",
            hint="Use a metric such as the absolute or the discrete distance.",
        )
    if name not in ("AbsoluteDistance", "L1Distance", "L2Distance"):
        raise NotSupported(f"{metric} is not a known distance between two values of one user", hint=_DECLARE)
    shape = type(domain).__name__
    if name == "AbsoluteDistance" and shape == "AtomDomain":
        return _rounded(_range(domain), kind)
    if name != "AbsoluteDistance" and shape == "VectorDomain":
        return _rounded(_diagonal(domain, name), kind)
    raise NotSupported(
        f"{metric} over {domain}: the largest distance between two values of one user is not known", hint=_DECLARE
    )


def _range(domain: Any) -> Decimal:
    if not hasattr(domain, "bounds"):
        raise NotSupported(f"this release of OpenDP does not state the bounds of {domain}")
    bounds = domain.bounds
    if bounds is None:
        raise NotSupported(
            f"{domain} has no bounds, so two values of one user may be any distance apart",
            hint="Use a domain with bounds.",
        )
    if domain.nan:
        raise NotSupported(f"{domain} includes NaN, whose distance to other values is not defined")
    lower, upper = bounds
    if any(isinstance(end, float) and not math.isfinite(end) for end in bounds):
        raise NotSupported(f"{domain} is not bounded")
    return distance(lower, upper)


def _diagonal(domain: Any, name: str) -> Decimal:
    size = domain.size
    if type(domain.element_domain).__name__ != "AtomDomain" or size is None:
        raise NotSupported(f"{domain} must have a known size and a bounded domain of its elements")
    width = _range(domain.element_domain)
    if name == "L1Distance":
        return UP.multiply(width, Decimal(size))
    return UP.multiply(width, UP.next_plus(UP.sqrt(Decimal(size))))


def _rounded(width: Decimal, kind: str) -> float | int:
    """Return a distance in the metric's own type, rounded up."""
    if kind.startswith(_WHOLE):
        return math.ceil(width)
    exact, found = Fraction(width), float(width)
    if kind == "f32":
        if found > 3.4e38:
            raise NotSupported("the range of its domain is larger than its type of distance can represent")
        bits = struct.unpack("<I", struct.pack("<f", found))[0]
        while Fraction(struct.unpack("<f", struct.pack("<I", bits))[0]) < exact:
            bits += 1
        return float(struct.unpack("<f", struct.pack("<I", bits))[0])
    while math.isfinite(found) and Fraction(found) < exact:
        found = math.nextafter(found, math.inf)
    return found


# -- guarantee -----------------------------------------------------------------------------------------------------


def _guarantee(measure: str, mapped: Any) -> Guarantee:
    if measure == "MaxDivergence":
        return pure(stated(at_least_zero("the loss of its map", mapped)))
    if measure == "ZeroConcentratedDivergence":
        return zero_concentrated(stated(at_least_zero("the loss of its map", mapped)))
    if measure == "Approximate(MaxDivergence)":
        epsilon, delta = (at_least_zero("the loss of its map", part) for part in mapped)
        return approximate(stated(epsilon), stated(delta) or Decimal(0) if delta < 1 else Decimal(1))
    if measure == "Approximate(ZeroConcentratedDivergence)":
        rho, delta = (at_least_zero("the loss of its map", part) for part in mapped)
        if not delta:
            return zero_concentrated(stated(rho))
        raise NotSupported(
            f"{measure} with δ = {delta!r}: no guarantee has both a ρ and a δ", hint="Convert it to (ε, δ)."
        )
    if measure == "SmoothedMaxDivergence":
        raise NotSupported(f"{measure} is a curve of (ε, δ)", hint="Fix its δ first, with make_fix_delta.")
    if measure == "RenyiDivergence":
        raise NotSupported(
            f"{measure} is a function of the order, and its values at some orders do not bound those between them",
            hint="State a ρ, or the (ε, δ) of an order, with mechanism `declared`.",
        )
    raise NotSupported(f"{measure} is not a supported measure", hint=_DECLARE)
