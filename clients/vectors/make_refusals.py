"""Makes the vectors of refusals: definitions and runs that every client and every checker must refuse.

    python clients/vectors/make_refusals.py

writes `refusals.json` (docs/reference/client-programs.md). It has four lists:

- `forms`: texts of definitions of a form that the specification does not define. No client may load them, and no
  checker may confirm their loss.
- `guarantees`: definitions whose guarantee has such a form, with the same rules.
- `leaks`: definitions of the specified form whose report, or whose missing report, reveals more than they state. No
  checker may confirm their loss.
- `failures`: definitions with a number as the answer, whose run must fail.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_budget import mechanism
from ldp_budget.registry.public_definition import NOTHING, definition_of, digest_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent
HALF = str(2**63)
HONEST = json.loads(
    json.dumps(definition_of("mood", "00" * 32, mechanism("grr")(epsilon=1, domain_size=3), None, NOTHING))
)


def sealed(definition: dict[str, Any]) -> dict[str, Any]:
    """A definition with its digest computed again."""
    return {**definition, "digest": digest_of(definition)}


def with_steps(*steps: Any, parts: Any = (), **more: Any) -> dict[str, Any]:
    """The honest definition with more steps, more parts of its report and other keys."""
    made = copy.deepcopy(HONEST)
    made["steps"] += [list(step) for step in steps]
    made["report"]["parts"] += list(parts)
    return sealed({**made, **more})


def with_input(**changes: Any) -> dict[str, Any]:
    """The honest definition with another input."""
    return sealed({**HONEST, "input": {**HONEST["input"], **changes}})


def of(*steps: Any, count: int = 2, **more: Any) -> dict[str, Any]:
    """A definition of these steps, of which the last is the report."""
    report = {"dtype": "|u1", "shape": [1], "parts": [["uint", steps[-1][0], 1, 1]]}
    made = {**HONEST, "input": {"kind": "answer", "count": count, "text": False}, "steps": [list(s) for s in steps]}
    guarantee = {**HONEST["guarantee"], "epsilon": "0.1"}
    return sealed({**made, "report": report, "guarantee": guarantee, **more})


# -- forms ---------------------------------------------------------------------------------------------------------


def forms() -> Iterator[tuple[str, str, str]]:
    """The name, the text, and what has another form: the program, the rest of the definition, or its text."""
    for name, definition in (*_names(), *_expressions(), *_tables(), *_inputs(), *_parts()):
        yield name, json.dumps(definition), "program"
    for name, definition in (*_answers(), *_keys()):
        yield name, json.dumps(definition), "definition"
    for name, text in _texts():
        yield name, text, "text"


def _names() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in ("01", "0_1", "1", "-1", "\u0661", "A", "a-b", "a b", "\u00e9", "", "_a", "value", "drawn", "a\n"):
        yield f"a step named {name!a}", with_steps([name, 0])
    yield "a name that reads like an expression", with_steps(["['add', 5, ['mul', 'value', 3]]", 0])
    yield "a name that is a number", with_steps([1, 0])
    yield "a table with the name of a step", with_steps(tables={"drawn": [1]})
    yield "a table named value", with_steps(tables={"value": [1]})


def _expressions() -> Iterator[tuple[str, dict[str, Any]]]:
    for number in (
        "01",
        "0_1",
        "+1",
        "-0",
        "1.0",
        "1e3",
        " 1",
        "1 ",
        "\u0661",
        "\uff11",
        "0x10",
        "",
        str(2**4096),
        "1\n",
    ):
        yield f"the number {number[:20]!a}", with_steps(["more", ["add", number, 0]])
    for number in (True, False, None, {}, 2**53, -(2**53)):
        yield f"the number {number!r}", with_steps(["more", ["add", number, 0]])
    yield "a later name", with_steps(["more", "later"], ["later", 1])
    yield "its own name", with_steps(["more", ["add", "more", 1]])
    for call in (
        *(
            ["max", "value", 0, 1],
            ["min", "value", 1, 0],
            ["min", "value"],
            ["add", 1],
            ["eq", 1, 1, 1],
            ["where", 1, 2],
        ),
        *(["parity", 1, 1], ["at", "others"], ["put", "others", 0], ["bit", HALF, 1], ["bits", HALF], ["below"], []),
        *(
            ["onehot", 1],
            ["sort", "others", 1],
            ["nothing", 1],
            ["constructor", 1],
            ["Add", 1, 1],
            [1, 1],
            [["add"], 1],
        ),
        *(["polynomial", "0", 1, "value"], ["polynomial", 0, 1, "value", 3], ["polynomial", "\u00e9", 1, "value", 3]),
        *(["polynomial", "\n", 1, "value", 3], ["kept_bits", 1, "value", HALF, 1]),
    ):
        yield f"the call {json.dumps(call)}", with_steps(["more", call])
    yield "a draw within an expression", with_steps(["more", ["add", 0, ["bit", HALF]]])
    yield (
        "a draw from the secret within an expression",
        with_steps(["more", ["at", ["kept_bits", "a", 0, HALF, 1], 0]]),
    )
    for call in (
        *(["list", "others"], ["list", ["list", 1]], ["at", "others", "others"], ["at", "value", 0], ["sort", 1]),
        *(
            ["put", "others", 0, "others"],
            ["put", "others", "others", 0],
            ["put", 1, 0, 0],
            ["first", 1],
            ["join", 1],
        ),
        *(
            ["onehot", "others", 3],
            ["rank", 1, 1],
            ["rank", "others", "others"],
            ["floyd", 1, 1],
            ["bits_each", HALF],
        ),
        *(["bits", ["list", HALF], 1], ["below", ["list", 2]], ["shuffle", 3], ["bit", "others"]),
        *(["add", "rows", 1], ["sort", "rows"], ["list", "rows"], ["at", "rows", "others"], "rows"),
    ):
        made = with_steps(["others", ["list", 1, 0]], ["more", call], tables={"rows": [[1, 2], [3, 4]]})
        if call == "rows":
            made = sealed({**made, "report": {**made["report"], "parts": [["uint", "more", 1, 2]]}})
        yield f"the kinds of {json.dumps(call)}", made
    deep: Any = "value"
    for _ in range(101):
        deep = ["add", deep, 0]
    yield "an expression that is too deep", with_steps(["more", deep])
    yield "a step of three", with_steps(["more", 1, 2])
    yield "a step of one", with_steps(["more"])
    yield "a step that is a text", sealed({**HONEST, "steps": [*HONEST["steps"], "ab"]})
    yield "steps that are an object", sealed({**HONEST, "steps": dict(HONEST["steps"])})


def _tables() -> Iterator[tuple[str, dict[str, Any]]]:
    for table in (
        *("12", 12, None, ["01"], ["1.0"], [True], [None], [[[1]]], {}, {"first": "1"}),
        *({"first": "1", "ratio": "x", "digits": 3, "floor": 0, "count": 2},),
        *({"first": "1", "ratio": "0.5", "digits": 0, "floor": 0, "count": 2},),
        *({"first": "1", "ratio": "0.5", "digits": 3, "floor": 0, "count": 2, "more": 1},),
        *({"first": "1", "ratio": "0.5", "digits": 3, "floor": 0, "count": 10**9},),
        *({"first": "1", "ratio": "1e99", "digits": 3, "floor": 0, "count": 14},),
        *([[1], 2], [2, [1]], [[1], [1, 2]], [[], [1]]),
    ):
        yield f"the table {json.dumps(table)}", with_steps(tables={"few": table})
    for table in ([[1], 2], [2, [1]], [[1], [1, 2]]):
        yield (
            f"a place of the table {json.dumps(table)}",
            with_steps(["more", ["at", "few", 0]], tables={"few": table}),
        )
    yield "tables that are a list", with_steps(tables=["few"])


def _inputs() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "an input with another key", with_input(last=3)
    for count in (0, -1, True, None, "3.0", "03", "\u0663", {}):
        yield f"the count {json.dumps(count)}", with_input(count=count)
    for text in (0, 1, None, "true"):
        yield f"a text that is {json.dumps(text)}", with_input(text=text)
    for kind in ("choice", "", None, 1, ["answer"]):
        yield f"the kind {json.dumps(kind)}", with_input(kind=kind)
    for given in (
        *({"kind": "word", "length": 1, "count": 1}, {"kind": "word", "length": 0}, {"kind": "word", "length": 513}),
        *({"kind": "word", "length": "1"}, {"kind": "word", "length": True}, {"kind": "word"}),
        {"kind": "answer", "count": 3},
    ):
        yield f"the input {json.dumps(given)}", sealed({**HONEST, "input": given})
    numbers = {"kind": "number", "lower": "0.0", "upper": "1.0", "times": "2.0", "last": 2}
    for change in (
        *({"lower": "2.0"}, {"lower": 0}, {"upper": "inf"}, {"upper": "1e400"}, {"upper": "1_0"}, {"upper": "0x1"}),
        *(
            {"times": "0.0"},
            {"times": "-1.0"},
            {"times": "NaN"},
            {"last": "2"},
            {"last": -1},
            {"last": 2**53 - 1, "text": False},
        ),
        *({"step": "0.5"}, {"count": 3}, {"lower": "-1e308", "upper": "1e308"}, {"times": "1e308", "upper": "1e10"}),
        {"upper": "1.0 "},
    ):
        yield f"numbers with {json.dumps(change)}", sealed({**HONEST, "input": {**numbers, **change}})


def _answers() -> Iterator[tuple[str, dict[str, Any]]]:
    for answers in (
        ["a", "b"],
        ["a", "b", "b"],
        ["a", "b", 3],
        ["a", "b", ""],
        "abc",
        {"a": 0, "b": 1, "c": 2},
        [],
        3,
    ):
        yield f"the answers {json.dumps(answers)}", with_steps(answers=answers)
    numbers = {"kind": "number", "lower": "0.0", "upper": "1.0", "times": "2.0", "last": 2}
    yield "names of numbers", sealed({**HONEST, "input": numbers, "answers": ["a", "b", "c"]})
    for answers in (["a", "b", "b "], ["a", "e\u0301", "\u00e9"], ["a", "b", "\u200b"]):
        yield f"the answers {json.dumps(answers)}, of which two are one", with_steps(answers=answers)
    for most in (None, 0, 201, "2", True):
        yield f"at most {json.dumps(most)} ticks", with_steps(at_most=most)
    yield "ticks of numbers", sealed({**HONEST, "input": numbers, "at_most": 2})


def _parts() -> Iterator[tuple[str, dict[str, Any]]]:
    for part in (
        *(
            ["uint", "drawn", 1],
            ["uint", "drawn", 1, 1, 1],
            ["uint", "drawn", 0, 1],
            ["uint", "drawn", 9, 1],
            "uint",
            [],
        ),
        *(
            ["uint", "drawn", "1", 1],
            ["uint", "drawn", 1, True],
            ["uint", "drawn", 1, -1],
            ["uint", 1, 1, 1],
            ["uint"],
        ),
        *(
            ["uint", "nothing", 1, 1],
            ["packed", "drawn"],
            ["packed", "drawn", "1"],
            ["text", "drawn", 1, 1],
            [["uint"], "drawn"],
        ),
        *(
            ["float64", "drawn", "0.0", "1.0"],
            ["float64", "value", 0, "1.0", 0],
            ["float64", "value", "0.0", "inf", 0],
        ),
        *(["float64", "value", "0.0", "1.0", "1.0"], ["float64", "value", "0.0", "1.0x", 0], ["uint", "few", 1, 1]),
        *(["float64", "vector", "0.0", "1.0", 0], ["uint", "value", 1, 1], ["uint", "numbers", 1, 1]),
        ["uint", "vector", 8, 2**21],
    ):
        made = with_steps(["vector", ["list", 1]], parts=[part], tables={"few": [[1]], "numbers": [1]})
        yield f"the part {json.dumps(part)}", made
    yield "no parts", sealed({**HONEST, "report": {**HONEST["report"], "parts": []}})
    for size in (-1, "1", True, None, 2**23 + 1, [1]):
        shaped = sealed({**HONEST, "report": {**HONEST["report"], "shape": [size]}})
        yield f"a report with the shape {json.dumps([size])}", shaped
    yield "a report with another key", sealed({**HONEST, "report": {**HONEST["report"], "more": 1}})
    yield (
        "a report without a shape",
        sealed({**HONEST, "report": {"dtype": "|u1", "parts": HONEST["report"]["parts"]}}),
    )


def _keys() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "a key of its own", with_steps(note="trust me")
    yield "a missing key", sealed({name: value for name, value in HONEST.items() if name != "tables"})
    yield "a format of its own", with_steps(format="ldp-budget")
    for version in (0, 2, True, "1", None):
        yield f"the version {json.dumps(version)}", with_steps(version=version)
    for memo in ("value", "nothing", None, False, 0, []):
        yield f"the memo {json.dumps(memo)} of a program that keeps nothing", with_steps(memo=memo)
    kept = ["kept", ["kept_bits", "a", "value", HALF, 1]]
    for memo in ("", "nothing", "kept", None):
        yield f"the memo {json.dumps(memo)} of a program that keeps something", with_steps(kept, memo=memo)
    yield "labels of a program that keeps nothing", with_steps(labels=True)
    for labels in (False, None, 1, "yes", []):
        yield f"the labels {json.dumps(labels)}", with_steps(["number", 0], kept, memo="number", labels=labels)
    yield "a name of two lines", with_steps(name="mood\nPROVED: all")
    yield "a title that is no text", with_steps(title=None)
    yield "a translation of one answer", with_steps(languages={"de": {"answers": ["ja"]}})
    yield "a translation of its own", with_steps(languages={"de": {"epsilon": "0.1"}})
    for tag in ("", "d", "한국어", "de_AT", "de-", "1a", "deutschland"):
        yield f"a language with the tag {tag!a}", with_steps(languages={tag: {"title": "Titel"}})
    for words in ({"title": None}, {"answers": "abc"}, {"question": ["?"]}, [], None):
        yield f"the translation {json.dumps(words)}", with_steps(languages={"de": words})
    for key in ("kind", "slot", "unit", "items"):
        yield f"the key {key} of a question of a survey", with_steps(**{key: "choice"})
    for key in ("title", "context", "languages", "answers", "report", "guarantee"):
        yield f"a definition without {key}", sealed({name: value for name, value in HONEST.items() if name != key})
    for hidden in ("\x00", "\x7f", "\u00a0", "\u200b", "\u202e", "\u2028", "\ufeff"):
        yield f"a mechanism with {hidden!a}", with_steps(mechanism=f"grr{hidden}")


def _texts() -> Iterator[tuple[str, str]]:
    """Texts that only some readers of JSON refuse."""
    text = json.dumps(HONEST)
    yield "a list", f"[{text}]"
    yield "a key twice", text.replace('"version": 1', '"version": 1, "version": 1')
    yield "a key twice within the input", text.replace('"count": 3', '"count": 2, "count": 3')
    for number in ("1.0", "1e0", "10E-1", "-0", "NaN", "Infinity", "01", "9007199254740993"):
        yield f"the version {number}", text.replace('"version": 1', f'"version": {number}')
        yield f"the count {number}", text.replace('"count": 3', f'"count": {number}')
    yield "a byte order mark", "\ufeff" + text
    yield "two definitions", f"{text} {text}"
    yield "an answer with half of a character", json.dumps(with_steps(answers=["\ud800", "b", "c"]))
    yield "a seed with half of a character", json.dumps(with_steps(["more", ["polynomial", "\udc00", 1, "value", 3]]))
    yield "another digest", text.replace(HONEST["digest"], "0" * 64)


def guarantees() -> Iterator[tuple[str, dict[str, Any]]]:
    """Definitions whose guarantee has another form."""
    for figure in ("answer_epsilon", "lifetime_epsilon", "limit"):
        yield (
            f"{figure} of a program that draws each time",
            with_steps(guarantee={**HONEST["guarantee"], figure: "0.02"}),
        )
    for epsilon in (1, True, [], {}, "", " 1", "-1", "nan", "inf", "1e1000", "1.", ".5"):
        yield f"the epsilon {json.dumps(epsilon)}", with_steps(guarantee={**HONEST["guarantee"], "epsilon": epsilon})
    for word in ("kind", "relation", "words"):
        yield f"{word} that are no text", with_steps(guarantee={**HONEST["guarantee"], word: None})
    yield "no delta", with_steps(guarantee={"epsilon": "1.0", "relation": "any inputs"})


# -- leaks ---------------------------------------------------------------------------------------------------------


def leaks() -> Iterator[tuple[str, dict[str, Any]]]:
    """Definitions of the specified form that lose more than they state."""
    coin = ["coin", ["bit", HALF]]
    yield "the answer itself", of(["report", ["add", "value", 0]])
    yield (
        "the answer of a number",
        of(
            ["report", ["add", "value", 0]],
            input={"kind": "number", "lower": "0.0", "upper": "1.0", "times": "1.0", "last": 1},
        ),
    )
    yield "the answer of a word", of(["report", ["add", "value", 0]], input={"kind": "word", "length": 1})
    yield (
        "a branch that fails",
        of(
            coin,
            ["zero", ["mul", "coin", 0]],
            ["bad", ["at", "t", ["add", ["mul", "value", 2], "zero"]]],
            ["report", ["where", ["add", "zero", 1], "coin", "bad"]],
            tables={"t": [0, 1]},
        ),
    )
    yield "a branch of a known condition that fails", of(["report", ["where", 1, 0, ["div", 1, "value"]]])
    for name, dead in {
        "a place": ["at", "t", "value"],
        "a place below": ["at", "t", ["sub", 0, "value"]],
        "a division": ["div", 1, ["sub", 1, "value"]],
        "a remainder": ["mod", 1, "value"],
        "a condition": ["where", ["add", 1, "value"], 1, 0],
        "a condition below": ["where", ["sub", 0, "value"], 1, 0],
        "a shift": ["shl", 1, ["mul", 65537, "value"]],
        "a shift to the right": ["shr", 1, ["sub", 0, "value"]],
        "a number that is too large": ["mul", ["shl", 1, 4095], ["add", "value", 1]],
        "a number that is shifted too far": ["shl", "value", 4096],
        "the bits of a number below zero": ["parity", ["sub", 0, "value"]],
        "the bits of two numbers": ["and", 1, ["sub", 0, "value"]],
        "the bits of two numbers apart": ["xor", 1, ["sub", 0, "value"]],
        "a number next to a vector without entries": ["mod", ["list"], ["sub", 1, "value"]],
        "a condition next to a vector without entries": ["where", ["sub", 0, "value"], ["list"], 1],
        "a shift next to a vector without entries": ["shl", ["list"], ["sub", 0, "value"]],
        "bits next to a vector without entries": ["xor", ["sub", 0, "value"], ["list"]],
        "a first bit": ["first", ["list", ["mul", 2, "value"]]],
        "bits that are joined": ["join", ["list", ["mul", 2, "value"]]],
        "an order": ["rank", ["list", "value", 0], 0],
        "a place of a vector": ["put", "t", "value", 0],
        "a place of ones": ["onehot", "value", 1],
        "a length": ["onehot", 0, ["sub", 1, "value"]],
        "two lengths": ["add", ["onehot", 0, ["add", 1, "value"]], "t"],
        "a function": ["polynomial", "0", ["sub", 0, "value"], 0, 2],
        "a size of a hash": ["polynomial", "0", 0, 0, "value"],
        "a size of a filter": ["bloom", "0", 0, 0, ["sub", 1, "value"], 1],
        "a threshold": ["bit", ["sub", 0, "value"]],
        "an open threshold": ["bit_at", ["mul", str(2**64), "value"]],
        "a bound": ["below", "value"],
        "a number of draws": ["bits", HALF, ["sub", 0, "value"]],
        "a set": ["subset", 1, ["mul", 2, "value"]],
        "places of a deviate": ["laplace", ["mul", 41, "value"]],
    }.items():
        yield (
            f"{name} that fails in a step that is not needed",
            of(["dead", dead], ["report", ["bit", HALF]], tables={"t": [7]}),
        )
    yield (
        "a length that is not needed",
        of(["dead", ["onehot", 0, ["add", 1, ["mul", "value", 2**17]]]], ["report", ["bit", HALF]]),
    )
    yield (
        "what is kept for a number that is too large",
        of(["dead", ["kept_bits", "a", ["mul", "value", HALF], HALF, 1]], ["report", ["bit", HALF]], memo="value"),
    )
    yield (
        "kept words of two answers",
        of(
            ["one", ["kept_bits", "a", "value", HALF, 1]],
            ["two", ["kept_bits", "a", 0, HALF, 1]],
            ["report", ["xor", ["at", "one", 0], ["at", "two", 0]]],
            memo="value",
        ),
    )
    yield (
        "a report that fails when it is drawn",
        of(coin, ["report", ["where", "coin", ["mul", 256, "value"], "coin"]]),
    )
    yield (
        "a number that no double holds",
        of(
            coin,
            ["report", ["add", "coin", ["shl", "value", 1030]]],
            report={"dtype": "<f8", "shape": [], "parts": [["float64", "report", "0.0", "1.0", 0]]},
        ),
    )
    yield (
        "a double that overflows",
        of(
            coin,
            ["report", ["add", "coin", ["mul", 2, "value"]]],
            report={"dtype": "<f8", "shape": [], "parts": [["float64", "report", "1e308", "1e308", 0]]},
        ),
    )
    steep = [HALF, "1", str(2**64 - 1), HALF]
    yield "odds that are not linear", of(["report", ["bit_at", ["at", "t", "value"]]], count=4, tables={"t": steep})
    yield (
        "a linear threshold and a dead step",
        of(
            ["dead", ["div", 1, ["sub", "value", 1]]],
            ["report", ["bit_at", ["add", HALF, ["mul", "value", 0]]]],
            count=4,
        ),
    )
    yield (
        "a hash and a dead step",
        of(
            ["function", ["below", 4]],
            ["dead", ["div", 1, ["sub", "value", 1]]],
            ["report", ["polynomial", "0", "function", "value", 1]],
            count=4,
        ),
    )
    yield "a hash of what fails", of(["report", ["polynomial", "0", 0, ["div", 1, ["sub", "value", 1]], 1]], count=4)
    yield "one answer of five thousand", of(["report", ["eq", "value", 4321]], count=5000)


# -- failures ------------------------------------------------------------------------------------------------------


def failures() -> Iterator[tuple[str, dict[str, Any], int]]:
    """Definitions of the leaks above, and an answer for which the run must fail."""
    for name, definition in leaks():
        if "fails in a step" in name or "branch" in name or "what is kept for" in name:
            low = name.startswith(("a division", "a remainder", "a size of a hash", "a bound", "a branch of a known"))
            answer = 1 if name.startswith("a division") else 0 if low else 1
            yield name, definition, answer
    yield "a vector and another length", of(["dead", ["add", ["list", 1], ["list", 1, 2]]], ["report", 1]), 0
    yield "a part of another length", of(["report", ["list", 1, 2]]), 0
    yield (
        "a bit of two",
        of(["report", 2], report={"dtype": "|u1", "shape": [1], "parts": [["packed", "report", 1]]}),
        0,
    )
    yield "a number that is too large for its bytes", of(["report", 256]), 0
    yield "a number below zero", of(["report", -1]), 0
    yield "a double that is infinite", dict(leaks())["a double that overflows"], 1


def main() -> None:
    """Write `refusals.json`."""
    rows = {
        "forms": [{"name": name, "of": of, "text": text} for name, text, of in forms()],
        "guarantees": [{"name": name, "definition": definition} for name, definition in guarantees()],
        "leaks": [{"name": name, "definition": definition} for name, definition in leaks()],
        "failures": [{"name": name, "definition": made, "answer": answer} for name, made, answer in failures()],
    }
    for kind, each in rows.items():
        names = [row["name"] for row in each]
        assert len(set(names)) == len(names), (kind, sorted(name for name in names if names.count(name) > 1))
    (FOLDER / "refusals.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
