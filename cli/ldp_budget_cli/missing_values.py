"""The values of `--missing`: texts that mean that there is no answer, or no user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_budget._number_parsing import value_of
from ldp_budget._validation import canonical_text

if TYPE_CHECKING:
    from collections.abc import Iterable


class MissingValues:
    """The given values; a number is missing in each way to write it: 99, 99.0 and +99 are one value.

    Parameters:
        values: the texts of the option.
    """

    def __init__(self, values: Iterable[str]) -> None:
        given = list(values)
        self._texts = {*given, *map(canonical_text, given)}
        self._numbers = {number for each in given if (number := value_of(each)) is not None}

    def __bool__(self) -> bool:
        return bool(self._texts)

    def __contains__(self, text: object) -> bool:
        if text in self._texts:
            return True
        if not isinstance(text, str) or not self._texts:
            return False
        return canonical_text(text) in self._texts or bool(self._numbers and value_of(text) in self._numbers)
