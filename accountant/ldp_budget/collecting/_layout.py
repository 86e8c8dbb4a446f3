"""What stands in front of stored reports: whose they are, and how one of them is laid out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from .._checks import shown
from ..errors import InvalidParameter, ReportFileError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..catalogue.collections import Collection


class Layout(NamedTuple):
    """One report: numpy's name of its elements, little-endian, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, reports: Any) -> Layout:
        """That of an array whose first axis is the users. Raises `InvalidParameter` for anything else."""
        if not (getattr(reports, "ndim", 0) and hasattr(reports, "dtype")):
            raise InvalidParameter("reports", "an array whose first axis is the users", shown(reports))
        return cls(reports.dtype.newbyteorder("<").str, tuple(reports.shape[1:]))

    @property
    def row_bytes(self) -> int:
        """How many bytes one report takes."""
        import numpy as np

        return int(np.dtype(self.dtype).itemsize * math.prod(self.shape))

    def data(self, reports: NDArray[Any]) -> NDArray[np.uint8]:
        """The bytes of reports, row by row, shape (n, row_bytes); a view where they lie so already."""
        import numpy as np

        rows = np.ascontiguousarray(reports, dtype=self.dtype)
        return rows.reshape(-1).view(np.uint8).reshape(len(rows), self.row_bytes)

    def rows(self, data: Any, offset: int = 0, count: int = -1) -> NDArray[Any]:
        """The reports that lie in a buffer, from that byte on, so many of them or all; nothing is copied."""
        import numpy as np

        items = count if count < 0 else count * math.prod(self.shape)
        return np.frombuffer(data, self.dtype, items, offset).reshape(-1, *self.shape)

    def header(self, collection: Collection, charged: bool | None = None) -> dict[str, Any]:
        """What is written in front of reports of a collection; `charged`: as `read_charged` reads it."""
        return {
            "collection": collection.name,
            "fingerprint": collection.fingerprint,
            "dtype": self.dtype,
            "shape": list(self.shape),
            **({"sandbox": True} if collection.sandbox else {}),
            **({} if charged is None else {"charged": charged}),
        }


def read_layout(path: str, header: Any, collection: Collection) -> Layout:
    """The layout of reports with that header. Raises `ReportFileError` unless they are reports of the collection."""
    import numpy as np

    try:
        name, fingerprint = header["collection"], str(header["fingerprint"])
        dtype, shape = np.dtype(str(header["dtype"])), tuple(int(size) for size in header["shape"])
    except (ValueError, KeyError, TypeError):
        raise ReportFileError(path, "its header is damaged") from None
    check_whose(path, name, fingerprint, bool(header.get("sandbox")), collection)
    if dtype.kind not in "uif" or min(shape, default=1) < 1:
        raise ReportFileError(path, f"its header is damaged: dtype {dtype}, shape {shape}")
    return Layout(dtype.newbyteorder("<").str, shape)


def read_charged(header: Any) -> bool | None:
    """Whether the users of reports with that header were charged for them; None where the writer did not say."""
    charged = header.get("charged")
    return charged if isinstance(charged, bool) else None


def check_mixed(place: str, charged: int, uncharged: int) -> None:
    """Raise `ReportFileError` where some reports were charged to their users and others were not."""
    if charged and uncharged:
        raise ReportFileError(
            place,
            f"{uncharged} of {charged + uncharged} reports were not charged to their users, and the others were. "
            "Estimate the two kinds apart, or add --mixed",
        )


def check_whose(path: str, name: str, fingerprint: str, sandbox: bool, collection: Collection) -> None:
    """Raise `ReportFileError` unless that is the collection, and no sandbox's counts where it is none."""
    if sandbox and not collection.sandbox:
        raise ReportFileError(path, "it was made in a sandbox, whose reports count nowhere else")
    if fingerprint != collection.fingerprint:
        raise ReportFileError(
            path,
            f"its reports were made for collection {name} with fingerprint {fingerprint[:12]}…; "
            f"{collection.name} here has {collection.fingerprint[:12]}…",
        )
