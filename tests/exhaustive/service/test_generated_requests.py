"""Every operation of the description under generated requests: no 5xx, and no undocumented response."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
pytest.importorskip("schemathesis", reason="no schemathesis: pip install 'ldp-budget[interop]'")

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from ldp_budget import Accountant, Collection, Limit, mechanism
from ldp_budget_service import Settings, create_app
from ldp_budget_service.api_keys import ApiKeys

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@schemathesis.serializer("application/x-ndjson")
def lines(context: Any, value: Any) -> bytes:
    """Generated lines, most of which are none."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


class Site:
    """A service that knows what the examples name."""

    def __init__(self) -> None:
        self.accountant = Accountant(":memory:")
        self.accountant.set_policy("default", [Limit("lifetime", epsilon=1000)])
        self.accountant.add_collection(Collection("party", mechanism("oue")(epsilon="1", domain_size=3)))
        secret = ApiKeys(self.accountant).create("generated", ["admin"])[1]
        options = Settings(address_rate=0, question_seconds=2)
        self.app = create_app(self.accountant, options)
        self.schema = schemathesis.openapi.from_asgi("/openapi.json", self.app)
        self.headers = {"Authorization": f"Bearer {secret}"}


def hold(site: Site, examples: int, mode: GenerationMode) -> None:
    """Generate requests for each operation, and look at each answer."""
    for result in site.schema.get_all_operations():
        ask(site, result.ok(), examples, mode)


def ask(site: Site, operation: Any, examples: int, mode: GenerationMode) -> None:
    strategy = operation.as_strategy(generation_mode=mode)
    if strategy.is_empty:
        return

    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def look(case: Any) -> None:
        answer = case.call(headers=site.headers)
        case.validate_response(answer, checks=CHECKS)

    with suppress(Unsatisfiable):  # where nothing can be wrong about a request
        look()


MANY = 12


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.accountant.close()


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_generated_requests_get_documented_responses(site: Site, mode: str) -> None:
    hold(site, MANY, GenerationMode[mode.upper()])
