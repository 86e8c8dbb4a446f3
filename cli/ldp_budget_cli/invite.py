"""`ldp-budget invite`: links by which respondents take part in a survey, each their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from .app import check_local, open_ledger
from .asking import confirm, yes_option
from .output import CSV, counted, print_rows, rows_options
from .tables import layout_options
from .user_lists import listed_users, user_column_option

if TYPE_CHECKING:
    from ldp_budget.accounting.access.invitations import Invitations

_COLUMNS = ("user", "link")
_DIGITS = 32
"""How much of the definition's digest is in a link: nobody finds another one that begins with as much."""


@click.command()
@click.argument("collection")
@click.argument("file", required=False)
@user_column_option
@layout_options
@click.option(
    "--expires",
    type=click.FloatRange(0, 3660, min_open=True),
    default=14.0,
    show_default=True,
    metavar="DAYS",
    help="For how long they are good.",
)
@click.option(
    "--round", default="", metavar="NAME", help="Which time it is asked: each user may answer once in each."
)
@click.option(
    "--service",
    default="http://127.0.0.1:8000",
    show_default=True,
    metavar="URL",
    help="Where respondents reach the service.",
)
@click.option(
    "--revoke",
    is_flag=True,
    help="End the links made so far: those of the users in FILE; without FILE all of them, which asks first.",
)
@yes_option
@rows_options
@click.pass_context
def invite(
    ctx: click.Context,
    collection: str,
    file: str | None,
    user_column: str | None,
    delimiter: str,
    encoding: str,
    no_header: bool,
    expires: float,
    round: str,
    service: str,
    revoke: bool,
    yes: bool,
    form: str | None,
) -> None:
    """Print a link for each user in FILE ('-' is standard input) to answer COLLECTION, as CSV.

    A link is as good as a password: whoever has it can answer in its user's place. Nothing of it is stored.
    """
    from ldp_budget.accounting.access.invitations import Invitations

    from .repeats import Repeats

    if file is None and not revoke:
        raise click.UsageError("FILE: expected a file that lists users; nothing was given")
    ledger = check_local(open_ledger(ctx), "links are made and ended on the machine of the ledger")
    invitations = Invitations(ledger, fresh=0)
    repeats = Repeats()
    users = None if file is None else listed_users(file, user_column, delimiter, encoding, no_header)
    if revoke:
        if users is None:
            confirm(f"End the links of all users to {collection}?", yes)
        _revoke(invitations, collection, users)
        return
    assert users is not None
    made = invitations.invite(
        collection, repeats.counting(users), ledger.now() + timedelta(days=expires), round=round
    )
    digest = ledger.collection(collection).definition()["digest"]
    print_rows(_links(made, _address(service, collection), digest), form or CSV, _COLUMNS)
    repeats.warn_of_case()


def _links(made: Iterable[tuple[str, str]], address: str, digest: str) -> Iterator[dict[str, str]]:
    # The digest tells the page which definition the link was made for, and a fragment is sent to nobody.
    return ({"user": user, "link": f"{address}#{token}~{digest[:_DIGITS]}"} for user, token in made)


def _address(service: str, collection: str) -> str:
    if not service.startswith(("https://", "http://")) or any(each in service for each in "#? "):
        expected = "an address that begins with https:// or http://, without ? and #"
        raise click.UsageError(f"--service: expected {expected}; found {service!r}")
    return f"{service.rstrip('/')}/s/{quote(collection, safe='')}"


def _revoke(invitations: Invitations, collection: str, users: Iterable[str] | None) -> None:
    if users is None:
        invitations.revoke(collection)
        click.echo("revoked: everybody's invitations so far", err=True)
        return
    count = 0
    for user in users:
        invitations.revoke(collection, user)
        count += 1
    click.echo(f"revoked: the invitations of {counted(count, 'user')} so far", err=True)
