"""RAPPOR's reports: the cohort and the permanent bits, fresh or from a client's secret, and the bits shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.authoring.packing import bit_of, pack_rows
from ldp_budget.randomness import bernoulli, integers
from ldp_budget.randomness.memoisation import memo_words
from ldp_budget.randomness.streams import BLOCK_BYTES, blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream

    from ._bloom import BloomFamily
    from ._rappor_loss import Thresholds

    Secrets = list[bytes] | None


def draw_reports(
    stream: Stream,
    answers: NDArray[np.int64],
    secrets: Secrets,
    context: str,
    family: BloomFamily,
    thresholds: Thresholds,
) -> NDArray[np.uint8]:
    """A row for each answer: the cohort in two bytes, little-endian, then the bits of the report, packed."""
    cohorts = _draw_cohorts(stream, secrets, context, family.cohorts, len(answers))
    filters = family.filters(answers, cohorts)
    reports = np.empty((len(answers), 2 + filters.shape[1]), dtype=np.uint8)
    reports[:, :2] = cohorts.astype("<u2").view(np.uint8).reshape(-1, 2)
    for part in blocks(len(answers), max(1, BLOCK_BYTES // (8 * family.bits))):
        own = None if secrets is None else secrets[part]
        flips = _draw_flips(stream, own, context, answers[part], family.bits, thresholds.flip)
        reports[part, 2:] = _draw_bits(stream, filters[part] ^ flips, family.bits, thresholds)
    return reports


def _draw_cohorts(stream: Stream, secrets: Secrets, context: str, cohorts: int, count: int) -> NDArray[np.int64]:
    """The cohort of each user, uniform; with secrets a function of the secret, whatever the value."""
    if secrets is None:
        return integers(stream, cohorts, count)
    words = memo_words(secrets, f"{context} cohort", np.zeros(count, dtype=np.int64), 1)[:, 0]
    return (words % np.uint64(cohorts)).astype(np.int64)


def _draw_flips(
    stream: Stream, secrets: Secrets, context: str, answers: NDArray[np.int64], bits: int, threshold: int
) -> NDArray[np.uint8]:
    """Which permanent bits differ from the filter's, packed; with secrets a function of secret and value.

    B' is a fair coin with probability f and B otherwise, so it differs from B with probability f/2.
    """
    if secrets is None:
        return _packed(stream, threshold, len(answers), bits)
    words = memo_words(secrets, f"{context} permanent bits", answers, bits)
    return pack_rows(words < np.uint64(threshold))


def _draw_bits(stream: Stream, permanent: NDArray[np.uint8], bits: int, thresholds: Thresholds) -> NDArray[np.uint8]:
    """The bits of one report: a one with probability q where the permanent bit is 1, p where it is 0. Packed."""
    ones = _packed(stream, thresholds.one, len(permanent), bits)
    zeros = _packed(stream, thresholds.zero, len(permanent), bits)
    return (permanent & ones) | (~permanent & zeros)


def _packed(stream: Stream, threshold: int, rows: int, bits: int) -> NDArray[np.uint8]:
    return pack_rows(bernoulli(stream, threshold, rows * bits).reshape(rows, bits))


def number_reports(reports: Any, alone: tuple[NDArray[np.bool_], NDArray[np.bool_]]) -> NDArray[np.int64]:
    """Each report's bits among those that one value alone sets (m, k), and the other; shape (n,).

    Cohorts with equally many such bits of each kind share their numbers, in the order of these counts.
    """
    rows = np.asarray(reports)
    cohorts = rows[:, :2].copy().view("<u2").reshape(-1)
    sizes = list(zip(*(side.sum(axis=1).tolist() for side in alone), strict=True))
    starts: dict[tuple[int, int], int] = {}
    for size in sorted(set(sizes)):
        starts[size] = sum(2 ** sum(earlier) for earlier in starts)
    codes = np.empty(len(rows), dtype=np.int64)
    for cohort, size in enumerate(sizes):
        here = cohorts == cohort
        code = np.zeros(np.count_nonzero(here), dtype=np.int64)
        for bit in (*np.flatnonzero(alone[0][cohort]), *np.flatnonzero(alone[1][cohort])):
            code = 2 * code + bit_of(rows[here, 2:], int(bit))
        codes[here] = starts[size] + code
    return codes
