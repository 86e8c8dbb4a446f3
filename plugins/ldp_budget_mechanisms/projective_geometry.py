"""Projective geometry response: a random slab of a finite geometry, most likely one that holds the user's answer.

Source: Feldman, Nelson, Nguyen and Talwar, ICML 2022. Answers are points of a geometry over a field of q elements, and
a report is a hyperplane. One through the answer is e^ε times as likely as another one. About 1/q of them are, and the
variance is least for q = e^ε + 1. The paper's geometry is the projective one. Two things differ here.

- The hyperplane at infinity is left out, with its points. The affine space AG(m, q) remains, see `linear_hashing`.
- A report may be a slab of k parallel hyperplanes, so that the share k/q comes close to 1/(e^ε+1) for any q. For m = 1
  and a prime q that is subset selection from the q(q-1) sets {x : ax + b is below k}, in place of all sets. That
  matters for up to some thousand answers: there q^m may be chosen near their number. With k = 1 a report is shorter.

Let α = k/q be the share of slabs that hold a point, and r that of slabs that hold two given points. A report holds the
user's own answer with probability p = αe^ε/(αe^ε+1-α), and another answer with

    p' = pr/α + (1-p)(α-r)/(1-α).

Of two answers, a report loses ±ε if it holds just one of them, and nothing otherwise. So the pair is

    SymmetricPair(ε, τ),      τ = (α-r)(e^ε+1)/(αe^ε+1-α),

the same for any two answers: the affine maps take any two points to any two others, and slabs to slabs. With as many
answers as points the variance is that of subset selection with k·q^{m-1} of q^m answers (Ye and Barg 2018), since no
estimate depends on more than pairs of answers. With more points than answers it is a little larger (`best_space`).

p is rounded down to a multiple of 2**-64. So the drawn odds are at most e^ε, and the drawn total variation is at most
that of the stated pair: both grow with p.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from decimal import Decimal
from fractions import Fraction
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Guarantee, SymmetricPair
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, exp_up, float_above, float_below
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.affine_geometry import MOST_SLABS, LinearHashing, is_order
from ldp_budget.sdk.frequency_oracle import MOST_ANSWERS, FrequencyMechanism
from ldp_budget.sdk.parameters import integer, real

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import CountEstimate

    from ._slab_reports import SlabAggregate


_LARGER = Fraction(101, 100)
"""Largest ratio of a variance to the least one, in exchange for shorter reports."""


@functools.lru_cache(maxsize=1024)
def best_space(odds: Decimal, answers: int) -> LinearHashing:
    """Return the space of at least so many points with the fewest slabs, of those with nearly the least variance.

    For each dimension and each way to choose k these orders are tried: the first ones that have enough points, and the
    ones next to k(e^ε+1), as far as they fit.
    """
    wanted = int(min(odds, Decimal(MOST_SLABS))) + 1
    spaces = {
        space
        for digits in range(1, (answers - 1).bit_length() + 1)
        for space in _spaces(wanted, answers, digits)
        if space.fits
    }
    variances = {space: _total_variance(space, Fraction(odds), answers) for space in spaces}
    most = _LARGER * min(variances.values())
    near = [space for space in spaces if variances[space] <= most]
    return min(near, key=lambda space: (space.slabs, variances[space]))


def _spaces(wanted: int, answers: int, digits: int) -> Iterator[LinearHashing]:
    """Yield spaces of a dimension: of the least order and k/q near 1/`wanted`, and of k = 1 and q near `wanted`."""
    least = 2 + bisect_left(range(2, answers + 1), answers, key=lambda order: order**digits)
    first = next(order for order in count(least) if is_order(order))
    for width in {max(1, first // wanted), max(1, -(-first // wanted))}:
        if 2 * width <= first:
            yield LinearHashing(first, digits, width)
    most = bisect_left(range(MOST_SLABS), True, key=lambda order: not LinearHashing(order + 2, digits).fits) + 1
    nearest = min(max(first, wanted), most)
    yield from (LinearHashing(order, digits) for order in _next(nearest, first, most))


def _next(nearest: int, first: int, last: int) -> Iterator[int]:
    """Yield the orders of fields next to a number on either side, from `first` to `last`."""
    for orders in (range(nearest, first - 1, -1), range(nearest + 1, last + 1)):
        yield from islice(filter(is_order, orders), 1)


def _chances(space: LinearHashing, p: Fraction) -> Fraction:
    """Return p', the probability that a report holds another answer, given that of its own."""
    held, both = space.shares
    return p * both / held + (1 - p) * (held - both) / (1 - held)


def _total_variance(space: LinearHashing, odds: Fraction, answers: int) -> Fraction:
    """Return the variance per user of all counts together, as `total_variance` has it."""
    held, _ = space.shares
    p = held * odds / (held * odds + 1 - held)
    other = _chances(space, p)
    return (answers * other * (1 - other) / (p - other) + 1 - p - other) / (p - other)


class ProjectiveGeometryResponse(FrequencyMechanism):
    """PGR over the answers 0..domain_size-1; a report takes at most three bytes."""

    name = "pgr"
    aliases = ("projective-geometry-response",)
    summary = "a random set of answers out of a finite geometry; optimal variance in at most three bytes"
    source = (
        "Feldman, Nelson, Nguyen and Talwar, Private Frequency Estimation via Projective Geometry, ICML 2022; "
        "Ye and Barg, IEEE Transactions on Information Theory 64 (2018)"
    )

    epsilon = real("privacy loss of one report", above=0, at_most=100)
    domain_size = integer("number of possible answers", at_least=2, at_most=MOST_ANSWERS)

    def check(self) -> None:
        # At p = k/q a report would say nothing; below it, estimates would have their sign turned.
        if self._keep * self.space.order <= ONE * self.space.width:
            expected = "a loss large enough to be drawn with 64-bit probabilities"
            raise InvalidParameter("epsilon", expected, self.epsilon)

    # -- calibration ------------------------------------------------------------------------------------

    @functools.cached_property
    def space(self) -> LinearHashing:
        """The slabs of the affine space whose points are the answers."""
        return best_space(exp_down(self.epsilon), self.domain_size)

    @functools.cached_property
    def _p(self) -> Decimal:
        """p = k·e^ε/(k·e^ε+q-k), rounded down."""
        width, rest = Decimal(self.space.width), Decimal(self.space.order - self.space.width)
        kept = DOWN.multiply(width, exp_down(self.epsilon))
        return DOWN.subtract(Decimal(1), UP.divide(rest, DOWN.add(kept, rest)))

    @functools.cached_property
    def _keep(self) -> int:
        """p in units of 2**-64, as the client draws it."""
        return threshold(self._p, up=False)

    @functools.cached_property
    def _tau(self) -> Decimal:
        """τ, rounded up. As α <= 1/2 it grows with e^ε, so an upper bound of that bounds it."""
        odds, (held, both) = exp_up(self.epsilon), self.space.shares
        width, rest = Decimal(self.space.width), Decimal(self.space.order - self.space.width)
        seen = UP.divide(UP.add(odds, Decimal(1)), DOWN.add(DOWN.multiply(width, odds), rest))
        one = (held - both) * self.space.order
        return min(UP.divide(UP.multiply(seen, Decimal(one.numerator)), Decimal(one.denominator)), Decimal(1))

    @property
    def guarantee(self) -> Guarantee:
        return SymmetricPair(self.epsilon, self._tau)

    @property
    def parameters(self) -> dict[str, Any]:
        """The space AG(m, q) and the slabs of k hyperplanes; p and p'; and the number of possible reports."""
        space = self.space
        other = _chances(space, Fraction(self._p))
        return {
            "order": space.order,
            "dimension": space.digits,
            "width": space.width,
            "p": float_below(self._p),
            "q": float_above(UP.divide(Decimal(other.numerator), Decimal(other.denominator))),
            "possible_reports": space.slabs,
        }

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        p = Fraction(self._keep, ONE)
        return [(p, _chances(self.space, p))]

    # -- client and server ------------------------------------------------------------------------------

    @property
    def _lot(self) -> int | None:
        return 2**15

    def client_program(self) -> Program:
        """Return the client program; reports are numbers of slabs: uint8 (n, bytes), the lowest byte first."""
        from ldp_budget.sdk.client_program import answers

        return self.space.program(answers(self.domain), self._keep)

    def check_reports(self, reports: Any) -> None:
        from ._slab_reports import slabs_of

        slabs_of(reports, self.space)

    def aggregate(self, reports: Any) -> SlabAggregate:
        from ._slab_reports import SlabAggregate, slabs_of

        return SlabAggregate.of(self.fingerprint, slabs_of(reports, self.space), self.space)

    def support(self, reports: Any) -> tuple[int, NDArray[np.int64]]:
        total = self.total(reports)
        return total.reports, self.space.supports(total.counts, self.domain_size, total.given)

    def estimate(self, reports: Any, *, consistent: bool = False) -> CountEstimate:
        from ldp_budget.sdk.consistency import maybe_consistent
        from ldp_budget.sdk.estimates import CountAggregate

        estimate = self._law.estimate(CountAggregate(self.fingerprint, *self.support(reports)))
        return maybe_consistent(estimate, consistent)

    # -- verification -----------------------------------------------------------------------------------

    def outcomes(self, reports: Any, first: int, second: int) -> NDArray[np.int64]:
        import numpy as np

        from ._slab_reports import slabs_of

        slabs = slabs_of(reports, self.space)
        own, theirs = (self.space.holds(slabs, np.array([answer])) for answer in (first, second))
        return np.select([own & ~theirs, theirs & ~own, own], [0, 1, 2], 3)
