"""`ldp-budget collection` and `ldp-budget inbox`.

A collection is the set-up that clients and server share. An inbox takes single reports from devices, without a
server of your own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.registry.public_definition import MINIMUM_GROUP, MOST_GROUP
from ldp_budget.sdk.domain import Categories
from ldp_budget_cli.app import check_local, collection_names, open_ledger
from ldp_budget_cli.errors import REFUSED
from ldp_budget_cli.inputs import find_collection, read_json
from ldp_budget_cli.mechanism_arguments import MechanismGroup, mechanism_command
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.number_types import WholeRange
from ldp_budget_cli.output import counted, json_option, next_step, print_json, print_rows, rows_options, strict_option
from ldp_budget_cli.tables import print_fields, print_row_table

from .design_options import combinations_in, note_public, odd_values
from .text_lists import read_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

    from ldp_budget import Accountant
    from ldp_budget.client import Client
    from ldp_budget.registry.collections import Collection
    from ldp_budget.reports.inbox import Inbox, Marks
    from ldp_budget.sdk.mechanism import Mechanism

    Build = tuple[type[Mechanism], Mapping[str, Any]]


@click.group()
def collection() -> None:
    """Define, show and list collections: the set-up that clients and server share."""


def _with_categories(mechanism: type[Mechanism], options: str) -> str:
    """Return the options of an example with the names of the answers in place of their number."""
    field = mechanism.fields.get("domain_size")
    if field is None or not field.required:
        return options
    return f"{options.replace(' --domain-size 7', '')} --categories good,fair,bad"


@mechanism_command(
    "Store the collection NAME: a mechanism and the names of its answers.",
    example="collection add mood {}",
    collections=False,
    adapt=_with_categories,
    arguments=["name"],
    # The number of categories can replace the domain size, so the mechanism is built when both are known.
    build=lambda mechanism, values: (mechanism, values),
)
@click.option("--categories", metavar="FILE|A,B,C", help="The answers in order: a list, or a file with one a line.")
@click.option("--title", default="", help="Tell respondents the name of the survey.")
@click.option("--question", default="", help="Tell respondents the question.")
@click.option("--purpose", default="", help="Tell respondents what it is for.")
@click.option("--contact", default="", help="Tell respondents whom to ask.")
@click.option(
    "--languages",
    metavar="FILE",
    help="Add translations from JSON: for each language tag its title, question, purpose and answers.",
    type=click.Path(exists=True, dir_okay=False),
)
@click.option(
    "--minimum-group",
    type=WholeRange(1, MOST_GROUP),
    default=MINIMUM_GROUP,
    show_default=True,
    help="Make no round of fewer reports, so that each report hides among as many.",
)
@click.option(
    "--labels",
    is_flag=True,
    help="Charge rappor and loloha reports over HTTP with labels, which tell you for certain which answers repeat.",
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
    minimum_group: int,
    labels: bool,
    as_json: bool,
) -> None:
    from ldp_budget.registry.collections import Collection, collection_of
    from ldp_budget.registry.public_definition import About

    check_free(name)
    answers = None if categories is None else _answers(categories)
    about = About(title, question, purpose, contact, read_json("languages", languages) if languages else {})
    if isinstance(chosen, tuple):
        _check_answers(*chosen, answers)
        made = collection_of(name, *chosen, answers, about, None, minimum_group, with_labels=labels)
    else:
        made = Collection(name, chosen, answers, about, minimum_group=minimum_group, with_labels=labels).agreed()
    ledger = open_ledger(click.get_current_context(), create=True)
    stored = stored_as(ledger, name)
    if stored is not None and isinstance(chosen, tuple):
        made = collection_of(name, *chosen, answers, about, stored, minimum_group, with_labels=labels)
    outcome = register(ledger, made, "collection")
    if as_json:
        print_json(made.to_json())
        return
    click.echo(outcome)
    print_fields(made.to_json())
    next_step(
        f"ldp-budget randomize {name} FILE --column COLUMN --out {name}.reports, or ldp-budget spend USER {name}"
    )


def _answers(categories: str) -> tuple[str, ...]:
    """Return the answers of `--categories`. Raises a click error for a single name, which may be a missing file."""
    from ldp_budget.sdk.domain import check_categories

    answers = read_names("categories", categories)
    if len(answers) == 1 and not os.path.isfile(categories):
        raise click.UsageError(
            f"--categories needs two or more names: got one, {answers[0]!r}. {_separators(answers[0])}"
        )
    check_categories(answers)
    return answers


def _separators(name: str) -> str:
    """Return what to do about a list that is one name."""
    other = next((each for each in ";|、，،" if each in name), None)
    return "If it is a file, it does not exist." if other is None else f"Separate names by a comma, not by {other!r}."


def _check_answers(mechanism: type[Mechanism], options: Mapping[str, Any], answers: tuple[str, ...] | None) -> None:
    """Raise a click error if the number of answers is missing, or if the mechanism cannot randomize any."""
    field = mechanism.fields.get("domain_size")
    if answers is None and "domain_size" not in options and field is not None and field.required:
        raise click.UsageError(
            "The answers are missing. Add --categories A,B,C, or --domain-size N for answers without names."
        )
    if answers is None:
        return
    size = {"domain_size": len(answers)} if field is not None and "domain_size" not in options else {}
    domain = mechanism(**options, **size).domain
    if not isinstance(domain, Categories):
        why = (
            "cannot randomize: it defines no client"
            if domain is None
            else "asks for a number, which has no categories"
        )
        raise click.UsageError(f"Mechanism {mechanism.name} {why}. Leave --categories out.")


assert isinstance(add, MechanismGroup)
collection.add_command(add)


@collection.command("list")
@rows_options
@click.pass_context
def list_(ctx: click.Context, form: str | None) -> None:
    """List the collections of the ledger.

    \b
    Example:
      ldp-budget collection list
    """
    definitions = open_ledger(ctx).collections()
    if form is not None:
        print_rows(definitions, form)
        return
    columns = ("name", "mechanism", "declared", "categories")
    print_row_table([{column: _text(row[column]) for column in columns} for row in map(_in_short, definitions)])


def _in_short(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition with the names of its questions in place of a survey's declaration."""
    if "survey" not in definition:
        return definition
    declared = definition["declared"]
    names = ", ".join(question["name"] for question in declared["questions"])
    return {**definition, "declared": {"ask": declared["ask"], "questions": names}}


@collection.command("show")
@click.argument("name", shell_complete=collection_names)
@click.option(
    "--client", is_flag=True, help="Print the public definition: JSON with a client program for any device."
)
@click.option(
    "--sql",
    type=click.Choice(("duckdb", "postgres", "bigquery", "dbt")),
    help="Print SQL that estimates its shares from a table of reports in a warehouse.",
)
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, client: bool, sql: str | None, as_json: bool) -> None:
    """Show the collection NAME. A client in Python needs its --json, a client on a device its --client.

    \b
    Example:
      ldp-budget collection show mood
      ldp-budget collection show mood --client > mood.json
      ldp-budget collection show mood --sql duckdb > mood.sql
    """
    from ldp_budget.errors import NotSupported

    ledger, name = open_ledger(ctx), name.removeprefix("collection:")
    if sql is not None:
        from ..sql_macros import macros

        click.echo(macros(ledger.collection(name), sql), nl=False)
        return
    if client:
        # Exactly as agreed: any addition would change its digest.
        click.echo(json.dumps(ledger.collection(name).definition(), indent=2, ensure_ascii=False))
        return
    try:
        definition = ledger.collection(name).to_json()
    except NotSupported as error:
        print_note(f"Shown as it is stored, because {error}")
        definition = next(stored for stored in ledger.collections() if stored["name"] == name)
    _show(definition, as_json)


def stored_as(ledger: Accountant | Client, name: str) -> Collection | None:
    """Return the stored collection of a name, whose drawn seeds are used again; None if there is none to read."""
    from ldp_budget.errors import NotSupported, UnknownName

    try:
        return ledger.collection(name)
    except (NotSupported, UnknownName):
        return None


def register(ledger: Accountant | Client, made: Collection, noun: str) -> str:
    """Add a collection, or a survey as `noun` says, and return a line of output.

    Raises a click error if the name has another definition.
    """
    from ldp_budget.errors import NameTaken

    is_there = any(stored["name"] == made.name for stored in ledger.collections())
    try:
        ledger.add_collection(made)
    except NameTaken:
        if not is_there:
            raise
        raise click.ClickException(
            f"{noun.capitalize()} {made.name!r} exists with another definition. It was not changed. To see it: ldp-budget "
            f"{noun} show {made.name}. For the new definition, choose another name."
        ) from None
    return f"exists, unchanged: {noun} {made.name}" if is_there else f"added: {noun} {made.name}"


def check_free(name: str) -> None:
    """Raise `NameTaken` if a mechanism has the name: both could be meant where MECHANISM is expected."""
    from ldp_budget.errors import NameTaken, UnknownName
    from ldp_budget.registry.plugins import mechanism

    try:
        taken = mechanism(name)
    except UnknownName:
        return
    raise NameTaken("collection", name, f"is a name of the mechanism {taken.name}", hint="Choose another name.")


def _show(definition: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(definition)
    elif "survey" in definition:
        print_fields({name: value for name, value in _in_short(definition).items() if name != "survey"})
        print_note(f"\nThe questions: ldp-budget survey show {definition['name']}")
    else:
        print_fields(definition)


def _text(value: Any) -> Any:
    return ", ".join(f"{name}={item}" for name, item in value.items()) if isinstance(value, dict) else value


_COUNTED = ("taken", "repeated", "refused", "invalid")


@click.group()
def inbox() -> None:
    """Take the reports that devices send one by one, and seal them into report files."""


@inbox.command("take")
@click.argument("collection")
@click.argument("file", type=click.File(encoding="utf-8", errors="surrogateescape"))
@click.option("--policy", default="default", show_default=True, help="Use the limits of this policy.")
@strict_option
@json_option
@click.pass_context
def take(ctx: click.Context, collection: str, file: TextIO, policy: str, strict: bool, as_json: bool) -> None:
    """Charge and store the reports in FILE ('-' is standard input), one a line.

    A line is JSON: {"user": …, "key": …, "report": hex, "label": …}, with the label for memoized reports only, and
    perhaps "marks": {"report": hex, "charge": hex}, to check a publication, and "public": {"region": "north"},
    attributes without noise. A line that comes again is charged and stored once. Invalid lines are counted and named on
    standard error; if all lines are invalid, the exit code is 1.

    \b
    Example:
      ldp-budget inbox take mood reports.ndjson
    """
    from ldp_budget.errors import LdpBudgetError, LedgerError

    box = _opened(ctx, collection, policy)
    counts = dict.fromkeys(_COUNTED, 0)
    for number, line in _lines(file):
        try:
            asked = _read(line)
            more = {"label": asked["label"], "marks": asked["marks"], "public": asked.get("public")}
            receipt = box.take(asked["user"], asked["key"], asked["report"], **more)
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
    if counts["invalid"] and counts["invalid"] == sum(counts.values()):
        raise click.ClickException("Every line is invalid. Nothing was charged or stored.")
    if not as_json and counts["taken"]:
        next_step(f"ldp-budget inbox seal {collection} {collection}.reports")
    if strict and counts["refused"]:
        sys.exit(REFUSED)


@inbox.command("seal")
@click.argument("collection")
@click.argument("out", type=click.Path(dir_okay=False))
@click.option("--round", "name", metavar="NAME", help="Name the round [default: OUT without folder and suffix]")
@click.option(
    "--group",
    type=WholeRange(min=1),
    metavar="K",
    help="Seal whole groups of K reports [default and least: the minimum group of the collection]",
)
@click.option(
    "--public",
    multiple=True,
    metavar="ATTRIBUTE",
    help="Write this public attribute of the reports as a column of OUT. Repeatable [default: all attributes]",
)
@json_option
@click.pass_context
def seal(
    ctx: click.Context,
    collection: str,
    out: str,
    name: str | None,
    group: int | None,
    public: tuple[str, ...],
    as_json: bool,
) -> None:
    """Seal the stored reports as a round, and write it to the report file OUT, a Parquet partition if it ends in .parquet.

    A round has its reports in random order, without users, keys or times. The ledger keeps it: for a round that was
    sealed before, also by a service, this only writes the file.

    Only the oldest reports that fill whole groups of K are sealed: each report hides among at least K. The rest waits
    for the next round. The least K is the collection's minimum group (collection add --minimum-group, default 20).

    Public attributes of the reports become public columns of OUT. Each report then hides among those with the same
    values. A report without an attribute has the empty text there.

    \b
    Example:
      ldp-budget inbox seal mood mood.reports --round 2027-03
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
        raise click.ClickException(str(error)) from None
    count, waiting = _written(box, name, out, public), len(box)
    warn_of_pseudonyms(find_collection(ctx, collection), count, group)
    _note_attributes(out, find_collection(ctx, collection))
    if waiting:
        least = group or find_collection(ctx, collection).minimum_group
        print_note(f"{counted(waiting, 'report waits', 'reports wait')} for a whole group of {least}")
    if as_json:
        print_json({"round": name, "reports": count, "out": out, "waiting": waiting})
    else:
        click.echo(f"{out}: {counted(count, 'report')}")
        next_step(f"ldp-budget estimate {collection} {out}")


def warn_of_pseudonyms(collection: Collection, reports: int, group: int | None = None) -> None:
    """Print a warning if reports carry a number that few users share, by which rounds can be linked."""
    numbers, least = collection.mechanism.pseudonyms, group or collection.minimum_group
    most = max(1, reports // least)
    if numbers > most:
        option = "cohorts" if "cohorts" in collection.mechanism.fields else "hashes"
        click.echo(
            f"Warning: each report has a number of its user that is the same in every round, one of {numbers:,}. That "
            f"is more than {reports:,} reports / {least}, so rounds can be linked person by person. A new collection "
            f"with --{option} {most} hides each among about {least}, with larger errors",
            err=True,
        )


def _note_attributes(out: str, collection: Collection) -> None:
    """Print what the public columns of a report file reveal, and a warning for values that split groups by mistake."""
    from ldp_budget.reports.partial_aggregate import open_files

    if names := [name for reports in open_files(out, collection, {}) for name in reports.public]:
        found = combinations_in(out, collection)
        for each in odd_values(names, found):
            click.echo(
                f"Warning: {each}. Send each attribute with every report, and write its values alike", err=True
            )
        note_public(names, found)


def _written(box: Inbox, name: str, out: str, public: tuple[str, ...]) -> int:
    """Write a round to a file; return its number of reports."""
    from ldp_budget.errors import ReportFileError

    try:
        return box.write(name, out, public=public or None)
    except ReportFileError as error:
        why = f"The ledger has sealed round {name}. To write it to another file, add --round '{name}'"
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
    from ldp_budget._files import RepeatedMemberError, strict_json

    try:
        line.encode()  # fails on surrogates, which replace bytes that are not UTF-8
        asked = strict_json(line)
    except RepeatedMemberError as error:
        why = f"the line has the member {error.name[:40]!r} more than once. Send it once."
        raise ValueError(why) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the line is not JSON: {error}") from None
    if not isinstance(asked, dict) or not all(isinstance(asked.get(name), str) for name in ("user", "key", "report")):
        raise ValueError('the line must be {"user": …, "key": …, "report": hex}, each value a text')
    try:
        report = bytes.fromhex(asked["report"])
    except ValueError:
        raise ValueError(f"the report must be hex: got {asked['report'][:40]!r}") from None
    return {**asked, "report": report, "label": asked.get("label"), "marks": _marks(asked.get("marks"))}


def _marks(given: Any) -> Marks | None:
    """Return the marks of a line. Raises ValueError unless they are two texts of 32 hexadecimal digits."""
    from ldp_budget.reports.inbox import Marks

    if given is None:
        return None
    try:
        report, charge = (bytes.fromhex(given[name]) for name in ("report", "charge"))
    except (KeyError, TypeError, ValueError):
        raise ValueError('the marks must be {"report": hex, "charge": hex}, 16 bytes each') from None
    return Marks(report, charge)
