"""The examples in the description of the API: what was asked of a fresh ledger in this order, and answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("examples.json")


def examples() -> list[dict[str, Any]]:
    """Each request with its answer, in order."""
    found: list[dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return found


def add_to(schema: dict[str, Any]) -> None:
    """Put the examples into a description: beside parameters, bodies and answers, under their titles."""
    for example in examples():
        operation = schema["paths"].get(example["route"], {}).get(example["method"].lower())
        if operation is not None:
            _add(operation, example)


def _add(operation: dict[str, Any], example: dict[str, Any]) -> None:
    title = example["title"]
    given = {**example["path"], **example["query"], **example["headers"]}
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in given:
            parameter.setdefault("examples", {}).setdefault(title, {"value": given[parameter["name"]]})
            parameter.get("schema", {}).pop("examples", None)
    if example["body"] is not None:
        _beside(operation.get("requestBody", {}).get("content", {}), title, example["body"])
    response = operation["responses"].get(str(example["status"]), {})
    _beside(response.setdefault("content", {}), title, example["answer"])


def _beside(content: dict[str, Any], title: str, value: Any) -> None:
    for media in content.values():
        media.setdefault("examples", {})[title] = {"summary": title, "value": value}
