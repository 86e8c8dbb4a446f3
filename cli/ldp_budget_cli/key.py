"""`ldp-budget api-key`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.errors import UnknownName

from .app import open_ledger
from .output import json_option, print_json, print_row_table, print_rows, rows_options

if TYPE_CHECKING:
    from datetime import datetime

    from ldp_budget.accounting.access.keys import ApiKey
    from ldp_budget.accounting.budget_client import BudgetClient

_days = click.option(
    "--expires",
    type=click.FloatRange(0, 36_600, min_open=True),
    metavar="DAYS",
    help="Days until the secret expires.",
)


@click.group()
def api_key() -> None:
    """Create, list, rotate and revoke the API keys of a service.

    The secret of an API key is printed once, on stdout. The ledger keeps a hash of it.
    """


@api_key.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(["spend", "collect", "read", "policy", "erase", "audit", "admin"]),
    help="What the key may do; admin is everything. Repeat for more.",
)
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="Only this policy. Repeat for more.")
@click.option(
    "--collection", "collections", multiple=True, metavar="NAME", help="Only this collection. Repeat for more."
)
@click.option(
    "--share", metavar="NAME", help="Its charges must fit this share as well. Not with the scopes policy and admin."
)
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
    expires: float | None,
    as_json: bool,
) -> None:
    """Create the API key NAME and print its secret.

    \b
    Example:
      ldp-budget api-key create app --scope spend --scope read > app.key
    """
    from ldp_budget.accounting.access.keys import ApiKeys

    ledger = open_ledger(ctx)
    _check_known(ledger, policies, collections, share)
    made, secret = ApiKeys(ledger).create(
        name,
        scopes,
        policies=policies or None,
        collections=collections or None,
        share=share,
        expires=_after(ledger, expires),
    )
    _show(ledger, made, secret, as_json)


def _check_known(
    ledger: BudgetClient, policies: tuple[str, ...], collections: tuple[str, ...], share: str | None
) -> None:
    """Raise `UnknownName` for a name that the ledger does not have: a key bound to it could do nothing."""
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
                raise UnknownName(kind, name, known[kind], "No key was made")


@api_key.command("rotate")
@click.argument("name")
@click.option(
    "--overlap",
    type=click.FloatRange(0, 3660),
    default=7.0,
    show_default=True,
    metavar="DAYS",
    help="Days for which the old secret stays valid.",
)
@_days
@json_option
@click.pass_context
def rotate(ctx: click.Context, name: str, overlap: float, expires: float | None, as_json: bool) -> None:
    """Give the API key NAME a new secret and print it. The old secret stays valid for --overlap."""
    from ldp_budget.accounting.access.keys import ApiKeys

    ledger = open_ledger(ctx)
    made, secret = ApiKeys(ledger).rotate(name, overlap=timedelta(days=overlap), expires=_after(ledger, expires))
    _show(ledger, made, secret, as_json)


@api_key.command("list")
@rows_options
@click.pass_context
def list_(ctx: click.Context, form: str | None) -> None:
    """List every API key with its state, also expired and revoked ones."""
    from ldp_budget.accounting.access.keys import ApiKeys

    ledger = open_ledger(ctx)
    now = ledger.now()
    rows = [each.to_json(now) for each in ApiKeys(ledger).all()]
    if form is not None:
        print_rows(rows, form)
        return
    print_row_table([{name: row[name] for name in _COLUMNS} for row in rows])


_COLUMNS = ("name", "state", "scopes", "policies", "collections", "share", "expires", "made", "by")


@api_key.command("revoke")
@click.argument("name")
@click.pass_context
def revoke(ctx: click.Context, name: str) -> None:
    """Revoke the API key NAME, with every secret of it. This cannot be undone."""
    from ldp_budget.accounting.access.keys import ApiKeys

    ApiKeys(open_ledger(ctx)).revoke(name)
    click.echo(f"revoked {name}; a service that runs knows it within a second", err=True)


def _after(ledger: BudgetClient, days: float | None) -> datetime | None:
    return None if days is None else ledger.now() + timedelta(days=days)


def _show(ledger: BudgetClient, made: ApiKey, secret: str, as_json: bool) -> None:
    shown: dict[str, Any] = made.to_json(ledger.now())
    if as_json:
        print_json({**shown, "secret": secret})
        return
    until = "" if made.expires is None else f" until {shown['expires']}"
    click.echo(
        f"key {made.name}: {', '.join(made.scopes)}{until}; this is its secret, which is kept nowhere:", err=True
    )
    click.echo(secret)
