"""How SQL reads the hexadecimal digits of a report: a bit for each answer, or one or more answers as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.reports.report_file import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contributions import Column

_DIGITS = ("13579bdf", "2367abef", "4567cdef", "89abcdef")
"""The hexadecimal digits with bit 0, 1, 2 or 3."""
_LEAST_DRAWN, _CELLS = 256, 2**18


class ReportDigits(NamedTuple):
    """SQL on the digits `c.hex` of a cell and on an answer `a` with its `digit` and `code`.

    Parameters:
        codes: for each answer its digit and code: the place of a digit and the values that say it; for numbers 0 and the digits.
        says: SQL: the cell says the answer.
        valid: SQL: the cell holds reports of this form.
        size: the bytes of a report that is one number; None for other forms.
    """

    codes: list[tuple[int, str]]
    says: str
    valid: str
    size: int | None = None

    def number(self, digits: str) -> str:
        """Return SQL for the digits of a report that is stored as a whole number with these digits."""
        if self.size is None:
            return "''"
        padded = _swapped(f"lpad({digits}, {2 * self.size}, '0')", 1, self.size)
        return f"case when length({digits}) > {2 * self.size} then '' else lower({padded}) end"


def read_by_sql(mechanism: Any, columns: Sequence[Column]) -> ReportDigits:
    """Return how SQL reads the reports of a mechanism, after a comparison with what the mechanism reads in some of them.

    Parameters:
        mechanism: a mechanism over categories.
        columns: the columns of its answers.

    Raises:
        NotSupported: its reports have another form.
    """
    answers = len(columns)
    refused = NotSupported(
        f"SQL cannot read a report of {mechanism.name}: it is neither answers nor a bit for each answer"
    )
    match mechanism.client_program().report["parts"]:
        case [["packed", _, int(bits)]] if bits == answers:
            codes = [(2 * (each >> 3) + (1 if each & 4 else 2), _DIGITS[each & 3]) for each in range(answers)]
            says = "strpos(a.code, substr(c.hex, a.digit, 1)) > 0"
            found = ReportDigits(codes, says, f"length(hex) = {2 * -(-answers // 8)}")

            def said_in(each: str) -> list[bool]:
                return [each[digit - 1] in code for digit, code in codes]

        case [["uint", _, int(size), int(numbers)]] if answers <= 256**size:
            codes = [(0, each.to_bytes(size, "little").hex()) for each in range(answers)]
            places, most = range(0, 2 * size * numbers, 2 * size), (answers - 1).to_bytes(size, "big").hex()
            says = f"a.code in ({', '.join(f'substr(c.hex, {place + 1}, {2 * size})' for place in places)})"
            tests = [f"{_swapped('hex', place + 1, size)} <= '{most}'" for place in places]
            valid = " and ".join([f"length(hex) = {2 * size * numbers}", *tests])
            found = ReportDigits(codes, says, valid, size if numbers == 1 else None)

            def said_in(each: str) -> list[bool]:
                numbered = {each[place : place + 2 * size] for place in places}
                return [code in numbered for _, code in codes]

        case _:
            raise refused
    values = np.linspace(0, answers - 1, max(_LEAST_DRAWN, _CELLS // answers)).astype(int)
    reports = mechanism.randomize(values, rng=0)
    said = [said_in(row.tobytes().hex()) for row in Layout.of(reports).data(reports)]
    contributions = mechanism.contributions(reports)
    known = [column.raw(contributions[:, place]) for place, column in enumerate(columns)]
    if not np.array_equal(said, np.transpose(known)):
        raise refused
    return found


def _swapped(digits: str, first: int, size: int) -> str:
    """Return SQL for the digits of a number's bytes in the other order."""
    return " || ".join(f"substr({digits}, {first + 2 * each}, 2)" for each in reversed(range(size)))
