"""`explain` of the client in JavaScript: the probability of a report for each answer, also for many answers."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ldp_budget
from client_cases import CASES
from javascript import evaluated
from ldp_budget import Collection, Mechanism
from ldp_budget.registry.public_definition import digest_of
from ldp_budget.sdk.client_program import Program, uint
from ldp_budget_verify.law.all_outcomes import law

EVERY: list[tuple[str, dict[str, Any]]] = [
    ("randomized-response", {"truth": "0.4", "yes": "0.3"}),
    ("oue", {"epsilon": 2, "domain_size": 6}),
    ("unary-encoding", {"p": "0.75", "q": "0.25", "domain_size": 4}),
    ("random-substitution", {"epsilon": 1, "domain_size": 7}),
    ("random-substitution", {"epsilon": 1, "domain_size": 7, "draws": 2}),
    ("random-substitution", {"epsilon": 1, "domain_size": 6, "draws": 3, "sampling": "distinct"}),
    ("random-substitution", {"epsilon": 1, "domain_size": 5, "draws": 3, "sampling": "distinct", "ordered": True}),
    ("pgr", {"epsilon": 1, "domain_size": 10}),
    ("pgr", {"epsilon": 3, "domain_size": 11}),
    ("matrix-substitution", {"matrix": [["0.5", "0.25"], ["0.25", "0.5"], ["0.25", "0.25"]]}),
    ("cms", {"epsilon": 2, "hashes": 3, "width": 5, "domain_size": 7}),
    ("hcms", {"epsilon": 2, "hashes": 4, "width": 16, "domain_size": 9}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 6, "bits": 2}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 5, "bits": 3, "memoize": True}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 5, "bits": 5, "memoize": True}),
    ("rappor", {"bits": 3, "hashes": 1, "cohorts": 2, "f": "0.5", "p": "0.25", "q": "0.75", "domain_size": 3}),
]
QUARTER = str(2**62)

_RAPPOR = {"bits": 64, "hashes": 2, "cohorts": 32, "domain_size": 60}
USUAL: list[tuple[str, dict[str, Any]]] = [
    ("oue", {"epsilon": 1, "domain_size": 1000}),
    ("sue", {"epsilon": "0.1", "domain_size": 1000}),
    ("random-substitution", {"epsilon": 1, "domain_size": 100}),
    ("pgr", {"epsilon": 2, "domain_size": 100}),
    ("cms", {"epsilon": 2, "hashes": 256, "width": 1024, "domain_size": 100}),
    ("hcms", {"epsilon": 2, "hashes": 65536, "width": 1024, "domain_size": 100}),
    ("rappor", {"f": "0.5", "p": "0.25", "q": "0.75", **_RAPPOR}),
    ("rappor", {"epsilon": 1, "epsilon_lifetime": 4, "any_inputs": True, **_RAPPOR}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 200, "bits": 16}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 20, "bits": 18}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 100, "bits": 8, "memoize": True}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 32, "bits": 32, "memoize": True}),
]
NAMES = [f"{name} {place}" for place, (name, _) in enumerate((*EVERY, *USUAL))]


def explained(asked: list[tuple[dict[str, Any], list[bytes]]]) -> list[list[Any]]:
    """Return JavaScript's explanations of reports of these definitions."""
    source = f"""
        const asked = {json.dumps([[definition, [row.hex() for row in rows]] for definition, rows in asked])};
        const bytes = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
        console.log(JSON.stringify(asked.map(([definition, reports]) => {{
            const made = new client.Client(definition);
            return reports.map((report) => made.explain(bytes(report)) ?? null);
        }})));
    """
    found: list[list[Any]] = evaluated(source)
    return found


def drawn(mechanism: Mechanism, count: int) -> list[bytes]:
    answers = np.arange(count) % min(3, mechanism.domain.size)  # type: ignore[union-attr]
    rows = mechanism.randomize(answers, secrets=[random.Random(place).randbytes(32) for place in range(count)])
    return [row.astype(row.dtype.newbyteorder("<")).tobytes() for row in rows]


@pytest.fixture(scope="module")
def found() -> dict[str, tuple[Mechanism, list[bytes], list[Any]]]:
    """Of each setting some reports, and what is said of them; every one in one run."""
    made = [ldp_budget.mechanism(name)(**declared) for name, declared in (*EVERY, *USUAL)]
    asked = []
    for place, mechanism in enumerate(made):
        rows = drawn(mechanism, 12 if place < len(EVERY) else 3)
        size = len(rows[0])
        # Also reports that no client sends.
        rows += [bytes(size), b"\xff" * size] if place < len(EVERY) else []
        asked.append((Collection("x", mechanism).definition(), rows))
    said = explained(asked)
    return {name: (made[i], asked[i][1], said[i]) for i, name in enumerate(NAMES)}


@pytest.mark.parametrize("name", NAMES[: len(EVERY)])
def test_explain_is_the_distribution_of_the_program(found: dict[str, Any], name: str) -> None:
    mechanism, rows, said = found[name]
    program = mechanism.client_program()
    laws = [law(program, value) for value in range(mechanism.domain.size)]
    for row, answers in zip(rows, said, strict=True):
        expected = [float(one.get(row, 0)) for one in laws]
        assert [each["likelihood"] for each in answers] == pytest.approx(expected, rel=1e-9, abs=0)
        shares = [each["share"] for each in answers]
        assert shares == pytest.approx([each / (sum(expected) or 1) for each in expected], rel=1e-9, abs=0)


def test_explain_of_probabilities_below_doubles_returns_ratios() -> None:
    mechanism = ldp_budget.mechanism("sue")(epsilon="0.1", domain_size=1200)
    ((said,),) = explained([(Collection("x", mechanism).definition(), drawn(mechanism, 1))])
    shares = [each["share"] for each in said]
    assert {each["likelihood"] for each in said} == {0}
    assert sum(shares) == pytest.approx(1)
    assert max(shares) / min(shares) == pytest.approx(np.exp(0.1))


@pytest.mark.parametrize("name", ["laplace", "a kept bit", "cms of any text", "a subset of 70000"])
def test_explain_of_a_program_that_cannot_be_listed_is_undefined(name: str) -> None:
    mechanism = CASES[name]
    size = mechanism.client_program().size
    assert explained([(Collection("x", mechanism).definition(), [bytes(size)])]) == [[None]]


def _definition(steps: tuple[tuple[str, Any], ...], report: dict[str, Any], memo: str = "") -> dict[str, Any]:
    """That of a program of one's own, for four answers."""
    program = Program({"kind": "answer", "count": 4, "text": False}, steps, report, memo=memo)
    definition = {**Collection("x", CASES["oue"]).definition(), **program.to_json()}
    return {**definition, "digest": digest_of(definition)}


OTHERS: dict[str, tuple[list[Any], int]] = {
    "one bit in two numbers": (
        [["a", ["bits", QUARTER, 3]], ["r", ["list", ["at", "a", 0], ["at", "a", 0], "value"]]],
        3,
    ),
    "a bit, and what is made of it": (
        [["a", ["bits", QUARTER, 2]], ["r", ["list", ["at", "a", 0], ["xor", ["at", "a", 0], ["at", "a", 1]]]]],
        2,
    ),
    "a draw in two equations": (
        [["a", ["below", 5]], ["b", ["below", 5]], ["r", ["list", ["add", "a", "b"], ["add", "a", "value"]]]],
        2,
    ),
    "a place that is drawn": (
        [["a", ["below", 3]], ["r", ["list", ["at", ["list", 7, 8, "value"], "a"], ["shr", 8, "a"]]]],
        2,
    ),
    "sorted": ([["a", ["belows", 4, 3]], ["r", ["sort", ["add", "a", "value"]]]], 3),
    "floyd, and what it is made of": (
        [["a", ["belows_from", 3, 3]], ["f", ["floyd", "a", 3]], ["r", ["list", ["at", "f", 0], ["at", "a", 2]]]],
        2,
    ),
    "floyd of other draws": ([["a", ["belows_from", 2, 3]], ["r", ["floyd", "a", 3]]], 3),
    "two equal thresholds": (
        [["a", ["bits_each", ["list", QUARTER, QUARTER]]], ["r", ["add", "a", ["mul", 2, "value"]]]],
        2,
    ),
    "thresholds that were worked out": (
        [
            ["a", ["bit_at", ["mul", "value", str(2**61)]]],
            ["b", ["bit_at", ["mul", "a", QUARTER]]],
            ["r", ["list", "b"]],
        ],
        1,
    ),
    "put together again": ([["a", ["below", 6]], ["r", ["add", ["mul", 2, ["div", "a", 2]], ["and", "a", 1]]]], 1),
    "no separate bit": ([["a", ["below", 6]], ["b", ["below", 6]], ["r", ["add", ["mul", 2, "a"], "b"]]], 1),
    "shuffled and chosen": (
        [
            ["a", ["shuffle", ["list", 1, 2, 3]]],
            ["b", ["subset", 4, 2]],
            ["r", ["list", ["at", "a", 0], ["at", "b", 1]]],
        ],
        2,
    ),
}


@pytest.fixture(scope="module")
def others() -> dict[str, tuple[list[dict[bytes, Fraction]], list[bytes], list[Any]]]:
    laws, asked = [], []
    for steps, count in OTHERS.values():
        report, done = uint("r", 255, count), tuple((step, expression) for step, expression in steps)
        program = Program({"kind": "answer", "count": 4, "text": False}, done, report)
        laws.append([law(program, value) for value in range(4)])
        asked.append((_definition(done, report), sorted(set().union(*laws[-1]))))
    said = explained(asked)
    return {name: (laws[i], asked[i][1], said[i]) for i, name in enumerate(OTHERS)}


@pytest.mark.parametrize("name", OTHERS)
def test_explain_of_programs_of_any_shape_matches(others: dict[str, Any], name: str) -> None:
    for row, answers in zip(*others[name][1:], strict=True):
        expected = [float(one.get(row, 0)) for one in others[name][0]]
        assert [each["likelihood"] for each in answers] == pytest.approx(expected, rel=1e-9, abs=0)


def test_explain_of_draws_of_the_same_words_is_undefined() -> None:
    steps = tuple((name, ["kept_bits", "x", 0, str(2**power), 1]) for name, power in (("a", 62), ("b", 63)))
    definition = _definition((*steps, ("r", ["xor", "a", "b"])), uint("r", 1, 1), memo="value")
    assert explained([(definition, [b"\x00"])]) == [[None]]


def test_explain_of_a_report_of_another_length_is_refused() -> None:
    definition = Collection("x", CASES["oue"]).definition()
    source = f"""
        let why = [];
        for (const size of [0, 2]) {{
            try {{ new client.Client({json.dumps(definition)}).explain(new Uint8Array(size)); }}
            catch (error) {{ why.push(error.message); }}
        }}
        console.log(JSON.stringify(why));
    """
    assert evaluated(source) == [f"a report has 1 bytes: got {size}" for size in (0, 2)]
