"""Heavy hitters: the search against brute force, words that nobody listed, honest counts, planted faults."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldp_budget
from command_line import CommandLine
from ldp_budget import Collection, InvalidParameter, OutsideDomain, verify
from ldp_budget.guarantees import SymmetricPair
from ldp_budget.sdk.domain import Words
from ldp_budget_mechanisms._prefix_reports import CHILDREN, FoundLaw, FoundWords, PrefixFamily, _peeled, _users

HeavyHitters: Any = ldp_budget.mechanism("heavy-hitters")


def answers(counts: dict[str, int]) -> list[str]:
    return [word for word, count in counts.items() for _ in range(count)]


# -- words ------------------------------------------------------------------------------------------------------------


def test_words_are_numbers_whose_first_bytes_are_highest() -> None:
    domain = Words(6)
    assert domain.number_of("abc") == int.from_bytes(b"abc\0\0\0", "big")
    assert domain.word_of(domain.number_of("é한")) == "é한"
    assert domain.length == 6
    assert domain.word_of(0xFF << 40) == "\\xff"
    assert domain.check(["abc", "é한"]).tolist() == [domain.number_of("abc"), domain.number_of("é한")]


@pytest.mark.parametrize("length", [3, 21])
def test_words_of_any_length_are_taken_as_texts_or_numbers(length: int) -> None:
    domain = Words(length)
    numbers = [1, domain.size - 1]
    assert domain.check(numbers).tolist() == numbers
    assert domain.check(["123"]).tolist() == [int.from_bytes(b"123".ljust(length, b"\0"), "big")]
    for wrong in ([-1], [domain.size], ["a" * (length + 1)], ["a\0b"], [""], [0.5], [True, "a"], ["\ud800"]):
        with pytest.raises((OutsideDomain, InvalidParameter)):
            domain.check(wrong)


# -- the search -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("children", [1 << 8, CHILDREN])
@pytest.mark.parametrize("bits", [1, 3])
def test_support_of_all_children_is_that_counted_one_by_one(bits: int, children: int) -> None:
    family = PrefixFamily(5, 7, bits)
    table = np.random.default_rng(1).integers(0, 1000, (7, 1 << bits))
    parents, some = [3, 12345678901234567890], [0, 1, 2, 3, 255, children // 3, children - 1]
    counts = family.of_children(table, parents, children)
    for place, parent in enumerate(parents):
        listed = np.full(len(some), parent, object), np.array(some)
        assert family.support(table, *listed).tolist() == counts[place][some].tolist()


@pytest.mark.slow
def test_cells_of_prefixes_are_uniform_and_three_of_them_independent() -> None:
    family = PrefixFamily(1, 40_000, 1)
    functions = np.arange(family.count)
    prefixes = [(9, 5), (9, 6), (8, 5)]
    cells = [family.cells(functions, np.array([parent]), np.array([child])) for parent, child in prefixes]
    joint = np.bincount(4 * cells[0] + 2 * cells[1] + cells[2], minlength=8) / family.count
    assert np.abs(joint - 1 / 8).max() < 0.01


def test_search_does_not_take_a_sibling_for_the_word_that_explains_their_prefix() -> None:
    """Two words of one prefix: the noisier one would inherit the users of the other, were these not subtracted."""
    measured = np.array([[1000.0, 1000.0], [1000.0, 500.0], [450.0, 420.0]])
    numbers, sizes, variances = (
        [(1 << 16) + 1, (1 << 16) + 2, (2 << 16) + 1],
        [1 << 16, 1 << 16],
        np.array([1e4, 1e4]),
    )
    assert _users(measured, variances).argsort().tolist() == [2, 1, 0]
    assert _peeled(numbers, measured, sizes, variances, 2) == [numbers[0], numbers[2]]


def test_prefix_with_many_words_says_nothing_of_one_of_them() -> None:
    measured = np.array([[9000.0, 400.0], [380.0, 400.0], [0.0, 400.0]])
    assert _users(measured, np.array([1e4, 1e4])).tolist() == [400, 390, 200]


@pytest.mark.exhaustive
def test_heavy_hitters_finds_words_that_nobody_listed() -> None:
    made = HeavyHitters(epsilon=4, length=8, hashes=4096)
    truth = {"home": 30_000, "search": 20_000, "settings": 14_000, "mail": 9_000}
    rare = {f"w{number}": 1 for number in range(5_000)}
    found = made.estimate(made.randomize(answers({**truth, **rare}), rng=1), top=4)
    assert isinstance(found, FoundWords)
    assert found.answers == tuple(truth)
    assert (found.interval()[0] > 0).all()
    assert (np.abs(found.counts - list(truth.values())) < 4 * found.std_errors).all()  # one draw: see the tests below


@pytest.mark.exhaustive
def test_heavy_hitters_of_one_chunk_and_of_odd_length_find_their_words() -> None:
    for length, words in ((1, "ab"), (2, ("ab", "zz")), (3, ("abc", "z")), (7, ("\x7fseven7", "é"))):
        made = HeavyHitters(epsilon=5, length=length, hashes=256)
        found = made.estimate(made.randomize(answers(dict(zip(words, (6000, 3000), strict=True))), rng=2), top=2)
        assert found.answers == tuple(words)


@pytest.mark.exhaustive
def test_heavy_hitters_finds_words_longer_than_a_machine_word() -> None:
    made = HeavyHitters(epsilon=6, length=9, hashes=256)
    words = {"/search/a": 60_000, "/search/b": 40_000}
    found = made.estimate(made.randomize(answers(words), rng=5), top=2)
    assert found.answers == tuple(words)


@pytest.mark.exhaustive
def test_heavy_hitters_recall_of_the_top_sixteen_among_a_million_users() -> None:
    """48-bit strings of a Zipf law 1.2, ε = 2: at least .9 on average; see benchmarks/heavy_hitters.py."""
    made = HeavyHitters(epsilon=2, length=6)
    recalls = []
    for seed in range(4):
        source = np.random.default_rng(seed)
        chances = 1 / np.arange(1, 20_001) ** 1.2
        words = source.integers(1, 2**48, len(chances))
        values = words[source.choice(len(words), 10**6, p=chances / chances.sum())]
        found = made.estimate(made.randomize(values, rng=seed), top=16)
        recalls.append(len({made.domain.word_of(word) for word in words[:16]} & set(found.answers)) / 16)
    assert np.mean(recalls) >= 0.9


@pytest.mark.exhaustive
def test_heavy_hitters_count_of_listed_words_is_unbiased_and_its_errors_are_true() -> None:
    made = HeavyHitters(epsilon=2, length=4, hashes=2048)
    truth = {"ab": 900, "abcd": 600, "zz": 0}
    values = answers({**truth, **{f"x{number:03}": 1 for number in range(500)}})
    off = []
    for run in range(120):
        seeded = made.replace(seed=run)
        found = seeded.estimate(seeded.randomize(values, rng=run), candidates=list(truth))
        off.append((found.counts - list(truth.values())) / found.std_errors)
    assert abs(np.mean(off)) < 5 / np.sqrt(np.size(off))
    assert np.std(off) == pytest.approx(1, abs=0.15)


@pytest.mark.exhaustive
def test_found_words_of_noise_alone_have_no_low_end_above_zero() -> None:
    made = HeavyHitters(epsilon=2, length=4, hashes=1024)
    values = [f"{number:04x}" for number in range(20_000)]
    seen = 0
    for run in range(6):
        found = made.estimate(made.randomize(values, rng=run))
        seen += int((found.interval()[0] > 0).sum())
    assert seen <= 1


def test_low_ends_of_found_words_allow_for_all_words_that_were_tried() -> None:
    made = HeavyHitters(epsilon=4, length=2, hashes=512)
    found = made.estimate(made.randomize(answers({"aa": 3000, "bb": 2000}), rng=1), top=2)
    assert isinstance(found.law, FoundLaw)
    low, high = found.interval()
    assert ((found.counts - low) > 2 * (high - found.counts)).all()


# -- reports ----------------------------------------------------------------------------------------------------------


def test_heavy_hitters_refuses_a_table_that_is_too_large() -> None:
    with pytest.raises(InvalidParameter, match="hashes"):
        HeavyHitters(epsilon=5, length=64, hashes=2**20)
    assert HeavyHitters(epsilon=5, length=64)._count == 2**26 // 32 // 128
    for top in (0, 257, True, "16"):
        with pytest.raises(InvalidParameter, match="top"):
            HeavyHitters(epsilon=2, length=2, hashes=4).estimate(np.zeros((3, 5), np.uint8), top=top)


# -- verification -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(15)
@pytest.mark.parametrize("epsilon", ["0.01", "1", "2", "5", "20"])
@pytest.mark.parametrize("length", [1, 6, 20])
def test_verify_proves_heavy_hitters(epsilon: str, length: int) -> None:
    made = HeavyHitters(epsilon=epsilon, length=length, hashes=8)
    assert isinstance(made.guarantee, SymmetricPair)
    assert verify(made).verdict == "holds"


def test_heavy_hitters_cells_are_close_to_the_best_number() -> None:
    for epsilon in ("0.1", "0.55", "1", "1.5", "2", "2.3", "3", "4"):
        made = HeavyHitters(epsilon=epsilon, length=2, hashes=4)
        odds = np.exp(float(epsilon))
        best = 4 * odds / (odds - 1) ** 2
        assert made.utility()["variance_per_user"] <= (1.08 if float(epsilon) < 2 else 1.04) * best


def with_step(name: str, step: Any) -> Any:
    return lambda program: replace(
        program, steps=tuple((each, step if each == name else old) for each, old in program.steps)
    )


FAULTS = {
    "a cell that is kept too often": with_step("kept", ["bit", str(2**64 - 2**56)]),
    "a level that depends on the word": with_step("level", ["mod", "value", 2]),
    "a function that depends on the word": with_step("function", ["mod", "value", 8]),
    "the cell beside the noise": with_step("shown", ["mod", ["add", "cell", ["mul", "kept", 0]], 8]),
    "a step for some words alone": with_step(
        "shown",
        ["mod", ["add", "cell", ["where", ["eq", "value", 77], 0, ["where", "kept", 0, ["add", 1, "others"]]]], 8],
    ),
    "the child in the report": lambda program: replace(
        program,
        report={
            **program.report,
            "parts": [["uint", "level", 1, 1], ["uint", "child", 3, 1], *program.report["parts"][2:]],
        },
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_verify_does_not_prove_heavy_hitters_with_a_planted_fault(fault: str) -> None:
    made = HeavyHitters(epsilon=2, length=3, hashes=1)
    program = FAULTS[fault](made.client_program())

    class Planted(HeavyHitters):  # type: ignore[misc]
        def client_program(self) -> Any:
            return program

    assert verify(made).verdict == "holds"
    assert verify(Planted(epsilon=2, length=3, hashes=1)).verdict != "holds"


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_estimate_top_lists_found_words_with_intervals(command: CommandLine, tmp_path: Path) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("collection", "add", "pages", "heavy-hitters", "--epsilon", "4", "--length", "8", "--hashes", "1024")
    column = tmp_path / "visits.csv"
    column.write_text("user,page\n" + "".join(f"u{i},{'home' if i % 3 else 'settings'}\n" for i in range(3000)))
    reports = tmp_path / "pages.reports"
    command("randomize", "pages", column, "--column", "page", "--out", reports, "--user-column", "user", "--spend")
    found = json.loads(command("estimate", "pages", reports, "--top", "2", "--json").stdout)
    assert [row["answer"] for row in found["answers"]] == ["home", "settings"]
    for row, truth in zip(found["answers"], (2000, 1000), strict=True):
        assert row["low"] <= truth <= row["high"]
    listed = json.loads(command("estimate", "pages", reports, "--candidates", "home,mail", "--json").stdout)
    assert [row["answer"] for row in listed["answers"]] == ["home", "mail"]
    refused = command("estimate", "pages", reports, "--by-round", code=2)
    assert "--candidates" in refused.stderr


def test_collection_of_words_refuses_a_word_that_is_too_long() -> None:
    collection = Collection("pages", HeavyHitters(epsilon=1, length=4, hashes=16))
    with pytest.raises(OutsideDomain, match="1 to 4 bytes"):
        collection.read_values(["home", "settings"])
    assert collection.definition()["input"] == {"kind": "word", "length": 4}
    assert collection.mechanism.utility(100)["std_error"] == pytest.approx(0.260, abs=0.001)
