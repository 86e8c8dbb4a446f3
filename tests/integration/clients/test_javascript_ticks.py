"""Sets of ticks in JavaScript: their numbers are those of Python, and too many ticks are refused on the device."""

from __future__ import annotations

import json
from typing import Any

import pytest

from javascript import PACKAGE, evaluated
from ldp_budget import mechanism
from ldp_budget.registry.collections import collection_of

SOURCE = (PACKAGE / "src").as_uri()
NAMES = ("bus", "train", "car", "bicycle", "on foot", "ferry", "tram")


@pytest.mark.parametrize("options", [{"at_most": 2}, {"at_most": 3}, {"at_most": 5}, {}])
def test_javascript_numbers_sets_as_python_does(options: dict[str, Any]) -> None:
    made = collection_of("transport", mechanism("ticks"), {"epsilon": 2, **options}, NAMES)
    domain = made.mechanism.domain
    sets = [domain.ticks_of(number) for number in range(domain.size)]
    sets = [ticks for ticks in sets if len(ticks) <= domain.most]
    found = evaluated(f"""
        const {{ numberOfTicks, ticksOf }} = await import("{SOURCE}/ticks.js");
        const definition = {json.dumps(made.definition())};
        const names = definition.answers;
        const numbers = {json.dumps(sets)}.map((ticks) => numberOfTicks(ticks.map((each) => names[each]), definition));
        console.log(JSON.stringify([numbers.map(Number), numbers.map((each) => ticksOf(each, definition))]));
    """)
    assert found == [[domain.number_of(ticks) for ticks in sets], sets]


def test_javascript_client_refuses_what_is_no_set_of_ticks() -> None:
    made = collection_of("transport", mechanism("ticks"), {"epsilon": 2, "at_most": 2}, NAMES)
    wrong = [["bus", "train", "car"], ["bus", "bus"], ["plane"], "bus", 3, None]
    found = evaluated(f"""
        const {{ Client }} = await import("{SOURCE}/index.js");
        const ticking = new Client({json.dumps(made.definition())});
        const refused = {json.dumps(wrong)}.map((answer) => {{
            try {{ ticking.check(answer); return "accepted"; }} catch (error) {{ return error.name; }}
        }});
        const sizes = [["bus", "train"], ["ferry"], []].map((answer) => ticking.randomize(answer).length);
        console.log(JSON.stringify([refused, sizes]));
    """)
    assert found == [["RangeError"] * len(wrong), [1, 1, 1]]
