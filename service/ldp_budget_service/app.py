"""The application: routes, errors, and what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from ldp_budget.access.keys import ApiKeys

import ldp_budget

from . import problems
from .held import Collections
from .in_flight import InFlight
from .paths import Undecoded
from .routes import balances, collections, ledger, mechanisms, policies, reservations, spends, users
from .settings import Settings

if TYPE_CHECKING:
    from ldp_budget import Accountant

_ABOUT = """Privacy budgets under local differential privacy: charge users for their reports, or refuse.

Errors are problem details (RFC 9457) whose `type` ends in the code of the error. Whatever charges asks for an
`Idempotency-Key`; answers say in `Journal-Position` how far the journal was.
"""

ROUTERS = (
    spends.router,
    reservations.router,
    users.router,
    policies.router,
    collections.router,
    mechanisms.router,
    balances.router,
    ledger.router,
)


def create_app(accountant: Accountant, settings: Settings | None = None) -> FastAPI:
    """The service of a ledger. The accountant stays the caller's: it is closed by whoever opened it.

    Parameters:
        accountant: of the ledger.
        settings: how the service behaves; None: as `Settings()` says.

    Raises:
        Nothing.
    """
    app = FastAPI(
        title="ldp-budget", version=ldp_budget.__version__, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.state.accountant, app.state.settings = accountant, settings or Settings()
    app.state.keys, app.state.in_flight = ApiKeys(accountant), InFlight()
    app.state.collections = Collections(accountant)
    problems.install(app)
    app.add_middleware(Undecoded)
    for router in ROUTERS:
        app.include_router(router)

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, routes=app.routes, description=_ABOUT)
            app.openapi_schema = problems.in_openapi(schema)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    return app
