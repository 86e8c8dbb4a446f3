"""`ldp-budget check`: run the shipped checkers on a certificate, a public definition or a published survey."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_budget_cli.output import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence


_MOST_BYTES = 2**24


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

    FILE is a certificate of a total, or a public definition. FOLDER is a published survey. The exit code is 0 only if
    every part that you gave was checked and holds. The command names the parts that you did not give.

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
    """Check a published folder with the shipped checkers, print what they prove, and return the exit code.

    It is 0 only if every part that was given was checked and holds.
    """
    from ..shipped_checkers import checker

    books = checker("check_books")
    try:
        found = books.examine(folder, list(keys), list(receipts), proof, seen)
    except Exception as error:
        click.echo(books.refusal(error))
        return 1
    lines, unchecked = list(found.lines), [each for each in found.unchecked if each != "program"]
    try:  # the bytes that were checked, not those that the file may have by now
        proved, _ = checker("check_law").check(books.canonical(found.client))
    except NotImplementedError as error:
        if "program" in found.unchecked:
            lines.append(f"program   not checked: {books.plain(str(error), 300)}")
            unchecked.append("program")
    except Exception as error:
        click.echo(f"REFUSED: the program: {books.plain(str(error), 300)}")
        return 1
    else:
        if "program" in found.unchecked:
            lines.append(books.program_line(proved["guarantee"]["epsilon"]))
    click.echo("\n".join(lines))
    missing = books.not_given(keys, receipts, seen)
    if missing:
        click.echo(f"not given {', '.join(missing)}: nothing is proved about it")
    if unchecked:
        click.echo(f"NOT ALL CHECKED: {', '.join(unchecked)}")
    return int(bool(unchecked))


def check_file(path: Path) -> dict[str, Any]:
    """The result of the checker that a file needs. Raises a click error unless the file proves itself."""
    from ..shipped_checkers import checker

    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise click.ClickException(f"Cannot read {path}: {error.strerror}.") from None
    if len(data) > _MOST_BYTES:
        raise click.ClickException(
            f"{path} has more than {_MOST_BYTES} bytes, so no checker reads it. Name a certificate or a public definition."
        )
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
            f"{path} cannot be checked: {_plain(error)}. Audit the mechanism: ldp-budget audit"
        ) from None
    except Exception as error:
        raise click.ClickException(f"{path} is REFUSED: {_plain(error)}. Do not rely on it.") from None
    return _of_total(found) if name == "check_total.py" else _of_law(found, bound)


def _plain(text: object) -> str:
    """Return text from a file as one piece of a line, without characters that break, hide or reorder the line."""
    from ..shipped_checkers import checker

    shown: str = checker("check_books").plain(str(text), 300)
    return shown


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
            f"Proved: {result['scope']} of {_plain(result['name'])} ({_plain(result['mechanism'])}) is at most "
            f"e^{result['epsilon']} times as likely with one answer as with another."
        )
