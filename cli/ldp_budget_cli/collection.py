"""`ldp-budget collection`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from .app import open_ledger
from .completion import collection_names
from .files import read_json, read_names
from .mechanism_group import MechanismGroup, mechanism_command
from .output import json_option, print_fields, print_json, print_row_table, print_rows, rows_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ldp_budget.authoring.base import Mechanism

    Build = tuple[type[Mechanism], Mapping[str, Any]]


@click.group()
def collection() -> None:
    """Agree on one set-up for clients and server."""


@mechanism_command(
    "Store a collection under NAME: a mechanism, and the names of its answers.",
    arguments=["name"],
    # The number of categories can stand for the domain size, so the mechanism is built when both are known.
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
    from ldp_budget.catalogue.about import About
    from ldp_budget.catalogue.collections import Collection, check_categories, collection_of

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
    """Show one collection; as JSON it is what a client in Python needs."""
    from ldp_budget.errors import NotSupported

    ledger = open_ledger(ctx)
    if client:
        # As it was signed off: nothing is added to it, or its digest would be another.
        click.echo(json.dumps(ledger.collection(name).definition(), indent=2, ensure_ascii=False))
        return
    try:
        definition = ledger.collection(name).to_json()
    except NotSupported as error:
        click.echo(f"Shown as it is stored: {error}", err=True)
        definition = next(stored for stored in ledger.collections() if stored["name"] == name)
    _show(definition, as_json)


def _check_free(name: str) -> None:
    """Raise `NameTaken` where a mechanism has the name: where MECHANISM is asked for, both could be meant."""
    from ldp_budget.catalogue.plugins import mechanism
    from ldp_budget.errors import NameTaken, UnknownName

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
