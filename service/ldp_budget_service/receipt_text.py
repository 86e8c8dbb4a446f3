"""The JSON text of a receipt, written by hand: a service writes one for each charge.

`receipt_text` returns the text that `json.dumps` makes of `receipt_form`, in a fifth of the time. What a limit adds to
every receipt is written once for each limit.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, NamedTuple

from ldp_budget.accounting.receipts import limit_row
from ldp_budget.guarantees.fixed_point import (
    DELTA_DIGITS,
    EPSILON_DIGITS,
    LARGEST,
    MU_SQUARED_DIGITS,
    RHO_DIGITS,
    float_up,
    from_units,
)

if TYPE_CHECKING:
    from datetime import datetime

    from ldp_budget.accounting.limits import Limit
    from ldp_budget.accounting.receipts import LimitState, Receipt

_DIGITS = EPSILON_DIGITS, DELTA_DIGITS, RHO_DIGITS, MU_SQUARED_DIGITS
_EXACT = 10**15
"""Every decimal below so many units is the shortest text of its nearest double, so that nothing is rounded up."""
_MOST_LIMITS = 1000


class _Amount(NamedTuple):
    """An amount that a limit counts: its position in `Costs`, its member in JSON, its capacity and its digits."""

    place: int
    member: str
    most: int
    digits: int


class _Written(NamedTuple):
    """What a limit adds to every receipt: the text before its spent amounts, rounded and exact, and its amounts."""

    limit: Limit
    rounded: str
    exact: str
    amounts: tuple[_Amount, ...]


_written: dict[int, _Written] = {}
"""The texts of limits by their `id`; each keeps its limit, so that no other object takes the `id`."""


def receipt_text(receipt: Receipt) -> str:
    """Return a receipt as JSON, as `receipt_form` does."""
    rounded, exact = [], []
    for state in receipt.limits:
        written = _written.get(id(state.limit)) or _write(state.limit)
        rounded.append(_state(state, written))
        exact.append(f"{written.exact}{_units(state.spent_units)}}}")
    epsilon, delta, _, _ = receipt.cost_units
    name = "null" if receipt.receipt is None else quoted(receipt.receipt)
    user = "null" if receipt.user is None else quoted(receipt.user)
    binding = ",".join([quoted(period) for period in receipt.binding])
    affordable = "null" if receipt.affordable_reports >= LARGEST else receipt.affordable_reports
    checked = "null" if receipt.checked is None else quoted(receipt.checked)
    why = f',"why":{quoted(receipt.why)}' if receipt.why else ""
    return (
        f'{{"status":"{receipt.status}","repeated":{"true" if receipt.repeated else "false"},"receipt":{name},'
        f'"user":{user},"policy":{quoted(receipt.policy)},'
        f'"cost":{{"epsilon":{_number(epsilon, EPSILON_DIGITS)},"delta":{_number(delta, DELTA_DIGITS)}}},'
        f'"limits":[{",".join(rounded)}],"binding":[{binding}],"affordable_reports":{affordable},"checked":{checked}'
        f'{why},"units":{{"cost":{_units(receipt.cost_units)},"reports":{receipt.reports},'
        f'"limits":[{",".join(exact)}]}}}}'
    )


def _state(state: LimitState, written: _Written) -> str:
    spent, left = [], []
    for place, member, most, digits in written.amounts:
        used = state.spent_units[place]
        spent.append(f"{member}{_number(used, digits)}")
        left.append(f"{member}{_number(0 if used is None or used > most else most - used, digits)}")
    resets = "null" if state.resets_at is None else _moment(state.resets_at)
    return f'{written.rounded}{{{",".join(spent)}}},"remaining":{{{",".join(left)}}},"resets_at":{resets}}}'


def _write(limit: Limit) -> _Written:
    """Return the texts of a limit, and keep them."""
    amounts = [
        _Amount(place, f"{quoted(limit.names[place])}:", most, _DIGITS[place]) for place, most in limit.counted
    ]
    rounded, exact = f'{_json(limit_row(limit))[:-1]},"spent":', f'{{"limit":{_json(limit.to_json())},"spent":'
    if len(_written) >= _MOST_LIMITS:
        _written.clear()
    written = _written[id(limit)] = _Written(limit, rounded, exact, tuple(amounts))
    return written


_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def _number(units: int | None, digits: int) -> str:
    """Return an amount, rounded up."""
    if units is None:
        return "null"
    if 0 <= units < _EXACT:
        return repr(units / 10**digits)
    return repr(float_up(from_units(units, digits)))


def _units(units: tuple[int | None, ...]) -> str:
    return f"[{','.join(['null' if each is None else str(each) for each in units])}]"


def _moment(moment: datetime) -> str:
    text = moment.isoformat()
    return f'"{text[:-6]}Z"' if text.endswith("+00:00") else f'"{text}"'
