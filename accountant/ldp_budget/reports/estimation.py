"""Estimates of a collection from its report files, and their rows for output."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from .._lookalikes import difference, near
from .._validation import canonical_text
from ..errors import InvalidParameter, OutsideDomain, ReportFileError
from ..sdk.consistency import ConsistentEstimate, adjusted, consistent
from ..sdk.domain import Categories
from ..sdk.estimates import CountEstimate, MeanEstimate
from .partial_aggregate import Source, again, aggregate, estimate_total, lists_answers
from .places import shown_place
from .report_file import check_mixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..registry.collections import Collection
    from ..sdk.estimates import Estimate


def counts_answers(collection: Collection) -> bool:
    """Return True if the estimate of a collection has counts, and False if it is a mean."""
    return isinstance(collection.mechanism.domain, Categories)


def check_countable(collection: Collection, names: Sequence[str] | None, most: int | None) -> None:
    """Raise `InvalidParameter` if candidates are missing, or if counts are requested of a mean."""
    kind = collection.mechanism.name
    if not counts_answers(collection):
        for option, given in (("candidates", names), ("top", most)):
            if given is not None:
                expected = f"left out, because the answers of collection {collection.name} are numbers"
                raise InvalidParameter(option, expected, repr(given))
    elif names is None and not lists_answers(collection) and not collection.mechanism.finds_answers:
        expected = f"the answers to count, because {kind} without a domain_size does not list them"
        raise InvalidParameter("candidates", expected)


def check_candidates(collection: Collection, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names as the collection spells its answers, or in the form in which texts are compared.

    Raises `InvalidParameter` unless each name is an answer of the collection and appears once.
    """
    try:
        codes = collection.read_values(names)
    except OutsideDomain as error:
        hint = error.hint or near(str(error.found), collection.categories or ())
        raise InvalidParameter(
            "candidates", f"answers of {collection.name} ({error.domain})", repr(error.found), hint=hint
        ) from None
    if lists_answers(collection):
        answers = collection.answer_names(collection.mechanism.domain.size)  # type: ignore[union-attr]
        spelled = tuple(answers[code] for code in codes.tolist())
    else:
        spelled = tuple(map(canonical_text, names))
    first: dict[str, str] = {}
    for given, name in zip(names, spelled, strict=True):
        if name in first:
            found = f"{name!r} {spelled.count(name)} times"
            raise InvalidParameter("candidates", "distinct answers", found, hint=difference(given, [first[name]]))
        first[name] = given
    return spelled


def total_of(collection: Collection, blocks: Iterable[NDArray[Any]]) -> Any:
    """Return the aggregate of blocks of reports; None if there are no blocks."""
    mechanism: Any = collection.mechanism
    total = None
    for block in blocks:
        part = mechanism.aggregate(block)
        total = part if total is None else total.merge(part)
    return total


def estimate_totals(
    collection: Collection,
    rounds: Iterable[Any],
    names: Sequence[str] | None = None,
    *,
    independent: bool = False,
    most: int | None = None,
) -> Estimate | None:
    """Return one estimate from the aggregates of rounds; None if there are no reports.

    `names` are the answers to estimate if the collection does not list its answers, and `most` the number of answers
    to find if the mechanism finds them. Several rounds of a collection
    that memoises are taken as rounds of the same users unless `independent`.
    """
    total, parts, keeps = None, [], collection.mechanism.repeats and not independent
    for each in rounds:
        if each is not None:
            if keeps and each.reports:
                parts.append(estimate_total(collection, each, names))
            total = copy.deepcopy(each) if total is None else total.merge(each)  # the given aggregates stay unchanged
    if total is None:
        return None
    estimated = estimate_total(collection, total, names, most)
    return estimated.repeated(parts) if len(parts) > 1 else estimated


def estimate_files(
    collection: Collection,
    files: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    independent: bool = False,
    most: int | None = None,
    on_mixed: Callable[[int, int], None] | None = None,
    on_charges: Callable[[int, int], None] | None = None,
    on_reports: Callable[[int], None] | None = None,
) -> Estimate:
    """Return one estimate from all files, each one round; see `estimate_if_any`.

    Raises `ReportFileError`, also if there are no reports.
    """
    estimated = estimate_if_any(
        collection,
        files,
        names,
        independent=independent,
        most=most,
        on_mixed=on_mixed,
        on_charges=on_charges,
        on_reports=on_reports,
    )
    if estimated is None:
        raise ReportFileError(", ".join(files), "there are no reports to estimate from")
    return estimated


def estimate_if_any(
    collection: Collection,
    files: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    independent: bool = False,
    most: int | None = None,
    on_mixed: Callable[[int, int], None] | None = None,
    on_charges: Callable[[int, int], None] | None = None,
    on_reports: Callable[[int], None] | None = None,
) -> Estimate | None:
    """Return one estimate from all files, or None if they have no reports. Raises `ReportFileError`.

    A file is a report file, a partition, a partial, or a folder of partitions, which is one round. No partition may
    appear twice. If some reports were charged to their users and others were not, that is an error. With `on_mixed`
    it is not an error: `on_mixed` is called with the numbers of charged and uncharged reports. `on_charges` is always
    called with them, and `on_reports` with the number of reports of each part that was read.
    """
    charges = _Charges()
    totals = _totals(collection, files, charges, on_reports)
    estimated = estimate_totals(collection, totals, names, independent=independent, most=most)
    if on_charges is not None:
        on_charges(charges.charged, charges.uncharged)
    if on_mixed is None:
        check_mixed(", ".join(map(shown_place, files)), charges.charged, charges.uncharged)
    elif charges.charged and charges.uncharged:
        on_mixed(charges.charged, charges.uncharged)
    return estimated


@dataclass
class _Charges:
    """Numbers of charged and of uncharged reports, among those whose writer recorded it."""

    charged: int = 0
    uncharged: int = 0


def _totals(
    collection: Collection, files: Sequence[str], charges: _Charges, on_reports: Callable[[int], None] | None
) -> Iterator[Any]:
    """Yield the aggregate of each file. Raises `ReportFileError` at a partition that an earlier file contained."""
    known: dict[str, Source] = {}
    for path in files:
        part = aggregate(path, collection, on_reports=on_reports)
        for name, source in part.partitions.items():
            if name in known:
                raise ReportFileError(path, f"a partition must be given once: got {again(source, known[name])}")
        known |= part.partitions
        charges.charged += part.charged
        charges.uncharged += part.uncharged
        yield part.total


def chosen_rows(rows: list[dict[str, Any]], names: Sequence[str] | None, most: int | None) -> list[dict[str, Any]]:
    """Return the rows of the named answers, in that order; of these, or of all rows, the `most` largest counts."""
    if names is not None:
        by_name = {row["answer"]: row for row in rows}
        rows = [by_name[name] for name in names]
    return rows if most is None else sorted(rows, key=lambda row: -row["count"])[:most]


def plain_rows(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield rows for a table: `fake_most` and `fake_least` in place of `fake_margin`, which holds both.

    A row of consistent counts also has unbiased values, so the names of its columns say which value is of which kind.
    """
    for row in rows:
        margin = row.get("fake_margin")
        names = _BOTH_KINDS if "raw_count" in row else {}
        kept = {names.get(name, name): value for name, value in row.items() if name != "fake_margin"}
        yield kept if margin is None else {**kept, "fake_most": margin["most"], "fake_least": margin["least"]}


_BOTH_KINDS = {
    "count": "consistent_count",
    "share": "consistent_share",
    "raw_count": "unbiased_count",
    "std_error": "unbiased_std_error",
    "share_std_error": "unbiased_share_std_error",
}
"""The columns of a table with consistent and unbiased values, by their names in JSON."""


def estimate_row(
    collection: Collection, result: Estimate, *, level: float = 0.95, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the object that `estimate --json` prints for a collection of one question.

    `std_error`, `low` and `high` are those of the count, `share_…` those of the share. `low` and `high` bound the
    confidence interval at `level`. `fake_margin` holds the `most` and the `least` that one additional fake report
    changes the unbiased count. `names` are the names of the counts if the collection does not list its answers.

    For a consistent estimate, `consistent` names its method, `count` and `share` are consistent, and `raw_count` is the
    unbiased count, to which `std_error` refers.
    """
    if isinstance(result, CountEstimate):
        answers = _count_rows(collection, result, level, names)
        how = {"consistent": result.method} if isinstance(result, ConsistentEstimate) else {}
        together = _pair_rows(result, [row["answer"] for row in answers], level) if _asks_pairs(collection) else {}
        return {"reports": result.reports, **_overlap(result), **how, "answers": answers, **together}
    assert isinstance(result, MeanEstimate)
    return _mean_row(collection, result, level)


def _count_rows(
    collection: Collection, result: CountEstimate, level: float, names: Sequence[str] | None
) -> list[dict[str, Any]]:
    n = result.reports
    low, high = result.interval(level)
    if result.answers is not None:
        names = result.answers
    elif names is None or lists_answers(collection):
        names = collection.answer_names(len(result.counts))
    rows = [
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
    if isinstance(result, ConsistentEstimate):
        for row, raw in zip(rows, result.raw.counts.tolist(), strict=True):
            row["raw_count"] = raw
    if result.fake_margins is not None:
        ends = (np.broadcast_to(end, result.counts.shape).tolist() for end in result.fake_margins)
        for row, least, most in zip(rows, *ends, strict=True):
            row["fake_margin"] = {"most": most, "least": least}
    return rows


def _asks_pairs(collection: Collection) -> bool:
    return getattr(collection.mechanism, "pairs", False) is True


def _pair_rows(result: CountEstimate, names: Sequence[str], level: float) -> dict[str, Any]:
    """Return the shares of people who ticked two options together, the largest first."""
    ticked: Any = result.raw if isinstance(result, ConsistentEstimate) else result
    rows = []
    for first, second in combinations(range(len(names)), 2):
        found = ticked.pairs(first, second, level)
        row = {"answers": [names[first], names[second]], "share": found.share, "std_error": found.std_error}
        rows.append({**row, "low": found.low, "high": found.high})
    return {"pairs": sorted(rows, key=lambda row: -row["share"])}


def margin_of_interval(estimate: float, low: float, high: float) -> float:
    """Return the margin of an estimate with a confidence interval: the distance to the farther end.

    An end that was cut to possible values is nearer, so the margin is that of the other end.
    """
    return max(high - estimate, estimate - low)


def share_margin(row: Mapping[str, Any], reports: float) -> float:
    """Return the margin of a share: the distance from the unbiased estimate to the farther end of its interval.

    Parameters:
        row: that of an answer in `estimate --json`.
        reports: the number to which counts add up, for a row with a `raw_count`.
    """
    share = row["raw_count"] / reports if "raw_count" in row else row["share"]
    return margin_of_interval(share, row["share_low"], row["share_high"])


def mean_margin(row: Mapping[str, Any], value: str = "mean") -> float:
    """Return the margin of a mean, as `share_margin` with the largest bias added; `value` is the key of the estimate."""
    bias: float = row.get("max_bias", 0.0)
    return margin_of_interval(row[value], row["low"], row["high"]) + bias


def made_consistent(result: Estimate) -> ConsistentEstimate:
    """Return the consistent counts of an estimate. Raises `InvalidParameter` for a mean."""
    if not isinstance(result, CountEstimate):
        raise InvalidParameter("consistent", "a collection of answers to count", "a mean")
    return consistent(result)


def _mean_row(collection: Collection, result: MeanEstimate, level: float) -> dict[str, Any]:
    """Return the row of a mean, with `max_bias` for a biased mechanism: no confidence interval includes the bias."""
    low, high = result.interval(level)
    bias = collection.mechanism.utility().get("max_bias")
    row = {
        "reports": result.reports,
        "mean": result.mean,
        "std_error": result.std_error,
        "low": low,
        "high": high,
    }
    row |= _overlap(result) | result.details(level)
    return row if bias is None else {**row, "max_bias": bias}


def _overlap(result: Estimate) -> dict[str, float]:
    """Return the factor by which variances were raised because reports may repeat; empty if they were not."""
    return {"overlap": result.overlap} if result.overlap > 1 else {}


def add_adjusted(result: Estimate, row: dict[str, Any], how: str) -> None:
    """Add the adjusted counts and shares to a row of unbiased counts, with the name of the adjustment."""
    if not isinstance(result, CountEstimate):
        raise InvalidParameter("adjust", "left out, because the answers of the collection are numbers", repr(how))
    row["adjusted"] = how
    for answer, count in zip(row["answers"], adjusted(result, how).tolist(), strict=True):
        answer["adjusted_count"] = count
        answer["adjusted_share"] = count / result.reports
