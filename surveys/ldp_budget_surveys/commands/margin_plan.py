"""`ldp-budget plan --answers`: of people, ε and margin, two give the third, before a mechanism is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget.guarantees.fixed_point import printed_up
from ldp_budget_cli.output import counted, next_step, print_json, rounded
from ldp_budget_cli.tables import print_table

from .figure_files import save_plan

if TYPE_CHECKING:
    from ..margin_planning import Sample


def plan_answers(
    answers: int,
    epsilon: str | None,
    respondents: int | None,
    margin: float | None,
    sample: dict[str, Any],
    plot: str | None,
    as_json: bool,
) -> None:
    """Print the plan of a question with so many answers. Raises a click error unless two of three figures are given."""
    from ..margin_planning import plan_question

    if sum(each is None for each in (epsilon, respondents, margin)) != 1:
        raise click.UsageError(
            "With --answers, give two of --respondents N, --epsilon E and --margin SHARE; the third is computed. "
            "For example: ldp-budget plan --answers 6 --respondents 3000 --epsilon 1"
        )
    chosen = _sample(**sample)
    row = plan_question(answers, epsilon=epsilon, respondents=respondents, margin=margin, sample=chosen)
    if plot is not None:
        from .planning_plot import plot_margins

        if row["mechanism"] is None:
            raise click.ClickException(f"--plot has nothing to draw. {_no_answer(row)}")
        plot_margins(row, answers, chosen, plot)
    save_plan(row.to_rows(), "the population", answers=answers)
    if as_json:
        print_json(row)
    elif row["mechanism"] is None:
        click.echo(_no_answer(row))
    else:
        _print(row, answers, chosen)


def _sample(
    deff: float | None,
    weights_cv: float | None,
    groups: int | None,
    population: int | None,
    at_most: int | str | None,
) -> Sample:
    from ..margin_planning import Sample

    if deff is not None and weights_cv is not None:
        raise click.UsageError("--deff does not go with --weights-cv, which is the design effect 1 + cv² of weights.")
    effect = deff if deff is not None else 1 + (weights_cv or 0) ** 2
    return Sample(effect, population, groups or 1, at_most)


def _points(margin: float) -> str:
    """Return a margin as percentage points, such as `± 4.3 points`."""
    return f"± {rounded(100 * min(1.0, margin), 1 if margin >= 0.01 else 2)} points"


def _no_answer(row: dict[str, Any]) -> str:
    if row["epsilon"] is None:
        people = counted(row["respondents"], "person", "people")
        return f"No ε up to 20 gives {people} this margin: sampling alone has a larger one. Ask more people"
    return "No number of people gives this margin. Raise ε or the margin"


def _print(row: dict[str, Any], answers: int, sample: Sample) -> None:
    people = f"{row['respondents']:,}"
    click.echo(
        f"{people} people at ε = {printed_up(row['epsilon'])}: each share of {counted(answers, 'answer')} is known to "
        f"{_points(row['margin'])} (margin, 95 %), with {row['mechanism']}."
    )
    if row["runner_up"] is not None:
        click.echo(f"Next best: {row['runner_up']['mechanism']}, {_points(row['runner_up']['margin'])}.")
    if "group_margin" in row:
        click.echo(f"In each of {sample.groups} groups of equal size: {_points(row['group_margin'])}.")
    click.echo("\nMargins for other numbers of people (columns) and other ε (rows):")
    numbers = sorted({each["respondents"] for each in row["table"]})
    epsilons = sorted({each["epsilon"] for each in row["table"]})
    cells = {(each["epsilon"], each["respondents"]): _points(each["margin"]) for each in row["table"]}
    print_table(
        ("ε", *(f"{number:,}" for number in numbers)),
        [(f"{epsilon:g}", *(cells[epsilon, number] for number in numbers)) for epsilon in epsilons],
    )
    names = ",".join("abcdefghijklmnopqrstuvwxyz"[:answers]) if answers <= 6 else None
    asked = f"--categories {names}" if names else f"--domain-size {answers}"
    if isinstance(sample.at_most, int):
        asked += f" --at-most {sample.at_most}"
    next_step(f"ldp-budget collection add NAME {row['mechanism']} --epsilon {row['epsilon']:g} {asked}")
