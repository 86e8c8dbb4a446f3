"""Makes the vectors of the checkers: files that a checker must prove, and files that it must refuse.

    python clients/vectors/make_checks.py

writes `totals.json` (docs/reference/certificate-format.md) and `laws.json` (docs/reference/law-check.md). Each vector has
a name, a text and the verdict: `proved`, `refused`, or for a law `cannot`.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_budget import mechanism
from ldp_budget.guarantees import Approximate, FinitePair, Gaussian, Laplace, Pure, SymmetricPair
from ldp_budget.registry.public_definition import NOTHING, definition_of, digest_of
from ldp_budget_verify.total_certificate import certificate, written

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent
OUE, GRR = SymmetricPair("0.5", "0.5"), SymmetricPair("1", "0.3")
TOTALS: dict[str, tuple[list[tuple[Any, int]], str]] = {
    "50 reports of oue": ([(OUE, 50)], "1e-6"),
    "365 reports of oue": ([(OUE, 365)], "1e-6"),
    "100 reports of grr": ([(GRR, 100)], "1e-6"),
    "one report": ([(OUE, 1)], "1e-9"),
    "a plain sum": ([(OUE, 3), (Laplace("0.25"), 4)], "0"),
    "three losses": (
        [(SymmetricPair("0.5", "0.5"), 20), (SymmetricPair("0.77", "0.4"), 10), (Pure("0.313"), 30)],
        "1e-6",
    ),
    "Gaussians": ([(Gaussian("0.2"), 100)], "1e-6"),
    "a mixture": ([(OUE, 12), (Gaussian("0.3"), 9), (Laplace("0.5"), 10)], "1e-5"),
    "Laplace": ([(Laplace("0.5"), 30)], "1e-6"),
    "losses with a delta": ([(Approximate("0.3", "1e-8"), 30)], "1e-6"),
    "a finite pair": ([(FinitePair((("3/5", "1/4"), ("1/5", "1/5"), ("1/5", "11/20"))), 12)], "1e-6"),
    "a pair with an infinite loss": (
        [(FinitePair((("1/1000", "0"), ("1/2", "1/4"), ("499/1000", "3/4"))), 2)],
        "1e-2",
    ),
    "a tiny delta": ([(OUE, 40)], "1e-30"),
}


def changed(claim: dict[str, Any], **values: Any) -> bytes:
    """A certificate with other values, written in canonical form."""
    return written({**claim, **values})


def charged(claim: dict[str, Any], **values: Any) -> bytes:
    """A certificate whose first charge has other values."""
    return changed(claim, charges=[{**claim["charges"][0], **values}, *claim["charges"][1:]])


def totals() -> Iterator[tuple[str, bytes, str]]:
    """Certificates that are proved, and what must be refused."""
    made = {name: certificate(charges, delta=delta) for name, (charges, delta) in TOTALS.items()}
    for name, claim in made.items():
        yield name, written(claim), "proved"
    claim, mixed = made["50 reports of oue"], made["a mixture"]
    yield "a larger epsilon", changed(claim, epsilon="14"), "proved"
    yield "a coarse grid with a large epsilon", changed(claim, grid="0.3", epsilon="20"), "proved"
    yield from ((name, data, "refused") for name, data in stronger(claim, mixed))
    yield from ((name, data, "refused") for name, data in malformed(claim))


def stronger(claim: dict[str, Any], mixed: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Claims that are false, and claims that their hints do not prove."""
    yield "a smaller epsilon", changed(claim, epsilon="13.846")
    yield "a smaller delta", changed(claim, delta="0.00000099")
    yield "delta 0", changed(claim, delta="0")
    yield "epsilon 0", changed(claim, epsilon="0")
    yield "one report more", charged(claim, count=51)
    yield "a larger bound", charged(claim, bound="0.501")
    yield "a larger tau", charged(claim, tau="0.51")
    yield "a smaller epsilon of a mixture", changed(mixed, epsilon=str(float(mixed["epsilon"]) * 0.998)[:9])
    yield "a coarse grid", changed(claim, grid="7/10")
    yield "a large tail", changed(claim, tail="0.01")


def unlikely_charges() -> dict[str, list[Any]]:
    """Charges that a lenient reader takes for harmless ones, or that need more work than a checker does."""
    pure, rows = {"kind": "pure", "count": 1}, {"kind": "finite-pair", "count": 1}
    primes = [each for each in range(3, 40_000, 2) if all(each % k for k in range(3, 200, 2) if k < each)]
    return {
        "a bound that is null": [{**pure, "bound": None}],
        "a bound that is false": [{**pure, "bound": False}],
        "a bound that is a list": [{**pure, "bound": ["0"]}],
        "a mu that is null": [{"kind": "gaussian", "count": 1, "mu": None}],
        "a tau that is null": [{"kind": "symmetric-pair", "count": 1, "bound": "1", "tau": None}],
        "a slack that is null": [{"kind": "approximate", "count": 1, "bound": "1", "slack": None}],
        "a list with the kind of its keys": [{"kind": ["pure"], "count": 1, "bound": "0"}],
        "a kind that is null": [{"kind": None, "count": 1, "bound": "0"}],
        "a kind of every object": [{"kind": "constructor", "count": 1}],
        "a key of every object": [{**pure, "bound": "0", "__proto__": "0"}],
        "a charge that is null": [None],
        "a charge that is a list": [["pure"]],
        "outcomes that are null": [{**rows, "outcomes": None}],
        "outcomes that are an object": [{**rows, "outcomes": {"0": ["1", "1"]}}],
        "an outcome of three numbers": [{**rows, "outcomes": [["1", "1", "1"]]}],
        "an outcome that is null": [{**rows, "outcomes": [["1", "1"], None]}],
        "a mass that is null": [{**rows, "outcomes": [["1", "1"], ["0", None]]}],
        "too many outcomes": [{**rows, "outcomes": [["0", "0"]] * 2**15 + [["1", "1"]]}],
        "too many cells": [{"kind": "laplace", "count": 1, "bound": bound} for bound in ("100", "99")] * 42,
        "too long a common denominator": [{**rows, "outcomes": [[f"1/{each}"] * 2 for each in primes]}],
        "a number of 4,301 digits": [{**pure, "bound": f"0.{'0' * 4301}"}],
    }


def malformed(claim: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Files that are no certificate, although some parsers would take them for one."""
    text = written(claim).decode()
    for count in (0, -50, True, 10**9 + 1, "50", 50.0, None, [50]):
        yield f"the count {count!r}", charged(claim, count=count)
    for epsilon in (
        "",
        " 14",
        "14 ",
        "+14",
        "-14",
        "014",
        "1_4",
        "1.4e1",
        "14.",
        ".5",
        "١٤",
        "１４",
        "NaN",
        "Infinity",
        "1/0",
        "0x10",
    ):
        yield f"the epsilon {epsilon!a}", changed(claim, epsilon=epsilon)
    yield "an epsilon that is a number", changed(claim, epsilon=14)
    yield "an epsilon with a newline", changed(claim, epsilon="14\n")
    yield "a delta of 1", changed(claim, delta="1")
    for name, values in (
        ("grid", ("0", "-1", "101", "0.0000000001", 0.5)),
        ("bits", (0, 63, 193, "96", 96.5)),
        ("tail", ("-1", "2", "1E-13")),
    ):
        for value in values:
            yield f"the {name} {value!r}", changed(claim, **{name: value})
    yield "a bound above 100", charged(claim, bound="101")
    yield "a negative bound", charged(claim, bound="-0.5")
    yield "a tau above 1", charged(claim, tau="1.5")
    yield "no charges", changed(claim, charges=[])
    yield "charges that are an object", changed(claim, charges={"0": claim["charges"][0]})
    yield "another kind", charged(claim, kind="unbounded")
    yield "a kind that is a list", charged(claim, kind=["pure"])
    yield "a key of another kind", charged(claim, slack="0")
    yield "a missing key", changed(claim, charges=[{"kind": "symmetric-pair", "bound": "0.5", "count": 50}])
    yield "another key", changed(claim, note="trust me")
    yield "another format", changed(claim, format="ldp-budget statement")
    yield "another version", changed(claim, version=2)
    yield "a version that is true", changed(claim, version=True)
    rows = {"kind": "finite-pair", "count": 1}
    yield "masses above 1", changed(claim, charges=[{**rows, "outcomes": [["1", "1/2"], ["1/2", "1/2"]]}])
    yield "masses below 1", changed(claim, charges=[{**rows, "outcomes": [["1/2", "1/2"]]}])
    yield "outcomes that are texts", changed(claim, charges=[{**rows, "outcomes": ["11"]}])
    yield "no outcomes", changed(claim, charges=[{**rows, "outcomes": []}])
    yield from ((name, changed(claim, charges=rows)) for name, rows in unlikely_charges().items())
    yield "a list", f"[{text.strip()}]\n".encode()
    yield "no JSON", b"PROVED\n"
    yield "an empty file", b""
    yield "no newline at the end", text.strip().encode()
    yield "two newlines at the end", f"{text}\n".encode()
    yield "a space", text.replace(",", ", ", 1).encode()
    yield "a key twice", text.replace('"epsilon"', '"epsilon":"1","epsilon"').encode()
    yield "an escaped letter", text.replace('"pure"', '"\\u0070ure"').replace('"bits"', '"\\u0062its"').encode()
    yield "a byte order mark", b"\xef\xbb\xbf" + text.encode()
    yield "UTF-16", text.encode("utf-16")
    yield "an exponent", text.replace('"count":50', '"count":5e1').encode()
    yield "keys out of order", json.dumps(dict(reversed(claim.items())), separators=(",", ":")).encode() + b"\n"
    yield "nested lists", b"[" * 5000 + b"]" * 5000 + b"\n"
    yield "too much work", changed(claim, grid="0.00004", charges=[{**claim["charges"][0], "count": 10**9}])


# -- laws ------------------------------------------------------------------------------------------------------


def definition(made: Any, name: str) -> dict[str, Any]:
    """The public definition of a collection of this mechanism."""
    found: dict[str, Any] = json.loads(json.dumps(definition_of(name, "00" * 32, made, None, NOTHING)))
    return found


def sealed(definition: dict[str, Any]) -> dict[str, Any]:
    """A definition with its digest computed again."""
    return {**definition, "digest": digest_of(definition)}


MECHANISMS: dict[str, Any] = {
    "oue": {"epsilon": "1", "domain_size": 5},
    "sue": {"epsilon": "2", "domain_size": 5},
    "unary-encoding": {"p": "0.7", "q": "0.2", "domain_size": 4},
    "grr": {"epsilon": "1", "domain_size": 6},
    "randomized-response": {"epsilon": "1.1"},
    "subset-selection": {"epsilon": "0.5", "domain_size": 6},
    "pgr": {"epsilon": "1", "domain_size": 7},
    "d-bit-flip": {"epsilon": "1", "buckets": 6, "bits": 2},
    "one-bit-mean": {"epsilon": "1", "maximum": 10},
    "cms": {"epsilon": "1", "hashes": 4, "width": 8},
    "hcms": {"epsilon": "1", "hashes": 4, "width": 8},
    "loloha": {"epsilon_lifetime": "2", "epsilon_first": "1", "domain_size": 6},
    "ticks": {"epsilon": "1", "domain_size": 5, "at_most": 2, "k": 2},
}
BEYOND: dict[str, Any] = {
    "laplace": {"epsilon": "1", "lower": 0, "upper": 1},
    "gaussian": {"epsilon": "1", "delta": "1e-5", "lower": 0, "upper": 1},
    "staircase": {"epsilon": "1", "lower": 0, "upper": 1},
    "square-wave": {"epsilon": "1", "lower": 0, "upper": 1},
    "rappor": {"bits": 8, "hashes": 2, "cohorts": 2, "f": "0.5", "p": "0.25", "q": "0.75"},
    "heavy-hitters": {"epsilon": "2", "length": 2},
}


def laws() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Definitions that are proved, that lie, and that are beyond the checker."""
    made = {name: definition(mechanism(name).calibrate(**options), name) for name, options in MECHANISMS.items()}
    rows = [["0.7", "0.1"], ["0.2", "0.3"], ["0.1", "0.6"]]
    made["matrix-substitution"] = definition(mechanism("matrix-substitution")(matrix=rows), "matrix-substitution")
    for name, found in made.items():
        yield name, found, "proved"
    for name, options in BEYOND.items():
        yield name, definition(mechanism(name).calibrate(**options), name), "cannot"
    yield from ((name, lie, "refused") for name, lie in lies(made))


def lies(made: dict[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Programs that do not keep the guarantee that their definition states, or whose digest is another one."""
    for name, found in made.items():
        if found["guarantee"]["epsilon"] == "1":
            yield (
                f"{name} that states less",
                sealed({**found, "guarantee": {**found["guarantee"], "epsilon": "0.999"}}),
            )
    for name, found in made.items():
        for lie in moved(found):
            yield f"{name} with a moved threshold", lie
    oue = made["oue"]
    yield "another digest", {**oue, "digest": "0" * 64}
    yield "a text that was changed", {**oue, "title": "another title"}
    pairs = {
        "the answer beside the report": (["leak", "value"], ["uint", "leak", 1, 1]),
        "the answer after a coin": (["leak", ["mul", "coin", ["mod", "value", 2]]], ["uint", "leak", 1, 1]),
        "a number too large for its bytes": (["leak", ["shl", "value", 8]], ["uint", "leak", 1, 1]),
    }
    for name, (step, part) in pairs.items():
        lie = copy.deepcopy(oue)
        lie["steps"] += [["coin", ["bit", str(2**63)]], step]
        lie["report"]["parts"].append(part)
        yield name, sealed(lie)
    lie = copy.deepcopy(oue)
    lie["steps"].append(["twice", ["put", "row", ["mod", ["add", "value", 1], 5], ["at", "row", "value"]]])
    lie["report"]["parts"][0][1] = "twice"
    yield "one draw sent twice", sealed(lie)
    lie = copy.deepcopy(oue)
    lie["steps"][1][1] = ["bit_at", ["where", ["eq", "value", 4], str(2**64 - 1), str(2**63)]]
    yield "hardly any noise for the last answer", sealed(lie)
    lie = copy.deepcopy(oue)
    lie["steps"] += [["pad", ["bit", str(2**63)]], ["hidden", ["xor", "pad", ["mod", "value", 2]]]]
    lie["report"]["parts"] += [["uint", "pad", 1, 1], ["uint", "hidden", 1, 1]]
    yield "the answer and its pad", sealed(lie)
    lie = copy.deepcopy(made["matrix-substitution"])
    [table] = lie["tables"]
    lie["tables"][table][0][0] += 1
    yield "a table with another entry", sealed(lie)


def moved(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The definition with each threshold of unary encoding moved by 2^-64, to the side that raises the loss."""
    for place, (_, expression) in enumerate(found["steps"]):
        if found["mechanism"] in ("oue", "sue") and expression[0] in ("bits", "bit"):
            lie = copy.deepcopy(found)
            lie["steps"][place][1][1] = str(int(expression[1]) + (1 if expression[0] == "bit" else -1))
            yield sealed(lie)


def main() -> None:
    rows: list[dict[str, Any]] = [
        {"name": name, "bytes": data.hex(), "verdict": verdict}
        if not data.isascii() or len(data) > 5000
        else {"name": name, "text": data.decode(), "verdict": verdict}
        for name, data, verdict in totals()
    ]
    found = [{"name": name, "definition": each, "verdict": verdict} for name, each, verdict in laws()]
    for name, vectors in (("totals", rows), ("laws", found)):
        text = ",\n".join(json.dumps(row) for row in vectors)
        (FOLDER / f"{name}.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
