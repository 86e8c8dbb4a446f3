"""Public attributes: their values, and how they travel in a report file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget.errors import InvalidParameter, ReportFileError
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.public_attributes import PublicAttributes, count_combinations
from ldp_budget.reports.report_file import ReportWriter, open_reports, writer_to
from ldp_budget_surveys.partitions import open_partition

MOOD = Collection("mood", mechanism("grr").calibrate(epsilon=1, domain_size=3), ("good", "fair", "bad"))
ROWS = [("north", "18-34"), ("south", "65+"), ("north", "18-34"), ("Südtirol", "65+")]


def _written(path: Path) -> PublicAttributes:
    public = PublicAttributes.of(("region", "age"), ROWS)
    with ReportWriter(path, MOOD, public=("region", "age")) as writer:
        writer.write(np.array([0, 1, 2, 0], np.uint8), public)
        writer.write(np.array([2], np.uint8), public.take([3]))
    return public


def test_report_file_returns_the_attributes_of_each_report(tmp_path: Path) -> None:
    public = _written(tmp_path / "m")
    with open_reports(tmp_path / "m", MOOD) as reports:
        assert reports.public == ("region", "age")
        blocks = list(reports.attributed_blocks())
    assert [block.tolist() for block, _ in blocks] == [[0, 1, 2, 0], [2]]
    found = [each.combinations[code] for _, each in blocks for code in each.codes]
    assert found == [*ROWS, ROWS[3]]
    assert count_combinations([public])["north", "18-34"] == 2


def test_report_file_without_attributes_has_one_empty_combination(tmp_path: Path) -> None:
    with ReportWriter(tmp_path / "m", MOOD) as writer:
        writer.write(np.array([0, 1], np.uint8))
    assert b'"public"' not in (tmp_path / "m").read_bytes()
    with open_reports(tmp_path / "m", MOOD) as reports:
        [(_, public)] = reports.attributed_blocks()
    assert (public.names, public.combinations, len(public)) == ((), ((),), 2)


@pytest.mark.slow
def test_report_file_with_any_changed_byte_is_refused(tmp_path: Path) -> None:
    _written(tmp_path / "m")
    data = bytearray((tmp_path / "m").read_bytes())
    for place in range(data.index(b"\n", 25) + 1, len(data)):
        data[place] ^= 1
        (tmp_path / "changed").write_bytes(data)
        data[place] ^= 1
        with pytest.raises(ReportFileError), open_reports(tmp_path / "changed", MOOD) as reports:
            list(reports.attributed_blocks())


@pytest.mark.parametrize("public", [None, PublicAttributes.of(("region",), [("a",)] * 2)])
def test_report_writer_of_other_attributes_is_refused(tmp_path: Path, public: PublicAttributes | None) -> None:
    with (
        pytest.raises(InvalidParameter, match="region, age"),
        ReportWriter(tmp_path / "m", MOOD, public=("region", "age")) as w,
    ):
        w.write(np.array([0, 1], np.uint8), public)


def _partition(path: Path, names: tuple[str, ...] = ("region", "age")) -> list[tuple[int, tuple[str, ...]]]:
    """Write a partition in blocks; return its reports with their attributes."""
    public = PublicAttributes.of(names, [row[: len(names)] for row in ROWS])
    with writer_to(path, MOOD, public=names) as writer:
        writer.write(np.array([0, 1, 2, 0], np.uint8), public)
        writer.write(np.array([], np.uint8))
        writer.write(np.array([2, 1], np.uint8), public.take([3, 0]))
    return [
        (report, ROWS[row][: len(names)]) for report, row in zip([0, 1, 2, 0, 2, 1], [0, 1, 2, 3, 3, 0], strict=True)
    ]


def _table(path: Path) -> Any:
    """Return a partition as a table with all its metadata, as other programs copy it."""
    from pyarrow import parquet

    return parquet.read_table(path).replace_schema_metadata(parquet.read_metadata(path).metadata)


def _in_partition(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    with open_partition(path, MOOD) as partition:
        return [
            (report, public.combinations[code])
            for block, public in partition.attributed_blocks()
            for report, code in zip(block.tolist(), public.codes.tolist(), strict=True)
        ]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 4, 5, 100])
def test_partition_returns_the_attributes_of_each_report(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    monkeypatch.setattr("ldp_budget_surveys.partitions._GROUP_ROWS", rows)
    expected = _partition(tmp_path / "m.parquet")
    assert _in_partition(tmp_path / "m.parquet") == expected
    with open_partition(tmp_path / "m.parquet", MOOD) as partition:
        assert (partition.public, sum(map(len, partition.blocks()))) == (("region", "age"), 6)
    table = _table(tmp_path / "m.parquet")
    assert table.column_names == ["report", "region", "age"]
    assert table.column("region").to_pylist() == [row[0] for _, row in expected]
    parquet.write_table(table, tmp_path / "again.parquet", row_group_size=2, compression="none")
    assert _in_partition(tmp_path / "again.parquet") == expected


def test_partition_with_changed_attributes_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    from pyarrow import parquet

    _partition(tmp_path / "m.parquet")
    table = _table(tmp_path / "m.parquet")
    region = table.column("region").to_pylist()
    place = table.column_names.index("region")
    for changed in ([*region[1:], region[0]], ["x", *region[1:]], ["a\nb", *region[1:]], [None, *region[1:]]):
        other = table.set_column(place, "region", pyarrow.array(changed, pyarrow.string()))
        parquet.write_table(other, tmp_path / "other.parquet")
        with pytest.raises(ReportFileError, match="damaged"):
            _in_partition(tmp_path / "other.parquet")
    for names in (["report", "age"], ["report", "age", "region"], ["report", "region", "age", "age"]):
        parquet.write_table(table.select(names), tmp_path / "other.parquet")
        with pytest.raises(ReportFileError, match="not those of a report partition"):
            _in_partition(tmp_path / "other.parquet")


@pytest.mark.parametrize("value", ["x" * 65, "two\nlines"])
def test_public_attributes_of_an_invalid_value_are_refused(value: str) -> None:
    with pytest.raises(InvalidParameter, match="64 printable"):
        PublicAttributes.of(("region",), [(value,)])


def test_from_bytes_of_foreign_data_is_refused() -> None:
    for listed, codes in ((b'[["a"]]', b"\x01\0\0\0"), (b'[["a", "b"]]', b""), (b"[[1]]", b""), (b"no", b"")):
        with pytest.raises(ValueError, match=r".*"):
            PublicAttributes.from_bytes(("region",), listed, codes)
