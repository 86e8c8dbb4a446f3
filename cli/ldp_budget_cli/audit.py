"""`ldp-budget audit`: is a mechanism's promise true? Decided from its channel, and tried on its client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget.errors import InvalidParameter, NotSupported, UnknownName
from ldp_budget.guarantees import Memoised
from ldp_budget.guarantees.amounts import float_up

from .app import open_ledger
from .mechanism_group import mechanism_command
from .output import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.authoring.base import Mechanism
    from ldp_budget.guarantees import Guarantee
    from ldp_budget.trust.auditing import Audit
    from ldp_budget.trust.verification import Verification

DEFAULT_SAMPLES = 1_000_000
CLIENT_SAMPLES = 200_000
"""Of a client behind pipes, twice: enough to see what one report in a hundred gives away."""
REPEATED = 20
"""Reports of one memoised value that an audit looks at together."""


def parse_samples(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """A number of reports from the command line; the audit checks its range."""
    if value is None:
        return None
    try:
        return int(value)
    except ValueError:
        raise InvalidParameter("samples", "a whole number", value) from None


@mechanism_command(
    "Check a mechanism's promise: exactly from what it draws, and by statistics from its reports alone."
)
@click.option(
    "--samples",
    metavar="N",
    callback=parse_samples,
    help=f"Reports drawn from the client [default: {DEFAULT_SAMPLES:,}; twice {CLIENT_SAMPLES:,} with --client]",
)
@click.option(
    "--client",
    metavar="COMMAND",
    help="Of a collection: a program that draws, by lines of JSON on its pipes, in place of Python's own client.",
)
@json_option
@click.pass_context
def audit(ctx: click.Context, mechanism: Mechanism, samples: int | None, client: str | None, as_json: bool) -> None:
    from ldp_budget.trust.verification import VIOLATED, verify

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
    """What is claimed of as many reports as each audit looked at, and its lower bound."""
    return [(claimed_loss(mechanism.guarantee, each.reports), each.lower_bound) for each in found]


def claimed_loss(guarantee: Guarantee, reports: int) -> float:
    """The ε promised for `reports` reports of one value; infinity where none is."""
    if reports == 1 or not isinstance(guarantee, Memoised):
        return reports * guarantee.epsilon
    return float_up(guarantee.curve[reports - 1] if reports <= len(guarantee.curve) else guarantee.cap)


def _sampled(mechanism: Mechanism, samples: int) -> Iterator[Audit]:
    """The audit of one report, and of a memoised value's; none where the client cannot be run from these options."""
    from ldp_budget.trust.auditing import audit as sample

    try:
        yield sample(mechanism, samples=samples)
        if isinstance(mechanism.guarantee, Memoised):
            yield sample(mechanism, samples=samples, reports=REPEATED)
    except NotSupported as error:
        click.echo(f"Not sampled: {error}", err=True)


def _sampled_client(ctx: click.Context, command: str, samples: int) -> list[Audit]:
    """The audits of another client: of what is declared, and a search that believes nothing of it."""
    from ldp_budget.trust.auditing import audit as sample
    from ldp_budget.trust.auditing.external import drawn_by

    name = str(ctx.info_name).removeprefix("collection:")
    try:
        collection = open_ledger(ctx).collection(name)
    except UnknownName:
        raise click.UsageError(f"--client draws for a collection; {name} is none of this ledger", ctx) from None
    with drawn_by(collection, command) as mechanism:
        found = [sample(mechanism, samples=samples)]
        if found[0].declared:
            found.append(sample(mechanism, samples=samples, search=True))
        if isinstance(mechanism.guarantee, Memoised):
            found.append(sample(mechanism, samples=samples, reports=REPEATED))
    return found


def _print(mechanism: Mechanism, exact: Verification, found: list[Audit], verdict: str) -> None:
    claimed = mechanism.guarantee.describe()
    promise = "nothing" if claimed["epsilon"] is None else f"ε = {claimed['epsilon']:.9g}, δ = {claimed['delta']:.3g}"
    click.echo(f"{mechanism!r} promises {promise} ({claimed['kind']}; {claimed['relation']}).")
    if exact.method:
        loss = "" if exact.upper is None else f"; one report loses {exact.upper:.12g}"
        click.echo(f"Exact, by its {exact.method}, over {exact.pairs} pairs of inputs: {exact.verdict}{loss}.")
        click.echo(f"Looked at: {exact.looked_at}.")
        why = f" ({exact.program_open})" if exact.program_open else ""
        click.echo(f"Client program, by the law of whole reports: {exact.program}{why}.")
        click.echo(f"Estimates unbiased with true standard errors, by its channel: {exact.estimator}.")
    else:
        click.echo("Exact: the mechanism does not describe what it draws.")
    for (claim, lower), each in zip(_bounds(mechanism, found), found, strict=True):
        what = "one report" if each.reports == 1 else f"{each.reports} reports of one value"
        click.echo(
            f"Sampled, {each.samples:,} reports, {what}: ε ≥ {lower:.6g} at {each.confidence:.0%} confidence "
            f"(claimed {claim:.6g}), from {each.event}; inputs {each.pair[0]} and {each.pair[1]}."
        )
    for problem in exact.problems:
        click.echo(f"  - {problem}")
    click.echo(f"Verdict: {verdict}.")
