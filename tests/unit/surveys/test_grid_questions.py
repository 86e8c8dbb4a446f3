"""Grids and joint yes/no questions of a survey: the TOML file, the questionnaire, estimates, tables and plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldp_budget.errors import InvalidParameter, OutsideDomain
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.public_attributes import PublicAttributes
from ldp_budget_surveys.design_prices import design_prices
from ldp_budget_surveys.designs.moments import PRODUCTS
from ldp_budget_surveys.designs.questions import question, questions_of, read_moments, read_table, table_law
from ldp_budget_surveys.planning.margins import Precision
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.survey_rows import survey_row
from ldp_budget_surveys.questionnaires.surveys import JOINT, Survey
from ldp_budget_surveys.survey_planning import plan_survey

TEXT = """
[survey]
name = "service"
epsilon = {epsilon}
answer = {answer}
joint = {joint}

[[question]]
name = "smoke"
kind = "yes-no"

[[question]]
name = "age"
lower = 18
upper = 99

[[question]]
name = "drink"
kind = "yes-no"
text = "Do you drink?"
languages.ko = {{ text = "술을 드시나요?" }}

[[grid]]
name = "good"
text = "How good are these?"
items = ["staff", "price", "hours"]
languages.ko = {{ text = "어떠셨나요?", items = ["직원", "가격", "시간"] }}
{more}
"""
ENDS = "lower = 1\nupper = 4"


def survey_of(
    folder: Path, more: str = ENDS, *, epsilon: Any = 9, answer: Any = '"all"', joint: str = "true"
) -> Survey:
    text = TEXT.format(more=more, epsilon=epsilon, answer=answer, joint=joint)
    (folder / "service.toml").write_text(text, encoding="utf-8")
    return Survey.from_toml(folder / "service.toml")


def test_grid_and_joint_questions_are_one_slot_each(tmp_path: Path) -> None:
    survey = survey_of(tmp_path)
    made = survey.questionnaire()
    assert [each.name for each in made.questions] == [JOINT, "age", "good"]
    assert [each.items for each in made.questions] == [
        ("smoke", "drink"),
        None,
        ("good/staff", "good/price", "good/hours"),
    ]
    assert made.questions[0].mechanism.declared == {"epsilon": "3", "items": 2, "domain_size": 2}
    assert made.questions[2].mechanism.declared == {"epsilon": "3", "items": 3, "domain_size": 4}
    assert [view.name for view in made.views] == ["smoke", "drink", "age", "good/staff", "good/price", "good/hours"]
    assert Survey.from_json(survey.to_json()) == survey
    collection = survey_collection(survey)
    assert Collection.from_json(collection.to_json()).fingerprint == collection.fingerprint


def test_survey_without_joint_asks_yes_no_questions_by_themselves(tmp_path: Path) -> None:
    survey = survey_of(tmp_path, joint="false")
    assert [each.name for each in survey.slots] == ["smoke", "age", "drink", "good"]
    assert "joint" not in survey.to_json()


@pytest.mark.parametrize(
    ("more", "declared", "categories"),
    [
        ("answer = 2\n" + ENDS, {"asked": 2, "domain_size": 4}, ("1", "2", "3", "4")),
        ('categories = ["bad", "good"]', {"domain_size": 2}, ("bad", "good")),
        (f"optional = true\n{ENDS}", {"domain_size": 5}, ("1", "2", "3", "4", "no answer")),
    ],
)
def test_grid_has_the_answers_and_the_asked_items_of_the_file(
    tmp_path: Path, more: str, declared: dict[str, int], categories: tuple[str, ...]
) -> None:
    survey = survey_of(tmp_path, more)
    made = survey.questionnaire().questions[2]
    assert made.mechanism.declared == {"epsilon": "3", "items": 3, **declared}
    assert made.categories == categories
    assert Survey.from_json(survey.to_json()) == survey


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", r"\[\[grid\]\] good lower is missing"),
        ("answer = 4\n" + ENDS, "answer must be how many of the 3 items"),
        ("answer = true\n" + ENDS, "answer must be how many"),
        ("lower = 1\nupper = 4.5", "upper must be a whole number"),
        ('categories = ["a", "b"]\nlower = 1', "lower must be left out"),
        (ENDS + '\nmechanism = "grr"', "does not randomize several items"),
        (ENDS + "\ntop = 2", "top must be left out"),
    ],
)
def test_grid_with_a_wrong_key_is_refused(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        survey_of(tmp_path, more).questionnaire()


@pytest.mark.parametrize("items", ['["staff"]', '["staff", "staff"]', '["staff", ""]', '["a:b", "c"]', '"staff"'])
def test_grid_needs_two_items_with_names_of_their_own(tmp_path: Path, items: str) -> None:
    text = TEXT.format(more=ENDS, epsilon=9, answer='"all"', joint="true")
    (tmp_path / "a.toml").write_text(text.replace('["staff", "price", "hours"]', items))
    with pytest.raises(InvalidParameter, match=r"grid|items"):
        Survey.from_toml(tmp_path / "a.toml")


def test_joint_needs_two_plain_yes_no_questions(tmp_path: Path) -> None:
    text = TEXT.format(more=ENDS, epsilon=9, answer='"all"', joint="true")
    (tmp_path / "a.toml").write_text(text.replace('kind = "yes-no"\ntext', 'kind = "yes-no"\noptional = true\ntext'))
    with pytest.raises(InvalidParameter, match="joint must be false"):
        Survey.from_toml(tmp_path / "a.toml")


def test_questions_that_are_randomized_together_count_once_for_answer(tmp_path: Path) -> None:
    assert survey_of(tmp_path, answer=3).ask == 3
    with pytest.raises(InvalidParameter, match="how many of the 3 questions"):
        survey_of(tmp_path, answer=4)


def test_public_definition_of_a_grid_names_its_items_in_each_language(tmp_path: Path) -> None:
    definition = survey_collection(survey_of(tmp_path)).definition()
    joint, _, grid = definition["questions"]
    assert (joint["kind"], joint["answers"]) == ("grid", ["yes", "no"])
    assert joint["items"][1] == {"name": "drink", "text": "Do you drink?", "languages": {"ko": "술을 드시나요?"}}
    assert grid["items"][0] == {"name": "good/staff", "text": "staff", "languages": {"ko": "직원"}}
    assert grid["languages"] == {"ko": {"question": "어떠셨나요?"}}
    shown = survey_of(tmp_path).shown
    assert [each.text for each in shown if each.name == "good/staff"] == ["How good are these?: staff"]
    assert shown[3].languages["ko"]["text"] == "어떠셨나요?: 직원"


def row(**more: Any) -> dict[str, Any]:
    return {
        "smoke": "yes",
        "drink": "no",
        "age": "30",
        "good": {"good/staff": 4, "good/price": "1", "good/hours": 2},
    } | more


def test_answers_are_read_by_item_or_as_an_object(tmp_path: Path) -> None:
    made = survey_of(tmp_path).questionnaire()
    flat = {f"good/{item}": answer for item, answer in (("staff", 4), ("price", "1.0"), ("hours", "2"))}
    found = made.read_values([row(), {"smoke": 1, "drink": "0", "age": 30, **flat}])
    assert found["q0"].tolist() == [2, 2]
    assert found["q2"].tolist() == [3 + 0 + 16] * 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"good": {"good/staff": 4}}, "one of 1, 2, 3, 4 \\(good/price\\)"),
        ({"good": {"good/staff": 5, "good/price": 1, "good/hours": 1}}, "\\(good/staff\\)"),
        ({"good": "4"}, "an answer to each of good/staff"),
        ({"smoke": "maybe"}, "yes, no \\(smoke\\)"),
    ],
)
def test_grid_refuses_an_item_without_one_of_its_answers(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    with pytest.raises(OutsideDomain, match=said):
        survey_of(tmp_path).questionnaire().read_values([row(**more)])


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Collection, Any, Any, Any]:
    """6,000 respondents: a third smokes, and these drink more often; three items that agree half of the time."""
    survey = survey_collection(survey_of(tmp_path_factory.mktemp("grid"), epsilon=12))
    rng = np.random.default_rng(3)
    smoke = rng.random(6000) < 1 / 3
    drink = rng.random(6000) < np.where(smoke, 0.8, 0.3)
    first = rng.integers(1, 5, 6000)
    items = np.stack([first, np.where(rng.random(6000) < 0.5, first, rng.integers(1, 5, 6000)), first], axis=1)
    rows = [
        {"smoke": "yes" if s else "no", "drink": "yes" if d else "no", "age": 30, "good": [*map(int, each)]}
        for s, d, each in zip(smoke, drink, items, strict=True)
    ]
    return survey, survey.mechanism.randomize(rows, rng=rng), (smoke, drink), items


def test_estimates_of_joint_questions_and_items_hold_the_truth(sample: Any) -> None:
    survey, reports, (smoke, drink), items = sample
    found = survey_row(survey, survey.mechanism.estimate(reports))
    for name, truth in (("smoke", smoke), ("drink", drink)):
        yes = found[name]["answers"][0]
        assert found[name]["asked"] == 6000
        assert abs(yes["share"] - truth.mean()) < 5 * yes["share_std_error"]
    for place, item in enumerate(("staff", "price", "hours")):
        own = found[f"good/{item}"]
        assert 0 < own["asked"] < 6000
        for each in own["answers"]:
            truth = (items[:, place] == int(each["answer"])).mean()
            assert abs(each["share"] - truth) < 5 * each["share_std_error"]


def test_table_of_joint_questions_is_unbiased_where_products_are_not(sample: Any) -> None:
    survey, reports, (smoke, drink), _ = sample
    blocks = [(reports, PublicAttributes((), ((),), np.zeros(len(reports), np.int64)))]
    first, second = question(survey, "smoke"), question(survey, "drink")
    shares = read_table(survey, first, second, blocks).sums[0] / len(reports)
    truth = [(smoke & drink).mean(), (smoke & ~drink).mean(), (~smoke & drink).mean(), (~smoke & ~drink).mean()]
    assert shares[4:] == pytest.approx(truth, abs=0.03)
    assert shares[4:].sum() == pytest.approx(1)
    assert table_law(first, second) is None
    alone = read_moments(survey, first, blocks, PRODUCTS).sums[0] / len(reports)
    assert alone == pytest.approx(shares[:2])


def test_questions_of_a_survey_are_its_items(sample: Any) -> None:
    survey, reports, *_ = sample
    asked = {each.name: each for each in questions_of(survey)}
    here, own = asked["good/price"].of(survey, reports)
    assert here.sum() == len(own) < len(reports)
    assert asked["smoke"].of(survey, reports)[0].all()


def test_plan_counts_the_respondents_who_are_asked_an_item(tmp_path: Path) -> None:
    plan = plan_survey(survey_of(tmp_path, "answer = 1\n" + ENDS, epsilon=3), respondents=3000)
    each = next(design for design in plan["designs"] if design["answer"] == "all")
    grid = next(found for found in each["questions"] if found["name"] == "good")
    assert grid["asked"] == 1000
    assert [design["answer"] for design in plan["designs"]] == [1, 2, "all"]


@pytest.mark.parametrize("epsilon", [1, 4])
def test_planned_margin_of_an_item_is_within_five_percent_of_the_realized_one(tmp_path: Path, epsilon: int) -> None:
    """At the worst share, of the exact spread of estimates about the respondents."""
    made = survey_of(tmp_path, epsilon=3 * epsilon).questionnaire().questions[2].mechanism
    precision = Precision.of(made)
    p, q = (float(made.chance[name]) for name in "pq")
    asked = precision.asked_of(3000, (1, 1))
    assert asked == 3000 * made.design.asked // 3
    noise = max(q * (1 - q), p * (1 - p)) / (p - q) ** 2 / asked
    assert precision.margin(3000, (1, 1)) == pytest.approx(1.96 * noise**0.5, rel=0.05) or made.design.asked < 3
    assert precision.worst(asked, 0.0).margin == pytest.approx(1.96 * noise**0.5, rel=0.05)


@pytest.mark.parametrize("epsilon", [4, 8])
def test_joint_report_has_less_variance_than_divided_epsilon(tmp_path: Path, epsilon: int) -> None:
    together = survey_of(tmp_path, epsilon=3 * epsilon).questionnaire()
    apart = survey_of(tmp_path, epsilon=3 * epsilon, joint="false").questionnaire()
    one, other = (Precision.of(each.questions[0].mechanism).margin(3000, (1, 1)) for each in (together, apart))
    assert one < other


def saved(folder: Path, epsilon: int, answer: str, questions: int = 3) -> Survey:
    rows = "".join(f'[[question]]\nname = "q{place}"\nkind = "yes-no"\n' for place in range(questions))
    (folder / "yes.toml").write_text(f'[survey]\nname = "yes"\nepsilon = {epsilon}\nanswer = {answer}\n{rows}')
    return Survey.from_toml(folder / "yes.toml")


@pytest.mark.parametrize(
    ("epsilon", "answer", "joint"),
    [
        (3, '"all"', True),  # one report at ε = 3 in place of three at ε = 1
        (1, "1", False),  # one of three questions at ε = 1 needs no joint report
        (6, "1", True),
        (6, "2", False),  # two of three questions are more than the one that would be left
    ],
)
def test_file_that_does_not_say_joint_has_the_design_of_less_variance(
    tmp_path: Path, epsilon: int, answer: str, joint: bool
) -> None:
    survey = saved(tmp_path, epsilon, answer)
    assert survey.joint is joint
    assert Survey.from_json(survey.to_json()).joint is joint


def test_survey_that_was_stored_before_joint_stays_as_it_is(tmp_path: Path) -> None:
    stored = saved(tmp_path, 3, '"all"').to_json()
    del stored["joint"]
    assert [each.name for each in Survey.from_json(stored).slots] == ["q0", "q1", "q2"]


def test_prices_name_what_the_design_costs_beside_another(tmp_path: Path) -> None:
    joint, grid = design_prices(survey_of(tmp_path, "answer = 3\n" + ENDS, epsilon=12))
    assert joint.startswith("smoke, drink: randomized together, so ε = 4 is about each of them, and not ε = 3")
    assert grid.startswith("good: 3 items each have ")
    (tmp_path / "a.toml").write_text(
        '[survey]\nname = "a"\nepsilon = 1\n[[question]]\nname = "b"\nkind = "scale"\nlower = 1\nupper = 5\nreport = "shares"'
    )
    (price,) = design_prices(Survey.from_toml(tmp_path / "a.toml"))
    assert price == 'b: its shares have 4.0 times the noise variance of one top box (report = "top-box")'


def test_plan_of_a_scale_has_the_margin_of_each_report(tmp_path: Path) -> None:
    text = '[survey]\nname = "a"\nepsilon = 2\n[[question]]\nname = "b"\nkind = "scale"\nlower = 0\nupper = 10\nreport = "{}"'
    found = []
    for report in ("mean", "nps", "shares", "top-box"):
        (tmp_path / "a.toml").write_text(text.format(report))
        row = plan_survey(Survey.from_toml(tmp_path / "a.toml"), respondents=1000)["designs"][0]["questions"][0]
        assert row["margin"] == pytest.approx(row["reports"][report])
        found.append(row["reports"])
    assert set(found[0]) == {"mean", "shares", "top-box", "nps"}
    assert found[0]["top-box"] < found[0]["shares"]
