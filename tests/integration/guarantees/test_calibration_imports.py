"""The calibration of a Gaussian loads neither numpy nor scipy."""

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
