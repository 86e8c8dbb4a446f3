"""The public names: those of `import ldp_budget`, the modules below it, and nothing that begins with `_`."""

from __future__ import annotations

import ast
import inspect
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


def test_names_promised_are_public() -> None:
    assert set(ldp_budget.__all__) >= PROMISED


def test_public_list_is_sorted_and_unique() -> None:
    assert ldp_budget.__all__ == sorted(set(ldp_budget.__all__))


@pytest.mark.parametrize("name", ldp_budget.__all__)
def test_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(ldp_budget, name)
    assert getattr(value, "__name__", name) == name
    own = vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
    assert own


def members(value: Any) -> list[str]:
    parts = (property, classmethod, staticmethod)
    return [name for name, member in vars(value).items() if inspect.isfunction(member) or isinstance(member, parts)]


@pytest.mark.parametrize("name", [name for name in ldp_budget.__all__ if inspect.isclass(getattr(ldp_budget, name))])
def test_public_members_are_documented(name: str) -> None:
    value = getattr(ldp_budget, name)
    public = [member for member in members(value) if not member.startswith("_")]
    assert [member for member in public if not inspect.getdoc(getattr(value, member))] == []


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

# Names that begin with `_` are private; these are public.
PUBLIC_MODULES = """
ldp_budget.accounting
ldp_budget.accounting.accountant
ldp_budget.accounting.admin_log
ldp_budget.accounting.admin_log_projection
ldp_budget.accounting.admin_records
ldp_budget.accounting.admission
ldp_budget.accounting.approvals
ldp_budget.accounting.batch
ldp_budget.accounting.books
ldp_budget.accounting.budget_client
ldp_budget.accounting.budget_projection
ldp_budget.accounting.bulk_run
ldp_budget.accounting.charge_request
ldp_budget.accounting.collection_use
ldp_budget.accounting.collections
ldp_budget.accounting.connect
ldp_budget.accounting.decision_replay
ldp_budget.accounting.engine
ldp_budget.accounting.last_verification
ldp_budget.accounting.ledger_move
ldp_budget.accounting.ledger_operations
ldp_budget.accounting.limits
ldp_budget.accounting.policies
ldp_budget.accounting.policy_approval
ldp_budget.accounting.policy_versions
ldp_budget.accounting.promises
ldp_budget.accounting.queries
ldp_budget.accounting.receipts
ldp_budget.accounting.reservations
ldp_budget.accounting.rule_comparison
ldp_budget.accounting.stored_reports
ldp_budget.accounting.usage_stats
ldp_budget.charge_options
ldp_budget.client
ldp_budget.composition
ldp_budget.composition.filters
ldp_budget.composition.pld
ldp_budget.composition.rules
ldp_budget.composition.shuffle_amplification
ldp_budget.errors
ldp_budget.guarantees
ldp_budget.guarantees.costs
ldp_budget.guarantees.dominating_pairs
ldp_budget.guarantees.fixed_point
ldp_budget.guarantees.gaussian_calibration
ldp_budget.guarantees.guarantees
ldp_budget.guarantees.memoised_costs
ldp_budget.ledger
ldp_budget.ledger.account_sums
ldp_budget.ledger.calendar
ldp_budget.ledger.chain_verification
ldp_budget.ledger.checked_sums
ldp_budget.ledger.checkpoints
ldp_budget.ledger.confirmed_journal
ldp_budget.ledger.export
ldp_budget.ledger.hash_chain
ldp_budget.ledger.key_rotation
ldp_budget.ledger.keyfile
ldp_budget.ledger.ledger
ldp_budget.ledger.lifecycle
ldp_budget.ledger.migration_copy
ldp_budget.ledger.migration_cutover
ldp_budget.ledger.models
ldp_budget.ledger.row_macs
ldp_budget.ledger.snapshot
ldp_budget.ledger.sqlite
ldp_budget.ledger.sqlite.connection
ldp_budget.ledger.sqlite.file_guard
ldp_budget.ledger.sqlite.fork_gate
ldp_budget.ledger.sqlite.log_match
ldp_budget.ledger.sqlite.restore
ldp_budget.ledger.sqlite.schema
ldp_budget.ledger.sqlite.statements
ldp_budget.ledger.sqlite.store
ldp_budget.ledger.sqlite.write_ahead_log
ldp_budget.ledger.sqlite.write_buffer
ldp_budget.ledger.storage
ldp_budget.ledger.tables
ldp_budget.ledger.transaction
ldp_budget.ledger.verification
ldp_budget.ledger.window_backfill
ldp_budget.ledger.write_queue
ldp_budget.ledger.zones
ldp_budget.registry
ldp_budget.registry.certification
ldp_budget.registry.collections
ldp_budget.registry.hookspecs
ldp_budget.registry.margins
ldp_budget.registry.plugins
ldp_budget.registry.public_definition
ldp_budget.registry.public_seeds
ldp_budget.registry.question_selection
ldp_budget.registry.questionnaire
ldp_budget.registry.ranking
ldp_budget.registry.sample_size
ldp_budget.registry.surveys
ldp_budget.registry.third_party
ldp_budget.reports
ldp_budget.reports.answer_texts
ldp_budget.reports.answers
ldp_budget.reports.arrow_tables
ldp_budget.reports.charged_release
ldp_budget.reports.estimation
ldp_budget.reports.inbox
ldp_budget.reports.parquet
ldp_budget.reports.partial_aggregate
ldp_budget.reports.public_attributes
ldp_budget.reports.receipted_release
ldp_budget.reports.report_file
ldp_budget.reports.tables
ldp_budget.sampling
ldp_budget.sampling.continuous
ldp_budget.sampling.discrete
ldp_budget.sampling.memoisation
ldp_budget.sampling.rng
ldp_budget.sdk
ldp_budget.sdk.accepted_values
ldp_budget.sdk.channel_estimator
ldp_budget.sdk.channels
ldp_budget.sdk.client_mechanism
ldp_budget.sdk.client_notation
ldp_budget.sdk.client_program
ldp_budget.sdk.coin_calibration
ldp_budget.sdk.confidence_intervals
ldp_budget.sdk.consistency
ldp_budget.sdk.count_estimator
ldp_budget.sdk.domain
ldp_budget.sdk.estimates
ldp_budget.sdk.frequency_oracle
ldp_budget.sdk.hash_families
ldp_budget.sdk.interpreter
ldp_budget.sdk.law
ldp_budget.sdk.law.affine_slabs
ldp_budget.sdk.law.all_outcomes
ldp_budget.sdk.law.corners
ldp_budget.sdk.law.derivations
ldp_budget.sdk.law.hadamard_words
ldp_budget.sdk.law.independent_draws
ldp_budget.sdk.law.independent_places
ldp_budget.sdk.law.intervals
ldp_budget.sdk.law.kept_draws
ldp_budget.sdk.law.law
ldp_budget.sdk.law.rules
ldp_budget.sdk.law.symbolic_answers
ldp_budget.sdk.law.totality
ldp_budget.sdk.law.tracked_answers
ldp_budget.sdk.linear_hashing
ldp_budget.sdk.mechanism
ldp_budget.sdk.numeric_mechanism
ldp_budget.sdk.operator_forms
ldp_budget.sdk.parameters
ldp_budget.sdk.parities
ldp_budget.sdk.program_text
ldp_budget.sdk.questionnaire_estimates
ldp_budget.sdk.report_relations
ldp_budget.sdk.share_laws
ldp_budget.sdk.subsampled_estimates
ldp_budget.sdk.value_ranges
ldp_budget.sdk.vectorised_client
ldp_budget.testing
ldp_budget_postgres
ldp_budget_postgres.pool
ldp_budget_postgres.schema
ldp_budget_postgres.statements
ldp_budget_postgres.store
ldp_budget_postgres.write_buffer
ldp_budget_service.api
ldp_budget_service.api.problem_details
ldp_budget_service.api.schemas
ldp_budget_service.api_keys
ldp_budget_service.client
ldp_budget_service.client.batch
ldp_budget_service.client.client
ldp_budget_service.client.transport
ldp_budget_service.invitations
ldp_budget_surveys
ldp_budget_surveys.beam
ldp_budget_surveys.designs
ldp_budget_surveys.designs.differences
ldp_budget_surveys.designs.finite_population
ldp_budget_surveys.designs.means
ldp_budget_surveys.designs.moments
ldp_budget_surveys.designs.quantiles
ldp_budget_surveys.designs.questions
ldp_budget_surveys.designs.raking
ldp_budget_surveys.designs.side_tables
ldp_budget_surveys.designs.strata
ldp_budget_surveys.designs.survey_estimates
ldp_budget_surveys.designs.two_way
ldp_budget_surveys.designs.weights
ldp_budget_surveys.margin_planning
ldp_budget_surveys.pages
ldp_budget_surveys.pages.ledger_facts
ldp_budget_surveys.pages.statement
ldp_budget_surveys.pages.statement_texts
ldp_budget_surveys.pages.summary_blocks
ldp_budget_surveys.pages.summary_charts
ldp_budget_surveys.pages.summary_design
ldp_budget_surveys.pages.summary_page
ldp_budget_surveys.pages.summary_protection
ldp_budget_surveys.pages.summary_text
ldp_budget_surveys.pages.survey_summary
ldp_budget_surveys.publication
ldp_budget_surveys.publication.estimate
ldp_budget_surveys.publication.log
ldp_budget_surveys.publication.merkle
ldp_budget_surveys.publication.publisher
ldp_budget_surveys.publication.signed_note
ldp_budget_surveys.survey_planning
ldp_budget_verify
ldp_budget_verify.audit
ldp_budget_verify.audit.events
ldp_budget_verify.audit.search
ldp_budget_verify.audit.subprocess_client
ldp_budget_verify.checkers
ldp_budget_verify.contract
ldp_budget_verify.contract.client_checks
ldp_budget_verify.contract.estimator_checks
ldp_budget_verify.contract.parameter_checks
ldp_budget_verify.contract.report_checks
ldp_budget_verify.contract.statistics
ldp_budget_verify.exact
ldp_budget_verify.exact.additive_noise
ldp_budget_verify.exact.densities
ldp_budget_verify.exact.derived_law
ldp_budget_verify.exact.dominance
ldp_budget_verify.exact.estimators
ldp_budget_verify.exact.memoisation_checks
ldp_budget_verify.exact.numeric_grids
ldp_budget_verify.exact.program_checks
ldp_budget_verify.testing
ldp_budget_verify.total_certificate
"""

OURS = (
    *("ldp_budget", "ldp_budget_adapters", "ldp_budget_mechanisms", "ldp_budget_postgres", "ldp_budget_cli"),
    *("ldp_budget_service", "ldp_budget_surveys", "ldp_budget_verify"),
)
LISTED = (
    *("ldp_budget.", "ldp_budget_postgres", "ldp_budget_surveys", "ldp_budget_verify"),
    *("ldp_budget_service.api", "ldp_budget_service.client", "ldp_budget_service.invitations"),
)


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph(*OURS, cache_dir=None)


def is_public(module: str) -> bool:
    return not any(part.startswith("_") for part in module.split("."))


@pytest.mark.slow
def test_public_modules_are_the_listed_ones(imports: grimp.ImportGraph) -> None:
    found = {module for module in imports.modules if module.startswith(LISTED) and is_public(module)}
    assert found == set(PUBLIC_MODULES.split())


def private_root(module: str) -> str:
    """The outermost package or module with a leading underscore that `module` is in, or is."""
    parts = module.split(".")
    first = next(at for at, part in enumerate(parts) if part.startswith("_"))
    return ".".join(parts[: first + 1])


# Every room and every command may use these.
SHARED = (
    *("ldp_budget._validation", "ldp_budget._files", "ldp_budget._dataframes"),
    *("ldp_budget._lookalikes", "ldp_budget._numbers"),
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
