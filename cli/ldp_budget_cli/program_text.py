"""Client programs as text, in the notation of `client_notation`: one line for each table, step and part of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget.sampling import ONE
from ldp_budget.sdk.client_program import OPERATORS

if TYPE_CHECKING:
    from ldp_budget.sdk.client_program import Expression, Program

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "//",
    "mod": "%",
    "shr": ">>",
    "shl": "<<",
    "and": "&",
    "xor": "^",
}
_INFIX |= {"lt": "<", "ge": ">=", "eq": "=="}
_COINS = {"bit": 0, "bits": 0, "bit_at": 0, "geometric": 0, "kept_bits": 2}
"""Operators with a probability, and its place among the arguments."""
_MOST_NUMBERS = 8


def program_lines(program: Program) -> list[str]:
    """Return a program as lines of text; probabilities are rounded, and long tables are cut.

    Parameters:
        program: the client program.
    """
    tables = [f"{name} = {_table(table)}" for name, table in program.tables.items()]
    steps = [f"{name} = {expression_text(step)}" for name, step in program.steps]
    return [*tables, *steps, *(f"send {_part(part)}" for part in program.report["parts"])]


def expression_text(expression: Expression, *, within: bool = False) -> str:
    """Return an expression as text.

    Parameters:
        expression: the expression.
        within: True to put an infix operator in parentheses.
    """
    if not isinstance(expression, list):
        return str(expression)
    op, *given = expression
    if op in _INFIX:
        text = f" {_INFIX[op]} ".join(expression_text(each, within=True) for each in given)
        return f"({text})" if within else text
    if op == "at":
        return f"{expression_text(given[0], within=True)}[{expression_text(given[1])}]"
    texts = [expression_text(each) for each in given]
    place = _COINS.get(op)
    if place is not None and texts[place].isdecimal():
        texts[place] = f"{int(texts[place]) / ONE:.6g}"
    if op == "list":
        return f"[{', '.join(texts)}]"
    draw = "draw." if OPERATORS[op].kind in ("draw", "memo") else ""
    return f"{draw}{op}({', '.join(texts)})"


def _table(table: Any) -> str:
    if isinstance(table, dict):
        return f"totals of {table['count']} weights that fall by {table['ratio']}"
    shown = ", ".join(str(row) for row in table[:_MOST_NUMBERS])
    return f"[{shown}{', …' if len(table) > _MOST_NUMBERS else ''}]"


def _part(part: list[Any]) -> str:
    kind, name, *more = part
    if kind == "packed":
        return f"{name} as {more[0]} bits"
    if kind == "float64":
        return f"{more[0]} + {name} * {more[1]} as a number"
    size, count = more
    return f"{name} as {size} byte{'s' * (size != 1)}" + (f" each, {count} of them" if count != 1 else "")
