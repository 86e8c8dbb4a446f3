"""The ledger of a service: `--ledger https://…`, with an API key from the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ldp_budget.client import Client

KEY_VARIABLE = "LDP_BUDGET_API_KEY"
KEY_FILE_VARIABLE = "LDP_BUDGET_API_KEY_FILE"
_MOST = 10_000


def is_service(ledger: str) -> bool:
    """Whether a ledger is kept by a service."""
    return ledger.partition("://")[0].lower() in ("https", "http")


def open_service(url: str, *, plain_http: bool) -> Client:
    """The client of a service. Nothing is asked yet. Raises `InvalidParameter` and click's errors."""
    from ldp_budget.client import Client
    from ldp_budget.errors import InvalidParameter, NotSupported

    try:
        return Client(url, _key(), plain_http=plain_http)
    except InvalidParameter as error:
        names = {"url": "--ledger", "key": KEY_VARIABLE}
        why = error.describe(names.get(error.option, error.option))
        raise click.UsageError(why.replace("`plain_http`, said aloud", "--plain-http, before the command")) from None
    except NotSupported as error:
        raise click.ClickException(str(error)) from None


def _key() -> str:
    """The API key: never a word of a command line, which others on the machine may see."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if key:
        return key
    file = os.environ.get(KEY_FILE_VARIABLE)
    if not file:
        raise click.UsageError(
            f"--ledger: a service needs an API key, in {KEY_VARIABLE} or in a file that {KEY_FILE_VARIABLE} names"
        )
    try:
        with open(file, encoding="ascii", errors="replace") as opened:
            return opened.read(_MOST).strip()
    except OSError as error:
        raise click.ClickException(f"{KEY_FILE_VARIABLE}: {file} cannot be read: {error.strerror}") from None
