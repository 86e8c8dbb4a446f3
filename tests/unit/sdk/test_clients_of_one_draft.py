"""Clients of the short notation whose draft, or whose single report, says less than the client does."""

from __future__ import annotations

from typing import Any

import pytest

from ldp_budget import NotSupported
from ldp_budget.sdk import FrequencyMechanism, integer, real, where
from ldp_budget_verify.law import law_of

ONE = 2**64


def made(client: Any, answers: int = 3) -> Any:
    declared = {
        "name": "attacked",
        "epsilon": real("privacy loss of one report", above=0),
        "domain_size": integer("number of answers", at_least=2),
        "client": client,
    }
    kind: Any = type("Attacked", (FrequencyMechanism,), declared)
    return kind(epsilon=1.0, domain_size=answers)


def _sent(value: Any, draw: Any, also: int) -> Any:
    other = draw.below(2)
    return where(draw.coin() & draw.bit(also), value, other + (other >= value))


def test_guarantee_of_a_client_whose_draft_is_that_of_another_is_its_own() -> None:
    one = made(lambda _, value, draw: _sent(value, draw, draw.threshold))
    other = made(lambda _, value, draw: _sent(value, draw, ONE // 4 * 3))
    assert one.guarantee.epsilon == pytest.approx(1)
    assert law_of(other.client_program()).ratio <= 2.7182818284590456
    assert other.coin != one.coin


def test_guarantee_of_kept_draws_that_all_answers_share_is_not_derived() -> None:
    def client(_: Any, value: Any, draw: Any) -> Any:
        draw.kept_bits("own", value, ONE // 2, 1)
        draw.coin()
        return value ^ draw.kept_bits("pad", 0, draw.threshold, 1)[0]

    with pytest.raises(NotSupported, match="repeats kept draws"):
        _ = made(client, 2).guarantee
