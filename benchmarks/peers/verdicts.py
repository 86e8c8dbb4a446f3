"""Verdicts on figures: whether a promise, an account or an estimate is correct."""

from __future__ import annotations

from typing import Any

Figure = dict[str, Any]

ROUNDING = 1e-9
"""An answer that is too small by less than this, relative to itself, is so by rounding."""
CLEARLY = 4.0
"""Standard errors by which a mean is off where it is called biased."""

SAFE, ROUNDED, UNSAFE = "safe", "unsafe by rounding", "**unsafe**"
RIGHT, REFUSES, FORGETS = "right", "refuses what fits", "**forgets**"


def verdict(figure: Figure) -> str:
    """Verdict on a promise: it must be at least the certified loss."""
    if "promised" not in figure or "lower" not in figure:
        return "not judged"
    promised, lower = figure["promised"], figure["lower"]
    if promised >= lower:
        return SAFE
    return ROUNDED if lower - promised <= ROUNDING * lower else UNSAFE


def account_verdict(figure: Figure) -> str:
    """Verdict on an account: it must accept what fits and nothing else."""
    if "accepted" not in figure:
        return "not judged"
    accepted, right = figure["accepted"], figure.get("right")
    if right is None:
        more, less = accepted > figure["capacity"], accepted < figure["capacity"]
    else:
        more = any(got and not fits for got, fits in zip(accepted, right, strict=True))
        less = any(fits and not got for got, fits in zip(accepted, right, strict=True))
    if more:
        return FORGETS if figure.get("processes") else UNSAFE
    return REFUSES if less else RIGHT


def is_biased(figure: Figure) -> bool:
    return abs(figure["bias"]) > CLEARLY * figure["std_error"]


def count(verdicts: list[str]) -> str:
    """Numbers of correct and of wrong figures, by kind of error."""
    if not verdicts:
        return ""
    good = [each for each in verdicts if each in (SAFE, RIGHT)]
    said = [f"{verdicts.count(each)} {each}" for each in (UNSAFE, FORGETS, REFUSES, ROUNDED) if each in verdicts]
    word = good[0] if good else SAFE
    return ", ".join([f"{len(good)} of {len(verdicts)} {word}", *said])
