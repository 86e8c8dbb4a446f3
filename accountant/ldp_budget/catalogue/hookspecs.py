"""The hooks a plugin can implement, and the marker it implements them with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..authoring.base import Mechanism
    from ..guarantees import Guarantee

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
    the reason.
    """
