"""The mechanism contract as pytest tests: `from ldp_budget.testing import MechanismContract`.

Its home is the package of proofs. The name is imported on first use: the accountant imports no proofs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._later import later_names

__all__ = ["MechanismContract"]

if TYPE_CHECKING:
    from ldp_budget_verify.testing import MechanismContract as MechanismContract

__getattr__ = later_names(__name__, dict.fromkeys(__all__, "ldp_budget_verify.testing"))
