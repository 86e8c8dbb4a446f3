"""ldp-budget: the privacy-budget accountant for local differential privacy.

    import ldp_budget
    oue = ldp_budget.mechanism("oue").calibrate(epsilon=1, domain_size=7)
    estimate = oue.estimate(oue.randomize([0, 3, 3, 6]))

It imports no other package. Names are imported on first use, so that `import ldp_budget` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "1.0.0"

_ERRORS = (
    "ApprovalConflict ApprovalNeeded ClockError InvalidParameter KeyConflict LdpBudgetError LedgerError "
    "LedgerKeyMissing LedgerMissing LedgerMoved LedgerUpgraded NameTaken NotSupported OutsideDomain PluginError "
    "RecordConflict SandboxError ReportFileError ReservationConflict TableError UnknownName UserErased"
)
_HOMES = {
    "Accountant": ".accounting.accountant",
    "BudgetClient": ".accounting.budget_client",
    **dict.fromkeys(("Case", "Comparison", "Factor"), ".sdk.channels"),
    "Collection": ".registry.collections",
    "Plan": ".accounting.plans",
    "compose": ".composition",
    **dict.fromkeys(("Audit", "audit"), "ldp_budget_verify.audit"),
    **dict.fromkeys(("Verification", "verify"), "ldp_budget_verify.exact"),
    "Limit": ".accounting.limits",
    "Mechanism": ".sdk.mechanism",
    "FrequencyMechanism": ".sdk.frequency_oracle",
    "NumericMechanism": ".sdk.numeric_mechanism",
    "guarantee_of": ".registry.third_party",
    "hookimpl": ".registry.hookspecs",
    **dict.fromkeys(("mechanism", "mechanisms"), ".registry.plugins"),
    **dict.fromkeys(_ERRORS.split(), ".errors"),
    "BudgetExceeded": ".accounting.receipts",
}

__all__ = sorted(_HOMES)

# Deprecated names: the replacement, the version that deprecated the name, and the version that removes it. Until then
# the name works and warns. docs/reference/stability.md has the rule.
_RENAMED: dict[str, tuple[str, str, str]] = {}

if TYPE_CHECKING:
    # The same names, for type checkers and editors.
    from ldp_budget_verify.audit import Audit as Audit
    from ldp_budget_verify.audit import audit as audit
    from ldp_budget_verify.exact import Verification as Verification
    from ldp_budget_verify.exact import verify as verify

    from .accounting.accountant import Accountant as Accountant
    from .accounting.budget_client import BudgetClient as BudgetClient
    from .accounting.limits import Limit as Limit
    from .accounting.plans import Plan as Plan
    from .accounting.receipts import BudgetExceeded as BudgetExceeded
    from .composition import compose as compose
    from .errors import ApprovalConflict as ApprovalConflict
    from .errors import ApprovalNeeded as ApprovalNeeded
    from .errors import ClockError as ClockError
    from .errors import InvalidParameter as InvalidParameter
    from .errors import KeyConflict as KeyConflict
    from .errors import LdpBudgetError as LdpBudgetError
    from .errors import LedgerError as LedgerError
    from .errors import LedgerKeyMissing as LedgerKeyMissing
    from .errors import LedgerMissing as LedgerMissing
    from .errors import LedgerMoved as LedgerMoved
    from .errors import LedgerUpgraded as LedgerUpgraded
    from .errors import NameTaken as NameTaken
    from .errors import NotSupported as NotSupported
    from .errors import OutsideDomain as OutsideDomain
    from .errors import PluginError as PluginError
    from .errors import RecordConflict as RecordConflict
    from .errors import ReportFileError as ReportFileError
    from .errors import ReservationConflict as ReservationConflict
    from .errors import SandboxError as SandboxError
    from .errors import TableError as TableError
    from .errors import UnknownName as UnknownName
    from .errors import UserErased as UserErased
    from .registry.collections import Collection as Collection
    from .registry.hookspecs import hookimpl as hookimpl
    from .registry.plugins import mechanism as mechanism
    from .registry.plugins import mechanisms as mechanisms
    from .registry.third_party import guarantee_of as guarantee_of
    from .sdk.channels import Case as Case
    from .sdk.channels import Comparison as Comparison
    from .sdk.channels import Factor as Factor
    from .sdk.frequency_oracle import FrequencyMechanism as FrequencyMechanism
    from .sdk.mechanism import Mechanism as Mechanism
    from .sdk.numeric_mechanism import NumericMechanism as NumericMechanism


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        old, (name, since, gone) = name, _RENAMED[name]
        import warnings

        text = f"{__name__}.{old} is deprecated since {since} and goes with {gone}; use {__name__}.{name}"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
    from ._later import later_names

    return later_names(__name__, _HOMES)(name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
