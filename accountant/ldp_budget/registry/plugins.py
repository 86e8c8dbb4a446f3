"""Plugin discovery: mechanisms are collected plugin by plugin, so that a broken plugin affects no other.

A plugin is a distribution with an entry point in the group `ldp_budget` that names a module with a hook, such as
`register_mechanisms`. The built-in mechanisms come the same way and are collected first. Set the environment variable
`LDP_BUDGET_NO_PLUGINS` to anything but 0 to ignore third-party plugins.
"""

from __future__ import annotations

import functools
import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from typing import TYPE_CHECKING

import pluggy

from .._validation import check_name
from ..errors import PluginError, UnknownName
from ..sdk.mechanism import Mechanism, guarantee_error
from . import hookspecs, importing, taken_names
from .hookspecs import Deferred

if TYPE_CHECKING:
    from collections.abc import Iterable

GROUP = "ldp_budget"
OWN_DISTRIBUTION = "ldp-budget"
NO_PLUGINS = "LDP_BUDGET_NO_PLUGINS"

RESERVED_NAME = "questionnaire"
"""The mechanism of surveys, which is made from other mechanisms and is in no plugin."""

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
"""The names of mechanisms, and of commands of plugins."""
_SDK = "ldp_budget.sdk."


@dataclass(frozen=True)
class Plugin:
    """A distribution with mechanisms. `failed` is the reason why it cannot be used; empty if it works."""

    name: str
    version: str
    registered: tuple[type[Mechanism] | Deferred, ...] = ()
    failed: str = ""
    hooks: pluggy.HookRelay | None = field(default=None, compare=False, repr=False)
    """The plugin's hooks, which `registry.third_party` calls for objects of other libraries; None if the plugin
    failed.
    """

    @property
    def own(self) -> bool:
        return self.name == OWN_DISTRIBUTION

    @property
    def mechanisms(self) -> tuple[type[Mechanism], ...]:
        """Its mechanism classes."""
        return tuple(_loaded(each) for each in self.registered)

    @property
    def claims(self) -> list[str]:
        """Every name and alias that its mechanisms request."""
        return [name for mechanism in self.registered for name in (mechanism.name, *mechanism.aliases)]

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


class Registry:
    """The installed plugins, and the mechanisms of the working ones by name and alias.

    A name belongs to one plugin. Built-in mechanisms keep their names. Third-party plugins that request the same
    name all fail: the name is part of fingerprints, so the order of loading must not decide.
    """

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        plugins = list(plugins)
        self._clashes = _clashes(plugins)
        self.plugins = [self._settled(plugin) for plugin in plugins]
        self._by_name: dict[str, tuple[type[Mechanism] | Deferred, Plugin]] = {}
        for plugin in self.plugins:
            for mechanism in plugin.registered:
                for name in (mechanism.name, *mechanism.aliases):
                    self._by_name.setdefault(name, (mechanism, plugin))

    @classmethod
    def collect(cls, found: Iterable[EntryPoint]) -> Registry:
        """Load each entry point separately: built-in ones first, the others by name, so that the order is stable."""
        ordered = sorted(found, key=lambda point: (_distribution(point)[0] != OWN_DISTRIBUTION, point.name))
        return cls([load_plugin(point) for point in ordered])

    def _settled(self, plugin: Plugin) -> Plugin:
        """The plugin, marked as failed if it requests a name that another plugin requests too."""
        lost = [name for name in plugin.claims if name in self._clashes]
        if plugin.own or not lost:
            return plugin
        return Plugin(plugin.name, plugin.version, failed=self._clashes[lost[0]])

    def mechanism(self, name: str) -> type[Mechanism]:
        """The mechanism with that name or alias. Raises `UnknownName`, or `PluginError` for a name conflict."""
        if name in self._by_name:
            return _loaded(self._by_name[name][0])
        if name in self._clashes:
            raise PluginError(name, self._clashes[name])
        failed = [f"{plugin} ({plugin.failed})" for plugin in self.plugins if plugin.failed]
        hint = f"Plugins that failed to load: {'; '.join(failed)}." if failed else ""
        raise UnknownName("mechanism", name, self.names(), hint)

    def names(self) -> list[str]:
        """Every mechanism's own name, in the order of collection."""
        return [name for name, (mechanism, _) in self._by_name.items() if name == mechanism.name]

    def items(self) -> list[tuple[type[Mechanism], Plugin]]:
        """Each mechanism once, with the plugin it comes from."""
        return [(_loaded(self._by_name[name][0]), self._by_name[name][1]) for name in self.names()]

    def plugin_of(self, mechanism: type[Mechanism]) -> Plugin | None:
        """The plugin that a mechanism class comes from; None if it is not registered."""
        found, plugin = self._by_name.get(str(getattr(mechanism, "name", "")), (None, None))
        return plugin if found is not None and _loaded(found) is mechanism else None


@functools.cache
def registry() -> Registry:
    """The installed plugins, collected once per process."""
    found, unreadable = _installed()
    if os.environ.get(NO_PLUGINS, "0") not in ("", "0"):
        return Registry.collect(point for point in found if _distribution(point)[0] == OWN_DISTRIBUTION)
    collected = Registry.collect(found)
    collected.plugins += unreadable
    return collected


def mechanism(name: str) -> type[Mechanism]:
    """The mechanism class for a name or alias. Call it with parameters, or calibrate it, to get a mechanism.

    Parameters:
        name: such as "oue".

    Raises:
        UnknownName: no installed, working mechanism has this name.
        PluginError: several plugins request this name.
        InvalidParameter: `name` is not a text.
    """
    check_name("name", name)
    return registry().mechanism(name)


def mechanisms() -> list[type[Mechanism]]:
    """Every installed, working mechanism class."""
    return [cls for cls, _ in registry().items()]


def load_plugin(point: EntryPoint) -> Plugin:
    """Import one plugin and run its hooks. Any error becomes `Plugin.failed`."""
    name, version = _distribution(point)
    try:
        with importing():
            hook = _hooks_of(point.load(), name)
            return Plugin(name, version, _registered(hook, name == OWN_DISTRIBUTION), hooks=hook)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Plugin(name, version, failed=_why(error))


def _why(error: BaseException) -> str:
    """The error on one line."""
    if isinstance(error, PluginError):
        text = f"{error.why}. {error.hint.rstrip('.')}" if error.hint else error.why
    else:
        text = f"{type(error).__name__}: {error}"
    return " ".join(text.split()).rstrip(":")


def _installed() -> tuple[list[EntryPoint], list[Plugin]]:
    """The entry points of the group, and a failed plugin for each distribution whose entry points cannot be read."""
    try:
        return list(entry_points(group=GROUP)), []
    except Exception:
        # One broken file anywhere fails the whole query; read one by one, the other distributions still work.
        return _installed_one_by_one()


def _installed_one_by_one() -> tuple[list[EntryPoint], list[Plugin]]:
    points: list[EntryPoint] = []
    unreadable: list[Plugin] = []
    seen: set[str] = set()
    for distribution in distributions():
        name, version = _named(distribution)
        # Of two distributions with one name, Python imports the first on the path.
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


_HOOKS = ("register_mechanisms", "register_commands", "guarantee_of", "source_of", "declaration_of")
"""The hooks for third-party plugins."""


def _hooks_of(module: object, name: str) -> pluggy.HookRelay:
    """The hooks that a module implements. A separate plugin manager isolates the module's mistakes."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(module)
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(name, str(error), hint=f"The hooks are {', '.join(_HOOKS)}.") from None
    hooks = {caller.name for caller in manager.get_hookcallers(module) or ()}
    if not hooks:
        raise PluginError(name, "it implements no hook", hint="Implement register_mechanisms(register).")
    return manager.hook


def _loaded(mechanism: type[Mechanism] | Deferred) -> type[Mechanism]:
    return mechanism.load() if isinstance(mechanism, Deferred) else mechanism


def _registered(hook: pluggy.HookRelay, own: bool) -> tuple[type[Mechanism] | Deferred, ...]:
    """The mechanisms that a hook registers, each one checked; tests check those of ldp-budget itself."""
    taken = frozenset() if own else taken_names()
    found: list[type[Mechanism] | Deferred] = []

    def register(mechanism: type[Mechanism] | Deferred) -> None:
        if not (own and isinstance(mechanism, Deferred)):
            check_mechanism(mechanism, taken)
        found.append(mechanism)

    hook.register_mechanisms(register=register)
    return tuple(found)


def check_mechanism(candidate: object, taken: frozenset[str]) -> None:
    """Raise `PluginError` unless `candidate` is a mechanism class with usable names, and no field has a `taken` name."""
    if not (isinstance(candidate, type) and issubclass(candidate, Mechanism)):
        raise PluginError(repr(candidate), f"it registered {candidate!r}, which is not a subclass of Mechanism")
    label = candidate.__qualname__
    if isinstance(candidate.aliases, str):
        raise PluginError(label, f"the aliases of {label} must be a tuple of names: got {candidate.aliases!r}")
    if clashes := sorted(taken & set(candidate.fields)):
        raise PluginError(
            label, f"{label} has a field {clashes[0]!r}, which is an option of the commands", hint="Rename the field."
        )
    names = (getattr(candidate, "name", ""), *candidate.aliases)
    bad = [name for name in names if not (isinstance(name, str) and NAME.fullmatch(name))]
    if RESERVED_NAME in names:
        raise PluginError(label, f"the name {RESERVED_NAME} belongs to surveys", hint="Choose another name.")
    if bad:
        raise PluginError(label, f"the name of {label} must be lower-case words joined by hyphens: got {bad[0]!r}")
    if candidate.guarantee is Mechanism.guarantee:
        hint = (
            "Derive from FrequencyMechanism and define client(self, value, draw), or define a property `guarantee`."
        )
        raise PluginError(label, f"{label} defines no guarantee", hint=hint)
    bases = [Mechanism, *(cls for cls in candidate.__mro__ if candidate.derived and cls.__module__.startswith(_SDK))]
    # A field that is text on the class, as `source` is, hides nothing from callers that read the class attribute.
    hidden = sorted(
        name for name in set().union(*map(dir, bases)) & set(candidate.fields) if not _still_text(candidate, name)
    )
    if hidden:
        raise PluginError(
            label,
            f"{label} has a field {hidden[0]!r}, which hides an attribute of every mechanism",
            hint="Rename the field.",
        )
    if callable(getattr(candidate, "client", None)):
        twice = [name for name in ("randomize", "client_program") if name in vars(candidate)]
        if twice:
            hint = f"Remove {twice[0]}: the client has one definition."
            raise PluginError(label, f"{label} defines both client and {twice[0]}", hint=hint)
    if wrong := guarantee_error(candidate):
        raise PluginError(label, wrong)


def _still_text(candidate: type[Mechanism], name: str) -> bool:
    return isinstance(getattr(Mechanism, name, None), str) and isinstance(getattr(candidate, name), str)


def _clashes(plugins: list[Plugin]) -> dict[str, str]:
    """Every name that is requested more than once, with the requesting plugins in words."""
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
    """The name and version of an entry point's distribution; the entry point's value for one without a name."""
    name, version = ("", "") if point.dist is None else _named(point.dist)
    return name or point.value, version


def _named(distribution: Distribution) -> tuple[str, str]:
    """The name and version of a distribution, as far as its metadata is readable."""
    try:
        return distribution.name or "", distribution.version or ""
    except Exception:
        return "", ""
