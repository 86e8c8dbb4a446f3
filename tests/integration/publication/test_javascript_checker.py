"""The checker in JavaScript accepts and refuses what the checker in Python does."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from case_files import case_text
from published_survey import ROOT, Operator, PublishedSurvey, Witness, a_collection

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node.js")
MODULE = ROOT / "clients" / "check" / "check_books.mjs"


def _node(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(NODE), *map(str, arguments)], capture_output=True, text=True, timeout=280)


def _check(site: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return _node(MODULE, site, *arguments)


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> PublishedSurvey:
    return PublishedSurvey(tmp_path_factory.mktemp("survey"), asked=30, users=40)


@pytest.mark.parametrize(
    ("kind", "answers", "epsilon"),
    [("oue", 3, "1"), ("sue", 9, "0.5"), ("grr", 4, "1"), ("grr", 300, "3"), ("randomized-response", 2, "1")],
)
def test_published_survey_is_accepted(tmp_path: Path, kind: str, answers: int, epsilon: str) -> None:
    survey = PublishedSurvey(tmp_path, asked=20, users=25, collection=a_collection("q", kind, answers, epsilon))
    key = survey.key.verifier_key
    done = _check(
        survey.site, "--key", key, "--receipt", survey.receipt("user3"), "--proof", survey.write_proof("user3")
    )
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert (found["yours"], found["programChecked"]) == (True, True)
    assert found["statement"] == survey.published.statement


def test_program_that_the_checker_does_not_know_is_not_judged(tmp_path: Path) -> None:
    survey = PublishedSurvey(tmp_path, asked=5, users=5, collection=a_collection("q", "pgr", 4))
    found = json.loads(_check(survey.site, "--key", survey.key.verifier_key).stdout)
    assert (found["programChecked"], found["statement"]["estimate"]) == (False, None)


def test_proof_of_another_respondent_is_refused(survey: PublishedSurvey) -> None:
    done = _check(
        survey.site,
        *("--key", survey.key.verifier_key, "--receipt", survey.receipt("user3")),
        *("--proof", survey.write_proof("user4")),
    )
    assert (done.returncode, done.stdout) == (1, "REFUSED: your charge is not among the charges\n")


def test_fork_is_refused_by_a_seen_checkpoint(survey: PublishedSurvey, tmp_path: Path) -> None:
    site = Operator(survey, tmp_path / "lie").sign(time="2026-11-01T00:00:00Z")
    done = _check(site, "--key", survey.key.verifier_key, "--seen", survey.site / "checkpoint")
    assert "TWO HISTORIES" in done.stdout


def test_other_estimate_is_refused(survey: PublishedSurvey, tmp_path: Path) -> None:
    estimate = {**survey.published.statement["estimate"], "fakes": 99}
    site = Operator(survey, tmp_path / "lie").sign(estimate=estimate)
    assert "the estimate does not follow" in _check(site, "--key", survey.key.verifier_key).stdout


def test_program_that_does_not_keep_its_epsilon_is_refused(survey: PublishedSurvey, tmp_path: Path) -> None:
    from hashlib import sha256

    from ldp_budget._files import canonical_json

    operator = Operator(survey, tmp_path / "lie")
    definition = json.loads((operator.site / "client.json").read_bytes())
    definition["steps"][0][1][1] = str(int(definition["steps"][0][1][1]) - 2**40)
    del definition["digest"]
    definition["digest"] = sha256(canonical_json(definition).encode()).hexdigest()
    (operator.site / "client.json").write_text(canonical_json(definition))
    done = _check(operator.sign(), "--key", survey.key.verifier_key)
    assert done.stdout == "REFUSED: the program does not keep its epsilon\n"


@pytest.mark.parametrize("times", [100, pytest.param(2000, marks=pytest.mark.exhaustive)])
def test_random_changes_are_refused(survey: PublishedSurvey, tmp_path: Path, times: int) -> None:
    site, witness = tmp_path / "site", Witness()
    shutil.copytree(survey.site, site)
    witness.cosign(site)
    keys = [survey.key.verifier_key, witness.verifier_key]
    receipt, proof = survey.receipt("user3"), survey.write_proof("user3")
    done = _node(ROOT / "tests" / "helpers" / "tamper_books.mjs", MODULE, site, times, *keys, "--", receipt, proof)
    assert done.stderr == ""
    assert json.loads(done.stdout) == []


SCRIPT = case_text("integration_javascript_checker.script.mjs")


def test_surveys_of_the_vectors_are_judged_as_stated(tmp_path: Path) -> None:
    script = tmp_path / "vectors.mjs"
    script.write_text(SCRIPT)
    done = _node(script, MODULE.as_uri(), ROOT / "clients" / "check" / "vectors.json")
    assert (done.stderr, json.loads(done.stdout)) == ("", [])
