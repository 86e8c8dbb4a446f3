"""The survey page in a real browser, over a real server: requests of the device, and texts for the respondent."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import case_text

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

import axe_core
from chromium import CHROMIUM, chromium, devices
from ldp_budget import mechanism
from ldp_budget.registry.public_definition import digest_of
from survey_respondents import ARRIVED, SEND, WAITING, Respondent, let_take_part, opened
from survey_site import WAYS, Site, ledger, running

REPORTS = re.compile(r"/v1/collections/[^/]+/reports$")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("survey")
    with ledger(folder / "budget.db") as accountant, running(accountant) as made:
        yield made


@pytest.fixture
def device(browser: Any) -> Iterator[Callable[..., Any]]:
    with devices(browser) as made:
        yield made


def answered(page: Any, link: str, answer: str = "bike") -> Any:
    opened(page, link)
    page.get_by_label(answer).check()
    page.click(SEND)
    return page


def sent_by(page: Any) -> list[Any]:
    """Record the requests that carry a report from now on."""
    found: list[Any] = []
    page.on("request", lambda request: found.append(request) if REPORTS.search(request.url) else None)
    return found


def entries(page: Any) -> Any:
    """Return the data stored on the device."""
    return page.evaluate(case_text("integration_survey_page.entries.mjs"))


# -- many respondents ----------------------------------------------------------------------------------------------


class Traveller(Respondent):
    """A respondent who says how they come to work."""

    def __init__(self, number: int, way: str) -> None:
        super().__init__(number, way)
        self.answer = WAYS[(0, 1, 1, 2, 3, 3, 3)[number % 7]]

    def link(self, site: Site) -> str:
        return site.link(self.user)

    async def choose(self, page: Any) -> None:
        await page.get_by_label(self.answer).check()

    def use_up(self, site: Site) -> None:
        spent = site.accountant.spend(self.user, site.accountant.collection("commute").mechanism, reports=2)
        assert spent.status == "spent"


def all_take_part(site: Site, respondents: list[Traveller], at_once: int) -> None:
    program = chromium()
    from playwright.async_api import async_playwright

    async def play() -> None:
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=program, args=CHROMIUM)
            await let_take_part(browser, site, respondents, at_once, 30_000)
            await browser.close()

    asyncio.run(play())


def check_all(site: Site, respondents: list[Traveller], refused: int) -> None:
    """Check one receipt, one charge and one report of each respondent who was not refused, and a correct estimate."""
    took_part = [each for each in respondents if not each.refused]
    assert [each.way for each in respondents if each.refused] == ["used up"] * refused
    assert len({each.receipt for each in took_part}) == len(took_part) == len(respondents) - refused
    assert {site.charged(each.user) for each in took_part} == {1}
    taken = site.taken()
    assert len(taken) == len(took_part)
    mechanism = site.accountant.collection("commute").mechanism
    reports = np.frombuffer(b"".join(taken), np.uint8).reshape(len(taken), 1)
    low, high = mechanism.estimate(reports).interval(1 - 1e-9)
    true = [sum(each.answer == way for each in took_part) for way in WAYS]
    assert ((low <= true) & (true <= high)).all(), (low, true, high)


def ways(**counts: int) -> list[Traveller]:
    named = [way.replace("_", " ") for way, count in counts.items() for _ in range(count)]
    return [Traveller(number, way) for number, way in enumerate(named)]


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Site]:
    with ledger(tmp_path / "budget.db") as accountant, running(accountant) as made:
        yield made


@pytest.mark.exhaustive
def test_respondents_answering_in_five_ways_are_charged_once_each(own_site: Site) -> None:
    respondents = ways(plain=1, reload=1, double_click=1, offline=1, used_up=1)
    all_take_part(own_site, respondents, at_once=2)
    check_all(own_site, respondents, refused=1)


# -- texts ---------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_receipt_file_has_no_answer_and_no_link(site: Site, device: Any, tmp_path: Path) -> None:
    link = site.link("saver")
    page = answered(device(), link, "bus")
    page.wait_for_selector(ARRIVED)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the receipt").click()
    saved.value.save_as(tmp_path / "receipt.json")
    text = (tmp_path / "receipt.json").read_text()
    found = json.loads(text)
    assert saved.value.suggested_filename == "commute.receipt.json"
    assert found["receipt"]["receipt"] == page.inner_text("#number")
    assert bytes.fromhex(found["report"]).hex(" ") == page.inner_text("#hex")
    assert found["definition"] == site.accountant.collection("commute").client
    assert link.partition("#")[2].partition("~")[0] not in text
    assert not {"answer", "token"} & set(found)


@pytest.mark.exhaustive
def test_page_after_declining_sends_and_stores_nothing(site: Site, device: Any) -> None:
    page = opened(device(), site.link("absent"))
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.get_by_label("car").check()
    page.get_by_role("button", name="Don’t take part").click()
    page.wait_for_selector("text=You are not taking part")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.wait_for_timeout(500)
    assert (requests, site.charged("absent")) == ([], 0)
    assert entries(page) == {"spent": 0, "kept": []}
    page.reload()
    page.wait_for_selector("[data-notice=nolink]")


@pytest.mark.exhaustive
def test_page_without_an_answer_sends_nothing_and_says_so(site: Site, device: Any) -> None:
    page = opened(device(), site.link("hasty"))
    sent = sent_by(page)
    page.click(SEND)
    assert page.inner_text("#error") == "Please choose one of the answers. Nothing was sent."
    assert page.evaluate("document.activeElement.name") == "answer"
    assert (sent, entries(page)["kept"]) == ([], [])


# -- links ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [lambda link: link[:-60], lambda link: link[: link.index(".", link.index("#")) + 9]])
def test_page_of_a_link_that_was_cut_says_so(site: Site, device: Any, end: Callable[[str], str]) -> None:
    page = opened(device(), end(site.link("cut", agreed=False) + "~" + "0" * 70))
    assert page.inner_text("h1[data-problem=cut]") == "This link was cut"
    assert page.locator(SEND).count() == 0
    opened(page.context.new_page(), site.link("cut") + ".)").wait_for_selector(SEND)


# -- once ----------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_tabs_of_one_link_send_one_report(site: Site, device: Any) -> None:
    first = opened(device(), site.link("tabs"))
    second = opened(first.context.new_page(), site.link("tabs"))
    for page, answer in ((first, "walk"), (second, "car")):
        page.get_by_label(answer).check()
    first.evaluate(f"document.querySelector('{SEND}').click()")
    second.evaluate(f"document.querySelector('{SEND}')?.click()")  # it may have heard of the first report
    for page in (first, second):
        page.wait_for_selector(ARRIVED)
    assert first.inner_text("#hex") == second.inner_text("#hex")
    assert site.charged("tabs") == 1
    assert entries(first)["spent"] == 1


@pytest.mark.exhaustive
def test_page_with_a_lost_response_retries_with_the_same_key(site: Site, device: Any) -> None:
    page = device()
    sent = sent_by(page)
    lost = []

    def lose(route: Any) -> None:
        lost.append(route.fetch().status)  # the service has taken it, and the device gets no answer
        route.abort()

    page.route(REPORTS, lose, times=2)
    answered(page, site.link("unlucky")).wait_for_selector(ARRIVED)
    assert lost == [200, 200]
    assert len({(each.headers["idempotency-key"], each.post_data_buffer) for each in sent}) == 1
    assert site.charged("unlucky") == 1


@pytest.mark.exhaustive
def test_page_offline_keeps_the_report_and_sends_it_when_reopened(site: Site, device: Any) -> None:
    page = opened(device(), site.link("traveller"))
    page.route(REPORTS, lambda route: route.abort())
    page.get_by_label("bus").check()
    page.click(SEND)
    page.wait_for_selector(WAITING)
    kept = entries(page)["kept"][0]["report"]
    # A person who saw it now could stop it from being sent, and so reveal something.
    assert (page.locator("#hex").count(), page.locator("table").count()) == (0, 0)
    page.close()
    assert site.charged("traveller") == 0
    # Any page of the service sends it, also that of the budget.
    later = opened(page.context.new_page(), f"{site.origin}/me")
    later.wait_for_selector("text=received")
    assert bytes(kept) in site.taken()


@pytest.mark.exhaustive
def test_page_after_the_answer_keeps_no_link_on_the_device(site: Site, device: Any) -> None:
    """The token of a link stayed in IndexedDB: on a shared device the next user found the earlier user's charges."""
    link = site.link("shared device")
    token = link.partition("#")[2].partition("~")[0]
    page = answered(device(), link)
    page.wait_for_selector(ARRIVED)
    page.reload()
    page.wait_for_selector(ARRIVED)  # this tab still has it
    kept = page.evaluate(case_text("integration_survey_page.kept.mjs"))
    assert "shared device" not in kept
    assert token not in kept
    next_user = opened(page.context.new_page(), site.page())
    assert next_user.locator("[data-notice=nolink]").count() == 1
    next_user.goto(f"{site.origin}/me")
    next_user.wait_for_selector("#services")
    assert next_user.locator("#services .service").count() == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("status", "code", "state"),
    [(422, "key-conflict", "taken"), (409, "wrong-collection", "changed"), (400, "not-supported", "rejected")],
)
def test_page_with_lost_answer_and_refused_retry_does_not_say_that_nothing_was_charged(
    site: Site, device: Any, status: int, code: str, state: str
) -> None:
    """An instance took and charged a report, its answer was lost, and another instance refused the retry: the page
    said "not counted, nothing charged"."""
    user, page = f"unknowing {state}", device()

    tries: list[int] = []

    def lose_then_refuse(route: Any) -> None:
        if tries:
            route.fulfill(status=status, json={"type": f"/problems/{code}", "status": status})
        else:
            tries.append(route.fetch().status)
            route.abort()

    page.route(REPORTS, lose_then_refuse)
    answered(page, site.link(user)).wait_for_selector(f"h1[data-state={state}]")
    said = page.inner_text("main")
    assert site.charged(user) == 1
    assert "This page cannot know" in said
    assert "charged nothing" not in said
    assert "not counted" not in said


# -- refused -------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_page_without_budget_offers_and_draws_nothing(site: Site, device: Any, coin: Any) -> None:
    assert site.accountant.spend("empty", coin("1.5"))
    page = opened(device(), site.link("empty"))
    assert "Your budget per day has too little left" in page.inner_text("[data-notice=noservice]")
    assert "How did you come to work today?" in page.inner_text("main")
    assert page.locator(SEND).count() == 0


@pytest.mark.exhaustive
def test_page_refuses_a_report_beyond_the_device_budget(device: Any) -> None:
    with ledger() as accountant, running(accountant, device_lifetime="0.75") as small:
        page = opened(device(), small.link("careful"))
        assert page.locator("[data-notice=nodevice]").count() == 1
        # Of a memoised answer it is known when the answer is: the second one costs as much again.
        answered(page, small.link("careful", "start page"), "bus").wait_for_selector(ARRIVED)
        answered(page, small.link("careful", "start page", round="2"), "car")
        page.wait_for_selector("[data-notice=nodevice]")
        assert entries(page)["spent"] == 0.5
        assert small.charged("careful") == 1


# -- nothing believed ----------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_page_with_a_changed_definition_sends_nothing(site: Site, device: Any) -> None:
    def changed(route: Any) -> None:
        found = route.fetch().json()
        route.fulfill(json={**found, "question": "Did you vote?"})

    page = device()
    page.route(re.compile(r"/v1/collections/commute$"), changed)
    opened(page, site.link("watchful"))
    assert page.locator("h1[data-problem=changed]").count() == 1
    assert page.locator(SEND).count() == 0


def without_noise(made: dict[str, Any]) -> None:
    made["steps"][-1] = ["row", ["onehot", "value", 4]]


def of_epsilon_20(made: dict[str, Any]) -> None:
    made["steps"] = mechanism("oue")(epsilon=20, domain_size=4).client_program().to_json()["steps"]


def with_side_channel(made: dict[str, Any]) -> None:
    made["steps"].append(["copy", ["add", "value", 0]])
    made["report"]["parts"].append(["uint", "copy", 1, 1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("attack", [without_noise, of_epsilon_20, with_side_channel], ids=lambda each: each.__name__)
def test_page_with_program_that_gives_away_more_sends_nothing(
    site: Site, device: Any, attack: Callable[[dict[str, Any]], None]
) -> None:
    """The service stated ε = 1 of a program without noise, of ε = 20, or that sends the answer too. The page showed
    ε = 1, charged 1 and sent the report."""
    made = site.accountant.collection("commute").definition()
    attack(made)
    made["digest"] = digest_of(made)
    page = device()
    page.route(re.compile(r"/v1/collections/commute$"), lambda route: route.fulfill(json=made))
    page.route(
        re.compile(r"/v1/me$"), lambda route: route.fulfill(json={**route.fetch().json(), "digest": made["digest"]})
    )
    opened(page, site.link(f"believing {attack.__name__}", agreed=False))
    assert page.locator("h1[data-problem=unconfirmed]").count() == 1
    assert page.locator(SEND).count() == 0
    assert "ε = 1" not in page.inner_text("main")
    assert entries(page)["spent"] == 0


def with_answer_epsilon(made: dict[str, Any]) -> None:
    made["guarantee"]["answer_epsilon"] = "0.02"


def with_lifetime_epsilon(made: dict[str, Any]) -> None:
    made["guarantee"].update(answer_epsilon="1.0", lifetime_epsilon="1.02")


def shown_with(site: Site, device: Any, name: str, change: Callable[[dict[str, Any]], None]) -> Any:
    """The page of a changed definition that the service vouches for."""
    made = site.accountant.collection("commute").definition()
    change(made)
    made["digest"] = digest_of(made)
    page = device()
    page.route(re.compile(r"/v1/collections/commute$"), lambda route: route.fulfill(json=made))
    page.route(
        re.compile(r"/v1/me$"), lambda route: route.fulfill(json={**route.fetch().json(), "digest": made["digest"]})
    )
    return opened(page, site.link(name, agreed=False))


@pytest.mark.parametrize("figure", [with_answer_epsilon, with_lifetime_epsilon], ids=lambda each: each.__name__)
def test_page_shows_no_figure_of_repeated_answers_of_a_program_that_draws_each_time(
    site: Site, device: Any, figure: Callable[[dict[str, Any]], None]
) -> None:
    """The page said: however often you give the same answer, at most 50.5% sure."""
    page = shown_with(site, device, f"fresh {figure.__name__}", figure)
    assert page.locator("h1[data-problem=changed]").count() == 1
    assert page.locator(SEND).count() == 0
    assert "50.5%" not in page.inner_text("main")


@pytest.mark.parametrize("change", [{"epsilon": None}, {"delta": "1"}, {"delta": "1e3"}], ids=str)
def test_page_shows_no_figure_of_a_survey_that_promises_nothing(
    site: Site, device: Any, change: dict[str, Any]
) -> None:
    page = shown_with(site, device, f"nothing {change}", lambda made: made["guarantee"].update(change))
    page.get_by_text("How it works").click()
    page.get_by_text("In figures").click()
    assert page.locator(SEND).count() == 0
    assert "guarantees nothing" in page.inner_text("main")
    for text in ("ε = 1", "ε of one report", "δ of one report", "73.2%"):
        assert text not in page.inner_text("main")


@pytest.mark.exhaustive
def test_page_with_a_link_of_another_definition_sends_nothing(site: Site, device: Any) -> None:
    page = opened(device(), f"{site.link('agreed', agreed=False)}~{'0' * 32}")
    assert page.locator("h1[data-problem=changed]").count() == 1


@pytest.mark.exhaustive
def test_page_with_another_definition_than_at_the_first_visit_sends_nothing(site: Site, device: Any) -> None:
    other = site.accountant.collection("many").definition()
    page = opened(device(), site.link("returning", agreed=False))
    page.route(re.compile(r"/v1/collections/commute$"), lambda route: route.fulfill(json=other))
    opened(page, site.page())
    assert page.locator("h1[data-problem=changed]").count() == 1


def test_page_writes_nothing_to_the_console_of_the_browser(site: Site, device: Any) -> None:
    """A preload with a digest was a warning in every Chromium."""
    page = device()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    opened(page, site.link("quiet"))
    page.get_by_label("bus").check()
    page.click(SEND)
    page.wait_for_selector("h1[data-state=arrived]")
    page.wait_for_timeout(500)
    assert said == []


@pytest.mark.exhaustive
def test_service_with_another_definition_takes_no_report(site: Site, device: Any) -> None:
    page = opened(device(), site.link("mixed up"))
    page.route(REPORTS, lambda route: route.continue_(headers={**route.request.headers, "x-collection": "0" * 64}))
    page.get_by_label("bus").check()
    page.click(SEND)
    page.wait_for_selector("h1[data-state=changed]")
    assert site.charged("mixed up") == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["survey.js", "survey.css"])
def test_page_with_a_file_changed_by_one_byte_does_not_use_it(site: Site, device: Any, name: str) -> None:
    page = device()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))

    def tampered(route: Any) -> None:
        body = route.fetch().body()
        route.fulfill(body=body[:-1] + b" ", content_type="text/css" if name.endswith("css") else "text/javascript")

    page.route(f"**/static/{name}", tampered)
    page.goto(site.link("target"))
    page.wait_for_timeout(1000)
    assert any("integrity" in text for text in said)
    if name == "survey.js":
        assert page.locator(SEND).count() == 0
        assert page.evaluate("document.body.dataset.ready ?? null") is None
        page.get_by_text("was changed on the way and your browser did not run it").wait_for(state="visible")
    else:
        page.wait_for_selector(SEND)
        assert page.evaluate("document.styleSheets.length") == 0


@pytest.mark.exhaustive
def test_content_security_policy_blocks_other_scripts_and_requests(site: Site, device: Any) -> None:
    page = opened(device(), site.link("policed"))
    found = page.evaluate(case_text("integration_survey_page.found.mjs"))
    assert found == {
        **{"html": "TypeError", "script": "TypeError", "eval": "EvalError", "host": "TypeError"},
        **{"frame": "frame-src", "handler": "TypeError", "ran": False},
    }


@pytest.mark.exhaustive
def test_page_sends_the_link_nowhere_and_contacts_no_other_host(site: Site, device: Any) -> None:
    page = device()
    requests: list[Any] = []
    page.on("request", lambda request: requests.append(request))
    link = site.link("private", lang="de")
    token = link.partition("#")[2].partition("~")[0]
    opened(page, link)
    assert page.url == f"{site.page()}?lang=de"
    page.get_by_label("zu Fuß").check()
    page.click(SEND)
    page.wait_for_selector(ARRIVED)
    opened(page, f"{site.origin}/me?lang=de")
    page.wait_for_selector("#services table")
    assert {
        request.url.partition("/s/")[0].partition("/v1/")[0] for request in requests if "blob:" not in request.url
    }
    assert all(request.url.startswith(f"{site.origin}/") for request in requests)
    for request in requests:
        headers = request.all_headers()
        assert token not in request.url.partition("#")[0]
        assert "referer" not in headers
        assert "cookie" not in headers
        assert (token in headers.get("authorization", "")) == (
            "/v1/me" in request.url or bool(REPORTS.search(request.url))
        )
    assert page.evaluate("history.length") <= 3


# -- my budget -----------------------------------------------------------------------------------------------------


# -- accessibility ---------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_page_works_by_keyboard_only(site: Site, device: Any) -> None:
    page = opened(device(), site.link("typist"))

    def focused() -> str:
        return str(page.evaluate("(document.activeElement.innerText || document.activeElement.value || '').trim()"))

    def tab_to(text: str) -> None:
        for _ in range(15):
            page.keyboard.press("Tab")
            if text in focused():
                outline = page.evaluate(
                    """() => [document.activeElement, document.activeElement.closest("label")].some((each) =>
                        each && getComputedStyle(each).outlineStyle !== "none")"""
                )
                assert outline, f"nothing shows where the focus is: {text}"
                return
        raise AssertionError(f"{text} is not reached")

    page.keyboard.press("Tab")
    assert focused() == "Skip to the content"
    page.keyboard.press("Enter")
    tab_to("walk")
    page.keyboard.press("ArrowDown")
    assert page.get_by_label("bike").is_checked()
    tab_to("Randomize and send")
    page.keyboard.press("Enter")
    page.wait_for_selector(ARRIVED)
    page.wait_for_selector("h1:focus")
    assert "Sent, and received" in page.inner_text("#status")
    tab_to("Save the receipt")
    tab_to("My budget")
    page.keyboard.press("Enter")
    page.wait_for_url("**/me*")


# In the dark a page is the same but for these.
OF_COLOURS = ["color-contrast", "link-in-text-block"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("spoken", ["en", "ko", "de"])
def test_axe_finds_no_violation(site: Site, device: Any, axe: str, spoken: str, coin: Any) -> None:
    page = device(reduced_motion="reduce", viewport={"width": 390, "height": 800})
    user = f"axe {spoken}"

    def check(view: str) -> None:
        if not page.evaluate("'axe' in window"):
            page.evaluate(f"{axe}; void 0")
        for scheme, rules, least in (("light", axe_core.RULES, 21), ("dark", OF_COLOURS, 1)):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found = page.evaluate("(rules) => axe.run(document, { runOnly: rules })", rules)
            wrong = [
                (each["id"], each["nodes"][0]["html"], each["nodes"][0]["failureSummary"])
                for each in found["violations"]
            ]
            assert wrong == [], (view, scheme, wrong)
            assert len(found["passes"]) >= least

    opened(page, site.link(user, lang=spoken))
    for summary in page.locator("summary").all():
        summary.click()
    check("asking")
    page.locator("input[type=radio]").first.check()
    check("chosen")
    page.click(SEND)
    page.wait_for_selector(ARRIVED)
    check("sent")
    opened(page, f"{site.origin}/me?lang={spoken}")
    page.wait_for_selector("#services table")
    check("my budget")
    opened(page, site.link(user, "many", lang=spoken))
    page.click(SEND)
    check("something is missing")
    page.route(REPORTS, lambda route: route.abort())
    page.select_option("#answer", index=3)
    page.click(SEND)
    page.wait_for_selector(WAITING)
    check("waiting")
    assert site.accountant.spend(f"{user} poor", coin("1.9"))
    opened(page, site.link(f"{user} poor", lang=spoken))
    check("refused beforehand")
    opened(page, f"{site.origin}/s/nix?lang={spoken}")
    check("no such survey")
    opened(page, site.link(user, "weight", lang=spoken))
    check("a number")
