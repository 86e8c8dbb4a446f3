"""How fast the client in JavaScript draws, on Node.js and in a page of headless Chromium.

    python benchmarks/clients.py

Each figure is 20,000 reports of one collection; the floor is `crypto.getRandomValues` for as many bytes as they read.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from client_cases import CASES  # noqa: E402
from ldp_budget import Collection  # noqa: E402

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
    return definitions.map((definition) => {
        const client = new Client(definition);
        const answer = definition.input.kind === "answer" ? 1 : Number(definition.input.upper) / 2;
        const start = performance.now();
        for (let i = 0; i < reports; i++) client.randomize(answer, { secret });
        const took = performance.now() - start;
        const before = performance.now();
        for (let i = 0; i < reports; i++) systemBytes(client.program.size);
        return [took, performance.now() - before];
    });
}"""


class Quiet(SimpleHTTPRequestHandler):
    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript"}  # noqa: RUF012

    def log_message(self, format: str, *args: Any) -> None:
        pass


def in_node(asked: dict[str, Any]) -> list[list[float]]:
    given = json.dumps({**asked, "base": (ROOT / "clients" / "js").as_uri()})
    script = f"console.log(JSON.stringify(await ({MEASURE})({given})));"
    node = shutil.which("node")
    assert node is not None, "no Node.js"
    done = subprocess.run(
        [node, "--input-type=module", "-"], input=script, capture_output=True, text=True, check=True
    )
    found: list[list[float]] = json.loads(done.stdout)
    return found


def in_page(asked: dict[str, Any]) -> list[list[float]]:
    from playwright.sync_api import sync_playwright

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(ROOT / "clients")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/js/package.json")
        found: list[list[float]] = page.evaluate(MEASURE, {**asked, "base": "/js"})
        browser.close()
    server.shutdown()
    return found


def main() -> None:
    definitions = [Collection(name.replace(" ", "-"), CASES[name]).definition() for name in NAMES]
    asked = {"definitions": definitions, "reports": REPORTS}
    print(f"| {REPORTS:,} reports | Node.js, s | a page, s | random bytes alone, s |\n| --- | ---: | ---: | ---: |")
    for name, (node, _), (page, floor) in zip(NAMES, in_node(asked), in_page(asked), strict=True):
        print(f"| {name} | {node / 1000:.2f} | {page / 1000:.2f} | {floor / 1000:.2f} |")


if __name__ == "__main__":
    main()
