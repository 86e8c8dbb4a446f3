"""The hooks a plugin can implement, and the marker it implements them with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..guarantees import Guarantee
    from ..sdk.mechanism import Mechanism

PROJECT = "ldp_budget"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_mechanisms(register: Callable[[type[Mechanism]], None]) -> None:
    """Call `register(MyMechanism)` once for each mechanism class the plugin brings."""


@hookspec
def reserve_options() -> Iterable[str]:  # type: ignore[empty-body]
    """Names that no mechanism's field may have, because a front end takes them; for the front ends of ldp-budget.

    A field becomes an option of every command, and one of these could never be set there.
    """


@hookspec(firstresult=True)
def guarantee_of(thing: object) -> Guarantee | None:
    """What an object of another library promises about two values of one user, or None for what is not its own.

    An object that is its own, and says nothing about two values of one user, is refused: raise `NotSupported` with
    the reason. Look at what the object is (`type(thing)`), never at what it says it is: anything can have the right
    attributes. Import a library only where the object is of a class of it.
    """


@hookspec(firstresult=True)
def source_of(thing: object) -> str | None:
    """Where the guarantee of such an object comes from, and on what condition, as one line for the journal.

    The same of equal objects, on every machine; nothing of a user's data, no address in memory. A plugin that answers
    `guarantee_of` may leave it out; then the name of the object's class stands there.
    """


@hookspec(firstresult=True)
def declaration_of(guarantee: Guarantee, source: str) -> Mechanism | None:
    """The mechanism that is charged for a guarantee that is taken at its word; ldp-budget brings one."""
