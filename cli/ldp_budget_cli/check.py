"""`ldp-budget check`: run the shipped checkers on a certificate or a public definition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .output import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ldp_budget.guarantees import Guarantee


@click.command()
@click.argument("path", metavar="FILE")
@json_option
def check(path: str, as_json: bool) -> None:
    """Check a certificate of a total, or the law of a public definition.

    Runs the shipped programs of clients/check, which need nothing but Python. Exits with 1 unless all is proved.

    \b
    Example:
      ldp-budget compose oue --epsilon 0.5 --domain-size 7 --reports 50 --total-delta 1e-6 --certificate total.json
      ldp-budget check total.json
    """
    print_result(check_file(Path(path)), as_json)


def check_file(path: Path) -> dict[str, Any]:
    """The result of the checker that a file needs. Raises a click error unless the file proves itself."""
    from ldp_budget.verification.checkers import checker

    try:
        data = path.read_bytes()
    except OSError as error:
        raise click.ClickException(f"Cannot read {path}: {error.strerror}.") from None
    name = checker("check").checker_of(data)
    if name is None:
        raise click.ClickException(
            f"{path} is neither a certificate nor a public definition. Make one: ldp-budget compose … --certificate FILE, "
            "or ldp-budget collection show NAME --client"
        )
    module = checker(name.removesuffix(".py"))
    try:
        found, bound = module.check(data)
    except NotImplementedError as error:
        raise click.ClickException(
            f"{path} cannot be checked: {error}. Audit the mechanism: ldp-budget audit"
        ) from None
    except Exception as error:
        raise click.ClickException(f"{path} is REFUSED: {error}. Do not rely on it.") from None
    return _of_total(found) if name == "check_total.py" else _of_law(found, bound)


def _of_total(claim: dict[str, Any]) -> dict[str, Any]:
    reports = sum(charge["count"] for charge in claim["charges"])
    return {
        "kind": "total",
        "verdict": "proved",
        "epsilon": claim["epsilon"],
        "delta": claim["delta"],
        "reports": reports,
        "charges": claim["charges"],
    }


def _of_law(definition: dict[str, Any], ratio: Any) -> dict[str, Any]:
    return {
        "kind": "law",
        "verdict": "proved",
        "name": definition["name"],
        "mechanism": definition["mechanism"],
        "epsilon": definition["guarantee"]["epsilon"],
        "scope": "one report" if definition["memo"] else "every report",
        "ratio": f"{ratio.numerator}/{ratio.denominator}",
    }


def print_result(result: dict[str, Any], as_json: bool) -> None:
    """Print the result of a check, as JSON or in sentences."""
    if as_json:
        print_json(result)
    elif result["kind"] == "total":
        click.echo(
            f"Proved: ε is at most {result['epsilon']} at δ = {result['delta']} for these reports of one user, if the "
            "list was fixed beforehand:"
        )
        for charge in result["charges"]:
            terms = [f"{name} {value}" for name, value in charge.items() if isinstance(value, str) and name != "kind"]
            click.echo(f"  {charge['count']} × {', '.join((charge['kind'], *terms))}")
    else:
        click.echo(
            f"Proved: {result['scope']} of {result['name']} ({result['mechanism']}) is at most e^{result['epsilon']} times "
            "as likely with one answer as with another."
        )


def write_certificate(path: str, charges: Iterable[tuple[Guarantee, int]], delta: Any) -> None:
    """Write the certificate of an exact total, and print the next step."""
    from ldp_budget.verification.total_certificate import certificate, written

    from .output import next_step

    data = written(certificate(charges, delta=delta))
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise click.ClickException(f"Cannot write {path}: {error.strerror}. Nothing was written.") from None
    claim = json.loads(data)
    click.echo(f"Wrote {path}: ε = {claim['epsilon']} at δ = {claim['delta']}, {len(data)} bytes.", err=True)
    next_step(f"ldp-budget check {path}")
