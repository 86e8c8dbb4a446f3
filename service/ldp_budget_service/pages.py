"""The pages: what a browser is given. Everything that they show comes from the API, under the reader's own key.

`/` and `/officer`: the pages for those who run the service. They are the same for everybody and hold nothing; what
they show is asked of the API by the reader's own key.

The files of the pages: read once, served with what a browser needs to tell that they are these.

A page is HTML in `static`, in which `{{integrity NAME}}` stands for the digest of a file, and `{{text KEY}}` for a
text. It names every script, those that other scripts import as well (`modulepreload`), with its digest (subresource
integrity), so nothing runs that was changed on its way. Pages are sent under a policy that allows no inline script or
style, no other host, and no text that becomes code (trusted types).

The pages of respondents: `/s/{collection}`, a survey, and `/me`, a device's own budget.

They are the same for everybody, and name nobody: what stands on them comes from the public definition, from the
device, and from `/v1/me`. The invitation is in the fragment of the link, which browsers send to no server.
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
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.responses import HTMLResponse, Response

from ldp_budget import LdpBudgetError

from . import http_middleware  # noqa: F401  # what `:name` in a route means
from .auth import router_of
from .error_codes import ServiceError

STATIC = Path(__file__).parent / "web" / "static"
TEXTS = Path(__file__).parent / "web" / "texts"
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


@router.get("/")
def dashboard(request: Request) -> Response:
    """The dashboard, for a key with the scope `read`."""
    return shown(request, "dashboard", "office.en")


@router.get("/officer")
def officer(request: Request) -> Response:
    """The privacy officer's page, for a key with the scope `policy`."""
    return shown(request, "officer", "office.en")


LANGUAGES = ("en", "ko", "de")
"""What the pages speak; the first where nothing else is asked for."""

Asked = Annotated[str | None, Query(alias="lang")]
Accepted = Annotated[str, Header(alias="Accept-Language")]


@router.get("/s/{collection:name}")
def survey(collection: str, request: Request, lang: Asked = None, accepted: Accepted = "") -> Response:
    """A survey. Of one that there is not, the page says so, and so does the status."""
    try:
        request.app.state.collections.get(collection)
        status = 200
    except LdpBudgetError:
        status = 404
    return _shown(request, lang, accepted, status)


@router.get("/me")
def mine(request: Request, lang: Asked = None, accepted: Accepted = "") -> Response:
    """What a device has answered, and what is left."""
    return _shown(request, lang, accepted)


def _shown(request: Request, lang: str | None, accepted: str, status: int = 200) -> Response:
    spoken = lang if lang in LANGUAGES else language(accepted)
    settings = request.app.state.settings
    text = page("survey", f"survey.{spoken}")
    for name, value in (("lifetime", settings.device_lifetime), ("day", settings.device_day or "")):
        text = text.replace(f"{{{{{name}}}}}", html.escape(value))
    etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": etag, "Vary": "Accept-Language"}
    if status == 200 and request.headers.get("If-None-Match") == etag:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(text, status, headers)


def language(accepted: str) -> str:
    """The language of `LANGUAGES` that an `Accept-Language` likes best (RFC 9110, 12.5.4)."""
    liked: list[tuple[float, str]] = []
    for each in accepted[:1000].split(","):
        tag, _, quality = each.strip().partition(";")
        try:
            weight = float(quality.strip().removeprefix("q=")) if quality else 1.0
        except ValueError:
            continue
        primary = tag.partition("-")[0].lower()
        if primary in LANGUAGES and weight > 0:
            liked.append((-weight, primary))
    return min(liked, key=lambda each: each[0])[1] if liked else LANGUAGES[0]
