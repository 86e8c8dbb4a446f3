"""Whether the service is alive, and whether it could charge somebody just now."""

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

from ..callers import router_of
from ..problems import documented, problem

if TYPE_CHECKING:
    from ldp_budget import Accountant

    from ..guarding.door import Load
    from ..settings import Settings

LEAST_ROOM = 128 << 20
"""Bytes that must be left on a disk that is written to: more than a ledger's log may take."""
SECONDS = 5.0
"""How long a look may take."""
_FRESH_SECONDS = 1.0

_log = logging.getLogger("ldp_budget_service")

router = router_of(tags=["watching"])


class Alive(BaseModel):
    """Says nothing else."""

    status: str = "alive"


class Ready(BaseModel):
    """What was looked at, each `ok`."""

    status: str = "ready"
    checks: dict[str, str]


class Health:
    """Looks at what a charge needs. However many ask, one looks at a time, and at most once a second."""

    def __init__(self, accountant: Accountant, settings: Settings, load: Load) -> None:
        self._accountant, self._load = accountant, load
        self._folders = [folder for folder in (_folder_of(accountant), settings.reports) if folder is not None]
        self._looking: anyio.CapacityLimiter | None = None
        self._seen: tuple[float, dict[str, str | None]] = float("-inf"), {}
        self._told: set[str] = set()

    async def check(self) -> dict[str, str | None]:
        """What is wrong, or None, by what was looked at."""
        if self._looking is None:
            self._looking = anyio.CapacityLimiter(1)
        found: dict[str, str | None] = {"schema": f"no answer within {SECONDS:g} s"}
        with anyio.move_on_after(SECONDS):
            found = await anyio.to_thread.run_sync(self._look, abandon_on_cancel=True, limiter=self._looking)
        found = {**found, "draining": "it is about to end" if self._load.draining else None}
        self._tell(found)
        return found

    def _look(self) -> dict[str, str | None]:
        if time.monotonic() - self._seen[0] > _FRESH_SECONDS:
            self._seen = time.monotonic(), {**self._accountant.ledger.check_up(), "disk": self._room()}
        return self._seen[1]

    def _room(self) -> str | None:
        """What is wrong with the disks on which this process writes."""
        for folder in self._folders:
            try:
                free = shutil.disk_usage(folder).free
            except OSError as error:
                return f"{folder}: {error.strerror}"
            if free < LEAST_ROOM:
                return f"{folder}: expected at least {LEAST_ROOM} bytes of room; found {free}"
        return None

    def _tell(self, found: dict[str, str | None]) -> None:
        """Have the log say what is wrong, once for as long as it is."""
        wrong = {name: why for name, why in found.items() if why is not None}
        if wrong.keys() != self._told:
            _log.warning("not ready" if wrong else "ready", extra={"said": {"checks": wrong}})
            self._told = set(wrong)


def _folder_of(accountant: Accountant) -> Path | None:
    """Where the ledger lies, if that is on a disk of this machine."""
    place = Path(accountant.name)
    return place.parent if place.is_absolute() else None


@router.get("/livez")
async def livez() -> Alive:
    """Whether the process answers."""
    return Alive()


@router.get("/readyz", response_model=Ready, responses={503: documented("not-ready")[503]})
async def readyz(request: Request) -> Response:
    """Whether somebody could be charged: the ledger's tables, its key, the clock, the disk, and no end in sight."""
    found = await request.app.state.health.check()
    wrong = [name for name, why in found.items() if why is not None]
    checks = {name: "ok" if why is None else "failed" for name, why in found.items()}
    if wrong:
        return problem("not-ready", f"not ready: {', '.join(wrong)}", {"checks": checks})
    return JSONResponse({"status": "ready", "checks": checks})
