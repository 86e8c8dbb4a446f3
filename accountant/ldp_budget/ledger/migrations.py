"""Migrations: how the tables of a released version become those of a later one.

A migration has two steps. `pre` runs while the version before still charges: it may only add a table, which that version
does not see, and it may take long. `post` runs in one short transaction, after which the tables have
the new version. An open process of the version before then refuses each charge and read, by `LedgerUpgraded`.

SQLite's migrations are applied by sqlite-utils, see `sqlite.migrations`; those of PostgreSQL are numbered SQL files, see
`ldp_budget_postgres.migrations`.
"""

from __future__ import annotations

from typing import NamedTuple

PRE, POST = "pre", "post"


class Migration(NamedTuple):
    """The change of the tables to a version: SQL statements of the two steps."""

    version: int
    pre: tuple[str, ...] = ()
    post: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, str]:
        """The names under which the two steps are recorded."""
        return f"v{self.version}_{PRE}", f"v{self.version}_{POST}"
