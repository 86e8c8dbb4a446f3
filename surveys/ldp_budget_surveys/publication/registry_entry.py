"""An entry for the public registry of differential-privacy deployments (opendp/deployments-registry-data, tier 3).

The ledger fills in what it knows: the guarantee, the unit, the limits and how reports compose. What only people know is
a text that begins with `To fill in`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ldp_budget.charge_options import DEFAULT
from ldp_budget.errors import PublicationError
from ldp_budget.guarantees import ANY_INPUTS
from ldp_budget.ledger.calendar import days_in
from ldp_budget.registry.certification import checked_at

from ..pages.ledger_facts import ledger_facts
from ..questionnaires.survey_collection import SurveyCollection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.accounting.limits import Limit
    from ldp_budget.accounting.policies import Policy
    from ldp_budget.guarantees import Guarantee
    from ldp_budget.registry.collections import Collection

    from ..pages.ledger_facts import Charges, LedgerState

TO_FILL_IN = "To fill in"
_RULES = {
    "basic": "sequential composition: the sum of all ε and of all δ",
    "zcdp": "zero-concentrated DP, converted to (ε, δ)",
    "gdp": "Gaussian DP, converted to (ε, δ)",
    "renyi": "Rényi DP, converted to (ε, δ)",
}
_CHECKS = {
    "exact": "Its guarantee was verified exactly, from the probabilities of its reports.",
    "audited": "Its guarantee was audited by samples of its reports, not verified exactly.",
}


@dataclass(frozen=True)
class Facts:
    """What the ledger does not know: who publishes, where, and who wrote the entry. Empty ones are left to fill in."""

    curators: tuple[str, ...] = ()
    region: str = ""
    authors: tuple[str, ...] = ()


def registry_entry(
    accountant: Accountant, collection: Collection, facts: Facts | None = None, *, policy: str = DEFAULT
) -> dict[str, Any]:
    """Return the registry's record of a collection or a survey.

    Parameters:
        accountant: the ledger.
        collection: the collection of that ledger.
        facts: what the ledger does not know.
        policy: the policy whose limits the record states.

    Raises:
        PublicationError: the collection was charged under another policy too.
        UnknownName: the policy does not exist.
    """
    facts = facts or Facts()
    rules = accountant.policy(policy)
    charges, state = ledger_facts(accountant, collection.name, policy, None, None)
    _check_policies(collection, charges, policy)
    limits = rules.limits
    survey = collection.survey if isinstance(collection, SurveyCollection) else None
    about = survey or collection.about
    name = about.title or collection.name
    curators = facts.curators or ((survey.organisation if survey else "") or f"{TO_FILL_IN}: who publishes it",)
    day = (charges and charges.first) or accountant.now().date().isoformat()
    unit, loss, why = _loss(collection, rules, charges)
    deployment = {
        "basic": {
            "name": name,
            "data_curators": list(curators),
            "intended_use": about.purpose or f"{TO_FILL_IN}: what the results are used for",
            "data_product_type": "Summary statistics",
            "data_product_region": facts.region or f"{TO_FILL_IN}: the region that the data describes",
            "description": _description(collection, charges),
            "publication_date": day[:10],
        },
        "dp_variant": {
            "variant_name": _variant(loss),
            "data_domain": _domain(collection),
            "unprotected_quantities": "Who was asked, who sent a report and when, the number of reports, and attributes "
            "that travel beside a report because they are public.",
        },
        "privacy_loss": {
            "privacy_unit": unit,
            "privacy_unit_details": f"Two datasets are adjacent if they differ in all answers of one {unit}: "
            f"{_others(collection.mechanism.guarantee)}",
            "privacy_parameters": loss,
            "privacy_parameters_details": why,
        },
        "deployment_model": _model(limits),
        "accounting": {
            "post_processing": "Estimates are unbiased. Consistent estimates replace them by the nearest counts that are "
            "at least 0 and add up to the number of reports. Both use the reports only.",
            "composition": " ".join(_composition(rules)),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": f"{TO_FILL_IN}: how the parameters were chosen, and if private data "
            "was used for it",
            "mechanisms": _mechanism(collection),
            "justification": f"{TO_FILL_IN}: why these parameters and limits were chosen",
        },
        "administrative": {
            "sources": f"{TO_FILL_IN}: links to the published results",
            "notes": _notes(collection, state),
            "registry_authors": list(facts.authors or (f"{TO_FILL_IN}: who wrote this entry",)),
        },
    }
    return {"url_slug": _slug(name, curators, day), "status": "Draft", "tier": 3, "deployment": deployment}


def to_fill_in(entry: Any, path: str = "") -> Iterator[str]:
    """Yield the names of the fields that only people can fill in."""
    if isinstance(entry, dict):
        for name, value in entry.items():
            yield from to_fill_in(value, f"{path}.{name}".lstrip("."))
    elif isinstance(entry, list):
        for value in entry:
            yield from to_fill_in(value, path)
    elif isinstance(entry, str) and entry.startswith(TO_FILL_IN):
        yield path


def _slug(name: str, curators: tuple[str, ...], day: str) -> str:
    """Return the address of the entry, made as the registry makes it."""
    parts = (name, "-".join(curators), day[:4])
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")


# -- what it protects ----------------------------------------------------------------------------------------------


def _check_policies(collection: Collection, charges: Charges | None, policy: str) -> None:
    others = sorted({each.name for each in charges.policies} - {policy}) if charges and charges.reports else []
    if others:
        raise PublicationError(
            f"collection {collection.name} was charged under {', '.join(others)}, so the limits of {policy} alone do not "
            "bound it. Nothing was printed",
            hint=f"If it was charged under one policy only, name it: --policy {others[0]}",
        )


def _others(guarantee: Guarantee) -> str:
    """Return which answers of a person may replace hers in an adjacent dataset."""
    if guarantee.relation == ANY_INPUTS:
        return "any answers in place of any others."
    return (
        "any answers in place of others that are equal in the same places. Reports repeat while an answer stays, so they "
        "show when it changed, and no ε counts that."
    )


def _loss(collection: Collection, policy: Policy, charges: Charges | None) -> tuple[str, dict[str, Decimal], str]:
    """Return the unit of privacy, its parameters, and what they mean: those of the limit with the longest period."""
    guarantee = collection.mechanism.guarantee
    own = guarantee.describe()
    one = "without a bound" if own["epsilon"] is None else f"ε = {own['epsilon']:.6g}"
    one += f", δ = {own['delta']:.6g}" if own["delta"] else ""
    if guarantee.relation != ANY_INPUTS:
        one += f" ({guarantee.relation})"
    if own["epsilon"] is None:
        return "report", {}, f"A guarantee of the kind {own['kind']}, which no ε bounds."
    widest = max((each for each in policy.limits if not each.scope), key=_span, default=None)
    if widest is None:
        loss = {"epsilon": Decimal(own["epsilon"]), "delta": Decimal(own["delta"])}
        bound = "A plan that was fixed beforehand" if policy.plan else "No limit"
        return "report", loss, f"The loss of one report, {one}. {bound} bounds the reports of one person together."
    unit = "person" if widest.period == "lifetime" else f"person-{widest.period}"
    every = "" if widest.period == "lifetime" else f" in each {widest.period}, which begins again after it"
    said = (
        f"An upper bound on the loss of one person{every}, of all charges under the policy {policy.name} as it is now. "
        f"One response: {one}."
    )
    return (
        unit,
        {"epsilon": max(Decimal(widest.epsilon), _spent(widest, charges)), "delta": Decimal(widest.delta)},
        said,
    )


def _spent(limit: Limit, charges: Charges | None) -> Decimal:
    """Return the most that an account has spent of a limit: more than it allows if it was lowered since."""
    uses = [use for each in charges.policies for use in each.limits] if charges else []
    same = [use.largest for use in uses if (use.period, use.rule) == (limit.period, limit.rule) and use.largest]
    return max(map(Decimal, same), default=Decimal(0))


def _span(limit: Limit) -> float:
    """Return the days of the period of a limit; a lifetime is the longest."""
    days = {"lifetime": float("inf"), "month": 31.0, "week": 7.0, "day": 1.0}
    return float(days_in(limit.period)) or days[limit.period]


def _variant(loss: dict[str, Decimal]) -> str:
    if not loss:
        return "Custom"
    return "Approximate DP" if loss["delta"] else "Pure DP"


def _domain(collection: Collection) -> str:
    if isinstance(collection, SurveyCollection):
        questions = ", ".join(each.name for each in collection.mechanism.questions)
        return f"The answers of one respondent to a questionnaire: {questions}."
    if collection.categories is not None:
        return f"One answer of one respondent, of {len(collection.categories)}: {', '.join(collection.categories)}."
    return f"One value of one respondent: {collection.mechanism.domain}."


def _composition(policy: Policy) -> Iterator[str]:
    yield "Each report is charged to its user in a ledger before it is kept. Reports compose over all surveys of the ledger."
    yield "A report that would exceed a limit is refused."
    if policy.plan:
        yield "Each user's charges follow a plan that was fixed beforehand, and whose total loss was computed exactly."
    for limit in policy.limits:
        delta = f", δ = {limit.delta}" if limit.delta else ""
        yield f"Limit per {limit.label}: ε = {limit.epsilon}{delta}, by {_RULES[limit.rule.partition(':')[0]]}."


# -- how it is run -------------------------------------------------------------------------------------------------


def _description(collection: Collection, charges: Charges | None) -> str:
    if charges is None or not charges.reports or charges.first is None or charges.last is None:
        return f"Estimates of the collection {collection.name}. No report was charged yet."
    return (
        f"Estimates of the collection {collection.name}, from randomized reports: {charges.reports} of "
        f"{charges.accounts} users, charged from {charges.first[:10]} to {charges.last[:10]}."
    )


def _model(limits: tuple[Limit, ...]) -> dict[str, str]:
    again = [each.period for each in limits if each.period != "lifetime"]
    refresh = f"The budget per {' and per '.join(again)} begins again after it. " if again else ""
    lifetime = any(each.period == "lifetime" and not each.scope for each in limits)
    end = "The lifetime limit bounds everything." if lifetime else "No lifetime limit bounds everything."
    return {
        "model_name": "Local",
        "model_name_details": "Each answer is randomized before it leaves the respondent's side.",
        "actors": "Respondents, who randomize their answers; the curator, who sees reports, who sent them and when, and "
        "must not be trusted with answers; readers of the results.",
        "release_type": "Many releases" if again else "One release",
        "release_type_details": refresh + end,
        "data_source_type": "Dynamic",
        "data_source_type_details": "Reports are added as people answer.",
        "access_type": "Non-interactive",
        "access_type_details": "No one queries answers. Every estimate is a function of the reports.",
    }


def _mechanism(collection: Collection) -> str:
    mechanism = collection.mechanism
    parameters = ", ".join(f"{name} = {value:.6g}" for name, value in mechanism.parameters.items())
    return (
        f"{mechanism.name}{f' ({parameters})' if parameters else ''}, by ldp-budget {version('ldp-budget')}. "
        f"{_CHECKS.get(checked_at(mechanism), 'Its guarantee was not checked.')} Draws are cryptographic random numbers. "
        f"Source: {mechanism.source}"
    )


def _notes(collection: Collection, state: LedgerState) -> str:
    holds = {True: "was verified and holds", False: "failed its verification", None: "was not verified"}[state.ok]
    client = f" The public definition of its client has the digest {collection.client}." if collection.client else ""
    return (
        f"Written by ldp-budget from a ledger of {state.entries} entries, which {holds}. Head: {state.head}.{client}"
    )


# -- as YAML -------------------------------------------------------------------------------------------------------


def to_yaml(entry: dict[str, Any]) -> str:
    """Return a record as YAML: texts in double quotes, and decimal numbers with all their digits."""
    return "".join(f"{line}\n" for line in _lines(entry, ""))


def _lines(value: dict[str, Any], indent: str) -> Iterator[str]:
    for name, each in value.items():
        if isinstance(each, dict):
            yield f"{indent}{name}:{'' if each else ' {}'}"
            yield from _lines(each, f"{indent}  ")
        elif isinstance(each, list):
            yield f"{indent}{name}:"
            yield from (f"{indent}  - {_scalar(item)}" for item in each)
        else:
            yield f"{indent}{name}: {_scalar(each)}"


def _scalar(value: Any) -> str:
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text if "." in text else f"{text}.0"
    if isinstance(value, int):
        return str(value)
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in quoted)
