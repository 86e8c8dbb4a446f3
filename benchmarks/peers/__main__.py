"""Measure ldp-budget and other libraries, and write the page that compares them.

    python benchmarks/peers                          everything; results.json and the page
    python benchmarks/peers --peers opendp,autodp    ldp-budget and these
    python benchmarks/peers --answers                everything but the times, which stay those of the earlier run
    python benchmarks/peers --check                  take the times again, and say on the page how ratios have moved
    python benchmarks/peers --render                 only the page, from results.json

Needs nothing but a Python: every library, ldp-budget itself too, is installed into an environment of its own. After
the first time that is not done again, and a run takes some minutes. Needs a Unix.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import work
from environments import HERE, ROOT
from measure import measured, moved, timed_again
from page import page

WITHIN = 1.2  # by which factor a ratio may move from run to run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=",".join(work.PEERS), help="names, with commas between  [all]")
    parser.add_argument(
        "--environments", type=Path, default=ROOT / "build" / "peers", help="where they are installed"
    )
    parser.add_argument("--results", type=Path, default=HERE / "results.json", help="what was measured")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "evidence" / "comparison.md", help="the page")
    parser.add_argument("--rounds", type=int, default=7, help="of which the median counts  [7]")
    parser.add_argument("--answers", action="store_true", help="keep the times of the earlier run")
    parser.add_argument("--check", action="store_true", help="take only the times, again; fails beyond 20 %%")
    parser.add_argument("--render", action="store_true", help="only write the page, from the results")
    options = parser.parse_args()
    peers = [name for name in options.peers.split(",") if name]
    unknown = sorted(set(peers) - set(work.PEERS))
    if unknown:
        parser.error(f"--peers must be some of {', '.join(work.PEERS)}: got {', '.join(unknown)}")
    environments = options.environments.resolve()
    if options.check or options.render:
        results = json.loads(options.results.read_text(encoding="utf-8"))
    else:
        timed = json.loads(options.results.read_text(encoding="utf-8")) if options.answers else None
        results = measured(environments, [work.OURS, *peers], options.rounds, timed)
    if options.check:
        working = [library for library, about in results["libraries"].items() if not about["after"]]
        results["repeated"] = repeated(results, timed_again(environments, working, options.rounds))
    options.results.write_text(text_of(results), encoding="utf-8")
    options.out.write_text(page(results), encoding="utf-8")
    if options.check:
        sys.exit(said(results["repeated"]))


def said(found: dict) -> bool:
    """Print how far the ratios have moved; whether one has by too much."""
    for name, factor in found["furthest"]:
        print(f"{factor:6.3f} × {name}")
    print(f"{found['within']} of {found['ratios']} ratios are within {WITHIN - 1:.0%} of those of the earlier run")
    return found["within"] < found["ratios"]


def text_of(results: dict) -> str:
    """The results as JSON, a figure on a line."""
    listed = (json.dumps(each, ensure_ascii=False) for each in results["figures"])
    rest = json.dumps({**results, "figures": []}, ensure_ascii=False, indent=1)
    return rest.replace('"figures": []', '"figures": [\n' + ",\n".join(listed) + "\n ]") + "\n"


def repeated(old: dict, new: dict) -> dict:
    """Number of ratios that are near each other in two runs, and those that moved furthest."""
    factors = moved(old, new)
    within = sum(1 / WITHIN <= factor <= WITHIN for _, factor in factors)
    furthest = factors[: max(5, len(factors) - within)]
    return {"by": WITHIN - 1, "ratios": len(factors), "within": within, "furthest": furthest}


if __name__ == "__main__":
    main()
