"""Recall of the frequent words, and the time of each step of heavy-hitters.

    python benchmarks/heavy_hitters.py [--users 1000000] [--epsilon 2] [--bytes 6] [--runs 4]

The words are random strings of that many bytes. Their frequencies follow a Zipf law with exponent 1.2 over 20,000
words. Recall is the share of the 16 most likely words that are among the 16 found. Times are of one process, in
seconds of the wall clock, and the memory is the largest of the process.
"""

from __future__ import annotations

import argparse
import resource
from statistics import mean
from time import perf_counter
from typing import Any

import numpy as np

import ldp_budget

WORDS = 20_000
EXPONENT = 1.2
TOP = 16


def run(mechanism: Any, users: int, seed: int) -> tuple[float, float, float, float]:
    """Recall, and the seconds to randomize, to aggregate and to search."""
    source = np.random.default_rng(seed)
    chances = 1 / np.arange(1, WORDS + 1) ** EXPONENT
    words = [int.from_bytes(source.bytes(mechanism.length), "big") or 1 for _ in range(WORDS)]
    kind = np.int64 if mechanism.length < 8 else object
    values = np.array(words, kind)[source.choice(WORDS, users, p=chances / chances.sum())]
    started = perf_counter()
    reports = mechanism.randomize(values)
    drawn = perf_counter()
    total = mechanism.aggregate(reports)
    counted = perf_counter()
    found = mechanism.estimate(total, top=TOP)
    ended = perf_counter()
    named = {mechanism.domain.word_of(word) for word in words[:TOP]}
    return len(named & set(found.answers)) / TOP, drawn - started, counted - drawn, ended - counted


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--users", type=int, default=10**6)
    parser.add_argument("--epsilon", default="2")
    parser.add_argument("--bytes", type=int, default=6)
    parser.add_argument("--runs", type=int, default=4)
    asked = parser.parse_args()
    mechanism = ldp_budget.mechanism("heavy-hitters")(epsilon=asked.epsilon, length=asked.bytes)
    rows = [run(mechanism, asked.users, seed) for seed in range(asked.runs)]
    recall, randomize, aggregate, search = (mean(column) for column in zip(*rows, strict=True))
    print(f"{asked.users:,} users, ε = {asked.epsilon}, words of {asked.bytes} bytes, {asked.runs} runs")
    print(f"recall of the top {TOP}: {recall:.3f} (each run: {', '.join(f'{row[0]:.3f}' for row in rows)})")
    print(f"randomize {randomize:.1f} s, aggregate {aggregate:.1f} s, search {search:.1f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
