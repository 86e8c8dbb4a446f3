"""Prometheus metrics of this process. No label contains a user, a secret or a path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

from ..auth import router_of
from ..problems import documented

if TYPE_CHECKING:
    from ldp_budget import Accountant

    from ..request_context import RequestContext
    from ..request_limits import Load

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PERIODS = ("lifetime", "day", "week", "month", "plan")
OTHER = "other"

router = router_of(tags=["watching"])


class Metrics:
    """Counters of the service. `load` gives the number of requests in flight."""

    def __init__(self, accountant: Accountant, load: Load) -> None:
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
        registry.register(_OfTheLedger(accountant))
        self._known: dict[tuple[str, ...], Any] = {}

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
            self._keys.labels(told.caller).inc()

    def count(self, outcome: str, number: int, periods: Iterable[str]) -> None:
        """Count the outcomes of charges, and the limits that refused them."""
        self._charges.labels(outcome).inc(number)
        if outcome != "refused":
            return
        for period in {period.partition(" ")[0] for period in periods}:
            self._refusals.labels(period if period in PERIODS else OTHER).inc(number)

    def asked(self) -> dict[str, int]:
        """Return the number of charges since the process started, by outcome."""
        samples = (sample for family in self._charges.collect() for sample in family.samples)
        return {each.labels["outcome"]: int(each.value) for each in samples if each.name.endswith("_total")}


class _OfTheLedger:
    """Collector of the ledger's metrics. It reads the ledger at each scrape."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant

    def describe(self) -> list[Any]:
        """Return an empty list, so that an unreadable ledger does not prevent the start."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the ledger's metrics. If the ledger cannot be read now, report only that."""
        repeated = CounterMetricFamily(
            "ldp_budget_ledger_repeated", "Transactions done again, by the engine's code for why", labels=["code"]
        )
        for code, number in self._accountant.repeated.items():
            repeated.add_metric([code], number)
        yield repeated
        try:
            entries = sum(int(end.partition(":")[2]) for end in self._accountant.position().split(","))
        except LdpBudgetError:
            yield GaugeMetricFamily("ldp_budget_ledger_readable", "Whether the ledger can be read", 0)
            return
        yield GaugeMetricFamily("ldp_budget_ledger_readable", "Whether the ledger can be read", 1)
        yield CounterMetricFamily("ldp_budget_journal_entries", "Entries of the journal", float(entries))


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **documented()},
)
def metrics(request: Request) -> Response:
    """Return the Prometheus metrics of this process since its start; for unbound keys only."""
    registry = request.app.state.metrics.registry
    return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
