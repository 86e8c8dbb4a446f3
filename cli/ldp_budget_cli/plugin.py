"""`ldp-budget plugin`."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .output import json_option, print_json, print_row_table, shown

if TYPE_CHECKING:
    from ldp_budget.catalogue.plugins import Plugin


@click.group()
def plugin() -> None:
    """Start a plugin of your own, and certify one."""


@plugin.command("new")
@click.argument("name")
@click.option("--numeric", is_flag=True, help="Begin with a mechanism for a number, not for one of k answers.")
@click.option(
    "--distribution",
    metavar="NAME",
    help="The name to publish it under, which need not be the mechanism's.  [default: ldp-budget-NAME]",
)
@click.option("--to", metavar="FOLDER", default=".", show_default=True, help="Where the new folder NAME is made.")
def new(name: str, numeric: bool, distribution: str | None, to: str) -> None:
    """Write a distribution with one small mechanism NAME that works and passes `plugin check`, and its tests.

    NAME is what the mechanism is called on the command line, and with _ for - its module.
    """
    from .plugin_template import check_distribution, check_name, distribution_of, files_of

    check_name(name)
    distribution = distribution_of(name) if distribution is None else distribution
    check_distribution(distribution)
    folder = Path(to) / name
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise click.ClickException(f"{folder} is there already; nothing was written") from None
    except OSError as error:
        raise click.ClickException(f"{folder} cannot be made: {error.strerror}") from None
    for path, text in files_of(name, distribution, numeric=numeric).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    click.echo(f"wrote {folder}; next: pip install -e '{folder}[test]', then pytest there")


@plugin.command("check")
@click.argument("module")
@click.option(
    "--samples",
    type=click.IntRange(min=5_000),
    default=200_000,
    show_default=True,
    help="Reports that each audit draws.",
)
@json_option
def check(module: str, samples: int, as_json: bool) -> None:
    """Certify every mechanism that MODULE registers: a module, a distribution, or its entry point.

    Runs the contract, proves each promise as far as it is described, audits each client, also with settings that
    nobody could foresee, and keeps the result for `mechanisms` to show: "audited" at most, as no number of samples
    proves a client. Exit code 1 if anything failed.
    """
    from ldp_budget.trust.contract import certify, find_plugin

    if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", module):
        raise click.UsageError(
            f"MODULE: expected the name of a module, a distribution or an entry point; found {module}"
        )
    # A module that lies in this folder need not be installed, as for `python -m`.
    sys.path.insert(0, os.getcwd())
    # Standard output belongs to the certificate.
    with contextlib.redirect_stdout(sys.stderr):
        found = find_plugin(module)
        if found.failed:
            raise click.ClickException(f"{found}: {found.failed}")
        certificate = certify(
            found.mechanisms,
            distribution=found.name,
            version=found.version,
            samples=samples,
            own=found.own,
            told=lambda line: click.echo(f"checking {line}", err=True),
        )
    failures = [line for mechanism in certificate["mechanisms"] for line in _failures(mechanism)]
    for line in (*failures, *_reasons(certificate), *_skipped(certificate)):
        click.echo(line, err=True)
    _keep(certificate, found)
    if as_json:
        print_json(certificate)
    else:
        print_row_table([row for mechanism in certificate["mechanisms"] for row in _rows(mechanism)])
    if failures:
        sys.exit(1)


def _failures(mechanism: dict[str, Any]) -> list[str]:
    """Everything that speaks against a mechanism, and what could not be checked at all."""
    if "problem" in mechanism:
        return [f"failed: {mechanism['problem']}"]
    lines = []
    for example in (*mechanism["examples"], *mechanism["chosen"]):
        which = f"{mechanism['mechanism']}({_declared(example)})"
        for found in (*example["checks"], *example["audits"]):
            if found["verdict"] == "failed":
                lines.append(f"failed: {which}: {found.get('check', 'audit')}: {found['why']}")
    return lines


def _reasons(certificate: dict[str, Any]) -> list[str]:
    """Why what did not fail is not checked at a higher level, and what its author can do."""
    why: dict[str, list[str]] = {}
    for mechanism in certificate["mechanisms"]:
        higher = "exact" if mechanism["checked"] == "audited" else "audited"
        for reason in () if _failures(mechanism) else mechanism.get("reasons", ()):
            why.setdefault(f"not {higher}: %s: {reason}", []).append(mechanism["mechanism"])
    return _with_names(why)


def _skipped(certificate: dict[str, Any]) -> list[str]:
    """Which checks were left out, and why."""
    why: dict[str, list[str]] = {}
    for mechanism in certificate["mechanisms"]:
        for example in (*mechanism["examples"], *mechanism["chosen"]):
            for found in example["checks"]:
                if found["verdict"] == "skipped":
                    word = "skipped" if found["applies"] else "does not apply"
                    names = why.setdefault(f"{word}: %s: {found['check']}: {found['why']}", [])
                    names += [name for name in [mechanism["mechanism"]] if name not in names]
    return _with_names(why)


def _with_names(lines: dict[str, list[str]]) -> list[str]:
    """Lines that hold for several mechanisms, each said once."""
    return [line.replace("%s", ", ".join(names), 1) for line, names in lines.items()]


def _proved(example: dict[str, Any]) -> str:
    """What is known of the promise: "holds" where whole reports are described, else only of the parts that are."""
    verdict: str = (example.get("exact") or {}).get("verdict", "-")
    return verdict if verdict != "holds" or example["whole"] else "as described"


def _declared(example: dict[str, Any]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in example["declared"].items())


def _rows(mechanism: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "mechanism": mechanism["mechanism"],
            "checked": example["checked"],
            "claimed": example.get("claimed"),
            "proved": _proved(example),
            "exact": (example.get("exact") or {}).get("upper"),
            "audited": max((audit.get("lower_bound", 0.0) for audit in example["audits"][:1]), default=None),
            "passed": sum(found["verdict"] == "passed" for found in example["checks"]),
            "skipped": sum(found["verdict"] == "skipped" for found in example["checks"]),
            "failed": sum(found["verdict"] == "failed" for found in (*example["checks"], *example["audits"])),
            "parameters": _declared(example),
        }
        for example in (*mechanism["examples"], *mechanism["chosen"])
    ]


def _keep(certificate: dict[str, Any], found: Plugin) -> None:
    """Record it, and say on stderr where; our own mechanisms need no record."""
    from ldp_budget.catalogue.certificates import record
    from ldp_budget.guarantees.evidence import LEVELS, NO

    checked = (mechanism["checked"] for mechanism in certificate["mechanisms"])
    certificate["checked"] = min(checked, key=LEVELS.index, default=NO)
    summary = f"{found}: {certificate['checked']}"
    if found.own or not found.version:
        why = (
            "checked with every release" if found.own else "not an installed distribution, which commands would find"
        )
        click.echo(f"{summary}; not recorded, as it is {why}", err=True)
        return
    try:
        click.echo(f"{summary}; recorded in {record(certificate)}", err=True)
    except OSError as error:
        raise click.ClickException(f"the certificate cannot be recorded: {error}") from None
