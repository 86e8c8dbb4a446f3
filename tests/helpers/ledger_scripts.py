"""Scripts that use a ledger, each in its own process, started at the same time."""

from __future__ import annotations

import subprocess
import sys
import textwrap

BEGINNING = """
    import os, sys, threading, time
    import ldp_budget
    from ldp_budget import Accountant
    address, words = sys.argv[1], sys.argv[2:]
    coin = ldp_budget.mechanism("randomized-response")(epsilon=1)

    def ready():
        print("ready", flush=True)
        sys.stdin.readline()

    """


def start(script: str, address: str, *words: object) -> subprocess.Popen[str]:
    """A process of its own that runs a script on a ledger; `ready()` says so and waits for the others."""
    code = textwrap.dedent(BEGINNING) + textwrap.dedent(script)
    return subprocess.Popen(
        [sys.executable, "-c", code, address, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    """Wait for its `ready()`."""
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said == "ready\n", process.communicate()


def let_go(process: subprocess.Popen[str]) -> None:
    """Let it continue from its `ready()`."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def outputs(processes: list[subprocess.Popen[str]], waits: bool = True) -> list[str]:
    """Let them go at the same time, and return what each printed."""
    if waits:
        for process in processes:
            wait_until_ready(process)
        for process in processes:
            let_go(process)
    printed = []
    try:
        for process in processes:
            out, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors
            assert errors == ""
            printed.append(out.strip())
    finally:
        for process in processes:
            process.kill()  # one that hangs
            process.communicate()
    return printed
