"""`ldp-budget policy`: set and show policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget.charge_options import DEFAULT
from ldp_budget.guarantees.fixed_point import printed_up

from .app import check_local, open_ledger, parse_time, policy_names
from .certificate_files import write_certificate
from .limit_figures import change_lines, limit_text, minute, number, yearly_text
from .mechanism_arguments import mechanism_command, parse_reports
from .notes import print_note
from .output import (
    counted,
    decimal_option,
    json_option,
    next_step,
    print_json,
    print_rows,
    rows_options,
    warn_of_idle_limits,
)
from .tables import print_row_table, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.accounting.budget_client import BudgetClient
    from ldp_budget.accounting.budget_timeline import Binding
    from ldp_budget.accounting.limits import Limit, Share
    from ldp_budget.accounting.plans import Plan
    from ldp_budget.accounting.policies import PlanTerms, Policy
    from ldp_budget.client import Client
    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.mechanism import Mechanism


@click.group()
def policy() -> None:
    """Set, show, list and simulate policies: the limits of what users may be charged."""


@policy.command("set")
@click.argument("name", shell_complete=policy_names)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="[TAG:]PERIOD=EPSILON[,DELTA[,RULE]]",
    help="Limit ε in a period: lifetime, day, week or month (see --zone), or any 28 days as 28d. With a TAG such as "
    "attribute:health, count the charges that have it, and those without tags. DELTA is 0 by default; RULE is basic (default), "
    "zcdp, gdp, renyi or renyi:ORDER. Under zcdp and renyi, DELTA may be CONVERSION+ASIDE: the second part is for "
    "reports with a δ of their own. Repeatable.",
)
@click.option(
    "--zone",
    metavar="ZONE",
    help="Begin days, weeks and months at midnight in this IANA time zone, such as Asia/Seoul [default: the zone of the "
    "version before, or UTC]",
)
@click.option(
    "--for",
    "asked",
    multiple=True,
    metavar="COLLECTION=COUNT",
    help="Choose the order of rule renyi for these expected reports. Repeatable.",
)
@click.option(
    "--plan",
    "plan",
    multiple=True,
    metavar="COLLECTION=COUNT",
    help="Admit only COUNT reports of a collection, with one exact price for all of them. Repeatable.",
)
@click.option("--plan-delta", metavar="DELTA", help="The δ of the plan's price [default: 0]")
@click.option("--certificate", metavar="FILE", help="Write a certificate of the plan's price: see ldp-budget check.")
@click.option("--relation", metavar="any", help="Write 'any' to admit only guarantees that hold for any two inputs.")
@click.option("--unbounded", is_flag=True, help="Allow an unlimited total: no lifetime limit.")
@click.option("--checked", is_flag=True, help="Admit only checked mechanisms (see `ldp-budget mechanisms`).")
@click.option(
    "--share",
    "shares",
    multiple=True,
    metavar="NAME:LIMIT",
    help="Set a part of a limit for the API keys bound to NAME, such as team-a:lifetime=1, by the rule of that limit. "
    "Repeatable. Without it, the present shares stay.",
)
@click.option("--no-shares", is_flag=True, help="Remove all shares.")
@click.option(
    "--override",
    metavar="REASON",
    help="Set the policy without the approval that the ledger demands. The reason is recorded and shown. Works only "
    "on the machine of the ledger.",
)
@json_option
@click.pass_context
def set_(
    ctx: click.Context,
    name: str,
    limits: tuple[str, ...],
    zone: str | None,
    asked: tuple[str, ...],
    plan: tuple[str, ...],
    plan_delta: str | None,
    certificate: str | None,
    relation: str | None,
    unbounded: bool,
    checked: bool,
    shares: tuple[str, ...],
    no_shares: bool,
    override: str | None,
    as_json: bool,
) -> None:
    """Set the limits of policy NAME. Creates the ledger and its key file if neither exists.

    A policy needs a lifetime limit, a --plan, or --unbounded. Policy `default` is used where no other is named.

    \b
    Example:
      ldp-budget policy set default --limit lifetime=4 --limit day=1
      ldp-budget policy set default --limit lifetime=8,1e-6,zcdp
    """
    from ldp_budget.accounting.limits import as_limits, as_shares
    from ldp_budget.accounting.policies import Policy

    if no_shares and shares:
        raise click.UsageError("--share and --no-shares exclude each other. Use one of them.")
    if relation not in (None, "any"):
        raise click.UsageError(f"--relation must be any: got {relation}")
    parts = {} if no_shares else _shares(shares)
    if plan_delta is not None and not plan:
        raise click.UsageError("--plan-delta needs a plan. Add --plan COLLECTION=COUNT")
    if certificate is not None and not plan:
        raise click.UsageError("--certificate certifies the price of a plan. Add --plan COLLECTION=COUNT")
    _check_limits(name, limits, plan, unbounded)
    if plan or asked:
        # The collections come from an existing ledger.
        ledger = open_ledger(ctx)
        before = _before(ledger, name)
        terms = _plan(ledger, plan, plan_delta or "0") if plan else None
        chosen = as_limits(limits, _charges(ledger, "for", asked))
        if certificate is not None and terms is not None:
            write_certificate(certificate, terms.charges, terms.delta)
        more: dict[str, Any] = {"relation": relation, "unbounded": unbounded, "checked": checked, "shares": parts}
        stored = ledger.set_policy(name, chosen, plan=terms, override=override, zone=zone, **more)
    else:
        # Checked before the ledger is opened, because opening may create it.
        given = as_limits(limits)
        more = {"relation": relation, "unbounded": unbounded, "checked": checked}
        Policy(name, given, shares=as_shares(parts or {}, given), zone=zone or "UTC", **more)
        ledger = open_ledger(ctx, create=True)
        before = _before(ledger, name)
        stored = ledger.set_policy(name, given, shares=parts, override=override, zone=zone, **more)
    _show(stored, as_json, _override(ledger, stored))
    if before is not None and not as_json:
        for line in change_lines(before.limits, stored.limits):
            click.echo(line)
        for part in _removed(before, stored):
            click.echo(f"removed: {part}")
        if before.zone != stored.zone:
            click.echo(f"changed: days of {before.zone} → days of {stored.zone}")
    warn_of_idle_limits(stored)
    if not as_json:
        other = "" if name == DEFAULT else f" --policy {name}"
        next_step(f"ldp-budget spend USER MECHANISM{other}, or ldp-budget collection add NAME MECHANISM")


def _before(ledger: BudgetClient, name: str) -> Policy | None:
    """Return the newest version of a policy before it is set; None if there is none, or the API key may not read it."""
    from ldp_budget.client import ServiceProblem
    from ldp_budget.errors import UnknownName

    try:
        return ledger.policy(name)
    except (UnknownName, ServiceProblem):
        return None


def _check_limits(name: str, limits: tuple[str, ...], plan: tuple[str, ...], unbounded: bool) -> None:
    """Raise a click error with what to type for the usual mistakes in --limit."""
    from ldp_budget.ledger.calendar import is_period

    if not limits and not plan:
        raise click.UsageError(f"Policy {name!r} has no limit. Add --limit lifetime=EPSILON")
    for limit in limits:
        period, _, amounts = limit.partition("=")
        parts = amounts.split(",")
        if len(parts) == 2 and parts[1].partition(":")[0] in ("basic", "zcdp", "gdp", "renyi"):
            right = f"{period}={parts[0]},1e-6,{parts[1]}"
            raise click.UsageError(f"--limit {limit} has no DELTA before its rule. Write: --limit {right}")
    known = all(is_period(limit.partition("=")[0].rpartition(":")[2].strip()) for limit in limits)
    if known and not plan and not unbounded and not any(limit.strip().startswith("lifetime") for limit in limits):
        raise click.UsageError(
            f"Policy {name!r} has no lifetime limit. Add --limit lifetime=EPSILON, or --unbounded to allow an unlimited "
            "total."
        )


def _shares(texts: tuple[str, ...]) -> dict[str, Sequence[Limit | str]] | None:
    """Return the limits of `NAME:LIMIT` texts by the name of the sub-limit; None if there are none."""
    from ldp_budget.errors import InvalidParameter

    shares: dict[str, list[Limit | str]] = {}
    for text in texts:
        name, colon, limit = text.partition(":")
        if not colon:
            raise InvalidParameter("share", "NAME:PERIOD=EPSILON[,DELTA[,RULE]]", text)
        shares.setdefault(name, []).append(limit)
    return dict(shares) or None


def _plan(accountant: BudgetClient, counts: tuple[str, ...], delta: str) -> Plan:
    """Return the plan of `COLLECTION=COUNT` texts, priced."""
    from ldp_budget.accounting.plans import Plan

    return Plan(_charges(accountant, "plan", counts), decimal_option("plan_delta", delta))


def _charges(accountant: BudgetClient, option: str, counts: tuple[str, ...]) -> tuple[tuple[Guarantee, int], ...]:
    """Return the guarantees of `COLLECTION=COUNT` texts, and how many of each."""
    from ldp_budget.errors import InvalidParameter

    charges = []
    for text in counts:
        name, _, count = text.rpartition("=")
        if not name or not (count.isascii() and count.isdigit()) or int(count) < 1:
            raise InvalidParameter(option, "COLLECTION=COUNT with a whole number >= 1", text)
        charges.append((accountant.collection(name).mechanism.guarantee, int(count)))
    return tuple(charges)


@policy.command("list")
@rows_options
@click.pass_context
def list_(ctx: click.Context, form: str | None) -> None:
    """List the policies of the ledger.

    \b
    Example:
      ldp-budget policy list
    """
    policies = open_ledger(ctx).policies()
    if form is not None:
        print_rows([_row(policy) for policy in policies], form)
        return
    print_row_table(
        [
            {
                "policy": policy.name,
                "version": policy.version,
                "limits": "; ".join(_terms(policy)),
                **({"zone": policy.zone} if any(each.zone != "UTC" for each in policies) else {}),
            }
            for policy in policies
        ]
    )


@policy.command("show")
@click.argument("name", shell_complete=policy_names)
@click.option(
    "--versions", is_flag=True, help="Show every version: its limits, when it was set, and by which API key."
)
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, versions: bool, as_json: bool) -> None:
    """Show the limits of policy NAME.

    \b
    Example:
      ldp-budget policy show default
      ldp-budget policy show default --versions
    """
    ledger = open_ledger(ctx)
    found = ledger.policy(name)
    if versions:
        _show_versions(ledger, name, as_json)
    else:
        _show(found, as_json, _override(ledger, found))


def _show_versions(ledger: Accountant | Client, name: str, as_json: bool) -> None:
    """Print every version of a policy, newest first."""
    local = check_local(ledger, "the versions of a policy are on the page /officer of the service")
    rows = [row for row in local.ledger.overview().policies() if row["policy"] == name]
    if as_json:
        print_json(rows)
        return
    print_row_table(
        [
            {
                "version": row["version"],
                "set at (UTC)": minute(row["at"]),
                "by": row["by"] or "this machine",
                "change": row["change"],
                "limits": "; ".join(row["limits"]) or "none",
                **({"zone": row["zone"]} if any(each["zone"] != "UTC" for each in rows) else {}),
                **(_proposal(row) if any(each["proposal"] for each in rows) else {}),
                **({"override": row["override"]} if any(each["override"] for each in rows) else {}),
            }
            for row in rows
        ]
    )


def _proposal(row: dict[str, Any]) -> dict[str, Any]:
    """Return who proposed a version and who approved it, and the reason; nothing of a version without a proposal."""
    if row["proposal"] is None:
        return dict.fromkeys(("proposed by", "approved by", "reason"))
    by = {"proposed by": row["proposed_by"], "approved by": row["approved_by"]}
    return {**{name: who or "this machine" for name, who in by.items()}, "reason": row["reason"]}


def _override(ledger: BudgetClient, policy: Policy) -> str | None:
    """Return the reason of a version that was set without the approval that the ledger required."""
    from ldp_budget.accounting.admin_records import OVERRIDDEN
    from ldp_budget.client import ServiceProblem

    try:
        records = [each for each in ledger.records() if each.kind == OVERRIDDEN and each.fault is None]
    except ServiceProblem:
        return None  # reading a service's administrative log takes the scope `audit`
    found = [each for each in records if (each.name, each.body["version"]) == (policy.name, policy.version)]
    return str(found[-1].body["reason"]) if found else None


@mechanism_command(
    "Show when each limit of policy NAME binds, for a new user who reports again and again.\n\n"
    "The limits decide as for spend, in calendar windows. Nothing is written. Reports of a mechanism that memoizes "
    "repeat one value.",
    example="policy simulate default {} --every day",
    arguments=["name"],
)
@click.option("--every", required=True, type=click.Choice(["day", "week", "month"]), help="Ask for reports so often.")
@click.option(
    "--reports", default="1", metavar="K", callback=parse_reports, help="Ask for K reports at a time [default: 1]"
)
@click.option(
    "--from", "start", metavar="DATE", callback=parse_time, help="Ask the first time at DATE, UTC [default: now]"
)
@rows_options
def simulate(
    mechanism: Mechanism,
    name: str,
    every: str,
    reports: int,
    start: datetime | None,
    form: str | None,
) -> None:
    from ldp_budget.guarantees import Memoised

    ledger = open_ledger(click.get_current_context())
    bindings = ledger.simulate(mechanism, every=every, reports=reports, start=start, policy=name)
    if form is not None:
        print_rows([binding.to_json() for binding in bindings], form)
        return
    print_row_table([_shown_binding(binding) for binding in bindings])
    if isinstance(mechanism.guarantee, Memoised):
        print_note("All reports repeat one memoized value; a new value starts at the beginning of its curve")


policy.add_command(simulate)


def _shown_binding(binding: Binding) -> dict[str, object]:
    never = f"never {binding.never}"
    return {
        "limit": binding.period,
        "rule": binding.rule,
        "epsilon": binding.epsilon,
        "delta": binding.delta,
        "charged": binding.charged,
        "report": binding.report,
        "binds first": never if binding.at is None else f"{binding.at:%Y-%m-%d %H:%M}".removesuffix(" 00:00"),
    }


def _row(policy: Policy) -> dict[str, Any]:
    """Return the JSON object of a policy, with the name of its time zone and without the zone's file."""
    row = {**policy.to_json(), "zone": policy.zone}
    row.pop("zone_rules", None)
    return row


def _show(policy: Policy, as_json: bool, override: str | None) -> None:
    if as_json:
        print_json({**_row(policy), **({} if override is None else {"override": override})})
        return
    parts = [*_terms(policy), *_conditions(policy)]
    if policy.zone != "UTC":
        parts.append(f"days of {policy.zone}")
    line = f"policy {policy.name}, version {policy.version}: {'; '.join(parts)}"
    if len(line) > terminal_width():
        line = "\n  ".join([f"policy {policy.name}, version {policy.version}:", *parts])
    click.echo(line)
    if override is not None:
        click.echo(f"set without the approval that this ledger demands: {override}")
    if policy.unbounded:
        click.echo(yearly_text(policy))


def _terms(policy: Policy) -> list[str]:
    """Return the limits and the plan of a policy."""
    parts = list(map(limit_text, policy.limits))
    parts += map(_share_text, policy.shares)
    if policy.plan is not None:
        epsilon, delta = policy.planned()
        parts.append(
            f"{_plan_text(policy.plan)}; all plans so far cost ε = {printed_up(epsilon)} at δ = {number(delta)}"
        )
    return parts


def _conditions(policy: Policy) -> list[str]:
    """Return what a policy demands of every charge."""
    relation = [] if policy.relation is None else [f"only guarantees for {policy.relation} two inputs"]
    return [*relation, *(["only checked mechanisms"] if policy.checked else [])]


def _removed(before: Policy, after: Policy) -> Iterator[str]:
    """Yield the shares, the plan and the conditions that a new version of a policy lacks."""
    shares = {share.name for share in after.shares}
    yield from (_share_text(share) for share in before.shares if share.name not in shares)
    if before.plan is not None and after.plan is None:
        yield _plan_text(before.plan)
    yield from (each for each in _conditions(before) if each not in _conditions(after))


def _share_text(share: Share) -> str:
    return f"share {share.name}: {'; '.join(map(limit_text, share.limits))}"


def _plan_text(plan: PlanTerms) -> str:
    return f"a plan of {counted(sum(count for _, count in plan.quotas), 'report')}"
