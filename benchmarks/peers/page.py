"""The page that compares the libraries: a function of what was measured, and of nothing else."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterable

import work
from verdicts import CLEARLY, SAFE, Figure, account_verdict, count, is_biased, verdict

CLIENTS = """\
Reports a second of a client: ldp-budget is given 100,000 answers at a time, the others 2,000, one by one where they
take no more."""


def page(results: Figure) -> str:
    """The page, in Markdown."""
    figures = results["figures"]
    parts = [
        _head(results),
        _short(results),
        _libraries(results),
        _calibrate(_of(figures, "calibrate")),
        _compose(_of(figures, "compose")),
        _spend(_of(figures, "spend")),
        _collect(figures, results),
        _estimate(_of(figures, "estimate")),
    ]
    return "\n\n".join(parts) + "\n"


# -- reading figures ------------------------------------------------------------------------------------------


def _of(figures: Iterable[Figure], task: str) -> list[Figure]:
    return [each for each in figures if each["task"] == task]


def _name(figure: Figure) -> str:
    return figure["library"] + (f", {figure['way']}" if figure["way"] else "")


def _time_of(figures: list[Figure], like: Figure) -> Figure:
    """Place of the time of that figure's work."""
    same = ("case", "library", "way")
    found = [each for each in figures if each.get("time") and all(each[key] == like[key] for key in same)]
    return found[0] if found else {}


def why_not(figure: Figure) -> str:
    """If a library offers no answer, or failed; `results.json` has the reason in its own words."""
    return "—" if "reason" in figure else "failed"


def pivot(rows: list[list[str]]) -> str:
    """A table with a row for each library and a column for each case; a row has both, then what the cell says."""
    cases = list(dict.fromkeys(case for case, *_ in rows))
    cells = {(library, case): "; ".join(filter(None, found)) for case, library, *found in rows}
    libraries = dict.fromkeys(library for _, library, *_ in rows)
    return table(
        " | ".join(["library", *(f"{case}:" for case in cases)]),
        [[library, *(cells.get((library, case), "") for case in cases)] for library in libraries],
    )


# -- writing numbers ------------------------------------------------------------------------------------------


def seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def rate(value: float) -> str:
    """Number a second, of so many seconds each."""
    many = 1 / value
    return f"{many / 1e6:.3g} M/s" if many >= 1e6 else f"{many / 1e3:.3g} k/s" if many >= 1e3 else f"{many:.3g} /s"


def times(value: float) -> str:
    return f"{value:,.0f}×" if value >= 100 else f"{value:.2g}×" if value < 10 else f"{value:.0f}×"


def median(figure: Figure) -> float:
    return statistics.median(figure["seconds"])


def tightness(figure: Figure) -> str:
    if "upper" not in figure:
        return ""
    return f"{figure['promised'] / figure['upper'] - 1:+.1e}"


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """A table. Its headings stand with bars between; a column whose heading ends with a colon is set to the right."""
    names = [name.strip() for name in head.split("|")]
    lines = [f"| {' | '.join(name.removesuffix(':') for name in names)} |"]
    lines.append(f"| {' | '.join('---:' if name.endswith(':') else '---' for name in names)} |")
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _cost(figure: Figure) -> list[str]:
    if "seconds" not in figure:
        return ["", ""]
    return [seconds(median(figure)), times(figure["ratio"]) if "ratio" in figure else ""]


def _offering(figures: list[Figure]) -> list[Figure]:
    """The figures of the libraries that offer some of them."""
    offered = {each["library"] for each in figures if "reason" not in each}
    return [each for each in figures if each["library"] in offered]


# -- the parts ------------------------------------------------------------------------------------------------


def prose(*paragraphs: str) -> str:
    """Paragraphs as lines of an ordinary length, however the words before them turned out."""
    return "\n\n".join(textwrap.fill(each, 118, break_on_hyphens=False) for each in paragraphs)


def _head(results: Figure) -> str:
    machine = results["machine"]
    commands = """\
    python benchmarks/peers              # measure, and write this page
    python benchmarks/peers --answers    # measure again all but the times
    python benchmarks/peers --check      # take the times again, and say here how far the ratios have moved"""
    said = prose(
        f"Measured on {results['made']}: {machine['system']}, {machine['processor']}, {machine['cores']} cores, "
        f"Python "
        f"{machine['python']}. The command writes every cell from `benchmarks/peers/results.json`; none is by hand.",
        "Each library has an environment of its own and does the same work. "
        "**Safe** means that what it promises is not below what is certainly lost: for an ε a certified lower bound of "
        "the exact composition, for a client the lower bound of an audit of "
        f"{work.AUDITED_REPORTS:,} reports, too high at most once in a hundred. That an audit finds nothing proves "
        "nothing. A promise that is too small by less than a part in 10⁹ is unsafe by rounding. Under "
        "*Calibrate*, *Compose* and *Randomize*, a figure without a verdict is safe.",
        "Time is processor time. Libraries take turns, "
        f"{results['rounds']} times over. **× is the median of a library's "
        f"time over "
        "ours in the same turn**: above 1 it is slower than ldp-budget. “—” is what a library does not offer; the results say why."
        + _timed(results),
    )
    return "\n\n".join(["# Comparison with other libraries", commands, said, *_repeated(results)])


def _timed(results: Figure) -> str:
    """When the times were taken, unless with the answers."""
    timed = results["timed"]
    if timed["on"] == results["made"]:
        return ""
    return f" The times are those of {timed['on']}, of ldp-budget {timed['version']}."


def _repeated(results: Figure) -> list[str]:
    if "repeated" not in results:
        return []
    found = results["repeated"]
    return [
        prose(
            f"When the times were taken again by new processes, {found['within']} of {found['ratios']} ratios came "
            f"out within {found['by']:.0%}."
        )
    ]


def _summary_cell(figures: list[Figure], task: str, library: str) -> str:
    own = [each for each in _of(figures, task) if each["library"] == library]
    if all("reason" in each for each in own):
        return "—"
    judged = [account_verdict(each) for each in own if "accepted" in each]
    judged += [verdict(each) for each in own if "lower" in each]
    errors = [each for each in own if "bias" in each]
    parts = [count(judged)]
    if errors:
        biased = sum(is_biased(each) for each in errors)
        parts.append(
            f"{biased} of {len(errors)} **biased**" if biased else f"{len(errors)} of {len(errors)} unbiased"
        )
        parts.append("intervals" if any(each["intervals"] for each in errors) else "no intervals")
    found = sorted(each["ratio"] for each in own if "ratio" in each and not _is_ours_first(each))
    ends = dict.fromkeys(times(each) for each in found[:1] + found[-1:])
    return "; ".join(filter(None, [*parts, " to ".join(ends)])) or "1×"


def _is_ours_first(figure: Figure) -> bool:
    """True if the time of the others is a multiple of this one."""
    return figure["library"] == work.OURS and figure["ratio"] == 1.0


def _short(results: Figure) -> str:
    rows = [
        [library, *(_summary_cell(results["figures"], task, library) for task in work.TASKS)]
        for library, about in results["libraries"].items()
        if not about["after"]
    ]
    said = prose("*Aggregate* adds the reports up on the server. The sections below say what the other columns are.")
    return f"## In short\n\n{table(' | '.join(['library', *work.TASKS]), rows)}\n\n{said}"


def _libraries(results: Figure) -> str:
    said = []
    for library, about in results["libraries"].items():
        pins = ", ".join(f"`{pin}`" for pin in about["pins"])
        needs = f", which cannot be imported without {pins}" if about["fresh"] and not about["after"] else ""
        said.append(f"{library} {about.get('version', '')}{needs}")
    return f"## The libraries\n\n{prose('; '.join(said) + '.')}"


def _if_unsafe(figure: Figure) -> str:
    found = verdict(figure)
    return "" if found == SAFE else found


def _calibrate(figures: list[Figure]) -> str:
    timed = [each for each in figures if each.get("time")]
    answers = [each for each in figures if not each.get("time")]
    rows = []
    for each in _offering([each for each in answers if not each.get("table")]):
        found = (
            [tightness(each), _if_unsafe(each), _cost(_time_of(timed, each))[1]]
            if "answer" in each
            else [why_not(each)]
        )
        rows.append([each["case"], _name(each), *found])
    said = prose(
        "Gaussian noise of sensitivity 1: how far its true ε is below the ε that was asked for, at that δ; and the time."
    )
    return f"## Calibrate\n\n{said}\n\n{pivot(rows)}"


def _compose(figures: list[Figure]) -> str:
    timed = [each for each in figures if each.get("time")]
    answers = [each for each in figures if not each.get("time")]
    rows = []
    for each in _offering(answers):
        found = (
            [f"{each['answer']:.6g}", _if_unsafe(each), _cost(_time_of(timed, each))[1]]
            if "answer" in each
            else [why_not(each)]
        )
        rows.append([each["case"], _name(each), *found])
    said = prose(
        "ε and the time. Any input of one user replaced by any other; δ = 1e-06. RR(ε) is randomized response of two "
        "answers. PLDAccountant takes randomized response and noise together only for neighbors of whom one is a special "
        "record, which promises less than is asked for."
    )
    return f"## Compose\n\n{said}\n\n{pivot(rows)}"


def _accepted(figure: Figure) -> str:
    accepted = figure["accepted"]
    if isinstance(accepted, int):
        return str(accepted)
    if len(accepted) > 4:
        return f"{sum(accepted)} of {len(accepted)}"
    return ", ".join("yes" if each else "no" for each in accepted)


def _spend(figures: list[Figure]) -> str:
    answers = [each for each in figures if not each.get("time")]
    rows = []
    for each in _offering(answers):
        if "accepted" not in each:
            rows.append([each["case"], _name(each), why_not(each)])
        else:
            rows.append([each["case"], _name(each), _accepted(each), account_verdict(each)])
    said = prose(
        "An account of one user, and what it accepts. The two processes follow one another in one folder; an account "
        "that gives out there what is spent already forgets. Of the threads the most stands here that five accounts "
        "gave out; Python was told to switch between them often."
    )
    return f"## Spend\n\n{said}\n\n{pivot(rows)}"


def _collect(figures: list[Figure], results: Figure) -> str:
    parts = []
    audits = [each for each in _of(figures, "randomize") if not each.get("time")]
    rows = []
    for each in _offering(audits):
        case = each["case"].removeprefix("audit of ")
        if "lower" not in each:
            rows.append([case, _name(each), why_not(each)])
            continue
        rows.append([case, _name(each), f"{each['lower']:.3g} of {each['promised']:.9g}", _if_unsafe(each)])
    said = prose(
        "What an audit certifies that a report loses, of the ε that is promised; small set-ups, of 4 answers. "
        "Memoised "
        f"is d-bit-flip, {work.MEMOISED_REPORTS} reports of one value of each user, whose promise is for all of them "
        "together."
    )
    parts.append(f"## Randomize\n\n{said}\n\n{pivot(rows)}")
    timed = [each for each in _of(figures, "randomize") if each.get("time")]
    if timed:
        rows = [
            [_shaped(each["case"]), _name(each), rate(median(each)), _cost(each)[1]]
            if "seconds" in each
            else [_shaped(each["case"]), _name(each), why_not(each)]
            for each in sorted(_offering(timed), key=lambda each: list(work.SHAPES).index(each["case"]))
        ]
        parts.append(f"{CLIENTS}\n\n{pivot(rows)}")
    return "\n\n".join(parts)


def _shaped(mechanism: str) -> str:
    shape = work.SHAPES[mechanism]
    return f"{mechanism}, " + ", ".join(f"{size:,} {name}" for name, size in shape.items())


def _estimate(figures: list[Figure]) -> str:
    errors = [each for each in figures if not each.get("time")]
    rows = []
    for each in _offering(errors):
        case = each["case"].removeprefix("error of ")
        if "bias" not in each:
            rows.append([case, _name(each), why_not(each)])
            continue
        held = f"{each['held'] / each['intervals']:.1%}" if each["intervals"] else "no intervals"
        off = f"{each['bias']:+.4f} ± {each['std_error']:.4f}"
        rows.append([case, _name(each), off, "**biased**" if is_biased(each) else "unbiased", held])
    said = prose(
        f"{work.ESTIMATED_REPORTS:,} reports of one of 16 answers, {work.ESTIMATED_REPEATS} times over: how far "
        f"off the "
        "estimated share of an answer is that no user gave, on average, with the standard error of that; biased where "
        f"it is more than {CLEARLY:g} of them off. And how often a 95 % interval holds the truth."
    )
    return f"## Estimate\n\n{said}\n\n{pivot(rows)}"
