"""The hooks a plugin can implement, and the marker it implements them with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..authoring.base import Mechanism

PROJECT = "ldp_budget"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_mechanisms(register: Callable[[type[Mechanism]], None]) -> None:
    """Call `register(MyMechanism)` once for each mechanism class the plugin brings."""
