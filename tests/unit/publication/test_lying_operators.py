"""Operators who sign lies: each lie that the formats can refuse is refused, and the others are listed."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ldp_budget._files import canonical_json
from ldp_budget.publication import log
from ldp_budget.publication.publisher import charge_of
from ldp_budget.reports.inbox import Marks
from ldp_budget.verification.checkers import checker
from published_survey import Operator, PublishedSurvey, Witness

CHECKER = checker("check_books")
VICTIM, OTHER = "user3", "user4"


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> PublishedSurvey:
    return PublishedSurvey(tmp_path_factory.mktemp("survey"))


@pytest.fixture
def operator(survey: PublishedSurvey, tmp_path: Path) -> Operator:
    return Operator(survey, tmp_path / "lie")


def _receipt(survey: PublishedSurvey, user: str = VICTIM) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(survey.receipt(user).read_bytes())
    return found


def _marks(survey: PublishedSurvey, user: str) -> Marks:
    return Marks.of(bytes.fromhex(_receipt(survey, user)["secret"]))


def _refusal(survey: PublishedSurvey, site: Path, proof: bytes | None = None, seen: Path | None = None) -> str | None:
    """Return why the victim's check refuses a folder; None if it accepts."""
    path = site.parent / "proof.json"
    path.write_bytes(survey.proof(VICTIM) if proof is None else proof)
    try:
        CHECKER.check(site, [survey.key.verifier_key], [survey.receipt(VICTIM)], path, seen)
    except CHECKER.Refused as error:
        return str(error)
    return None


def _charge(survey: PublishedSurvey, operator: Operator, user: str) -> bytes:
    charged = survey.accountant.books.find(_marks(survey, user).charge)
    assert charged is not None
    return charge_of(operator.secret, charged, "epsilon")


@pytest.mark.slow
def test_honest_operator_is_accepted(survey: PublishedSurvey, operator: Operator) -> None:
    assert _refusal(survey, survey.site) is None
    assert _refusal(survey, operator.sign()) is None


def test_total_without_this_charge_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    proof = json.loads(survey.proof(VICTIM))
    charged = survey.accountant.books.find(_marks(survey, VICTIM).charge)
    assert charged is not None
    operator.account_proof(proof, charged.partition, charged.account, 500_000_000)
    refusal = _refusal(survey, operator.sign(), canonical_json(proof).encode())
    assert refusal == "the total is below your receipts"


def test_account_changed_without_proof_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    proof = json.loads(survey.proof(VICTIM))
    charged = survey.accountant.books.find(_marks(survey, VICTIM).charge)
    assert charged is not None
    operator.account_proof({"account": dict(proof["account"])}, charged.partition, charged.account, 500_000_000)
    refusal = _refusal(survey, operator.sign(), canonical_json(proof).encode())
    assert refusal is not None
    assert "account" in refusal or "path" in refusal


def test_maximum_below_a_total_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    assert _refusal(survey, operator.sign(maximum=1_000_000_000)) == "your total is above the maximum"


def test_maximum_above_the_limit_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    assert _refusal(survey, operator.sign(maximum=4_250_000_000)) == "a total is above the limit"


def test_dropped_charge_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    operator.charges.remove(_charge(survey, operator, VICTIM))
    assert _refusal(survey, operator.sign()) == "not as many reports as charges"


def test_charge_replaced_by_another_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    operator.charges.remove(_charge(survey, operator, VICTIM))
    operator.charges.append(os.urandom(32))
    assert _refusal(survey, operator.sign()) == "your charge is not among the charges"


def test_one_leaf_for_two_respondents_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    """The salt of another respondent's charge does not open a leaf for the victim, whose device chose another mark."""
    operator.charges.remove(_charge(survey, operator, VICTIM))
    operator.charges.append(os.urandom(32))
    proof = json.loads(survey.proof(VICTIM)) | {"charge": json.loads(survey.proof(OTHER))["charge"]}
    refusal = _refusal(survey, operator.sign(), canonical_json(proof).encode())
    assert refusal == "your charge is not among the charges"


def test_charge_with_another_cost_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    operator.charges.remove(_charge(survey, operator, VICTIM))
    salt = bytes.fromhex(json.loads(survey.proof(VICTIM))["charge"]["salt"])
    operator.charges.append(sha256(salt + _marks(survey, VICTIM).charge + (1).to_bytes(8, "big")).digest())
    assert _refusal(survey, operator.sign()) == "your charge is not among the charges"


def test_replaced_report_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    mark = _marks(survey, VICTIM).report
    operator.records = [record for record in operator.records if record[:16] != mark] + [os.urandom(16) + b"\1"]
    assert _refusal(survey, operator.sign()) == "your report is not among the reports"


def test_changed_report_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    mark = _marks(survey, VICTIM).report
    operator.records = [
        record if record[:16] != mark else mark + bytes([record[16] ^ 1]) for record in operator.records
    ]
    assert _refusal(survey, operator.sign()) == "your report is not among the reports"


def test_report_without_charge_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    operator.records.append(os.urandom(16) + b"\1")
    assert _refusal(survey, operator.sign()) == "not as many reports as charges"


@pytest.mark.parametrize("change", ["counts", "fakes", "first"])
def test_other_estimate_is_refused(survey: PublishedSurvey, operator: Operator, change: str) -> None:
    estimate = json.loads(canonical_json(survey.published.statement["estimate"]))
    if change == "counts":
        estimate["counts"][0] += 1
    else:
        estimate[change] += 1
    assert _refusal(survey, operator.sign(estimate=estimate)) == "the estimate does not follow from the reports"


def test_hidden_reports_are_refused(survey: PublishedSurvey, operator: Operator) -> None:
    operator.sign()
    (operator.site / "reports.bin").write_bytes(b"")
    shutil.rmtree(operator.site / "tile")
    operator.statement |= {"reports_root": None, "estimate": None}
    log.write_log(operator.site, survey.key, [canonical_json(operator.statement).encode()])
    assert _refusal(survey, operator.site) == "another number of reports than stated"


@pytest.mark.parametrize(
    ("change", "why"),
    [(2**40, "your receipt is of another survey"), (-(2**40), "the program does not keep its epsilon")],
)
def test_other_program_is_refused(survey: PublishedSurvey, operator: Operator, change: int, why: str) -> None:
    definition = json.loads((operator.site / "client.json").read_bytes())
    definition["steps"][0][1][1] = str(int(definition["steps"][0][1][1]) + change)
    del definition["digest"]
    definition["digest"] = sha256(canonical_json(definition).encode()).hexdigest()
    (operator.site / "client.json").write_text(canonical_json(definition))
    assert _refusal(survey, operator.sign()) == why


def test_fork_is_refused_by_a_seen_checkpoint(survey: PublishedSurvey, operator: Operator) -> None:
    operator.sign(time="2026-11-01T00:00:00Z")
    refusal = _refusal(survey, operator.site, seen=survey.site / "checkpoint")
    assert refusal == "TWO HISTORIES: the log is not the one that you saw"


def test_rollback_is_refused_by_a_seen_checkpoint(survey: PublishedSurvey, operator: Operator) -> None:
    first = canonical_json(survey.published.statement).encode()
    later = shutil.copytree(operator.sign(before=(first,)), operator.site.parent / "later")
    assert _refusal(survey, later, seen=survey.site / "checkpoint") is None
    refusal = _refusal(survey, survey.site, seen=later / "checkpoint")
    assert refusal == "ROLLED BACK: the log is shorter than the checkpoint that you saw"


def test_witness_with_fork_does_not_sign(survey: PublishedSurvey, operator: Operator) -> None:
    witness, site = Witness(), shutil.copytree(survey.site, operator.site.parent / "honest")
    witness.cosign(site)
    CHECKER.check(site, [survey.key.verifier_key, witness.verifier_key])
    operator.sign(time="2026-11-01T00:00:00Z")
    with pytest.raises(ValueError, match="does not continue"):
        witness.cosign(operator.site)
    with pytest.raises(CHECKER.Refused, match="did not sign this checkpoint"):
        CHECKER.check(operator.site, [survey.key.verifier_key, witness.verifier_key])


def test_long_log_with_several_tiles_is_accepted(survey: PublishedSurvey, operator: Operator) -> None:
    first = canonical_json(survey.published.statement).encode()
    operator.sign(before=(first,) * 600)
    assert _refusal(survey, operator.site, seen=survey.site / "checkpoint") is None
    tile = operator.site / "tile/1/000.p/2"
    tile.write_bytes(tile.read_bytes()[::-1])
    assert _refusal(survey, operator.site) == "a tile is not of this log"


# -- lies that no respondent can refuse alone; docs/explanation/proofs-of-a-survey.md lists them --


def test_made_up_respondents_with_charges_are_not_refused(survey: PublishedSurvey, operator: Operator) -> None:
    operator.charges += [os.urandom(32) for _ in range(20)]
    operator.records += [os.urandom(16) + b"\1" for _ in range(20)]
    operator.leaves = operator.leaves + [os.urandom(32) for _ in range(20)]
    operator.leaves = sorted(operator.leaves)
    proof = json.loads(survey.proof(VICTIM))
    charged = survey.accountant.books.find(_marks(survey, VICTIM).charge)
    assert charged is not None
    operator.account_proof(proof, charged.partition, charged.account, proof["account"]["total"])
    assert _refusal(survey, operator.sign(), canonical_json(proof).encode()) is None


def test_dropped_respondent_who_never_looks_is_not_refused(survey: PublishedSurvey, operator: Operator) -> None:
    operator.charges.remove(_charge(survey, operator, OTHER))
    operator.charges.append(os.urandom(32))
    mark = _marks(survey, OTHER).report
    operator.records = [record for record in operator.records if record[:16] != mark] + [os.urandom(16) + b"\1"]
    assert _refusal(survey, operator.sign()) is None
