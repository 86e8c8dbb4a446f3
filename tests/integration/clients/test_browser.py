"""The client in a real browser: Debian's Chromium, without a window, over loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from case_files import case_text
from client_cases import CASES
from javascript import PACKAGE, VECTORS
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.public_definition import digest_of

pytestmark = pytest.mark.exhaustive

# No script but the page's own files, nothing evaluated, no other host.
POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'"
PAGE = "/page.html"


class Handler(SimpleHTTPRequestHandler):
    """The files of `clients`, under a strict policy, and one page without anything on it."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript"}  # noqa: RUF012

    def do_GET(self) -> None:
        if self.path != PAGE:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>clients</title>")

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(PACKAGE.parent)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def page(browser: Any, origin: str) -> Iterator[Any]:
    """A page of a device of its own."""
    context = browser.new_context()
    opened = context.new_page()
    opened.goto(f"{origin}{PAGE}")
    yield opened
    context.close()


def definition(name: str) -> dict[str, Any]:
    return Collection(name.replace(" ", "-"), CASES[name]).definition()


# -- drawing -------------------------------------------------------------------------------------------------------


def test_vectors_two_hundred_of_each_setting_agree(page: Any, many_vectors: Path) -> None:
    """Those of the package are the first 40 of each; `test_javascript.py` has the same on Node."""
    agreed = {}
    for path in sorted(many_vectors.iterdir()):
        agreed[path.stem] = page.evaluate(
            case_text("integration_browser.test_vectors_two_hundred_of_each_setting_agree.mjs"), path.read_text()
        )
        assert path.read_text().startswith((VECTORS / path.name).read_text().removesuffix("]}\n"))
    assert len(agreed) == len(CASES) + 1 >= 31
    assert agreed == dict.fromkeys(agreed, 200)


def test_device_vectors_agree_over_indexeddb(page: Any) -> None:
    found = page.evaluate("""async () => {
        const { tryDevices } = await import("/js/test/device_vectors.mjs");
        return tryDevices(await (await fetch("/vectors/devices.json")).json(), indexedDB);
    }""")
    assert found["wrong"] == []
    assert found["count"] > 200


def test_browser_draws_from_its_own_generator(page: Any) -> None:
    reports = page.evaluate(
        """async (definition) => {
            const { Client } = await import("/js/src/index.js");
            const client = new Client(definition);
            return Array.from({ length: 2000 }, () => client.randomize(1)[0]);
        }""",
        definition("randomized-response"),
    )
    # P[1 | 1] is 0.731, within six standard errors.
    assert abs(sum(reports) / 2000 - 0.731) < 6 * (0.731 * 0.269 / 2000) ** 0.5


# -- the device's own budget ---------------------------------------------------------------------------------------

BUDGET = """
    const { DeviceBudget, OverBudget } = await import("/js/src/budget.js");
    const { Client } = await import("/js/src/index.js");
    const at = (text) => ({ now: () => new Date(text) });
    const asks = async (budget, client, answer) => {
        try { return (await budget.randomize(client, answer)).length; }
        catch (error) { return error.message; }
    };
"""


def played(page: Any, script: str, *collections: str) -> Any:
    return page.evaluate(f"async (definitions) => {{{BUDGET}{script}}}", [definition(name) for name in collections])


def test_device_charges_before_it_draws_and_refuses_beyond_its_budget(page: Any) -> None:
    found = played(
        page,
        """
        const client = new Client(definitions[0]);
        const first = await DeviceBudget.open({ lifetime: "3.5", day: "2" }, at("2026-11-21T10:00:00Z"));
        const monday = [await asks(first, client, 1), await asks(first, client, 1), await asks(first, client, 1)];
        first.close();
        const second = await DeviceBudget.open({ lifetime: "3.5", day: "2" }, at("2026-11-22T00:00:00Z"));
        const tuesday = [await asks(second, client, 1), await asks(second, client, 1)];
        return [first.fresh, monday, second.fresh, tuesday, await second.balance()];
        """,
        "randomized-response",
    )
    fresh, monday, again, tuesday, balance = found
    assert (fresh, again) == (True, False)
    assert monday == [1, 1, "over the budget of this device: asked ε = 1; day: 2 of 2 spent"]
    assert tuesday == [1, "over the budget of this device: asked ε = 1; lifetime: 3 of 3.5 spent"]
    assert balance["lifetime"] == {"limit": "3.5", "spent": "3", "left": "0.5"}


def test_store_cleared_makes_a_new_secret_and_says_so(page: Any) -> None:
    fresh, same = played(
        page,
        """
        const first = await DeviceBudget.open({ lifetime: "1" });
        const { secret } = await first.state();
        first.close();
        await new Promise((done) => { indexedDB.deleteDatabase("ldp-budget").onsuccess = done; });
        const second = await DeviceBudget.open({ lifetime: "1" });
        return [second.fresh, `${(await second.state()).secret}` === `${secret}`];
        """,
    )
    assert (fresh, same) == (True, False)


def test_pages_of_one_device_share_its_budget(page: Any, origin: str) -> None:
    other = page.context.new_page()
    other.goto(f"{origin}{PAGE}")
    script = """
        const client = new Client(definitions[0]);
        window.done = (async () => {
            const budget = await DeviceBudget.open({ lifetime: "10" });
            const said = await Promise.all(Array.from({ length: 12 }, () => asks(budget, client, 1)));
            return [budget.fresh, said.filter((each) => each === 1).length];
        })();
    """
    # Both make the budget and draw from it at the same time: neither waits for the other.
    for each in (page, other):
        played(each, script, "randomized-response")
    (fresh, drawn), (also_fresh, drawn_too) = (each.evaluate("() => window.done") for each in (page, other))
    assert (drawn + drawn_too, fresh + also_fresh) == (10, 1)


# -- reports on their way ------------------------------------------------------------------------------------------

OUTBOX = """
    const { DeviceBudget, OverBudget } = await import("/js/src/budget.js");
    const { Outbox } = await import("/js/src/outbox.js");
    const { Client } = await import("/js/src/index.js");
    const client = new Client(definition);
    const opened = async (limits = { lifetime: "9" }) => new Outbox(await DeviceBudget.open(limits));
    const left = async (outbox) => (await outbox.budget.balance()).lifetime.left;
"""


def sent(page: Any, script: str, collection: str = "oue") -> Any:
    return page.evaluate(f"async (definition) => {{{OUTBOX}{script}}}", definition(collection))


def test_report_under_one_key_is_drawn_and_charged_once(page: Any, origin: str) -> None:
    script = """
        const outbox = await opened();
        const drawn = await Promise.all([0, 1, 2, 3].map((answer) => outbox.draw("monday", client, answer)));
        const kept = await outbox.entries();
        return [drawn.map((each) => `${each.report}`), await left(outbox), `${kept[0].report}`, kept.length];
    """
    other = page.context.new_page()
    other.goto(f"{origin}{PAGE}")
    reports, left, kept, count = sent(page, script)
    again, left_again, kept_again, count_again = sent(other, script)
    assert {*reports, *again, kept, kept_again} == {kept}
    assert (left, left_again, count, count_again) == ("8", "8", 1, 1)


def test_outbox_and_budget_use_one_label(page: Any) -> None:
    script = """
        const outbox = await opened();
        const found = [];
        const keys = ["first", "second"].map((each) => `${each} ${definition.digest}`);
        for (const key of keys) found.push((await outbox.draw(key, client, 3)).units / 1e9);
        await outbox.budget.randomize(client, 3);
        return [found, await left(outbox)];
    """
    made = definition("every kept bucket")
    guarantee = {name: value for name, value in made["guarantee"].items() if name != "answer_epsilon"}
    of_one_report = {**made, "guarantee": guarantee}
    of_one_report["digest"] = digest_of(of_one_report)
    asked = f"async (definition) => {{{OUTBOX}{script}}}"
    assert page.evaluate(asked, made) == [[1, 0], "8"]
    assert page.evaluate(asked, of_one_report) == [[1, 1], "5"]
