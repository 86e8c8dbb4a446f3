"""`ldp-budget calibrate`, `compose`, `plan`, `compare` and `mechanisms`: calculations that need no ledger.

`compose` gives the total of many reports. `plan` gives the ε that each report may cost. `compare` ranks mechanisms by
their predicted error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget.guarantees.fixed_point import printed_up
from ldp_budget.registry.certification import mechanism_rows

from .certificate_files import write_certificate
from .command_groups import part
from .errors import did_you_mean
from .limit_figures import number
from .mechanism_arguments import as_typed, mechanism_command, parse_reports
from .mechanism_cards import card, card_lines
from .notes import print_note
from .number_types import WHOLE, parse_margin, parse_ticks
from .output import (
    JSON,
    LINES,
    central_loss,
    counted,
    json_option,
    print_json,
    print_rows,
    rows_options,
    shuffled_option,
)
from .plots import plot_option
from .rule_tables import applicable, enforced_by, limit_rule, parse_delta, print_reasons, reports_option, rule_rows
from .safe_figures import safe_parameters, with_losses
from .tables import Loss, print_fields, print_row_table, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.mechanism import Mechanism

    Rules = dict[str, dict[str, Any] | None]
    Chosen = tuple[type[Mechanism], Mapping[str, Any]]


@mechanism_command(
    "Find the parameters of a mechanism that meet a privacy target, with their guarantee and error.",
    example="calibrate {} --users 10000",
    build=lambda mechanism, values: mechanism.calibrate(**values),
    offers=lambda mechanism, field: not field.derived,
)
@click.option("--users", type=WHOLE, metavar="N", help="Also predict the standard error of an estimate from N users.")
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
    result["parameters"] = result["parameters"] or mechanism.declared
    if "sigma_by_method" in result.get("utility", {}):
        by_method = {name: Loss(sigma) for name, sigma in result["utility"]["sigma_by_method"].items()}
        result["utility"] = {**result["utility"], "sigma_by_method": by_method}
    result |= {"parameters": safe_parameters(result["parameters"]), "guarantee": with_losses(result["guarantee"])}
    print_fields({name: value for name, value in result.items() if value not in ({}, "")})
    for note in notes:
        click.echo(f"\nNote: {note}")


@mechanism_command(
    "Show the total privacy loss of K reports of one user, under every rule of composition.",
    example="compose {} --reports 50 --total-delta 1e-6",
)
@reports_option
@click.option("--total-delta", metavar="D", help="The δ of the total [default: the sum of the reports' own]")
@shuffled_option
@click.option("--rule", metavar="RULE", help="Show this rule alone: basic, zcdp, gdp, renyi or exact.")
@click.option("--certificate", metavar="FILE", help="Write a certificate of the exact total: see ldp-budget check.")
@rows_options
def compose(
    mechanism: Mechanism,
    reports: int,
    total_delta: str | None,
    shuffled: int | None,
    rule: str | None,
    certificate: str | None,
    form: str | None,
) -> None:
    from ldp_budget.composition.rules import of_one_question

    totals = part("totals")
    guarantee = totals.promise_of(mechanism)
    delta = totals.own_delta(guarantee, reports) if total_delta is None else parse_delta(total_delta)
    row, reasons = totals.composed(mechanism, reports, delta, shuffled)
    if rule is not None:
        _keep_rule(rule, row["rules"], reasons)
    rules, central = row["rules"], row.get("shuffled")
    if certificate is not None:
        if rule not in (None, "exact"):
            raise click.UsageError(
                "--certificate certifies the exact total. Write --rule exact, or leave --rule out."
            )
        write_certificate(certificate, [of_one_question(guarantee, reports, "exact")], delta)
    if form == JSON:
        print_json(row)
        return
    if form is not None:
        print_rows(rule_rows({**rules, **({} if shuffled is None else {"shuffled": central})}), form)
        return
    click.echo(f"{counted(reports, 'report')} of {as_typed()}; total δ = {number(delta)}")
    rows = [
        (limit_rule(name, row), Loss(row["epsilon"]), row["delta"], enforced_by(row))
        for name, row in applicable(rules)
    ]
    print_table(("rule", "epsilon", "delta", "enforced by"), rows)
    _print_memoised(guarantee, reports)
    if central is not None:
        click.echo(central_loss(central))
    print_reasons(reasons)


def _keep_rule(rule: str, rules: Rules, reasons: dict[str, str]) -> None:
    """Leave only the result of one rule, and its reason. Raises a click error for another name."""
    if rule not in rules:
        raise click.UsageError(f"--rule must be one of {', '.join(rules)}: got {rule!r}")
    for name in [*rules]:
        if name != rule:
            del rules[name]
            reasons.pop(name, None)


def _print_memoised(guarantee: Guarantee, reports: int) -> None:
    """Print why `basic` may give less than other rules, and why all rules may give less than the sum of the reports."""
    from ldp_budget.composition.rules import of_one_question
    from ldp_budget.guarantees import Memoised
    from ldp_budget.guarantees.fixed_point import float_up

    if not isinstance(guarantee, Memoised):
        return
    cap = printed_up(guarantee.cap)
    if guarantee.values is not None and guarantee.values < reports:
        click.echo(
            f"All reports of one question and secret together lose at most {guarantee.values} times the cap of one "
            f"memoized value, ε = {cap}"
        )
    if guarantee.epsilon < float_up(guarantee.cap) and of_one_question(guarantee, reports, "basic")[0] == guarantee:
        click.echo(
            f"Rule basic counts each report as the first of a new memoized value, at ε = {printed_up(guarantee.epsilon)}. "
            f"The other rules count the cap of a value, ε = {cap}"
        )


@click.command()
@click.option("--epsilon", required=True, metavar="E", help="The privacy loss ε of one report.")
@click.option(
    "--domain-size", type=WHOLE, metavar="D", help="The number of possible answers. Needs --users or --margin."
)
@click.option(
    "--users", type=WHOLE, metavar="N", help="The number of users. For numbers: rank by the error of the mean."
)
@click.option("--lower", metavar="L", help="The smallest value: compare numeric mechanisms. Needs --upper.")
@click.option("--upper", metavar="U", help="The largest value.")
@click.option(
    "--reports", metavar="K", callback=parse_reports, help="Also show the total loss of K reports of one user."
)
@click.option("--total-delta", metavar="D", help="The δ of that total [default: the sum of the reports' own]")
@click.option(
    "--margin",
    metavar="SHARE",
    callback=parse_margin,
    help="Show how many respondents give every share this margin of error, at 95 %: 0.03 or 3% is 3 points. Without --users, "
    "show the errors for the least number.",
)
@click.option(
    "--at-most",
    metavar="M|any",
    callback=parse_ticks,
    help="Compare designs of tick all that apply: users tick at most M of D options, or any number.",
)
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
    margin: float | None,
    at_most: int | str | None,
    plot: str | None,
    form: str | None,
) -> None:
    """Rank every mechanism by its predicted error at the same ε, best first.

    \b
    Example:
      ldp-budget compare --epsilon 1 --domain-size 7 --users 10000
      ldp-budget compare --epsilon 1 --lower 0 --upper 100 --users 10000
      ldp-budget compare --epsilon 2 --domain-size 10 --at-most 3 --users 3000
    """
    numeric = _both("lower", lower, "upper", upper)
    if at_most is not None and domain_size is None:
        raise click.UsageError("--at-most needs --domain-size D, the number of options.")
    if margin is not None and domain_size is None:
        raise click.UsageError("--margin needs --domain-size D.")
    if margin is not None and users is None and domain_size is not None:
        users = _least_users(epsilon, domain_size, margin, at_most)
    if domain_size is not None or not numeric:  # with a range, --users may also be given alone
        frequency = _both("domain-size", domain_size, "users", users)
        if not (frequency or numeric):
            raise click.UsageError("The answers are missing. Add --domain-size D --users N, or --lower L --upper U")
    if total_delta is not None and reports is None:
        raise click.UsageError("--total-delta needs --reports K.")
    delta = None if total_delta is None else parse_delta(total_delta)
    rows, reasons = part("totals").compared(
        epsilon,
        domain_size=domain_size,
        users=users,
        lower=lower,
        upper=upper,
        margin=margin,
        reports=reports,
        delta=delta,
        at_most=at_most,
    )
    if plot is not None:
        from .plots.mechanism import plot_comparison

        interval = (lower, upper) if lower is not None and upper is not None else None
        plot_comparison(rows, plot, epsilon=epsilon, domain_size=domain_size, users=users, interval=interval)
    if form is not None:
        print_rows(rows, form)
        return
    _print(rows, users)
    if reports is not None:
        _print_totals(rows, reports)
        print_reasons(reasons)


def _least_users(epsilon: str, domain_size: int, margin: float, at_most: int | str | None) -> int:
    """Return the least number of respondents for which some mechanism gives the margin; prints it."""
    ranked = part("ranking").rank_frequency(epsilon, domain_size, 1, margin=margin, at_most=at_most)
    found = [row["respondents"] for row in ranked]
    enough = [number for number in found if number is not None]
    if not enough:
        raise click.UsageError(
            "--margin: no number of respondents gives it with any mechanism. Raise ε or the margin."
        )
    users = int(min(enough))
    print_note(f"{counted(users, 'respondent')}, the least number that gives the margin with the best mechanism")
    return users


def _print_totals(rows: list[dict[str, Any]], reports: int) -> None:
    """Print the ε of the totals, in the order of the rows; a mechanism without a loss has no total."""
    priced = [row for row in rows if "totals" in row]
    deltas = dict.fromkeys(row["totals"]["delta"] for row in priced)
    which = ", ".join(f"{delta:g}" for delta in deltas)
    click.echo(f"Total ε of {counted(reports, 'report')} of one user, by rule, at δ = {which}")
    names = list(dict.fromkeys(name for row in priced for name in row["totals"]["rules"]))
    print_table(
        ("mechanism", *names), [(row["mechanism"], *_total_cells(row["totals"]["rules"], names)) for row in priced]
    )


def _total_cells(rules: dict[str, Any], names: list[str]) -> list[float | None]:
    return [None if rules[name] is None else rules[name]["epsilon"] for name in names]


_METAVARS = {"lower": "L", "upper": "U", "domain-size": "D", "users": "N"}


def _both(first: str, one: object, second: str, other: object) -> bool:
    """True if two options that go together were given. Raises a click error if only one was."""
    if (one is None) != (other is None):
        missing, given = (first, second) if one is None else (second, first)
        raise click.UsageError(f"--{given} needs --{missing}. Add --{missing} {_METAVARS[missing]}")
    return one is not None


def _print(rows: list[dict[str, Any]], users: int | None) -> None:
    shares = [row for row in rows if row["kind"] == "frequency"]
    if shares:
        click.echo("Predicted standard error of a share: mean over the answers, and at worst")
        if any(row["consistent_error"] is not None for row in shares):
            click.echo("consistent: the mean error with --consistent, if the shares fall as 1, 1/2, 1/3 …")
        if "respondents" in shares[0]:
            click.echo("respondents: the number that gives every share the margin of error, at 95 %; - if none does")
        more = ("bits", *(("respondents",) if "respondents" in shares[0] else ()))
        header = ("mechanism", "mean", "at worst", "consistent", *more, "setting")
        print_table(header, [_share_cells(row) for row in shares])
    values = [row for row in rows if row["kind"] == "numeric"]
    if values:
        if users is not None:
            click.echo(
                f"Error of the mean of {counted(users, 'user who has', 'users who all have')} one value, at worst"
            )
        click.echo("Bias and mean squared error of one report")
        first = ("mechanism",) if users is None else ("mechanism", "error of the mean")
        last = ("bias at lower", "MSE at lower", "MSE at centre", "MSE uniform prior", "setting")
        drop = ("MSE at centre", "MSE at lower") if users is not None else ()
        print_table((*first, *last), [_value_cells(row) for row in values], drop)
        if any(row["mechanism"] == "constant-output" for row in values):
            click.echo("constant-output is a baseline: it reports the centre of the range for every user")


def _share_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    errors = (_percent(row[name]) for name in ("mean_std_error", "worst_std_error", "consistent_error"))
    more = (row[name] for name in ("bits", "respondents") if name in row)
    return row["mechanism"], *errors, *more, row["setting"]


def _value_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    mean = (row["mean_error"],) if "mean_error" in row else ()
    mse = row["mse"]
    errors = (row["bias"]["lower"], mse["lower"], mse["centre"], row["mse_uniform_prior"])
    return row["mechanism"], *mean, *errors, row["setting"]


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.2f} %"


@click.command()
@click.argument("name", required=False)
@rows_options
def mechanisms(name: str | None, form: str | None) -> None:
    """List the mechanisms, or describe the mechanism NAME: its parameters, client, law, proof, vectors and source.

    A plugin that failed to load is listed with the reason. Client, law and vectors are those of the example's parameters.

    \b
    Example:
      ldp-budget mechanisms
      ldp-budget mechanisms oue
    """
    rows = mechanism_rows()
    if name is not None:
        cls = _named_mechanism(name)
        rows = [row for row in rows if row["name"] == cls.name]
        if form is None:
            for line in card_lines(cls, rows[0]):
                click.echo(line)
            return
        if form in (JSON, LINES):
            rows = [card(cls, rows[0])]
    if form is not None:
        print_rows(rows, form)
        return
    print_row_table(
        [
            {"name": _shown_name(row), "checked": row["checked"], "summary": row["summary"] or _failed(row)}
            for row in rows
        ]
    )
    for row in rows:
        if row["status"] != "ok":
            print_note(f"Plugin {row['plugin']} {row['plugin_version']} {row['status']}")


def _shown_name(row: dict[str, Any]) -> str:
    """Return the name of a mechanism, with its short alias if it has one; of a failed plugin its own name."""
    if row["status"] != "ok":
        return str(row["plugin"])
    short = [alias for alias in row["aliases"] if len(alias) <= _SHORT]
    return f"{row['name']} ({short[0]})" if short else str(row["name"])


def _failed(row: dict[str, Any]) -> str:
    return "" if row["status"] == "ok" else "a plugin that failed: see below"


_SHORT = 6


def _named_mechanism(name: str) -> type[Mechanism]:
    """Return the mechanism with that name or alias, in any spelling. Raises a click error."""
    from ldp_budget.errors import UnknownName
    from ldp_budget.registry.plugins import mechanism

    try:
        return mechanism(name.lower().replace("_", "-"))
    except UnknownName as error:
        close = did_you_mean(name, error.known)
        raise click.UsageError(f"No mechanism is named {name!r}.{close} List them: ldp-budget mechanisms") from None
