"""Charging one user: `ldp-budget quote`, `spend`, `reserve`, `commit` and `void`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.accounting.policies import DEFAULT
from ldp_budget.errors import UnknownName

from .app import open_ledger
from .completion import policy_names
from .failures import REFUSED
from .mechanism_group import mechanism_command, note_option, parse_reports
from .output import counted, json_option, options, print_json, shown
from .stopping import when_stopped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.accounting.receipts import Receipt
    from ldp_budget.authoring.base import Mechanism
    from ldp_budget.catalogue.collections import Collection

    Chosen = Mechanism | Collection

_request_options = options(
    click.option("--reports", default="1", metavar="K", callback=parse_reports, help="How many reports [default: 1]"),
    click.option(
        "--label",
        help="Which memoised value the reports repeat: an opaque name of yours. Needed under a day, week or month.",
    ),
    click.option(
        "--policy",
        default=DEFAULT,
        metavar="NAME",
        shell_complete=policy_names,
        help=f"The policy to hold it against [default: {DEFAULT}]",
    ),
    json_option,
)


@mechanism_command(
    "Say what a report would cost USER; exit with 3 if it does not fit. Change nothing.",
    arguments=["user"],
    whole=True,
)
@_request_options
def quote(mechanism: Chosen, user: str, reports: int, label: str | None, policy: str, as_json: bool) -> None:
    ledger = open_ledger(click.get_current_context())
    quoted = ledger.quote(user, mechanism, reports=reports, label=label, policy=policy)
    _print(quoted, as_json)
    if quoted.why or quoted.binding:
        sys.exit(REFUSED)


_key_options = options(
    click.option("--key", help="Makes a retry safe: the same key and request get the same answer."),
    click.option("--digest", metavar="HEX", help="A digest of the report, bound to the key."),
    note_option,
)


@mechanism_command("Charge USER for a report, or refuse with exit code 3.", arguments=["user"], whole=True)
@_request_options
@_key_options
def spend(mechanism: Chosen, user: str, as_json: bool, **request: Any) -> None:
    _say_when_stopped(user, request["key"])
    _answer(open_ledger(click.get_current_context()).spend(user, mechanism, **request), as_json)


@mechanism_command(
    "Charge USER now and decide later: commit keeps the charge, void takes it back.",
    arguments=["user"],
    whole=True,
)
@_request_options
@_key_options
@click.option(
    "--expires", type=float, default=3600, metavar="SECONDS", help="Until then it can be voided [default: 3600]"
)
def reserve(mechanism: Chosen, user: str, as_json: bool, **request: Any) -> None:
    _say_when_stopped(user, request["key"])
    _answer(open_ledger(click.get_current_context()).reserve(user, mechanism, **request), as_json)


@click.command()
@click.argument("receipt")
@json_option
@click.pass_context
def commit(ctx: click.Context, receipt: str, as_json: bool) -> None:
    """Keep what the reservation RECEIPT charged; one that has expired stays charged too, and says so."""
    with _naming_open_ones(ctx):
        _print(open_ledger(ctx).commit(receipt), as_json)


@click.command()
@click.argument("receipt")
@json_option
@click.pass_context
def void(ctx: click.Context, receipt: str, as_json: bool) -> None:
    """Give back what the reservation RECEIPT charged, unless it was committed or has expired."""
    with _naming_open_ones(ctx):
        _print(open_ledger(ctx).void(receipt), as_json)


@contextmanager
def _naming_open_ones(ctx: click.Context) -> Iterator[None]:
    """Where a reservation is not known, say which ones are open."""
    try:
        yield
    except UnknownName as error:
        if error.kind != "reservation":
            raise
        rows = open_ledger(ctx).open_reservations()
        listed = "".join(f"\n  {_shown_reservation(row)}" for row in rows)
        told = f"open are, newest first:{listed}" if rows else "none is open"
        raise click.ClickException(f"no reservation is called {error.name!r}; {told}") from None


def _shown_reservation(row: dict[str, Any]) -> str:
    amount = f"{counted(row['reports'], 'report')}, ε = {shown(row['epsilon'])}"
    what = row["mechanism"] if row["collection"] is None else f"{row['collection']} ({row['mechanism']})"
    return f"{row['receipt']}  {what}, {amount}, until {row['expires']}"


def _say_when_stopped(user: str, key: str | None) -> None:
    """Before a charge that may be stopped: how to find out what has become of it."""
    if key is not None:
        when_stopped(lambda: f"{user} was charged or not; the same command again charges nobody twice, and tells")
    else:
        when_stopped(
            lambda: f"`ldp-budget history {user}` says whether {user} was charged; with a --key one may ask again"
        )


def _answer(receipt: Receipt, as_json: bool) -> None:
    """Print the answer; a refusal, and a reservation that was voided since, is exit code 3: nothing may be sent."""
    _print(receipt, as_json, err=not receipt)
    if not receipt:
        sys.exit(REFUSED)


def _print(receipt: Receipt, as_json: bool, *, err: bool = False) -> None:
    if as_json:
        print_json(receipt.to_json())
    else:
        click.echo(receipt.explain(), err=err)
