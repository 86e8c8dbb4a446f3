"""Privacy amplification by shuffling: the central (ε, δ) of one user among n, with a trusted shuffler.

This figure is for information only. No limit may use it: the ledger cannot see that the reports were shuffled, nor
which of the n users were honest.

Every user sends reports of the same mechanism. A shuffler permutes the reports of n users, so that the receiver
does not know who sent which. One user's input against another then loses less than by that user's own report.

Let P, Q be the pair that dominates every two inputs of one report, which is ε₀-LDP. The reports of two inputs are
K(P) and K(Q) for some random map K, and any user's report has at least e^{-ε₀} of each of them. So for any share a
it has at least K(B) with B = e^{-ε₀}(aP + (1-a)Q): it is a draw from it with probability e^{-ε₀}, a clone (Feldman,
McMillan and Talwar 2021, with a = ½ and randomized response for P and Q). If there are only two inputs, every
report is K(P) or K(Q), and B = min(P, Q). The identity and the reports of users who sent no clone may be assumed
known. Then the shuffled reports are K of a draw from P or from Q, shuffled among draws from B. With each user
drawing from B by chance (Balle, Bell, Gascón and Nissim 2019, Lemma 5.3),

    δ(ε) = E[(V₁ + … + Vₙ)₊]/n,    V = (P[o] - e^ε Q[o])/B[o] with probability B[o], else 0,

exactly for the draws, and as an upper bound for the reports. The rest of this file computes it.

**The mechanism's own blanket.** A guarantee knows two inputs only. A `Message` also lists, for pairs of inputs, a B
that every input's report has at least: the privacy blanket min_x P_x, or less (Balle et al. 2019; Su, Cheng and Wang
2025, arXiv 2504.07414, prove that no decomposition is better than the blanket). Then K is the identity, and the same
formula holds. For generalized randomized response an answer that neither input holds is in the blanket as a whole,
where the clones have e^{-ε₀} of it. The figure is the largest over the listed ordered pairs, which must include the
worst one. It is computed as in `_laplace_inversion`, where the
positive part has the transform 1/s² in place of 1/(s(1+s)). An added Gaussian with a mean >= 0 can only increase
it.

The rate 2/(e^{ε₀} + 1) of clones, which B = min(P, Q) has for randomized response, is used for two inputs only. If
the reports of two inputs are closer together than P and Q, other users' reports have e^{-ε₀} max(K(P), K(Q)) of
them. That may be less than K of e^{-ε₀} max(P, Q).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget._files import canonical_json
from ldp_budget._validation import shown
from ldp_budget.composition import checked_delta, compose, printed_above
from ldp_budget.composition.filters import log_bounds
from ldp_budget.composition.laplace_inversion import Sum, short, spectrum
from ldp_budget.composition.loss_distribution import UNIT, Atoms, Cumulants
from ldp_budget.composition.rules import canonical_charges, crossing, items_in_pairs
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import Copies, FinitePair, Guarantee, Laplace, Memoised, Pure, SymmetricPair
from ldp_budget.guarantees.fixed_point import DOWN, UP, decimal_up, exp_down, exp_up, float_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Masses = Sequence[tuple[Decimal, Decimal]]
    Outcomes = Sequence[tuple[Fraction, Fraction, Fraction]]

Law = tuple[tuple[Decimal, Decimal, Decimal], ...]

_FREQUENCIES = 2**13
_WIDTH = 24.0  # of the window, in standard deviations
_DECAY = 45.0  # the mass folded back into the window is below e^-45
_REACH = 9.6
_CELLS = 16  # on each side of a Laplace loss
_POINTS = 80  # of a privacy profile to compose; they cost about 5e-4 of ε
_HALVINGS = 40
_RESOLUTION = 1e-6
_SHARES = (Decimal(0), Decimal("0.25"), Decimal("0.45"))  # of P in the clones; which is best depends on n
_ONE = Decimal(1)
_DEPENDENT = "reports of a memoized value depend on each other, so their shuffles do not compose"
_STEP = Fraction(2)  # represents one step of a loss, where outcomes are distinguished by their losses
_MOST_OUTCOMES = 300  # of the draws of a report together; with more, any pair of its ε₀ dominates
# The supported range of ε₀. Above it 10^12 users hardly send one clone; below it forty digits are not enough.
_LEAST, _MOST = Decimal("1e-20"), Decimal(64)


@dataclass(frozen=True)
class Message:
    """A report with more known of it than its guarantee.

    `pairs` lists (P, Q, B) of the outcomes for pairs of inputs that include the worst one after shuffling, see
    `sdk.channels.Comparison.covered`. Each pair counts in both orders. Without pairs it is like its guarantee.
    """

    guarantee: Guarantee
    pairs: tuple[tuple[tuple[Fraction, Fraction, Fraction], ...], ...] = ()


@dataclass(frozen=True)
class Shuffled:
    """The central loss of reports of each of `users` users, where each report is shuffled separately.

    The reports are centrally (`epsilon`, `delta`)-DP for the inputs of one user replaced by any others. Without a
    shuffler they are `local`-DP, by the sum of their ε₀. `epsilon` is a certified upper bound. No limit may use it.
    """

    users: int
    epsilon: float
    delta: float
    local: float

    def to_json(self) -> dict[str, Any]:
        """The JSON object that `--json` prints."""
        return {**asdict(self), "enforced": False}


def shuffled(
    charges: Iterable[tuple[Guarantee | Message, int]],
    users: int,
    delta: float | str | Decimal,
    *,
    inputs: int | None = None,
) -> Shuffled:
    """The central loss of one user whose reports are shuffled among those of `users` users, at `delta` in [0, 1).

    `charges` are pairs of a guarantee, or a `Message`, and the number of independent reports that carry it. Each
    report goes through a separate shuffle with one report of every other user, all by the same mechanism. A report
    of several draws (`Copies`) is one message: the shuffler does not separate its draws, so its loss is that of all
    draws together. `users` counts the users who follow this protocol and do not collude with the receiver of the
    reports. `inputs` is the number of different inputs of the mechanisms, if known: with two, a tighter bound holds.
    A memoised report must be the first that each user sends: a receiver who knows what the others repeat removes it
    from the histogram.

    Raises `NotSupported` for a guarantee that is not pure ε-LDP with a known ε, and for a memoised report that is
    not the only one; `InvalidParameter`.
    """
    among, target, listed = whole_users(users), checked_delta(delta), _messages(charges)
    total = sum(count for _, count in listed)
    rounds = [(Crowd.of(message, total, among, two_inputs=inputs == 2), count) for message, count in listed]
    basic = reduce(UP.add, (UP.multiply(crowd.local, count) for crowd, count in rounds), Decimal(0))
    local = float_up(basic)
    if total == 1:
        epsilon = rounds[0][0].epsilon(target)
    elif not target or not all(crowd.laws or not crowd.local for crowd, _ in rounds) or not basic:
        epsilon = local
    else:
        # The privacy profile of one shuffle, interpolated from above, is that of a pair, and pairs compose.
        least = DOWN.divide(target, 100 * total)
        pairs = [(crowd.curve_pair(least), count) for crowd, count in rounds if crowd.local]
        epsilon = min(local, compose(pairs, delta=target, rule="exact").epsilon)
    return Shuffled(among, min(local, printed_above(epsilon)), float_up(target), local)


def _messages(charges: Iterable[tuple[Guarantee | Message, int]]) -> list[tuple[Message, int]]:
    """Each kind of report once, with the number of messages; copies of copies are resolved."""
    counts: dict[Message, int] = {}
    for charged, count in items_in_pairs(charges):
        guarantee, pairs = (charged.guarantee, charged.pairs) if isinstance(charged, Message) else (charged, ())
        draws = 1
        while isinstance(guarantee, Copies):
            draws, guarantee = draws * guarantee.count, guarantee.of
        # The canonical form checks the pair; without copies it does not separate draws.
        ((inner, messages),) = canonical_charges([(guarantee, count)])
        if isinstance(inner, Memoised) and draws > 1:
            raise NotSupported(_DEPENDENT)
        message = Message(inner if draws == 1 else Copies(draws, inner), pairs)
        counts[message] = counts.get(message, 0) + messages
    return sorted(counts.items(), key=lambda charge: (canonical_json(charge[0].guarantee.to_json()), charge[0].pairs))


def whole_users(users: int) -> int:
    """Return a number of users. Raises `InvalidParameter` unless it is a whole number from 1 to 10^12."""
    if isinstance(users, bool) or not isinstance(users, int) or not 1 <= users <= 10**12:
        raise InvalidParameter("users", "a whole number from 1 to 10^12", shown(users))
    return users


@dataclass(frozen=True)
class Scores(Atoms):
    """The values of V, in fractions of a unit, and their probabilities."""

    values: tuple[float, ...]
    chances: tuple[float, ...]

    @cached_property
    def losses(self) -> Floats:
        return np.array(self.values)

    @cached_property
    def log_masses(self) -> Floats:
        return np.array(self.chances)


@dataclass(frozen=True)
class Crowd:
    """One user among `users`: the `laws` of its report, and the report's ε₀ as `local`.

    A law lists (P, Q, B): the masses of a pair of ordered inputs, and of a blanket, which is a lower bound of every
    report's masses. The outer list has the pairs, and the inner list several blankets of one pair, each of which is
    valid. Without laws only ε₀ is known.
    """

    laws: tuple[tuple[Law, ...], ...]
    users: int
    local: Decimal

    @classmethod
    def of(cls, charged: Guarantee | Message, reports: int, users: int, *, two_inputs: bool) -> Crowd:
        """The crowd for one of `reports` reports, each shuffled as one message."""
        message = charged if isinstance(charged, Message) else Message(charged)
        if isinstance(message.guarantee, Memoised) and reports > 1:
            # The others repeat their reports: then the histograms differ by this one user only.
            raise NotSupported(_DEPENDENT)
        local, pair = _dominating(message.guarantee)
        if not _LEAST <= local <= _MOST:
            return cls((), users, local)
        if message.pairs:
            both = [order for law in message.pairs for order in (law, [(q, p, least) for p, q, least in law])]
            return cls(tuple((law,) for law in dict.fromkeys(map(_own, both))), users, local)
        blankets = [tuple(min(p, q) for p, q in pair)] if two_inputs else [_clones(pair, local, a) for a in _SHARES]
        laws = (tuple((p, q, b) for (p, q), b in zip(pair, each, strict=True)) for each in blankets)
        return cls((tuple(laws),) if pair else (), users, local)

    def epsilon(self, delta: Decimal) -> float:
        """The central ε at δ, at most ε₀."""
        most = float_up(self.local)
        if not delta or not self.laws:
            return most
        log_delta, _ = log_bounds(delta)
        guess = min(most, 6 * most / math.sqrt(self.users))
        width = _RESOLUTION * guess
        _, upper = crossing(lambda epsilon: self.log_delta(epsilon) - log_delta, guess, guess / 2, width)
        return min(most, upper)

    def log_delta(self, epsilon: float) -> float:
        """An upper bound of ln δ(ε)."""
        if epsilon >= float_up(self.local):
            return -math.inf
        return max((min(self._log_delta(epsilon, law) for law in laws) for laws in self.laws), default=0.0)

    def _log_delta(self, epsilon: float, law: Law) -> float:
        scores, unit = self._scores(epsilon, law)
        terms = Cumulants({scores: self.users})
        theta = _steepest(terms)
        log_value = _log_positive_part(terms, theta)
        k, _ = terms.cumulant(theta, 0.0)
        rounding = terms.cumulant_error(theta) + 8 * UNIT * abs(k) + 1e-12
        return min(0.0, log_value + k + rounding + math.log(unit / self.users))

    def _scores(self, epsilon: float, law: Law) -> tuple[Scores, float]:
        """V, in units for which the sum of n has a standard deviation of the order of one."""
        growth = math.expm1(epsilon)
        rest = DOWN.subtract(_ONE, reduce(UP.add, (least for _, _, least in law), Decimal(0)))
        values, chances = [0.0], [float(DOWN.ln(max(Decimal(0), rest)))]
        for p, q, least in law:
            # Not P - e^ε Q, which would lose precision where P and Q are nearly equal.
            values.append(float(UP.divide(UP.subtract(p, q), least)) - float(UP.divide(q, least)) * growth)
            chances.append(float(DOWN.ln(least)))
        unit = math.sqrt(self.users) * max(map(abs, values))
        return Scores(tuple(value / unit for value in values), tuple(chances)), unit

    def curve_pair(self, least: Decimal) -> FinitePair:
        """A pair whose δ is nowhere below this privacy profile, nor below the equal profile of the exchanged inputs.

        Its δ, as a function of e^ε, is linear between points on or above the profile.
        """
        last = min(self.epsilon(least), float_up(self.local))
        points = [(Fraction(0), Fraction(1))]
        for i in range(_POINTS + 1):
            ratio = Fraction(math.exp(last * i / _POINTS)).limit_denominator(10**15)
            at = float(DOWN.ln(DOWN.divide(ratio.numerator, ratio.denominator))) * (1 - 1e-12)
            height = _fraction_up(self.log_delta(max(0.0, at)))
            points.append((ratio, height))
            if ratio > 1:
                points.append((1 / ratio, 1 - 1 / ratio + height / ratio))
        return _pair_above(points)


def _dominating(guarantee: Guarantee) -> tuple[Decimal, list[tuple[Decimal, Decimal]]]:
    """ε₀ of one report, and the pair that dominates every two inputs: masses of P and Q, correct to thirty digits."""
    match guarantee:
        case Pure():
            return guarantee.bound, _symmetric(guarantee.bound, _ONE)
        case SymmetricPair():
            return guarantee.bound, _symmetric(guarantee.bound, guarantee.tau)
        case Memoised():  # one report of a value
            return guarantee.curve[0], _symmetric(guarantee.curve[0], _ONE)
        case Laplace():
            return guarantee.bound, _laplace(guarantee.bound)
        case FinitePair() if all(p and q for p, q in guarantee.outcomes if p or q):
            local, _ = guarantee.loss()
            return local, [(decimal_up(p), decimal_up(q)) for p, q in guarantee.outcomes if p]
        case Copies():
            one, pair = _dominating(guarantee.of)
            local = UP.multiply(one, guarantee.count)
            if not _LEAST <= local <= _MOST:
                return local, []
            draws = _merged(zip(_losses(guarantee.of, len(pair)), pair, strict=True))
            return local, _together(draws, guarantee.count) or _symmetric(local, _ONE)
    raise NotSupported(
        f"amplification by shuffling is known only for reports with pure ε-LDP: got a guarantee of kind {guarantee.kind}"
    )


def _losses(guarantee: Guarantee, outcomes: int) -> list[Fraction]:
    """A number for each outcome of a pair. It multiplies over draws and is equal only for equal losses."""
    match guarantee:
        case FinitePair():
            return [p / q for p, q in guarantee.outcomes if p]
        case Laplace() if guarantee.bound:
            return [_STEP**cell for cell in range(-_CELLS, _CELLS + 1)]
    return [_STEP, 1 / _STEP, Fraction(1)][:outcomes]


def _together(pair: dict[Fraction, tuple[Decimal, Decimal]], draws: int) -> list[tuple[Decimal, Decimal]] | None:
    """The pair of several independent draws, with outcomes of equal likelihood ratio merged; or None if too many."""
    product = {Fraction(1): (_ONE, _ONE)}
    for bit in bin(draws)[2:]:
        for factor in (product, pair)[: 1 + int(bit)]:
            both = itertools.product(product.items(), factor.items())
            product = _merged((a * b, (UP.multiply(p, r), UP.multiply(q, s))) for (a, (p, q)), (b, (r, s)) in both)
            if len(product) > _MOST_OUTCOMES:
                return None
    return list(product.values())


def _merged(outcomes: Iterable[tuple[Fraction, tuple[Decimal, Decimal]]]) -> dict[Fraction, tuple[Decimal, Decimal]]:
    """Outcomes with those of equal likelihood ratio merged."""
    found: dict[Fraction, tuple[Decimal, Decimal]] = {}
    for ratio, (p, q) in outcomes:
        before = found.get(ratio, (Decimal(0), Decimal(0)))
        found[ratio] = UP.add(before[0], p), UP.add(before[1], q)
    return found


def _clones(pair: Masses, local: Decimal, share: Decimal) -> tuple[Decimal, ...]:
    """e^{-ε₀}(aP + (1-a)Q), rounded down."""
    least, other = exp_down(local.copy_negate()), DOWN.subtract(_ONE, share)
    return tuple(DOWN.multiply(least, DOWN.add(DOWN.multiply(share, p), DOWN.multiply(other, q))) for p, q in pair)


def _own(law: Outcomes) -> Law:
    """A law in decimals, P and Q rounded up and B down, in an order that depends on its outcomes alone."""
    rounded = ((decimal_up(p), decimal_up(q), DOWN.divide(least.numerator, least.denominator)) for p, q, least in law)
    return tuple(sorted(rounded))


def _symmetric(bound: Decimal, tau: Decimal) -> list[tuple[Decimal, Decimal]]:
    low = UP.divide(tau, UP.add(_ONE, exp_up(bound)))
    high = UP.subtract(tau, low)
    rest = [(UP.subtract(_ONE, tau),) * 2] if tau < 1 else []
    return [pair for pair in ((high, low), (low, high), *rest) if pair[0]]


def _laplace(bound: Decimal) -> list[tuple[Decimal, Decimal]]:
    """A discrete pair for Laplace noise.

    The loss between two lattice points is split between them, so P and Q keep their masses.
    """
    if not bound:
        return [(_ONE, _ONE)]
    h = UP.divide(UP.multiply(2, bound), 2 * _CELLS)
    fall = exp_up(DOWN.divide(h, 2).copy_negate())
    half = UP.divide(UP.divide(UP.subtract(_ONE, fall), UP.add(_ONE, fall)), 2)  # ½ tanh(h/4)
    losses = [UP.multiply(h, i - _CELLS) for i in range(2 * _CELLS + 1)]
    pair = []
    for i, loss in enumerate(losses):
        at_end = i in (0, 2 * _CELLS)
        factor = UP.add(Decimal("0.5"), half) if at_end else UP.multiply(2, half)
        p = UP.multiply(factor, exp_up(UP.divide(UP.subtract(loss, bound), 2)))
        pair.append((p, UP.multiply(p, exp_up(loss.copy_negate()))))
    return pair


def _steepest(terms: Cumulants) -> float:
    """The tilt θ that minimizes e^{K(θ)}/θ, and so the bound of the positive part: θK'(θ) = 1."""
    low, high = -20.0, 20.0
    theta = 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        theta = 2**middle
        _, slope = terms.cumulant(theta, 0.0)
        low, high = (middle, high) if theta * slope < 1 else (low, middle)
    return theta


def _log_positive_part(terms: Cumulants, theta: float) -> float:
    """An upper bound of ln E[X₊] - K(θ) for the sum X of `terms`: 1/2π ∫ M(s)/M(θ)/s² dt along s = θ + it."""
    deviation = math.sqrt(terms.variance(theta, 0.0))
    step = short(2 * math.pi / (_WIDTH * deviation + _DECAY / theta))
    variance = (_REACH / (_FREQUENCIES * step)) ** 2
    found = spectrum(list(terms.steps.items()), theta, variance, step, _FREQUENCIES)
    beyond, dark = found.missing(variance, _FREQUENCIES)
    s = theta + 1j * found.frequencies
    last = step * _FREQUENCIES
    integral = Sum.of(found, (1 / (s * s)).astype(np.complex128), beyond / last**2 + dark / theta**2)
    value, error = integral.at(0.0)
    return math.log((value + error) * (1 + 8 * UNIT)) + theta * (1 + theta) * variance / 2 * (1 + 8 * UNIT)


def _pair_above(points: list[tuple[Fraction, Fraction]]) -> FinitePair:
    """The pair whose privacy profile is the lower hull of `points` (e^ε, δ); above the last point δ is constant."""
    hull: list[tuple[Fraction, Fraction]] = []
    for point in sorted(points):
        while len(hull) >= 2 and _bends_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(hull)]
    # δ as a function of u = e^ε has the slope -Q[P/Q > u]; a change of slope is mass of Q.
    outcomes = [(Fraction(0), 1 + slopes[0])]
    for (ratio, _), before, after in zip(hull[1:], slopes, [*slopes[1:], Fraction(0)], strict=True):
        outcomes.append((ratio * (after - before), after - before))
    outcomes.append((1 - sum((p for p, _ in outcomes), Fraction(0)), Fraction(0)))
    return FinitePair(tuple(outcome for outcome in outcomes if any(outcome)))


def _bends_down(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction], c: tuple[Fraction, Fraction]) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) >= (c[1] - b[1]) * (b[0] - a[0])


def _fraction_up(log_delta: float) -> Fraction:
    """e^log_delta, rounded up."""
    return Fraction(min(1.0, math.exp(log_delta) * (1 + 1e-13) + 5e-324))
