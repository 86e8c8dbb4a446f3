"""Speed of the client in JavaScript, on Node.js and in a page of headless Chromium.

    python benchmarks/clients.py

Each figure is 20,000 reports of one collection, all of one device or each with a secret of its own, by which what is
memoised is computed again; the floor is `crypto.getRandomValues` for as many bytes as they have.
On Node.js, processor time is printed next to clock time, which depends on other work of the machine.
Then how long it takes to tell how likely one report is for each answer, at usual sizes and larger ones; and how long
an inbox takes to check one as it comes in, up to the largest sketch: at most 50 µs is wanted.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from client_cases import CASES  # noqa: E402
from ldp_budget import Accountant, Collection, mechanism  # noqa: E402
from ldp_budget.reports.inbox import Inbox  # noqa: E402

NAMES = (
    "randomized-response",
    "oue",
    "oue of 100",
    "subset-selection",
    "laplace",
    "gaussian",
    "rappor",
    "cms",
    "hcms",
)
REPORTS = 20_000
MEASURE = """async ({ definitions, reports, base }) => {
    const { Client, newSecret } = await import(`${base}/src/index.js`);
    const { systemBytes } = await import(`${base}/src/draws.js`);
    const secret = newSecret();
    const busy = () => {
        const { user = 0, system = 0 } = globalThis.process?.cpuUsage() ?? {};
        return (user + system) / 1000;
    };
    return definitions.map((definition) => {
        const client = new Client(definition);
        const answer = definition.input.kind === "answer" ? 1 : Number(definition.input.upper) / 2;
        const [start, idle] = [performance.now(), busy()];
        for (let i = 0; i < reports; i++) client.randomize(answer, { secret });
        const [took, worked] = [performance.now() - start, busy() - idle];
        const before = performance.now();
        for (let i = 0; i < reports; i++) systemBytes(client.program.size);
        const floor = performance.now() - before;
        const again = performance.now();
        for (let i = 0; i < reports; i++) client.randomize(answer, { secret: newSecret() });
        return [took, worked, floor, performance.now() - again];
    });
}"""


_RAPPOR = {"hashes": 2, "cohorts": 64, "f": "0.5", "p": "0.25", "q": "0.75", "domain_size": 100}
EXPLAINED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("oue", {"epsilon": 1, "domain_size": 100}),
    ("oue", {"epsilon": 1, "domain_size": 1000}),
    ("sue", {"epsilon": 1, "domain_size": 1000}),
    ("random-substitution", {"epsilon": 1, "domain_size": 100}),
    ("subset-selection", {"epsilon": 1, "domain_size": 10}),
    ("cms", {"epsilon": 2, "hashes": 256, "width": 1024, "domain_size": 100}),
    ("hcms", {"epsilon": 2, "hashes": 1024, "width": 1024, "domain_size": 100}),
    ("hcms", {"epsilon": 2, "hashes": 1024, "width": 1024, "domain_size": 1000}),
    ("rappor", {"bits": 32, **_RAPPOR}),
    ("rappor", {"bits": 128, **_RAPPOR}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 100, "bits": 16}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 100, "bits": 16, "memoize": True}),
)
LARGEST: tuple[str, dict[str, Any]] = ("cms", {"epsilon": 2, "hashes": 65536, "width": 16384, "domain_size": 100})
_SHOWN = ("domain_size", "hashes", "width", "bits", "buckets", "memoize")
EXPLAIN = """async ({ definitions, base }) => {
    const { Client, newSecret } = await import(`${base}/src/index.js`);
    const secret = newSecret();
    return definitions.map((definition) => {
        const client = new Client(definition);
        const report = client.randomize(1, { secret });
        const start = performance.now();
        client.explain(report);
        const first = performance.now();
        for (let i = 0; i < 3; i++) client.explain(report);
        return [first - start, (performance.now() - first) / 3];
    });
}"""


class Quiet(SimpleHTTPRequestHandler):
    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript"}  # noqa: RUF012

    def log_message(self, format: str, *args: Any) -> None:
        pass


def in_node(measure: str, asked: dict[str, Any]) -> list[list[float]]:
    given = json.dumps({**asked, "base": (ROOT / "clients" / "js").as_uri()})
    script = f"console.log(JSON.stringify(await ({measure})({given})));"
    node = shutil.which("node")
    assert node is not None, "no Node.js"
    done = subprocess.run(
        [node, "--input-type=module", "-"], input=script, capture_output=True, text=True, check=True
    )
    found: list[list[float]] = json.loads(done.stdout)
    return found


def in_page(measure: str, asked: dict[str, Any]) -> list[list[float]]:
    from playwright.sync_api import sync_playwright

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(ROOT / "clients")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/js/package.json")
        found: list[list[float]] = page.evaluate(measure, {**asked, "base": "/js"})
        browser.close()
    server.shutdown()
    return found


def main() -> None:
    definitions = [Collection(name.replace(" ", "-"), CASES[name]).definition() for name in NAMES]
    asked = {"definitions": definitions, "reports": REPORTS}
    print(f"| {REPORTS:,} reports | Node.js, s | its processor, s | a page, s | of many users, s | bytes alone, s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    figures = zip(NAMES, in_node(MEASURE, asked), in_page(MEASURE, asked), strict=True)
    for name, (node, worked, *_), (page, _, floor, users) in figures:
        seconds = (each / 1000 for each in (node, worked, page, users, floor))
        print(f"| {name} | {' | '.join(f'{each:.2f}' for each in seconds)} |")
    explain()
    check()


def explain() -> None:
    made = [mechanism(name)(**declared) for name, declared in EXPLAINED]
    asked = {"definitions": [Collection("x", each).definition() for each in made]}
    print("\n| a report explained | Node.js, ms | a page, ms | the first time, ms |\n| --- | ---: | ---: | ---: |")
    figures = zip(EXPLAINED, in_node(EXPLAIN, asked), in_page(EXPLAIN, asked), strict=True)
    for (name, declared), (_, node), (first, page) in figures:
        words = ", ".join(f"{key} {value}" for key, value in declared.items() if key in _SHOWN)
        print(f"| {name}, {words} | {node:.0f} | {page:.0f} | {first:.0f} |")


def check() -> None:
    print("\n| a report checked | its bytes | µs |\n| --- | ---: | ---: |")
    with Accountant(":memory:") as accountant:
        for number, (name, declared) in enumerate((*EXPLAINED, LARGEST)):
            made = mechanism(name)(**declared)
            inbox = Inbox(accountant, Collection(f"c{number}", made))
            report = made.randomize([1], secrets=[bytes(32)]).tobytes()
            start = time.process_time()
            for _ in range(REPORTS):
                inbox.check(report)
            took = (time.process_time() - start) / REPORTS
            words = ", ".join(f"{key} {value}" for key, value in declared.items() if key in _SHOWN)
            print(f"| {name}, {words} | {len(report):,} | {1e6 * took:.0f} |")


if __name__ == "__main__":
    main()
