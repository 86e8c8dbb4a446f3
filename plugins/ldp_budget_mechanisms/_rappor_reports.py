"""RAPPOR's random draws: the cohort and the permanent bits, fresh or from a client's secret, and a report's bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_budget.authoring.packing import pack_rows
from ldp_budget.randomness import bernoulli, integers
from ldp_budget.randomness.memoisation import memo_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream

    from ._rappor_loss import Thresholds

    Secrets = list[bytes] | None


def draw_cohorts(stream: Stream, secrets: Secrets, context: str, cohorts: int, count: int) -> NDArray[np.int64]:
    """The cohort of each user, uniform; with secrets a function of the secret, whatever the value."""
    import numpy as np

    if secrets is None:
        return integers(stream, cohorts, count)
    words = memo_words(secrets, f"{context} cohort", np.zeros(count, dtype=np.int64), 1)[:, 0]
    return (words % np.uint64(cohorts)).astype(np.int64)


def draw_flips(
    stream: Stream, secrets: Secrets, context: str, answers: NDArray[np.int64], bits: int, threshold: int
) -> NDArray[np.uint8]:
    """Which permanent bits differ from the filter's, packed; with secrets a function of secret and value.

    B' is a fair coin with probability f and B otherwise, so it differs from B with probability f/2.
    """
    import numpy as np

    if secrets is None:
        return _packed(stream, threshold, len(answers), bits)
    words = memo_words(secrets, f"{context} permanent bits", answers, bits)
    return pack_rows(words < np.uint64(threshold))


def draw_report(stream: Stream, permanent: NDArray[np.uint8], bits: int, thresholds: Thresholds) -> NDArray[np.uint8]:
    """The bits of one report: a one with probability q where the permanent bit is 1, p where it is 0. Packed."""
    ones = _packed(stream, thresholds.one, len(permanent), bits)
    zeros = _packed(stream, thresholds.zero, len(permanent), bits)
    return (permanent & ones) | (~permanent & zeros)


def _packed(stream: Stream, threshold: int, rows: int, bits: int) -> NDArray[np.uint8]:
    return pack_rows(bernoulli(stream, threshold, rows * bits).reshape(rows, bits))
