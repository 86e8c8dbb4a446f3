"""Surveys of five answers, repeated thousands of times: the counts that the server would make, and their errors.

What a server reads from the reports of a survey is a few counts, and given the users' answers these are sums of
binomials. So `flip_counts` and `sketch_counts` draw the counts, from the distribution that they have where every
client draws a report: seconds in place of hours. `client_estimates` runs the clients, to hold the two against.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

import ldp_budget
from ldp_budget.sdk.estimates import CountAggregate
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.hash_families import HashFamily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

ANSWERS = 5
WIDTH, HASHES, MOST_HASHES = 128, 512, 1024
EPSILONS = ("0.1", "0.5", "1", "2", "5")
SIZES = (500, 1000, 5000, 10_000)

FIVE, FOUR, SKETCH, UNSCALED = "5BitFlip", "4BitFlip", "CMS", "4BitFlip without k/d"

DBitFlip: Any = ldp_budget.mechanism("d-bit-flip")
Cms: Any = ldp_budget.mechanism("cms")


def answers_of(users: int) -> Ints:
    """The survey of that size: uniform answers, drawn once and the same for every mechanism, ε and repeat."""
    return np.random.default_rng(users).integers(0, ANSWERS, users)


def held_by(users: int) -> Ints:
    """How many users gave each answer, shape (5,)."""
    return np.bincount(answers_of(users), minlength=ANSWERS)


def flip(epsilon: str, bits: int) -> Any:
    return DBitFlip(epsilon=epsilon, buckets=ANSWERS, bits=bits)


def sketch(epsilon: str, hashes: int = HASHES, seed: int = 0) -> Any:
    return Cms(epsilon=epsilon, hashes=hashes, width=WIDTH, domain_size=ANSWERS, seed=seed)


def largest_errors(estimates: Floats, held: Ints) -> Floats:
    """The error of the paper: the largest |estimate - true|/n over the answers, shape (repeats,)."""
    errors: Floats = np.abs(estimates - held).max(axis=1) / held.sum()
    return errors


# -- dBitFlip -------------------------------------------------------------------------------------------------


def flip_counts(mechanism: Any, held: Ints, repeats: int, rng: np.random.Generator) -> Ints:
    """How many reports tell of each answer, and how many of those with a one, shape (2, repeats, 5).

    A user leaves out no answer where d = 5, and one of the five, whichever, where d = 4. A bit that is told is a one
    with probability p for the user's own answer and q for others, whatever the other bits are.
    """
    p, q = (float(mechanism.parameters[name]) for name in "pq")
    # By users' answer, then the answer told of.
    told = np.broadcast_to(held[:, np.newaxis], (repeats, ANSWERS, ANSWERS))
    if mechanism.bits < ANSWERS:
        told = told - rng.multinomial(held, np.full(ANSWERS, 1 / ANSWERS), size=(repeats, ANSWERS))
    own, every = told.diagonal(axis1=1, axis2=2), told.sum(axis=1)
    return np.stack([every, rng.binomial(own, p) + rng.binomial(every - own, q)])


def flip_estimates(mechanism: Any, counts: Ints, users: int) -> Floats:
    """The library's estimates from `flip_counts`, shape (repeats, 5)."""
    estimates: Floats = mechanism.estimate(CountAggregate(mechanism.fingerprint, users, counts)).counts
    return estimates


def without_factor(mechanism: Any, estimates: Floats) -> Floats:
    """An estimator that forgets the factor k/d: Σ (b - q)/(p - q) over the users who told."""
    unscaled: Floats = estimates * (mechanism.bits / mechanism.buckets)
    return unscaled


# -- CMS ------------------------------------------------------------------------------------------------------


def collisions(hashes: int, repeats: int) -> Ints:
    """Which answers share a cell, for each seed of the hash functions and each function, shape (repeats, hashes).

    The five base-5 digits of a code name for each answer the first one in its cell. The first k columns are those of
    a sketch with k functions.
    """
    return _collisions(repeats)[:, :hashes]


@functools.cache
def _collisions(repeats: int) -> Ints:
    codes = np.empty((repeats, MOST_HASHES), dtype=np.int64)
    for seed in range(repeats):
        family = HashFamily(seed, MOST_HASHES, WIDTH)
        cells = family(np.arange(MOST_HASHES)[:, np.newaxis], family.points(range(ANSWERS)))
        same = cells[:, :, np.newaxis] == cells[:, np.newaxis, :]
        codes[seed] = same.argmax(axis=2) @ ANSWERS ** np.arange(ANSWERS)
    return codes


def sketch_counts(mechanism: Any, held: Ints, repeats: int, rng: np.random.Generator) -> Ints:
    """How many reports support each answer, shape (repeats, 5), where the functions collide as in `collisions`.

    Users draw a function, whichever. Functions with the same code are as good as one; in each such group a cell's bit
    is a one with probability p for users whose answer is in the cell and 1 - p for the others, whatever the other
    bits are.
    """
    p = 1 / (1 + np.exp(-float(mechanism.epsilon) / 2))
    patterns, functions = _by_pattern(mechanism.hashes, repeats)
    users = rng.multinomial(held, functions[:, np.newaxis] / mechanism.hashes)
    first = patterns // ANSWERS ** np.arange(ANSWERS)[:, np.newaxis] % ANSWERS
    own = np.einsum("rup,uvp->rvp", users, first[:, np.newaxis] == first)
    ones = rng.binomial(own, p) + rng.binomial(users.sum(axis=1, keepdims=True) - own, 1 - p)
    # Answers of one cell have its bits in common: those that were drawn for the first of them.
    counts: Ints = np.take_along_axis(ones, first[np.newaxis], axis=1).sum(axis=2)
    return counts


@functools.cache
def _by_pattern(hashes: int, repeats: int) -> tuple[Ints, Ints]:
    """The codes of `collisions` that occur, and how many functions of each row have each of them."""
    codes = collisions(hashes, repeats)
    patterns, place = np.unique(codes, return_inverse=True)
    rows = np.arange(len(codes))[:, np.newaxis]
    flat = place.reshape(codes.shape) + len(patterns) * rows
    return patterns, np.bincount(flat.ravel(), minlength=len(codes) * len(patterns)).reshape(len(codes), -1)


def sketch_estimates(mechanism: Any, counts: Ints, users: int) -> Floats:
    """The library's estimates from `sketch_counts`, shape (repeats, 5)."""
    total = CountAggregate(mechanism.fingerprint, users, counts)
    # A sketch's own `estimate` reads the sketch to find these counts, and then is this one.
    estimates: Floats = FrequencyMechanism.estimate(mechanism, total).counts
    return estimates


# -- the experiment -------------------------------------------------------------------------------------------


def drawn_estimates(users: int, epsilon: str, repeats: int, seed: int = 0) -> Iterator[tuple[str, Floats]]:
    """The estimates of every mechanism in that many repeats of a survey, (repeats, 5) each."""
    held = held_by(users)
    rng = np.random.default_rng([seed, users, EPSILONS.index(epsilon)])
    five, four, cms = flip(epsilon, 5), flip(epsilon, 4), sketch(epsilon)
    yield FIVE, flip_estimates(five, flip_counts(five, held, repeats, rng), users)
    scaled = flip_estimates(four, flip_counts(four, held, repeats, rng), users)
    yield FOUR, scaled
    yield UNSCALED, without_factor(four, scaled)
    yield SKETCH, sketch_estimates(cms, sketch_counts(cms, held, repeats, rng), users)


@functools.cache
def mean_errors(users: int, epsilon: str, repeats: int, runs: int) -> dict[str, Floats]:
    """The mean largest error of every mechanism in each of several runs, shape (runs,)."""
    held = held_by(users)
    means: dict[str, list[float]] = {}
    for run in range(runs):
        for name, estimates in drawn_estimates(users, epsilon, repeats, run):
            means.setdefault(name, []).append(float(largest_errors(estimates, held).mean()))
    return {name: np.array(found) for name, found in means.items()}


def exact_mean_square(name: str, users: int, epsilon: str, hashes: int = HASHES) -> float:
    """The exact mean square of the error of a share, in the mean over the answers, from the library's variances."""
    held = held_by(users).astype(float)
    if name == SKETCH:
        variances = exact_variances(sketch(epsilon, hashes), held)
    else:
        variances = exact_variances(flip(epsilon, 5 if name == FIVE else 4), held)
    if name == UNSCALED:
        variances = (4 / 5) ** 2 * variances + (held / 5) ** 2
    return float(variances.mean()) / users**2


def exact_variances(mechanism: Any, held: Floats) -> Floats:
    """The variance of the count of every answer, given how many users hold each."""
    utility = mechanism.utility()
    pairs = held * (held - 1)
    variances: Floats = held.sum() * utility["variance_per_user"] + held * utility["variance_per_unit_frequency"]
    variances += (pairs.sum() - pairs) * utility.get("variance_per_pair", 0)
    return variances


def client_estimates(name: str, users: int, epsilon: str, repeats: int) -> Floats:
    """As `drawn_estimates`, but every client draws its report, and the server reads the reports."""
    answers = answers_of(users)
    if name == SKETCH:
        sketches = [sketch(epsilon, seed=seed) for seed in range(repeats)]
        surveys = ((made, made.randomize(answers, rng=seed)) for seed, made in enumerate(sketches))
    else:
        mechanism = flip(epsilon, 5 if name == FIVE else 4)
        reports = mechanism.randomize(np.tile(answers, repeats), rng=users).reshape(repeats, users, -1)
        surveys = ((mechanism, survey) for survey in reports)
    return np.array([made.estimate(reports).counts for made, reports in surveys])
