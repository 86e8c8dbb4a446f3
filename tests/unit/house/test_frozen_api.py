"""The record of the stable interface is well-formed, and deprecated names warn until their removal."""

from __future__ import annotations

import pytest
from packaging.version import Version

import ldp_budget

# -- what was given up -------------------------------------------------------------------------------------------


def test_deprecated_name_works_and_names_its_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ldp_budget._RENAMED, "Book", ("Accountant", "1.2", "2.0"))
    said = r"ldp_budget\.Book is deprecated since 1\.2 and goes with 2\.0; use ldp_budget\.Accountant"
    with pytest.warns(DeprecationWarning, match=said) as warned:
        assert ldp_budget.Book is ldp_budget.Accountant
    assert warned[0].filename == __file__, "the warning names who uses it"
    assert "Book" not in ldp_budget.__all__


def test_deprecated_name_is_removed_in_its_version() -> None:
    here = Version(ldp_budget.__version__)
    for old, (new, since, gone) in ldp_budget._RENAMED.items():
        assert old not in ldp_budget.__all__
        assert new in ldp_budget.__all__
        assert Version(since) <= here < Version(gone), old
        assert Version(gone).release[1:] in ((), (0,), (0, 0)), "only a new first number takes names away"
