"""The law of a client program: the exact distribution of its report, derived from the steps.

`law_of` tries the rules in turn. Each rule is a module whose docstring is its statement and a sketch of its proof.
What no rule knows is `Unknown`: such a program is not proved. At small sizes the list of all outcomes is held against
the rule, and a difference is refused.
"""

from __future__ import annotations

from ldp_budget.sdk.report_law import Law, Unknown, Worst

from .all_outcomes import AllOutcomes
from .asked_items import AskedItems
from .corners import Numbers
from .rules import law_of
from .ticked_sets import AskedOptions, TickedSets

__all__ = ["AllOutcomes", "AskedItems", "AskedOptions", "Law", "Numbers", "TickedSets", "Unknown", "Worst", "law_of"]
