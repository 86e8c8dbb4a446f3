"""Is a mechanism's promise true? Decided from its channel, or its density, and not from what it says.

`verify` compares every ordered pair of the mechanism's critical inputs. Where a report has finitely many things to
say of a pair, the odds are the exact fractions of the integer thresholds that the client draws with, and no rounding
is involved. A density is checked in double precision, to 1e-9. What needs no description at all is the audit of the
client, see `auditing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ..amounts import DOWN, UP, float_up
from ..errors import NotSupported
from ..guarantees import Memoised, Unbounded
from ..numeric import NumericMechanism
from .densities import DensityPair, check_density, largest_loss
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding, check, check_ratio, worst
from .estimators import check_estimator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from ..base import Mechanism
    from ..channels import Comparison

__all__ = ["HOLDS", "UNPROVEN", "VIOLATED", "Verification", "verify"]

# Lengths at which the curve of a memoised guarantee is checked, beside its cap.
_LENGTHS = (1, 2, 3, 5, 8, 16, 40)


@dataclass(frozen=True)
class Verification:
    """What `verify` came to.

    `verdict`: "holds", "violated" or "unproven" for the guarantee. `lower` and `upper` bound the loss of one report
    over all pairs compared (where δ is promised, the ε at that δ), None where it is not known. `method`: "channel",
    "density" or "channel and density", "" where the mechanism describes neither. `pairs`: how many ordered pairs of
    inputs were compared. `estimator`: the same verdicts for `estimate` being unbiased with true standard errors.
    `problems`: what speaks against each, in words.
    """

    verdict: str
    method: str = ""
    lower: float | None = None
    upper: float | None = None
    pairs: int = 0
    estimator: str = UNPROVEN
    problems: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A JSON object of the fields."""
        return {**vars(self), "problems": list(self.problems)}


def verify(mechanism: Mechanism) -> Verification:
    """Check the guarantee of `mechanism` exactly, as far as it describes what it draws.

    Raises nothing for a mechanism that describes nothing: that is `unproven`. A description that contradicts itself
    raises ValueError.
    """
    guarantee = mechanism.guarantee
    try:
        pairs = list(combinations(mechanism.critical_inputs(), 2))
    except NotSupported as error:
        return Verification(HOLDS if isinstance(guarantee, Unbounded) else UNPROVEN, problems=(str(error),))
    comparisons = [each for found in _comparisons(mechanism, pairs) for each in (found, found.swapped())]
    findings = [check(guarantee, comparison) for comparison in comparisons]
    if isinstance(guarantee, Memoised):
        findings += [finding for pair in pairs for finding in _over_time(mechanism, guarantee, *pair)]
    densities = _densities(mechanism, pairs)
    findings += [check_density(guarantee, density) for density in densities]
    methods = [name for name, found in (("channel", comparisons), ("density", densities)) if found]
    # A continuous promise is proved by its density; the channel of what is drawn is then a rounding of it.
    finding = worst(findings) if methods else Finding(UNPROVEN, f"{mechanism.name} describes no channel")
    lower, upper = _loss(comparisons)
    if not comparisons and densities:
        lower = upper = largest_loss(guarantee, densities)
    estimator = check_estimator(mechanism)
    return Verification(
        finding.verdict,
        " and ".join(methods),
        lower,
        upper,
        2 * len(pairs),
        estimator.verdict,
        tuple(dict.fromkeys(found.why for found in (finding, estimator) if found.why)),
    )


def _comparisons(mechanism: Mechanism, pairs: list[tuple[Any, Any]]) -> Iterator[Comparison]:
    for first, second in pairs:
        try:
            yield mechanism.compare(first, second)
        except NotSupported:
            return


def _over_time(mechanism: Mechanism, guarantee: Memoised, first: Any, second: Any) -> Iterator[Finding]:
    """The curve and the cap of a memoised guarantee, for reports that repeat one value."""
    lengths = [length for length in _LENGTHS if length <= len(guarantee.curve)]
    claims = [(length, guarantee.curve[length - 1]) for length in lengths]
    for length, bound in (*claims, (None, guarantee.cap)):
        try:
            comparison = mechanism.compare_repeated(first, second, length)
            yield check_ratio(bound, comparison)
            yield check_ratio(bound, comparison.swapped())
        except NotSupported as error:
            yield Finding(UNPROVEN, str(error))
            return


def _densities(mechanism: Mechanism, pairs: list[tuple[Any, Any]]) -> list[DensityPair]:
    """The ordered pairs of a mechanism that has a density."""
    if not isinstance(mechanism, NumericMechanism) or type(mechanism).density is NumericMechanism.density:
        return []
    return [DensityPair(mechanism, *each) for first, second in pairs for each in ((first, second), (second, first))]


def _loss(comparisons: list[Comparison]) -> tuple[float | None, float | None]:
    """The largest loss of one report over what was compared, rounded down and up."""
    ratios = [comparison.largest_ratio() for comparison in comparisons]
    if not ratios or None in ratios:
        return None, None
    largest: Fraction = max(ratio for ratio in ratios if ratio is not None)
    low, high = (
        context.ln(context.divide(Decimal(largest.numerator), Decimal(largest.denominator))) for context in (DOWN, UP)
    )
    return max(0.0, -float_up(-low.next_minus(DOWN))), float_up(high.next_plus(UP))
