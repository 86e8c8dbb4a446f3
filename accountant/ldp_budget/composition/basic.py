"""Rule `basic`: the ε add up and the δ add up (Dwork, McSherry, Nissim, Smith 2006; Rogers et al. 2016, filters)."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from ..guarantees.amounts import DELTA_DIGITS, EPSILON_DIGITS, Costs, float_down, float_up, to_capacity
from .rules import Filter, Total, added, nothing_aside

if TYPE_CHECKING:
    from .charges import Charges

_REFUSAL = "rule basic cannot add a guarantee of kind {} that has no (epsilon, delta) of its own"


class Basic(Filter):
    """Σε and Σδ. The δ of the total is the sum; where that is more than the δ asked for, ε is infinite."""

    name = "basic"

    def total(self, charges: Charges, delta: Decimal) -> Total:
        epsilon = added(charges, lambda guarantee: guarantee.amounts().epsilon, _REFUSAL)
        spent = added(charges, lambda guarantee: guarantee.amounts().delta, _REFUSAL)
        if spent > delta:
            return Total(math.inf, math.inf, spent)
        return Total(max(0.0, float_down(epsilon)), float_up(epsilon), spent)

    def capacity(self, epsilon: Decimal, delta: Decimal, aside: Decimal = Decimal(0)) -> Costs:
        nothing_aside(self.name, aside)
        return Costs(to_capacity(epsilon, EPSILON_DIGITS), to_capacity(delta, DELTA_DIGITS), None, None)
