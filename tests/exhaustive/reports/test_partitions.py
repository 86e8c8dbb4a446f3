"""Report partitions: each is counted whole and once, or refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import Accountant, ReportFileError
from ldp_budget.errors import InvalidParameter, LdpBudgetError
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.charged_release import _Store, release
from ldp_budget.reports.estimation import estimate_files
from ldp_budget.reports.partial_aggregate import aggregate
from ldp_budget.reports.report_file import ReportWriter
from ldp_budget_surveys.partitions import PartitionWriter, open_partition

parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: pip install 'ldp-budget[interop]'")
pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
pytest.importorskip("fsspec", reason="no fsspec: pip install 'ldp-budget[interop]'")

OUE = ldp_budget.mechanism("oue")(epsilon=1, domain_size=3)
POLL = Collection("poll", OUE, ("left", "centre", "right"))
FEW = np.array([[1], [5], [2], [7]], np.uint8)


def write(path: Any, *blocks: Any, collection: Collection = POLL, task: str | None = None) -> Any:
    with PartitionWriter(path, collection, task=task) as writer:
        for block in blocks:
            writer.write(np.asarray(block))
    return path


def read(path: Any, collection: Collection = POLL) -> Any:
    with open_partition(path, collection) as partition:
        return np.concatenate([*partition.blocks(), np.empty((0, *partition.layout.shape), partition.layout.dtype)])


def refused(path: Any, why: str, collection: Collection = POLL) -> None:
    """It is refused, by its own name, also where it lies among others."""
    for place in (path, path.parent):
        with pytest.raises(ReportFileError, match=why) as told:
            aggregate(place, collection)
        assert told.value.path == str(path)


# -- there and back ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        np.array([0.1, -3e300, 5e-324]),
        np.array([1, -1, 2**62], np.int64),
        np.array([[[1, 2], [3, 4]]], np.uint16),
        np.array([[1, 258]], ">u4"),
        np.arange(20, dtype=np.uint8).reshape(4, 5)[::2, ::-1],
        np.empty((0, 4), np.uint8),
    ],
)
def test_partition_of_every_shape_and_number_type_round_trips(tmp_path: Path, rows: Any) -> None:
    found = read(write(tmp_path / "a.parquet", rows[:1], rows[1:]))
    np.testing.assert_array_equal(found, rows)
    assert found.dtype.newbyteorder("=") == rows.dtype.newbyteorder("=")


def test_partition_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    for place in (tmp_path / "a.parquet", "memory://whole/a.parquet"):
        with pytest.raises(InvalidParameter):
            write(place, FEW, "no reports")
        with pytest.raises(ReportFileError):
            aggregate(place, POLL)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ReportFileError, match=r"no reports were given. Nothing was written"):
        write(tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


# -- counted once --------------------------------------------------------------------------------------------


def test_partition_with_equal_reports_counts_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.parquet", FEW[:1])
    write(tmp_path / "c.parquet", FEW[:1], task="monday/3")
    write(tmp_path / "d.parquet", FEW[:1], task="monday/4")
    assert aggregate(tmp_path, POLL).reports == 4


def test_partition_of_a_task_in_two_places_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "3.parquet", FEW, task="monday/3")
    write(tmp_path / "again-3.parquet", FEW[:2], task="monday/3")
    with pytest.raises(ReportFileError, match=r"again-3.parquet \(task monday/3\), another run of the task of 3\.p"):
        aggregate(tmp_path, POLL)


@pytest.mark.parametrize("task", [None, "monday/3"])
def test_partition_copy_of_any_name_counts_once(tmp_path: Path, task: str | None) -> None:
    (tmp_path / "one").mkdir()
    one = write(tmp_path / "one" / "a.parquet", FEW, task=task)
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(one.read_bytes())
    for files in ([one, copy], [one.parent, copy], [one.parent, one.parent], [copy, one, one]):
        with pytest.raises(ReportFileError, match=r"a partition must be given once: got .*, a copy of "):
            estimate_files(POLL, [str(file) for file in files])


def test_partition_rewritten_is_the_same_partition(tmp_path: Path) -> None:
    one = write(tmp_path / "a.parquet", FEW)
    file = parquet.ParquetFile(one)
    said = {key: value for key, value in file.metadata.metadata.items() if key.startswith(b"ldp-budget")}
    table = file.read().replace_schema_metadata(said)
    parquet.write_table(table, tmp_path / "b.parquet", compression="gzip", row_group_size=1)
    np.testing.assert_array_equal(read(tmp_path / "b.parquet"), FEW)
    with pytest.raises(ReportFileError, match=r"b\.parquet, a copy of a\.parquet"):
        aggregate(tmp_path, POLL)


def test_partitions_and_report_files_give_one_estimate(tmp_path: Path) -> None:
    reports = OUE.randomize(np.arange(900) % 3, rng=2)
    (tmp_path / "parts").mkdir()
    write(tmp_path / "parts" / "a.parquet", reports[:300])
    write(tmp_path / "parts" / "b.parquet", reports[300:400])
    write(tmp_path / "c.parquet", reports[400:500])
    with ReportWriter(tmp_path / "rest", POLL) as writer:
        writer.write(reports[500:])
    estimated = estimate_files(POLL, [str(tmp_path / name) for name in ("parts", "c.parquet", "rest")])
    np.testing.assert_array_equal(estimated.counts, OUE.estimate(reports).counts)  # type: ignore[attr-defined]


def test_partition_can_hold_released_reports(tmp_path: Path) -> None:
    with Accountant(tmp_path / "ledger.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        accountant.spend("bob", POLL)
        values = np.array([0, 1, 2])
        out = tmp_path / "day.parquet"
        release(out, POLL, accountant, values, ["alice", "bob", "carol"], policy="default")
        assert aggregate(out, POLL).reports == 2
        with pytest.raises(ReportFileError, match="it already exists"):
            release(out, POLL, accountant, values, ["alice", "bob", "carol"], policy="default")


def test_partition_of_a_resumed_release_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was killed when the partition already had its name, and another process had copied it."""
    with Accountant(tmp_path / "ledger.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        given = (tmp_path / "day.parquet", POLL, accountant, np.array([0, 1]), ["alice", "bob"])
        with monkeypatch.context() as context:
            context.setattr(_Store, "remove", lambda store: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                release(*given, policy="default")
        (tmp_path / "copy.parquet").write_bytes((tmp_path / "day.parquet").read_bytes())
        release(*given, policy="default")
    with pytest.raises(ReportFileError, match=r"day\.parquet, a copy of copy\.parquet"):
        aggregate(tmp_path, POLL)


# -- refused by name -----------------------------------------------------------------------------------------


def test_partition_of_another_collection_or_a_sandbox_is_refused(tmp_path: Path) -> None:
    other = Collection("other", OUE, POLL.categories)
    one = write(tmp_path / "a.parquet", FEW, collection=other)
    refused(one, "made for collection other with fingerprint")
    assert aggregate(one, other).reports == 4
    write(one, FEW, collection=replace(POLL, sandbox=True))
    refused(one, "made in a sandbox")
    assert aggregate(one, replace(POLL, sandbox=True)).reports == 4


def test_partition_of_foreign_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"report": [b"a"]}), path)
    refused(path, "this Parquet file is not a report partition")
    path.write_bytes(b"")
    refused(path, "truncated, damaged or not a Parquet file")


def rewritten(path: Path, table: Any = None, **changes: dict[str, Any]) -> None:
    """The partition with another table, or with changes to what is said of it."""
    import json

    file = parquet.ParquetFile(path)
    said = {}
    for key, value in file.metadata.metadata.items():
        if key.startswith(b"ldp-budget"):
            said[key] = json.dumps({**json.loads(value), **changes.get(key.decode().split()[1], {})})
    parquet.write_table((table or file.read()).replace_schema_metadata(said), path)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"end": {"reports": 3}}, "its 4 reports are not the 3 that were written"),
        ({"end": {"sha256": "00"}}, "SHA-256 differs"),
        ({"end": {"reports": "many"}}, "its header is damaged"),
        ({"partition": {"name": "task other"}}, "SHA-256 differs"),
        ({"partition": {"sandbox": False}}, "SHA-256 differs"),
        ({"partition": {"shape": [2]}}, "its columns are not those"),
        ({"partition": {"shape": [0]}}, "its header is damaged"),
        ({"partition": {"dtype": "<i1"}}, "these are not reports of poll: packed reports must"),
        ({"partition": {"dtype": "O"}}, "its header is damaged"),
        ({"partition": {"version": 2}}, "its version must be 1: got 2"),
    ],
)
def test_partition_with_a_changed_row_is_refused(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    path = write(tmp_path / "a.parquet", FEW)
    rewritten(path, **changes)
    refused(path, why)


def columns() -> Iterator[Any]:
    rows = [row.tobytes() for row in FEW]
    one = pyarrow.binary(1)
    for changed in (
        [*rows[:3]],
        [*rows, rows[0]],
        [rows[1], rows[0], *rows[2:]],
        [*rows[:3], None],
        [*rows[:3], b"x"],
    ):
        yield pyarrow.table({"report": pyarrow.array(changed, one)})
    yield pyarrow.table({"reports": pyarrow.array(rows, one)})
    yield pyarrow.table({"report": pyarrow.array(rows)})
    yield pyarrow.table({"report": pyarrow.array(rows, one), "more": rows})


@pytest.mark.parametrize("table", [*columns()], ids=lambda table: f"{table.num_columns} of {table.num_rows}")
def test_partition_with_an_added_missing_or_moved_report_is_refused(tmp_path: Path, table: Any) -> None:
    path = write(tmp_path / "a.parquet", FEW)
    rewritten(path, table)
    refused(path, "SHA-256 differs|one is missing|its columns are not those|not reports of poll: .* padding bits")


def test_partition_truncated_anywhere_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", FEW)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(ReportFileError):
            aggregate(path, POLL)


def test_partition_with_any_changed_byte_counts_no_other_report(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", OUE.randomize(np.arange(40) % 3, rng=3), task="monday/3")
    whole, known = path.read_bytes(), aggregate(path, POLL)
    found = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x21]) + whole[place + 1 :])
        try:
            # Some bytes are of no matter, such as the name of the program that wrote it.
            assert aggregate(path, POLL).to_bytes() == known.to_bytes()
        except LdpBudgetError:
            found += 1
    assert found > len(whole) / 3
