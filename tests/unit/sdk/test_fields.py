"""Fields and mechanisms: declared once, checked once, frozen, and with one fingerprint for one meaning."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import ldp_budget
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import Guarantee, Pure
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.parameters import (
    Choice,
    Flag,
    Integer,
    Matrix,
    Real,
    choice,
    flag,
    integer,
    matrix,
    optional_real,
    real,
)


class Toy(Mechanism):
    """One field of every kind."""

    name = "toy"
    summary = "for tests"

    epsilon = real("privacy loss of one report", above=0, at_most=100)
    bits = integer("how many bits", at_least=1, at_most=64)
    rounding = real("rounding step", at_least=0, default="0.5")
    shift = optional_real("moved by this much", at_least=-1, below=1)
    order = choice("which order", "sorted", "drawn", default="sorted")
    visible = flag("whether the order can be seen")

    def check(self) -> None:
        if self.shift is not None and self.shift > self.rounding:
            raise InvalidParameter("shift", f"a number <= rounding = {self.rounding}", self.shift)

    @property
    def guarantee(self) -> Guarantee:
        return Pure(self.epsilon)


def toy(**changes: object) -> Toy:
    return Toy(**{"epsilon": 1, "bits": 8, **changes})


# -- one field -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "good", "value"),
    [
        (Real("", above=0), "0.10", Decimal("0.1")),
        (Real("", above=0), 1, Decimal(1)),
        (Real("", above=0), np.float64(0.1), Decimal("0.1")),
        (Real("", above=0), np.int32(3), Decimal(3)),
        (Integer("", at_least=2), 7, 7),
        (Integer("", at_least=2), 7.0, 7),
        (Integer("", at_least=2), "7.00", 7),
        (Integer("", at_least=2), np.uint8(7), 7),
        (Choice("", ("a", "b")), "b", "b"),
        (Flag(""), True, True),
        (
            Matrix(""),
            [["1/3", 0.5], ["2/3", "0.5"]],
            ((Fraction(1, 3), Fraction(1, 2)), (Fraction(2, 3), Fraction(1, 2))),
        ),
        (Matrix(""), np.eye(2), ((1, 0), (0, 1))),
    ],
)
def test_field_parses_its_values(field: Real | Integer | Choice | Flag | Matrix, good: object, value: object) -> None:
    field.name = "x"
    read = field.parse(good)
    assert read == value
    assert type(read) is not float


BAD = [
    (
        Real("", above=0, at_most=10),
        "a number > 0 and <= 10",
        [0, "0", -1, 10.5, "11", "nan", "inf", "x", "", True, [1]],
    ),
    (Real("", at_least=0, below=1), "a number >= 0 and < 1", [-0.1, 1, "1.0", "1e-600000"]),
    (Real(""), "a finite number", ["infinity", None, "1e600000"]),
    (
        Integer("", at_least=2, at_most=9),
        "a whole number from 2 to 9",
        [1, 10, 2.5, "2.5", "nan", "two", True, "1e30"],
    ),
    (Integer("", at_least=1), "a whole number >= 1", [0, -3, "1e-3", "1e999999999"]),
    (Choice("", ("a", "b")), "one of a, b", ["c", "", None, 1, ["a"]]),
    (Flag(""), "true or false", ["yes", 1, None]),
    (Matrix(""), "a table of numbers", [[], [[]], [[1, 2], [3]], [["x"]], [["1/0"]], [["nan"]], 5, "12x"]),
]


@pytest.mark.parametrize(("field", "expected", "found"), [(f, e, v) for f, e, values in BAD for v in values])
def test_field_error_names_the_field_the_range_and_the_value(
    field: Real | Integer | Choice | Flag | Matrix, expected: str, found: object
) -> None:
    field.name = "the_name"
    with pytest.raises(InvalidParameter) as caught:
        field.parse(found)
    assert caught.value.option == "the_name"
    assert expected in caught.value.expected
    form = "is missing: it must be" if found is None else "must be"
    assert str(caught.value).startswith(f"the_name {form} {expected}")
    assert caught.value.describe("--the-name").startswith(f"--the-name {form}")
    if not isinstance(field, Matrix):
        assert caught.value.found == found


# -- a mechanism ---------------------------------------------------------------------------------------------


def test_declaration_is_exact_and_includes_defaults() -> None:
    assert toy(epsilon=0.1).epsilon == Decimal("0.1")
    assert toy().shift is None
    assert toy().declared == {"bits": 8, "epsilon": "1", "order": "sorted", "rounding": "0.5", "visible": False}


@pytest.mark.parametrize(
    ("declared", "option", "message"),
    [
        ({"bits": 8}, "epsilon", "epsilon is missing: it must be a number > 0 and <= 100"),
        ({"epsilon": None, "bits": 8}, "epsilon", "epsilon is missing"),
        ({"epsilon": 1, "bits": 65}, "bits", "bits must be a whole number from 1 to 64: got 65"),
        (
            {"epsilon": 1, "bits": 8, "size": 3},
            "size",
            "no such parameter: got 3. Parameters: epsilon, bits, rounding, shift, order, visible.",
        ),
        ({"epsilon": 1, "bits": 8, "shift": 0.75}, "shift", "shift must be a number <= rounding = 0.5: got 0.75"),
    ],
)
def test_mechanism_with_invalid_fields_is_refused(declared: dict[str, object], option: str, message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        Toy(**declared)
    assert caught.value.option == option
    assert message in str(caught.value)


def test_calibrate_takes_targets_and_refuses_their_parameters() -> None:
    gaussian = ldp_budget.mechanism("gaussian")
    assert gaussian(sigma=10).parameters == {"sigma": 10}
    with pytest.raises(
        InvalidParameter, match=r"sigma must be left out in calibrate.*: got 10. Call gaussian\(sigma=...\)"
    ):
        gaussian.calibrate(sigma=10)


@pytest.mark.parametrize("spelling", [1, 1.0, "1", "1.00", "1e0", Decimal("1.0"), np.float64(1), np.int64(1)])
def test_fingerprint_of_one_meaning_is_one(spelling: object) -> None:
    made = toy(epsilon=spelling, bits="8.0")
    assert made == toy()
    assert hash(made) == hash(toy())
    assert made.fingerprint == toy().fingerprint


def test_matrix_field_parses_and_validates() -> None:
    class Table(Mechanism):
        name = "table"
        table = matrix("probabilities")

    made = Table(table=[[0.1, "1/3"]])
    assert made.declared == {"table": [["1/10", "1/3"]]}
    assert Table(**made.declared) == made


class OneDigit(Real):
    """A field that keeps one digit in JSON."""

    def to_json(self, value: Decimal) -> str:
        return str(int(value))


class Rounded(Mechanism):
    name = "rounded"
    epsilon = OneDigit("privacy loss", above=0)

    @property
    def guarantee(self) -> Guarantee:
        return Pure(self.epsilon)


def test_fingerprint_with_lossy_to_json_is_refused() -> None:
    """A field that writes 1.01 and 1.99 as 1 made them one charge."""
    assert Rounded(epsilon=1).fingerprint
    for epsilon in ("1.01", "1.99"):
        with pytest.raises(NotSupported, match=r"field epsilon of rounded writes 1\.\d+ as 1, which is another"):
            _ = Rounded(epsilon=epsilon).fingerprint


@pytest.mark.parametrize("name", ["self", "cls"])
def test_option_named_as_an_argument_of_python_is_refused_as_unknown(name: str) -> None:
    """`{"name": "rr", "self": 1}` over HTTP was a TypeError, and so a 500."""
    for make in (ldp_budget.mechanism("rr"), ldp_budget.mechanism("rr").calibrate):
        with pytest.raises(InvalidParameter, match=name):
            make(**{"epsilon": "1", name: 1})
    with pytest.raises(InvalidParameter, match=name):
        ldp_budget.mechanism("rr")(epsilon="1").replace(**{name: 1})
