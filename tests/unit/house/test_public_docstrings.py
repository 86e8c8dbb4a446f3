"""Docstrings of public functions: parameters, results and errors, in one form.

`test_wrong_arguments` holds what is said of the errors against what is raised.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

from public_surface import SECTIONS, Public, everything, plain_name

PUBLIC = list(everything())

# A summary that begins so says what comes back, and needs no section for it.
_ANSWERS = {"The", "A", "An", "All", "Bias", "Every", "How", "Predicted", "Return", "What", "Whether", "Which"}
_NOTHING = re.compile(r"    Nothing(\.| but `\w+`\.)")


def test_public_functions_are_many() -> None:
    assert len(PUBLIC) > 150
    assert {"Accountant", "Accountant.spend", "Limit.parse", "compose", "ReportWriter.write"} <= {
        each.name for each in PUBLIC
    }


def wrong(fault: Callable[[Public], object]) -> dict[str, object]:
    """Return the problems by function, as some hundred single tests would say little."""
    return {public.name: found for public in PUBLIC if (found := fault(public))}


def test_docstrings_list_the_parameters() -> None:
    def fault(public: Public) -> str:
        said = list(public.entries("Parameters"))
        return "" if said == public.parameters else f"takes {public.parameters}, and says {said}"

    assert wrong(fault) == {}


def test_async_call_takes_and_returns_the_same_as_its_plain_call() -> None:
    calls = {public.name: public.call for public in PUBLIC}
    asynchronous = {name for name in calls if name != plain_name(name)}
    assert "Accountant.spend_async" in asynchronous
    for name in asynchronous:
        assert inspect.iscoroutinefunction(calls[name])
        assert inspect.signature(calls[name]) == inspect.signature(calls[plain_name(name)])
        short = plain_name(name).rpartition(".")[2]
        assert (inspect.getdoc(calls[name]) or "").startswith(f"Do the same as `{short}` ")


def test_docstrings_state_the_result() -> None:
    def fault(public: Public) -> str:
        first = public.text.split()[0]
        said = not public.answers or public.section("Returns") is not None
        return (
            "" if said or first in _ANSWERS or first.startswith("(") else f"begins with {first!r}, and no `Returns`"
        )

    assert wrong(fault) == {}


def test_docstrings_list_the_errors() -> None:
    def fault(public: Public) -> str:
        lines = public.section("Raises")
        if not lines:
            return ""  # it raises nothing
        if _NOTHING.fullmatch(lines[0]):
            return ""
        starts = [line for line in lines if not line.startswith("        ")]
        good = public.raises and len(starts) == len(public.entries("Raises"))
        return "" if good else f"each line is `Error: when`; found {lines}"

    assert wrong(fault) == {}


def test_docstring_sections_are_at_the_end_and_in_order() -> None:
    def fault(public: Public) -> str:
        lines = public.text.splitlines()
        headers = [line[:-1] for line in lines if line.rstrip(":") in SECTIONS and line.endswith(":")]
        if headers != [name for name in SECTIONS if name in headers]:
            return f"the sections are {headers}"
        summary, _, rest = public.text.partition("\n")
        alone = not rest or rest.startswith("\n")
        return "" if summary.endswith((".", ":")) and alone else "the first line is a sentence, and stands alone"

    assert wrong(fault) == {}
