"""`ldp-budget calibrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .mechanism_group import mechanism_command
from .output import json_option, print_fields, print_json
from .plots import plot_option

if TYPE_CHECKING:
    from ldp_budget.authoring.base import Mechanism


@mechanism_command(
    "Find the parameters that meet a privacy target, and what they promise and cost.",
    build=lambda mechanism, values: mechanism.calibrate(**values),
    offers=lambda mechanism, field: not field.derived,
)
@click.option("--users", type=int, metavar="N", help="Predict the standard error for this many users.")
@plot_option("the error against ε, and of a numeric mechanism the densities of its reports")
@json_option
def calibrate(mechanism: Mechanism, users: int | None, plot: str | None, as_json: bool) -> None:
    result = mechanism.describe(users)
    if plot is not None:
        from .plots.mechanism import plot_mechanism

        plot_mechanism(mechanism, plot, users)
    if as_json:
        print_json(result)
        return
    notes = result.pop("notes")
    print_fields(result)
    for note in notes:
        click.echo(f"\nNote: {note}")
