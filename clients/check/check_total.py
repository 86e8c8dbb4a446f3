#!/usr/bin/env python3
"""Check a total of privacy loss:   python check_total.py total.json

A certificate lists the reports of one user, fixed beforehand, and claims that all of them together are
(epsilon, delta)-LDP. This program accepts the claim only if it can prove it. It needs the standard library of Python
and nothing else: no network and no floating-point number. Its format is docs/reference/certificate-format.md.

The proof
1. A report is described by two distributions P and Q, which dominate every pair of answers. An outcome with the masses
   (p, q) has the loss ln p/q. The total is (epsilon, delta)-LDP if the sum L of independent losses under P has
   E[max(0, 1 - e^(epsilon - L))] <= delta (Zhu, Dong and Wang 2022, Theorem 10).
2. An outcome whose loss is between two grid points k*grid and (k + 1)*grid is split into two outcomes at these points,
   with the same sum of p and the same sum of q. Merging the two gives the first outcome again. So the split pair
   dominates, and the total of split pairs dominates the total.
3. Sums of losses on the grid are convolutions of whole numbers, in units of 2^-bits. Every mass is rounded up, and small
   masses at the ends (`tail`) move to a larger loss. Both can only raise delta.
4. Gaussian reports add up to one Gaussian report, whose delta has a closed form.

`grid`, `bits` and `tail` are hints of the maker of a certificate. Bad hints give a larger delta or take longer, and the
program refuses hints that need more work than a fixed amount. No hint makes a false claim pass.
"""

import json
import re
import sys
from bisect import bisect_left
from collections import Counter
from fractions import Fraction
from math import ceil, floor, isqrt, lcm

W = 256
ONE = 1 << W  # transcendental numbers are pairs of whole numbers of units 2^-W, one below and one above
TWO_PI = 628318530717958647692528676655900576839433879875021164194988918461563281257241799  # 2 pi 10^80, rounded down
ROOT = isqrt((TWO_PI << 2 * W) // 10**80), isqrt((TWO_PI + 1 << 2 * W) // 10**80) + 1  # around sqrt(2 pi)
MOST_BYTES, MOST_CELLS, MOST_WORK, MOST_BITS = 2**20, 2**15, 2**19, 2**15
NUMBER = r"(0|[1-9][0-9]{0,4299})(\.[0-9]{1,4300}|/[1-9][0-9]{0,4299})?"
KEYS = ["bits", "charges", "delta", "epsilon", "format", "grid", "tail", "version"]
KINDS = {"pure": ["bound"], "symmetric-pair": ["bound", "tau"], "approximate": ["bound", "slack"]}
KINDS |= {"laplace": ["bound"], "gaussian": ["mu"], "finite-pair": ["outcomes"]}


def need(condition, reason):
    if not condition:
        raise ValueError(reason)


def number(text, most, least=0):
    """The exact value of a text such as 0.05 or 3/7: no sign, no exponent, no space, no needless zero in front."""
    need(isinstance(text, str) and re.fullmatch(NUMBER, text), "not a number, or too long")
    need(least <= Fraction(text) <= most, f"a number out of range: {text[:40]}")
    return Fraction(text)


def common(rows):
    """The sums of both columns of pairs of numbers, whose common denominator must not be too long."""
    below = 1
    for x in (x for row in rows for x in row):
        below = lcm(below, x.denominator)
        need(below >> MOST_BITS == 0, "masses with too long a common denominator")
    return [Fraction(sum(int(x * below) for x in side), below) for side in zip(*rows, strict=True)]


def whole(value, least, most):
    need(type(value) is int and least <= value <= most, f"not a whole number from {least} to {most}")
    return value


# -- certified functions ----------------------------------------------------------------------------------------------


def exp(x):
    """Two whole numbers around 2^W e^x."""
    if x < 0:
        low, high = exp(min(-x, 2000))
        return ONE * ONE // high if x >= -2000 else 0, ONE * ONE // low + 1
    halvings = int(x).bit_length() + 8
    y = (x.numerator << W) // (x.denominator << halvings)  # below 2^-8
    term = total = ONE
    for k in range(1, 40):
        term = (term * y >> W) // k
        total += term
    low, high = total, total + 100  # 39 terms, each less than 2.1 units too small, the rounding of y, and the rest
    for _ in range(halvings):
        low, high = low * low >> W, (high * high >> W) + 1
    return low, high


def normal(z, up):
    """The normal distribution at z units, |z| <= 15, rounded up or down: 1/2 + density(z) sum of z^k/(1*3*5*...*k)."""
    more = int((z > 0) == up)  # 1 where the sum is rounded up, and 0 where down
    square, term, total, k = (z * z >> W) + more, abs(z), abs(z), 1
    while term > more:
        k += 2
        term = ((term * square >> W) + more) // k + more
        total += term
    scale = exp(Fraction(z * z, 2 << 2 * W))[1 - more] * ROOT[1 - more]  # 1/density
    part = (total + 2 * more) * ONE * ONE // scale + more  # all further terms sum to less than a unit
    return ONE // 2 + (part if z > 0 else -part)


def gaussian(mu, y):
    """Delta of a Gaussian pair at y, in units, rounded up: Phi(a) - e^y Phi(b)."""
    a, b = mu / 2 - y / mu, -mu / 2 - y / mu
    if a < -15:
        return exp(-a * a / 2)[1]  # Phi(a) < e^(-a^2/2)
    upper = ONE if a > 15 else normal(ceil(a * ONE), True)
    if b > -15:
        lower = exp(y)[0] * max(0, normal(floor(min(b, 15) * ONE), False)) >> W
    else:  # e^y density(b) = density(a); Phi(b) >= density(b) (x^3 + 5x)/(x^4 + 6x^2 + 3) for x = -b
        lower = floor(exp(-a * a / 2)[0] * ONE // ROOT[1] * (-(b**3) - 5 * b) / (b**4 + 6 * b * b + 3))
    return min(ONE, max(0, upper - lower))


# -- reports on a grid ------------------------------------------------------------------------------------------------


class Grid:
    """Distributions of losses k*grid under P: (the first k, masses in units of 2^-bits, mass of an infinite loss)."""

    def __init__(self, claim):
        self.h, self.bits = number(claim["grid"], 100, Fraction(1, 10**9)), whole(claim["bits"], 64, 192)
        self.tail, self.work = floor(number(claim["tail"], 1) * 2**self.bits), 0
        finite = [len(each["outcomes"]) for each in claim["charges"] if each["kind"] == "finite-pair"]
        bounds = [number(each["bound"], 100) for each in claim["charges"] if each["kind"] == "laplace"]
        cells = sum(finite) + 2 * sum(bounds) / self.h  # known before anything is computed
        need(cells <= MOST_CELLS, "a grid with too many cells")

    def report(self, charge):
        """The distribution of one report, and its largest finite loss."""
        bound, tau = number(charge.get("bound", "0"), 100), number(charge.get("tau", "1"), 1)
        slack, (low, high) = number(charge.get("slack", "0"), 1), exp(-bound)
        if charge["kind"] == "finite-pair":
            rows = [(number(p, 1), number(q, 1)) for p, q in map(list.copy, charge["outcomes"])]  # lists only
            need(common(rows) == [1, 1], "masses that do not sum to 1")
            cells = [(p * ONE, q * ONE) for p, q in rows if p and q]
            slack = 1 - common([row for row in rows if row[1]])[0]
        elif charge["kind"] == "laplace":
            cells = self.laplace(bound)
        else:  # the loss is bound or -bound with probability tau, and else 0
            up, down = (tau * (1 - slack) * ONE / (ONE + x) for x in (low, high))
            same = (1 - tau) * (1 - slack) * ONE
            cells = [(up * ONE, up * low), (down * high, down * ONE), (same, same)]
        law = Counter()
        for p, q in cells:
            law.update(self.split(ceil(p), floor(q)) if p else {})
        row = [-(-law[k] >> W - self.bits) for k in range(min(law), max(law) + 1)]
        return (min(law), row, ceil(slack * 2**self.bits)), bound or max(law) * self.h

    def laplace(self, bound):
        """Atoms at both ends, and between them the loss l with the density e^((l - bound)/2)/4 under P."""
        low, high = exp(-bound)
        yield from ((ONE >> 1, low >> 1), (high + 1 >> 1, ONE >> 1))
        for k in range(floor(-bound / self.h), ceil(bound / self.h)):
            start, end = max(-bound, k * self.h), min(bound, (k + 1) * self.h)
            p = exp((end - bound) / 2)[1] - exp((start - bound) / 2)[0]
            q = exp(-(start + bound) / 2)[0] - exp(-(end + bound) / 2)[1]
            yield p + 1 >> 1, q >> 1

    def split(self, p, q):
        """The parts of the mass p at two neighboring grid points, for an outcome of the masses p and q, in units."""
        n = MOST_CELLS // 2  # and k is the least with p <= q e^((k + 1) grid)
        k = bisect_left(range(-n, n), True, key=lambda k: p * ONE <= q * exp(min(2000, (k + 1) * self.h))[0]) - n
        need(k < n, "a grid with too many cells")
        upper = min(p, max(0, (p * ONE - q * exp(k * self.h)[0]) // (ONE - exp(-self.h)[1]) + 1))
        return {k: p - upper, k + 1: upper}

    # -- sums of independent losses -----------------------------------------------------------------------------------

    def add(self, a, b):
        """The sum of two independent losses. Polynomials are multiplied as two long whole numbers."""
        size, fewest = len(a[1]) + len(b[1]) - 1, min(len(a[1]), len(b[1]))
        self.work += size
        need(size <= 2 * MOST_CELLS and self.work <= MOST_WORK, "a grid that needs too much work")
        slot = (max(a[1]).bit_length() + max(b[1]).bit_length() + fewest.bit_length()) // 8 + 1
        one, two = (int.from_bytes(b"".join(x.to_bytes(slot, "little") for x in law[1]), "little") for law in (a, b))
        data = (one * two).to_bytes(slot * size, "little")
        row = [-(-int.from_bytes(data[i : i + slot], "little") >> self.bits) for i in range(0, slot * size, slot)]
        infinite = -(-(a[2] * (sum(b[1]) + b[2]) + sum(a[1]) * b[2]) >> self.bits)
        need(infinite + sum(row) <= 2 << self.bits, "too few bits")
        first, end, below, most = 0, size, 0, infinite + self.tail
        while end > 1 and infinite + row[end - 1] <= most:  # the largest losses become infinite
            end, infinite = end - 1, infinite + row[end - 1]
        while first < end - 1 and below + row[first] <= self.tail:  # the smallest losses move up
            first, below = first + 1, below + row[first]
        return a[0] + b[0] + first, [row[first] + below, *row[first + 1 : end]], infinite


def delta_of(claim):
    """An upper bound of the delta of the listed reports at the claimed epsilon."""
    grid, epsilon, charges = Grid(claim), number(claim["epsilon"], 10**6), claim["charges"]
    mu2 = sum(each["count"] * number(each["mu"], 100) ** 2 for each in charges if each["kind"] == "gaussian")
    reports = [(each["count"], *grid.report(each)) for each in charges if each["kind"] != "gaussian"]
    if not mu2 and sum(count * most for count, _, most in reports) <= epsilon:  # no finite loss is above epsilon
        return sum(Fraction(count * law[2], 1 << grid.bits) for count, law, _ in reports)
    total, mu = (0, [1 << grid.bits], 0), Fraction(isqrt(ceil(mu2 * 4**96)) + 1, 2**96)
    for count, law, _ in reports:
        while count:
            total = grid.add(total, law) if count & 1 else total
            law, count = grid.add(law, law) if count > 1 else law, count >> 1
    found, spare = total[2] << W, Fraction(grid.tail, len(total[1]))
    for k, mass in enumerate(total[1], total[0]):
        y = epsilon - k * grid.h
        found += mass * (ONE if mass <= spare else gaussian(mu, y) if mu2 else ONE - exp(min(y, 0))[0])
    return Fraction(found, ONE << grid.bits)


def check(data):
    """The certificate in these bytes, and an upper bound of its delta. Any exception means: not proved."""
    need(len(data) <= MOST_BYTES, "a file that is too large")
    claim = json.loads(data)
    # There is one way to write a certificate: no key twice, no space, no other form of a number.
    need(data == json.dumps(claim, sort_keys=True, separators=(",", ":")).encode() + b"\n", "not in canonical form")
    need(type(claim) is dict and sorted(claim) == KEYS, "not the keys of a certificate")
    need(claim["format"] == "ldp-budget total" and whole(claim["version"], 1, 1), "another format or version")
    need(type(claim["charges"]) is list and 0 < len(claim["charges"]) <= 256, "not a list of charges")
    for charge in claim["charges"]:
        need(sorted(charge) == sorted(["count", "kind", *KINDS[charge["kind"]]]), "not the keys of a charge")
        whole(charge["count"], 1, 10**9)
    found, allowed = delta_of(claim), number(claim["delta"], 1)
    need(found <= allowed < 1, f"not proved: at epsilon {claim['epsilon']} delta may be larger than {claim['delta']}")
    return claim, found


if __name__ == "__main__":
    try:
        with open(sys.argv[1], "rb") as file:
            proved, _ = check(file.read(MOST_BYTES + 1))
    except Exception as error:
        sys.exit(f"REFUSED: {error!r:.300}")
    title = f"PROVED: epsilon {proved['epsilon']} at delta {proved['delta']} for these reports of one user:"
    print(title, *map(json.dumps, proved["charges"]), sep="\n  ")
