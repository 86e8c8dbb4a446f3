"""HTML pages and their static files: the dashboard, the privacy officer's page and the respondents' pages.

Every page is the same for all visitors and holds no data.

- `/` and `/officer`: for operators. They load their data from the API with the reader's own API key.
- `/check`: the checker of published surveys, one file that loads nothing.
- `/s/{collection}` (a survey) and `/me` (the budget of one device): for respondents. They load their data from the
  public definition, the device and `/v1/me`. The invitation is in the fragment of the link. Browsers send the
  fragment to no server.

A page is an HTML file in `static`. `{{integrity NAME}}` is replaced by the digest of a file, `{{text KEY}}` by a text.
The page lists every script with its digest (subresource integrity), including imported ones (`modulepreload`). So
a script that was changed in transit does not run. The content security policy allows no inline script or style, no
other host, and no text as code (trusted types).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Header, Query, Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from ldp_budget import LdpBudgetError
from ldp_budget_verify import shipped_checkers

from . import request_target  # noqa: F401  # registers the path convertor `:name`
from .auth import router_of
from .error_codes import ServiceError
from .problems import response_for
from .proofs import has_proofs

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
"""Content security policy of a page: it may load files from this host and call this host only."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every page and file."""

# Browsers revalidate on each use, so a page and its scripts always have the same version.
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
    """A file to serve. `integrity` is its digest in the format of HTML's `integrity` attribute."""

    body: bytes
    media_type: str
    integrity: str

    @property
    def etag(self) -> str:
        """The ETag of the file: its digest."""
        return f'"{self.integrity}"'

    @cached_property
    def gzipped(self) -> bytes:
        """The body compressed with gzip, the same bytes each time."""
        return gzip.compress(self.body, mtime=0)


def _read(path: Path) -> StaticFile:
    body = path.read_bytes()
    digest = base64.b64encode(hashlib.sha384(body).digest()).decode()
    return StaticFile(body, _TYPES[path.suffix], f"sha384-{digest}")


@cache
def files() -> Mapping[str, StaticFile]:
    """Return every file by its name below `PREFIX`. Texts are below `texts/`."""
    found = {path.name: path for path in sorted(STATIC.glob("*")) if path.suffix in _TYPES}
    found |= {f"texts/{path.name}": path for path in sorted(TEXTS.glob("*.json"))}
    return {name: _read(path) for name, path in found.items()}


@cache
def texts(name: str) -> Mapping[str, str]:
    """Return the texts of a file by key. Nested keys are joined with dots."""
    return dict(_flat(json.loads((TEXTS / f"{name}.json").read_bytes())))


def _flat(said: Mapping[str, str | Mapping[str, str]], before: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in said.items():
        found += [(before + key, value)] if isinstance(value, str) else _flat(value, f"{before}{key}.")
    return found


@cache
def page(name: str, said: str) -> str:
    """Return the HTML of a page with the digests of its files and the texts of a file such as `office.en`."""

    def filled(place: re.Match[str]) -> str:
        kind, key = place.groups()
        return files()[key].integrity if kind == "integrity" else html.escape(texts(said)[key])

    text = (STATIC / f"{name}.html").read_text(encoding="utf-8")
    return _PLACE.sub(filled, text.replace("{{language}}", said.rpartition(".")[2]))


def _office(request: Request, name: str, lang: str | None, accepted: str) -> Response:
    """Return an operators' page in a language, or 304 if the browser's copy is current."""
    text = page(name, f"office.{lang if lang in LANGUAGES else language(accepted)}")
    etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    headers = {**HEADERS, **_REVALIDATED, "ETag": etag, "Vary": "Accept-Language"}
    if request.headers.get("If-None-Match") == etag:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(text, headers=headers)


# -- files and operators' pages -------------------------------------------------------------------------

router = router_of(include_in_schema=False)

LANGUAGES = ("en", "ko", "de")
"""Languages of all pages. The first one is the default."""

Asked = Annotated[str | None, Query(alias="lang")]
Accepted = Annotated[str, Header(alias="Accept-Language")]


@router.get(PREFIX + "{name:path}")
def static_file(name: str, request: Request) -> Response:
    """Return a file of a page."""
    found = files().get(name)
    if found is None:
        raise ServiceError("not-found", "this file does not exist")
    headers = {**HEADERS, **_REVALIDATED, "ETag": found.etag, "Vary": "Accept-Encoding"}
    body = found.body
    if takes_gzip(request.headers.get("Accept-Encoding", "")):
        # Another representation has an ETag of its own (RFC 9110, section 8.8.3.3).
        headers |= {"Content-Encoding": "gzip", "ETag": f'{found.etag[:-1]}-gzip"'}
        body = found.gzipped
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return Response(
            status_code=304, headers={name: headers[name] for name in headers if name != "Content-Encoding"}
        )
    return Response(body, media_type=found.media_type, headers=headers)


def takes_gzip(accepted: str) -> bool:
    """True if a browser's `Accept-Encoding` names gzip with a weight above 0."""
    for coding in accepted.split(","):
        name, _, weight = coding.partition(";")
        if name.strip().lower() in ("gzip", "x-gzip"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


@router.get("/")
def dashboard(request: Request, lang: Asked = None, accepted: Accepted = "") -> Response:
    """Return the dashboard, for an API key with the scope `read`."""
    return _office(request, "dashboard", lang, accepted)


@router.get("/officer")
def officer(request: Request, lang: Asked = None, accepted: Accepted = "") -> Response:
    """Return the privacy officer's page, for an API key with the scope `policy`."""
    return _office(request, "officer", lang, accepted)


# -- respondents' pages --------------------------------------------------------------------------------


@router.get("/s/{collection:name}")
def survey(collection: str, request: Request, lang: Asked = None, accepted: Accepted = "") -> Response:
    """Return the page of a survey. The status is 404 if the collection does not exist; the page says so too."""
    try:
        request.app.state.collections.get(collection)
        status, published = 200, has_proofs(request.app.state.accountant, collection)
    except LdpBudgetError:
        status, published = 404, False
    return _shown(request, lang, accepted, status, published=published)


@router.get("/me")
def mine(request: Request, lang: Asked = None, accepted: Accepted = "") -> Response:
    """Return the page with a device's answers and its remaining budget."""
    return _shown(request, lang, accepted)


@router.get("/check")
def check(request: Request) -> Response:
    """Return the static page that checks a published survey. It loads nothing, so it can be saved and used offline."""
    text, policy = _checker()
    etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    headers = {**HEADERS, **_REVALIDATED, "Content-Security-Policy": policy, "ETag": etag}
    if request.headers.get("If-None-Match") == etag:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(text, headers=headers)


@cache
def _checker() -> tuple[str, str]:
    """Return the page of the checker, and its content security policy, which names the digest of its one script."""
    text = (shipped_checkers.folder() / "check.html").read_text(encoding="utf-8")
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert found is not None
    return text, f"{found[1]}; frame-ancestors 'none'"


def show_missing(app: FastAPI) -> None:
    """Answer an unknown address with a page, for a person with a browser; for a program with a problem."""

    async def missing(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if not _is_for_people(request):
            return response_for(error, request.scope)
        accepted, lang = request.headers.get("Accept-Language", ""), request.query_params.get("lang")
        text = page("missing", f"survey.{lang if lang in LANGUAGES else language(accepted)}")
        headers = {**HEADERS, "Cache-Control": "no-store", "Vary": "Accept, Accept-Language"}
        return HTMLResponse(text, error.status_code, headers)

    app.add_exception_handler(404, missing)


def _is_for_people(request: Request) -> bool:
    is_api = request.url.path.startswith(("/v1/", PREFIX))
    return request.method in ("GET", "HEAD") and not is_api and "text/html" in request.headers.get("Accept", "")


def _shown(
    request: Request, lang: str | None, accepted: str, status: int = 200, *, published: bool = False
) -> Response:
    spoken = lang if lang in LANGUAGES else language(accepted)
    settings = request.app.state.settings
    text = page("survey", f"survey.{spoken}")
    figures = {"lifetime": settings.device_lifetime, "day": settings.device_day or ""}
    for name, value in {**figures, "published": "yes" if published else ""}.items():
        text = text.replace(f"{{{{{name}}}}}", html.escape(value))
    etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    texts_of = f"texts/survey.{spoken}.json"
    # Fetched together with the script that needs it and checks its digest. Browsers ignore the digest of such a preload.
    early = f"<{PREFIX}{texts_of}>; rel=preload; as=fetch; crossorigin"
    headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": etag, "Vary": "Accept-Language", "Link": early}
    if status == 200 and request.headers.get("If-None-Match") == etag:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(text, status, headers)


def language(accepted: str) -> str:
    """Return the language of `LANGUAGES` that an `Accept-Language` header prefers (RFC 9110, 12.5.4)."""
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
