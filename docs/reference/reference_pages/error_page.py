"""The page of errors by code: status, exit code and class from the code, the rest from `error_codes.toml`."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

from ldp_budget.errors import LdpBudgetError
from ldp_budget_cli.errors import FAILURES
from ldp_budget_service.error_codes import STATUSES

from .python_pages import everything

ENTRIES = Path(__file__).parents[1] / "error_codes.toml"
# Modules that define errors and are not imported by the modules above.
HOMES = ("ldp_budget.ledger.storage", "ldp_budget_verify")


def codes() -> list[str]:
    """Every code of the library and the service: first the library's, in the order of the classes."""
    return list(dict.fromkeys([*(kind.code for kind in kinds()), *STATUSES]))


def kinds() -> list[type[LdpBudgetError]]:
    """Every error class of the library, each below its base."""
    for home in HOMES:
        importlib.import_module(home)
    return [kind for kind in _below(LdpBudgetError) if kind.__module__.partition(".")[0] == "ldp_budget"]


def _below(base: type[LdpBudgetError]) -> Iterator[type[LdpBudgetError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _below(kind)


def exit_code(code: str) -> int:
    return FAILURES[code].exit_code if code in FAILURES else 1


def page() -> Iterator[str]:
    """The lines of errors.md."""
    entries = tomllib.loads(ENTRIES.read_text(encoding="utf-8"))
    wrong = sorted(set(entries) ^ set(codes()))
    assert not wrong, f"{ENTRIES.name} has no entry for these codes, or one too many: {', '.join(wrong)}"
    yield from (
        "# Errors by code",
        "",
        "Every error has a code that never changes. In Python it is the attribute `code`; over HTTP it is the end of the "
        "problem's `type`, such as `/problems/budget-exceeded`. Branch on the code, not on the message.",
        "",
        "The command line exits with 1, or with the exit code that is named. Codes without a Python class are "
        "raised by the service only; the command line and `Client` report them as "
        "[ServiceProblem](python/ledger.md#error-classes).",
    )
    classes = {kind.code: [k for k in kinds() if k.code == kind.code] for kind in kinds()}
    public = {value: path for path, value in everything().items()}
    for code in codes():
        entry = entries[code]
        named = [
            f"[`{kind.__name__}`](python/ledger.md#error-classes)" for kind in classes.get(code, ()) if kind in public
        ]
        yield from ("", f"## {code}", "", entry["meaning"], "")
        if "cause" in entry:  # unless the meaning says it
            yield f"- **Cause:** {entry['cause']}"
        yield f"- **Fix:** {entry['remedy']}"
        status = [f"HTTP {STATUSES[code]}"] if code in STATUSES else []
        exits = [f"exit code {exit_code(code)}"] if exit_code(code) != 1 else []
        if shown := [*status, *exits, *named]:
            yield f"- {', '.join(shown)}"
