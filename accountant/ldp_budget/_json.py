"""One spelling for each JSON value: what is stored, hashed and compared."""

from __future__ import annotations

import json
from typing import Any

# Made once, as every spend writes with it.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_json(value: Any) -> str:
    """`value` as canonical JSON: keys in order, no spaces, ASCII alone."""
    return _ENCODER.encode(value)
