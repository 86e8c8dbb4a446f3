"""Jeong, Hong and Seo 2020, Table 1: the four settings that Apple uses, run with the printed k and m."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from report import Row

import ldp_budget
from ldp_budget.sdk.hash_families import HashFamily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from report import Report

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

USERS, QUICK_USERS = 100_000, 2000
QUICK_FEWER_HASHES = 16
HASHED, QUICK_HASHED = 7 * 10**7, 10**6
"""How many times values are hashed for an estimate, at most: functions in use times candidates.

So there are more candidates than cells of a function in every setting, as many as there are independent errors.
"""


class Setting(NamedTuple):
    case: str
    mechanism: str
    epsilon: int
    hashes: int
    width: int
    domain: int

    def made(self) -> Any:
        return ldp_budget.mechanism(self.mechanism)(
            epsilon=self.epsilon, hashes=self.hashes, width=self.width, domain_size=self.domain
        )


TABLE = (
    Setting("Discovering Popular Emojis", "cms", 4, 65_536, 1024, 2600),
    Setting("Safari Auto-play Intent", "cms", 8, 65_536, 1024, 250_000),
    Setting("Identifying High Energy and Memory Usage in Safari", "hcms", 4, 1024, 32_768, 250_000),
    Setting("Understanding HealthKit Usage", "cms", 2, 65_536, 256, 2600),
)


class Run(NamedTuple):
    """The candidates' true counts, estimates and exact variances, and the paper's bound on these."""

    setting: Setting
    held: Floats
    estimates: Floats
    variances: Floats
    bound: float
    report_bytes: int

    @property
    def squares(self) -> float:
        return float(((self.estimates - self.held) ** 2).mean())

    @property
    def independent(self) -> int:
        """How many errors there are at least that do not share a cell of the sketch."""
        return min(len(self.held), self.setting.width)


def settings(report: Report) -> None:
    users = QUICK_USERS if report.quick else USERS
    fewer = ["**In this quick run k is a sixteenth of what is printed.**"] if report.quick else []
    report.section(
        "Table 1: Apple's settings",
        "Stated: ε, k, m and, for three of the four, the number p of possible values. Each setting is run, "
        f"every client of it, with {users:,} users of whom 1/r in proportion hold the r-th value; neither the "
        "number of users nor what they hold is stated. The p of HealthKit is printed as x, and is 2,600 here. "
        "Where p values times the functions in use are too many to hash, half of the values estimated are the "
        "likeliest and half are spread over the rest: an estimate does not depend on what else is estimated. "
        "For Microsoft's mechanisms no settings are printed.",
        *fewer,
        "Compared is what Theorems 1 and 2 say of the estimates: E[f̃] = f, and the bound on the variance for "
        "the values at hand. Errors are in users. “Exact” is the root of the library's variance, of which "
        "collisions are a part.",
    )
    runs = list(_quick_runs()) if report.quick else [run(setting, users, HASHED) for setting in TABLE]
    header = ("case", "mechanism", "ε", "k", "m", "p", "estimated", "bytes a report", "rms error", "exact", "bound")
    report.table(header, map(_line, runs))
    report.compare(row for made in runs for row in _theorem_rows(made))
    report.compare(_hcms_rows(10**5 if report.quick else 10**6))
    with report.picture("table1", "The forty likeliest values: true counts (line) and estimates (dots)") as figure:
        for axes, made in zip(figure.subplots(2, 2).flat, runs, strict=True):
            axes.plot(made.held[:40], color="black", linewidth=1)
            axes.plot(made.estimates[:40], ".")
            axes.set_title(made.setting.case, fontsize=8)


def _quick_runs() -> Iterator[Run]:
    for setting in TABLE:
        yield run(setting._replace(hashes=setting.hashes // QUICK_FEWER_HASHES), QUICK_USERS, QUICK_HASHED)


def run(setting: Setting, users: int, hashed: int) -> Run:
    made, rng = setting.made(), np.random.default_rng(setting.domain)
    reach = np.cumsum(1 / np.arange(1, setting.domain + 1))
    values = np.searchsorted(reach, rng.random(users) * reach[-1])
    held = np.bincount(values, minlength=setting.domain).astype(float)
    candidates = chosen(setting.domain, hashed // min(setting.hashes, users))
    reports = made.randomize(values, rng=1)
    estimates = made.estimate(reports, candidates=candidates).counts
    utility, own = made.utility(), held[candidates]
    pairs = (held * (held - 1)).sum() - own * (own - 1)
    variances = users * utility["variance_per_user"] + own * utility["variance_per_unit_frequency"]
    variances += pairs * utility["variance_per_pair"]
    return Run(setting, own, estimates, variances, printed_bound(setting, held), reports.nbytes // users)


def chosen(domain: int, most: int) -> Ints:
    """The whole domain if it is no more than `most`; else half of that many from its start, half from the rest."""
    if domain <= most:
        return np.arange(domain)
    half = most // 2
    return np.concatenate([np.arange(half), np.linspace(half, domain - 1, half).astype(np.int64)])


def printed_bound(setting: Setting, held: Floats) -> float:
    """The right-hand side of Theorem 1 for CMS, of Theorem 2 for HCMS."""
    k, m, n, growth = setting.hashes, setting.width, held.sum(), math.exp(setting.epsilon)
    root = math.sqrt(growth)
    noise = root / (root - 1) ** 2 + 1 / m if setting.mechanism == "cms" else ((growth + 1) / (growth - 1)) ** 2
    return float((m / (m - 1)) ** 2 * (noise + (held**2).sum() / (n * k * m)) * n)


def _line(made: Run) -> tuple[object, ...]:
    setting = made.setting
    errors = [f"{value**0.5:.1f}" for value in (made.squares, made.variances.mean(), made.bound)]
    numbers = [f"{number:,}" for number in (setting.hashes, setting.width, setting.domain, len(made.held))]
    return (setting.case, setting.mechanism.upper(), setting.epsilon, *numbers, made.report_bytes, *errors)


def _theorem_rows(made: Run) -> Iterator[Row]:
    theorem = 1 if made.setting.mechanism == "cms" else 2
    scores = (made.estimates - made.held) / np.sqrt(made.variances)
    mean, error = float(scores.mean()), made.independent**-0.5
    unbiased = abs(mean) < 4 * error
    what = f"{made.setting.case}: mean error, in standard deviations"
    yield Row(what, "0", f"{mean:+.3f} ± {error:.3f}", unbiased, "" if unbiased else "biased")
    exact = float(made.variances.max())
    ratio = made.squares / float(made.variances.mean())
    holds = exact <= made.bound and abs(ratio - 1) < 4 * (2 / made.independent) ** 0.5
    said = f"largest exact {exact**0.5:.1f}, found {ratio**0.5:.3f} times the exact rms"
    what = f"{made.setting.case}: Theorem {theorem}, standard deviation"
    yield Row(what, f"at most {made.bound**0.5:.1f}", said, holds, "" if holds else "outside the bound")


# -- HCMS as printed ------------------------------------------------------------------------------------------


def _hcms_rows(users: int) -> Iterator[Row]:
    setting = next(setting for setting in TABLE if setting.mechanism == "hcms")
    places = int(math.log2(setting.hashes * setting.width))
    why = f"beside the {places} bits that name function and coefficient, which say nothing of the value"
    yield Row("HCMS: bits of a report that depend on the value", "1", "1", True, why)
    half = setting.epsilon / 2
    expected = -math.tanh(half) / math.tanh(half / 2) / 2
    value, error = printed_hcms(setting, users)
    said = f"{value:.2f}·n ± {error:.2f}·n, n = {users:,}"
    why = (
        f"it is {expected:.3f}·n on average. Fig. 9 starts from v = −1, where the text beside it says 0; Fig. 10 "
        "takes c from e^{ε/2} and the affine step from CMS, where c = (e^ε+1)/(e^ε−1) and no affine step belong"
    )
    yield Row("HCMS to the letter of Fig. 9 and 10: count of a value nobody holds", "0", said, expected == 0, why)


def printed_hcms(setting: Setting, users: int) -> tuple[float, float]:
    """The count, over n, of a value that nobody holds by Fig. 9, 10 and 7 to the letter, and its standard error.

    The vector of -1 with a one at h has the transform w_l = 2·H_{hl}, less m at l = 0.
    """
    _, _, epsilon, k, m, _ = setting
    rng = np.random.default_rng(9)
    family = HashFamily(0, k, m)
    functions, coefficients = rng.integers(0, k, users), rng.integers(0, m, users)
    own, absent = (signs(family(functions, family.points([value])), coefficients) for value in (0, 1))
    transformed = 2 * own - m * (coefficients == 0)
    kept = np.where(rng.random(users) < 1 / (1 + math.exp(-epsilon)), 1, -1)
    c = 1 / math.tanh(epsilon / 4)
    told = c / 2 * kept * transformed + 0.5
    counts = m / (m - 1) * (told * absent - 1 / m)
    return float(counts.mean()), float(counts.std() / users**0.5)


def signs(cells: Ints, coefficients: Ints) -> Ints:
    """The entries ±1 of the Hadamard matrix of equation (2)."""
    entries: Ints = 1 - 2 * (np.bitwise_count(cells & coefficients).astype(np.int64) & 1)
    return entries
