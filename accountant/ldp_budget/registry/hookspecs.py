"""Hook specifications for plugins, and the marker for their implementations."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

import pluggy

from .. import _later

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..guarantees import Guarantee
    from ..sdk.mechanism import Mechanism

PROJECT = "ldp_budget"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Deferred(typing.NamedTuple):
    """A mechanism class that is imported when it is first looked up by its name or an alias.

    Parameters:
        name: of the mechanism.
        aliases: of the mechanism.
        module: defines the class.
        attribute: the name of the class.
    """

    name: str
    aliases: tuple[str, ...]
    module: str
    attribute: str

    def load(self) -> type[Mechanism]:
        """Import the class."""
        found: type[Mechanism] = getattr(_later.imported(self.module), self.attribute)
        return found


@hookspec
def register_mechanisms(register: Callable[[type[Mechanism]], None]) -> None:
    """Call `register(MyMechanism)` once for each mechanism class of the plugin.

    The plugin of ldp-budget itself registers `Deferred` classes, so that a process imports the mechanisms that it uses.
    """


@hookspec
def register_commands(register: Callable[[Any], None]) -> None:
    """Call `register(command)` once for each click command of the plugin; `ldp-budget NAME` runs it.

    The name must be free: it replaces neither a command of ldp-budget nor that of another plugin. Import click in this
    function, so that processes without a command line need not load it.
    """


@hookspec(firstresult=True)
def guarantee_of(thing: object) -> Guarantee | None:
    """The guarantee of a third-party object for two values of one user; None for an object of another library.

    If the object belongs to the plugin's library but guarantees nothing for two values of one user, raise
    `NotSupported` with the reason. Check the object's class (`type(thing)`), never its attributes: any object can
    imitate attributes. Import a library only if the object's class comes from it.
    """


@hookspec(firstresult=True)
def source_of(thing: object) -> str | None:
    """The source of such an object's guarantee and its conditions, as one line for the journal.

    Equal objects must give the same line on every machine, without user data and without memory addresses. A plugin
    that implements `guarantee_of` may omit this hook; then the journal holds the name of the object's class.
    """


@hookspec(firstresult=True)
def declaration_of(guarantee: Guarantee, source: str) -> Mechanism | None:
    """The mechanism that is charged for a declared guarantee. ldp-budget itself implements this hook."""
