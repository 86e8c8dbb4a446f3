"""The reference: every public name, command, code and mechanism has its entry."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import ldp_budget
from ldp_budget.errors import LdpBudgetError
from ldp_budget_service.error_codes import STATUSES
from public_surface import everything, mechanism_cards, python_names

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference"
CARDS = sorted(page for page in (REFERENCE / "mechanisms").glob("*.md") if page.stem != "index")
# `public_surface` puts the folder of these modules on the path.
from reference_pages import error_page, http_pages, python_pages  # noqa: E402
from reference_pages.examples import examples  # noqa: E402

# -- commands ------------------------------------------------------------------------------------------------------


# -- HTTP ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_http_pages_have_a_request_and_a_response_for_every_operation() -> None:
    headings = [f"{method} {path}" for listed in http_pages.operations().values() for method, path, _ in listed]
    found = {}
    for _, lines in http_pages.pages():
        for section in "\n".join(lines).split("\n## ")[1:]:
            heading, _, text = section.partition("\n")
            found[heading] = text
    assert sorted(found) == sorted(headings)
    for heading, text in found.items():
        assert re.search(rf"^```text\n{heading.partition(' ')[0]} /", text, re.MULTILINE), heading
        assert re.search(r"^Response 2\d\d:", text, re.MULTILINE), heading


def test_http_response_with_the_members_of_one_above_links_to_it() -> None:
    shown: dict[str, str] = {}
    rows = {"status": 200, "answer": [{"a": list(range(99)), "b": "x" * 99}]}
    one = {"status": 200, "answer": {"b": "y" * 99, "a": list(range(99))}}
    other = {"status": 200, "answer": {"b": "y" * 99, "c": list(range(99))}}
    assert next(http_pages.response("GET /v1/rows", rows, shown)) == "Response 200:"
    assert next(http_pages.response("GET /v1/one", one, shown)) == (
        "Response 200: as that of [GET /v1/rows](#get-v1rows)."
    )
    assert next(http_pages.response("GET /v1/other", other, shown)) == "Response 200:"


# -- Python --------------------------------------------------------------------------------------------------------


def test_python_pages_have_every_public_name() -> None:
    text = "\n".join("\n".join(lines) for path, lines in python_pages.pages() if path != "python.md")
    documented = set(re.findall(r"^\.\. \S+:: (\S+)", text, flags=re.MULTILINE))
    assert {f"ldp_budget.{name}" for name in ldp_budget.__all__} <= documented
    assert set(python_pages.everything()) <= documented
    for _, _, names in python_names.PARTS:
        assert {f"{module.__name__}.{name}" for module, listed in names for name in listed} <= documented


def test_examples_cover_every_function_and_every_accountant_method() -> None:
    found = {
        name.rpartition(".")[2] if "Accountant." not in name else name for name in examples(REFERENCE / "examples")
    }
    methods = [public.name for public in everything() if public.name.startswith("Accountant.")]
    parts = [path for _, _, names in python_names.PARTS for path in python_pages._listed(names)]
    functions = [*python_pages.functions(), *(path.rpartition(".")[2] for path in parts if path.islower())]
    assert len(methods) >= 30
    assert [name for name in (*methods, *functions) if name not in found] == []


# -- errors --------------------------------------------------------------------------------------------------------


def test_error_entries_compared_with_the_codes_have_each_with_cause_and_remedy() -> None:
    entries = tomllib.loads(error_page.ENTRIES.read_text(encoding="utf-8"))
    assert sorted(entries) == sorted(error_page.codes())
    assert set(STATUSES) <= set(entries)
    assert {LdpBudgetError.code, ldp_budget.BudgetExceeded.code, "too-few-reports"} <= set(entries)
    for code, entry in entries.items():
        assert sorted(entry) == ["cause", "meaning", "remedy"], code
        assert all(text.endswith(".") for text in entry.values()), code


# -- mechanisms ----------------------------------------------------------------------------------------------------


def test_every_mechanism_has_a_card_and_every_card_a_mechanism() -> None:
    """A new mechanism needs docs/reference/mechanisms/NAME.md, like oue.md."""
    assert [page.stem for page in CARDS] == sorted(mechanism_cards.mechanisms())
