"""The log of statements as tiles (C2SP tlog-tiles). All entries are also in the private folder, so no output forks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_budget._files import replacing
from ldp_budget.errors import PublicationError

from .merkle import leaf_hash, root_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .signed_note import LogKey

TILE = 256
MOST_ENTRY_BYTES = 2**16 - 1


def read_entries(file: Path) -> list[bytes]:
    """Return the entries in a bundle: each after its length, two bytes. A missing file has none."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return []
    entries, place = [], 0
    while place < len(data):
        end = place + 2 + int.from_bytes(data[place : place + 2], "big")
        if end > len(data):
            raise PublicationError(f"{file} is damaged. Nothing was published", hint="Restore it from a backup.")
        entries.append(data[place + 2 : end])
        place = end
    return entries


def bundle(entries: Sequence[bytes]) -> bytes:
    """Return entries as one bundle."""
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def tiles(entries: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each tile of a log."""
    hashes = [leaf_hash(entry) for entry in entries]
    for start in range(0, len(entries), TILE):
        some = slice(start, start + TILE)
        yield _path("entries", start // TILE, len(hashes[some])), bundle(entries[some])
        yield _path("0", start // TILE, len(hashes[some])), b"".join(hashes[some])
    whole = len(hashes) // TILE  # fewer than 256: `check_continues` and the checker know no higher level
    if whole:
        above = [root_of(hashes[place * TILE : (place + 1) * TILE]) for place in range(whole)]
        yield _path("1", 0, whole), b"".join(above)


def check_continues(folder: Path, key: LogKey, entries: Sequence[bytes]) -> None:
    """Raise `PublicationError` unless a checkpoint in the folder is one of an earlier state of this log."""
    try:
        origin, size, root = (folder / "checkpoint").read_text("utf-8").split("\n")[:3]
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        origin, size, root = "", "", ""
    signed = key.checkpoint(len(entries[: int(size)]), _root(entries[: int(size)])) if size.isdigit() else ""
    if signed.split("\n")[:3] != [origin, size, root]:
        raise PublicationError(
            f"{folder} has a checkpoint that is not of this log. Nothing was published",
            hint="Name an empty folder. If publications of this ledger were lost, restore them from a backup.",
        )


def write_log(folder: Path, key: LogKey, entries: Sequence[bytes]) -> None:
    """Write the tiles of a log, and then its signed checkpoint. Partial tiles of a shorter log are deleted."""
    written = dict(tiles(entries))
    for path, content in written.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_public(folder / path, content)
    write_public(folder / "checkpoint", key.checkpoint(len(entries), _root(entries)).encode())
    for file in folder.glob("tile/*/*.p/*"):
        if file.relative_to(folder).as_posix() not in written:
            file.unlink()


def write_public(file: Path, content: bytes) -> None:
    """Write a file that everyone may read, complete or not at all."""
    with replacing(file) as draft:
        draft.write(content)
    file.chmod(0o644)


def _root(entries: Sequence[bytes]) -> bytes:
    return root_of([leaf_hash(entry) for entry in entries])


def _path(kind: str, number: int, width: int) -> str:
    return f"tile/{kind}/{number:03d}" + (f".p/{width}" if width < TILE else "")
