"""Which plugin is meant by a name."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from itertools import chain

from ...catalogue.plugins import GROUP, Plugin, load_plugin, registry
from ...errors import UnknownName


def find_plugin(name: str) -> Plugin:
    """The plugin that `name` means: a distribution or its entry point, or else a module that can be imported.

    It is loaded on its own; `Plugin.failed` says what is wrong with it. Raises `UnknownName`.
    """
    found = [_loaded(point) for point in entry_points(group=GROUP) if name in _names_of(point)]
    if found:
        return _joined(found)
    try:
        import_module(name)
    except ImportError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise UnknownName("plugin or module", name, _known()) from None
    except Exception:
        pass  # told when it is loaded
    plugin = _loaded(EntryPoint(name=name, value=name, group=GROUP))
    brought_by, its_version = _brought_by(name)
    return replace(plugin, name=brought_by, version=its_version)


def _names_of(point: EntryPoint) -> tuple[str, ...]:
    return (point.name, point.value, "" if point.dist is None else point.dist.name)


def _loaded(point: EntryPoint) -> Plugin:
    return load_plugin(point, registry().reserved)


def _joined(parts: list[Plugin]) -> Plugin:
    """The plugin of a distribution with several entry points; one of them that failed stands for all."""
    for part in parts:
        if part.failed:
            return part
    return replace(parts[0], mechanisms=tuple(chain(*(part.mechanisms for part in parts))))


def _known() -> list[str]:
    """The entry points that bring mechanisms, or fail to."""
    found = {point.name: _loaded(point) for point in entry_points(group=GROUP)}
    return [name for name, plugin in found.items() if plugin.mechanisms or plugin.failed]


def _brought_by(module: str) -> tuple[str, str]:
    """The distribution that a module came in; one that came in none has its own name and no version."""
    top = module.partition(".")[0]
    found = next((each for each in distributions() if _brings(each, top)), None)
    return (module, "") if found is None else (found.metadata["Name"], found.version)


def _brings(found: Distribution, top: str) -> bool:
    """Whether `top` is among its modules. The list of its files is searched as text: a path made of each is dear."""
    declared = (found.read_text("top_level.txt") or "").split()
    if declared:
        return top in declared
    return re.search(rf"^{re.escape(top)}(/.*)?\.py,", found.read_text("RECORD") or "", re.MULTILINE) is not None
