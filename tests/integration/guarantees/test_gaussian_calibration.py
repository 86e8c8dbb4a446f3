"""Gaussian calibration against mpmath: σ is never too small, and never more than 1e-12 too large.

The oracle needs no root finding: δ falls as σ grows, so σ is right if δ(σ) is within the target and
δ(σ·(1 − 1e-12)) is not.
"""

from __future__ import annotations

import os
import subprocess
import sys


def test_sigma_of_numbers_imports_neither_numpy_nor_scipy() -> None:
    code = (
        "import sys\n"
        "from ldp_budget.guarantees.gaussian_calibration import gaussian_delta, gaussian_sigma, mu_of_pure\n"
        "gaussian_sigma(1, 1e-5), gaussian_sigma(1, 1e-5, method='exact')\n"
        "gaussian_delta(1, 1), mu_of_pure(1)\n"
        "print([name for name in ('numpy', 'scipy') if name in sys.modules])\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
