"""Copies a ledger in child processes and kills them; run by `test_copying`, which copies on until it is done.

    python copy_killer.py FROM TO KILLS SEED MOMENT

Their clocks stand at that moment. Prints how many children were killed, and did not come to the end before that.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from contextlib import suppress
from datetime import datetime

from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger import migration_copy

LONGEST = 0.25
"""Of the last one; the first are killed sooner, as a quick machine is through in that."""


def child(source: str, target: str, now: datetime) -> None:
    migration_copy._ENTRIES_TOGETHER = migration_copy._RECORDS_TOGETHER = 20
    with suppress(LedgerError), Accountant(source, create=False, clock=lambda: now) as accountant:
        accountant.ledger.copy_to(target)


def main(source: str, target: str, kills: str, seed: str, moment: str) -> None:
    moments, killed = random.Random(seed), 0
    for number in range(int(kills)):
        process = os.fork()
        if process == 0:
            try:
                child(source, target, datetime.fromisoformat(moment))
            finally:
                os._exit(0)
        time.sleep(moments.uniform(0, LONGEST) * (number + 1) / int(kills))
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        killed += os.WIFSIGNALED(status)
    print(killed)


if __name__ == "__main__":
    main(*sys.argv[1:])
