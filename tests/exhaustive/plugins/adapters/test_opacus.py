"""Opacus: its accountants do not describe reports of one user, and are refused by name.

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


def test_opacus_accountants_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(HOME)
    module.RDPAccountant = RDPAccountant  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, HOME, module)
    with pytest.raises(
        NotSupported, match=r"rdp.RDPAccountant accounts for one record of a data set that the trainer"
    ):
        guarantee_of(RDPAccountant())


def test_object_of_that_name_without_the_library_is_unknown() -> None:
    with pytest.raises(InvalidParameter, match="RDPAccountant"):
        guarantee_of(RDPAccountant())
