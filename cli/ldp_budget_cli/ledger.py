"""`ldp-budget ledger`: create, verify, export, back up and move a ledger, and rotate its key."""

from __future__ import annotations

import re
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ldp_budget._files import replacing

from .app import check_local, given_time, is_path, is_service, ledger_path, make_ledger, open_ledger, open_place
from .errors import when_stopped
from .input_tables import layout_options
from .inputs import check_no_list, listed_users, user_column_option
from .output import (
    LINES,
    confirm,
    counted,
    json_option,
    next_step,
    print_json,
    print_rows,
    rows_options,
    write_rows,
    yes_option,
)
from .progress import followed, progress
from .tables import print_fields

if TYPE_CHECKING:
    from ldp_budget.ledger.verification import Integrity

_HEAD = re.compile(r"[0-9a-fA-F]{64}|[0-9a-fA-F]{84}|\d+-[0-9a-fA-F]{64}")
"""The forms of a head: a chain hash, alone or with a number."""


@click.group()
def ledger() -> None:
    """Create, verify, export, back up and move a ledger, and rotate its key."""


@ledger.command("init")
@click.option("--sandbox", is_flag=True, help="Create a sandbox: nothing in it counts, and --at sets its clock.")
@json_option
@click.pass_context
def init(ctx: click.Context, sandbox: bool, as_json: bool) -> None:
    """Create an empty ledger and its key file.

    A sandbox lets you try a survey: --at sets the clock for each command. It stays a sandbox; nothing moves from it
    into a real ledger.

    \b
    Example:
      ldp-budget ledger init
      ldp-budget --ledger sandbox.db ledger init --sandbox
    """
    opened = make_ledger(ctx, sandbox=sandbox)
    place = ledger_path(ctx) if is_path(ledger_path(ctx)) else opened.name  # a URL may hold a password
    if as_json:
        print_json({"ledger": place, "created": True})
    else:
        key_file = f"{place}.key" if is_path(ledger_path(ctx)) else check_local(opened, "").ledger.key_file
        click.echo(f"created {place} and its key file {key_file}. Back up both, in different places")
        next_step("ldp-budget policy set default --limit lifetime=EPSILON")


@ledger.command("stats")
@json_option
@click.pass_context
def stats(ctx: click.Context, as_json: bool) -> None:
    """Count the users, entries and other rows of the ledger; `head` is its chain head, for `verify --expect`.

    `entries_by_kind` counts the charges of users. `charges` counts the different mechanisms that were ever charged.
    `keys` counts idempotency keys: a run or a batch counts once.

    \b
    Example:
      ldp-budget ledger stats
    """
    figures = open_ledger(ctx).stats()
    (print_json if as_json else print_fields)(figures)


@ledger.command("verify")
@click.option(
    "--expect", metavar="HEAD", help="Check that this head, which you noted earlier, is still in the chain."
)
@json_option
@click.pass_context
def verify(ctx: click.Context, expect: str | None, as_json: bool) -> None:
    """Verify every chain link, sum, cost and row MAC of the ledger. Exit code 1 if anything was changed.

    \b
    Example:
      ldp-budget ledger verify
    """
    if expect is not None and not _HEAD.fullmatch(expect):
        raise click.UsageError(
            f"--expect: {expect!r} is not a head. Copy the head that ledger verify or ledger checkpoint printed."
        )
    from ldp_budget.accounting.accountant import Accountant

    opened = open_ledger(ctx)
    with progress("verifying") as on_progress:
        # On the ledger's machine, the result is noted for `report`.
        verifier = opened.ledger if isinstance(opened, Accountant) else opened
        result = verifier.verify(expect, on_progress=on_progress)
    if as_json:
        print_json(result.to_json())
    else:
        entries = counted(result.entries, "entry", "entries")
        click.echo(f"{'holds' if result.ok else 'does not hold'}: {entries}, head {result.head}")
        for problem in result.problems:
            click.echo(f"  {problem}")
        for problem in result.acknowledged:
            click.echo(f"  acknowledged: {problem}")
        if result.open_entries and not result.final:
            named = " ".join(result.named_entries)
            next_step(f"find out how this happened, then: ldp-budget ledger acknowledge {named} --reason TEXT")
    if not result.ok:
        sys.exit(1)


@ledger.command("upgrade")
@click.option(
    "--step",
    type=click.Choice(["pre", "post"]),
    default="post",
    help="pre: what runs while the earlier version still charges. post: all of it. [default: post]",
)
@json_option
@click.pass_context
def upgrade(ctx: click.Context, step: str, as_json: bool) -> None:
    """Verify the ledger, then change its tables to those of this version.

    After it, processes of an earlier version refuse to charge, and do not open the ledger. Make a backup before.

    \b
    Example:
      ldp-budget ledger upgrade
    """
    from ldp_budget.accounting.upgrade import upgrade as upgraded

    place = ledger_path(ctx)
    if is_service(place):
        raise click.UsageError(
            "--ledger names a service. Upgrade on the machine of the ledger: a path or postgresql://…."
        )
    done = upgraded(place, step)
    if as_json:
        print_json({"ledger": done.name, "version": done.before, "steps": done.steps})
    elif done.steps:
        click.echo(f"verified, then applied to version {done.before}: {', '.join(done.steps)}")
    else:
        click.echo(f"verified; nothing to do: its tables have version {done.before}")


@ledger.command("acknowledge")
@click.argument("entries", metavar="ENTRY...", nargs=-1)
@click.option("--reason", metavar="TEXT", help="Say what happened. The record is permanent: name no users.")
@json_option
@click.pass_context
def acknowledge(ctx: click.Context, entries: tuple[str, ...], reason: str | None, as_json: bool) -> None:
    """Acknowledge problems of entries that `ledger verify` names, on the machine of the ledger.

    ENTRY is a number as `ledger verify` prints it: 12, 12-20, or 3.12 for entry 12 of partition 3. The administrative
    log records the entries, their problems and the reason. From then on the ledger verifies, and `ledger move` works.

    An overdraft, a changed value, a broken chain and missing entries can never be acknowledged.

    \b
    Example:
      ldp-budget ledger acknowledge 12-20 --reason "Written without an API key"
    """
    if not entries:
        raise click.UsageError("ENTRY is missing: the numbers that ledger verify prints, such as 12 or 12-20.")
    if reason is None:
        raise click.UsageError('--reason is missing: say what happened. Example: --reason "Fault of version 1.0.0"')
    accountant = check_local(open_ledger(ctx), "entries are acknowledged on the machine of the ledger, with its key")
    with progress("verifying") as on_progress:
        written = accountant.ledger.acknowledge(entries, reason, on_progress=on_progress)
    if as_json:
        print_json({"records": [record.to_json() for record in written]})
    else:
        named = [name for record in written for name in record.body["entries"]]
        click.echo(f"acknowledged: {counted(len(named), 'entry', 'entries')}")
        next_step("ldp-budget ledger verify")


@ledger.command("checkpoint")
@json_option
@click.pass_context
def checkpoint(ctx: click.Context, as_json: bool) -> None:
    """Store a checkpoint and print the chain head. Note the head elsewhere for `verify --expect`.

    \b
    Example:
      ldp-budget ledger checkpoint
    """
    head = open_ledger(ctx).checkpoint()
    if as_json:
        print_json({"head": head})
    else:
        click.echo(head)


@ledger.command("rotate-key")
@yes_option
@json_option
@click.pass_context
def rotate_key(ctx: click.Context, yes: bool, as_json: bool) -> None:
    """Rotate the ledger key: replace the secret in its key file by a new one. Asks first.

    Stop every program that uses the ledger first: one that has it open refuses every charge afterwards, until it opens
    the ledger again. If the command is interrupted, run it again.

    Machines that share a ledger on PostgreSQL each have a copy of the key file. Copy the file to each of them
    afterwards: a machine without the new secret refuses every charge.

    \b
    Example:
      ldp-budget ledger rotate-key --yes
    """
    accountant = check_local(open_ledger(ctx), "the ledger key is rotated on the machine of the ledger")
    confirm(f"Rotate the key of {accountant.name}? Is every program that uses it stopped?", yes)
    when_stopped(lambda: "The ledger is intact. To finish, run `ldp-budget ledger rotate-key` again.")
    with progress("rotating") as on_progress:
        number = accountant.ledger.rotate_key(on_progress=on_progress)
    if as_json:
        print_json({"active": number})
    else:
        click.echo(f"rotated: secret {number} is active")
        click.echo("Back up the key file, and copy it to every machine that opens the ledger.")


@ledger.command("repair-clock")
@yes_option
@json_option
@click.pass_context
def repair_clock(ctx: click.Context, yes: bool, as_json: bool) -> None:
    """Accept the current clock after it was ahead for a while. Asks first.

    Entries that are dated later than now block every charge. The repair is an entry of the journal. It frees no budget:
    later-dated entries count in the current windows as well. Earlier reservations count as expired.

    \b
    Example:
      ldp-budget ledger repair-clock --yes
    """
    from datetime import UTC, datetime

    accountant = open_ledger(ctx)
    confirm(f"Is it {given_time(ctx) or datetime.now(UTC):%Y-%m-%d %H:%M} UTC now?", yes)
    repaired = accountant.repair_clock()
    if as_json:
        print_json({"repaired": repaired})
    else:
        click.echo("repaired" if repaired else "nothing to repair: no entry is dated later than now")


@ledger.command("backup")
@click.argument("file")
@json_option
@click.pass_context
def backup(ctx: click.Context, file: str, as_json: bool) -> None:
    """Copy the ledger to FILE and its key to FILE.key, also during writes. Never overwrites a file.

    \b
    Example:
      ldp-budget ledger backup backup.db
    """
    check_local(open_ledger(ctx), "a backup is made on the machine of the ledger, by its path").backup(file)
    if as_json:
        print_json({"ledger": ledger_path(ctx), "backup": file})
    else:
        click.echo(f"copied: {file} and {file}.key")


@ledger.command("restore")
@click.argument("backup")
@yes_option
@json_option
@click.pass_context
def restore(ctx: click.Context, backup: str, yes: bool, as_json: bool) -> None:
    """Replace the ledger by BACKUP, after verifying it. Stop the service first. Asks first.

    The command refuses while another process has the ledger open. BACKUP needs its key: BACKUP.key, or the key file of
    the ledger. The old ledger is kept. A backup gives back the budget that was spent since: charge for the lost time
    before you start the service again.

    \b
    Example:
      ldp-budget ledger restore backup.db
    """
    from ldp_budget.accounting import connect

    path = ledger_path(ctx)
    confirm(f"Replace the ledger {path} by {backup}? The charges since that backup will be missing.", yes)
    found: list[Integrity] = []
    aside = connect.restore(path, backup, lambda draft: found.append(_verified(ctx, draft, backup)))
    (result,) = found
    if as_json:
        print_json({"ledger": path, "backup": backup, "entries": result.entries, "head": result.head, "kept": aside})
        return
    entries = counted(result.entries, "entry", "entries")
    click.echo(f"restored: {path} from {backup}, {entries}, head {result.head}")
    if aside is not None:
        click.echo(f"The old ledger is kept: {aside}")
    next_step("ldp-budget ledger verify --expect HEAD, with the newest head that you stored")


def _verified(ctx: click.Context, draft: str, backup: str) -> Integrity:
    """Return the verification of a copy of a backup. Raises `LedgerError` if it does not hold."""
    from ldp_budget.errors import LedgerError

    with open_place(ctx, draft) as opened, progress("verifying") as on_progress:
        result = opened.verify(on_progress=on_progress)
    if not result.ok:
        why = f"this backup does not verify: {result.problems[0]}. Nothing was changed"
        raise LedgerError(backup, why, hint="Name another backup.")
    return result


@ledger.command("move")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="[TO]", required=False)
@click.option("--abort", is_flag=True, help="Abort an interrupted move: open FROM again. TO can never be used.")
@yes_option
@json_option
@click.pass_context
def move(ctx: click.Context, source: str, target: str | None, abort: bool, yes: bool, as_json: bool) -> None:
    """Move the ledger FROM to TO, with users, sums, policies, API keys and receipts. Asks first.

    FROM and TO are files or postgresql://HOST/DATABASE. For a new database, ?partitions=64 sets the number of
    partitions. TO must be new. It gets FROM's key file.

    First, the command verifies FROM and closes it: FROM stays readable, refuses every charge and names TO. Then the
    command copies everything, verifies both and opens TO. So no user is charged in both, and none during the move.
    If the command is interrupted, run it again with another TO, or use --abort to open FROM again.

    \b
    Example:
      ldp-budget ledger move budget.db postgresql://ledger.example/ledger --yes
    """
    for name, place in (("FROM", source), ("TO", target)):
        if place == ":memory:":
            raise click.UsageError(f"{name} must be a path or postgresql://…: got {place}")
    if target is None and not abort:
        raise click.UsageError("TO is missing: the new place. Add it, or add --abort to end an interrupted move.")
    with open_place(ctx, source) as opened:
        accountant = check_local(opened, "a ledger is moved on its own machine, by its path")
        if target is None or abort:
            accountant.ledger.abort_move()
            if as_json:
                print_json({"from": {"ledger": accountant.name}, "aborted": True})
            else:
                click.echo(f"aborted: {accountant.name} is open again. Remove what the move left at TO.")
            return
        confirm(f"Move {accountant.name} to TO? From then on {accountant.name} refuses every charge.", yes)
        when_stopped(
            lambda: f"{accountant.name} may be closed. Move it to another new place, or add --abort to open it again."
        )
        with progress("moving") as on_progress:
            moved = accountant.ledger.move_to(target, on_progress=on_progress)
    if as_json:
        print_json(moved.to_json())
    else:
        click.echo(f"moved, and both verify: accounts {moved.accounts}, entries {moved.entries}")
        click.echo(f"  from {moved.source}, closed, head {moved.source_head}")
        click.echo(f"  to {moved.target}, open, head {moved.target_head}")


@ledger.command("export")
@click.option(
    "--users",
    "file",
    metavar="FILE",
    help="Add the names of the users in FILE: CSV or a list (- for standard input).",
)
@user_column_option
@layout_options
@click.option("--to", "path", metavar="FILE", help="Write to FILE, readable by you only, instead of standard output.")
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
    """Export the journal, by default as JSON lines; users appear as account numbers.

    With the ledger's key file, --users adds the names of the users in a list. The ledger itself holds no names.

    \b
    Example:
      ldp-budget ledger export --to journal.ndjson
    """
    if file is None:
        check_no_list(user_column, no_header)
    names = None if file is None else listed_users(file, user_column, delimiter, encoding, no_header)
    opened = open_ledger(ctx)
    rows = followed(opened.journal(names), "exporting", lambda: int(opened.stats()["entries"]))
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
        raise click.ClickException(f"--to: cannot write {path}: {error.strerror}.") from None
