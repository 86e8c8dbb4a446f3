"""The direction in which each figure of a calibration is rounded: what is typed back keeps the promise."""

from __future__ import annotations

from typing import Any

from .tables import Affordable, Loss

_LOSSES = frozenset(
    ("epsilon", "delta", "rho", "mu", "lifetime_epsilon", "epsilon_lifetime", "epsilon_first", "tau", "cap", "loss")
)
_NOISE = frozenset(("sigma", "scale", "f", "flip"))
"""Parameters of which more is more noise, so that a rounded one keeps the ε."""


def with_losses(value: Any, name: str = "") -> Any:
    """Return the fields of a guarantee, each loss to be printed rounded up.

    Parameters:
        value: the fields, or the value of one.
        name: the name of the value.
    """
    if isinstance(value, dict):
        return {key: with_losses(each, key) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [with_losses(each, name) for each in value]
    return Loss(value) if isinstance(value, float) and name in _LOSSES else value


def safe_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a mechanism, each to be printed rounded towards more noise where that is known.

    Parameters:
        parameters: the values by name. Of the probabilities p and q, the larger one is rounded down and the smaller up.
    """
    # The last digit of a double is no part of the value.
    safe = {
        name: Loss(round(value, 15)) if name in _NOISE and isinstance(value, float) else value
        for name, value in parameters.items()
    }
    p, q = parameters.get("p"), parameters.get("q")
    if isinstance(p, float) and isinstance(q, float):
        p, q = round(p, 15), round(q, 15)
        safe |= {"p": Affordable(p), "q": Loss(q)} if p > q else {"p": Loss(p), "q": Affordable(q)}
    return safe
