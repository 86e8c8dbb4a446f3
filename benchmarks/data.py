"""Speed and memory of randomizing a column of a file: CSV, Parquet and Arrow, the same rows.

    python benchmarks/data.py [ROWS]

Every figure is that of a whole process, `ldp-budget randomize` without `--spend`, from the file to the report file:
its time on the clock and on the processor, and the most memory it held (its resident set, in which the pages of a
memory-mapped Arrow file count as well). The limit is 300 MB. Needs a Unix and the extra `arrow`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROWS = 10_000_000
TOGETHER = 1 << 16
MOST_MEGABYTES = 300
SCRIPT = str(Path(sys.executable).with_name("ldp-budget"))
ANSWERS = ("yes", "no", "maybe", "never", "once", "twice", "daily")
COLLECTIONS = {
    "oue": ("oue", "--categories", ",".join(ANSWERS)),
    "grr": ("random-substitution", "--categories", ",".join(ANSWERS)),
    "laplace": ("laplace", "--lower", "18", "--upper", "70"),
}
FILES = ("answers.parquet", "answers.arrow", "answers.csv")


def write_files(rows: int) -> None:
    """The same rows in every kind of file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.ipc
    import pyarrow.parquet

    rng = np.random.default_rng(20261122)
    schema = pa.schema({"user": pa.int64(), "answer": pa.string(), "age": pa.float64()})
    with (
        pa.parquet.ParquetWriter(FILES[0], schema) as parquet,
        pa.ipc.new_file(FILES[1], schema) as arrow,
        pa.csv.CSVWriter(FILES[2], schema) as csv,
    ):
        for start in range(0, rows, TOGETHER):
            count = min(TOGETHER, rows - start)
            codes = pa.array(rng.integers(0, len(ANSWERS), count))
            answers = pa.DictionaryArray.from_arrays(codes, pa.array(ANSWERS)).dictionary_decode()
            ages = pa.array(rng.uniform(18, 70, count).round(2))
            batch = pa.record_batch([pa.array(np.arange(start, start + count)), answers, ages], schema=schema)
            for writer in (parquet, arrow, csv):
                writer.write_batch(batch)


def run(*words: str) -> tuple[float, float, float]:
    """(clock, processor, megabytes) of one command."""
    start = perf_counter()
    process = subprocess.Popen([SCRIPT, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"ldp-budget {' '.join(words)}: {said}")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return perf_counter() - start, usage.ru_utime + usage.ru_stime, kilobytes * 1024 / 1e6


def main() -> None:
    if sys.argv[1:2] == ["write"]:
        return write_files(int(sys.argv[2]))
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    here = os.path.abspath(__file__)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["LDP_BUDGET_LEDGER"] = "budget.db"
        # In a process of its own: a child is said to have held what its parent held when it began.
        subprocess.run([sys.executable, here, "write", str(rows)], check=True)
        run("ledger", "init")
        print(f"{rows} rows\n")
        print("| mechanism | file | clock | processor | rows a second of it | most memory | at most 300 MB |")
        print("| --- | --- | ---: | ---: | ---: | ---: | --- |")
        for name, options in COLLECTIONS.items():
            run("collection", "add", f"{name}-of-all", *options, "--epsilon", "1")
            column = "age" if name == "laplace" else "answer"
            for file in FILES:
                clock, processor, megabytes = run(
                    "randomize", f"{name}-of-all", file, "--column", column, "--out", "r", "--overwrite"
                )
                met = "met" if megabytes <= MOST_MEGABYTES else "MISSED"
                print(
                    f"| {name} | {Path(file).suffix[1:]} | {clock:.1f} s | {processor:.1f} s | "
                    f"{rows / processor:.2g} | {megabytes:.0f} MB | {met} |"
                )
        os.chdir("/")


if __name__ == "__main__":
    main()
