"""Operators who sign lies: each lie that the formats can refuse is refused, and the others are listed."""

from __future__ import annotations

import base64
import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ldp_budget._files import canonical_json
from ldp_budget.reports.inbox import Marks
from ldp_budget_surveys.publication import transparency_log
from ldp_budget_surveys.publication.publisher import charge_of
from ldp_budget_verify.shipped_checkers import checker
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
    transparency_log.write_log(operator.site, survey.key, [canonical_json(operator.statement).encode()])
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


# -- limits, measures, accounts and times ------------------------------------------------------------------------------


def _checked(survey: PublishedSurvey, site: Path, receipt: dict[str, Any], proof: bytes | None = None) -> str | None:
    """Return why the check of a receipt refuses a folder; None if it accepts."""
    place = site.parent / "receipt.json"
    place.write_text(json.dumps(receipt))
    (site.parent / "proof.json").write_bytes(survey.proof(VICTIM) if proof is None else proof)
    try:
        CHECKER.check(site, [survey.key.verifier_key], [place], site.parent / "proof.json")
    except CHECKER.Refused as error:
        return str(error)
    return None


@pytest.mark.parametrize("measure", ["delta", "Epsilon", "", None, 0, ["epsilon"], "constructor"])
def test_unknown_measure_is_refused(survey: PublishedSurvey, operator: Operator, measure: Any) -> None:
    refusal = _refusal(survey, operator.sign(measure=measure))
    assert refusal == "a statement counts in an unknown measure"


@pytest.mark.parametrize("measure", ["rho", "mu_squared"])
def test_other_measure_than_promised_is_refused(survey: PublishedSurvey, operator: Operator, measure: str) -> None:
    refusal = _refusal(survey, operator.sign(measure=measure, limit=10**13, maximum=10**13))
    assert refusal is not None
    assert refusal.startswith("the limit is not the one that your receipt promised: ")
    assert refusal.endswith("promised ε = 4")


@pytest.mark.parametrize("limit", [8_000_000_000, 9_000_000_000_000_000, 3_999_999_984])
def test_other_limit_than_promised_is_refused(survey: PublishedSurvey, operator: Operator, limit: int) -> None:
    refusal = _refusal(survey, operator.sign(limit=limit, maximum=limit))
    assert refusal is not None
    assert refusal.startswith("the limit is not the one that your receipt promised: ")


@pytest.mark.parametrize("accounts", [1, 39])
def test_fewer_accounts_than_the_charges_need_are_refused(
    survey: PublishedSurvey, operator: Operator, accounts: int
) -> None:
    refusal = _refusal(survey, operator.sign(accounts=accounts))
    assert refusal == "so few accounts cannot hold so many charges below the maximum"


def test_maximum_that_is_no_sixteenth_of_the_limit_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    refusal = _refusal(survey, operator.sign(maximum=operator.statement["maximum"] + 1))
    assert refusal == "the maximum is not a number of sixteenths of the limit"


def test_empty_statement_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    empty = {"accounts": 0, "charges": 0, "reports": 0, "maximum": 0, "estimate": None}
    assert _refusal(survey, operator.sign(**empty)) == "a number is out of range"


@pytest.mark.parametrize(
    "time", ["2026-02-30T00:00:00Z", "2026-11-01 00:00:00Z", "2026-11-01T00:00:00Z\nlog  fine", "", None, 0]
)
def test_malformed_time_is_refused(survey: PublishedSurvey, operator: Operator, time: Any) -> None:
    with pytest.raises((CHECKER.Refused, ValueError)):
        CHECKER.check(operator.sign(time=time), [survey.key.verifier_key])


def test_statement_dated_after_its_witness_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    witness = Witness()
    witness.cosign(operator.sign(time="2099-01-01T00:00:00Z"))
    with pytest.raises(CHECKER.Refused, match="dated after a witness signed it"):
        CHECKER.check(operator.site, [survey.key.verifier_key, witness.verifier_key])


def test_key_of_the_log_as_its_own_witness_is_refused(survey: PublishedSurvey) -> None:
    key = survey.key
    public = b"\4" + key._public[1:]
    number = sha256(b"friend\n" + public).digest()[:4].hex()
    with pytest.raises(CHECKER.Refused, match="two of the keys are the same"):
        CHECKER.check(survey.site, [key.verifier_key, f"friend+{number}+{base64.b64encode(public).decode()}"])


# -- receipts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "cost"),
    [("epsilon", 999_999_999), ("rho", 0), ("rho", 200_000_000_000), ("mu_squared", 500_000_000_000)],
)
def test_cost_below_the_loss_of_the_program_is_refused(survey: PublishedSurvey, measure: str, cost: int) -> None:
    receipt = _receipt(survey)
    receipt["costs"][measure] = cost
    refusal = _checked(survey, survey.site, receipt)
    assert refusal is not None
    assert refusal.startswith("your cost is below what the program loses: ")


def test_receipt_of_another_ledger_is_refused(survey: PublishedSurvey, tmp_path: Path) -> None:
    other = PublishedSurvey(tmp_path, asked=4, users=4)
    refusal = _checked(survey, survey.site, _receipt(other))
    assert refusal == "a receipt was signed by another ledger"
    own = _receipt(survey)
    assert _checked(survey, survey.site, {**own, "promise": _receipt(other)["promise"]}) == refusal


@pytest.mark.parametrize("change", [{"limit": 1}, {"measure": "rho"}, {"signature": "0" * 128}, {"more": 1}])
def test_changed_promise_is_refused(survey: PublishedSurvey, change: dict[str, Any]) -> None:
    receipt = _receipt(survey)
    assert _checked(survey, survey.site, {**receipt, "promise": {**receipt["promise"], **change}}) is not None


def test_receipt_without_a_promise_is_refused(survey: PublishedSurvey) -> None:
    for promise in (None, "4", []):
        refusal = _checked(survey, survey.site, {**_receipt(survey), "promise": promise})
        assert refusal == "a receipt does not say which limit was promised"


# -- several statements in one log -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            {"limit": 2_000_000_000, "maximum": 2_000_000_000},
            "limit is 2000000000 in statement 1, and 4000000000 later",
        ),
        ({"measure": "rho"}, "measure is rho in statement 1, and epsilon later"),
        ({"client": "0" * 64}, "client is 0000"),
        ({"collection": "wages\u202e\n"}, r"collection is wages\u{202e}\u{a} in statement 1, and commute later"),
        ({"accounts": 81}, "accounts falls from 81 in statement 1 to 80"),
        ({"charges": 61, "reports": 61}, "charges falls from 61 in statement 1 to 60"),
        ({"maximum": 4_000_000_000}, "maximum falls from 4000000000 in statement 1 to"),
        ({"receipt_keys": ["0" * 64]}, "receipt_keys of statement 1"),
        ({"reports_root": "0" * 64}, "an earlier statement has other reports"),
        ({"reports_root": None}, "an earlier statement has other reports"),
        ({"reports": 30, "charges": 30}, "an earlier statement has other reports"),
        ({"time": "2099-01-01T00:00:00Z"}, "dated before an earlier one"),
    ],
)
def test_earlier_statement_that_contradicts_is_refused(
    survey: PublishedSurvey, operator: Operator, change: dict[str, Any], what: str
) -> None:
    other = canonical_json({**survey.published.statement, **change}).encode()
    refusal = _refusal(survey, operator.sign(before=(other,)))
    assert refusal is not None
    assert refusal.startswith("CONTRADICTION: ")
    assert what in refusal


def test_earlier_statement_with_another_estimate_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    estimate = {**survey.published.statement["estimate"], "fakes": 99}
    other = canonical_json({**survey.published.statement, "estimate": estimate}).encode()
    assert _refusal(survey, operator.sign(before=(other,))) == "the estimate does not follow from the reports"


def test_entry_of_the_log_in_another_form_is_refused(survey: PublishedSurvey, operator: Operator) -> None:
    for entry in (b"", b"{}", b"\0", canonical_json({**survey.published.statement, "version": 2}).encode()):
        assert _refusal(survey, operator.sign(before=(entry,))) is not None


# -- text from the files -----------------------------------------------------------------------------------------------


def test_text_of_a_definition_cannot_forge_a_line(survey: PublishedSurvey, operator: Operator) -> None:
    definition = json.loads((operator.site / "client.json").read_bytes())
    definition["answers"] = ['a", "b 9', "b\nfakes     99", "\x1b[8m\u202e\u2028\u200b\x85", "\u05d0" * 300]
    del definition["digest"]
    definition["digest"] = sha256(canonical_json(definition).encode()).hexdigest()
    (operator.site / "client.json").write_text(canonical_json(definition))
    lines = CHECKER.check(operator.sign(), [survey.key.verifier_key])
    [shown] = [line for line in lines if line.startswith("estimate")]
    assert len([line for line in lines if line.startswith("fakes")]) == 1
    assert all(letter.isprintable() or letter in "\u2068\u2069" for line in lines for letter in line)
    assert r'"a\", \"b 9" ' in shown
    assert r'"b\u{a}fakes     99" ' in shown
    assert len(shown) < 400
