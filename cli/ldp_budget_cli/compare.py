"""`ldp-budget compare`: which mechanism has the least predicted error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .mechanism_group import parse_reports
from .output import counted, print_rows, print_table, rows_options
from .plots import plot_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from ldp_budget.authoring.base import Mechanism


@click.command()
@click.option("--epsilon", required=True, metavar="E", help="Privacy loss of one report.")
@click.option("--domain-size", type=int, metavar="D", help="Number of possible answers, with --users.")
@click.option("--users", type=int, metavar="N", help="Number of users; of numbers, rank by their mean.")
@click.option("--lower", metavar="L", help="Smallest value, with --upper: compare numeric mechanisms.")
@click.option("--upper", metavar="U", help="Largest value.")
@click.option(
    "--reports", metavar="K", callback=parse_reports, help="Show the total loss of K reports of one user as well."
)
@click.option("--total-delta", metavar="D", help="The δ of that total [default: the sum of the reports' own]")
@plot_option("the comparison")
@rows_options
def compare(
    epsilon: str,
    domain_size: int | None,
    users: int | None,
    lower: str | None,
    upper: str | None,
    reports: int | None,
    total_delta: str | None,
    plot: str | None,
    form: str | None,
) -> None:
    """Rank every mechanism by its predicted error at the same ε, best first."""
    from ldp_budget.catalogue.ranking import rank_frequency, rank_numeric

    numeric = _both("lower", lower, "upper", upper)
    if domain_size is not None or not numeric:  # with a range, --users may also stand alone
        frequency = _both("domain-size", domain_size, "users", users)
        if not (frequency or numeric):
            what = "--domain-size: expected it with --users, or --lower with --upper; nothing was given"
            raise click.UsageError(what)
    if total_delta is not None and reports is None:
        raise click.UsageError("--reports: expected it with --total-delta; nothing was given")
    reasons: dict[str, str] = {}
    beside = None if reports is None else _totals_of(reports, total_delta, reasons)
    rows: list[dict[str, Any]] = []
    if domain_size is not None and users is not None:
        rows += rank_frequency(epsilon, domain_size, users, beside=beside)
    if lower is not None and upper is not None:
        rows += rank_numeric(epsilon, lower, upper, users, beside=beside)
    if plot is not None:
        from .plots.comparison import plot_comparison

        interval = (lower, upper) if lower is not None and upper is not None else None
        plot_comparison(rows, plot, epsilon=epsilon, domain_size=domain_size, users=users, interval=interval)
    if form is not None:
        print_rows(rows, form)
        return
    _print(rows, users)
    if reports is not None:
        from .totals import print_reasons

        _print_totals(rows, reports)
        print_reasons(reasons)


def _totals_of(
    reports: int, total_delta: str | None, reasons: dict[str, str]
) -> Callable[[Mechanism], dict[str, Any]]:
    """What a row says of the total of so many reports: as `compose --json` does. Why rules are missing: `reasons`."""
    from ldp_budget.accounting.totals import own_delta, totals

    from .totals import parse_delta

    given = None if total_delta is None else parse_delta(total_delta)

    def beside(mechanism: Mechanism) -> dict[str, Any]:
        delta = own_delta(mechanism.guarantee, reports) if given is None else given
        rules, missing = totals(mechanism, reports, delta)
        reasons.update(missing)
        return {"totals": {"reports": reports, "delta": float(delta), "rules": rules}}

    return beside


def _print_totals(rows: list[dict[str, Any]], reports: int) -> None:
    """The ε of the totals, in the order of the rows; what says nothing of anybody has none."""
    told = [row for row in rows if "totals" in row]
    deltas = dict.fromkeys(row["totals"]["delta"] for row in told)
    which = ", ".join(f"{delta:g}" for delta in deltas)
    click.echo(f"Total ε of {counted(reports, 'report')} of one user, by rule, at δ = {which}")
    names = list(dict.fromkeys(name for row in told for name in row["totals"]["rules"]))
    print_table(
        ("mechanism", *names), [(row["mechanism"], *_total_cells(row["totals"]["rules"], names)) for row in told]
    )


def _total_cells(rules: dict[str, Any], names: list[str]) -> list[float | None]:
    return [None if rules[name] is None else rules[name]["epsilon"] for name in names]


def _both(first: str, one: object, second: str, other: object) -> bool:
    """Whether two options that go together were given."""
    if (one is None) != (other is None):
        missing, given = (first, second) if one is None else (second, first)
        raise click.UsageError(f"--{missing}: expected it with --{given}; nothing was given")
    return one is not None


def _print(rows: list[dict[str, Any]], users: int | None) -> None:
    shares = [row for row in rows if row["kind"] == "frequency"]
    if shares:
        click.echo("Standard error of a share, predicted")
        header = ("mechanism", "mean over the answers", "at worst", "setting")
        print_table(header, [_share_cells(row) for row in shares])
    values = [row for row in rows if row["kind"] == "numeric"]
    if values:
        if users is not None:
            click.echo(
                f"Error of the mean of {counted(users, 'user who has', 'users who all have')} one value, at worst"
            )
        click.echo("Bias and mean squared error of one report; constant-output says the centre whatever the value is")
        first = ("mechanism",) if users is None else ("mechanism", "error of the mean")
        last = ("bias at lower", "MSE at lower", "MSE at centre", "MSE uniform prior", "setting")
        print_table((*first, *last), [_value_cells(row) for row in values])


def _share_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    errors = (_percent(row[name]) for name in ("mean_std_error", "worst_std_error"))
    return row["mechanism"], *errors, row["setting"]


def _value_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    mean = (row["mean_error"],) if "mean_error" in row else ()
    mse = row["mse"]
    errors = (row["bias"]["lower"], mse["lower"], mse["centre"], row["mse_uniform_prior"])
    return row["mechanism"], *mean, *errors, row["setting"]


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
