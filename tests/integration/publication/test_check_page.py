"""The page `/check` in a real browser: from a respondent's receipt to a verdict, served and opened from a file."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
pytest.importorskip("cryptography", reason="no signature: pip install 'ldp-budget[fast]'")

import axe_core
from chromium import PHONE
from ldp_budget import Accountant
from ldp_budget_surveys.publication.publisher import Publisher
from published_survey import ROOT, PublishedSurvey
from survey_respondents import ARRIVED, SEND
from survey_site import WAYS, Site, running, with_surveys

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER = ROOT / "clients" / "check"
VERDICT = "h1[data-verdict]"


# -- what the page is made from --------------------------------------------------------------------------------------


def _imported(module: Path) -> set[Path]:
    """Return a module and all that it imports."""
    found, waiting = set[Path](), [module]
    while waiting:
        file = waiting.pop().resolve()
        if file not in found:
            found.add(file)
            text = "" if file.suffix == ".json" else file.read_text(encoding="utf-8")
            named = re.findall(r'^(?:import|export)\b[^"]*?from "(\.[^"]+)"|^import "(\.[^"]+)"', text, re.MULTILINE)
            waiting += [file.parent / (one or other) for one, other in named]
    return found


def test_page_is_built_from_its_present_sources() -> None:
    """`tests/exhaustive/service/test_survey_sources.py` builds it again."""
    found = re.search(
        r"// made by clients/survey/build\.mjs from (\d+) files with the digest ([0-9a-f]{64})",
        (FOLDER / "check.html").read_text(encoding="utf-8"),
    )
    assert found
    survey = ROOT / "clients" / "survey" / "src"
    inputs = _imported(survey / "check" / "main.js") | {survey / "check" / name for name in ("page.html", "page.css")}
    inputs |= {ROOT / "service" / "ldp_budget_service" / "web" / "static" / "survey.css"}
    digest = hashlib.sha256()
    for name in sorted(path.relative_to(ROOT).as_posix() for path in inputs):
        digest.update(f"{name}\n".encode() + (ROOT / name).read_bytes() + b"\n")
    assert (int(found[1]), found[2]) == (len(inputs), digest.hexdigest()), "run `npm run build` in clients/survey"


def _texts(language: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "texts" / f"{language}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("language", ["de", "ko"])
def test_texts_of_every_language_have_the_same_names_and_placeholders(language: str) -> None:
    english, own = _texts("en"), _texts(language)
    assert list(own) == list(english)
    for name in english.keys() - {"reasons"}:
        assert sorted(re.findall(r"\{\w+\}", own[name])) == sorted(re.findall(r"\{\w+\}", english[name])), name


@pytest.mark.parametrize("language", ["de", "ko"])
def test_refusal_reasons_are_translated_completely(language: str) -> None:
    """A reason is the last argument of `need` in the checker; its parts in `${…}` are `{}` in the texts."""
    source = (FOLDER / "check_books.mjs").read_text(encoding="utf-8")
    found = re.findall(r'need\(.*, (["`])((?:(?!\1).)+)\1\);', source)
    page = (ROOT / "clients" / "survey" / "src" / "check" / "main.js").read_text(encoding="utf-8")
    own = re.findall(r'new Refused\("([^"]+)"\)', page)
    assert len(found) >= 44
    assert len(own) == 2
    reasons = {re.sub(r"\$\{[^}]+\}", "{}", reason) for _, reason in found} | set(own)
    translated = _texts(language)["reasons"]
    assert reasons <= translated.keys()
    assert all(english.count("{}") == own.count("{}") for english, own in translated.items())


# -- served: from the receipt to the verdict -------------------------------------------------------------------------


class Published:
    """A service with a survey of three respondents that is published, and the address of their receipts' check."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self.folder = site, folder
        self.publisher = Publisher(site.accountant)

    def publish(self, collection: str = "commute") -> None:
        self.publisher.publish(self.site.accountant.collection(collection), self.folder / collection)

    def answer(self, page: Page, user: str, way: str = "bike", **options: Any) -> Page:
        page.goto(self.site.link(user, **options))
        page.get_by_label(way).check()
        page.click(SEND)
        page.wait_for_selector(ARRIVED)
        return page


@pytest.fixture
def survey(tmp_path: Path, device: Callable[..., Any]) -> Iterator[Published]:
    folder = tmp_path / "published"
    folder.mkdir()
    with Accountant(tmp_path / "budget.db") as accountant:
        with_surveys(accountant)
        key = Publisher(accountant).new_key("ask.example.org/surveys").verifier_key
        named = f"~{hashlib.sha256(key.encode()).hexdigest()[:32]}"
        with running(accountant, publications=str(folder), respondent_rate=0) as site:
            site.log_key = named
            yield Published(site, folder)


def _taken_part(survey: Published, device: Callable[..., Any], **options: Any) -> Page:
    """Three respondents answer; return the page of the last one, on a phone."""
    for place in range(2):
        survey.answer(device(), f"other {place}", WAYS[place])
    page: Page = survey.answer(device(viewport=PHONE, has_touch=True, timezone_id="Asia/Seoul", **options), "ana")
    survey.publish()
    return page


def _verdict(page: Page) -> tuple[str | None, str]:
    page.wait_for_selector(VERDICT)
    return page.get_attribute(VERDICT, "data-verdict"), page.inner_text(VERDICT)


COUNTED = "Your report is counted, and the estimate follows from the 3 reports."


def test_check_of_the_device_is_one_tap_from_the_receipt(survey: Published, device: Callable[..., Any]) -> None:
    page = _taken_part(survey, device)
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Check my part").tap()
    checking = opened.value
    assert _verdict(checking) == ("proved", COUNTED)
    assert checking.url == f"{survey.site.origin}/check?lang=en"
    said = checking.inner_text("main")
    for text in (
        "Your report is one of the 3 reports",
        "the one that your invitation names",
        "GMT+9",
        "95 % interval",
    ):
        assert text in said
    assert checking.locator(".warned").count() == 0
    checking.click("#languages a[lang=ko]")
    assert _verdict(checking)[1] == "내 보고서가 집계되었고, 추정값은 보고서 3개에서 그대로 계산됩니다."
    assert "출근길" in checking.inner_text("main")


def test_check_of_a_receipt_file_takes_three_taps(
    survey: Published, device: Callable[..., Any], tmp_path: Path
) -> None:
    page = _taken_part(survey, device)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the receipt").tap()
    saved.value.save_as(tmp_path / "receipt.json")
    phone = device(viewport=PHONE, has_touch=True)
    phone.goto(f"{survey.site.origin}/check")  # the first tap, on a link
    with phone.expect_file_chooser() as choosing:
        phone.get_by_text("Choose your receipt", exact=True).tap()  # the second
    choosing.value.set_files(tmp_path / "receipt.json")  # the third
    assert _verdict(phone) == ("proved", COUNTED)


def test_check_by_a_code_has_all_that_the_receipt_has(survey: Published, device: Callable[..., Any]) -> None:
    page = _taken_part(survey, device)
    page.get_by_text("Show my receipt as a QR code").tap()
    assert page.locator("svg.qr[role=img]").is_visible()
    link = page.get_by_role("link", name="Check my part").get_attribute("href")
    assert link is not None
    scanned = device(viewport=PHONE, locale="de")
    scanned.goto(f"{survey.site.origin}{link.replace('lang=en', 'lang=de')}")
    assert _verdict(scanned) == ("proved", "Ihr Bericht ist gezählt, und die Schätzung folgt aus den 3 Berichten.")
    assert scanned.evaluate("location.hash") == ""


def test_check_before_the_publication_says_so_and_refuses_nothing(
    survey: Published, device: Callable[..., Any]
) -> None:
    page = survey.answer(device(), "ana")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Check my part").click()
    opened.value.wait_for_selector("[data-asked=not-published]")
    survey.publish()
    opened.value.get_by_role("button", name="Try again").click()
    assert _verdict(opened.value)[0] == "proved"


def test_check_with_another_key_than_the_invitation_names_is_refused(
    survey: Published, device: Callable[..., Any]
) -> None:
    survey.site.log_key = "~" + "0" * 32
    page = _taken_part(survey, device)
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Check my part").click()
    assert _verdict(opened.value)[0] == "refused"
    assert "the key is not the one that your invitation names" in opened.value.inner_text("main")


def test_check_with_an_invitation_without_a_key_needs_attention(
    survey: Published, device: Callable[..., Any]
) -> None:
    survey.site.log_key = ""
    page = _taken_part(survey, device)
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Check my part").click()
    assert _verdict(opened.value) == ("warned", COUNTED)
    assert "Compare the public key" in opened.value.inner_text("#warned >> xpath=..")
    opened.value.get_by_text("Check other files").click()
    opened.value.fill("#key", survey.publisher.key().verifier_key)
    opened.value.get_by_role("button", name="Check", exact=True).click()
    opened.value.wait_for_selector(f"{VERDICT}[data-verdict=proved]")


def test_check_of_a_changed_folder_is_refused_in_each_language(survey: Published, device: Callable[..., Any]) -> None:
    page = _taken_part(survey, device)
    file = survey.folder / "commute" / "reports.bin"
    file.write_bytes(file.read_bytes()[:-1] + bytes([file.read_bytes()[-1] ^ 1]))
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Check my part").click()
    assert _verdict(opened.value) == ("refused", "These files do not prove the survey.")
    for language, reason in (
        ("en", "The reason: the reports are not those of the statement."),
        ("de", "Der Grund: die Berichte sind nicht die der Erklärung."),
        ("ko", "이유: 보고서가 진술의 것과 다릅니다."),
    ):
        opened.value.click(f"#languages a[lang={language}]")
        assert reason in opened.value.inner_text("main")


@pytest.mark.parametrize("spoken", ["en", "ko", "de"])
def test_check_page_has_no_axe_violation_and_scrolls_down_only(
    survey: Published, device: Callable[..., Any], axe: str, spoken: str
) -> None:
    page = _taken_part(survey, device, reduced_motion="reduce")
    link = page.get_by_role("link", name="Check my part").get_attribute("href")
    assert link is not None
    address = f"{survey.site.origin}{link.replace('lang=en', f'lang={spoken}')}"
    # The policy of the page lets no script in, also not that of axe-core.
    checking = device(viewport=PHONE, bypass_csp=True, reduced_motion="reduce")
    found = []

    def look(view: str) -> None:
        checking.evaluate(f"if (!window.axe) {{ {axe} }}; void 0")
        for scheme in ("light", "dark"):
            checking.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            result = checking.evaluate("(rules) => axe.run(document, { runOnly: rules })", axe_core.RULES)
            assert len(result["passes"]) > 15
            found.extend((view, scheme, each["id"], each["nodes"][0]["html"]) for each in result["violations"])
        if checking.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            found.append((view, "wide", "", ""))

    checking.goto(address.partition("#")[0])
    checking.wait_for_selector("#files", state="attached")
    look("start")
    checking.goto("about:blank")
    checking.goto(address)
    assert _verdict(checking)[0] == "proved"
    for summary in checking.locator("summary").all():
        summary.click()
    look("proved")
    (survey.folder / "commute" / "charges.bin").write_bytes(b"")
    checking.goto("about:blank")
    checking.goto(address)
    assert _verdict(checking)[0] == "refused"
    look("refused")
    assert found == []


# -- from a file, without a network ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def offline_survey(tmp_path_factory: pytest.TempPathFactory) -> PublishedSurvey:
    return PublishedSurvey(tmp_path_factory.mktemp("survey"), asked=30, users=40)


@pytest.fixture
def page(browser: Any) -> Iterator[Page]:
    context = browser.new_context(locale="en-US", offline=True)
    opened = context.new_page()
    opened.goto((FOLDER / "check.html").as_uri())
    yield opened
    context.close()


def _zipped(site: Path, out: Path, inside: str, method: int) -> Path:
    with zipfile.ZipFile(out, "w", method) as archive:
        for file in sorted(site.rglob("*")):
            if file.is_file():
                archive.write(file, f"{inside}{file.relative_to(site)}")
    return out


@pytest.mark.parametrize(("inside", "method"), [("", zipfile.ZIP_STORED), ("site/", zipfile.ZIP_DEFLATED)])
def test_saved_page_checks_a_zip_with_receipt_and_proof(
    page: Page, offline_survey: PublishedSurvey, tmp_path: Path, inside: str, method: int
) -> None:
    archive = _zipped(offline_survey.site, tmp_path / "site.zip", inside, method)
    given = [archive, offline_survey.receipt("user3"), offline_survey.write_proof("user3")]
    page.set_input_files("#files", given)
    page.wait_for_selector("[data-asked=nokey]")
    page.fill("#key", offline_survey.key.verifier_key)
    page.get_by_role("button", name="Check", exact=True).click()
    assert _verdict(page) == ("proved", "Your report is counted, and the estimate follows from the 30 reports.")
    said = page.inner_text("main")
    assert "Your charge of ε = 1 is one of 30" in said
    assert "A report reveals at most ε = 1.0" in said


def test_saved_page_without_a_receipt_proves_the_folder_and_warns(
    page: Page, offline_survey: PublishedSurvey, tmp_path: Path
) -> None:
    page.set_input_files("#files", _zipped(offline_survey.site, tmp_path / "site.zip", "", zipfile.ZIP_DEFLATED))
    page.fill("#key", offline_survey.key.verifier_key)
    page.get_by_role("button", name="Check", exact=True).click()
    assert _verdict(page) == ("warned", "The estimate follows from the 30 reports. Your own part was not checked.")
    assert "You gave no receipt." in page.inner_text("main")


@pytest.mark.parametrize(
    ("name", "content"), [("photo.jpg", b"\xff\xd8"), ("x.zip", b"PK\x03\x04" + b"0" * 60), ("x.json", b"{}")]
)
def test_saved_page_names_a_file_that_is_none_of_a_survey(
    page: Page, tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    page.set_input_files("#files", tmp_path / name)
    page.wait_for_selector(f".error:has-text('{name}')")


def test_saved_page_refuses_a_changed_file(page: Page, offline_survey: PublishedSurvey, tmp_path: Path) -> None:
    site = shutil.copytree(offline_survey.site, tmp_path / "site")
    data = bytearray((site / "reports.bin").read_bytes())
    data[-1] ^= 1
    (site / "reports.bin").write_bytes(data)
    page.set_input_files("#files", _zipped(site, tmp_path / "site.zip", "", zipfile.ZIP_STORED))
    page.fill("#key", offline_survey.key.verifier_key)
    page.get_by_role("button", name="Check", exact=True).click()
    assert _verdict(page)[0] == "refused"
    assert "the reports are not those of the statement" in page.inner_text("main")
