"""Alerts: each is raised once for its threshold and window, by one of many instances, and sent until it is taken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the service is not installed")

from conftest import Clock
from ldp_budget import Accountant, InvalidParameter, Limit, mechanism
from ldp_budget.accounting.api_keys import ApiKeys
from ldp_budget_service import Settings
from ldp_budget_service.observability.alerts import (
    BACKOFF,
    MOST_WAITING,
    SECONDS,
    Alert,
    Outbox,
    Webhook,
    read_secret,
    signature,
)
from ldp_budget_service.observability.health import AlertMonitor
from webhook_receiver import Receiver

RR = mechanism("randomized-response")
SECRET = b"a secret of at least 24 bytes"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "secret"
    file.write_bytes(SECRET + b"\n")
    return Settings(alert_secret_file=file, alert_least=10)


@pytest.fixture
def receiving() -> Iterator[Callable[..., Receiver]]:
    made: list[Receiver] = []

    def receiver(*answers: int) -> Receiver:
        made.append(Receiver(SECRET, *answers))
        return made[-1]

    yield receiver
    for each in made:
        each.close()


def watchman(accountant: Accountant, settings: Settings, receiver: Receiver) -> AlertMonitor:
    return AlertMonitor(accountant, accountant.ledger.overview(), replace(settings, alert_webhook=receiver.url))


def told(receiver: Receiver) -> list[tuple[Any, ...]]:
    messages = [message.body for message in receiver.messages]
    assert all(message.signed for message in receiver.messages)
    return [
        (each["type"], *(each["data"].get(name) for name in ("policy", "period", "used_percent", "users", "of")))
        for each in messages
    ]


# -- what is worth an alert ----------------------------------------------------------------------------------------


def test_a_limit_is_told_of_once_for_each_threshold_and_window(
    accountant: Accountant, clock: Clock, settings: Settings, receiving: Callable[..., Receiver]
) -> None:
    accountant.set_policy("default", ["lifetime=100", "day=1"])
    receiver = receiving()
    watch = watchman(accountant, settings, receiver)
    users = [f"user {number}" for number in range(40)]
    accountant.spend_many(users, RR(epsilon="0.1"))
    accountant.spend(users[0], RR(epsilon="0.8"))
    watch.step()
    assert told(receiver) == []  # one of 40 is less than 5 %
    accountant.spend(users[1], RR(epsilon="0.75"))
    watch.step()
    watch.step()
    assert told(receiver) == [("limit.used", "default", "day", 80, 2, 40)]
    for user in users[:2]:
        accountant.spend(user, RR(epsilon="0.1"))
    accountant.spend(users[1], RR(epsilon="0.05"))
    watch.step()
    assert told(receiver)[1:] == [("limit.used", "default", "day", 100, 2, 40)]
    clock.advance(days=1)
    watch.step()
    assert len(told(receiver)) == 2
    accountant.spend_many(users[:2], RR(epsilon="0.9"))
    watch.step()
    assert told(receiver)[2:] == [("limit.used", "default", "day", 80, 2, 40)]


def test_a_limit_that_was_raised_is_another_one(
    accountant: Accountant, settings: Settings, receiving: Callable[..., Receiver]
) -> None:
    receiver = receiving()
    watch = watchman(accountant, settings, receiver)
    for limit in ("lifetime=1", "lifetime=2"):
        accountant.set_policy("default", [limit])
        accountant.spend("alice", RR(epsilon=1))
        watch.step()
    assert [
        (message.body["data"]["epsilon"], message.body["data"]["used_percent"]) for message in receiver.messages
    ] == [
        *((1, 80), (1, 100)),
        *((2, 80), (2, 100)),
    ]


def test_many_refusals_are_told_of_once_a_day(
    accountant: Accountant, clock: Clock, settings: Settings, receiving: Callable[..., Receiver]
) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    receiver = receiving()
    watch = watchman(accountant, replace(settings, alert_used=()), receiver)
    for day in range(2):
        for number in range(9):
            accountant.spend("alice", RR(epsilon=2), key=f"{day} {number}")
        watch.step()
        assert len(receiver.messages) == day  # of fewer than ten requests nothing is told
        for number in range(9, 30):
            accountant.spend("alice", RR(epsilon=2), key=f"{day} {number}")
            watch.step()
        clock.advance(days=1)
    assert [(message.body["type"], message.body["data"]) for message in receiver.messages] == [
        ("refusals.many", {"refused": 10, "of": 10, "threshold": 0.5})
    ] * 2


def test_a_ledger_that_fails_is_told_of(
    tmp_path: Path, clock: Clock, settings: Settings, receiving: Callable[..., Receiver]
) -> None:
    import sqlite3

    path, receiver = tmp_path / "budget.db", receiving()
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", RR(epsilon=1))
        watch = watchman(accountant, replace(settings, verify_hours=24), receiver)
        watch.step()
        assert watch.verifications.last().ok  # type: ignore[union-attr]
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("UPDATE window_sums SET epsilon = 1")
        connection.close()
        watch.step()
        assert told(receiver) == []  # it was verified less than a day ago
        clock.advance(hours=25)
        watch.step()
        watch.step()
    (message,) = receiver.messages
    assert message.body["type"] == "verification.failed"
    assert (message.body["data"]["ok"], message.body["data"]["problems"]) == (False, 1)


def test_no_message_says_who(accountant: Accountant, settings: Settings, receiving: Callable[..., Receiver]) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    accountant.spend("alice", RR(epsilon=1), key="monday", note="at the door")
    receiver = receiving()
    watchman(accountant, settings, receiver).step()
    assert len(receiver.messages) == 2
    assert not [word for word in ("alice", "monday", "door") if word in repr(receiver.messages)]


# -- sending -------------------------------------------------------------------------------------------------------


def test_what_is_not_taken_is_tried_again_later_with_the_same_id(
    accountant: Accountant, clock: Clock, settings: Settings, receiving: Callable[..., Receiver]
) -> None:
    receiver = receiving(500, 302, 204)
    watch = watchman(accountant, settings, receiver)
    watch.test(accountant)
    assert watch.step() == BACKOFF[0]
    assert watch.step() == BACKOFF[0]
    assert len(receiver.messages) == 1
    clock.advance(seconds=BACKOFF[0])
    assert watch.step() == BACKOFF[1]
    clock.advance(seconds=BACKOFF[1])
    watch.step()
    assert len({message.id for message in receiver.messages}) == 1
    assert len({message.timestamp for message in receiver.messages}) == 3
    (raised,) = watch.outbox.newest()
    assert (raised.to_json()["state"], raised.tries) == ("sent", 3)
    clock.advance(days=9)
    watch.step()
    assert len(receiver.messages) == 3


def test_after_a_day_it_is_given_up(
    accountant: Accountant, clock: Clock, settings: Settings, receiving: Callable[..., Receiver]
) -> None:
    receiver = receiving(503)
    watch = watchman(accountant, settings, receiver)
    watch.test(accountant)
    for seconds in (0, *BACKOFF, 10**6):
        clock.advance(seconds=seconds)
        watch.step()
    assert len(receiver.messages) == len(BACKOFF) + 1
    assert watch.outbox.newest()[0].given_up == "tried 8 times"
    assert min(BACKOFF) > 2 * SECONDS  # nobody tries while another still may


def test_a_receiver_that_is_gone_is_left_alone(
    accountant: Accountant, settings: Settings, receiving: Callable[..., Receiver]
) -> None:
    watch = watchman(accountant, settings, receiving(410))
    watch.test(accountant)
    watch.step()
    assert watch.outbox.newest()[0].to_json()["state"] == "given up"


def test_nobody_listening_is_no_more_than_a_try(accountant: Accountant, settings: Settings) -> None:
    receiver = Receiver(SECRET)
    receiver.close()
    watch = watchman(accountant, settings, receiver)
    watch.test(accountant)
    assert watch.step() == BACKOFF[0]


def test_the_queue_is_there_after_a_restart(
    tmp_path: Path, clock: Clock, settings: Settings, receiving: Callable[..., Receiver]
) -> None:
    receiver = receiving(500, 204)
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        watch = watchman(accountant, settings, receiver)
        watch.test(accountant)
        watch.step()
    clock.advance(seconds=60)
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        watchman(accountant, settings, receiver).step()
        assert accountant.verify().ok
        journal = [row["record"]["kind"] for row in accountant.journal() if row["kind"] == "recorded"]
    first, second = receiver.messages
    assert (first.id, first.body) == (second.id, second.body)
    assert journal == ["alert", "alert-tried", "alert-tried", "alert-sent"]


@pytest.mark.parametrize("instances", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_of_many_instances_one_raises_and_one_sends(
    tmp_path: Path, settings: Settings, receiving: Callable[..., Receiver], instances: int
) -> None:
    receiver = receiving()
    with Accountant(tmp_path / "budget.db") as first:
        first.set_policy("default", ["lifetime=1"])
        first.spend("alice", RR(epsilon=1))
    accountants = [Accountant(tmp_path / "budget.db") for _ in range(instances)]
    watches = [watchman(each, settings, receiver) for each in accountants]
    together = threading.Barrier(instances)

    def step(watch: AlertMonitor) -> None:
        together.wait()
        watch.step()

    threads = [threading.Thread(target=step, args=(watch,)) for watch in watches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told(receiver)) == [
        ("limit.used", "default", "lifetime", 80, 1, 1),
        ("limit.used", "default", "lifetime", 100, 1, 1),
    ]
    for each in accountants:
        each.close()


def test_of_too_many_that_wait_the_oldest_are_given_up(accountant: Accountant) -> None:
    outbox = Outbox(accountant)
    for number in range(MOST_WAITING + 3):
        outbox.raise_once(Alert(f"alert {number}", "test", {}))
    assert [raised.name for raised in outbox.waiting()] == [
        f"alert {number}" for number in range(3, MOST_WAITING + 3)
    ]


def test_it_watches_by_itself(settings: Settings, receiving: Callable[..., Receiver]) -> None:
    receiver = receiving()
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=1)])
        watch = watchman(accountant, settings, receiver)
        key, _ = ApiKeys(accountant).create("officer", ["policy"])
        watch.start()
        try:
            watch.test(accountant.acting_for(key.caller))
            (message,) = receiver.wait(1)
        finally:
            watch.stop()
        assert (message.body["type"], message.signed) == ("test", True)
        assert watch.outbox.newest()[0].by == "officer"


# -- where it goes, and by which secret ----------------------------------------------------------------------------


def test_the_signature_is_that_of_standard_webhooks() -> None:
    secret = read_secret_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    assert signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def read_secret_text(text: str) -> bytes:
    import tempfile

    with tempfile.NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        return read_secret(Path(file.name))


@pytest.mark.parametrize("text", ["", "short", "whsec_###", "whsec_c2hvcnQ=", "x" * 65])
def test_a_secret_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="alert_secret_file: expected a file with a secret of 24 to 64 bytes"):
        read_secret_text(text)


@pytest.mark.parametrize(
    "url",
    [
        *("", "alerts", "ftp://example.org/", "file:///etc/passwd", "https://", "https://user:word@example.org/"),
        *(
            "https://example.org/#there",
            "https://example.org:99999/",
            "https://example.org/a b",
            "https://exämple.org",
        ),
        "https://example.org/\r\nX: y",
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidParameter, match="alert_webhook: expected an address") as error:
        Webhook(url, SECRET)
    assert "word" not in str(error.value)


def test_a_webhook_without_a_secret_is_refused(accountant: Accountant) -> None:
    with pytest.raises(InvalidParameter, match="alert_secret_file"):
        AlertMonitor(accountant, accountant.ledger.overview(), Settings(alert_webhook="https://example.org/"))
