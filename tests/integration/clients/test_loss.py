"""The client in JavaScript computes the loss of a program, and refuses a definition that states less."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import ldp_budget
from checker_vectors import VECTORS
from client_cases import CASES
from generated_programs import Generator, TooManyOutcomesError, loss_of, stating, undefined
from javascript import PACKAGE, evaluated
from javascript import run as run_node
from ldp_budget import Collection
from ldp_budget.sdk.operator_forms import FORMS

LOSS = (PACKAGE / "src" / "loss.js").as_uri()
CONFIRMED = "confirmed"
NOT_CONFIRMABLE = frozenset({"one-sided"})
"""The settings of the vectors whose loss the client cannot confirm: no ε holds."""


def judged(definitions: list[dict[str, Any]]) -> list[str]:
    """`confirmed`, or why a definition is refused."""
    source = f"""
        const {{ Unconfirmed, confirmLoss }} = await import({json.dumps(LOSS)});
        const said = {json.dumps(definitions)}.map((definition) => {{
            try {{
                confirmLoss(definition);
                return {json.dumps(CONFIRMED)};
            }} catch (error) {{
                if (!(error instanceof Unconfirmed)) throw error;
                return error.message;
            }}
        }});
        console.log(JSON.stringify(said));
    """
    found: list[str] = evaluated(source)
    return found


def definition(name: str, **figures: Any) -> dict[str, Any]:
    """The definition of a case, in which other figures are stated."""
    made = Collection(name.replace(" ", "-"), CASES[name]).definition()
    return {**made, "guarantee": {**made["guarantee"], **figures}}


def changed(name: str, old: Any, new: Any, **figures: Any) -> dict[str, Any]:
    """The definition of a case, with one expression or number in its program replaced."""
    made = definition(name, **figures)
    steps, table = json.dumps(made["steps"]), json.dumps(made["tables"])
    before, after = json.dumps(old), json.dumps(new)
    assert before in steps + table
    return {
        **made,
        "steps": json.loads(steps.replace(before, after)),
        "tables": json.loads(table.replace(before, after)),
    }


def test_loss_of_every_built_in_mechanism_is_confirmed() -> None:
    found = dict(zip(CASES, judged([definition(name) for name in CASES]), strict=True))
    assert {name for name, said in found.items() if said != CONFIRMED} == NOT_CONFIRMABLE


LOOSE = frozenset({"gaussian", "bounded-laplace at 20"})
"""Settings whose statement exceeds their loss: by a tail bound, and by a floor of the weights."""


def test_loss_stated_a_millionth_too_low_is_refused() -> None:
    """The bound is tight, so the settings above are not confirmed by accident."""
    stated = {name: definition(name)["guarantee"]["epsilon"] for name in CASES}
    lower = {name: str(float(epsilon) * (1 - 1e-6)) for name, epsilon in stated.items() if epsilon is not None}
    said = judged([definition(name, epsilon=epsilon) for name, epsilon in lower.items()])
    assert {name for name, each in zip(lower, said, strict=True) if each == CONFIRMED} == LOOSE


def test_loss_of_all_reports_of_an_answer_stated_too_low_is_refused() -> None:
    """The lifetime cap of a memoised answer, and that of all answers together, are worked out too."""
    kept = [name for name in CASES if definition(name)["memo"]]
    assert len(kept) == 7
    lower: list[dict[str, Any]] = []
    for name in kept:
        figures = definition(name)["guarantee"]
        for key in ("answer_epsilon", "lifetime_epsilon"):
            less = str(float(figures[key]) * (1 - 1e-6))
            if key == "answer_epsilon" or float(less) > float(figures["answer_epsilon"]):
                lower.append(definition(name, **{key: less}))
    assert CONFIRMED not in judged(lower)


FRESH = sorted(name for name in CASES if not definition(name)["memo"])


def test_loss_of_figures_on_repeated_answers_of_a_program_that_draws_each_time_is_refused() -> None:
    """Such figures were shown unconfirmed: however often the same answer is given, 1.02 times."""
    figures: list[dict[str, Any]] = [
        *(
            {"answer_epsilon": "0.02"},
            {"lifetime_epsilon": "0.02"},
            {"answer_epsilon": "100", "lifetime_epsilon": "1000"},
        ),
        *({"answer_epsilon": None}, {"lifetime_epsilon": None}, {"epsilon_of_all": "0.02"}),
    ]
    asked = [definition(name, **each) for name in FRESH for each in figures]
    assert CONFIRMED not in judged(asked)


def test_loss_of_all_answers_stated_below_that_of_one_is_refused() -> None:
    asked = [definition(name, lifetime_epsilon="0.01") for name in CASES if definition(name)["memo"]]
    assert asked
    assert CONFIRMED not in judged(asked)


def test_loss_with_a_delta_of_one_is_refused() -> None:
    asked = [definition(name, delta=delta) for name in CASES for delta in ("1", "1.0", "2", "1e3", None, "x", "")]
    assert CONFIRMED not in judged(asked)


def test_loss_of_a_survey_with_figures_on_repeated_answers_is_refused() -> None:
    rows = json.loads((VECTORS / "questionnaires.json").read_text())
    surveys = [row["definition"] for row in (rows if isinstance(rows, list) else rows["questionnaires"])]
    assert judged(surveys) == [CONFIRMED] * len(surveys)
    for figure in ("answer_epsilon", "lifetime_epsilon"):
        changed = [{**each, "guarantee": {**each["guarantee"], figure: "0.02"}} for each in surveys]
        assert CONFIRMED not in judged(changed)


def in_clear(made: dict[str, Any]) -> dict[str, Any]:
    """A definition in which the answer is a second part of the report."""
    report = made["report"]
    return {**made, "report": {**report, "parts": [*report["parts"], ["uint", "value", 8, 1]]}}


ATTACKS: dict[str, Callable[[], dict[str, Any]]] = {
    # No noise.
    "a row without draws": lambda: changed("oue", ["put", "others", "value", "own"], ["onehot", "value", 4]),
    "bits that are never drawn": lambda: changed("randomized-response", "13485650502877570762", str(2**64)),
    "noise times 0": lambda: changed("laplace", ["add", "value", "noise"], ["add", "value", ["mul", 0, "noise"]]),
    "noise of no places": lambda: changed("laplace", ["laplace", 32], ["laplace", 0]),
    "normal noise of fewer places": lambda: changed("gaussian", ["normal", 32], ["normal", 30]),
    # ε = 20 is stated as 1.
    **{
        f"ε = 20 of {name}": lambda name=name, more=more: {
            **Collection("c", ldp_budget.mechanism(name)(epsilon=20, **more)).definition(),
            "guarantee": definition("oue")["guarantee"],
        }
        for name, more in {
            "oue": {"domain_size": 4},
            "sue": {"domain_size": 4},
            "random-substitution": {"domain_size": 7},
            "subset-selection": {"domain_size": 7},
            "cms": {"hashes": 8, "width": 64},
            "hcms": {"hashes": 8, "width": 64},
            "d-bit-flip": {"buckets": 20, "bits": 4},
            "heavy-hitters": {"length": 6},
            "olh": {"domain_size": 9},
            "ticks": {"domain_size": 9, "at_most": 3},
            "grid": {"items": 5, "domain_size": 3},
            "one-bit-mean": {"maximum": 1},
            "laplace": {"lower": 0, "upper": 1},
            "staircase": {"lower": 0, "upper": 1},
            "bounded-laplace": {"lower": 0, "upper": 1},
            "bounded-staircase": {"lower": 0, "upper": 1},
            "pgr": {"domain_size": 300},
            "hybrid": {"lower": 0, "upper": 1},
            "random-threshold": {"lower": 0, "upper": 1},
            "rounded-response": {"lower": 0, "upper": 1},
            "square-wave": {"lower": 0, "upper": 1},
        }.items()
    },
    # A hash outside its field, and a direction, a window or two numbers that do not hide the answer.
    "a hash beyond the field": lambda: changed(
        "pgr by wide slabs", ["mod", ["sub", "place", "hash"], 101], ["mod", ["sub", "place", "hash"], 103]
    ),
    "the answer in the direction": lambda: changed("pgr over a prime field", ["below", 7240], ["mod", "value", 7240]),
    "a hash that leaves the field": lambda: changed(
        "pgr", ["mod", ["xor", "place", "hash"], 4], ["xor", "place", ["mul", 4, "value"]]
    ),
    "fewer other cells than points": lambda: changed("square-wave", ["below", 2**20], ["below", 2**19]),
    "two numbers further from chance": lambda: changed("hybrid", 13398106081913, 15 * 10**12),
    # A side channel.
    "the answer as a second part": lambda: in_clear(definition("oue")),
    "the answer in the hash function": lambda: changed("cms", ["below", 64], ["mod", "value", 64]),
    "the answer in a bucket": lambda: changed("d-bit-flip", ["belows_from", 17, 4], ["list", "value", 0, 0, 0]),
    "the word in the hash function": lambda: changed("heavy-hitters", ["below", 65536], ["mod", "value", 65536]),
    "the word in the level": lambda: changed("heavy-hitters", ["at", "levels", "turn"], ["mod", "value", 3]),
    "a cell beside the randomized one": lambda: changed(
        "heavy-hitters", ["where", "kept", 0, ["add", 1, "others"]], ["mul", "cell", ["add", 1, "others"]]
    ),
    "a cell that is kept for the value": lambda: changed(
        "loloha", ["kept_belows", "other", "cell", 2, 1], ["kept_belows", "other", "value", 2, 1]
    ),
    "a cell that is not randomized in a report": lambda: changed(
        "loloha", ["add", "permanent", ["where", "shows", 0, ["add", 1, "next"]]], ["add", "cell", "shows"]
    ),
    "the answer in the upper bits": lambda: changed(
        "random-substitution",
        ["where", "kept", "value", "moved"],
        ["add", ["where", "kept", "value", "moved"], ["mul", "value", 16]],
    ),
    "one bit drawn twice": lambda: changed("oue", ["put", "others", "value", "own"], ["put", "others", "value", 1]),
    "no report of one answer": lambda: changed(
        "two coins",
        ["where", "value", "if_yes", "if_no"],
        ["where", "value", ["div", "if_yes", ["sub", 1, "value"]], "if_no"],
    ),
    "one answer of a million": lambda: changed(
        "cms of any text",
        ["put", "others", "cell", "own"],
        ["put", "others", ["where", ["eq", "value", 123456], 0, "cell"], ["max", "own", ["eq", "value", 123456]]],
    ),
    # What is kept.
    "kept for another than the memo": lambda: {**definition("kept buckets"), "memo": "buckets"},
    "one draw for all answers": lambda: changed(
        "every kept bucket",
        ["kept_bits", "bits", "value", "6964396094736529935", 5],
        ["kept_bits", "bits", 0, "6964396094736529935", 5],
    ),
    "other buckets in each report": lambda: changed(
        "kept buckets", ["kept_belows", "buckets", 0, 17, 4], ["belows_from", 17, 4]
    ),
}


@pytest.fixture(scope="module")
def verdicts() -> dict[str, str]:
    return dict(zip(ATTACKS, judged([made() for made in ATTACKS.values()]), strict=True))


@pytest.mark.parametrize("attack", ATTACKS)
def test_loss_of_program_that_gives_away_more_is_refused(verdicts: dict[str, str], attack: str) -> None:
    """Programs without noise, of ε = 20 and with side channels were drawn, shown and charged as ε = 1."""
    assert verdicts[attack] != CONFIRMED


def test_loss_of_program_that_cannot_be_followed_is_refused() -> None:
    """Draws that cannot be listed in a program of an unknown shape: refused, though it keeps its promise."""
    unknown = changed("laplace", ["add", "value", "noise"], ["sub", "value", "noise"])
    assert judged([unknown]) == ["draws of laplace in a program that is not known"]


# -- random programs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "count"), [(0, 200), pytest.param(1, 20_000, marks=pytest.mark.exhaustive)])
def test_loss_of_generated_program_that_states_too_little_is_refused(seed: int, count: int) -> None:
    """The programs, and the oracle, with which `check_law.py` is tried."""
    generator, chance, made = Generator(seed), random.Random(seed), 0
    while made < count:
        asked: list[dict[str, Any]] = []
        while len(asked) < min(2000, count - made):
            each = generator.definition()
            try:
                loss = loss_of(each)
            except TooManyOutcomesError:
                continue
            asked.append(undefined(stating(each, 40), chance))
            if loss > 1e-9:
                asked.append(stating(each, loss * (1 - 1e-9)))
        said = judged(asked)
        assert [one for one, verdict in zip(asked, said, strict=True) if verdict == CONFIRMED] == []
        made += len(asked)


def test_refusals_are_those_of_every_client() -> None:
    """No form is loaded, no leak is confirmed, and no run that fails makes a report."""
    rows = json.loads((VECTORS / "refusals.json").read_text())
    count = 2 * (len(rows["forms"]) + len(rows["guarantees"])) - 1 + len(rows["leaks"]) + len(rows["failures"])
    done = run_node(PACKAGE / "test" / "refusals.mjs", VECTORS / "refusals.json")
    assert (done.returncode, done.stdout) == (0, f"{count} refusals\n")


def test_forms_are_those_of_python() -> None:
    source = f"""
        const {{ FORMS }} = await import({json.dumps((PACKAGE / "src" / "syntax.js").as_uri())});
        console.log(JSON.stringify([...FORMS].map(([name, {{ takes, gives }}]) => [name, takes, gives])));
    """
    assert evaluated(source) == [[name, list(form.takes), form.gives] for name, form in FORMS.items()]
