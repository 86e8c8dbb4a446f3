"""Certificates: which mechanisms were checked on this machine, in exactly the form in which they are installed.

`ldp-budget plugin check` records what it found. A record is bound to the distribution and its version, the mechanism
and the SHA-256 of the sources it is made of, so that changed code counts as not checked again.

Our own mechanisms need no record. Every release passes the same checks before it is made, and three things more:
each promise is proved from the thresholds that are drawn, or the density, over many settings
(`tests/trust/test_verification.py`); where there are finitely many reports, the law of whole ones is enumerated in
fractions and is that of the proof (`tests/trust/test_drawn_laws.py`); and the draws that it is made of have the law
that they promise (`tests/randomness`). Each has a client program, which is what the client draws, to the last byte
(`tests/authoring/test_client_programs.py`), and whose law is that of the proof (`tests/trust/test_program_laws.py`).
Of a plugin's client in Python none of this is known, and it is "audited" at most, whatever its program is.

The records are a JSON file, `certificates.json` beside the default ledger or where LDP_BUDGET_CERTIFICATES says. It
is a note to oneself, no proof to others: whoever can write it can also change what Python runs.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._checks import check_instance
from .._files import application_folder, replacing
from ..guarantees.evidence import AUDITED, EXACT, NO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..authoring.base import Mechanism

VARIABLE = "LDP_BUDGET_CERTIFICATES"

_FORMAT = "ldp-budget certificates 1"
_CODE = (".py", ".so", ".pyd")
_BOUND_TO = ("distribution", "version", "mechanism", "sources")


_known: dict[type[Mechanism], str] = {}


def checked(mechanism: type[Mechanism]) -> str:
    """How the promise of a mechanism class was checked: one of the levels of `guarantees.evidence`.

    All of our own are "exact", by the tests of every release that are named above; what is not installed is "no", and
    so is, of whoever, what is taken at its word (`Mechanism.checkable`).
    Remembered for the life of the process.

    Parameters:
        mechanism: the class, such as ``mechanism("oue")``.

    Raises:
        InvalidParameter: it is no class.
    """
    check_instance("mechanism", mechanism, type, "a mechanism class")
    if mechanism not in _known:
        _known[mechanism] = _found(mechanism)
    return _known[mechanism]


def forget() -> None:
    """Look everything up again, such as after the file was changed."""
    _known.clear()


def _found(mechanism: type[Mechanism]) -> str:
    from .plugins import registry

    if not getattr(mechanism, "checkable", True):
        return NO
    for cls, plugin in registry().items():
        if cls is mechanism:
            return EXACT if plugin.own else _recorded(plugin.name, plugin.version, cls)
    return NO


def record(certificate: dict[str, Any]) -> Path:
    """Keep what `contract.certify` found, in place of older records of the same mechanisms; returns the file.

    Raises OSError where the file cannot be written, or is there and cannot be read.
    """
    path = certificates_path()
    about = {name: value for name, value in certificate.items() if name != "mechanisms"}
    new = [{**about, **_short(found)} for found in certificate["mechanisms"]]
    replaced = {(entry["distribution"], entry["mechanism"]) for entry in new}
    kept = [entry for entry in _read(path) if (entry.get("distribution"), entry.get("mechanism")) not in replaced]
    _write(path, {"format": _FORMAT, "certificates": [*kept, *new]})
    forget()
    return path


def _short(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("mechanism", "checked", "sources")}


def _recorded(distribution: str, version: str, mechanism: type[Mechanism]) -> str:
    sources = source_digest(mechanism)
    bound = dict(zip(_BOUND_TO, (distribution, version, mechanism.name, sources), strict=True))
    try:
        entries = _read(certificates_path())
    except OSError as error:
        _warn(f"{certificates_path()} cannot be read: {error.strerror}")
        return NO
    for entry in entries:
        if sources is not None and all(entry.get(name) == value for name, value in bound.items()):
            found = entry.get("checked")
            return found if found in (EXACT, AUDITED) else NO
    return NO


# -- the sources ----------------------------------------------------------------------------------------------


def source_digest(mechanism: type[Mechanism]) -> str | None:
    """SHA-256 over the code of the package that defines a class, names and contents; None where it has no files."""
    digest = hashlib.sha256()
    try:
        for name, file in _sources(mechanism):
            for part in (name.encode(), file.read_bytes()):
                digest.update(len(part).to_bytes(8, "little") + part)
    except (OSError, LookupError):
        return None
    return digest.hexdigest()


def _sources(mechanism: type[Mechanism]) -> Iterator[tuple[str, Path]]:
    """Every source file with its name within the package, in order. Raises LookupError where there are none."""
    module = _package_of(mechanism.__module__)
    path = Path(module.__file__)
    if path.stem != "__init__":
        yield path.name, path
        return
    files = [file for file in path.parent.rglob("*") if file.suffix in _CODE and file.is_file()]
    yield from sorted((file.relative_to(path.parent).as_posix(), file) for file in files)


def _package_of(module: str) -> Any:
    """The topmost package of a module that has a file; above it there may be namespaces, which are nobody's."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        found = sys.modules.get(".".join(parts[:length]))
        if getattr(found, "__file__", None) is not None:
            return found
    raise LookupError(module)


# -- the file -------------------------------------------------------------------------------------------------


def certificates_path() -> Path:
    """The file that holds the records."""
    return Path(os.environ.get(VARIABLE) or application_folder() / "certificates.json")


def _read(path: Path) -> list[dict[str, Any]]:
    """The records; none where there is no file, or with a warning where it holds none. Raises OSError."""
    try:
        data = json.loads(path.read_bytes())
        if data["format"] == _FORMAT and all(isinstance(entry, dict) for entry in data["certificates"]):
            return list(data["certificates"])
    except FileNotFoundError:
        return []
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    _warn(f"{path} holds no certificates; nothing counts as checked")
    return []


@functools.cache
def _warn(text: str) -> None:
    """Say it on stderr, once."""
    print(f"Warning: {text}", file=sys.stderr)


def _write(path: Path, data: dict[str, Any]) -> None:
    """The whole file or nothing, for the user's own eyes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(json.dumps(data, indent=2).encode())
