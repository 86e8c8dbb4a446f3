"""A declared guarantee: a mechanism without client or server, which charges a guarantee taken on trust.

Use it if another program draws the reports. You declare the cost of one report: ε with δ, ρ of zero-concentrated
privacy, or any guarantee of the closed vocabulary. Nothing about it can be verified, so it never counts as checked.
The
journal names it `declared` and keeps the line that says where it comes from.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, NoReturn, overload

from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import Approximate, Guarantee, Pure, Unbounded, ZeroConcentrated, from_json
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.parameters import Field, Text, optional_real, real

_MOST_EPSILON = 10**6
_MOST_JSON = 20_000
_FRACTION = re.compile(r"\d{1,4000}(/\d{1,4000})?")
_STATED_APART = {"pure": "epsilon", "approximate": "epsilon and delta", "zcdp": "rho"}


class _Source(Text):
    """The source line of a declared guarantee; on the class, the default source of its kind."""

    @overload
    def __get__(self, instance: None, owner: type) -> Any: ...
    @overload
    def __get__(self, instance: object, owner: type) -> str: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        return "the caller who declares it" if instance is None else super().__get__(instance, owner)


class _Promise(Field[Guarantee]):
    """A guarantee of the closed vocabulary, or its JSON."""

    @property
    def expected(self) -> str:
        return "the JSON of a guarantee that neither epsilon, with or without delta, nor rho states"

    def parse(self, value: Any) -> Guarantee:
        guarantee = value if isinstance(value, Guarantee) else self._read(value)
        if guarantee.kind in _STATED_APART:
            raise InvalidParameter(
                self.name,
                self.expected,
                f"a guarantee of kind {guarantee.kind}",
                hint=f"State it with {_STATED_APART[guarantee.kind]}.",
            )
        return guarantee

    def _read(self, value: Any) -> Guarantee:
        try:
            text = value if isinstance(value, str) else json.dumps(value)
            if len(text) > _MOST_JSON:
                raise ValueError(f"{len(text)} characters; at most {_MOST_JSON}")
            data = json.loads(text)
            _check_fractions(data)
            return from_json(data)
        except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
            why = " ".join(str(error).split())[:200].rstrip(".")
            raise InvalidParameter(self.name, self.expected, f"{value!r:.80}", hint=f"{why}.") from None

    def to_json(self, value: Guarantee) -> Any:
        return value.to_json()


def _check_fractions(data: Any) -> None:
    """Refuse a fraction that would take too long to write out. Raises ValueError."""
    while isinstance(data, dict):
        pairs = data.get("outcomes", ())
        for entry in (entry for pair in pairs for entry in pair):
            if not (isinstance(entry, str) and _FRACTION.fullmatch(entry)):
                raise ValueError(f"outcomes must be strings with fractions, such as 1/3: got {entry!r:.40}")
        data = data.get("of")


class Declared(Mechanism):
    """A guarantee of another program for one report, taken on trust; charges only."""

    name = "declared"
    summary = "a promise made elsewhere, taken at its word: charges only"
    checkable = False
    targets = ("epsilon", "rho", "promise")

    epsilon = optional_real("privacy loss of one report, as promised elsewhere", at_least=0, at_most=_MOST_EPSILON)
    delta = real("probability of a larger loss, as promised elsewhere", at_least=0, below=1, default=0)
    rho = optional_real("ρ of one report, under zero-concentrated privacy", at_least=0, at_most=_MOST_EPSILON)
    promise = _Promise("any other guarantee, as JSON", optional=True)
    source = _Source("who promises this, of what, and on what condition: one line for the journal")

    examples = (
        {"epsilon": "0.3", "delta": "1e-7", "source": "a worked example"},
        {"rho": "0.1", "source": "a worked example"},
    )

    @classmethod
    def of(cls, guarantee: Guarantee, source: str) -> Declared:
        """Return the mechanism that charges a guarantee, in one canonical form for each guarantee."""
        if isinstance(guarantee, Pure):
            return cls(epsilon=guarantee.bound, source=source)
        if isinstance(guarantee, Approximate) and guarantee.slack < 1:
            return cls(epsilon=guarantee.bound, delta=guarantee.slack, source=source)
        if isinstance(guarantee, ZeroConcentrated):
            return cls(rho=guarantee.rho, source=source)
        # With a δ of 1 nothing is guaranteed.
        return cls(promise=Unbounded() if isinstance(guarantee, Approximate) else guarantee, source=source)

    def check(self) -> None:
        stated = [name for name in ("epsilon", "rho", "promise") if getattr(self, name) is not None]
        if not stated:
            raise InvalidParameter("epsilon", self.fields["epsilon"].expected, hint="Or give rho, or promise.")
        if len(stated) > 1:
            raise InvalidParameter(stated[1], f"left out if {stated[0]} is given", self.declared[stated[1]])
        if self.delta and stated != ["epsilon"]:
            raise InvalidParameter("delta", f"left out if {stated[0]} is given", self.delta)

    @property
    def guarantee(self) -> Guarantee:
        if self.promise is not None:
            return self.promise
        if self.rho is not None:
            return ZeroConcentrated(self.rho)
        epsilon: Decimal = self.epsilon if self.epsilon is not None else Decimal(0)
        return Approximate(epsilon, self.delta) if self.delta else Pure(epsilon)

    @property
    def notes(self) -> tuple[str, ...]:
        return ("This guarantee was stated by the caller and was not checked here.",)

    # -- neither client nor server ----------------------------------------------------------------------

    def _draws_nothing(self) -> NoReturn:
        raise NotSupported(
            "mechanism declared can only be charged, because its source draws the reports and estimates from them: "
            f"{self.source!r}"
        )

    def client_program(self) -> Any:
        self._draws_nothing()

    def aggregate(self, reports: Any) -> Any:
        self._draws_nothing()

    def estimate(self, reports: Any) -> Any:
        self._draws_nothing()
