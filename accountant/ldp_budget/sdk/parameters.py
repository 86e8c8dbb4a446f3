"""Fields: the declarations of a mechanism's parameters.

A field has a type, a range, a unit and a help text. The command-line option, the validation, the JSON form and the
fingerprint are derived from it. Reading a field of a mechanism gives the declared value (exact: a `Decimal`, an int,
…), or None if no value was declared.

    class Oue(Mechanism):
        epsilon = real("privacy loss of one report", above=0)
        domain_size = integer("number of possible answers", at_least=2)
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, Generic, TypeVar, overload
from unicodedata import bidirectional, category

from .._number_parsing import whole_in
from ..errors import InvalidParameter
from ..guarantees.fixed_point import canonical, decimal

T = TypeVar("T")

MOST_TEXT = 500
"""The most characters of a text, the same as of the note of a charge."""

_NO_TEXT = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories that a text may not contain: control characters, surrogates and line separators."""

_TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
"""Bidirectional controls that a text may not contain, because they make a line read as a different one."""

_MOST_DIGITS = 1000
"""The most digits of a decimal, and its largest exponent. Exact fractions of a million digits would be too slow."""


class Field(Generic[T]):
    """A declared parameter of a mechanism.

    `required`: a value must be given. `derived`: the field replaces a calibration target (such as σ). A mechanism can
    be built from it, but `calibrate` does not take it.
    """

    name: str

    def __init__(self, help: str, *, default: T | None = None, optional: bool = False, derived: bool = False):
        self.help = help
        self.default = default
        self.derived = derived
        self.required = default is None and not (optional or derived)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Field[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Field[T] | T:
        if instance is None:
            return self
        value: T = instance.__dict__["_values"].get(self.name)
        return value

    def __set__(self, instance: object, value: T) -> None:
        raise AttributeError(f"{type(instance).__name__} is frozen: {self.name} cannot be changed")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', '')}: {self.expected}>"

    @property
    def expected(self) -> str:
        """The type and range in words, as error messages and `--help` show it."""
        raise NotImplementedError

    def parse(self, value: Any) -> T:
        """Return the checked value. Raises `InvalidParameter`, which names the field, the range and the value."""
        raise NotImplementedError

    def parse_option(self, text: str) -> Any:
        """Convert the text of a command-line option to a value for `parse`."""
        return text

    def to_json(self, value: T) -> Any:
        """Return the canonical JSON form; `parse` turns it back into the same value."""
        return value

    def invalid(self, found: object) -> InvalidParameter:
        return InvalidParameter(self.name, self.expected, found)


class Real(Field[Decimal]):
    """A finite decimal number in a range. A float means its shortest decimal."""

    def __init__(
        self,
        help: str,
        *,
        above: float | None = None,
        at_least: float | None = None,
        below: float | None = None,
        at_most: float | None = None,
        unit: str = "",
        default: Decimal | None = None,
        optional: bool = False,
        derived: bool = False,
    ) -> None:
        super().__init__(help, default=default, optional=optional, derived=derived)
        self.above, self.at_least, self.below, self.at_most = above, at_least, below, at_most
        self.unit = unit

    @property
    def expected(self) -> str:
        bounds = (("> ", self.above), (">= ", self.at_least), ("< ", self.below), ("<= ", self.at_most))
        words = " and ".join(f"{sign}{canonical(decimal(bound))}" for sign, bound in bounds if bound is not None)
        return f"a number {words}" if words else "a finite number"

    def parse(self, value: Any) -> Decimal:
        try:
            number = decimal(_plain(value))
        except ValueError:
            raise self.invalid(value) from None
        digits = len(number.as_tuple().digits)
        if max(digits, abs(number.adjusted())) > _MOST_DIGITS:
            expected = f"{self.expected}, with at most {_MOST_DIGITS} digits and within 1e±{_MOST_DIGITS}"
            raise InvalidParameter(self.name, expected, value)
        inside = (
            (self.above is None or number > decimal(self.above))
            and (self.at_least is None or number >= decimal(self.at_least))
            and (self.below is None or number < decimal(self.below))
            and (self.at_most is None or number <= decimal(self.at_most))
        )
        if not inside:
            raise self.invalid(value)
        return number

    def to_json(self, value: Decimal) -> str:
        return canonical(value)


class Integer(Field[int]):
    """A whole number in a range."""

    def __init__(
        self,
        help: str,
        *,
        at_least: int | None = None,
        at_most: int | None = None,
        default: int | None = None,
        optional: bool = False,
    ) -> None:
        super().__init__(help, default=default, optional=optional)
        self.at_least, self.at_most = at_least, at_most

    @property
    def expected(self) -> str:
        if self.at_least is not None and self.at_most is not None:
            return f"a whole number from {self.at_least} to {self.at_most}"
        return "a whole number" + (f" >= {self.at_least}" if self.at_least is not None else "")

    def parse(self, value: Any) -> int:
        try:
            number = decimal(_plain(value))
        except ValueError:
            raise self.invalid(value) from None
        low, high = self.at_least, self.at_most
        if number.adjusted() > 18 or number != int(number):
            raise self.invalid(value)
        if (low is not None and number < low) or (high is not None and number > high):
            raise self.invalid(value)
        return int(number)


class Choice(Field[str]):
    """One of a few words."""

    def __init__(self, help: str, choices: tuple[str, ...], *, default: str | None = None) -> None:
        super().__init__(help, default=default)
        self.choices = choices

    @property
    def expected(self) -> str:
        return "one of " + ", ".join(self.choices)

    def parse(self, value: Any) -> str:
        if not isinstance(value, str) or value not in self.choices:
            raise self.invalid(value)
        return value


class Text(Field[str]):
    """One line of text."""

    @property
    def expected(self) -> str:
        return f"one line of 1 to {MOST_TEXT} characters, without control characters"

    def parse(self, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.invalid(repr(value) if isinstance(value, str) else f"a {type(value).__name__}")
        if len(value) > MOST_TEXT:
            raise self.invalid(f"{len(value)} characters")
        for character in value:
            if category(character) in _NO_TEXT or bidirectional(character) in _TURNS:
                raise self.invalid(f"a text with {character!a}")
        return str(value)


class Flag(Field[bool]):
    """A switch that is off by default."""

    def __init__(self, help: str) -> None:
        super().__init__(help, default=False)

    @property
    def expected(self) -> str:
        return "true or false"

    def parse(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.invalid(value)
        return value


class Matrix(Field[tuple[tuple[Fraction, ...], ...]]):
    """A rectangular table of exact numbers: nested lists, an array, or in a file, comma-separated rows."""

    @property
    def expected(self) -> str:
        return "a table of numbers with rows of equal length"

    def parse(self, value: Any) -> tuple[tuple[Fraction, ...], ...]:
        try:
            rows = tuple(tuple(_fraction(entry) for entry in row) for row in _plain(value))
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise self.invalid(f"{type(value).__name__} ({error})") from None
        if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
            raise self.invalid(f"rows of lengths {[len(row) for row in rows]}")
        return rows

    def parse_option(self, text: str) -> list[list[str]]:
        import csv

        try:
            with open(text, newline="", encoding="utf-8") as file:
                return [[entry.strip() for entry in row] for row in csv.reader(file) if row]
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidParameter(self.name, "a readable CSV file of numbers", f"{text} ({error})") from None

    def to_json(self, value: tuple[tuple[Fraction, ...], ...]) -> list[list[str]]:
        return [[str(entry) for entry in row] for row in value]


def _plain(value: Any) -> Any:
    """Return a numpy scalar or array as plain Python, and any other value unchanged."""
    return value.tolist() if hasattr(value, "tolist") else value


def _fraction(entry: Any) -> Fraction:
    if isinstance(entry, str) and "/" in entry:
        numerator, denominator = entry.split("/", 1)
        return Fraction(whole_in(numerator), whole_in(denominator))
    return Fraction(entry) if isinstance(entry, Fraction) else Fraction(decimal(entry))


# The functions below show in their signatures if the value may be absent, for readers and type checkers.


def real(help: str, **bounds: Any) -> Field[Decimal]:
    """Declare a required number, or one with a `default`.

    Parameters:
        help: what it means, in a few words, for people who calibrate.
        bounds: `above`, `at_least`, `below`, `at_most`; `unit`, `default`, `derived`.

    Returns:
        The field.

    Raises:
        TypeError: a bound has an unknown name.
        ValueError: the default is not a number.
    """
    if bounds.get("default") is not None:
        bounds["default"] = decimal(bounds["default"])
    return Real(help, **bounds)


def optional_real(help: str, **bounds: Any) -> Field[Decimal | None]:
    """Declare an optional number, such as one of several ways to state a target.

    Parameters:
        help: what it means, in a few words, for people who calibrate.
        bounds: as for `real`.

    Returns:
        The field.

    Raises:
        TypeError: a bound has an unknown name.
    """
    return Real(help, optional=True, **bounds)  # type: ignore[return-value]


def integer(help: str, **bounds: Any) -> Field[int]:
    """Declare a required whole number, or one with a `default`.

    Parameters:
        help: what it means, in a few words, for people who calibrate.
        bounds: `at_least`, `at_most`; `default`.

    Returns:
        The field.

    Raises:
        TypeError: a bound has an unknown name.
    """
    return Integer(help, **bounds)


def optional_integer(help: str, **bounds: Any) -> Field[int | None]:
    """Declare an optional whole number.

    Parameters:
        help: what it means, in a few words, for people who calibrate.
        bounds: as for `integer`.

    Returns:
        The field.

    Raises:
        TypeError: a bound has an unknown name.
    """
    return Integer(help, optional=True, **bounds)  # type: ignore[return-value]


def choice(help: str, *choices: str, default: str | None = None) -> Field[str]:
    """Declare a word out of a few.

    Parameters:
        help: what it means, in a few words, for people who calibrate.
        choices: the words.
        default: the word that is used if none is given; without a default, a word is required.

    Returns:
        The field.
    """
    return Choice(help, choices, default=default)


def text(help: str) -> Field[str]:
    """Declare a required line of text.

    Parameters:
        help: what it means, in a few words, for people who calibrate.

    Returns:
        The field.
    """
    return Text(help)


def flag(help: str) -> Field[bool]:
    """Declare a switch, off by default.

    Parameters:
        help: what it means, in a few words, for people who calibrate.

    Returns:
        The field.
    """
    return Flag(help)


def matrix(help: str) -> Field[tuple[tuple[Fraction, ...], ...]]:
    """Declare a required table of exact numbers.

    Parameters:
        help: what it means, in a few words, for people who calibrate.

    Returns:
        The field.
    """
    return Matrix(help)
