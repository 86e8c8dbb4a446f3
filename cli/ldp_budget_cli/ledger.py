"""`ldp-budget ledger`."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path

import click

from ldp_budget._files import replacing

from .app import given_time, is_path, ledger_path, make_ledger, open_ledger, open_place
from .asking import confirm, yes_option
from .output import (
    LINES,
    counted,
    json_option,
    print_fields,
    print_json,
    print_row_table,
    print_rows,
    progress,
    rows_options,
    write_rows,
)
from .tables import layout_options
from .user_lists import check_no_list, listed_users, user_column_option


@click.group()
def ledger() -> None:
    """Create a ledger, check it, and read it out."""


@ledger.command("init")
@click.option("--rehearsal", is_flag=True, help="One in which nothing counts, and --at says what time it is.")
@json_option
@click.pass_context
def init(ctx: click.Context, rehearsal: bool, as_json: bool) -> None:
    """Make an empty ledger and its key, where there is none.

    A rehearsal is for playing a survey before it begins: --at says for each command what time it is, so a year takes
    a minute. It stays a rehearsal, says so wherever it is used, and nothing goes from one into a ledger that counts.
    """
    opened = make_ledger(ctx, rehearsal=rehearsal)
    place = ledger_path(ctx) if is_path(ledger_path(ctx)) else opened.name  # an address may hold a password
    if as_json:
        print_json({"ledger": place, "created": True})
    else:
        click.echo(f"made: {place}")


@ledger.command("stats")
@json_option
@click.pass_context
def stats(ctx: click.Context, as_json: bool) -> None:
    """Count what the ledger holds; `head` is its newest link, to be noted elsewhere for `verify --expect`."""
    figures = open_ledger(ctx).stats()
    (print_json if as_json else print_fields)(figures)


@ledger.command("verify")
@click.option("--expect", metavar="HEAD", help="A head noted earlier, which must still be in the chain.")
@json_option
@click.pass_context
def verify(ctx: click.Context, expect: str | None, as_json: bool) -> None:
    """Work everything out again: every link, sum, cost and seal. Exit code 1 if anything was changed."""
    accountant = open_ledger(ctx)
    with progress("verifying") as on_progress:
        result = accountant.verify(expect, on_progress=on_progress)
    if as_json:
        print_json(result.to_json())
    else:
        entries = counted(result.entries, "entry", "entries")
        click.echo(f"{'holds' if result.ok else 'does not hold'}: {entries}, head {result.head}")
        for problem in result.problems:
            click.echo(f"  {problem}")
    if not result.ok:
        sys.exit(1)


@ledger.command("checkpoint")
@json_option
@click.pass_context
def checkpoint(ctx: click.Context, as_json: bool) -> None:
    """Put down where the ledger ends, and print that: the head to be noted elsewhere for `verify --expect`."""
    head = open_ledger(ctx).checkpoint()
    if as_json:
        print_json({"head": head})
    else:
        click.echo(head)


@ledger.group("key")
def key() -> None:
    """Exchange the ledger's own key, in steps, while others spend.

    `prepare`, bring the key's file to every other machine, `activate`, and bring it there again.
    """


@key.command("status")
@rows_options
@click.pass_context
def status(ctx: click.Context, form: str | None) -> None:
    """List the key's secrets: pending, activating, active or expired, and in how many partitions each is in force."""
    rows = [each._asdict() for each in open_ledger(ctx).key_states()]
    if form is not None:
        print_rows(rows, form)
        return
    print_row_table(rows)


@key.command("prepare")
@json_option
@click.pass_context
def prepare_key(ctx: click.Context, as_json: bool) -> None:
    """Put a new secret into the key's file, which is not used yet. One that waits there already stays."""
    _print_key("prepared", open_ledger(ctx).prepare_key(), as_json)


@key.command("discard")
@json_option
@click.pass_context
def discard_key(ctx: click.Context, as_json: bool) -> None:
    """Take a secret that is not used yet out of the key's file, for one that was seen on its way."""
    discarded = open_ledger(ctx).discard_key()
    if as_json:
        print_json({"discarded": discarded})
    else:
        click.echo("discarded" if discarded else "nothing to discard")


@key.command("activate")
@yes_option
@json_option
@click.pass_context
def activate_key(ctx: click.Context, yes: bool, as_json: bool) -> None:
    """Have the secret that waits in the key's file in force, and the one before it no more. Asks first.

    Whoever spends waits while their partition is exchanged, and an instance to whose machine the file was not brought
    refuses from then on. Stopped at any point, the same command goes on.
    """
    accountant = open_ledger(ctx)
    if any(each.state == "pending" for each in accountant.key_states()):
        confirm("Is the key's file on every machine that opens this ledger?", yes)
    with progress("exchanging") as on_progress:
        number = accountant.activate_key(on_progress=on_progress)
    _print_key("active", number, as_json)


def _print_key(what: str, number: int, as_json: bool) -> None:
    if as_json:
        print_json({what: number})
    else:
        click.echo(f"{what}: secret {number}")


@ledger.command("repair-clock")
@yes_option
@json_option
@click.pass_context
def repair_clock(ctx: click.Context, yes: bool, as_json: bool) -> None:
    """Go on from the clock as it is, where it was too far ahead for a while. Asks first.

    What was written meanwhile is dated later than now, and stops every charge. The repair is an entry of the journal.
    It refills nothing: what is dated later counts in the windows that are open now as well, and what was reserved
    before it is expired.
    """
    from datetime import UTC, datetime

    accountant = open_ledger(ctx)
    confirm(f"Is it {given_time(ctx) or datetime.now(UTC):%Y-%m-%d %H:%M} UTC now?", yes)
    repaired = accountant.repair_clock()
    if as_json:
        print_json({"repaired": repaired})
    else:
        click.echo("repaired" if repaired else "nothing to repair: the newest entry is not dated later than now")


@ledger.command("backup")
@click.argument("file")
@json_option
@click.pass_context
def backup(ctx: click.Context, file: str, as_json: bool) -> None:
    """Copy the ledger to FILE and its key to FILE.key, while others may write. Nothing that exists is replaced."""
    open_ledger(ctx).backup(file)
    if as_json:
        print_json({"ledger": ledger_path(ctx), "backup": file})
    else:
        click.echo(f"copied: {file} and {file}.key")


@ledger.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--give-up", is_flag=True, help="Open FROM again; what there is of TO is never used, nor gone on with.")
@yes_option
@json_option
@click.pass_context
def copy(ctx: click.Context, source: str, target: str, give_up: bool, yes: bool, as_json: bool) -> None:
    """Move the ledger FROM to TO, where it goes on: users, sums, policies, keys, receipts, all there is. Asks first.

    Each is a file or postgresql://HOST/DATABASE; of a new one ?partitions=64 says in how many partitions. TO gets FROM's key,
    and nothing may lie there yet.

    First FROM is verified and closed: from then on it refuses every spend and names TO. It can still be read. Then
    everything is copied, and TO refuses everything until all is there and both were verified; then it is open. So
    nobody is charged in both. Stopped at any point, the same command goes on; or --give-up opens FROM again, as long
    as TO is not complete.
    """
    for name, place in (("FROM", source), ("TO", target)):
        if place == ":memory:":
            raise click.UsageError(f"{name}: expected a path or postgresql://…; found {place}")
    with open_place(ctx, source) as accountant:
        if give_up:
            accountant.give_up_copy(target)
            if as_json:
                print_json({"from": {"ledger": accountant.name}, "given_up": True})
            else:
                click.echo(f"given up: {accountant.name} is open again")
            return
        confirm(f"Move {accountant.name} to TO? From then on {accountant.name} refuses every charge.", yes)
        with progress("copying") as on_progress:
            copied = accountant.copy_to(target, on_progress=on_progress)
    if as_json:
        print_json(copied.to_json())
    else:
        click.echo(f"copied, and both verify: accounts {copied.accounts}, entries {copied.entries}")
        click.echo(f"  from {copied.source}, closed, head {copied.source_head}")
        click.echo(f"  to {copied.target}, open, head {copied.target_head}")


@ledger.command("export")
@click.option("--users", "file", metavar="FILE", help="Name those of a CSV file or list (- for standard input).")
@user_column_option
@layout_options
@click.option("--to", "path", metavar="FILE", help="A file for your eyes alone, instead of standard output.")
@rows_options
@click.pass_context
def export(
    ctx: click.Context,
    file: str | None,
    user_column: str | None,
    delimiter: str,
    encoding: str,
    no_header: bool,
    path: str | None,
    form: str | None,
) -> None:
    """Write the journal out, as JSON lines unless said otherwise; users appear as account numbers.

    Whoever has the key can have the users of a list named, in a column of their own: they are looked up, for names
    are not in the ledger.
    """
    if file is None:
        check_no_list(user_column, no_header)
    names = None if file is None else listed_users(file, user_column, delimiter, encoding, no_header)
    rows = open_ledger(ctx).journal(names)
    first = next(rows, None)
    columns = [] if first is None else list(first)
    every, form = chain([] if first is None else [first], rows), form or LINES
    if path is None:
        print_rows(every, form, columns)
        return
    try:
        with replacing(Path(path)) as target:
            write_rows(every, form, lambda text: target.write(text.encode()), columns)
    except OSError as error:
        raise click.ClickException(f"--to: {path} cannot be written: {error.strerror}") from None
