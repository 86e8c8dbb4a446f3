"""`ldp-budget api-key`: the API keys of a service; and `ldp-budget invite`: personal survey links for respondents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import click

from ldp_budget._files import PRIVATE
from ldp_budget.errors import UnknownName
from ldp_budget_cli.app import check_local, open_ledger
from ldp_budget_cli.input_tables import layout_options
from ldp_budget_cli.inputs import listed_users, user_column_option
from ldp_budget_cli.limit_figures import minute
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.number_types import NumberRange
from ldp_budget_cli.output import CSV, confirm, counted, json_option, print_json, print_rows, rows_options, yes_option
from ldp_budget_cli.tables import print_row_table
from ldp_budget_surveys.commands.rotation import period_option, turn_of

if TYPE_CHECKING:
    from datetime import datetime

    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.accounting.budget_client import BudgetClient

    from ..api_keys import ApiKey
    from ..invitations import Invitations


_days = click.option(
    "--expires",
    type=NumberRange(0, 36_600, min_open=True),
    metavar="DAYS",
    help="Days until the secret expires [default: never]",
)


_out = click.option(
    "--out",
    metavar="FILE",
    help="Write the secret to the new FILE, which only you can read, and not to stdout. Overwrites no file.",
)


@click.group()
def api_key() -> None:
    """Create, list, rotate and revoke the API keys of a service.

    The secret of an API key is printed once, on stdout, or written to the FILE of --out. The ledger keeps a hash of it.
    """


@api_key.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(["spend", "collect", "read", "statement", "policy", "erase", "audit", "admin"]),
    help="Allow the key to do this; admin is everything. Repeatable.",
)
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="Bind the key to this policy. Repeatable.")
@click.option(
    "--collection", "collections", multiple=True, metavar="NAME", help="Bind the key to this collection. Repeatable."
)
@click.option(
    "--share", metavar="NAME", help="Make its charges fit this share as well. Not with the scopes policy and admin."
)
@_out
@_days
@json_option
@click.pass_context
def create(
    ctx: click.Context,
    name: str,
    scopes: tuple[str, ...],
    policies: tuple[str, ...],
    collections: tuple[str, ...],
    share: str | None,
    out: str | None,
    expires: float | None,
    as_json: bool,
) -> None:
    """Create the API key NAME and print its secret.

    \b
    Example:
      ldp-budget api-key create app --scope spend --scope read --out app.key
    """
    from ..api_keys import ApiKeys

    ledger = open_ledger(ctx)
    _check_known(ledger, policies, collections, share)
    with _secret_file(out) as write:
        made, secret = ApiKeys(ledger).create(
            name,
            scopes,
            policies=policies or None,
            collections=collections or None,
            share=share,
            expires=_after(ledger, expires),
        )
        write(secret)
    _show(ledger, made, secret, out, as_json)


def _check_known(
    ledger: BudgetClient, policies: tuple[str, ...], collections: tuple[str, ...], share: str | None
) -> None:
    """Raise `UnknownName` for a name that the ledger does not have: an API key bound to it could do nothing."""
    there = ledger.policies() if policies or share else []
    known = {
        "policy": [policy.name for policy in there],
        "collection": [row["name"] for row in ledger.collections()] if collections else [],
        "share": sorted({each.name for policy in there for each in policy.shares}),
    }
    asked = {"policy": policies, "collection": collections, "share": () if share is None else (share,)}
    for kind, names in asked.items():
        for name in names:
            if name not in known[kind]:
                raise UnknownName(kind, name, known[kind], "No API key was created.")


@api_key.command("rotate")
@click.argument("name")
@click.option(
    "--overlap",
    type=NumberRange(0, 3660),
    default=7.0,
    show_default=True,
    metavar="DAYS",
    help="Days for which the old secret stays valid.",
)
@_out
@_days
@json_option
@click.pass_context
def rotate(
    ctx: click.Context, name: str, overlap: float, out: str | None, expires: float | None, as_json: bool
) -> None:
    """Give the API key NAME a new secret and print it. The old secret stays valid for --overlap.

    \b
    Example:
      ldp-budget api-key rotate app --overlap 7 --out app.new.key
    """
    from ..api_keys import ApiKeys

    ledger = open_ledger(ctx)
    with _secret_file(out) as write:
        made, secret = ApiKeys(ledger).rotate(name, overlap=timedelta(days=overlap), expires=_after(ledger, expires))
        write(secret)
    _show(ledger, made, secret, out, as_json)


@api_key.command("list")
@rows_options
@click.pass_context
def list_(ctx: click.Context, form: str | None) -> None:
    """List every API key with its state, also expired and revoked ones.

    \b
    Example:
      ldp-budget api-key list
    """
    from ..api_keys import ApiKeys

    ledger = open_ledger(ctx)
    now = ledger.now()
    rows = [each.to_json(now) for each in ApiKeys(ledger).all()]
    if form is not None:
        print_rows(rows, form)
        return
    print_row_table([_key_row(row, rows) for row in rows], ("by", "made (UTC)", "share"))


def _key_row(row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns of the text output. Bindings that no key has are left out."""
    bound = {name: row[name] for name in ("policies", "collections", "share") if any(each[name] for each in rows)}
    return {
        **{name: row[name] for name in ("name", "state", "scopes")},
        **bound,
        "expires (UTC)": "never" if row["expires"] is None else minute(row["expires"]),
        "made (UTC)": minute(row["made"]),
        "by": row["by"],
    }


@api_key.command("revoke")
@click.argument("name")
@json_option
@click.pass_context
def revoke(ctx: click.Context, name: str, as_json: bool) -> None:
    """Revoke the API key NAME with all its secrets. This cannot be undone.

    \b
    Example:
      ldp-budget api-key revoke app
    """
    from ..api_keys import ApiKeys

    keys = ApiKeys(open_ledger(ctx))
    try:
        keys.revoke(name)
    except UnknownName:
        if any(each.name == name for each in keys.all()):
            raise click.ClickException(f"API key {name!r} is already revoked.") from None
        raise
    if as_json:
        print_json({"name": name, "revoked": True})
        return
    print_note(f"revoked: {name}. A running service refuses it within a second")


def _after(ledger: BudgetClient, days: float | None) -> datetime | None:
    return None if days is None else ledger.now() + timedelta(days=days)


@contextmanager
def _secret_file(path: str | None) -> Iterator[Callable[[str], object]]:
    """Create the file of a secret, and yield the function that writes it; without a path that does nothing.

    The file is created before the key: a secret that cannot be written would be lost. It is deleted if no key is made.
    """
    if path is None:
        yield lambda secret: None
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except FileExistsError:
        raise click.ClickException(
            f"{path} exists, and --out overwrites no file. No secret was made. Choose another FILE."
        ) from None
    except OSError as error:
        raise click.ClickException(f"Cannot write {path}: {error.strerror}. No secret was made.") from None
    file = os.fdopen(descriptor, "w", encoding="ascii")
    with file:
        try:
            yield lambda secret: file.write(f"{secret}\n")
        except BaseException:
            os.unlink(path)
            raise


def _show(ledger: BudgetClient, made: ApiKey, secret: str, out: str | None, as_json: bool) -> None:
    shown: dict[str, Any] = made.to_json(ledger.now())
    if as_json:
        print_json({**shown, **({"secret": secret} if out is None else {"secret_file": out})})
        return
    until = "" if made.expires is None else f", until {shown['expires']}"
    if out is not None:
        print_note(f"API key {made.name}: {', '.join(made.scopes)}{until}. Its secret is in {out}")
        return
    print_note(f"API key {made.name}: {', '.join(made.scopes)}{until}. Its secret is shown once; store it now:")
    click.echo(secret)


_LOCAL = "http://127.0.0.1:8000"
_INVITE_COLUMNS = ("user", "link")
_DIGITS = 32
"""The length of the definition's digest in a link: enough that no second definition with the same prefix is found."""


@click.command()
@click.argument("collection")
@click.argument("file", required=False)
@user_column_option
@layout_options
@click.option(
    "--expires",
    type=NumberRange(0, 3660, min_open=True),
    default=14.0,
    show_default=True,
    metavar="DAYS",
    help="Days for which the links are valid.",
)
@click.option("--round", default="", metavar="NAME", help="Name the round: each user may answer once in each round.")
@period_option
@click.option(
    "--service",
    default=_LOCAL,
    show_default=True,
    metavar="URL",
    help="The URL at which respondents reach the service.",
)
@click.option(
    "--revoke",
    is_flag=True,
    help="End the links made so far: those of the users in FILE, or without FILE all of them. Asks first.",
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
    period: str | None,
    service: str,
    revoke: bool,
    yes: bool,
    form: str | None,
) -> None:
    """Print a personal link for each user in FILE ('-' is standard input) to answer COLLECTION, as CSV.

    A link works like a password: anyone who has it can answer in its user's place. The links are not stored. A survey
    with rotate invites only the users whose turn it is; the links are for this period.

    \b
    Example:
      ldp-budget invite mood users.csv --service https://survey.example.org \\
        > links.csv
      ldp-budget invite mood --revoke
    """
    from ldp_budget_cli.inputs import Repeats

    from ..invitations import Invitations

    if file is None and not revoke:
        raise click.UsageError(f"FILE is missing: a list of users. Try: ldp-budget invite {collection} users.csv")
    address = _address(service, collection)
    ledger = check_local(open_ledger(ctx), "links are created and ended on the machine of the ledger")
    invitations = Invitations(ledger, fresh=0)
    repeats = Repeats()
    users = None if file is None else listed_users(file, user_column, delimiter, encoding, no_header)
    if revoke:
        whose = "all users" if users is None else f"the users in {file}"
        confirm(f"End the links of {whose} to {collection}?", yes)
        _revoke(invitations, collection, users)
        return
    assert users is not None
    found, until = ledger.collection(collection), ledger.now() + timedelta(days=expires)
    turn = turn_of(ctx, found, "default", period, spend=True)
    users = repeats.counting(users)
    if turn is not None:
        round, until = round or turn.period.name, min(until, turn.period.ends)
        users = turn.asked_of(users)
    made = invitations.invite(collection, users, until, round=round)
    digest = found.definition()["digest"]
    print_rows(_links(made, address, digest[:_DIGITS] + _log_key(ledger)), form or CSV, _INVITE_COLUMNS)
    repeats.warn_of_case()
    if turn is not None:
        print_note(str(turn))
    if service == _LOCAL:
        click.echo(f"Warning: the links open only on this machine ({_LOCAL}). Add --service https://HOST", err=True)


def _links(made: Iterable[tuple[str, str]], address: str, agreed: str) -> Iterator[dict[str, str]]:
    # What was agreed: the definition, and the key of the publications. Browsers never send the fragment of a URL.
    return ({"user": user, "link": f"{address}#{token}~{agreed}"} for user, token in made)


def _log_key(ledger: Accountant) -> str:
    """Return the hash of the public key of the log of publications, for a link; nothing without such a key."""
    from ldp_budget.errors import NotSupported, PublicationError
    from ldp_budget_surveys.publication.publisher import Publisher

    try:
        key = Publisher(ledger).key().verifier_key
    except (NotSupported, PublicationError):
        return ""
    return f"~{sha256(key.encode()).hexdigest()[:_DIGITS]}"


def _address(service: str, collection: str) -> str:
    if not service.startswith(("https://", "http://")) or any(each in service for each in "#? "):
        raise click.UsageError(
            f"--service must be a URL that begins with https:// or http://, without ? and #: got {service!r}"
        )
    try:
        parts = urlsplit(service)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise click.UsageError(f"--service must be a URL with a host: got {service!r} ({error})") from None
    if not host or port == 0 or parts.username is not None:
        raise click.UsageError(
            f"--service must be a URL with a host, and without a user: got {service!r}. Write https://HOST"
        )
    if parts.path.strip("/"):
        raise click.UsageError(
            f"--service must be a URL without a path, because the service has its pages at /s/NAME: got {service!r}. "
            f"Write {parts.scheme}://{parts.netloc}"
        )
    return f"{service.rstrip('/')}/s/{quote(collection, safe='')}"


def _revoke(invitations: Invitations, collection: str, users: Iterable[str] | None) -> None:
    if users is None:
        invitations.revoke(collection)
        print_note("revoked: the links of all users so far")
        return
    count = 0
    for user in users:
        invitations.revoke(collection, user)
        count += 1
    print_note(f"revoked: the links of {counted(count, 'user')} so far")
