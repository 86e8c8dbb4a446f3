"""`ldp-budget randomize`: the client's side."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.collecting.release import Released, release
from ldp_budget.errors import InvalidParameter, OutsideDomain

from .app import open_ledger
from .files import find_collection, read_columns
from .output import charging, json_option, print_json

if TYPE_CHECKING:
    from ldp_budget.catalogue.collections import Collection

LEAST_SECRET_BYTES = 16


@click.command()
@click.argument("collection")
@click.argument("file")
@click.option("--column", required=True, metavar="C", help="The column that holds the answers.")
@click.option("--out", required=True, metavar="FILE", help="The report file to write.")
@click.option("--user-column", metavar="U", help="The column that names the users; needed with --spend.")
@click.option("--spend", is_flag=True, help="Charge each user first; refused users send nothing.")
@click.option("--secret", metavar="FILE", help="Memoise: what was drawn once for a user's value is drawn again.")
@click.option("--policy", default="default", metavar="NAME", help="With --spend, the policy [default: default]")
@json_option
@click.pass_context
def randomize(
    ctx: click.Context,
    collection: str,
    file: str,
    column: str,
    out: str,
    user_column: str | None,
    spend: bool,
    secret: str | None,
    policy: str,
    as_json: bool,
) -> None:
    """Randomize a column of FILE for COLLECTION, a name in the ledger or its JSON file."""
    from ldp_budget.collecting.reports import ReportWriter

    if (spend or secret) and user_column is None:
        why = "--spend" if spend else "--secret"
        raise click.UsageError(
            f"--user-column: expected the column that names the users, with {why}; nothing was given"
        )
    found = find_collection(ctx, collection)
    wanted = {"column": column} if user_column is None else {"column": column, "user_column": user_column}
    columns = read_columns(file, wanted)
    if not columns[column]:
        raise click.ClickException(f"{file} has no rows below its header; nothing was written")
    if user_column is not None:
        _check_users(file, user_column, columns[user_column])
    try:
        values = found.read_values(columns[column])
    except OutsideDomain as error:
        where = "" if error.position is None else f", row {error.position + 1} below the header"
        raise click.ClickException(f"{file}, column {column}{where}: {error}; nothing was written") from None
    if secret is None:
        _check_fresh(found, values)
    users = columns[user_column] if user_column is not None else []
    secrets = None if secret is None else _secrets(secret, users, found)
    if spend:
        ledger = open_ledger(ctx)
        with charging(len(users)) as advance:
            released = release(out, found, ledger, values, users, policy=policy, secrets=secrets, on_batch=advance)
    else:
        with ReportWriter(out, found) as writer:
            writer.write(found.mechanism.randomize(values, secrets=secrets))
        released = Released(len(values), 0)
    if as_json:
        print_json({"reports": released.reports, "refused": released.refused, "out": out})
    else:
        told = f"; {released.refused} users were refused and sent nothing" if released.refused else ""
        click.echo(f"{released.reports} reports written to {out}{told}", err=True)


def _check_users(file: str, column: str, users: list[str]) -> None:
    """Before anybody is charged: every row names its user."""
    if "" in users:
        where = f"{file}, column {column}, row {users.index('') + 1} below the header"
        raise click.ClickException(f"{where}: expected a user, found nothing; nothing was written")


def _check_fresh(collection: Collection, values: Any) -> None:
    """Before anything is stored: the mechanism can do without a secret. The report that is tried goes nowhere."""
    try:
        collection.mechanism.randomize(values[:1])
    except InvalidParameter as error:
        if error.option != "secrets":
            raise
        name = collection.mechanism.name
        raise click.UsageError(
            f"--secret: expected a file, as this {name} memoises what it draws; nothing was given"
        ) from None


def _secrets(path: str, users: list[str], collection: Collection) -> list[bytes]:
    """One secret for each user of this collection, derived from the secret in a file."""
    try:
        with open(path, "rb") as file:
            master = file.read()
    except OSError as error:
        raise click.ClickException(f"--secret: {path} cannot be read: {error.strerror}") from None
    if len(master) < LEAST_SECRET_BYTES:
        raise click.UsageError(
            f"--secret: expected a file of at least {LEAST_SECRET_BYTES} bytes; found {len(master)}"
        )
    key = hashlib.sha256(collection.fingerprint.encode() + master).digest()
    return [
        hashlib.blake2b(user.encode("utf-8", "surrogatepass"), key=key, digest_size=32).digest() for user in users
    ]
