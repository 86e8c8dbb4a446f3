"""Derivations that are kept: what took long to derive from a program is derived once on a machine.

A result is bound to all that it was derived from: the program, what was asked of it, the version, and the source files of
the rules. A changed program, or a changed rule, is derived again. Results are kept in the process, and those that took
more than a moment in the folder `derivations` next to the certificates of checked mechanisms (`LDP_BUDGET_CERTIFICATES`).

The files are notes for this machine's user, like the certificates: a process that can write them can also change what
Python runs. A file that is incomplete or changed is not read, and its result is derived again. No file is needed.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from .._files import application_folder, canonical_json, json_digest, replacing
from .report_law import rules

if TYPE_CHECKING:
    from collections.abc import Callable

_FORMAT = "ldp-budget derivation 1"
_MOMENT = 0.1
"""Seconds of processor time. What takes less is not written to a file."""
_MOST_KEPT = 256
"""The most results that a process keeps."""
_MOST_FILES = 2048
_MOST_BYTES = 1 << 20

_kept: OrderedDict[str, Any] = OrderedDict()
_lock = Lock()


def kept(of: Any, derive: Callable[[], Any]) -> Any:
    """Return what `derive` returns for these inputs: from the process, from a file, or derived now.

    Parameters:
        of: all that the result depends on, as JSON: the program, and what was asked of it.
        derive: derives the result, a JSON value. What it raises is not kept.

    Returns:
        The result. Do not change it.
    """
    key = json_digest([_FORMAT, _rules(), of])
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    path = folder() / f"{key}.json"
    found = _read(path, key)
    if found is None:
        start = time.thread_time()
        found = [derive()]
        if time.thread_time() - start > _MOMENT:
            _write(path, key, found)
    with _lock:
        _kept[key] = found[0]
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return found[0]


def forget() -> None:
    """Clear what this process keeps. Files stay."""
    with _lock:
        _kept.clear()


def folder() -> Path:
    """The folder of the files, which may not exist yet."""
    certificates = os.environ.get("LDP_BUDGET_CERTIFICATES")
    return (Path(certificates).parent if certificates else application_folder()) / "derivations"


@functools.cache
def _rules() -> str:
    """Return a digest of the version and of the source files that results are derived with."""
    from importlib import metadata

    digest = hashlib.sha256(metadata.version("ldp-budget").encode())
    core, law = Path(__file__).parents[1], Path(str(rules().__file__)).parent
    for file in sorted([*core.glob("sdk/*.py"), *core.glob("guarantees/*.py"), *law.glob("*.py")]):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _read(path: Path, key: str) -> list[Any] | None:
    """Return the result in a list; None if there is no file, or not one that `_write` wrote for this key."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        data = json.loads(path.read_bytes())
        result: list[Any] = data["result"]
        good = data["format"] == _FORMAT and data["key"] == key and data["sum"] == _sum(key, result)
        return result if good and len(result) == 1 else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _write(path: Path, key: str, result: list[Any]) -> None:
    """Write a result, unless it is too long or the folder is full or cannot be written."""
    data = {"format": _FORMAT, "key": key, "result": result, "sum": _sum(key, result)}
    content = json.dumps(data).encode()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if len(content) <= _MOST_BYTES and sum(1 for _ in path.parent.iterdir()) < _MOST_FILES:
            with replacing(path) as file:
                file.write(content)


def _sum(key: str, result: list[Any]) -> str:
    return hashlib.sha256(f"{key} {canonical_json(result)}".encode()).hexdigest()
