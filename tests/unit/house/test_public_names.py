"""The public names: those of `import ldp_budget`, the modules below it, and nothing that begins with `_`."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import grimp
import pytest

import ldp_budget


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


# -- modules --------------------------------------------------------------------------------------------------


OURS = (
    *("ldp_budget", "ldp_budget_adapters", "ldp_budget_mechanisms", "ldp_budget_postgres", "ldp_budget_cli"),
    *("ldp_budget_service", "ldp_budget_surveys", "ldp_budget_verify"),
)


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph(*OURS, cache_dir=None)


def is_public(module: str) -> bool:
    return not any(part.startswith("_") for part in module.split("."))


def private_root(module: str) -> str:
    """The outermost package or module with a leading underscore that `module` is in, or is."""
    parts = module.split(".")
    first = next(at for at, part in enumerate(parts) if part.startswith("_"))
    return ".".join(parts[: first + 1])


# Every room and every command may use these.
SHARED = (
    *("ldp_budget._validation", "ldp_budget._files", "ldp_budget._dataframes"),
    *("ldp_budget._later", "ldp_budget._lookalikes", "ldp_budget._number_parsing", "ldp_budget._tags"),
)


@pytest.mark.slow
def test_private_names_are_imported_by_their_package_only(imports: grimp.ImportGraph) -> None:
    taken = set()
    for module in imports.modules:
        if is_public(module) or module in SHARED:
            continue
        owner = private_root(module).rpartition(".")[0]
        users = imports.find_modules_that_directly_import(module)
        taken |= {(user, module) for user in users if user != owner and not user.startswith(f"{owner}.")}
    assert taken == set()
