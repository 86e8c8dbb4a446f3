"""Answers that are hashed by a public seed: the verdict is of every pair of cells, not of the pair looked at."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import Any

import pytest

import ldp_budget
from altered_programs import emits, one_of
from ldp_budget import Mechanism, verify
from ldp_budget.guarantees import SymmetricPair
from ldp_budget_verify.exact.derived_law import answers_are_alike


def promising_less(made: Mechanism) -> Mechanism:
    """The same with a τ that covers its critical pair, and not two answers that collide under no function."""
    share = made._family.share_apart(*made.critical_inputs())  # type: ignore[attr-defined]
    assert 0 < share < 1
    assert isinstance(made.guarantee, SymmetricPair)
    tau = made.guarantee.tau * (Decimal(share.numerator) / share.denominator + 1) / 2

    class Less(type(made)):  # type: ignore[misc]
        guarantee = property(lambda self: SymmetricPair(made.guarantee.bound, tau))

    return Less(**made.declared)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["cms", "hcms"])
@pytest.mark.parametrize(("hashes", "width"), [(64, 2), (64, 8), (600, 8)])
def test_verify_of_a_tau_that_only_colliding_answers_keep_is_unproven(name: str, hashes: int, width: int) -> None:
    """τ was compared with the critical pair, which collides under some functions, and reported for all pairs."""
    found = verify(promising_less(ldp_budget.mechanism(name)(epsilon=1, hashes=hashes, width=width)))
    assert found.verdict == "unproven"
    assert found.program == "unproven"


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["cms", "hcms"])
@pytest.mark.parametrize(("hashes", "width"), [(1, 8), (64, 2), (64, 8), (64, 256), (1024, 1024)])
def test_verify_of_the_tau_of_all_pairs_of_cells_holds(name: str, hashes: int, width: int) -> None:
    assert verify(ldp_budget.mechanism(name)(epsilon=1, hashes=hashes, width=width)).verdict == "holds"


def test_verify_of_cells_that_are_too_many_to_list_holds_by_the_law() -> None:
    """No two of the answers looked at differ under all 4,096 functions, and the rows of 64 bits cannot be listed."""
    found = verify(ldp_budget.mechanism("cms")(epsilon=1, hashes=4096, width=64))
    assert (found.verdict, found.program) == ("holds", "unproven")
    assert "by the law of the client program all of them" in found.looked_at


@pytest.mark.slow
@pytest.mark.parametrize("flip", ["0", "0.2"])
def test_verify_of_rounded_numbers_covers_every_number(flip: str) -> None:
    """Three numbers were compared; now the law of each of the 11 rounded values is listed."""
    found = verify(ldp_budget.mechanism("one-bit-mean")(epsilon=1, maximum=10, rounding=1, flip=flip))
    assert found.verdict == "holds"
    assert "within the promise for all cells" in found.program_open


@pytest.mark.slow
def test_verify_of_one_rounded_number_that_is_revealed_is_violated() -> None:
    """The rounded value 7 is sent in clear; the ends and the middle were compared, and it was said to hold."""
    made = ldp_budget.mechanism("one-bit-mean")(epsilon=1, maximum=10, rounding=1, flip="0.2")
    told = one_of(made, "report", ["where", ["eq", "cell", 7], 1, ["xor", ["at", "kept", 0], "flip"]])
    found = verify(emits(made, steps=told))
    assert (found.verdict, found.program) == ("violated", "violated")


@pytest.mark.slow
def test_verify_of_rounded_numbers_that_show_the_shared_words_is_not_by_rounded_value() -> None:
    """Of a report that depends on the words by which a number is rounded, the rounded value tells not enough."""
    made = ldp_budget.mechanism("one-bit-mean")(epsilon=1, maximum=10, rounding=1, flip="0.2")
    told = one_of(made, "report", ["xor", ["at", "kept", 0], ["mul", "flip", ["ge", "alpha", 9]]])
    found = verify(emits(made, steps=told))
    assert "by the law of the client program" not in found.looked_at


RAPPOR = {"f": "0.5", "p": "0.25", "q": "0.75", "cohorts": 8}


@pytest.mark.slow
@pytest.mark.parametrize("declared", [{"bits": 32, "hashes": 2}, {"bits": 32, "hashes": 2, "domain_size": 8}])
def test_verify_of_rappor_whose_filters_are_as_far_apart_as_can_be_holds(declared: dict[str, Any]) -> None:
    found = verify(ldp_budget.mechanism("rappor")(**RAPPOR, **declared))
    assert found.verdict == "holds"
    assert "answers" in found.looked_at


@pytest.mark.slow
def test_verify_of_rappor_whose_filters_always_overlap_is_unproven() -> None:
    """Four bits of four words each: no two filters looked at are disjoint, and the pair looked at was believed."""
    found = verify(ldp_budget.mechanism("rappor")(**RAPPOR, bits=4, hashes=4))
    assert found.verdict == "unproven"


@pytest.mark.slow
def test_verify_of_rappor_of_a_loss_that_only_overlapping_filters_keep_is_unproven() -> None:
    """A curve of the pair looked at, whose filters overlap, was said to hold for all pairs."""
    made = ldp_budget.mechanism("rappor")(**RAPPOR, bits=4, hashes=3)
    shown = [made.compare_repeated(*made.critical_inputs(), length).loss() for length in (1, None)]
    curve, cap = (loss[1] for loss in shown if loss is not None)

    class Less(type(made)):  # type: ignore[misc]
        guarantee = property(lambda self: dataclasses.replace(made.guarantee, curve=(curve,), cap=cap))

    assert curve < made.guarantee.curve[0]  # type: ignore[attr-defined]
    assert verify(Less(**made.declared)).verdict != "holds"


@pytest.mark.parametrize(
    ("name", "step", "expression"),
    [
        ("hcms", "sign", ["eq", ["parity", ["and", 1, "cell"]], "kept"]),
        ("hcms", "cell", ["polynomial", "0", ["and", "place", 7], "value", 8]),
        ("hcms", "report", ["add", "place", "sign"]),
        ("hcms", "report", ["mul", 1, "sign"]),
    ],
)
def test_cells_revealed_by_some_of_their_bits_are_not_alike(name: str, step: str, expression: Any) -> None:
    """The parity of some bits of a cell tells some cells apart and not others; all were taken to be alike."""
    made = ldp_budget.mechanism(name)(epsilon=1, hashes=4, width=8)
    assert answers_are_alike(made.client_program())
    assert not answers_are_alike(emits(made, steps=one_of(made, step, expression)).client_program())


def test_cells_of_a_function_that_no_report_shows_are_not_alike() -> None:
    """Two answers with the same cells under other functions have one distribution; others differ."""
    made = ldp_budget.mechanism("cms")(epsilon=1, hashes=4, width=8)
    program = made.client_program()
    shown = dataclasses.replace(
        program, report={**program.report, "shape": [1], "parts": program.report["parts"][1:]}
    )
    assert not answers_are_alike(shown)
