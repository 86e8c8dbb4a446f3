"""`ldp-budget estimate`: the server's side."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ldp_budget.authoring.domain import Categories
from ldp_budget.errors import InvalidParameter, OutsideDomain

from .completion import collection_names
from .files import find_collection, read_names
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
from .rounds import flat_rows, largest_over_all, names_of_rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_budget.authoring.estimates import CountEstimate, Estimate, MeanEstimate
    from ldp_budget.catalogue.collections import Collection


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
@click.option("--by-round", is_flag=True, help="Each file is a round: estimate it by itself, under the file's name.")
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
    by_round: bool,
    form: str | None,
) -> None:
    """Estimate counts and shares, or a mean, from the report FILES of COLLECTION.

    All files together are one estimate; with --by-round each is one of its own.
    """
    level, most = _level(confidence), _top(top)
    found = find_collection(ctx, collection)
    names = None if candidates is None else _candidates(found, candidates)
    _check_countable(found, names, most)
    ask = _Question(found, names, most, level, adjust)
    if by_round:
        if independent:
            raise click.UsageError("--independent: expected without --by-round, where no files are added up")
        _show_rounds(ask, _estimate_rounds(ask, files), plot, form)
        return
    result = estimate_files(found, files, names, independent=independent)
    _warn_of_twins(files, "reports that are counted twice make the standard errors too small")
    _tell_of_rounds(found, result, len(files))
    _show(ask, result, plot, form)


class _Question(NamedTuple):
    """What is to be estimated: of which answers, by `names` or the `most` largest, and how it is shown."""

    collection: Collection
    names: tuple[str, ...] | None
    most: int | None
    level: float
    adjust: str | None

    def row(self, result: Estimate) -> dict[str, Any]:
        """What `--json` prints, of all answers."""
        row = to_json(self.collection, result, level=self.level, names=self.names)
        if self.adjust is not None:
            _add_adjusted(result, row, self.adjust)
        return row


def _show(ask: _Question, result: Estimate, plot: str | None, form: str | None) -> None:
    row = ask.row(result)
    out_of = None
    if "answers" in row:
        out_of = None if ask.most is None else len(row["answers"])
        row["answers"] = _chosen(row["answers"], ask.names, ask.most)
    if plot is not None:
        from .plots.estimate import plot_estimate

        plot_estimate(ask.collection, row, plot, level=ask.level, out_of=out_of)
    if form == JSON:
        print_json(row)
    elif form is not None:
        print_rows(row.get("answers", [row]), form)
    elif "answers" in row:
        _print_counts(row, ask.level, out_of)
    else:
        print_row_table([row])


def _estimate_rounds(ask: _Question, files: tuple[str, ...]) -> list[dict[str, Any]]:
    """Each file by itself, with all answers."""
    rounds = [
        {"round": name, **ask.row(estimate_files(ask.collection, (path,), ask.names))}
        for name, path in zip(names_of_rounds(files), files, strict=True)
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
            each["answers"] = _chosen(each["answers"], names, None)
    if plot is not None:
        from .plots.rounds import plot_rounds

        plot_rounds(ask.collection, rounds, plot, level=ask.level, out_of=out_of)
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
    """The answers that are asked for, each of them one of the collection's, and once."""
    names = read_names("candidates", text)
    for name, times in Counter(names).items():
        if times > 1:
            raise InvalidParameter("candidates", "distinct answers", f"{name!r} {times} times")
    try:
        collection.read_values(names)
    except OutsideDomain as error:
        raise InvalidParameter(
            "candidates", f"answers of {collection.name}: {error.domain}", repr(error.found)
        ) from None
    return names


def _lists_answers(collection: Collection) -> bool:
    """Whether the answers were declared, so that all of them can be estimated."""
    domain = collection.mechanism.domain
    return isinstance(domain, Categories) and domain.listed


def _check_countable(collection: Collection, names: tuple[str, ...] | None, most: int | None) -> None:
    """Raise `InvalidParameter` where candidates are missing, and where there is nothing to be counted."""
    kind = collection.mechanism.name
    if not isinstance(collection.mechanism.domain, Categories):
        for option, given in (("candidates", names), ("top", most)):
            if given is not None:
                raise InvalidParameter(option, "a collection of answers to count", f"{collection.name}, a mean")
    elif names is None and not _lists_answers(collection):
        expected = f"the answers to count, as a file or a list, since a {kind} without --domain-size lists none"
        raise InvalidParameter("candidates", expected)


def estimate_files(
    collection: Collection, files: tuple[str, ...], names: Sequence[str] | None = None, *, independent: bool = False
) -> Estimate:
    """One estimate from all the files, read block by block; where answers are not listed, of those named.

    Several files of a collection that memoises are taken for rounds of the same users unless `independent`.
    """
    from ldp_budget.collecting.reports import read_reports
    from ldp_budget.errors import ReportFileError

    mechanism: Any = collection.mechanism
    total, rounds = None, []
    for path in files:
        before = 0 if total is None else total.reports
        for block in read_reports(path, collection):
            part = mechanism.aggregate(block)
            total = part if total is None else total.merge(part)
        rounds.append((0 if total is None else total.reports) - before)
    if total is None:
        raise ReportFileError(", ".join(files), "there are no reports to estimate from")
    if names is None or _lists_answers(collection):
        estimated: Estimate = mechanism.estimate(total)
    else:
        estimated = mechanism.estimate(total, candidates=collection.read_values(names))
    if independent or not mechanism.repeats:
        return estimated
    return estimated.repeated([count for count in rounds if count])


def _chosen(rows: list[dict[str, Any]], names: tuple[str, ...] | None, most: int | None) -> list[dict[str, Any]]:
    """The rows of the answers that are named, in that order, or of those with the largest counts."""
    if names is not None:
        by_name = {row["answer"]: row for row in rows}
        rows = [by_name[name] for name in names]
    return rows if most is None else sorted(rows, key=lambda row: -row["count"])[:most]


def _tell_of_rounds(collection: Collection, result: Estimate, files: int) -> None:
    if result.overlap > 1:
        click.echo(
            f"Note: {collection.name} memoises, so reports of the same users repeat what they drew once. Standard "
            f"errors are taken for {files} rounds of the same users; where each file has users of its own, say "
            "--independent",
            err=True,
        )


def _warn_of_twins(files: tuple[str, ...], so: str) -> None:
    """Say so where two of the files hold the same, and what follows: nothing is as certain then as it looks."""
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
    """The ordinary files among these that have the size of another."""
    sizes = {path: os.path.getsize(path) for path in files if os.path.isfile(path)}
    often = Counter(sizes[path] for path in files if path in sizes)
    return [path for path in files if path in sizes and often[sizes[path]] > 1]


def to_json(
    collection: Collection, result: Estimate, *, level: float = 0.95, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """What `estimate --json` prints. `std_error`, `low` and `high` are those of the count; `share_…` of the share.

    `names` are those of the counts where the collection lists no answers.
    """
    from ldp_budget.authoring.estimates import CountEstimate, MeanEstimate

    if isinstance(result, CountEstimate):
        answers = _count_rows(collection, result, level, names)
        return {"reports": result.reports, **_overlap(result), "answers": answers}
    assert isinstance(result, MeanEstimate)
    return _mean_row(collection, result, level)


def _count_rows(
    collection: Collection, result: CountEstimate, level: float, names: Sequence[str] | None
) -> list[dict[str, Any]]:
    n = result.reports
    low, high = result.interval(level)
    if names is None or _lists_answers(collection):
        names = collection.answer_names(len(result.counts))
    return [
        {
            "answer": name,
            "count": count,
            "share": count / n,
            "std_error": error,
            "low": lowest,
            "high": highest,
            "share_std_error": error / n,
            "share_low": lowest / n,
            "share_high": highest / n,
        }
        for name, count, error, lowest, highest in zip(
            names,
            result.counts.tolist(),
            result.std_errors.tolist(),
            low.tolist(),
            high.tolist(),
            strict=True,
        )
    ]


def _mean_row(collection: Collection, result: MeanEstimate, level: float) -> dict[str, Any]:
    """The mean; of a mechanism whose reports are biased also by how much, which no interval shows."""
    low, high = result.interval(level)
    bias = collection.mechanism.utility().get("max_bias")
    row = {
        "reports": result.reports,
        "mean": result.mean,
        "std_error": result.std_error,
        "low": low,
        "high": high,
    }
    row |= _overlap(result)
    return row if bias is None else {**row, "max_bias": bias}


def _overlap(result: Estimate) -> dict[str, float]:
    """By how much variances were raised as reports may repeat; nothing where they were not."""
    return {"overlap": result.overlap} if result.overlap > 1 else {}


def _add_adjusted(result: Estimate, row: dict[str, Any], how: str) -> None:
    """Put the adjusted counts beside the unbiased ones, and say which they are."""
    from ldp_budget.authoring.estimates import CountEstimate, adjusted

    if not isinstance(result, CountEstimate):
        raise click.UsageError(f"--adjust: expected a collection of answers to count; found a mean with {how}")
    row["adjusted"] = how
    for answer, count in zip(row["answers"], adjusted(result, how).tolist(), strict=True):
        answer["adjusted_count"] = count
        answer["adjusted_share"] = count / result.reports


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
