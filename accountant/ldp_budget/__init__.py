"""ldp-budget: the privacy-budget accountant for local differential privacy.

    import ldp_budget
    oue = ldp_budget.mechanism("oue").calibrate(epsilon=1, domain_size=7)
    estimate = oue.estimate(oue.randomize([0, 3, 3, 6]))

Names are imported when they are first used, so that `import ldp_budget` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "1.0.0rc1"

_HOMES = {
    "Accountant": "accounting.accountant",
    "BudgetClient": "accounting.budget_client",
    "Case": "authoring.channels",
    "Collection": "catalogue.collections",
    "Comparison": "authoring.channels",
    "Factor": "authoring.channels",
    "Plan": "accounting.plans",
    "compose": "composition",
    "Audit": "trust.auditing",
    "audit": "trust.auditing",
    "Verification": "trust.verification",
    "verify": "trust.verification",
    "Limit": "accounting.limits",
    "Mechanism": "authoring.base",
    "FrequencyMechanism": "authoring.frequency",
    "NumericMechanism": "authoring.numeric",
    "guarantee_of": "catalogue.foreign",
    "hookimpl": "catalogue.hookspecs",
    "mechanism": "catalogue.plugins",
    "mechanisms": "catalogue.plugins",
    "ApprovalConflict": "errors",
    "ApprovalNeeded": "errors",
    "BudgetExceeded": "accounting.receipts",
    "ClockError": "errors",
    "InvalidParameter": "errors",
    "KeyConflict": "errors",
    "LdpBudgetError": "errors",
    "LedgerError": "errors",
    "LedgerKeyMissing": "errors",
    "LedgerMissing": "errors",
    "NameTaken": "errors",
    "NotSupported": "errors",
    "OutsideDomain": "errors",
    "PluginError": "errors",
    "RecordConflict": "errors",
    "SandboxError": "errors",
    "ReportFileError": "errors",
    "ReservationConflict": "errors",
    "TableError": "errors",
    "UnknownName": "errors",
    "UserErased": "errors",
}

__all__ = sorted(_HOMES)

# Names that were given up: what to use, since which version, and the version that has them no longer. Until then they
# work, and say so; docs/reference/stability.md has the rule.
_RENAMED: dict[str, tuple[str, str, str]] = {}

if TYPE_CHECKING:
    # The same names for type checkers and editors.
    from .accounting.accountant import Accountant as Accountant
    from .accounting.budget_client import BudgetClient as BudgetClient
    from .accounting.limits import Limit as Limit
    from .accounting.plans import Plan as Plan
    from .accounting.receipts import BudgetExceeded as BudgetExceeded
    from .authoring.base import Mechanism as Mechanism
    from .authoring.channels import Case as Case
    from .authoring.channels import Comparison as Comparison
    from .authoring.channels import Factor as Factor
    from .authoring.frequency import FrequencyMechanism as FrequencyMechanism
    from .authoring.numeric import NumericMechanism as NumericMechanism
    from .catalogue.collections import Collection as Collection
    from .catalogue.foreign import guarantee_of as guarantee_of
    from .catalogue.hookspecs import hookimpl as hookimpl
    from .catalogue.plugins import mechanism as mechanism
    from .catalogue.plugins import mechanisms as mechanisms
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
    from .trust.auditing import Audit as Audit
    from .trust.auditing import audit as audit
    from .trust.verification import Verification as Verification
    from .trust.verification import verify as verify


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        old, (name, since, gone) = name, _RENAMED[name]
        import warnings

        text = f"{__name__}.{old} is deprecated since {since} and goes with {gone}; use {__name__}.{name}"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
