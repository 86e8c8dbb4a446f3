"""`ldp-budget plugin`: create and certify a plugin; and `ldp-budget audit`: test a mechanism's guarantee.

An audit decides from the mechanism's channel if the guarantee is true, and samples its client.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_budget._number_parsing import whole_in
from ldp_budget.errors import InvalidParameter, NotSupported, UnknownName
from ldp_budget.guarantees import Memoised
from ldp_budget.guarantees.fixed_point import float_up
from ldp_budget.guarantees.guarantees import AUDITED, EXACT, LEVELS, NO
from ldp_budget_cli.app import open_ledger
from ldp_budget_cli.mechanism_arguments import mechanism_command
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.number_types import WholeRange
from ldp_budget_cli.output import counted, json_option, next_step, print_json
from ldp_budget_cli.progress import reading_reports
from ldp_budget_cli.tables import print_row_table, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.guarantees import Guarantee
    from ldp_budget.registry.plugins import Plugin
    from ldp_budget.sdk.mechanism import Mechanism

    from ..audit import Audit
    from ..exact import Verification


@click.group()
def plugin() -> None:
    """Create a mechanism plugin of your own, and certify it."""


@plugin.command("new")
@click.argument("name")
@click.option("--numeric", is_flag=True, help="Start with a mechanism for a number instead of one of k answers.")
@click.option(
    "--distribution",
    metavar="NAME",
    help="Name the distribution to publish [default: ldp-budget-NAME]",
)
@click.option("--to", metavar="FOLDER", default=".", show_default=True, help="Create the folder NAME in FOLDER.")
@json_option
def new(name: str, numeric: bool, distribution: str | None, to: str, as_json: bool) -> None:
    """Write a distribution with one small mechanism NAME that works and passes `plugin check`, and its tests.

    NAME is the mechanism's name on the command line. Its module has the same name, with _ for -.

    \b
    Example:
      ldp-budget plugin new my-coin
    """
    from .plugin_template import check_distribution, check_name, distribution_of, files_of

    check_name(name)
    distribution = distribution_of(name) if distribution is None else distribution
    check_distribution(distribution)
    folder = Path(to) / name
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise click.ClickException(f"{folder} exists. Nothing was written. Choose another NAME or --to.") from None
    except OSError as error:
        raise click.ClickException(f"Cannot create {folder}: {error.strerror}.") from None
    files = files_of(name, distribution, numeric=numeric)
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"folder": str(folder), "distribution": distribution, "files": list(files)})
    else:
        click.echo(f"wrote {folder}")
    next_step(f"pip install -e '{folder}[test]', then run pytest in {folder}")


@plugin.command("check")
@click.argument("module")
@click.option(
    "--samples",
    type=WholeRange(min=5_000),
    default=200_000,
    show_default=True,
    help="Draw this many reports in each audit.",
)
@json_option
def check(module: str, samples: int, as_json: bool) -> None:
    """Certify every mechanism that MODULE registers: a module, a distribution, or its entry point.

    Runs the contract, proves each guarantee as far as its channel is described, and audits each client, also with
    random settings. The first line is the verdict. "exact": the guarantee is proved. "audited": every check passed, the
    best result for a client in Python. "no": something failed or could not be checked; the exit code is 1.

    `mechanisms` shows the result, which is stored on this machine.

    The column `proved` is "holds" if the guarantee is proved for whole reports. It is "as described" if only the part of
    a report that `compare` describes is proved; samples test that the rest says nothing more.

    \b
    Example:
      ldp-budget plugin check my_coin
    """
    from ..contract import certify, find_plugin

    if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", module):
        raise click.UsageError(f"MODULE must be the name of a module, a distribution or an entry point: got {module}")
    # A module in the current folder need not be installed, as for `python -m`.
    sys.path.insert(0, os.getcwd())
    # Standard output belongs to the certificate.
    with contextlib.redirect_stdout(sys.stderr), reading_reports("checking settings") as on_setting:
        found = find_plugin(module)
        if found.failed:
            raise click.ClickException(f"{found}: {found.failed}")
        certificate = certify(
            found.mechanisms,
            distribution=found.name,
            version=found.version,
            samples=samples,
            own=found.own,
            told=lambda line: None if on_setting is None else on_setting(1),
        )
    checked = (mechanism["checked"] for mechanism in certificate["mechanisms"])
    certificate["checked"] = min(checked, key=LEVELS.index, default=NO)
    click.echo(_verdict(certificate, found), err=as_json)
    for line in (*_all_failures(certificate), *_counterexamples(certificate)):
        click.echo(line, err=True)
    for line in (*_reasons(certificate), *_skipped(certificate)):
        print_note(line)
    _keep(certificate, found)
    if as_json:
        print_json(certificate)
    else:
        _print_rows([row for mechanism in certificate["mechanisms"] for row in _rows(mechanism)])
    if certificate["checked"] == NO:
        sys.exit(1)


def _verdict(certificate: dict[str, Any], found: Plugin) -> str:
    """Return the result of all checks in a few sentences."""
    of_level = {
        level: ", ".join(each["mechanism"] for each in certificate["mechanisms"] if each["checked"] == level)
        for level in LEVELS
    }
    failures = len(_all_failures(certificate))
    if failures:
        return (
            f"not passed: {of_level[NO]}: {counted(failures, 'failure')}. The lines that begin with failed say why."
        )
    if certificate["checked"] == NO:
        return f"not passed: {of_level[NO] or found} could not be checked. The lines that begin with not audited say why."
    proved = f"The guarantee of {of_level[EXACT]} is proved." if of_level[EXACT] else ""
    if certificate["checked"] == EXACT:
        return f"passed: exact. {proved}"
    highest = "" if found.own else " No client in Python can get more than audited, because samples are no proof."
    return (
        f"passed: audited, a good result. {of_level[AUDITED]}: every check passed, and no search of the reports found a "
        f"larger loss than promised.{highest} {proved}"
    ).rstrip()


def _all_failures(certificate: dict[str, Any]) -> list[str]:
    return [line for mechanism in certificate["mechanisms"] for line in _failures(mechanism)]


def _counterexamples(certificate: dict[str, Any]) -> list[str]:
    """Return the two answers, the report and the loss that show that a guarantee is too good."""
    lines = []
    for mechanism in certificate["mechanisms"]:
        found = mechanism["evidence"]
        if found["verdict"] == "violated" and found["pair"] is not None:
            loss = "unbounded" if found["loss"] is None else f"{found['loss']:.9g}"
            pair = f"{found['pair'][0]} and {found['pair'][1]}"
            lines.append(f"violated: {mechanism['mechanism']}: answers {pair}, report {found['report']}: loss {loss}")
    return lines


def _failures(mechanism: dict[str, Any]) -> list[str]:
    """Return all failures of a mechanism, and everything that could not be checked at all."""
    from ..contract import statement_of

    if "problem" in mechanism:
        return [f"failed: {mechanism['problem']}"]
    lines = []
    for example in (*mechanism["examples"], *mechanism["chosen"]):
        which = f"{mechanism['mechanism']}({_declared(example)})"
        for found in (*example["checks"], *example["audits"]):
            if found["verdict"] == "failed":
                check = statement_of(found.get("check", "audit_finds_no_more"))
                lines.append(f"failed: {which}: {check}: {found['why']}")
    return lines


def _reasons(certificate: dict[str, Any]) -> list[str]:
    """Return why passed checks stay below a higher level, and what the author can do about it."""
    why: dict[str, list[str]] = {}
    for mechanism in certificate["mechanisms"]:
        higher = EXACT if mechanism["checked"] == AUDITED else AUDITED
        for reason in () if _failures(mechanism) else mechanism.get("reasons", ()):
            word = "why not exact" if higher == EXACT else "not audited"
            why.setdefault(f"{word}: %s: {reason}", []).append(mechanism["mechanism"])
    return _with_names(why)


def _skipped(certificate: dict[str, Any]) -> list[str]:
    """Return the checks that were left out, with the reasons."""
    from ..contract import statement_of

    why: dict[str, list[str]] = {}
    for mechanism in certificate["mechanisms"]:
        for example in (*mechanism["examples"], *mechanism["chosen"]):
            for found in example["checks"]:
                if found["verdict"] == "skipped":
                    word = "skipped" if found["applies"] else "does not apply"
                    names = why.setdefault(f"{word}: %s: {statement_of(found['check'])}: {found['why']}", [])
                    names += [name for name in [mechanism["mechanism"]] if name not in names]
    return _with_names(why)


def _with_names(lines: dict[str, list[str]]) -> list[str]:
    """Merge equal lines of several mechanisms, with their names."""
    return [line.replace("%s", ", ".join(names), 1) for line, names in lines.items()]


def _proved(example: dict[str, Any]) -> str:
    """Return the result of the proof: "holds" if whole reports are described, else only for the described parts."""
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


def _print_rows(rows: list[dict[str, Any]]) -> None:
    print_row_table(rows, ("skipped", "passed", "exact", "claimed"))


def _keep(certificate: dict[str, Any], found: Plugin) -> None:
    """Store the certificate, and print its place on stderr; built-in mechanisms need no record."""
    from ldp_budget.registry.certification import record

    if found.own or not found.version:
        why = "it is checked with every release" if found.own else "it is not an installed distribution"
        print_note(f"{found} is not recorded, because {why}")
        return
    try:
        print_note(f"{found} is recorded in {record(certificate)}")
    except OSError as error:
        raise click.ClickException(f"Cannot record the certificate: {error}") from None


DEFAULT_SAMPLES = 1_000_000
CLIENT_SAMPLES = 200_000
"""Samples of a client in a subprocess, taken twice: enough to reveal a leak in one report out of a hundred."""
REPEATED = 20
"""The number of reports of one memoised value that an audit examines together."""


def parse_samples(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Return a number of reports from the command line; the audit checks its range."""
    if value is None:
        return None
    try:
        return whole_in(value)
    except ValueError:
        raise InvalidParameter("samples", "a whole number", value) from None


@mechanism_command(
    "Check the guarantee of a mechanism: exactly from its distribution, and by statistics from its reports.\n\n"
    "Exit code 1 if the guarantee is violated.",
    example="audit {} --samples 100000",
)
@click.option(
    "--samples",
    metavar="N",
    callback=parse_samples,
    help=f"Draw N reports from the client [default: {DEFAULT_SAMPLES:,}; twice {CLIENT_SAMPLES:,} with --client]",
)
@click.option(
    "--client",
    metavar="COMMAND",
    help="Audit this client of a collection instead of the one in Python: a program that exchanges lines of JSON.",
)
@json_option
@click.pass_context
def audit(ctx: click.Context, mechanism: Mechanism, samples: int | None, client: str | None, as_json: bool) -> None:
    from ..exact import VIOLATED, verify

    exact = verify(mechanism)
    if client is None:
        found = list(_sampled(mechanism, DEFAULT_SAMPLES if samples is None else samples))
    else:
        found = _sampled_client(ctx, client, CLIENT_SAMPLES if samples is None else samples)
    verdict = VIOLATED if any(lower > claimed for claimed, lower in _bounds(mechanism, found)) else exact.verdict
    if as_json:
        print_json(_described(mechanism, exact, found, verdict))
    else:
        _print(mechanism, exact, found, verdict)
    if verdict == VIOLATED:
        ctx.exit(1)


def _described(mechanism: Mechanism, exact: Verification, found: list[Audit], verdict: str) -> dict[str, Any]:
    guarantee = mechanism.guarantee
    return {
        "claimed": guarantee.describe()["epsilon"],
        "exact": exact.upper,
        "lower_bound": found[0].lower_bound if found else None,
        "confidence": found[0].confidence if found else None,
        "verdict": verdict,
        "guarantee": guarantee.describe(),
        "verification": exact.to_json(),
        "audits": [each.to_json() for each in found],
    }


def _bounds(mechanism: Mechanism, found: list[Audit]) -> list[tuple[float, float]]:
    """Return the claimed loss for as many reports as each audit examined, and its lower bound."""
    return [(claimed_loss(mechanism.guarantee, each.reports), each.lower_bound) for each in found]


def claimed_loss(guarantee: Guarantee, reports: int) -> float:
    """Return the ε promised for `reports` reports of one value; infinity if none is promised."""
    if reports == 1 or not isinstance(guarantee, Memoised):
        return reports * guarantee.epsilon
    return float_up(guarantee.curve[reports - 1] if reports <= len(guarantee.curve) else guarantee.cap)


def _sampled(mechanism: Mechanism, samples: int) -> Iterator[Audit]:
    """Audit one report, and the reports of a memoised value; yields nothing if these options cannot run the client."""
    from ..audit import audit as sample

    try:
        yield sample(mechanism, samples=samples)
        if isinstance(mechanism.guarantee, Memoised):
            yield sample(mechanism, samples=samples, reports=REPEATED)
    except NotSupported as error:
        print_note(f"Not sampled: {error}")


def _sampled_client(ctx: click.Context, command: str, samples: int) -> list[Audit]:
    """Audit another client: against its declared guarantee, and by a search that trusts no declaration."""
    from ..audit import audit as sample
    from ..audit.subprocess_client import drawn_by

    name = str(ctx.info_name).removeprefix("collection:")
    try:
        collection = open_ledger(ctx).collection(name)
    except UnknownName:
        raise click.UsageError(
            f"--client needs a collection: the ledger has none named {name!r}. List them: ldp-budget collection list",
            ctx,
        ) from None
    with drawn_by(collection, command) as mechanism:
        found = [sample(mechanism, samples=samples)]
        if found[0].declared:
            found.append(sample(mechanism, samples=samples, search=True))
        if isinstance(mechanism.guarantee, Memoised):
            found.append(sample(mechanism, samples=samples, reports=REPEATED))
    return found


def _print(mechanism: Mechanism, exact: Verification, found: list[Audit], verdict: str) -> None:
    claimed = mechanism.guarantee.describe()
    none = "nothing" if claimed["kind"] == "unbounded" else "no ε of its own"
    promise = none if claimed["epsilon"] is None else f"ε = {claimed['epsilon']:.9g}, δ = {claimed['delta']:.3g}"
    click.echo(f"{mechanism!r} guarantees {promise} ({claimed['kind']}; {claimed['relation']}).")
    if exact.method:
        loss = "" if exact.upper is None else f"; one report loses {exact.upper:.12g}"
        click.echo(f"Exact, by its {exact.method}, over {exact.pairs} pairs of inputs: {exact.verdict}{loss}.")
        click.echo(f"Checked: {exact.looked_at}.")
        why = f" ({exact.program_open})" if exact.program_open else ""
        click.echo(f"Client program, by the law of whole reports: {exact.program}{why}.")
        click.echo(f"Estimates unbiased with true standard errors, by its channel: {exact.estimator}.")
    else:
        click.echo("Exact: unknown, because the mechanism does not describe its distribution.")
    for (claim, lower), each in zip(_bounds(mechanism, found), found, strict=True):
        what = "one report" if each.reports == 1 else f"{each.reports} reports of one value"
        click.echo(f"Sampled, {each.samples:,} reports, {what}: ε ≥ {lower:.6g} at {each.confidence:.0%} confidence")
        click.echo(f"  claimed ε = {claim:.6g}; inputs {each.pair[0]} and {each.pair[1]}; event: {each.event}")
    for problem in exact.problems:
        click.echo(f"  - {problem}")
    click.echo(f"Verdict: {verdict}.")
