"""For which parameters `verify` proves the promise of a built-in mechanism.

The ranges lie within the grid of the page *What `verify` proves*, and a test keeps them there. A built-in mechanism
with other parameters may keep its promise just as well; it counts as "audited" and no more. So does noise of a
sensitivity alone, which has no client program.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..authoring.base import Mechanism


class Within(NamedTuple):
    """From the least to the largest value of a field, both included."""

    least: Decimal | int
    most: Decimal | int


_EPSILON = {"epsilon": Within(Decimal("0.0001"), 20)}
_ANSWERS = {**_EPSILON, "domain_size": Within(2, 10**6)}
_SKETCH = {**_EPSILON, "hashes": Within(1, 64), "width": Within(8, 256)}

PROVED_RANGES: Mapping[str, Mapping[str, Within]] = {
    "gaussian": {
        **_EPSILON,
        "delta": Within(Decimal("1e-30"), Decimal("1e-3")),
        "sigma": Within(Decimal("0.00001"), 10**6),
    },
    "laplace": {**_EPSILON, "scale": Within(Decimal("0.001"), 10**4)},
    "staircase": {**_EPSILON, "gamma": Within(0, 1)},
    "bounded-laplace": {**_EPSILON, "scale": Within(Decimal("0.05"), 10**4)},
    "bounded-staircase": {**_EPSILON, "gamma": Within(0, 1)},
    "randomized-response": _EPSILON,
    "unary-encoding": {"domain_size": Within(2, 1000)},
    "sue": _ANSWERS,
    "oue": _ANSWERS,
    "random-substitution": {**_ANSWERS, "draws": Within(1, 3)},
    "subset-selection": {**_EPSILON, "domain_size": Within(3, 100)},
    "cms": _SKETCH,
    "hcms": _SKETCH,
    "matrix-substitution": {},
    "rappor": {"bits": Within(8, 128), "hashes": Within(1, 4), "cohorts": Within(1, 64)},
    "d-bit-flip": {**_EPSILON, "buckets": Within(2, 20), "bits": Within(1, 4)},
    "one-bit-mean": _EPSILON,
}
_MOST_ANSWERS = 60
"""Of a matrix."""
_MOST_ROUNDED = 64
"""Rounded values of a number."""


def in_proved_range(mechanism: Mechanism) -> bool:
    """Whether the parameters of a built-in mechanism lie where `verify` proves its promise.

    Raises:
        Nothing.
    """
    ranges = PROVED_RANGES.get(mechanism.name)
    if ranges is None:
        return False
    given = {name: getattr(mechanism, name, None) for name in ranges}
    listed = all(_is_within(value, ranges[name]) for name, value in given.items())
    return listed and all(term.holds(mechanism) for term in _OTHER_TERMS.get(mechanism.name, ()))


def proved_range(name: str) -> str:
    """The same in words; "" for a mechanism of which nothing is proved.

    Raises:
        Nothing.
    """
    ranges = PROVED_RANGES.get(name)
    if ranges is None:
        return ""
    words = [f"{field} {within.least} to {within.most}" for field, within in ranges.items()]
    return ", ".join([*words, *(term.words for term in _OTHER_TERMS.get(name, ()))])


def _is_within(value: Any, within: Within) -> bool:
    return value is None or bool(within.least <= value <= within.most)


def _cells_are_apart(sketch: Any) -> bool:
    """Of more functions than cells there may be no two answers that share no cell; eight cells are listed."""
    return bool(sketch.hashes <= sketch.width or sketch.width == 8)


def _filters_are_apart(rappor: Any) -> bool:
    """With few bits for each hash there may be no two filters with no bit in common."""
    return bool(rappor.bits >= 8 * rappor.hashes)


def _changes_alike(rappor: Any) -> bool:
    return not rappor.any_inputs


def _is_small(matrix: Any) -> bool:
    return bool(matrix.domain.size <= _MOST_ANSWERS)


def _values_are_few(mean: Any) -> bool:
    if mean.rounding is None:
        return True
    lower, upper = (Fraction(end) for end in (mean.interval.lower, mean.interval.upper))
    return not mean.any_inputs and (upper - lower) / Fraction(mean.rounding) < _MOST_ROUNDED


def _has_a_client(noise: Any) -> bool:
    """Of a sensitivity alone there is no client program that could be proved."""
    return noise.domain is not None


class _Term(NamedTuple):
    """What else the parameters have to fulfil."""

    words: str
    holds: Callable[[Any], bool]


_CLIENT = _Term("lower and upper given", _has_a_client)
_CELLS_APART = _Term("hashes at most width unless width is 8", _cells_are_apart)

_OTHER_TERMS = {
    "gaussian": (_CLIENT,),
    "laplace": (_CLIENT,),
    "staircase": (_CLIENT,),
    "cms": (_CELLS_APART,),
    "hcms": (_CELLS_APART,),
    "rappor": (_Term("bits at least 8 times hashes", _filters_are_apart), _Term("not any_inputs", _changes_alike)),
    "matrix-substitution": (_Term(f"at most {_MOST_ANSWERS} answers", _is_small),),
    "one-bit-mean": (
        _Term(f"if rounding is given, less than {_MOST_ROUNDED} of it and not any_inputs", _values_are_few),
    ),
}
