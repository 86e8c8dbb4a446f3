"""The pages of respondents: `/s/{collection}`, a survey, and `/me`, a device's own budget.

They are the same for everybody, and name nobody: what stands on them comes from the public definition, from the
device, and from `/v1/me`. The invitation is in the fragment of the link, which browsers send to no server.
"""

from __future__ import annotations

import hashlib
import html
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.responses import HTMLResponse, Response

from ldp_budget import LdpBudgetError

from .. import paths  # noqa: F401  # what `:name` in a route means
from ..callers import router_of
from .static_files import HEADERS, page

router = router_of(include_in_schema=False)

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
