"""Every mechanism as a row, and every plugin that could not be used, with the reason."""

from __future__ import annotations

from typing import Any

from ..guarantees.evidence import EXACT
from ._proved_ranges import proved_range
from .certificates import checked
from .plugins import Plugin, registry


def mechanism_rows() -> list[dict[str, Any]]:
    """What `mechanisms --json` prints."""
    rows = [
        _row(mechanism.name, mechanism.aliases, plugin, checked(mechanism), mechanism.summary, mechanism.source)
        for mechanism, plugin in registry().items()
    ]
    return rows + [_row("-", (), plugin, "no", "", "") for plugin in registry().plugins if plugin.failed]


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
        "proved": proved_range(name) if checked == EXACT and plugin.own else "",
        "summary": summary,
        "source": source,
    }
