"""SurveyJS with its own user interface in Chromium: answers leave the page as one report, whatever listens."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chromium import devices
from command_line import CommandLine
from javascript import node
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey, SurveyQuestion
from sdk_pages import Site, bundled, served

MOODS = ("splendid", "middling", "dreadful")
QUESTIONS = (
    SurveyQuestion("mood", "How are you?", categories=MOODS),
    SurveyQuestion("smoke", "Do you smoke?", kind="yes-no", categories=("yes", "no")),
    SurveyQuestion("sleep", "Hours of sleep?", kind="number", lower=Decimal(0), upper=Decimal(14)),
    SurveyQuestion("rate", "How satisfied?", kind="scale", lower=Decimal(1), upper=Decimal(5)),
    SurveyQuestion("grid/food", "Food", categories=("scarce", "plenty")),
    SurveyQuestion("grid/rent", "Rent", categories=("scarce", "plenty")),
    SurveyQuestion(
        "drink", "What do you drink?", kind="tick", categories=("absinthe", "bourbon", "cider"), at_most="any"
    ),
    SurveyQuestion("faith", "What do you believe?", categories=("zeus", "wotan", "no answer"), optional=True),
)
ALL_KINDS = Path(__file__).parents[2] / "data" / "all_kinds.toml"
RAW = re.compile(
    "splendid|middling|dreadful|7\\.25(?!\\dZ)|scarce|plenty|absinthe|bourbon|cider|zeus|wotan|\\bmood\\b.{1,6}:"
)

CLICKED = re.compile(r"sq_\d+i_\d")
"""The place of an item, in the name of its input."""


def definition(answer: int | str = "all", questions: tuple[SurveyQuestion, ...] = QUESTIONS) -> dict[str, Any]:
    texts = {"title": "t", "organisation": "o", "contact": "c@example.org", "purpose": "p", "minimum_group": 1}
    return survey_collection(Survey("health", questions, Decimal(8), answer, **texts)).definition()  # type: ignore[arg-type]


ALL = definition()


def form(**changes: Any) -> dict[str, Any]:
    """The survey in SurveyJS; `mood` changes that question, `elements` come to the end, the rest is the survey's."""
    mood = {"type": "radiogroup", "name": "mood", "isRequired": True, "choices": [*MOODS], **changes.pop("mood", {})}
    drink = changes.pop("drink", {})
    own = [
        mood,
        {"type": "boolean", "name": "smoke", "isRequired": True},
        {"type": "text", "name": "sleep", "inputType": "number", "min": 0, "max": 14, "isRequired": True},
        {"type": "rating", "name": "rate", "isRequired": True, "rateMax": 5},
        {
            **{"type": "matrix", "name": "grid", "eachRowRequired": True},
            **{"columns": ["scarce", "plenty"], "rows": ["food", "rent"]},
        },
        {"type": "checkbox", "name": "drink", "choices": ["absinthe", "bourbon", "cider"], **drink},
        {"type": "dropdown", "name": "faith", "choices": ["zeus", "wotan"]},
    ]
    other = [{"type": "text", "name": "town"}, *changes.pop("elements", [])]
    return {"pages": [{"elements": own}, {"elements": other}], "showProgressBar": "top", **changes}


def answers(draws: random.Random) -> dict[str, Any]:
    made = {
        **{"mood": draws.choice(MOODS), "smoke": draws.random() < 0.5, "sleep": 7.25, "rate": draws.randint(1, 5)},
        **{"grid": {row: draws.choice(["scarce", "plenty"]) for row in ("food", "rent")}},
        **{"drink": draws.sample(["absinthe", "bourbon", "cider"], draws.randint(0, 3)), "town": "Ulm"},
    }
    return made | ({"faith": draws.choice(["zeus", "wotan"])} if draws.random() < 0.5 else {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the libraries."""
    return tmp_path_factory.mktemp("sdks") / "sdks"


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Site]:
    with served(bundled(folder, "surveyjs.js")) as made:
        yield made


@pytest.fixture
def page(browser: Any, site: Site) -> Iterator[Any]:
    """A page of a new device."""
    with devices(browser, 20_000) as made:
        opened = made()
        visit(opened, site)
        site.clear()
        yield opened


def visit(page: Any, site: Site) -> None:
    page.goto(site.page)
    page.wait_for_function("window.ready")


def start(page: Any, site: Site, **options: Any) -> None:
    given = {"json": form(), "definition": ALL, "sink": site.sink, **options}
    page.evaluate("(options) => open_(options)", given)


def stored(page: Any) -> str:
    """Everything that the browser keeps for this page as text: local storage, session storage, cookies, databases."""
    found: str = page.evaluate("""async () => {
        const texts = [JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie, location.href];
        const got = (request) => new Promise((ok) => { request.onsuccess = () => ok(request.result); });
        for (const { name } of await indexedDB.databases()) {
            const database = await got(indexedDB.open(name));
            for (const store of database.objectStoreNames) {
                texts.push(JSON.stringify(await got(database.transaction(store).objectStore(store).getAll())));
            }
            database.close();
        }
        return texts.join("\\n");
    }""")
    return found


def wire(site: Site) -> str:
    return "\n".join(each.readable for each in site.sent)


def told(text: str) -> list[str]:
    """Where an answer is in a text."""
    return [text[max(0, found.start() - 100) : found.end() + 20] for found in RAW.finditer(text)][:5]


def reports(site: Site) -> list[str]:
    return [json.loads(each.body)["ldp_report"] for each in site.sent if each.path.endswith("/answers")]


def test_answers_given_by_hand_leave_as_one_report_whatever_listens(page: Any, site: Site) -> None:
    start(page, site, handlers=True, capture=True)
    page.click("label:has-text('dreadful')")
    page.click(".sd-boolean__thumb, .sd-boolean", position={"x": 10, "y": 10})
    page.fill("input[type=number]", "7.25")
    page.keyboard.press("Tab")
    page.evaluate("answer({ smoke: true, rate: 4, grid: { food: 'plenty', rent: 'scarce' }, faith: 'wotan' })")
    page.click("label:has-text('bourbon')")
    page.click("input[value=Next]")
    page.click("input[value=Previous]")
    page.click("input[value=Next]")
    page.fill("input[type=text]", "Ulm")
    page.keyboard.press("Tab")
    assert told(stored(page)) == []
    page.click("input[value=Complete]")
    page.wait_for_function("window.completed")
    page.wait_for_timeout(1000)
    (report,) = reports(site)
    assert len(report) == 2 * ALL["report"]["bytes"]
    assert '"town":"Ulm"' in wire(site)
    handled = page.evaluate("handled")
    assert len(handled) > 100
    assert len({json.loads(each)[0] for each in handled}) > 20
    assert told("\n".join(handled)) == []
    assert "$autocapture" in wire(site), "of the button"
    assert not CLICKED.search(wire(site))
    assert told(wire(site)) == []
    assert told(stored(page)) == []
    assert page.evaluate("shut.length") >= 8


LISTEN = """(values) => {
    window.heard = {};
    const simple = (value) => value === null || typeof value !== "object";
    const plain = (value) => (simple(value) ? value : Array.isArray(value) ? value.map(plain) : undefined);
    for (const event of Object.keys(survey).filter((name) => /^on[A-Z]/.test(name) && survey[name]?.add)) {
        try {
            survey[event].add((_, options) => {
                const told = Object.entries(options ?? {}).map(([name, value]) => [name, plain(value)]);
                (heard[event] ??= []).push(JSON.stringify(told));
            });
        } catch {}
    }
    answer(values);
}"""
DRAWING = {"onTextMarkdown", "onTextRenderAs", "onElementWrapperComponentName"}
"""Events of the texts that a page shows, such as the chosen item of a list."""


def test_events_tell_handlers_nothing_of_the_answers(page: Any, site: Site) -> None:
    """Two people with different answers: every event happens as often, with the same options."""
    first = {"mood": "splendid", "smoke": True, "sleep": 3, "rate": 1, "drink": ["absinthe"], "faith": "zeus"}
    other = {"mood": "dreadful", "smoke": False, "sleep": 9, "rate": 5, "drink": ["cider"], "faith": "wotan"}
    heard = []
    for place, values in enumerate((first, other)):
        visit(page, site)
        start(page, site, key=f"{place}")
        row = {"food": ("scarce", "plenty")[place], "rent": ("plenty", "scarce")[place]}
        page.evaluate(LISTEN, values | {"grid": row, "town": "Ulm"})
        page.click("input[value=Next]")
        page.click("input[value=Previous]")
        complete(page)
        heard.append(page.evaluate("heard"))
    one, two = heard
    assert len(one) > 20
    assert {event for event in {*one, *two} if one.get(event) != two.get(event)} <= DRAWING


def test_survey_without_protection_sends_the_answers(page: Any, site: Site) -> None:
    start(page, site, bare=True, listen="onValueChanged", capture=True)
    page.click("label:has-text('dreadful')")
    page.wait_for_timeout(1500)
    assert RAW.search("".join(each.readable for each in site.sent if "/saved" in each.path))
    assert CLICKED.search(wire(site))


# -- a report for each key -------------------------------------------------------------------------------------------


def complete(page: Any) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("complete()")
    return found


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_submissions_send_and_keep_no_answer_and_are_each_charged_once(page: Any, site: Site, count: int) -> None:
    """With a reload, Back, a lost network or a second tab in some of them."""
    draws = random.Random(47)
    keys = [f"round-{number}" for number in range(count)]
    expected: dict[str, str] = {}
    for number, key in enumerate(keys):
        start(page, site, key=key)
        page.evaluate("(values) => answer(values)", answers(draws))
        trouble = number % 12
        if trouble == 3:
            page.reload()
            page.wait_for_function("window.ready")
            start(page, site, key=key)
            page.evaluate("(values) => answer(values)", answers(draws))
        if trouble == 5:
            page.context.set_offline(True)
        found = complete(page)
        assert found["state"] == "completed", found
        assert [each or None for each in found["left"]] == [None] * 7 + ["Ulm"]
        assert found["data"].keys() == {"town", "ldp_report", "ldp_digest"}
        expected[key] = found["data"]["ldp_report"]
        if trouble == 5:  # the network is back, and the person gives other answers
            page.context.set_offline(False)
            start(page, site, key=key)
            page.evaluate("(values) => answer(values)", answers(draws))
            assert complete(page)["data"]["ldp_report"] == expected[key]
        if trouble == 7:
            page.goto(f"{site.page}?away")
            page.go_back()
            page.wait_for_function("window.ready")
            start(page, site, key=key)
            page.evaluate("(values) => answer(values)", answers(draws))
            assert complete(page)["data"]["ldp_report"] == expected[key]
        if trouble == 9:
            other = page.context.new_page()
            visit(other, site)
            start(other, site, key=f"{key} both")
            start(page, site, key=f"{key} both")
            for each in (other, page):
                each.evaluate("(values) => { answer(values); window.both = complete(); }", answers(draws))
            one, two = (each.evaluate("both")["data"]["ldp_report"] for each in (other, page))
            assert one == two
            expected[f"{key} both"] = one
            other.close()
    assert told(wire(site)) == []
    assert told(stored(page)) == []
    assert {*reports(site)} == {*expected.values()}
    assert len({*expected.values()}) > 0.9 * len(expected)
    entries = page.evaluate("outbox.entries().then((all) => all.map(({ key, units }) => [key, units]))")
    assert dict(entries) == dict.fromkeys(expected, entries[0][1])
    spent = page.evaluate("outbox.budget.balance()")["lifetime"]["spent"]
    assert Decimal(spent) == Decimal(entries[0][1] * len(expected)) / 10**9


def test_answers_come_as_each_question_reads_them(page: Any, site: Site) -> None:
    """At an epsilon so large that reports say what was answered."""
    texts = {"title": "t", "organisation": "o", "contact": "c@example.org", "purpose": "p", "minimum_group": 1}
    chosen = tuple(each for each in QUESTIONS if each.name not in ("sleep", "rate", "drink"))
    sure = survey_collection(Survey("health", chosen, Decimal(200), "all", **texts)).definition()  # type: ignore[arg-type]
    kept = ["mood", "smoke", "grid", "faith", "town"]
    small = form()
    for each in small["pages"]:
        each["elements"] = [element for element in each["elements"] if element["name"] in kept]
    given = {"mood": "dreadful", "smoke": False, "grid": {"food": "plenty", "rent": "scarce"}}
    for faith, place in (({}, 2), ({"faith": "wotan"}, 1)):
        start(page, site, json=small, definition=sure, lifetime="10000", key=f"{faith}")
        page.evaluate("(values) => answer(values)", given | faith)
        report = bytes.fromhex(complete(page)["data"]["ldp_report"])
        assert list(report[1:]) == [2, 1, 1, 0, place]


GRIDS = """
[survey]
name = "money"
title = "t"
organisation = "o"
contact = "c@example.org"
purpose = "p"
epsilon = 300
joint = true
minimum_group = 1
[[question]]
name = "smoke"
text = "Do you smoke?"
kind = "yes-no"
[[question]]
name = "drive"
text = "Do you drive?"
kind = "yes-no"
[[grid]]
name = "grid"
text = "Have you enough for"
items = ["food", "rent"]
categories = ["scarce", "plenty"]
answer = 2
"""


def test_grids_and_joint_questions_are_asked_as_rows_and_as_questions(page: Any, site: Site, tmp_path: Path) -> None:
    file = tmp_path / "money.toml"
    file.write_text(GRIDS)
    made = survey_collection(Survey.from_toml(file)).definition()
    assert [question["kind"] for question in made["questions"]] == ["grid", "grid"]
    small = form()
    small["pages"] = [
        {"elements": [each for each in small["pages"][0]["elements"] if each["name"] in ("smoke", "grid")]}
    ]
    small["pages"][0]["elements"] += [{"type": "boolean", "name": "drive", "isRequired": True}]
    start(page, site, json=small, definition=made)
    page.evaluate("answer({ smoke: true, drive: false, grid: { food: 'plenty', rent: 'scarce' } })")
    found = complete(page)
    assert found["state"] == "completed", found
    assert len(bytes.fromhex(found["data"]["ldp_report"])) == made["report"]["bytes"]
    assert told(wire(site)) == []


def test_person_is_asked_some_questions_and_reports_those(page: Any, site: Site) -> None:
    three = definition(3)
    start(page, site, definition=three, seed=[7] * 32)
    page.evaluate("(values) => answer(values)", answers(random.Random(1)) | {"faith": "zeus"})
    shown = page.evaluate("survey.getAllQuestions().filter((each) => each.visible).map((each) => each.name)")
    found = complete(page)
    assert found["state"] == "completed", found
    mask = int.from_bytes(bytes.fromhex(found["data"]["ldp_report"])[:1], "little")
    asked = {
        question["name"].partition("/")[0] for place, question in enumerate(three["questions"]) if mask >> place & 1
    }
    assert mask.bit_count() == 3
    assert {*shown} == asked | {"town"}
    assert page.evaluate("(o) => refused(o)", {"json": form(), "definition": three}).endswith(
        "give the person's `seed`"
    )


def test_newest_core_of_surveyjs_keeps_answers_apart_too(folder: Path) -> None:
    bundled(folder, "surveyjs.js")
    given = {"definition": ALL, "json": form(), "answers": answers(random.Random(1)) | {"faith": "zeus"}}
    command = [node(), "--preserve-symlinks", "--preserve-symlinks-main", "newest.mjs"]
    done = subprocess.run(
        command, cwd=folder, input=json.dumps(given), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["before"] == {"data": {"town": "Ulm"}, "plain": ["town"]}
    assert (found["data"], found["asked"]) == (["town", "ldp_report", "ldp_digest"], len(QUESTIONS))
    assert [each or None for each in found["left"]] == [None] * 7 + ["Ulm"]
    assert "would see answers without noise" in found["late"]


def test_survey_over_the_budget_is_not_completed_and_sends_nothing(page: Any, site: Site) -> None:
    start(page, site, lifetime="1")
    page.evaluate("(values) => answer(values)", answers(random.Random(1)))
    found = complete(page)
    assert found["state"] == "running"
    assert found["said"].startswith("over the budget of this device")
    assert reports(site) == []


def test_survey_without_an_answer_is_not_completed_and_says_no_answer(page: Any, site: Site) -> None:
    start(page, site)
    page.evaluate("(values) => answer(values)", answers(random.Random(1)) | {"sleep": 99})
    found = complete(page)
    assert (found["state"], found["said"]) == ("running", "An answer is missing, or is none that can be reported.")


def test_completion_that_a_handler_stops_keeps_the_answers_and_the_report(page: Any, site: Site) -> None:
    start(page, site)
    page.evaluate("(values) => answer(values)", answers(random.Random(1)) | {"mood": "dreadful"})
    page.evaluate(
        "survey.onCompleting.add((_, options) => { options.allow = !window.stopped; window.stopped ??= false; })"
    )
    page.evaluate("window.stopped = true; survey.doComplete(); new Promise((ok) => setTimeout(ok, 300))")
    assert page.evaluate("[survey.state, survey.getValue('mood')]") == ["running", "dreadful"]
    first = page.evaluate("survey.data.ldp_report")
    page.evaluate("window.stopped = false")
    assert complete(page)["data"]["ldp_report"] == first


def test_restored_answers_are_kept_apart_too_and_a_cleared_survey_has_none(page: Any, site: Site) -> None:
    start(page, site, filled={"mood": "dreadful", "town": "Ulm"})
    assert page.evaluate("[survey.data, survey.getValue('mood')]") == [{"town": "Ulm"}, "dreadful"]
    page.evaluate("survey.data = { mood: 'splendid', town: 'Bonn' }")
    assert page.evaluate("[survey.data, survey.getValue('mood')]") == [{"town": "Bonn"}, "splendid"]
    page.evaluate("survey.clear()")
    assert page.evaluate("[survey.data, survey.getValue('mood') ?? null]") == [{}, None]


def test_structured_results_and_a_preview_hold_no_answers(page: Any, site: Site) -> None:
    start(page, site, json=form(showPreviewBeforeComplete="showAllQuestions"))
    page.evaluate("(values) => answer(values)", answers(random.Random(1)) | {"mood": "dreadful"})
    structured = (
        "[true, false].flatMap((pages) => [-1, 1, 2, 9].map((level) => survey.getStructuredData(pages, level)))"
    )
    whole = page.evaluate(
        f"JSON.stringify([...{structured}, survey.getData({{ includePages: true, includePanels: true }})])"
    )
    assert "Ulm" in whole
    assert told(whole) == []
    page.evaluate("survey.showPreview()")
    found = complete(page)
    assert found["state"] == "completed", found
    assert [each for each in found["left"] if each] == ["Ulm"]
    assert told(json.dumps(page.evaluate(structured))) == []
    assert told(wire(site)) == []


# -- what is refused -------------------------------------------------------------------------------------------------

ELSEWHERE = {
    "visibleIf": {"elements": [{"type": "text", "name": "why", "visibleIf": "{mood} = 'dreadful'"}]},
    "visibleIf of a page": {"elements": [{"type": "panel", "name": "p", "visibleIf": "{grid.food} notempty"}]},
    "requiredIf by a function": {
        "elements": [{"type": "text", "name": "why", "requiredIf": "displayValue('mood') = 'x'"}]
    },
    "visibleIf in capitals": {"elements": [{"type": "text", "name": "why", "visibleIf": "{MOOD} = 'dreadful'"}]},
    "navigateToUrl": {"navigateToUrl": "/thanks?m={mood}"},
    "navigateToUrlOnCondition": {"navigateToUrlOnCondition": [{"expression": "{mood} = 'dreadful'", "url": "/help"}]},
    "choicesByUrl": {"elements": [{"type": "dropdown", "name": "z", "choicesByUrl": {"url": "/c?m={mood}"}}]},
    "image": {"elements": [{"type": "image", "name": "i", "imageLink": "/i?{mood}"}]},
    "html": {"completedHtml": "<img src='/i?{drink[0]}'>"},
    "calculated value": {
        "calculatedValues": [{"name": "v", "expression": "iif({mood} = 'dreadful', 1, 0)", "includeIntoResult": True}]
    },
    "trigger": {
        "triggers": [{"type": "copyvalue", "expression": "{mood} notempty", "fromName": "mood", "setToName": "town"}]
    },
    "choicesFromQuestion": {"elements": [{"type": "checkbox", "name": "more", "choicesFromQuestion": "drink"}]},
    "defaultValueExpression": {"elements": [{"type": "text", "name": "copy", "defaultValueExpression": "{mood}"}]},
    "setValueExpression": {"elements": [{"type": "text", "name": "copy", "setValueExpression": "{mood} + ''"}]},
    "valueName of another": {"elements": [{"type": "text", "name": "copy", "valueName": "mood"}]},
    "valueName": {"mood": {"valueName": "m"}},
    "partial results": {"partialSendEnabled": True},
    "service": {"surveyPostId": "id"},
    "other": {"mood": {"showOtherItem": True}},
    "none": {"mood": {"showNoneItem": True}},
    "comment": {"mood": {"showCommentArea": True}},
    "optional": {"mood": {"isRequired": False}},
    "asked sometimes": {"mood": {"visibleIf": "{town} = 'Ulm'"}},
    "order of choices": {"mood": {"choices": [*reversed(MOODS)]}},
    "fetched choices": {"mood": {"choicesByUrl": {"url": "/moods"}}},
    "correct answer": {"mood": {"correctAnswer": "splendid"}},
    "custom choices": {"mood": {"type": "dropdown", "allowCustomChoices": True}},
    "objects as values": {"elements": [], "drink": {"valuePropertyName": "item"}},
    "name put together": {
        "elements": [{"type": "expression", "name": "e", "expression": "displayValue('mo' + 'od')"}]
    },
    "file": {"elements": [{"type": "file", "name": "photo"}]},
    "signature": {"elements": [{"type": "signaturepad", "name": "sign"}]},
    "words": {"mood": {"type": "comment", "choices": None}},
    "twice": {"elements": [{"type": "radiogroup", "name": "mood", "isRequired": True, "choices": [*MOODS]}]},
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_survey_that_would_leak_is_refused_with_the_reason(page: Any, site: Site, case: str) -> None:
    said = page.evaluate("(o) => refused(o)", {"json": form(**ELSEWHERE[case]), "definition": ALL})
    assert said.startswith("this survey would leak an answer, or cannot be reported: "), said
    assert re.search("mood|drink|grid|no text|partialSend|surveyPostId|photo|sign|asks a question twice", said)
    assert page.evaluate("survey.getAllQuestions().length") >= 7
    assert site.sent == []


@pytest.mark.parametrize(
    "event",
    ["onValueChanged", "onValueChanging", "onServerValidateQuestions", "onValidateQuestion", "onProgressText"],
)
def test_handler_that_would_see_answers_is_refused_before_and_after(page: Any, site: Site, event: str) -> None:
    said = page.evaluate("(o) => refused(o)", {"json": form(), "definition": ALL, "listen": event, "sink": site.sink})
    assert f"a handler of `{event}` would see answers without noise; use `onComplete`" in said
    start(page, site)
    late = page.evaluate(
        "(event) => { try { survey[event].add(() => {}); } catch (error) { return error.message; } }", event
    )
    assert f"a handler of `{event}` would see answers without noise" in late


def test_function_in_place_of_an_event_is_refused_before_and_after(page: Any, site: Site) -> None:
    start(page, site)
    late = page.evaluate("() => try_(() => { survey.onServerValidateQuestions = () => {}; })")
    assert "a handler of `onServerValidateQuestions` would see answers without noise" in late
    page.evaluate("survey.dispose()")
    said = page.evaluate("(o) => refused(o)", {"json": form(), "definition": ALL, "validate": True})
    assert "a handler of `onServerValidateQuestions` would see answers without noise" in said


def test_key_with_a_report_of_another_survey_is_refused(page: Any, site: Site) -> None:
    start(page, site)
    page.evaluate("(values) => answer(values)", answers(random.Random(1)))
    complete(page)
    start(page, site, definition=definition(questions=QUESTIONS[:4]), json=form(elements=[]))
    page.evaluate("(values) => answer(values)", answers(random.Random(1)))
    found = complete(page)
    assert found["state"] == "running"
    assert found["said"] == "The key 2026-11 has a report of another survey on this device: take another key."


def test_names_that_begin_alike_are_told_apart(page: Any, site: Site) -> None:
    more: list[Any] = [{"type": "text", "name": "mood2"}]
    more += [{"type": "text", "name": "mood-2"}, {"type": "text", "name": "why", "visibleIf": "{mood2} notempty"}]
    start(page, site, json=form(elements=more))


def test_survey_is_protected_once_and_with_the_agreed_definition(page: Any, site: Site) -> None:
    start(page, site)
    again = page.evaluate("refused({ json: {}, definition: {} })")
    assert again != "accepted"
    altered = ALL | {"title": "another"}
    assert "the definition has the digest" in page.evaluate(
        "(o) => refused(o)", {"json": form(), "definition": altered}
    )


def test_exported_form_with_every_kind_of_question_is_accepted_and_reported(
    page: Any, site: Site, command: CommandLine
) -> None:
    command("survey", "add", ALL_KINDS)
    exported = json.loads(command("survey", "export", "health", "--surveyjs").stdout)
    agreed = json.loads(command("collection", "show", "health", "--client").stdout)
    start(page, site, json=exported, definition=agreed)
    assert page.evaluate("survey.getAllQuestions().length") == len(exported["pages"][0]["elements"])
    page.evaluate("survey.locale = 'ko'")
    for text in ("건강", "기분?", "좋음", "예", "국", "낮음"):
        assert page.locator(f"text={text}").count() >= 1, text
    given = {
        **{"mood": "fair", "smoke": True, "drugs": False, "sleep": -0.25, "income": 12.5, "rate": 4},
        **{"drink": ["beer", "milk"], "many": "j", "food": {"soup": "low", "fish": "high"}},
        **{"rent": {"one": "2"}, "phq": {"one": "0", "two": "3", "three": "1"}},
    }
    page.evaluate("(given) => answer(given)", given)
    done = page.evaluate("complete()")
    assert (done["state"], done["said"]) == ("completed", "")
    (report,) = reports(site)
    assert len(report) == 2 * agreed["report"]["bytes"]
