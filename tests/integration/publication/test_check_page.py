"""The static page in a real browser, opened from a file: it checks a folder, a receipt and a proof offline."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from published_survey import ROOT, PublishedSurvey

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER = ROOT / "clients" / "check"


def test_page_is_built_from_its_present_sources() -> None:
    spec = importlib.util.spec_from_file_location("build_page", FOLDER / "build_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (FOLDER / "check.html").read_text(encoding="utf-8") == module.page()


def test_refusal_reasons_are_translated_completely() -> None:
    """A reason is the last argument of `need` in the checker; its parts in `${…}` are `{}` in the texts."""
    source = (FOLDER / "check_books.mjs").read_text(encoding="utf-8")
    found = re.findall(r'need\(.*, (["`])((?:(?!\1).)+)\1\);', source)
    assert len(found) >= 44
    reasons = {re.sub(r"\$\{[^}]+\}", "{}", reason) for _, reason in found}
    for language in ("de", "ko"):
        texts = json.loads((FOLDER / "texts" / f"{language}.json").read_text(encoding="utf-8"))
        assert reasons <= texts["reasons"].keys()
        assert all(english.count("{}") == own.count("{}") for english, own in texts["reasons"].items())


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> PublishedSurvey:
    return PublishedSurvey(tmp_path_factory.mktemp("survey"), asked=30, users=40)


@pytest.fixture
def page(browser: Any) -> Iterator[Page]:
    context = browser.new_context(locale="en-US", offline=True)
    opened = context.new_page()
    opened.goto((FOLDER / "check.html").as_uri())
    yield opened
    context.close()


def _fill(page: Page, survey: PublishedSurvey, site: Path, proof: Path) -> str:
    page.set_input_files("#folder", str(site))
    page.fill("#key", survey.key.verifier_key)
    page.set_input_files("#receipt", str(survey.receipt("user3")))
    page.set_input_files("#proof", str(proof))
    page.wait_for_selector("#count:text-is('6')")
    page.click("#check")
    page.wait_for_selector("#result ul, #result .refused")
    return page.inner_text("#result")


@pytest.mark.exhaustive
def test_page_shows_what_is_proved(page: Page, survey: PublishedSurvey) -> None:
    shown = _fill(page, survey, survey.site, survey.write_proof("user3"))
    assert "Your charge of ε = 1 is among them." in shown
    assert "Your report is among the 30 reports." in shown
    assert "The published program lets a report reveal at most ε = 1.0" in shown
    page.click("nav button[lang=de]")
    page.click("#check")
    page.wait_for_selector("#result ul")
    assert "Ihre Abbuchung von ε = 1 ist dabei." in page.inner_text("#result")
    assert "Was nicht bewiesen ist" in page.inner_text("main")


@pytest.mark.exhaustive
def test_page_refuses_a_changed_file(page: Page, survey: PublishedSurvey, tmp_path: Path) -> None:
    site = shutil.copytree(survey.site, tmp_path / "site")
    data = bytearray((site / "reports.bin").read_bytes())
    data[-1] ^= 1
    (site / "reports.bin").write_bytes(data)
    shown = _fill(page, survey, site, survey.write_proof("user3"))
    assert "Refused" in shown
    assert "the reports are not those of the statement" in shown
    for language, reason in (
        ("de", "Grund: die Berichte sind nicht die der Erklärung"),
        ("ko", "이유: 보고서가 진술의 것과 다릅니다"),
    ):
        page.click(f"nav button[lang={language}]")
        page.click("#check")
        page.wait_for_selector("#result .refused + .refused")
        assert reason in page.inner_text("#result")
