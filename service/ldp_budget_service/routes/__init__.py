"""The routes, one file for each subject."""

from . import (
    balances,
    batch,
    collections,
    housekeeping,
    kinds,
    ledger,
    lookups,
    me,
    mechanisms,
    overview,
    policies,
    questions,
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
    kinds.router,
    ledger.router,
    lookups.router,
    me.router,
    mechanisms.router,
    overview.router,
    policies.router,
    questions.router,
    reports.router,
    reservations.router,
    spends.router,
    users.router,
)
