"""What the check page computes itself: intervals of the estimate, links that hold a receipt, and QR codes."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldp_budget import mechanism

SOURCES = Path(__file__).parents[3] / "clients" / "survey" / "src"


def _computed(module: str, program: str, given: Any) -> Any:
    """Return what a program of JavaScript makes of `given`; `found` are the exports of a module of the page."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node.js on this machine")
    text = (
        "globalThis.location = new URL('https://ask.example/check');"
        f"const found = await import({json.dumps(str(SOURCES / module))});"
        "let input = ''; for await (const part of process.stdin) input += part;"
        f"console.log(JSON.stringify((({program}))(JSON.parse(input))));"
    )
    done = subprocess.run(
        [node, "--input-type=module", "-e", text], input=json.dumps(given), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# -- intervals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.2", "1", "3"])
@pytest.mark.parametrize("users", [3, 60, 400, 20_000])
def test_intervals_of_the_page_are_those_of_an_estimate(users: int, epsilon: str) -> None:
    """They are never narrower by more than two people, and wider only where the product's own intervals lean."""
    oue = mechanism("oue")(epsilon=epsilon, domain_size=4)
    p, q = (float(oue.parameters[name]) for name in ("p", "q"))
    draw, cases, wanted = np.random.default_rng(users), [], []
    for share in (0, 0.02, 0.3, 1):
        held = int(users * share)
        named = int(draw.binomial(held, p) + draw.binomial(users - held, q))
        reports = np.zeros((users, 1), np.uint8)
        reports[:named, 0] = 1
        low, high = oue.estimate(reports).interval(0.95)
        cases.append((users, named, p, q))
        wanted.append((float(low[0]), float(high[0])))
    found = _computed("check/margins.js", "(cases) => cases.map((each) => found.interval(...each))", cases)
    for (low, high), (least, most) in zip(wanted, found, strict=True):
        assert 0 <= least <= low + 2
        assert high - 2 <= most <= users
        assert low - least <= 2 + 0.2 * (high - low)
        assert most - high <= 2 + 0.2 * (high - low)


def test_intervals_of_the_page_cover_every_true_number() -> None:
    """Exactly: the probability that the interval has the true number, for each number of few people."""
    users, p, q = 12, 0.5, 0.27
    named = [[users, count, p, q] for count in range(users + 1)]
    found = _computed("check/margins.js", "(cases) => cases.map((each) => found.interval(...each))", named)
    for held in range(users + 1):
        own = [_binomial(held, k, p) for k in range(users + 1)]
        others = [_binomial(users - held, k, q) for k in range(users + 1)]
        odds = np.convolve(own, others)[: users + 1]
        covered = sum(chance for chance, (low, high) in zip(odds, found, strict=True) if low <= held <= high)
        assert covered >= 0.95


def _binomial(trials: int, count: int, chance: float) -> float:
    from math import comb

    return comb(trials, count) * chance**count * (1 - chance) ** (trials - count) if count <= trials else 0.0


# -- links -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "publication", [None, {"address": None, "key": None, "invitation": None, "proof": None}, "all"]
)
def test_link_of_a_receipt_holds_all_of_it(publication: Any) -> None:
    if publication == "all":
        address = "https://ask.example/publications/a%20%2F%20b/"
        publication = {"address": address, "key": "log+5f+AU/+=", "invitation": "0f" * 16, "proof": "a1" * 16}
    receipt = {
        **{"format": "ldp-budget receipt", "version": 1, "collection": "a / b~ü", "client": "ab" * 32},
        **{"secret": "cd" * 16, "report": "00ff7f", "publication": publication},
        "costs": {"epsilon": 10**9, "delta": 0, "rho": None, "mu_squared": None},
        "promise": {"measure": "epsilon", "limit": 4 * 10**9, "key": "01" * 32, "signature": "fe" * 64},
    }
    program = "(receipt) => { const link = found.fragmentOf(receipt); return [link, found.receiptIn(link)]; }"
    link, again = _computed("receipt_links.js", program, receipt)
    empty = {"address": None, "key": None, "invitation": None, "proof": None}
    assert again == {**receipt, "publication": publication or empty}
    assert len(link) < 500
    assert not set(link) & set("<>\"' #?&")


@pytest.mark.parametrize(
    "fragment", ["", "content", "2" + "~" * 13, "1~" * 13 + "%", "1" + "~é" * 13, "1" + "~" * 12]
)
def test_fragment_that_is_no_receipt_is_none(fragment: str) -> None:
    assert _computed("receipt_links.js", "(text) => found.receiptIn(text) === undefined", fragment)


# -- codes -------------------------------------------------------------------------------------------------------------

FULL = [
    17,
    32,
    53,
    78,
    106,
    134,
    154,
    192,
    230,
    271,
    321,
    367,
    425,
    458,
    520,
    586,
    644,
    718,
    792,
    858,
    929,
    1465,
    2953,
]
"""Bytes that fill a code of some sizes, so that nothing is padded: segno pads one byte more than the standard has."""


def test_codes_are_those_of_another_library() -> None:
    segno = pytest.importorskip("segno", reason="no segno: pip install segno")
    chance = random.Random(1)
    letters = "abcdefgh~%-_ABC012"
    given = [("".join(chance.choices(letters, k=count - 1)) + "a", chance.randrange(8)) for count in FULL]
    program = "(cases) => cases.map(([text, mask]) => found.qrCode(text, mask).map((row) => row.map(Number)))"
    for (text, mask), code in zip(given, _computed("qr_code.js", program, given), strict=True):
        other = segno.make(text, error="l", boost_error=False, mask=mask, mode="byte", micro=False)
        assert code == [list(row) for row in other.matrix], len(text)


@pytest.mark.parametrize("count", [1, 18, 231, 400, 1200])
def test_codes_are_read_by_another_program(tmp_path: Path, count: int) -> None:
    reader = shutil.which("zbarimg")
    if reader is None:
        pytest.skip("no zbarimg on this machine: apt-get install zbar-tools")
    text = "https://ask.example/check#1~" + "x" * count
    code = _computed("qr_code.js", "(text) => found.qrCode(text).map((row) => row.map(Number))", text)
    image = 255 - 255 * np.kron(np.pad(np.array(code, np.uint8), 4), np.ones((4, 4), np.uint8))
    (tmp_path / "code.pgm").write_bytes(b"P5 %d %d 255\n" % image.shape + image.astype(np.uint8).tobytes())
    done = subprocess.run([reader, "-q", "--raw", tmp_path / "code.pgm"], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == text


def test_text_that_is_too_long_has_no_code() -> None:
    assert _computed("qr_code.js", "(count) => found.qrCode('a'.repeat(count)) === undefined", 2954)
    assert not _computed("qr_code.js", "(count) => found.qrCode('a'.repeat(count)) === undefined", 2953)
