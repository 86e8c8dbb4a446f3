"""Partitions summed by Apache Beam: equal to one process to the last bit, with any failures on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import Collection, InvalidParameter, NotSupported, ReportFileError
from ldp_budget.reports.partial_aggregate import Partial, aggregate
from ldp_budget_surveys.partitions import PartitionWriter

pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
HELPERS = Path(__file__).resolve().parents[2] / "helpers"
POLL = Collection("poll", ldp_budget.mechanism("oue")(epsilon=1, domain_size=9))


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    reports = POLL.mechanism.randomize(np.arange(8_000) % 9)
    for number, rows in enumerate(np.array_split(reports, 8)):
        with PartitionWriter(tmp_path / "parts" / f"{number}.parquet", POLL, task=f"monday/{number}") as writer:
            writer.write(rows)
    return tmp_path / "parts"


@pytest.mark.parametrize("runner", ["bundles", "processes", "dask"])
def test_pipeline_result_equals_that_of_one_process(runner: str, parts: Path) -> None:
    pytest.importorskip("apache_beam", reason="no apache_beam: pip install 'ldp-budget[interop]'")
    pytest.importorskip("distributed", reason="no distributed: pip install 'ldp-budget[interop]'")
    done = subprocess.run(
        [sys.executable, str(HELPERS / "beam_pipelines.py"), runner, str(parts.parent)],
        env={**os.environ, "PYTHONPATH": str(HELPERS)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert aggregate(parts.parent / "total", POLL).to_bytes() == aggregate(parts, POLL).to_bytes()
    assert said["failed"] == (2 if runner == "bundles" else 0)
    assert said["workers"] in {"bundles": [0], "processes": [2], "dask": [1, 2]}[runner]


@pytest.fixture
def combine() -> Any:
    pytest.importorskip("apache_beam", reason="no apache_beam: pip install 'ldp-budget[interop]'")
    from ldp_budget_surveys.beam import AggregatePartitions

    return AggregatePartitions(POLL)


@pytest.mark.filterwarnings("ignore")
def test_pipeline_with_a_partition_twice_fails(combine: Any, parts: Path) -> None:
    one, two = (str(parts / name) for name in ("1.parquet", "2.parquet"))
    first = combine.add_input(combine.create_accumulator(), one)
    both = combine.merge_accumulators([first, combine.add_input(combine.create_accumulator(), two)])
    assert (first.reports, combine.extract_output(both).reports) == (1000, 2000)
    assert combine.add_input(first, aggregate(two, POLL)).to_bytes() == both.to_bytes()
    with pytest.raises(InvalidParameter, match=r"task monday/1\), a copy of"):
        combine.add_input(both, one)
    with pytest.raises(InvalidParameter, match=r"task monday/1\), a copy of"):
        combine.merge_accumulators([both, first])
    (parts / "2.parquet").write_bytes((parts / "2.parquet").read_bytes()[:-1])
    with pytest.raises(ReportFileError, match=r"2\.parquet: it is truncated"):
        combine.add_input(first, two)
    assert combine.merge_accumulators([]).to_bytes() == Partial(POLL).to_bytes()


def test_pipeline_without_beam_names_the_extra() -> None:
    code = "import sys; sys.modules['apache_beam'] = None; import ldp_budget_surveys.beam"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (
        f"{NotSupported.__name__}: a Beam pipeline needs the package apache-beam. Install it: pip install 'ldp-budget[beam]'"
        in done.stderr
    )
