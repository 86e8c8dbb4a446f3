"""A consumer of a stream that is killed between the charge and the commit of its offset: each message is charged once."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from stream_consumers import answer, charged, consumer, open_poll

MESSAGES, TOGETHER = 400, 20


def test_each_message_is_charged_once_when_consumers_are_killed(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    open_poll(path)
    kills = 0
    while True:
        process = subprocess.Popen(
            consumer(path, MESSAGES, TOGETHER), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        batches = 0
        while line := process.stdout.readline():
            if line == "begin\n":
                continue
            batches += 1
            if kills < 6 and batches == 1 + kills % 3:
                os.kill(process.pid, signal.SIGKILL)  # charged, and the offset is not committed
                break
            answer(process.stdin)
        process.communicate()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
    assert kills == 6
    assert charged(path) == ([10**9] * MESSAGES, MESSAGES)
