"""The rules of the law: equal to the list of all outcomes for good programs, and never better for those that leak."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from changed_programs import HALF, MOST, any_changed, good_programs, hadamard, judged, listed, program, random_program

from changed_programs import ticks, verdicts, words  # isort: skip

import ldp_budget
from ldp_budget import NotSupported
from ldp_budget.guarantees import SymmetricPair
from ldp_budget.sdk.client_program import Program
from ldp_budget_verify.law import Unknown, law_of
from ldp_budget_verify.law.hadamard_words import HadamardWords
from ldp_budget_verify.law.rules import REBUILT, RULES
from ldp_budget_verify.law.tracked_answers import TrackedAnswers

D = 4
COUNT = 53
SKIP = ["add", "others", ["ge", "others", "value"]]
EITHER = ["where", "k", "value", "a"]


def uint(name: str, n: int = 1) -> list[Any]:
    return ["uint", name, 1, n]


def row(name: str, n: int = D) -> list[Any]:
    return ["packed", name, n]


K, OTHERS, ROW = ("k", ["bit", MOST]), ("others", ["below", D - 1]), ("row", ["bits", HALF, D])
SETS = (("others", ["subset", D - 1, 2]), ("place", ["below", 2]), ("row", SKIP))
PUT = ["put", "row", "place", ["where", "k", "value", ["at", "row", "place"]]]
BUCKETS = (("f", ["bits", HALF, 2]), ("d", ["belows_from", D - 1, 2]), ("b", ["floyd", "d", D - 1]))
MARKED = (("x", ["xor", ["eq", "b", "value"], "f"]), ("r", ["add", ["mul", 2, "b"], "x"]))
TURN = ["xor", "w", ["where", ["eq", ["parity", ["and", "w", "c"]], "k"], ["xor", "c", ["sub", "c", 1]], 0]]

LEAKS = {
    # what is sent besides
    "the answer": program([("r", ["add", "value", 0])], uint("r")),
    "the coin": program([K, OTHERS, ("a", SKIP), ("r", EITHER)], uint("r"), uint("k")),
    "the draw of another answer": program([K, OTHERS, ("a", SKIP), ("r", EITHER)], uint("r"), uint("others")),
    "another answer that was drawn": program([K, OTHERS, ("a", SKIP), ("r", EITHER)], uint("r"), uint("a")),
    "one answer twice": program([K, OTHERS, ("a", SKIP), ("b", SKIP), ("r", EITHER)], uint("r"), uint("b")),
    "two answers of one coin": program(
        [K, ("others", ["belows", D - 1, 2]), ("m", SKIP), ("r", ["where", "k", "value", ["at", "m", 0]]),
         ("s", ["where", "k", "value", ["at", "m", 1]])], uint("r"), uint("s")
    ),
    "an anonymous answer that repeats": program(
        [K, OTHERS, ("a", SKIP), ("r", EITHER), ("s", ["where", "k", "a", "value"])], uint("r"), uint("s")
    ),
    "a row that is divided with a public number": program(
        [("u", ["below", 1]), ("h", ["add", "u", 1]), ROW, K, ("p", ["put", "row", "value", "k"]),
         ("r", ["div", ["add", "p", "h"], 2])], uint("r", D)
    ),
    "a row of options that is halved": program(
        [("d", ["belows_from", 1, 2]), ("p", ["floyd", "d", 1]), ("f", ["bits", MOST, 2]),
         ("r", ["shr", ["add", ["add", 1, ["mul", 0, "p"]], ["xor", ["and", ["shr", "value", "p"], 1], "f"]], 1])],
        uint("r", 2),
    ),
    "the noise of a row": program([("o", ["onehot", "value", D]), ROW, ("r", ["xor", "o", "row"])], row("r"), row("row")),
    "the own coin of a row": program([ROW, K, ("r", ["put", "row", "value", "k"])], row("r"), uint("k")),
    "the place of a set": program([*SETS, K, ("r", ["sort", PUT])], uint("r", 2), uint("place")),
    "the set before": program([*SETS, K, ("r", ["sort", PUT])], uint("r", 2), uint("row", 2)),
    "the noise of buckets": program([*BUCKETS, *MARKED], uint("r", 2), uint("f", 2)),
    "the coin of a word": program([("c", ["add", "value", 1]), ("w", ["below", 8]), K, ("r", TURN)], uint("r"), uint("k")),
    # one draw for several things
    "a coin for a whole row": program([ROW, K, ("p", ["put", "row", "value", 1]), ("r", ["xor", "p", "k"])], row("r")),
    "one row twice": program([ROW, K, ("p", ["put", "row", "value", "k"]), ("r", ["xor", "p", "row"])], row("r")),
    "one coin for two draws": program(
        [("k", ["bits", MOST, 2]), ("others", ["belows", D - 1, 2]), ("m", SKIP), ("e", ["where", "k", "value", "m"]),
         ("r", ["xor", "e", ["at", "k", 0]])], uint("r", 2)
    ),
    "one place for two sets": program(
        [*SETS, K, ("more", ["subset", D - 1, 2]), ("rest", ["add", "more", ["ge", "more", "value"]]), ("r", ["sort", PUT]),
         ("s", ["sort", ["put", "rest", "place", ["where", "k", "value", ["at", "rest", "place"]]]])],
        uint("r", 2), uint("s", 2),
    ),
    # a draw that is not as it must be
    "a set that is not in order": program([*SETS, ("r", ["put", "row", "place", "value"])], uint("r", 2)),
    "places of buckets that repeat": program(
        [("f", ["bits", HALF, 2]), ("b", ["belows", D, 2]), *MARKED], uint("r", 2)
    ),
    "a bucket that is drawn less often": program(
        [("f", ["bits", HALF, 2]), ("d", ["belows_from", D - 2, 2]), ("b", ["floyd", "d", D - 2]), *MARKED], uint("r", 2)
    ),
    "options that repeat": program(
        [("p", ["belows", 2, 2]), ("f", ["bits", MOST, 2]), ("t", ["xor", ["and", ["shr", "value", "p"], 1], "f"]),
         ("r", ["add", ["mul", 2, "p"], "t"])], uint("r", 2)
    ),
    "two bits of an option": program(
        [("d", ["belows_from", 1, 2]), ("p", ["floyd", "d", 1]), ("f", ["bits", MOST, 2]),
         ("r", ["add", ["mul", 4, "p"], ["xor", ["and", ["shr", "value", "p"], 3], "f"]])], uint("r", 2)
    ),
    "words that are too short": program([("c", ["add", "value", 1]), ("w", ["below", 4]), K, ("r", TURN)], uint("r")),
    "words that are not uniform": program([("c", ["add", "value", 1]), ("w", ["below", 7]), K, ("r", TURN)], uint("r")),
    # one answer is another
    "one answer differs": program([K, ("t", ["eq", "value", 0]), ("r", ["where", "k", "t", 0])], uint("r")),
    "a place past an answer": program([K, ("r", ["xor", ["onehot", ["min", "value", 2], D], ["list", "k", 0, 0, 0]])], row("r")),
    "a threshold of the answer": program([("r", ["bit_at", ["mul", "value", 2**40]])], uint("r")),
    "a code of zero": program(
        [("c", ["add", "value", 0]), ("w", ["below", 8]), K,
         ("r", ["xor", "w", ["where", ["eq", ["parity", ["and", "w", "c"]], "k"], 1, 0]])], uint("r")
    ),
    "a code of two answers": program(
        [("c", ["add", ["div", "value", 2], 1]), ("w", ["below", 8]), K, ("r", TURN)], uint("r")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAKS)
def test_rule_never_judges_a_leaking_program_too_good(name: str) -> None:
    laws = listed(LEAKS[name])
    assert laws is not None
    found = verdicts(LEAKS[name], laws)
    assert set(found.values()) <= {"refused", "bounds"}, found


@pytest.mark.slow
@pytest.mark.parametrize("place", range(COUNT))
def test_some_rule_derives_a_good_program(place: int) -> None:
    made = good_programs()[place]
    laws = listed(made)
    assert laws is not None
    found = verdicts(made, laws)
    assert "bounds" in found.values()
    assert set(found.values()) <= {"refused", "bounds"}, found


@pytest.mark.slow
@pytest.mark.parametrize("place", range(COUNT))
def test_tight_law_has_the_listed_loss_and_variation(place: int) -> None:
    made = good_programs()[place]
    laws = listed(made)
    assert laws is not None
    pairs = list(combinations(laws, 2))
    apart = max(
        sum((max(p - b.get(k, Fraction(0)), Fraction(0)) for k, p in a.items()), Fraction(0)) for a, b in pairs
    )
    ratio = max(max(a[k] / b[k], b[k] / a[k]) for a, b in pairs for k in a)
    for rule in RULES:
        try:
            law = rule(made)  # type: ignore[call-arg]
        except Unknown:
            continue
        if law.tight:
            assert (law.ratio, law.variation) == (ratio, apart), rule.rule
        else:
            assert law.ratio is None or law.ratio >= ratio


@pytest.mark.slow
@pytest.mark.parametrize("place", range(COUNT))
def test_outcomes_and_floors_of_a_tight_law_are_those_of_the_listed_reports(place: int) -> None:
    made = good_programs()[place]
    laws = listed(made)
    assert laws is not None
    rows = sorted(set().union(*laws))
    reports = np.frombuffer(b"".join(rows), made.report["dtype"]).reshape(len(rows), *made.report["shape"])
    for rule in RULES:
        try:
            law = rule(made)  # type: ignore[call-arg]
            codes = law.outcomes(reports, 0, 1) if law.tight else []
        except NotSupported:
            continue
        masses, floors = law.comparison(0, 1).masses(), law.comparison(0, 1).floors()
        for side in (0, 1):
            sums = [Fraction(0)] * len(masses)
            for row, code in zip(rows, codes, strict=bool(len(codes))):
                sums[code] += laws[side].get(row, Fraction(0))
            assert not len(codes) or sums == [mass[side] for mass in masses], rule.rule
        for row, code in zip(rows, codes, strict=bool(len(codes))):
            both = sum(laws[side].get(row, Fraction(0)) for side in (0, 1))
            least = min(each.get(row, Fraction(0)) for each in laws)
            assert floors is None or least * sum(masses[code]) >= floors[code] * both, rule.rule


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("maker", [any_changed, random_program])
def test_rules_never_judge_changed_programs_too_good(maker: Any, seed: int) -> None:
    _, wrong = judged(random.Random(seed), maker, 2)
    assert not wrong


@pytest.mark.slow
def test_each_rule_derives_some_good_program() -> None:
    assert len(good_programs()) == COUNT
    derived = set()
    for made in good_programs():
        laws = listed(made)
        assert laws is not None
        derived |= {rule for rule, verdict in verdicts(made, laws).items() if verdict == "bounds"}
    assert derived == {rule.rule for rule in RULES} - {rule.rule for rule in REBUILT} - {
        "all outcomes",
        "runs of numbers",
    }


@pytest.mark.parametrize(
    ("name", "fields", "rule"),
    [
        ("grr", {"domain_size": 2**20}, "tracked answers"),
        ("oue", {"domain_size": 2**20}, "independent places"),
        ("random-substitution", {"domain_size": 2**20, "draws": 3}, "independent draws"),
        ("pgr", {"domain_size": 10**4}, "affine slabs"),
        ("heavy-hitters", {"length": 6}, "tracked answers"),
        ("cms", {"hashes": 64, "width": 16, "domain_size": 2**20}, "independent places"),
        ("hcms", {"hashes": 64, "width": 16, "domain_size": 2**20}, "tracked answers"),
        ("subset-selection", {"domain_size": 10**4}, "tracked answers"),
    ],
)
def test_derived_guarantee_of_many_answers_is_the_declared_one(name: str, fields: dict[str, Any], rule: str) -> None:
    made = ldp_budget.mechanism(name)(epsilon=1, **fields)
    law = law_of(made.client_program())
    assert law.rule == rule
    found, told = law.guarantee(made.epsilon), made.guarantee
    found, told = getattr(found, "of", found), getattr(told, "of", told)
    assert isinstance(found, SymmetricPair)
    assert isinstance(told, SymmetricPair)
    assert float(found.bound) == pytest.approx(float(told.bound), rel=1e-15)
    assert float(found.tau) == pytest.approx(float(told.tau), rel=1e-9)


def test_hadamard_words_of_a_million_answers_are_one_pair() -> None:
    made = hadamard(5)
    big = Program({**made.input, "count": 2**12 - 1}, (*made.steps[:1], ("word", ["below", 2**12]), *made.steps[2:]), {
        **made.report, "parts": [["uint", "report", 2, 1]]
    })  # fmt: skip
    law = HadamardWords(big)
    assert law.variation == HadamardWords(made).variation
    assert law.marginal()[0][0] == Fraction(int(MOST), 2**64)


def test_tick_law_covers_sets_that_differ_in_every_option() -> None:
    law = law_of(ticks(3, 2))
    odds = Fraction(int(MOST), 2**64 - int(MOST))
    assert law.ratio == odds**2


def test_stated_epsilon_that_is_exceeded_is_refused_with_the_loss() -> None:
    law = TrackedAnswers(words())
    assert not law.tight
    with pytest.raises(Unknown, match=r"larger than the stated ε: 0\.5"):
        law.guarantee(Decimal("0.5"))
    made = ldp_budget.mechanism("grr")(epsilon=2, domain_size=2**20)
    with pytest.raises(ValueError, match="more than the stated ε: 1"):
        law_of(made.client_program()).guarantee(Decimal(1))


def test_tracked_answers_refuse_two_kept_draws_of_one_label() -> None:
    steps = [
        ("k", ["kept_bits", "coin", "value", MOST, 1]),
        ("n", ["kept_belows", "coin", "value", D - 1, 1]),
        ("o", ["at", "n", 0]),
        ("a", ["add", "o", ["ge", "o", "value"]]),
        ("r", ["where", ["at", "k", 0], "value", "a"]),
    ]
    with pytest.raises(Unknown, match="same words of the secret"):
        TrackedAnswers(program(steps, uint("r"), memo="value"))


def test_law_that_differs_from_the_list_of_outcomes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = good_programs()[0]
    assert law_of(made).rule == "tracked answers"
    monkeypatch.setattr(TrackedAnswers, "variation", Fraction(1, 100))
    with pytest.raises(Unknown, match="is not that of all outcomes listed"):
        law_of(made)


def test_law_of_a_small_bound_is_that_of_all_outcomes() -> None:
    assert law_of(words()).rule == "all outcomes"
