"""The exact law of a client program: every outcome of every draw, in fractions.

A secret's words are taken for uniform and independent, which is what SHAKE-256 is relied on for, and a word modulo b
for uniform below b, from which it is off by b/2**64: it says which buckets or functions a user has, and nothing of
the answer. Beyond that nothing is assumed, and nothing is sampled.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations
from math import comb, factorial, log2
from typing import TYPE_CHECKING, Any, NoReturn

from ...authoring.interpreter import run
from ...errors import NotSupported
from ...randomness import ONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...authoring.programs import Program

    Vector = list[int]

MOST_OUTCOMES = 200_000


def law(program: Program, value: int, most: int = MOST_OUTCOMES, reports: int = 1) -> dict[bytes, Fraction]:
    """How likely each report of `value` is, a whole number as `interpreter.read` makes it of an answer.

    With several `reports` of one secret, how likely they are together, one after the other.

    Raises `NotSupported` where the draws have more than `most` outcomes, or endlessly many.
    """
    every, likely = EveryOutcome(most), dict[bytes, dict[int, int]]()
    for _ in range(most):
        every.start()
        report = b"".join(run(program, value, every) for _ in range(reports))
        # Numerators, by denominator: few are different, and fractions would be reduced at every step.
        parts = likely.setdefault(report, {})
        parts[every.below_the_line] = parts.get(every.below_the_line, 0) + every.above_the_line
        if not every.go_on():
            return {row: sum((Fraction(a, b) for b, a in sums.items()), Fraction(0)) for row, sums in likely.items()}
    raise _too_many(most)


def _too_many(most: int) -> NotSupported:
    return NotSupported(f"its draws have more than {most} outcomes")


class EveryOutcome:
    """Draws that take every outcome in turn: run until `go_on` says that there is none left."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._path: list[tuple[int, int]] = []
        """Of each choice so far, which of how many was taken."""

    def start(self) -> None:
        """Begin a run, the first or the one that `go_on` has chosen."""
        self._place = 0
        self._kept: dict[tuple[str, int], tuple[Any, Any]] = {}
        self.above_the_line = self.below_the_line = 1

    def go_on(self) -> bool:
        """Choose the next run, if there is one."""
        while self._path and self._path[-1][0] + 1 == self._path[-1][1]:
            self._path.pop()
        if not self._path:
            return False
        taken, choices = self._path.pop()
        self._path.append((taken + 1, choices))
        return True

    def _pick(self, numerators: Sequence[int], denominator: int) -> int:
        if self._place == len(self._path):
            self._path.append((0, len(numerators)))
        taken, _ = self._path[self._place]
        self._place += 1
        self.above_the_line *= numerators[taken]
        self.below_the_line *= denominator
        return taken

    def _pick_of(self, choices: int) -> int:
        if choices > self._most:
            raise _too_many(self._most)
        return self._pick([1] * choices, choices) if choices > 1 else 0

    def _expect(self, choices: int, draws: int) -> None:
        """Raise `NotSupported` where one draw alone, at least so many choices so often, has too many outcomes."""
        if choices > 1 and draws * log2(choices) > log2(self._most) + 1:
            raise _too_many(self._most)

    # -- from the stream ----------------------------------------------------------------------------------

    def bit(self, t: int) -> int:
        if t in (0, ONE):
            return int(t == ONE)
        return self._pick((ONE - t, t), ONE)

    bit_at = bit

    def bits(self, t: int, n: int) -> Vector:
        if t not in (0, ONE):
            self._expect(2, n)
        return [self.bit(t) for _ in range(n)]

    def bits_each(self, vector: Vector) -> Vector:
        self._expect(2, sum(t not in (0, ONE) for t in vector))
        return [self.bit(t) for t in vector]

    def below(self, b: int) -> int:
        return self._pick_of(b)

    def belows(self, b: int, n: int) -> Vector:
        self._expect(b, n)
        return [self.below(b) for _ in range(n)]

    def belows_from(self, b: int, n: int) -> Vector:
        self._expect(max(2, b), n - 1)
        return [self.below(b + place) for place in range(n)]

    def subset(self, m: int, n: int) -> Vector:
        self._expect(2, min(n, m - n))
        taken = self._pick_of(comb(m, n))
        return list(next(chosen for place, chosen in enumerate(combinations(range(m), n)) if place == taken))

    def shuffle(self, vector: Vector) -> Vector:
        self._expect(2, len(vector) - 1)
        taken = self._pick_of(factorial(len(vector)))
        return list(next(order for place, order in enumerate(permutations(vector)) if place == taken))

    def geometric(self, t: int) -> NoReturn:
        raise NotSupported("a geometric draw has endlessly many outcomes")

    def laplace(self, k: int) -> NoReturn:
        raise NotSupported("a Laplace deviate has endlessly many outcomes")

    def normal(self, k: int) -> NoReturn:
        raise NotSupported("a normal deviate has endlessly many outcomes")

    # -- from the secret ----------------------------------------------------------------------------------

    def _once(self, label: str, v: int, *how: Any, draw: Callable[[], Any]) -> Any:
        """What was drawn for a value is drawn again; `how` says what is made of its words."""
        place = label, v % ONE  # that is how v is hashed
        found = self._kept.get(place) or self._kept.setdefault(place, (how, draw()))
        if found[0] != how:
            raise NotSupported(f"two draws are made of the same words of the secret, those of {label}")
        return found[1]

    def kept_bits(self, label: str, v: int, t: int, n: int) -> Vector:
        found: Vector = self._once(label, v, "bits", t, n, draw=lambda: self.bits(t, n))
        return found

    def kept_belows(self, label: str, v: int, b: int, n: int) -> Vector:
        found: Vector = self._once(label, v, "belows", b, n, draw=lambda: self.belows_from(b, n))
        return found

    def kept_top(self, label: str, v: int, k: int) -> int:
        found: int = self._once(label, v, "top", k, draw=lambda: self._pick_of(1 << k))
        return found
