"""Other libraries, as far as they are installed and can be imported."""

from __future__ import annotations

import importlib.util
import sys
import types
import warnings
from typing import Any

import pytest


def library(name: str) -> Any:
    """A module of theirs; a test is skipped where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"no {name.split('.')[0]}: pip install 'ldp-budget[interop]'")


def diffprivlib() -> Any:
    """The mechanisms of diffprivlib.

    Its learning models do not load with a current scikit-learn, and the mechanisms are in the same package: an
    empty module replaces the models, and all the rest is theirs.
    """
    pytest.importorskip("sklearn", reason="no sklearn: pip install 'ldp-budget[interop]'")
    if importlib.util.find_spec("diffprivlib") is None:
        pytest.skip("no diffprivlib: pip install 'ldp-budget[interop]'")
    sys.modules.setdefault("diffprivlib.models", types.ModuleType("diffprivlib.models"))
    return library("diffprivlib.mechanisms")


def opendp() -> Any:
    """The prelude of OpenDP, with the features that constructors of measurements ask for."""
    prelude = library("opendp.prelude")
    prelude.enable_features("contrib", "honest-but-curious")
    return prelude


def events() -> Any:
    """The events of dp-accounting."""
    return library("dp_accounting.dp_event")
