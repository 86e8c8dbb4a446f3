"""Prometheus metrics of this process. No label contains a user, a secret or a path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

import ldp_budget
from ldp_budget import LdpBudgetError
from ldp_budget.accounting.receipts import name_of_row

from ..auth import router_of
from ..problems import documented

if TYPE_CHECKING:
    from starlette.datastructures import State

    from ldp_budget import Accountant

    from ..request_attributes import RequestContext
    from ..request_limits import Load
    from ..usage_cache import UsageCache
    from .health import Health
    from .verification import Verifications

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PERIODS = ("lifetime", "day", "week", "month", "plan")
OTHER = "other"
USED_PERCENT = (80, 100)
"""The used parts of a limit for which users are counted."""
SECONDS = 2.0
"""Seconds after which a scrape uses older statistics of a large ledger."""

router = router_of(tags=["watching"])


class Metrics:
    """Counters of the service. `state` is the state of its application."""

    def __init__(self, accountant: Accountant, state: State) -> None:
        load: Load = state.load
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        Info("ldp_budget", "Which version runs", registry=registry).info({"version": ldp_budget.__version__})
        by_route = ("method", "route")
        self._requests = Counter(
            "ldp_budget_http_requests", "Requests answered", (*by_route, "status"), registry=registry
        )
        self._seconds = Histogram(
            "ldp_budget_http_request_seconds",
            "How long an answer took, of batches the whole of it",
            by_route,
            buckets=BUCKETS,
            registry=registry,
        )
        in_flight = Gauge("ldp_budget_http_requests_in_flight", "Requests under way", registry=registry)
        in_flight.set_function(lambda: load.in_flight)
        draining = Gauge("ldp_budget_draining", "1 while the service ends", registry=registry)
        draining.set_function(lambda: load.draining)
        self._problems = Counter(
            "ldp_budget_problems", "Errors answered, by their code", ("code",), registry=registry
        )
        self._keys = Counter(
            "ldp_budget_key_requests", "Requests with a good API key, by its name", ("key",), registry=registry
        )
        self._charges = Counter(
            "ldp_budget_charges",
            "Charges asked for, by how they ended; repeated: a replay",
            ("outcome",),
            registry=registry,
        )
        self._refusals = Counter(
            "ldp_budget_refusals",
            "Refusals by the period of a limit that did not fit",
            ("period",),
            registry=registry,
        )
        registry.register(_OfTheLedger(accountant, state))
        self._known: dict[tuple[Any, ...], Any] = {}

    def answered(self, method: str, route: str, status: int, seconds: float, told: RequestContext) -> None:
        """Count a request."""
        key = method, route, str(status)
        found = self._known.get(key)
        if found is None:
            found = self._requests.labels(*key), self._seconds.labels(method, route)
            self._known[key] = found
        found[0].inc()
        found[1].observe(seconds)
        if told.code is not None:
            self._problems.labels(told.code).inc()
        if told.caller is not None:
            self._labelled(self._keys, told.caller).inc()

    def count(self, outcome: str, number: int, periods: Iterable[str]) -> None:
        """Count the outcomes of charges, and the limits that refused them."""
        self._labelled(self._charges, outcome).inc(number)
        if outcome != "refused":
            return
        for period in {period.partition(" ")[0] for period in periods}:
            self._refusals.labels(period if period in PERIODS else OTHER).inc(number)

    def _labelled(self, counter: Counter, label: str) -> Any:
        """Return the part of a counter with this label; the library takes a lock to find it."""
        found = self._known.get((counter, label))
        if found is None:
            found = self._known[counter, label] = counter.labels(label)
        return found

    def asked(self) -> dict[str, int]:
        """Return the number of charges since the process started, by outcome."""
        samples = (sample for family in self._charges.collect() for sample in family.samples)
        return {each.labels["outcome"]: int(each.value) for each in samples if each.name.endswith("_total")}


class _OfTheLedger:
    """Collector of the ledger's metrics. It reads the ledger at each scrape."""

    def __init__(self, accountant: Accountant, state: State) -> None:
        self._accountant = accountant
        self._health: Health = state.health
        self._usage: UsageCache = state.usage
        self._verifications: Verifications = state.verifications

    def describe(self) -> list[Any]:
        """Return an empty list, so that an unreadable ledger does not prevent the start."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the ledger's metrics. If the ledger cannot be read now, yield only the checks that say so."""
        repeated = CounterMetricFamily(
            "ldp_budget_ledger_repeated", "Transactions done again, by the engine's code for why", labels=["code"]
        )
        for code, number in self._accountant.repeated.items():
            repeated.add_metric([code], number)
        yield repeated
        checks = GaugeMetricFamily(
            "ldp_budget_check_ok", "1 if a check of /readyz passes, 0 if no user can be charged", labels=["check"]
        )
        found = self._health.look()
        for name, why in found.items():
            checks.add_metric([name], why is None)
        yield checks
        if found["schema"] is None:
            with suppress(LdpBudgetError):  # the next scrape has the failed check
                yield from self._journal()
                yield from self._verified()
                yield from self._limits()

    def _journal(self) -> Iterator[Any]:
        entries = sum(int(end.partition(":")[2]) for end in self._accountant.position().split(","))
        yield CounterMetricFamily("ldp_budget_journal_entries", "Entries of the journal", float(entries))

    def _verified(self) -> Iterator[Any]:
        last = self._verifications.last()
        if last is None:
            return
        name = "ldp_budget_verification"
        yield GaugeMetricFamily(f"{name}_ok", "1 if the newest recorded verification found no problem", last.ok)
        yield GaugeMetricFamily(f"{name}_problems", "Problems that it found", last.problems)
        yield GaugeMetricFamily(f"{name}_timestamp_seconds", "When it was, since 1970", last.at.timestamp())

    def _limits(self) -> Iterator[Any]:
        try:
            limits = self._usage.get("limits", patience=SECONDS).value
        except TimeoutError:
            return
        labels = ["policy", "period", "rule", "used"]
        users = GaugeMetricFamily(
            "ldp_budget_limit_users", "Users who have used at least so many percent of a limit", labels=labels
        )
        ratio = GaugeMetricFamily("ldp_budget_limit_users_ratio", "The same as a part of all users", labels=labels)
        for limit in limits:
            for percent in USED_PERCENT:
                values = [limit["policy"], name_of_row(limit), limit["rule"], str(percent)]
                number = sum(limit["used"][percent:])
                users.add_metric(values, number)
                ratio.add_metric(values, number / max(1, limit["users"]))
        yield from (users, ratio)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **documented()},
)
def metrics(request: Request) -> Response:
    """Return the Prometheus metrics of this process since its start; for unbound keys only."""
    registry = request.app.state.metrics.registry
    return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
