"""The routes, one file for each subject."""

from . import (
    balances,
    batch,
    collections,
    housekeeping,
    ledger,
    lookups,
    me,
    mechanisms,
    overview,
    policies,
    reports,
    reservations,
    spends,
    users,
)

ROUTERS = (
    balances.router,
    batch.router,
    collections.router,
    housekeeping.router,
    ledger.router,
    lookups.router,
    me.router,
    mechanisms.router,
    overview.router,
    policies.router,
    reports.router,
    reservations.router,
    spends.router,
    users.router,
)
