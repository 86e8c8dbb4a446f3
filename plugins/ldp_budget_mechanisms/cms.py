"""The count mean sketch (Apple 2017; Jeong, Hong and Seo 2020): a hash of the value as m randomized bits."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from ldp_budget.authoring.channels import Case, Comparison, Factor
from ldp_budget.guarantees import Guarantee

from ._sketch import Sketch
from ._sources import CASE_STUDY
from .unary import SymmetricUnaryEncoding

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.authoring.programs import Program
    from ldp_budget.randomness import RandomSource

    from ._sketch import Cells
    from ._sketch_server import SketchAggregate


class CountMeanSketch(Sketch):
    """CMS: the cell as m bits, by symmetric unary encoding at ε.

    Two values differ in two of the bits or, where they collide, in none.
    """

    name = "cms"
    aliases = ("count-mean-sketch",)
    summary = "one of k hashes of the value, as m randomized bits; for domains too large to list"
    source = f"Apple, Learning with Privacy at Scale (2017); {CASE_STUDY}, section 3.2.1"

    def check(self) -> None:
        super().check()
        _ = self._encoding.thresholds

    @functools.cached_property
    def _encoding(self) -> SymmetricUnaryEncoding:
        return SymmetricUnaryEncoding(epsilon=self.epsilon, domain_size=self.width)

    @property
    def guarantee(self) -> Guarantee:
        # The function's number is drawn without the value; given it, two values are two answers of the encoding.
        return self._encoding.guarantee

    @property
    def _cell_probabilities(self) -> tuple[Fraction, Fraction]:
        return self._encoding.support_probabilities[0]

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> NDArray[np.uint8]:
        """Reports are uint8 (n, b + ceil(m/8)).

        The first b bytes, as many as k - 1 needs, hold the number of the hash function, little-endian; then cell i
        stands in byte i // 8 at bit i % 8.
        """
        from ldp_budget.randomness import open_stream

        from ._cms_reports import draw_reports

        points = self._points(self.domain.check(values))
        return draw_reports(open_stream(rng), self._family, points, self._encoding.thresholds)

    def check_reports(self, reports: Any) -> None:
        from ._cms_reports import check_reports

        check_reports(reports, self._family)

    def client_program(self) -> Program:
        from ldp_budget.authoring.programs import Program, answers, record, whole

        from ._cms_reports import index_bytes

        keep, noise = map(whole, self._encoding.thresholds)
        steps: tuple[tuple[str, Any], ...] = (
            ("function", ["below", self.hashes]),
            ("cell", ["polynomial", str(self.seed), "function", "value", self.width]),
            ("others", ["bits", noise, self.width]),
            ("own", ["bit", keep]),
            ("row", ["put", "others", "cell", "own"]),
        )
        parts: list[list[Any]] = [["uint", "function", index_bytes(self._family), 1], ["packed", "row", self.width]]
        return Program(answers(self.domain), steps, record(parts))

    def compare(self, first: int, second: int) -> Comparison:
        """The bits of both cells where the function tells the values apart; nothing where they collide."""
        p, q = self._cell_probabilities
        apart = self._family.share_apart(first, second)
        return Comparison((Case(apart, (Factor.bit(p, q), Factor.bit(q, p))), Case(1 - apart, ())))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        from ._cms_reports import number_reports

        return number_reports(reports, self._family, first, second)

    def aggregate(self, reports: Any) -> SketchAggregate:
        """How many reports of each function have each bit set. Raises `NotSupported` for anything but reports."""
        from ._cms_reports import count_reports

        return count_reports(reports, self._family, self.fingerprint)

    def _cell_sums(self, rows: Cells) -> Cells:
        return rows

    def _energy(self, rows: Cells) -> float:
        # About the mean of the row, which takes out how many reports the row has.
        return float(((rows - rows.mean(axis=1, keepdims=True)) ** 2).sum())

    @property
    def _energies(self) -> tuple[float, float]:
        p, q = self._cell_probabilities
        m = self.width
        ones = p + (m - 1) * q
        spread = p * (1 - p) + (m - 1) * q * (1 - q)
        return float(ones - (spread + ones**2) / m), float((p - q) ** 2 * (m - 1) / m)

    def _theorem_variance(self) -> float:
        half = float(self.epsilon) / 2
        return math.exp(-half) / math.expm1(-half) ** 2 + 1 / self.width
