"""The rule of Hadamard words: a uniform word whose parity with the answer's code leans to one side.

Statement. Let w be uniform below 2^k, and let each answer v have a code c(v) and a word l(v), both below 2^k. The client
sends w if the parity of w & c(v) differs from a coin, else w ^ l(v). Let the codes be different and not zero, and let
c(v) & l(v) have an odd number of ones, for every v. Then the parity of the report with the user's code is one less
the coin, the report is uniform given that parity, and every two answers have one law.

Proof sketch. Adding l(v) turns the parity with c(v) round, since c(v) & l(v) is odd. So words fall into pairs {w, w ^ l}
with one of either parity, and both words of a pair are sent as the one whose parity is one less the coin: uniform over
these 2^(k-1) words. Two different codes that are not zero are linearly independent over GF(2), so the parities of a
uniform word with both take all four values equally often.

The codes and words are computed for every answer, up to 2^22 of them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.sampling import ONE
from ldp_budget.sdk.channels import Comparison, Factor
from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget.sdk.parities import parities
from ldp_budget.sdk.report_law import Law, Pairs, Unknown, Worst, loss_of
from ldp_budget.sdk.value_ranges import names_in

from .totality import cannot_fail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program

_MOST_ANSWERS = 1 << 22
_FORM = "the report is no word that is turned by the parity with a code"


class HadamardWords(Law):
    """The law of such a word.

    Parameters:
        program: a client program.

    Raises:
        Unknown: the program is of another form, or its codes and words are not as they must be.
    """

    rule = "Hadamard words"
    every_pair = True
    alike = True

    def __init__(self, program: Program) -> None:
        parts, given = program.report["parts"], program.input
        if len(parts) != 1 or parts[0][0] != "uint" or parts[0][3] != 1 or given["kind"] != "answer":
            raise Unknown(_FORM)
        self.program, steps = program, dict(program.steps)
        draws = {n for n, x in steps.items() if isinstance(x, list) and OPERATORS[x[0]].kind in ("draw", "memo")}
        word, code, turn, coin = _form(_written(parts[0][1], steps, draws))
        if draws != {word, coin} or draws & {*names_in(code), *names_in(turn)}:
            raise Unknown(_FORM)
        match steps[word], steps[coin]:
            case ["below", bound], ["bit", threshold]:
                bound, threshold = int(bound), int(threshold)
            case _:
                raise Unknown(_FORM)
        if bound & (bound - 1) or bound > 1 << 62:
            raise Unknown(f"the words are not uniform below a power of two: {bound}")
        count = int(given["count"])
        if not 2 <= count <= _MOST_ANSWERS or not cannot_fail(program):
            raise Unknown(f"the codes of {count} answers are not computed")
        codes, words = (_computed(x, np.arange(count)) for x in (code, turn))
        good = (codes > 0).all() and max(int(codes.max()), int(words.max())) < bound and (words >= 0).all()
        if not good or len(np.unique(codes)) < count or not parities(codes & words).all():
            raise Unknown("the codes are not different, or a word does not turn the parity round")
        self.kept = 1 - Fraction(threshold, ONE)
        """The probability that the report has an odd parity with the user's code."""

    def pairs(self) -> list[Pairs]:
        """Return (P, Q) of the parities of the report with the two codes."""
        p, half = self.kept, Fraction(1, 2)
        return [[(a * half, b * half) for a in (1 - p, p) for b in (1 - p, p)]]

    def comparison(self, first: int, second: int) -> Comparison:
        """Return the comparison of two answers, with one outcome for each two parities."""
        return Comparison.of(Factor(tuple(self.pairs()[0])))

    def worst(self) -> Worst:
        """Return two answers, and the parities with the largest likelihood ratio."""
        p, q = sorted((self.kept, 1 - self.kept), reverse=True)
        odd = "odd" if self.kept >= Fraction(1, 2) else "even"
        return Worst((0, 1), f"a word whose parity is {odd} with the code of the first answer alone", loss_of(p, q))

    def marginal(self) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
        """Return the law of the parity with an answer's code, for users who hold the answer and for others."""
        half = Fraction(1, 2)
        return {0: 1 - self.kept, 1: self.kept}, {0: half, 1: half}


def _written(x: Any, steps: dict[str, Any], draws: set[str], depth: int = 60) -> Any:
    """Return an expression with earlier steps in place of their names, up to the draws."""
    if not depth:
        raise Unknown(_FORM)
    if isinstance(x, str):
        return x if x in draws or x not in steps else _written(steps[x], steps, draws, depth - 1)
    if not isinstance(x, list):
        return x
    return [x[0], *(_written(each, steps, draws, depth - 1) for each in x[1:])]


def _form(x: Any) -> tuple[str, Any, Any, str]:
    """Return the names of the draw of the word and of the coin, and the expressions of the code and of the turn."""
    match x:
        case ["xor", str(word), ["where", ["eq", ["parity", ["and", str(again), code]], str(coin)], turn, 0]]:
            if word == again:
                return word, code, turn, coin
    raise Unknown(_FORM)


def _computed(x: Any, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return an expression of the answer for every answer, in 64-bit numbers that cannot overflow."""
    if isinstance(x, str | int):
        if x != "value" and (not str(x).lstrip("-").isdecimal() or abs(int(x)) >= 1 << 62):
            raise Unknown("a code of a table, or of more than 62 bits")
        return values if x == "value" else np.full_like(values, int(x))
    op, *given = x
    if op not in _OPERATORS:
        raise Unknown(f"a code that is computed by {op}")
    columns = [_computed(each, values) for each in given]
    largest = max(int(np.abs(column).max()) for column in columns)
    if largest >= 1 << 60 or (op == "mul" and largest >= 1 << 30):
        raise Unknown("a code of more than 60 bits")
    found: NDArray[np.int64] = _OPERATORS[op](*columns)
    return found


_OPERATORS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}
