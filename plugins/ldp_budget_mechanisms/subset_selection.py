"""Subset selection (Ye and Barg 2018): a report is a set of ω of the N answers.

It is what Algorithm 2 of Kang, Lee and Hong 2009 really does: random substitution with draws that are distinct. The set
holds the true answer with probability π₁ = ω·e^ε/(ω·e^ε+N-ω) and is otherwise uniform.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ldp_budget.sdk.parameters import choice, integer

from ._citations import RANDOM_SUBSTITUTION
from ._substitution_loss import best_size

if TYPE_CHECKING:
    Steps = tuple[tuple[str, Any], ...]
from .generalized_randomized_response import MOST_DRAWS, RandomSubstitution


class SubsetSelection(RandomSubstitution):
    """Subset selection: distinct draws, by default as many as give the least variance, about N/(e^ε+1)."""

    name = "subset-selection"
    aliases = ("subset",)
    summary = "a set of answers that holds the true one with probability π₁"
    source = (
        "Ye and Barg, IEEE Transactions on Information Theory 64 (2018); "
        f"{RANDOM_SUBSTITUTION}, Algorithm 2, corrected"
    )

    draws = integer(
        "answers in one report; if left out, the number of least variance for a set, or 1 where gamma is given",
        at_least=1,
        at_most=MOST_DRAWS,
        optional=True,
    )
    sampling = choice("draws are distinct", "distinct", default="distinct")

    @functools.cached_property
    def _draws(self) -> int:
        if "draws" in self.declared:
            return self.draws
        if self._target is None:
            return 1
        return best_size(self._target[0], self.domain_size, MOST_DRAWS)
