"""The client in JavaScript, on Node: it draws what Python's clients draw.

`test_rust_client.py` runs the conformance kit for it: definitions, digests, answers, labels and refusals.
"""

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
from javascript import PACKAGE, VECTORS, adapted, evaluated, run
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.public_definition import About
from ldp_budget.sampling import SeededStream
from ldp_budget.sdk.client_program import Program, record
from ldp_budget.sdk.interpreter import StreamDraws
from ldp_budget.sdk.interpreter import run as interpret

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


def test_client_reads_the_definition_of_each_mechanism() -> None:
    definitions = json.dumps([collection(name).definition() for name in CASES])
    source = f"""
        const read = {definitions}.map((definition) => {{
            try {{ return new client.Client(definition) && ""; }}
            catch (error) {{ return `${{definition.name}}: ${{error.message}}`; }}
        }});
        console.log(JSON.stringify(read));
    """
    assert [said for said in evaluated(source) if said] == []


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


def test_answers_are_given_by_name() -> None:
    said = adapted([{"collection": PARTY.definition()}, *({"answer": name} for name in ("무소속", "unknown"))])
    assert len(bytes.fromhex(said[0]["report"])) == 1
    assert said[1]["error"].startswith("the answer must be one of democrat, republican, ")


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
