"""Everything that the page says, measured: a list of figures, one for each task, case, library and way.

A figure holds what was found ("answer", "lower", "upper", "promised", "seconds", "ratio", …), or the "reason" why a
library does not offer it, or what it said when it "failed". Seconds are those of each round, in which every library
does the same thing right after the others; a ratio is the median over the rounds of its seconds to ours.
"""

from __future__ import annotations

import datetime
import os
import platform
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import work
from environments import Process, judge, prepared, progress, worker

FORMAT = 1
FIRST, AFTER = "the first 1,000", "after 5,000"

Figure = dict[str, Any]


def target(epsilon: float, delta: float) -> str:
    return f"ε = {epsilon:g}, δ = {delta:g}"


class Run:
    """The libraries at work, and what has been found so far."""

    def __init__(self, environments: Path, libraries: list[str], folder: Path, rounds: int) -> None:
        self.environments, self.libraries, self.folder, self.rounds = environments, libraries, folder, rounds
        self.at_work: dict[str, Process] = {}
        self.judge = judge(environments, folder)
        self.figures: list[Figure] = []
        self._offered: dict[tuple[str, str], Any] = {}

    def fresh(self, library: str) -> Process:
        """A new process of that library, in a folder of its own."""
        return worker(self.environments, library, Path(tempfile.mkdtemp(dir=self.folder)))

    def start(self) -> None:
        self.at_work = {library: self.fresh(library) for library in self.libraries}

    def end(self) -> None:
        for process in (self.judge, *self.at_work.values()):
            process.end()

    def ways(self, library: str, ability: str) -> Any:
        """The names of its ways; or why there are none."""
        key = library, ability
        if key not in self._offered:
            self._offered[key] = self.at_work[library].ask(do="ways", ability=ability)
        return self._offered[key]

    def note(self, task: str, case: str, library: str, way: str, **found: Any) -> Figure:
        figure = {"task": task, "case": case, "library": library, "way": way, **found}
        self.figures.append(figure)
        return figure

    def each_way(self, task: str, case: str, ability: str) -> Iterator[tuple[str, str]]:
        """Every library and way of that ability; of the others it is noted why there is none."""
        for library in self.libraries:
            offered = self.ways(library, ability)
            if "found" not in offered:
                self.note(task, case, library, "", **offered)
            for way in offered.get("found", ()):
                yield library, way


def measured(
    environments: Path, libraries: list[str], rounds: int, timed: dict[str, Any] | None = None
) -> dict[str, Any]:
    """All of it; as JSON has it. With `timed`, results of an earlier run, the times are those of that run."""
    about = {}
    for library in libraries:
        progress(f"{library}: its environment")
        about[library] = prepared(environments, library)
    working = [library for library in libraries if not about[library]["after"]]
    with _at_work(environments, working, rounds) as run:
        _describe(run, about)
        for part in (
            _calibrations,
            _compositions,
            _spends,
            _audits,
            _estimates,
            *(() if timed else (_memory, _times)),
        ):
            progress(part.__name__.strip("_"))
            part(run)
    made = datetime.datetime.now(datetime.UTC).date().isoformat()
    found = {
        "format": FORMAT,
        "made": made,
        "timed": {"on": made, "version": about[work.OURS]["version"]},
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "rounds": rounds,
        "libraries": {library: _public(found) for library, found in about.items()},
        "figures": run.figures,
    }
    if timed is not None:
        found.update({name: timed[name] for name in ("timed", "rounds", "repeated") if name in timed})
        run.figures += [each for each in timed["figures"] if each.get("time") or each["task"] == "memory"]
    return found


def timed_again(environments: Path, libraries: list[str], rounds: int) -> dict[str, Any]:
    """The times alone, by new processes in the environments that there are."""
    with _at_work(environments, libraries, rounds) as run:
        _times(run)
    return {"figures": run.figures}


@contextmanager
def _at_work(environments: Path, libraries: list[str], rounds: int) -> Iterator[Run]:
    with tempfile.TemporaryDirectory() as folder:
        run = Run(environments, libraries, Path(folder), rounds)
        try:
            run.start()
            yield run
        finally:
            run.end()


def _public(about: dict[str, Any]) -> dict[str, Any]:
    kept = ("fresh", "pins", "after", "version", "installed", "import_seconds", "baseline")
    return {name: about[name] for name in kept if name in about}


def _describe(run: Run, about: dict[str, Any]) -> None:
    for library in run.libraries:
        found = run.at_work[library].ask(do="about")["found"]
        about[library]["installed"] = found["installed"]
        about[library]["version"] = found["installed"][library]
        about[library]["import_seconds"] = found["import_seconds"]
        about[library]["baseline"] = found["baseline"]


# -- answers --------------------------------------------------------------------------------------------------


def _certified(run: Run, figure: Figure, answer: Figure, **asked: Any) -> None:
    """Compare the answer with the certified bounds of its ε."""
    figure.update(answer.get("found", answer))
    if "found" in answer:
        bounds = run.judge.ask(**asked)
        if "found" in bounds:
            figure.update(bounds["found"])
        else:
            figure["unjudged"] = bounds.get("failed")


def _calibrations(run: Run) -> None:
    for named, targets in (("", work.TARGETS), ("table", work.TABLE)):
        for epsilon, delta in targets:
            case = target(epsilon, delta)
            for library, way in run.each_way("calibrate", case, "calibrate") if not named else _offering(run):
                found = run.at_work[library].ask(do="sigma", way=way, epsilon=epsilon, delta=delta)
                figure = run.note("calibrate", case, library, way, promised=epsilon, delta=delta)
                if named:
                    figure["table"] = True
                sigma = found.get("found", {}).get("answer")
                _certified(run, figure, found, do="gaussian", sigma=sigma, epsilon=epsilon, delta=delta)


def _offering(run: Run) -> Iterator[tuple[str, str]]:
    for library in run.libraries:
        for way in run.ways(library, "calibrate").get("found", ()):
            yield library, way


def _compositions(run: Run) -> None:
    for case in work.COMPOSITIONS:
        for library, way in run.each_way("compose", case, "compose"):
            found = run.at_work[library].ask(do="composed", way=way, case=case)
            figure = run.note("compose", case, library, way)
            _certified(run, figure, found, do="composition", case=case)
            if "answer" in figure:
                figure["promised"] = figure["answer"]


# What is asked of a new account: its ε, the spends, and how many of them it should accept.
ACCOUNTS: dict[str, tuple[float, list[float], list[bool]]] = {
    "0.1 three times of 0.3": (0.3, [0.1] * 3, [True] * 3),
    "0.1 eleven times of 1.0": (1.0, [0.1] * 11, [True] * 10 + [False]),
    "0.9, then 0.5, then 0.1, of 1.0": (1.0, [0.9, 0.5, 0.1], [True, False, True]),
}
PROCESSES, THREADS = "0.7 in each of two processes, of 1.0", "8 threads, 400 × 1 of 200"


def _spends(run: Run) -> None:
    for case, (capacity, spends, right) in ACCOUNTS.items():
        for library, way in run.each_way("spend", case, "spend"):
            asked = {"do": "accepted_of", "way": way, "capacity": capacity, "spends": spends}
            answer = run.at_work[library].ask(**asked)
            run.note("spend", case, library, way, right=right, **answer.get("found", answer))
    for library, way in run.each_way("spend", PROCESSES, "spend"):
        run.note(
            "spend", PROCESSES, library, way, right=[True, False], processes=2, **_in_two_processes(run, library, way)
        )
    for library, way in run.each_way("spend", THREADS, "spend"):
        answer = run.at_work[library].ask(do="accepted_by_threads", way=way)
        run.note("spend", THREADS, library, way, **answer.get("found", answer))


def _in_two_processes(run: Run, library: str, way: str) -> Figure:
    folder, accepted = Path(tempfile.mkdtemp(dir=run.folder)), []
    for _ in range(2):
        process = worker(run.environments, library, folder)
        answer = process.ask(do="accepted_of", way=way, capacity=1.0, spends=[0.7], shared=True)
        process.end()
        if "found" not in answer:
            return answer
        accepted += answer["found"]["accepted"]
    return {"accepted": accepted}


def _audits(run: Run) -> None:
    for mechanism in work.AUDITED:
        case = f"audit of {mechanism}"
        for library, way in run.each_way("randomize", case, "collect"):
            answer = run.judge.ask(do="audited", command=run.at_work[library].command, mechanism=mechanism)
            run.note("randomize", case, library, way, **answer.get("found", answer))


def _estimates(run: Run) -> None:
    for mechanism in work.ESTIMATED:
        case = f"error of {mechanism}"
        for library, way in run.each_way("estimate", case, "collect"):
            answer = run.at_work[library].ask(do="estimates", mechanism=mechanism)
            run.note("estimate", case, library, way, **answer.get("found", answer))


def _memory(run: Run) -> None:
    """In fresh processes, as memory that was once had is not given back."""
    for task in work.TASKS:
        ability = task if task in work.ABILITIES else "collect"
        for library in dict.fromkeys(library for library, _ in run.each_way("memory", task, ability)):
            process = run.fresh(library)
            answer = process.ask(do="memory", task=task)
            process.end()
            if "found" not in answer:
                run.note("memory", task, library, "", **answer)
            for way, more in answer.get("found", {}).get("more", {}).items():
                run.note("memory", task, library, way, more=more, baseline=answer["found"]["baseline"])


# -- time -----------------------------------------------------------------------------------------------------


def _timed(run: Run) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Timed work: task, case, the ability it needs, and the question."""
    epsilon, delta = work.TARGETS[0]
    asked: dict[str, Any] = {"do": "sigma_seconds", "epsilon": epsilon, "delta": delta}
    yield "calibrate", target(epsilon, delta), "calibrate", asked
    for case in work.COMPOSITIONS:
        yield "compose", case, "compose", {"do": "composed_seconds", "case": case}
    yield "spend", FIRST, "spend", {"do": "thousand_spends"}
    yield "spend", AFTER, "spend", {"do": "spend_seconds", "before": 5000}
    for mechanism in work.SHAPES:
        yield "randomize", mechanism, "collect", {"do": "client_seconds", "mechanism": mechanism}
        yield "aggregate", mechanism, "collect", {"do": "server_seconds", "mechanism": mechanism}
    for mechanism in work.ESTIMATED:
        for intervals, said in ((False, ""), (True, ", with intervals")):
            asked = {"do": "estimate_seconds", "mechanism": mechanism, "intervals": intervals}
            yield "estimate", f"{mechanism}{said}", "collect", asked


def _times(run: Run) -> None:
    found: dict[tuple[str, str, str, str], Figure] = {}
    for number in range(run.rounds):
        progress(f"round {number + 1} of {run.rounds}")
        for task, case, ability, asked in _timed(run):
            for library in run.libraries:
                for way in ("",) if ability == "collect" else run.ways(library, ability).get("found", ()):
                    _one_time(run, found, (task, case, library, way), asked, ability)
    for (task, case, _, _), figure in found.items():
        ours = next(
            each["seconds"] for key, each in found.items() if key[:3] == (task, case, work.OURS) and "seconds" in each
        )
        if len(figure.get("seconds", ())) == len(ours):
            pairs = zip(figure["seconds"], ours, strict=True)
            figure["ratio"] = statistics.median(theirs / mine for theirs, mine in pairs)


def _one_time(
    run: Run, found: dict[Any, Figure], key: tuple[str, str, str, str], asked: dict[str, Any], ability: str
) -> None:
    task, case, library, way = key
    if "seconds" not in found.get(key, {"seconds": None}):
        return  # it was not offered, or failed, and will again
    answer = run.at_work[library].ask(**asked, **({} if ability == "collect" else {"way": way}))
    if key not in found:
        found[key] = run.note(task, case, library, way, time=True)
    if "found" not in answer:
        found[key].pop("seconds", None)
        found[key].update(answer)
        return
    found[key].setdefault("seconds", []).append(float(f"{answer['found']['seconds']:.4g}"))


# -- two results ----------------------------------------------------------------------------------------------


def ratios(results: dict[str, Any]) -> dict[tuple[str, str, str, str], float]:
    """The ratio of every figure that has one, but for our own to themselves."""
    return {
        (each["task"], each["case"], each["library"], each["way"]): each["ratio"]
        for each in results["figures"]
        if "ratio" in each and each["ratio"] != 1.0
    }


def moved(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, float]]:
    """The ratios of both, and by which factor each has moved, the furthest first."""
    before, after = ratios(old), ratios(new)
    factors = [(" · ".join(filter(None, key)), after[key] / before[key]) for key in after if key in before]
    return sorted(factors, key=lambda item: max(item[1], 1 / item[1]), reverse=True)
