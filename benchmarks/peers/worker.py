"""One library at work, in an environment of its own: lines of JSON in, a line of JSON out for each.

    PYTHON worker.py LIBRARY

Needs the standard library and the library itself. A line names one of the functions of `ASKED` in "do", and its
arguments. The answer holds "found", or "reason" where the library does not offer it, or "failed" with what it said
when it failed. Times are processor time, user and system, of all threads; memory is the highest ever resident.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import process_time
from typing import Any

import work

ENOUGH = 0.15  # seconds of one measurement, in parts of which the quickest counts
PARTS = 5
ONE_SPEND, ROOMY = 0.001, 1000.0


class Library:
    """An adapter, and what has been made of it so far."""

    def __init__(self, name: str) -> None:
        # As a sibling would be found first where it is called like the library.
        self.adapter = importlib.import_module(f"adapters.{work.module_of(name)}")
        start = process_time()
        for module in self.adapter.IMPORTS:
            importlib.import_module(module)
        self.import_seconds = process_time() - start
        self.baseline = peak()
        self._made: dict[Any, Any] = {}

    def ability(self, name: str) -> Any:
        """The function of that name. Raises `NotOfferedError`."""
        if name in self.adapter.MISSING:
            raise work.NotOfferedError(self.adapter.MISSING[name])
        return getattr(self.adapter, name)

    def ways(self, ability: str) -> dict[str, Any]:
        return self.kept((ability,), lambda: self.ability(ability)())

    def collector(self, mechanism: str, shape: work.Shape) -> work.Collector:
        key = (mechanism, *sorted(shape.items()))
        return self.kept(key, lambda: self.ability("collect")(mechanism, shape, 1.0))

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def peak() -> float:
    """The highest resident memory of this process so far, in megabytes (10⁶ bytes).

    Where Linux says it of this program: `ru_maxrss` may be that of the program that started it.
    """
    try:
        [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024 / 1e6
    except (OSError, ValueError):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def seconds_of(call: Callable[[], Any]) -> float:
    """Seconds of one call: the quickest of a few batches, or the first call where it takes long enough alone.

    What is called has been called before: a first time may compile.
    """
    once = max(_batch(call, 1), 1e-9)
    if once > ENOUGH:
        return once
    loops = max(1, math.ceil(ENOUGH / PARTS / once))
    return min(_batch(call, loops) for _ in range(PARTS))


def _batch(call: Callable[[], Any], loops: int) -> float:
    start = process_time()
    for _ in range(loops):
        call()
    return (process_time() - start) / loops


def values_of(collector: work.Collector, count: int, answers: int) -> Any:
    """The same answers for every library, each about equally often."""
    return collector.prepare([(number * 7919) % answers for number in range(count)])


# -- what can be asked ----------------------------------------------------------------------------------------


def about(library: Library) -> dict[str, Any]:
    from importlib.metadata import distributions

    installed = {each.metadata["Name"]: each.version for each in distributions()}
    return {
        "python": sys.version.split()[0],
        "installed": dict(sorted(installed.items(), key=lambda item: item[0].lower())),
        "import_seconds": library.import_seconds,
        "baseline": library.baseline,
    }


def ways(library: Library, ability: str) -> list[str]:
    """The names of its ways to do that."""
    return [""] if ability == "collect" and library.ability(ability) else list(library.ways(ability))


def sigma(library: Library, way: str, epsilon: float, delta: float) -> dict[str, Any]:
    return {"answer": library.ways("calibrate")[way](epsilon, delta)}


def sigma_seconds(library: Library, way: str, epsilon: float, delta: float) -> dict[str, Any]:
    call = library.ways("calibrate")[way]
    return {"seconds": seconds_of(lambda: call(epsilon, delta))}


def composed(library: Library, way: str, case: str) -> dict[str, Any]:
    return {"answer": library.ways("compose")[way](*work.COMPOSITIONS[case])}


def composed_seconds(library: Library, way: str, case: str) -> dict[str, Any]:
    call, asked = library.ways("compose")[way], work.COMPOSITIONS[case]
    return {"seconds": seconds_of(lambda: call(*asked))}


def spend_seconds(library: Library, way: str, before: int) -> dict[str, Any]:
    """Of one spend of an account that has been charged at least so often."""

    def charged() -> Any:
        with _new_folder():
            return _charged(library.ways("spend")[way](ROOMY), before)

    accepted = library.kept(("account", way, before), charged)
    loops = 100 if _batch(lambda: accepted(ONE_SPEND), 5) < 1e-3 else 20
    return {"seconds": min(_batch(lambda: accepted(ONE_SPEND), loops) for _ in range(PARTS))}


def _charged(accepted: Callable[[float], bool], count: int) -> Callable[[float], bool]:
    for _ in range(count):
        if not accepted(ONE_SPEND):
            raise RuntimeError("refused within its budget")
    return accepted


def thousand_spends(library: Library, way: str) -> dict[str, Any]:
    """Seconds of a spend, on average over the first thousand of one account; the quickest of three accounts."""
    figures = []
    for _ in range(3):
        with _new_folder():
            accepted = library.ways("spend")[way](ROOMY)
            start = process_time()
            _charged(accepted, 1000)
            figures.append((process_time() - start) / 1000)
    return {"seconds": min(figures)}


def accepted_of(
    library: Library, way: str, capacity: float, spends: list[float], shared: bool = False
) -> dict[str, Any]:
    """Spends that an account accepts: a new one, or `shared` the one that an earlier process left."""
    with nullcontext() if shared else _new_folder():
        accepted = library.ways("spend")[way](capacity)
        return {"accepted": [bool(accepted(epsilon)) for epsilon in spends]}


def accepted_by_threads(library: Library, way: str) -> dict[str, Any]:
    """The most that 8 threads together spend, 1 at a time, of accounts of 200, of which they ask for 400."""
    sys.setswitchinterval(1e-5)
    most = 0
    for _ in range(5):
        with _new_folder():
            accepted = library.ways("spend")[way](200.0)
            most = max(most, _spent_by_threads(accepted))
    return {"accepted": most, "capacity": 200}


def _spent_by_threads(accepted: Callable[[float], bool]) -> int:
    counts, start = [0] * 8, threading.Barrier(8)

    def spends(which: int) -> None:
        start.wait()
        for _ in range(50):
            counts[which] += accepted(1.0)

    crowd = [threading.Thread(target=spends, args=(which,)) for which in range(len(counts))]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    return sum(counts)


@contextmanager
def _new_folder() -> Iterator[None]:
    """A working directory of its own, for what an account may leave in it."""
    here = Path.cwd()
    os.chdir(tempfile.mkdtemp(dir=here))
    try:
        yield
    finally:
        os.chdir(here)


def _collector(library: Library, mechanism: str, shape: str) -> tuple[work.Collector, int]:
    sizes = getattr(work, shape)[mechanism]
    return library.collector(mechanism, sizes), sizes["answers"]


def client_seconds(library: Library, mechanism: str) -> dict[str, Any]:
    """Seconds of a report on the client."""
    collector, answers = _collector(library, mechanism, "SHAPES")
    values = values_of(collector, collector.batch, answers)
    library.kept(("reports", mechanism), lambda: collector.randomize(values, None))
    return {"seconds": seconds_of(lambda: collector.randomize(values, None)) / len(values)}


def server_seconds(library: Library, mechanism: str) -> dict[str, Any]:
    """Seconds of a report on the server."""
    collector, _ = _collector(library, mechanism, "SHAPES")
    if collector.aggregate is None:
        raise work.NotOfferedError(collector.reasons["aggregate"])
    client = library.kept(("reports", mechanism), lambda: None)
    if client is None:
        raise RuntimeError("the client is to be measured first")
    collector.aggregate(client)
    return {"seconds": seconds_of(lambda: collector.aggregate(client)) / len(client)}


def estimate_seconds(library: Library, mechanism: str, intervals: bool) -> dict[str, Any]:
    """Seconds from 2,000 reports to the counts of all answers, and to their intervals."""
    collector, answers = _collector(library, mechanism, "SHAPES")
    step = collector.intervals if intervals else collector.estimate
    if step is None:
        raise work.NotOfferedError("no intervals" if intervals else collector.reasons["estimate"])
    values = values_of(collector, work.ESTIMATED_REPORTS, answers)
    reports = library.kept(("estimated", mechanism), lambda: collector.randomize(values, None))
    step(reports)
    return {"seconds": seconds_of(lambda: step(reports))}


def estimates(library: Library, mechanism: str) -> dict[str, Any]:
    """Error of the estimated share of an answer that no user gave, and how often intervals hold the truth.

    Nine users of ten give answer 0, none the last one, the others any of those between.
    """
    collector, answers = _collector(library, mechanism, "ESTIMATED")
    if collector.estimate is None:
        raise work.NotOfferedError(collector.reasons["estimate"])
    count = work.ESTIMATED_REPORTS
    values = [0 if number % 10 else 1 + (number // 10) % (answers - 2) for number in range(count)]
    truth = [values.count(answer) for answer in range(answers)]
    errors, held, intervals = [], 0, 0
    for _ in range(work.ESTIMATED_REPEATS):
        reports = collector.randomize(collector.prepare(values), None)
        errors.append(float(collector.estimate(reports)[answers - 1]) / count)
        if collector.intervals is not None:
            _, (lows, highs) = collector.intervals(reports)
            intervals += answers
            held += sum(bool(low <= true <= high) for true, low, high in zip(truth, lows, highs, strict=True))
    mean = sum(errors) / len(errors)
    spread = math.sqrt(sum((error - mean) ** 2 for error in errors) / (len(errors) - 1) / len(errors))
    return {"bias": mean, "std_error": spread, "held": held, "intervals": intervals}


def rows(library: Library, mechanism: str, values: list[int], secrets: list[str] | None) -> dict[str, Any]:
    """Reports for an audit, as rows of whole numbers below 2^31, and what is promised of them."""
    collector, _ = _collector(library, mechanism, "AUDITED")
    own = None if secrets is None else [bytes.fromhex(secret) for secret in secrets]
    found = collector.rows(collector.randomize(collector.prepare(values), own))
    listed = [[int(number) for number in row] for row in (found.tolist() if hasattr(found, "tolist") else found)]
    return {"epsilon": collector.epsilon, "rows": listed}


def memory(library: Library, task: str) -> dict[str, Any]:
    """Megabytes above those of the imports, for each way: the most of the process that does one after the other."""
    found: dict[str, Any] = {}
    for way, call in _memory_work(library, task):
        call()
        found[way] = peak() - library.baseline
    return {"baseline": library.baseline, "more": found}


def _memory_work(library: Library, task: str) -> Any:
    if task == "calibrate":
        for way, call in library.ways(task).items():
            yield way, lambda call=call: call(*work.TARGETS[0])
    elif task == "compose":
        for way, call in library.ways(task).items():
            yield way, lambda call=call: call(*work.COMPOSITIONS["1,000 × RR(1)"])
    elif task == "spend":
        for way, opened in library.ways(task).items():
            yield way, lambda opened=opened: _charged(opened(ROOMY), 1000)
    else:
        yield "", lambda: _one_question(library, task)


def _one_question(library: Library, task: str) -> Any:
    """50,000 reports of the first mechanism with many answers that is offered, and for servers what follows."""
    try:
        collector, answers = _collector(library, "oue", "SHAPES")
    except work.NotOfferedError:
        collector, answers = _collector(library, "grr", "SHAPES")
    reports = collector.randomize(values_of(collector, 50_000, answers), None)
    step = {"randomize": lambda given: given, "aggregate": collector.aggregate, "estimate": collector.estimate}[task]
    if step is None:
        raise work.NotOfferedError(collector.reasons[task])
    return step(reports)


ASKED: dict[str, Callable[..., Any]] = {
    call.__name__: call
    for call in (
        *(about, ways, sigma, sigma_seconds, composed, composed_seconds, spend_seconds, thousand_spends),
        *(accepted_of, accepted_by_threads, client_seconds, server_seconds, estimate_seconds, estimates, rows),
        memory,
    )
}


def answer(library: Library, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"found": ASKED[asked.pop("do")](library, **asked)}
    except work.NotOfferedError as error:
        return {"reason": str(error)}
    except Exception as error:  # what a library says when it fails is a finding
        lines = str(error).strip().splitlines() or [""]
        words = " ".join(word for word in lines[0].split() if "/" not in word)  # no folders of this machine
        return {"failed": f"{type(error).__name__}: {words}"[:160]}


def main() -> None:
    # Some libraries print as they work; only answers may go out.
    said = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    library = Library(sys.argv[1])
    for line in sys.stdin:
        said.write(json.dumps(answer(library, json.loads(line))) + "\n")
        said.flush()


if __name__ == "__main__":
    main()
