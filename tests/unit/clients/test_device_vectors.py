"""Vectors of digests, answers and device budgets: the file is what its maker writes today."""

from __future__ import annotations

import json

import pytest

from checker_vectors import VECTORS


@pytest.mark.slow
def test_device_vectors_are_those_that_the_maker_writes() -> None:
    import make_devices

    assert json.loads((VECTORS / "devices.json").read_text()) == json.loads(json.dumps(make_devices.made()))
