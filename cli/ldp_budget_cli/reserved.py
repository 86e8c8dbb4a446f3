"""The names that the commands take for options of their own, and that no mechanism's field may have.

Every process that looks for mechanisms reads this module, so it imports nothing of the command line.
"""

from __future__ import annotations

from ldp_budget.catalogue.hookspecs import hookimpl

OPTIONS = (
    "adjust",
    "all",
    "at",
    "by_round",
    "candidates",
    "categories",
    "checked",
    "client",
    "clip",
    "collection",
    "column",
    "confidence",
    "contact",
    "csv",
    "delimiter",
    "digest",
    "distribution",
    "encoding",
    "every",
    "expect",
    "expires",
    "for",
    "from",
    "give_up",
    "help",
    "inbox",
    "independent",
    "json",
    "key",
    "label",
    "languages",
    "ledger",
    "limit",
    "mechanism",
    "missing",
    "nl",
    "no_header",
    "note",
    "numeric",
    "once",
    "out",
    "overlap",
    "plan",
    "plan_delta",
    "plot",
    "policy",
    "purpose",
    "question",
    "refused_to",
    "rehearsal",
    "relation",
    "reports",
    "samples",
    "scope",
    "secret",
    "share",
    "shuffled",
    "skip_invalid",
    "skipped_to",
    "spend",
    "title",
    "to",
    "top",
    "total_delta",
    "total_epsilon",
    "tsv",
    "unbounded",
    "unknown",
    "user",
    "user_column",
    "users",
    "version",
)


@hookimpl
def reserve_options() -> tuple[str, ...]:
    """Keep the options of the commands from mechanisms."""
    return OPTIONS
