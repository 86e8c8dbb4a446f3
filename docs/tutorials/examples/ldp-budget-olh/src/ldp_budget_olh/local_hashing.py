"""Optimal local hashing: a public random hash of the answer, randomized among g values (Wang et al. 2017, 4.4).

The client draws a hash function h, in the same way for every answer v, and reports h together with h(v) as
generalized randomized response over g values keeps or changes it:

    P[the report is h(v)] = p = e^ε/(e^ε+g-1),      P[it is another given value] = p' = 1/(e^ε+g-1).

**What a report says.** Of two answers, a function under which they collide says nothing. Under any other function the
loss is ±ε where the report is one of their two hashes, that is with probability p + p', and 0 elsewhere. For any two
answers, the pair of distributions is therefore that of randomized response at ε erased with probability 1 - τ,

    τ = (1 - c)·(e^ε+1)/(e^ε+g-1),

where c is the probability, over the draw of h, that the two collide. Of an ideal random hash that is 1/g, and this is
the printed τ; of the family drawn from here (see `hashing`) it is a little less, the same for any two answers, and
known exactly. The larger τ is the true one, and it is the one promised.

**What is estimated.** A report supports the answer u if it is h(u): with probability p where u = v, else with
q = c·p + (1 - c)·p'. Functions are drawn afresh for each report, so reports are independent.

The client draws by integers out of 2**64, the threshold of p rounded down. That never makes p larger: the drawn
p/p' is at most e^ε, and the total variation (1 - c)(p - p') at most that of the stated pair, so it dominates.
"""

from __future__ import annotations

import functools
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget import FrequencyMechanism
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import Guarantee, SymmetricPair
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, exp_up, float_above, float_below
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.channels import Case, Comparison, Factor
from ldp_budget.sdk.parameters import integer, optional_integer, real

from .hashing import PRIME, collision_probability, count_hits, draw_functions, hashed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sampling import RandomSource
    from ldp_budget.sdk.client_program import Program

MOST_HASHES = 2**20


class OptimalLocalHashing(FrequencyMechanism):
    """OLH over the answers 0..domain_size-1; a report takes twelve bytes, however many answers there are."""

    name = "exact-olh"
    aliases = ("exact-local-hashing",)
    summary = "a public random hash of the answer, randomized; reports are small for any domain"
    source = "Wang, Blocki, Li, Jha, USENIX Security 2017, section 4.4; Carter and Wegman 1979"
    examples = ({"epsilon": 1, "domain_size": 7}, {"epsilon": "0.2", "domain_size": 100, "hash_range": 3})

    epsilon = real("privacy loss of one report", above=0, at_most=10**6)
    domain_size = integer("number of possible answers", at_least=2, at_most=PRIME)
    hash_range = optional_integer(
        "values g of the hash; round(e^epsilon) + 1 if left out", at_least=2, at_most=MOST_HASHES
    )

    def check(self) -> None:
        # At p = 1/g a report would say nothing; below it, estimates would have their sign turned.
        if self._keep * self.g <= ONE:
            expected = "a loss large enough to be drawn with 64-bit probabilities"
            raise InvalidParameter("epsilon", expected, self.epsilon)

    # -- what follows from the fields ---------------------------------------------------------------------

    @functools.cached_property
    def g(self) -> int:
        """The values of the hash. By default those with the least variance at rare answers, at most 2**20."""
        if self.hash_range is not None:
            return self.hash_range
        odds = min(exp_down(self.epsilon), Decimal(MOST_HASHES - 1))
        return int(odds.to_integral_value(ROUND_HALF_EVEN)) + 1

    @functools.cached_property
    def _p(self) -> Decimal:
        """p = e^ε/(e^ε+g-1), rounded down."""
        others = Decimal(self.g - 1)
        return DOWN.subtract(Decimal(1), UP.divide(others, DOWN.add(exp_down(self.epsilon), others)))

    @functools.cached_property
    def _keep(self) -> int:
        """p as the client draws it, in units of 2**-64."""
        return threshold(self._p, up=False)

    @functools.cached_property
    def _drawn(self) -> tuple[Fraction, Fraction]:
        """(p, p') exactly as the client draws."""
        p = Fraction(self._keep, ONE)
        return p, (1 - p) / (self.g - 1)

    @property
    def _collision(self) -> Fraction:
        return collision_probability(self.g)

    @functools.cached_property
    def _tau(self) -> Decimal:
        """τ, rounded up. It grows with e^ε, so an upper bound of that bounds it."""
        odds = exp_up(self.epsilon)
        told = UP.divide(UP.add(odds, Decimal(1)), DOWN.add(odds, Decimal(self.g - 1)))
        apart = 1 - self._collision
        return min(UP.multiply(told, UP.divide(Decimal(apart.numerator), Decimal(apart.denominator))), Decimal(1))

    @property
    def guarantee(self) -> Guarantee:
        return SymmetricPair(self.epsilon, self._tau)

    @property
    def parameters(self) -> dict[str, Any]:
        other = UP.divide(UP.subtract(Decimal(1), self._p), Decimal(self.g - 1))
        return {"hash_range": self.g, "p": float_below(self._p), "q": float_above(other)}

    @property
    def notes(self) -> tuple[str, ...]:
        notes = (
            "Each report names its hash function, which is drawn without the answer. With probability "
            f"{float(self._collision):.6g} it takes two answers to one value and says nothing of them: the loss is "
            f"±ε with probability τ = {self._tau:.6g} and 0 otherwise, so reports together cost less than their sum.",
        )
        return (*notes, *self._better_without_a_hash())

    def _better_without_a_hash(self) -> tuple[str, ...]:
        """A note where generalized randomized response over all answers has the smaller variance at rare answers.

        That of a count is n(e^ε+d-2)/(e^ε-1)² there, and here n(e^ε+g-1)²/((g-1)(e^ε-1)²).
        """
        odds, others = exp_down(self.epsilon), self.g - 1
        if (odds + self.domain_size - 2) * others >= (odds + others) ** 2:
            return ()
        return (f"For {self.domain_size} answers at this loss grr, which needs no hash, has the smaller variance.",)

    # -- client -------------------------------------------------------------------------------------------

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> NDArray[np.uint32]:
        """Reports are uint32 (n, 3): a and b of the hash function, and the randomized hash of the answer."""
        import numpy as np

        from ldp_budget.sampling import bernoulli, integers, open_stream

        answers = self.domain.check(values)
        stream, n = open_stream(rng), len(answers)
        functions = draw_functions(stream, n)
        # Another value is drawn for each user, so that the time taken does not depend on what is kept.
        kept, moved = bernoulli(stream, self._keep, n), integers(stream, self.g - 1, n) + 1
        cells = (hashed(functions, answers, self.g) + np.where(kept, 0, moved)) % self.g
        return np.column_stack([functions, cells]).astype(np.uint32)

    # -- server -------------------------------------------------------------------------------------------

    @property
    def answers(self) -> int:
        return self.domain_size

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        p, other = self._drawn
        return [(p, self._collision * p + (1 - self._collision) * other)]

    def support(self, reports: Any) -> tuple[int, NDArray[np.int64]]:
        rows = self._checked(reports)
        return len(rows), count_hits(rows[:, :2], rows[:, 2], self.domain_size, self.g)

    def _checked(self, reports: Any) -> NDArray[np.uint32]:
        """`reports` as an array. Raises `NotSupported` for anything that no client of this mechanism sends."""
        import numpy as np

        rows = np.asarray(reports)
        if rows.dtype != np.uint32 or rows.ndim != 2 or rows.shape[1] != 3:
            raise NotSupported(f"reports of exact-olh are uint32 of shape (n, 3): got {rows.dtype} {rows.shape}")
        a, b, cell = rows.T
        if not ((a > 0) & (a < PRIME) & (b < PRIME) & (cell < self.g)).all():
            raise NotSupported(
                f"reports of exact-olh hold functions of the family and values below {self.g}: got others"
            )
        return rows

    # -- what can be checked ------------------------------------------------------------------------------

    def client_program(self) -> Program:
        from ldp_budget.sdk.client_program import Program, answers, record, whole

        steps: tuple[tuple[str, Any], ...] = (
            ("a0", ["below", PRIME - 1]),
            ("b", ["below", PRIME]),
            ("kept", ["bit", whole(self._keep)]),
            ("moved", ["below", self.g - 1]),
            ("a", ["add", "a0", 1]),
            ("hash", ["mod", ["mod", ["add", ["mul", "a", "value"], "b"], PRIME], self.g]),
            ("cell", ["mod", ["add", "hash", ["where", "kept", 0, ["add", "moved", 1]]], self.g]),
        )
        return Program(
            answers(self.domain), steps, record([["uint", name, 4, 1] for name in ("a", "b", "cell")], "<u4", [3])
        )

    def compare(self, first: int, second: int) -> Comparison:
        """Two cases. The function separates the answers: the first one's hash, the second one's, or another value.

        Where they collide: their hash, or another value, as likely for either.
        """
        p, other = self._drawn
        rest = 1 - p - other
        apart = Factor(((p, other), (other, p), (rest, rest)))
        alike = Factor(((p, p), (1 - p, 1 - p)))
        return Comparison((Case(1 - self._collision, (apart,)), Case(self._collision, (alike,))))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        import numpy as np

        rows = self._checked(reports)
        hashes = [hashed(rows[:, :2], np.array(answer), self.g) for answer in (first, second)]
        is_first, is_second = (cells == rows[:, 2] for cells in hashes)
        apart = np.select([is_first, is_second], [0, 1], 2)
        return np.where(hashes[0] == hashes[1], np.where(is_first, 3, 4), apart)
