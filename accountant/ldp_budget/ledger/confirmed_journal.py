"""The journal as a reader may believe it: read in columns, with every link of the hash chain computed again.

It costs a fifth of a verification: it decides nothing again, and looks at no account. A reader who shows sums of
accounts checks these by `checked_sums`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..errors import LedgerError
from .chain_verification import Chain, Whole
from .verification import expected_of, in_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .account_sums import Progress
    from .chain_verification import Expected
    from .hash_chain import Run
    from .ledger import Ledger


def confirm_journal(
    ledger: Ledger, head: str | None, take: Callable[[int, Whole, list[Run]], None], on_progress: Progress
) -> list[Whole]:
    """Read the journal of every partition, and return the small tables of each, which are confirmed too.

    `take` gets the number of the partition, its small tables and the runs of each part of its journal. They are
    confirmed once this function has returned. Raises `LedgerError` if anything was changed, and if `head`, a head
    recorded earlier, is not in the chain.
    """
    problems: list[str] = []
    expected = expected_of(ledger, head, problems)
    wholes = []
    for partition in ledger.partitions:
        told = partial(in_partition, on_progress, partition, len(ledger.partitions))
        try:
            wholes.append(_walk(ledger, partition, expected[partition], take, told, problems))
        except LedgerError:
            raise
        except Exception as error:  # a changed value can raise anything in the code that reads it
            problems.append(f"a stored value cannot be read: {error or type(error).__name__}")
        if problems:
            raise LedgerError(ledger.name, f"{problems[0]}. Run: ldp-budget ledger verify")
    return wholes


def _walk(
    ledger: Ledger,
    partition: int,
    expected: Sequence[Expected],
    take: Callable[[int, Whole, list[Run]], None],
    on_progress: Progress,
    problems: list[str],
) -> Whole:
    """Walk the journal of a partition, and add what does not hold to `problems`."""
    open_reading = partial(ledger.reading, partition)
    with open_reading() as reading:
        whole = Whole(reading)
        problems += whole.macs()
    chain = Chain(open_reading, whole, expected, on_progress)
    if not problems:
        problems += chain.check(partial(take, partition, whole))
        problems += chain.holds()
        problems += whole.cut_off(chain)
    return whole
