"""Makes the vectors of what a device does around a program: digests, answers, labels, and the device budget.

    python clients/vectors/make_devices.py

writes `devices.json` (docs/reference/client-programs.md) with four lists:

- `digests`: texts of definitions that every client loads, and their digest.
- `answers`: definitions with rows `{"answer", "secret", "stream", "report", "label"}`; a row with `refused` has an answer that is
  rejected before anything is drawn. The secret is the device's.
- `amounts`: decimals in units of 1e-9, rounded down and up; null for a text that is none.
- `budgets`: what a device does that has limits, event by event, and its spending after each.
"""

from __future__ import annotations

import json
import random
import re
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1] / "tests" / "helpers"))

from client_cases import CASES, Recorder  # noqa: E402 - from the folder above
from ldp_budget.registry.collections import Collection  # noqa: E402
from ldp_budget.registry.public_definition import About, digest_of  # noqa: E402
from ldp_budget.sampling import SeededStream  # noqa: E402
from ldp_budget.sampling.memoisation import secrets_within  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

DECIMAL = re.compile(r"[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?")
MOST = 2**53 - 1
NAMES = ("democrat", "무소속", "é", "none of “these” 😀\x7f", "007")
PARTY = Collection(
    "party",
    CASES["sue"],
    NAMES,
    About(
        "A /poll/", 'Which \\ "party"?\n\t', languages={"ko": {"title": "여론 조사"}, "de-AT": {"answers": ["a"] * 5}}
    ),
)
TICKS = Collection("ticks", CASES["ticks"], tuple(f"option {i}" for i in range(10)))


# -- digests -------------------------------------------------------------------------------------------------------


def digests() -> Iterator[dict[str, Any]]:
    """Texts of definitions in several spellings, and their digests."""
    for collection in (
        PARTY,
        TICKS,
        *(Collection(name.replace(" ", "-"), CASES[name]) for name in ("rappor", "hybrid")),
    ):
        definition = json.loads(json.dumps(collection.definition()))
        texts = {
            "as it is": json.dumps(definition),
            "in UTF-8": json.dumps(definition, ensure_ascii=False),
            "with spaces": json.dumps(definition, indent=1),
            "in another order": json.dumps(dict(sorted(definition.items(), reverse=True)), separators=(",", ":")),
            "with other escapes": json.dumps(definition)
            .replace("/", "\\/")
            .replace('"title"', '"\\u0074itl\\u0065"'),
        }
        for name, text in texts.items():
            yield {"name": f"{collection.name} {name}", "text": text, "digest": definition["digest"]}
    labelled = {**Collection("labelled", CASES["rappor"]).definition(), "labels": True}
    yield {"name": "labels", "text": json.dumps(_sealed(labelled)), "digest": digest_of(labelled)}


def _sealed(definition: dict[str, Any]) -> dict[str, Any]:
    return {**definition, "digest": digest_of(definition)}


# -- answers -------------------------------------------------------------------------------------------------------

READ: list[tuple[Collection, list[Any], list[Any]]] = [
    (
        PARTY,
        [*NAMES, " democrat\u00a0", "\u200bdemocrat\ufeff", "e\u0301", "\u1106\u116e\u1109\u1169\u1109\u1169\u11a8"],
        ["unknown", "", "Democrat", "demo crat", "7", 0, None, ["democrat"], "\U0001f600"],
    ),
    (
        TICKS,
        [[], ["option 3"], ["option 9", " option 0", "option 4"]],
        [["option 1"] * 2, ["x"], "option 1", None, 0],
    ),
    (
        Collection("words", CASES["cms of any text"]),
        ["서울", "naïve 😀", "007", "7", 7, "-0", "+7", "٣", "7\n", "9223372036854775807", "1e3", "0", " 0 ", "--1"],
        ["", "\u200b", "-7", "9223372036854775808", "12345678901234567890123", -1, 0.5, True, None],
    ),
    (
        Collection("hitters", CASES["heavy-hitters"]),
        ["a", "서울", "éé", "abcdef", " abc ", "123456"],
        ["", "abcdefg", "서울시", "a\0b", 7, None],
    ),
    (Collection("numbers", CASES["hybrid"]), [0, 10, 0.1, 9.99, 5e-324, 3], [-0.1, 10.1, "x", None, True, "1"]),
    (Collection("amounts", CASES["one-bit-mean from 18"]), [18, 70.5, 44.25, 33], [17.999, 70.6]),
    (Collection("four", CASES["oue"]), [0, 3], [4, -1, 0.5, "word", 1e300, True, "1"]),
    (Collection("kept-words", CASES["rappor of any text"]), ["서울", "x", "0", "999999999999"], [""]),
    (Collection("kept-buckets", CASES["kept buckets"]), [0, 7, 19], [20]),
    (Collection("kept-bit", CASES["a kept bit"]), [0, 37.5, 100], [100.5]),
]


def answers() -> Iterator[dict[str, Any]]:
    """Answers of all kinds, and such as are none."""
    for collection, given, refused in READ:
        chance = random.Random(collection.name)
        rows = [_row(collection, answer, chance) for answer in given]
        rows += [{"answer": answer, "secret": "00" * 16, "stream": "", "refused": True} for answer in refused]
        yield {"definition": collection.definition(), "rows": rows}


def _row(collection: Collection, answer: Any, chance: random.Random) -> dict[str, Any]:
    stream, secret = Recorder(SeededStream(chance.randrange(2**32))), chance.randbytes(16 + chance.randrange(32))
    mechanism, memo = collection.mechanism, collection.definition()["memo"]
    values = collection.read_values([answer if isinstance(answer, list) else str(answer)])
    own = secrets_within([secret], f"collection {collection.fingerprint}", 1) if memo else None
    report = mechanism.randomize(values, rng=stream, secrets=own)
    bits = report.astype(report.dtype.newbyteorder("<")).tobytes().hex()
    label = {"label": collection.labels(values, [secret])[0]} if memo else {}
    return {"answer": answer, "secret": secret.hex(), "stream": stream.read_so_far.hex(), "report": bits, **label}


# -- the device budget ---------------------------------------------------------------------------------------------

AMOUNTS = [
    *(
        "0",
        "1",
        "0.1",
        "4",
        "00.50",
        "1.0000000001",
        "0.9999999999",
        "1e-9",
        "1e-10",
        "1E+2",
        "2.5e-1",
        "0e999",
        "1e-999",
    ),
    *(
        "0.000000001",
        "9007199.254740991",
        "9007199.254740992",
        "1e300",
        "",
        " 1",
        "1 ",
        "-1",
        "+1",
        ".5",
        "1.",
        "nan",
        "inf",
    ),
    *("1e", "0x1", "1_0", "\u0661", "1e1000", "9" * 400, "0." + "1" * 400, "0." + "1" * 401, "0" * 401),
]


def units(text: str, *, up: bool) -> int | None:
    """A decimal in units of 1e-9 of ε, or None."""
    if not DECIMAL.fullmatch(text):
        return None
    exact = Fraction(text) * 10**9
    found = ceil(exact) if up else exact.numerator // exact.denominator
    return found if found <= MOST else None


def stating(name: str, **figures: Any) -> dict[str, Any]:
    """The definition of a case with other figures or keys; a figure that is `...` is left out."""
    made = Collection(name.replace(" ", "-"), CASES[name]).definition()
    said = {**made["guarantee"], **{key: each for key, each in figures.items() if key not in made}}
    made |= {key: each for key, each in figures.items() if key in made}
    return _sealed({**made, "guarantee": {key: each for key, each in said.items() if each is not ...}})


KEPT = stating("every kept bucket")
DEFINITIONS = {
    "oue": stating("oue"),
    "a little more than 1": stating("oue", epsilon="1.0000000001"),
    "an exponent": stating("oue", epsilon="1500e-3"),
    "a delta": stating("oue", delta="0.5"),
    "a delta of 1": stating("oue", delta="1"),
    "no delta": stating("oue", delta=None),
    "no epsilon": stating("oue", epsilon=None),
    "kept": KEPT,
    "kept with another title": stating("every kept bucket", title="another"),
    "kept for all answers": stating("every kept bucket", answer_epsilon="2.5"),
    "kept, each charged": stating("every kept bucket", answer_epsilon=...),
    "kept without a sum": stating("every kept bucket", answer_epsilon=None),
    "kept by another program": _sealed({**KEPT, "steps": [*KEPT["steps"], ["more", 0]]}),
}
MORNING, NIGHT, NEXT = "2026-11-21T08:00:00Z", "2026-11-21T23:59:59Z", "2026-11-22T00:00:00Z"
Event = tuple[Any, ...]
SCENARIOS: dict[str, list[Event]] = {
    "a limit per lifetime": [("open", "2.5", None), *[("draw", "oue", i) for i in range(3)]],
    "a limit that is met exactly": [("open", "2", None), *[("draw", "oue", i) for i in range(3)]],
    "a charge rounded up": [("open", "1.0000000009", None), ("draw", "a little more than 1", 0), ("draw", "oue", 0)],
    "a cost with an exponent": [("open", "3", None), ("draw", "an exponent", 0), ("draw", "an exponent", 1)],
    "any delta below 1": [
        ("open", "9", None),
        ("draw", "a delta", 0),
        *[("draw", f"{a}", 0) for a in ("a delta of 1",)],
    ],
    "what promises nothing": [
        ("open", "9", None),
        ("draw", "no delta", 0),
        ("draw", "no epsilon", 0),
        ("draw", "oue", 0),
    ],
    "a day in UTC": [
        ("open", "9", "1"),
        *(("draw", "oue", 0, MORNING), ("draw", "oue", 0, NIGHT), ("draw", "oue", 0, NEXT), ("draw", "oue", 0, NEXT)),
    ],
    "a clock that goes back": [
        ("open", "9", "1"),
        *(
            ("draw", "oue", 0, NEXT),
            ("draw", "oue", 0, MORNING),
            ("draw", "oue", 0, NEXT),
            ("draw", "oue", 0, "2027-01-01T00:00:00Z"),
        ),
    ],
    "a rejected answer": [("open", "1", None), ("draw", "oue", 4), ("draw", "oue", 0)],
    "limits that can only be lowered": [
        ("open", "2", None),
        *(("draw", "oue", 0), ("open", "9", None), ("draw", "oue", 0), ("draw", "oue", 0)),
    ],
    "a lower limit": [
        ("open", "9", None),
        ("open", "1", "0.5"),
        ("draw", "oue", 0),
        ("open", "9", "9"),
        ("draw", "oue", 0),
    ],
    "an answer charged once": [("open", "9", None), *[("draw", "kept", answer) for answer in (3, 3, 4, 3)]],
    "an answer charged for all its reports": [("open", "9", None), *[("draw", "kept for all answers", 3)] * 2],
    "reports that are each charged": [("open", "9", None), *[("draw", "kept, each charged", 3)] * 2],
    "reports without a sum": [("open", "9", None), ("draw", "kept without a sum", 3)],
    "another definition of the same draws": [
        ("open", "9", None),
        *(("draw", "kept", 3), ("draw", "kept with another title", 3), ("draw", "kept", 3)),
    ],
    "another program of the same draws": [
        ("open", "9", None),
        *(("draw", "kept", 3), ("draw", "kept by another program", 3), ("draw", "kept", 4)),
    ],
    "reports under keys": [
        ("open", "2", None),
        *(("draw", "oue", 0, MORNING, "a"), ("draw", "oue", 1, MORNING, "a"), ("draw", "oue", 0, MORNING, "b")),
        *(("draw", "oue", 0, MORNING, "c"), ("draw", "oue", 0, NEXT, "b"), ("draw", "oue", 4, NEXT, "a")),
    ],
}


@dataclass
class Device:
    """What the page says of a device with limits."""

    limits: dict[str, int] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=lambda: {"lifetime": 0, "day": 0})
    date: str = ""
    once: set[Any] = field(default_factory=set)
    programs: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)

    def open(self, lifetime: str, day: str | None) -> None:
        for period, text in (("lifetime", lifetime), ("day", day)):
            if text is not None:
                limit = units(text, up=False)
                assert limit is not None
                self.limits[period] = min(limit, self.limits.get(period, limit))

    def draw(self, definition: dict[str, Any], answer: int, date: str, key: str | None) -> str:
        """`drawn`, `again`, `over` or `refused`."""
        if key in self.keys:
            return "again"
        if answer >= int(definition["input"]["count"]):
            return "refused"
        said = definition["guarantee"]
        together = said.get("answer_epsilon", said["epsilon"])
        if None in (said["epsilon"], said["delta"], together) or Fraction(said["delta"]) >= 1:
            return "refused"
        program = {name: definition[name] for name in ("context", "input", "steps", "tables", "memo", "report")}
        text = json.dumps(program, sort_keys=True)
        if definition["memo"] and self.programs.get(definition["fingerprint"], text) != text:
            return "refused"
        costs = [units(each, up=True) for each in (said["epsilon"], together)]
        cost = max(each for each in costs if each is not None)
        label = (definition["digest"], answer) if "answer_epsilon" in said else None
        if label not in self.once:
            self.spent |= {"day": 0} if date > self.date else {}
            if any(self.spent[period] + cost > limit for period, limit in self.limits.items()):
                return "over"
            self.spent = {period: spent + cost for period, spent in self.spent.items()}
            self.date = max(date, self.date)
            self.once |= {label} if label else set()
        if definition["memo"]:
            self.programs[definition["fingerprint"]] = text
        self.keys |= {key} if key else set()
        return "drawn"


def budgets() -> Iterator[dict[str, Any]]:
    """Each scenario with what the device says and has spent."""
    for name, events in SCENARIOS.items():
        device, rows = Device(), []
        for act, *given in events:
            if act == "open":
                device.open(*given)
                rows.append({"open": {"lifetime": given[0], **({} if given[1] is None else {"day": given[1]})}})
            else:
                definition, answer, now, key = (*given, *(MORNING, None)[len(given) - 2 :])
                says = device.draw(DEFINITIONS[definition], answer, now[:10], key)
                keyed = {} if key is None else {"key": key}
                rows.append({"draw": definition, "answer": answer, "now": now, **keyed, "says": says})
            rows[-1]["spent"] = device.spent["lifetime"]
        yield {"name": name, "events": rows}


def made() -> dict[str, Any]:
    """All vectors."""
    amounts = [{"text": text, "down": units(text, up=False), "up": units(text, up=True)} for text in AMOUNTS]
    return {
        "digests": list(digests()),
        "answers": list(answers()),
        "amounts": amounts,
        "definitions": DEFINITIONS,
        "budgets": list(budgets()),
    }


if __name__ == "__main__":
    (FOLDER / "devices.json").write_text(json.dumps(made(), indent=1) + "\n")
