"""`ClientMechanism`: all that follows from the fields and the client of a frequency mechanism.

An author derives from `FrequencyMechanism` and writes `client(self, value, draw)`, see `client_notation`. A class with
that method gets this one as its base. From the client follow its program, the threshold of the coin, the law, the
guarantee, and the comparison of two answers; and the server, see `count_estimator`.
"""

from __future__ import annotations

import functools
import time
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .._files import json_digest
from ..errors import InvalidParameter, LdpBudgetError, NotSupported, PluginError
from ..guarantees import from_json
from ..guarantees.fixed_point import exp_down, float_below, float_up
from ..sampling import ONE
from .client_notation import OutOfRangeError, Trace
from .client_program import answers
from .count_estimator import CountEstimator
from .derivations import kept
from .domain import Categories
from .report_law import Unknown, law_of, rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ..guarantees import Guarantee
    from .channels import Comparison
    from .client_program import Program
    from .report_law import Law


MOST_OPTIONS = 60
_UNCALIBRATED = ONE // 4 * 3
_SIZES, _SECONDS = (256, 128, 64, 32, 16, 12, 8, 6, 4, 3, 2), 5.0
"""The numbers of answers that are tried where a mechanism is not proved, and the processor time for that."""
_FINEST = 1e-9
"""A loss that a search of thresholds may leave: a client that loses no more has no fault but an ε that is too small."""


class ClientMechanism(CountEstimator):
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
        """The coin, and what follows from the law with it. It is derived once on a machine, see `derivations`."""
        draft, coins = self._program_at(_UNCALIBRATED), self._trace(_UNCALIBRATED).coins_used
        asked = [draft.to_json(), coins, None if self._most is None else str(self.epsilon)]
        try:
            found = dict(kept(asked, self._derive))
            if not self._is_of(found):  # of another client that has the same draft
                found = self._derive()
                if not self._is_of(found):
                    raise PluginError(self.name, f"client of {type(self).__qualname__} draws otherwise at each call")
            return found
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

    def _is_of(self, found: dict[str, Any]) -> bool:
        """Return True if this was derived from the program with that coin, which is then the one that is used."""
        program = self._program_at(int(found["coin"] or 0) or _UNCALIBRATED)
        self.__dict__["_drafted"] = program
        return bool(found["program"] == json_digest(program.to_json()))

    def _derive(self) -> dict[str, Any]:
        threshold, fits = self._searched()
        program = self._program_at(threshold or _UNCALIBRATED)
        law = law_of(program)
        stated = None if self._most is None else Decimal(self.epsilon)
        try:
            guarantee = law.guarantee(stated).to_json() if fits else None
        except NotSupported:
            guarantee = None  # `guarantee` raises it again
        coin = None if threshold is None else str(threshold)
        nothing = law.ratio == 1
        return {
            "coin": coin, "fits": fits, "says_nothing": nothing, "guarantee": guarantee, "program": json_digest(program.to_json())
        }  # fmt: skip

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
        if self.client_program().memo:
            why = f"{self.name} repeats kept draws, and what reports that repeat them lose together is not derived"
            raise NotSupported(
                why, hint="Declare guarantee, a Memoised with the curve of the reports, or draw afresh."
            )
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


def worst_report(program: Program, law: Law) -> tuple[list[int], Any, float | None]:
    """Return the two answers, the report and the loss that show the largest loss; an unbounded loss is None.

    The report is a number, or a list of numbers, where all reports can be listed; else its relation to the two answers, in
    words.

    Parameters:
        program: the client program.
        law: its law.
    """
    try:
        found = rules().AllOutcomes(program).worst()
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
