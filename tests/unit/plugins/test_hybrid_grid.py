"""The hybrid mechanism's grid does not depend on what was computed first."""

from __future__ import annotations

from typing import Any

import pytest

from ldp_budget import mechanism


@pytest.mark.parametrize("first", ["client_program", "numbers", "moments", "grid", "mean_error"])
def test_grid_is_the_same_whatever_was_computed_first(first: str) -> None:
    """A report of value 0 has the mean 0, and one of 14 the mean 14, exactly as the client draws."""
    made: Any = mechanism("hybrid")(epsilon=2, lower=0, upper=14)
    reached = getattr(made, first)
    if callable(reached):
        reached(*((1,) if first == "mean_error" else ()))
    origin, step = made.grid()
    (low, high), (least, growth) = made.numbers, made._upper_one
    alpha = made.piecewise / 2**64
    level, slope = (float(each) for each in made.window_moments.mean)
    for point, value in ((0, 0.0), (2**20, 14.0)):
        upper = (least + point * growth) / 2**64
        mean = alpha * (level + slope * point) + (1 - alpha) * (low + (high - low) * upper)
        assert origin + step * mean == pytest.approx(value, abs=1e-8)
