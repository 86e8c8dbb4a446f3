"""Aggregation of report partitions with Apache Beam (extra `beam`):

    import apache_beam as beam
    from ldp_budget_surveys.beam import AggregatePartitions

    with beam.Pipeline() as pipeline:
        addresses = pipeline | beam.Create(partitions_in("s3://bucket/day"))
        partial = addresses | beam.CombineGlobally(AggregatePartitions(collection))
        partial | beam.Map(lambda partial: print(partial.estimate()))

A repeated bundle is not counted twice: Beam drops the result of the failed bundle. Each accumulator also knows its
partitions. If one still arrives a second time, the pipeline ends with an error that names it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ldp_budget._validation import check_instance
from ldp_budget.errors import NotSupported
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.partial_aggregate import Partial, aggregate

try:
    import apache_beam
except ImportError:
    raise NotSupported(
        "a Beam pipeline needs the package apache-beam", hint="Install it: pip install 'ldp-budget[beam]'"
    ) from None

if TYPE_CHECKING:
    from collections.abc import Iterable


class AggregatePartitions(apache_beam.CombineFn):  # type: ignore[misc]
    """`CombineFn` from URLs or paths of partitions, or partials, to the one `Partial` of all of them.

    Parameters:
        collection: the collection of the reports.

    Raises:
        InvalidParameter: `collection` is not a collection.
    """

    def __init__(self, collection: Collection) -> None:
        super().__init__()
        self._collection = check_instance("collection", collection, Collection, "a `Collection`")

    def create_accumulator(self, *_: Any, **__: Any) -> Partial:
        """Return an empty partial."""
        return Partial(self._collection)

    def add_input(self, accumulator: Partial, element: str | Partial, *_: Any, **__: Any) -> Partial:
        """Return the accumulator merged with one more partition or partial.

        Parameters:
            accumulator: a partial.
            element: a path or URL as `aggregate` takes it, or a partial.

        Raises:
            ReportFileError: the partition is foreign, truncated, damaged or made for another collection.
            InvalidParameter: the accumulator already contains it.
        """
        part = element if isinstance(element, Partial) else aggregate(element, self._collection)
        return accumulator.merge(part)

    def merge_accumulators(self, accumulators: Iterable[Partial], *_: Any, **__: Any) -> Partial:
        """Return all accumulators merged.

        Parameters:
            accumulators: partials.

        Raises:
            InvalidParameter: two of them share a partition.
        """
        return functools.reduce(Partial.merge, accumulators, Partial(self._collection))

    def extract_output(self, accumulator: Partial, *_: Any, **__: Any) -> Partial:
        """Return the accumulator itself.

        Parameters:
            accumulator: a partial.
        """
        return accumulator
