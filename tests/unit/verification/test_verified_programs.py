"""Verification of client programs: a program with another distribution is violated, with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

import ldp_budget
from altered_programs import KEPT, RR, emits, one_of
from client_cases import CASES
from ldp_budget import Mechanism, verify
from ldp_budget.errors import NotSupported
from ldp_budget.registry.plugins import registry
from ldp_budget.sdk.client_program import Program, uint
from ldp_budget_verify.contract import certify
from ldp_budget_verify.law.all_outcomes import law

# -- what is listed ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["randomized-response", "oue", "random-substitution", "one-bit-mean", "every kept bucket"]
)
def test_program_with_the_stated_distribution_holds(name: str) -> None:
    found = verify(CASES[name])
    assert (found.verdict, found.program, found.program_open, found.problems) == ("holds", "holds", "", ())
    assert found.to_json()["program"] == "holds"


@pytest.mark.slow
def test_program_that_cannot_be_listed_is_held_against_its_law() -> None:
    found = verify(CASES["oue of 100"])
    assert (found.verdict, found.program, found.problems) == ("holds", "holds", ())
    other = verify(emits(CASES["oue of 100"], steps=one_of(CASES["oue of 100"], "own", ["bit", str(2**63 + 2**62)])))
    assert (other.verdict, other.program, other.estimator) == ("violated", "violated", "violated")


@pytest.mark.slow
def test_hashed_program_that_cannot_be_listed_is_within_the_promise_for_all_cells() -> None:
    found = verify(CASES["cms"])
    assert (found.verdict, found.program, found.problems) == ("holds", "unproven", ())
    assert "within the promise for all cells, and are not compared with the description" in found.program_open


def test_mechanism_without_a_program_says_so() -> None:
    class Silent(type(RR)):  # type: ignore[misc]
        def client_program(self) -> Program:
            raise NotSupported("randomized-response has no client program")

    found = verify(Silent(epsilon=1))
    assert (found.verdict, found.program) == ("unproven", "unproven")
    assert "has no client program" in found.program_open


# -- what is not what was promised ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "changes", "why"),
    [
        (RR, {"steps": (("report", "value"),)}, "a report that one input can give is impossible for another"),
        (RR, {"steps": one_of(RR, "if_yes", ["bit", str(2**64 - 2**50)])}, "the loss ln P/Q of a report is above"),
        # Reports that `outcomes` takes for one tell the answer.
        (
            CASES["oue"],
            {"report": {"dtype": "|u1", "shape": [1], "parts": [["packed", "row", 6]]}, "steps": "wide"},
            "above the claim",
        ),
        (RR, {"steps": (("report", ["div", 1, "value"]),)}, "it makes no report of 0: "),
        (
            RR,
            {"steps": (("report", ["add", 256, "value"]),)},
            "it makes no report of 0: a report must have 1 numbers",
        ),
    ],
    ids=["in-clear", "too-likely", "shifted", "divides", "too-large"],
)
def test_program_with_another_distribution_is_violated(made: Mechanism, changes: dict[str, Any], why: str) -> None:
    if changes.get("steps") == "wide":
        own, likely = ["bit", str(2**63)], ["bit", str(2**62)]
        spare = ["list", *(["at", "plain", i] for i in range(4)), ["where", ["eq", "value", 3], "much", "little"], 0]
        steps = [("plain" if name == "row" else name, step) for name, step in made.client_program().steps]
        changes = {**changes, "steps": (*steps, ("much", own), ("little", likely), ("row", spare))}
    found = verify(emits(made, **changes))
    assert (found.verdict, found.program) == ("violated", "violated")
    assert any(why in problem for problem in found.problems)


@pytest.mark.slow
def test_program_that_gives_away_less_than_the_estimator_reads_is_biased() -> None:
    found = verify(emits(RR, steps=one_of(RR, "if_yes", ["bit", str(2**63)])))
    assert (found.verdict, found.program, found.estimator) == ("holds", "holds", "violated")
    assert "the estimate is biased" in found.problems[0]


@pytest.mark.slow
def test_program_is_checked_at_every_answer() -> None:
    made = ldp_budget.mechanism("random-substitution")(epsilon=1, domain_size=40)
    clear = one_of(made, "drawn", ["where", ["eq", "value", 23], "value", ["where", "kept", "value", "moved"]])
    assert verify(emits(made, steps=clear)).verdict == "violated"


@pytest.mark.exhaustive
def test_program_check_is_in_the_certificate() -> None:
    leaks = emits(RR, steps=(("report", "value"),))
    type(leaks).examples = ({"epsilon": 1},)
    (found,) = certify([type(leaks)], distribution="x", version="1", samples=5_000)["mechanisms"]
    assert found["checked"] == "no"
    assert any("client program: a report that one input can give" in reason for reason in found["reasons"])
    assert found["chosen"][0]["exact"]["program"] == "violated"


@pytest.mark.exhaustive
def test_level_exact_needs_a_program() -> None:
    """Built-in only: another mechanism is audited at most, even if its client program is known. Without one it is silent."""

    class Mute(type(RR)):  # type: ignore[misc]
        examples = ({"epsilon": 1},)

        def client_program(self) -> Program:
            raise NotSupported("it has no client program")

    class Speaks(type(RR)):  # type: ignore[misc]
        examples = ({"epsilon": 1},)

    (mute,) = certify([Mute], distribution="x", version="1", samples=5_000, own=True)["mechanisms"]
    (speaks,) = certify([Speaks], distribution="x", version="1", samples=5_000)["mechanisms"]
    assert (mute["checked"], speaks["checked"]) == ("no", "audited")
    assert mute["reasons"] == ["no report of it was looked at: it has no client program"]
    assert any("the guarantee of the client program is proved" in reason for reason in speaks["reasons"])


def test_built_in_mechanisms_with_a_client_have_a_program() -> None:
    for cls, plugin in registry().items():
        if plugin.own and cls.name != "discrete-gaussian":  # of vectors, which no program reads
            assert cls.client_program is not Mechanism.client_program, cls.name


# -- memoised reports ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_memoized_guarantee_is_compared_with_two_reports_of_one_secret() -> None:
    """One report alone is drawn as it was promised, but the next one is drawn afresh."""
    flips, *rest = KEPT.client_program().steps
    fresh = (("flips", ["bits", *flips[1][3:]]), ("unused", ["kept_bits", "unused", "value", 0, 1]))
    found = verify(emits(KEPT, steps=(*fresh, *rest)))
    assert found.verdict == "violated"
    assert "client program: the largest P/Q of a report is above the claim" in " ".join(found.problems)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memo", "steps"),
    [("one", (("one", 1),)), ("half", (("half", ["shr", "value", 1]),)), ("noise", (("noise", ["below", 7]),))],
)
def test_memo_that_omits_part_of_the_answer_is_violated(memo: str, steps: Any) -> None:
    """Reports of two answers would be charged as one."""
    found = verify(emits(KEPT, memo=memo, steps=(*steps, *KEPT.client_program().steps)))
    assert found.verdict == "violated"
    assert f"more of the answer than {memo}, the memo that they are charged by" in " ".join(found.problems)


@pytest.mark.slow
def test_memo_computed_from_the_answer_holds() -> None:
    text = json.dumps(KEPT.client_program().steps).replace('"value"', '"same"')
    steps = (("same", ["add", "value", 0]), *((name, step) for name, step in json.loads(text)))
    assert verify(emits(KEPT, memo="same", steps=steps)).program == "holds"


# -- laws ----------------------------------------------------------------------------------------------------------


def test_draws_of_the_same_words_are_not_taken_for_one() -> None:
    """Below 2**62 implies below 2**63, and not the reverse: one word, two thresholds."""
    twice = (
        ("a", ["kept_bits", "x", 0, str(2**63), 1]),
        ("b", ["kept_bits", "x", 0, str(2**62), 1]),
        ("report", ["mul", "value", ["xor", ["at", "a", 0], ["at", "b", 0]]]),
    )
    program = Program({"kind": "answer", "count": 2, "text": False}, twice, uint("report", 1), memo="value")
    with pytest.raises(NotSupported, match="two draws are made of the same words"):
        law(program, 1)


@pytest.mark.parametrize(
    "step",
    [
        ["bits", str(2**63), 10**9],
        ["belows", 3, 10**9],
        ["belows_from", 1, 10**9],
        ["subset", 10**9, 10**8],
        ["below", str(2**60)],
        ["kept_bits", "x", "value", str(2**63), 10**9],
    ],
    ids=lambda step: step[0],
)
def test_program_with_too_many_outcomes_is_reported_at_once(step: list[Any]) -> None:
    steps = (("drawn", step), ("report", 1))
    memo = "value" if step[0] == "kept_bits" else ""
    program = Program({"kind": "answer", "count": 2, "text": False}, steps, uint("report", 1), memo=memo)
    with pytest.raises(NotSupported, match="more than 20000 outcomes"):
        law(program, 1, 20_000)
