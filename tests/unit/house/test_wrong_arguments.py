"""Wrong arguments of public functions: each call works or raises an error that the docstring names.

Every public function is called with each of its arguments in turn replaced by a wrong value: another kind
of object, a class, an array, nothing. Of what is not tried, `UNTRIED` says why.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import math
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import (
    Accountant,
    Case,
    Collection,
    Comparison,
    Factor,
    LedgerError,
    Limit,
    Mechanism,
    Plan,
    mechanism,
)
from ldp_budget.accounting.charge_request import Principal
from ldp_budget.accounting.policies import Policy
from ldp_budget.errors import InvalidParameter, LdpBudgetError
from ldp_budget.guarantees import Pure
from ldp_budget.registry import certification
from ldp_budget.reports.charged_release import release
from ldp_budget.reports.partial_aggregate import Partial, aggregate_reports
from ldp_budget.reports.partial_aggregate import aggregate as aggregate_place
from ldp_budget.reports.report_file import ReportWriter, read_reports, writer_to
from ldp_budget.sdk.consistency import adjusted, consistent
from ldp_budget.sdk.domain import Categories, Interval
from ldp_budget.sdk.estimates import SumAggregate
from ldp_budget_surveys.partitions import PartitionWriter, open_partition, partitions_in
from ldp_budget_surveys.planning import ranking
from ldp_budget_surveys.planning.margins import respondents_for
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey, SurveyQuestion
from public_surface import Public, everything


class Odd:
    """An object without any use."""

    def __repr__(self) -> str:
        raise RuntimeError("and cannot even be shown")


OUE = mechanism("oue")(epsilon=1, domain_size=3)
LAPLACE = mechanism("laplace")(epsilon=1, lower=0, upper=1)
WAVE = mechanism("square-wave").calibrate(epsilon=1, lower=0, upper=1)
RAPPOR = mechanism("rappor")(bits=8, hashes=2, cohorts=2, epsilon=1, epsilon_lifetime=4)
GRR = mechanism("grr")(epsilon=1, domain_size=3)
POLL = Collection("poll", OUE, ("a", "b", "c"))
SURVEY = survey_collection(
    Survey("survey", tuple(SurveyQuestion(n, "", "yes-no", ("yes", "no")) for n in ("smoke", "drink")), Decimal(2), 1)
)
REPORTS = OUE.randomize([0, 1, 2])
NUMBERS = LAPLACE.randomize([0.5, 0.5])
SECRET = b"0123456789abcdef"
HALF = Fraction(1, 2)
COUNTS, MEAN = OUE.estimate(REPORTS), LAPLACE.estimate(NUMBERS)
LIMIT = Limit("day", 1)
PLAN = Plan(((OUE.guarantee, 2),), Decimal("1e-6"))

WRONG: list[Any] = [
    *(None, True, -1, 0, 1.5, math.nan, math.inf, 10**400, 10**5000, 1j, Decimal("NaN"), HALF),
    *("", "oue", "\ud800", "a\0b", b"", b"x", bytearray(b"x")),
    *([], ["a"], [None], [[1]], [[1], [1, 2]], [1, "a"], (), {}, {"a": 1}, set(), range(3)),
    *(Odd(), Odd, len, datetime(2026, 1, 1), Path("/dev/null/none")),
    *(mechanism("oue"), OUE, LAPLACE, POLL, Pure("1"), LIMIT, PLAN),
    *(np.array([1, 2]), np.array([[1.0]]), np.array(["a"]), np.float64(1), np.int64(2)),
]

CALLBACKS = ("on_batch", "on_refused", "on_progress", "clock")
"""Functions of the caller's: any that can be called is taken, and what it raises is raised."""

AUTHORS = "written by the author of a mechanism, and called by the checks with values of the domain"
LEDGERS = "the ledger's own, of what it stored"
KEYS = "tried in tests/accounting/access/test_api_keys.py"
FIELDS = "used in a class body, where Python reports the error"
UNTRIED = {
    "Mechanism": "is subclassed; `oue` is tried",
    "FrequencyMechanism": "is subclassed; `oue` is tried",
    "NumericMechanism": "is subclassed; `laplace` is tried",
    **dict.fromkeys(("Mechanism.compare", "Mechanism.compare_repeated", "Mechanism.outcomes"), AUTHORS),
    **dict.fromkeys(
        ("FrequencyMechanism.compare", "FrequencyMechanism.outcomes", "FrequencyMechanism.held"), AUTHORS
    ),
    "NumericMechanism.distribution": AUTHORS,
    **dict.fromkeys(("NumericMechanism.density", "NumericMechanism.log_density"), AUTHORS),
    **dict.fromkeys(("NumericMechanism.error_at", "NumericMechanism.report_breakpoints"), AUTHORS),
    **dict.fromkeys(("NumericMechanism.report_std", "Guarantee.divergence", "Case", "Comparison.of"), AUTHORS),
    **dict.fromkeys(("Categories", "Interval"), AUTHORS),
    **dict.fromkeys(("Receipt.store", "Receipt.restore", "Receipt.named", "Receipt.name_of"), LEDGERS),
    **dict.fromkeys(("LimitState.at",), LEDGERS),
    **dict.fromkeys((f"ApiKeys.{name}" for name in ("create", "rotate", "record", "revoke", "find")), KEYS),
    **dict.fromkeys(("ApiKey.state", "ApiKey.allows", "ApiKey.to_json"), KEYS),
    **dict.fromkeys(("real", "optional_real", "integer", "optional_integer", "choice", "flag", "matrix"), FIELDS),
}

if importlib.util.find_spec("pyarrow") is None:
    parquet = ("PartitionWriter", "PartitionWriter.call", "PartitionWriter.write")
    UNTRIED |= dict.fromkeys(parquet, "no pyarrow: pip install 'ldp-budget[interop]'")

PUBLIC = {public.name: public for public in everything()}
TRIED = [public for public in PUBLIC.values() if public.parameters and public.name not in UNTRIED]


@pytest.fixture(scope="module")
def accountant() -> Iterator[Accountant]:
    """One ledger for all: what is refused has changed nothing."""
    with Accountant(":memory:") as made:
        made.set_policy("default", ["lifetime=4,1e-6,zcdp", "day=1"])
        made.add_collection(POLL)
        yield made


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some wrong arguments are names of files."""
    monkeypatch.chdir(tmp_path)


Call = tuple[Callable[..., Any], dict[str, Any]]


def calls(accountant: Accountant) -> dict[str, Call]:
    """Each public function and arguments that it takes."""
    costs = LIMIT.capacity
    request = {"user": "u", "mechanism": OUE, "reports": 1, "label": None, "policy": "default"}
    keyed = {**request, "key": None, "digest": None, "note": None, "strict": False}
    texts, values = {"texts": ["0"]}, {"values": [0, 1]}
    memo = {**values, "secrets": SECRET}
    part = aggregate_reports(REPORTS, POLL)
    own: dict[str, dict[str, Any]] = {
        "set_policy": {
            **{"name": "p", "limits": ["lifetime=1"], "relation": None, "unbounded": False, "checked": False},
            **{"plan": None, "shares": {"team-a": ["lifetime=0.5"]}},
        },
        **{"policy": {"name": "default"}, "quote": request, "spend": keyed, "reserve": {**keyed, "expires": 9}},
        **{"spend_async": keyed, "reserve_async": {**keyed, "expires": 9}},
        "balance_async": {"user": "u", "policy": "default"},
        "spend_many": {
            **{"users": ["u"], "mechanism": OUE, "key": None, "digest": None, "note": None},
            **{"policy": "default", "shard": None, "on_batch": None},
        },
        **{"commit": {"receipt": "1-0"}, "void": {"receipt": "1-0"}, "balance": {"user": "u", "policy": "default"}},
        **{"erase": {"user": "unknown", "unknown": False}, "backup": {"path": "copy.db"}},
        "simulate": {"mechanism": OUE, "every": "day", "reports": 1, "start": None, "policy": "default"},
        "remaining_over_time": {"user": "u", "policy": "default"},
        **{"keyed_digest": {"data": b"x"}, "is_erased": {"user": "u"}, "history": {"user": "u"}},
        **{"open_reservations": {"most": 20, "user": None}, "balances": {"users": ["u"], "policy": "default"}},
        **{"journal": {"users": ["u"]}, "verify": {"expect": None, "on_progress": None}},
        "acting_for": {"caller": Principal(1, "team-a")},
        **{"spend_each": {"spends": []}, "spend_batch": {"spends": [], "key": "k"}, "positions": {"users": ["u"]}},
        **{"position": {"user": "u"}, "reservation": {"receipt": "1-0"}},
        "records": {"first": 1},
        "record": {"kind": "note", "name": "x", "body": {}, "expected": 10**6},
        **{"add_collection": {"collection": POLL}, "collection": {"name": "poll"}},
    }
    of_limits: dict[str, dict[str, Any]] = {
        **{"fits": {"spent": costs, "cost": costs}, "affordable": {"spent": costs, "cost": costs}},
        **{"is_above": {"other": LIMIT}, "remaining_room": {"cost": costs}, "amounts": {"costs": costs}},
        "affordable_along": {"curve": RAPPOR.guarantee, "done": 0, "spent": costs},
        **{
            "remaining": {"spent": costs},
            "epsilon_of": {"spent": costs},
            "from_json": {"data": LIMIT.to_json()},
            "parse": {"text": "day=1", "asked": ()},
        },
    }
    policy, overview = accountant.policy(), accountant.ledger.overview()
    of_overviews = {"days": {"most": 9}, "refusals": {"most": 9}, "recent": {"hours": 2}, "summary": {"hours": 2}}
    aggregate, total = OUE.aggregate(REPORTS), LAPLACE.aggregate(NUMBERS)
    released = {
        **{"out": "out", "collection": POLL, "accountant": accountant, "values": np.array([0, 1])},
        **{"users": ["u", "v"], "policy": "default", "secrets": None, "on_batch": bool, "on_refused": bool},
        "receipts": None,
    }
    return {
        "Accountant": (
            opened,
            {"ledger": ":memory:", "create": True, "clock": lambda: 0, "clock_bound": 3600.0, "sandbox": None},
        ),
        **{f"Accountant.{name}": (getattr(accountant, name), given) for name, given in own.items()},
        "LedgerOperations.verify": (accountant.ledger.verify, {"expect": None, "on_progress": None}),
        "LedgerOperations.last_verification": (accountant.ledger.last_verification, {"seconds": 60}),
        "LedgerOperations.confirm": (accountant.ledger.confirm, {"head": None, "on_progress": None}),
        "LedgerOperations.collection_use": (
            accountant.ledger.collection_use,
            {"name": "poll", "head": None, "on_progress": None},
        ),
        "LedgerOperations.move_to": (moved, {"ledger": "copied.db", "on_progress": None}),
        "LedgerOperations.rotate_key": (rotated, {"on_progress": None}),
        "LedgerOperations.acknowledge": (acknowledged, {"entries": ["2"], "reason": "a fault", "on_progress": None}),
        "Limit": (Limit, {"period": "day", "epsilon": 1, "delta": "1e-6", "rule": "zcdp", "aside": 0}),
        **{f"Limit.{name}": (getattr(LIMIT, name), given) for name, given in of_limits.items()},
        "Plan": (Plan, {"charges": [(OUE, 2)], "delta": "1e-6", "price": None}),
        "Plan.from_json": (Plan.from_json, {"data": PLAN.to_json()}),
        "compose": (ldp_budget.compose, {"charges": [(OUE.guarantee, 2)], "delta": "1e-6", "rule": "zcdp"}),
        "mechanism": (mechanism, {"name": "oue"}),
        "guarantee_of": (ldp_budget.guarantee_of, {"thing": OUE}),
        "audit": (
            ldp_budget.audit,
            {"mechanism": OUE, "samples": 200, "confidence": 0.9, "reports": 1, "search": False, "rng": 1},
        ),
        "verify": (ldp_budget.verify, {"mechanism": OUE}),
        "InvalidParameter.describe": (
            InvalidParameter("epsilon", "a number", 1).describe,
            {"option": "--epsilon", "hint": "Use 2."},
        ),
        "LdpBudgetError.completed": (InvalidParameter("epsilon", "a number", 1).completed, {"hint": "Use 2."}),
        "Collection": (Collection, {"name": "x", "mechanism": OUE, "categories": ("a", "b", "c")}),
        "Collection.from_json": (Collection.from_json, {"data": POLL.to_json()}),
        "Collection.read_values": (POLL.read_values, {"texts": ["a"]}),
        "Collection.randomize": (Collection("r", RAPPOR).randomize, memo),
        "Collection.randomize_column": (POLL.randomize_column, {"frame": {"answer": ["a"]}, "column": "answer"}),
        "Collection.estimate": (POLL.estimate, {"reports": REPORTS}),
        "Collection.labels": (Collection("r", RAPPOR).labels, memo),
        "Collection.label_to_charge": (POLL.label_to_charge, {"label": "x"}),
        "Collection.answer_names": (POLL.answer_names, {"answers": 3}),
        "SurveyCollection.question": (SURVEY.question, {"name": "smoke"}),
        "SurveyCollection.seed": (SURVEY.seed, {"user": "u"}),
        "SurveyCollection.masks": (SURVEY.masks, {"users": ["u"]}),
        "Collection.check_sender": (POLL.check_sender, {"user": "u", "report": b"x"}),
        "SurveyCollection.check_sender": (
            SURVEY.check_sender,
            {"user": "u", "report": SURVEY.masks(["u"])[0].to_bytes(3, "little")},
        ),
        "SurveyCollection.select_questions": (
            SURVEY.select_questions,
            {"values": SURVEY.read_values([{"smoke": "yes"}]), "users": ["u"]},
        ),
        "Mechanism.calibrate": (
            lambda target: mechanism("oue").calibrate(epsilon=target, domain_size=3),
            {"target": 1},
        ),
        "oue": (mechanism("oue"), {"epsilon": 1, "domain_size": 3}),
        "laplace": (mechanism("laplace"), {"epsilon": 1, "lower": 0, "upper": 1}),
        "Mechanism.replace": (lambda changes: OUE.replace(epsilon=changes), {"changes": 2}),
        "Mechanism.at_epsilon": (OUE.at_epsilon, {"epsilon": 2}),
        "Mechanism.utility": (RAPPOR.utility, {"users": 3}),
        "Mechanism.describe": (OUE.describe, {"users": 3}),
        "Mechanism.read_values": (RAPPOR.read_values, texts),
        "Mechanism.randomize": (OUE.randomize, {**values, "rng": None, "secrets": None}),
        "Mechanism.memoised": (RAPPOR.memoised, memo),
        "Mechanism.labels": (RAPPOR.labels, memo),
        "Mechanism.check_reports": (RAPPOR.check_reports, {"reports": RAPPOR.randomize([0], secrets=SECRET)}),
        "Mechanism.aggregate": (RAPPOR.aggregate, {"reports": RAPPOR.randomize([0], secrets=SECRET)}),
        "Mechanism.estimate": (GRR.estimate, {"reports": GRR.randomize([0])}),
        "Mechanism.total": (OUE.total, {"reports": REPORTS}),
        "FrequencyMechanism.for_answers": (mechanism("oue").for_answers, {"epsilon": 1, "domain_size": 3}),
        "FrequencyMechanism.check_reports": (OUE.check_reports, {"reports": REPORTS}),
        "FrequencyMechanism.support": (OUE.support, {"reports": REPORTS}),
        "Mechanism.contributions": (GRR.contributions, {"reports": GRR.randomize([0])}),
        "FrequencyMechanism.contributions": (OUE.contributions, {"reports": REPORTS}),
        "NumericMechanism.contributions": (LAPLACE.contributions, {"reports": NUMBERS}),
        "NumericMechanism.report_bins": (WAVE.report_bins, {"reports": WAVE.randomize([0.5])}),
        "FrequencyMechanism.aggregate": (OUE.aggregate, {"reports": REPORTS}),
        "FrequencyMechanism.estimate": (OUE.estimate, {"reports": REPORTS, "consistent": True}),
        "FrequencyMechanism.utility": (OUE.utility, {"users": 3}),
        "FrequencyMechanism.share_errors": (OUE.share_errors, {"users": 3}),
        "NumericMechanism.for_range": (mechanism("laplace").for_range, {"epsilon": 1, "lower": 0, "upper": 1}),
        "NumericMechanism.prior_error": (LAPLACE.prior_error, {"prior": ([0.5], [1])}),
        "NumericMechanism.mean_error": (LAPLACE.mean_error, {"users": 3}),
        "NumericMechanism.utility": (LAPLACE.utility, {"users": 3}),
        "NumericMechanism.read_values": (LAPLACE.read_values, {"texts": ["0.5"]}),
        "NumericMechanism.aggregate": (LAPLACE.aggregate, {"reports": NUMBERS}),
        "NumericMechanism.estimate": (LAPLACE.estimate, {"reports": NUMBERS}),
        "CountEstimate.interval": (COUNTS.interval, {"level": 0.9}),
        "CountEstimate.named": (COUNTS.named, {"answers": ["a", "b", "c"]}),
        "CountEstimate.to_rows": (COUNTS.to_rows, {"level": 0.9}),
        "MeanEstimate.to_rows": (MEAN.to_rows, {"level": 0.9}),
        "CountEstimate.repeated": (
            COUNTS.repeated,
            {"rounds": [OUE.estimate(REPORTS[:1]), OUE.estimate(REPORTS[1:])]},
        ),
        "MeanEstimate.details": (MEAN.details, {"level": 0.9}),
        "MeanEstimate.interval": (MEAN.interval, {"level": 0.9}),
        "MeanEstimate.repeated": (
            MEAN.repeated,
            {"rounds": [LAPLACE.estimate(NUMBERS[:1]), LAPLACE.estimate(NUMBERS[1:])]},
        ),
        "CountAggregate.merge": (aggregate.merge, {"other": OUE.aggregate(REPORTS)}),
        "SumAggregate.merge": (total.merge, {"other": LAPLACE.aggregate(NUMBERS)}),
        "SumAggregate.of": (
            SumAggregate.of,
            {"fingerprint": "x", "reports": [0.5], "grid": (0.0, 1.0), "squares": False},
        ),
        "adjusted": (adjusted, {"estimate": COUNTS, "how": "simplex"}),
        "consistent": (consistent, {"estimate": COUNTS}),
        "ConsistentEstimate.interval": (consistent(COUNTS).interval, {"level": 0.9}),
        "ConsistentEstimate.to_rows": (consistent(COUNTS).to_rows, {"level": 0.9}),
        "ConsistentEstimate.repeated": (
            consistent(COUNTS).repeated,
            {"rounds": [OUE.estimate(REPORTS[:1]), OUE.estimate(REPORTS[1:])]},
        ),
        "rank_frequency": (ranking.rank_frequency, {"epsilon": 1, "domain_size": 3, "users": 10, "margin": 0.1}),
        "respondents_for": (respondents_for, {"mechanism": OUE, "margin": 0.1}),
        "rank_numeric": (ranking.rank_numeric, {"epsilon": 1, "lower": 0, "upper": 1, "users": 10}),
        "ReportWriter": (ReportWriter, {"path": "out", "collection": POLL}),
        "ReportWriter.write": (written, {"reports": REPORTS}),
        "read_reports": (lambda **given: list(read_reports(**given)), {"path": "none", "collection": POLL}),
        "release": (released_anew, released),
        **calls_of_partitions(),
        "writer_to": (writer_to, {"path": "out", "collection": POLL}),
        "partitions_in": (partitions_in, {"place": "."}),
        "open_partition": (opened_partition, {"place": "none", "collection": POLL}),
        "aggregate": (aggregate_place, {"place": "none", "collection": POLL}),
        "aggregate_reports": (aggregate_reports, {"reports": REPORTS, "collection": POLL}),
        "Partial": (
            Partial,
            {"collection": POLL, "total": part.total, "layout": part.layout, "partitions": part.partitions},
        ),
        "Partial.merge": (part.merge, {"other": part}),
        "Partial.estimate": (part.estimate, {"names": None}),
        "Partial.write": (part.write, {"path": "part"}),
        "Partial.from_bytes": (Partial.from_bytes, {"data": part.to_bytes(), "collection": POLL, "place": "part"}),
        "checked": (certification.checked, {"mechanism": mechanism("oue")}),
        **{f"Overview.{name}": (getattr(overview, name), given) for name, given in of_overviews.items()},
        "Balance.shuffled": (accountant.balance("u").shuffled, {"users": 1000}),
        "Policy.share": (policy.share, {"name": "team-a"}),
        "Policy.limits_for": (policy.limits_for, {"share": "team-a"}),
        "Policy.limits_shown_to": (policy.limits_shown_to, {"share": "team-a"}),
        "Policy.planned": (policy.planned, {"others": None}),
        "Policy.overdrawn_by": (policy.overdrawn_by, {"price": (Decimal(1), Decimal(0))}),
        "Policy.from_json": (Policy.from_json, {"data": policy.to_json()}),
        "Policy.read": (Policy.read, {"definition": json.dumps(policy.to_json())}),
        "Factor": (Factor, {"masses": ((HALF, HALF), (HALF, HALF))}),
        "Factor.of": (Factor.of, {"first": [HALF, HALF], "second": [HALF, HALF]}),
        "Factor.bit": (Factor.bit, {"first": HALF, "second": HALF}),
        "Comparison": (Comparison, {"cases": (Case(Fraction(1), ()),)}),
        "Comparison.rows": (Comparison.rows, {"first": [HALF, HALF], "second": [HALF, HALF]}),
        "Categories.check": (Categories(3).check, {"values": [0]}),
        "Categories.read": (Categories(3).read, texts),
        "Categories.number_of": (Categories(3, False).number_of, {"text": "a"}),
        "Interval.check": (Interval(Decimal(0), Decimal(1)).check, {"values": [0.5]}),
        "Interval.read": (Interval(Decimal(0), Decimal(1)).read, {"texts": ["0.5"]}),
    }


def opened(**given: Any) -> None:
    Accountant(**given).close()


def moved(ledger: Any, on_progress: Any) -> None:
    """Move a separate ledger, as a moved ledger charges no user any more."""
    Path("copied.db").unlink(missing_ok=True)
    Path("copied.db.key").unlink(missing_ok=True)
    with Accountant(":memory:") as accountant:
        accountant.ledger.move_to(ledger, on_progress=on_progress)


def rotated(on_progress: Any) -> None:
    """Rotate the key of a ledger of its own, which cannot be used afterwards."""
    with Accountant(":memory:") as accountant:
        accountant.ledger.rotate_key(on_progress=on_progress)


def acknowledged(entries: Any, reason: Any, on_progress: Any) -> None:
    """Acknowledge an entry that an unknown API key has written."""
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.acting_for(Principal(7, "unknown")).spend("ada", OUE)
        accountant.ledger.acknowledge(entries, reason, on_progress=on_progress)


def calls_of_partitions() -> dict[str, Call]:
    if importlib.util.find_spec("pyarrow") is None:
        return {}
    return {
        "PartitionWriter": (PartitionWriter, {"path": "out.parquet", "collection": POLL, "task": None}),
        "PartitionWriter.call": (PartitionWriter("out.parquet", POLL).call, {"name": "0" * 32}),
        "PartitionWriter.write": (written_to_partition, {"reports": REPORTS}),
    }


def written(reports: Any) -> None:
    with ReportWriter("out", POLL) as writer:
        writer.write(reports)


def written_to_partition(reports: Any) -> None:
    with PartitionWriter("out.parquet", POLL) as writer:
        writer.write(reports)


def opened_partition(**given: Any) -> None:
    with open_partition(**given):
        pass


def released_anew(**given: Any) -> None:
    for left in ("out", "out.partial"):
        Path(left).unlink(missing_ok=True)
    release(**given)


def test_public_functions_are_all_tried_or_listed_with_a_reason(accountant: Accountant) -> None:
    made = set(calls(accountant)) - {"oue", "laplace"}
    assert {public.name for public in TRIED} == made
    assert set(UNTRIED) <= set(PUBLIC)


IN_VAIN = (
    *("Accountant.commit", "Accountant.void", "Accountant.erase", "Accountant.record"),
    *("Accountant.reservation", "read_reports", "open_partition", "aggregate", "partitions_in"),
)
"""The requested object does not exist."""


@pytest.mark.slow
def test_replaced_arguments_are_valid_ones(accountant: Accountant) -> None:
    failed = {name: error for name, call in calls(accountant).items() for error in raised(*call)}
    assert [name for name in failed if name not in IN_VAIN] == []
    assert not any(isinstance(error, InvalidParameter) for error in failed.values())


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("public", [*TRIED, PUBLIC["Mechanism"]._replace(name="oue")], ids=lambda public: public.name)
def test_wrong_arguments_raise_an_error_of_the_docstring(accountant: Accountant, public: Public) -> None:
    call, given = calls(accountant)[public.name]
    of_ledger = public.name.startswith(("Accountant", "LedgerOperations"))
    documented = (*public.raises, *((LedgerError,) if of_ledger else ()))
    failed = [
        f"{name} = {kind_of(wrong)}: {type(error).__name__}: {error}"
        for name in given
        for wrong in WRONG
        if not (name in CALLBACKS and callable(wrong))
        for error in raised(call, {**given, name: wrong})
        if not isinstance(error, documented) or not is_a_sentence(error)
    ]
    assert failed == []


def raised(call: Callable[..., Any], given: dict[str, Any]) -> Iterator[Exception]:
    """Return the error of a call, if any."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = call(**given)
            if inspect.iscoroutine(found):
                asyncio.run(found)
            elif inspect.isgenerator(found):
                list(found)
    except Exception as error:
        yield error


def kind_of(wrong: object) -> str:
    return "an odd object" if isinstance(wrong, Odd) else ascii(type(wrong))


def is_a_sentence(error: Exception) -> bool:
    """True if the error has its own words: those of Python's operators name neither argument nor range."""
    if isinstance(error, LdpBudgetError):
        return len(str(error)) > 10
    return any(word in str(error) for word in ("expected", "must ", "not a "))


# What people call of a mechanism, for every one of our own.
RANGE, ANSWERS = {"epsilon": 1, "lower": 0, "upper": 1}, {"epsilon": 1, "domain_size": 3}
MECHANISMS: dict[str, dict[str, Any]] = {
    "gaussian": {"epsilon": 1, "delta": "1e-6", "lower": 0, "upper": 1},
    **dict.fromkeys(
        ("laplace", "staircase", "bounded-laplace", "bounded-staircase", "hybrid", "square-wave", "random-threshold"),
        RANGE,
    ),
    "rounded-response": RANGE,
    "randomized-response": {"epsilon": 1},
    "one-sided": {"g": "0.3"},
    "unary-encoding": {"p": "0.7", "q": "0.3", "domain_size": 3},
    **dict.fromkeys(("sue", "oue", "random-substitution", "subset-selection", "pgr"), ANSWERS),
    "matrix-substitution": {"matrix": [["3/4", "1/4"], ["1/4", "3/4"]]},
    "rappor": {"bits": 8, "hashes": 2, "cohorts": 2, "epsilon": 1, "epsilon_lifetime": 4},
    **{name: {"epsilon": 1, "hashes": 4, "width": 16} for name in ("cms", "hcms")},
    "one-bit-mean": {"epsilon": 1, "maximum": 1},
    "d-bit-flip": {"epsilon": 1, "buckets": 4, "bits": 2, "memoize": True},
    "loloha": {"epsilon_lifetime": 2, "epsilon_first": 1, "domain_size": 4, "hashes": 4},
    "heavy-hitters": {"epsilon": 1, "length": 2, "hashes": 4},
    "olh": {"epsilon": 1, "domain_size": 5, "functions": 4},
    "ticks": {"epsilon": 1, "domain_size": 5, "at_most": 2},
    "grid": {"epsilon": 1, "items": 3, "domain_size": 4},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_report_wrong_parameters_in_words(name: str) -> None:
    made = mechanism(name)(**MECHANISMS[name])
    secrets = {"secrets": SECRET} if made.repeats else {}
    reports = made.randomize([0, 1], **secrets)
    tried: dict[str, dict[str, Any]] = {
        "randomize": {"values": [0, 1], "rng": None, **secrets},
        **{"read_values": {"texts": ["0"]}, "utility": {"users": 3}, "at_epsilon": {"epsilon": 2}},
        **{method: {"reports": reports} for method in ("aggregate", "check_reports", "estimate", "total")},
        **({"labels": {"values": [0, 1], **secrets}, "memoised": {"values": [0, 1], **secrets}} if secrets else {}),
    }
    failed = [
        f"{method}, {option} = {kind_of(wrong)}: {type(error).__name__}: {error}"
        for method, given in tried.items()
        for option in given
        for wrong in WRONG
        for error in raised(getattr(made, method), {**given, option: wrong})
        if not isinstance(error, LdpBudgetError) and not (option == "rng" and isinstance(error, TypeError))
    ]
    assert failed == []


def test_cases_include_every_built_in_mechanism() -> None:
    own = {cls.name for cls in ldp_budget.mechanisms() if cls.__module__.startswith("ldp_budget_mechanisms.")}
    # One draws nothing, and one takes vectors; both have tests of their own in tests/unit/plugins.
    assert set(MECHANISMS) == own - {"declared", "discrete-gaussian"}


# -- what people did ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (
            "oue",
            "got 'oue' (str). A name alone has no parameters. Use ldp_budget.mechanism('oue') with its parameters.",
        ),
        (
            mechanism("oue"),
            "got the class OptimizedUnaryEncoding. Give it its parameters, such as "
            "OptimizedUnaryEncoding(domain_size=…): domain_size, epsilon.",
        ),
        (OUE.guarantee, "got SymmetricPair(bound=1, tau=0.5)"),
        (1, "got 1"),
        (None, "got None"),
    ],
)
@pytest.mark.parametrize("how", ["quote", "spend", "reserve", "spend_many"])
def test_objects_that_are_no_mechanism_are_refused(accountant: Accountant, how: str, asked: Any, found: str) -> None:
    users = ["alice"] if how == "spend_many" else "alice"
    with pytest.raises(InvalidParameter) as caught:
        getattr(accountant, how)(users, asked)
    assert str(caught.value) == f"mechanism must be {EXPECTED}: {found}"
    assert accountant.history("alice") == []


EXPECTED = "a mechanism with its parameters, a collection, or an object of a supported library"


def test_number_as_a_report_file_is_refused() -> None:
    """The first five numbers are those of streams that are open: reading one closed it."""
    for number in range(3):
        with pytest.raises(InvalidParameter, match=f"path must be a path .*: got {number}"):
            list(read_reports(number, POLL))


def test_ledger_with_a_wrong_clock_is_not_created(tmp_path: Path) -> None:
    for wrong in ({"clock": 5}, {"clock_bound": 0}, {"create": "no"}):
        with pytest.raises(InvalidParameter):
            Accountant(tmp_path / "budget.db", **wrong)
    assert list(tmp_path.iterdir()) == []


def test_number_of_thousands_of_digits_is_refused_in_words(accountant: Accountant) -> None:
    with pytest.raises(InvalidParameter, match=r"reports must be a whole number from 1 to \d+: got an int$"):
        accountant.spend("alice", OUE, reports=10**5000)


class Nameless(Mechanism):
    """Half written: it has a promise and no name."""

    guarantee = Pure(1)


class Promiseless(Mechanism):
    """Half written: it has a name and no promise."""

    name = "promiseless"


class Confused(Mechanism):
    """It has a number for a promise."""

    name = "confused"
    guarantee = 1.0


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (Mechanism(), r"Mechanism\(\), which has no name"),
        (Nameless(), r"Nameless\(\), which has no name"),
        (Promiseless(), r"Promiseless\(\), whose guarantee is None"),
        (Confused(), r"Confused\(\), whose guarantee is 1.0"),
    ],
)
def test_mechanism_half_written_charges_no_user(accountant: Accountant, made: Any, found: str) -> None:
    with pytest.raises(InvalidParameter, match=f"must be a mechanism with a name and a guarantee: got {found}"):
        accountant.spend("alice", made)
    assert accountant.history("alice") == []
