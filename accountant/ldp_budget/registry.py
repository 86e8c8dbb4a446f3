"""Which mechanisms there are: collected from plugins, one at a time, so that a broken one hurts nobody else.

A plugin is a distribution with an entry point in the group `ldp_budget` that names a module with a
`register_mechanisms` hook. The package's own mechanisms come the same way and are collected first. Setting the
environment variable `LDP_BUDGET_NO_PLUGINS` to anything but 0 leaves third parties' plugins out.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

import pluggy

from . import hookspecs
from .base import Mechanism
from .errors import PluginError, UnknownName

if TYPE_CHECKING:
    from collections.abc import Iterable

GROUP = "ldp_budget"
OWN_DISTRIBUTION = "ldp-budget"
NO_PLUGINS = "LDP_BUDGET_NO_PLUGINS"

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

# Options that the commands themselves take; a mechanism's field of the same name could never be set.
RESERVED_OPTIONS = frozenset(
    [
        "categories",
        "checked",
        "column",
        "digest",
        "expect",
        "expires",
        "help",
        "json",
        "key",
        "label",
        "ledger",
        "limit",
        "mechanism",
        "nl",
        "out",
        "plot",
        "policy",
        "refused_to",
        "relation",
        "reports",
        "samples",
        "secret",
        "spend",
        "total_delta",
        "total_epsilon",
        "unbounded",
        "user",
        "user_column",
        "users",
        "version",
    ]
)


@dataclass(frozen=True)
class Plugin:
    """A distribution that brings mechanisms. `failed` says why it could not be used; empty if it can."""

    name: str
    version: str
    mechanisms: tuple[type[Mechanism], ...] = ()
    failed: str = ""

    @property
    def own(self) -> bool:
        return self.name == OWN_DISTRIBUTION

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


@dataclass
class Registry:
    """The plugins found, and the mechanisms of those that work, by name and alias."""

    plugins: list[Plugin] = field(default_factory=list)
    _by_name: dict[str, tuple[type[Mechanism], Plugin]] = field(default_factory=dict)
    _clashes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def collect(cls, found: Iterable[EntryPoint]) -> Registry:
        """Load each entry point on its own; our own first, the others by name so that order is stable."""
        registry = cls()
        ordered = sorted(found, key=lambda point: (_distribution(point)[0] != OWN_DISTRIBUTION, point.name))
        for point in ordered:
            registry.add(load_plugin(point))
        return registry

    def add(self, plugin: Plugin) -> None:
        """Take the plugin's mechanisms in, or mark it failed where a name is already somebody else's."""
        for mechanism in plugin.mechanisms:
            for name in (mechanism.name, *mechanism.aliases):
                if name in self._by_name:
                    plugin = self._clash(name, plugin)
        self.plugins.append(plugin)
        if not plugin.failed:
            for mechanism in plugin.mechanisms:
                for name in (mechanism.name, *mechanism.aliases):
                    self._by_name[name] = (mechanism, plugin)

    def _clash(self, name: str, newcomer: Plugin) -> Plugin:
        holder = self._by_name[name][1]
        why = f"the mechanism name {name!r} is registered by both {holder} and {newcomer}"
        if not holder.own:
            # Neither third party may win by the order of loading: its name stands in fingerprints.
            self._fail(holder, why)
            self._clashes[name] = why
        return Plugin(newcomer.name, newcomer.version, failed=why)

    def _fail(self, plugin: Plugin, why: str) -> None:
        self.plugins[self.plugins.index(plugin)] = Plugin(plugin.name, plugin.version, failed=why)
        mine = [name for name, (_, owner) in self._by_name.items() if owner == plugin]
        for name in mine:
            del self._by_name[name]

    def mechanism(self, name: str) -> type[Mechanism]:
        """The mechanism of that name or alias. Raises `UnknownName`, or `PluginError` for a clash."""
        if name in self._by_name:
            return self._by_name[name][0]
        if name in self._clashes:
            raise PluginError(name, self._clashes[name])
        failed = [f"{plugin} ({plugin.failed})" for plugin in self.plugins if plugin.failed]
        hint = f"Plugins that failed to load: {'; '.join(failed)}" if failed else ""
        raise UnknownName("mechanism", name, self.names(), hint)

    def names(self) -> list[str]:
        """Every mechanism's own name, in the order of collection."""
        return [cls.name for cls, _ in self.items()]

    def items(self) -> list[tuple[type[Mechanism], Plugin]]:
        """Each mechanism once, with the plugin it comes from."""
        return [entry for name, entry in self._by_name.items() if name == entry[0].name]


@functools.cache
def registry() -> Registry:
    """The plugins installed here, collected once per process."""
    found = entry_points(group=GROUP)
    if os.environ.get(NO_PLUGINS, "0") not in ("", "0"):
        return Registry.collect(point for point in found if _distribution(point)[0] == OWN_DISTRIBUTION)
    return Registry.collect(found)


def mechanism(name: str) -> type[Mechanism]:
    """The mechanism class called `name` (or one of its aliases). Raises `UnknownName`."""
    return registry().mechanism(name)


def mechanisms() -> list[type[Mechanism]]:
    """Every mechanism that is installed and works."""
    return [cls for cls, _ in registry().items()]


def load_plugin(point: EntryPoint) -> Plugin:
    """Import one plugin and run its hook; whatever goes wrong becomes `Plugin.failed`."""
    name, version = _distribution(point)
    try:
        return Plugin(name, version, _registered(point.load(), name))
    except (Exception, SystemExit) as error:
        why = error.why if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
        return Plugin(name, version, failed=" ".join(why.split()))


def _registered(module: object, name: str) -> tuple[type[Mechanism], ...]:
    """What the module's hook registers. A manager of its own keeps its mistakes to itself."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(module)
    manager.check_pending()
    if not manager.get_hookcallers(module):
        raise PluginError(name, "it implements no hook; expected register_mechanisms(register)")
    found: list[type[Mechanism]] = []

    def register(mechanism: type[Mechanism]) -> None:
        check_mechanism(mechanism)
        found.append(mechanism)

    manager.hook.register_mechanisms(register=register)
    return tuple(found)


def check_mechanism(candidate: object) -> None:
    """Raise `PluginError` unless `candidate` is a mechanism class whose names and fields can be used."""
    if not (isinstance(candidate, type) and issubclass(candidate, Mechanism)):
        raise PluginError(repr(candidate), f"registered {candidate!r}, which is no subclass of Mechanism")
    label = candidate.__qualname__
    names = (getattr(candidate, "name", ""), *candidate.aliases)
    bad = [name for name in names if not (isinstance(name, str) and _NAME.fullmatch(name))]
    if bad:
        raise PluginError(label, f"{label} has the name {bad[0]!r}; expected lower-case words joined by hyphens")
    if candidate.guarantee is Mechanism.guarantee:
        raise PluginError(label, f"{label} defines no guarantee")
    taken = sorted(RESERVED_OPTIONS & set(candidate.fields))
    if taken:
        raise PluginError(label, f"{label} has a field {taken[0]!r}, which is an option of the commands")


def _distribution(point: EntryPoint) -> tuple[str, str]:
    """The name and version of the distribution that brings an entry point."""
    if point.dist is None:
        return point.value, ""
    return point.dist.name, point.dist.version
