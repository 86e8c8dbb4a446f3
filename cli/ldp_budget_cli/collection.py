"""`ldp-budget collection` and `ldp-budget inbox`.

A collection is the set-up that clients and server share. An inbox takes single reports from devices, without a
server of your own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.reports import LEAST_REPORTS

from .app import check_local, collection_names, open_ledger
from .inputs import find_collection, read_json, read_names
from .mechanism_subcommands import MechanismGroup, mechanism_command
from .output import counted, json_option, print_fields, print_json, print_row_table, print_rows, rows_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

    from ldp_budget.reports.inbox import Inbox
    from ldp_budget.sdk.mechanism import Mechanism

    Build = tuple[type[Mechanism], Mapping[str, Any]]


@click.group()
def collection() -> None:
    """Define the set-up that clients and server share."""


@mechanism_command(
    "Store a collection under NAME: a mechanism, and the names of its answers.",
    arguments=["name"],
    # The number of categories can replace the domain size, so the mechanism is built when both are known.
    build=lambda mechanism, values: (mechanism, values),
)
@click.option("--categories", metavar="FILE|A,B,C", help="The answers in order: a file, one a line, or a list.")
@click.option("--title", default="", help="What respondents are told: the name of the survey.")
@click.option("--question", default="", help="What respondents are told: the question.")
@click.option("--purpose", default="", help="What respondents are told: what it is for.")
@click.option("--contact", default="", help="What respondents are told: whom to ask.")
@click.option(
    "--languages",
    metavar="FILE",
    help="JSON: for each language tag its title, question, purpose and answers.",
    type=click.Path(exists=True, dir_okay=False),
)
@json_option
def add(
    chosen: Build | Mechanism,
    name: str,
    categories: str | None,
    title: str,
    question: str,
    purpose: str,
    contact: str,
    languages: str | None,
    as_json: bool,
) -> None:
    from ldp_budget.registry.collections import Collection, check_categories, collection_of
    from ldp_budget.registry.public_definition import About

    _check_free(name)
    answers = None if categories is None else read_names("categories", categories)
    if answers is not None:
        check_categories(answers)
    about = About(title, question, purpose, contact, read_json("languages", languages) if languages else {})
    if isinstance(chosen, tuple):
        made = collection_of(name, *chosen, answers, about)
    else:
        made = Collection(name, chosen, answers, about).agreed()
    open_ledger(click.get_current_context(), create=True).add_collection(made)
    _show(made.to_json(), as_json)


assert isinstance(add, MechanismGroup)
collection.add_command(add)


@collection.command("list")
@rows_options
@click.pass_context
def list_(ctx: click.Context, form: str | None) -> None:
    """List the collections of the ledger."""
    definitions = open_ledger(ctx).collections()
    if form is not None:
        print_rows(definitions, form)
        return
    columns = ("name", "mechanism", "declared", "categories")
    print_row_table([{column: _text(row[column]) for column in columns} for row in definitions])


@collection.command("show")
@click.argument("name", shell_complete=collection_names)
@click.option("--client", is_flag=True, help="The public definition: JSON with a client for any device.")
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, client: bool, as_json: bool) -> None:
    """Show one collection; its JSON is what a client in Python needs."""
    from ldp_budget.errors import NotSupported

    ledger = open_ledger(ctx)
    if client:
        # Exactly as agreed: any addition would change its digest.
        click.echo(json.dumps(ledger.collection(name).definition(), indent=2, ensure_ascii=False))
        return
    try:
        definition = ledger.collection(name).to_json()
    except NotSupported as error:
        click.echo(f"Shown as it is stored: {error}", err=True)
        definition = next(stored for stored in ledger.collections() if stored["name"] == name)
    _show(definition, as_json)


def _check_free(name: str) -> None:
    """Raise `NameTaken` if a mechanism has the name: both could be meant where MECHANISM is expected."""
    from ldp_budget.errors import NameTaken, UnknownName
    from ldp_budget.registry.plugins import mechanism

    try:
        taken = mechanism(name)
    except UnknownName:
        return
    raise NameTaken("collection", name, f"it is a name of the mechanism {taken.name}; choose another")


def _show(definition: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(definition)
    else:
        print_fields(definition)


def _text(value: Any) -> Any:
    return ", ".join(f"{name}={item}" for name, item in value.items()) if isinstance(value, dict) else value


_COUNTED = ("taken", "repeated", "refused", "invalid")


@click.group()
def inbox() -> None:
    """Receive reports that devices send one by one, and seal them into report files."""


@inbox.command("take")
@click.argument("collection")
@click.argument("file", type=click.File(encoding="utf-8", errors="surrogateescape"))
@click.option("--policy", default="default", show_default=True, help="Whose limits to go by.")
@json_option
@click.pass_context
def take(ctx: click.Context, collection: str, file: TextIO, policy: str, as_json: bool) -> None:
    """Charge and store the reports in FILE ('-' is standard input), one a line.

    A line is JSON: {"user": …, "key": …, "report": hex, "label": …}, with the label for memoised reports only. You
    may take a line again: it is charged and stored once. Invalid lines are counted, and named on standard error.
    """
    from ldp_budget.errors import LdpBudgetError, LedgerError

    box = _opened(ctx, collection, policy)
    counts = dict.fromkeys(_COUNTED, 0)
    for number, line in _lines(file):
        try:
            asked = _read(line)
            receipt = box.take(asked["user"], asked["key"], asked["report"], label=asked["label"])
        except LedgerError:
            raise  # not the line's fault
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
@click.option("--round", "name", metavar="NAME", help="Name of the round [default: OUT without folder and suffix]")
@click.option(
    "--group",
    type=click.IntRange(min=1),
    default=LEAST_REPORTS,
    metavar="K",
    help=f"Seal whole groups of K reports [default: {LEAST_REPORTS}]",
)
@json_option
@click.pass_context
def seal(ctx: click.Context, collection: str, out: str, name: str | None, group: int, as_json: bool) -> None:
    """Seal the stored reports as a round, and write it to the report file OUT.

    A round has its reports in random order, without users, keys or times. The ledger keeps it: for a round that was
    sealed before, also by a service, this only writes the file.

    Only the oldest reports that fill whole groups of K are sealed: each report hides among at least K. The rest waits
    for the next round. At the end of a survey, --group 1 seals what is left.
    """
    from ldp_budget.errors import NameTaken, TooFewReports

    box, name = _opened(ctx, collection, "default"), name or Path(out).stem
    if Path(out).exists():
        raise click.ClickException(f"{out} exists. Name another file; nothing was sealed.")
    try:
        box.seal(name, group)
    except NameTaken:
        pass  # an earlier run, or a service, has sealed it
    except TooFewReports as error:
        why = " Or name a smaller --group, and each report hides among fewer others." if error.reports else ""
        raise click.ClickException(f"{error}{why}") from None
    count, waiting = _written(box, name, out), len(box)
    if waiting:
        click.echo(f"{counted(waiting, 'report waits', 'reports wait')} for a whole group of {group}", err=True)
    if as_json:
        print_json({"round": name, "reports": count, "out": out, "waiting": waiting})
    else:
        click.echo(f"{out}: {counted(count, 'report')}")


def _written(box: Inbox, name: str, out: str) -> int:
    """Write a round to a file; return its number of reports."""
    from ldp_budget.errors import ReportFileError

    try:
        return box.write(name, out)
    except ReportFileError as error:
        why = f"The ledger has round {name}. Write it to another file: add --round '{name}'"
        raise click.ClickException(f"{error}. {why}") from None


def _opened(ctx: click.Context, name: str, policy: str) -> Inbox:
    from ldp_budget.reports.inbox import Inbox

    collection = find_collection(ctx, name)
    why = "send reports to the service itself, as POST /v1/collections/NAME/reports"
    return Inbox(check_local(open_ledger(ctx), why), collection, policy=policy)


def _lines(file: TextIO) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(file, 1) if line.strip())


def _read(line: str) -> dict[str, Any]:
    """Return the user, key, report and label of a line. Raises ValueError, naming what is missing."""
    try:
        line.encode()  # fails on surrogates, which replace bytes that are not UTF-8
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
