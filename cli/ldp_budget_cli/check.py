"""`ldp-budget check`: run the shipped checkers on a certificate or a public definition."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .output import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ldp_budget.guarantees import Guarantee


@click.command()
@click.argument("path", metavar="FILE|FOLDER")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="VKEY",
    help="Of a FOLDER: the public key of its log; then those of witnesses.",
)
@click.option(
    "--receipt", "receipts", multiple=True, metavar="FILE", help="Your receipt; then your others, for the total."
)
@click.option("--proof", metavar="FILE", help="The proof that the operator sent you.")
@click.option("--seen", metavar="CHECKPOINT", help="A checkpoint that you saved earlier.")
@json_option
def check(
    path: str, keys: tuple[str, ...], receipts: tuple[str, ...], proof: str | None, seen: str | None, as_json: bool
) -> None:
    """Check a certificate, a public definition, or a published survey.

    FILE is a certificate of a total, or a public definition. FOLDER is a published survey. The shipped programs of
    clients/check do the work; they need nothing but Python. The command exits with 1 unless all is proved.

    \b
    Example:
      ldp-budget check total.json
      ldp-budget check site/ --key VKEY --receipt me.json --proof proof.json
    """
    if not Path(path).is_dir():
        if keys or receipts or proof is not None or seen is not None:
            raise click.UsageError(
                "--key, --receipt, --proof and --seen are for the FOLDER of a published survey. Leave them out, or name "
                "a folder."
            )
        print_result(check_file(Path(path)), as_json)
        return
    if not keys:
        raise click.UsageError(
            "--key is missing: the public key of the log. Its operator prints it with: ldp-budget publish key show"
        )
    if as_json:
        raise click.UsageError("--json is for certificates and public definitions. Leave it out.")
    sys.exit(check_published(Path(path), keys, receipts, proof, seen))


def check_published(
    folder: Path, keys: Sequence[str], receipts: Sequence[str] = (), proof: str | None = None, seen: str | None = None
) -> int:
    """Check a published folder with the shipped checkers, print what they prove, and return the exit code."""
    from ldp_budget.verification.checkers import checker

    arguments = [str(folder)]
    for option, values in (("--key", keys), ("--receipt", receipts), ("--proof", [proof]), ("--seen", [seen])):
        for value in values:
            if value is not None:
                arguments += [option, value]
    code: int = checker("check_books").main(arguments)
    return code or _check_program(folder / "client.json")


def _check_program(definition: Path) -> int:
    """Check the published program; print the result, and return the exit code."""
    from ldp_budget.verification.checkers import checker

    try:
        program, _ = checker("check_law").check(definition.read_bytes())
    except NotImplementedError as error:
        click.echo(f"program   not checked: {error}")
    except Exception as error:
        click.echo(f"REFUSED: the program: {error}")
        return 1
    else:
        click.echo(
            f"program   a report is at most e^{program['guarantee']['epsilon']} times as likely as with another answer"
        )
    return 0


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
