"""The toolkit of plugin authors: the base class, its fields and domain, exact channels, client programs, estimates.

It imports guarantees, sampling and composition. A plugin in the short notation needs only the names of this module: the
base classes, the fields, and the operators of a client under their own names, see `client_notation`. They are imported
on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _later

_HOMES = {
    "Mechanism": "mechanism",
    "FrequencyMechanism": "frequency_oracle",
    "NumericMechanism": "numeric_mechanism",
    **dict.fromkeys(
        ("choice", "flag", "integer", "matrix", "optional_integer", "optional_real", "real", "text"), "parameters"
    ),
}

if TYPE_CHECKING:
    from .frequency_oracle import FrequencyMechanism as FrequencyMechanism
    from .mechanism import Mechanism as Mechanism
    from .numeric_mechanism import NumericMechanism as NumericMechanism
    from .parameters import choice as choice
    from .parameters import flag as flag
    from .parameters import integer as integer
    from .parameters import matrix as matrix
    from .parameters import optional_integer as optional_integer
    from .parameters import optional_real as optional_real
    from .parameters import real as real
    from .parameters import text as text


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_later.imported(f".{_HOMES.get(name, 'client_notation')}", __name__), name)
