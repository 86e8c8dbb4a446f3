"""The result of each rule of composition as a row of a table: what `compose` and `plan` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .command_groups import part
from .mechanism_arguments import parse_reports
from .output import decimal_option

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

reports_option = click.option(
    "--reports", required=True, metavar="K", callback=parse_reports, help="The number of reports that one user sends."
)


def parse_delta(text: str) -> Decimal:
    """Return the δ of a total."""
    found: Decimal = part("totals").check_delta(decimal_option("total_delta", text))
    return found


def print_reasons(reasons: dict[str, str]) -> None:
    """Print why some rules do not apply; the rules that only need a δ in one line."""
    without = [rule for rule, reason in reasons.items() if reason.startswith(f"rule {rule} needs delta > 0")]
    if without:
        click.echo(f"Not shown: {', '.join(without)} need δ > 0. Add --total-delta 1e-6")
    for rule, reason in reasons.items():
        if rule not in without:
            click.echo(f"Not shown: {reason}")


def rule_rows(rules: Mapping[str, dict[str, Any] | None]) -> list[dict[str, Any]]:
    """Return the result of each rule as rows; the row of a rule that does not apply has no figures."""
    return [{"rule": rule, **(row or {})} for rule, row in rules.items()]


def applicable(rules: Mapping[str, dict[str, Any] | None]) -> list[tuple[str, dict[str, Any]]]:
    """Return the rules that apply."""
    return [(name, row) for name, row in rules.items() if row is not None]


def limit_rule(rule: str, row: Mapping[str, Any]) -> str:
    """Return a rule as a limit takes it, with its order."""
    return f"{rule}:{row['order']:.15g}" if "order" in row else rule


def enforced_by(row: dict[str, Any]) -> str:
    return "--limit" if row["filter"] else "--plan"
