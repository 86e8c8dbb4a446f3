"""The survey of docs/tutorials/repeated-survey.md: its estimates and its charges. `test_docs.py` runs the page."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from ldp_budget import Accountant, mechanism
from ldp_budget.guarantees import Memoised

if TYPE_CHECKING:
    from command_line import CommandLine

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "docs" / "tutorials" / "examples"
ALLOWED = 4.5  # standard errors
SEED = 1


# -- the study, through the library -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        yield import_module("repeated_survey")


class Run(NamedTuple):
    people: int
    study: Any


@pytest.fixture(scope="module")
def run(script: ModuleType) -> Run:
    people = script.people()
    with Accountant(":memory:") as accountant:
        return Run(len(people), script.run(people, accountant, np.random.default_rng(SEED)))


@pytest.fixture
def study(run: Run) -> Any:
    return run.study


@pytest.mark.slow
def test_repeated_survey_data_are_as_the_page_says(script: ModuleType) -> None:
    people = script.people()
    assert len({person["person"] for person in people}) == len(people) == 20_190
    assert {person["health"] for person in people} == set(script.HEALTH)
    visits = [int(person["visits"]) for person in people]
    assert (min(visits), max(visits)) == (0, 77)


@pytest.mark.exhaustive
def test_every_estimate_is_near_the_truth_and_its_known_bias(study: Any) -> None:
    assert len(study.figures) == 5 * (2 * 4 + 2)  # four rounds and all of them together
    for figure in study.figures:
        assert abs(figure.estimate - figure.truth - figure.bias) <= ALLOWED * figure.std_error, figure


@pytest.mark.exhaustive
def test_repeated_survey_interval_of_a_biased_mean_misses_the_truth(study: Any) -> None:
    for figure in study.figures:
        if figure.collection == "visits-b":
            assert figure.low > figure.truth + 20, figure
        else:
            assert figure.bias == pytest.approx(0, abs=1e-9)


@pytest.mark.exhaustive
def test_four_rounds_together_have_half_the_error_of_one(study: Any) -> None:
    means = {figure.rounds: figure.std_error for figure in study.figures if figure.collection == "visits-a"}
    assert means["all"] == pytest.approx(means["1"] / 2, rel=0.02)


@pytest.mark.exhaustive
def test_everybody_is_charged_what_the_plan_says_and_the_fifth_round_refused(run: Run) -> None:
    study = run.study
    assert study.spent == {8.0: run.people}
    assert study.refused == 2 * run.people
    assert study.verified


@pytest.mark.slow
def test_repeated_survey_round_charged_again_under_its_key_is_charged_once(script: ModuleType) -> None:
    panel = script.people()[:50]
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=8"])
        for _ in range(2):
            assert script.charge(accountant, script.QUESTIONS[0], panel, 1) == []
        assert accountant.balance(panel[0]["person"]).limits[0].to_json()["spent"]["epsilon"] == 1


# -- fresh and memoised -------------------------------------------------------------------------------------------


@pytest.fixture
def memoised() -> Any:
    return mechanism("one-bit-mean")(epsilon=1, maximum=77, rounding=7, flip="0.2")


def test_rounds_of_an_unchanged_answer_are_charged_along_the_curve(memoised: Any) -> None:
    guarantee = memoised.guarantee
    assert isinstance(guarantee, Memoised)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        for number in range(4):
            accountant.spend("alice", memoised, label="value", key=f"round {number}")
            spent = accountant.balance("alice").limits[0].to_json()["spent"]["epsilon"]
            assert Decimal(str(spent)) == guarantee.curve[number].quantize(Decimal("1e-9"), rounding="ROUND_UP")


@pytest.mark.slow
def test_repeated_survey_mean_of_memoized_rounds_has_the_computed_error(script: ModuleType, memoised: Any) -> None:
    answers = script.values(script.QUESTIONS[1], script.people()[:4000:2])
    rng = np.random.default_rng(7)
    secrets = [rng.bytes(32) for _ in answers]
    rounds = [memoised.estimate(memoised.randomize(answers, rng=rng, secrets=secrets)).mean for _ in range(4)]
    kept = mechanism("one-bit-mean")(epsilon=1, maximum=77, rounding=7)
    stays, whole = (script.error_of_one_report(one, answers)[1] for one in (kept, memoised))
    error = ((stays + (whole - stays) / 4) / len(answers)) ** 0.5
    assert abs(np.mean(rounds) - answers.mean()) <= ALLOWED * error
    assert np.std(rounds) < ALLOWED * ((whole - stays) / len(answers)) ** 0.5, "rounds differ by their flips alone"


def test_repeated_survey_tracker_without_its_secret_stores_nothing(command: CommandLine, tmp_path: Path) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("collection", "add", "tracker", "one-bit-mean", "--epsilon", 1, "--maximum", 77, "--rounding", 7)
    answers, out = tmp_path / "answers.csv", tmp_path / "out"
    answers.write_text("person,visits\np00001,2\n")
    run = ("randomize", "tracker", answers, "--column", "visits", "--user-column", "person", "--spend", "--out", out)
    assert "--secret is missing" in command.error(*run, code=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.csv", "budget.db", "budget.db.key"]
    assert command.json("ledger", "stats")["users"] == 0
