"""The lookup of an adapter imports no other library."""

from __future__ import annotations

import subprocess
import sys

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
