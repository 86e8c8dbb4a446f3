"""The files of the pages: read once, served with what a browser needs to tell that they are these.

A page is HTML in `static`, in which `{{integrity NAME}}` stands for the digest of a file, and `{{text KEY}}` for a
text. It names every script, those that other scripts import as well (`modulepreload`), with its digest (subresource
integrity), so nothing runs that was changed on its way. Pages are sent under a policy that allows no inline script or
style, no other host, and no text that becomes code (trusted types).
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from ..callers import router_of
from ..kinds import ServiceError

STATIC = Path(__file__).parent / "static"
TEXTS = Path(__file__).parent / "texts"
PREFIX = "/static/"

POLICY = "; ".join(
    [
        *("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'"),
        *("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"),
        *("require-trusted-types-for 'script'", "trusted-types 'none'"),
    ]
)
"""What a page may do: use the files of this host, ask this host, and nothing else."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""What goes with every page and every file."""

# Looked up at each use and sent again only where it has changed: a page and its scripts are always of one version.
_REVALIDATED = {"Cache-Control": "no-cache"}

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_PLACE = re.compile(r"\{\{(integrity|text) ([^}]+)\}\}")


@dataclass(frozen=True)
class StaticFile:
    """A file as it is served. `integrity` is its digest as HTML names it."""

    body: bytes
    media_type: str
    integrity: str

    @property
    def etag(self) -> str:
        """Its digest, by which a browser asks whether it has changed."""
        return f'"{self.integrity}"'


def _read(path: Path) -> StaticFile:
    body = path.read_bytes()
    digest = base64.b64encode(hashlib.sha384(body).digest()).decode()
    return StaticFile(body, _TYPES[path.suffix], f"sha384-{digest}")


@cache
def files() -> Mapping[str, StaticFile]:
    """Every file by its name under `PREFIX`; texts stand in `texts/`."""
    found = {path.name: path for path in sorted(STATIC.glob("*")) if path.suffix in _TYPES}
    found |= {f"texts/{path.name}": path for path in sorted(TEXTS.glob("*.json"))}
    return {name: _read(path) for name, path in found.items()}


@cache
def texts(name: str) -> Mapping[str, str]:
    """The texts of a file, by key; one within another is named with a dot."""
    return dict(_flat(json.loads((TEXTS / f"{name}.json").read_bytes())))


def _flat(said: Mapping[str, str | Mapping[str, str]], before: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in said.items():
        found += [(before + key, value)] if isinstance(value, str) else _flat(value, f"{before}{key}.")
    return found


@cache
def page(name: str, said: str) -> str:
    """The HTML of a page, with the digests of its files, in the texts of a file such as `dashboard.en`."""

    def filled(place: re.Match[str]) -> str:
        kind, key = place.groups()
        return files()[key].integrity if kind == "integrity" else html.escape(texts(said)[key])

    return _PLACE.sub(filled, (STATIC / f"{name}.html").read_text(encoding="utf-8"))


def shown(request: Request, name: str, said: str) -> Response:
    """A page, or 304 where the browser has it."""
    text = page(name, said)
    etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    if request.headers.get("If-None-Match") == etag:
        return Response(status_code=304, headers={**HEADERS, **_REVALIDATED, "ETag": etag})
    return HTMLResponse(text, headers={**HEADERS, **_REVALIDATED, "ETag": etag})


router = router_of(include_in_schema=False)


@router.get(PREFIX + "{name:path}")
def static_file(name: str, request: Request) -> Response:
    """A file of a page."""
    found = files().get(name)
    if found is None:
        raise ServiceError("not-found", "there is no such file")
    headers = {**HEADERS, **_REVALIDATED, "ETag": found.etag}
    if request.headers.get("If-None-Match") == found.etag:
        return Response(status_code=304, headers=headers)
    return Response(found.body, media_type=found.media_type, headers=headers)
