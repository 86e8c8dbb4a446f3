"""Heavy hitters: frequent words without a list of candidates, by prefix extension (PEM, Wang, Li and Jha 2019).

Each user reports once, on a prefix of the word. How long it is, is drawn publicly: two bytes, four bytes, …, the
whole word of L bytes. These are the levels. The report is the level, one of K public hash
functions, and the hash of the prefix among g = 2^r cells, kept or changed by generalized randomized response at ε
(local hashing, Wang et al. 2017):

    P[the report is the hash] = e^ε/(e^ε+g-1),      P[it is another given cell] = 1/(e^ε+g-1).

The level and the function are drawn without the word. Given both, two words are two cells or one. So the loss is that
of generalized randomized response over g cells: ±ε with probability at most τ = (e^ε+1)/(e^ε+g-1), and 0 otherwise.
The best number of cells is e^ε + 1. The best power of two costs at most 8 % of variance, and 4 % from ε = 2 on.

The server extends the most frequent prefixes of a level by all next two bytes, level by level: see
`_prefix_reports`. The users of the last level give the counts. For N users of whom a share s reported on the last
level, with C the unbiased count of its users, a word's count is C/s, with the variance Var(C)/s² + count·(1-s)/s.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import Guarantee
from ldp_budget.guarantees.fixed_point import float_below
from ldp_budget.sampling import ONE
from ldp_budget.sdk.domain import Words, check_users
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.parameters import integer, optional_integer, real

from ._substitution_loss import keep_threshold, one_draw

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.channels import Comparison
    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import CountEstimate, SupportLaw

    from ._prefix_reports import PrefixFamily
    from ._sketch_reports import SketchAggregate

    Cells = NDArray[np.int64]

_MOST_BITS = 8
_MOST_COUNTERS = 2**26
_USUAL = 2**16
_WEIGHT, _LAST = 5, 6
"""Weights of a level and of the last one, which gives the counts."""
_TOP = 16
_MOST_FOUND = 256
_LEAST_BEAM, _BEAM = 128, 4
_TRIED = 8
_FEW_PLACES = 16
"""As for count mean sketches: with fewer, standard errors are bounds."""


class HeavyHitters(Mechanism):
    """Prefixes of a word by local hashing; `estimate` finds the frequent words."""

    name = "heavy-hitters"
    summary = "a hash of a prefix of a word, randomized; finds the most frequent words without a list of them"
    source = "Wang, Li and Jha, Locally Differentially Private Heavy Hitter Identification, IEEE TDSC 18(2), 2021"
    finds_answers = True
    public_seed = "seed"
    examples = ({"epsilon": 1, "length": 1, "hashes": 4}, {"epsilon": 2, "length": 5, "hashes": 32})

    epsilon = real("privacy loss of one report", above=0, at_most=10**6)
    length = integer("most bytes of a word", at_least=1, at_most=64)
    hashes = optional_integer(
        "public hash functions K; 65536 if left out, fewer for long words", at_least=1, at_most=2**20
    )
    seed = integer(
        "draws the public hash functions; a collection draws its own", at_least=0, at_most=2**63 - 1, default=0
    )

    def check(self) -> None:
        most = _MOST_COUNTERS // (self._levels * self._cells)
        if self._count > most:
            raise InvalidParameter("hashes", f"at most {most} for words of {self.length} bytes", self.hashes)
        if self._keep * self._cells <= ONE:
            expected = "a loss large enough to be drawn with 64-bit probabilities"
            raise InvalidParameter("epsilon", expected, self.epsilon)

    # -- parameters and guarantee -----------------------------------------------------------------------

    @property
    def _levels(self) -> int:
        """The prefixes of a word; a word of one byte is followed by a zero byte."""
        return -(-self.length // 2)

    @property
    def _sizes(self) -> list[int]:
        """A level adds less than this number to a prefix."""
        return [2**16] * (self._levels - 1) + [2**8 if self.length % 2 and self.length > 1 else 2**16]

    @property
    def _shifts(self) -> list[int]:
        """The bits of a word that come after its prefix."""
        return [8 * max(0, self.length - 2 * level - 2) for level in range(self._levels)]

    @functools.cached_property
    def _count(self) -> int:
        """The public hash functions in use."""
        if self.hashes is not None:
            return self.hashes
        return min(_USUAL, _MOST_COUNTERS // (self._levels * self._cells))

    @functools.cached_property
    def _bits(self) -> int:
        """r, with the least variance n(e^ε+g-1)²/((g-1)(e^ε-1)²) of the counts for g = 2^r cells."""
        odds = math.exp(min(float(self.epsilon), 50.0))
        return min(range(1, _MOST_BITS + 1), key=lambda bits: (odds + 2**bits - 1) ** 2 / (2**bits - 1))

    @property
    def _cells(self) -> int:
        return 1 << self._bits

    @functools.cached_property
    def _keep(self) -> int:
        """The probability that a cell is kept, in units of 2**-64, rounded down."""
        return keep_threshold(self.epsilon, self._cells)

    @property
    def _drawn(self) -> tuple[Fraction, Fraction]:
        """The probabilities of the own cell, and of another given one, exactly as drawn."""
        keep = Fraction(self._keep, ONE)
        return keep, (1 - keep) / (self._cells - 1)

    @property
    def _turns(self) -> list[int]:
        """The levels, each as often as its weight."""
        weights = [_WEIGHT] * (self._levels - 1) + [_LAST if self._levels > 1 else 1]
        return [level for level, weight in enumerate(weights) for _ in range(weight)]

    @property
    def guarantee(self) -> Guarantee:
        return one_draw(self.epsilon, self._cells)

    @property
    def parameters(self) -> dict[str, Any]:
        keep = float_below(Decimal(self._keep) / ONE)
        return {"levels": self._levels, "hashes": self._count, "cells": self._cells, "keep": keep}

    @property
    def domain(self) -> Words:
        return Words(self.length)

    @property
    def notes(self) -> tuple[str, ...]:
        share = self._turns.count(self._levels - 1) / len(self._turns)
        return (
            f"Counts come from the {100 * share:.3g} % of the users who report on whole words; the others help to find "
            "the words. Shorter words need fewer levels, and so fewer users.",
            "A word was chosen because its count is large, so counts are too large on average. The low end of an "
            "interval allows for the choice: a word whose low end is above 0 is no noise.",
        )

    def utility(self, users: int | None = None) -> dict[str, Any]:
        """Return the variance per user of the count of a rare word, and with `users` the standard error of its share."""
        stretch = len(self._turns) / self._turns.count(self._levels - 1)
        result = {"variance_per_user": stretch * float(self._law.at_zero[0])}
        if users is not None:
            check_users(users)
            result["std_error"] = math.sqrt(result["variance_per_user"] / users)
        return result

    # -- client -----------------------------------------------------------------------------------------

    @functools.cached_property
    def _family(self) -> PrefixFamily:
        from ._prefix_reports import PrefixFamily

        return PrefixFamily(self.seed, self._count, self._bits)

    def _prefixes(self, words: NDArray[Any], levels: Any) -> tuple[NDArray[Any], Cells]:
        """Return the prefix of each word at each level, as its parent and its child."""
        import numpy as np

        prefixes = (words << 8 if self.length == 1 else words) >> np.array(self._shifts)[levels]
        sizes = np.array(self._sizes)[levels]
        return prefixes // sizes, (prefixes % sizes).astype(np.int64)

    def client_program(self) -> Program:
        """Return the client program; reports are uint8 rows: level, function in three bytes, cell."""
        from ldp_budget.sdk.client_program import Program, answers, record, whole

        from ._prefix_reports import CHILDREN, parent_seed, row_seed

        word: Any = ["shl", "value", 8] if self.length == 1 else "value"
        rows = [
            (f"row{row}", ["polynomial", row_seed(self.seed, row), "function", 0, CHILDREN])
            for row in range(self._bits)
        ]
        bits = ["list", *(["parity", ["and", f"row{row}", "child"]] for row in range(self._bits))]
        steps: tuple[tuple[str, Any], ...] = (
            ("turn", ["below", len(self._turns)]),
            ("function", ["below", self._count]),
            ("kept", ["bit", whole(self._keep)]),
            ("others", ["below", self._cells - 1]),
            ("level", ["at", "levels", "turn"]),
            ("prefix", ["shr", word, ["at", "shifts", "level"]]),
            ("size", ["at", "sizes", "level"]),
            ("child", ["mod", "prefix", "size"]),
            ("parent", ["polynomial", parent_seed(self.seed), "function", ["div", "prefix", "size"], self._cells]),
            *rows,
            ("cell", ["mod", ["xor", "parent", ["join", bits]], self._cells]),
            ("shown", ["mod", ["add", "cell", ["where", "kept", 0, ["add", 1, "others"]]], self._cells]),
        )
        parts: list[list[Any]] = [
            ["uint", name, size, 1] for name, size in (("level", 1), ("function", 3), ("shown", 1))
        ]
        tables = {"levels": self._turns, "shifts": self._shifts, "sizes": self._sizes}
        return Program(answers(self.domain), steps, record(parts), tables)

    # -- verification -----------------------------------------------------------------------------------

    def critical_inputs(self) -> Sequence[int]:
        """Return the words of one byte that share a cell under the fewest functions at the first level."""
        words = [number << 8 * (self.length - 1) for number in range(1, 1 + _TRIED)]
        return max(combinations(words, 2), key=lambda pair: self._apart_at(0, *pair))

    @functools.lru_cache(maxsize=32)  # noqa: B019 - a few arrays of one mechanism
    def _cells_at(self, level: int, word: int) -> Cells:
        """Return the cell of a word's prefix under every function."""
        import numpy as np

        prefix = self._prefixes(np.array([word], object), level)
        return self._family.cells(np.arange(self._count), *prefix)

    def _apart_at(self, level: int, first: int, second: int) -> Fraction:
        """Return the share of the functions under which two words have different cells at a level."""
        import numpy as np

        apart = self._cells_at(level, first) != self._cells_at(level, second)
        return Fraction(int(np.count_nonzero(apart)), self._count)

    def compare(self, first: int, second: int) -> Comparison:
        from ._sketch_reports import compare_cells

        turns = self._turns
        apart = sum((self._apart_at(level, first, second) for level in turns), Fraction(0)) / len(turns)
        return compare_cells(*self._drawn, apart)

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        import numpy as np

        from ._sketch_reports import number_cells

        levels, functions, shown = self._read(reports)
        cells = (
            self._family.cells(functions, *self._prefixes(np.full(len(shown), word, object), levels))
            for word in (first, second)
        )
        return number_cells(shown, *cells)

    # -- server -----------------------------------------------------------------------------------------

    def _read(self, reports: Any) -> tuple[Cells, Cells, Cells]:
        """Return the level, the function and the cell of each report. Raises `NotSupported` for anything else."""
        from ._sketch_reports import read_record

        parts = [("level", 1, self._levels), ("hash function", 3, self._count), ("cell", 1, self._cells)]
        (levels, functions, cells), _ = read_record(reports, self.name, parts)
        return levels, functions, cells

    def check_reports(self, reports: Any) -> None:
        self._read(reports)

    def aggregate(self, reports: Any) -> SketchAggregate:
        """Count the reports of each level, function and cell. Raises `NotSupported` for anything but reports."""
        from ._sketch_reports import SketchAggregate

        levels, functions, cells = self._read(reports)
        shape = self._levels * self._count, self._cells
        return SketchAggregate.of(self.fingerprint, levels * self._count + functions, cells, shape)

    def estimate(self, reports: Any, candidates: Any = None, *, top: int = _TOP) -> CountEstimate:
        """Return the counts of the words that a search finds, at most `top`, largest first; or those of `candidates`.

        The search keeps the best 4·`top` prefixes of a level, and at least 128. The estimate names its words.
        """
        import numpy as np

        from ._prefix_reports import FoundLaw, FoundWords, frequent

        total = self.total(reports)
        tables = total.cells.reshape(self._levels, self._count, self._cells)
        if candidates is not None:
            return self._counted(total.reports, tables[-1], self.domain.check(candidates))
        if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= _MOST_FOUND:
            raise InvalidParameter("top", f"a whole number from 1 to {_MOST_FOUND}", top)
        beam = max(_LEAST_BEAM, _BEAM * top)
        found = frequent(self._family, tables, self._sizes, self._law, beam, top)
        words = np.array([number >> 8 if self.length == 1 else number for number in found], object)
        plain = self._counted(total.reports, tables[-1], words)
        order = np.argsort(-plain.counts, kind="stable")
        names = tuple(self.domain.word_of(words[place]) for place in order)
        law = FoundLaw(self._places, self._sizes[-1] * (beam if self._levels > 1 else 1))
        return FoundWords(plain.reports, plain.counts[order], plain.std_errors[order], law=law, answers=names)

    @property
    def _places(self) -> int:
        return self._count * (self._cells - 1)

    @functools.cached_property
    def _law(self) -> SupportLaw:
        from ldp_budget.sdk.estimates import SupportLaw

        own, other = self._drawn
        return SupportLaw.of([(own, other + (own - other) / self._cells)], 1)

    def _counted(self, reports: int, table: Cells, words: NDArray[Any]) -> CountEstimate:
        """Return the counts of words of all users, from their support among the reports of the last level."""
        import numpy as np

        from ldp_budget.sdk.estimates import CountEstimate, StudentLaw

        from ._sketch_reports import with_errors

        users = int(table.sum())
        if not users:
            raise NotSupported("there are no reports on whole words to count from")
        support = self._family.support(table, *self._prefixes(words, self._levels - 1))
        law, (own, other) = self._law, self._drawn
        # The square of the table around its rows' means, less that of the noise, is that of the pairs who share a word.
        energy = float(((table - table.mean(axis=1, keepdims=True)) ** 2).sum())
        share, stretch = 1 - 1 / self._cells, reports / users
        pairs = (energy - users * share) * self._count / (float((own - other) ** 2) * share)
        few = self._places < _FEW_PLACES
        plain = with_errors(law.counts(support, users), users, law, pairs, self._places, few=few)
        counts = stretch * plain.counts
        errors = np.sqrt((stretch * plain.std_errors) ** 2 + (stretch - 1) * np.maximum(counts, 0))
        return CountEstimate(reports, counts, errors, law=StudentLaw(max(1, self._places - 1)))
