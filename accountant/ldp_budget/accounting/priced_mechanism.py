"""Priced mechanisms: a mechanism or a collection with the guarantee and the costs of one report."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from .._files import canonical_json
from .._later import Later
from .._tags import ANY, part_of, with_tags
from .._validation import shown, shown_with_type
from ..errors import InvalidParameter
from ..guarantees import Guarantee
from ..guarantees.costs import measured
from ..guarantees.guarantees import is_memoised
from ..registry.collections import Collection
from ..sdk.mechanism import Mechanism

if TYPE_CHECKING:
    from ..guarantees.fixed_point import Costs
    from ..ledger import Transaction
    from ..registry import certification, third_party
else:  # only a policy that demands checks, and an object of another library, need these
    certification, third_party = (
        Later(__name__, "ldp_budget.registry", each) for each in ("certification", "third_party")
    )


_EXPECTED = "a mechanism with a name and a guarantee"


class PricedMechanism:
    """A mechanism as the ledger stores it: self-contained, with the cost of one report.

    For a collection, it is the collection's mechanism, with the name of the collection. Raises `InvalidParameter` for
    any other object, and for a mechanism without a guarantee.
    """

    def __init__(self, chosen: Mechanism | Collection, tags: tuple[str, ...] = ()) -> None:
        mechanism = mechanism_of(chosen)
        self.collection = chosen.name if isinstance(chosen, Collection) else ""
        self.guarantee: Guarantee = _guarantee_of(mechanism)
        self.fingerprint = mechanism.fingerprint
        self.mechanism = mechanism.name
        self.declared = canonical_json(mechanism.declared)
        self.promise = canonical_json(self.guarantee.to_json())
        self.cost = self.guarantee.costs()
        own = chosen.losses if isinstance(chosen, Collection) else {}
        if own.get(ANY) == self.guarantee:
            # Each scope counts all of it, also one that the tags of the call do not name.
            own = {ANY: self.guarantee} if tags else {}
        self.parts = {
            tag: part for tag, part in own.items() if tag not in tags and (tag == ANY or part != self.guarantee)
        }
        """The guarantee of a report about single tags, where it is another one; and that of `ANY`."""
        said = {tag: canonical_json(self.parts[tag].to_json()) if tag in self.parts else "" for tag in {*own, *tags}}
        self.tags = tuple(sorted(said))
        self.stored_as = self.fingerprint, self.promise, with_tags(self.collection, said)
        """What identifies the stored priced mechanism."""
        self._chosen = mechanism
        self._measured: dict[tuple[str, str | None], Costs] = {}
        self._proved: bool | None = None

    @property
    def checked(self) -> str:
        """The way in which the mechanism's guarantee was checked, see `certificates`."""
        if self._chosen.components:
            return certification.checked_at(self._chosen)
        if self._proved is None:
            self._proved = certification.in_proved_range(self._chosen)
        return certification.level_of(type(self._chosen), self._proved)

    def cost_in(self, scope: str, measure: str | None) -> Costs:
        """Return the cost of one report in windows of a scope (empty: of none) with this measure; None: without one."""
        if measure is None and not self.parts:
            return self.cost
        key = scope if self.parts else "", measure
        if key not in self._measured:
            part = part_of(scope, self.tags, self.parts) or self.guarantee
            self._measured[key] = part.costs() if measure is None else measured(part, measure)
        return self._measured[key]

    def store(self, transaction: Transaction) -> int:
        """Store the priced mechanism if it is new, and return its number in the ledger."""
        return transaction.store_priced_mechanism(
            self.fingerprint, self.mechanism, self.declared, self.promise, self.cost, self.stored_as[2]
        )

    @property
    def identity(self) -> tuple[str, ...]:
        """The identity of a charge in a request: two collections with equal parameters are different."""
        about = self.stored_as[2]
        return (self.fingerprint, about) if about else (self.fingerprint,)


def priced_mechanism_of(asked: Mechanism | Collection | object, tags: tuple[str, ...] = ()) -> PricedMechanism:
    """Return the charge of a mechanism or a collection; it is computed once for each, because neither ever changes.

    An object of another library can change, so its charge is computed each time. Memoized reports of one value must
    all count in the same scopes, as the cost of each depends on those before. So a charge cannot choose their tags.
    """
    chosen = chosen_of(asked)
    charge = _charge_of(_Same(chosen), tags)
    if tags and is_memoised(charge.guarantee):
        expected = f"left out, because reports of {charge.mechanism} memoize, and count under every scope"
        raise InvalidParameter("tags", expected, ", ".join(tags))
    return charge


class _Same:
    """A mechanism or a collection as a cache key that equals no other object."""

    __slots__ = ("chosen",)

    def __init__(self, chosen: Mechanism | Collection) -> None:
        self.chosen = chosen

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.chosen is other.chosen

    def __hash__(self) -> int:
        return id(self.chosen)


@lru_cache(maxsize=1024)
def _charge_of(same: _Same, tags: tuple[str, ...]) -> PricedMechanism:
    chosen = same.chosen
    mechanism = mechanism_of(chosen)
    kind: object = type(mechanism)
    return _charge_with(chosen, kind, mechanism.fingerprint, _guarantee_of(mechanism), tags)


@lru_cache(maxsize=1024)
def _charge_with(
    chosen: Mechanism | Collection, kind: object, fingerprint: str, guarantee: Guarantee, tags: tuple[str, ...]
) -> PricedMechanism:
    """Return a charge; equal mechanisms share it only if they have the same class and the same guarantee.

    A plugin can define equality. Its mechanisms must not pass for checked mechanisms that way.
    """
    return PricedMechanism(chosen, tags)


def _guarantee_of(mechanism: Mechanism) -> Guarantee:
    """Return the guarantee of a mechanism. Raises `InvalidParameter` for a mechanism without one."""
    try:
        promised: object = mechanism.guarantee
    except NotImplementedError:
        promised = None
    if not isinstance(promised, Guarantee):
        raise InvalidParameter("mechanism", _EXPECTED, f"{shown(mechanism)}, whose guarantee is {shown(promised)}")
    return promised


def mechanism_of(asked: Mechanism | Collection | object) -> Mechanism:
    """Return the mechanism that is charged for `asked`. Raises the same errors as `chosen_of`."""
    chosen = chosen_of(asked)
    return chosen.mechanism if isinstance(chosen, Collection) else chosen


def chosen_of(asked: Mechanism | Collection | object) -> Mechanism | Collection:
    """Return the argument itself, or the mechanism that represents an object of another library.

    Raises `InvalidParameter`. Raises `NotSupported` for an object without a guarantee for two values of one user.
    """
    if isinstance(asked, Collection):
        return asked
    if isinstance(asked, Mechanism):
        if isinstance(getattr(asked, "name", None), str):
            return asked
        raise InvalidParameter("mechanism", _EXPECTED, f"{shown(asked)}, which has no name")
    if isinstance(asked, type) and issubclass(asked, Mechanism):
        needed = ", ".join(name for name, field in asked.fields.items() if not field.derived)
        found = f"the class {asked.__name__}"
        hint = f"Give it its parameters, such as {asked.__name__}({needed.split(', ')[0]}=…): {needed}."
    elif isinstance(asked, str):
        found = shown_with_type(asked)
        hint = f"A name alone has no parameters. Use ldp_budget.mechanism({shown(asked)}) with its parameters."
    else:
        found, hint = third_party.what_is(asked), ""
        foreign = None if asked is None else third_party.charged_for(asked)
        if foreign is not None:
            return foreign
    raise InvalidParameter("mechanism", third_party.EXPECTED, found, hint=hint)
