"""Opacus: whatever it accounts for is no report of one user, and is refused by name.

The library is not installed here; a stand-in for its classes shows that they are recognised.
"""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from ldp_budget import InvalidParameter, NotSupported, guarantee_of

HOME = "opacus.accountants.rdp"


class RDPAccountant:
    """As the library's class looks to the adapter."""

    __module__ = HOME


def test_its_accountants_are_about_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(HOME)
    module.RDPAccountant = RDPAccountant  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, HOME, module)
    with pytest.raises(
        NotSupported, match=r"rdp.RDPAccountant accounts for one record of a data set that the trainer"
    ):
        guarantee_of(RDPAccountant())


def test_without_the_library_an_object_of_that_name_is_nothing() -> None:
    with pytest.raises(InvalidParameter, match="RDPAccountant"):
        guarantee_of(RDPAccountant())
