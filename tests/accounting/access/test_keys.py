"""API keys: what a secret is good for, until when, and that only its hash is kept."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from conftest import Clock
from ldp_budget import Accountant, InvalidParameter, NameTaken, UnknownName
from ldp_budget.accounting.api_keys import ADMIN, SCOPES, ApiKeys
from ledger_contract import check, write_record


@pytest.fixture
def accountant(clock: Clock) -> Iterator[Accountant]:
    with Accountant(":memory:", clock=clock) as made:
        yield made


@pytest.fixture
def keys(accountant: Accountant) -> ApiKeys:
    return ApiKeys(accountant)


def test_a_secret_is_found_and_nothing_else_is(keys: ApiKeys) -> None:
    made, secret = keys.create("team-a", ["spend", "read"])
    assert re.fullmatch(r"ldpb_[A-Za-z0-9_-]{43}", secret)
    assert keys.find(secret) == made
    assert (made.name, made.scopes, made.by) == ("team-a", ("spend", "read"), None)
    for other in ("", "ldpb_", secret[:-1], secret + "A", secret[5:], secret.swapcase(), "ldpb_" + "A" * 43):
        assert keys.find(other) is None
    for odd in (None, 7, secret.encode(), "ldpb_\ud800", "ldpb_" + "é" * 43, "ldpb_" + "A" * 10**6):
        assert keys.find(odd) is None  # type: ignore[arg-type]


def test_the_ledger_holds_no_secret(tmp_path: Path) -> None:
    with Accountant(tmp_path / "budget.db") as accountant:
        _, secret = ApiKeys(accountant).create("team-a", ["spend"])
        assert secret not in str(list(accountant.journal())) + str(accountant.records())
        assert accountant.records()[0].body["hash"] == sha256(secret.encode()).hexdigest()
    for file in tmp_path.iterdir():
        assert secret[5:].encode() not in file.read_bytes()


def test_two_secrets_are_never_alike(keys: ApiKeys) -> None:
    assert len({keys.create(f"key-{number}", ["read"])[1] for number in range(20)}) == 20


def test_what_a_key_allows(keys: ApiKeys) -> None:
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


def test_admin_bound_to_a_policy_is_bound_to_it(keys: ApiKeys) -> None:
    made, _ = keys.create("team-admin", [ADMIN], policies=["team"])
    assert made.allows("erase")
    assert not made.allows("policy", policy="default")


def test_a_revoked_key_is_found_no_more_and_its_name_is_taken_for_good(keys: ApiKeys, accountant: Accountant) -> None:
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


def test_a_key_is_good_from_its_start_until_it_expires(keys: ApiKeys, accountant: Accountant, clock: Clock) -> None:
    now = accountant.now()
    made, secret = keys.create("later", ["read"], starts=now + timedelta(days=1), expires=now + timedelta(days=3))
    states = []
    for _ in range(4):
        states.append((made.state(accountant.now()), keys.find(secret) is not None))
        clock.advance(days=1)
    assert states == [("pending", False), ("active", True), ("active", True), ("expired", False)]
    assert [key.name for key in keys.all()] == ["later"]


def test_an_exchange_keeps_the_name_and_both_secrets_for_a_while(
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


def test_an_exchange_prolongs_no_secret(keys: ApiKeys, accountant: Accountant, clock: Clock) -> None:
    _, old = keys.create("team-a", ["spend"], expires=accountant.now() + timedelta(days=1))
    keys.rotate("team-a", overlap=timedelta(days=30))
    clock.advance(days=1)
    assert keys.find(old) is None


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
def test_what_makes_no_key_is_refused(
    accountant: Accountant, keys: ApiKeys, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidParameter, match=told):
        keys.create(**{"name": "team-a", "scopes": ["spend"], **options})
    assert accountant.records() == []


def test_what_another_process_does_is_known_within_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = 100.0
    monkeypatch.setattr("ldp_budget.accounting.admin_log_projection.time.monotonic", lambda: passed)
    with Accountant(tmp_path / "budget.db") as mine, Accountant(tmp_path / "budget.db") as others:
        keys, theirs = ApiKeys(mine), ApiKeys(others)
        _, secret = theirs.create("team-a", ["spend"])
        assert keys.find(secret) is not None
        theirs.revoke("team-a")
        assert theirs.find(secret) is None, "whoever does it knows it at once"
        passed += 1.001
        assert keys.find(secret) is None


def test_what_is_done_through_the_same_accountant_is_known_at_once(accountant: Accountant) -> None:
    service, command = ApiKeys(accountant, fresh=3600), ApiKeys(accountant, fresh=3600)
    _, secret = command.create("team-a", ["spend"])
    assert service.find(secret) is not None
    command.revoke("team-a")
    assert service.find(secret) is None


def test_while_nothing_is_new_the_ledger_is_not_asked(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ApiKeys(accountant, fresh=3600)
    _, secret = keys.create("team-a", ["spend"])
    assert keys.find(secret)
    monkeypatch.setattr(accountant, "records", lambda first: pytest.fail("it was asked"))
    for _ in range(3):
        assert keys.find(secret)


def test_of_two_who_take_a_name_at_once_one_gets_it(accountant: Accountant) -> None:
    done: list[str] = []

    def take(number: int) -> None:
        try:
            ApiKeys(accountant).create(f"team-{number % 4}", ["spend"])
            done.append("made")
        except NameTaken:
            done.append("taken")

    threads = [threading.Thread(target=take, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == ["made"] * 4 + ["taken"] * 8
    assert [record.number for record in accountant.records()] == [1, 2, 3, 4]
    check(accountant)


def test_a_record_that_is_no_key_of_ours_makes_none(accountant: Accountant, keys: ApiKeys) -> None:
    _, secret = keys.create("team-a", ["spend"])
    for body in ({}, {"hash": "zz"}, {"hash": 7, "scopes": None}):
        write_record(accountant, "key", "odd", body)
    write_record(accountant, "key-revoked", "nobody", {})
    assert keys.find(secret) is not None
    assert [key.name for key in keys.all()] == ["team-a"]


@pytest.mark.parametrize("scope", ["policy", "admin"])
def test_key_of_a_share_that_could_raise_its_share_is_refused(accountant: Accountant, scope: str) -> None:
    """A key with the share `team` of 1 and the scope `admin` set the policy anew with a share of 40, and spent it."""
    with pytest.raises(InvalidParameter, match="share"):
        ApiKeys(accountant).create("team", [scope], share="team")
    body = {"scopes": [scope], "policies": None, "collections": None, "share": "team", "starts": None}
    write_record(accountant, "key", "team", {**body, "expires": None, "until": None, "hash": "0" * 64})
    assert len(ApiKeys(accountant).all()) == 0
