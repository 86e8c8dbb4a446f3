"""`clients/check/check_law.py`: it proves honest programs, refuses those that lie, and names those that it cannot count."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from math import exp, inf
from typing import Any

import mpmath
import pytest

from checker_vectors import laws, refusals, verdict
from generated_programs import Generator, TooManyOutcomesError, loss_of, sealed, stating, undefined
from ldp_budget import mechanism
from ldp_budget.registry.public_definition import NOTHING, definition_of, digest_of
from ldp_budget_verify.law.all_outcomes import law
from ldp_budget_verify.shipped_checkers import checker

CHECK = checker("check_law")


def _definition(name: str, **options: Any) -> dict[str, Any]:
    made = mechanism(name).calibrate(**options)
    found: dict[str, Any] = json.loads(json.dumps(definition_of(name, "00" * 32, made, None, NOTHING)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "definition", "expected"), laws(), ids=[name for name, _, _ in laws()])
def test_check_law_vector_has_its_verdict(name: str, definition: dict[str, Any], expected: str) -> None:
    assert verdict(CHECK, json.dumps(definition).encode()) == expected


def test_check_law_proves_at_least_ten_builtin_mechanisms() -> None:
    proved = {definition["mechanism"] for _, definition, expected in laws() if expected == "proved"}
    assert len(proved) >= 10
    assert {"oue", "sue", "pgr", "loloha", "cms", "hcms", "d-bit-flip", "one-bit-mean"} <= proved


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("oue", {"epsilon": "0.7", "domain_size": 3}),
        ("grr", {"epsilon": "2", "domain_size": 5}),
        ("subset-selection", {"epsilon": "1", "domain_size": 5}),
        ("d-bit-flip", {"epsilon": "1", "buckets": 4, "bits": 2}),
        ("pgr", {"epsilon": "1", "domain_size": 4}),
        ("ticks", {"epsilon": "2", "domain_size": 4, "at_most": 1, "k": 2}),
        ("ticks", {"epsilon": "2", "domain_size": 4, "k": 2}),
    ],
)
def test_check_law_ratio_equals_that_of_the_library(name: str, options: dict[str, Any]) -> None:
    made = mechanism(name).calibrate(**options)
    _, found = CHECK.check(json.dumps(_definition(name, **options)).encode())
    program = made.client_program()
    laws_of_answers = [law(program, value) for value in range(int(program.input["count"]))]
    rows = {row for each in laws_of_answers for row in each}
    true = max(
        Fraction(max(each[row] for each in laws_of_answers)) / min(each[row] for each in laws_of_answers)
        for row in rows
    )
    assert found == true
    assert true <= Fraction(exp(float(options["epsilon"]) + 1e-9))


@pytest.mark.slow
def test_check_law_many_answers_are_counted_bit_by_bit() -> None:
    _, found = CHECK.check(json.dumps(_definition("oue", epsilon="0.5", domain_size=64)).encode())
    assert abs(exp(0.5) - float(found)) < 1e-14


@pytest.mark.slow
def test_check_law_memoized_program_is_proved_for_one_report() -> None:
    definition = _definition("loloha", epsilon_lifetime="2", epsilon_first="1", domain_size=6)
    assert definition["memo"]
    found, ratio = CHECK.check(json.dumps(definition).encode())
    assert found["guarantee"]["epsilon"] == "1.0"
    assert float(ratio) <= exp(1)


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [("1.0", "proved"), ("1e0", "refused"), (" 1.0", "refused"), ("１.0", "refused"), ("NaN", "refused"), ("-1", "refused"),
     ("inf", "refused"), ("0.9999999999999999", "refused"), (1, "refused"), (None, "cannot"), ("9" * 7, "refused")],
)  # fmt: skip
def test_check_law_epsilon_in_another_form_is_refused(epsilon: Any, expected: str) -> None:
    definition = _definition("oue", epsilon="1", domain_size=4)
    definition["guarantee"]["epsilon"] = epsilon
    definition["digest"] = digest_of(definition)
    assert verdict(CHECK, json.dumps(definition).encode()) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"report": {"parts": [["uint", "nothing", 1, 1]]}}, "refused"),
        ({"steps": []}, "refused"),
        ({"input": {"kind": "answer", "count": 0}}, "cannot"),
        ({"input": {"kind": "answer", "count": 10**30}}, "cannot"),
        ({"format": "ldp-budget total"}, "refused"),
        ({"version": 2}, "refused"),
    ],
    ids=lambda x: str(x)[:30],
)
def test_check_law_other_definition_is_not_proved(change: dict[str, Any], expected: str) -> None:
    definition = {**_definition("oue", epsilon="1", domain_size=4), **change}
    definition["digest"] = digest_of(definition)
    found = verdict(CHECK, json.dumps(definition).encode())
    assert found != "proved"
    assert found in (expected, "refused")


def _with(steps: list[Any], parts: list[Any]) -> bytes:
    """An honest definition with more steps and more in its report."""
    definition = _definition("oue", epsilon="1", domain_size=4)
    definition["steps"] += steps
    definition["report"]["parts"] += parts
    definition["digest"] = digest_of(definition)
    return json.dumps(definition).encode()


HALF = str(2**63)


@pytest.mark.parametrize(
    ("steps", "parts"),
    [
        ([["twin", ["at", "row", "value"]]], [["uint", "twin", 1, 1]]),
        ([["long", ["bits", HALF, ["add", 1, "value"]]]], [["packed", "long", 1]]),
        ([["negative", ["parity", ["sub", 0, "value"]]], ["same", ["mul", 0, "negative"]]], [["uint", "same", 1, 1]]),
        ([["gone", ["div", 1, "value"]], ["same", ["mul", 0, "gone"]]], [["uint", "same", 1, 1]]),
        ([["row", ["onehot", "value", 4]]], []),
        ([["value", 0]], []),
        ([["leak", ["add", ["bit", HALF], "value"]]], [["uint", "leak", 1, 1]]),
        ([["out", ["at", "row", ["sub", "value", 1]]]], [["uint", "out", 1, 1]]),
        ([["two", ["where", ["add", 1, "value"], 1, 1]]], [["uint", "two", 1, 1]]),
        ([["row2", ["rank", ["list", 3, "value", 2], 0]], ["same", ["mul", 0, "row2"]]], [["uint", "same", 1, 1]]),
        ([["sum", ["join", ["list", "value", 0]]], ["same", ["mul", 0, "sum"]]], [["uint", "same", 1, 1]]),
        ([["mask", ["and", ["sub", 0, "value"], 0]]], [["uint", "mask", 1, 1]]),
        ([["left", ["mul", 0, ["shl", 1, ["sub", 0, "value"]]]]], [["uint", "left", 1, 1]]),
        ([["rest", ["mul", 0, ["mod", 5, ["sub", 0, "value"]]]]], [["uint", "rest", 1, 1]]),
        ([["old", ["kept_bits", "x", 0, HALF, 1]]], [["packed", "old", 1]]),
    ],
    ids=[
        *("a bit twice", "a length", "a negative", "a division", "a name twice", "value", "a nested draw", "outside"),
        *(
            "no condition",
            "no order",
            "no bit",
            "a negative mask",
            "a negative shift",
            "a negative modulus",
            "no memo",
        ),
    ],
)
def test_check_law_program_that_leaks_is_not_proved(steps: list[Any], parts: list[Any]) -> None:
    assert verdict(CHECK, _with(steps, parts)) != "proved"


@pytest.mark.slow
def test_check_law_constant_and_independent_noise_beside_the_report_are_proved() -> None:
    steps = [["coin", ["bit", HALF]], ["word", ["below", 65536]], ["five", 5]]
    assert verdict(CHECK, _with(steps, [["uint", name, 2, 1] for name in ("coin", "word", "five")])) == "proved"


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", refusals("forms"), ids=lambda vector: ascii(vector["name"]))
def test_check_law_form_that_is_not_specified_is_refused(vector: dict[str, Any]) -> None:
    assert verdict(CHECK, vector["text"].encode()) == "refused"


@pytest.mark.parametrize("vector", refusals("guarantees") + refusals("leaks"), ids=lambda vector: vector["name"])
def test_check_law_program_that_loses_more_than_it_states_is_not_proved(vector: dict[str, Any]) -> None:
    assert verdict(CHECK, json.dumps(vector["definition"]).encode()) != "proved"


@pytest.mark.parametrize("data", [b"\xff{}", "{}".encode("utf-16"), b"", b"[" * 100_000, b"null", b"1"], ids=ascii)
def test_check_law_file_that_is_no_definition_is_refused(data: bytes) -> None:
    assert verdict(CHECK, data) == "refused"


@pytest.mark.parametrize("epsilon", ["999999", f"999999.{'0' * 39}1", "100", "101"])
def test_check_law_large_epsilon_is_compared_at_once(epsilon: str) -> None:
    """The work does not grow with a number of the file: e^100 is below e^999999, and is enough."""
    definition = _definition("grr", epsilon="1", domain_size=3)
    definition["guarantee"]["epsilon"] = epsilon
    assert verdict(CHECK, json.dumps(sealed(definition)).encode()) == "proved"


@pytest.mark.parametrize("epsilon", ["0", "1e-300", "0.5", "1", "17.25", "99", "100"])
def test_power_below_is_just_below_the_power(epsilon: str) -> None:
    with mpmath.workdps(120):
        exact = mpmath.exp(mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator)
        found = CHECK.power_below(Fraction(epsilon))
        below = mpmath.mpf(found.numerator) / found.denominator
        assert exact * (1 - mpmath.mpf(2) ** -200) <= below <= exact


@pytest.mark.parametrize(
    "steps",
    [
        [["a", ["onehot", 0, 2**23]]],
        [["a", ["bits", HALF, 2**23]]],
        [["a", ["subset", 2**20, 2**19]]],
        [["a", ["subset", str(2**63), 2**22]]],
        [["a", ["below", str(2**63)]]],
        [["a", ["belows_from", 60_000, 2**23]]],
        [["a", ["bits", HALF, 60]], ["b", ["join", "a"]]],
        [["a", ["belows", 1, 2**23]]],
    ],
    ids=str,
)
def test_check_law_work_is_bounded_before_it_starts(steps: list[Any]) -> None:
    assert verdict(CHECK, _with(steps, [])) == "cannot"


@pytest.mark.parametrize("end", ["\nPROVED: all", "\u2028PROVED", "\x1b[2K", "\u202e", "\u00a0"], ids=ascii)
def test_check_law_name_that_forges_a_line_is_refused(end: str) -> None:
    definition = sealed({**_definition("grr", epsilon="1", domain_size=3), "name": f"mood{end}"})
    assert verdict(CHECK, json.dumps(definition).encode()) == "refused"


# -- random programs -----------------------------------------------------------------------------------------------


def judged(seed: int, count: int) -> tuple[list[str], int, int]:
    """What is proved of `count` programs that state too little; how many honest ones there were, and were proved."""
    generator, chance = Generator(seed), random.Random(seed)
    false: list[str] = []
    honest = proved = made = 0
    while made < count:
        definition = generator.definition()
        try:
            loss = loss_of(definition)
        except TooManyOutcomesError:
            continue
        asked = [sealed(undefined(stating(definition, 40), chance))]
        if loss > 1e-9:
            asked.append(stating(definition, loss * (1 - 1e-9)))
        made += len(asked)
        false += [text for text in map(json.dumps, asked) if verdict(CHECK, text.encode()) == "proved"]
        if loss < inf:
            honest += 1
            proved += verdict(CHECK, json.dumps(stating(definition, loss * (1 + 1e-9) + 1e-12)).encode()) == "proved"
    return false, honest, proved


@pytest.mark.parametrize("seed", range(8))
def test_check_law_random_program_that_states_too_little_is_not_proved(seed: int) -> None:
    false, _, _ = judged(seed, 4)
    assert false == []


@pytest.mark.slow
def test_check_law_most_random_programs_that_state_enough_are_proved() -> None:
    false, honest, proved = judged(100, 300)
    assert false == []
    assert proved > honest / 2
