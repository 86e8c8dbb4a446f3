"""ldp-budget: the privacy-budget accountant for local differential privacy.

    import ldp_budget
    oue = ldp_budget.mechanism("oue").calibrate(epsilon=1, domain_size=7)
    estimate = oue.estimate(oue.randomize([0, 3, 3, 6]))

Names are imported when they are first used, so that `import ldp_budget` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Accountant": "accountant",
    "Case": "channels",
    "Collection": "collection",
    "Comparison": "channels",
    "Factor": "channels",
    "Plan": "plans",
    "compose": "composition",
    "Audit": "auditing",
    "audit": "auditing",
    "Verification": "verification",
    "verify": "verification",
    "Limit": "policy",
    "Mechanism": "base",
    "FrequencyMechanism": "frequency",
    "NumericMechanism": "numeric",
    "hookimpl": "hookspecs",
    "mechanism": "registry",
    "mechanisms": "registry",
    "BudgetExceeded": "receipts",
    "InvalidParameter": "errors",
    "KeyConflict": "errors",
    "LdpBudgetError": "errors",
    "LedgerError": "errors",
    "NameTaken": "errors",
    "NotSupported": "errors",
    "OutsideDomain": "errors",
    "PluginError": "errors",
    "ReportFileError": "errors",
    "ReservationConflict": "errors",
    "UnknownName": "errors",
}

__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    # The same names for type checkers and editors.
    from .accountant import Accountant as Accountant
    from .auditing import Audit as Audit
    from .auditing import audit as audit
    from .base import Mechanism as Mechanism
    from .channels import Case as Case
    from .channels import Comparison as Comparison
    from .channels import Factor as Factor
    from .collection import Collection as Collection
    from .composition import compose as compose
    from .errors import InvalidParameter as InvalidParameter
    from .errors import KeyConflict as KeyConflict
    from .errors import LdpBudgetError as LdpBudgetError
    from .errors import LedgerError as LedgerError
    from .errors import NameTaken as NameTaken
    from .errors import NotSupported as NotSupported
    from .errors import OutsideDomain as OutsideDomain
    from .errors import PluginError as PluginError
    from .errors import ReportFileError as ReportFileError
    from .errors import ReservationConflict as ReservationConflict
    from .errors import UnknownName as UnknownName
    from .frequency import FrequencyMechanism as FrequencyMechanism
    from .hookspecs import hookimpl as hookimpl
    from .numeric import NumericMechanism as NumericMechanism
    from .plans import Plan as Plan
    from .policy import Limit as Limit
    from .receipts import BudgetExceeded as BudgetExceeded
    from .registry import mechanism as mechanism
    from .registry import mechanisms as mechanisms
    from .verification import Verification as Verification
    from .verification import verify as verify


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
