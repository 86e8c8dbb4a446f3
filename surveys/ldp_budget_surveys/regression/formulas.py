"""Formulas as R writes them: `smoke ~ age * region`, read by the package formulaic.

A formula is arithmetic on public columns. It is checked before it is evaluated: names of columns, numbers and the functions of
`FUNCTIONS`, and nothing else of Python.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget._lookalikes import near
from ldp_budget._number_parsing import number_in
from ldp_budget.errors import InvalidParameter, NotSupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sample import Floats, Ints

FUNCTIONS = frozenset(
    (
        "I",
        "log",
        "log2",
        "log10",
        "exp",
        "C",
        "factor",
        "poly",
        "bs",
        "cs",
        "center",
        "scale",
        "contr.treatment",
        "contr.sum",
    )
)
_NODES: tuple[type[ast.AST], ...] = (
    *(ast.Expression, ast.Name, ast.Load, ast.Call, ast.keyword, ast.Attribute, ast.Constant),
    *(ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd),
)


class Formula(NamedTuple):
    """A formula: its outcome, its hidden terms in their order, and the public terms, as formulaic reads them."""

    outcome: str
    hidden: tuple[str, ...]
    terms: Any


def read_formula(text: str, public: Sequence[str], hidden: Sequence[str]) -> Formula:
    """Return a formula whose terms are public columns, or hidden questions as terms of their own.

    Parameters:
        text: the formula.
        public: the public columns.
        hidden: the names of the questions that may be terms.

    Raises:
        InvalidParameter: the formula is not one, or names something else.
        NotSupported: formulaic is not installed.
    """
    outcome, tilde, right = text.partition("~")
    if not tilde or not outcome.strip() or not right.strip() or "~" in right:
        raise InvalidParameter("formula", "OUTCOME ~ TERMS, such as smoke ~ age + region", text)
    formulaic = _formulaic()
    try:
        terms = list(formulaic.Formula(right.replace("^", "**")))
    except (formulaic.errors.FormulaicError, TypeError, ValueError, AttributeError) as error:
        raise InvalidParameter(
            "formula", "terms as R writes them, such as age + region", text, hint=_line(error)
        ) from None
    found, kept = [], []
    for term in terms:
        names = [factor.expr for factor in term.factors]
        if len(names) == 1 and names[0] in hidden and names[0] not in public:
            found.append(names[0])
            continue
        for name in names:
            _check(name, ":".join(names), public, hidden)
        kept.append(term)
    return Formula(outcome.strip().strip("`"), tuple(found), formulaic.Formula(kept))


def _check(factor: str, term: str, public: Sequence[str], hidden: Sequence[str]) -> None:
    if factor in public or re.fullmatch(r"[01]", factor):
        return
    try:
        tree = ast.parse(factor, mode="eval")
    except SyntaxError:
        raise InvalidParameter("formula", "columns, numbers and functions", factor) from None
    names = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {name.split(".")[0] for name in names}
    if wrong := sorted(names - FUNCTIONS):
        raise InvalidParameter("formula", f"functions of {', '.join(sorted(FUNCTIONS))}", wrong[0])
    for name in sorted(used - set(public)):
        if name in hidden:
            expected = f"{name} as a term of its own: a hidden answer has no interactions"
            raise InvalidParameter("formula", expected, term)
        listed = ", ".join([*public, *hidden]) or "none"
        raise InvalidParameter(
            "formula", f"public columns and questions ({listed})", name, hint=near(name, [*public, *hidden])
        )
    plain = all(isinstance(node, _NODES) for node in ast.walk(tree))
    if not plain or any(isinstance(n, ast.Attribute) and ast.unparse(n) not in FUNCTIONS for n in ast.walk(tree)):
        raise InvalidParameter("formula", "columns, numbers and functions", factor)


def design_matrix(
    formula: Formula, columns: Sequence[str], cells: Sequence[Sequence[str]], counts: Ints
) -> tuple[Floats, list[str]]:
    """Return the terms of each combination of public attributes, (K, p), and their names.

    A column whose values are all numbers is a number; any other is a category, whose first value in alphabetical order is the
    reference. Functions such as `scale` see each respondent, not each combination.

    Parameters:
        formula: as `read_formula` returns it.
        columns: the public columns.
        cells: the K combinations of their values.
        counts: the number of respondents of each.

    Raises:
        InvalidParameter: a term cannot be computed, or is not finite.
    """
    formulaic = _formulaic()
    import pandas

    place = np.repeat(np.arange(len(cells)), counts.astype(np.int64))
    values = {name: _column(name, [cell[at] for cell in cells])[place] for at, name in enumerate(columns)}
    transforms = formulaic.transforms.TRANSFORMS
    frame = pandas.DataFrame(values, index=range(len(place)))
    try:
        with np.errstate(all="ignore"):
            context = {"factor": transforms["C"]}
            made = formulaic.model_matrix(formula.terms, frame, context=context, na_action="raise")
    except (formulaic.errors.FormulaicError, ArithmeticError, TypeError, ValueError) as error:
        raise InvalidParameter(
            "formula", "terms that can be computed", str(formula.terms), hint=_line(error)
        ) from None
    starts = np.concatenate(([0], np.cumsum(counts.astype(np.int64))[:-1]))
    matrix = np.asarray(made, np.float64)[starts]
    if not np.isfinite(matrix).all():
        raise InvalidParameter("formula", "terms that are finite numbers", str(formula.terms))
    return matrix, list(map(str, made.columns))


def _column(name: str, texts: list[str]) -> Any:
    """Return a public column as numbers, if all its values are numbers, and else as texts. Raises `InvalidParameter`."""
    if missing := sum(not each for each in texts):
        if missing < len(texts) and all(_number(each) is not None for each in texts if each):
            raise InvalidParameter("formula", f"a value of {name} for each respondent", "an empty value")
        texts = [each or "(empty)" for each in texts]
    numbers = [_number(each) for each in texts]
    return np.array(texts, object) if None in numbers else np.array(numbers, np.float64)


def number_column(name: str, texts: Sequence[str]) -> Floats | None:
    """Return a public column as numbers; None if a value is not one."""
    found = _column(name, list(texts))
    return found if found.dtype == np.float64 else None


def _number(text: str) -> float | None:
    try:
        return float(number_in(text))
    except ValueError:
        return None


def _line(error: Exception) -> str:
    """Return the first line of the message of formulaic."""
    return re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", str(error)).strip().splitlines()[0] if str(error).strip() else ""


def _formulaic() -> Any:
    try:
        import formulaic
        import formulaic.errors
        import formulaic.transforms
    except ImportError:
        raise NotSupported(
            "a regression needs the package formulaic", hint="Install it: pip install 'ldp-budget[regression]'"
        ) from None
    return formulaic
