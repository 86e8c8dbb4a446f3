"""`ldp-budget quote` and `ldp-budget spend`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ldp_budget.policy import DEFAULT

from .app import REFUSED, ledger_path
from .mechanism_group import mechanism_command, parse_reports
from .output import json_option, options, print_json

if TYPE_CHECKING:
    from ldp_budget.base import Mechanism
    from ldp_budget.receipts import Receipt

_request_options = options(
    click.option("--reports", default="1", metavar="K", callback=parse_reports, help="How many reports [default: 1]"),
    click.option("--label", help="Which memoised value the reports repeat: an opaque name of yours."),
    click.option(
        "--policy",
        default=DEFAULT,
        metavar="NAME",
        help=f"The policy to hold it against [default: {DEFAULT}]",
    ),
    json_option,
)


@mechanism_command("Say what a report would cost USER and whether it fits; change nothing.", arguments=["user"])
@_request_options
def quote(mechanism: Mechanism, user: str, reports: int, label: str | None, policy: str, as_json: bool) -> None:
    from ldp_budget.accountant import Accountant

    with Accountant(ledger_path(click.get_current_context()), create=False) as accountant:
        _print(accountant.quote(user, mechanism, reports=reports, label=label, policy=policy), as_json)


@mechanism_command("Charge USER for a report, or refuse with exit code 3.", arguments=["user"])
@_request_options
@click.option("--key", help="Makes a retry safe: the same key and request get the same answer.")
@click.option("--digest", metavar="HEX", help="A digest of the report, bound to the key.")
def spend(
    mechanism: Mechanism,
    user: str,
    reports: int,
    label: str | None,
    policy: str,
    as_json: bool,
    key: str | None,
    digest: str | None,
) -> None:
    from ldp_budget.accountant import Accountant

    with Accountant(ledger_path(click.get_current_context()), create=False) as accountant:
        receipt = accountant.spend(
            user, mechanism, reports=reports, key=key, label=label, digest=digest, policy=policy
        )
    _print(receipt, as_json)
    if not receipt:
        sys.exit(REFUSED)


def _print(receipt: Receipt, as_json: bool) -> None:
    if as_json:
        print_json(receipt.to_json())
    else:
        click.echo(receipt.explain(), err=not receipt)
