"""The service: one budget that every application of an organisation shares, over HTTP.

    from ldp_budget import Accountant
    from ldp_budget_service import create_app

    app = create_app(Accountant("budget.db"))

`ldp-budget serve` runs it. Bodies and answers are those of the commands' `--json`; errors are problem details
(RFC 9457) whose `type` ends in the code of the library's error.
"""

from .app import create_app
from .settings import Settings

__all__ = ["Settings", "create_app"]
