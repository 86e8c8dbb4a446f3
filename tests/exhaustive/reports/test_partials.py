"""Partial aggregates: merged in any order they are that of the whole, and no partition is in one twice."""

from __future__ import annotations

import functools
import pickle
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import ReportFileError
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.partial_aggregate import MAGIC, Partial, aggregate, aggregate_reports
from ldp_budget.reports.report_file import ReportWriter
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget_surveys.partitions import PartitionWriter

pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")

OUE = ldp_budget.mechanism("oue")(epsilon=1, domain_size=3)
POLL = Collection("poll", OUE, ("left", "centre", "right"))
NUMBERS = {"epsilon": 1, "lower": 0, "upper": 1}
SKETCH = {"epsilon": 1, "hashes": 16, "width": 32}
KINDS: dict[str, dict[str, Any]] = {
    "gaussian": {**NUMBERS, "delta": "1e-5"},
    "laplace": NUMBERS,
    "staircase": NUMBERS,
    "bounded-laplace": NUMBERS,
    "bounded-staircase": NUMBERS,
    "hybrid": NUMBERS,
    "square-wave": NUMBERS,
    "randomized-response": {"epsilon": 1},
    "unary-encoding": {"p": "0.5", "q": "0.2", "domain_size": 9},
    "sue": {"epsilon": 1, "domain_size": 5},
    "oue": {"epsilon": 1, "domain_size": 9},
    "olh": {"epsilon": 1, "domain_size": 9, "functions": 5},
    "ticks": {"epsilon": 1, "domain_size": 5, "at_most": 2},
    "grid": {"epsilon": 1, "items": 2, "domain_size": 3, "asked": 2, "threshold": 1},
    "one-sided": {"g": "0.3"},
    "rounded-response": NUMBERS,
    "random-threshold": NUMBERS,
    "random-substitution": {"epsilon": 1, "domain_size": 5, "draws": 2},
    "subset-selection": {"epsilon": 1, "domain_size": 10},
    "pgr": {"epsilon": 1, "domain_size": 100},
    "matrix-substitution": {"matrix": [["0.7", "0.3"], ["0.3", "0.7"]]},
    "rappor": {"bits": 16, "hashes": 2, "cohorts": 4, "f": "0.5", "p": "0.25", "q": "0.75", "domain_size": 4},
    "cms": SKETCH,
    "hcms": SKETCH,
    "one-bit-mean": {"epsilon": 1, "maximum": 10, "rounding": 2},
    "d-bit-flip": {"epsilon": 1, "buckets": 8, "bits": 2, "memoize": True},
    "loloha": {"epsilon_lifetime": 2, "epsilon_first": 1, "domain_size": 8, "hashes": 16},
    "heavy-hitters": {"epsilon": 1, "length": 3, "hashes": 16},
}


def reports_of(mechanism: Mechanism, count: int) -> Any:
    values = np.zeros(count, int if hasattr(mechanism.domain, "size") else float)
    return mechanism.randomize(values, rng=7, secrets=[b"%016d" % number for number in range(count)])


def some(number: int, rows: Any, folder: Path, collection: Collection = POLL) -> Partial:
    path = folder / f"{number}.parquet"
    with PartitionWriter(path, collection, task=f"monday/{number}") as writer:
        writer.write(rows)
    return aggregate(path, collection)


def same(one: Any, other: Any) -> bool:
    return all(np.array_equal(value, vars(other)[name]) for name, value in vars(one).items())


def test_partial_cases_include_every_installed_mechanism() -> None:
    found = {each.name for each in ldp_budget.mechanisms() if each.__module__.startswith("ldp_budget_mechanisms")}
    # One is drawn and added up elsewhere, and one has vectors, which no report file holds.
    assert found - set(KINDS) <= {"declared", "discrete-gaussian"}


@pytest.mark.parametrize("name", KINDS)
def test_partial_stored_and_merged_in_any_order_equals_the_whole(name: str, tmp_path: Path) -> None:
    mechanism = ldp_budget.mechanism(name).calibrate(**KINDS[name])
    collection = Collection("poll", mechanism)
    reports = reports_of(mechanism, 500)
    parts = [some(number, rows, tmp_path, collection) for number, rows in enumerate(np.array_split(reports, 7))]
    parts = [Partial.from_bytes(pickle.loads(pickle.dumps(part)).to_bytes(), collection) for part in parts]
    random.Random(1).shuffle(parts)
    total = functools.reduce(Partial.merge, parts[:3]).merge(functools.reduce(Partial.merge, parts[3:]))
    assert same(total.total, mechanism.aggregate(reports))
    assert total.to_bytes() == aggregate(tmp_path, collection).to_bytes()
    total.write(tmp_path / "total")
    assert aggregate(tmp_path / "total", collection).to_bytes() == total.to_bytes()


def test_partial_estimate_equals_that_of_the_mechanism(tmp_path: Path) -> None:
    reports = OUE.randomize(np.arange(90) % 3, rng=1)
    found = some(1, reports[:50], tmp_path).merge(some(2, reports[50:], tmp_path)).estimate()
    np.testing.assert_array_equal(found.counts, OUE.estimate(reports).counts)  # type: ignore[attr-defined]
    words = Collection("words", ldp_budget.mechanism("cms")(**SKETCH))
    rows = words.randomize(np.zeros(100, int))
    counts = aggregate_reports(rows, words).estimate(["0", "5"]).counts  # type: ignore[attr-defined]
    np.testing.assert_array_equal(counts, words.mechanism.estimate(rows, candidates=[0, 5]).counts)  # type: ignore
    with pytest.raises(ReportFileError, match="there are no reports to estimate from"):
        Partial(POLL).estimate()


def test_partial_merge_changes_neither_operand(tmp_path: Path) -> None:
    sketch = Collection("words", ldp_budget.mechanism("cms")(**SKETCH))
    one, other = (some(n, sketch.randomize(np.zeros(20, int)), tmp_path, sketch) for n in (1, 2))
    before = one.to_bytes(), other.to_bytes()
    empty = Partial(sketch)
    once = one.merge(other)
    again = empty.merge(one).merge(other).merge(empty)
    assert once.reports == again.reports == 40
    assert once.to_bytes() == again.to_bytes() == other.merge(one).to_bytes()
    assert (one.to_bytes(), other.to_bytes()) == before
    assert empty.reports == 0


def test_partial_merge_with_a_shared_partition_is_refused(tmp_path: Path) -> None:
    rows = OUE.randomize(np.arange(30) % 3)
    a, b, c = (some(number, rows, tmp_path) for number in range(3))
    for one, other in ((a, a), (a.merge(b), b.merge(c)), (a.merge(b).merge(c), b), (b, c.merge(b))):
        with pytest.raises(InvalidParameter, match=r"counted once: got \d.parquet \(task monday/\d\), a copy of \d"):
            one.merge(other)
    # The task again, with fresh noise: the same users, and so no new evidence.
    again = some(1, OUE.randomize(np.arange(30) % 3), tmp_path)
    with pytest.raises(InvalidParameter, match=r"another run of the task of 1\.parquet"):
        a.merge(b).merge(again)
    kept = Partial.from_bytes(a.merge(b).to_bytes(), POLL)
    with pytest.raises(InvalidParameter, match="a copy of"):
        kept.merge(b)


def test_partial_merge_of_other_collections_or_sandboxes_is_refused(tmp_path: Path) -> None:
    one = some(1, OUE.randomize([0]), tmp_path)
    for other in (Collection("other", OUE, POLL.categories), replace(POLL, sandbox=True)):
        part = some(2, OUE.randomize([0]), tmp_path, other)
        with pytest.raises(
            InvalidParameter, match=r"other must be a partial of collection poll \(.*: got a partial of"
        ):
            one.merge(part)
        with pytest.raises(ReportFileError, match=r"made for collection other|made in a sandbox"):
            Partial.from_bytes(part.to_bytes(), POLL, place="p")


def test_partial_of_a_report_file_has_no_partitions(tmp_path: Path) -> None:
    rows = OUE.randomize(np.arange(30) % 3)
    with ReportWriter(tmp_path / "r", POLL) as writer:
        writer.write(rows)
    found = aggregate(tmp_path / "r", POLL)
    assert (found.reports, found.partitions) == (30, {})
    assert found.to_bytes() == aggregate_reports(rows, POLL).to_bytes()


def test_partial_with_a_changed_or_missing_byte_is_refused(tmp_path: Path) -> None:
    data = some(1, OUE.randomize(np.arange(30) % 3), tmp_path).to_bytes()
    for place in range(len(data)):
        for wrong in (data[:place], data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]):
            with pytest.raises(ReportFileError, match="report file p: "):
                Partial.from_bytes(wrong, POLL, place="p")
    with pytest.raises(ReportFileError):
        Partial.from_bytes(data + b"\0", POLL)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("support", {"dtype": "<i8", "shape": [4]}),
        ("support", {"dtype": "<i4", "shape": [3]}),
        ("support", {"dtype": "<i8", "shape": [3, 1]}),
        ("support", {"dtype": "O", "shape": [3]}),
        ("support", 3),
        ("fingerprint", "another"),
        ("reports", "many"),
        ("reports", True),
        ("more", 1),
    ],
)
def test_partial_with_an_impossible_state_is_refused(tmp_path: Path, name: str, value: object) -> None:
    import hashlib
    import json

    whole = some(1, OUE.randomize(np.arange(30) % 3), tmp_path).to_bytes()[:-32]
    line, _, arrays = whole[len(MAGIC) :].partition(b"\n")
    header = json.loads(line)
    header["total"][name] = value
    forged = MAGIC + json.dumps(header).encode() + b"\n" + arrays
    with pytest.raises(ReportFileError, match="its header is damaged"):
        Partial.from_bytes(forged + hashlib.sha256(forged).digest(), POLL)


def test_partial_of_a_mechanism_without_a_stored_form_is_refused() -> None:
    class Odd:
        fingerprint, reports = "x", 1

        def __init__(self) -> None:
            self.share = 0.5

    part = aggregate_reports(OUE.randomize([0]), POLL)
    with pytest.raises(NotSupported, match="share of the aggregate is a float"):
        replace(part, total=Odd()).to_bytes()  # type: ignore[arg-type]
