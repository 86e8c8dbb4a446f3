"""The dashboard and the privacy officer's page in a real browser: their figures are those of the ledger."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from case_files import case_text

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

import axe_core
from ldp_budget import Accountant, Collection, mechanism
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.approvals import Approvals
from survey_site import Site, running

RR = mechanism("randomized-response")
OUE = mechanism("oue")(epsilon="0.25", domain_size=3)


class Past:
    """A clock that is some days behind, and advances normally."""

    def __init__(self, days: int) -> None:
        self.days = days

    def __call__(self) -> datetime:
        return datetime.now(UTC) - timedelta(days=self.days)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder, clock = tmp_path_factory.mktemp("office"), Past(3)
    with Accountant(folder / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=4", "day=1"])
        accountant.set_policy("=research", ["lifetime=2,1e-6,zcdp"])  # a spreadsheet would take it for a formula
        accountant.add_collection(Collection("coins, many", OUE, ("heads", "tails", "edge")))
        for day in range(4):
            clock.days = 3 - day
            for number in range(2 + 3 * day):
                accountant.spend(f"user {number}", accountant.collection("coins, many"), key=f"{day} {number}")
            accountant.spend("user 0", RR(epsilon="0.75"), key=f"more {day}")
            accountant.spend("user 1", RR(epsilon=3), key=f"too much {day}")
        accountant.erase("user 7")
        with running(accountant, usage_seconds=0) as made:
            yield made


@pytest.fixture(scope="module")
def secrets(site: Site) -> dict[str, str]:
    keys = ApiKeys(site.accountant)
    return {scope: keys.create(f"{scope}-key", [scope])[1] for scope in ("read", "policy", "audit", "spend", "admin")}


Open = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, site: Site, secrets: dict[str, str]) -> Iterator[Open]:
    """Open a page with the key of a scope, or without one; fail on script errors and on requests to other hosts."""
    contexts, wrong, asked = [], list[str](), list[str]()

    def open_page(path: str = "/", scope: str | None = "read", **options: Any) -> Any:
        context = browser.new_context(locale="en", **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{site.origin}{path}")
        page.wait_for_selector("#sign-in:not([hidden])")
        if scope is not None:
            enter(page, secrets[scope])
            page.wait_for_selector("html[data-ready=true]")
        return page

    yield open_page
    for context in contexts:
        assert context.cookies() == []
        context.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith((site.origin, "blob:"))] == []


def enter(page: Any, secret: str) -> None:
    page.fill("#key", secret)
    page.keyboard.press("Enter")


def cells(page: Any, name: str) -> list[list[str]]:
    """Return the cells of a table, open or collapsed."""
    rows = page.eval_on_selector_all(
        f"[data-table={name}] tr", "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    return [[plain(cell) for cell in row] for row in rows]


def plain(shown: str) -> str:
    """A cell without what only people need: commas in numbers, a dash for nothing."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", shown)
    return "" if text == "–" else text


def saved(page: Any, name: str) -> list[list[str]]:
    """The CSV file under a table."""
    with page.expect_download() as download:
        page.click(f"[data-table={name}] button:has-text('CSV')")
    assert re.fullmatch(rf"ldp-budget-{name}-\d{{4}}-\d\d-\d\d\.csv", download.value.suggested_filename)
    return list(csv.reader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))


def figure(page: Any, name: str) -> str:
    return plain(page.inner_text(f"[data-figure={name}] .number"))


# -- the dashboard -------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.some(3)
def test_dashboard_numbers_are_those_of_the_ledger(site: Site, opened: Open) -> None:
    page, accountant = opened(), site.accountant
    stats, balances = accountant.stats(), list(accountant.balances())
    assert figure(page, "users") == str(stats["users"])
    near = sum(state.spent_units.epsilon >= 0.8 * 10**9 for each in balances for state in each.limits[1:])
    assert figure(page, "near") == str(near) == "1"
    header, *days = cells(page, "activity")
    charged = [row for row in accountant.journal() if row["kind"] == "spent"]
    assert header[1:3] == ["Users charged", "Charges"]
    for day, users, charges, *_ in days:
        of_day = [row["account"] for row in charged if row["at"].startswith(day)]
        assert (users, charges) == (str(len(set(of_day))), str(len(of_day)))
    assert sum(int(row[2]) for row in days) == len(charged)
    assert [row[3] for row in cells(page, "refusals")[1:]] == ["1"] * 4
    assert dict(cells(page, "ledger"))["Head"] == stats["head"]
    bars = page.locator("#activity svg rect.charged")
    assert bars.count() == sum(int(row[1]) > 0 for row in days)
    # A CSV file holds what its table shows, and no cell that a spreadsheet takes for a formula.
    shown, file = cells(page, "limits"), saved(page, "limits")
    assert [[cell.removeprefix("'") for cell in row] for row in file] == shown
    assert "'=research" in {row[0] for row in file}


# -- keys ----------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", ["/", "/officer"])
def test_sign_in_with_a_wrong_key_shows_the_reason_and_forgets_the_key(
    opened: Open, secrets: dict[str, str], path: str
) -> None:
    page = opened(path, None)
    enter(page, "ldpb_nobody")
    page.wait_for_selector("#key-error:has-text('The key is unknown, expired or revoked')")
    enter(page, secrets["spend"])
    page.wait_for_selector("#key-error:has-text('this API key lacks the scope')")
    assert page.evaluate("sessionStorage.length + localStorage.length") == 0
    assert page.input_value("#key") == ""


@pytest.mark.exhaustive
def test_sign_in_key_is_stored_for_the_tab_until_sign_out(opened: Open, site: Site) -> None:
    page = opened()
    page.reload()
    page.wait_for_selector("html[data-ready=true]")
    page.click("text=Privacy officer")
    page.wait_for_selector("#key-error:has-text('this API key lacks the scope policy')")
    page = opened()
    page.click("#sign-out")
    assert page.evaluate("sessionStorage.length") == 0
    assert not page.locator("#content").is_visible()
    assert page.evaluate("document.activeElement.id") == "key"
    page.reload()
    page.wait_for_selector("#sign-in:not([hidden])")


@pytest.mark.exhaustive
def test_page_with_a_revoked_key_signs_out(site: Site, opened: Open) -> None:
    keys = ApiKeys(site.accountant)
    page = opened(scope=None)
    enter(page, keys.create("short", ["read"])[1])
    page.wait_for_selector("html[data-ready=true]")
    keys.revoke("short")
    page.wait_for_timeout(1100)  # what the service knows of keys may be a second old
    page.click("input[value='7']")
    page.wait_for_selector("#sign-in:not([hidden])")
    assert page.locator("#content > *").count() == 0


# -- the privacy officer's page ------------------------------------------------------------------------------------


def proposed(page: Any, policy: str, *limits: str) -> Any:
    """Propose a change on the officer's page, and return its article."""
    page.click("summary")
    page.select_option("#proposed-policy", policy)
    page.fill("#proposed-reason", "a second wave")
    for row, limit in zip(page.locator(".limit-row").all(), limits, strict=True):
        period, epsilon = limit.split("=")
        row.locator("[name=period]").select_option(period)
        row.locator("[name=epsilon]").fill(epsilon)
    page.click("#propose button.primary")
    said = page.wait_for_selector("#proposals-said:has-text('waits for a second person')").inner_text()
    return page.locator(f"[data-proposal='{said.split()[1]}']")


@pytest.mark.exhaustive
def test_officer_page_raises_a_limit_with_two_keys_only(site: Site, opened: Open, secrets: dict[str, str]) -> None:
    accountant = site.accountant
    accountant.set_policy("raised", ["lifetime=1"])
    first = opened("/officer", "policy")
    first.on("dialog", lambda dialog: dialog.accept())
    first.click("text=Require approval from now on")
    first.wait_for_selector("text=no single key can raise a limit")
    mine = proposed(first, "raised", "lifetime=2")
    assert "It raises a limit: lifetime: ε = 1 (basic). New: lifetime: ε = 2 (basic)." in mine.inner_text()
    assert "Reason: a second wave" in mine.inner_text()
    assert "Another person must approve it" in mine.inner_text()
    assert mine.get_by_role("button").all_inner_texts() == ["Withdraw"]
    # Nor does the API let one key do both, or set it without the other.
    number, bearer = mine.get_attribute("data-proposal"), {"Authorization": f"Bearer {secrets['policy']}"}
    alone = first.request.post(f"{site.origin}/v1/proposals/{number}/approve", headers=bearer)
    assert (alone.status, alone.json()["type"]) == (409, "/problems/approval-conflict")
    body = {"limits": ["lifetime=2"]}
    alone = first.request.put(f"{site.origin}/v1/policies/raised", headers=bearer, data=body)
    assert (alone.status, alone.json()["type"]) == (409, "/problems/approval-needed")
    assert [str(limit) for limit in accountant.policy("raised").limits] == ["lifetime=1"]

    second = opened("/officer", "admin")
    theirs = second.locator(f"[data-proposal='{number}']")
    theirs.get_by_role("button", name="Approve").click()
    second.wait_for_selector(f"#proposals-said:has-text('Proposal {number} is approved')")
    theirs.get_by_role("button", name="Set it").click()
    second.wait_for_selector("#proposals-said:has-text('Policy raised is set, as version 2')")
    assert [str(limit) for limit in accountant.policy("raised").limits] == ["lifetime=2"]
    second.wait_for_selector("[data-table=policies] tr:has-text('raised'):has-text('allows more')")
    newest = cells(second, "policies")[1]
    who = ["admin-key", "policy-key", "admin-key", "a second wave"]
    assert newest[1:] == ["raised", "2", "allows more", "lifetime: ε = 2 (basic)", *who]
    (row,) = [row for row in cells(second, "proposals")[1:] if row[0] == number]
    assert (row[2], *row[4:]) == ("raised", "a second wave", "policy-key", "past", "admin-key")


@pytest.mark.exhaustive
def test_officer_page_shows_the_limits_of_a_policy_before_typing(site: Site, opened: Open) -> None:
    page = opened("/officer", "policy")
    page.click("summary")
    *names, new = page.locator("#proposed-policy option").all_inner_texts()
    assert sorted(names) == sorted(policy.name for policy in site.accountant.policies())
    for name in (None, "=research", "default"):  # the first one is chosen at once
        if name is not None:
            page.select_option("#proposed-policy", name)
        shown = [
            (row.locator("[name=period]").input_value(), row.locator("[name=epsilon]").input_value())
            for row in page.locator(".limit-row").all()
        ]
        limits = site.accountant.policy(page.input_value("#proposed-policy")).limits
        assert shown == [(limit.period, str(limit.epsilon.normalize())) for limit in limits]
        assert page.locator("#proposed-name").is_hidden()
    page.select_option("#proposed-policy", label=new)
    assert page.locator("#proposed-name").is_visible()


@pytest.mark.parametrize("language", ["en", "ko"])
def test_officer_page_says_records_and_reasons_in_sentences(site: Site, opened: Open, language: str) -> None:
    """The content of a record was its JSON, and a reason the English of the API."""
    accountant, keys = site.accountant, ApiKeys(site.accountant)
    secret = keys.create(language, ["policy"], policies=["default"], expires=accountant.now() + timedelta(days=9))[1]
    key = keys.find(secret)
    assert key is not None
    proposer = Approvals(accountant.acting_for(key.caller))
    proposer.propose("default", ["lifetime=9,1e-6,zcdp"], reason="why not")
    proposer.withdraw(proposer.propose("another", ["lifetime=1"], zone="Asia/Seoul").number)
    body = {"text": "seen", "pages": [1, {"a": None}]}
    accountant.record("note", "officer", body, expected=len(accountant.records()))
    page = opened(f"/officer?lang={language}", "policy")
    page.click("[data-table=proposals] button[aria-expanded]")
    text = page.inner_text("#content")
    for wrong in ("{", "}", "[", "]", '"', "undefined", "null", "lifetime=", "it drops the limit", "is a new policy"):
        assert wrong not in text, wrong
    if language != "en":
        assert "Proposed" not in text
        assert "The key may" not in text


def test_officer_page_saves_the_statement_of_a_user(opened: Open) -> None:
    page = opened("/officer?lang=ko", "admin")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.fill("#statement-user", "user 1")
    with page.expect_download() as download:
        page.click("#statement button")
    assert re.fullmatch(r"ldp-budget-statement-\d{4}-\d\d-\d\d\.html", download.value.suggested_filename)
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert '<html lang="ko">' in text
    assert "user 1" in text
    assert not [url for url in asked if "user" in url.replace("/v1/users:statement", "")]
    page.wait_for_selector("#statements-said:has-text('user 1')")
    page = opened("/officer", "policy")
    page.fill("#statement-user", "user 1")
    page.click("#statement button")
    page.wait_for_selector("#statements-said:has-text('this API key lacks the scope statement')")


# -- how the pages are made ----------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name", ["dashboard.js", "office.js", "charts.js", "tables.js", "office.css", "office.en.json"]
)
def test_page_with_a_changed_file_does_not_run_it(browser: Any, site: Site, name: str) -> None:
    context = browser.new_context()
    page = context.new_page()

    def changed(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.body() + b" ")

    page.route(f"**/{name}", changed)
    page.goto(site.origin)
    page.wait_for_load_state("networkidle")
    if name == "office.css":
        assert page.evaluate("document.styleSheets.length") == 0
    else:
        assert not page.locator("#sign-in").is_visible()
    context.close()


@pytest.mark.exhaustive
def test_content_security_policy_blocks_other_scripts(opened: Open) -> None:
    page = opened(scope=None)
    found = page.evaluate(case_text("integration_dashboard.found.mjs"))
    assert found == {**{"eval": "EvalError", "markup": "TypeError", "inline": "TypeError", "elsewhere": "TypeError"}}


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", ["/", "/officer"])
def test_axe_finds_no_violation(opened: Open, axe: str, path: str) -> None:
    page = opened(path, None)
    assert axe_core.violations(page, axe) == []
    for options in ({"color_scheme": "light"}, {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}}):
        page = opened(path, "admin", **options)
        page.evaluate("document.querySelectorAll('button[aria-expanded=false]').forEach((button) => button.click())")
        assert axe_core.violations(page, axe) == []
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
