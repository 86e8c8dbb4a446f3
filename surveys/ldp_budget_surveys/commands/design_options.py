"""Options of the survey design: `randomize --public`, and the weights, strata, groups and tables of `estimate` and `report`.

The options of the two commands are stored in the context, and `design_of` returns them: so a command has one more line
and no more parameters.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ldp_budget._lookalikes import difference, near, skeleton
from ldp_budget._validation import canonical_text
from ldp_budget_cli.input_tables import chosen_sheet, sheet_option
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.number_types import WholeRange
from ldp_budget_cli.output import JSON, LINES, counted, options, print_json, print_rows

from .answer_texts import folded
from .text_lists import split_names

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Sequence

    from ldp_budget.registry.collections import Collection
    from ldp_budget.reports.public_attributes import PublicAttributes

    from ..designs.survey_estimates import DesignOptions, SurveyFiles

_KEY = "ldp_budget.design"
_OTHERS = ("candidates", "top", "adjust", "consistent", "plot")
"""Options of `estimate` that the estimates of a design do not have."""
_SMALL_CROWD = 50
_FEW_CLUSTERS = 30


# -- randomize --public ----------------------------------------------------------------------------------------------

public_option = click.option(
    "--public",
    multiple=True,
    metavar="COLUMN",
    help="Store this column with each report, without any noise: region or age group, nothing private. Repeatable.",
)


def check_public(public: Sequence[str], answers: Sequence[str], user_column: str | None) -> tuple[str, ...]:
    """Return the public columns. Raises a click error for a column of `answers` or of users."""
    from ldp_budget.reports.public_attributes import check_columns

    public = tuple(map(canonical_text, public))
    answers, user_column = list(map(canonical_text, answers)), user_column and canonical_text(user_column)
    for name in public:
        if name in answers:
            raise click.UsageError(
                f"--public {name} would store the true answers. Leave it out: only other columns may be public."
            )
        if name == user_column:
            raise click.UsageError(f"--public {name} would store the users' names with their reports. Leave it out.")
    return check_columns(public)


def combinations_in(out: str, collection: Collection) -> Counter[tuple[str, ...]]:
    """Return the number of reports of each combination in a report file, which has no refused users."""
    from ldp_budget.reports.partial_aggregate import open_files
    from ldp_budget.reports.public_attributes import count_combinations

    files = open_files(out, collection, {})
    return count_combinations(public for reports in files for _, public in reports.attributed_blocks())


def note_public(public: Sequence[str], counts: Counter[tuple[str, ...]]) -> None:
    """Print what public columns reveal: the report's crowd is split, and how small its smallest part is."""
    if not public or not counts:
        return
    combination, smallest = min(counts.items(), key=lambda item: (item[1], item[0]))
    verb = "travels" if len(public) == 1 else "travel"
    print_note(
        f"Public: {', '.join(public)} {verb} with each report, without noise. {counted(len(counts), 'combination')}; "
        f"the smallest, {', '.join(combination) or '(empty)'}, has {counted(smallest, 'person', 'people')}"
    )
    if smallest < _SMALL_CROWD:
        click.echo(
            f"Warning: a report of that combination hides among {counted(smallest, 'report')}. Only its own noise protects "
            "it. Join rare values, or leave a column out",
            err=True,
        )


def stop_on_public_values(public: PublicAttributes | None) -> None:
    """Raise a click error for public values that split groups by mistake, before a user is charged."""
    found = [] if public is None else odd_values(public.names, public.combinations)
    if found:
        raise click.ClickException(
            f"--public: {'; '.join(found)}. Nothing was written and no user was charged. {_REPAIR}"
        )


def warn_of_public_values(names: Sequence[str], combinations: Iterable[tuple[str, ...]]) -> None:
    """Print a warning for public values that split groups by mistake."""
    for each in odd_values(names, combinations):
        click.echo(f"Warning: --public: {each}. {_REPAIR}", err=True)


_REPAIR = "Correct the column. --ignore-case joins values that differ only by case or spaces, and an empty value needs a name"
_MOST_NAMED = 5


def odd_values(names: Sequence[str], combinations: Iterable[tuple[str, ...]]) -> list[str]:
    """Return a text for each column with empty values, and for values that differ only by case or spaces."""
    found = []
    for name, values in zip(names, zip(*combinations, strict=True), strict=False):
        if "" in values:
            found.append(f"column {name} has empty values")
        alike: dict[str, set[str]] = {}
        for value in values:
            alike.setdefault(skeleton(folded(value)).casefold(), set()).add(value)
        several = [sorted(each) for each in alike.values() if len(each) > 1]
        cased = sorted(", ".join(map(repr, each)) for each in several if len(set(map(folded, each))) == 1)
        looking = sorted(difference(each[0], each[1:]) or ", ".join(map(repr, each)) for each in several)
        looking = looking if len(cased) < len(several) else []
        for which, texts in (("differ only by case or spaces", cased), ("look alike", looking)):
            if texts:
                more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
                listed = "; ".join(each.removesuffix(".") for each in texts[:_MOST_NAMED])
                found.append(f"values of column {name} {which}: {listed}{more}")
    return found


# -- estimate and report ---------------------------------------------------------------------------------------------


def _kept(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    if value:
        assert parameter.name is not None
        if parameter.name in ("strata", "clusters", "by"):
            value = canonical_text(value) if isinstance(value, str) else tuple(map(canonical_text, value))
        ctx.meta.setdefault(_KEY, {})[parameter.name] = value
    return value


def _design_option(name: str, metavar: str, help: str, **how: Any) -> Any:
    return click.option(name, metavar=metavar, expose_value=False, callback=_kept, help=help, **how)


_weights = _design_option(
    "--weights",
    "FILE.csv|COLUMN",
    "Weight respondents: a table with public columns and a column weight, or a public column of weights.",
)
_strata = _design_option(
    "--strata", "COLUMN", "A public column of the strata of the sample. Repeatable.", multiple=True
)
_clusters = _design_option("--clusters", "COLUMN", "The public column of the clusters of the sample.")

sample_options = options(_weights, _strata, _clusters, sheet_option)
"""The options of `regress`."""
design_options = options(
    _weights,
    _design_option("--rake", "TOTALS.csv", "Rake the weights to known totals: columns variable, value and total."),
    _strata,
    _clusters,
    _design_option(
        "--by", "COLUMN", "Estimate each group of this public column, and the differences between groups."
    ),
    _design_option("--table", "Q1,Q2", "Show a two-way table of two questions of a survey."),
    _design_option(
        "--population",
        "N",
        "The sample is of N people: lower the variance of sampling, not the noise (finite population correction).",
        type=WholeRange(min=1),
    ),
    sheet_option,
)


def is_designed(ctx: click.Context) -> bool:
    """Return True if an option of the design was given."""
    return _KEY in ctx.meta


def design_of(
    ctx: click.Context, columns: Sequence[str], excluded: Sequence[str] = _OTHERS, *, rotate: int = 0, files: int = 0
) -> DesignOptions:
    """Return the given options of the design, for report files with these public columns.

    `rotate` is that of the survey, of which each of so many `files` has another part of the users. `excluded` are options that
    do not go with a design. Raises a click error.
    """
    from ..designs.side_tables import read_table_rows
    from ..designs.survey_estimates import DesignOptions

    given = ctx.meta.get(_KEY, {})
    first = next(iter(given), "by-round of a survey with rotate")
    for name in excluded:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} cannot be used with --{first}: weighted estimates have intervals only.")
    named = [("strata", each) for each in given.get("strata", ())]
    named += [(name, given[name]) for name in ("clusters", "by") if name in given]
    for name, column in named:
        _check_column(name, column, columns)
    if "by" in given and ctx.params.get("by_round"):
        raise click.UsageError("--by and --by-round exclude each other: the rounds are the groups. Use one of them.")
    weights: Any = given.get("weights")
    if weights is not None and weights not in columns:
        if not os.path.isfile(weights):
            _check_column("weights", weights, columns, "a file or ")
        weights = read_table_rows(weights, "weights", chosen_sheet())
    table = given.get("table")
    return DesignOptions(
        weights,
        read_table_rows(given["rake"], "rake", chosen_sheet()) if "rake" in given else None,
        tuple(given.get("strata", ())),
        given.get("clusters"),
        given.get("by"),
        None if table is None else _two(table),
        given.get("population"),
        bool(ctx.params.get("independent")) or 0 < files <= rotate,
        rotate,
    )


def source_and_design(
    ctx: click.Context, survey: Collection, files: Sequence[str], rounds: Sequence[str] = (), *, mixed: bool
) -> tuple[SurveyFiles, DesignOptions]:
    """Return the report files and the given options of the design. Raises a click error."""
    from ..designs.survey_estimates import SurveyFiles
    from ..questionnaires.survey_collection import rotating

    if not files:
        raise click.UsageError(f"--{next(iter(ctx.meta[_KEY]))} needs report files. Name them after {survey.name}.")
    source = SurveyFiles(survey, files, rounds, mixed)
    asked = rotating(survey)
    return source, design_of(ctx, source.public(), rotate=asked.rotate if asked else 0, files=len(files))


def typed_design(ctx: click.Context, without: str) -> str:
    """Return the given options of the design but one, as a command line has them, with files by their names alone."""
    words = ""
    for name, value in ctx.meta[_KEY].items():
        for each in value if isinstance(value, tuple) else (value,):
            if name != without:
                shown = os.path.basename(each) if name in ("weights", "rake") else str(each)
                words += f" --{name} {shlex.quote(shown)}"
    return words


def _check_column(option: str, column: str, columns: Sequence[str], also: str = "") -> None:
    if column not in columns:
        listed = ", ".join(columns) or "none"
        close = near(column, columns)
        raise click.UsageError(
            f"--{option}: {column!r} is not {also}a public column.{' ' if close else ''}{close} Public columns of the "
            f"reports: {listed}. Store one with the reports: ldp-budget randomize … --public COLUMN"
        )


def _two(text: str) -> tuple[str, str]:
    names = split_names("--table", text)
    if len(names) != 2 or names[0] == names[1] or not all(names):
        raise click.UsageError(f"--table must name two different questions, Q1,Q2: got {text!r}.")
    return names[0], names[1]


def show_design(
    ctx: click.Context,
    survey: Collection,
    files: Sequence[str],
    rounds: Sequence[str],
    level: float,
    *,
    mixed: bool,
    form: str | None,
    rows_to: str | None,
) -> None:
    """Print the estimates of a designed survey; `rounds` are the names of the files with --by-round, else empty."""
    from ldp_budget_cli.input_tables import write_rows_to

    from ..designs.survey_estimates import estimate_survey
    from ..questionnaires.survey_collection import SurveyCollection
    from ..questionnaires.survey_rows import as_reported
    from .design_tables import flat_rows, print_design
    from .figure_files import save_estimate

    source, design = source_and_design(ctx, survey, files, rounds, mixed=mixed)
    row = estimate_survey(source, design, level=level)
    _note_estimate(row, len(files), independent=design.independent or design.population is not None)
    charged, uncharged = source.charges[True], source.charges[False]
    if charged and uncharged:
        click.echo(
            f"Warning: {uncharged} of {counted(charged + uncharged, 'report')} were not charged to their users: the "
            "estimate is of a mix",
            err=True,
        )
    asked = survey if isinstance(survey, SurveyCollection) else None
    printed = row if asked is None else as_reported(asked, row)
    if rows_to is not None:
        write_rows_to("rows-to", rows_to, _uniform(flat_rows(printed)))
    save_estimate(printed, level, population=True)
    if form == JSON:
        print_json(printed)
    elif form is not None:
        rows = list(flat_rows(printed))
        print_rows(rows if form == LINES else _uniform(rows), form)
    else:
        questions = () if asked is None else asked.survey.shown
        print_design(row, level, {each.name: each.shown_unit for each in questions if each.shown_unit})


def _note_estimate(row: dict[str, Any], files: int, *, independent: bool) -> None:
    """Print what the public columns of the reports reveal, and what the rounds assume."""
    for note in row.get("notes", ()):
        print_note(f"Note: {note}")
    if "left_out" in row:
        print_note(f"{counted(row['left_out'], 'report')} left out: the weight is 0")
    public = row["public"]
    listed = ", ".join(name for name in public["columns"] if name != "round")
    if listed:
        print_note(
            f"Public columns: {listed}. Each report hides among those of its combination; the smallest has "
            f"{counted(public['smallest'], 'respondent')}"
        )
    parts = [each for each in (row, *row.values()) if isinstance(each, dict) and "groups" in each]
    alone = max((each["respondents"] - sum(of["respondents"] for of in each["groups"]) for each in parts), default=0)
    if alone:
        print_note(f"Note: groups of a single respondent have no interval and are left out: {alone}")
    clusters = row.get("effective_clusters", _FEW_CLUSTERS)
    if clusters < _FEW_CLUSTERS:
        click.echo(
            f"Warning: the clusters weigh as much as {clusters:.1f} of equal size. Below {_FEW_CLUSTERS}, intervals are wide, and "
            "the errors themselves uncertain",
            err=True,
        )
    if files > 1 and not independent:
        print_note(
            f"Note: errors over all files are for {files} rounds of the same people, and those of changes for people who "
            "differ. If each file has other people, add --independent"
        )


def _uniform(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows that all have the same columns, in the order of their first appearance."""
    listed = list(rows)
    names = list(dict.fromkeys(name for row in listed for name in row))
    return [{name: row.get(name) for name in names} for row in listed]
