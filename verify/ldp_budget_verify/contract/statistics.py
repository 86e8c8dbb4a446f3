"""The statistics of the checks, and the sample reports and example parameters that they use.

A check computes how unlikely a sample is. If it is less likely than `LEAST_P`, the check draws a second sample from
another seed (`twice`), and fails only if both agree.

The two-sample and independence tests know nothing of the meaning of a report. They ask if two samples have the same
law, and if two columns are independent. Of the many statistics of one sample the least p-value counts, multiplied by
their number (Bonferroni). So a correct mechanism fails one of these checks with a probability of at most 1e-9. The
p-values of binary statistics are exact, those of tables are from the chi-square distribution.

Example parameters are the mechanism's own, or found by trial. Sample reports come from users with a secret each,
though most mechanisms do not need one. The checks read the bytes of whole reports and a few features of them.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betainc, chdtrc, gammaln, ndtri

from ldp_budget.errors import LdpBudgetError, NotSupported, PluginError
from ldp_budget.sampling import SeededStream
from ldp_budget.sdk.domain import Interval
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.numeric_mechanism import NumericMechanism
from ldp_budget.sdk.parameters import Choice, Field, Flag, Integer, Matrix, Real

from .. import SHORTER, Broken, NotChecked, undefined
from ..audit.events import SECRET_BYTES, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Bytes = NDArray[np.uint8]

# -- significance ----------------------------------------------------------------------------------------------------


SEEDS = (20_260_921, 19_370_415)
"""The seeds of the first sample, and of the second, drawn if the first looks wrong."""

LEAST_P = 1e-4
"""The least p-value accepted in both samples. A correct mechanism is below it twice with a probability of 1e-8."""

LEAST_EXPECTED = 10.0
"""The least expected number of occurrences whose absence is noticed."""


def chi_square_p(counts: Floats, expected: Floats) -> float | None:
    """Return the p-value of Pearson's chi-square test; cells with few expected occurrences are merged.

    Return 0 if something impossible was observed, and None if only one cell is left, so that nothing can be compared.
    """
    if counts[expected <= 0].any():
        return 0.0
    order = np.argsort(expected, kind="stable")
    seen, due = counts[order], expected[order]
    few = int(np.searchsorted(np.cumsum(due), LEAST_EXPECTED)) + 1
    few = max(few, int(np.searchsorted(due, LEAST_EXPECTED)))
    seen = np.concatenate([[seen[:few].sum()], seen[few:]])
    due = np.concatenate([[due[:few].sum()], due[few:]])
    if len(due) < 2:
        return None
    return float(chdtrc(len(due) - 1, ((seen - due) ** 2 / due).sum()))


def most_deviations(figures: int) -> float:
    """Return the largest plausible number of standard deviations of the worst of so many normal statistics."""
    return float(-ndtri(LEAST_P / (2 * figures)))


def twice(look: Callable[[int], str]) -> None:
    """Raise `Broken` with the finding of `look` if it finds something for both seeds."""
    for seed in SEEDS:
        why = look(seed)
        if not why:
            return
    raise Broken(why)


def spread(samples: Floats) -> tuple[Any, Any, Any]:
    """Return mean, variance and the relative standard deviation of that variance, of the columns of (R, k) samples.

    The variance of a sample variance is σ⁴(κ-1)/R with the kurtosis κ. For normal samples κ is 3, which gives the
    variance of the chi-square distribution.
    """
    mean, variance = samples.mean(axis=0), samples.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = np.where(variance > 0, ((samples - mean) ** 4).mean(axis=0) / variance**2, 3.0)
    return mean, variance, np.sqrt(np.maximum(kurtosis - 1, 1.0) / len(samples))


# -- evidence --------------------------------------------------------------------------------------------------------


LEAST_TWO_SAMPLE_P = 3e-5
"""The least p-value accepted in each of two samples: together 1e-9."""

_CANDIDATES, _UNLIKELY = 24, 4.0
"""The number of worst binary statistics, and the standard deviations from which an exact p-value is computed.

Smaller deviations are not evidence among so many statistics.
"""


@dataclass
class Evidence:
    """The results of the tests of one sample: their number, and the least likely of them in words."""

    tests: int = 0
    p: float = 1.0
    why: str = ""

    def add(self, p: float, why: str, tests: int = 1) -> None:
        """Add the least p-value of that many tests."""
        self.tests += tests
        if p < self.p:
            self.p, self.why = p, why

    def verdict(self) -> str:
        """Return the evidence against the sample, "" if there is none."""
        p = self.p * self.tests
        return f"{self.why}: p = {p:.3g}" if self.tests and p < LEAST_TWO_SAMPLE_P else ""


def hypergeometric_p(both: int, first: int, second: int, total: int) -> float:
    """Return the p-value of Fisher's exact test, two-sided by doubling.

    Of `total`, `first` have one property, `second` another, and `both` have both.
    """
    low, high = max(0, first + second - total), min(first, second)
    counts = np.arange(low, high + 1)
    cells = counts, first - counts, second - counts, total - first - second + counts
    logs: Floats = -np.sum([gammaln(cell + 1.0) for cell in cells], axis=0)
    masses = np.exp(logs - logs.max())
    masses /= masses.sum()
    place = both - low
    return float(min(1.0, 2 * min(masses[: place + 1].sum(), masses[place:].sum())))


def equal_p(hits: int, total: int, chance: float) -> float:
    """Return the probability of `hits` or more among `total`, each with this chance."""
    return float(betainc(hits, total - hits + 1, chance)) if hits and chance < 1 else 1.0


# -- two samples ----------------------------------------------------------------------------------------------


def compare_samples(evidence: Evidence, first: Any, second: Any, words: str, order: int) -> None:
    """Compare two samples of reports, rows of bytes: whole reports, and up to `order` bits at a time.

    Any function of three bits is a sum of products of at most three signs, so the signs and their products suffice.
    Of whole reports it compares the table of all observed values, if that is not too large, and the parity of all
    bits.
    """
    _compare_tables(evidence, first, second, words)
    bits = [np.unpackbits(rows, axis=1, bitorder="little") for rows in (first, second)]
    parities = [(each.sum(axis=1) & 1).astype(np.bool_) for each in bits]
    one, other = (each[:, np.newaxis] for each in parities)
    _compare_signs(evidence, one, other, f"the parity of all bits of {words}", 1)
    varying = np.flatnonzero((bits[0] != bits[0][:1]).any(axis=0) | (bits[1] != bits[0][:1]).any(axis=0))
    one, other = (each[:, varying].astype(np.bool_) for each in bits)
    _compare_signs(evidence, one, other, f"bits of {words}", order)


def _compare_tables(evidence: Evidence, first: Any, second: Any, words: str) -> None:
    keys = np.concatenate([keys_of(first), keys_of(second)])
    values, places = np.unique(keys, return_inverse=True)
    if len(values) * LEAST_EXPECTED / 2 <= len(keys):
        table = [np.bincount(part, minlength=len(values)) for part in np.split(places, [len(first)])]
        compare_counts(evidence, table[0], table[1], f"whole {words}")


def compare_counts(evidence: Evidence, first: Any, second: Any, words: str) -> None:
    """Compare two rows of counts of the same cells by Pearson's chi-square; rare cells are merged."""
    both = first + second
    share = min(first.sum(), second.sum()) / max(1, both.sum())
    order = np.argsort(both, kind="stable")
    due = both[order] * share
    few = max(int(np.searchsorted(np.cumsum(due), LEAST_EXPECTED)) + 1, int(np.searchsorted(due, LEAST_EXPECTED)))
    rows = [np.concatenate([[row[order][:few].sum()], row[order][few:]]).astype(float) for row in (first, second)]
    total = rows[0] + rows[1]
    if len(total) < 2 or total[0] * share < LEAST_EXPECTED / 2:
        rows, total = [row[1:] for row in rows], total[1:]
    if len(total) < 2:
        return
    figure = 0.0
    for row in rows:
        expected = total * row.sum() / total.sum()
        figure += float(((row - expected) ** 2 / expected).sum())
    evidence.add(float(chdtrc(len(total) - 1, figure)), f"{words} are not alike (chi-square)")


def _compare_signs(evidence: Evidence, first: Bools, second: Bools, words: str, order: int) -> None:
    """Compare the products of up to `order` signs."""
    if not first.shape[1]:
        return
    signs = [1 - 2 * each.astype(np.float32) for each in (first, second)]
    figures = [_products(each, order) for each in signs]
    names = _names(first.shape[1], order)
    totals = len(first), len(second)
    pooled = (figures[0] * totals[0] + figures[1] * totals[1]) / sum(totals)
    spread = np.sqrt(np.maximum(1 - pooled**2, 1e-12) * (1 / totals[0] + 1 / totals[1]))
    for place in _worst(np.abs(figures[0] - figures[1]) / spread):
        ones = [round(total * (1 - float(figure[place])) / 2) for total, figure in zip(totals, figures, strict=True)]
        p = hypergeometric_p(ones[0], totals[0], sum(ones), sum(totals))
        shares = " and ".join(f"{one / total:.4g}" for one, total in zip(ones, totals, strict=True))
        evidence.add(p, f"{words} differ (bits {names(place)} together: odd in {shares})", tests=0)
    evidence.add(1.0, "", tests=len(pooled))


def _worst(figures: Floats) -> list[int]:
    """Return the places of the largest."""
    off = np.flatnonzero(figures > _UNLIKELY)
    found: list[int] = off[np.argsort(-figures[off], kind="stable")][:_CANDIDATES].tolist()
    return found


def _products(signs: Any, order: int) -> Floats:
    """Return the means of all products of one, two, ... up to `order` columns, in the order of `_names`."""
    count, columns = signs.shape
    upper = np.triu_indices(columns, 1)
    parts = [signs.mean(axis=0, dtype=np.float64)]
    if order >= 2:
        parts.append(((signs.T @ signs) / count)[upper])
    if order >= 3:
        for place in range(columns - 2):
            rest = signs[:, place + 1 :]
            inner = np.triu_indices(columns - place - 1, 1)
            parts.append((((rest * signs[:, place : place + 1]).T @ rest) / count)[inner])
    return np.concatenate(parts).astype(np.float64)


def _names(columns: int, order: int) -> Any:
    """Return a function from the place of a product to its columns in words."""

    def name(place: int) -> str:
        if place < columns:
            return str(place)
        place -= columns
        pairs = columns * (columns - 1) // 2
        if place < pairs or order < 3:
            return ", ".join(str(each[place]) for each in np.triu_indices(columns, 1))
        place -= pairs
        for first in range(columns - 2):
            inner = (columns - first - 1) * (columns - first - 2) // 2
            if place < inner:
                others = (int(each[place]) + first + 1 for each in np.triu_indices(columns - first - 1, 1))
                return ", ".join(map(str, (first, *others)))
            place -= inner
        raise AssertionError(place)

    return name


# -- two columns ----------------------------------------------------------------------------------------------


def relate(evidence: Evidence, first: Bools, second: Bools, words: str) -> None:
    """Test the features of each user's one report, (n, f), for dependence on those of the other, (n, g)."""
    total = len(first)
    ones = first.sum(axis=0)[:, np.newaxis], second.sum(axis=0)[np.newaxis, :]
    both = first.T.astype(np.float32) @ second.astype(np.float32)
    expected = ones[0] * ones[1] / total
    spread = np.sqrt(np.maximum(expected * (total - ones[0]) * (total - ones[1]) / total**2, 1e-12))
    figures = (np.abs(both - expected) / spread).reshape(-1)
    figures[((ones[0] * (total - ones[0])) * (ones[1] * (total - ones[1])) == 0).reshape(-1)] = 0
    for place in _worst(figures):
        i, j = divmod(place, second.shape[1])
        p = hypergeometric_p(round(float(both[i, j])), int(ones[0][i, 0]), int(ones[1][0, j]), total)
        evidence.add(p, f"{words} are not independent", tests=0)
    evidence.add(1.0, "", tests=figures.size)


# -- example parameters ----------------------------------------------------------------------------------------------


_WANTED = 3
_TRIES, _ENOUGH = 3000, 150
_NUMBERS = ("0.05", "0.1", "0.2", "0.25", "0.3", "0.5", "0.6", "0.75", "0.9", "1", "1.5", "2", "3", "4", "5", "10")
_COUNTS = (1, 2, 3, 4, 5, 7, 8, 10, 16, 32)
_MATRICES = (
    (("0.5", "0.25"), ("0.5", "0.75")),
    (("0.5", "0.25", "0.25"), ("0.25", "0.5", "0.25"), ("0.25", "0.25", "0.5")),
)


def made(cls: type[Mechanism], parameters: Mapping[str, Any]) -> Mechanism:
    """Return the mechanism with these parameters: calibrated, or built if they replace a target."""
    built = any(name in cls.fields and cls.fields[name].derived for name in parameters)
    return cls(**parameters) if built else cls.calibrate(**parameters)


def examples_of(cls: type[Mechanism]) -> list[dict[str, Any]]:
    """Return parameters that `cls` can be built from: its `examples`, else up to three found by a search.

    The search is the same every time. It prefers parameters with a client, a server and a bounded loss, and examples
    that declare different fields. Raises `NotSupported` if it finds none; the class should then define `examples`.
    """
    if cls.examples:
        return [dict(example) for example in cls.examples]
    found = _search(cls)
    if not found:
        raise NotSupported(f"no valid parameters of {cls.name} were found", hint="Give the class `examples`.")
    return found


def _search(cls: type[Mechanism]) -> list[dict[str, Any]]:
    """Return the best buildable parameters; among equals, those that declare different fields."""
    chance = random.Random(cls.name)
    seen: Counter[frozenset[str]] = Counter()
    tried: set[str] = set()
    found: list[tuple[int, int, dict[str, Any]]] = []
    tries = [(field, _values(field)) for field in cls.fields.values()]
    for attempt in range(_TRIES):
        parameters = _drawn(tries, chance)
        if repr(parameters) in tried:
            continue
        tried.add(repr(parameters))
        worth, fields = _worth(cls, parameters), frozenset(parameters)
        if worth:
            found.append((-worth, seen[fields], parameters))
            seen[fields] += worth == _BEST
        if len(+seen) >= _WANTED or (attempt >= _ENOUGH and seen.total() >= _WANTED):
            break
    return [parameters for _, _, parameters in sorted(found, key=lambda item: item[:2])[:_WANTED]]


_BEST = 4


def _worth(cls: type[Mechanism], parameters: dict[str, Any]) -> int:
    """Return 0 for parameters that cannot be built; else more for a bounded loss, a client and a server."""
    try:
        mechanism = made(cls, parameters)
        worth = 1 + (mechanism.guarantee.loss() is not None)
    except PluginError:
        raise  # an error of the class itself, for any parameters
    except Exception:  # these parameters do not work; the checks report errors for those that do
        return 0
    try:
        inputs = list(mechanism.critical_inputs())
        reports = mechanism.randomize(np.array(inputs), rng=1, secrets=[bytes(32)] * len(inputs))
        worth += 1
        mechanism.estimate(reports)
    except Exception:
        return worth
    return worth + 1


def _drawn(tries: list[tuple[Field[Any], Sequence[Any]]], chance: random.Random) -> dict[str, Any]:
    """Return a value for each required field and for some of the others."""
    chosen = [(field, values) for field, values in tries if field.required or chance.random() < 0.4]
    return {field.name: chance.choice(values) if values else _only(field) for field, values in chosen}


def _only(field: Field[Any]) -> Any:
    return True if isinstance(field, Flag) else field.default


def _values(field: Field[Any]) -> Sequence[Any]:
    """Return the values to try for a field; none if there is no choice."""
    if isinstance(field, Real):
        return _numbers(field)
    if isinstance(field, Integer):
        least = 0 if field.at_least is None else field.at_least
        return [count for count in _COUNTS if count >= least] or [least, least + 1]
    if isinstance(field, Choice):
        return field.choices
    if isinstance(field, Matrix):
        return _MATRICES
    return ()


def _numbers(field: Real) -> list[str]:
    """Return simple numbers in the range; for decimals some more between the bounds."""
    found = [text for text in ("0", *_NUMBERS) if _accepts(field, text)]
    low = next((bound for bound in (field.above, field.at_least) if bound is not None), None)
    if not found and low is not None:
        found = [text for text in (str(low), str(low + 1), str(low * 2), str(low * 1.5)) if _accepts(field, text)]
    return found or ["1"]


def _accepts(field: Real, text: str) -> bool:
    try:
        field.parse(text)
    except LdpBudgetError:
        return False
    return True


# -- sample reports --------------------------------------------------------------------------------------------------


_MOST_BYTES = 1 << 30
_MOST_STREAMED_BYTES = 1 << 33
"""The most bytes of reports that are drawn in blocks and dropped. `_MOST_BYTES` is the most held at once."""
_POINTS = 1 << 20


def secrets_of(count: int, seed: int | None) -> list[bytes]:
    """Return a secret for each of `count` users; with `seed` None, from the operating system."""
    size = SECRET_BYTES * count
    data = os.urandom(size) if seed is None else bytes(SeededStream(b"secrets %d" % seed).read(size))
    return [data[at : at + SECRET_BYTES] for at in range(0, size, SECRET_BYTES)]


def draw(mechanism: Mechanism, values: Any, seed: int | None) -> Any:
    """Return reports of users with these values. Raises `NotChecked` if the mechanism has no client."""
    if len(values) > 1:
        expect_to_fit(mechanism, values[:1], len(values))
    return _drawing_drawn(mechanism, values, seed)


def expect_to_fit(mechanism: Mechanism, one: Any, users: int, *, streamed: bool = False) -> None:
    """Raise `NotChecked` if the reports of so many users would be too large, judged from `one`."""
    size = _drawing_drawn(mechanism, one, 0).nbytes * users
    if size > (_MOST_STREAMED_BYTES if streamed else _MOST_BYTES):
        raise NotChecked(f"{users} reports would take {size / 1e9:.1f} GB; {SHORTER}")


def _drawing_drawn(mechanism: Mechanism, values: Any, seed: int | None) -> Any:
    try:
        return np.asarray(mechanism.randomize(values, rng=seed, secrets=secrets_of(len(values), seed)))
    except NotSupported as error:
        # A mechanism with a client program has a client; only these parameters leave it without reports.
        programmed = type(mechanism).client_program is not Mechanism.client_program
        raise NotChecked(str(error) if programmed else undefined(mechanism, error, "randomize")) from None
    except MemoryError:
        raise NotChecked(f"its reports do not fit into memory; {SHORTER}") from None


def inputs_of(mechanism: Mechanism) -> list[Any]:
    """Return values that the mechanism takes. Raises `NotChecked` if it names none."""
    try:
        return list(mechanism.critical_inputs())
    except NotSupported as error:
        raise NotChecked(undefined(mechanism, error, "critical_inputs")) from None


def users_of(mechanism: Mechanism, count: int) -> Any:
    """Return `count` values, cycling through the inputs."""
    return np.resize(np.array(inputs_of(mechanism)), count)


def others_of(mechanism: Mechanism, count: int) -> list[Any]:
    """Return random values of the domain, the same every time; none if the mechanism declares no domain."""
    chance, domain = random.Random(mechanism.fingerprint), mechanism.domain
    if isinstance(domain, Interval):
        lower, upper = domain.ends
        return [lower + (upper - lower) * (chance.randrange(_POINTS) / _POINTS) for _ in range(count)]
    if domain is None or not domain.listed:
        return []
    return [chance.randrange(domain.size) for _ in range(count)]


# -- features of reports ---------------------------------------------------------------------------------------------


_REPORT_MOST_BYTES = 4
"""The most bytes used of a longer report, the same ones every time: 32 bits have 5,000 triples."""
_LOW_BYTES = 2
_SMOOTH = 1e-3
_FEATURES = 16
_CODES = 8


def has_density(mechanism: Mechanism) -> bool:
    """True if a density describes the mechanism, with or without a channel of its grid."""
    return isinstance(mechanism, NumericMechanism) and type(mechanism).density is not NumericMechanism.density


def on_a_grid(mechanism: Mechanism, reports: Any) -> bool:
    """True if reports are numbers of a public grid, and not the steps themselves."""
    return isinstance(mechanism, NumericMechanism) and np.asarray(reports).dtype.kind == "f"


def steps_of(mechanism: Any, reports: Any) -> Any:
    """Return the step of the grid of each report, as whole doubles."""
    origin, step = mechanism.grid()
    return np.rint((np.asarray(reports) - origin) / step)


def whole(mechanism: Mechanism, reports: Any) -> Bytes:
    """Return each report as a row of bytes; a report on a grid as its step, lower bytes first."""
    array = np.asarray(reports)
    if on_a_grid(mechanism, array):
        array = steps_of(mechanism, array).astype(np.int64)
    if array.dtype.kind not in "biuf":
        raise NotSupported(f"reports of {array.dtype} cannot be checked")
    rows = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).reshape(len(array), -1)
    return rows.view(np.uint8).reshape(len(array), -1)


def some_columns(mechanism: Mechanism, rows: Bytes) -> NDArray[np.intp]:
    """Return the bytes that vary, or some of them, the same every time."""
    varying = np.flatnonzero((rows != rows[:1]).any(axis=0))
    if len(varying) > _REPORT_MOST_BYTES:
        varying = np.sort(random.Random(mechanism.fingerprint).sample(varying.tolist(), _REPORT_MOST_BYTES))
    return np.asarray(varying, dtype=np.intp)


def low_bytes(mechanism: Any, *samples: Any) -> list[Bytes]:
    """Return the low bits of the steps of a fine grid, as rows of bytes.

    A density that bends or jumps only at a few points does not determine these bits.
    """
    step, spread = mechanism.grid()[1], min(float(np.asarray(reports).std()) for reports in samples)
    bits = int(np.log2(max(1.0, _SMOOTH * spread / step)))
    last = (1 << min(bits, 8 * _LOW_BYTES)) - 1
    low = [steps_of(mechanism, reports).astype(np.int64) & last for reports in samples]
    return [each.astype("<u2").view(np.uint8).reshape(-1, _LOW_BYTES) for each in low]


def codes_of(mechanism: Mechanism, reports: Any, pair: tuple[Any, Any]) -> NDArray[np.int64] | None:
    """Return the outcomes of `compare`; None if the mechanism describes none."""
    try:
        mechanism.compare(*pair)
        return np.asarray(mechanism.outcomes(reports, *pair)).astype(np.int64)
    except NotSupported:
        return None


def features(mechanism: Mechanism, reports: Any, pair: tuple[Any, Any], like: Any) -> Bools:
    """Return binary features of each report, (n, f): outcomes, bits, and for numbers the side of some cuts.

    `like`: reports that determine the features, so that two samples have the same ones.
    """
    found = []
    codes, seen = codes_of(mechanism, reports, pair), codes_of(mechanism, like, pair)
    if codes is not None and seen is not None:
        common = np.argsort(-np.bincount(seen), kind="stable")[:_CODES]
        found += [codes == code for code in common]
    if on_a_grid(mechanism, like):
        cuts = np.quantile(like, (0.125, 0.25, 0.5, 0.75, 0.875))
        found += [np.asarray(reports) > cut for cut in cuts]
    bits = np.unpackbits(whole(mechanism, like), axis=1, bitorder="little")
    balance = bits.mean(axis=0)
    balanced = np.argsort(-(balance * (1 - balance)), kind="stable")[:_FEATURES]
    own = np.unpackbits(whole(mechanism, reports), axis=1, bitorder="little")
    found += [own[:, column].astype(np.bool_) for column in balanced if 0 < balance[column] < 1]
    return np.column_stack(found) if found else np.zeros((len(np.asarray(reports)), 0), dtype=np.bool_)
