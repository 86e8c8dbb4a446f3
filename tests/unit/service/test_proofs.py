"""Marks that arrive over HTTP, and the proofs of respondents in a publication."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
pytest.importorskip("cryptography", reason="no signature: pip install 'ldp-budget[fast]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant
from ldp_budget.accounting.stored_reports import MARK_BYTES
from ldp_budget.reports.inbox import Inbox, Marks
from ldp_budget_service import Settings, create_app
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_surveys.publication.publisher import Publisher
from ldp_budget_verify.shipped_checkers import checker
from survey_site import tokens, with_surveys

CHECKER = checker("check_books")
COSTS = ("epsilon", "delta", "rho", "mu_squared")


class Device:
    """A respondent's device: its invitation, its secret and its report."""

    def __init__(self, client: TestClient, accountant: Accountant, user: str, round: str = "") -> None:
        [token] = tokens(accountant, [user], round=round)
        self.client, self.bearer, self.secret = client, {"Authorization": f"Bearer {token}"}, os.urandom(16)
        self.report, self.user, self.costs = b"\x02", user, {}

    @property
    def marks(self) -> dict[str, str]:
        report, charge = Marks.of(self.secret)
        return {"Report-Mark": report.hex(), "Charge-Mark": charge.hex()}

    def send(self, marks: dict[str, str] | None = None) -> Any:
        me = self.client.get("/v1/me", headers=self.bearer).json()
        self.digest = me["digest"]
        headers = {"Idempotency-Key": me["key"], "X-Collection": me["digest"], **self.bearer}
        answer = self.client.post(
            "/v1/collections/commute/reports",
            content=self.report,
            headers={**headers, **(self.marks if marks is None else marks)},
        )
        if answer.status_code == 200:
            self.costs = dict(zip(COSTS, answer.json()["units"]["cost"], strict=True))
            self.promise = answer.json().get("promise")
        return answer

    def proof(self, **marks: str) -> Any:
        given = marks or {"Charge-Mark": self.marks["Charge-Mark"]}
        return self.client.get("/v1/me/proof", headers={**self.bearer, **given})

    def receipt(self) -> dict[str, Any]:
        return {
            **{"format": "ldp-budget receipt", "version": 1, "collection": "commute", "client": self.digest},
            **{
                "secret": self.secret.hex(),
                "report": self.report.hex(),
                "costs": self.costs,
                "promise": self.promise,
            },
        }

    def check(self, folder: Path, key: str) -> list[str]:
        receipt, proof = folder / f"{self.user}.json", folder / f"{self.user}.proof"
        receipt.write_text(json.dumps(self.receipt()))
        proof.write_bytes(self.proof().content)
        lines: list[str] = CHECKER.check(folder / "site", [key], [receipt], proof)
        return lines


@pytest.fixture
def accountant(tmp_path: Path) -> Iterator[Accountant]:
    with Accountant(tmp_path / "budget.db") as made:
        yield with_surveys(made)


@pytest.fixture
def client(accountant: Accountant) -> TestClient:
    return TestClient(create_app(accountant))


@pytest.fixture
def devices(client: TestClient, accountant: Accountant) -> list[Device]:
    return [Device(client, accountant, f"user{place}") for place in range(12)]


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition("/")[2]


def publish(accountant: Accountant, folder: Path) -> str:
    publisher = Publisher(accountant)
    key = publisher.new_key("log").verifier_key
    publisher.publish(accountant.collection("commute"), folder / "site")
    return key


@pytest.mark.slow
def test_report_with_marks_is_proved_over_http(devices: list[Device], accountant: Accountant, tmp_path: Path) -> None:
    assert {device.send().status_code for device in devices} == {200}
    key = publish(accountant, tmp_path)
    for device in devices[:3]:
        assert any("yours is one of them" in line for line in device.check(tmp_path, key))
    answer = devices[0].proof()
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Journal-Position" not in answer.headers
    receipt = {"secret": devices[0].secret.hex()}
    assert answer.json() == Publisher(accountant).prove("commute", receipt)


@pytest.mark.slow
def test_report_that_is_not_hers_is_refused_by_the_checker(
    devices: list[Device], accountant: Accountant, tmp_path: Path
) -> None:
    for device in devices:
        device.send()
    key = publish(accountant, tmp_path)
    devices[0].report = b"\x03"
    with pytest.raises(CHECKER.Refused, match="your report is not among"):
        devices[0].check(tmp_path, key)


@pytest.mark.parametrize(
    ("marks", "why"),
    [
        ({"Report-Mark": "0" * 32}, "Charge-Mark is missing"),
        ({"Charge-Mark": "0" * 32}, "Report-Mark is missing"),
        ({"Report-Mark": "0" * 31, "Charge-Mark": "1" * 32}, "Report-Mark must be a mark of 16 bytes"),
        ({"Report-Mark": "0" * 32, "Charge-Mark": "x" * 32}, "Charge-Mark must be a mark of 16 bytes"),
        ({"Report-Mark": "0" * 32, "Charge-Mark": "1" * 34}, "Charge-Mark must be a mark of 16 bytes"),
        ({"Report-Mark": "a" * 32, "Charge-Mark": "A" * 32}, "equal marks link charge and report"),
        ({"Report-Mark": "", "Charge-Mark": ""}, "Report-Mark must be a mark of 16 bytes|equal marks"),
    ],
)
def test_invalid_marks_are_refused_and_cost_nothing(
    marks: dict[str, str], why: str, devices: list[Device], accountant: Accountant
) -> None:
    import re

    answer = devices[0].send(marks)
    assert code(answer) == (400, "invalid-parameter")
    assert re.search(why, answer.json()["detail"])
    assert accountant.history("user0") == []


def test_application_sends_marks_with_its_api_key(client: TestClient, accountant: Accountant, tmp_path: Path) -> None:
    _, secret = ApiKeys(accountant).create("app", ["collect"])
    own = os.urandom(16)
    report, charge = Marks.of(own)
    headers = {
        **{"Authorization": f"Bearer {secret}", "X-User": "ada", "Idempotency-Key": "k"},
        **{"X-Collection": accountant.collection("commute").definition()["digest"]},
        **{"Report-Mark": report.hex().upper(), "Charge-Mark": charge.hex()},
    }
    answer = client.post("/v1/collections/commute/reports", content=b"\x02", headers=headers)
    assert answer.status_code == 200, answer.text
    publish(accountant, tmp_path)
    assert Publisher(accountant).prove("commute", {"secret": own.hex()})["account"]["total"] == 10**9


@pytest.mark.slow
def test_proof_before_the_publication_is_not_published(
    devices: list[Device], accountant: Accountant, tmp_path: Path
) -> None:
    devices[0].send()
    assert code(devices[0].proof()) == (404, "not-published")
    publish(accountant, tmp_path)
    assert devices[0].proof().status_code == 200
    devices[1].send()
    assert code(devices[1].proof()) == (404, "not-published")


@pytest.mark.slow
def test_proof_of_another_respondent_or_an_erased_one_is_no_charge(
    devices: list[Device], accountant: Accountant, tmp_path: Path
) -> None:
    for device in devices[:3]:
        device.send()
    publish(accountant, tmp_path)
    stolen = {"Charge-Mark": devices[0].marks["Charge-Mark"]}
    assert code(devices[1].proof(**stolen)) == (404, "no-charge")
    assert code(devices[5].proof(**stolen)) == (404, "no-charge")
    assert "user0" not in devices[1].proof(**stolen).json()["detail"]
    accountant.erase("user0")
    assert code(devices[0].proof()) == (404, "no-charge")


@pytest.mark.slow
def test_proof_after_forget_is_proofs_destroyed(
    devices: list[Device], accountant: Accountant, tmp_path: Path
) -> None:
    devices[0].send()
    publish(accountant, tmp_path)
    Publisher(accountant).forget(datetime.now(UTC) + timedelta(days=1))
    assert code(devices[0].proof()) == (410, "proofs-destroyed")


def test_proof_with_an_invalid_mark_or_without_an_invitation_is_refused(
    devices: list[Device], client: TestClient
) -> None:
    assert code(devices[0].proof(**{"Charge-Mark": "no"})) == (400, "invalid-parameter")
    assert code(devices[0].proof(**{"X-None": "1"})) == (400, "invalid-parameter")
    assert code(client.get("/v1/me/proof", headers={"Charge-Mark": "0" * 32})) == (401, "unauthorized")


@pytest.mark.slow
def test_report_mark_that_was_copied_does_not_prevent_a_publication(
    devices: list[Device], accountant: Accountant, tmp_path: Path
) -> None:
    """A published mark can be sent again, and two devices can share one."""
    devices[0].send()
    Inbox(accountant, accountant.collection("commute")).seal("first")
    for device in devices[1:4]:
        device.send({**device.marks, "Report-Mark": devices[0].marks["Report-Mark"]})
    key = publish(accountant, tmp_path)
    assert devices[0].check(tmp_path, key)
    with pytest.raises(CHECKER.Refused, match="your report is not among"):
        devices[1].check(tmp_path, key)
    records = (tmp_path / "site" / "reports.bin").read_bytes()
    marks = {records[place : place + MARK_BYTES] for place in range(0, len(records), MARK_BYTES + 1)}
    assert (len(records), len(marks)) == (4 * 17, 4)


# -- the folder, and the proof of a receipt ----------------------------------------------------------------------------


def _publication(device: Device) -> dict[str, Any]:
    found: dict[str, Any] = device.send().json()["publication"]
    return found


@pytest.mark.slow
def test_receipt_opens_its_proof_without_an_invitation(
    devices: list[Device], client: TestClient, accountant: Accountant, tmp_path: Path
) -> None:
    tokens_of = [_publication(device)["proof"] for device in devices[:2]]
    publish(accountant, tmp_path)

    def asked(place: int, token: str, name: str = "commute") -> Any:
        mark = devices[place].marks["Charge-Mark"]
        return client.get(f"/v1/collections/{name}/proof", headers={"Charge-Mark": mark, "Proof-Token": token})

    answer = asked(0, tokens_of[0])
    assert answer.content == devices[0].proof().content
    assert answer.headers["Cache-Control"] == "no-store"
    for place, token, name in (
        (0, tokens_of[1], "commute"),
        (0, tokens_of[0], "many"),
        (0, "", "commute"),
        (0, "é", "commute"),
    ):
        headers = {"Charge-Mark": devices[place].marks["Charge-Mark"], "Proof-Token": token.encode()}
        assert code(client.get(f"/v1/collections/{name}/proof", headers=headers)) == (404, "no-charge")
    accountant.erase("user0")
    assert code(asked(0, tokens_of[0])) == (404, "no-charge")


def test_application_gets_no_token_for_the_proof_of_a_user(client: TestClient, accountant: Accountant) -> None:
    """With one it would learn the totals of her later charges."""
    _, secret = ApiKeys(accountant).create("app", ["collect"])
    report, charge = Marks.of(os.urandom(16))
    headers = {
        **{"Authorization": f"Bearer {secret}", "X-User": "ada", "Idempotency-Key": "k"},
        **{"X-Collection": accountant.collection("commute").definition()["digest"]},
        **{"Report-Mark": report.hex(), "Charge-Mark": charge.hex()},
    }
    answer = client.post("/v1/collections/commute/reports", content=b"\x02", headers=headers)
    assert (answer.status_code, "publication" in answer.json()) == (200, False)


@pytest.mark.slow
def test_receipt_has_the_address_and_the_key_of_the_publication(accountant: Accountant, tmp_path: Path) -> None:
    plain = Device(TestClient(create_app(accountant)), accountant, "ada")
    assert _publication(plain) | {"proof": ""} == {"address": None, "key": None, "proof": ""}
    key = publish(accountant, tmp_path)
    shown = TestClient(create_app(accountant, Settings(publications=str(tmp_path / "site"))))
    found = _publication(Device(shown, accountant, "bob"))
    assert (found["address"], found["key"]) == ("/publications/commute/", key)
    assert shown.get(f"{found['address']}checkpoint").content == (tmp_path / "site" / "checkpoint").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("inside", ["", "commute"])
def test_published_files_are_served_and_no_others(
    devices: list[Device], accountant: Accountant, tmp_path: Path, inside: str
) -> None:
    devices[0].send()
    publisher = Publisher(accountant)
    publisher.new_key("log")
    publisher.publish(accountant.collection("commute"), tmp_path / "site" / inside)
    (tmp_path / "site" / inside / "private.txt").write_text("private")
    (tmp_path / "checkpoint").write_text("outside")
    shown = TestClient(create_app(accountant, Settings(publications=str(tmp_path / "site"))))
    for name in ("checkpoint", "client.json", "charges.bin", "reports.bin", "tile/entries/000.p/1", "tile/0/000.p/1"):
        answer = shown.get(f"/publications/commute/{name}")
        assert answer.content == (tmp_path / "site" / inside / name).read_bytes()
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for path in (
        *("commute/private.txt", "commute/", "commute/tile/0/000.p/2", "many/checkpoint", "nix/checkpoint"),
        *("commute/..%2F..%2Fcheckpoint", "..%2Fcheckpoint", "%2E%2E/checkpoint", "commute/../checkpoint%00"),
    ):
        assert shown.get(f"/publications/{path}").status_code == 404, path
    without = TestClient(create_app(accountant))
    assert code(without.get("/publications/commute/checkpoint")) == (404, "not-found")
