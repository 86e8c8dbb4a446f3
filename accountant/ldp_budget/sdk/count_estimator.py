"""`CountEstimator`: the server of a mechanism that is its fields and its client, see `client_mechanism`.

A report says something of each answer by its relation to it, see `report_relations`. With the likelihood ratio L of a
relation (the probability for a user who holds the answer, divided by that for another user),

    z = (L - 1)/χ²,    χ² = E[L²] - 1 over the users without the answer

has mean 1 for a holder and 0 for others, and of all such functions of the relation the least variance where no user
holds the answer: 1/χ². Where answers differ in their laws, counts are estimated by least squares, see `channel_estimator`.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..errors import NotSupported
from .report_law import rules

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .channel_estimator import ChannelEstimator
    from .estimates import CountEstimate, SupportLaw
    from .report_relations import Relation
    from .share_laws import Cumulants

    Floats = NDArray[np.float64]
    Chances = tuple[list[Fraction], list[Fraction]]

    Base: Any
else:
    Base = object  # `FrequencyMechanism` puts this class before itself among the bases of a class with a client

_FEW_ANSWERS, _FEW_REPORTS = 64, 4096
"""The most answers and reports of a channel whose counts are estimated by least squares."""
_SAMPLE = 1 << 13
"""The seeded reports of a value, of which the relation is held against the law."""


class CountEstimator(Base):  # type: ignore[misc]
    """How the reports of a client are counted and estimated, with errors and intervals; a base of `ClientMechanism`."""

    @functools.cached_property
    def _counted(self) -> tuple[Relation, Chances] | None:
        """The relation by which reports are counted, and its probabilities; None where answers differ in their laws.

        The probabilities are those of a user who holds the answer, and of another.
        """
        from .report_relations import relation_of

        try:
            relation = relation_of(self.client_program(), self.answers)
        except NotSupported:
            return None
        chances = self._derived_chances(relation) or self._listed_chances(relation)
        return None if chances is None else (relation, chances)

    def _derived_chances(self, relation: Relation) -> Chances | None:
        """Return the probabilities of a relation from the law; None if it has others, or seeded reports differ from them."""
        try:
            held, other = ({_key(key): p for key, p in side.items()} for side in self.report_law.marginal())
        except NotSupported:
            return None
        if not {*held, *other} <= set(relation.keys):
            return None
        chances = tuple([side.get(key, Fraction(0)) for key in relation.keys] for side in (held, other))
        size = self.domain.size
        values = dict.fromkeys((0, 1, size // 2, size - 1))
        agree = all(self._agrees(relation, value, (chances[0], chances[1])) for value in values)
        return (chances[0], chances[1]) if agree else None

    def _agrees(self, relation: Relation, value: int, chances: Chances) -> bool:
        """True if seeded reports of a value have a relation as often as its probabilities say, within eight errors.

        The law and the relation are derived apart. This finds a relation that is not the one of the law.
        """
        import numpy as np

        reports = self.randomize(np.full(_SAMPLE, value), rng=value)
        held = self.held([value])[0]
        for answer in dict.fromkeys((0, self.answers // 2, self.answers - 1, int(held.argmax()))):
            seen = np.bincount(relation.of(reports, answer), minlength=len(relation.keys))
            if relation.repeats:  # each number of a report is a draw of its own
                times = int(seen @ np.arange(len(seen)))
                seen = np.array([reports.size - times, times])
            trials = int(seen.sum())
            for count, p in zip(seen.tolist(), chances[0 if held[answer] else 1], strict=True):
                if abs(count - trials * float(p)) > 8 * float(trials * p * (1 - p)) ** 0.5 + 8:
                    return False
        return True

    def _listed_chances(self, relation: Relation) -> Chances | None:
        """Return the probabilities of a relation from the laws of all answers; None if answers differ or are many."""
        try:
            laws = self._laws
        except NotSupported:
            return None
        import numpy as np

        layout = self.client_program().report
        sides: tuple[set[tuple[Fraction, ...]], set[tuple[Fraction, ...]]] = (set(), set())
        held = self.held(np.arange(self.domain.size))
        for value, law in enumerate(laws):
            rows = np.frombuffer(b"".join(law), layout["dtype"]).reshape(len(law), *layout["shape"])
            for answer in range(self.answers):
                sums = [Fraction(0)] * len(relation.keys)
                for place, likely in zip(relation.of(rows, answer).tolist(), law.values(), strict=True):
                    if place >= len(sums):
                        return None
                    sums[place] += likely
                sides[0 if held[value, answer] else 1].add(tuple(sums))
        if any(len(side) != 1 for side in sides):
            return None
        return list(sides[0].pop()), list(sides[1].pop())

    @property
    def _relation(self) -> Relation | None:
        return None if self._counted is None else self._counted[0]

    @property
    def _chances(self) -> Chances:
        assert self._counted is not None
        return self._counted[1]

    @property
    def _supports(self) -> bool:
        """True if a report supports an answer or does not."""
        return self._relation is not None and self._relation.keys == (0, 1)

    @property
    def _sign(self) -> int:
        """The relation that is likelier for a user who holds the answer: such a report supports it."""
        return int(self._chances[0][1] >= self._chances[1][1])

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        if not self._supports:
            raise NotSupported(f"a report of {self.name} says more of an answer than whether it supports it")
        return [(self._chances[0][self._sign], self._chances[1][self._sign])]

    @property
    def draws_per_report(self) -> int:
        """The numbers in a report that are drawn one by one, and may repeat an answer."""
        relation = self._relation
        shape = self.client_program().report["shape"]
        return int(shape[0]) if relation is not None and relation.repeats and shape else 1

    @functools.cached_property
    def _estimator(self) -> ChannelEstimator | None:
        """The estimator by least squares, if reports are not counted by their relation to each answer."""
        if self._relation is not None:
            return None
        from .channel_estimator import ChannelEstimator, least_squares

        if self._options is not None:
            raise NotSupported(f"{self.name} derives no estimate: a report of options must be a row or marked places")
        channel = [[law.get(row, Fraction(0)) for row in self._rows] for law in self._laws]
        return ChannelEstimator(channel, least_squares(channel))

    @functools.cached_property
    def _laws(self) -> list[dict[bytes, Fraction]]:
        if self.domain.size > _FEW_ANSWERS:
            why = "a report is no row, answer, set, marked place or word, and there are too many answers to list all reports"
            raise NotSupported(f"{self.name} derives no estimate: {why} (at most {_FEW_ANSWERS})")
        known, outcomes = self.report_law, rules().AllOutcomes
        laws: list[dict[bytes, Fraction]] = (
            known if isinstance(known, outcomes) else outcomes(self.client_program())
        ).laws
        return laws

    @functools.cached_property
    def _rows(self) -> list[bytes]:
        rows = sorted(set().union(*self._laws))
        if len(rows) > _FEW_REPORTS:
            raise NotSupported(f"{self.name} derives no estimate: it has {len(rows)} reports, above {_FEW_REPORTS}")
        return rows

    def _places(self, reports: Any) -> NDArray[np.intp]:
        """Return the place of each report in `_rows`. Raises `NotSupported` for a report that no client sends."""
        import numpy as np

        from .interpreter import as_reports

        layout = self.client_program().report
        rows, shape = as_reports(reports), tuple(layout["shape"])
        if rows.ndim != 1 + len(shape) or rows.shape[1:] != shape or rows.dtype.kind not in "iu":
            raise NotSupported(
                f"reports must be whole numbers of shape (n, …): got {rows.dtype} of shape {rows.shape}"
            )
        typed = np.ascontiguousarray(rows.astype(layout["dtype"]))
        if not len(rows):
            return np.zeros(0, np.intp)
        known = np.frombuffer(b"".join(self._rows), f"V{self.client_program().size}")
        if not np.array_equal(typed, rows):
            raise NotSupported(f"reports must be {np.dtype(layout['dtype'])}: got {rows.dtype}")
        number = {row.tobytes(): place for place, row in enumerate(known)}
        distinct, inverse = np.unique(typed.reshape(len(rows), -1), axis=0, return_inverse=True)
        found = [number.get(row.tobytes(), -1) for row in distinct]
        if -1 in found:
            raise NotSupported(f"no client of {self.name} sends the report {distinct[found.index(-1)].tolist()}")
        places: NDArray[np.intp] = np.array(found, np.intp)[inverse.reshape(-1)]
        return places

    def support(self, reports: Any) -> tuple[int, NDArray[np.int64]]:
        """Return the number of reports, and how many support each answer; where none does so, the counts of the statistic.

        Of more than two relations, these are the counts of each, (relations, answers). Where answers differ in their
        laws, they are the counts of each report.
        """
        import numpy as np

        if self._relation is None:
            assert self._estimator is not None
            places = self._places(reports)
            return len(places), np.bincount(places, minlength=len(self._rows))
        count, found = self._relation.counts(reports)
        return count, found[self._sign] if self._supports else found

    def estimate(self, reports: Any, *, consistent: bool = False) -> CountEstimate:
        from dataclasses import replace

        from .consistency import maybe_consistent
        from .estimates import ShareCountLaw

        total = self.total(reports)
        if self._supports:
            found = self._law.estimate(total)
        elif self._estimator is not None:
            found = self._estimator.estimate(total)
        else:
            counts = self._law.with_errors(self._worths @ total.support, total.reports)
            found = replace(counts, law=ShareCountLaw(self.contribution_law))
        return maybe_consistent(replace(found, several=self._options is not None), consistent)

    def contributions(self, reports: Any) -> Floats:
        import numpy as np

        if self._estimator is not None:
            found: Floats = self._estimator.inverse.T[self._places(reports)]
            return found
        assert self._relation is not None
        rows = self._relation.check(reports)
        worths = self._worths
        if self._relation.repeats:  # each number of a report is a draw of its own
            worths = (
                worths[0] + (worths[1] - worths[0]) * np.arange(self.draws_per_report + 1) / self.draws_per_report
            )
        each: Floats = worths[self._relation.of_each(rows)]
        return each

    # -- the law of a contribution ---------------------------------------------------------------------------------------

    @functools.cached_property
    def _exact_worths(self) -> list[Fraction]:
        """z of the module for each relation."""
        held, other = self._chances
        if any(p and not q for p, q in zip(held, other, strict=True)):
            raise NotSupported(f"a report of {self.name} shows an answer for certain, so its error is not estimated")
        ratios = [p / q if q else Fraction(0) for p, q in zip(held, other, strict=True)]
        chi = sum((q * r * r for q, r in zip(other, ratios, strict=True)), Fraction(0)) - 1
        if not chi:
            raise NotSupported(
                f"reports of {self.name} do not depend on the answer", hint="Use draw.coin() and value."
            )
        return [(r - 1) / chi for r in ratios]

    @property
    def _worths(self) -> Floats:
        import numpy as np

        return np.array([float(z) for z in self._exact_worths])

    def _moments(self, mean: int) -> tuple[Fraction, Fraction]:
        """Return the variance and the third cumulant of a contribution, of a holder (`mean` 1) or another user (0)."""
        chances = self._chances[1 - mean]
        second, third = (
            sum((p * (z - mean) ** power for p, z in zip(chances, self._exact_worths, strict=True)), Fraction(0))
            for power in (2, 3)
        )
        return second, third

    @functools.cached_property
    def _law(self) -> SupportLaw:
        if self._supports:
            return super()._law  # type: ignore[no-any-return]
        import numpy as np

        from .estimates import SupportLaw

        least, most = min(self._exact_worths), max(self._exact_worths)
        at_zero, at_one = self._moments(0)[0], self._moments(1)[0]
        parts = (-least / (most - least), 1 / (most - least), at_zero, at_one, at_one - at_zero)
        noise, gap, zero, one, slope = (np.array([float(part)]) for part in parts)
        return SupportLaw(1, noise, gap, zero, one, slope)

    @property
    def contribution_law(self) -> Cumulants:
        import numpy as np

        from .share_laws import Cumulants

        if self._supports or self._estimator is not None:
            return super().contribution_law  # type: ignore[no-any-return]
        parts = (*self._moments(0), *self._moments(1))
        return Cumulants(*(np.full(self.answers, float(part)) for part in parts))


def _key(key: Any) -> Any:
    """Return a relation of one answer or set as 0 or 1, and any other as it is."""
    match key:
        case ((str(), bool() | int() as held),):
            return int(held)
    return key
