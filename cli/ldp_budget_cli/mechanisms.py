"""`ldp-budget mechanisms`."""

from __future__ import annotations

from typing import Any

import click

from ldp_budget.catalogue.certificates import checked
from ldp_budget.catalogue.plugins import Plugin, registry

from .output import print_row_table, print_rows, rows_options


@click.command()
@rows_options
def mechanisms(form: str | None) -> None:
    """List the mechanisms there are; a plugin that could not be used is listed with the reason."""
    rows = [
        _row(mechanism.name, mechanism.aliases, plugin, checked(mechanism), mechanism.summary, mechanism.source)
        for mechanism, plugin in registry().items()
    ]
    rows += [_row("-", (), plugin, "no", "", "") for plugin in registry().plugins if plugin.failed]
    if form is not None:
        print_rows(rows, form)
    else:
        print_row_table(rows)


def _row(
    name: str, aliases: tuple[str, ...], plugin: Plugin, checked: str, summary: str, source: str
) -> dict[str, Any]:
    return {
        "name": name,
        "aliases": list(aliases),
        "plugin": plugin.name,
        "plugin_version": plugin.version,
        "status": f"failed: {plugin.failed}" if plugin.failed else "ok",
        "checked": checked,
        "summary": summary,
        "source": source,
    }
