"""Estimates of a designed survey from its report files, as `estimate --json` prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget._validation import shown
from ldp_budget.errors import InvalidParameter, NotSupported, ReportFileError
from ldp_budget.reports.partial_aggregate import open_files
from ldp_budget.reports.places import shown_place
from ldp_budget.reports.public_attributes import count_combinations
from ldp_budget.reports.report_file import check_mixed
from ldp_budget.sdk.numeric_mechanism import NumericMechanism

from ..figures import figures
from ..notebook_tables import TabularJson
from .differences import MOST_GROUPS, Difference, groups, pairs
from .finite_population import FinitePopulation, Noise, paired_noise
from .moments import SQUARES, Moments, moments_of_counts
from .quantiles import quantiles
from .questions import AskedQuestion, question, questions_of, read_bins, read_moments, read_table, table_law
from .raking import rake, read_totals, scaled_totals
from .strata import Design
from .two_way import LEAST_EXPECTED, TwoWayTable
from .weighted_means import MeansEstimate, Survey
from .weights import Weights, column_weights, equal_weights, table_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ldp_budget.registry.collections import Collection
    from ldp_budget.reports.partial_aggregate import Source
    from ldp_budget.reports.public_attributes import PublicAttributes
    from ldp_budget.sdk.share_laws import ShareLaw

ROUND = "round"
"""The public column with the names of the rounds, where each file is a round."""
FILE = " file"
"""The column with the number of the file, where files may be of the same people; no public column starts with a space."""

MOST_PEOPLE = 10**15
"""The most people of a population: a double counts them exactly."""
_ROUNDED = 1.01
"""Largest ratio of the sum of the weights to the population: weights are often rounded."""

Row = dict[str, Any]


@dataclass(frozen=True)
class DesignOptions:
    """The sampling design and the weights of a survey, and the groups or the table to estimate.

    Parameters:
        weights: a public column that holds the weights, or the rows of a table of weights; see `table_weights`.
        totals: the rows of a table of totals to rake to; see `read_totals`.
        strata: the public columns whose combinations are the strata.
        clusters: the public column of the clusters.
        by: the public column of the groups to estimate and to compare.
        table: the names of the two questions of a two-way table.
        population: the number of people from whom the respondents were drawn, for a finite population correction.
        rotate: the number of parts of a rotating panel, of which each file asked another one; 0 without a rotation. The
            parts are then of equal size. With rounds they are strata too, and changes are those to the next round and to
            the next turn of a part.
        independent: True if each file has respondents of its own. By default several files are rounds of the same people,
            unless `population` says that they are parts of one.
    """

    weights: str | Sequence[Mapping[str, str]] | None = None
    totals: Sequence[Mapping[str, str]] | None = None
    strata: tuple[str, ...] = ()
    clusters: str | None = None
    by: str | None = None
    table: tuple[str, str] | None = None
    population: float | None = None
    independent: bool = False
    rotate: int = 0


@dataclass
class SurveyFiles:
    """Report files of one survey, read as often as needed; with `rounds`, a name for each, each one is a round.

    Parameters:
        survey: the collection of the reports.
        files: paths or URLs of report files, of partitions, or of folders of partitions.
        rounds: the names of the rounds; empty if all files are one round.
        mixed: True to allow that some reports were charged to their users and others were not.
    """

    survey: Collection
    files: Sequence[str]
    rounds: Sequence[str] = ()
    mixed: bool = False
    charges: dict[bool | None, int] = field(default_factory=dict)
    left_out: frozenset[tuple[str, ...]] = frozenset()
    """The combinations of public attributes whose reports are not estimated from: those of weight 0."""

    def blocks(self) -> Iterator[tuple[NDArray[Any], PublicAttributes]]:
        """Yield the reports with their public attributes, block by block. Raises `ReportFileError`."""
        self.charges = {True: 0, False: 0, None: 0}
        columns: tuple[str, ...] | None = None
        known: dict[str, Source] = {}
        for number, path in enumerate(self.files):
            for reports in open_files(path, self.survey, known):
                if columns is not None and reports.public != columns:
                    found = f"its public columns are {_listed(reports.public)}, and those of {self.files[0]} are "
                    raise ReportFileError(shown_place(path), found + _listed(columns))
                columns = reports.public
                if self.rounds and ROUND in columns:
                    expected = f"no public column named {ROUND}, because each file is a round"
                    raise InvalidParameter("by_round", expected, _listed(columns))
                for block, public in reports.attributed_blocks():
                    self.charges[reports.charged] += len(block)
                    yield self._kept(block, self._numbered(public, number))
        if not self.mixed:
            check_mixed(", ".join(map(shown_place, self.files)), self.charges[True], self.charges[False])

    @property
    def round_column(self) -> str | None:
        """The column that says in which round or file a report is; None for a single file without a round."""
        return ROUND if self.rounds else FILE if len(self.files) > 1 else None

    def _numbered(self, public: PublicAttributes, number: int) -> PublicAttributes:
        column = self.round_column
        if column is None:
            return public
        return public.with_column(column, self.rounds[number] if self.rounds else str(number))

    def _kept(self, block: NDArray[Any], public: PublicAttributes) -> tuple[NDArray[Any], PublicAttributes]:
        if not self.left_out:
            return block, public
        keeps = np.array([each not in self.left_out for each in public.combinations], np.bool_)[public.codes]
        return block[keeps], public.take(keeps)

    def respondents(self) -> Moments:
        """Return the number of respondents in each cell, as moments without contributions."""
        column = self.round_column
        columns = self.public() if column is None else (*self.public(), column)
        return moments_of_counts(count_combinations(public for _, public in self.blocks()), columns)

    def public(self) -> tuple[str, ...]:
        """Return the public columns of the first file. Raises `ReportFileError`."""
        return next(open_files(self.files[0], self.survey, {})).public


def estimate_survey(source: SurveyFiles, options: DesignOptions, *, level: float = 0.95) -> TabularJson:
    """Return the estimates of a survey: those of a collection, or an object for each question of a questionnaire.

    Parameters:
        source: the report files.
        options: the design and the weights, and what to estimate.
        level: the confidence level of the intervals.

    Raises:
        ReportFileError: a file cannot be read, or the files have different public columns.
        InvalidParameter: an option names no public column, or a table does not fit the reports.
        NotSupported: there are too few reports; no weights agree with all totals; or the mechanism has no unbiased
            contributions.
        UnknownName: a question of the table does not exist.
    """
    row = _estimated(source, options, level)
    weighted = "" if row["weighted"] is None else f", weighted to {row['weighted']:.0f}"
    caption = f"{row['respondents']} respondents{weighted}; {100 * level:.12g} % intervals for the population"
    return TabularJson(row, caption, figures(row))


def _estimated(source: SurveyFiles, options: DesignOptions, level: float) -> Row:
    survey = source.survey
    if survey.mechanism.repeats and len(source.files) > 1:
        raise NotSupported(
            f"{survey.name} memoizes, so reports of the same users in several files are not independent",
            hint="Estimate each file by itself, or leave the options of the design out.",
        )
    everyone, left_out = source.respondents(), 0
    if not everyone.reports:
        raise NotSupported("there are no reports to estimate from")
    if unweighted := weightless(everyone, options):
        source = replace(source, left_out=unweighted)
        kept = source.respondents()
        everyone, left_out = kept, everyone.reports - kept.reports
        if not everyone.reports:
            raise NotSupported("the weights of all reports are 0")
    _check_population(everyone, options, source)
    weights = weights_for(everyone, options, bool(source.rounds))
    _check_represented(weights, everyone, options.population)
    columns = tuple(name for name in everyone.columns if name != FILE)
    combinations, levels = everyone.codes(columns)
    smallest = int(np.bincount(combinations, everyone.counts).min())
    row: Row = {
        "reports": everyone.reports,
        "respondents": everyone.reports,
        "kish_design_effect": weights.kish(everyone),
        "weighted": weights.total(everyone) if weights.known else None,
        "public": {"columns": list(columns), "combinations": len(levels), "smallest": smallest},
    }
    if options.population is not None:
        row["population"] = options.population
    if options.clusters is not None:
        row["effective_clusters"] = _effective_clusters(everyone, weights, options)
    if left_out:
        row["left_out"] = left_out
    if options.totals is not None and (notes := scaled_totals(options.totals)):
        row["notes"] = notes
    reader = _Reader(source, options, everyone, weights, level)
    if options.table is not None:
        return row | reader.table(*options.table)
    asked = questions_of(survey)
    found = {each.name: reader.question(each) for each in asked}
    if asked[0].place is None:
        return row | found[asked[0].name]
    effects = [each["design_effect"] for each in found.values()]
    return row | {"design_effect": float(np.mean(effects))} | found


def _effective_clusters(everyone: Moments, weights: Weights, options: DesignOptions) -> float:
    """Return the number of clusters of equal weight whose estimate would vary as much, (Σm)²/Σm²."""
    of, levels = everyone.codes((*options.strata, str(options.clusters)), "clusters")
    sizes = np.bincount(of, weights.values * everyone.counts, len(levels))
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def _check_population(everyone: Moments, options: DesignOptions, source: SurveyFiles) -> None:
    if options.population is None:
        return
    without = "Without --population, the intervals are wider, on the safe side."
    if options.clusters is not None or source.rounds:
        expected = "without --clusters"
        if source.rounds:
            # Each round is a sample of all people: a correction within rounds would be too large.
            expected = "without --by-round"
            files = f"the {options.rotate} files of a turn" if options.rotate else "files of different people"
            without = f"Leave --by-round out: name one file, or {files} for their level. {without}"
        raise InvalidParameter("population", expected, f"{options.population:.12g}", hint=without)
    if 0 < options.rotate < len(source.files) and not options.independent:
        raise NotSupported(
            "a finite population correction needs other people in each file, and "
            f"{len(source.files)} files of {source.survey.name} ask some of its {options.rotate} parts twice",
            hint=f"Name the files of one turn. {without}",
        )
    if not everyone.reports <= options.population <= MOST_PEOPLE:
        expected = f"at least the number of respondents, {everyone.reports}"
        if options.population > MOST_PEOPLE:
            expected = f"at most {MOST_PEOPLE:.0e} people"
        raise InvalidParameter("population", expected, shown(options.population))


def _check_represented(weights: Weights, everyone: Moments, population: float | None) -> None:
    """Raise `InvalidParameter` if the weights stand for more people than the population has, apart from rounding."""
    total = weights.total(everyone)
    if population is not None and weights.known and total > _ROUNDED * population:
        expected = f"at least the sum of the weights, {total:.12g}"
        raise InvalidParameter("population", expected, shown(population))


def weightless(moments: Moments, options: DesignOptions) -> frozenset[tuple[str, ...]]:
    """Return the combinations of public attributes whose weight is 0, before any raking.

    Parameters:
        moments: the respondents.
        options: the weights.

    Raises:
        InvalidParameter: the weights do not fit the reports.
    """
    values = weights_for(moments, replace(options, totals=None, rotate=0), rounds=False).values
    return frozenset(cell for cell, weight in zip(moments.cells, values.tolist(), strict=True) if weight == 0)


def weights_for(moments: Moments, options: DesignOptions, rounds: bool) -> Weights:
    """Return the weights of the respondents of some moments: those given, raked to the totals if there are any."""
    if options.weights is None:
        weights = equal_weights(moments)
    elif isinstance(options.weights, str):
        weights = column_weights(moments, options.weights)
    else:
        weights = table_weights(moments, options.weights)
    if options.rotate and not (rounds and options.totals is not None):
        weights = alike_in(ROUND if rounds else FILE, moments, weights)
    if options.totals is None:
        return weights
    return rake(moments, read_totals(options.totals), weights, within=(ROUND,) if rounds else ())


def alike_in(column: str, moments: Moments, weights: Weights) -> Weights:
    """Return weights with the same sum in each round: the parts of a rotating panel are equally large, refusals or not.

    Parameters:
        column: the column of the rounds.
        moments: the respondents, with that column if there are several rounds.
        weights: their weights.
    """
    if column not in moments.columns:
        return weights
    of, levels = moments.codes((column,))
    sums = np.bincount(of, weights.values * moments.counts, len(levels))
    return replace(weights, values=weights.values * (sums.mean() / sums)[of])


@dataclass(frozen=True)
class _Reader:
    """Reader of the estimates of each question."""

    source: SurveyFiles
    options: DesignOptions
    everyone: Moments
    weights: Weights
    level: float

    def survey(self, moments: Moments, law: ShareLaw | None = None, noise: Noise | None = None) -> Survey:
        options, rounds, column = self.options, bool(self.source.rounds), self.source.round_column
        again = column is not None and not options.independent and options.population is None
        # A cluster that is in several rounds is drawn once.
        strata = (ROUND,) if rounds and not (again and options.clusters is not None) else ()
        design = Design(strata + options.strata, options.clusters)
        population = (
            None if options.population is None or noise is None else FinitePopulation(options.population, noise)
        )
        weights = weights_for(moments, options, rounds)
        repeated = column if again and options.clusters is None else None
        return Survey(moments, weights, design, law, population, repeated)

    @property
    def _by(self) -> str | None:
        return ROUND if self.source.rounds else self.options.by

    def question(self, asked: AskedQuestion) -> Row:
        """Return the estimates of a question, its groups, and their differences."""
        moments = read_moments(self.source.survey, asked, self.source.blocks(), SQUARES)
        survey, bins = self.survey(moments, asked.law, self._noise(asked)), self._bins(asked)
        means = survey.means()
        number = {"respondents": moments.reports} | ({} if asked.place is None else {"asked": moments.reports})
        row: Row = {**number, "design_effect": means.design_effect}
        row |= self._means(asked, means, self._scale(survey)) | self._quantiles(asked, means, bins, None)
        together = self._together(asked)
        row |= self._pairs(together, None)
        if self._by is None:
            return row
        rotate = self.options.rotate if self.source.rounds else 0
        found = groups(survey, self._by, most=None if rotate else MOST_GROUPS)
        row["groups"] = [
            {"group": name, "respondents": each.respondents}
            | self._means(asked, each, self._scale(survey), group=True)
            | self._quantiles(asked, each, bins, name)
            | self._pairs(together, name)
            for name, each in found.items()
        ]
        if "cap" in row:
            return row  # each group has a cap of its own, so a difference of capped means says nothing
        compared = replace(survey, rounds=None) if self.source.rounds else survey
        row["differences"] = [
            each
            for first, second, gap in pairs(compared, found, (1, rotate) if rotate else None)
            for each in self._gaps(asked, first, second, gap)
        ]
        return row

    def _noise(self, *asked: AskedQuestion) -> Noise | None:
        """Return the noise of a question, or of a two-way table of two; None without a finite population correction."""
        if self.options.population is None:
            return None
        found = [each.noise for each in asked]
        return found[0] if len(found) == 1 else paired_noise(*found)

    def _scale(self, survey: Survey) -> float:
        """Return the factor from the weights of those who answered a question to the people whom a count is of.

        These are the population if only its size is known, and else all respondents with their weights.
        """
        people, weights = self.options.population, self.weights
        total = weights.total(self.everyone) if people is None or weights.known else people
        return total / survey.weights.total(survey.moments)

    def _means(self, asked: AskedQuestion, means: MeansEstimate, scale: float, *, group: bool = False) -> Row:
        """Return the rows of answers, or those of a mean.

        The size of a group is estimated too, so the count in a group has no standard error.
        """
        if asked.answers is None:
            origin, unit = asked.unit
            low, high = means.interval(self.level)
            mean, error = origin + unit * float(means.values[0]), unit * float(means.std_errors[0])
            ends = {"low": origin + unit * float(low[0]), "high": origin + unit * float(high[0])}
            return {"mean": mean, "std_error": error, **ends}
        total = scale * means.total
        return {
            "answers": [
                {
                    "answer": name,
                    "count": total * each["share"],
                    "share": each["share"],
                    **({} if group else {part: total * each[part] for part in ("std_error", "low", "high")}),
                    **{f"share_{part}": each[part] for part in ("std_error", "low", "high")},
                    "design_effect": effect,
                }
                for name, each, effect in zip(
                    asked.answers, share_rows(means, self.level), means.design_effects.tolist(), strict=True
                )
            ]
        }

    def _bins(self, asked: AskedQuestion) -> Survey | None:
        """Return the survey of the bins of a numeric question; None if it has no quantiles."""
        if not asked.has_quantiles:
            return None
        return self.survey(read_bins(self.source.survey, asked, self.source.blocks()))

    def _quantiles(self, asked: AskedQuestion, means: MeansEstimate, bins: Survey | None, group: str | None) -> Row:
        if bins is None:
            return {}
        assert isinstance(asked.mechanism, NumericMechanism)
        cells = None if group is None else bins.where(self._by or "", group)
        return quantiles(asked.mechanism, means, bins, self.level, cells)

    def _together(self, asked: AskedQuestion) -> tuple[AskedQuestion, Survey] | None:
        """Return the question of options ticked together, and its survey; None if it is not asked."""
        if not asked.asks_pairs:
            return None
        both = asked.with_pairs
        moments = read_moments(self.source.survey, both, self.source.blocks(), SQUARES)
        return both, self.survey(moments, both.law, self._noise(both))

    def _pairs(self, together: tuple[AskedQuestion, Survey] | None, group: str | None) -> Row:
        """Return the shares of people who ticked two options together, the largest first; of a group, or of all."""
        if together is None:
            return {}
        asked, survey = together
        means = survey.means(None if group is None else survey.where(self._by or "", group))
        names = asked.answers or ()
        rows = [
            {"answers": list(both)} | each
            for both, each in zip(combinations(names, 2), share_rows(means, self.level)[len(names) :], strict=True)
        ]
        return {"pairs": sorted(rows, key=lambda row: -row["share"])}

    def _gaps(self, asked: AskedQuestion, first: str, second: str, gap: Difference) -> Iterator[Row]:
        """Yield the difference of two groups in each answer, or in the mean."""
        unit = asked.unit[1]
        low, high = gap.interval(self.level)
        for place, p_value in enumerate(gap.p_values.tolist()):
            yield {
                "group": first,
                "other": second,
                **({} if asked.answers is None else {"answer": asked.answers[place]}),
                "difference": unit * float(gap.values[place]),
                "std_error": unit * float(gap.std_errors[place]),
                "low": unit * float(low[place]),
                "high": unit * float(high[place]),
                "p_value": p_value,
            }

    def table(self, first: str, second: str) -> Row:
        """Return a two-way table: cells, margins, and a test of independence."""
        if self._by is not None:
            raise InvalidParameter("table", "without --by and --by-round", f"{first},{second}")
        one, two = (question(self.source.survey, name) for name in (first, second))
        moments = read_table(self.source.survey, one, two, self.source.blocks())
        assert one.answers is not None
        assert two.answers is not None
        table = TwoWayTable(self.survey(moments, table_law(one, two), self._noise(one, two)), len(one.answers))
        means = table.means()
        shares = share_rows(means, self.level)
        margins, cells = shares[: len(one.answers) + len(two.answers)], shares[len(one.answers) + len(two.answers) :]
        named = [(first, answer) for answer in one.answers] + [(second, answer) for answer in two.answers]
        crossed = [(row, column) for row in one.answers for column in two.answers]
        return {
            "respondents": moments.reports,
            "design_effect": means.design_effect,
            "table": [first, second],
            "cells": [
                {first: row, second: column} | each for (row, column), each in zip(crossed, cells, strict=True)
            ],
            "margins": [
                {"question": name, "answer": answer} | each
                for (name, answer), each in zip(named, margins, strict=True)
            ],
            **(_independence_row(table) if one.place != two.place else _UNTESTED),
        }


_UNTESTED: Row = {
    "statistic": None,
    "freedom": None,
    "p_value": None,
    "untested": "the two are randomized together, and the test is for questions with noise of their own",
}


def _independence_row(table: TwoWayTable) -> Row:
    """Return the test of independence; None for each figure where it cannot be made, with the reason as `untested`."""
    try:
        test = table.independence()
    except NotSupported as error:
        return {"statistic": None, "freedom": None, "p_value": None, "untested": str(error)}
    return {
        "statistic": test.statistic,
        "freedom": list(test.freedom),
        "p_value": test.p_value,
        "least_expected": test.expected,
        "is_rough": test.expected < LEAST_EXPECTED,
    }


def share_rows(means: MeansEstimate, level: float) -> list[Row]:
    """Return the share, the standard error and the ends of the interval of each mean.

    The ends are within 0 and 1, unless the estimate itself is not.
    """
    low, high = means.interval(level)
    low = np.maximum(low, np.minimum(means.values, 0.0))
    high = np.minimum(high, np.maximum(means.values, 1.0))
    columns = (means.values.tolist(), means.std_errors.tolist(), low.tolist(), high.tolist())
    return [
        dict(zip(("share", "std_error", "low", "high"), each, strict=True)) for each in zip(*columns, strict=True)
    ]


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) or "(none)"
