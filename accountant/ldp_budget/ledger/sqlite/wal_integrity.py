"""Check of an open write-ahead log (WAL): what SQLite's index says of it is what the disk has.

While a ledger is open, SQLite does not read the WAL to learn where it ends. The WAL index, which all processes share
in memory (`budget.db-shm`), says it. After a crash the index is gone, and SQLite reads the WAL. So a program that
copies an older WAL over the open one, cuts it or changes its bytes is not noticed: charges continue to be acknowledged
after frames that a recovery would not reach. Three comparisons, made by the holder of the writer lock, find this:

1. **Index and WAL agree.** The WAL is as long as the index says. Its header has the salts of the index. The last frame
   has the same salts, ends a transaction, and has the checksum of the index, which covers all frames before it.
2. **The WAL did not go back.** While the salts stay the same, it has the last frame that this process has seen.
3. **Only a ledger's process wrote the WAL.** After each commit the process gives the WAL a modification time whose
   microseconds and nanoseconds are a checksum of the index, the *mark*. A write of another program gives it another
   time. Without its mark, the checksums of all frames are computed, as a recovery does. That is rare: after a process
   was killed within a commit, and after another program has written. On a file system without such times this third
   comparison is left out.

The formats are those of https://sqlite.org/walformat.html. The index is read through a descriptor that stays open:
closing it would drop SQLite's POSIX locks on the file in this process (see `_Index`).
"""

from __future__ import annotations

import os
import sqlite3
import struct
import threading
import time
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_INDEX_BYTES = 48
"""Bytes of the index's header, which is stored twice."""
_BACKFILL_AT = 2 * _INDEX_BYTES
_READ_BYTES = _BACKFILL_AT + 4
_INDEX = struct.Struct(f"=12xBxHIIII8s8x{_INDEX_BYTES}xI")
_HEADER_BYTES, _FRAME_BYTES = 32, 24
_SALTS_AT = 16
_LAST_FRAME = struct.Struct(">I8sII")
"""The header of a transaction's last frame after its page number: pages of the database, salts and checksum."""
_BIG_ENDIAN, _LITTLE_ENDIAN = 0x377F0683, 0x377F0682
_MARK_BELOW = 1_000_000
"""Nanoseconds of a modification time that hold the mark: a millisecond."""
_LATEST_MARK_NS = 1_000_000_000
"""Longest time between a marked modification time and the change of the file's inode that sets it."""
_GROWING_BYTES = 20 << 20
"""Size of the used part of a WAL above which it can only grow, because a reader holds a snapshot."""
_AHEAD_BYTES, _LEAST_AHEAD_BYTES = 4 << 20, 256 << 10
"""Bytes by which such a WAL is extended at once, and the unused bytes below which that is done."""
_WAIT_SECONDS = 1.0
"""Longest wait for an index that another process just writes or recovers."""


class IndexHeader(NamedTuple):
    """What the WAL index says of the WAL."""

    page_bytes: int
    frames: int
    pages: int
    checksum: tuple[int, int]
    salts: bytes
    backfilled: int

    def end_of(self, frame: int) -> int:
        """Return where a frame ends in the WAL; frames count from 1."""
        return _HEADER_BYTES + frame * (_FRAME_BYTES + self.page_bytes)


class WriteAheadLog:
    """The open WAL of a ledger in one process. Call its methods only while holding the writer lock."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._log = -1
        self._index: _Index | None = None
        # The index, and the WAL's modification time and size, when they were last found to agree.
        self._seen: tuple[bytes, int, int] | None = None
        self.last: IndexHeader | None = None
        """What the index said when it was last found to agree."""
        self._marks: bool | None = None  # known after the first mark

    def open(self) -> None:
        """Open the files, which SQLite has made. Raises `OSError`."""
        self._log = _opened(self._path + "-wal", os.O_RDWR)
        self._index = _Index.of(self._path + "-shm")

    def close(self) -> None:
        """Close the files; a second call changes nothing. Close SQLite's connections first."""
        log, self._log = self._log, -1
        index, self._index = self._index, None
        if log >= 0:
            os.close(log)
        if index is not None:
            index.release()

    def agrees(self, connection: sqlite3.Connection, log: os.stat_result, *, committed: bool = False) -> bool:
        """Return True if the WAL, with the stat result `log`, is what the index and this process know of it.

        After a commit of this process, and only then, `committed` marks the WAL as written by it.
        """
        if self._index is None:
            return True
        content, written, size = self._index.read(), log.st_mtime_ns, log.st_size
        if self._seen == (content, written, size):
            return True
        header = _parsed(content)
        if header is None:
            content, header = self._recovered(connection)
        if header is None or not self._holds(header, size):
            return False
        if not committed:
            if not self._went_on(header):
                return False
            if header.frames and self._is_unmarked(content, log):
                if not self._frames_hold(header):
                    return False
                written = self._mark(content, log)
        elif header.frames:
            size = self._extended(header.end_of(header.frames), size)
            written = self._mark(content, log)
        self._seen, self.last = (content, written, size), header
        return True

    def header(self, connection: sqlite3.Connection) -> IndexHeader | None:
        """Return what the index says; None if it is damaged, and SQLite does not recover it."""
        assert self._index is not None
        return _parsed(self._index.read()) or self._recovered(connection)[1]

    def _recovered(self, connection: sqlite3.Connection) -> tuple[bytes, IndexHeader | None]:
        """Let SQLite recover the index, which a killed process has left half written; return what it says then."""
        assert self._index is not None
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            with suppress(sqlite3.Error):  # busy, or damaged
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            content = self._index.read()
            found = _parsed(content)
            if found is not None or time.monotonic() > deadline:
                return content, found
            time.sleep(0.001)

    def backfilled(self, header: IndexHeader) -> Iterator[tuple[int, bytes]]:
        """Yield each page that the database must have from the WAL: its number and its content."""
        newest: dict[int, int] = {}
        for frame in range(1, header.frames + 1):
            newest[self._page_of(header, frame)] = frame
        for page, frame in newest.items():
            if frame <= header.backfilled and page <= header.pages:
                yield page, os.pread(self._log, header.page_bytes, header.end_of(frame - 1) + _FRAME_BYTES)

    def pages(self, header: IndexHeader) -> set[int]:
        """Return the numbers of the pages that the WAL has."""
        return {self._page_of(header, frame) for frame in range(1, header.frames + 1)}

    def _page_of(self, header: IndexHeader, frame: int) -> int:
        return int.from_bytes(os.pread(self._log, 4, header.end_of(frame - 1)), "big")

    def _holds(self, header: IndexHeader, size: int) -> bool:
        """Return True if the WAL ends where, and as, the index says."""
        if not header.frames:
            return True
        if size < header.end_of(header.frames):
            return False
        last = _LAST_FRAME.pack(header.pages, header.salts, *header.checksum)
        at = header.end_of(header.frames - 1)
        return os.pread(self._log, 8, _SALTS_AT) == header.salts and os.pread(self._log, len(last), at + 4) == last

    def _went_on(self, header: IndexHeader) -> bool:
        """Return True if the WAL was started again, or has the last frame that this process has seen."""
        last = self.last
        if last is None or last.salts != header.salts or not last.frames or not header.frames:
            return True
        return last.frames <= header.frames and self._checksum_of(header, last.frames) == last.checksum

    def _checksum_of(self, header: IndexHeader, frame: int) -> tuple[int, int] | None:
        """Return the checksum of a frame that ends a transaction of these salts; None for any other."""
        found = os.pread(self._log, _FRAME_BYTES, header.end_of(frame - 1))
        if len(found) < _FRAME_BYTES or found[8:16] != header.salts or found[4:8] == bytes(4):
            return None
        first, second = struct.unpack(">II", found[16:])
        return first, second

    def _extended(self, end: int, size: int) -> int:
        """Return the size of the WAL, which is extended if it grows and is almost full.

        A commit that extends the file waits for the file system's own log as well, which takes a third of its time.
        Zeros after the last frame end a recovery, as old frames do.
        """
        if end > _GROWING_BYTES and size - end < _LEAST_AHEAD_BYTES:
            disk = os.fstatvfs(self._log)
            if disk.f_bavail * disk.f_frsize > 2 * size + 16 * _AHEAD_BYTES:
                with suppress(OSError):
                    os.pwrite(self._log, bytes(_AHEAD_BYTES), size)
                return os.fstat(self._log).st_size
        return size

    # -- the mark -----------------------------------------------------------------------------------------

    def _is_unmarked(self, content: bytes, log: os.stat_result) -> bool:
        """Return True if another program wrote the WAL, or a process was killed within a commit."""
        if self._marks is False:
            # Only a change that no commit explains is found.
            return self._seen is not None and self._seen[0] == content
        late = log.st_ctime_ns - log.st_mtime_ns // _MARK_BELOW * _MARK_BELOW
        return log.st_mtime_ns % _MARK_BELOW != _mark_of(content) or abs(late) >= _LATEST_MARK_NS

    def _mark(self, content: bytes, log: os.stat_result) -> int:
        """Set, and return, the modification time that says that this process has written or verified the WAL."""
        if self._marks is not False:
            wanted = time.time_ns() // _MARK_BELOW * _MARK_BELOW + _mark_of(content)
            try:
                os.utime(self._log, ns=(log.st_atime_ns, wanted))
            except OSError:  # another user's file, and no right to set times
                self._marks = False
            else:
                if self._marks is None:
                    self._marks = os.fstat(self._log).st_mtime_ns == wanted
                if self._marks:
                    return wanted
        return os.fstat(self._log).st_mtime_ns

    def _frames_hold(self, header: IndexHeader) -> bool:
        """Return True if a recovery would read all frames: each has the checksum of all before it and of itself."""
        start = os.pread(self._log, _HEADER_BYTES, 0)
        magic = int.from_bytes(start[:4], "big")
        if len(start) < _HEADER_BYTES or magic not in (_BIG_ENDIAN, _LITTLE_ENDIAN):
            return False
        order = ">" if magic == _BIG_ENDIAN else "<"
        sums = _checksum(order, start[:24], 0, 0)
        if sums != struct.unpack(">II", start[24:]):
            return False
        for frame in range(1, header.frames + 1):
            content = os.pread(self._log, _FRAME_BYTES + header.page_bytes, header.end_of(frame - 1))
            sums = _checksum(order, content[:8] + content[_FRAME_BYTES:], *sums)
            if content[8:16] != header.salts or content[16:24] != struct.pack(">II", *sums):
                return False
        return sums == header.checksum


class _Index:
    """A descriptor of a WAL index, one for each file in a process.

    POSIX drops all locks that a process has on a file when the process closes any descriptor of it. SQLite locks the
    index. So the descriptor is closed only when the file has no name any more: then no process can lock it. Otherwise
    it is kept for the next ledger of this process that opens the same file.
    """

    _all: dict[tuple[int, int], _Index] = {}  # noqa: RUF012 - one for the process
    _guard = threading.RLock()

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._users = 0

    @classmethod
    def of(cls, name: str) -> _Index:
        with cls._guard:
            cls._sweep()
            found = os.stat(name)
            index = cls._all.get((found.st_dev, found.st_ino))
            if index is None:
                index = cls(_opened(name, os.O_RDONLY))
                opened = os.fstat(index._descriptor)
                index = cls._all.setdefault((opened.st_dev, opened.st_ino), index)
            index._users += 1
            return index

    def release(self) -> None:
        with self._guard:
            self._users -= 1
            self._sweep()

    @classmethod
    def _sweep(cls) -> None:
        """Close the descriptors of files without a name that no ledger uses."""
        for identity, index in list(cls._all.items()):
            if not index._users and not os.fstat(index._descriptor).st_nlink:
                del cls._all[identity]
                os.close(index._descriptor)

    def read(self) -> bytes:
        """Return both copies of the header, and the number of frames that checkpoints have copied."""
        return os.pread(self._descriptor, _READ_BYTES, 0)


def _opened(name: str, how: int) -> int:
    """Return a descriptor whose reads set no access time: that would write to the disk after each commit."""
    try:
        return os.open(name, how | os.O_CLOEXEC | getattr(os, "O_NOATIME", 0))
    except PermissionError:  # another user's file
        return os.open(name, how | os.O_CLOEXEC)


def _parsed(content: bytes) -> IndexHeader | None:
    """Return the header of an index; None if its two copies differ or were not written yet."""
    if content[:_INDEX_BYTES] != content[_INDEX_BYTES:_BACKFILL_AT] or len(content) < _READ_BYTES:
        return None
    written, size, frames, pages, first, second, salts, backfilled = _INDEX.unpack(content)
    if not written:
        return None
    page_bytes = (size & 0xFE00) + ((size & 1) << 16)  # 1 is 65536
    return IndexHeader(page_bytes, frames, pages, (first, second), salts, backfilled)


def _mark_of(content: bytes) -> int:
    return zlib.crc32(content[16:40]) % _MARK_BELOW


def _checksum(order: str, content: bytes, first: int, second: int) -> tuple[int, int]:
    """Continue the checksum of a WAL over some bytes."""
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for one, two in zip(words, words, strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return first, second
