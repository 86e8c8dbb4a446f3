"""`ldp-budget estimate`: the server's estimates; with `--by-round` each file is a round with its own estimate."""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ldp_budget.errors import InvalidParameter, ReportFileError
from ldp_budget.reports.estimation import (
    add_adjusted,
    check_candidates,
    check_countable,
    chosen_rows,
    counts_answers,
    estimate_files,
    estimate_if_any,
    estimate_row,
    made_consistent,
    plain_rows,
)
from ldp_budget_cli.app import collection_names
from ldp_budget_cli.excel_files import xlsx_option
from ldp_budget_cli.input_tables import write_rows_to
from ldp_budget_cli.inputs import find_collection
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.output import (
    JSON,
    LINES,
    confidence_option,
    counted,
    level_option,
    print_json,
    print_rows,
    rows_options,
)
from ldp_budget_cli.plots import plot_option
from ldp_budget_cli.progress import reading_reports
from ldp_budget_cli.tables import print_row_table, print_table

from ..questionnaires.survey_collection import SurveyCollection, rotating
from .count_tables import count_cells, count_header, mean_cells, note_cap, note_outside, print_pairs
from .design_options import design_options, is_designed, show_design
from .design_tables import quantile_rows
from .figure_files import save_estimate
from .text_lists import read_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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
    """Yield one row for each answer of each round; one for each round of a mean. Rounds without reports have none."""
    for each in rounds:
        if not each["reports"]:
            continue
        shared = {"round": each["round"], "reports": each["reports"]}
        for row in each.get("answers", [each]):
            yield {**shared, **row}


@click.command()
@click.argument("collection", shell_complete=collection_names)
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--candidates",
    metavar="FILE|A,B,C",
    help="Count only these answers: a list, or a file with one a line. Sketches need it.",
)
@click.option(
    "--top", metavar="K", help="Show only the K answers with the largest counts, largest first [default: all]"
)
@confidence_option
@plot_option("the estimate with its intervals; with --by-round a trend")
@click.option(
    "--adjust",
    type=click.Choice(["nonnegative", "simplex"]),
    help="Also show adjusted counts: nonnegative are >= 0, simplex also add up to the total.",
)
@click.option(
    "--consistent/--unbiased",
    default=None,
    help="Show counts >= 0 that add up to the reports (to at most the reports if only some answers can be counted), or "
    "unbiased ones [default: --consistent in a table, --unbiased in --json, --csv, --tsv, --nl, --rows-to and with "
    "--adjust]",
)
@click.option(
    "--independent",
    is_flag=True,
    help="Say that each file has other users. Without it, memoized reports, and all reports of a design with weights, strata "
    "or groups, count as rounds of the same users.",
)
@click.option(
    "--mixed",
    is_flag=True,
    help="Allow a mix of charged and uncharged reports.",
)
@design_options
@click.option(
    "--by-round",
    is_flag=True,
    help="Estimate each file by itself, as a round with the file's name; of a survey with rotate also the level of all "
    "parts together, and the changes.",
)
@click.option("--rows-to", metavar="FILE", help="Write the rows of --csv to FILE: CSV, or .parquet, .arrow.")
@xlsx_option
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
    consistent: bool | None,
    independent: bool,
    mixed: bool,
    by_round: bool,
    rows_to: str | None,
    form: str | None,
) -> None:
    """Estimate counts and shares, or a mean, from the report FILES of COLLECTION, paths or URLs.

    All files together give one estimate; with --by-round, each file gives its own. A folder of partitions is one
    file. For a survey, each question has a table.

    \b
    Example:
      ldp-budget estimate mood mood.reports
    """
    level, most = level_option(confidence), top_option(top)
    found = find_collection(ctx, collection)
    if is_designed(ctx) or (by_round and rotating(found)):
        rounds = names_of_rounds(files) if by_round else ()
        show_design(ctx, found, files, rounds, level, mixed=mixed, form=form, rows_to=rows_to)
        warn_of_twins(files, "reports that count twice make the intervals too narrow")
        return
    if isinstance(found, SurveyCollection):
        from .survey_estimate import check_options, estimate_survey

        check_options(
            {"candidates": candidates, "top": top, "adjust": adjust, "independent": independent, "plot": plot}
        )
        if not by_round:
            warn_of_twins(files, "reports that count twice make the standard errors too small")
        estimate_survey(
            found,
            files,
            level=level,
            consistent=consistent,
            mixed=mixed,
            rounds=names_of_rounds(files) if by_round else None,
            rows_to=rows_to,
            form=form,
        )
        return
    names = None if candidates is None else answers_to_count(found, candidates)
    check_countable(found, names, most)
    if consistent and adjust is not None:
        raise click.UsageError("--adjust cannot be used with --consistent, which adjusts the counts itself")
    if consistent is None:
        consistent = form is None and rows_to is None and adjust is None and counts_answers(found)
    ask = _Question(found, names, most, level, adjust, rows_to, mixed, consistent)
    if by_round:
        if independent:
            raise click.UsageError("--independent and --by-round exclude each other: --by-round adds up no files.")
        if found.mechanism.finds_answers and names is None:
            raise click.UsageError(
                f"--by-round compares the same words in every round, and {found.name} finds other words in each. "
                "Add --candidates with the words to compare."
            )
        _show_rounds(ask, _estimate_rounds(ask, files), plot, form)
        return
    row = ask.estimate(files, independent=independent)
    warn_of_twins(files, "reports that count twice make the standard errors too small")
    _note_rounds(found, row, len(files))
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
    consistent: bool = False

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Write the rows to a file, if one was requested."""
        if self.rows_to is not None:
            write_rows_to("rows-to", self.rows_to, list(plain_rows(rows)))

    def estimate(self, files: Sequence[str], *, independent: bool = False) -> dict[str, Any]:
        """Return the JSON of `estimate --json` for these files, with all answers."""
        return self._row_of(files, estimate_files, independent=independent)

    def _row_of(self, files: Sequence[str], estimate: Callable[..., Any], **how: bool) -> dict[str, Any]:
        """Return the JSON of an estimate of these files; empty if there is none."""
        charges: dict[str, int] = {}

        def on_mixed(charged: int, uncharged: int) -> None:
            charges.update(charged=charged, uncharged=uncharged)
            both = counted(charged + uncharged, "report")
            click.echo(
                f"Warning: {uncharged} of {both} were not charged to their users: the estimate is of a mix", err=True
            )

        call = on_mixed if self.mixed else None
        with reading_reports() as on_reports:
            more = {"most": self.most, "on_mixed": call, "on_reports": on_reports}
            result = estimate(self.collection, files, self.names, **more, **how)
        return {} if result is None else {**self._row(result), **charges}

    def estimate_round(self, path: str) -> dict[str, Any]:
        """Return the same for one round, which may have no reports."""
        found = self._row_of((path,), estimate_if_any)
        return found or {"reports": 0, **({"answers": []} if counts_answers(self.collection) else {})}

    def _row(self, result: Estimate) -> dict[str, Any]:
        if self.consistent:
            result = made_consistent(result)
        row = estimate_row(self.collection, result, level=self.level, names=self.names)
        if self.adjust is not None:
            try:
                add_adjusted(result, row, self.adjust)
            except InvalidParameter as error:
                raise click.UsageError(error.describe("--adjust")) from None
        return row


def _show(ask: _Question, row: dict[str, Any], plot: str | None, form: str | None) -> None:
    out_of = None
    whole = _add_up([row])
    if "answers" in row:
        out_of = None if ask.most is None else len(row["answers"])
        row["answers"] = chosen_rows(row["answers"], ask.names, ask.most)
    if plot is not None:
        from .estimate_plot import plot_estimate

        plot_estimate(ask.collection, row, plot, level=ask.level, out_of=out_of)
    rows = row.get("answers", row.get("bins", [row]))
    ask.write(rows)
    save_estimate(row, ask.level)
    if form == JSON:
        print_json(row)
    elif form is not None:
        print_rows(_as_cells(rows, form), form)
    elif "answers" in row:
        _print_counts(row, ask.level, out_of, whole)
    else:
        _print_mean(row, ask.level)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without the parts of a distribution."""
    return {name: value for name, value in row.items() if not isinstance(value, dict | list)}


def _print_mean(row: dict[str, Any], level: float) -> None:
    """Print a mean; of a distribution its quantiles and bins too."""
    print_row_table([mean_cells(row, level)])
    note_cap(row)
    if "max_bias" not in row:
        note_outside([row], "mean", "low", "high")
    if "quantiles" in row:
        click.echo("")
        print_row_table(quantile_rows(row))
    if "bins" in row:
        click.echo("")
        print_row_table(row["bins"])


def _estimate_rounds(ask: _Question, files: tuple[str, ...]) -> list[dict[str, Any]]:
    """Estimate each file separately, with all answers. A round without reports stays a round, without answers."""
    rounds = [
        {"round": name, **ask.estimate_round(path)} for name, path in zip(names_of_rounds(files), files, strict=True)
    ]
    if not any(each["reports"] for each in rounds):
        raise ReportFileError(", ".join(files), "there are no reports to estimate from")
    for each in rounds:
        if not each["reports"]:
            print_note(f"Note: {each['round']} has no reports, so it has no estimate")
    warn_of_twins(files, "two rounds here are one")
    if ask.collection.mechanism.repeats:
        print_note(
            f"Note: {ask.collection.name} memoizes. If the same users report in several rounds, part of the noise is the "
            "same in all rounds, and the rounds are not independent"
        )
    return rounds


def _show_rounds(ask: _Question, rounds: list[dict[str, Any]], plot: str | None, form: str | None) -> None:
    out_of, whole = None, _add_up(rounds)
    full = [each for each in rounds if each["reports"]]
    if "answers" in rounds[0]:
        out_of = None if ask.most is None else len(full[0]["answers"])
        names = ask.names if ask.most is None else largest_over_all(rounds, ask.most)
        for each in full:
            each["answers"] = chosen_rows(each["answers"], names, None)
    if plot is not None:
        from .estimate_plot import plot_rounds

        plot_rounds(ask.collection, full, plot, level=ask.level, out_of=out_of)
    ask.write(list(flat_rows(rounds)))
    save_estimate({"rounds": rounds}, ask.level)
    if form == JSON:
        print_json({"rounds": rounds})
    elif form is not None:
        print_rows(_as_cells(flat_rows(rounds), form), form)
    elif "answers" in rounds[0]:
        _print_count_rounds(rounds, ask.level, out_of, whole)
    else:
        print_row_table([mean_cells(row, ask.level) for row in flat_rows(rounds)])


def _as_cells(rows: Iterable[dict[str, Any]], form: str) -> Iterable[dict[str, Any]]:
    return rows if form == LINES else plain_rows(rows)


def top_option(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise InvalidParameter("top", "a whole number >= 1", text)
    return int(text)


def answers_to_count(collection: Collection, text: str) -> tuple[str, ...]:
    """Return the requested answers, each checked to be one of the collection's, and only once."""
    return check_candidates(collection, read_names("candidates", text))


def _note_rounds(collection: Collection, row: dict[str, Any], files: int) -> None:
    if "overlap" in row:
        print_note(
            f"Note: {collection.name} memoizes, so reports of the same users repeat the same draws. The standard errors "
            f"are for {files} rounds of the same users. If each file has other users, add --independent"
        )


def warn_of_twins(files: tuple[str, ...], so: str) -> None:
    """Warn if two of the files have the same content: the estimate is then less certain than its figures say."""
    for first, second in twins(files):
        click.echo(f"Warning: {first} and {second} have the same content; {so}", err=True)


def twins(files: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of files with the same content: each file with the first one that has its content."""
    seen: dict[bytes, str] = {}
    pairs = []
    for path in _same_size(files):
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        if content in seen:
            pairs.append((seen[content], path))
        seen.setdefault(content, path)
    return pairs


def _same_size(files: Sequence[str]) -> list[str]:
    """Return the ordinary files that have the size of another one."""
    sizes = {path: os.path.getsize(path) for path in files if os.path.isfile(path)}
    often = Counter(sizes[path] for path in files if path in sizes)
    return [path for path in files if path in sizes and often[sizes[path]] > 1]


def _add_up(rounds: Sequence[Round]) -> bool:
    """True if the counts of all answers add up to the reports, in each round."""
    sums = [(math.fsum(row["count"] for row in each.get("answers", [])), each["reports"]) for each in rounds]
    return all(math.isclose(total, reports, rel_tol=1e-6) for total, reports in sums)


def _print_counts(row: dict[str, Any], level: float, out_of: int | None, whole: bool) -> None:
    click.echo(f"{counted(row['reports'], 'report')}; {100 * level:.12g} % confidence intervals")
    _print_cautions(row["answers"], out_of, whole)
    cells = [count_cells(each, row["reports"]) for each in row["answers"]]
    print_table(count_header(row["answers"], level)[: len(cells[0])], cells)
    if "pairs" in row:
        print_pairs(row["pairs"], level)


def _print_count_rounds(rounds: list[dict[str, Any]], level: float, out_of: int | None, whole: bool) -> None:
    click.echo(f"{counted(len(rounds), 'round')}; {100 * level:.12g} % confidence intervals")
    answers = next(each["answers"] for each in rounds if each["reports"])
    _print_cautions(answers, out_of, whole)
    cells = [(row["round"], row["reports"], *count_cells(row, row["reports"])) for row in flat_rows(rounds)]
    print_table(("round", "reports", *count_header(answers, level))[: len(cells[0])], cells)


def _print_cautions(rows: list[dict[str, Any]], out_of: int | None, whole: bool) -> None:
    if out_of is not None:
        click.echo(
            f"The {len(rows)} largest of {out_of} answers. Their counts are more likely too large than too small"
        )
    if rows and "raw_count" in rows[0]:
        total = "they add up to" if whole else "together at most"
        click.echo(
            f"Consistent counts: at least 0; over all answers {total} the reports. The intervals are those of the "
            "unbiased counts (last column)"
        )
    if rows and all(row["share_high"] - row["share_low"] >= _WIDE for row in rows):
        click.echo("Too few reports: every interval is wider than half of all reports")
    if rows and "adjusted_share" in rows[0]:
        click.echo("Adjusted shares are for display: they are biased, and the intervals are those of the counts")


_WIDE = 0.5
