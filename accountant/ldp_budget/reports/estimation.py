"""Estimates of a collection from its reports, and what is said of them."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InvalidParameter, OutsideDomain, ReportFileError
from ..sdk.domain import Categories
from ..sdk.estimates import CountEstimate, MeanEstimate, adjusted
from .partial_aggregate import again, aggregate, estimate_total, lists_answers
from .report_file import check_mixed
from .tables import shown_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ..registry.collections import Collection
    from ..sdk.estimates import Estimate
    from .parquet import Source


def check_countable(collection: Collection, names: Sequence[str] | None, most: int | None) -> None:
    """Raise `InvalidParameter` where candidates are missing, and where there is nothing to be counted."""
    kind = collection.mechanism.name
    if not isinstance(collection.mechanism.domain, Categories):
        for option, given in (("candidates", names), ("top", most)):
            if given is not None:
                raise InvalidParameter(option, "a collection of answers to count", f"{collection.name}, a mean")
    elif names is None and not lists_answers(collection):
        expected = f"the answers to count, as a file or a list, since a {kind} without --domain-size lists none"
        raise InvalidParameter("candidates", expected)


def check_candidates(collection: Collection, names: Sequence[str]) -> None:
    """Raise `InvalidParameter` unless each is an answer of the collection, and named once."""
    for name, times in Counter(names).items():
        if times > 1:
            raise InvalidParameter("candidates", "distinct answers", f"{name!r} {times} times")
    try:
        collection.read_values(names)
    except OutsideDomain as error:
        raise InvalidParameter(
            "candidates", f"answers of {collection.name}: {error.domain}", repr(error.found)
        ) from None


def total_of(collection: Collection, blocks: Iterable[NDArray[Any]]) -> Any:
    """The aggregate of blocks of reports; None where there are none."""
    mechanism: Any = collection.mechanism
    total = None
    for block in blocks:
        part = mechanism.aggregate(block)
        total = part if total is None else total.merge(part)
    return total


def estimate_totals(
    collection: Collection, rounds: Iterable[Any], names: Sequence[str] | None = None, *, independent: bool = False
) -> Estimate | None:
    """One estimate from the aggregates of rounds; where answers are not listed, of those named.

    Several rounds of a collection that memoises are taken for those of the same users unless `independent`. None
    where there are no reports.
    """
    total, parts, keeps = None, [], collection.mechanism.repeats and not independent
    for each in rounds:
        if each is not None:
            if keeps and each.reports:
                parts.append(estimate_total(collection, each, names))
            total = copy.deepcopy(each) if total is None else total.merge(each)  # what is given stays as it is
    if total is None:
        return None
    estimated = estimate_total(collection, total, names)
    return estimated.repeated(parts) if len(parts) > 1 else estimated


def estimate_files(
    collection: Collection,
    files: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    independent: bool = False,
    on_mixed: Callable[[int, int], None] | None = None,
) -> Estimate:
    """One estimate from all the files, each a round; see `estimate_totals`. Raises `ReportFileError`.

    A file is one of reports, a partition of them, a partial, or a folder of partitions, which is one round. None of
    the partitions may be there twice. Where some reports were charged to their users and others were not, that is an
    error; or `on_mixed` is called with how many of each there are.
    """
    charges = _Charges()
    estimated = estimate_totals(collection, _totals(collection, files, charges), names, independent=independent)
    if estimated is None:
        raise ReportFileError(", ".join(files), "there are no reports to estimate from")
    if on_mixed is None:
        check_mixed(", ".join(map(shown_place, files)), charges.charged, charges.uncharged)
    elif charges.charged and charges.uncharged:
        on_mixed(charges.charged, charges.uncharged)
    return estimated


@dataclass
class _Charges:
    """How many reports were charged to their users and how many were not, of those whose writer said so."""

    charged: int = 0
    uncharged: int = 0


def _totals(collection: Collection, files: Sequence[str], charges: _Charges) -> Iterator[Any]:
    """The aggregate of each file. Raises `ReportFileError` at a partition that one before it held."""
    known: dict[str, Source] = {}
    for path in files:
        part = aggregate(path, collection)
        for name, source in part.partitions.items():
            if name in known:
                raise ReportFileError(
                    path, f"a partition is counted once, and this is there twice: {again(source, known[name])}"
                )
        known |= part.partitions
        charges.charged += part.charged
        charges.uncharged += part.uncharged
        yield part.total


def chosen_rows(rows: list[dict[str, Any]], names: Sequence[str] | None, most: int | None) -> list[dict[str, Any]]:
    """The rows of the answers that are named, in that order, or of those with the largest counts."""
    if names is not None:
        by_name = {row["answer"]: row for row in rows}
        rows = [by_name[name] for name in names]
    return rows if most is None else sorted(rows, key=lambda row: -row["count"])[:most]


def estimate_row(
    collection: Collection, result: Estimate, *, level: float = 0.95, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """What `estimate --json` prints. `std_error`, `low` and `high` are those of the count; `share_…` of the share.

    `names` are those of the counts where the collection lists no answers.
    """
    if isinstance(result, CountEstimate):
        answers = _count_rows(collection, result, level, names)
        return {"reports": result.reports, **_overlap(result), "answers": answers}
    assert isinstance(result, MeanEstimate)
    return _mean_row(collection, result, level)


def _count_rows(
    collection: Collection, result: CountEstimate, level: float, names: Sequence[str] | None
) -> list[dict[str, Any]]:
    n = result.reports
    low, high = result.interval(level)
    if names is None or lists_answers(collection):
        names = collection.answer_names(len(result.counts))
    return [
        {
            "answer": name,
            "count": count,
            "share": count / n,
            "std_error": error,
            "low": lowest,
            "high": highest,
            "share_std_error": error / n,
            "share_low": lowest / n,
            "share_high": highest / n,
        }
        for name, count, error, lowest, highest in zip(
            names,
            result.counts.tolist(),
            result.std_errors.tolist(),
            low.tolist(),
            high.tolist(),
            strict=True,
        )
    ]


def _mean_row(collection: Collection, result: MeanEstimate, level: float) -> dict[str, Any]:
    """The mean; of a mechanism whose reports are biased also by how much, which no interval shows."""
    low, high = result.interval(level)
    bias = collection.mechanism.utility().get("max_bias")
    row = {
        "reports": result.reports,
        "mean": result.mean,
        "std_error": result.std_error,
        "low": low,
        "high": high,
    }
    row |= _overlap(result)
    return row if bias is None else {**row, "max_bias": bias}


def _overlap(result: Estimate) -> dict[str, float]:
    """By how much variances were raised as reports may repeat; nothing where they were not."""
    return {"overlap": result.overlap} if result.overlap > 1 else {}


def add_adjusted(result: Estimate, row: dict[str, Any], how: str) -> None:
    """Put the adjusted counts beside the unbiased ones, and say which they are."""
    if not isinstance(result, CountEstimate):
        raise InvalidParameter("adjust", "a collection of answers to count", f"a mean with {how}")
    row["adjusted"] = how
    for answer, count in zip(row["answers"], adjusted(result, how).tolist(), strict=True):
        answer["adjusted_count"] = count
        answer["adjusted_share"] = count / result.reports
