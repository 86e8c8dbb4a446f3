"""Which plugin is meant by a name."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, packages_distributions, version

from ...catalogue.plugins import GROUP, Plugin, load_plugin
from ...errors import UnknownName


def find_plugin(name: str) -> Plugin:
    """The plugin that `name` means: a distribution or its entry point, or else a module that can be imported.

    It is loaded on its own; `Plugin.failed` says what is wrong with it. Raises `UnknownName`.
    """
    for point in entry_points(group=GROUP):
        distribution = "" if point.dist is None else point.dist.name
        if name in (point.name, point.value, distribution):
            return load_plugin(point)
    try:
        import_module(name)
    except ImportError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            known = [point.name for point in entry_points(group=GROUP)]
            raise UnknownName("plugin or module", name, known) from None
    except Exception:
        pass  # told when it is loaded
    plugin = load_plugin(EntryPoint(name=name, value=name, group=GROUP))
    brought_by, its_version = _brought_by(name)
    return replace(plugin, name=brought_by, version=its_version)


def _brought_by(module: str) -> tuple[str, str]:
    """The distribution that a module came in; one that came in none has its own name and no version."""
    names = packages_distributions().get(module.partition(".")[0], [])
    return (names[0], version(names[0])) if names else (module, "")
