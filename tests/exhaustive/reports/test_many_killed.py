"""A hundred thousand messages of a stream whose consumers are killed, and consumers of Kafka: each is charged once."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stream_consumers import answer, charged, consumer, open_poll

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "retries.md"
MESSAGES, TOGETHER, KILLS = 100_000, 500, 24


def run_until_killed(command: list[str], kills: int, draw: random.Random) -> tuple[bool, int]:
    """Run a consumer to its end, or kill it in its third to twelfth batch; return if it was killed, and its repeats.

    Every second kill is between the charge and the commit of the offset, every other one at any moment of the charge.
    """
    left, repeated = draw.randint(3, 12) if kills < KILLS else 0, 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            if line == "begin\n":
                left -= 1
                if left == 0 and kills % 2:
                    time.sleep(draw.random() * 0.05)
                    process.kill()
                    break
                continue
            repeated += int(line.split()[1])
            if left == 0 and kills < KILLS:
                process.kill()
                break
            answer(process.stdin)
    assert process.returncode in (0, -signal.SIGKILL)
    return process.returncode != 0, repeated


def test_hundred_thousand_messages_are_charged_once_each_though_consumers_are_killed(tmp_path: Path) -> None:
    path, draw = tmp_path / "budget.db", random.Random(46)
    open_poll(path)
    command = consumer(path, MESSAGES, TOGETHER)
    kills = repeats = 0
    begun = time.monotonic()
    while True:
        killed, repeated = run_until_killed(command, kills, draw)
        repeats += repeated
        if not killed:
            break
        kills += 1
    seconds = time.monotonic() - begun
    spent, stored = charged(path)
    assert (spent, stored) == ([10**9] * MESSAGES, MESSAGES)
    assert (kills, repeats > 0) == (KILLS, True)
    print(f"{MESSAGES} messages, {kills} kills, {repeats} repeats, {seconds:.0f} s")


# -- Kafka -----------------------------------------------------------------------------------------------------------

KAFKA_MESSAGES, BAD = 20_000, 40
KAFKA_CONSUMER = """
import sys
from confluent_kafka import Consumer
from ldp_budget import Accountant
from ldp_budget.reports.inbox import Inbox

guide, path, brokers = sys.argv[1:]
exec(guide)
settings = {"bootstrap.servers": brokers, "group.id": "ledger", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
settings["session.timeout.ms"] = 6000
reader = Consumer(settings)
reader.subscribe(["reports"])


class Asking:
    consume = reader.consume

    def commit(self, **how):
        print("charged", flush=True)
        sys.stdin.readline()
        reader.commit(**how)


refused = []
with Accountant(path) as accountant:
    inbox = Inbox(accountant, accountant.collection("poll"))
    consume(Asking(), inbox, lambda message, reason: refused.append(reason), idle=15.0)
reader.close()
"""


@pytest.fixture
def brokers() -> Any:
    """The address of mock brokers with the messages, some of which are no reports."""
    kafka = pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install 'ldp-budget[interop]'")
    mock = kafka.Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "mock"})
    address = ",".join(f"{each.host}:{each.port}" for each in mock.list_topics(timeout=10).brokers.values())
    producer = kafka.Producer({"bootstrap.servers": address, "queue.buffering.max.messages": 100_000})
    for n in range(KAFKA_MESSAGES):
        producer.produce("reports", key=f"user {n}", value=bytes([n % 2]), headers={"key": f"device {n}"})
        if n % (KAFKA_MESSAGES // BAD) == 0:
            producer.produce("reports", key=b"\xff" if n % 3 else None, value=b"no report", headers=None)
    assert producer.flush(60) == 0
    return address, mock


def test_recipe_for_kafka_charges_each_message_once_though_it_is_killed(tmp_path: Path, brokers: Any) -> None:
    path = tmp_path / "budget.db"
    open_poll(path)
    (recipe,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
        if "def consume" in block
    )
    command = [sys.executable, "-c", KAFKA_CONSUMER, recipe, str(path), brokers[0]]
    for batches in (3, 1, 5, 2, None):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for number, _ in enumerate(process.stdout, 1):
                if number == batches:
                    process.kill()
                    break
                answer(process.stdin)
        assert process.returncode == (0 if batches is None else -signal.SIGKILL)
    spent, stored = charged(path)
    assert (spent, stored) == ([10**9] * KAFKA_MESSAGES, KAFKA_MESSAGES)
