"""The report file: reports round-trip, and every file that is not a whole file of the collection is refused."""

from __future__ import annotations

import errno
import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import ldp_budget
from ldp_budget import ReportFileError
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.report_file import MAGIC, ReportWriter, read_reports

PARTIES = ("left", "centre", "right")
POLL = Collection("poll", ldp_budget.mechanism("oue")(epsilon=1, domain_size=3), PARTIES)

BLOCKS = st.lists(
    arrays.arrays("u1", st.tuples(st.integers(0, 20), st.just(4))) | arrays.arrays("u1", (0, 4)),
    min_size=1,
    max_size=4,
)


def write(path: Path, *blocks: Any, collection: Collection = POLL) -> bytes:
    with ReportWriter(path, collection) as writer:
        for block in blocks:
            writer.write(np.asarray(block))
    return path.read_bytes()


def read(path: Path, collection: Collection = POLL) -> list[Any]:
    return list(read_reports(path, collection))


def small_file(path: Path) -> bytes:
    return write(path, np.array([[1], [5], [2]], np.uint8), np.array([[7]], np.uint8))


# -- there and back ------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(BLOCKS)
def test_report_file_keeps_the_order(tmp_path_factory: pytest.TempPathFactory, blocks: list[Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "round-trip.reports"
    write(path, *blocks)
    found = read(path)
    assert all(len(block) for block in found)
    whole = np.concatenate([*found, np.empty((0, 4), np.uint8)])
    np.testing.assert_array_equal(whole, np.concatenate(blocks))
    assert whole.dtype == np.uint8


@pytest.mark.parametrize(
    "rows",
    [
        np.array([0.1, -3e300, 5e-324]),
        np.array([1, -1, 2**62], np.int64),
        np.array([[[1, 2], [3, 4]]], np.uint16),
        np.array([[1, 258]], ">u4"),
        np.arange(20, dtype=np.uint8).reshape(4, 5)[::2, ::-1],
        np.array([True, False]).astype(np.uint8),
    ],
)
def test_report_file_of_every_shape_and_number_type_round_trips(tmp_path: Path, rows: Any) -> None:
    write(tmp_path / "r", rows)
    (found,) = read(tmp_path / "r")
    np.testing.assert_array_equal(found, rows)
    assert found.dtype.newbyteorder("=") == rows.dtype.newbyteorder("=")


def test_report_file_has_the_documented_format(tmp_path: Path) -> None:
    """Version 1, by hand: other programs may write it."""
    data = small_file(tmp_path / "r")
    header = json.dumps(
        {"collection": "poll", "fingerprint": POLL.fingerprint, "dtype": "|u1", "shape": [1]}
    ).encode()
    crc = zlib.crc32(header + b"\n")
    expected = MAGIC + header + b"\n"
    for rows, body in ((3, b"\1\5\2"), (1, b"\7"), (0, struct.pack("<Q", 4))):
        block = struct.pack("<I", rows) + body
        expected += block + struct.pack("<I", zlib.crc32(block, crc))
    assert data == expected


# -- what is refused -----------------------------------------------------------------------------------------


def test_report_file_truncated_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r"
    data = small_file(path)
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(ReportFileError):
            read(path)


@pytest.mark.slow
def test_report_file_with_any_flipped_bit_is_refused(tmp_path: Path) -> None:
    """In the header too: `<f8` and `>f8` differ in one bit, and every number with it."""
    path = tmp_path / "r"
    data = small_file(path)
    for place in range(len(data)):
        for bit in {1, place % 8}:
            spoilt = bytearray(data)
            spoilt[place] ^= 1 << bit
            path.write_bytes(spoilt)
            with pytest.raises(ReportFileError):
                read(path)


def test_report_file_with_missing_doubled_or_trailing_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r"
    data = small_file(path)
    start = data.index(b"\n", len(MAGIC)) + 1
    first, second, end = data[start : start + 11], data[start + 11 : start + 20], data[start + 20 :]
    assert data == data[:start] + first + second + end
    for blocks in (first + end, second + end, end, first + first + second + end, first + second + end + b"\0"):
        path.write_bytes(data[:start] + blocks)
        with pytest.raises(ReportFileError, match="it does not end after the number of reports that it states"):
            read(path)


def test_report_file_with_a_damaged_count_uses_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "r"
    data = bytearray(write(path, np.zeros((1, 2**16), np.uint64)))
    start = data.index(b"\n", len(MAGIC)) + 1
    data[start : start + 4] = b"\xff\xff\xff\xff"  # claims two thousand terabytes
    path.write_bytes(data)
    with pytest.raises(ReportFileError, match="it is truncated"):
        read(path)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b"5",
        b"null",
        b"\xff\xfe",
        b"{}",
        b'{"collection": "poll", "fingerprint": 1, "dtype": "u1"}',
        b'{"collection": "poll", "fingerprint": FP, "dtype": "zz", "shape": []}',
        b'{"collection": "poll", "fingerprint": FP, "dtype": null, "shape": []}',
        b'{"collection": "poll", "fingerprint": FP, "dtype": "O", "shape": []}',
        b'{"collection": "poll", "fingerprint": FP, "dtype": "u1", "shape": 3}',
        b'{"collection": "poll", "fingerprint": FP, "dtype": "u1", "shape": [0]}',
        b'{"collection": "poll", "fingerprint": FP, "dtype": "u1", "shape": [-1]}',
        b'{"collection": "poll", "fingerprint": FP, "dtype": "u1", "shape": [null]}',
        b"[" * 60_000,
    ],
)
def test_report_file_with_a_malformed_header_is_refused(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "r"
    path.write_bytes(MAGIC + header.replace(b"FP", json.dumps(POLL.fingerprint).encode()) + b"\n")
    with pytest.raises(ReportFileError, match="its header is damaged"):
        read(path)


@pytest.mark.parametrize(
    "other",
    [
        Collection("pool", POLL.mechanism, PARTIES),
        Collection("poll", POLL.mechanism.replace(epsilon="1.1"), PARTIES),
        Collection("poll", ldp_budget.mechanism("sue")(epsilon=1, domain_size=3), PARTIES),
        Collection("poll", POLL.mechanism, PARTIES[::-1]),
        Collection("poll", POLL.mechanism),
    ],
)
def test_report_file_of_another_collection_is_refused(tmp_path: Path, other: Collection) -> None:
    small_file(tmp_path / "r")
    with pytest.raises(ReportFileError, match="its reports were made for collection poll with fingerprint") as caught:
        read(tmp_path / "r", other)
    assert POLL.fingerprint[:12] in str(caught.value)
    assert other.fingerprint[:12] in str(caught.value)


# -- whole or not at all -------------------------------------------------------------------------------------


def _write_and_fail(writer: ReportWriter) -> None:
    writer.write(np.array([[1]], np.uint8))
    raise ValueError("ragged")


@pytest.mark.parametrize("before", [None, b"what was there"])
def test_report_file_write_with_an_exception_keeps_the_old_file(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "r"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(ValueError, match="ragged"), ReportWriter(path, POLL) as writer:
        _write_and_fail(writer)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == ([] if before is None else [before])


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_report_file_write_on_a_full_disk_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Not even at the very end: a truncated draft must not take the place of a good file."""
    path = tmp_path / "r"
    path.write_bytes(b"what was there")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(ReportFileError, match="it cannot be written: No space left on device"):
        write(path, np.array([[1]], np.uint8))
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"what was there"]
