"""`ldp-budget plan` of a question, a survey or a collection: margins and sample sizes before anything is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget.guarantees.fixed_point import printed_up
from ldp_budget_cli.excel_files import xlsx_option
from ldp_budget_cli.mechanism_arguments import MechanismGroup
from ldp_budget_cli.number_types import NumberRange, WholeRange, parse_margin, parse_ticks
from ldp_budget_cli.output import counted, decimal_option, json_option, next_step, print_json, rounded
from ldp_budget_cli.plots import plot_option
from ldp_budget_cli.tables import KEPT, print_table

from .figure_files import save_plan
from .margin_plan import plan_answers

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPTIONS = ("--answers", "--survey", "--collection", "--respondents", "--margin")
_COMMAND = "survey:"
"""A name that no mechanism can have."""


class PlanGroup(MechanismGroup):
    """`plan MECHANISM`, and with --answers, --survey or --collection another command under the same name."""

    @property
    def own_options(self) -> set[str]:
        return super().own_options | {name.removeprefix("--") for name in _OPTIONS}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if any(arg.partition("=")[0] in _OPTIONS for arg in args):
            # click would take the --help of `plan --answers --help`, which usage errors name, for the number of answers.
            args = [_COMMAND, *(["--help"] if {"-h", "--help"} & set(args) else args)]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        return plan_survey if cmd_name == _COMMAND else super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] == _COMMAND:
            return "--answers", plan_survey, args[1:]
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("How many people, which ε, how precise"):
            formatter.write_text("ldp-budget plan --answers 6 --respondents 3000 --epsilon 1")
            formatter.write_text("ldp-budget plan --answers 6 --respondents 3000 --margin 4%")
            formatter.write_text("ldp-budget plan --survey health.toml --respondents 1200")
            formatter.write_text("All options: ldp-budget plan --answers --help")
        super().format_options(ctx, formatter)


respondents_option = click.option(
    "--respondents", type=WholeRange(1, 10**12), metavar="N", help="Show the margins of N respondents."
)
total_epsilon_option = click.option(
    "--total-epsilon",
    metavar="E",
    help="The ε of all rounds of a person together [default: the survey's ε in each round]",
)


panel_option = click.option(
    "--panel",
    type=WholeRange(2, 10**12),
    metavar="N",
    help="Compare how N members answer every period: by rotation, at a part of ε each, or memoized. With --survey.",
)


@click.command("plan")
@click.option(
    "--answers",
    type=WholeRange(2, 10**9),
    metavar="D",
    help="Plan a question with D answers. Needs no mechanism and no file.",
)
@click.option(
    "--at-most",
    metavar="M|any",
    callback=parse_ticks,
    help="The D answers are options of which people tick at most M, or any number. With --answers.",
)
@click.option("--survey", metavar="FILE|NAME", help="Plan the survey of a TOML file, or of the ledger.")
@click.option("--collection", metavar="NAME", help="Plan a collection of one question.")
@respondents_option
@click.option(
    "--margin",
    metavar="SHARE",
    callback=parse_margin,
    help="Show how many respondents, or which ε, give this margin at 95 %, such as 3%.",
)
@click.option("--epsilon", metavar="E", help="The ε of one report. With --answers.")
@click.option(
    "--deff", type=NumberRange(1, 1000), metavar="D", help="The design effect of the sample. With --answers."
)
@click.option(
    "--weights-cv",
    type=NumberRange(0, 30),
    metavar="CV",
    help="The coefficient of variation of the weights, in place of --deff.",
)
@click.option(
    "--groups", type=WholeRange(1, 10**6), metavar="G", help="Also show the margin in each of G equal groups."
)
@click.option(
    "--population",
    type=WholeRange(1, 10**12),
    metavar="N",
    help="The respondents are drawn from N people: sampling error shrinks, noise does not. With --answers.",
)
@plot_option("the margin against the number of people, for three ε. With --answers")
@panel_option
@total_epsilon_option
@xlsx_option
@json_option
@click.pass_context
def plan_survey(
    ctx: click.Context,
    /,
    answers: int | None,
    survey: str | None,
    collection: str | None,
    respondents: int | None,
    margin: float | None,
    epsilon: str | None,
    plot: str | None,
    panel: int | None,
    total_epsilon: str | None,
    as_json: bool,
    **sample: Any,
) -> None:
    """Show the margin of a question or survey, or the number of people or the ε that gives a margin.

    For a question with --answers, two of people, ε and margin give the third. The margin is about the population. For
    a survey it compares how many questions each respondent answers, with the ε of each question that makes the
    largest margin smallest. All figures are for the worst answers.

    \b
    Example:
      ldp-budget plan --answers 6 --respondents 3000 --epsilon 1
      ldp-budget plan --answers 6 --respondents 3000 --margin 4%
      ldp-budget plan --survey health.toml --respondents 1200
      ldp-budget plan --survey health.toml --margin 3%
      ldp-budget plan --survey health.toml --panel 20000
      ldp-budget plan --collection mood --margin 3%
    """
    from ..survey_planning import plan_collection
    from ..survey_planning import plan_survey as planned

    if sum(each is not None for each in (answers, survey, collection)) != 1:
        raise click.UsageError("Give one of --answers, --survey and --collection.")
    if panel is not None:
        if survey is None or any(each is not None for each in (respondents, margin, total_epsilon)):
            raise click.UsageError("--panel needs --survey, and no --respondents, --margin or --total-epsilon.")
        from .named_surveys import read_survey
        from .rotation_plan import show_rotation

        _only_with_answers(epsilon=epsilon, plot=plot, **sample)
        show_rotation(read_survey(ctx, survey), panel, as_json)
        return
    if answers is not None:
        if total_epsilon is not None:
            raise click.UsageError("--total-epsilon needs --survey.")
        plan_answers(answers, epsilon, respondents, margin, sample, plot, as_json)
        return
    _only_with_answers(epsilon=epsilon, plot=plot, **sample)
    if (respondents is None) == (margin is None):
        raise click.UsageError("Give either --respondents N or --margin SHARE, such as --margin 3%.")
    if survey is None:
        from ldp_budget_cli.inputs import find_collection

        from .collection import warn_of_pseudonyms

        assert collection is not None
        if total_epsilon is not None:
            raise click.UsageError("--total-epsilon needs --survey.")
        found = find_collection(ctx, collection)
        if found.mechanism.components:
            raise click.UsageError(f"{collection} is a survey. Use --survey {collection}")
        row = plan_collection(found.mechanism, respondents, margin)
        save_plan(row.to_rows(), "these respondents", collection=collection)
        _show(row, _print_collection, as_json)
        if row["respondents"] is not None:
            warn_of_pseudonyms(found, row["respondents"])
        return
    from .named_surveys import read_survey

    total = None if total_epsilon is None else decimal_option("total_epsilon", total_epsilon)
    row = planned(read_survey(ctx, survey), respondents, margin, total)
    save_plan(row.to_rows(), "these respondents", survey=row["survey"], total_epsilon=float(row["total_epsilon"]))
    _show(row, _print_survey, as_json)


def _only_with_answers(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --answers D.")


def _show(row: dict[str, Any], show: Any, as_json: bool) -> None:
    if as_json:
        print_json(row)
    else:
        show(row)


_MEANINGS = (
    "margin (95 %): the error that 95 of 100 surveys stay below, about these respondents; population: about a large population\n"
    "groups, rounds: the smallest difference between two halves, or two rounds, found with a power of 80 % at the 5 % level"
)


def _print_collection(row: dict[str, Any]) -> None:
    if row["respondents"] is None:
        click.echo("No number of respondents gives this margin. Raise ε or the margin")
        return
    click.echo(f"{counted(row['respondents'], 'respondent')}, ε = {printed_up(row['epsilon'])}, at the worst answers")
    click.echo(_MEANINGS)
    print_table(_HEADER[1:], [_cells(row)[1:]])
    _print_bias(row)
    _print_assumed(row)


_MARGIN = f"margin (95{KEPT}%)"
_HEADER = ("question", "mechanism", "ε", "answered by", _MARGIN, "population", "groups", "rounds")
_FIGURES = ("margin", "population_margin", "detectable_groups", "detectable_rounds")


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    share = row["range"] is None
    figures = (f"{rounded(100 * row[name], 1)} %" if share else f"{row[name]:.3g}" for name in _FIGURES)
    return row.get("name", ""), row["mechanism"], str(row["epsilon"]), row["asked"], *figures


def _print_bias(row: dict[str, Any]) -> None:
    if "max_bias" in row:
        name = row.get("name", row["mechanism"])
        click.echo(
            f"{name}: the margins hold a bias of up to {row['max_bias']:.3g}, which no number of respondents removes"
        )


def _print_assumed(row: dict[str, Any]) -> None:
    if row.get("assumed") is False:
        name = row.get("name", row["mechanism"])
        click.echo(
            f"{name}: its margin is for values spread evenly over the scale, and those of your respondents are not. Say what is "
            "known of them in the file: assumed = [[VALUE, SHARE AT MOST], …]"
        )


def _print_survey(row: dict[str, Any]) -> None:
    each, rounds = row["rounds_each"], counted(row["rounds"], "round")
    click.echo(
        f"Survey {row['survey']}: ε = {row['epsilon']} in each of {'' if each == row['rounds'] else f'{each} of '}{rounds}, "
        f"{row['total_epsilon']} in all, at the worst answers"
    )
    print_table(
        ("each answers", "respondents", f"largest {_MARGIN}", "times less variance than all"),
        [_design_cells(each) for each in sorted(row["designs"], key=_expense)],
    )
    if row["recommended"] is None:
        click.echo("No number of respondents gives this margin. Raise ε or the margin")
        return
    best = next(each for each in row["designs"] if each["answer"] == row["recommended"])
    click.echo(f"\nRecommended: answer = {_toml(row['recommended'])}, with the questions' own margins below")
    click.echo(_MEANINGS)
    print_table(_HEADER, [_cells(each) for each in best["questions"]])
    for each in best["questions"]:
        _print_bias(each)
        _print_assumed(each)
        if "reports" in each:
            click.echo(f"{each['name']} by its report: {_reports(each['reports'])}")
    if best["answer"] == 1 and len(row["designs"]) > 1:
        click.echo(
            "With one answer from each respondent there is no table of two questions. It needs answer = 2 or more"
        )
    if not best["equal"]:
        click.echo(f"In the file: {_epsilons(best['questions'])}")
    next_step(f"answer = {_toml(row['recommended'])} in the [survey] table, then ldp-budget survey add FILE.toml")


def _reports(margins: dict[str, float]) -> str:
    """Return the margin of each report of a scale, the narrowest of the shares first."""
    mean, *nps = (f"{name} ± {margins[name]:.2g}" for name in ("mean", "nps") if name in margins)
    shares = (f"{name} ± {rounded(100 * margins[name], 1)} points" for name in ("top-box", "shares"))
    return ", ".join((mean, *shares, *nps))


def _expense(each: dict[str, Any]) -> tuple[bool, float, float]:
    """Return what designs are sorted by: impossible ones last, then by the number of respondents, then by the margin."""
    return each["respondents"] is None, each["respondents"] or 0, each.get("largest_margin", 0.0)


def _design_cells(each: dict[str, Any]) -> tuple[Any, ...]:
    if each["respondents"] is None:
        return each["answer"], None, None, None
    return (
        each["answer"],
        each["respondents"],
        f"{rounded(100 * each['largest_margin'], 1)} %",
        rounded(each["efficiency"], 1) if "efficiency" in each else None,
    )


def _epsilons(questions: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"epsilon = {each['epsilon']} for {each['name']}" for each in questions)


def _toml(answer: int | str) -> str:
    return f'"{answer}"' if isinstance(answer, str) else str(answer)


PlanGroup.alternative = plan_survey
