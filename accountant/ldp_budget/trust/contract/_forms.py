"""Checks of the form of a report: one type, one shape, and of numbers the public grid, whatever the value is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...randomness import open_stream
from ._drawing import draw, inputs_of, others_of, secrets_of, users_of
from ._outcome import NotChecked, expect
from ._reading import on_a_grid, steps_of

if TYPE_CHECKING:
    from ...authoring.base import Mechanism

_MOST_VALUES = 16
_TOGETHER = (1, 2, 17)
_NUMBERS = 20_000


def reports_have_one_form(mechanism: Mechanism) -> None:
    """Type, byte order and shape of a report are the same for every value, alone and in every batch."""
    values = list(dict.fromkeys([*inputs_of(mechanism)[:_MOST_VALUES], *others_of(mechanism, 4)]))
    first = draw(mechanism, users_of(mechanism, 2), 7)
    form, kind = _form(first), type(_raw(mechanism, users_of(mechanism, 2), 7))
    for seed, value in enumerate(values):
        for users in _TOGETHER:
            raw = _raw(mechanism, np.full(users, value), seed)
            found = _form(np.asarray(raw))
            expect(found == form, f"{users} report(s) of {value} are {found}, others are {form}")
            expect(type(raw) is kind, f"reports of {value} are a {type(raw).__name__}, others a {kind.__name__}")
    mixed = _form(draw(mechanism, np.array(values), 7))
    expect(mixed == form, f"reports of different values together are {mixed}, others are {form}")


def _raw(mechanism: Mechanism, values: Any, seed: int) -> Any:
    return mechanism.randomize(values, rng=open_stream(seed), secrets=secrets_of(len(values), seed))


def _form(reports: Any) -> str:
    """The type with its byte order, and the shape of one report."""
    return f"{reports.dtype.str} of shape {reports.shape[1:]}"


def reports_lie_on_their_grid(mechanism: Mechanism) -> None:
    """Every number is origin + k·step of the declared grid, with a whole k, bit for bit.

    A double between two of them may be one that only some values can give; a bit to spare may say anything. Whole
    numbers are on their grid already.
    """
    values = [*inputs_of(mechanism), *others_of(mechanism, 4)]
    reports = draw(mechanism, np.resize(np.array(values), _NUMBERS), 7)
    if reports.dtype.kind in "biu":
        return
    if not on_a_grid(mechanism, reports):
        raise NotChecked("its reports are no numbers of a grid", applies=False)
    expect(reports.dtype.itemsize == 8, f"reports are {reports.dtype}, and the grid is one of doubles")
    origin, step = mechanism.grid()  # type: ignore[attr-defined]
    expect(bool(np.isfinite(reports).all()), "some reports are no finite numbers")
    steps = steps_of(mechanism, reports)
    off = (origin + steps * step).view(np.uint64) != np.ascontiguousarray(reports, dtype="=f8").view(np.uint64)
    place = int(off.argmax())
    expect(
        not off.any(),
        f"{int(off.sum())} of {len(reports)} reports lie off the grid of step {step!r} from {origin!r}, "
        f"such as {float(reports[place])!r}",
    )
