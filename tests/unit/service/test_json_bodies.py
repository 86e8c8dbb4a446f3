"""Strict JSON: the fast parser and the standard one read the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from ldp_budget._files import strict_json
from ldp_budget_service import json_bodies
from ldp_budget_service.json_bodies import parsed

texts = st.text(st.characters(exclude_categories=()), max_size=4)
numbers = (
    st.floats() | st.integers(-(10**30), 10**30) | st.sampled_from([0.1, 1e-323, 2.2250738585072011e-308, 1e999])
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
digits = st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


def outcome(parse: Any, body: bytes) -> str:
    try:
        return repr(parse(body))
    except (HTTPException, ValueError):
        return "refused"


def strictly(body: bytes) -> Any:
    return strict_json(body.decode())


@given(value=values, ascii_only=st.booleans(), at=st.integers(0, 200), other=st.binary(max_size=3))
def test_parsed_body_is_that_of_the_standard_library(value: Any, ascii_only: bool, at: int, other: bytes) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    for text in (body, body[:at] + other + body[at:], body[:at]):
        assert outcome(parsed, text) == outcome(strictly, text)


@given(number=digits)
@example(number="1e400")
@example(number="-0")
@example(number="-0.0")
@example(number="9007199254740993")
@example(number="0.1000000000000000055511151231257827021181583404541015625")
@example(number="2.2250738585072012e-308")
@example(number="9" * 4400)
def test_number_of_a_body_is_that_of_the_standard_library(number: str) -> None:
    body = f'{{"a": {number}}}'.encode()
    assert outcome(parsed, body) == outcome(strictly, body)


@given(names=st.lists(st.sampled_from(["a", "b", "c:d", "\\u0061"]), min_size=1, max_size=4), nested=st.booleans())
def test_repeated_member_is_refused(names: list[str], nested: bool) -> None:
    inner = "{" + ", ".join(f'"{name}": 1' for name in names) + "}"
    body = (f'{{"x": [{inner}]}}' if nested else inner).encode()
    meant = [name.replace("\\u0061", "a") for name in names]
    if len(set(meant)) == len(meant):
        assert parsed(body) == json.loads(body)
        return
    with pytest.raises(HTTPException, match="more than once"):
        parsed(body)


def test_members_of_a_body_are_counted_at_every_level() -> None:
    assert json_bodies.members({"a": [{"b": 1}, {"c": {"d": 2}}], "e": "f"}) == 5
