"""The total of many reports on a command line: its δ, and why some rules do not apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .output import decimal_option

if TYPE_CHECKING:
    from decimal import Decimal


def parse_delta(text: str) -> Decimal:
    """The δ of a total."""
    from ldp_budget.accounting.totals import check_delta

    return check_delta(decimal_option("total_delta", text))


def print_reasons(reasons: dict[str, str]) -> None:
    """Why some rules do not apply."""
    for reason in reasons.values():
        click.echo(f"not shown: {reason}")
