"""The rule of affine slabs: a report is a slab of an affine space whose points are the answers.

Statement. In a program of `LinearHashing`, a client draws a slab that holds its answer with probability p, and another
one otherwise, each uniformly. Every two answers have one law.

Proof sketch. The affine maps of the space take any two points to any two others, and slabs to slabs; uniform slabs
stay uniform. So the number of slabs that hold both, one or neither of two points is the same for every two points, and
is counted in `LinearHashing.law`. The program is compared as a whole with the one of that space.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from ldp_budget.sdk.affine_geometry import linear_law
from ldp_budget.sdk.channels import Comparison
from ldp_budget.sdk.report_law import Law, Pairs, Unknown, Worst, loss_of

if TYPE_CHECKING:
    from ldp_budget.sdk.client_program import Program


class AffineSlabs(Law):
    """The law of slabs.

    Parameters:
        program: a client program.

    Raises:
        Unknown: the program is not one of `LinearHashing`.
    """

    rule = "affine slabs"
    every_pair = True
    alike = True

    def __init__(self, program: Program) -> None:
        factor = linear_law(program)
        if factor is None:
            raise Unknown("the program sends no slabs")
        self.program, self.factor = program, factor

    def pairs(self) -> list[Pairs]:
        """Return (P, Q) of the slabs by the answers that they hold."""
        return [list(self.factor.masses)]

    def comparison(self, first: int, second: int) -> Comparison:
        """Return the comparison of two answers, with one outcome for each way in which a slab holds them."""
        return Comparison.of(self.factor)

    def worst(self) -> Worst:
        """Return two answers, and the kind of slab with the largest likelihood ratio."""
        best = (0, 1), 0, (Fraction(1), Fraction(1))
        for place, (p, q) in enumerate(self.factor.masses):
            for pair, (a, b) in (((0, 1), (p, q)), ((1, 0), (q, p))):
                if a * best[2][1] > best[2][0] * b:
                    best = pair, place, (a, b)
        return Worst(best[0], "a slab that holds the first answer and not the second", loss_of(*best[2]))
