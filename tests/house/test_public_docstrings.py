"""What a public function takes, returns and raises stands in its docstring, in one form.

`test_wrong_arguments` holds what is said of the errors against what is raised.
"""

from __future__ import annotations

import re

import pytest

from public_surface import SECTIONS, Public, everything

PUBLIC = list(everything())
IDS = [public.name for public in PUBLIC]

# A summary that begins so says what comes back, and needs no section for it.
_ANSWERS = {"The", "A", "An", "All", "Bias", "Every", "How", "Predicted", "What", "Whether", "Which"}
_NOTHING = re.compile(r"    Nothing(\.| but `\w+`\.)")


def test_there_are_many() -> None:
    assert len(PUBLIC) > 150
    assert {"Accountant", "Accountant.spend", "Limit.parse", "compose", "ReportWriter.write"} <= set(IDS)


@pytest.mark.parametrize("public", PUBLIC, ids=IDS)
def test_it_says_what_it_takes(public: Public) -> None:
    assert list(public.entries("Parameters")) == public.parameters


@pytest.mark.parametrize("public", PUBLIC, ids=IDS)
def test_it_says_what_it_returns(public: Public) -> None:
    if public.answers and public.section("Returns") is None:
        first = public.text.split()[0]
        assert first in _ANSWERS or first.startswith("("), f"begins with {first!r}, and has no `Returns`"


@pytest.mark.parametrize("public", PUBLIC, ids=IDS)
def test_it_says_what_it_raises_or_that_it_raises_nothing(public: Public) -> None:
    lines = public.section("Raises")
    assert lines, "expected a section `Raises`"
    if not _NOTHING.fullmatch(lines[0]):
        assert public.raises, lines
        starts = [line for line in lines if not line.startswith("        ")]
        assert len(starts) == len(public.entries("Raises")), "each line is `Error: when`"


@pytest.mark.parametrize("public", PUBLIC, ids=IDS)
def test_its_sections_stand_at_the_end_and_in_order(public: Public) -> None:
    headers = [line[:-1] for line in public.text.splitlines() if line.rstrip(":") in SECTIONS and line.endswith(":")]
    assert headers == [name for name in SECTIONS if name in headers]
    summary, _, rest = public.text.partition("\n")
    assert summary.endswith((".", ":")), "the first line is a sentence"
    assert not rest or rest.startswith("\n"), "and stands alone"
