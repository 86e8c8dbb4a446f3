"""Health endpoints: `/livez` and `/readyz`."""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from fastapi import Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from ..auth import router_of
from ..problems import documented, problem

if TYPE_CHECKING:
    from ldp_budget import Accountant

    from ..request_limits import Load


LEAST_ROOM = 128 << 20
"""Free bytes required on each disk that this process writes to: more than a ledger's WAL may take."""
CHECKS = ("schema", "key", "clock", "disk", "draining")
"""The names of all checks."""
SECONDS = 5.0
"""Timeout of a check in seconds."""
_FRESH_SECONDS = 1.0

_log = logging.getLogger("ldp_budget_service")

router = router_of(tags=["watching"])


class Alive(BaseModel):
    """Liveness response."""

    status: str = "alive"


class Ready(BaseModel):
    """Readiness response: every check with its result, `ok`, `failed` or `unknown`."""

    status: str = "ready"
    checks: dict[str, str]


class Health:
    """Checks everything that a charge needs. One check runs at a time, and at most one per second."""

    def __init__(self, accountant: Accountant, load: Load) -> None:
        self._accountant, self._load = accountant, load
        self._folder = _folder_of(accountant)
        self._looking: anyio.CapacityLimiter | None = None
        self._seen: tuple[float, dict[str, str | None]] = float("-inf"), {}
        self._told: set[str] = set()

    async def check(self) -> dict[str, str | None]:
        """Return the error of each check by its name; None if the check passed."""
        if self._looking is None:
            self._looking = anyio.CapacityLimiter(1)
        found: dict[str, str | None] = {"schema": f"no answer within {SECONDS:g} s"}
        with anyio.move_on_after(SECONDS):
            found = await anyio.to_thread.run_sync(self.look, abandon_on_cancel=True, limiter=self._looking)
        found = {**found, "draining": "it is about to end" if self._load.draining else None}
        self._tell(found)
        return found

    def look(self) -> dict[str, str | None]:
        """Return the same without `draining` and without a time limit. A result is reused for a second."""
        if time.monotonic() - self._seen[0] > _FRESH_SECONDS:
            self._seen = time.monotonic(), {**self._accountant.ledger.check_up(), "disk": self._room()}
        return self._seen[1]

    def _room(self) -> str | None:
        """Return the error of the ledger's disk if it is short of space, else None."""
        if self._folder is None:
            return None
        try:
            free = shutil.disk_usage(self._folder).free
        except OSError as error:
            return f"{self._folder}: {error.strerror}"
        if free < LEAST_ROOM:
            return f"{self._folder} must have at least {LEAST_ROOM} bytes of free space: got {free}"
        return None

    def _tell(self, found: dict[str, str | None]) -> None:
        """Log the failed checks once, when they change."""
        wrong = {name: why for name, why in found.items() if why is not None}
        if wrong.keys() != self._told:
            _log.warning("not ready" if wrong else "ready", extra={"said": {"checks": wrong}})
            self._told = set(wrong)


def _folder_of(accountant: Accountant) -> Path | None:
    """Return the ledger's folder; None if the ledger is not on a local disk."""
    place = Path(accountant.name)
    return place.parent if place.is_absolute() else None


@router.get("/livez")
async def livez() -> Alive:
    """Confirm that the process responds."""
    return Alive()


@router.get("/readyz", response_model=Ready, responses={503: documented("not-ready")[503]})
async def readyz(request: Request) -> Response:
    """Check that a charge is possible: the ledger, its key, the clock, the disk and no shutdown in progress."""
    found = await request.app.state.health.check()
    wrong = [name for name, why in found.items() if why is not None]
    known = {name: "ok" if why is None else "failed" for name, why in found.items()}
    checks = {name: known.get(name, "unknown") for name in CHECKS}  # an unreadable ledger has no clock to compare
    if wrong:
        return problem("not-ready", f"not ready: {', '.join(wrong)}", {"checks": checks})
    return JSONResponse({"status": "ready", "checks": checks})
