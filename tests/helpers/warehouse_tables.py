"""Partitions of weighted reports by region, as a warehouse holds them, and what `estimate` says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldp_budget
from command_line import CommandLine
from ldp_budget import Accountant, Collection
from ldp_budget.reports.public_attributes import PublicAttributes
from ldp_budget_surveys.partitions import PartitionWriter

REGIONS = ("east", "north's", 'so"uth')
WEIGHTS = ("0", "1", "2.5", "4")
HOSTILE = (
    "'); drop table reports; --",
    'a "quoted" answer, with a comma',
    "two\nlines",
    "{{ none }} {% raw %} {# no #} @answers@",
    "back\\slash\\'",
    "$ldp0$ %s",
)
"""Answers that SQL, Jinja or a template would read as their own."""


def added(command: CommandLine, mechanism: str, epsilon: str, answers: tuple[str, ...], name: str = "mood") -> Any:
    """Return a new collection of the ledger, with these answers."""
    made = ldp_budget.mechanism(mechanism).calibrate(epsilon=epsilon, domain_size=len(answers))
    with Accountant(command.ledger) as accountant:
        accountant.add_collection(Collection(name, made, answers).agreed())
        return accountant.collection(name)


def partition(folder: Path, collection: Any, people: int) -> tuple[Path, Any, list[tuple[str, str]]]:
    """Write a partition of the reports of so many people; return its path, its reports, and the region and weight of each."""
    pytest.importorskip("pyarrow", reason="Parquet needs the extra arrow, which interop has")
    places = np.arange(people)
    d = collection.mechanism.domain.size
    reports = collection.mechanism.randomize(places % 7 % d, rng=7)
    public = PublicAttributes(
        ("region", "w"),
        tuple((region, weight) for region in REGIONS for weight in WEIGHTS),
        places % 3 * len(WEIGHTS) + places // 3 % len(WEIGHTS),
    )
    with PartitionWriter(folder / "mood.parquet", collection, public=public.names) as writer:
        writer.write(reports, public)
    return folder / "mood.parquet", reports, [public.combinations[code] for code in public.codes.tolist()]


def expected(
    command: CommandLine, path: Path, *, weighted: bool = False, groups: bool = False
) -> list[tuple[Any, ...]]:
    """Return (answer, count, share, std_error, group, share_std_error) of each row that `estimate` prints."""
    options = [*(["--weights", "w"] if weighted else []), *(["--by", "region"] if groups else [])]
    found = command.json("estimate", "mood", path, *options)
    parts = found["groups"] if groups else [found | {"group": ""}]
    return [
        (
            each["answer"],
            each["count"],
            each["share"],
            each.get("std_error", each["share_std_error"] * each["count"] / each["share"]),
            part["group"],
            each["share_std_error"],
        )
        for part in parts
        for each in part["answers"]
    ]
