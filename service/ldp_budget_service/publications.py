"""Published surveys for the page `/check`: their files, and what a respondent's receipt says of them.

`Settings.publications` is a folder that `ldp-budget publish NAME --out FOLDER` wrote, or a folder of such folders, each
with the name of its collection. The files are public, and no checker believes them.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import FileResponse, Response

from ldp_budget import NotSupported
from ldp_budget._files import canonical_json
from ldp_budget.accounting.ledger_maintenance import digest_under
from ldp_budget.errors import PublicationError

from .auth import router_of
from .error_codes import ServiceError
from .html_pages import HEADERS

if TYPE_CHECKING:
    from ldp_budget import Accountant

PREFIX = "/publications/"
_FILE = re.compile(r"checkpoint|client\.json|(charges|reports)\.bin|tile/(entries|0|1)/[0-9]{3}(\.p/[0-9]{1,3})?")
_HEADERS = {**HEADERS, "Cache-Control": "no-cache"}

router = router_of(include_in_schema=False)


@router.get(PREFIX + "{collection:name}/{file:path}")
def published_file(collection: str, file: str, request: Request) -> Response:
    """Return a file of a published survey."""
    folder = request.app.state.settings.publications
    found = None if folder is None or not _FILE.fullmatch(file) else _found(Path(folder), collection, file)
    if found is None:
        raise ServiceError("not-found", "this file of a publication does not exist")
    media_type = {"checkpoint": "text/plain; charset=utf-8", "client.json": "application/json"}.get(file)
    return FileResponse(found, headers=_HEADERS, media_type=media_type or "application/octet-stream")


def _found(folder: Path, collection: str, file: str) -> Path | None:
    """Return a file within the publication of a collection; None if there is none, or if a link leads out of it."""
    try:
        place = _place(folder, collection)
        found = None if place is None else (place / file).resolve()
        if place is None or found is None or not found.is_relative_to(place.resolve()):
            return None
        return found if found.is_file() else None
    except OSError:  # such as a name that is too long for the file system
        return None


def _place(folder: Path, collection: str) -> Path | None:
    """Return the folder with the publication of a collection; None without one."""
    if (folder / "checkpoint").is_file():
        return folder if _collection_in(folder / "client.json") == collection else None
    if collection in ("", ".", "..") or any(each in collection for each in "/\\\0"):
        return None
    return folder / collection if (folder / collection / "checkpoint").is_file() else None


def _collection_in(file: Path) -> str | None:
    try:
        found = file.stat()
        return _named(file, found.st_mtime_ns, found.st_size)
    except (OSError, RecursionError, ValueError):
        return None


@lru_cache(maxsize=16)
def _named(file: Path, changed: int, size: int) -> str | None:
    found = json.loads(file.read_bytes())
    name = found.get("name") if isinstance(found, dict) else None
    return name if isinstance(name, str) else None


def log_key_of(accountant: Accountant) -> str | None:
    """Return the public key of the ledger's log of publications; None without one."""
    from ldp_budget_surveys.publication.publisher import Publisher

    try:
        return Publisher(accountant).key().verifier_key
    except (NotSupported, PublicationError):
        return None


def publication_for(accountant: Accountant, collection: str, mark: bytes, has_folder: bool) -> dict[str, Any]:
    """Return what the receipt of a respondent says of the publication of a collection.

    `address` is the path of the folder on this service, `key` the public key of its log, and `proof` a token for the proof
    of the charge with this mark.
    """
    return {
        "address": f"{PREFIX}{quote(collection, safe='')}/" if has_folder else None,
        "key": log_key_of(accountant),
        "proof": _token(accountant, accountant._ledger.key.in_use.number, collection, mark),
    }


def is_proof_token(accountant: Accountant, token: str, collection: str, mark: bytes) -> bool:
    """True if a token was made for the proof of this charge, under any secret of the ledger's key."""
    secrets = range(1, accountant._ledger.key.in_use.number + 1)
    return token.isascii() and any(
        compare_digest(token, _token(accountant, each, collection, mark)) for each in secrets
    )


def _token(accountant: Accountant, secret: int, collection: str, mark: bytes) -> str:
    said = canonical_json(["ldp-budget proof token 1", collection, mark.hex()])
    return digest_under(accountant._ledger, secret, said.encode())[:32]
