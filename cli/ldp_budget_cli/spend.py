"""`ldp-budget quote`, `spend`, `reserve`, `commit`, `void` and `spend-many`.

`spend-many` charges every user of a file; the others concern one user.
"""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.charge_options import DEFAULT
from ldp_budget.errors import InvalidParameter, UnknownName
from ldp_budget.guarantees.fixed_point import printed_up
from ldp_budget.reports.places import is_address

from .app import open_ledger, policy_option
from .command_groups import part
from .errors import REFUSED, report_progress_on_interrupt, when_stopped
from .input_tables import LEFT_OUT_COLUMNS, SKIP_HINT, Layout, LeftOut, layout_options, writing_rows
from .inputs import Listing, exact_users_option, user_column_option
from .limit_figures import receipt_lines
from .mechanism_arguments import as_typed, mechanism_command, note_option, parse_reports, tag_option
from .notes import print_note
from .number_types import NUMBER
from .output import counted, json_option, next_step, options, print_json, strict_option
from .progress import counting
from .refusals import MOST_QUOTED, print_refusing_limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget import Accountant
    from ldp_budget.accounting.receipts import Receipt
    from ldp_budget.client import Client
    from ldp_budget.registry.collections import Collection
    from ldp_budget.sdk.mechanism import Mechanism

    Chosen = Mechanism | Collection

_policy_option = policy_option("Use the limits of this policy")
_request_options = options(
    click.option(
        "--reports", default="1", metavar="K", callback=parse_reports, help="Charge K reports at once [default: 1]"
    ),
    click.option(
        "--label",
        metavar="TEXT",
        help="Name the memoized value that the reports repeat, in your words. Limits per day, week or month need it.",
    ),
    tag_option,
    _policy_option,
    json_option,
)


@mechanism_command(
    "Show what a report would cost USER and if it fits; exit with 3 if it does not. Change nothing.",
    example="quote alice {}",
    arguments=["user"],
    whole=True,
)
@_request_options
def quote(mechanism: Chosen, user: str, as_json: bool, **request: Any) -> None:
    ledger = open_ledger(click.get_current_context())
    quoted = ledger.quote(user, mechanism, **request)
    _print(quoted, as_json)
    if quoted.why or quoted.binding:
        sys.exit(REFUSED)


_key_options = options(
    click.option(
        "--key",
        metavar="TEXT",
        help="Make a retry safe: the same key and request return the first answer and charge nothing again.",
    ),
    click.option("--digest", metavar="HEX", help="Bind this digest of the report to the key."),
    note_option,
)


@mechanism_command(
    "Charge USER for a report, or refuse with exit code 3.",
    example="spend alice {} --key 2027-03-01/alice",
    arguments=["user"],
    whole=True,
)
@_request_options
@_key_options
def spend(mechanism: Chosen, user: str, as_json: bool, **request: Any) -> None:
    _say_when_stopped(user, request["key"])
    _answer(open_ledger(click.get_current_context()).spend(user, mechanism, **request), as_json)


@mechanism_command(
    "Charge USER now and decide later: commit keeps the charge, void gives it back.",
    example="reserve alice {} --expires 600",
    arguments=["user"],
    whole=True,
)
@_request_options
@_key_options
@click.option(
    "--expires",
    type=NUMBER,
    default=3600,
    metavar="SECONDS",
    help="Seconds in which the charge can be voided; then it stays [default: 3600]",
)
def reserve(mechanism: Chosen, user: str, as_json: bool, **request: Any) -> None:
    _say_when_stopped(user, request["key"])
    receipt = open_ledger(click.get_current_context()).reserve(user, mechanism, **request)
    _answer(receipt, as_json)
    if not as_json:
        next_step(f"ldp-budget commit {receipt.receipt}, or ldp-budget void {receipt.receipt}")


@click.command()
@click.argument("receipt")
@json_option
@click.pass_context
def commit(ctx: click.Context, receipt: str, as_json: bool) -> None:
    """Commit the reservation RECEIPT. An expired reservation stays charged too, and the output says so.

    `ldp-budget reserve` and `ldp-budget reservations` print the receipt.

    \b
    Example:
      ldp-budget commit 7-0123456789abcdef0123
    """
    with _naming_open_ones(ctx):
        _print(open_ledger(ctx).commit(receipt), as_json)


@click.command()
@click.argument("receipt")
@json_option
@click.pass_context
def void(ctx: click.Context, receipt: str, as_json: bool) -> None:
    """Void the reservation RECEIPT and give back its budget, unless it was committed or has expired.

    `ldp-budget reserve` and `ldp-budget reservations` print the receipt.

    \b
    Example:
      ldp-budget void 7-0123456789abcdef0123
    """
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
        open_ones = (
            f"Open reservations, newest first:{listed}"
            if rows
            else "No reservation is open. Make one: ldp-budget reserve USER MECHANISM"
        )
        raise click.ClickException(f"No reservation is named {error.name!r}. {open_ones}") from None


def _shown_reservation(row: dict[str, Any]) -> str:
    amount = f"{counted(row['reports'], 'report')}, ε = {'unbounded' if row['epsilon'] is None else printed_up(row['epsilon'])}"
    what = row["mechanism"] if row["collection"] is None else f"{row['collection']} ({row['mechanism']})"
    return f"{row['receipt']}  {what}, {amount}, until {row['expires']}"


def _say_when_stopped(user: str, key: str | None) -> None:
    """Set the sentence for an interrupted charge: how to find out if the user was charged."""
    if key is not None:
        when_stopped(lambda: f"{user} may have been charged. Run the same command again: it charges nothing twice.")
    else:
        when_stopped(
            lambda: f"{user} may have been charged. To see: ldp-budget history {user}. With --key a retry is safe."
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
        click.echo("\n".join(receipt_lines(receipt)), err=err)


@mechanism_command(
    "Charge every user of FILE for one report; a user who is listed twice is charged twice.\n\n"
    "FILE is CSV, Excel, Parquet or Arrow: a path, a URL such as s3://…, or - for standard input. Exit code 0 although users "
    "were refused; with --strict 3. There is no --label: a labelled report depends on the user's earlier ones, so "
    "charge it with spend.",
    example="spend-many users.csv {} --key 2027-03-01",
    arguments=["file"],
    whole=True,
)
@user_column_option
@exact_users_option
@layout_options
@click.option("--once", is_flag=True, help="Charge each user once, however often the user is listed.")
@click.option("--missing", multiple=True, metavar="VALUE", help="Leave out rows with VALUE as the user. Repeatable.")
@click.option("--skip-invalid", is_flag=True, help="Leave out invalid rows and count them. Needs --skipped-to.")
@click.option("--skipped-to", metavar="FILE", help="Write the places of the skipped rows, and the reasons, to FILE.")
@click.option("--key", metavar="RUN", help="Name the run: the same command again skips batches that are charged.")
@click.option(
    "--caller",
    metavar="NAME",
    help="Charge as the API key NAME, with its sub-limit: the same run through a service is a repeat. Needs --key.",
)
@click.option("--shard", metavar="I/N", help="Charge only the I-th of every N batches, such as 2/4. Needs --key.")
@click.option("--refused-to", metavar="FILE", help="Write the refused users to FILE: CSV, or .parquet, .arrow.")
@strict_option
@note_option
@tag_option
@_policy_option
@json_option
def spend_many(
    mechanism: Mechanism | Collection,
    file: str,
    user_column: str | None,
    exact_users: bool,
    delimiter: str,
    encoding: str,
    no_header: bool,
    once: bool,
    missing: tuple[str, ...],
    skip_invalid: bool,
    skipped_to: str | None,
    key: str | None,
    caller: str | None,
    shard: str | None,
    refused_to: str | None,
    strict: bool,
    note: str | None,
    tags: tuple[str, ...],
    policy: str,
    as_json: bool,
) -> None:
    if skip_invalid != (skipped_to is not None):
        absent, given = (
            ("--skipped-to FILE", "--skip-invalid") if skip_invalid else ("--skip-invalid", "--skipped-to")
        )
        raise click.UsageError(f"{given} needs {absent.split()[0]}. Add {absent}")
    mine = None if shard is None else _shard(shard, key)
    ledger = _acting_for(open_ledger(click.get_current_context()), caller, key)
    listing = Listing(file, user_column, Layout(delimiter, encoding, not no_header), missing, once, exact_users)
    rows = listing.check(skip_invalid) if is_address(file) or os.path.isfile(file) else None
    # An unnamed run gets a key too, so that it can be continued.
    run = key if key is not None else f"run-{secrets.token_hex(8)}"
    done = _Done()
    more = "" if key is not None else f" with --key {run}"
    again = f"run the same command again{more} (it charges no user twice)"
    with (
        writing_rows("refused-to", refused_to, {"user": str}) as note_refused,
        writing_rows("skipped-to", skipped_to, LEFT_OUT_COLUMNS) as note_skipped,
        report_progress_on_interrupt(done.__str__, again),
        counting("charging", rows if mine is None else None) as advance,
    ):
        left_out = LeftOut(note_skipped if skip_invalid else None, consequence=SKIP_HINT)

        def on_batch(users: int, refused: list[str]) -> None:
            if not done.users:
                print_note(f"users from column {listing.column} of {file}")
            for user in refused:
                note_refused([user])
            done.count(users, refused)
            advance(users)

        result = ledger.spend_many(
            listing.users(left_out),
            mechanism,
            key=run,
            note=note,
            tags=tags,
            policy=policy,
            shard=mine,
            on_batch=on_batch,
        )
    if rows is None:
        listing.warn_of_repeats()
    if not done.users:
        where = f"column {listing.column} of {file}"
        nothing = f"no user is in {where}" if mine is None else f"no batch of {where} is in shard {shard}"
        print_note(f"{nothing}, so no user was charged")
    listing.report(left_out, skipped_to)
    if as_json:
        print_json({**result.to_json(), **({"skipped": left_out.invalid} if skip_invalid else {})})
    else:
        click.echo(f"spent: {result.spent}, refused: {result.refused}, repeated: {result.repeated}")
    if key is None and result.spent:
        print_note("Note: without --key a second run charges everyone again. Add --key NAME, a name for this round")
    if result.refused:
        _warn_of_refusals(result.spent + result.repeated, result.refused, refused_to, policy)
        print_refusing_limits(ledger, done.first_refused, result.refused, mechanism, policy, tags)
        if strict:
            sys.exit(REFUSED)


def _acting_for(ledger: Accountant | Client, caller: str | None, key: str | None) -> Accountant | Client:
    """Return the ledger as the API key `caller` uses it. Note if a run with a key can be repeated on this machine only."""
    from ldp_budget import Accountant

    if not isinstance(ledger, Accountant):
        if caller is not None:
            raise click.UsageError("--caller is for the ledger's machine: a service knows the API key. Leave it out.")
        return ledger
    if caller is not None and key is None:
        raise click.UsageError("--caller needs --key RUN: the name of the run, here and through the service.")
    if key is None:
        return ledger
    keys, now = part("api-keys"), ledger.now()
    held = {each.name: each for each in keys.ApiKeys(ledger).all() if each.state(now) == keys.ACTIVE}
    if caller is None and held:
        print_note(
            f"Note: this run belongs to this machine. Through a service, --key {key} is a run of another caller, and "
            "charges again. To share the run, add --caller NAME of an API key"
        )
    if caller is None:
        return ledger
    if caller not in held:
        raise UnknownName("API key", caller, list(held))
    return ledger.acting_for(held[caller].caller)


def _warn_of_refusals(charged: int, refused: int, refused_to: str | None, policy: str) -> None:
    """Say loudly if all users were refused; else where to find the refused ones."""
    if not charged:
        more = "" if policy == DEFAULT else f" --policy {policy}"
        every = "the only user was" if refused == 1 else f"all {refused} users were"
        print_note(
            f"WARNING: {every} REFUSED. No user was charged, so none may send a report. To see what a user has left: "
            f"ldp-budget quote USER {as_typed()}{more}"
        )
    elif refused_to is None:
        print_note("Refused users must not send a report. To get their names, add --refused-to FILE")


def _shard(text: str, key: str | None) -> tuple[int, int]:
    """Return the shard and the number of shards. Raises `InvalidParameter`; a click error without a key."""
    which, _, shards = text.partition("/")
    if not all(part.isascii() and part.isdigit() for part in (which, shards)) or not 1 <= int(which) <= int(shards):
        raise InvalidParameter("shard", "I/N, two whole numbers with I from 1 to N, such as 2/4", text)
    if key is None:
        raise click.UsageError("--shard needs --key RUN: the name of the run, the same for all shards.")
    return int(which), int(shards)


@dataclass
class _Done:
    """The progress of a run, in users of the list."""

    users: int = 0
    refused: int = 0
    first_refused: list[str] = field(default_factory=list)

    def count(self, users: int, refused: list[str]) -> None:
        self.users += users
        self.refused += len(refused)
        self.first_refused += refused[: MOST_QUOTED - len(self.first_refused)]

    def __str__(self) -> str:
        charged = counted(self.users - self.refused, "user was", "users were")
        return f"{charged} charged and {self.refused} refused" if self.users else ""
