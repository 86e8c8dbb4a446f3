"""`Mechanism`, the base class of all mechanisms.

A mechanism is an immutable value. Its fields describe its declared parameters, see `fields`. From them it derives
`parameters`, `guarantee`, `utility` and `notes`. It randomizes on the client, and estimates on the server.

The `guarantee` of a mechanism is one of the guarantees of the closed vocabulary. All code that prices, composes or
checks a mechanism relies on that. So each class that defines a `guarantee` gets it wrapped: the wrapper raises
`PluginError` if the property returns anything else, and the message says what it returned.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .._files import canonical_json
from .._validation import shown, shown_with_type
from ..errors import InvalidParameter, NotSupported, PluginError
from ..guarantees.guarantees import Guarantee
from .parameters import Field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from ..guarantees import Guarantee
    from ..sampling.rng import RandomSource
    from .channels import Comparison
    from .client_program import Program
    from .domain import Domain
    from .estimates import Aggregate, Estimate
    from .vectorised_client import VectorisedClient


EXPECTED = "a guarantee of ldp_budget.guarantees, such as Pure(self.epsilon)"


def promised_only(cls: type) -> None:
    """Make the `guarantee` that `cls` defines raise `PluginError` if it returns anything but a `Guarantee`."""
    own = vars(cls)["guarantee"]
    if isinstance(own, property) and own.fget is not None:
        cls.guarantee = property(_held(own.fget), doc=own.__doc__)  # type: ignore[attr-defined]
    elif isinstance(own, functools.cached_property):
        held = functools.cached_property(_held(own.func))
        held.__set_name__(cls, "guarantee")
        cls.guarantee = held  # type: ignore[attr-defined]


def guarantee_error(cls: type) -> str:
    """Return the reason why the `guarantee` of a class is invalid for any parameters; "" if it may be valid."""
    own = inspect.getattr_static(cls, "guarantee")
    if inspect.isfunction(own):
        return f"{cls.__qualname__}.guarantee is a method. Put @property above it."
    if isinstance(own, Guarantee) or (hasattr(own, "__get__") and not isinstance(own, type)):
        return ""
    return f"{cls.__qualname__}.guarantee must be a property that returns {EXPECTED}: got {_what(own)}"


def _held(promise: Callable[[Any], Any]) -> Callable[[Any], Guarantee]:
    @functools.wraps(promise)
    def guarantee(self: Any) -> Guarantee:
        found = promise(self)
        if isinstance(found, Guarantee):
            return found
        name = type(self).__qualname__
        raise PluginError(getattr(self, "name", name), f"{name}.guarantee must return {EXPECTED}: got {_what(found)}")

    return guarantee


def _what(found: object) -> str:
    if isinstance(found, type):
        return f"the class {found.__name__}"
    if found is None:
        return "None, as of a property that returns nothing"
    return f"the {type(found).__name__} {found!r}"


_LONGEST = 100
"""The most characters of a declared value that a mechanism prints: a matrix may have thousands."""


class Mechanism:
    """A local randomizer with declared parameters and a guarantee.

    A subclass sets `name`, `summary` and `source`, declares its fields, and defines at least `guarantee`. With that
    alone it can be calibrated, planned and charged. With `domain`, `client_program`, `aggregate` and `estimate` it also
    collects.

    `calibrate(**target)` makes a mechanism from a target. Calling the class also accepts parameters that replace a
    target, such as `gaussian(sigma=10)`. Two mechanisms are equal when their declared values are equal.

    Parameters:
        declared: the fields, by name; numbers may be given as text.

    Raises:
        InvalidParameter: a field is missing, unknown, of the wrong type or out of its range, or conflicts with
            another field.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    summary: ClassVar[str] = ""
    source: ClassVar[str] = ""
    fields: ClassVar[Mapping[str, Field[Any]]] = MappingProxyType({})
    targets: ClassVar[tuple[str, ...]] = ("epsilon",)
    """The fields that state how much privacy is lost. `plan` leaves them out and finds epsilon instead."""
    checkable: ClassVar[bool] = True
    """True if a check could find the guarantee wrong.

    If False, the guarantee is only asserted, and never called checked.
    """
    finds_answers: ClassVar[bool] = False
    """True if `estimate` finds the answers itself: it takes `top`, the most answers, and its estimate names them."""
    protected: ClassVar[tuple[Any, ...]] = ()
    """The inputs that a one-sided guarantee protects; no other guarantee needs them."""
    derived: ClassVar[bool] = False
    """True if the guarantee and the server follow from the client; see `client_mechanism`."""
    hides_repeats: ClassVar[bool] = False
    """True if one report does not show if it repeats a memoised draw, so that a label would reveal it.

    A service and devices charge such reports without labels, unless the collection asks for them.
    """
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    """Parameters with which the checks build the mechanism.

    Without them `contract.examples_of` finds some by trial.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "guarantee" in vars(cls):
            promised_only(cls)
        fields: dict[str, Field[Any]] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Field):
                    fields[name] = value
                else:  # an attribute that replaces an inherited field removes the field
                    fields.pop(name, None)
        cls.fields = MappingProxyType(fields)

    def __init__(self, /, **declared: Any) -> None:
        values = {name: field.default for name, field in self.fields.items() if field.default is not None}
        for name, value in declared.items():
            if name not in self.fields:
                expected = f"left out, because mechanism {self.name} has no such parameter"
                hint = f"Parameters: {', '.join(self.fields)}."
                raise InvalidParameter(name, expected, shown(value), hint=hint)
            if value is not None:
                values[name] = self.fields[name].parse(value)
        for name, field in self.fields.items():
            if field.required and name not in values:
                raise InvalidParameter(name, f"{field.expected} ({field.help})")
        self.__dict__["_values"] = values
        self.check()

    @classmethod
    def calibrate(cls, /, **target: Any) -> Self:
        """Return the mechanism whose parameters meet a target.

        Parameters:
            target: the fields, by name, except those that replace a target.

        Raises:
            InvalidParameter: as for the class, and for a field that is not a target.
        """
        for name, value in target.items():
            if value is not None and name in cls.fields and cls.fields[name].derived:
                raise InvalidParameter(
                    name,
                    "left out in calibrate, because it is not a target",
                    value,
                    hint=f"Call {cls.name}({name}=...).",
                )
        return cls(**target)

    @classmethod
    def _for_ranking(cls, /, **target: Any) -> Self:
        """Return the mechanism calibrated to ε and to the fields of `target` it has.

        Raises `NotSupported` without an ε.
        """
        if "epsilon" not in cls.fields:
            raise NotSupported(f"{cls.name} is not calibrated from ε, so it cannot be ranked at an ε")
        return cls.calibrate(**{name: value for name, value in target.items() if name in cls.fields})

    def check(self) -> None:
        """Check that the declared values are consistent. The constructor calls it; override it.

        Raises:
            InvalidParameter: the declared values are not consistent.
        """

    # -- declared values --------------------------------------------------------------------------------

    @property
    def declared(self) -> dict[str, Any]:
        """All declared values, defaults included, in canonical JSON form."""
        values: dict[str, Any] = self.__dict__["_values"]
        return {name: self.fields[name].to_json(values[name]) for name in sorted(values)}

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the canonical JSON of the name and the declared values; never over a computed float.

        Raises:
            NotSupported: a field writes a value as JSON that it reads back as a different one.
        """
        self._check_written()
        text = canonical_json({"mechanism": self.name, "declared": self.declared})
        return hashlib.sha256(text.encode()).hexdigest()

    def _check_written(self) -> None:
        """Refuse a field that loses digits in JSON.

        Two mechanisms with different guarantees would share a fingerprint.

        Raises:
            NotSupported: a field loses digits.
        """
        for name, value in self.__dict__["_values"].items():
            field = self.fields[name]
            written = field.to_json(value)
            if field.parse(written) != value:
                raise NotSupported(
                    f"field {name} of {self.name} writes {_short(value)} as {_short(written)}, which is another value",
                    hint=f"Change {type(field).__name__}.to_json so that parse reads the same value back.",
                )

    def replace(self, /, **changes: Any) -> Self:
        """Return the same mechanism with some declared values changed.

        Parameters:
            changes: the changed fields, by name.

        Raises:
            InvalidParameter: as for the class.
        """
        return type(self)(**{**self.__dict__["_values"], **changes})

    def at_epsilon(self, epsilon: Any) -> Self:
        """Return the same mechanism calibrated to another ε.

        Parameters:
            epsilon: the ε of one report.

        Raises:
            InvalidParameter: as for the class; also where the mechanism is not calibrated from an ε.
        """
        kept = {name: value for name, value in self.__dict__["_values"].items() if name not in self.targets}
        return self.calibrate(**{name: kept[name] for name in kept if not self.fields[name].derived}, epsilon=epsilon)

    # -- derived values ---------------------------------------------------------------------------------

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The calibrated parameters, as plain numbers, rounded to the safe side of the target."""
        return {}

    @property
    def guarantee(self) -> Guarantee:
        """The strongest proved guarantee of one report. Every subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} must define its guarantee")

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for users, such as the differences between the implementation and a printed formula."""
        return ()

    def utility(self, users: int | None = None) -> dict[str, Any]:
        """Return the predicted error, as plain numbers by name.

        Parameters:
            users: if given, also predict the error of an estimate from that many reports.

        Raises:
            InvalidParameter: `users` is not a whole number >= 1.
        """
        return {}

    def describe(self, users: int | None = None) -> dict[str, Any]:
        """Return the output of `calibrate --json`: parameters, guarantee, utility, notes and source.

        Parameters:
            users: as for `utility`.

        Raises:
            InvalidParameter: `users` is not a whole number >= 1.
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
        """The values that `randomize` takes, one of several answers or a number; None if there is no client."""
        return None

    def read_values(self, texts: Sequence[str]) -> Any:
        """Convert users' values from text to the array that `randomize` takes.

        Parameters:
            texts: one for each user.

        Returns:
            An array, shape (n,).

        Raises:
            OutsideDomain: a text is not a value of the domain; the error names the first.
            InvalidParameter: `texts` are not texts.
            NotSupported: the mechanism has no client, or none that reads text.
        """
        if self.domain is None:
            raise NotSupported(f"mechanism {self.name} has no client that reads text")
        return self.domain.read(texts)

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> Any:
        """Randomize each value of a 1-d array into a report, by the client program.

        A class with a program does not override it. A class without one may: its client is then audited, not exact.

        Parameters:
            values: one for each user, an array or a list of values of `domain`.
            rng: None for cryptographic randomness; a seed or a seeded stream in tests only.
            secrets: for mechanisms that memoise: bytes, at least 16 of them, or one secret for each value. No two
                users may have the same secret.

        Returns:
            The reports, an array whose first axis is the users.

        Raises:
            OutsideDomain: a value is not in the declared domain. Nothing was randomized.
            InvalidParameter: `secrets` are not secrets, or are missing though the mechanism memoises.
            NotSupported: the mechanism has no client.
            TypeError: `rng` is not a source of randomness.
        """
        from ..sampling import open_stream

        client = self._client
        answers = self.domain.check(values)  # type: ignore[union-attr]
        stream = open_stream(rng) if client.draws or rng is not None else None
        return client(client.read(answers), stream, secrets)

    @functools.cached_property
    def _client(self) -> VectorisedClient:
        from .vectorised_client import VectorisedClient

        program = None if type(self).client_program is Mechanism.client_program else self.client_program()
        if program is None or self.domain is None:
            raise NotSupported(f"mechanism {self.name} has no client, so it cannot randomize")
        return VectorisedClient(program, context=self.fingerprint, lot=self._lot)

    @property
    def _lot(self) -> int | None:
        """The most users who are drawn together; None for what the program suggests, see `VectorisedClient`."""
        return None

    def client_program(self) -> Program:
        """The client as data, which any device can run; see `client_program`.

        From the same bytes, or from the same secret, it draws exactly what `randomize([value])` draws.

        Raises:
            NotSupported: the mechanism has a client in Python alone, or none.
        """
        raise NotSupported(f"mechanism {self.name} has no client program")

    def report_layout(self) -> tuple[np.dtype[Any], tuple[int, ...], int]:
        """Return the element type, the shape and the size in bytes of a report.

        Raises:
            NotSupported: there is no client program, which defines the layout.
        """
        import numpy as np

        program = self.client_program()
        return np.dtype(program.report["dtype"]), tuple(program.report["shape"]), program.size

    @property
    def components(self) -> tuple[Mechanism, ...]:
        """The mechanisms of the parts of a report, if it is composed of several, as that of a survey is; else none."""
        return ()

    def memoised(self, values: Any, secrets: Any) -> Any:
        """Return the memoised draw that a user reports for each value. Equal draws share one curve and one label.

        Parameters:
            values: as `randomize` takes them.
            secrets: as `randomize` takes them.

        Returns:
            An array, shape (n,): the `memo` of the client program, such as the hash of a value. Where each value is
            memoised on its own, these are `values` themselves.

        Raises:
            OutsideDomain: a value is not in the declared domain.
            InvalidParameter: `secrets` are not secrets.
        """
        memo = "" if type(self).client_program is Mechanism.client_program else self._client.program.memo
        if memo in ("", "value"):
            return values
        return self._client.memos(self._client.read(self.domain.check(values)), secrets)  # type: ignore[union-attr]

    def labels(self, values: Any, secrets: Any) -> list[str]:
        """Return the label of each report, for `spend(label=...)`: it identifies the memoised draw that is repeated.

        Only the owner of the secret can link a label to a draw. Labels of two mechanisms are unrelated, even for the
        same draw.

        Parameters:
            values: as `randomize` takes them.
            secrets: as `randomize` takes them.

        Returns:
            A label for each value.

        Raises:
            OutsideDomain: a value is not in the declared domain.
            InvalidParameter: `values` are not an array or list, or `secrets` are not secrets.
        """
        from ..sampling.memoisation import labels_of, secrets_for_each

        own = secrets_for_each(secrets, count_of(values))
        return labels_of(self.memoised(values, own), own, self.fingerprint)

    def aggregate(self, reports: Any) -> Aggregate:
        """Return the sufficient statistic of reports. Aggregates of the same mechanism merge exactly.

        Parameters:
            reports: an array whose first axis is the users, as `randomize` returns it.

        Raises:
            NotSupported: `reports` are not reports of this mechanism, or it has no server side.
        """
        raise NotSupported(f"mechanism {self.name} has no server side, so it cannot estimate")

    def check_reports(self, reports: Any) -> None:
        """Refuse reports that no client can have sent, judged from the reports alone.

        An inbox calls it for each report. Override it where aggregating is slow.

        Parameters:
            reports: as `randomize` returns them.

        Raises:
            NotSupported: no client sends these reports.
        """
        self.aggregate(reports)

    def estimate(self, reports: Any) -> Estimate:
        """Return an unbiased estimate with standard errors, from reports or from an aggregate of them.

        Parameters:
            reports: as `aggregate` takes them; or an aggregate.

        Raises:
            NotSupported: `reports` are not reports of this mechanism, there are none, or it has no server side.
        """
        raise NotSupported(f"mechanism {self.name} has no server side, so it cannot estimate")

    def contributions(self, reports: Any) -> Any:
        """Return what each report contributes to an estimate: unbiased for the answer of its own user.

        For an answer a, the contribution z[a] of a report has the expectation 1 if the user holds a, and else 0; for
        a mechanism of numbers, z[0] has the user's number as expectation. So a weighted mean of contributions is an
        unbiased estimate of the weighted mean of the answers, and its variance can be estimated from the
        contributions alone. A contribution may be negative, or far above 1.

        Parameters:
            reports: as `aggregate` takes them. The result has n·d numbers, so pass many reports in blocks.

        Returns:
            An array of floats, shape (n, d): a column for each of the d answers, or one column for a number.

        Raises:
            NotSupported: `reports` are not reports of this mechanism; or it has no unbiased contribution of a single
                report, or more answers than it lists.
        """
        raise NotSupported(f"mechanism {self.name} has no unbiased contribution of a single report")

    @property
    def repeats(self) -> bool:
        """True if two reports of one user may hold the same memoised draw, and so are not independent evidence.

        Override it where reports are memoised and the guarantee is not `Memoised`.
        """
        from ..guarantees import Memoised

        return isinstance(self.guarantee, Memoised)

    @property
    def memoised_values(self) -> int | None:
        """The most memoised draws, and so labels, of one secret; None where there is no bound or no memoised draw.

        The default is the `values` of the guarantee. Override it where all draws together lose less, or where the
        guarantee does not give a number.
        """
        from ..guarantees import Memoised

        return self.guarantee.values if isinstance(self.guarantee, Memoised) else None

    @property
    def pseudonyms(self) -> int:
        """The values of a number that a user draws once and shows in every report, such as that of a hash function.

        Rounds of reports can be linked by it. 1 if reports have no such number.
        """
        return 1

    # -- verification -----------------------------------------------------------------------------------

    def critical_inputs(self) -> Sequence[Any]:
        """Return inputs that include the worst pair, for the checks to compare; values as `randomize` takes them.

        Raises:
            NotSupported: the mechanism does not name critical inputs.
        """
        raise NotSupported(f"mechanism {self.name} names no inputs to compare")

    def compare(self, first: Any, second: Any) -> Comparison:
        """Return the exact comparison of two inputs: all that one report reveals of one against the other.

        It has the probabilities with which the client draws.

        Parameters:
            first: a value as `randomize` takes it.
            second: another value.

        Raises:
            NotSupported: the comparison has no finite description.
        """
        raise NotSupported(f"mechanism {self.name} describes no channel")

    def compare_repeated(self, first: Any, second: Any, reports: int | None) -> Comparison:
        """Return the same as `compare`, for several reports of one memoised value.

        Parameters:
            first: a value as `randomize` takes it.
            second: another value.
            reports: the number of reports; None for any number of them.

        Raises:
            NotSupported: the comparison has no finite description.
        """
        raise NotSupported(f"mechanism {self.name} describes no repeated reports")

    def outcomes(self, reports: Any, first: Any, second: Any) -> Any:
        """Return the outcome of `compare` that each report has.

        Parameters:
            reports: as `randomize` returns them.
            first: a value as `randomize` takes it.
            second: another value.

        Returns:
            Integers, shape (n,), in the order of the masses of ``compare(first, second)``.

        Raises:
            NotSupported: the comparison has no finite description.
        """
        raise NotSupported(f"mechanism {self.name} describes no channel")

    def total(self, reports: Any) -> Any:
        """Return the aggregate of reports, or a given aggregate, after checking its mechanism and its size.

        Parameters:
            reports: as `aggregate` takes them; or an aggregate.

        Raises:
            NotSupported: `reports` are not reports of this mechanism, or there are none.
        """
        total = reports if hasattr(reports, "merge") else self.aggregate(reports)
        if total.fingerprint != self.fingerprint:
            raise NotSupported(f"these reports were made by another mechanism than {self!r}")
        if total.reports == 0:
            raise NotSupported("there are no reports to estimate from")
        return total

    # -- value semantics --------------------------------------------------------------------------------

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
    """Return the number of users' values. Raises `InvalidParameter` unless `values` is an array or a list."""
    try:
        return len(values)
    except TypeError:
        raise InvalidParameter(
            "values", "a list or a one-dimensional array of values", shown_with_type(values)
        ) from None


def _short(value: Any) -> str:
    """Return a declared value as text, cut off if it is long."""
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
