"""Public attributes of reports, such as region and age group: they travel with each report, without any noise.

An attribute is public if it reveals nothing that the survey protects. Attributes split the crowd: a report with region
north and age 18-34 hides among the reports with the same two attributes, and not among all of them.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._validation import canonical_text, check_storable, shown
from ..errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Combination = tuple[str, ...]

MOST_COLUMNS = 8
LONGEST_VALUE = 64
"""The most characters of an attribute's value."""
_SIZE = struct.Struct("<I")


def check_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of public columns in the form in which texts are compared.

    Raises `InvalidParameter` for too many, repeated or unprintable names.
    """
    if len(names) > MOST_COLUMNS:
        raise InvalidParameter("public", f"at most {MOST_COLUMNS} columns", f"{len(names)} columns")
    canonical = tuple(canonical_text(check_storable("public", name)) for name in names)
    for name, times in Counter(canonical).items():
        if times > 1:
            raise InvalidParameter("public", "distinct columns", f"{name!r} {times} times")
    for name in names:
        if not name or len(name) > LONGEST_VALUE or not name.isprintable():
            expected = f"names of 1 to {LONGEST_VALUE} printable characters"
            raise InvalidParameter("public", expected, shown(name))
    return canonical


def canonical_value(text: str) -> str:
    """Return a value in the form in which texts are compared. Raises `InvalidParameter` if it is too long."""
    value = canonical_text(check_storable("public", text))
    if len(value) > LONGEST_VALUE or not value.isprintable():
        raise InvalidParameter("public", f"values of at most {LONGEST_VALUE} printable characters", shown(value))
    return value


def read_attributes(given: object) -> dict[str, str]:
    """Return the public attributes of one report, in the order of their names. Raises `InvalidParameter`."""
    if not isinstance(given, dict) or not all(isinstance(text, str) for item in given.items() for text in item):
        raise InvalidParameter("public", 'an object of texts, such as {"region": "north"}', shown(given))
    names = check_columns([canonical_value(name) for name in given])
    found = dict(sorted(zip(names, map(canonical_value, given.values()), strict=True)))
    for name, value in found.items():
        if not value:
            raise InvalidParameter("public", f"a value for {name}, or no {name}", "an empty text")
    return found


@dataclass(frozen=True)
class PublicAttributes:
    """The public attributes of some reports: the combinations of values, and the combination of each report.

    Parameters:
        names: the columns.
        combinations: the distinct combinations, each with a value for each column.
        codes: the number of the combination of each report, shape (n,).
    """

    names: tuple[str, ...]
    combinations: tuple[Combination, ...]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, names: Sequence[str], rows: Iterable[Sequence[str]]) -> PublicAttributes:
        """Return the attributes of reports, from a row of values for each report. Raises `InvalidParameter`."""
        import numpy as np

        numbers: dict[Combination, int] = {}
        seen: dict[Combination, int] = {}
        codes = []
        for row in rows:
            raw = tuple(row)
            code = seen.get(raw)
            if code is None:
                code = seen[raw] = numbers.setdefault(tuple(map(canonical_value, raw)), len(numbers))
            codes.append(code)
        return cls(check_columns(names), tuple(numbers), np.array(codes, np.int64))

    @classmethod
    def joined(cls, parts: Sequence[PublicAttributes]) -> PublicAttributes | None:
        """Return the attributes of several blocks of reports with the same columns; None without a block."""
        if not parts:
            return None
        return cls.of(parts[0].names, (part.combinations[code] for part in parts for code in part.codes.tolist()))

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, places: Any) -> PublicAttributes:
        """Return the attributes of some of the reports."""
        return PublicAttributes(self.names, self.combinations, self.codes[places])

    def with_column(self, name: str, value: str) -> PublicAttributes:
        """Return the attributes with one more column, in which all reports have the same value."""
        combinations = tuple((*each, value) for each in self.combinations)
        return PublicAttributes((*self.names, name), combinations, self.codes)

    def to_bytes(self) -> bytes:
        """Return the part of a block of a report file: the size of a JSON list, the list, and uint32 codes."""
        listed = json.dumps(self.combinations, ensure_ascii=False).encode()
        return _SIZE.pack(len(listed)) + listed + self.codes.astype("<u4").tobytes()

    @classmethod
    def from_bytes(cls, names: tuple[str, ...], listed: bytes, codes: bytes) -> PublicAttributes:
        """Return the attributes that `to_bytes` wrote. Raises `ValueError` for anything else."""
        import numpy as np

        combinations = tuple(tuple(each) for each in json.loads(listed))
        if not all(len(each) == len(names) and all(isinstance(cell, str) for cell in each) for each in combinations):
            raise ValueError("a combination does not have a text for each column")
        numbers = np.frombuffer(codes, "<u4").astype(np.int64)
        if numbers.size and int(numbers.max()) >= len(combinations):
            raise ValueError("a report has a combination that is not listed")
        return cls(names, combinations, numbers)


def count_combinations(parts: Iterable[PublicAttributes]) -> Counter[Combination]:
    """Return the number of reports of each combination of public attributes: the crowd in which each of them hides."""
    import numpy as np

    counts: Counter[Combination] = Counter()
    for part in parts:
        numbers = np.bincount(part.codes, minlength=len(part.combinations)).tolist()
        counts.update({each: number for each, number in zip(part.combinations, numbers, strict=True) if number})
    return counts
