"""`tools/version.py` of a tree, as a module."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def load_tool(root: Path) -> ModuleType:
    """Load `tools/version.py` of a tree."""
    spec = importlib.util.spec_from_file_location("version_tool", root / "tools" / "version.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
