"""Which mechanisms there are: collected from plugins, one at a time, so that a broken one hurts nobody else.

A plugin is a distribution with an entry point in the group `ldp_budget` that names a module with a
`register_mechanisms` hook. The package's own mechanisms come the same way and are collected first, and so do the
names that its front ends reserve. Setting the environment variable `LDP_BUDGET_NO_PLUGINS` to anything but 0 leaves
third parties' plugins out.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections import defaultdict
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from itertools import chain
from typing import TYPE_CHECKING

import pluggy

from .._validation import check_name
from ..errors import PluginError, UnknownName
from ..sdk.mechanism import Mechanism, guarantee_error
from . import hookspecs

if TYPE_CHECKING:
    from collections.abc import Iterable

GROUP = "ldp_budget"
OWN_DISTRIBUTION = "ldp-budget"
NO_PLUGINS = "LDP_BUDGET_NO_PLUGINS"

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Plugin:
    """A distribution that brings mechanisms. `failed` says why it could not be used; empty if it can.

    `reserved` are names that no field of a mechanism may have; only front ends of our own reserve any.
    """

    name: str
    version: str
    mechanisms: tuple[type[Mechanism], ...] = ()
    failed: str = ""
    reserved: frozenset[str] = frozenset()
    hooks: pluggy.HookRelay | None = field(default=None, compare=False, repr=False)
    """Where it is asked about other libraries' objects, see `foreign`; None where it cannot be used."""

    @property
    def own(self) -> bool:
        return self.name == OWN_DISTRIBUTION

    @property
    def claims(self) -> list[str]:
        """Every name and alias that its mechanisms want."""
        return [name for mechanism in self.mechanisms for name in (mechanism.name, *mechanism.aliases)]

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


class Registry:
    """The plugins found, and the mechanisms of those that work, by name and alias.

    A name belongs to one plugin. Our own keep theirs; third parties that want the same name all fail, so that
    none wins by the order of loading: the name stands in fingerprints.
    """

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        plugins = list(plugins)
        self._clashes = _clashes(plugins)
        self.plugins = [self._settled(plugin) for plugin in plugins]
        self._by_name: dict[str, tuple[type[Mechanism], Plugin]] = {}
        for plugin in self.plugins:
            for mechanism in plugin.mechanisms:
                for name in (mechanism.name, *mechanism.aliases):
                    self._by_name.setdefault(name, (mechanism, plugin))

    @classmethod
    def collect(cls, found: Iterable[EntryPoint]) -> Registry:
        """Load each entry point on its own; our own first, the others by name so that order is stable."""
        ordered = sorted(found, key=lambda point: (_distribution(point)[0] != OWN_DISTRIBUTION, point.name))
        plugins: list[Plugin] = []
        for point in ordered:
            plugins.append(load_plugin(point, _reserved(plugins)))
        return cls(plugins)

    @property
    def reserved(self) -> frozenset[str]:
        """The names that no field of a mechanism may have."""
        return _reserved(self.plugins)

    def _settled(self, plugin: Plugin) -> Plugin:
        """The plugin, failed where it wants a name that is not its alone."""
        lost = [name for name in plugin.claims if name in self._clashes]
        if plugin.own or not lost:
            return plugin
        return Plugin(plugin.name, plugin.version, failed=self._clashes[lost[0]])

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
    found, unreadable = _installed()
    if os.environ.get(NO_PLUGINS, "0") not in ("", "0"):
        return Registry.collect(point for point in found if _distribution(point)[0] == OWN_DISTRIBUTION)
    collected = Registry.collect(found)
    collected.plugins += unreadable
    return collected


def mechanism(name: str) -> type[Mechanism]:
    """The mechanism class of a name or alias. Calibrated, or called with its parameters, it gives a mechanism.

    Parameters:
        name: such as "oue".

    Raises:
        UnknownName: no mechanism that is installed and works is called so.
        PluginError: several plugins want that name.
        InvalidParameter: the name is no text.
    """
    check_name("name", name)
    return registry().mechanism(name)


def mechanisms() -> list[type[Mechanism]]:
    """Every mechanism class that is installed and works."""
    return [cls for cls, _ in registry().items()]


def load_plugin(point: EntryPoint, reserved: frozenset[str]) -> Plugin:
    """Import one plugin and run its hooks; whatever goes wrong becomes `Plugin.failed`.

    `reserved` are the names that the fields of its mechanisms may not have.
    """
    name, version = _distribution(point)
    try:
        # Standard output belongs to the command: what a plugin prints must not end up in its JSON.
        with redirect_stdout(sys.stderr):
            hook = _hooks_of(point.load(), name)
            mechanisms = _registered(hook, reserved)
            reserved_too = frozenset(chain(*hook.reserve_options()))
            return Plugin(name, version, mechanisms, reserved=reserved_too, hooks=hook)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Plugin(name, version, failed=_why(error))


def _why(error: BaseException) -> str:
    """What went wrong, on one line."""
    text = error.why if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split()).rstrip(":")


def _installed() -> tuple[list[EntryPoint], list[Plugin]]:
    """The entry points of our group, and failed plugins for distributions whose entry points cannot be read."""
    try:
        return list(entry_points(group=GROUP)), []
    except Exception:
        # One broken file anywhere spoils the whole answer; asked one by one, the others still give theirs.
        return _installed_one_by_one()


def _installed_one_by_one() -> tuple[list[EntryPoint], list[Plugin]]:
    points: list[EntryPoint] = []
    unreadable: list[Plugin] = []
    seen: set[str] = set()
    for distribution in distributions():
        name, version = _named(distribution)
        # Of two with one name, the first on the path is the one that gets imported.
        if name in seen:
            continue
        if name:
            seen.add(name)
        try:
            points += distribution.entry_points.select(group=GROUP)
        except Exception as error:
            why = f"its entry points cannot be read: {_why(error)}"
            unreadable.append(Plugin(name or "a distribution without a name", version, failed=why))
    return points, unreadable


def _reserved(plugins: Iterable[Plugin]) -> frozenset[str]:
    return frozenset().union(*(plugin.reserved for plugin in plugins))


def _hooks_of(module: object, name: str) -> pluggy.HookRelay:
    """The hooks that a module implements. A manager of its own keeps its mistakes to itself."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(module)
    manager.check_pending()
    hooks = {caller.name for caller in manager.get_hookcallers(module) or ()}
    if not hooks:
        raise PluginError(name, "it implements no hook; expected register_mechanisms(register)")
    if "reserve_options" in hooks and name != OWN_DISTRIBUTION:
        raise PluginError(name, f"it implements reserve_options, which is for the front ends of {OWN_DISTRIBUTION}")
    return manager.hook


def _registered(hook: pluggy.HookRelay, reserved: frozenset[str]) -> tuple[type[Mechanism], ...]:
    """The mechanisms that a hook registers, each of them checked."""
    found: list[type[Mechanism]] = []

    def register(mechanism: type[Mechanism]) -> None:
        check_mechanism(mechanism, reserved)
        found.append(mechanism)

    hook.register_mechanisms(register=register)
    return tuple(found)


def check_mechanism(candidate: object, reserved: frozenset[str]) -> None:
    """Raise `PluginError` unless `candidate` is a mechanism class whose names and fields can be used.

    `reserved` are names that fields may not have: what is an option of a command could never be set by it.
    """
    if not (isinstance(candidate, type) and issubclass(candidate, Mechanism)):
        raise PluginError(repr(candidate), f"registered {candidate!r}, which is no subclass of Mechanism")
    label = candidate.__qualname__
    if isinstance(candidate.aliases, str):
        raise PluginError(label, f"{label} has the aliases {candidate.aliases!r}; expected a tuple of names")
    names = (getattr(candidate, "name", ""), *candidate.aliases)
    bad = [name for name in names if not (isinstance(name, str) and _NAME.fullmatch(name))]
    if bad:
        raise PluginError(label, f"{label} has the name {bad[0]!r}; expected lower-case words joined by hyphens")
    if candidate.guarantee is Mechanism.guarantee:
        raise PluginError(label, f"{label} defines no guarantee")
    taken = sorted(reserved & set(candidate.fields))
    if taken:
        raise PluginError(label, f"{label} has a field {taken[0]!r}, which is an option of the commands")
    # A field that reads as text from the class, as `source` does, takes nothing from whoever asks the class.
    hidden = sorted(name for name in set(dir(Mechanism)) & set(candidate.fields) if not _still_text(candidate, name))
    if hidden:
        raise PluginError(label, f"{label} has a field {hidden[0]!r}, which hides what every mechanism has")
    if wrong := guarantee_error(candidate):
        raise PluginError(label, wrong)


def _still_text(candidate: type[Mechanism], name: str) -> bool:
    return isinstance(getattr(Mechanism, name), str) and isinstance(getattr(candidate, name), str)


def _clashes(plugins: list[Plugin]) -> dict[str, str]:
    """Every name that is wanted more than once, and by whom, in words."""
    claimants = defaultdict(list)
    for plugin in plugins:
        for name in plugin.claims:
            claimants[name].append(str(plugin))
    return {name: _clash(name, claims) for name, claims in claimants.items() if len(claims) > 1}


def _clash(name: str, claimants: list[str]) -> str:
    who = sorted(set(claimants), key=claimants.index)
    if len(who) == 1:
        return f"the mechanism name {name!r} is registered {len(claimants)} times by {who[0]}"
    return f"the mechanism name {name!r} is registered by {' and '.join(who)}"


def _distribution(point: EntryPoint) -> tuple[str, str]:
    """The name and version of the distribution that brings an entry point; its address where it has no name."""
    name, version = ("", "") if point.dist is None else _named(point.dist)
    return name or point.value, version


def _named(distribution: Distribution) -> tuple[str, str]:
    """The name and version of a distribution, as far as its metadata can be read."""
    try:
        return distribution.name or "", distribution.version or ""
    except Exception:
        return "", ""
