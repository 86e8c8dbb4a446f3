"""Application factory: routes, middleware, error handlers and shared state."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi

import ldp_budget
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.invitations import Invitations

from . import auth, html_pages, problems, publications, schemas
from .approvals import Approvals
from .compute_pool import Workers
from .error_codes import as_json
from .observability import health, metrics
from .observability.logs import Watched
from .observability.verification import Verifications
from .report_store import Collections, Inboxes
from .request_limits import AdmissionMiddleware, Load, Rate
from .request_target import Methods, RawPathMiddleware
from .routes import ROUTERS as ROUTES
from .routes.spends import PlainRoutes
from .settings import Settings
from .usage_cache import UsageCache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ldp_budget import Accountant

_ABOUT = """Privacy budgets under local differential privacy: charge users for their reports, or refuse.

Errors are problem details (RFC 9457) whose `type` ends in the code of the error. Requests that charge
need an `Idempotency-Key`. The header `Journal-Position` of an answer is the position of the journal.
"""

ROUTERS = (*ROUTES, health.router, metrics.router, html_pages.router, publications.router)

ESTIMATE_BYTES = 2 << 30
"""Maximum address space of a process that estimates, in bytes."""

LARGE = ("/v1/spends:batch",)
"""Paths that limit the size of their bodies themselves."""


METHODS = ("GET", "POST", "PUT", "DELETE")
SENT_HEADERS = (
    *("Authorization", "Content-Type", "Idempotency-Key", "If-None-Match"),
    *("X-Collection", "X-Label", "X-User", "Charge-Mark", "Report-Mark", "Proof-Token"),
)
"""The request headers that a page of another origin may send."""
READ_HEADERS = (
    *("ETag", "Idempotency-Replayed", "Journal-Position", "Next-Entry", "Retry-After"),
    *("Charge-Mark", "Report-Mark"),
)
"""The response headers that such a page may read."""


def create_app(accountant: Accountant, settings: Settings | None = None) -> FastAPI:
    """Return the service of a ledger.

    The caller keeps the accountant and closes it; the app never does. Calculations run in worker processes, which
    import the main module. So guard the start of a script of your own by `if __name__ == "__main__"`.

    Parameters:
        accountant: the ledger to serve.
        settings: the settings of the service; None: `Settings()`.
    """
    settings = settings or Settings()
    app = FastAPI(
        title="ldp-budget",
        version=ldp_budget.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.accountant, app.state.settings = accountant, settings
    app.state.keys, app.state.verifying = ApiKeys(accountant), threading.Lock()
    app.state.callers, app.state.reading_keys = {}, None
    app.state.collections, app.state.invitations = Collections(accountant), Invitations(accountant)
    app.state.usage, app.state.approvals = UsageCache(accountant, settings.usage_seconds), Approvals(accountant)
    app.state.inboxes = Inboxes(accountant)
    app.state.workers = Workers(settings.question_processes, settings.question_seconds)
    app.state.estimates = Workers(settings.estimate_processes, settings.estimate_seconds, ESTIMATE_BYTES)
    app.state.verifications = Verifications(accountant, settings.verify_hours)
    app.state.rates, app.state.load = Rate(settings.rate, settings.burst), Load()
    app.state.respondents = Rate(settings.respondent_rate, settings.respondent_burst)
    app.state.health = health.Health(accountant, app.state.load)
    app.state.metrics = metrics.Metrics(accountant, app.state)
    problems.install(app)
    html_pages.show_missing(app)
    _watch(app, settings)
    for router in ROUTERS:  # used directly: `include_router` would rebuild each route for the first request
        app.router.routes.extend(router.routes)

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, routes=app.routes, description=_ABOUT)
            app.openapi_schema = problems.in_openapi(schema)
            schemas.add_to(app.openapi_schema)
            auth.add_to(app.openapi_schema)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    _add_description(app)
    return app


def _add_description(app: FastAPI) -> None:
    """Add `/openapi.json`. It is written once, and not for each request as the framework does."""
    written = cache(lambda: as_json(app.openapi()).encode())

    async def description(request: Request) -> Response:
        return Response(written(), media_type="application/json")

    app.router.add_route("/openapi.json", description, include_in_schema=False)


def _watch(app: FastAPI, settings: Settings) -> None:
    """Add the middleware. The last one added is the outermost."""
    app.add_middleware(Methods, ROUTERS)
    app.add_middleware(RawPathMiddleware)
    app.add_middleware(PlainRoutes)
    app.add_middleware(AdmissionMiddleware, settings, app.state.load, partial(auth.is_known, app.state), LARGE)
    if settings.tracing:
        from .observability.logs import Traced

        app.add_middleware(Traced)
    if settings.origins:
        from starlette.middleware.cors import CORSMiddleware

        # Without credentials: a page sends its key or invitation in a header, never a cookie.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=METHODS,
            allow_headers=SENT_HEADERS,
            expose_headers=READ_HEADERS,
        )
    app.add_middleware(Watched, app.state.metrics)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Set the thread limit and verify the ledger at intervals for as long as the application runs."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = app.state.settings.threads
    app.state.verifications.start()
    try:
        yield
    finally:
        app.state.verifications.stop()
