"""`ldp-budget quote`, `spend`, `reserve`, `commit`, `void` and `spend-many`.

`spend-many` charges every user of a file; the others concern one user.
"""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.accounting.policies import DEFAULT
from ldp_budget.errors import InvalidParameter, UnknownName
from ldp_budget.reports.tables import is_address

from .app import open_ledger, policy_names
from .errors import REFUSED, report_progress_on_interrupt, when_stopped
from .inputs import Listing, user_column_option
from .mechanism_subcommands import mechanism_command, note_option, parse_reports
from .output import charging, counted, json_option, options, print_json, shown
from .table_reader import LEFT_OUT_COLUMNS, Layout, LeftOut, layout_options, writing_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.accounting.receipts import Receipt
    from ldp_budget.registry.collections import Collection
    from ldp_budget.sdk.mechanism import Mechanism

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
    """Commit the reservation RECEIPT; an expired one stays charged too, and the output says so."""
    with _naming_open_ones(ctx):
        _print(open_ledger(ctx).commit(receipt), as_json)


@click.command()
@click.argument("receipt")
@json_option
@click.pass_context
def void(ctx: click.Context, receipt: str, as_json: bool) -> None:
    """Void the reservation RECEIPT and free its budget, unless it was committed or has expired."""
    with _naming_open_ones(ctx):
        _print(open_ledger(ctx).void(receipt), as_json)


@contextmanager
def _naming_open_ones(ctx: click.Context) -> Iterator[None]:
    """List the open reservations in the error for an unknown reservation."""
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
    """Set the sentence for an interrupted charge: how to find out if the user was charged."""
    if key is not None:
        when_stopped(lambda: f"{user} was charged or not; the same command again charges nobody twice, and tells")
    else:
        when_stopped(
            lambda: f"`ldp-budget history {user}` says whether {user} was charged; with a --key one may ask again"
        )


def _answer(receipt: Receipt, as_json: bool) -> None:
    """Print the receipt. Exit code 3 for a refusal or a voided reservation: the client must not send a report."""
    _print(receipt, as_json, err=not receipt)
    if not receipt:
        sys.exit(REFUSED)


def _print(receipt: Receipt, as_json: bool, *, err: bool = False) -> None:
    if as_json:
        print_json(receipt.to_json())
    else:
        click.echo(receipt.explain(), err=err)


@mechanism_command(
    "Charge every user of FILE for one report; a user listed twice is charged twice. FILE is CSV, Parquet or Arrow: "
    "a path, an address such as s3://…, or - for standard input. It takes no label: what a labelled report costs "
    "depends on the user's earlier ones, so charge it with spend.",
    arguments=["file"],
    whole=True,
)
@user_column_option
@layout_options
@click.option("--once", is_flag=True, help="Charge each name once, however often it is listed.")
@click.option("--missing", multiple=True, metavar="VALUE", help="VALUE names nobody: leave its row out. Repeatable.")
@click.option("--skip-invalid", is_flag=True, help="Leave out rows that are wrong, and count them.")
@click.option(
    "--skipped-to", metavar="FILE", help="With --skip-invalid: write these rows' places and reasons to FILE."
)
@click.option("--key", metavar="RUN", help="Names the run: run again, batches that were charged are skipped.")
@click.option(
    "--shard", metavar="I/N", help="With --key: charge only the I-th of every N batches; others charge the rest."
)
@click.option("--refused-to", metavar="FILE", help="Write the refused users to a file: CSV, or .parquet, .arrow.")
@note_option
@click.option(
    "--policy", default=DEFAULT, metavar="NAME", shell_complete=policy_names, help=f"The policy [default: {DEFAULT}]"
)
@json_option
def spend_many(
    mechanism: Mechanism | Collection,
    file: str,
    user_column: str | None,
    delimiter: str,
    encoding: str,
    no_header: bool,
    once: bool,
    missing: tuple[str, ...],
    skip_invalid: bool,
    skipped_to: str | None,
    key: str | None,
    shard: str | None,
    refused_to: str | None,
    note: str | None,
    policy: str,
    as_json: bool,
) -> None:
    if skip_invalid != (skipped_to is not None):
        absent, given = ("--skipped-to", "--skip-invalid") if skip_invalid else ("--skip-invalid", "--skipped-to")
        raise click.UsageError(f"{absent}: expected it with {given}; nothing was given")
    mine = None if shard is None else _shard(shard, key)
    ledger = open_ledger(click.get_current_context())
    listing = Listing(file, user_column, Layout(delimiter, encoding, not no_header), missing, once)
    rows = listing.check(skip_invalid) if is_address(file) or os.path.isfile(file) else None
    # An unnamed run gets a key too, so that it can be continued.
    run = key if key is not None else f"run-{secrets.token_hex(8)}"
    done = _Done()
    again = "the same command" if key is not None else f"the same command with --key {run}"
    with (
        writing_rows("refused-to", refused_to, {"user": str}) as note_refused,
        writing_rows("skipped-to", skipped_to, LEFT_OUT_COLUMNS) as note_skipped,
        report_progress_on_interrupt(done.__str__, f"{again} goes on from there and charges nobody twice"),
        charging(rows if mine is None else None) as advance,
    ):
        left_out = LeftOut(note_skipped if skip_invalid else None)

        def on_batch(users: int, refused: list[str]) -> None:
            if not done.users:
                click.echo(f"users from column {listing.column} of {file}", err=True)
            for user in refused:
                note_refused([user])
            done.count(users, len(refused))
            advance(users)

        result = ledger.spend_many(
            listing.users(left_out), mechanism, key=run, note=note, policy=policy, shard=mine, on_batch=on_batch
        )
    if rows is None:
        listing.warn_of_repeats()
    if not done.users:
        where = f"column {listing.column} of {file}"
        nobody = f"nobody is in {where}" if mine is None else f"no batch of {where} is in shard {shard}"
        click.echo(f"{nobody}, so nobody was charged", err=True)
    listing.tell(left_out, skipped_to)
    if as_json:
        print_json({**result.to_json(), **({"skipped": left_out.invalid} if skip_invalid else {})})
    else:
        click.echo(f"spent: {result.spent}, refused: {result.refused}, repeated: {result.repeated}")


def _shard(text: str, key: str | None) -> tuple[int, int]:
    """Return the shard and the number of shards. Raises `InvalidParameter`; a click error without a key."""
    which, _, shards = text.partition("/")
    if not all(part.isascii() and part.isdigit() for part in (which, shards)) or not 1 <= int(which) <= int(shards):
        raise InvalidParameter("shard", "I/N, two whole numbers with I from 1 to N, such as 2/4", text)
    if key is None:
        raise click.UsageError(
            "--key: expected the run's name with --shard, which all shards share; nothing was given"
        )
    return int(which), int(shards)


@dataclass
class _Done:
    """The progress of a run, in users of the list."""

    users: int = 0
    refused: int = 0

    def count(self, users: int, refused: int) -> None:
        self.users += users
        self.refused += refused

    def __str__(self) -> str:
        charged = counted(self.users - self.refused, "user was", "users were")
        return f"{charged} charged and {self.refused} refused" if self.users else ""
