"""The client in JavaScript, on Node: it draws what Python's clients draw, and refuses what was not agreed on."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import make
import numpy as np
import pytest

import ldp_budget
from client_cases import CASES, Recorder, streams
from generated_programs import Generator, odd_definition, sealed
from javascript import PACKAGE, VECTORS, adapted, answered, evaluated, run
from ldp_budget import OutsideDomain
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.public_definition import About, digest_of
from ldp_budget.sampling import SeededStream
from ldp_budget.sdk.client_program import Program, record
from ldp_budget.sdk.interpreter import StreamDraws
from ldp_budget.sdk.interpreter import run as interpret
from short_plugins import HadamardResponse, ThreeValued, TickAll

TEST = PACKAGE / "test" / "vectors.mjs"
INPUT = {"kind": "answer", "count": 4, "text": False}


# -- vectors -------------------------------------------------------------------------------------------------------


def test_vectors_are_those_of_python(tmp_path: Path) -> None:
    make.write(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in VECTORS.iterdir()}


def test_vectors_all_agree() -> None:
    done = run(TEST, VECTORS)
    assert (done.returncode, done.stdout) == (0, f"{(len(CASES) + 1) * make.COUNT} vectors\n")


@pytest.mark.exhaustive
def test_vectors_two_hundred_of_each_agree(many_vectors: Path) -> None:
    """`test_browser.py` has the same in Chromium."""
    assert run(TEST, many_vectors).stdout == f"{(len(CASES) + 1) * 200} vectors\n"


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("name", "declared"),
    [
        # More bits than are drawn at a time, and more numbers than a function takes.
        ("oue", {"epsilon": 1, "domain_size": 300_000}),
        ("subset-selection", {"epsilon": "0.1", "domain_size": 700_000}),
        ("random-substitution", {"epsilon": "0.01", "domain_size": 100_000, "draws": 70_000}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_vectors_of_large_reports_agree(tmp_path: Path, name: str, declared: dict[str, Any]) -> None:
    mechanism = ldp_budget.mechanism(name)(**declared)
    program, stream = mechanism.client_program(), Recorder(SeededStream(1))
    row = mechanism.randomize([7], rng=stream)
    report = row.astype(row.dtype.newbyteorder("<")).tobytes()
    again = Recorder(SeededStream(1))
    assert interpret(program, 7, StreamDraws(again)) == report
    assert again.read_so_far == stream.read_so_far
    definition = {"format": "ldp-budget client", "version": 1, "context": mechanism.fingerprint, **program.to_json()}
    vector = {"answer": 7, "secret": None, "stream": stream.read_so_far.hex(), "report": report.hex()}
    (tmp_path / "large.json").write_text(json.dumps({"definition": definition, "vectors": [vector]}))
    assert run(TEST, tmp_path).stdout == "1 vectors\n"


@pytest.mark.parametrize("name", ["hadamard", "three-valued", "tick-all"])
def test_vectors_of_a_short_plugin_agree(tmp_path: Path, name: str) -> None:
    """The public definition of a mechanism in the short notation carries its client to every device."""
    mechanism = {
        "hadamard": HadamardResponse(epsilon=1, domain_size=1000),
        "three-valued": ThreeValued(epsilon=1),
        "tick-all": TickAll(epsilon=2, options=20, shown=4),
    }[name]
    definition, vectors = Collection("short", mechanism).definition(), []
    for seed in range(40):
        answer, stream = seed * 7919 % mechanism.domain.size, Recorder(SeededStream(seed))
        row = mechanism.randomize([answer], rng=stream)
        report = row.astype(row.dtype.newbyteorder("<")).tobytes().hex()
        vectors.append({"answer": answer, "secret": None, "stream": stream.read_so_far.hex(), "report": report})
    client = {
        name: definition[name]
        for name in ("format", "version", "context", "input", "steps", "tables", "report", "memo")
    }
    (tmp_path / "short.json").write_text(json.dumps({"definition": client, "vectors": vectors}))
    assert run(TEST, tmp_path).stdout == "40 vectors\n"


WIDE = str(2**63)
ENDS: dict[str, Any] = {
    **{
        f"{name} of {places} places": [name, places]
        for name in ("laplace", "normal")
        for places in (0, 1, 31, 33, 40)
    },
    **{f"belows {bound}": ["belows", str(bound), 5] for bound in (1, 2, 255, 256, 257, 2**16 + 1, 2**31, 2**32)},
    **{f"belows {bound}": ["belows", str(bound), 5] for bound in (2**32 + 1, 2**33, 2**52, 2**53 + 1, 2**62 + 1)},
    **{f"bits {t}": ["bits", str(t), 20] for t in (1, 2**56, 2**64 - 1, 255 * 2**56)},
    **{
        f"{name} {a} {b}": [name, str(a), str(b)]
        for name in ("and", "xor", "add", "mul", "div", "mod")
        for a, b in ((2**31 - 1, 2**31), (2**32 + 5, 7), (5, 2**53 + 3), (2**63 + 1, 2**62 + 3))
    },
}


def test_operators_agree_on_wide_numbers(tmp_path: Path) -> None:
    """Doubles, halves of words and whole numbers of any size take turns in JavaScript: at each of their ends."""
    for place, (_, expression) in enumerate(ENDS.items()):
        count = expression[-1] if expression[0] in {"belows", "bits"} else 1
        # Below zero, and above eight bytes, are moved to where a report can hold them.
        steps = (("a", expression), ("r", ["mod", ["add", "a", WIDE], str(2**64)]))
        program = Program(INPUT, steps, record([["uint", "r", 8, count]]))
        rows = []
        made = streams(program, place)
        for _ in range(12):
            stream = Recorder(next(made))
            report = interpret(program, 1, StreamDraws(stream))
            rows.append({"answer": 1, "secret": None, "stream": stream.read_so_far.hex(), "report": report.hex()})
        definition = {"format": "ldp-budget client", "version": 1, "context": "", **program.to_json()}
        (tmp_path / f"{place}.json").write_text(json.dumps({"definition": definition, "vectors": rows}))
    done = run(TEST, tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{12 * len(ENDS)} vectors\n")


# -- definitions ---------------------------------------------------------------------------------------------------


def collection(name: str, **about: Any) -> Collection:
    return Collection(name.replace(" ", "-"), CASES[name], None, About(**about))


PARTY = Collection(
    "party",
    CASES["sue"],
    ("democrat", "republican", "무소속", "other", "none of “these”\x7f"),
    About("A poll", "Which party?", languages={"ko": {"title": "여론 조사", "answers": ["a", "b", "c", "d", "e"]}}),
)


@pytest.mark.parametrize("name", CASES)
def test_definition_has_no_float(name: str) -> None:
    def look(value: Any) -> None:
        assert not isinstance(value, float)
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            look(part)

    look(collection(name).definition())


def test_digest_equals_that_of_python() -> None:
    definition = PARTY.definition()
    source = f"""
        const made = new client.Client({json.dumps(definition)});
        console.log(JSON.stringify(made.definition.digest));
    """
    assert evaluated(source) == definition["digest"] == digest_of(definition)


@pytest.mark.parametrize(
    "change",
    [{"title": "Another"}, {"steps": []}, {"digest": "0" * 64}, {"version": 2}, {"answers": ["a", "b"]}],
    ids=lambda change: next(iter(change)),
)
def test_definition_changed_is_refused(change: dict[str, Any]) -> None:
    (said,) = adapted([{"collection": {**PARTY.definition(), **change}}])
    assert "the definition has the digest" in said["error"]


def resigned(**change: Any) -> dict[str, Any]:
    """A changed definition with a digest of its own."""
    changed = {**PARTY.definition(), **change}
    return {**changed, "digest": digest_of(changed)}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"input": {"kind": "song"}}, "does not know answers of the kind song"),
        ({"version": 2}, "version 1: got 2"),
        ({"steps": [["a", ["shift", 1]]]}, "does not know the operator shift"),
        ({"steps": [["a", ["constructor", 1]]]}, "does not know the operator constructor"),
        ({"steps": [["a", ["toString"]]]}, "does not know the operator toString"),
        ({"steps": [["a", ["add", 1, ["below", 2]]]]}, "below stands alone"),
        ({"steps": [["a", "later"]]}, "nothing before it is called later"),
        ({"report": {"dtype": "|u1", "shape": [], "parts": [["code", "value"]]}}, "does not know the part code"),
        ({"report": {"dtype": "|u1", "shape": [], "parts": [["packed", "row", 2**40]]}}, "from 0 to 8388608"),
        (
            {"tables": {"t": {"first": "1", "ratio": "1", "digits": 9, "floor": 0, "count": 10**9}}},
            "from 0 to 8388608",
        ),
        ({"steps": [["row", ["kept_bits", "x", "value", 1, 1]]]}, "memo is named where"),
    ],
)
def test_definition_with_unknown_parts_is_refused(change: dict[str, Any], why: str) -> None:
    (said,) = answered([{"collection": resigned(**change)}])
    assert why in said["error"]


ROW_OF_PARTY = {"dtype": "|u1", "shape": [1], "parts": [["packed", "row", 5]]}
ROW = ["row", ["list", 0, 1, 0, 0, 1]]
KEPT_BITS = ["kept_bits", "x", "value", 1, 5]
NOT_A_PROGRAM: dict[str, dict[str, Any]] = {
    **{
        f"a part {json.dumps(part)}": {"report": {**ROW_OF_PARTY, "parts": [part]}}
        for part in (
            *(["packed", 1, 5], ["packed", "1", 5], ["packed", ["add", "value", 1], 5], ["packed", "row", "5"]),
            *(["packed", "unknown", 5], ["packed", "row", -5], ["packed", "row", 2.5], ["packed", None, 5]),
            *(["uint", "row", 0, 1], ["uint", "row", 9, 1], ["uint", "row", 0.5, 2], ["uint", "row", -1, -1]),
            *(
                ["float64", "a", "nan", "1", 0],
                ["float64", "a", "0", "inf", 0],
                ["float64", "a", "", "1", 0],
            ),
            *(["double", "a"], ["packed", "value", 1], ["packed", "t", 2]),
        )
    },
    **{
        f"a step {json.dumps(step)}": {"steps": [["a", step], ROW]}
        for step in (
            *("007", "-0", "+1", "1.0", " 1", "", "1e3", 0.5, 2**53, None, True, {}, {"add": 1}),
            *(["add"], ["__proto__", 1], ["hasOwnProperty", 1], ["valueOf"], [["add"], 1, 2]),
            *(["add", 1, ["bits", 1, 1]], ["polynomial", 7, 1, 2, 3], ["bloom", ["seed"], 1, 2, 3, 4]),
        )
        if step != ["add"]
    },
    "a label that is no text": {"steps": [["a", ["kept_bits", 5, *KEPT_BITS[2:]]], ROW], "memo": "value"},
    "a memo of nothing": {"steps": [["a", ["add", 1, 1]], ROW], "memo": "value"},
    "a memo that is not there": {"steps": [["a", KEPT_BITS], ROW], "memo": "unknown"},
    "a name of an object": {"tables": {"__proto__x": [1]}},
    "a name with a capital": {"steps": [["A", 1], ROW]},
    "a name twice": {"steps": [["a", 1], ["a", 2], ROW]},
    **{
        f"a table {json.dumps(table)}": {"tables": {"t": table}}
        for table in ([1.5], ["0x10"], [" 5"], ["1_0"], [True], ["1", [1]], [[1], [1, 2]])
    },
    "a falling table of nothing": {
        "tables": {"t": {"first": "nan", "ratio": "1", "digits": 9, "floor": 0, "count": 1}}
    },
    "a table that grows too large": {
        "tables": {"t": {"first": "1", "ratio": "1e99", "digits": 9, "floor": 0, "count": 14}}
    },
    "a table of half a number": {
        "tables": {"t": {"first": "1", "ratio": "1", "digits": 9, "floor": 0, "count": 0.5}}
    },
}


def test_programs_refused_are_the_same_in_both_languages() -> None:
    """Every client accepts exactly the programs that Python accepts."""
    steps = [["a", "-7"], ROW]
    taken = {"steps": steps, "tables": {"t": ["9007199254740993", 1]}, "report": ROW_OF_PARTY}
    asked = {name: {**taken, **change} for name, change in NOT_A_PROGRAM.items()} | {"a program": taken}
    definitions = {name: resigned(**change) for name, change in asked.items()}
    source = f"""
        const found = {{}};
        for (const [name, definition] of Object.entries({json.dumps(definitions)})) {{
            try {{
                new client.Client(definition);
                found[name] = "taken";
            }} catch (error) {{
                found[name] = error instanceof TypeError || error instanceof RangeError ? "refused" : error.stack;
            }}
        }}
        console.log(JSON.stringify(found));
    """
    found = evaluated(source)
    assert found == {**dict.fromkeys(NOT_A_PROGRAM, "refused"), "a program": "taken"}
    assert Program.from_json({**PARTY.definition(), **taken})
    for name in NOT_A_PROGRAM:
        with pytest.raises((ValueError, TypeError, KeyError)):
            Program.from_json({**PARTY.definition(), **asked[name]})


@pytest.mark.parametrize(
    "guarantee",
    [
        {"epsilon": None, "delta": "0.0"},
        {"epsilon": "1.0", "delta": "1"},
        {"epsilon": "1.0", "delta": "1e300"},
        {"epsilon": "1.0", "delta": "a"},
        {"epsilon": "1.0"},
        {"epsilon": "inf", "delta": "0.0"},
        {"epsilon": "nan", "delta": "0.0"},
        {"epsilon": "-1.0", "delta": "0.0"},
        {"epsilon": "1e-99999999", "delta": "0.0"},
        {"epsilon": "1e99", "delta": "0.0"},
        {"epsilon": "1.0", "answer_epsilon": "inf", "delta": "0.0"},
    ],
)
def test_device_refuses_guarantees_that_promise_nothing(guarantee: dict[str, Any]) -> None:
    source = f"""
        const {{ costOf }} = await import({json.dumps((PACKAGE / "src" / "budget.js").as_uri())});
        let said = "";
        try {{ said = costOf({json.dumps(guarantee)}); }} catch (error) {{ said = error.message; }}
        console.log(JSON.stringify(said));
    """
    said = evaluated(source)
    assert isinstance(said, str)
    assert "must be" in said or "a device charges promises of an ε" in said


@pytest.mark.parametrize("delta", ["0", "0.0", "1e-300", "1e-30", "1e-06", "0.5", "0.999999999999"])
def test_device_charges_epsilon_whatever_delta_is_stated(delta: str) -> None:
    """A δ of 1e-30 made a device count nothing."""
    source = f"""
        const {{ costOf }} = await import({json.dumps((PACKAGE / "src" / "budget.js").as_uri())});
        const {{ counts }} = await import({json.dumps((PACKAGE / "src" / "outbox.js").as_uri())});
        const guarantee = {json.dumps({"epsilon": "1.5", "delta": delta})};
        console.log(JSON.stringify([costOf(guarantee), counts(guarantee)]));
    """
    assert evaluated(source) == [1_500_000_000, True]


# -- answers -------------------------------------------------------------------------------------------------------


def runs(*steps: Any) -> dict[str, Any]:
    """Compare JavaScript's reports of a program with those of the reference."""
    layout = {"dtype": "|u1", "shape": [5], "parts": [["packed", "row", 5], ["uint", "s", 1, 4]]}
    definition = resigned(steps=[*steps], tables={}, report=layout)
    (said,) = answered([{"collection": definition}, {"answer": "other"}])
    with pytest.raises((ValueError, OverflowError)):
        interpret(Program.from_json(definition), 3, StreamDraws(SeededStream(1)))
    return dict(said)


ROW = ["row", ["onehot", 1, 5]]
FOUR = ["s", ["list", 1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([ROW, ["s", ["belows", 0, 4]]], "from 1 to 9223372036854775808: got 0"),
        ([ROW, ["s", ["belows", str(2**65), 4]]], "from 1 to 9223372036854775808: got 3689"),
        ([ROW, ["s", ["bits", str(2**64 + 1), 4]]], "from 0 to 18446744073709551616: got 1844"),
        ([ROW, ["t", ["bit_at", str(2**64)]], FOUR], "from 0 to 18446744073709551615: got 1844"),
        ([ROW, ["t", ["geometric", str(2**64)]], FOUR], "from 0 to 18446744073709551615: got 1844"),
        ([ROW, ["t", ["laplace", 65]], FOUR], "from 0 to 40: got 65"),
        ([ROW, ["t", ["subset", 3, 4]], FOUR], "from 0 to 3: got 4"),
        ([ROW, ["t", ["parity", -1]], FOUR], ": got -1"),
        ([ROW, ["t", ["shl", 1, -1]], FOUR], "from 0 to 65536: got -1"),
        ([ROW, ["t", ["at", "row", -1]], FOUR], "from 0 to 4: got -1"),
        ([ROW, ["t", ["put", "row", 5, 1]], FOUR], "from 0 to 4: got 5"),
        ([ROW, ["t", ["max", "row", ["list", 1, 2]]], FOUR], "needs 5 numbers: got 2"),
        ([ROW, ["s", ["list", 1, 2, 3]]], "needs 4 numbers: got 3"),
        ([ROW, ["s", ["list", 1, 2, 3, 256]]], "from 0 to 255: got 256"),
        ([ROW, ["s", ["list", 1, 2, 3, -1]]], "from 0 to 255: got -1"),
        ([["row", ["list", 1, 0, 2, 0, 0]], FOUR], "from 0 to 1: got 2"),
    ],
)
def test_program_with_invalid_steps_makes_no_report(steps: list[Any], why: str) -> None:
    assert why in runs(*steps)["error"]


@pytest.mark.parametrize(
    "step",
    [["onehot", 1, 2**31], ["bits", 5, 10**9], ["shl", 1, 2**40], ["belows", 2, 2**40]],
    ids=lambda step: step[0],
)
def test_program_too_large_for_a_device_is_refused(step: list[Any]) -> None:
    definition = resigned(steps=[["t", step], ["row", ["onehot", 1, 5]]], tables={})
    (said,) = answered([{"collection": definition}, {"answer": "other"}])
    assert "must be a whole number from 0 to " in said["error"]


def test_answers_are_given_by_name() -> None:
    said = adapted([{"collection": PARTY.definition()}, *({"answer": name} for name in ("무소속", "unknown"))])
    assert len(bytes.fromhex(said[0]["report"])) == 1
    assert said[1]["error"].startswith("the answer must be one of democrat, republican, ")


@pytest.mark.parametrize(
    ("name", "answer", "why"),
    [
        ("oue", 4, "must be a whole number from 0 to 3: got 4"),
        ("oue", 0.5, "must be a whole number from 0 to 3: got 0.5"),
        ("oue", "1", "must be a whole number from 0 to 3: got 1"),
        ("laplace", 10.5, "must be a number from 0 to 10: got 10.5"),
        ("laplace", "5", "must be a number from 0 to 10: got 5"),
        ("cms of any text", "\ud800", "or any text: got"),
        ("rappor", 1, "it needs a secret"),
    ],
)
def test_answer_invalid_is_refused(name: str, answer: Any, why: str) -> None:
    (said,) = answered([{"collection": collection(name).definition()}, {"answer": answer}])
    assert why in said["error"]


@pytest.mark.parametrize("text", ["서울", "naïve 😀", "007", "12345678901234567890123", "x", "", "\ud800x", "-7"])
def test_text_answer_is_the_number_of_python(text: str) -> None:
    made = CASES["cms of any text"]
    definition = collection("cms of any text").definition()
    source = f"""
        const made = new client.Client({json.dumps(definition)});
        let number = "";
        try {{ number = `${{made.program.read({json.dumps(text)})}}`; }} catch (error) {{ number = error.name; }}
        console.log(JSON.stringify(number));
    """
    try:
        number = str(made.domain.check([text])[0])  # type: ignore[union-attr]
    except OutsideDomain:
        number = "RangeError"
    assert evaluated(source) == number


@pytest.mark.parametrize("name", ["rappor", "kept buckets", "every kept bucket", "a kept bit"])
def test_labels_are_those_of_python(name: str) -> None:
    made, secret = collection(name), bytes(range(40))
    values = [0.0, 37.5, 100.0] if name == "a kept bit" else [0, 1, 4]
    source = f"""
        const made = new client.Client({json.dumps(made.definition())});
        const secret = Uint8Array.from({list(secret)});
        console.log(JSON.stringify({json.dumps(values)}.map((value) => made.label(value, secret))));
    """
    assert evaluated(source) == made.labels(np.array(values), [secret] * len(values))


def test_draws_of_a_secret_are_those_of_python() -> None:
    made, secret = collection("every kept bucket"), bytes(range(32))
    said = adapted([{"collection": made.definition()}, *({"answer": v, "secret": secret.hex()} for v in range(5))])
    own = made.randomize(np.arange(5), secrets=[secret] * 5)
    assert [bytes.fromhex(each["report"]) for each in said] == [row.tobytes() for row in own]


def test_report_is_explained() -> None:
    definition = Collection("rr", CASES["randomized-response"], ("no", "yes")).definition()
    source = f"""
        const made = new client.Client({json.dumps(definition)});
        console.log(JSON.stringify([0, 1].map((bit) => made.explain(Uint8Array.of(bit)))));
    """
    no, yes = evaluated(source)
    p = np.e / (1 + np.e)
    assert [each["answer"] for each in yes] == ["no", "yes"]
    assert [each["likelihood"] for each in yes] == pytest.approx([1 - p, p])
    assert [each["likelihood"] for each in no] == pytest.approx([p, 1 - p])


# -- estimated by the server ---------------------------------------------------------------------------------------


# -- runs of random programs -----------------------------------------------------------------------------------------


def _run_in_python(definition: dict[str, Any], value: int, stream: Recorder) -> str:
    try:
        report = interpret(
            Program.from_json(definition), value, StreamDraws(stream, bytes(32), definition["context"])
        )
    except (ValueError, OverflowError):
        return "none"
    return f"{report.hex()} {len(stream.read_so_far)}"


@pytest.mark.parametrize(("seed", "count"), [(0, 600), pytest.param(1, 10_000, marks=pytest.mark.exhaustive)])
def test_random_programs_make_the_same_reports_or_none(tmp_path: Path, seed: int, count: int) -> None:
    """Both interpreters refuse the same programs, fail in the same runs, and read the same bytes."""
    chance, generator, asked, expected = random.Random(seed), Generator(seed), [], []
    for place in range(count):
        definition = sealed(odd_definition(chance) if place % 2 else generator.definition())
        for value in (0, 1):
            stream = Recorder(SeededStream(2 * place + value))
            expected.append(_run_in_python(definition, value, stream))
            asked.append([definition, value, (stream.read_so_far + bytes(64)).hex()])
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    source = f"""
        const {{ readFileSync }} = await import("node:fs");
        const {{ Program }} = await import({json.dumps((PACKAGE / "src" / "program.js").as_uri())});
        const {{ Draws }} = await import({json.dumps((PACKAGE / "src" / "draws.js").as_uri())});
        const {{ fromHex, toHex }} = await import({json.dumps((PACKAGE / "src" / "bytes.js").as_uri())});
        const asked = JSON.parse(readFileSync({json.dumps(str(tmp_path / "asked.json"))}, "utf8"));
        const said = asked.map(([definition, value, stream]) => {{
            const bytes = fromHex(stream);
            let at = 0;
            const draws = new Draws((count) => bytes.subarray(at, (at += count)));
            try {{
                const program = new Program(definition);
                program.read = () => value;
                return `${{toHex(program.run(value, {{ secret: new Uint8Array(32), draws }}))}} ${{at}}`;
            }} catch (error) {{
                return error instanceof TypeError || error instanceof RangeError ? "none" : error.stack;
            }}
        }});
        console.log(JSON.stringify(said));
    """
    found = evaluated(source)
    assert [pair for pair in zip(asked, expected, found, strict=True) if pair[1] != pair[2]] == []
    assert 0.2 < sum(each == "none" for each in expected) / len(expected) < 0.8
