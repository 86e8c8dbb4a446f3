"""`ldp-budget inbox`: reports that devices sent one by one, without a server of our own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.collecting import LEAST_REPORTS

from .app import open_ledger
from .files import find_collection
from .output import counted, json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from ldp_budget.collecting.inbox import Inbox

_COUNTED = ("taken", "repeated", "refused", "invalid")

folder_option = click.option(
    "--inbox", "folder", metavar="FOLDER", help="Where reports are kept [default: COLLECTION.inbox]"
)


@click.group()
def inbox() -> None:
    """Take reports that devices sent one by one, and seal them into report files."""


@inbox.command("take")
@click.argument("collection")
@click.argument("file", type=click.File(encoding="utf-8", errors="surrogateescape"))
@click.option("--policy", default="default", show_default=True, help="Whose limits to go by.")
@folder_option
@json_option
@click.pass_context
def take(ctx: click.Context, collection: str, file: TextIO, policy: str, folder: str | None, as_json: bool) -> None:
    """Charge and keep the reports in FILE ('-' is standard input), one a line.

    A line is JSON: {"user": …, "key": …, "report": hex, "label": …}, the label for memoised reports only. Taking a
    line again charges and keeps nothing again. Lines that are no report are counted, and named on standard error.
    """
    from ldp_budget.errors import LdpBudgetError, LedgerError, ReportFileError

    box = _opened(ctx, collection, folder, policy)
    counts = dict.fromkeys(_COUNTED, 0)
    for number, line in _lines(file):
        try:
            asked = _read(line)
            receipt = box.take(asked["user"], asked["key"], asked["report"], label=asked["label"])
        except (LedgerError, ReportFileError):
            raise  # no fault of the line: it may be charged, and is kept when it is taken again
        except (LdpBudgetError, ValueError) as error:
            counts["invalid"] += 1
            click.echo(f"line {number}: {error}", err=True)
            continue
        counts["refused" if not receipt else "repeated" if receipt.repeated else "taken"] += 1
    if as_json:
        print_json(counts)
    else:
        click.echo(", ".join(f"{count} {name}" for name, count in counts.items()))


@inbox.command("seal")
@click.argument("collection")
@click.argument("out", type=click.Path(dir_okay=False))
@folder_option
@click.option(
    "--group",
    type=click.IntRange(min=1),
    default=LEAST_REPORTS,
    metavar="K",
    help=f"Seal whole groups of K reports [default: {LEAST_REPORTS}]",
)
@json_option
@click.pass_context
def seal(ctx: click.Context, collection: str, out: str, folder: str | None, group: int, as_json: bool) -> None:
    """Write what was taken to the report file OUT, in random order, with no user, key or time in it.

    Only the oldest reports that make whole groups of K are written, as the service does it: each report hides among
    at least K. The rest waits for the next seal. When a survey is over, --group 1 seals what is left.
    """
    from ldp_budget.collecting.inbox import TooFewReports

    box = _opened(ctx, collection, folder, "default")
    try:
        count = box.seal(out, group)
    except TooFewReports as error:
        why = "Or name a smaller --group, and each report hides among fewer others"
        raise click.ClickException(f"{error} {why}") from None
    waiting = len(box)
    if waiting:
        click.echo(f"{counted(waiting, 'report waits', 'reports wait')} for a whole group of {group}", err=True)
    if as_json:
        print_json({"reports": count, "out": out, "waiting": waiting})
    else:
        click.echo(f"{out}: {counted(count, 'report')}")


@inbox.command("move")
@click.argument("collection")
@folder_option
@json_option
@click.pass_context
def move(ctx: click.Context, collection: str, folder: str | None, as_json: bool) -> None:
    """Take the reports of COLLECTION into another folder from now on.

    The earlier folder is refused from then on, and keeps its reports: seal them first. A report that the earlier
    folder took is a conflict when it is sent again.
    """
    box = _opened(ctx, collection, folder, "default", replaces=True)
    if as_json:
        print_json({"collection": collection, "inbox": str(box.folder)})
    else:
        click.echo(f"{collection}: reports are taken into {box.folder} from now on")


def _opened(ctx: click.Context, name: str, folder: str | None, policy: str, *, replaces: bool = False) -> Inbox:
    from ldp_budget.collecting.inbox import Inbox

    collection = find_collection(ctx, name)
    place = folder or f"{collection.name}.inbox"
    return Inbox(open_ledger(ctx), collection, place, policy=policy, replaces=replaces)


def _lines(file: TextIO) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(file, 1) if line.strip())


def _read(line: str) -> dict[str, Any]:
    """A line's user, key, report and label. Raises ValueError, saying what is missing."""
    try:
        line.encode()  # other bytes than UTF-8 stand in it as surrogates
        asked = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from None
    if not isinstance(asked, dict) or not all(isinstance(asked.get(name), str) for name in ("user", "key", "report")):
        raise ValueError('expected {"user": …, "key": …, "report": hex}, each a text')
    try:
        report = bytes.fromhex(asked["report"])
    except ValueError:
        raise ValueError(f"expected the report in hex; found {asked['report'][:40]!r}") from None
    return {**asked, "report": report, "label": asked.get("label")}
