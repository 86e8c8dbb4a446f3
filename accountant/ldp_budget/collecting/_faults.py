"""What goes wrong with a place of reports while it is read or written, told as such."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import ReportFileError
from .tabular.places import shown_place

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Raises `ReportFileError` in place of an `OSError`."""
    try:
        yield
    except OSError as error:
        raise ReportFileError(shown_place(place), f"it cannot be read: {error.strerror or error}") from None


@contextmanager
def writing(place: str) -> Iterator[None]:
    """Raises `ReportFileError` in place of an `OSError`."""
    try:
        yield
    except OSError as error:
        raise ReportFileError(shown_place(place), f"it cannot be written: {error.strerror or error}") from None
