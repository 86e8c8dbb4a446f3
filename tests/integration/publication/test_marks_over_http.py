"""Devices in JavaScript and Python send reports with marks to a real server; a publication proves their parts."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
pytest.importorskip("cryptography", reason="no signature: pip install 'ldp-budget[fast]'")

import numpy as np

from javascript import evaluated, node
from ldp_budget.reports.inbox import Marks
from ldp_budget_surveys.publication.publisher import Publisher
from ldp_budget_verify.shipped_checkers import checker
from published_survey import ROOT, published_questionnaire
from survey_site import Site, ledger, running, tokens

CHECKER = checker("check_books")
JAVASCRIPT = ROOT / "clients" / "check" / "check_books.mjs"
MEASURES = ("epsilon", "delta", "rho", "mu_squared")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("marks")
    with ledger(folder / "budget.db") as accountant, running(accountant) as made:
        yield made


def _asked(site: Site, path: str, token: str, content: bytes | None = None, **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(site.origin + path, content, {"Authorization": f"Bearer {token}", **named})
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: bytes = answer.read()
        return found


class Respondent:
    """A respondent with a personal link: her device draws a report and marks, sends them, and keeps the receipt."""

    def __init__(self, site: Site, user: str) -> None:
        self.site, self.user = site, user
        [self.token] = tokens(site.accountant, [user])
        self.receipt: dict[str, Any] = {}

    def answer(self, report: bytes, secret: bytes, marks: Marks) -> None:
        me = json.loads(_asked(self.site, "/v1/me", self.token))
        headers = {"Idempotency_Key": me["key"], "X_Collection": me["digest"]}
        headers |= {"Report_Mark": marks.report.hex(), "Charge_Mark": marks.charge.hex()}
        sent = json.loads(_asked(self.site, "/v1/collections/commute/reports", self.token, report, **headers))
        costs = dict(zip(MEASURES, sent["units"]["cost"], strict=True))
        self.receipt = {
            **{"format": "ldp-budget receipt", "version": 1, "collection": "commute", "client": me["digest"]},
            **{"secret": secret.hex(), "report": report.hex(), "costs": costs, "promise": sent["promise"]},
        }

    def proof(self, mark: bytes) -> bytes:
        return _asked(self.site, "/v1/me/proof", self.token, Charge_Mark=mark.hex())


def _python(site: Site, user: str) -> Respondent:
    made, secret = Respondent(site, user), os.urandom(16)
    report = site.accountant.collection("commute").randomize(np.array([1])).tobytes()
    made.answer(report, secret, Marks.of(secret))
    return made


def _javascript(site: Site, user: str) -> Respondent:
    definition = json.dumps(site.accountant.collection("commute").definition())
    drawn = evaluated(
        f"""const made = new client.Client({definition}), secret = client.newMarkSecret();
        const {{ report, charge }} = client.marksOf(secret), drawn = made.randomize("bike");
        const hex = (data) => Buffer.from(data).toString("hex");
        console.log(JSON.stringify([drawn, secret, report, charge].map(hex)));"""
    )
    report, secret, *marks = map(bytes.fromhex, drawn)
    made = Respondent(site, user)
    made.answer(report, secret, Marks(*marks))
    return made


def _problem(respondent: Respondent, mark: bytes) -> str:
    """Return the code of the problem in place of a proof."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        respondent.proof(mark)
    with refused.value as answer:
        code: str = json.loads(answer.read())["type"].rpartition("/")[2]
        return code


def _refusal(folder: Path, key: str, receipt: Path, proof: Path) -> str:
    """Return the refusal of both checkers, which must decide alike; empty if both accept."""
    arguments = [str(folder), "--key", key, "--receipt", str(receipt), "--proof", str(proof)]
    done = subprocess.run([node(), str(JAVASCRIPT), *arguments], capture_output=True, text=True, check=False)
    refusal = done.stdout.removeprefix("REFUSED: ").strip() if done.returncode else ""
    if not refusal:
        CHECKER.check(folder, [key], [receipt], proof)
        return ""
    with pytest.raises(CHECKER.Refused) as refused:
        CHECKER.check(folder, [key], [receipt], proof)
    assert str(refused.value) == refusal
    return refusal


def test_reports_with_marks_are_proved_over_http_and_a_tampered_one_is_refused(site: Site, tmp_path: Path) -> None:
    respondents = [_javascript(site, "ada"), *(_python(site, f"user{place}") for place in range(8))]
    secrets = [Marks.of(bytes.fromhex(each.receipt["secret"])) for each in respondents]
    assert _problem(respondents[0], secrets[0].charge) == "not-published"
    key = Publisher(site.accountant).new_key("log").verifier_key
    Publisher(site.accountant).publish(site.accountant.collection("commute"), tmp_path / "site")
    receipt, proof = tmp_path / "receipt.json", tmp_path / "proof.json"
    for each, marks in zip(respondents[:3], secrets[:3], strict=True):
        receipt.write_text(json.dumps(each.receipt))
        proof.write_bytes(each.proof(marks.charge))
        assert _refusal(tmp_path / "site", key, receipt, proof) == ""
        changed = bytes([bytes.fromhex(each.receipt["report"])[0] ^ 1]).hex()
        receipt.write_text(json.dumps({**each.receipt, "report": changed}))
        assert _refusal(tmp_path / "site", key, receipt, proof) == "your report is not among the reports"
    receipt.write_text(json.dumps(respondents[0].receipt))
    assert _refusal(tmp_path / "site", key, receipt, proof) == "your charge is not among the charges"
    assert _problem(respondents[1], secrets[0].charge) == "no-charge"


def test_questionnaire_is_checked_alike_by_both_checkers(tmp_path: Path) -> None:
    key = published_questionnaire(tmp_path)
    assert _refusal(tmp_path / "site", key, tmp_path / "receipt", tmp_path / "proof") == ""
    receipt = json.loads((tmp_path / "receipt").read_bytes())
    changed = f"{int(receipt['report'], 16) ^ 1:0{len(receipt['report'])}x}"
    (tmp_path / "changed").write_text(json.dumps({**receipt, "report": changed}))
    refusal = _refusal(tmp_path / "site", key, tmp_path / "changed", tmp_path / "proof")
    assert refusal == "your report is not among the reports"


def test_marks_in_javascript_are_those_of_python() -> None:
    secrets = [bytes(range(place, place + 16)) for place in range(5)]
    found = evaluated(
        f"""const hex = (data) => Buffer.from(data).toString("hex");
        console.log(JSON.stringify({json.dumps([each.hex() for each in secrets])}.map((secret) => {{
          const {{ report, charge }} = client.marksOf(Uint8Array.from(Buffer.from(secret, "hex")));
          return [hex(report), hex(charge)];
        }})));"""
    )
    assert found == [[mark.hex() for mark in Marks.of(secret)] for secret in secrets]


@pytest.mark.parametrize("size", [0, 15, 17, 32])
def test_marks_of_a_secret_of_another_length_are_refused(size: int) -> None:
    found = evaluated(
        f"""try {{ client.marksOf(new Uint8Array({size})); console.log("null"); }}
        catch (error) {{ console.log(JSON.stringify(error.message)); }}"""
    )
    assert found == f"the secret of marks must have 16 bytes: got {size}"
