"""`/` and `/officer`: the pages for those who run the service. They are the same for everybody and hold nothing; what
they show is asked of the API by the reader's own key."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from ..callers import router_of
from .static_files import shown

router = router_of(include_in_schema=False)


@router.get("/")
def dashboard(request: Request) -> Response:
    """The dashboard, for a key with the scope `read`."""
    return shown(request, "dashboard", "office.en")


@router.get("/officer")
def officer(request: Request) -> Response:
    """The privacy officer's page, for a key with the scope `policy`."""
    return shown(request, "officer", "office.en")
