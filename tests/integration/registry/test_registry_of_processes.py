"""What processes read of the registry: derivations of an earlier one, and the lookup of an adapter without its library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from ldp_budget.sdk import FrequencyMechanism, client_mechanism, coin_calibration, integer, real, where
from ldp_budget.sdk import derivations

derivations._MOMENT = -1.0
calls = []
for module in (client_mechanism, coin_calibration):
    module.law_of = lambda program, true=module.law_of: calls.append(1) or true(program)


class Kept(FrequencyMechanism):
    name = "kept-or-any"
    epsilon = real("privacy loss of one report", above=0, at_most=20)
    domain_size = integer("number of possible answers", at_least=2, at_most=100)

    def client(self, value, draw):
        other = draw.below(self.domain_size)
        return where(draw.coin(), value, other) if sys.argv[1] == "kept" else where(draw.coin(), other, value)


print(Kept(epsilon=1, domain_size=5).guarantee, len(calls) > 0)
"""


def run(folder: Path, client: str) -> str:
    environment = {**os.environ, "LDP_BUDGET_CERTIFICATES": str(folder / "certificates.json")}
    (folder / "kept.py").write_text(SCRIPT)
    command = [sys.executable, str(folder / "kept.py"), client]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


def test_guarantee_of_second_process_is_read(tmp_path: Path) -> None:
    first, second = (run(tmp_path, "kept").rsplit(" ", 1) for _ in range(2))
    assert first[0] == second[0]
    assert (first[1].strip(), second[1].strip()) == ("True", "False")
    assert run(tmp_path, "swapped").rsplit(" ", 1)[1].strip() == "True"


# -- what it costs those who have none of it ------------------------------------------------------------------------


def test_adapter_lookup_imports_no_library() -> None:
    code = """
import sys, ldp_budget
class Odd: __module__ = "opendp.mod"
for thing in (object(), Odd()):
    try: ldp_budget.guarantee_of(thing)
    except ldp_budget.InvalidParameter: pass
    else: raise SystemExit("known")
libraries = {"opendp", "diffprivlib", "dp_accounting", "flwr", "opacus", "scipy"}
print(sorted(libraries & {name.partition(".")[0] for name in sys.modules}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
