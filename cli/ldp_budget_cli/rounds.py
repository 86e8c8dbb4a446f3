"""`estimate --by-round`: each file is a round of its own, as rows and as a table."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Round = Mapping[str, Any]
    """What `estimate --json` prints of one file, with its name as `round`."""


def names_of_rounds(files: Sequence[str]) -> list[str]:
    """What the rounds are called: as their files, with the folder only where two files have one name."""
    often = Counter(map(os.path.realpath, files))
    for path in files:
        if often[os.path.realpath(path)] > 1:
            raise InvalidParameter(
                "by_round", "a file for each round", f"{path} {often[os.path.realpath(path)]} times"
            )
    names = [os.path.basename(path) for path in files]
    alike = Counter(names)
    return [path if alike[name] > 1 else name for name, path in zip(names, files, strict=True)]


def largest_over_all(rounds: Sequence[Round], most: int) -> tuple[str, ...]:
    """The answers with the largest counts of all rounds together, largest first: the same ones in each round."""
    counts: Counter[str] = Counter()
    for each in rounds:
        for row in each["answers"]:
            counts[row["answer"]] += row["count"]
    return tuple(answer for answer, _ in sorted(counts.items(), key=lambda item: -item[1])[:most])


def flat_rows(rounds: Sequence[Round]) -> Iterator[dict[str, Any]]:
    """One row for each answer of each round, or for each round where it is a mean."""
    for each in rounds:
        shared = {"round": each["round"], "reports": each["reports"]}
        for row in each.get("answers", [each]):
            yield {**shared, **row}
