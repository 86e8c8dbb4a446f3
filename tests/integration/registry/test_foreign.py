"""The lookup of an adapter imports no other library."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ldp_budget import hookimpl
from ldp_budget.registry.plugins import Plugin, _hooks_of


def plugin(
    answer: Callable[[Any], Any], source: Callable[[Any], Any] | None = None, name: str = "their-plugin"
) -> Plugin:
    module = ModuleType(name)

    @hookimpl
    def guarantee_of(thing: object) -> Any:
        return answer(thing)

    module.guarantee_of = guarantee_of  # type: ignore[attr-defined]
    if source is not None:

        @hookimpl
        def source_of(thing: object) -> Any:
            return source(thing)

        module.source_of = source_of  # type: ignore[attr-defined]
    return Plugin(name, "1.2", hooks=_hooks_of(module, name))


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
