"""Other libraries' objects as guarantees, so that an accountant charges what they draw."""

from __future__ import annotations

from ldp_budget.catalogue.hookspecs import hookimpl
from ldp_budget.guarantees import Guarantee


@hookimpl
def guarantee_of(thing: object) -> Guarantee | None:
    """Nothing is known of any library yet."""
    return None
