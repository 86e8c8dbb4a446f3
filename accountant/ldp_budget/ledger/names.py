"""What an entry is called outside: a receipt bears that name, and finds its entry wherever the ledger was copied to.

A copy numbers its entries anew. So a name says in which *generation* the entry was written, see `gate`: in a ledger
that was never copied into, partition and number are where it stands. Of an older name of a reservation the ledger keeps
where that stands now, in the partition that the name's hash says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .entries import MovedEntry

if TYPE_CHECKING:
    from .keys import Key
    from .reading import Reading

_LONGEST = 18


class Name(NamedTuple):
    """In which generation, which partition and under which number an entry was written."""

    generation: int
    partition: int
    entry: int

    def __str__(self) -> str:
        if self.generation:
            return f"{self.generation}.{self.partition}.{self.entry}"
        return f"{self.partition}.{self.entry}" if self.partition else str(self.entry)


def parse(text: str) -> Name | None:
    """A name from its text; None of any other text."""
    parts = text.split(".")
    if len(parts) > 3 or not all(part.isascii() and part.isdigit() and len(part) <= _LONGEST for part in parts):
        return None
    name = Name(*[0] * (3 - len(parts)), *map(int, parts))
    return name if str(name) == text else None


def place_of(key: Key, name: Name) -> bytes:
    """The hash by which the partition is found that knows where an entry of an older name is."""
    return key.hash(b"entry", str(name))


def find(reading: Reading, name: Name) -> tuple[int, int] | None:
    """Partition and number of an entry of an older name, as far as this partition knows."""
    found = reading.numbered(MovedEntry, *name)
    return None if found is None else (found.to_partition, found.to_entry)
