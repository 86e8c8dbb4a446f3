"""`ldp-budget publish` and `ldp-budget prove`: publish a survey that its respondents can check."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ldp_budget_cli.app import check_local, collection_names, open_ledger, parse_time, policy_option
from ldp_budget_cli.inputs import find_collection
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.output import confirm, counted, json_option, next_step, print_json, write_utf8, yes_option

if TYPE_CHECKING:
    from datetime import datetime

    from ..publication.publisher import Publisher

_SURVEY = "NAME"


class _PublishGroup(click.Group):
    """A group whose default subcommand publishes the collection that is named in a subcommand's place."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [_SURVEY, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_PublishGroup, subcommand_metavar="NAME --out FOLDER | key | forget | registry")
def publish() -> None:
    """Publish the collection NAME in FOLDER, so that its respondents can check it.

    The reports that still wait are sealed. A signed statement commits to the totals of all accounts, the charges and
    the reports. The folder needs no server.

    \b
    Example:
      ldp-budget publish mood --out site/
    """


@publish.command(_SURVEY, hidden=True)
@click.argument("collection", metavar="NAME", shell_complete=collection_names)
@click.option("--out", required=True, metavar="FOLDER", type=click.Path(file_okay=False), help="The folder to write.")
@policy_option("State the lifetime limit of this policy")
@json_option
@click.pass_context
def survey(ctx: click.Context, collection: str, out: str, policy: str, as_json: bool) -> None:
    """Publish the collection NAME in FOLDER.

    \b
    Example:
      ldp-budget publish mood --out site/
    """
    publisher = _publisher(ctx)
    done = publisher.publish(find_collection(ctx, collection), out, policy=policy)
    if as_json:
        print_json(done.to_json())
        return
    said = done.statement
    share = 100 * said["maximum"] / said["limit"]
    click.echo(
        f"{out}: statement {done.number} of the log {done.verifier_key.split('+')[0]}\n"
        f"{counted(said['accounts'], 'account')}, none above {share:.4g} % of the limit; "
        f"{counted(said['charges'], 'charge')}; {counted(said['reports'], 'report')}"
    )
    next_step(f'ldp-budget check {out} --key "$(ldp-budget publish key show)"')


@publish.group("key")
def key() -> None:
    """Create or show the key that signs the log of publications. It is not the key of the ledger."""


@key.command("new")
@click.option(
    "--name", metavar="NAME", help="The origin of the log, such as ask.example.org/surveys [default: a random name]"
)
@json_option
@click.pass_context
def new(ctx: click.Context, name: str | None, as_json: bool) -> None:
    """Create the key of the log, and print its public key.

    \b
    Example:
      ldp-budget publish key new --name ask.example.org/surveys
    """
    made = _publisher(ctx, create=True).new_key(name or f"ldp-budget/{secrets.token_hex(8)}")
    _show_key(made.verifier_key, as_json)
    print_note("Print this public key where respondents see it before they answer.")


@key.command("show")
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Print the public key of the log, which `check --key` takes.

    \b
    Example:
      ldp-budget publish key show
    """
    _show_key(_publisher(ctx).key().verifier_key, as_json)


def _show_key(verifier_key: str, as_json: bool) -> None:
    if as_json:
        print_json({"key": verifier_key})
    else:
        click.echo(verifier_key)


@key.command("promise")
@click.argument("collection", metavar="NAME", shell_complete=collection_names)
@policy_option("Promise the lifetime limit of this policy")
@json_option
@click.pass_context
def promise(ctx: click.Context, collection: str, policy: str, as_json: bool) -> None:
    """Print the signed lifetime limit for the receipts of the collection NAME, always as JSON.

    `randomize --receipts` and the service write it into receipts. An application that charges with `inbox take` adds it
    to the receipts that it writes, as `promise`.

    \b
    Example:
      ldp-budget publish key promise mood
    """
    found = find_collection(ctx, collection)
    ledger = check_local(open_ledger(ctx), "sign on the machine of the ledger")
    print_json(ledger.books.promise(found.name, found.definition()["digest"], policy))


@publish.command("registry")
@click.argument("collection", metavar="NAME", shell_complete=collection_names)
@policy_option("State the limits of this policy")
@click.option("--curator", "curators", multiple=True, metavar="TEXT", help="Who publishes the results; repeatable.")
@click.option("--region", default="", metavar="TEXT", help="The region that the data describes.")
@click.option("--author", "authors", multiple=True, metavar="TEXT", help="Who wrote the entry; repeatable.")
@json_option
@click.pass_context
def registry(
    ctx: click.Context,
    collection: str,
    policy: str,
    curators: tuple[str, ...],
    region: str,
    authors: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print the entry of the collection NAME for the registry of differential-privacy deployments, as YAML.

    The registry is opendp/deployments-registry-data on GitHub. Fill in the texts that begin with "To fill in" before
    you send the entry.

    \b
    Example:
      ldp-budget publish registry mood --region Germany > mood.yaml
    """
    from ..publication.registry_entry import Facts, registry_entry, to_fill_in, to_yaml

    ledger = check_local(open_ledger(ctx), "make the entry on the machine of the ledger")
    known = Facts(curators, region, authors)
    entry = registry_entry(ledger, ledger.collection(collection.removeprefix("collection:")), known, policy=policy)
    if as_json:
        print_json(json.loads(json.dumps(entry, default=float)))
    else:
        write_utf8()
        click.echo(to_yaml(entry), nl=False)
    if left := list(to_fill_in(entry)):
        print_note(f"To fill in: {', '.join(left)}")


@publish.command("forget")
@click.option(
    "--before",
    required=True,
    metavar="DATE",
    callback=parse_time,
    help="Forget the publications before this time (UTC).",
)
@yes_option
@json_option
@click.pass_context
def forget(ctx: click.Context, before: datetime, yes: bool, as_json: bool) -> None:
    """Destroy the secrets of old publications: no proof can be made for them any more.

    Their roots stay valid, and so do the proofs that respondents have.

    \b
    Example:
      ldp-budget publish forget --before 2027-03-01 --yes
    """
    publisher = _publisher(ctx)
    confirm(f"Destroy the secrets of all publications before {before:%Y-%m-%d %H:%M} UTC?", yes)
    count = publisher.forget(before)
    if as_json:
        print_json({"forgotten": count})
    else:
        click.echo(f"{counted(count, 'secret was', 'secrets were')} destroyed")


@click.command()
@click.argument("collection", metavar="NAME", shell_complete=collection_names)
@click.argument("receipt", metavar="RECEIPT")
@click.pass_context
def prove(ctx: click.Context, collection: str, receipt: str) -> None:
    """Print the proof for a RECEIPT in the newest publication of the collection NAME.

    Send the proof to the respondent alone: it has her total.

    \b
    Example:
      ldp-budget prove mood receipts/alice.json > proof.json
    """
    name = collection.removeprefix("collection:")
    try:
        given = json.loads(Path(receipt).read_bytes())
    except (OSError, ValueError) as error:
        raise click.UsageError(
            f"RECEIPT: cannot read {receipt}: {getattr(error, 'strerror', None) or error}"
        ) from None
    found = _publisher(ctx).prove(name, given)
    # The file has one form only, without a newline at its end.
    click.echo(json.dumps(found, sort_keys=True, separators=(",", ":")), nl=sys.stdout.isatty())


def _publisher(ctx: click.Context, *, create: bool = False) -> Publisher:
    from ..publication.publisher import Publisher

    return Publisher(check_local(open_ledger(ctx, create=create), "publish on the machine of the ledger"))
