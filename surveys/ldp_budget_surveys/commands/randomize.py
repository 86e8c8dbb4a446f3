"""`ldp-budget randomize`: randomize the answers of a table on the client's side."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import OneSided
from ldp_budget.reports.charged_release import Released, check_out, release
from ldp_budget.reports.places import shown_place
from ldp_budget_cli.app import check_local, collection_names, open_ledger, policy_option
from ldp_budget_cli.errors import REFUSED, report_progress_on_interrupt, when_stopped
from ldp_budget_cli.input_tables import LEFT_OUT_COLUMNS, Layout, layout_options, writing_rows
from ldp_budget_cli.inputs import exact_users_option, find_collection
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.output import counted, json_option, next_step, print_json, strict_option
from ldp_budget_cli.progress import counting, followed
from ldp_budget_cli.refusals import MOST_QUOTED, print_refusing_limits

from .answer_reader import AnswerReader, Reading
from .design_options import (
    check_public,
    combinations_in,
    note_public,
    public_option,
    stop_on_public_values,
    warn_of_public_values,
)
from .rotation import period_option, turn_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ldp_budget.registry.collections import Collection
    from ldp_budget_cli.input_tables import Note

    from .answer_reader import Batch
    from .rotation import Turn


LEAST_SECRET_BYTES = 16

_NOT_STARTED = "Nothing was written and no user was charged. Run it again."


@click.command()
@click.argument("collection", shell_complete=collection_names)
@click.argument("file")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="C",
    help="The column that holds the answers. Of a survey QUESTION=C, repeatable [default: the question's name]",
)
@click.option(
    "--out", required=True, metavar="FILE", help="The report file to write; FILE.parquet for a Parquet partition."
)
@click.option("--overwrite", is_flag=True, help="Replace the file at --out, unless users were charged for it.")
@click.option("--user-column", metavar="U", help="The column of the users; needed with --spend and --secret.")
@public_option
@exact_users_option
@layout_options
@click.option(
    "--missing", multiple=True, metavar="VALUE", help="Leave out rows with VALUE as the answer. Repeatable."
)
@click.option(
    "--ignore-case", is_flag=True, help="Join answers, and public values, that differ only by case or spaces."
)
@click.option("--clip", is_flag=True, help="Replace a number outside the range by the nearest end.")
@click.option("--skip-invalid", is_flag=True, help="Leave out invalid rows, count them, and write the reasons.")
@click.option(
    "--skipped-to", metavar="FILE", help="The file for the reasons of --skip-invalid [default: OUT.skipped.csv]"
)
@click.option("--spend", is_flag=True, help="Charge each user first. Refused users send nothing.")
@click.option("--once", is_flag=True, help="With --spend: use only the first row of each user.")
@click.option(
    "--refused-to",
    metavar="FILE",
    help="With --spend: write the refused users to FILE: CSV, or .parquet, .arrow.",
)
@strict_option
@click.option(
    "--secret", metavar="FILE", help="Memoize: repeat the draw of a user's value. At least 16 secret bytes."
)
@click.option(
    "--receipts",
    metavar="FOLDER",
    help="With --spend: store the reports in the ledger, to publish them, and write each user's receipt to FOLDER.",
)
@policy_option("With --spend: use the limits of this policy")
@period_option
@click.option(
    "--garbled",
    is_flag=True,
    help="Of a one-sided collection: the column has the reports of a survey that garbled them. Write them as they are.",
)
@json_option
@click.pass_context
def randomize(
    ctx: click.Context,
    collection: str,
    file: str,
    columns: tuple[str, ...],
    out: str,
    overwrite: bool,
    user_column: str | None,
    public: tuple[str, ...],
    exact_users: bool,
    delimiter: str,
    encoding: str,
    no_header: bool,
    missing: tuple[str, ...],
    ignore_case: bool,
    clip: bool,
    skip_invalid: bool,
    skipped_to: str | None,
    spend: bool,
    once: bool,
    refused_to: str | None,
    strict: bool,
    secret: str | None,
    receipts: str | None,
    policy: str,
    period: str | None,
    garbled: bool,
    as_json: bool,
) -> None:
    """Randomize a column of FILE for COLLECTION, a name in the ledger or its JSON file.

    FILE is CSV, Excel, Parquet or Arrow: a path, a URL such as s3://…, or - for standard input. For a survey, FILE has a
    column for each question. With --user-column, a user is asked the same questions in every round. A survey with
    rotate charges only the users whose turn it is.

    \b
    Example:
      ldp-budget randomize mood answers.csv --column mood --user-column user \\
        --spend --out mood.reports
    """
    _check_together(spend, secret, user_column, once, refused_to, strict, skip_invalid, skipped_to, receipts)
    if spend:
        if overwrite:
            raise click.UsageError(
                "--overwrite does not go with --spend: a file that users are charged for is never replaced. Leave "
                "--overwrite out, and name another file with --out."
            )
        _check_new_round(out)
        if public and receipts is not None:
            raise click.UsageError("--public cannot be used with --receipts, whose reports carry no attributes.")
    else:
        _check_free(out, overwrite)
    when_stopped(lambda: _NOT_STARTED)
    found = find_collection(ctx, collection)
    if garbled and (spend or not isinstance(found.mechanism.guarantee, OneSided)):
        raise click.UsageError(
            "--garbled is for a collection with the mechanism one-sided, without --spend. Leave it out."
        )
    column = _column(found, columns)
    public = check_public(public, _answer_columns(found, columns), user_column)
    if found.mechanism.components and secret is not None:
        raise click.UsageError("--secret is for collections that memoize, and a survey does not. Leave it out.")
    how = Reading(
        column,
        user_column,
        Layout(delimiter, encoding, not no_header),
        frozenset(missing),
        clip,
        once,
        public,
        ignore_case,
        exact_users,
    )
    skipped_to = (skipped_to or f"{out}.skipped.csv") if skip_invalid else None
    with (
        writing_rows("skipped-to", skipped_to, LEFT_OUT_COLUMNS) as note_skipped,
        writing_rows("refused-to", refused_to, {"user": str}) as note_refused,
    ):
        reader = _reader(file, found, how, note_skipped if skip_invalid else None, columns)
        batches = _checked(found, reader.batches(), None if secret is None else _master(secret))
        refused: list[str] = []
        turn = turn_of(ctx, found, policy, period, spend=spend)
        released = (
            _charged(ctx, out, found, batches, policy, note_refused, refused, receipts, turn)
            if spend
            else _uncharged(out, found, batches, public, garbled=garbled)
        )
    answers = reader.answers
    answers.report(skipped_to)
    if not spend:
        warn_of_public_values(public, answers.combinations)
    refusing = bool(public) and (released.refused > 0 or turn is not None)
    note_public(public, combinations_in(out, found) if refusing else answers.combinations)
    if as_json:
        left_out = answers.left_out
        more = {"skipped": left_out.invalid, "skipped_reasons": dict(left_out.kinds)} if skip_invalid else {}
        more |= {"repeated_rows": answers.again} if once else {}
        more |= {} if turn is None else turn.to_json()
        print_json({"reports": released.reports, "refused": released.refused, "out": out, **more})
    if turn is not None:
        print_note(f"{turn}, {released.reports:,} answered")
    if not as_json or not spend:
        print_note(_summary(released, file, out, spend, garbled=garbled))
    if refused:
        print_refusing_limits(open_ledger(ctx), refused, released.refused, found, policy)
    if not as_json and released.reports:
        next_step(f"ldp-budget {f'publish {collection} --out site/' if receipts else f'estimate {collection} {out}'}")
    elif not as_json:
        print_note(f"There is nothing to estimate: {out} holds no report, because all users were refused")
    if strict and released.refused:
        sys.exit(REFUSED)


def _check_folder(out: str) -> None:
    """Raise a click error if the folder of a local file does not exist."""
    from ldp_budget.reports.places import is_address, local_path

    folder = "" if is_address(out) else os.path.dirname(local_path(out))
    if folder and not os.path.isdir(folder):
        raise click.ClickException(
            f"--out: the folder {folder} does not exist. Nothing was written and no user was charged. Create it first: "
            f"mkdir -p {shlex.quote(folder)}"
        )


def _answer_columns(collection: Collection, columns: tuple[str, ...]) -> list[str]:
    """Return the columns of the answers."""
    from ..questionnaires.survey_collection import SurveyCollection
    from .survey_reader import columns_of

    if not isinstance(collection, SurveyCollection):
        return list(columns)

    return list(columns_of(collection.mechanism, columns).values())


def _column(collection: Collection, columns: tuple[str, ...]) -> str:
    """Return the column of the answers; empty for a survey, which has several."""
    if collection.mechanism.components:
        return ""
    if len(columns) != 1:
        problem = "--column is missing: the column that holds the answers." if not columns else "Give --column once."
        raise click.UsageError(f"{problem} Add --column NAME")
    return columns[0]


def _reader(
    file: str, collection: Collection, how: Reading, note: Note | None, columns: tuple[str, ...]
) -> AnswerReader:
    from ..questionnaires.survey_collection import SurveyCollection
    from .survey_reader import SurveyReader, columns_of

    if not isinstance(collection, SurveyCollection):
        return AnswerReader(file, collection, how, note)
    return SurveyReader(file, collection, how, note, columns_of(collection.mechanism, columns))


def _check_new_round(out: str) -> None:
    """Raise a click error if a finished report file exists at `out`: its users were charged for it."""
    place = check_out(out)
    _check_folder(out)
    if os.path.isfile(place) and not os.path.exists(f"{place}.partial"):
        raise click.ClickException(
            f"--out: {place} exists. No user was charged. For a new round, in which every user is charged again, name "
            "another file."
        )


def _check_free(out: str, overwrite: bool) -> None:
    """Raise a click error if a file exists at `out` and may not be replaced."""
    from ldp_budget.reports.places import check_writable, exists

    from ..partitions import charged_at

    place = shown_place(out)
    _check_folder(out)
    try:
        check_writable(out)
        there, begun = exists(out), exists(f"{out}.partial")
    except OSError as error:
        raise click.ClickException(f"--out: cannot write {place}: {error.strerror}.") from None
    if begun:
        raise click.ClickException(
            f"--out: {place}.partial is an interrupted run with --spend. Nothing was written. Run the same command "
            "again to finish it, or name another file."
        )
    if not there:
        return
    if not overwrite:
        raise click.ClickException(
            f"--out: {place} exists. Nothing was written. Name another file, or add --overwrite to replace it."
        )
    if charged_at(out):
        raise click.ClickException(
            f"--out: users were charged for the reports in {place}. Nothing was written. Name another file, or move "
            "this one away."
        )


def _checked(
    collection: Collection, batches: Iterable[Batch], master: bytes | None
) -> Iterator[tuple[Batch, list[bytes] | None]]:
    """Yield the batches, each with a secret for each user. Checks first that no needed secret is missing."""
    for number, batch in enumerate(batches):
        if master is None and number == 0:
            _check_fresh(collection, batch.values)
        yield batch, None if master is None else _secrets(master, batch.users)


def _check_together(
    spend: bool,
    secret: str | None,
    user_column: str | None,
    once: bool,
    refused_to: str | None,
    strict: bool,
    skip_invalid: bool,
    skipped_to: str | None,
    receipts: str | None,
) -> None:
    """Raise a click error if an option lacks the one that it needs."""
    if (spend or secret) and user_column is None:
        why = "--spend" if spend else "--secret"
        raise click.UsageError(
            f"--user-column is missing: {why} needs the column of the users. Add --user-column NAME"
        )
    needs_spend = ((once, "--once"), (refused_to, "--refused-to"), (strict, "--strict"), (receipts, "--receipts"))
    for given, option in needs_spend:
        if given and not spend:
            raise click.UsageError(f"{option} needs --spend: without it, no user is charged.")
    if skipped_to is not None and not skip_invalid:
        raise click.UsageError("--skipped-to needs --skip-invalid.")


def _charged(
    ctx: click.Context,
    out: str,
    collection: Collection,
    batches: Iterable[tuple[Batch, list[bytes] | None]],
    policy: str,
    note_refused: Note,
    first_refused: list[str],
    receipts: str | None,
    turn: Turn | None,
) -> Released:
    """Charge each user, and release the reports of the accepted users; `first_refused` collects some refused users."""
    from ldp_budget.reports.public_attributes import PublicAttributes
    from ldp_budget_cli.inputs import warn_of_repeats

    from .answer_cells import joined

    # All are read before the first charge: a repeated run is recognized by all its answers and users.
    given = list(batches)
    values = joined([batch.values for batch, _ in given])
    users = [user for batch, _ in given for user in batch.users]
    secrets = None if given[0][1] is None else [secret for _, some in given for secret in some or ()]
    public = PublicAttributes.joined([batch.public for batch, _ in given if batch.public is not None])
    del given
    if turn is not None:
        places = turn.select(users)
        values, users = values[places], [users[place] for place in places]
        public = None if public is None else public.take(places)
    stop_on_public_values(public)
    ledger = open_ledger(ctx)
    warn_of_repeats(users)
    reached = 0

    def done() -> str:
        return f"{reached} of {counted(len(users), 'user')} charged or refused" if reached else ""

    again = f"run the same command again: it uses the reports in {out}.partial and charges no user twice"
    with report_progress_on_interrupt(done, again), counting("charging", len(users)) as advance:

        def on_batch(batch: int) -> None:
            nonlocal reached
            reached += batch
            advance(batch)

        def on_refused(refused: list[str]) -> None:
            for user in refused:
                note_refused([user])
            first_refused.extend(refused[: MOST_QUOTED - len(first_refused)])

        if receipts is not None:
            check_local(ledger, "run randomize --receipts on the machine of the ledger")
        return release(
            out,
            collection,
            ledger,
            values,
            users,
            policy=policy,
            secrets=secrets,
            public=public,
            receipts=receipts,
            on_batch=on_batch,
            on_refused=on_refused,
        )


def _uncharged(
    out: str,
    collection: Collection,
    batches: Iterable[tuple[Batch, list[bytes] | None]],
    public: tuple[str, ...],
    *,
    garbled: bool = False,
) -> Released:
    """Write the reports of one batch after the other; `garbled` answers are reports already."""
    from ldp_budget.reports.report_file import writer_to

    reports = 0
    with ExitStack() as stack:
        writer = None
        for batch, secrets in followed(batches, "randomizing", size=lambda given: len(given[0].values)):
            # Not earlier: errors in the table's layout come first.
            if writer is None:
                writer = writer_to(out, collection, charged=False, public=public)
                stack.enter_context(writer)
            reported = batch.values.astype("u1") if garbled else collection.randomize(batch.values, secrets=secrets)
            writer.write(reported, batch.public)
            reports += len(batch.values)
    return Released(reports, 0)


def _summary(released: Released, file: str, out: str, spend: bool, *, garbled: bool) -> str:
    """Return a text that says what was written, who was charged for it, and which file has the true answers."""
    parts = [f"{counted(released.reports, 'report')} written to {out}"]
    if released.refused:
        parts.append(f"{counted(released.refused, 'user was', 'users were')} refused and sent nothing")
    if garbled:
        return f'{parts[0]}; no user was charged, and no limit can count them: "no" is not protected'
    if not spend:
        parts.append("no user was charged (add --spend to charge)")
    if file != "-":
        parts.append(f"{shown_place(file)} has the true answers")
    return "; ".join(parts)


def _check_fresh(collection: Collection, values: Any) -> None:
    """Check before anything is stored that the mechanism needs no secret. The test report is discarded."""
    try:
        collection.mechanism.randomize(values[:1])
    except InvalidParameter as error:
        if error.option != "secrets":
            raise
        name = collection.mechanism.name
        raise click.UsageError(f"--secret is missing: this {name} memoizes its draws. Add --secret FILE") from None


def _master(path: str) -> bytes:
    """Return the secret in a file, as a key."""
    try:
        with open(path, "rb") as file:
            master = file.read()
    except OSError as error:
        raise click.ClickException(f"--secret: cannot read {path}: {error.strerror}.") from None
    if len(master) < LEAST_SECRET_BYTES:
        raise click.UsageError(
            f"--secret must be a file of at least {LEAST_SECRET_BYTES} bytes: {path} has {len(master)}. Make one: "
            f"head -c 32 /dev/urandom > {path}"
        )
    return hashlib.sha256(master).digest()


def _secrets(key: bytes, users: list[str]) -> list[bytes]:
    """Derive one secret for each user from the common key."""
    return [
        hashlib.blake2b(user.encode("utf-8", "surrogatepass"), key=key, digest_size=32).digest() for user in users
    ]
