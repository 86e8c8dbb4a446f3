"""The respondents' pages in Firefox and WebKit: a whole survey, its reload, `/me`, and the check of the receipt.

The other files of this folder do the same, and more, in Chromium.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
pytest.importorskip("cryptography", reason="no signature: pip install 'ldp-budget[fast]'")

from ldp_budget import Accountant
from ldp_budget_surveys.publication.publisher import Publisher
from other_engines import ENGINES, Page
from questionnaire_site import health
from survey_site import Site, running, with_surveys

SEND = "button[type=submit]"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("published")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, published: Path) -> Iterator[Site]:
    with Accountant(tmp_path_factory.mktemp("survey") / "budget.db") as accountant:
        with_surveys(accountant).add_collection(health("all", "all"))
        key = Publisher(accountant).new_key("ask.example.org/surveys").verifier_key
        with running(accountant, publications=str(published), respondent_rate=0) as made:
            made.log_key = f"~{hashlib.sha256(key.encode()).hexdigest()[:32]}"
            yield made


@pytest.fixture(scope="module", params=sorted(ENGINES))
def page(request: pytest.FixtureRequest) -> Iterator[Page]:
    with ENGINES[request.param]() as opened:
        yield opened


def test_whole_survey_its_reload_and_my_budget_in_other_engines(
    site: Site, page: Page, published: Path, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.params["page"]
    page.goto(site.link(f"{name} ana", "all", lang="en"))
    page.click(SEND)  # without answers
    errors = page.evaluate("[...document.querySelectorAll('.question .error')].map((each) => each.textContent)")
    assert ["Please choose" in each or "Please enter" in each for each in errors] == [True] * 3
    page.evaluate("document.querySelectorAll('fieldset').forEach((each) => each.querySelector('input').click())")
    page.evaluate("(document.querySelector('input[type=number]').value = '7.5')")
    assert "at most 88.1% sure" in page.evaluate("document.body.innerText")
    page.click(SEND)
    number = page.until("document.querySelector('#number')?.textContent")
    page.goto(f"{site.page('all')}?lang=en")  # the link stays in its tab
    assert page.until("document.querySelector('#number')?.textContent") == number
    assert site.charged(f"{name} ana") == 1

    page.goto(f"{site.origin}/me?lang=en")
    page.until("document.querySelectorAll('#services table, #service ~ * table').length > 0")
    said = page.evaluate("document.body.innerText")
    assert "Health and habits" in said
    assert re.search(r"ε = 2\b", said)


def test_receipt_is_checked_in_other_engines(
    site: Site, page: Page, published: Path, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.params["page"]
    page.goto(site.link(f"{name} ben", lang="en"))
    page.click("input[value=bike]")
    page.click(SEND)
    link = page.until("document.querySelector('#part a.secondary, section a.secondary')?.href")
    Publisher(site.accountant).publish(site.accountant.collection("commute"), published / "commute")
    page.goto("about:blank")
    page.goto(link)
    assert page.until("document.querySelector('h1[data-verdict]')?.dataset.verdict") == "proved"
    said = page.evaluate("document.querySelector('h1').textContent")
    assert re.fullmatch(r"Your report is counted, and the estimate follows from the \d reports\.", said)
    assert page.evaluate("location.hash") == ""
