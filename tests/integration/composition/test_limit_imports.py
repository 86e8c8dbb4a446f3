"""A limit of the basic rule loads no numpy."""

from __future__ import annotations

import subprocess
import sys

# -- starting fast --------------------------------------------------------------------------------------------


def test_limit_loads_no_numpy() -> None:
    script = (
        "import sys\n"
        "from decimal import Decimal\n"
        "from ldp_budget.composition import capacity, compose\n"
        "from ldp_budget.guarantees import Pure\n"
        "for rule in ('basic', 'zcdp', 'gdp'):\n"
        "    compose([(Pure('0.1'), 3)], delta='1e-6', rule=rule)\n"
        "    capacity(rule, Decimal(1), Decimal('1e-6'))\n"
        "print(sorted({'numpy', 'scipy', 'mpmath'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
