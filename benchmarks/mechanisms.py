"""Reports a second on one core, client and server apart, compared with pure-ldp and multi-freq-ldpy in the same run.

    python benchmarks/mechanisms.py [--quick | --memory]

Each figure is the median over rounds of reports per second of process time, that is of all threads and of the
operating system on our behalf. In a round every row runs once, so that a busy moment of the machine meets all of
them. The client is `randomize` on an array of values, the server `aggregate` on an array of reports; peers are called
once a report where they offer nothing else. A peer that cannot be imported is said to be not installed. About a
minute.

`--memory` measures instead the peak memory of a process that estimates ten million reports of oue d=128 from files.
The files repeat one randomised block: a server's memory does not depend on what the reports say. Needs Linux.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

import ldp_budget
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.report_file import ReportWriter, read_reports
from ldp_budget.sampling.rng import ChaCha20Stream, Stream, SystemStream

ROUNDS, QUICK_ROUNDS = 7, 3
REPORTS, QUICK_REPORTS = 400_000, 100_000
PEER_REPORTS = 2000
ANSWERS = 128
WIDTH, HASHES = 1024, 1024
BLOOM: dict[str, Any] = {"bits": 128, "hashes": 2, "cohorts": 8}

MEMORY_REPORTS, MEMORY_BLOCK, MEMORY_FILES = 10_000_000, 62_500, 4
MEMORY_LIMIT = 300e6  # bytes

Call = Callable[[Any], Any]


@dataclass
class Runner:
    """A client and a server, and the figures of both: reports a second in each round."""

    client: Call
    server: Call
    values: Any
    reports: Any = None
    figures: dict[str, list[float]] = field(default_factory=lambda: {"client": [], "server": []})

    def warm(self) -> None:
        self.server(self.client(self.values[:200]))
        self.reports = self.client(self.values)

    def measure(self) -> None:
        for side, call, given in (("client", self.client, self.values), ("server", self.server, self.reports)):
            start = process_time()
            call(given)
            self.figures[side].append(len(self.values) / (process_time() - start))

    def figure(self, side: str) -> float:
        return median(self.figures[side])


@dataclass
class Row:
    """One set-up, ours and the peers'. A target is a figure a second, or ("times", how often pure-ldp's)."""

    name: str
    ours: Runner
    targets: dict[str, float | tuple[str, float]]
    peers: dict[str, Runner] = field(default_factory=dict)


# -- ours ---------------------------------------------------------------------------------------------------------


def ours(name: str, values: Any, stream: type[Stream] | None = None, **parameters: Any) -> Runner:
    made = ldp_budget.mechanism(name)(**parameters)
    return Runner(lambda given: made.randomize(given, rng=stream() if stream else None), made.aggregate, values)


def rows(reports: int) -> Iterator[Row]:
    values = np.random.default_rng(1).integers(0, ANSWERS, reports)
    frequency = {"epsilon": 1, "domain_size": ANSWERS}
    sketch = {**frequency, "hashes": HASHES, "width": WIDTH}
    numeric = {"epsilon": 1, "lower": 0, "upper": ANSWERS - 1}
    as_pure = ("times", 20.0)

    def both(target: Any) -> dict[str, Any]:
        return {"client": target, "server": target}

    oue = {"client": 5e6, "server": 20e6}
    yield Row("oue, d = 128, ChaCha20", ours("oue", values, ChaCha20Stream, **frequency), oue)
    slow = ours("oue", values, SystemStream, **frequency)
    yield Row("oue, d = 128, system's generator", slow, {"client": 2e6})
    yield Row("random-substitution, d = 128", ours("random-substitution", values, **frequency), both(40e6))
    yield Row("hcms, m = 1024", ours("hcms", values, **sketch), both(10e6))
    yield Row("cms, m = 1024", ours("cms", values, **sketch), both(as_pure))
    for buckets in (8, 32):
        flip = ours("d-bit-flip", values % buckets, epsilon=1, buckets=buckets, bits=8)
        yield Row(f"d-bit-flip, 8 of {buckets} bits", flip, both(5e6))
    rappor = ours("rappor", values, **BLOOM, f=0.5, p=0.5, q=0.75, any_inputs=True)
    yield Row("rappor, 128 bits", rappor, both(as_pure))
    yield Row("bounded-staircase", ours("bounded-staircase", values, **numeric), both(5e6))
    yield Row("bounded-laplace", ours("bounded-laplace", values, **numeric), both(5e6))
    for domain_size in (1024, 10**6):
        compact = ours("pgr", values, epsilon=1, domain_size=domain_size)
        yield Row(f"pgr, d = {domain_size:,}", compact, {"client": 5e6, "server": 10e6})
    yield Row("hybrid", ours("hybrid", values, **numeric), both(5e6))
    yield Row("square-wave", ours("square-wave", values, **numeric), both(5e6))


# -- the peers ----------------------------------------------------------------------------------------------------


def one_by_one(privatise: Call) -> Call:
    return lambda values: [privatise(value) for value in values]


def each(aggregate: Call) -> Call:
    def run(reports: Any) -> None:
        for report in reports:
            aggregate(report)

    return run


def pure_ldp() -> dict[str, Runner]:
    from pure_ldp import frequency_oracles as pure
    from pure_ldp.core import generate_hash_funcs

    def pair(client: Any, server: Any) -> Runner:
        return Runner(one_by_one(client.privatise), each(server.aggregate), peer_values())

    own: dict[str, Any] = {"index_mapper": lambda value: value}
    unary = {**own, "use_oue": True}
    runners = {
        "oue": pair(pure.UEClient(1, ANSWERS, **unary), pure.UEServer(1, ANSWERS, **unary)),
        "random-substitution": pair(pure.DEClient(1, ANSWERS, **own), pure.DEServer(1, ANSWERS, **own)),
    }
    functions = generate_hash_funcs(HASHES, WIDTH)
    for name, hadamard in (("cms", False), ("hcms", True)):
        client = pure.CMSClient(1, functions, WIDTH, is_hadamard=hadamard)
        runners[name] = pair(client, pure_sketch_server(pure.CMSServer, hadamard))
    bits, hashes, cohorts = BLOOM["bits"], BLOOM["hashes"], BLOOM["cohorts"]
    bloom = pure.RAPPORServer(0.5, bits, hashes, ANSWERS, num_of_cohorts=cohorts, **own)
    runners["rappor"] = pair(pure.RAPPORClient(0.5, bits, bloom.get_hash_funcs(), cohorts, **own), bloom)
    return runners


def pure_sketch_server(kind: Any, hadamard: bool) -> Any:
    """A server of pure-ldp with what `aggregate` reads: its constructor fails with numpy 2 (`zeros(None)`)."""
    server = kind.__new__(kind)
    state = {"k": HASHES, "m": WIDTH, "c": 2.0, "n": 0, "is_hadamard": hadamard}
    vars(server).update(state, ones=np.ones(WIDTH), sketch_matrix=np.zeros((HASHES, WIDTH)))
    return server


def multi_freq_ldpy() -> dict[str, Runner]:
    from multi_freq_ldpy.long_freq_est.dBitFlipPM import dBitFlipPM_Aggregator_MI, dBitFlipPM_Client
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    def flip(buckets: int) -> Runner:
        return Runner(
            one_by_one(lambda value: dBitFlipPM_Client(value, buckets, buckets, 8, 1.0)),
            lambda reports: dBitFlipPM_Aggregator_MI(reports, buckets, 8, 1.0),
            [value % buckets for value in peer_values()],
        )

    return {
        "oue": Runner(
            one_by_one(lambda value: UE_Client(value, ANSWERS, 1.0, True)),
            lambda reports: UE_Aggregator_MI(reports, 1.0, True),
            peer_values(),
        ),
        "random-substitution": Runner(
            one_by_one(lambda value: GRR_Client(value, ANSWERS, 1.0)),
            lambda reports: GRR_Aggregator_MI(reports, ANSWERS, 1.0),
            peer_values(),
        ),
        "d-bit-flip, 8 of 8 bits": flip(8),
        "d-bit-flip, 8 of 32 bits": flip(32),
    }


def peer_values() -> list[int]:
    return [int(value) for value in np.random.default_rng(1).integers(0, ANSWERS, PEER_REPORTS)]


PEERS = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy}


def add_peers(table: list[Row]) -> set[str]:
    """Give every row the peers that do the same; returns the names of those that cannot be imported."""
    missing = set()
    for peer, runners in PEERS.items():
        try:
            offered = runners()
        except ImportError:
            missing.add(peer)
            continue
        for row in table:
            found = offered.get(row.name) or offered.get(row.name.split(",")[0])
            if found is not None:
                row.peers[peer] = found
    return missing


# -- the table ----------------------------------------------------------------------------------------------------


def short(figure: float) -> str:
    return f"{figure / 1e6:.3g}M" if figure >= 1e6 else f"{figure / 1e3:.3g}k"


def verdict(row: Row, side: str, missing: set[str]) -> tuple[str, str]:
    """Target, and whether it is met."""
    target = row.targets.get(side)
    if target is None:
        return "none", ""
    if not isinstance(target, tuple):
        return f"≥ {short(target)}", "met" if row.ours.figure(side) >= target else "MISSED"
    said = f"≥ {target[1]:g} × pure-ldp"
    if "pure-ldp" in missing:
        return said, "not measured"
    return said, "met" if row.ours.figure(side) >= target[1] * row.peers["pure-ldp"].figure(side) else "MISSED"


def compared(row: Row, peer: str, side: str, missing: set[str]) -> str:
    if peer in missing:
        return "not installed"
    if peer not in row.peers:
        return "–"
    figure = row.peers[peer].figure(side)
    return f"{short(figure)} ({row.ours.figure(side) / figure:.1f}×)"


def measure(rounds: int, reports: int) -> None:
    table = list(rows(reports))
    missing = add_peers(table)
    runners = {id(runner): runner for row in table for runner in (row.ours, *row.peers.values())}
    for runner in runners.values():
        runner.warm()
    for _ in range(rounds):
        for runner in runners.values():
            runner.measure()
    print("| reports a second, one core | side | ldp-budget | target | | pure-ldp | multi-freq-ldpy |")
    print("| --- | --- | ---: | --- | --- | ---: | ---: |")
    for row in table:
        for side in ("client", "server"):
            others = [compared(row, peer, side, missing) for peer in PEERS]
            cells = (row.name, side, short(row.ours.figure(side)), *verdict(row, side, missing), *others)
            print("| " + " | ".join(cells) + " |")


# -- memory -------------------------------------------------------------------------------------------------------


def memory_collection() -> Collection:
    return Collection("memory", ldp_budget.mechanism("oue")(epsilon=1, domain_size=ANSWERS))


def measure_memory() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_reports(Path(folder))
        command = (sys.executable, __file__, "--estimate-files", folder)
        reports, peak, seconds = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    met = "met" if float(peak) < MEMORY_LIMIT else "MISSED"
    print(f"oue d = {ANSWERS}, {int(reports):,} reports from {MEMORY_FILES} files: peak {float(peak) / 1e6:.0f} MB")
    print(f"of the whole process, {seconds} s of process time; target under {MEMORY_LIMIT / 1e6:.0f} MB: {met}")


def write_reports(folder: Path) -> None:
    collection = memory_collection()
    block = collection.mechanism.randomize(np.arange(MEMORY_BLOCK) % ANSWERS)
    for number in range(MEMORY_FILES):
        with ReportWriter(folder / f"{number}.reports", collection) as writer:
            for _ in range(MEMORY_REPORTS // MEMORY_FILES // MEMORY_BLOCK):
                writer.write(block)


def estimate_files(folder: Path) -> None:
    """In the child: prints reports, peak bytes and seconds."""
    collection, total = memory_collection(), None
    start = process_time()
    for path in sorted(folder.iterdir()):
        for block in read_reports(path, collection):
            part = collection.mechanism.aggregate(block)
            total = part if total is None else total.merge(part)
    estimate = collection.mechanism.estimate(total)
    print(estimate.reports, peak_bytes(), f"{process_time() - start:.2f}")


def peak_bytes() -> int:
    """VmHWM, as getrusage's figure of a child starts from the parent's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("the system does not tell the peak memory of a process")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer reports and rounds")
    parser.add_argument("--memory", action="store_true", help="the memory of ten million reports instead")
    parser.add_argument("--estimate-files", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.estimate_files:
        estimate_files(options.estimate_files)
    elif options.memory:
        measure_memory()
    elif options.quick:
        measure(QUICK_ROUNDS, QUICK_REPORTS)
    else:
        measure(ROUNDS, REPORTS)


if __name__ == "__main__":
    main()
