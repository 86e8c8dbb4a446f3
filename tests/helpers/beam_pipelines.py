"""Pipelines of Beam over report partitions, each in a process of its own; run by `test_beam`.

    python beam_pipelines.py RUNNER FOLDER

`bundles` is Beam's runner that repeats a bundle that failed; `processes` its local one with two worker processes;
`dask` puts the same pipeline on a cluster of two workers. It prints a line of JSON and leaves `FOLDER/total`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import distributed
from apache_beam.options.pipeline_options import PipelineOptions

import ldp_budget
from ldp_budget import Collection
from ldp_budget.reports.partial_aggregate import Partial
from ldp_budget_surveys.beam import AggregatePartitions
from ldp_budget_surveys.partitions import partitions_in

POLL = Collection("poll", ldp_budget.mechanism("oue")(epsilon=1, domain_size=9))


class FailingOnce(beam.DoFn):  # type: ignore[misc]
    """Hands on what it gets, but fails once in the middle of a bundle, when some of it is already handed on."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def process(self, place: str) -> Iterator[str]:
        yield place
        fail_once(self._folder, place, "4.parquet")


class FailingAggregate(AggregatePartitions):
    """Fails once after it has added a partition."""

    def __init__(self, folder: str) -> None:
        super().__init__(POLL)
        self._folder = folder

    def add_input(self, accumulator: Partial, element: Any, *_: Any, **__: Any) -> Partial:
        added = super().add_input(accumulator, element)
        fail_once(self._folder, element, "2.parquet")
        return added


def fail_once(folder: str, place: str, name: str) -> None:
    mark = Path(folder, f"{name}.failed")
    if place.endswith(name) and not mark.exists():
        mark.touch()
        raise RuntimeError("a worker was lost")


def note_worker(place: str, folder: str) -> str:
    Path(folder, f"{os.getpid()}.worker").touch()
    return place


def main(runner: str, folder: str) -> None:
    options, combine, cluster = [], AggregatePartitions(POLL), None
    which: Any
    if runner == "bundles":
        from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner

        which, combine = BundleBasedDirectRunner(), FailingAggregate(folder)
    elif runner == "processes":
        from apache_beam.runners.portability.fn_api_runner import FnApiRunner

        which, options = FnApiRunner(), ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    else:
        from apache_beam.runners.dask.dask_runner import DaskRunner

        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        which, options = DaskRunner(), [f"--dask_client_address={cluster.scheduler_address}"]
    with beam.Pipeline(which, PipelineOptions(options)) as pipeline:
        places = pipeline | beam.Create(partitions_in(f"{folder}/parts")) | beam.Reshuffle()
        if runner == "bundles":
            places = places | beam.ParDo(FailingOnce(folder))
        total = places | beam.Map(note_worker, folder) | beam.CombineGlobally(combine)
        total | beam.Map(lambda partial: partial.write(f"{folder}/total"))
    if cluster is not None:
        distributed.default_client().close()  # else it looks for the cluster for half a minute
        cluster.close()
    workers = {int(path.stem) for path in Path(folder).glob("*.worker")}
    print(json.dumps({"failed": len([*Path(folder).glob("*.failed")]), "workers": len(workers - {os.getpid()})}))


if __name__ == "__main__":
    # Under a name by which workers find it as well.
    import beam_pipelines

    beam_pipelines.main(*sys.argv[1:])
