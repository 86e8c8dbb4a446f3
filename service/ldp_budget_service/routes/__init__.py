"""The routes, one file for each subject."""

from .. import paths  # noqa: F401  # what `:name` in a route means
from . import (
    alerts,
    balances,
    batch,
    collections,
    housekeeping,
    kinds,
    ledger,
    lookups,
    me,
    mechanisms,
    officer,
    overview,
    policies,
    proposals,
    questions,
    reports,
    reservations,
    spends,
    users,
)

ROUTERS = (
    spends.router,  # first, as they are looked through in this order for each request
    alerts.router,
    balances.router,
    batch.router,
    collections.router,
    housekeeping.router,
    kinds.router,
    ledger.router,
    lookups.router,
    me.router,
    mechanisms.router,
    officer.router,
    overview.router,
    policies.router,
    proposals.router,
    questions.router,
    reports.router,
    reservations.router,
    users.router,
)
