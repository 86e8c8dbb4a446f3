"""`ldp-budget estimate`: the server's estimates; with `--by-round` each file is a round with its own estimate."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ldp_budget.errors import InvalidParameter
from ldp_budget.reports.estimation import (
    add_adjusted,
    check_candidates,
    check_countable,
    chosen_rows,
    estimate_files,
    estimate_row,
)

from .app import collection_names
from .inputs import find_collection, read_names
from .output import (
    JSON,
    counted,
    decimal_option,
    print_json,
    print_row_table,
    print_rows,
    print_table,
    rounded,
    rows_options,
)
from .plots import plot_option
from .table_reader import write_rows_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ldp_budget.registry.collections import Collection
    from ldp_budget.sdk.estimates import Estimate

    Round = Mapping[str, Any]
    """The JSON of `estimate --json` for one file, with its name as `round`."""


def names_of_rounds(files: Sequence[str]) -> list[str]:
    """Return the names of the rounds: their file names, with the folder only if two files have the same name."""
    often = Counter(map(os.path.realpath, files))
    for path in files:
        if often[os.path.realpath(path)] > 1:
            raise InvalidParameter(
                "by_round", "a file for each round", f"{path} {often[os.path.realpath(path)]} times"
            )
    names = [os.path.basename(path) for path in files]
    alike = Counter(names)
    return [path if alike[name] > 1 else name for name, path in zip(names, files, strict=True)]


def largest_over_all(rounds: Sequence[Round], most: int) -> tuple[str, ...]:
    """Return the answers with the largest total counts over all rounds, largest first; the same in each round."""
    counts: Counter[str] = Counter()
    for each in rounds:
        for row in each["answers"]:
            counts[row["answer"]] += row["count"]
    return tuple(answer for answer, _ in sorted(counts.items(), key=lambda item: -item[1])[:most])


def flat_rows(rounds: Sequence[Round]) -> Iterator[dict[str, Any]]:
    """Yield one row for each answer of each round; one for each round of a mean."""
    for each in rounds:
        shared = {"round": each["round"], "reports": each["reports"]}
        for row in each.get("answers", [each]):
            yield {**shared, **row}


@click.command()
@click.argument("collection", shell_complete=collection_names)
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--candidates",
    metavar="FILE|A,B,C",
    help="The answers to count: a file, one a line, or a list; needed for sketches.",
)
@click.option("--top", metavar="K", help="Show only the K answers with the largest counts, largest first.")
@click.option("--confidence", default="0.95", metavar="C", help="Of the intervals, between 0 and 1 [default: 0.95]")
@plot_option("the estimate with its intervals; with --by-round a trend")
@click.option(
    "--adjust",
    type=click.Choice(["nonnegative", "simplex"]),
    help="Beside the unbiased counts, show counts >= 0, or ones that also add up.",
)
@click.option(
    "--independent",
    is_flag=True,
    help="Each file has users of its own; reports that memoise are else taken to repeat those of the same users.",
)
@click.option(
    "--mixed",
    is_flag=True,
    help="Also estimate where some reports were charged to their users and others were not; warns.",
)
@click.option("--by-round", is_flag=True, help="Each file is a round: estimate it by itself, under the file's name.")
@click.option("--rows-to", metavar="FILE", help="Write the rows of --csv to a file: CSV, or .parquet, .arrow.")
@rows_options
@click.pass_context
def estimate(
    ctx: click.Context,
    collection: str,
    files: tuple[str, ...],
    candidates: str | None,
    top: str | None,
    confidence: str,
    plot: str | None,
    adjust: str | None,
    independent: bool,
    mixed: bool,
    by_round: bool,
    rows_to: str | None,
    form: str | None,
) -> None:
    """Estimate counts and shares, or a mean, from the report FILES of COLLECTION, paths or URLs.

    All files together give one estimate; with --by-round, each file gives its own. A folder of partitions is one
    file.
    """
    level, most = _level(confidence), _top(top)
    found = find_collection(ctx, collection)
    names = None if candidates is None else _candidates(found, candidates)
    check_countable(found, names, most)
    ask = _Question(found, names, most, level, adjust, rows_to, mixed)
    if by_round:
        if independent:
            raise click.UsageError("--independent: expected without --by-round, where no files are added up")
        if found.mechanism.finds_answers and names is None:
            raise click.UsageError(
                f"--by-round compares the same words in every round, and {found.name} finds other words in each. "
                "Add --candidates with the words to compare."
            )
        _show_rounds(ask, _estimate_rounds(ask, files), plot, form)
        return
    row = ask.estimate(files, independent=independent)
    _warn_of_twins(files, "reports that are counted twice make the standard errors too small")
    _tell_of_rounds(found, row, len(files))
    _show(ask, row, plot, form)


class _Question(NamedTuple):
    """The requested estimate: the answers by `names` or the `most` largest, and the output form."""

    collection: Collection
    names: tuple[str, ...] | None
    most: int | None
    level: float
    adjust: str | None
    rows_to: str | None = None
    mixed: bool = False

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Write the rows to a file, if one was requested."""
        if self.rows_to is not None:
            write_rows_to("rows-to", self.rows_to, rows)

    def estimate(self, files: Sequence[str], *, independent: bool = False) -> dict[str, Any]:
        """Return the JSON of `estimate --json` for these files, with all answers."""
        charges: dict[str, int] = {}

        def on_mixed(charged: int, uncharged: int) -> None:
            charges.update(charged=charged, uncharged=uncharged)
            both = counted(charged + uncharged, "report")
            click.echo(
                f"Warning: {uncharged} of {both} were not charged to their users: this estimate is of a mix", err=True
            )

        result = estimate_files(
            self.collection,
            files,
            self.names,
            independent=independent,
            most=self.most,
            on_mixed=on_mixed if self.mixed else None,
        )
        return {**self._row(result), **charges}

    def _row(self, result: Estimate) -> dict[str, Any]:
        row = estimate_row(self.collection, result, level=self.level, names=self.names)
        if self.adjust is not None:
            try:
                add_adjusted(result, row, self.adjust)
            except InvalidParameter as error:
                raise click.UsageError(error.describe("--adjust")) from None
        return row


def _show(ask: _Question, row: dict[str, Any], plot: str | None, form: str | None) -> None:
    out_of = None
    if "answers" in row:
        out_of = None if ask.most is None else len(row["answers"])
        row["answers"] = chosen_rows(row["answers"], ask.names, ask.most)
    if plot is not None:
        from .plots.charts import plot_estimate

        plot_estimate(ask.collection, row, plot, level=ask.level, out_of=out_of)
    ask.write(row.get("answers", [row]))
    if form == JSON:
        print_json(row)
    elif form is not None:
        print_rows(row.get("answers", [row]), form)
    elif "answers" in row:
        _print_counts(row, ask.level, out_of)
    else:
        print_row_table([row])


def _estimate_rounds(ask: _Question, files: tuple[str, ...]) -> list[dict[str, Any]]:
    """Estimate each file separately, with all answers."""
    rounds = [
        {"round": name, **ask.estimate((path,))} for name, path in zip(names_of_rounds(files), files, strict=True)
    ]
    _warn_of_twins(files, "what looks like two rounds is one")
    if ask.collection.mechanism.repeats:
        click.echo(
            f"Note: {ask.collection.name} memoises: where the same users report in several rounds, part of the noise "
            "is the same in all of them, and the rounds are no independent evidence",
            err=True,
        )
    return rounds


def _show_rounds(ask: _Question, rounds: list[dict[str, Any]], plot: str | None, form: str | None) -> None:
    out_of = None
    if "answers" in rounds[0]:
        out_of = None if ask.most is None else len(rounds[0]["answers"])
        names = ask.names if ask.most is None else largest_over_all(rounds, ask.most)
        for each in rounds:
            each["answers"] = chosen_rows(each["answers"], names, None)
    if plot is not None:
        from .plots.charts import plot_rounds

        plot_rounds(ask.collection, rounds, plot, level=ask.level, out_of=out_of)
    ask.write(list(flat_rows(rounds)))
    if form == JSON:
        print_json({"rounds": rounds})
    elif form is not None:
        print_rows(flat_rows(rounds), form)
    elif "answers" in rounds[0]:
        _print_count_rounds(rounds, ask.level, out_of)
    else:
        print_row_table(list(flat_rows(rounds)))


def _level(text: str) -> float:
    level = decimal_option("confidence", text)
    if not 0 < level < 1:
        raise InvalidParameter("confidence", "a number > 0 and < 1", text)
    return float(level)


def _top(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise InvalidParameter("top", "a whole number >= 1", text)
    return int(text)


def _candidates(collection: Collection, text: str) -> tuple[str, ...]:
    """Return the requested answers, each checked to be one of the collection's, and only once."""
    names = read_names("candidates", text)
    check_candidates(collection, names)
    return names


def _tell_of_rounds(collection: Collection, row: dict[str, Any], files: int) -> None:
    if "overlap" in row:
        click.echo(
            f"Note: {collection.name} memoises, so reports of the same users repeat what they drew once. Standard "
            f"errors are taken for {files} rounds of the same users; where each file has users of its own, say "
            "--independent",
            err=True,
        )


def _warn_of_twins(files: tuple[str, ...], so: str) -> None:
    """Warn if two of the files have the same content: the estimate is then less certain than its figures say."""
    seen: dict[bytes, str] = {}
    for path in _same_size(files):
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        if content in seen:
            click.echo(
                f"Warning: {seen[content]} and {path} hold the same; {so}",
                err=True,
            )
        seen.setdefault(content, path)


def _same_size(files: tuple[str, ...]) -> list[str]:
    """Return the ordinary files that have the size of another one."""
    sizes = {path: os.path.getsize(path) for path in files if os.path.isfile(path)}
    often = Counter(sizes[path] for path in files if path in sizes)
    return [path for path in files if path in sizes and often[sizes[path]] > 1]


def _print_counts(row: dict[str, Any], level: float, out_of: int | None) -> None:
    click.echo(f"{counted(row['reports'], 'report')}; {100 * level:.12g} % intervals")
    _print_cautions(row["answers"], out_of)
    cells = [_count_cells(each) for each in row["answers"]]
    print_table(_COUNT_HEADER[: len(cells[0])], cells)


def _print_count_rounds(rounds: list[dict[str, Any]], level: float, out_of: int | None) -> None:
    click.echo(f"{counted(len(rounds), 'round')}; {100 * level:.12g} % intervals")
    _print_cautions(rounds[0]["answers"], out_of)
    cells = [(row["round"], row["reports"], *_count_cells(row)) for row in flat_rows(rounds)]
    print_table(("round", "reports", *_COUNT_HEADER)[: len(cells[0])], cells)


def _print_cautions(rows: list[dict[str, Any]], out_of: int | None) -> None:
    if out_of is not None:
        click.echo(f"the {len(rows)} largest of {out_of}, which are likelier to be too large than too small")
    if rows and "adjusted_share" in rows[0]:
        click.echo("adjusted shares are for showing: they are not unbiased, and the intervals are not theirs")


_COUNT_HEADER = ("answer", "count", "share", "low", "high", "adjusted")


def _count_cells(row: dict[str, Any]) -> tuple[str, ...]:
    parts = ("share", "share_low", "share_high", "adjusted_share")
    shares = (f"{rounded(100 * row[part], 1)} %" for part in parts if part in row)
    return row["answer"], rounded(row["count"], 0), *shares
