"""Invitations: the rights and the expiry of a signed link, of which nothing is stored."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from contract.acts import coin as coin_of
from contract.rotation import exchange
from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant, Collection, InvalidParameter, UnknownName
from ldp_budget_service.invitations import Invitation, Invitations, invite, read

COIN = coin_of(1)


@pytest.fixture
def accountant(accountant: Accountant) -> Accountant:
    """A ledger with two collections."""
    for name in ("commute", "lunch"):
        accountant.add_collection(Collection(name, COIN, ("no", "yes")))
    return accountant


@pytest.fixture
def invitations(accountant: Accountant) -> Invitations:
    return Invitations(accountant)


def token(
    invitations: Invitations, clock: Clock, user: str = "alice", collection: str = "commute", **more: Any
) -> str:
    [(named, made)] = invitations.invite(collection, [user], clock.now + timedelta(days=7), **more)
    assert named == user
    return made


def found(invitations: Invitations, text: str) -> Invitation:
    invitation = invitations.find(text)
    assert invitation is not None
    return invitation


def test_token_until_expiry_states_user_collection_and_round(invitations: Invitations, clock: Clock) -> None:
    made = token(invitations, clock)
    invitation = found(invitations, made)
    assert (invitation.user, invitation.collection, invitation.round) == ("alice", "commute", "")
    assert invitation.expires == clock.now + timedelta(days=7)
    clock.advance(days=7, microseconds=-1)
    assert invitations.find(made) is not None
    clock.advance(microseconds=1)
    assert invitations.find(made) is None


def test_token_of_other_text_is_refused(invitations: Invitations, clock: Clock) -> None:
    made = token(invitations, clock)
    content, signature = made.split(".")
    said = json.loads(base64.urlsafe_b64decode(content + "=="))
    forged = base64.urlsafe_b64encode(json.dumps(["commute", "bob", *said[2:]]).encode()).decode().rstrip("=")
    for other in (f"{forged}.{signature}", f"{content}.", content, made + "A", made.swapcase(), "", ".", "é.é"):
        assert invitations.find(other) is None
    for odd in (None, 7, made.encode(), "\ud800", "A" * 10**6):
        assert invitations.find(odd) is None  # type: ignore[arg-type]


def test_token_of_another_ledger_is_refused(invitations: Invitations, clock: Clock, coin: Any) -> None:
    with Accountant(":memory:", clock=clock) as other:
        other.add_collection(Collection("commute", coin(1), ("no", "yes")))
        assert invitations.find(token(Invitations(other), clock)) is None


def test_invite_writes_nothing_and_names_no_user(
    accountant: Accountant, invitations: Invitations, clock: Clock
) -> None:
    before = accountant.stats()["entries"]
    assert "alice" not in repr(found(invitations, token(invitations, clock)))
    assert accountant.stats()["entries"] == before


def test_invite_again_in_a_round_keeps_the_key_of_the_user(invitations: Invitations, clock: Clock) -> None:
    def key(**more: Any) -> str:
        clock.advance(hours=1)
        return found(invitations, token(invitations, clock, **more)).key

    assert key() == key() == key(round="")
    others = [key(), key(user="bob"), key(collection="lunch"), key(round="2"), key(round="3")]
    assert len(set(others)) == len(others)


def test_revocation_record_does_not_name_the_user(accountant: Accountant, invitations: Invitations) -> None:
    invitations.revoke("commute", "alice")
    [record] = accountant.records()
    assert (record.kind, record.name) == ("invitations-revoked", "commute")
    assert "alice" not in str(record.to_json())


def test_revocation_by_another_process_is_seen_at_once_with_a_ledger_read(
    accountant: Accountant, clock: Clock
) -> None:
    [(_, made)] = invite(accountant, "commute", ["alice"], clock.now + timedelta(days=1))
    assert read(accountant, made) is not None
    Invitations(accountant).revoke("commute")
    assert read(accountant, made) is None


def test_token_after_key_rotation_stays_valid(accountant: Accountant, invitations: Invitations, clock: Clock) -> None:
    before = token(invitations, clock, round="1")
    exchange(accountant)
    invitations = Invitations(accountant)
    after = token(invitations, clock, round="1")
    assert before.partition(".")[2] != after.partition(".")[2], "the old secret does not sign what is made now"
    assert found(invitations, before).key == found(invitations, after).key
    invitations.revoke("commute", "alice")
    assert invitations.find(before) is invitations.find(after) is None


def test_revocation_after_key_rotation_ends_tokens_of_the_old_secret(
    accountant: Accountant, invitations: Invitations, clock: Clock
) -> None:
    """The owner of the old secret can date tokens freely, and could sign them without end."""
    old, ledger_id = accountant._ledger.key._all()[0], accountant._ledger.key.ledger_id
    exchange(accountant)
    invitations = Invitations(accountant)
    clock.advance(days=1)
    alice, bob = (forged(old, ledger_id, user, clock) for user in ("alice", "bob"))
    assert found(invitations, alice).user == "alice", "as what was signed before the exchange may have been sent"
    invitations.revoke("commute", "alice")
    assert [invitations.find(each) is not None for each in (alice, bob)] == [False, True]
    invitations.revoke("commute")
    assert invitations.find(bob) is None
    clock.advance(seconds=1)
    assert invitations.find(token(invitations, clock)) is not None


def forged(secret: bytes, ledger_id: str, user: str, clock: Clock) -> str:
    """A token as the old secret signs it, dated in the future."""
    store = ToyStore(secret=secret)
    store.key.set_ledger_id(ledger_id)
    with Accountant(store, clock=lambda: clock.now + timedelta(days=100)) as thief:
        thief.add_collection(Collection("commute", COIN, ("no", "yes")))
        [(_, made)] = invite(thief, "commute", [user], clock.now + timedelta(days=999))
        return made


def test_invite_with_invalid_arguments_raises(invitations: Invitations, clock: Clock) -> None:
    soon = clock.now + timedelta(days=1)
    with pytest.raises(UnknownName):
        invitations.invite("nix", ["alice"], soon)
    with pytest.raises(UnknownName):
        invitations.revoke("nix")
    for expires in (clock.now, datetime(2026, 12, 24), "2026-12-24", None):
        with pytest.raises(InvalidParameter, match="expires"):
            invitations.invite("commute", ["alice"], expires)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="users"):
        invitations.invite("commute", "alice", soon)
    for user in ("", "x" * 501, None):
        with pytest.raises(InvalidParameter, match="user"):
            list(invitations.invite("commute", [user], soon))  # type: ignore[list-item]
    with pytest.raises(InvalidParameter, match="round"):
        invitations.invite("commute", ["alice"], soon, round=None)  # type: ignore[arg-type]
