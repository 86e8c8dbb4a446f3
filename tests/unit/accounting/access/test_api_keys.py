"""API keys: scopes, expiry and rotation of a secret, of which only the hash is stored."""

from __future__ import annotations

import re
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from contract.acts import check, write_record
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, NameTaken, UnknownName
from ldp_budget_service.api_keys import ADMIN, SCOPES, ApiKeys


@pytest.fixture
def keys(accountant: Accountant) -> ApiKeys:
    return ApiKeys(accountant)


def test_find_with_any_other_text_returns_none(keys: ApiKeys) -> None:
    made, secret = keys.create("team-a", ["spend", "read"])
    assert re.fullmatch(r"ldpb_[A-Za-z0-9_-]{43}", secret)
    assert keys.find(secret) == made
    assert (made.name, made.scopes, made.by) == ("team-a", ("spend", "read"), None)
    for other in ("", "ldpb_", secret[:-1], secret + "A", secret[5:], secret.swapcase(), "ldpb_" + "A" * 43):
        assert keys.find(other) is None
    for odd in (None, 7, secret.encode(), "ldpb_\ud800", "ldpb_" + "é" * 43, "ldpb_" + "A" * 10**6):
        assert keys.find(odd) is None  # type: ignore[arg-type]


def test_create_stores_no_secret(tmp_path: Path) -> None:
    with Accountant(tmp_path / "budget.db") as accountant:
        _, secret = ApiKeys(accountant).create("team-a", ["spend"])
        assert secret not in str(list(accountant.journal())) + str(accountant.records())
        assert accountant.records()[0].body["hash"] == sha256(secret.encode()).hexdigest()
    for file in tmp_path.iterdir():
        assert secret[5:].encode() not in file.read_bytes()


def test_key_allows_its_scopes_policies_and_collections_only(keys: ApiKeys) -> None:
    everything, _ = keys.create("root", [ADMIN])
    bound, _ = keys.create("bound", ["spend"], policies=["default"], collections=["party", "colour"])
    assert all(everything.allows(scope, policy="any", collection="any") for scope in SCOPES)
    assert [scope for scope in SCOPES if bound.allows(scope)] == ["spend"]
    assert bound.allows("spend", policy="default", collection="party")
    assert not bound.allows("spend", policy="other", collection="party")
    assert not bound.allows("spend", policy="default", collection="survey")
    assert bound.collections == ("colour", "party")
    with pytest.raises(InvalidParameter, match="scope must be one of spend, collect"):
        bound.allows("everything")


def test_revoke_ends_the_key_and_keeps_its_name_taken(keys: ApiKeys, accountant: Accountant) -> None:
    _, secret = keys.create("team-a", ["spend"])
    with pytest.raises(NameTaken):
        keys.create("team-a", ["read"])
    keys.revoke("team-a")
    assert keys.find(secret) is None
    assert [key.state(accountant.now()) for key in keys.all()] == ["revoked"]
    with pytest.raises(NameTaken):
        keys.create("team-a", ["read"])
    for act in (keys.revoke, keys.rotate):
        with pytest.raises(UnknownName, match="API key 'team-a' is already revoked"):
            act("team-a")
    check(accountant)


def test_key_is_valid_from_its_start_until_its_expiry(keys: ApiKeys, accountant: Accountant, clock: Clock) -> None:
    now = accountant.now()
    made, secret = keys.create("later", ["read"], starts=now + timedelta(days=1), expires=now + timedelta(days=3))
    states = []
    for _ in range(4):
        states.append((made.state(accountant.now()), keys.find(secret) is not None))
        clock.advance(days=1)
    assert states == [("pending", False), ("active", True), ("active", True), ("expired", False)]
    assert [key.name for key in keys.all()] == ["later"]


def test_rotate_keeps_the_name_and_both_secrets_for_the_overlap(
    keys: ApiKeys, accountant: Accountant, clock: Clock
) -> None:
    first, old = keys.create("team-a", ["spend"], policies=["default"], share="a")
    second, new = keys.rotate("team-a", overlap=timedelta(days=2))
    assert (second.name, second.scopes, second.policies, second.share) == ("team-a", ("spend",), ("default",), "a")
    assert second.number != first.number
    assert [keys.find(secret) is not None for secret in (old, new)] == [True, True]
    clock.advance(days=2)
    assert [keys.find(secret) is not None for secret in (old, new)] == [False, True]
    assert [key.state(accountant.now()) for key in keys.all()] == ["expired", "active"]
    keys.revoke("team-a")
    assert keys.find(new) is None


def test_rotate_with_a_long_overlap_keeps_the_expiry_of_earlier_secrets(keys: ApiKeys, clock: Clock) -> None:
    _, old = keys.create("team-a", ["spend"], expires=clock.now + timedelta(days=1))
    _, new = keys.rotate("team-a", overlap=timedelta(days=3))
    clock.advance(days=1)
    assert [keys.find(secret) is not None for secret in (old, new)] == [False, True]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": ""}, "name must be 1 to 64 ASCII"),
        ({"name": "-x"}, "name must be 1 to 64 ASCII"),
        ({"name": "a b"}, "name must be 1 to 64 ASCII"),
        ({"name": 7}, "name must be 1 to 64 ASCII"),
        ({"scopes": []}, "scopes must be some of"),
        ({"scopes": "spend"}, "scopes must be some of"),
        ({"scopes": ["spend", "fly"]}, "scopes must be some of"),
        ({"policies": []}, "policies must be None .for all., or a list of at least one name"),
        ({"collections": [""]}, "collections must be a string"),
        ({"share": ""}, "share must be a string"),
        ({"expires": 7}, "expires must be a datetime with a time zone"),
        ({"starts": Clock().now.replace(tzinfo=None)}, "starts must be a datetime with a time zone"),
        ({"expires": Clock().now - timedelta(days=1)}, "expires must be later than the start"),
    ],
)
def test_create_with_invalid_arguments_raises(
    accountant: Accountant, keys: ApiKeys, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidParameter, match=told):
        keys.create(**{"name": "team-a", "scopes": ["spend"], **options})
    assert accountant.records() == []


def test_find_sees_changes_of_another_process_within_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 100.0
    monkeypatch.setattr("ldp_budget_service.admin_log_projection.time.monotonic", lambda: passed)
    with Accountant(tmp_path / "budget.db") as mine, Accountant(tmp_path / "budget.db") as others:
        keys, theirs = ApiKeys(mine), ApiKeys(others)
        _, secret = theirs.create("team-a", ["spend"])
        assert keys.find(secret) is not None
        theirs.revoke("team-a")
        assert theirs.find(secret) is None, "the revoking process knows it at once"
        passed += 1.001
        assert keys.find(secret) is None


@pytest.mark.parametrize("scope", ["policy", "admin"])
def test_create_with_a_share_and_scope_policy_raises(accountant: Accountant, scope: str) -> None:
    """A key with the share `team` of 1 and the scope `admin` set the policy again with a share of 40, and spent it."""
    with pytest.raises(InvalidParameter, match="share"):
        ApiKeys(accountant).create("team", [scope], share="team")
    body = {"scopes": [scope], "policies": None, "collections": None, "share": "team", "starts": None}
    write_record(accountant, "key", "team", {**body, "expires": None, "until": None, "hash": "0" * 64})
    assert len(ApiKeys(accountant).all()) == 0
