"""A consumer of a stream that is killed between the charge and the commit of its offset: each message is charged once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import ldp_budget
from ldp_budget import Accountant
from ldp_budget.registry.collections import Collection

MESSAGES, TOGETHER = 400, 20
CONSUMER = f"""
import os, sys
from ldp_budget import Accountant
from ldp_budget.reports.inbox import Inbox, Sent

path, offset = sys.argv[1:]
with Accountant(path) as accountant:
    inbox = Inbox(accountant, accountant.collection("poll"))
    at = int(open(offset).read()) if os.path.exists(offset) else 0
    while at < {MESSAGES}:
        batch = range(at, min(at + {TOGETHER}, {MESSAGES}))
        taken, refused = inbox.take_many([Sent(f"user {{n}}", f"key of device {{n}}", bytes([n % 2])) for n in batch])
        assert len(taken) + len(refused) == len(batch)
        print("charged", flush=True)  # a consumer may be killed here
        sys.stdin.readline()
        at = batch.stop
        with open(offset + ".new", "w") as file:
            file.write(str(at))
        os.replace(offset + ".new", offset)
"""


def test_each_message_is_charged_once_when_consumers_are_killed(tmp_path: Path) -> None:
    path, offset = str(tmp_path / "budget.db"), str(tmp_path / "offset")
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=5"])
        made = ldp_budget.mechanism("randomized-response").calibrate(epsilon=1)
        accountant.add_collection(Collection("poll", made))
    kills = 0
    while True:
        consumer = subprocess.Popen(
            [sys.executable, "-c", CONSUMER, path, offset], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert consumer.stdin is not None
        assert consumer.stdout is not None
        batches = 0
        while consumer.stdout.readline():
            batches += 1
            if kills < 6 and batches == 1 + kills % 3:
                os.kill(consumer.pid, signal.SIGKILL)  # charged, and the offset is not committed
                break
            consumer.stdin.write("\n")
            consumer.stdin.flush()
        consumer.communicate()
        if consumer.returncode == 0:
            break
        assert consumer.returncode == -signal.SIGKILL
        kills += 1
    assert kills == 6
    with Accountant(path) as accountant:
        assert accountant.verify().ok
        spent = [balance.limits[0].spent_units.epsilon for balance in accountant.balances()]
        assert spent == [10**9] * MESSAGES
