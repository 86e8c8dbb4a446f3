"""The generator of the page of proofs, `docs/evidence/proofs.py`, as a module."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence"


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("proofs", EVIDENCE / "proofs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


PROOFS = _loaded()
