"""The description of the API: complete, with examples that equal real requests and responses."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
import service_examples
from ldp_budget import Accountant
from ldp_budget_service import create_app
from ldp_budget_service.error_codes import MEANINGS, STATUSES
from ldp_budget_service.schemas import examples


@pytest.fixture(scope="module")
def described() -> Any:
    return create_app(Accountant(":memory:")).openapi()


def operations(described: Any) -> dict[tuple[str, str], Any]:
    return {
        (method.upper(), path): operation
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    }


def test_examples_equal_the_recorded_responses() -> None:
    found = service_examples.play()
    for told, recorded in zip(json.loads(json.dumps(found)), examples(), strict=True):
        assert same(told, recorded), f"{told['title']}: record again with `python tests/helpers/service_examples.py`"


def same(told: Any, recorded: Any) -> bool:
    """Equal, but for the last digits of what was worked out in doubles."""
    if isinstance(told, float) and isinstance(recorded, float):
        return told == pytest.approx(recorded, rel=1e-9)
    if isinstance(told, dict) and isinstance(recorded, dict):
        return told.keys() == recorded.keys() and all(same(told[name], recorded[name]) for name in told)
    if isinstance(told, list) and isinstance(recorded, list):
        return len(told) == len(recorded) and all(map(same, told, recorded))
    return bool(told == recorded)


def test_operations_have_examples_of_request_and_response(described: Any) -> None:
    played = {(each["method"], each["route"]): each for each in examples() if each["status"] < 300}
    assert set(operations(described)) == set(played)
    for operation, example in played.items():
        assert ("requestBody" in operations(described)[operation]) == (example["body"] is not None), operation


def test_responses_match_their_schema(described: Any) -> None:
    jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="no schemathesis: pip install 'ldp-budget[interop]'")
    for example in examples():
        operation = operations(described)[example["method"], example["route"]]
        assert str(example["status"]) in operation["responses"], example["title"]
        content = operation["responses"][str(example["status"])].get("content", {})
        for media, told in content.items():
            if "ndjson" not in media and "json" in media:
                schema = {**told["schema"], "components": described["components"]}
                jsonschema_rs.validate(schema, example["answer"])


def test_errors_are_problem_details(described: Any) -> None:
    assert described["openapi"].startswith("3.1")
    for operation, told in operations(described).items():
        for status, response in told["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], (operation, status)


def test_routes_have_a_description(described: Any) -> None:
    for operation, told in operations(described).items():
        assert told["summary"], operation
        if operation not in {("GET", "/livez"), ("GET", "/readyz")}:
            assert told["description"], operation
            assert told["tags"], operation


def test_problem_types_have_a_status_and_a_meaning() -> None:
    assert set(MEANINGS) == set(STATUSES)
    assert all(meaning.endswith(".") for meaning in MEANINGS.values())
