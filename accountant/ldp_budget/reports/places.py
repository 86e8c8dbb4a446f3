"""Places of files: a local path, or a URL such as `s3://bucket/answers.parquet`, which fsspec opens.

An error at a URL is an `OSError` with the text of fsspec, from any package below it. So reading and writing treat both
places alike.
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
from ..errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")
_FILE = re.compile(r"(file|local)://")
_BUFFER = 1 << 20
_WHOLE = {"abfs", "abfss", "adl", "az", "gcs", "gs", "memory", "s3", "s3a"}
"""Protocols of object stores, where an uploaded file appears complete under its name, or not at all."""

EXTRA = "pip install 'ldp-budget[arrow]'"


def is_address(path: str) -> bool:
    """True if `path` is a URL and not a path. If a local file has that name, it is a path.

    Parameters:
        path: a path or a URL.
    """
    return bool(_ADDRESS.match(path)) and not _FILE.match(path) and not os.path.exists(path)


def local_path(path: str) -> str:
    """Return the local path that was given, or that a `file://` URL names.

    Parameters:
        path: a path or a `file://` URL; not another URL.
    """
    return path if os.path.exists(path) else _FILE.sub("", path)


def shown_place(path: str) -> str:
    """Return a path or URL for messages, without the parts that may be a password or a signature.

    Parameters:
        path: a path or a URL.
    """
    if not is_address(path):
        return path
    before, slashes, rest = path.partition("://")
    rest = re.sub(r"\?.*", "?…", rest, flags=re.S)
    host, slash, tail = rest.partition("/")
    return before + slashes + host.rpartition("@")[2] + slash + tail


@contextmanager
def opened(path: str) -> Iterator[io.BufferedReader[Any]]:
    """Open a file for reading, at its first byte.

    Parameters:
        path: a path or a URL.

    Raises:
        OSError: the file cannot be opened; or it cannot be read while it is open.
        NotSupported: `path` is a URL, and fsspec is not installed.
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
    """True if a file or folder exists at a place.

    Parameters:
        path: a path or a URL.

    Raises:
        OSError: the place cannot be queried.
        NotSupported: `path` is a URL, and fsspec is not installed.
    """
    if not is_address(path):
        return os.path.lexists(local_path(path))
    system, place = _system(path)
    with _told(path):
        return bool(system.exists(place))


def inside(path: str) -> list[str] | None:
    """Return the paths or URLs of the files directly in a folder, in any order; None if it is not a folder.

    Parameters:
        path: a path or a URL.

    Raises:
        OSError: the folder cannot be read.
        NotSupported: `path` is a URL, and fsspec is not installed.
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
    """Open a file for writing; it appears, complete and durable, when the block ends without an exception.

    After an exception there is no file. For a URL, the file is written locally first and uploaded at the end in one
    piece.

    Parameters:
        path: a path or a URL.

    Raises:
        OSError: the file cannot be written.
        NotSupported: files at that URL are not written atomically, or fsspec is not installed.
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
    """Raise the errors of `written` that can be known before anything is written.

    Parameters:
        path: a path or a URL.

    Raises:
        NotSupported: as for `written`.
        OSError: the protocol of the URL is unknown; or the path is a folder or a device.
    """
    if is_address(path):
        _system(path, to_write=True)
    elif not replaceable(Path(local_path(path))):
        raise OSError(errno.EEXIST, "it is there and is no ordinary file")


def put(system: Any, place: str, path: str, draft: Path) -> None:
    """Upload a local file to a URL, and check the size of the result."""
    with _told(path):
        system.put_file(str(draft), place)
        system.invalidate_cache()
        size = system.size(place)
    if size != draft.stat().st_size:
        raise OSError(errno.EIO, f"{draft.stat().st_size} bytes were put there, and it has {size}")


def _system(path: str, *, to_write: bool = False) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise NotSupported(
            f"the URL {shown_place(path)} needs the package fsspec", hint=f"Install it: {EXTRA}"
        ) from None
    protocols = path.partition("://")[0].split("::")
    if to_write and (len(protocols) > 1 or protocols[0].lower() not in _WHOLE):
        raise NotSupported(
            f"{shown_place(path)} cannot be written to, because files there may appear in parts (supported: "
            f"{', '.join(sorted(_WHOLE))})",
            hint="Write the file on this machine, and copy it there.",
        )
    with _told(path):
        system, place = url_to_fs(path)
    return system, place


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Convert every error of a protocol's package to an `OSError`."""
    try:
        yield
    except NotSupported:
        raise
    except Exception as error:
        raise _as_os_error(path, error) from None


def _as_os_error(path: str, error: Exception) -> OSError:
    strerror = getattr(error, "strerror", None)
    kinds = {
        FileNotFoundError: "the file does not exist",
        IsADirectoryError: "it is a folder",
        PermissionError: "access to it is denied",
    }
    own = next((words for kind, words in kinds.items() if isinstance(error, kind)), "")
    text = " ".join(str(strerror or error or "").replace(path, shown_place(path)).split())
    said = f"{own} ({text})" if own and text and text.rstrip("/") not in path else own or text or type(error).__name__
    return OSError(getattr(error, "errno", None) or errno.EIO, said)


class _Remote(io.RawIOBase):
    """Raw I/O wrapper of an fsspec file, for Python's buffered reader."""

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
