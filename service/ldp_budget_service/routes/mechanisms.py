"""`GET /v1/mechanisms`: what can be charged here."""

from __future__ import annotations

from fastapi.responses import Response

from ldp_budget.catalogue.listing import mechanism_rows

from ..answers import Row, told
from ..callers import Reader, router_of
from ..problems import documented

router = router_of(tags=["questions"])


@router.get("/v1/mechanisms", response_model=list[Row], responses=documented())
def mechanisms(desk: Reader) -> Response:
    """Every mechanism, its plugin, and how its promise was checked."""
    return told(desk.accountant.position(), mechanism_rows())
