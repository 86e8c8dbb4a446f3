"""`GET /problems/{code}`: what a type of problem means."""

from __future__ import annotations

from fastapi.responses import Response
from pydantic import BaseModel

from ..callers import router_of
from ..kinds import MEANINGS, STATUSES, TYPE, ServiceError
from ..problems import documented, json_answer

router = router_of(tags=["about"])


class KindAnswer(BaseModel):
    """A type of problem, and what it means."""

    type: str
    status: int
    meaning: str


@router.get(TYPE + "{code:name}", response_model=KindAnswer, responses=documented("not-found", key=False))
def kind(code: str) -> Response:
    """What a type of problem means, in a sentence; for everybody."""
    if code not in MEANINGS:
        raise ServiceError("not-found", "there is no such type of problem")
    return json_answer({"type": TYPE + code, "status": STATUSES[code], "meaning": MEANINGS[code]})
