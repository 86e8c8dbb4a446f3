"""Adapters for Flower and Opacus (federated learning).

Flower: `LocalDpMod` clips a client's update to a norm C and adds normal noise to its numbers.
The noise is σ = sensitivity·√(2 ln(1.25/δ))/ε. Two updates, each clipped to C, may be 2C apart. So one message is
μ-Gaussian private with μ = 2C/σ, for any declared sensitivity. If that does not meet the stated (ε, δ), the guarantee
has the true ε of the noise at that δ.

The guarantee covers only the arrays of the message: the number of examples and the metrics are sent as they are. The
mod does not clip an update that holds a NaN, so there is no guarantee for such an update. The noise is not
cryptographic.

Opacus: refused, because its accountants do not describe what one client sends.
"""

from __future__ import annotations

import math
from decimal import Decimal

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees.fixed_point import UP

from ._adapter_helpers import Read, at_least_zero, gaussian, is_of, ratio_up, release, theirs

_HOMES = ("flwr.clientapp.mod.localdp_mod", "flwr.client.mod.localdp_mod")
_SLACK = Decimal("1.000000000001")
"""Slack for the last digits of σ, which the mod computes in doubles."""
_STATED = ("clipping_norm", "sensitivity", "epsilon", "delta")


def read_flower(thing: object) -> Read | None:
    """Return the guarantee of one message of a `LocalDpMod`; None if the object is not from Flower."""
    kind = theirs(thing, "flwr")
    if kind is None:
        return None
    if not any(is_of(kind, home, "LocalDpMod") for home in _HOMES):
        raise NotSupported(
            f"{kind.__module__}.{kind.__qualname__} is not a LocalDpMod, and only a LocalDpMod protects the message of one "
            "client (noise of the server, or for the server's sum, does not)"
        )
    if set(vars(thing)) != set(_STATED):
        raise NotSupported(f"this LocalDpMod has other attributes than {', '.join(_STATED)}")
    clip, sensitivity, epsilon, delta = (at_least_zero(name, vars(thing)[name]) for name in _STATED)
    if not clip or math.isinf(clip):
        raise NotSupported(f"clipping_norm must be a finite number > 0: got {clip!r}")
    mu = ratio_up(Decimal(clip) * 2, _sigma(sensitivity, epsilon, delta))
    shown = f"LocalDpMod(clipping_norm={clip!r}, sensitivity={sensitivity!r}, epsilon={epsilon!r}, delta={delta!r})"
    return Read(
        gaussian(None if mu is None else UP.multiply(mu, _SLACK), epsilon, delta),
        f"{release('flwr')}: {shown}; the arrays of one message, two updates clipped to the norm are "
        "at most twice the norm apart if all is finite; what is sent with the arrays is in the clear",
    )


def _sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the standard deviation of the noise, as the mod computes it; 0 if it would add none, or fail."""
    if not delta or not epsilon:
        raise NotSupported("LocalDpMod adds no finite noise at an epsilon or delta of 0")
    if delta >= 1.25 or math.isinf(epsilon):
        return 0.0
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def read_opacus(thing: object) -> Read | None:
    """Refuse every object of Opacus; None if the object is not from Opacus."""
    kind = theirs(thing, "opacus")
    if kind is None:
        return None
    raise NotSupported(
        f"{kind.__module__}.{kind.__qualname__} accounts for one record of a data set that the trainer saw in the "
        "clear, and only for the trained model, and not for the message of one user",
        hint="Charge the noise that a client adds to its own update as `declared`, or as `gaussian` with its sigma and "
        "sensitivity.",
    )
