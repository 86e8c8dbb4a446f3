"""The checkers in Python and in JavaScript agree on changed certificates and published surveys."""

from __future__ import annotations

import base64
import copy
import importlib.util
import json
import random
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from checker_vectors import CHECKERS, totals
from ldp_budget._files import canonical_json
from ldp_budget_surveys.publication.merkle import leaf_hash, root_of
from ldp_budget_verify.shipped_checkers import checker
from published_survey import tampered

NODE = shutil.which("node")
BATCH = Path(__file__).parents[2] / "helpers" / "check_batch.mjs"
WIDE = "\U0001f6b2"


class Raw(str):
    """A piece of JSON that is written as it is."""


POOL: list[Any] = [
    *(None, True, False, 0, 1, 2, -1, 15, 16, 17, 2**31, 2**32, 2**53 - 1, 2**53, 2**53 + 1, 2**63, 2**64, 10**30),
    *("", "0", "1", "1.0", "-1", "epsilon", "rho", "mu_squared", "delta", "constructor", "__proto__", "a\n", "é", WIDE),
    *("00" * 16, "00" * 32, "ff" * 32, "0.5", "1e-9", "1E5", "NaN", "9" * 30, "\u202e", "2027-03-01T12:00:00Z"),
    *([], {}, [[]], [0], [None], ["0"], {"0": 1}, {"length": 1}),
    *map(Raw, ("1.0", "1e0", "-0", "0.5", "1E400", "NaN", "Infinity", "9007199254740993", '"\\ud800"', '"\\u0041"', "01", "+1")),
    Raw("[" * 70 + "]" * 70),
    Raw('{"a":1,"a":1}'),
]  # fmt: skip


def dumped(value: Any, rng: random.Random, usual: float = 0.97) -> str:
    """The value as canonical JSON; rarely with another space, order or escape."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        items = sorted(value.items())
        if rng.random() > usual:
            rng.shuffle(items)
        parts = [f"{canonical_json(key)}:{dumped(each, rng, usual)}" for key, each in items]
        if parts and rng.random() > usual + 0.02:
            parts.append(rng.choice(parts))
        return "{" + ",".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dumped(each, rng, usual) for each in value) + "]"
    return canonical_json(value)


def changed(value: Any, rng: random.Random) -> Any:
    """The value with one change at a random place."""
    value = copy.deepcopy(value)
    places = _places(value)
    if not places:
        return rng.choice(POOL)
    holder, key = rng.choice(places)
    kind = rng.randrange(9)
    old = holder[key]
    if kind == 0 and isinstance(holder, dict):
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[rng.choice(["more", "__proto__", "toString", "version", "ä", key + " ", key.upper()])] = rng.choice(
            [old, *POOL]
        )
    elif kind == 2:
        other, place = rng.choice(places)
        holder[key], other[place] = other[place], holder[key]
    elif kind in (3, 4) and type(old) is int:
        holder[key] = old + rng.choice([-2, -1, 1, 2, 16, -old, old, 2**52])
    elif kind in (3, 4) and isinstance(old, str) and old:
        place = rng.randrange(len(old))
        holder[key] = old[:place] + rng.choice(["", "0", "1", "f", ".", "\n", "é", old[place] * 2]) + old[place + 1 :]
    elif kind == 5 and isinstance(old, list) and old:
        old.insert(rng.randrange(len(old)), copy.deepcopy(rng.choice(old)))
    elif kind == 6 and isinstance(old, list) and old:
        del old[rng.randrange(len(old))]
    else:
        holder[key] = copy.deepcopy(rng.choice(POOL))
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    for key, each in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        found += [(value, key), *_places(each)]
    return found


# -- certificates ------------------------------------------------------------------------------------------------------


def mutated_totals(rng: random.Random, count: int) -> list[bytes]:
    """Certificates with one or two changes, three in four of them in canonical form."""
    honest = [data for _, data, verdict in totals() if verdict == "proved" and len(data) < 400]
    found = []
    for _ in range(count):
        data = rng.choice(honest)
        if rng.random() < 0.2:
            found.append(tampered(data, rng))
            continue
        claim = changed(json.loads(data), rng)
        claim = changed(claim, rng) if rng.random() < 0.3 else claim
        found.append(dumped(claim, rng).encode("utf-8", "surrogatepass") + b"\n")
    return found


# -- published surveys -------------------------------------------------------------------------------------------------


def mutated_books(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Published surveys with one or two changes, signed again where the changes are of a statement or a definition."""
    maker = _maker()
    surveys = json.loads((CHECKERS / "vectors.json").read_text(encoding="utf-8"))["surveys"]
    honest = [each for each in surveys if each["accepted"] and len(each["files"]["client.json"]) < 4000]
    return [_mutated(maker, rng.choice(honest), rng) for _ in range(count)]


def _maker() -> Any:
    spec = importlib.util.spec_from_file_location("make_vectors", CHECKERS / "make_vectors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _mutated(maker: Any, survey: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    receipts = survey.get("receipt_texts") or [json.dumps(each) for each in survey["receipts"]]
    made = {
        "keys": list(survey["keys"]),
        "files": dict(survey["files"]),
        "receipts": receipts,
        "proof": survey["proof"],
    }
    for _ in range(1 + (rng.random() < 0.2)):
        _change(maker, made, rng)
    if rng.random() < 0.2:
        made["receipts"], made["proof"] = [], None
    return made


def _change(maker: Any, made: dict[str, Any], rng: random.Random) -> None:
    kind, files = (
        rng.choice(["statement"] * 6 + ["definition"] * 5 + ["receipt"] * 4 + ["proof"] * 3 + ["file", "list"]),
        made["files"],
    )
    if kind == "file":
        name = rng.choice(sorted(files))
        files[name] = base64.b64encode(tampered(base64.b64decode(files[name]) or b"0", rng)).decode()
    elif kind == "receipt" and rng.random() < 0.3:
        _promise(maker, made, rng)
    elif kind == "receipt":
        made["receipts"] = [_changed_text(made["receipts"][0], rng), *made["receipts"][1:]]
    elif kind == "proof":
        made["proof"] = _changed_text(made["proof"], rng)
    else:
        try:
            _sign(maker, made, kind, rng)
        except (KeyError, TypeError, ValueError):  # an earlier change left nothing to sign
            return


def _changed_text(text: str, rng: random.Random) -> str:
    if rng.random() < 0.2:
        return tampered(text.encode(), rng).decode("latin-1")
    try:
        return dumped(changed(json.loads(text), rng), rng)
    except (RecursionError, ValueError):
        return text


def _promise(maker: Any, made: dict[str, Any], rng: random.Random) -> None:
    """Sign another promise in the receipt."""
    try:
        receipt = json.loads(made["receipts"][0])
        said = changed({"measure": receipt["promise"]["measure"], "limit": receipt["promise"]["limit"]}, rng)
        receipt["promise"] = maker.promised_to(receipt, said["measure"], said["limit"])
        made["receipts"] = [dumped(receipt, rng)]
    except (AttributeError, KeyError, TypeError, ValueError):
        return


def _follow(maker: Any, made: dict[str, Any], digest: str) -> None:
    """Make the receipt one of the changed definition, so that the checkers get to what comes after."""
    receipt = json.loads(made["receipts"][0])
    receipt["client"] = digest
    receipt["promise"] = maker.promised_to(receipt, receipt["promise"]["measure"], receipt["promise"]["limit"])
    made["receipts"] = [json.dumps(receipt)]


def _sign(maker: Any, made: dict[str, Any], kind: str, rng: random.Random) -> None:
    """Change a statement, the definition or a list, and publish what fits it."""
    files = {name: base64.b64decode(content) for name, content in made["files"].items()}
    entries = maker.entries_in(made["files"])
    statement = json.loads(entries[-1])
    if kind == "definition":
        definition = changed(json.loads(files["client.json"]), rng)
        body = dumped({key: each for key, each in definition.items() if key != "digest"}, rng, 1)
        digest = sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
        if isinstance(definition, dict) and "digest" in definition:
            definition["digest"] = statement["client"] = digest
            _follow(maker, made, digest)
        files["client.json"] = dumped(definition, rng, 1).encode("utf-8", "surrogatepass")
    elif kind == "list":
        size = rng.choice([17, 18, 32])
        name, tag, root = (
            ("charges.bin", b"C", "charges_root") if size == 32 else ("reports.bin", b"R", "reports_root")
        )
        records = [files[name][place : place + size] for place in range(0, len(files[name]), size)]
        rng.choice([records.sort, records.reverse, lambda: records.append(bytes(size)), lambda: records.pop()])()
        files[name] = b"".join(records)
        statement[root] = root_of([leaf_hash(tag + each) for each in records]).hex()
        statement["charges"] = statement["reports"] = len(records)
    earlier = rng.random()
    if kind == "statement" and earlier < 0.6:
        statement = changed(statement, rng)
        entries[-1] = dumped(statement, rng).encode("utf-8", "surrogatepass")
    elif kind == "statement":
        other = dumped(changed(statement, rng), rng).encode("utf-8", "surrogatepass")
        entries = [other, *entries] if earlier < 0.9 else [*entries, other]
    else:
        entries[-1] = canonical_json(statement).encode()
    kept = {name: content for name, content in files.items() if not name.startswith(("tile/", "checkpoint"))}
    made["files"] = maker.shown({**kept, **maker.signed(entries)})


# -- both verdicts -----------------------------------------------------------------------------------------------------


def by_javascript(kind: str, cases: list[Any], folder: Path) -> list[Any]:
    """The verdicts of the checker in JavaScript: null, or what it proved."""
    place = folder / "cases.json"
    place.write_text(json.dumps(cases), encoding="utf-8")
    done = subprocess.run([str(NODE), BATCH, kind, CHECKERS, place], capture_output=True, text=True, timeout=840)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def totals_by_python(cases: list[bytes]) -> list[Any]:
    """The same of the checker in Python."""
    found: list[Any] = []
    for data in cases:
        try:
            found.append(checker("check_total").check(data)[0]["epsilon"])
        except Exception:
            found.append(None)
    return found


def books_by_python(cases: list[dict[str, Any]], folder: Path) -> list[Any]:
    """The same of the checker in Python."""
    found: list[Any] = []
    for number, case in enumerate(cases):
        site = folder / f"site{number}"
        for name, content in case["files"].items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_bytes(base64.b64decode(content))
        receipts = [site / f"receipt{place}" for place in range(len(case["receipts"]))]
        for place, text in zip(receipts, case["receipts"], strict=True):
            place.write_bytes(text.encode("utf-8", "surrogatepass"))
        proof = None if case["proof"] is None else site / "proof"
        if proof:
            proof.write_bytes(case["proof"].encode("utf-8", "surrogatepass"))
        try:
            done = checker("check_books").examine(site, case["keys"], receipts, proof)
            found.append([done.statement["maximum"], done.unchecked])
        except Exception:
            found.append(None)
        shutil.rmtree(site)
    return found


pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node.js")
MANY = [pytest.param(seed, 1000, marks=pytest.mark.exhaustive) for seed in range(2, 22)]


@pytest.mark.parametrize(("seed", "count"), [(1, 60), *MANY])
def test_checkers_of_totals_with_changed_certificates_agree(seed: int, count: int, tmp_path: Path) -> None:
    cases = mutated_totals(random.Random(seed), count)
    found = totals_by_python(cases)
    other = by_javascript("totals", [base64.b64encode(data).decode() for data in cases], tmp_path)
    assert [cases[place] for place in range(count) if found[place] != other[place]] == []
    assert any(each is None for each in found)


@pytest.mark.parametrize(("seed", "count"), [(1, 120), *MANY])
def test_checkers_of_books_with_changed_surveys_agree(seed: int, count: int, tmp_path: Path) -> None:
    cases = mutated_books(random.Random(seed), count)
    found = books_by_python(cases, tmp_path)
    other = by_javascript("books", cases, tmp_path)
    assert [
        (found[place], other[place], cases[place]) for place in range(count) if found[place] != other[place]
    ] == []
    assert 0 < sum(each is not None for each in found) < count
