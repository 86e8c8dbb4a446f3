"""`Mechanism`, the base every plugin builds on.

A mechanism is a frozen value. What was declared goes in; `parameters`, `guarantee`, `utility` and `notes` come out,
and it randomizes (the client's half) and estimates (the server's). Its fields describe it once, see `fields`.
"""

from __future__ import annotations

import functools
import hashlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .._json import canonical_json
from ..errors import InvalidParameter, NotSupported
from .fields import Field
from .promised import promised_only

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..guarantees import Guarantee
    from ..randomness.streams import RandomSource
    from .channels import Comparison
    from .domain import Domain
    from .estimates import Aggregate, Estimate


class Mechanism:
    """A local randomizer with declared parameters and a promise.

    A subclass sets `name`, `summary` and `source`, declares its fields, and gives at least `guarantee`; with that
    alone it can be calibrated, planned and charged. With `randomize`, `aggregate` and `estimate` it also collects.

    `calibrate(**target)` makes one from a target; calling the class also accepts parameters that stand in a
    target's place, such as `gaussian(sigma=10)`. Two mechanisms are equal when what was declared is equal.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    summary: ClassVar[str] = ""
    source: ClassVar[str] = ""
    fields: ClassVar[Mapping[str, Field[Any]]] = MappingProxyType({})
    targets: ClassVar[tuple[str, ...]] = ("epsilon",)
    """The fields that state how much privacy is lost; `plan` leaves them out and finds epsilon instead."""
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    """Parameters that the checks build it with; without them `contract.examples_of` finds some by trying."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "guarantee" in vars(cls):
            promised_only(cls)
        fields: dict[str, Field[Any]] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Field):
                    fields[name] = value
                else:  # what is put in the place of an inherited field is declared no more
                    fields.pop(name, None)
        cls.fields = MappingProxyType(fields)

    def __init__(self, **declared: Any) -> None:
        values = {name: field.default for name, field in self.fields.items() if field.default is not None}
        for name, value in declared.items():
            if name not in self.fields:
                raise InvalidParameter(name, f"one of {', '.join(self.fields)} for {self.name}", name)
            if value is not None:
                values[name] = self.fields[name].parse(value)
        for name, field in self.fields.items():
            if field.required and name not in values:
                raise InvalidParameter(name, field.expected)
        self.__dict__["_values"] = values
        self.check()

    @classmethod
    def calibrate(cls, **target: Any) -> Self:
        """The mechanism whose parameters meet `target`. Raises `InvalidParameter`."""
        for name, value in target.items():
            if value is not None and name in cls.fields and cls.fields[name].derived:
                raise InvalidParameter(name, f"a target; build {cls.name}({name}=...) directly instead", value)
        return cls(**target)

    @classmethod
    def _for_ranking(cls, **target: Any) -> Self:
        """Calibrated to ε and to what else of `target` it has a field for. Raises `NotSupported` without an ε."""
        if "epsilon" not in cls.fields:
            raise NotSupported(f"{cls.name} is not calibrated from ε, so it cannot be ranked at one")
        return cls.calibrate(**{name: value for name, value in target.items() if name in cls.fields})

    def check(self) -> None:
        """Raise `InvalidParameter` where the declared values do not go together."""

    # -- what was declared ------------------------------------------------------------------------------

    @property
    def declared(self) -> dict[str, Any]:
        """Everything declared, defaults included, in canonical JSON form."""
        values: dict[str, Any] = self.__dict__["_values"]
        return {name: self.fields[name].to_json(values[name]) for name in sorted(values)}

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the canonical JSON of the name and what was declared; never over a computed float."""
        text = canonical_json({"mechanism": self.name, "declared": self.declared})
        return hashlib.sha256(text.encode()).hexdigest()

    def replace(self, **changes: Any) -> Self:
        """The same mechanism with some declared values changed."""
        return type(self)(**{**self.__dict__["_values"], **changes})

    def at_epsilon(self, epsilon: Any) -> Self:
        """The same mechanism calibrated to another ε in place of its target."""
        kept = {name: value for name, value in self.__dict__["_values"].items() if name not in self.targets}
        return self.calibrate(**{name: kept[name] for name in kept if not self.fields[name].derived}, epsilon=epsilon)

    # -- what follows from it ---------------------------------------------------------------------------

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The calibrated parameters, as plain numbers on the safe side of the target."""
        return {}

    @property
    def guarantee(self) -> Guarantee:
        """The finest promise that can be proved for one report."""
        raise NotImplementedError(f"{type(self).__name__} must define its guarantee")

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences a user should read, such as where the build departs from a printed formula."""
        return ()

    def utility(self, users: int | None = None) -> dict[str, Any]:
        """Predicted error; with `users`, of an estimate from that many reports."""
        return {}

    def describe(self, users: int | None = None) -> dict[str, Any]:
        """What `calibrate --json` prints."""
        return {
            "mechanism": self.name,
            "parameters": dict(self.parameters),
            "guarantee": self.guarantee.describe(),
            "utility": self.utility(users),
            "notes": list(self.notes),
            "source": self.source,
        }

    # -- client and server ------------------------------------------------------------------------------

    @property
    def domain(self) -> Domain | None:
        """What `randomize` asks of a user, one of several answers or a number; None where there is no client."""
        return None

    def read_values(self, texts: Sequence[str]) -> Any:
        """Users' values as text, turned into the array that `randomize` takes. Raises `OutsideDomain`."""
        if self.domain is None:
            raise NotSupported(f"{self.name} has no client that reads text")
        return self.domain.read(texts)

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> Any:
        """Randomize each value of a 1-d array into a report, an array whose first axis is the users.

        `rng`: None for cryptographic randomness; a seed or a seeded stream in tests only. `secrets`: for
        mechanisms that memoise. Raises `OutsideDomain` if any value is not in the declared domain.
        """
        raise NotSupported(f"{self.name} has no client")

    def memoised(self, values: Any, secrets: Any) -> Any:
        """Which memoised draw a user reports for each value, an array (n,); equal ones share one curve and label."""
        return values

    def labels(self, values: Any, secrets: Any) -> list[str]:
        """For `spend(label=...)`: which memoised draw each report repeats, so that none but its owner can tell.

        Labels of two mechanisms have nothing in common, whatever was drawn. `secrets`: as in `randomize`.
        """
        from ..randomness.memoisation import labels_of, secrets_for_each

        own = secrets_for_each(secrets, len(values))
        return labels_of(self.memoised(values, own), own, self.fingerprint)

    def aggregate(self, reports: Any) -> Aggregate:
        """The sufficient statistic of reports; aggregates of the same mechanism merge exactly."""
        raise NotSupported(f"{self.name} has no server side")

    def estimate(self, reports: Any) -> Estimate:
        """An unbiased estimate with standard errors, from reports or from an aggregate of them."""
        raise NotSupported(f"{self.name} has no server side")

    @property
    def repeats(self) -> bool:
        """Whether two reports of one user may hold the same memoised draw, and are no independent evidence.

        Override it where reports are memoised and the guarantee is another than `Memoised`.
        """
        from ..guarantees import Memoised

        return isinstance(self.guarantee, Memoised)

    @property
    def memoised_values(self) -> int | None:
        """How many memoised draws one secret can ever have, and so labels; None where there is no bound, or no draws.

        By default that is the `values` of the guarantee. Override it where all draws lose less together, or where the
        guarantee names no number.
        """
        from ..guarantees import Memoised

        return self.guarantee.values if isinstance(self.guarantee, Memoised) else None

    # -- what can be checked ----------------------------------------------------------------------------

    def critical_inputs(self) -> Sequence[Any]:
        """Inputs among which the worst pair is, for the checks to compare; values as `randomize` takes them."""
        raise NotSupported(f"{self.name} names no inputs to compare")

    def compare(self, first: Any, second: Any) -> Comparison:
        """The exact odds, as they are drawn, of all that one report can say of one input against another.

        Raises `NotSupported` where that has no finite description.
        """
        raise NotSupported(f"{self.name} describes no channel")

    def compare_repeated(self, first: Any, second: Any, reports: int | None) -> Comparison:
        """The same for `reports` reports of one memoised value; None for as many as one likes."""
        raise NotSupported(f"{self.name} describes no repeated reports")

    def outcomes(self, reports: Any, first: Any, second: Any) -> Any:
        """Which outcome of ``compare(first, second)`` each report is, integers (n,) in the order of its masses."""
        raise NotSupported(f"{self.name} describes no channel")

    def total(self, reports: Any) -> Any:
        """`reports`, or an aggregate of them, as an aggregate of this mechanism that holds something."""
        total = reports if hasattr(reports, "merge") else self.aggregate(reports)
        if total.fingerprint != self.fingerprint:
            raise NotSupported(f"these reports were made by another mechanism than {self!r}")
        if total.reports == 0:
            raise NotSupported("there are no reports to estimate from")
        return total

    # -- a value ----------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set; use replace()")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.declared == other.declared

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.declared.items())
        return f"{type(self).__name__}({values})"

    def __getstate__(self) -> dict[str, Any]:
        return {"_values": self.__dict__["_values"]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
