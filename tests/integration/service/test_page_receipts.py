"""Receipts of the survey page in a real browser: answer, save, publish, and check in the static page, offline."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
pytest.importorskip("cryptography", reason="no signature: pip install 'ldp-budget[fast]'")

from ldp_budget_surveys.publication.publisher import Publisher
from survey_site import Site, ledger, running

ARRIVED = "h1[data-state=arrived]"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("receipts")
    with ledger(folder / "budget.db") as accountant, running(accountant) as made:
        yield made


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    made = browser.new_context(locale="en-US")
    made.set_default_timeout(15_000)
    yield made
    made.close()


def _answered(context: Any, link: str, answer: str = "bike") -> Any:
    page = context.new_page()
    page.goto(link)
    page.get_by_label(answer).check()
    page.click("button[type=submit]")
    page.wait_for_selector(ARRIVED)
    return page


def _saved(page: Any, button: str, out: Path) -> Path:
    with page.expect_download() as saved:
        page.get_by_role("button", name=button).click()
    saved.value.save_as(out)
    return out


def _kept(page: Any) -> str:
    """Return all that the page stores on the device, as text."""
    found: str = page.evaluate(
        """() => new Promise((done) => {
            const request = indexedDB.open("ldp-budget");
            request.onsuccess = () => {
                const kept = request.result.transaction("outbox").objectStore("outbox").getAll();
                kept.onsuccess = () => {
                    request.result.close();
                    const text = (name, value) => (value instanceof Uint8Array ? [...value] : value);
                    done(JSON.stringify(kept.result, text));
                };
            };
        })"""
    )
    return found


def _check(page: Any, *files: Path) -> str:
    page.evaluate("document.querySelector('h1').removeAttribute('data-verdict')")
    page.set_input_files("#files", list(files))
    page.wait_for_selector("h1[data-verdict]")
    shown: str = page.inner_text("main")
    return shown


def test_respondent_answers_saves_her_receipt_and_checks_her_part(site: Site, context: Any, tmp_path: Path) -> None:
    page = _answered(context, site.link("ada"))
    receipt = _saved(page, "Save the receipt", tmp_path / "receipt.json")
    page.wait_for_selector("text=The survey is not published yet.")
    assert page.get_by_role("button", name="Save my proof").count() == 0, "there is no proof yet"
    for place in range(5):
        _other(site, f"other{place}")
    publisher = Publisher(site.accountant)
    key = publisher.new_key("ask.example.org/surveys").verifier_key
    publisher.publish(site.accountant.collection("commute"), tmp_path / "site")

    page.reload()
    page.wait_for_selector(ARRIVED)
    proof = _saved(page, "Save my proof", tmp_path / "proof.json")
    archive = Path(shutil.make_archive(str(tmp_path / "site"), "zip", tmp_path / "site"))
    with context.expect_page() as opened:
        page.get_by_role("link", name="Check my part").click()
    checker = opened.value
    checker.wait_for_load_state()
    checker.wait_for_selector("[data-asked=nofolder]")  # this service shows no publications
    context.set_offline(True)  # the checker needs no network
    checker.set_input_files("#files", [archive, receipt, proof])
    checker.wait_for_selector("[data-asked=nokey]")
    checker.fill("#key", key)
    checker.get_by_role("button", name="Check", exact=True).click()
    checker.wait_for_selector("h1[data-verdict=proved]")
    shown = checker.inner_text("main")
    assert "ask.example.org/surveys signed the statement" in shown
    assert "Your charge of ε = 1 is one of 6" in shown
    assert "Your report is one of the 6 reports." in shown
    assert "at least what your receipts say" in shown

    changed = json.loads(receipt.read_text())
    changed["report"] = f"{int(changed['report'], 16) ^ 1:02x}"
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    shown = _check(checker, tmp_path / "changed.json")
    assert "your report is not among the reports" in shown


def _other(site: Site, user: str) -> None:
    from ldp_budget.reports.inbox import Inbox

    Inbox(site.accountant, site.accountant.collection("commute")).take(user, "key", b"\1")


def test_deleted_receipt_leaves_no_secret_and_no_report_on_the_device(site: Site, context: Any) -> None:
    page = _answered(context, site.link("eve"))
    secret = json.loads(_kept(page))[-1]["about"]["secret"]
    assert len(secret) == 32
    other = context.new_page()
    other.goto(f"{site.origin}/me")
    other.wait_for_selector("#receipts")
    page.locator("summary", has_text="Delete my receipt").click()
    assert "Others could demand the receipt from you." in page.inner_text("main")
    page.get_by_role("button", name="Delete it from this device").click()
    page.wait_for_selector("#deleted")
    [entry] = json.loads(_kept(page))
    assert (entry.get("report"), entry["about"].get("secret"), entry["state"]) == (None, None, "arrived")
    assert secret not in _kept(page)
    assert page.locator("#hex").count() == 0
    page.reload()
    page.wait_for_selector("#deleted")
    other.wait_for_selector("#receipts", state="detached")


def test_receipt_of_an_expired_link_is_saved_from_my_budget(site: Site, context: Any, tmp_path: Path) -> None:
    from ldp_budget_service.invitations import Invitations

    page = _answered(context, site.link("bea"))
    Invitations(site.accountant).revoke("commute")
    page.goto(f"{site.origin}/me")
    receipt = json.loads(_saved(page, "Save my receipt", tmp_path / "receipt.json").read_text())
    needed = {"format", "version", "collection", "client", "secret", "report", "costs", "promise"}
    assert receipt.keys() == needed | {"publication"}
    assert receipt["publication"].keys() == {"address", "key", "invitation", "proof"}
    assert receipt["costs"]["epsilon"] == 10**9
    assert receipt["client"] == site.accountant.collection("commute").client


def test_receipt_of_a_service_that_charges_less_has_the_cost_of_the_definition(
    site: Site, context: Any, tmp_path: Path
) -> None:
    def understated(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        body["units"]["cost"][0] = 1
        route.fulfill(response=answer, json=body)

    context.route("**/reports", understated)
    page = _answered(context, site.link("dora"))
    receipt = json.loads(_saved(page, "Save the receipt", tmp_path / "receipt.json").read_text())
    assert receipt["receipt"]["units"]["cost"][0] == 1
    assert receipt["costs"]["epsilon"] == 10**9


def test_page_sends_two_marks_and_never_the_secret(site: Site, context: Any) -> None:
    sent: list[Any] = []
    context.on("request", lambda request: sent.append((request.url, request.all_headers(), request.post_data_buffer)))
    page = _answered(context, site.link("cleo"))
    secret = json.loads(_kept(page))[-1]["about"]["secret"]
    [headers] = [headers for url, headers, _ in sent if url.endswith("/reports")]
    assert len(headers["report-mark"]) == len(headers["charge-mark"]) == 32
    assert headers["report-mark"] != headers["charge-mark"]
    assert not any(secret in f"{url} {headers} {(body or b'').hex()}" for url, headers, body in sent)
