"""What the shell offers after a tab: names that stand in the ledger.

Nothing is made, nothing is said and nothing fails: where there is no ledger in a file, or it cannot be read, there is
nothing to offer. A server is not asked, for somebody is waiting at a prompt.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from .app import is_path, ledger_path

if TYPE_CHECKING:
    from collections.abc import Callable

    import click

    from ldp_budget.accounting.accountant import Accountant


def _names(ctx: click.Context, incomplete: str, read: Callable[[Accountant], list[str]]) -> list[str]:
    """The names of a ledger that begin like this."""
    with suppress(Exception):
        path = ledger_path(ctx)
        if is_path(path) and os.path.exists(path):
            from ldp_budget.accounting.accountant import Accountant

            with Accountant(path, create=False) as accountant:
                return [name for name in read(accountant) if name.startswith(incomplete)]
    return []


def collection_names(ctx: click.Context, parameter: click.Parameter | None, incomplete: str) -> list[str]:
    """The collections of the ledger."""
    return _names(ctx, incomplete, lambda ledger: [str(each["name"]) for each in ledger.collections()])


def policy_names(ctx: click.Context, parameter: click.Parameter | None, incomplete: str) -> list[str]:
    """The policies of the ledger."""
    return _names(ctx, incomplete, lambda ledger: [policy.name for policy in ledger.policies()])
