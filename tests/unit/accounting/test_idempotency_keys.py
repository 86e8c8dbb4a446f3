"""Idempotency keys: the texts that are valid keys, and the history by pages."""

from __future__ import annotations

import pytest

from ldp_budget import Accountant, InvalidParameter, mechanism
from ldp_budget.accounting.batch import Spend

pytestmark = pytest.mark.policy("lifetime=4")


@pytest.mark.parametrize("key", ["k ", " k", "k\t", "k\r\n", "k\N{NO-BREAK SPACE}", "a\0b", "a\nb", "k\x7f", " "])
def test_key_with_blanks_around_it_or_control_characters_is_refused(accountant: Accountant, key: str) -> None:
    """`k`, `k ` and `k  ` were three keys, so a retry that came through another client was charged again."""
    coin = mechanism("randomized-response")(epsilon=1)
    for charge in (
        lambda: accountant.spend("alice", coin, key=key),
        lambda: accountant.reserve("alice", coin, key=key),
        lambda: accountant.spend_many(["alice"], coin, key=key),
        lambda: accountant.spend_batch([Spend("alice", coin)], key=key),
    ):
        with pytest.raises(InvalidParameter, match="key"):
            charge()
    assert accountant.history("alice") == []


def test_key_with_inner_blanks_and_any_letters_is_accepted(accountant: Accountant) -> None:
    coin = mechanism("randomized-response")(epsilon=1)
    assert accountant.spend("alice", coin, key="Tag 1/파티 é").status == "spent"


def test_history_with_limit_is_returned_in_pages(accountant: Accountant) -> None:
    """The history of 240,000 entries took 583 MiB: there was no way to ask for a part of it."""
    coin = mechanism("randomized-response")(epsilon="0.1")
    first = accountant.reserve("alice", coin).receipt or ""
    for user in ("alice", "bob", "alice", "alice"):
        accountant.spend(user, coin, note=f"by {user}")
    accountant.commit(first)
    whole = accountant.history("alice")
    assert (len(whole), whole[0]["state"]) == (5, "committed")
    parts, start = [], 1
    while part := accountant.history("alice", first=start, most=2):
        parts.append(part)
        start = part[-1]["entry"] + 1
    assert [len(part) for part in parts] == [2, 2, 1]
    assert [row for part in parts for row in part] == whole
    for wrong in ({"first": 0}, {"most": 0}, {"most": "2"}):
        with pytest.raises(InvalidParameter):
            accountant.history("alice", **wrong)  # type: ignore[arg-type]
