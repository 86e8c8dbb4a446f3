"""What a rule of composition is, and which of them may be a limit's."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ..errors import NotSupported
from ..guarantees import ANY_INPUTS
from ..guarantees.amounts import LARGEST, UP

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..guarantees import Guarantee
    from ..guarantees.amounts import Costs
    from .charges import Charges


@dataclass(frozen=True)
class Bound:
    """A certified total: the charges together are (`epsilon`, `delta`)-LDP.

    `epsilon` is rounded up, and infinite where nothing can be promised. `lower` is a certified lower bound of the
    best ε the rule could have given at this `delta`. `relation` says for which neighbours it holds, `order` at which
    order the divergences were added up, under rule `renyi`.
    """

    epsilon: float
    lower: float
    delta: float
    relation: str = ANY_INPUTS
    order: Decimal | None = None

    def __repr__(self) -> str:
        more = ("" if self.order is None else f", order {self.order}") + (
            "" if self.relation == ANY_INPUTS else f", for {self.relation}"
        )
        return f"<Bound: ε = {self.epsilon!r} at δ = {self.delta!r}, and no rule's is below {self.lower!r}{more}>"


class Total(NamedTuple):
    """What a rule makes of a list of charges: ε between two certified doubles, at δ, and the order of `renyi`."""

    lower: float
    upper: float
    delta: Decimal
    order: Decimal | None = None


class Rule:
    """A way to add up guarantees. Only a `Filter` may be a limit's."""

    name: ClassVar[str]
    is_filter: ClassVar[bool] = False

    def total(self, charges: Charges, delta: Decimal) -> Total:
        """The total of `charges` at `delta` in [0, 1). Raises `NotSupported` where the rule does not apply."""
        raise NotImplementedError


class Filter(Rule):
    """An additive rule: each next mechanism may be chosen after seeing the outputs of those before it.

    Its totals are sums of one or two amounts of each charge, so a limit is a capacity for these sums.
    """

    is_filter = True

    def capacity(self, epsilon: Decimal, delta: Decimal, aside: Decimal = Decimal(0)) -> Costs:
        """The largest sums, in integer units, that stay within (ε, δ); None for amounts the rule does not add.

        `aside` is the part of δ that zcdp and renyi set aside for reports with a δ of their own.
        """
        raise NotImplementedError


def added(charges: Charges, amount: Callable[[Guarantee], Decimal | None], refusal: str) -> Decimal:
    """The sum of one amount over all reports, rounded up. Raises `NotSupported` where a guarantee has none."""
    total = UP.create_decimal(0)
    for guarantee, count in charges:
        each = amount(guarantee)
        if each is None:
            raise NotSupported(refusal.format(guarantee.kind))
        total = UP.add(total, UP.multiply(each, count))
    return total


def needs_delta(rule: str, delta: Decimal) -> None:
    """Raise `NotSupported` at δ = 0, where the conversion of the zcdp and gdp rules to (ε, δ) is infinite."""
    if delta <= 0:
        raise NotSupported(f"rule {rule} needs delta > 0: the conversion to (epsilon, delta) takes some")


def nothing_aside(rule: str, aside: Decimal) -> None:
    """Raise `NotSupported` where a part of δ is to be set aside by a rule that cannot."""
    if aside:
        raise NotSupported(f"rule {rule} sets no delta aside: only zcdp and renyi do")


def largest_units(holds: Callable[[int], bool]) -> int:
    """The largest number of units up to `LARGEST` for which `holds` is true, given that it is for zero."""
    low, high = 0, 1
    while high < LARGEST and holds(high):
        low, high = high, min(2 * high, LARGEST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
