"""The rule of independent draws: a report of several draws that are alike and independent given the answer.

Statement. Let a report be a vector of n entries, where every step is one entry at a time: draws of n entries each, and
operators that combine entries of one place, numbers and the answer. Then the entries are independent and alike given
the answer, and n copies of the law of one entry are the law of the report.

Proof sketch. Entry i is the same function of the answer and of entry i of each draw. Entries of one draw are
independent and alike, and draws are independent of each other. No step reads two places, and nothing else is sent.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Copies
from ldp_budget.guarantees.fixed_point import UP
from ldp_budget.sdk.channels import Comparison
from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget.sdk.interpreter import as_reports
from ldp_budget.sdk.report_law import Law, Pairs, Unknown, Worst

from .independent_places import _multiplied
from .totality import cannot_fail
from .tracked_answers import TrackedAnswers, single_draw

if TYPE_CHECKING:
    from decimal import Decimal

    from numpy.typing import NDArray

    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.client_program import Program

_MOST_NUMBERED = 16
"""The most draws whose outcomes are numbered; those of more do not fit 64 bits."""
_MOST_DRAWS = 1 << 20
_VECTORS = ("bits", "belows")


class IndependentDraws(Law):
    """The law of several independent draws.

    Parameters:
        program: a client program.

    Raises:
        Unknown: the report is no vector of independent draws.
    """

    rule = "independent draws"
    every_pair = True

    def __init__(self, program: Program) -> None:
        if len(program.report["parts"]) != 1 or program.report["parts"][0][0] != "uint":
            raise Unknown("the report is no vector of numbers")
        (kind, sent, size, count), vectors = program.report["parts"][0], set[str]()
        if not 2 <= count <= _MOST_DRAWS:
            raise Unknown(f"the report is not of 2 to {_MOST_DRAWS:,} draws: {count:,}")
        if not cannot_fail(program):
            raise Unknown("some answer may come to no report")
        steps = list[tuple[str, Any]]()
        for name, x in program.steps:
            if isinstance(x, list) and x[0] in _VECTORS:
                if x[2] != count or not (isinstance(x[1], int) or str(x[1]).isdecimal()):
                    raise Unknown(f"{name} draws another number of entries")
                vectors.add(name)
                steps.append((name, [x[0], x[1], 1]))
                continue
            if _reads(x, vectors):
                vectors.add(name)
            elif not _is_plain(x):
                raise Unknown(f"{name} is not one entry at a time")
            steps.append((name, x))
        if sent not in vectors:
            raise Unknown("what is sent is no vector of draws")
        self.draws, self.program = count, program
        self.one = one = TrackedAnswers(single_draw(program, steps, [[kind, sent, size, 1]]))
        self.tight, self.alike, self.public_map = one.tight, one.alike, one.public_map

    def pairs(self) -> list[Pairs]:
        """Return (P, Q) of all draws together, outcomes of equal chances merged."""
        return [_multiplied([tuple(pair)] * self.draws) for pair in self.one.pairs()]

    @property
    def ratio(self) -> Fraction | None:
        """e^ε of all draws together."""
        one = self.one.ratio
        return None if one is None else one**self.draws

    def guarantee(self, stated: Decimal | None = None) -> Guarantee:
        """Return as many copies of the guarantee of one draw."""
        one = None if stated is None else UP.divide(stated, self.draws)
        return Copies(self.draws, self.one.guarantee(one))

    def comparison(self, first: int, second: int) -> Comparison:
        """Return the comparison of two answers, one factor for each draw."""
        cases = self.one.comparison(first, second).cases
        if len(cases) != 1:
            raise NotSupported("draws with a public part of their own are not compared")
        return Comparison.of(*cases[0].factors * self.draws)

    def outcomes(self, reports: Any, first: int, second: int) -> NDArray[np.int64]:
        """Return the outcome of `comparison` of each report, the last draw's changing fastest."""
        rows = as_reports(reports)
        if self.draws > _MOST_NUMBERED:
            raise NotSupported(f"too many draws in one report to number their outcomes: {self.draws}")
        codes = np.zeros(len(rows), np.int64)
        for draw in rows.T:
            codes = len(self.one.relations) * codes + self.one.outcomes(draw, first, second)
        return codes

    def marginal(self) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
        """Return the law of one draw's relation to an answer."""
        return self.one.marginal()

    def worst(self) -> Worst:
        """Return two answers, and the relation that every draw has to them."""
        pair, report, loss = self.one.worst()
        return Worst(pair, f"{report}, in each of {self.draws} draws", None if loss is None else loss * self.draws)


def _reads(x: Any, vectors: set[str]) -> bool:
    """True if an expression is computed one entry at a time, and reads such vectors. Raises Unknown for other draws."""
    if isinstance(x, str):
        return x in vectors
    if not isinstance(x, list):
        return False
    operator = OPERATORS[x[0]]
    found = [_reads(each, vectors) for each in x[1:]]
    if operator.kind != "each" and (any(found) or operator.kind != "whole"):
        raise Unknown(f"{x[0]} is not one entry at a time")
    return any(found)


def _is_plain(x: Any) -> bool:
    """True for a number of the answer alone."""
    return not isinstance(x, list) or (OPERATORS[x[0]].kind == "each" and all(map(_is_plain, x[1:])))
