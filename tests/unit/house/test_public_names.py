"""The public names: those of `import ldp_budget`, with one base of errors, and deprecated ones that warn until their removal."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

import ldp_budget
from public_surface import everything, plain_name


@pytest.mark.parametrize("name", ldp_budget.__all__)
def test_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(ldp_budget, name)
    assert getattr(value, "__name__", name) == name
    own = vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
    assert own


def test_star_import_brings_all_public_names() -> None:
    names: dict[str, Any] = {}
    exec("from ldp_budget import *", names)
    assert set(ldp_budget.__all__) <= set(names)
    assert set(ldp_budget.__all__) <= set(dir(ldp_budget))


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(ldp_budget.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    seen = [alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert seen == list(dict.fromkeys(seen))
    assert set(seen) == set(ldp_budget.__all__)


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'ldp_budget' has no attribute 'nothing'"):
        ldp_budget.nothing  # noqa: B018 - the access itself is under test


def test_errors_have_one_base_class() -> None:
    values = [getattr(ldp_budget, name) for name in ldp_budget.__all__]
    errors = [value for value in values if inspect.isclass(value) and issubclass(value, Exception)]
    assert len(errors) >= 10
    assert all(issubclass(error, ldp_budget.LdpBudgetError) for error in errors)


def test_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert ldp_budget.__version__ == version("ldp-budget")


def test_async_call_takes_and_returns_the_same_as_its_plain_call() -> None:
    calls = {public.name: public.call for public in everything()}
    asynchronous = {name for name in calls if name != plain_name(name)}
    assert "Accountant.spend_async" in asynchronous
    for name in asynchronous:
        assert inspect.iscoroutinefunction(calls[name])
        assert inspect.signature(calls[name]) == inspect.signature(calls[plain_name(name)])


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
