"""Move a ledger in child processes and kill them; run by `test_migration`.

    python move_killer.py FROM SEED MOMENT TO...

Each child moves the ledger to the next place. Their clocks are fixed at that moment. Prints how many children were killed
before they came to their end.
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

LONGEST = 0.5
"""Of the last one; the first are killed sooner, as a quick machine is through in that."""


def child(source: str, target: str, now: datetime) -> None:
    migration_copy._STEPS_TOGETHER = 20
    with suppress(LedgerError), Accountant(source, create=False, clock=lambda: now) as accountant:
        accountant.ledger.move_to(target)


def main(source: str, seed: str, moment: str, *targets: str) -> None:
    moments, killed = random.Random(seed), 0
    for number, target in enumerate(targets, 1):
        process = os.fork()
        if process == 0:
            try:
                child(source, target, datetime.fromisoformat(moment))
            finally:
                os._exit(0)
        time.sleep(moments.uniform(0, LONGEST) * number / len(targets))
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        killed += os.WIFSIGNALED(status)
    print(killed)


if __name__ == "__main__":
    main(*sys.argv[1:])
