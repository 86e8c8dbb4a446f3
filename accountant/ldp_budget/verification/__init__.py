"""Is a mechanism's promise true? Decided from its channel, or its density, and not from what it says.

`verify` compares every ordered pair of the mechanism's critical inputs. Where a report has finitely many things to
say of a pair, the odds are the exact fractions of the integer thresholds that the client draws with, and no rounding
is involved. A density is checked in double precision, to 1e-9. What needs no description at all is the audit of the
client, see `auditing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import permutations
from typing import TYPE_CHECKING, Any

from ..amounts import DOWN, UP, float_above, float_below
from ..errors import NotSupported
from ..guarantees import Guarantee, Memoised, Unbounded
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding, check, check_ratio, worst
from .estimators import check_estimator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from ..base import Mechanism
    from ..channels import Comparison
    from ..numeric import NumericMechanism

__all__ = ["HOLDS", "UNPROVEN", "VIOLATED", "Verification", "verify"]

# Lengths at which the curve of a memoised guarantee is checked, beside its cap.
_LENGTHS = (1, 2, 3, 5, 8, 16, 40)


@dataclass(frozen=True)
class Verification:
    """What `verify` came to.

    `verdict`: "holds", "violated" or "unproven" for the guarantee. `lower` and `upper` bound the loss of one report
    over all pairs compared, None where it is not bounded or there is no channel. `method`: "channel" or "density"
    or "channel and density", "" where the mechanism describes neither. `estimator`: the same verdicts for `estimate`
    being unbiased with true standard errors. `problems`: what speaks against each, in words.
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
        pairs = list(permutations(mechanism.critical_inputs(), 2))
    except NotSupported as error:
        return Verification(HOLDS if isinstance(guarantee, Unbounded) else UNPROVEN, problems=(str(error),))
    comparisons = list(_comparisons(mechanism, pairs))
    findings = [check(guarantee, comparison) for comparison in comparisons]
    if isinstance(guarantee, Memoised):
        findings += [finding for pair in pairs for finding in _over_time(mechanism, guarantee, *pair)]
    densities = list(_densities(mechanism, guarantee, pairs)) if _has_density(mechanism) else []
    methods = [name for name, found in (("channel", comparisons), ("density", densities)) if found]
    # A continuous promise is proved by its density; the channel of what is drawn is then a rounding of it.
    finding = worst(findings + densities) if methods else Finding(UNPROVEN, f"{mechanism.name} describes no channel")
    lower, upper = _loss(comparisons)
    estimator = check_estimator(mechanism)
    return Verification(
        finding.verdict,
        " and ".join(methods),
        lower,
        upper,
        len(pairs),
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
            yield check_ratio(bound, mechanism.compare_repeated(first, second, length))
        except NotSupported as error:
            yield Finding(UNPROVEN, str(error))
            return


def _has_density(mechanism: Mechanism) -> bool:
    from ..numeric import NumericMechanism

    return isinstance(mechanism, NumericMechanism) and type(mechanism).density is not NumericMechanism.density


def _densities(mechanism: Mechanism, guarantee: Guarantee, pairs: list[tuple[Any, Any]]) -> Iterator[Finding]:
    from .densities import DensityPair, check_density

    numeric: NumericMechanism = mechanism  # type: ignore[assignment]
    for first, second in pairs:
        yield check_density(guarantee, DensityPair(numeric, first, second))


def _loss(comparisons: list[Comparison]) -> tuple[float | None, float | None]:
    """The largest loss of one report over what was compared, rounded down and up."""
    ratios = [comparison.largest_ratio() for comparison in comparisons]
    if not ratios or None in ratios:
        return None, None
    largest: Fraction = max(ratio for ratio in ratios if ratio is not None)
    low, high = (
        context.ln(context.divide(Decimal(largest.numerator), Decimal(largest.denominator))) for context in (DOWN, UP)
    )
    return max(0.0, float_below(low.next_minus(DOWN))), float_above(high.next_plus(UP))
