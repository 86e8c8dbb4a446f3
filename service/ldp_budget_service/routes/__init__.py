"""The routes, one module per subject."""

from .. import request_target  # noqa: F401  # registers the path convertor `:name`
from . import calculations, collections, ledger, policies, reservations, spends, statements, users

ROUTERS = (
    spends.router,  # first: the routers are searched in this order for each request
    users.balances_router,
    spends.batch_router,
    collections.router,
    ledger.housekeeping_router,
    calculations.kinds_router,
    ledger.router,
    users.lookups_router,
    collections.me_router,
    calculations.mechanisms_router,
    policies.officer_router,
    ledger.overview_router,
    policies.router,
    policies.proposals_router,
    calculations.router,
    collections.reports_router,
    reservations.router,
    users.router,
    statements.router,
)
