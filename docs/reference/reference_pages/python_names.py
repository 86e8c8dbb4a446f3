"""The public names of the Python reference, the page of each, and what counts as a member."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from ldp_budget import charge_options, composition, sampling, testing
from ldp_budget.accounting import (
    admin_log,
    batch,
    budget_timeline,
    bulk_run,
    call_options,
    charge_request,
    ledger_maintenance,
    policies,
    receipts,
    usage_stats,
)
from ldp_budget.guarantees import dominating_pairs, fixed_point
from ldp_budget.ledger import verification
from ldp_budget.registry import certification
from ldp_budget.reports import charged_release, partial_aggregate, report_file
from ldp_budget.sampling import memoisation
from ldp_budget.sdk import consistency, domain, estimates, interpreter, numeric_mechanism
from ldp_budget.sdk import parameters as fields
from ldp_budget_service import api_keys, client
from ldp_budget_surveys import partitions
from ldp_budget_surveys.planning import margins, ranking
from ldp_budget_surveys.questionnaires import survey_collection

Names = tuple[tuple[ModuleType, tuple[str, ...]], ...]

ANSWERS: Names = (
    (receipts, ("Receipt", "LimitState", "Balance", "Amounts")),
    (budget_timeline, ("Remaining", "BudgetPoint", "Binding")),
    (api_keys, ("ApiKeys", "ApiKey")),
    (charge_options, ("QuoteOptions", "ChargeOptions")),
    (call_options, ("RunOptions", "SeriesOptions", "PolicyTerms", "PolicyOptions")),
    (charge_request, ("Principal",)),
    (admin_log, ("Record",)),
    (ledger_maintenance, ("LedgerOperations",)),
    (usage_stats, ("Overview",)),
    (batch, ("Spend", "SpendResult")),
    (bulk_run, ("BulkResult",)),
    (policies, ("Policy",)),
    (verification, ("Integrity",)),
    (composition, ("Bound",)),
    (estimates, ("CountEstimate", "MeanEstimate", "CountAggregate", "SumAggregate")),
    (consistency, ("ConsistentEstimate", "consistent", "adjusted")),
    (ranking, ("rank_frequency", "rank_numeric")),
    (margins, ("respondents_for",)),
    (report_file, ("ReportWriter", "writer_to", "read_reports")),
    (partitions, ("PartitionWriter", "partitions_in", "open_partition", "Partition")),
    (partial_aggregate, ("aggregate", "aggregate_reports", "Partial")),
    (charged_release, ("release", "Released")),
    (certification, ("checked",)),
    (survey_collection, ("SurveyCollection",)),
)
"""Public names outside `ldp_budget` itself: what its calls take and return."""

OVER_HTTP: Names = ((client, ("Client", "ServiceProblem")),)

PARTS: tuple[tuple[str, str, Names], ...] = (
    (
        "Parts of a plugin",
        "[Writing a plugin](../../tutorials/writing-a-plugin.md) uses these names, and a page lists [every "
        "hook](../../tutorials/plugin-publish.md#hooks-of-a-module). All other names can change with any release.",
        (
            (domain, ("Categories", "Interval")),
            (fields, ("real", "optional_real", "integer", "optional_integer", "choice", "flag", "matrix")),
            (testing, ("MechanismContract",)),
        ),
    ),
    (
        "Exact amounts for a plugin",
        "A privacy loss is a decimal, never a float. Each bound is rounded to the side that states more loss.",
        (
            (fixed_point, ("decimal", "UP", "DOWN", "exp_up", "exp_down", "ln_up", "exact_sum")),
            (fixed_point, ("float_above", "float_below", "float_up", "float_down")),
            (dominating_pairs, ("dominating_pair", "joined")),
        ),
    ),
    (
        "Random draws for a plugin",
        "All randomness of a client. A draw compares bytes of a stream with integers, so its probabilities are exact: "
        "no float decides what is sent. Import these names inside functions, because they load numpy.",
        (
            (sampling, ("ONE", "threshold", "open_stream", "RandomSource", "Stream", "SeededStream")),
            (sampling, ("bernoulli", "integers", "choices", "subsets", "geometric", "laplace", "normal")),
            (memoisation, ("memo_words",)),
        ),
    ),
    (
        "Estimators for a plugin",
        "What the server part of a mechanism uses, with [CountAggregate](mechanisms.md#countaggregate) and "
        "[SumAggregate](mechanisms.md#sumaggregate).",
        (
            (estimates, ("SupportLaw", "StudentLaw", "BoundedMeanEstimate", "NoiseMeanEstimate", "BitMeanEstimate")),
            (interpreter, ("pack_rows", "bit_of", "column_sums")),
            (numeric_mechanism, ("average",)),
        ),
    ),
)
"""The sections of the page for authors of plugins: title, first paragraph, and names."""

TEXTS = {
    "hookimpl": "Mark a function of a plugin's module as the implementation of a hook, such as `register_mechanisms`.",
    "UP": "A decimal context of forty digits that rounds up: `UP.divide(a, b)` is an upper bound of a/b. The "
    "operators of `Decimal` use the caller's context, which rounds to the nearest, so do not use them for bounds.",
    "DOWN": "The same context, rounding down.",
    "ONE": "2**64, the threshold of probability 1.",
    "RandomSource": "The type of `rng`: None for cryptographic randomness, or a `Stream`. Tests may also give an int, "
    "which is a seed, or a `numpy.random.Generator`.",
}
"""The text of names whose own docstring belongs to another package."""

NO_MEMBERS = ("MechanismContract",)
NOT_MADE = ("BudgetClient",)
"""Protocols, which have no constructor."""


def is_documented_here(member: Any) -> bool:
    """True for a method or a property; False for a constant, whose text is that of its type."""
    return inspect.isfunction(member) or isinstance(member, classmethod | staticmethod) or getter(member) is not None


def getter(member: Any) -> Any:
    """The function behind a property, cached or not."""
    return getattr(member, "fget", None) or getattr(member, "func", None)


# -- signatures, one line each, for the record of the interface ----------------------------------------------------


def signature(function: Any, *, skip: bool = False) -> str:
    """`(a, *, b: int = 1) -> str`; with `skip`, without the first parameter."""
    found = inspect.signature(function)
    parameters = list(found.parameters.values())[1 if skip else 0 :]
    shown, star, slash = [], False, any(p.kind is p.POSITIONAL_ONLY for p in parameters)
    for parameter in parameters:
        if slash and parameter.kind is not parameter.POSITIONAL_ONLY:
            shown.append("/")
            slash = False
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        shown.append(_parameter(parameter))
    returned = found.return_annotation
    end = f" -> {annotation(returned)}" if returned not in (found.empty, None, "None") else ""
    return f"({', '.join(shown)}){end}"


def returns(member: Any) -> str:
    """The annotation of a property."""
    return annotation(inspect.signature(getter(member)).return_annotation)


def annotation(written: Any) -> str:
    """An annotation as the source has it; a named tuple wraps it."""
    written = getattr(written, "__forward_arg__", written)
    return written if isinstance(written, str) else getattr(written, "__name__", str(written))


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    typed = "" if parameter.annotation is parameter.empty else f": {annotation(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}{typed}"
    return f"{parameter.name}{typed} = {_default(parameter.default)}"


def _default(value: Any) -> str:
    """A default value as source code; `…` for a value that has none."""
    text = f"{value.__module__}.{value.__name__}" if inspect.isroutine(value) else repr(value)
    return "…" if "<" in text else text
