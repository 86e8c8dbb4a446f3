"""LOLOHA: memoised local hashing, whose loss over time does not grow with the number of answers (Arcolezi et al. 2023).

A user keeps one hash function h, drawn once from K public ones, that maps every value to one of g cells. Two
generalized randomized responses over the cells follow. The *permanent* one is drawn once for each cell and kept, at
ε∞. The *instantaneous* one is drawn for each report from the kept cell, at ε_irr. With a = e^{ε∞} and c = e^{ε_irr},
t reports of one cell together lose

    ε(t) = ln( (a cᵗ + g-1) / (cᵗ + a + g-2) ),      ε(1) = ε₁,      ε(t) < ε∞ for every t.

Proof: t reports with n_m of them in cell m have the likelihood Σ_m M(m|x) c^{n_m} for the cell x, up to a factor that
is the same for all x, where M(m|x) is a if m = x, and else 1. The ratio for x and z grows with n_x and falls with all
others, so it is largest where all t reports show x.

A user has g cells, so all reports of a secret lose at most g·ε∞, for any number of answers. As for all memoised
reports, this holds for histories whose *cells* are equal in the same places: reports show, in time, if two of them
come from one cell. A label names the cell, so a ledger charges each cell once up to ε∞.

The printed ε_irr = ln((ab - 1)/(a - b)), b = e^{ε₁}, meets ε₁ for g = 2 only. For more cells it is too small, which
costs accuracy. Here c solves ε(1) = ε₁ for the g in use: c = (b(a + g-2) - (g-1))/(a - b).

The server counts reports by function and cell and estimates as from a count mean sketch: see `Sketch`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, Guarantee, Memoised
from ldp_budget.guarantees.fixed_point import DOWN, UP, decimal_down, decimal_up, exp_down, float_below, ln_up
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.parameters import integer, optional_integer, real

from .count_mean_sketch import Sketch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.channels import Comparison
    from ldp_budget.sdk.client_program import Program

    from ._sketch_reports import SketchAggregate

    Cells = NDArray[np.int64]

_MOST_CELLS = 256
_MOST_POINTS = 400
_NEAR_CAP = Decimal("1e-9")
_PLACES = Decimal("1e-15")


class _Response(NamedTuple):
    """The two randomized responses as they are drawn: the thresholds of keeping a cell, in units of 2**-64."""

    permanent: int
    instant: int


class Loloha(Sketch):
    """LOLOHA from ε∞ of one cell and ε₁ of the first report; g cells, by default the printed optimum."""

    name = "loloha"
    summary = "a memoized hash of the answer, randomized twice; years of reports lose at most g·ε∞ for any domain"
    source = "Arcolezi, Pinzon, Palamidessi and Gambs, Frequency Estimation of Evolving Data Under LDP, EDBT 2023"
    examples = (
        {"epsilon_lifetime": 2, "epsilon_first": "0.5", "domain_size": 6, "hashes": 32},
        {"epsilon_lifetime": 3, "epsilon_first": "1.5", "domain_size": 40, "g": 3, "hashes": 64},
    )
    targets = ("epsilon_lifetime", "epsilon_first")
    hides_repeats = True
    epsilon = None  # type: ignore[assignment]

    epsilon_lifetime = real("privacy loss of all reports of one cell, ε∞", above=0, at_most=40)
    epsilon_first = real("privacy loss of the first report, ε₁ < ε∞", at_least=Decimal("1e-6"), at_most=40)
    g = optional_integer("cells of the hash; all reports lose at most g·ε∞", at_least=2, at_most=_MOST_CELLS)
    hashes = integer("public hash functions, one for each user", at_least=1, at_most=2**20, default=2**16)

    @classmethod
    def for_answers(cls, epsilon: Any, domain_size: int) -> Self:
        """Raise `NotSupported`: one ε does not determine both losses, so it cannot be ranked."""
        raise NotSupported("loloha is calibrated from two losses, so it cannot be ranked at one")

    def check(self) -> None:
        if self.epsilon_first >= self.epsilon_lifetime:
            expected = f"a number < epsilon_lifetime = {self.epsilon_lifetime}"
            raise InvalidParameter("epsilon_first", expected, self.epsilon_first)
        super().check()
        if self._response.instant * self.width <= ONE:
            expected = "a loss large enough to be drawn with 64-bit probabilities"
            raise InvalidParameter("epsilon_first", expected, self.declared["epsilon_first"])

    # -- parameters and guarantee -----------------------------------------------------------------------

    @functools.cached_property
    def width(self) -> int:  # type: ignore[override]
        """The cells g in use."""
        return self._best_cells if self.g is None else self.g

    @property
    def _best_cells(self) -> int:
        """The printed g of least variance, 1 + (1 - a² + √(a⁴ - 14a² + 12ab(1 - ab) + 12a³b + 1))/(6(a - b))."""
        with localcontext(DOWN):
            a, b = exp_down(self.epsilon_lifetime), exp_down(self.epsilon_first)
            inside = a**4 - 14 * a**2 + 12 * a * b * (1 - a * b) + 12 * a**3 * b + 1
            best = 1 + (1 - a * a + max(inside, Decimal(0)).sqrt()) / (6 * (a - b))
            return min(max(2, int(best.to_integral_value(ROUND_HALF_EVEN))), _MOST_CELLS)

    @property
    def _others(self) -> tuple[Fraction, Fraction]:
        """The least and the largest probability of each other cell, given that the kept cell is another one.

        A word of the secret modulo g-1 is off uniform by less than (g-1)/2**64.
        """
        each = self.width - 1
        return Fraction(ONE // each, ONE), Fraction(-(-ONE // each), ONE)

    @functools.cached_property
    def _response(self) -> _Response:
        """Both thresholds, rounded so that ε∞ and ε₁ are met by the cells as they are drawn."""
        least, most = self._others
        odds = DOWN.multiply(exp_down(self.epsilon_lifetime), decimal_down(least))
        permanent = threshold(DOWN.divide(odds, UP.add(Decimal(1), odds)), up=False)
        kept = Fraction(permanent, ONE)
        a, slack, b = kept / ((1 - kept) * least), most / least, Fraction(exp_down(self.epsilon_first))
        c = (
            max(Fraction(0), (b * (a + self.width - 2) - slack * (self.width - 1)) / (a - b))
            if a > b
            else Fraction(ONE)
        )
        return _Response(permanent, threshold(decimal_down(c / (c + self.width - 1)), up=False))

    def _losses(self) -> Iterator[Decimal]:
        """Yield ε(1), ε(2), … of the cells as they are drawn, rounded up."""
        least, most = self._others
        kept, shown = (Fraction(part, ONE) for part in self._response)
        own, low, high = kept, (1 - kept) * least, (1 - kept) * most
        odds, grown = decimal_up(shown * (self.width - 1) / (1 - shown)), Decimal(1)
        while True:
            grown = UP.multiply(grown, odds)
            # Both sides are divided by cᵗ, of which more makes the ratio larger.
            rest = UP.divide(Decimal(1), grown)
            above = UP.add(decimal_up(own), UP.multiply(decimal_up(high * (self.width - 1)), rest))
            below = DOWN.add(
                decimal_down(low), DOWN.multiply(decimal_down(own + low * (self.width - 2)), DOWN.divide(1, grown))
            )
            yield ln_up(UP.divide(above, below))

    @property
    def guarantee(self) -> Guarantee:
        first, cap = self.epsilon_first, self.epsilon_lifetime
        points = [first]
        losses = self._losses()
        next(losses)
        for loss in losses:
            points.append(min(max(UP.quantize(loss, _PLACES), points[-1]), cap))
            if UP.subtract(cap, points[-1]) <= _NEAR_CAP or len(points) == _MOST_POINTS:
                break
        return Memoised(tuple(points), cap, self.width, SAME_CHANGE_PATTERN)

    @property
    def pseudonyms(self) -> int:
        return self.hashes

    @property
    def parameters(self) -> dict[str, Any]:
        permanent, instant = (Decimal(part) / ONE for part in self._response)
        return {"g": self.width, "hashes": self.hashes, "p1": float_below(permanent), "p2": float_below(instant)}

    @property
    def notes(self) -> tuple[str, ...]:
        total = UP.multiply(self.epsilon_lifetime, Decimal(self.width))
        return (
            f"Reports of one cell lose {self.epsilon_lifetime} together and those of all {self.width} cells at most "
            f"{total}, for neighbours whose cells are equal in the same places. Whether a cell changed or came back "
            "can show beyond that.",
            "The printed ε_irr is met with equality for 2 cells only; for more, the instantaneous response is solved "
            "for the cells in use, which adds less noise at the same ε₁.",
            *super().notes,
        )

    # -- client -----------------------------------------------------------------------------------------

    def client_program(self) -> Program:
        """Return the client program; reports are uint8 rows: the hash function, little-endian, and then the cell in one byte.

        The function and the kept cells come from `secrets`, and the rest from `rng`.
        """
        from ldp_budget.sdk.client_program import Program, answers, record, whole

        from ._sketch_reports import index_bytes

        permanent, instant = map(whole, self._response)
        g = self.width
        steps: tuple[tuple[str, Any], ...] = (
            ("drawn", ["kept_belows", "function", 0, self.hashes, 1]),
            ("function", ["at", "drawn", 0]),
            ("cell", ["polynomial", str(self.seed), "function", "value", g]),
            ("keeps", ["kept_bits", "permanent", "cell", permanent, 1]),
            ("elsewhere", ["kept_belows", "other", "cell", g - 1, 1]),
            ("others", ["at", "elsewhere", 0]),
            ("permanent", ["mod", ["add", "cell", ["where", ["at", "keeps", 0], 0, ["add", 1, "others"]]], g]),
            ("shows", ["bit", instant]),
            ("next", ["below", g - 1]),
            ("shown", ["mod", ["add", "permanent", ["where", "shows", 0, ["add", 1, "next"]]], g]),
        )
        parts: list[list[Any]] = [["uint", "function", index_bytes(self._family), 1], ["uint", "shown", 1, 1]]
        return Program(answers(self.domain), steps, record(parts), memo="cell")

    # -- verification -----------------------------------------------------------------------------------

    def compare(self, first: int, second: int) -> Comparison:
        return self.compare_repeated(first, second, 1)

    def compare_repeated(self, first: int, second: int, reports: int | None) -> Comparison:
        """Compare where all reports show the first value's cell, all show the second's, or anything else.

        The first two have the largest ratios of all. For endless reports the kept cell shows.
        """
        from ._sketch_reports import compare_cells

        kept, shown = (Fraction(part, ONE) for part in self._response)
        other, miss, g = (1 - kept) / (self.width - 1), (1 - shown) / (self.width - 1), self.width
        same, more = (Fraction(1), Fraction(0)) if reports is None else (shown**reports, miss**reports)
        own = kept * same + (1 - kept) * more
        else_ = other * same + kept * more + (g - 2) * other * more
        return compare_cells(own, else_, self._family.share_apart(first, second))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        from ._sketch_reports import number_cells

        functions, cells = self._read(reports)
        return number_cells(cells, *(self._family.cells_of(value)[functions] for value in (first, second)))

    # -- server -----------------------------------------------------------------------------------------

    @property
    def _cell_probabilities(self) -> tuple[Fraction, Fraction]:
        kept, shown = (Fraction(part, ONE) for part in self._response)
        own = kept * shown + (1 - kept) * (1 - shown) / (self.width - 1)
        return own, (1 - own) / (self.width - 1)

    def _read(self, reports: Any) -> tuple[Cells, Cells]:
        """Return the function and the cell of each report. Raises `NotSupported` for anything but reports."""
        from ._sketch_reports import function_part, read_record

        (functions, cells), _ = read_record(
            reports, self.name, [function_part(self._family), ("cell", 1, self.width)]
        )
        return functions, cells

    def check_reports(self, reports: Any) -> None:
        self._read(reports)

    def aggregate(self, reports: Any) -> SketchAggregate:
        """Count the reports of each function with each cell. Raises `NotSupported` for anything but reports."""
        from ._sketch_reports import SketchAggregate

        return SketchAggregate.of(self.fingerprint, *self._read(reports), (self.hashes, self.width))

    @property
    def _energies(self) -> tuple[float, float]:
        p, q = self._cell_probabilities
        share = (self.width - 1) / self.width
        return share, float((p - q) ** 2) * share
