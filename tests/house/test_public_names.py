"""What `import ldp_budget` offers: the names that the documentation promises, each of them there and explained."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ldp_budget

# The names that people import; taking one away breaks them.
PROMISED = {
    "Accountant",
    "BudgetExceeded",
    "FrequencyMechanism",
    "InvalidParameter",
    "LdpBudgetError",
    "Limit",
    "Mechanism",
    "NumericMechanism",
    "hookimpl",
    "mechanism",
    "mechanisms",
}


def test_every_promised_name_is_public() -> None:
    assert set(ldp_budget.__all__) >= PROMISED


def test_the_list_is_sorted_and_has_no_name_twice() -> None:
    assert ldp_budget.__all__ == sorted(set(ldp_budget.__all__))


@pytest.mark.parametrize("name", ldp_budget.__all__)
def test_a_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(ldp_budget, name)
    assert getattr(value, "__name__", name) == name
    own = vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
    assert own


def members(value: Any) -> list[str]:
    parts = (property, classmethod, staticmethod)
    return [name for name, member in vars(value).items() if inspect.isfunction(member) or isinstance(member, parts)]


@pytest.mark.parametrize("name", [name for name in ldp_budget.__all__ if inspect.isclass(getattr(ldp_budget, name))])
def test_every_public_member_of_a_public_class_is_documented(name: str) -> None:
    value = getattr(ldp_budget, name)
    public = [member for member in members(value) if not member.startswith("_")]
    assert [member for member in public if not inspect.getdoc(getattr(value, member))] == []


def test_a_star_import_brings_all_of_them() -> None:
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


def test_an_unknown_name_is_an_attribute_error_that_says_so() -> None:
    with pytest.raises(AttributeError, match="module 'ldp_budget' has no attribute 'nothing'"):
        ldp_budget.nothing  # noqa: B018 - the access itself is under test


def test_every_error_descends_from_one_root() -> None:
    values = [getattr(ldp_budget, name) for name in ldp_budget.__all__]
    errors = [value for value in values if inspect.isclass(value) and issubclass(value, Exception)]
    assert len(errors) >= 10
    assert all(issubclass(error, ldp_budget.LdpBudgetError) for error in errors)


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert ldp_budget.__version__ == version("ldp-budget")


def test_mechanism_stays_a_function_whatever_is_imported() -> None:
    code = """
import importlib, pathlib, pkgutil, ldp_budget
for module in pkgutil.walk_packages(ldp_budget.__path__, "ldp_budget."):
    importlib.import_module(module.name)
assert ldp_budget.mechanism("oue").name == "oue"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
