"""One shard of a bulk run, in a process that a test may kill at any moment; run by `test_shards`.

    python shard_worker.py LEDGER LIST I N MOST

A line of JSON for each batch, once it is charged, and one with the result at the end. After MOST batches it waits for
the end of its input, so that it is in the midst of its work when it is killed, however late that is.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator

import pyarrow.parquet

import ldp_budget
from ldp_budget import Accountant
from ldp_budget.accounting import bulk_run

COIN = ldp_budget.mechanism("rr")(epsilon="1")
BATCH = 250
RUN = "monday"


def users_of(path: str) -> Iterator[str]:
    """The users of a Parquet list, as a stream."""
    for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=1000):
        yield from batch.column("user").to_pylist()


def main(ledger: str, users: str, which: str, shards: str, most: str) -> None:
    bulk_run.BATCH = BATCH
    batches = itertools.count(1)

    def told(*batch: int) -> None:
        print(json.dumps(batch))
        if next(batches) == int(most):
            sys.stdin.read()

    with Accountant(ledger, create=False) as accountant:
        result = accountant.spend_many(users_of(users), COIN, key=RUN, shard=(int(which), int(shards)), on_batch=told)
    print(json.dumps(result.to_json()))


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    main(*sys.argv[1:])
