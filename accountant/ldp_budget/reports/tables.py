"""Tables of people's answers and users where they are: CSV, Parquet and Arrow, here or at an address.

What kind of table a file is: its name says so, and where its first bytes say otherwise, these are believed.

A Parquet file begins with `PAR1` and a byte that no text holds, an Arrow file with `ARROW1`, an Arrow stream with
four bytes 0xff; no CSV file begins so in an encoding of text.

Where a file is: a path of this machine, or an address such as `s3://bucket/answers.parquet`, which fsspec opens.

What goes wrong at an address is an `OSError` whose text is fsspec's own, whatever the package below has raised, so
that reading and writing treat both alike.
"""

from __future__ import annotations

import errno
import io
import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .._files import replaceable, replacing
from ..errors import NotSupported, TableError

if TYPE_CHECKING:
    from collections.abc import Iterator


CSV, PARQUET, ARROW, STREAM = "a CSV file", "a Parquet file", "an Arrow file", "an Arrow stream"

SUFFIXES = {
    ".parquet": PARQUET,
    ".pq": PARQUET,
    ".arrow": ARROW,
    ".feather": ARROW,
    ".ipc": ARROW,
    ".arrows": STREAM,
}
"""What files are called; any other name is that of a CSV file."""

HEAD = 64
"""How many first bytes tell the kinds apart."""

_TEXT = set(range(0x20, 0x100)) | set(b"\t\r\n\f")


def named_kind(path: str) -> str:
    """What kind a file is by its name.

    Parameters:
        path: a path or an address.

    Raises:
        Nothing.
    """
    return SUFFIXES.get(os.path.splitext(path.partition("?")[0])[1].lower(), CSV)


def kind_of(path: str, shown: str, head: bytes) -> str:
    """What kind a file is by its first bytes, which its name must not contradict where they are no text.

    Parameters:
        path: a path or an address.
        shown: the same for messages.
        head: its first bytes, 64 of them where it has so many.

    Raises:
        TableError: it is named like a Parquet or Arrow file, and neither that nor text.
    """
    if head.startswith(b"ARROW1\0\0"):
        return ARROW
    if head.startswith(b"\xff\xff\xff\xff"):
        return STREAM
    if head.startswith(b"PAR1") and (len(head) < 5 or head[4] not in _TEXT):
        return PARQUET
    named = named_kind(path)
    if head.startswith((b"FEA1", b"PARE")):
        what = "a Feather file of version 1" if head.startswith(b"FEA1") else "an encrypted Parquet file"
        raise TableError(shown, f"it is {what}, which is not read")
    if named != CSV and (not head or not _TEXT.issuperset(head)):
        found = f"begins with {head[:8]!r}" if head else "is empty"
        raise TableError(shown, f"it is named like {named}, and {found}")
    return CSV


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")
_FILE = re.compile(r"(file|local)://")
_BUFFER = 1 << 20
_WHOLE = {"abfs", "abfss", "adl", "az", "gcs", "gs", "memory", "s3", "s3a"}
"""Where a file that is put appears whole under its name, or not at all: stores of objects."""

EXTRA = "pip install 'ldp-budget[arrow]'"


def is_address(path: str) -> bool:
    """Whether this is an address and no path; a file of that name, odd as it is, is one.

    Parameters:
        path: what was given.

    Raises:
        Nothing.
    """
    return bool(_ADDRESS.match(path)) and not _FILE.match(path) and not os.path.exists(path)


def local_path(path: str) -> str:
    """The path of this machine that was given, or that a `file://` address names.

    Parameters:
        path: what was given, and is no other address.

    Raises:
        Nothing.
    """
    return path if os.path.exists(path) else _FILE.sub("", path)


def shown_place(path: str) -> str:
    """A path or address as messages name it: without what may be a password or a signature.

    Parameters:
        path: what was given.

    Raises:
        Nothing.
    """
    if not is_address(path):
        return path
    before, slashes, rest = path.partition("://")
    rest = re.sub(r"\?.*", "?…", rest, flags=re.S)
    host, slash, tail = rest.partition("/")
    return before + slashes + host.rpartition("@")[2] + slash + tail


@contextmanager
def opened(path: str) -> Iterator[io.BufferedReader[Any]]:
    """A file to read, from its first byte.

    Parameters:
        path: a path or an address.

    Raises:
        OSError: it cannot be opened; while it is open, that it cannot be read.
        NotSupported: it is an address, and what opens those is not installed.
    """
    if not is_address(path):
        with open(local_path(path), "rb") as file:
            yield file
        return
    system, place = _system(path)
    with _told(path):
        remote = system.open(place, "rb")
    with io.BufferedReader(_Remote(path, remote), _BUFFER) as file:
        yield file


def exists(path: str) -> bool:
    """Whether anything is at a place.

    Parameters:
        path: a path or an address.

    Raises:
        OSError: that cannot be found out.
        NotSupported: it is an address, and what opens those is not installed.
    """
    if not is_address(path):
        return os.path.lexists(local_path(path))
    system, place = _system(path)
    with _told(path):
        return bool(system.exists(place))


def inside(path: str) -> list[str] | None:
    """The paths or addresses of what lies right in a folder, in any order; None where no folder is.

    Parameters:
        path: a path or an address.

    Raises:
        OSError: it cannot be read.
        NotSupported: it is an address, and what opens those is not installed.
    """
    if not is_address(path):
        folder = Path(local_path(path))
        return [str(each) for each in folder.iterdir()] if folder.is_dir() else None
    system, place = _system(path)
    with _told(path):
        if not system.isdir(place):
            return None
        return [system.unstrip_protocol(each) for each in system.ls(place, detail=False)]


@contextmanager
def written(path: str) -> Iterator[IO[bytes]]:
    """A file to write, which is there, whole and durable, when the block ends without an exception, or not at all.

    For an address it is written on this machine first and put there at the end, in one piece.

    Parameters:
        path: a path or an address.

    Raises:
        OSError: it cannot be written.
        NotSupported: it is an address where nobody promises that a file appears whole, or what opens those is not
            installed.
    """
    if not is_address(path):
        with replacing(Path(local_path(path))) as file:
            yield file
        return
    system, place = _system(path, to_write=True)
    with tempfile.TemporaryDirectory(prefix="ldp-budget-") as folder:
        draft = Path(folder, "draft")
        with replacing(draft) as file:
            yield file
        put(system, place, path, draft)


def check_writable(path: str) -> None:
    """Raise what `written` would raise before anything is written: no such protocol, no promise, no ordinary file.

    Parameters:
        path: a path or an address.

    Raises:
        NotSupported: as for `written`.
        OSError: its protocol is unknown; or a folder or a device is there.
    """
    if is_address(path):
        _system(path, to_write=True)
    elif not replaceable(Path(local_path(path))):
        raise OSError(errno.EEXIST, "it is there and is no ordinary file")


def put(system: Any, place: str, path: str, draft: Path) -> None:
    """Put a file of this machine at an address, and see that all of it came."""
    with _told(path):
        system.put_file(str(draft), place)
        system.invalidate_cache()
        size = system.size(place)
    if size != draft.stat().st_size:
        raise OSError(errno.EIO, f"{draft.stat().st_size} bytes were put there, and it has {size}")


def _system(path: str, *, to_write: bool = False) -> tuple[Any, str]:
    """The file system of an address, and the place in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise NotSupported(f"{shown_place(path)} is an address, which needs fsspec: {EXTRA}") from None
    protocols = path.partition("://")[0].split("::")
    if to_write and (len(protocols) > 1 or protocols[0].lower() not in _WHOLE):
        raise NotSupported(
            f"{shown_place(path)}: written are only addresses where a file appears whole or not at all "
            f"({', '.join(sorted(_WHOLE))}); write it here and copy it there"
        )
    with _told(path):
        system, place = url_to_fs(path)
    return system, place


@contextmanager
def _told(path: str) -> Iterator[None]:
    """What any package for any protocol raises, as an `OSError` that says so."""
    try:
        yield
    except NotSupported:
        raise
    except Exception as error:
        raise _as_os_error(path, error) from None


def _as_os_error(path: str, error: Exception) -> OSError:
    strerror = getattr(error, "strerror", None)
    kinds = {
        FileNotFoundError: "there is no such file",
        IsADirectoryError: "it is a folder",
        PermissionError: "it may not be read or written",
    }
    own = next((words for kind, words in kinds.items() if isinstance(error, kind)), "")
    text = " ".join(str(strerror or error or "").replace(path, shown_place(path)).split())
    said = f"{own} ({text})" if own and text and text.rstrip("/") not in path else own or text or type(error).__name__
    return OSError(getattr(error, "errno", None) or errno.EIO, said)


class _Remote(io.RawIOBase):
    """A file of fsspec as Python's own buffers take it."""

    def __init__(self, path: str, file: Any) -> None:
        self._path = path
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def readinto(self, buffer: Any) -> int:
        with _told(self._path):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with _told(self._path):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
