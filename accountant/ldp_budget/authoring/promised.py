"""A mechanism's `guarantee` is one of the closed vocabulary, or there is a sentence that says what it is instead.

Everything that prices, composes or checks takes it for granted; so the property that an author writes is made to hold
what it returns against that, where the class is defined.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from ..errors import PluginError
from ..guarantees.vocabulary import Guarantee

if TYPE_CHECKING:
    from collections.abc import Callable

EXPECTED = "expected one of the promises of ldp_budget.guarantees, such as Pure(self.epsilon)"


def promised_only(cls: type) -> None:
    """Have the `guarantee` that `cls` defines raise `PluginError` where it is anything but a `Guarantee`."""
    own = vars(cls)["guarantee"]
    if isinstance(own, property) and own.fget is not None:
        cls.guarantee = property(_held(own.fget), doc=own.__doc__)  # type: ignore[attr-defined]
    elif isinstance(own, functools.cached_property):
        held = functools.cached_property(_held(own.func))
        held.__set_name__(cls, "guarantee")
        cls.guarantee = held  # type: ignore[attr-defined]


def what_is_wrong_with(cls: type) -> str:
    """Why the `guarantee` of a class can be none, whatever its parameters are; "" where it can."""
    own = inspect.getattr_static(cls, "guarantee")
    if inspect.isfunction(own):
        return f"{cls.__qualname__}.guarantee is a method; put @property above it"
    if isinstance(own, Guarantee) or (hasattr(own, "__get__") and not isinstance(own, type)):
        return ""
    return f"{cls.__qualname__}.guarantee is {_what(own)}; {EXPECTED}, from a property"


def _held(promise: Callable[[Any], Any]) -> Callable[[Any], Guarantee]:
    @functools.wraps(promise)
    def guarantee(self: Any) -> Guarantee:
        found = promise(self)
        if isinstance(found, Guarantee):
            return found
        name = type(self).__qualname__
        raise PluginError(getattr(self, "name", name), f"{name}.guarantee is {_what(found)}; {EXPECTED}")

    return guarantee


def _what(found: object) -> str:
    if isinstance(found, type):
        return f"the class {found.__name__}"
    if found is None:
        return "None, as of a property that returns nothing"
    return f"the {type(found).__name__} {found!r}"
