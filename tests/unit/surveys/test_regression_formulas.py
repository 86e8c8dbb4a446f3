"""Formulas of `regress`: what they may name, and the terms they make."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_budget.errors import InvalidParameter

pytest.importorskip("formulaic")

from ldp_budget_surveys.regression.formulas import design_matrix, read_formula

COLUMNS = ("region", "age", "a b")
CELLS = (("south", "20", "x"), ("east", "30", "y"), ("north", "50", "x"))


def _names(text: str) -> list[str]:
    return design_matrix(read_formula(f"y ~ {text}", COLUMNS, ("smoke",)), COLUMNS, CELLS, np.array([1, 2, 1]))[1]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1", ["Intercept"]),
        ("age", ["Intercept", "age"]),
        ("region - 1", ["region[east]", "region[north]", "region[south]"]),
        ("region:age", ["Intercept", "region[east]:age", "region[north]:age", "region[south]:age"]),
        ("`a b`*age", ["Intercept", "a b[T.y]", "age", "a b[T.y]:age"]),
        ("age + I(age^2)", ["Intercept", "age", "I(age ** 2)"]),
        ("log(age)", ["Intercept", "log(age)"]),
        ("factor(age)", ["Intercept", "factor(age)[T.30.0]", "factor(age)[T.50.0]"]),
    ],
)
def test_formula_as_in_r_makes_its_terms(text: str, names: list[str]) -> None:
    assert _names(text) == names


def test_formula_keeps_hidden_terms_apart() -> None:
    read = read_formula("income ~ age + smoke", COLUMNS, ("smoke",))
    assert (read.outcome, read.hidden) == ("income", ("smoke",))
    assert design_matrix(read, COLUMNS, CELLS, np.array([1, 2, 1]))[1] == ["Intercept", "age"]


def test_function_of_a_sample_sees_each_respondent() -> None:
    matrix, _ = design_matrix(read_formula("y ~ center(age)", COLUMNS, ()), COLUMNS, CELLS, np.array([1, 7, 2]))
    assert matrix[:, 1] == pytest.approx(np.array([20, 30, 50]) - (20 + 7 * 30 + 2 * 50) / 10)


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("smoke", "OUTCOME ~ TERMS"),
        ("y ~", "OUTCOME ~ TERMS"),
        ("y ~ age +", "terms as R writes them"),
        ("y ~ regions", "public columns and questions (region, age, a b, smoke): got regions"),
        ("y ~ open(age)", "functions of"),
        ("y ~ age.__class__", "got age.__class__"),
        ("y ~ I([age for age in ()])", "columns, numbers and functions"),
        ("y ~ {__import__('os')}", "functions of"),
        ("y ~ smoke:age", "smoke as a term of its own"),
        ("y ~ log(smoke)", "smoke as a term of its own"),
    ],
)
def test_formula_that_is_wrong_or_runs_code_is_refused_with_the_reason(formula: str, why: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_formula(formula, COLUMNS, ("smoke",))
    assert why in str(refused.value)


def test_number_without_a_value_and_term_that_is_not_finite_are_refused() -> None:
    cells = (("south", "20", "x"), ("east", "", "y"))
    with pytest.raises(InvalidParameter, match="a value of age for each respondent"):
        design_matrix(read_formula("y ~ age", COLUMNS, ()), COLUMNS, cells, np.array([1, 2]))
    cells = (("south", "0", "x"), ("east", "1", "y"))
    with pytest.raises(InvalidParameter, match="finite numbers"):
        design_matrix(read_formula("y ~ log(age)", COLUMNS, ()), COLUMNS, cells, np.array([1, 2]))
