"""`ClientMechanism`: all that follows from the fields and the client of a frequency mechanism.

An author derives from `FrequencyMechanism` and writes `client(self, value, draw)`, see `client_notation`. A class with
that method gets this one as its base. From the client follow its program, the threshold of the coin, the law, the
guarantee, the comparison of two answers, and the server: how reports are counted and estimated, with errors and intervals.

A report says something of each answer by its relation to it, see `report_relations`. With the likelihood ratio L of a
relation (the probability for a user who holds the answer, divided by that for another user),

    z = (L - 1)/χ²,    χ² = E[L²] - 1 over the users without the answer

has mean 1 for a holder and 0 for others, and of all such functions of the relation the least variance where no user
holds the answer: 1/χ². Where answers differ in their laws, counts are estimated by least squares, see `channel_estimator`.
"""

from __future__ import annotations

import functools
import time
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..errors import InvalidParameter, LdpBudgetError, NotSupported, PluginError
from ..guarantees import from_json
from ..guarantees.fixed_point import exp_down, float_below, float_up
from ..sampling import ONE
from .client_notation import OutOfRangeError, Trace
from .client_program import answers
from .domain import Categories
from .law import law_of
from .law.derivations import kept

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ..guarantees import Guarantee
    from .channel_estimator import ChannelEstimator
    from .channels import Comparison
    from .client_program import Program
    from .estimates import CountEstimate, SupportLaw
    from .law import Law
    from .report_relations import Relation
    from .share_laws import Cumulants

    Floats = NDArray[np.float64]
    Chances = tuple[list[Fraction], list[Fraction]]

    Base: Any
else:
    Base = object  # `FrequencyMechanism` puts this class before itself among the bases of a class with a client

MOST_OPTIONS = 60
_FEW_ANSWERS, _FEW_REPORTS = 64, 4096
"""The most answers and reports of a channel whose counts are estimated by least squares."""
_UNCALIBRATED = ONE // 4 * 3
_SIZES, _SECONDS = (256, 128, 64, 32, 16, 12, 8, 6, 4, 3, 2), 5.0
"""The numbers of answers that are tried where a mechanism is not proved, and the processor time for that."""
_SAMPLE = 1 << 13
"""The seeded reports of a value, of which the relation is held against the law."""
_FINEST = 1e-9
"""A loss that a search of thresholds may leave: a client that loses no more has no fault but an ε that is too small."""


class ClientMechanism(Base):  # type: ignore[misc]
    """A frequency mechanism that is its fields and its client.

    The answers are 0..domain_size-1; `domain_size` is a field or a number of the class. With `options`, an answer is a set
    of that many options: the whole number whose bits are the ticks. Then counts are those of the options.

    Parameters:
        declared: the fields, by name.

    Raises:
        InvalidParameter: as for `Mechanism`.
        PluginError: the client cannot be traced to a client program.
    """

    derived = True
    client: Callable[..., Any]
    epsilon: Any

    def __init__(self, /, **declared: Any) -> None:
        super().__init__(**declared)
        self._trace(_UNCALIBRATED)

    # -- answers -----------------------------------------------------------------------------------------------------

    @property
    def _options(self) -> int | None:
        options: int | None = getattr(self, "options", None)
        if options is not None and options > MOST_OPTIONS:
            raise InvalidParameter("options", f"at most {MOST_OPTIONS}", options)
        return options

    @property
    def answers(self) -> int:
        """The number of counts: d, or the number of options."""
        found = getattr(self, "domain_size", None) if self._options is None else self._options
        if not isinstance(found, int):
            why = f"{type(self).__qualname__} does not say how many answers there are"
            raise PluginError(self.name, why, hint="Add domain_size or options: a field, or a number.")
        return found

    @property
    def domain(self) -> Categories:
        """The answers, or all sets of options."""
        return Categories(self.answers if self._options is None else 1 << self.answers)

    def held(self, values: Any) -> NDArray[np.bool_]:
        if self._options is None:
            return super().held(values)  # type: ignore[no-any-return]
        import numpy as np

        ticks = np.asarray(values)[:, np.newaxis] >> np.arange(self.answers) & 1
        return ticks.astype(bool)

    # -- program, calibration and law ------------------------------------------------------------------------------------

    def _trace(self, threshold: int) -> Trace:
        try:
            return Trace(self.client, threshold)
        except LdpBudgetError:
            raise
        except OutOfRangeError as error:
            names = " and ".join(name for name in self.declared if name != "epsilon") or "client"
            raise InvalidParameter(names, "such that the client can draw", error) from None
        except Exception as error:
            why = error if isinstance(error, TypeError) else f"{type(error).__name__}: {error}"
            raise PluginError(self.name, f"client of {type(self).__qualname__}: {why}") from error

    def _program_at(self, threshold: int) -> Program:
        try:
            return self._trace(threshold).program(answers(self.domain))
        except ValueError as error:
            if isinstance(error, LdpBudgetError):
                raise
            raise PluginError(self.name, f"client of {type(self).__qualname__}: {error}") from None

    @property
    def _most(self) -> Fraction | None:
        """e^ε, rounded down; None without an ε."""
        epsilon = getattr(self, "epsilon", None)
        return None if epsilon is None else Fraction(exp_down(Decimal(epsilon)))

    @functools.cached_property
    def _derived(self) -> dict[str, Any]:
        """The coin, and what follows from the law with it. It is derived once on a machine, see `law.derivations`."""
        draft, coins = self._program_at(_UNCALIBRATED), self._trace(_UNCALIBRATED).coins_used
        asked = [draft.to_json(), coins, None if self._most is None else str(self.epsilon)]
        try:
            return dict(kept("client", asked, self._derive))
        except NotSupported as error:
            hint = "Use fewer answers, or a report whose form a rule knows: docs/tutorials/plugin-categorical.md."
            proved = self._proved_size()
            most = "" if proved is None else f"; with domain_size = {proved} it is proved"
            raise NotSupported(
                f"no rule proves {self.name} with {self.domain.size:,} answers{most} ({error})", hint=hint
            ) from None

    def _proved_size(self) -> int | None:
        """Return a smaller number of answers with which a rule finds the law; None if none is found soon."""
        if "domain_size" not in self.declared:
            return None
        end = time.thread_time() + _SECONDS
        for size in _SIZES:
            if size < self.domain.size and time.thread_time() < end:
                with suppress(LdpBudgetError):
                    smaller = self.replace(domain_size=size)
                    law_of(smaller._program_at(_UNCALIBRATED))
                    return size
        return None

    def _derive(self) -> dict[str, Any]:
        threshold, fits = self._searched()
        law = law_of(self._program_at(threshold or _UNCALIBRATED))
        stated = None if self._most is None else Decimal(self.epsilon)
        try:
            guarantee = law.guarantee(stated).to_json() if fits else None
        except NotSupported:
            guarantee = None  # `guarantee` raises it again
        coin = None if threshold is None else str(threshold)
        return {"coin": coin, "fits": fits, "says_nothing": law.ratio == 1, "guarantee": guarantee}

    @property
    def _calibrated(self) -> tuple[int | None, bool]:
        """The threshold of the coin, None without one; and True if a report loses at most ε with it."""
        coin = self._derived["coin"]
        return None if coin is None else int(coin), self._derived["fits"]

    def _searched(self) -> tuple[int | None, bool]:
        coins = self._trace(_UNCALIBRATED).coins_used
        if not coins:
            ratio = law_of(self._program_at(_UNCALIBRATED)).ratio
            return None, self._most is None or (ratio is not None and ratio <= self._most)
        if self._most is None:
            why = f"client of {type(self).__qualname__} draws a coin, which is calibrated to epsilon, and has no epsilon"
            raise PluginError(self.name, why, hint='Add epsilon = real("privacy loss of one report", above=0).')
        from .coin_calibration import largest_threshold

        return largest_threshold(self._program_at, coins, self._most)

    @property
    def coin(self) -> int | None:
        """The threshold of `draw.coin()` in units of 2**-64: the largest with which a report loses at most ε.

        None if the client draws no coin. Raises `PluginError` if a report loses more with every threshold, and
        `InvalidParameter` if ε is too small for probabilities of 64 bits.
        """
        threshold, fits = self._calibrated
        if self._derived["says_nothing"]:
            why = f"client of {type(self).__qualname__}: its reports do not depend on the answer"
            raise PluginError(self.name, why, hint="Let the report depend on value and on draw.coin().")
        if fits:
            return threshold
        pair, report, loss = worst_report(self._drafted, self.report_law)
        if threshold is not None and loss is not None and loss < _FINEST:
            raise InvalidParameter("epsilon", "a loss that a 64-bit probability of draw.coin() reaches", self.epsilon)
        coin = (
            "It does not call draw.coin(), so ε does not change it" if threshold is None else "No coin makes it less"
        )
        lost = "an unbounded loss" if loss is None else f"the loss {loss:.6g}"
        why = f"for the answers {pair[0]} and {pair[1]}, the report {report} has {lost}, above ε = {self.epsilon}. {coin}"
        evidence = {"pair": pair, "report": report, "loss": loss}
        raise PluginError(self.name, f"client of {type(self).__qualname__}: {why}", evidence=evidence)

    @functools.cached_property
    def _drafted(self) -> Program:
        """The program with the best threshold, also where that loses more than ε."""
        return self._program_at(self._calibrated[0] or _UNCALIBRATED)

    @functools.cached_property
    def report_law(self) -> Law:
        """The exact law of a report. Raises `NotSupported` if no rule finds it."""
        return law_of(self._drafted)

    def client_program(self) -> Program:
        """Return the program that `client` was traced to, with the calibrated coin.

        Raises `PluginError` if a report would lose more than ε, and `NotSupported` if no rule proves how much.
        """
        _ = self.coin  # raises where it does not hold
        return self._drafted

    @property
    def parameters(self) -> dict[str, Any]:
        return {} if self.coin is None else {"coin": float_below(Decimal(self.coin) / ONE)}

    @functools.cached_property
    def _proved(self) -> Guarantee:
        self.client_program()
        if self._derived["guarantee"] is not None:
            return from_json(self._derived["guarantee"])
        return self.report_law.guarantee(None if self._most is None else Decimal(self.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that the law of a report proves. Raises as `client_program`."""
        return self._proved

    def critical_inputs(self) -> Sequence[int]:
        """Return every answer where there are few; else some of them. The law covers all."""
        size = self.domain.size
        return range(size) if size <= 32 else (0, 1, size // 2, size - 1)

    @functools.cached_property
    def _lists(self) -> bool:
        """True if the law numbers no outcomes, and the answers and their reports are few enough to list."""
        try:
            self.report_law.outcomes(self.randomize([0], rng=0), 0, 1)
        except NotSupported:
            with suppress(NotSupported):
                return bool(self._rows)
        return False

    def compare(self, first: int, second: int) -> Comparison:
        if not self._lists:
            return super().compare(first, second)  # type: ignore[no-any-return]
        from .channels import Comparison

        sides = [[self._laws[value].get(row, Fraction(0)) for row in self._rows] for value in (first, second)]
        return Comparison.rows(*sides)

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        return self._places(reports) if self._lists else super().outcomes(reports, first, second)

    # -- server ----------------------------------------------------------------------------------------------------------

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
        from .law.all_outcomes import AllOutcomes

        if self.domain.size > _FEW_ANSWERS:
            why = "a report is no row, answer, set, marked place or word, and there are too many answers to list all reports"
            raise NotSupported(f"{self.name} derives no estimate: {why} (at most {_FEW_ANSWERS})")
        known = self.report_law
        return known.laws if isinstance(known, AllOutcomes) else AllOutcomes(self.client_program()).laws

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


def worst_report(program: Program, law: Law) -> tuple[list[int], Any, float | None]:
    """Return the two answers, the report and the loss that show the largest loss; an unbounded loss is None.

    The report is a number, or a list of numbers, where all reports can be listed; else its relation to the two answers, in
    words.

    Parameters:
        program: the client program.
        law: its law.
    """
    from .law import Unknown
    from .law.all_outcomes import AllOutcomes

    try:
        found = AllOutcomes(program).worst()
    except Unknown:
        found = law.worst()
    report: Any = found.report
    parts = program.report["parts"]
    if len(parts) == 1 and parts[0][0] != "float64" and len(report) == 2 * program.size:
        import numpy as np

        with suppress(ValueError):
            rows = np.frombuffer(bytes.fromhex(report), program.report["dtype"]).reshape(program.report["shape"])
            bits = np.unpackbits(rows, count=parts[0][2], bitorder="little") if parts[0][0] == "packed" else rows
            report = bits.tolist()
    return list(found.pair), report, None if found.loss is None else float_up(found.loss)
