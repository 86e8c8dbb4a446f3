"""`Mechanism`, the base every plugin builds on.

A mechanism is a frozen value. What was declared goes in; `parameters`, `guarantee`, `utility` and `notes` come out,
and it randomizes (the client's half) and estimates (the server's). Its fields describe it once, see `fields`.

A mechanism's `guarantee` is one of the closed vocabulary, or there is a sentence that says what it is instead.

Everything that prices, composes or checks takes it for granted; so the property that an author writes is made to hold
what it returns against that, where the class is defined.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .._files import canonical_json
from .._validation import shown
from ..errors import InvalidParameter, NotSupported, PluginError
from ..guarantees.guarantees import Guarantee
from .parameters import Field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..guarantees import Guarantee
    from ..sampling.rng import RandomSource
    from .channels import Comparison
    from .client_program import Program
    from .domain import Domain
    from .estimates import Aggregate, Estimate


EXPECTED = "expected one of the promises of ldp_budget.guarantees, such as Pure(self.epsilon)"


def promised_only(cls: type) -> None:
    """Have the `guarantee` that `cls` defines raise `PluginError` where it is anything but a `Guarantee`."""
    own = vars(cls)["guarantee"]
    if isinstance(own, property) and own.fget is not None:
        cls.guarantee = property(_held(own.fget), doc=own.__doc__)  # type: ignore[attr-defined]
    elif isinstance(own, functools.cached_property):
        held = functools.cached_property(_held(own.func))
        held.__set_name__(cls, "guarantee")
        cls.guarantee = held  # type: ignore[attr-defined]


def guarantee_error(cls: type) -> str:
    """Why the `guarantee` of a class can be none, whatever its parameters are; "" where it can."""
    own = inspect.getattr_static(cls, "guarantee")
    if inspect.isfunction(own):
        return f"{cls.__qualname__}.guarantee is a method; put @property above it"
    if isinstance(own, Guarantee) or (hasattr(own, "__get__") and not isinstance(own, type)):
        return ""
    return f"{cls.__qualname__}.guarantee is {_what(own)}; {EXPECTED}, from a property"


def _held(promise: Callable[[Any], Any]) -> Callable[[Any], Guarantee]:
    @functools.wraps(promise)
    def guarantee(self: Any) -> Guarantee:
        found = promise(self)
        if isinstance(found, Guarantee):
            return found
        name = type(self).__qualname__
        raise PluginError(getattr(self, "name", name), f"{name}.guarantee is {_what(found)}; {EXPECTED}")

    return guarantee


def _what(found: object) -> str:
    if isinstance(found, type):
        return f"the class {found.__name__}"
    if found is None:
        return "None, as of a property that returns nothing"
    return f"the {type(found).__name__} {found!r}"


_LONGEST = 100
"""Characters of a declared value that a mechanism prints: a matrix may have thousands."""


class Mechanism:
    """A local randomizer with declared parameters and a promise.

    A subclass sets `name`, `summary` and `source`, declares its fields, and gives at least `guarantee`; with that
    alone it can be calibrated, planned and charged. With `randomize`, `aggregate` and `estimate` it also collects.

    `calibrate(**target)` makes one from a target; calling the class also accepts parameters that stand in a
    target's place, such as `gaussian(sigma=10)`. Two mechanisms are equal when what was declared is equal.

    Parameters:
        declared: the fields, by name; numbers may be given as text.

    Raises:
        InvalidParameter: a field is missing, unknown, of another kind or out of its range, or one does not go with
            another.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    summary: ClassVar[str] = ""
    source: ClassVar[str] = ""
    fields: ClassVar[Mapping[str, Field[Any]]] = MappingProxyType({})
    targets: ClassVar[tuple[str, ...]] = ("epsilon",)
    """The fields that state how much privacy is lost; `plan` leaves them out and finds epsilon instead."""
    checkable: ClassVar[bool] = True
    """Whether anything here could find its promise wrong. One that is taken at its word is never called checked."""
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

    def __init__(self, /, **declared: Any) -> None:
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
    def calibrate(cls, /, **target: Any) -> Self:
        """The mechanism whose parameters meet a target.

        Parameters:
            target: the fields, by name, but for those that stand in a target's place.

        Raises:
            InvalidParameter: as for the class, and for a field that is no target.
        """
        for name, value in target.items():
            if value is not None and name in cls.fields and cls.fields[name].derived:
                raise InvalidParameter(name, f"a target; build {cls.name}({name}=...) directly instead", value)
        return cls(**target)

    @classmethod
    def _for_ranking(cls, /, **target: Any) -> Self:
        """Calibrated to ε and to what else of `target` it has a field for. Raises `NotSupported` without an ε."""
        if "epsilon" not in cls.fields:
            raise NotSupported(f"{cls.name} is not calibrated from ε, so it cannot be ranked at one")
        return cls.calibrate(**{name: value for name, value in target.items() if name in cls.fields})

    def check(self) -> None:
        """See that the declared values go together. Called when it is made; override it.

        Raises:
            InvalidParameter: they do not.
        """

    # -- what was declared ------------------------------------------------------------------------------

    @property
    def declared(self) -> dict[str, Any]:
        """Everything declared, defaults included, in canonical JSON form."""
        values: dict[str, Any] = self.__dict__["_values"]
        return {name: self.fields[name].to_json(values[name]) for name in sorted(values)}

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the canonical JSON of the name and what was declared; never over a computed float.

        Raises:
            NotSupported: a field writes a value as JSON that it reads back as another one.
        """
        self._check_written()
        text = canonical_json({"mechanism": self.name, "declared": self.declared})
        return hashlib.sha256(text.encode()).hexdigest()

    def _check_written(self) -> None:
        """Refuse a field that loses digits in JSON: two mechanisms with other promises would be one.

        Raises:
            NotSupported: there is one.
        """
        for name, value in self.__dict__["_values"].items():
            field = self.fields[name]
            written = field.to_json(value)
            if field.parse(written) != value:
                raise NotSupported(
                    f"field {name} of {self.name} writes {_short(value)} as {_short(written)}, which is another "
                    f"value. Change {type(field).__name__}.to_json so that parse reads the same value back."
                )

    def replace(self, /, **changes: Any) -> Self:
        """The same mechanism with some declared values changed.

        Parameters:
            changes: fields by name.

        Raises:
            InvalidParameter: as for the class.
        """
        return type(self)(**{**self.__dict__["_values"], **changes})

    def at_epsilon(self, epsilon: Any) -> Self:
        """The same mechanism calibrated to another ε in place of its target.

        Parameters:
            epsilon: of one report.

        Raises:
            InvalidParameter: as for the class; also where it is not calibrated from an ε.
        """
        kept = {name: value for name, value in self.__dict__["_values"].items() if name not in self.targets}
        return self.calibrate(**{name: kept[name] for name in kept if not self.fields[name].derived}, epsilon=epsilon)

    # -- what follows from it ---------------------------------------------------------------------------

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The calibrated parameters, as plain numbers on the safe side of the target."""
        return {}

    @property
    def guarantee(self) -> Guarantee:
        """The finest promise that can be proved for one report. Every subclass gives one."""
        raise NotImplementedError(f"{type(self).__name__} must define its guarantee")

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences a user should read, such as where the build departs from a printed formula."""
        return ()

    def utility(self, users: int | None = None) -> dict[str, Any]:
        """The predicted error, as plain numbers by name.

        Parameters:
            users: with it, also that of an estimate from so many reports.

        Raises:
            InvalidParameter: `users` is no whole number >= 1.
        """
        return {}

    def describe(self, users: int | None = None) -> dict[str, Any]:
        """What `calibrate --json` prints: parameters, guarantee, utility, notes and source.

        Parameters:
            users: as for `utility`.

        Raises:
            InvalidParameter: `users` is no whole number >= 1.
        """
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
        """Users' values as text, turned into the array that `randomize` takes.

        Parameters:
            texts: one for each user.

        Returns:
            An array, shape (n,).

        Raises:
            OutsideDomain: a text is no value of the domain, at the first that is none.
            InvalidParameter: these are no texts.
            NotSupported: it has no client, or none that reads text.
        """
        if self.domain is None:
            raise NotSupported(f"{self.name} has no client that reads text")
        return self.domain.read(texts)

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> Any:
        """Randomize each value of a 1-d array into a report.

        Parameters:
            values: one for each user, an array or a list of what `domain` says.
            rng: None for cryptographic randomness; a seed or a seeded stream in tests only.
            secrets: for mechanisms that memoise: bytes, at least 16 of them, or one for each value. No two users may
                have the same.

        Returns:
            The reports, an array whose first axis is the users.

        Raises:
            OutsideDomain: a value is not in the declared domain. Nothing was randomized.
            InvalidParameter: `secrets` are no secrets, or are missing where it memoises.
            NotSupported: it has no client.
            TypeError: `rng` is nothing to draw from.
        """
        raise NotSupported(f"{self.name} has no client")

    def client_program(self) -> Program:
        """The client as data, which any device can run; see `programs`.

        It draws what `randomize([value])` draws from the same bytes, or from the same secret, and nothing else.

        Raises:
            NotSupported: the mechanism has a client in Python alone, or none.
        """
        raise NotSupported(f"{self.name} has no client program")

    def memoised(self, values: Any, secrets: Any) -> Any:
        """Which memoised draw a user reports for each value: equal ones share one curve and label.

        Parameters:
            values: as `randomize` takes them.
            secrets: as `randomize` takes them.

        Returns:
            An array, shape (n,); of a mechanism that memoises each value on its own, `values` themselves.

        Raises:
            OutsideDomain: a value is not in the declared domain.
            InvalidParameter: `secrets` are no secrets.
        """
        return values

    def labels(self, values: Any, secrets: Any) -> list[str]:
        """For `spend(label=...)`: which memoised draw each report repeats, so that none but its owner can tell.

        Labels of two mechanisms have nothing in common, whatever was drawn.

        Parameters:
            values: as `randomize` takes them.
            secrets: as `randomize` takes them.

        Returns:
            A label for each value.

        Raises:
            OutsideDomain: a value is not in the declared domain.
            InvalidParameter: `values` are no array or list, or `secrets` no secrets.
        """
        from ..sampling.memoisation import labels_of, secrets_for_each

        own = secrets_for_each(secrets, count_of(values))
        return labels_of(self.memoised(values, own), own, self.fingerprint)

    def aggregate(self, reports: Any) -> Aggregate:
        """The sufficient statistic of reports; aggregates of the same mechanism merge exactly.

        Parameters:
            reports: an array whose first axis is the users, as `randomize` gave it.

        Raises:
            NotSupported: these are no reports of this mechanism, or it has no server side.
        """
        raise NotSupported(f"{self.name} has no server side")

    def check_reports(self, reports: Any) -> None:
        """Refuse reports that no client can have sent, looking at nothing but themselves.

        An inbox asks it of every report, one at a time. Override it where adding them up takes long.

        Parameters:
            reports: as `randomize` returns them.

        Raises:
            NotSupported: no client sends these.
        """
        self.aggregate(reports)

    def estimate(self, reports: Any) -> Estimate:
        """An unbiased estimate with standard errors, from reports or from an aggregate of them.

        Parameters:
            reports: as `aggregate` takes them; or an aggregate.

        Raises:
            NotSupported: these are no reports of this mechanism, there are none, or it has no server side.
        """
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
        """The inputs among which the worst pair is, for the checks to compare; values as `randomize` takes them.

        Raises:
            NotSupported: nobody names any.
        """
        raise NotSupported(f"{self.name} names no inputs to compare")

    def compare(self, first: Any, second: Any) -> Comparison:
        """The exact odds, as they are drawn, of all that one report can say of one input against another.

        Parameters:
            first: a value as `randomize` takes it.
            second: another one.

        Raises:
            NotSupported: that has no finite description.
        """
        raise NotSupported(f"{self.name} describes no channel")

    def compare_repeated(self, first: Any, second: Any, reports: int | None) -> Comparison:
        """The same as `compare` for several reports of one memoised value.

        Parameters:
            first: a value as `randomize` takes it.
            second: another one.
            reports: how many; None for as many as one likes.

        Raises:
            NotSupported: that has no finite description.
        """
        raise NotSupported(f"{self.name} describes no repeated reports")

    def outcomes(self, reports: Any, first: Any, second: Any) -> Any:
        """Which outcome of `compare` each report is.

        Parameters:
            reports: as `randomize` gave them.
            first: a value as `randomize` takes it.
            second: another one.

        Returns:
            Integers, shape (n,), in the order of the masses of ``compare(first, second)``.

        Raises:
            NotSupported: that has no finite description.
        """
        raise NotSupported(f"{self.name} describes no channel")

    def total(self, reports: Any) -> Any:
        """The aggregate of this mechanism that reports come to, or that was given; it holds something.

        Parameters:
            reports: as `aggregate` takes them; or an aggregate.

        Raises:
            NotSupported: these are no reports of this mechanism, or there are none.
        """
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
        values = ", ".join(f"{name}={_short(value)}" for name, value in self.declared.items())
        return f"{type(self).__name__}({values})"

    def __getstate__(self) -> dict[str, Any]:
        return {"_values": self.__dict__["_values"]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def count_of(values: Any) -> int:
    """How many users' values these are. Raises `InvalidParameter` for what is no array or list of any."""
    try:
        return len(values)
    except TypeError:
        raise InvalidParameter("values", "a one-dimensional array or list of values", shown(values)) from None


def _short(value: Any) -> str:
    """A declared value, of a long one its beginning."""
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
