"""Names of tests: `test_<unit>_<condition>_<result>`, so that a reader finds a test from its name alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
LEAST_WORDS = 3
NO_UNIT = {"a", "an", "the", "it", "its", "this", "that", "these", "what", "whatever", "who", "whoever", "whose"}
"""Words that name no unit at the start of a name."""


def names() -> Iterator[tuple[str, str]]:
    """The file and the name of every test, those of the contracts that several stores inherit included."""
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield str(path.relative_to(TESTS)), node.name


@pytest.mark.slow
def test_names_of_tests_have_at_least_three_words() -> None:
    found = list(names())
    assert len(found) > 2_000
    assert [each for each in found if len(each[1].removeprefix("test_").split("_")) < LEAST_WORDS] == []


@pytest.mark.slow
def test_names_of_tests_begin_with_the_unit() -> None:
    assert [each for each in names() if each[1].removeprefix("test_").split("_")[0] in NO_UNIT] == []
