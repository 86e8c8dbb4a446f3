"""Metrics of the ledger for Prometheus, and the alert rules and the Grafana dashboard that use them."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
pytest.importorskip("yaml", reason="no PyYAML: pip install 'ldp-budget[docs]'")

import yaml
from prometheus_client.parser import text_string_to_metric_families

from fixed_clock import Clock
from ldp_budget import Accountant, mechanism
from ldp_budget_service.app import create_app
from ldp_budget_service.error_codes import STATUSES
from ldp_budget_service.observability.verification import Verifications
from ldp_budget_service.settings import Settings
from service_threads import Served

RR = mechanism("randomized-response")
FOLDER = Path(__file__).parents[3] / "service" / "monitoring"
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
METRIC = re.compile(r"\b(ldp_budget_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)=(~?)"([^"]*)"')


def collected(accountant: Accountant) -> dict[str, float]:
    """The samples of a scrape, by name and labels."""
    registry = create_app(accountant, Settings(usage_seconds=0)).state.metrics.registry
    samples = (sample for family in registry.collect() for sample in family.samples)
    return {" ".join([sample.name, *sample.labels.values()]): sample.value for sample in samples}


# -- metrics of the ledger -----------------------------------------------------------------------------------------


def test_limit_gauges_count_the_users_by_policy_and_limit(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=4", "day=1"])
    accountant.set_policy("research", ["lifetime=2,1e-6,zcdp"])
    for user, epsilon in (("alice", "0.8"), ("bob", 1), ("carol", "0.1"), ("dave", "0.79")):
        accountant.spend(user, RR(epsilon=epsilon))
    found = collected(accountant)
    name = "ldp_budget_limit_users"
    assert [found[f"{name} default day basic {used}"] for used in (80, 100)] == [2, 1]
    assert [found[f"{name}_ratio default day basic {used}"] for used in (80, 100)] == [0.5, 0.25]
    assert found[f"{name} default lifetime basic 80"] == 0
    assert found[f"{name}_ratio research lifetime zcdp 80"] == 0.75
    clock.advance(days=1)
    assert collected(accountant)[f"{name}_ratio default day basic 80"] == 0


def test_verification_gauges_show_the_newest_result(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", RR(epsilon=1))
        assert not [name for name in collected(accountant) if "verification" in name]
        verifications = Verifications(accountant, hours=24)
        verifications.run_if_due()
        assert collected(accountant)["ldp_budget_verification_ok"] == 1
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("UPDATE window_sums SET epsilon = 1")
        connection.close()
        verifications.run_if_due()
        assert collected(accountant)["ldp_budget_verification_ok"] == 1  # it was verified less than a day ago
        clock.advance(hours=25)
        verifications.run_if_due()
        found = collected(accountant)
    assert (found["ldp_budget_verification_ok"], found["ldp_budget_verification_problems"]) == (0, 1)
    assert found["ldp_budget_verification_timestamp_seconds"] == clock.now.timestamp()


def test_verification_thread_runs_once_and_ends_with_the_service() -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        with Served(accountant, Settings(verify_hours=1)) as served:
            deadline = threading.Event()
            while served.app.state.verifications.last() is None:
                assert not deadline.wait(0.01)
        assert [record.kind for record in accountant.records()] == ["verified"]


# -- the files that are shipped ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """The names of all samples that /metrics can have, each with the labels of those that it has."""
    with Accountant(":memory:") as accountant, Served(accountant, Settings(usage_seconds=0)) as served:
        accountant.set_policy("default", ["lifetime=1"])
        secret = served.secret()
        for key in ("a", "b"):
            body = {"user": "alice", "mechanism": {"name": "rr", "epsilon": "0.6"}}
            served.ask("POST", "/v1/spends", body, secret, Idempotency_Key=key)
        served.ask("POST", "/v1/ledger/verifications", secret=secret)
        text = served.ask("GET", "/metrics", secret=secret).body.decode()
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for suffix in SUFFIXES.get(family.type, ("",)):
            labels.setdefault(family.name + suffix, set())
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "ldp-budget.rules.yml").read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def panels() -> list[dict[str, Any]]:
    return list(json.loads((FOLDER / "grafana-dashboard.json").read_text(encoding="utf-8"))["panels"])


QUERIES = {
    **{rule["alert"]: [rule["expr"]] for rule in rules()},
    **{panel["title"]: [target["expr"] for target in panel["targets"]] for panel in panels()},
}


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_uses_metrics_labels_and_values_that_are_exported(
    name: str, exported: dict[str, set[str]]
) -> None:
    outcomes = {"spent", "reserved", "refused", "repeated", "committed", "voided", "expired"}
    known = {"outcome": outcomes, "code": set(STATUSES), "used": {"80", "100"}, "route": {"/v1/spends"}}
    for query in QUERIES[name]:
        found = METRIC.findall(query)
        assert found or query.startswith("up{")
        for metric, matchers in found:
            assert metric in exported
            for label, _, values in MATCHER.findall(matchers):
                assert label in exported[metric]
                assert set(values.split("|")) <= known[label]


# -- the cache of the statistics -----------------------------------------------------------------------------------
