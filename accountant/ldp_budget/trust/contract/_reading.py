"""What the checks read off reports: the bytes of the whole report, and a few features of it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from ...authoring.numeric import NumericMechanism
from ...errors import NotSupported

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...authoring.base import Mechanism

    Bytes = NDArray[np.uint8]
    Bools = NDArray[np.bool_]

_MOST_BYTES = 4
"""32 bits have 5,000 triples. Of longer reports so many bytes are chosen, the same ones every time."""
_LOW_BYTES = 2
_SMOOTH = 1e-3
_FEATURES = 16
_CODES = 8


def has_density(mechanism: Mechanism) -> bool:
    """Whether it is described by a density, with or without a channel of its grid."""
    return isinstance(mechanism, NumericMechanism) and type(mechanism).density is not NumericMechanism.density


def on_a_grid(mechanism: Mechanism, reports: Any) -> bool:
    """Whether reports are numbers of a public grid, and not steps of it as they are."""
    return isinstance(mechanism, NumericMechanism) and np.asarray(reports).dtype.kind == "f"


def steps_of(mechanism: Any, reports: Any) -> Any:
    """Which step of its grid each report is, as whole doubles."""
    origin, step = mechanism.grid()
    return np.rint((np.asarray(reports) - origin) / step)


def whole(mechanism: Mechanism, reports: Any) -> Bytes:
    """Each report as a row of bytes; one on a grid as its step, of which the lower bytes come first."""
    array = np.asarray(reports)
    if on_a_grid(mechanism, array):
        array = steps_of(mechanism, array).astype(np.int64)
    if array.dtype.kind not in "biuf":
        raise NotSupported(f"reports of {array.dtype} are not looked at")
    rows = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).reshape(len(array), -1)
    return rows.view(np.uint8).reshape(len(array), -1)


def some_columns(mechanism: Mechanism, rows: Bytes) -> NDArray[np.intp]:
    """The bytes that vary, or some of them, the same every time."""
    varying = np.flatnonzero((rows != rows[:1]).any(axis=0))
    if len(varying) > _MOST_BYTES:
        varying = np.sort(random.Random(mechanism.fingerprint).sample(varying.tolist(), _MOST_BYTES))
    return np.asarray(varying, dtype=np.intp)


def low_bytes(mechanism: Any, *samples: Any) -> list[Bytes]:
    """Of steps of a fine grid the bits that no density decides that bends or jumps now and then, as rows of bytes."""
    step, spread = mechanism.grid()[1], min(float(np.asarray(reports).std()) for reports in samples)
    bits = int(np.log2(max(1.0, _SMOOTH * spread / step)))
    last = (1 << min(bits, 8 * _LOW_BYTES)) - 1
    low = [steps_of(mechanism, reports).astype(np.int64) & last for reports in samples]
    return [each.astype("<u2").view(np.uint8).reshape(-1, _LOW_BYTES) for each in low]


def codes_of(mechanism: Mechanism, reports: Any, pair: tuple[Any, Any]) -> NDArray[np.int64] | None:
    """The outcomes of `compare`; None where it describes none."""
    try:
        mechanism.compare(*pair)
        return np.asarray(mechanism.outcomes(reports, *pair)).astype(np.int64)
    except NotSupported:
        return None


def features(mechanism: Mechanism, reports: Any, pair: tuple[Any, Any], like: Any) -> Bools:
    """Binary features of each report, (n, f): outcomes, bits, and of numbers on which side of some cuts they lie.

    `like`: reports that say which features are worth reading, so that those of two samples are the same.
    """
    found = []
    codes, seen = codes_of(mechanism, reports, pair), codes_of(mechanism, like, pair)
    if codes is not None and seen is not None:
        common = np.argsort(-np.bincount(seen), kind="stable")[:_CODES]
        found += [codes == code for code in common]
    if on_a_grid(mechanism, like):
        cuts = np.quantile(like, (0.125, 0.25, 0.5, 0.75, 0.875))
        found += [np.asarray(reports) > cut for cut in cuts]
    bits = np.unpackbits(whole(mechanism, like), axis=1, bitorder="little")
    balance = bits.mean(axis=0)
    balanced = np.argsort(-(balance * (1 - balance)), kind="stable")[:_FEATURES]
    own = np.unpackbits(whole(mechanism, reports), axis=1, bitorder="little")
    found += [own[:, column].astype(np.bool_) for column in balanced if 0 < balance[column] < 1]
    return np.column_stack(found) if found else np.zeros((len(np.asarray(reports)), 0), dtype=np.bool_)
