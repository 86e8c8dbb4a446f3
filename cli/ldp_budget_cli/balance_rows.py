"""The balances of many users, each in one row."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from .output import CSV, TSV, print_rows, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ldp_budget.accounting.budget_client import BudgetClient
    from ldp_budget.accounting.limits import Limit
    from ldp_budget.accounting.policies import Policy
    from ldp_budget.accounting.receipts import Balance

    Row = dict[str, Any]

_PLACE = ("user", "partition", "account")


def print_balances(ledger: BudgetClient, users: Iterable[str] | None, policy: str, form: str | None) -> None:
    """Print what many users have spent and have left, or with None every account; as text without `form`."""
    balances = ledger.balances(users, policy)
    if form not in (None, CSV, TSV):
        print_rows((balance.to_row() for balance in balances), form)
        return
    first = next(balances, None)
    place = [name for name in _PLACE if name in (first.to_row() if first else {"user" if users else "account"})]
    flat = _Flat(first.policy if first else ledger.policy(policy))
    every = chain([] if first is None else [first], balances)
    if form is None:
        columns = [*place, *flat.amounts]
        table = [[cells.get(column) for column in columns] for cells in map(flat.short, every)]
        print_table([column.replace("_", " ") for column in columns], table)
    else:
        print_rows(map(flat.row, every), form, [*place, "policy", "erased", *flat.columns])


class _Flat:
    """Rows without anything nested: an amount of a limit is a column. They have the same columns under one policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._labels = list(_labels(policy.all_limits))
        self._more = [
            *(["quotas"] if policy.plan is not None else []),
            *(["worst_epsilon_per_year"] if policy.unbounded else []),
        ]
        self.columns: list[str] = []
        self.amounts: list[str] = []
        """The columns that people are shown: none of a δ that the limit does not admit."""
        for label, limit in zip(self._labels, policy.all_limits, strict=True):
            for name, most in limit.amounts(limit.capacity).items():
                self.columns += [f"{label}_{name}_{what}" for what in ("capacity", "spent", "left")]
                self.amounts += [f"{label}_{name}_{what}" for what in ("spent", "left") if most]
            self.columns.append(f"{label}_resets_at")
        self.columns += self._more

    def row(self, balance: Balance) -> Row:
        """The row of a user; what is unbounded says so, for an empty cell would be taken for nothing."""
        if balance.policy != self._policy:
            raise click.ClickException(f"policy {self._policy.name} was changed meanwhile; do the same again")
        row = balance.to_row()
        cells = {name: row[name] for name in (*_PLACE, "policy") if name in row}
        cells["erased"] = row.get("erased", False)
        for label, limit in zip(self._labels, row["limits"], strict=False):  # an erased user has none
            for name in limit["capacity"]:
                for what, of in (("capacity", "capacity"), ("spent", "spent"), ("left", "remaining")):
                    amount = limit[of][name]
                    cells[f"{label}_{name}_{what}"] = "unbounded" if amount is None else amount
            cells[f"{label}_resets_at"] = limit["resets_at"]
        return cells | {name: row[name] for name in self._more if name in row}

    def short(self, balance: Balance) -> Row:
        """The same, where an erased user is told in the first amount."""
        cells = self.row(balance)
        return cells | dict.fromkeys(self.amounts[:1], "erased") if cells["erased"] else cells


def _labels(limits: tuple[Limit, ...]) -> Iterator[str]:
    """What each limit is called: its period, with its share, the rule and a number where that is not enough."""
    periods = Counter(limit.label for limit in limits)
    given: Counter[str] = Counter()
    for limit in limits:
        label = limit.label if periods[limit.label] == 1 else f"{limit.label}_{limit.rule}"
        given[label] += 1
        yield label if given[label] == 1 else f"{label}_{given[label]}"
