"""What is public: the names of `import ldp_budget`, the modules below it, and nothing that begins with `_`."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import grimp
import pytest

import ldp_budget

# The names that people import; taking one away breaks them.
PROMISED = {
    "Accountant",
    "BudgetClient",
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


@pytest.mark.slow  # that no module is called like it is seen by test_architecture.py
def test_mechanism_stays_a_function_whatever_is_imported() -> None:
    code = """
import importlib, pathlib, pkgutil, ldp_budget
for module in pkgutil.walk_packages(ldp_budget.__path__, "ldp_budget."):
    importlib.import_module(module.name)
assert ldp_budget.mechanism("oue").name == "oue"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# -- modules --------------------------------------------------------------------------------------------------

# Whatever begins with `_` is nobody else's business; these are there for everybody.
PUBLIC_MODULES = """
ldp_budget.accounting
ldp_budget.accounting.access
ldp_budget.accounting.access.approvals
ldp_budget.accounting.access.following
ldp_budget.accounting.access.invitations
ldp_budget.accounting.access.keys
ldp_budget.accounting.accountant
ldp_budget.accounting.activity
ldp_budget.accounting.agreed
ldp_budget.accounting.balances
ldp_budget.accounting.books
ldp_budget.accounting.budget_client
ldp_budget.accounting.bulk
ldp_budget.accounting.callers
ldp_budget.accounting.charging
ldp_budget.accounting.copying
ldp_budget.accounting.decision
ldp_budget.accounting.decision_replay
ldp_budget.accounting.ending
ldp_budget.accounting.idempotency
ldp_budget.accounting.keeping
ldp_budget.accounting.ledger_operations
ldp_budget.accounting.levels
ldp_budget.accounting.limits
ldp_budget.accounting.lines
ldp_budget.accounting.looking
ldp_budget.accounting.many
ldp_budget.accounting.overview
ldp_budget.accounting.places
ldp_budget.accounting.plans
ldp_budget.accounting.policies
ldp_budget.accounting.raising
ldp_budget.accounting.receipts
ldp_budget.accounting.record_kinds
ldp_budget.accounting.records
ldp_budget.accounting.refusals
ldp_budget.accounting.remaining
ldp_budget.accounting.request
ldp_budget.accounting.reservations
ldp_budget.accounting.setting
ldp_budget.accounting.shares
ldp_budget.accounting.simulating
ldp_budget.accounting.spending
ldp_budget.accounting.succession
ldp_budget.accounting.terms
ldp_budget.accounting.totals
ldp_budget.accounting.versions
ldp_budget.api
ldp_budget.api.problem_details
ldp_budget.api.requests
ldp_budget.api.schemas
ldp_budget.authoring
ldp_budget.authoring.base
ldp_budget.authoring.channels
ldp_budget.authoring.domain
ldp_budget.authoring.estimates
ldp_budget.authoring.fields
ldp_budget.authoring.frequency
ldp_budget.authoring.interpreter
ldp_budget.authoring.numeric
ldp_budget.authoring.operators
ldp_budget.authoring.packing
ldp_budget.authoring.programs
ldp_budget.authoring.promised
ldp_budget.authoring.quadrature
ldp_budget.catalogue
ldp_budget.catalogue.about
ldp_budget.catalogue.certificates
ldp_budget.catalogue.collections
ldp_budget.catalogue.definitions
ldp_budget.catalogue.foreign
ldp_budget.catalogue.hookspecs
ldp_budget.catalogue.listing
ldp_budget.catalogue.plugins
ldp_budget.catalogue.ranking
ldp_budget.client
ldp_budget.client.batch
ldp_budget.client.client
ldp_budget.client.endpoint
ldp_budget.client.transport
ldp_budget.collecting
ldp_budget.collecting.beam
ldp_budget.collecting.estimating
ldp_budget.collecting.inbox
ldp_budget.collecting.partials
ldp_budget.collecting.partitions
ldp_budget.collecting.release
ldp_budget.collecting.reports
ldp_budget.collecting.tabular
ldp_budget.collecting.tabular.answers
ldp_budget.collecting.tabular.arrow
ldp_budget.collecting.tabular.kinds
ldp_budget.collecting.tabular.places
ldp_budget.collecting.tabular.writing
ldp_budget.composition
ldp_budget.composition.basic
ldp_budget.composition.charges
ldp_budget.composition.conversion
ldp_budget.composition.crossing
ldp_budget.composition.exact
ldp_budget.composition.gdp
ldp_budget.composition.renyi
ldp_budget.composition.rules
ldp_budget.composition.shuffle
ldp_budget.composition.zcdp
ldp_budget.errors
ldp_budget.guarantees
ldp_budget.guarantees.amounts
ldp_budget.guarantees.evidence
ldp_budget.guarantees.gaussian
ldp_budget.guarantees.memoised
ldp_budget.guarantees.orders
ldp_budget.guarantees.pairs
ldp_budget.guarantees.relations
ldp_budget.guarantees.vocabulary
ldp_budget.ledger
ldp_budget.ledger.account_seals
ldp_budget.ledger.cache
ldp_budget.ledger.checkpoints
ldp_budget.ledger.checkup
ldp_budget.ledger.clock
ldp_budget.ledger.comparing
ldp_budget.ledger.copying
ldp_budget.ledger.entries
ldp_budget.ledger.exchanging
ldp_budget.ledger.filling
ldp_budget.ledger.gate
ldp_budget.ledger.groups
ldp_budget.ledger.integrity
ldp_budget.ledger.journal
ldp_budget.ledger.keeper
ldp_budget.ledger.keys
ldp_budget.ledger.lanes
ldp_budget.ledger.ledger
ldp_budget.ledger.listing
ldp_budget.ledger.moving
ldp_budget.ledger.names
ldp_budget.ledger.reading
ldp_budget.ledger.replay
ldp_budget.ledger.store
ldp_budget.ledger.tallying
ldp_budget.ledger.transaction
ldp_budget.ledger.veiling
ldp_budget.ledger.verifying
ldp_budget.ledger.windows
ldp_budget.randomness
ldp_budget.randomness.memoisation
ldp_budget.randomness.streams
ldp_budget.randomness.thresholds
ldp_budget.testing
ldp_budget.trust
ldp_budget.trust.auditing
ldp_budget.trust.auditing.external
ldp_budget.trust.contract
ldp_budget.trust.verification
ldp_budget.trust.verification.dominance
ldp_budget.trust.verification.estimators
ldp_budget.trust.verification.grids
ldp_budget.trust.verification.laws
ldp_budget.trust.verification.memos
ldp_budget.trust.verification.noise
ldp_budget.trust.verification.programs
ldp_budget.trust.verification.ranges
ldp_budget.trust.verification.symmetry
"""

OURS = ("ldp_budget", "ldp_budget_adapters", "ldp_budget_mechanisms", "ldp_budget_cli")


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph(*OURS, cache_dir=None)


def is_public(module: str) -> bool:
    return not any(part.startswith("_") for part in module.split("."))


def test_the_public_modules_are_these(imports: grimp.ImportGraph) -> None:
    found = {module for module in imports.modules if module.startswith("ldp_budget.") and is_public(module)}
    assert found == set(PUBLIC_MODULES.split())


def private_root(module: str) -> str:
    """The outermost package or module with a leading underscore that `module` is in, or is."""
    parts = module.split(".")
    first = next(at for at, part in enumerate(parts) if part.startswith("_"))
    return ".".join(parts[: first + 1])


# These three every room may use, and the commands; the accounting opens the stores of the ledger.
SHARED = ("ldp_budget._checks", "ldp_budget._files", "ldp_budget._json")
OPENS = {("ldp_budget.accounting.places", f"ldp_budget.ledger.{engine}") for engine in ("_sqlite", "_postgres")}


def test_nobody_imports_what_is_private_to_another_package(imports: grimp.ImportGraph) -> None:
    taken = set()
    for module in imports.modules:
        if is_public(module) or module in SHARED:
            continue
        owner = private_root(module).rpartition(".")[0]
        users = imports.find_modules_that_directly_import(module)
        taken |= {(user, module) for user in users if user != owner and not user.startswith(f"{owner}.")}
    assert taken == OPENS
