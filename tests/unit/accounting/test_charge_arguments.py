"""Arguments of charges: what is refused, what is normalized, and what the error says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ldp_budget import Accountant, InvalidParameter, mechanism
from ldp_budget.accounting import bulk_run

OUE = mechanism("oue")(epsilon="0.1", domain_size=4)


@pytest.fixture
def accountant() -> Iterator[Accountant]:
    with Accountant(":memory:") as made:
        made.set_policy("default", ["lifetime=4"])
        yield made


@pytest.mark.parametrize("act", ["spend", "reserve", "spend_many"])
def test_digest_without_a_key_is_refused(accountant: Accountant, act: str) -> None:
    """It bound nothing, and no error said so."""
    who = ["alice"] if act == "spend_many" else "alice"
    with pytest.raises(
        InvalidParameter, match=r"digest must be left out without a key, .*: got 'ab'. Give a key too."
    ):
        getattr(accountant, act)(who, OUE, digest="ab")
    assert accountant.history("alice") == []
    assert getattr(accountant, act)(who, OUE, digest="ab", key="k")


def test_invalid_user_of_a_list_is_named_by_position(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InvalidParameter, match=r"user must be a string: got None at position 1 of the list. No user was charged."
    ):
        accountant.spend_many(["alice", None], OUE)  # type: ignore[list-item]
    assert accountant.history("alice") == []
    monkeypatch.setattr(bulk_run, "BATCH", 2)
    with pytest.raises(
        InvalidParameter, match=r"got ' ' at position 3 of the list. Only earlier batches were charged."
    ):
        accountant.spend_many(["alice", "bob", "eve", " "], OUE)
    assert [len(accountant.history(user)) for user in ("alice", "bob", "eve")] == [1, 1, 0]
