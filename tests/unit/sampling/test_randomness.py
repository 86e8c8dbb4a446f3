"""The draws are exact: first shown byte by byte with scripted streams, then by frequencies under fixed seeds.

Statistical limits are 4.5 standard deviations (two-sided probability 6.8e-6); the seeds are fixed, so a test
that passes always passes. Many figures at once are compared with one limit by their sum of squares, not one by one.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget.sampling import (
    ONE,
    ChaCha20Stream,
    GeneratorStream,
    SeededStream,
    Stream,
    SystemStream,
    bernoulli,
    choices,
    geometric,
    integers,
    normal,
    open_stream,
    subsets,
    threshold,
)
from ldp_budget.sampling import rng as streams
from ldp_budget.sampling.continuous import Deviates

SIGMAS = 4.5
HALF = ONE // 2


class Script(Stream):
    """Delivers the given bytes and fails when they run out."""

    def __init__(self, *parts: bytes | int) -> None:
        self.rest = b"".join(bytes([part]) if isinstance(part, int) else part for part in parts)

    def read(self, count: int) -> bytes:
        assert count <= len(self.rest), "the draw reads more than the script holds"
        result, self.rest = self.rest[:count], self.rest[count:]
        return result


class Recorder(Stream):
    """Keeps what another stream delivers, and the size of every read."""

    def __init__(self, source: Stream) -> None:
        self.source = source
        self.delivered: list[bytes] = []

    def read(self, count: int) -> bytes:
        self.delivered.append(bytes(self.source.read(count)))
        return self.delivered[-1]


class CoarseWords(SeededStream):
    """Words that carry one random bit each, at the top: comparisons tie half of the time."""

    def words(self, count: int) -> np.ndarray:
        return super().words(count) & np.uint64(HALF)


def low(value: int) -> bytes:
    """The seven lower bytes that follow a tie."""
    return value.to_bytes(7, "little")


def assert_frequencies(counts: Sequence[int] | np.ndarray, probabilities: Sequence[float] | np.ndarray) -> None:
    """Pearson's chi-square test of counts against their probabilities."""
    counts, probabilities = np.asarray(counts, float), np.asarray(probabilities, float)
    assert probabilities.sum() == pytest.approx(1)
    expected = counts.sum() * probabilities
    assert expected.min() >= 5, "too few draws for a chi-square test"
    assert_chi_square(float(((counts - expected) ** 2 / expected).sum()), counts.size - 1)


def assert_chi_square(value: float, freedom: int) -> None:
    """Neither too large nor too small, by Wilson and Hilferty's cube root."""
    spread = 2 / (9 * freedom)
    assert abs((value / freedom) ** (1 / 3) - (1 - spread)) < SIGMAS * math.sqrt(spread)


def assert_share(hits: int, draws: int, probability: float) -> None:
    assert abs(hits - draws * probability) < SIGMAS * math.sqrt(draws * probability * (1 - probability))


def normal_cdf(value: float) -> float:
    return math.erfc(-value / math.sqrt(2)) / 2


DRAWS: dict[str, Callable[[Stream], np.ndarray]] = {
    "bernoulli": lambda stream: bernoulli(stream, ONE // 3, 5000),
    "bernoulli_each": lambda stream: bernoulli(stream, np.arange(5000, dtype=np.uint64) << np.uint64(51), 5000),
    "integers": lambda stream: integers(stream, 1000, 5000),
    "integers_each": lambda stream: integers(stream, np.arange(1, 5001), 5000),
    "choices": lambda stream: choices(stream, [1, 3, 9], 5000),
    "subsets": lambda stream: subsets(stream, 20, 5, 500),
    "geometric": lambda stream: geometric(stream, ONE // 3, 5000),
    "normal": lambda stream: normal(stream, 20, 2000),
}


# Streams


def test_words_are_little_endian():
    assert Script(1, bytes(7), bytes(7), 2).words(2).tolist() == [1, 2 << 56]


def test_seeded_bytes_are_the_documented_ones_on_every_platform():
    assert SeededStream(0).read(8).hex() == "6e4ade1592824f19"
    assert SeededStream(b"0").read(8).hex() == "14c732dc2009cd97"


@pytest.mark.parametrize("cuts", [(1, 2, 3), (65536, 1), (65535, 2, 70000), (0, 200000)])
def test_seeded_bytes_do_not_depend_on_how_they_are_read(cuts):
    whole = SeededStream(7).read(sum(cuts))
    stream = SeededStream(7)
    assert b"".join(stream.read(cut) for cut in cuts) == whole


def test_predictable_streams_are_marked():
    for stream in (SeededStream(1), GeneratorStream(np.random.default_rng(1))):
        assert "predictable, for tests only" in repr(stream)
        assert "for tests only" in type(stream).__doc__


def test_chacha20_delivers_the_keystream_of_rfc_8439(monkeypatch):
    pytest.importorskip("cryptography")
    monkeypatch.setattr(streams.os, "urandom", bytes)
    # RFC 8439, appendix A.1, test vectors 1 and 2: zero key, zero nonce, blocks 0 and 1.
    stream = ChaCha20Stream()
    assert stream.read(16).hex() == "76b8e0ada0f13d90405d6ae55386bd28"
    stream.read(48)
    assert stream.read(16).hex() == "9f07e7be5551387a98ba977c732d080d"


def test_chacha20_reads_across_blocks(monkeypatch):
    pytest.importorskip("cryptography")
    monkeypatch.setattr(streams.os, "urandom", bytes)
    large = 3 * streams.BLOCK_BYTES + 5
    whole, stream = ChaCha20Stream().read(large), ChaCha20Stream()
    assert len(whole) == large
    assert stream.read(100) + stream.read(large - 100) == whole


def test_chacha20_changes_its_key_before_the_counter_ends(monkeypatch):
    pytest.importorskip("cryptography")
    keys = []
    monkeypatch.setattr(streams.os, "urandom", lambda count: keys.append(bytes([len(keys)] * count)) or keys[-1])
    monkeypatch.setattr(streams, "_CHACHA20_LIMIT", 100)
    stream = ChaCha20Stream()
    assert stream.read(64) != stream.read(64)
    assert len(keys) == 2


@pytest.mark.parametrize("kind", [SystemStream, ChaCha20Stream])
def test_cryptographic_streams_never_repeat(kind):
    if kind is ChaCha20Stream:
        pytest.importorskip("cryptography")
    stream = kind()
    reads = [stream.read(32), stream.read(32), kind().read(32)]
    assert len(set(reads)) == 3
    assert {len(read) for read in reads} == {32}


def test_open_stream_prefers_chacha20():
    pytest.importorskip("cryptography")
    assert isinstance(open_stream(), ChaCha20Stream)


def test_open_stream_without_cryptography_uses_the_system(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    assert isinstance(open_stream(), SystemStream)


def test_open_stream_without_chacha20_uses_the_system(monkeypatch):
    exceptions = pytest.importorskip("cryptography.exceptions")

    def unsupported() -> Stream:
        raise exceptions.UnsupportedAlgorithm("no ChaCha20 here")

    monkeypatch.setattr(streams, "ChaCha20Stream", unsupported)
    assert isinstance(open_stream(), SystemStream)


def test_open_stream_takes_streams_seeds_and_generators():
    stream = SystemStream()
    assert open_stream(stream) is stream
    assert open_stream(5).read(9) == SeededStream(5).read(9)
    assert open_stream(np.random.default_rng(5)).read(9) == np.random.default_rng(5).bytes(9)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize(
    "source", [SeededStream(8), GeneratorStream(np.random.default_rng(8)), SystemStream()], ids=type
)
def test_draw_depends_on_the_bytes_only(name, source):
    recorder = Recorder(source)
    first = DRAWS[name](recorder)
    replay = Script(*recorder.delivered)
    np.testing.assert_array_equal(DRAWS[name](replay), first)
    assert replay.rest == b""


def test_draws_under_a_seed_are_pinned():
    assert np.flatnonzero(bernoulli(SeededStream(1), ONE // 5, 30)).tolist() == [0, 7, 9, 15, 20]
    assert integers(SeededStream(1), 1000, 6).tolist() == [290, 493, 118, 148, 596, 340]
    assert subsets(SeededStream(1), 9, 3, 2).tolist() == [[1, 2, 5], [2, 4, 6]]
    assert geometric(SeededStream(1), HALF, 8).tolist() == [4, 0, 0, 4, 6, 0, 0, 1]
    assert normal(SeededStream(1), 8, 6).tolist() == [-220, -145, -504, 244, 124, 267]


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(
    "draw",
    [
        lambda stream: bernoulli(stream, ONE // 3, 3_000_000),
        lambda stream: integers(stream, 2**40, 400_000),
        lambda stream: subsets(stream, 100, 10, 40_000),
        lambda stream: geometric(stream, HALF, 3_000_000),
        lambda stream: normal(stream, 20, 300_000),
    ],
)
def test_large_draws_are_made_in_blocks(draw):
    recorder = Recorder(GeneratorStream(np.random.default_rng(1)))
    draw(recorder)
    assert max(map(len, recorder.delivered)) <= streams.BLOCK_BYTES


def test_stream_that_delivers_too_little_raises():
    class Short(Stream):
        def read(self, count: int) -> bytes:
            return bytes(1)

    for draw in DRAWS.values():
        with pytest.raises(ValueError, match="buffer"):
            draw(Short())


# threshold


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize(
    ("probability", "expected"),
    [(Decimal(0), 0), (Decimal("0.5"), HALF), (Fraction(3, 8), 3 << 61), (Decimal(1), ONE), (Fraction(1, ONE), 1)],
)
def test_exact_thresholds_are_not_rounded(probability, expected, up):
    assert threshold(probability, up=up) == expected


def test_thresholds_round_in_the_direction_asked_for():
    assert threshold(Fraction(1, 3), up=False) == ONE // 3
    assert threshold(Fraction(1, 3), up=True) == ONE // 3 + 1
    assert threshold(Decimal("1e-40"), up=False) == 0
    assert threshold(Decimal("1e-40"), up=True) == 1
    assert threshold(1 - Decimal("1e-25"), up=False) == ONE - 1
    assert threshold(1 - Decimal("1e-25"), up=True) == ONE


probabilities = st.fractions(0, 1) | st.decimals(0, 1, allow_nan=False)


@pytest.mark.slow
@given(probabilities)
def test_threshold_is_the_nearest_integer_on_its_side(probability):
    exact = Fraction(probability) * ONE
    below, above = threshold(probability, up=False), threshold(probability, up=True)
    assert below <= exact <= above
    assert above - below == (exact.denominator != 1)


@pytest.mark.slow
@given(st.fractions(0, 1), st.booleans())
def test_threshold_rounded_up_is_the_complement_rounded_down(probability, up):
    assert threshold(probability, up=up) + threshold(1 - probability, up=not up) == ONE


@pytest.mark.slow
@given(probabilities, probabilities, st.booleans())
def test_thresholds_are_monotone(one, other, up):
    less, more = sorted([Fraction(one), Fraction(other)])
    assert threshold(less, up=up) <= threshold(more, up=up)


# bernoulli


def test_bernoulli_top_byte_decides_unless_it_ties():
    limit = (0x80 << 56) + 5
    stream = Script(0x7F, 0x81, 0x00, 0xFF)
    assert bernoulli(stream, limit, 4).tolist() == [True, False, True, False]
    assert stream.rest == b""


@pytest.mark.parametrize("limit", [1, (0x80 << 56) + 5, (0x12 << 56) + 0xFEDCBA98765432, ONE - 1])
def test_bernoulli_tie_is_decided_by_seven_more_bytes(limit):
    top, rest = limit >> 56, limit & (2**56 - 1)
    ties = [rest - 1, rest, 0, 2**56 - 1]
    expected = [tie < rest for tie in ties]
    stream = Script(*[top] * 4, *map(low, ties))
    assert bernoulli(stream, limit, 4).tolist() == expected
    each = Script(*[top] * 4, *map(low, ties))
    assert bernoulli(each, np.full(4, limit, np.uint64), 4).tolist() == expected
    assert stream.rest == each.rest == b""


def test_bernoulli_lower_bytes_are_little_endian():
    assert bernoulli(Script(0, 2, bytes(6)), 3, 1).tolist() == [True]
    assert bernoulli(Script(0, bytes(6), 2), 3, 1).tolist() == [False]


@pytest.mark.parametrize("top", [1, 77, 128, 255])
def test_bernoulli_over_all_bytes_has_the_exact_probability(top):
    every_byte = bytes(range(256))
    assert bernoulli(Script(every_byte), top << 56, 256).sum() == top
    # The one tie in 256 is won by the lower words below that of the threshold.
    assert bernoulli(Script(every_byte, low(9)), (top << 56) + 10, 256).sum() == top + 1
    assert bernoulli(Script(every_byte, low(10)), (top << 56) + 10, 256).sum() == top


def test_bernoulli_certain_bits_read_nothing():
    assert bernoulli(Script(), ONE, 3).tolist() == [True] * 3
    assert bernoulli(Script(), 0, 3).tolist() == [False] * 3


def test_bernoulli_accepts_a_threshold_per_draw():
    limits = np.array([0, 1 << 56, 0xFF << 56, 3], np.uint64)
    stream = Script(0, 0, 0xFE, 0, low(0), low(2))
    assert bernoulli(stream, limits, 4).tolist() == [False, True, True, True]
    assert stream.rest == b""


# integers


def test_integers_at_or_above_the_bound_are_drawn_again():
    assert integers(Script(199, 200, 0, 255, 7), 200, 3).tolist() == [199, 0, 7]
    assert integers(Script(199, 200, 0, 255, 7), np.full(3, 200), 3).tolist() == [199, 7, 0]


def test_integers_use_only_the_bits_of_the_bound():
    assert integers(Script(0b11101, 0b00011), 6, 2).tolist() == [5, 3]
    assert integers(Script(0x2A, 0xFF, 0x01, 0xFE), 300, 2).tolist() == [298, 1]


@pytest.mark.parametrize("bound", [1, 2, 3, 100, 129, 200, 255, 256])
def test_integers_over_all_bytes_are_exactly_uniform(bound):
    span = 1 << (bound - 1).bit_length()
    each = 256 // span
    stream = Script(bytes(range(255, -1, -1)), bytes(512))
    drawn = integers(stream, bound, each * bound)
    assert np.bincount(drawn, minlength=bound).tolist() == [each] * bound


def test_integers_with_the_largest_bound_take_every_word_of_63_bits():
    words = [2**63 - 1, 2**64 - 1, 2**63, 5]
    script = b"".join(word.to_bytes(8, "little") for word in words)
    expected = [2**63 - 1, 2**63 - 1, 0, 5]
    assert integers(Script(script), 2**63, 4).tolist() == expected
    assert integers(Script(script), np.full(4, 2**63, np.uint64), 4).tolist() == expected


def test_integers_accept_a_bound_per_draw():
    bounds = np.tile(np.array([1, 2, 5, 300, 2**40]), 50_000)
    drawn = integers(SeededStream(33), bounds, bounds.size)
    assert (drawn < bounds).all()
    assert (drawn[::5] == 0).all()
    assert_frequencies(np.bincount(drawn[1::5]), np.full(2, 1 / 2))
    assert_frequencies(np.bincount(drawn[2::5]), np.full(5, 1 / 5))
    assert_frequencies(np.bincount(drawn[3::5]), np.full(300, 1 / 300))
    assert_frequencies(np.bincount(drawn[4::5] >> 37), np.full(8, 1 / 8))


def test_integers_keep_all_bits_of_each_bound():
    exponents = range(63)
    words = b"".join(((1 << 63) | ((1 << exponent) - 1)).to_bytes(8, "little") for exponent in exponents)
    bounds = np.array([(1 << exponent) + 1 for exponent in exponents])
    assert integers(Script(words), bounds, 63).tolist() == [(1 << exponent) - 1 for exponent in exponents]


# choices


def test_choices_share_the_words_exactly_by_weight():
    # Weights 1, 0, 4, 3: of the eight words of three bits, one, none, four and three.
    assert choices(Script(bytes(range(8))), [1, 1, 5, 8], 8).tolist() == [0, 2, 2, 2, 2, 3, 3, 3]


def test_choices_take_totals_up_to_2_to_the_63():
    near, last = 2**63 - 2**10, 2**63
    words = [0, near - 1, near, last - 1]
    script = b"".join(word.to_bytes(8, "little") for word in words)
    assert choices(Script(script), [near, last], 4).tolist() == [0, 0, 1, 1]
    assert choices(Script(script), np.array([near, last], np.uint64), 4).tolist() == [0, 0, 1, 1]


# subsets


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(("population", "size"), [(5, 2), (5, 3), (5, 1), (5, 4), (6, 3), (9, 2)])
def test_subsets_are_equally_likely(population, size):
    rows = subsets(SeededStream(51), population, size, 200_000)
    assert rows.shape == (200_000, size)
    codes = (1 << rows).sum(axis=1)
    possible = [sum(1 << member for member in members) for members in itertools.combinations(range(population), size)]
    counts = [np.count_nonzero(codes == code) for code in possible]
    assert sum(counts) == len(rows)
    assert_frequencies(counts, np.full(len(possible), 1 / len(possible)))


@pytest.mark.parametrize(
    ("population", "size", "count"),
    [
        (1, 1, 5),
        (1, 0, 5),
        (128, 34, 5000),
        (128, 120, 5000),
        (10**6, 3, 5000),
        (10**5, 5 * 10**4, 3),
        (10**5, 10**5, 2),
    ],
)
def test_subsets_are_ascending_and_within_the_population(population, size, count):
    rows = subsets(SeededStream(52), population, size, count)
    assert rows.shape == (count, size)
    assert rows.dtype == np.int64
    assert (np.diff(rows, axis=1) > 0).all()
    assert ((rows >= 0) & (rows < population)).all()


def test_subsets_of_large_size_have_equally_frequent_members():
    rows = subsets(SeededStream(53), 128, 34, 20_000)
    spread = 34 / 128 * (1 - 34 / 128)
    excess = (np.bincount(rows.ravel(), minlength=128) - 20_000 * 34 / 128) / math.sqrt(20_000 * spread)
    # The counts add up, which takes one degree of freedom and spreads it over the other 127.
    assert_chi_square(float((excess**2).sum()) * 127 / 128, 127)


def test_subsets_replace_repeated_members():
    assert subsets(Script(3, 3, 3, 0), 4, 2, 1).tolist() == [[0, 3]]


# geometric


def test_geometric_count_ends_with_its_first_failure():
    # One byte for each count that is still alive: 0 continues, 255 ends.
    stream = Script(0, 255, 0, 0, 255, 255)
    assert geometric(stream, HALF, 3).tolist() == [2, 0, 1]
    assert stream.rest == b""


def test_geometric_without_successes_is_zero():
    assert geometric(Script(), 0, 4).tolist() == [0] * 4


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("success", [Fraction(1, 10), Fraction(3, 5), Fraction(95, 100)])
def test_geometric_frequencies_and_tail_match(success):
    p, draws = float(success), 10**6
    drawn = geometric(SeededStream(61), threshold(success, up=False), draws)
    last = int(math.log(100 / draws) / math.log(p))
    counts = np.bincount(np.minimum(drawn, last))
    assert_frequencies(counts, [(1 - p) * p**c for c in range(last)] + [p**last])
    assert abs(drawn.mean() - p / (1 - p)) < SIGMAS * math.sqrt(p / draws) / (1 - p)


# normal


@pytest.fixture(scope="module")
def deviates() -> np.ndarray:
    return normal(SeededStream(71), 40, 10**6) / 2**40


@pytest.mark.exhaustive
def test_normal_moments_match(deviates):
    for power, (mean, variance) in {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96)}.items():
        assert abs((deviates**power).mean() - mean) < SIGMAS * math.sqrt(variance / deviates.size)


@pytest.mark.exhaustive
def test_normal_distribution_function_matches(deviates):
    ordered = np.sort(deviates)
    cdf = np.array([normal_cdf(value) for value in ordered])
    ranks = np.arange(ordered.size + 1) / ordered.size
    distance = max((ranks[1:] - cdf).max(), (cdf - ranks[:-1]).max())
    # Kolmogorov: P(sqrt(n) * distance > c) is close to 2 exp(-2 c**2), 6.8e-6 at 2.51.
    assert math.sqrt(ordered.size) * distance < 2.51


@pytest.mark.exhaustive
@pytest.mark.parametrize("limit", [2, 3, 4])
def test_normal_tails_match(deviates, limit):
    for tail in (deviates > limit, deviates < -limit):
        assert_share(tail.sum(), deviates.size, normal_cdf(-limit))


@pytest.mark.slow
def test_normal_draws_are_independent(deviates):
    for lag in (1, 2, 3):
        for first, second in ((deviates[lag:], deviates[:-lag]), (deviates[lag:] ** 2 - 1, deviates[:-lag] ** 2 - 1)):
            assert abs((first * second).sum()) < SIGMAS * math.sqrt((first**2).sum() * (second**2).sum() / first.size)


@pytest.mark.slow
def test_normal_fractional_digits_below_the_first_are_uniform(deviates):
    places = (deviates * 2**40).astype(np.int64) & 0xFF
    assert_frequencies(np.bincount(places), np.full(256, 1 / 256))


@pytest.mark.parametrize("bits", [0, 1, 8, 39])
def test_normal_with_fewer_bits_is_the_floor(bits):
    exact = normal(SeededStream(72), 40, 10_000)
    np.testing.assert_array_equal(normal(SeededStream(72), bits, 10_000), exact >> (40 - bits))


def test_normal_deviate_uses_the_same_digits_in_every_comparison():
    def word(value: int) -> bytes:
        return value.to_bytes(8, "little")

    slot = np.array([0])
    one, two, three = Deviates(1), Deviates(1), Deviates(1)
    for deviate in (one, two, three):
        deviate.draw(Script(word(5)), slot)
    # Next digits: 7 and 7, then 1 for the first deviate and 2 for the second.
    assert one.less(Script(word(7), word(7), word(1), word(2)), two, slot).tolist() == [True]
    assert two.less(Script(), one, slot).tolist() == [False]
    # The third needs digits of its own only; it ends below the second.
    assert three.less(Script(word(7), word(0)), two, slot).tolist() == [True]
    assert three.less(Script(), one, slot).tolist() == [True]


@pytest.mark.exhaustive
@pytest.mark.parametrize("count", [25_000, pytest.param(60_000, marks=pytest.mark.exhaustive)])
def test_normal_ties_between_digits_keep_the_distribution_exact(count):
    """With one bit a word, half of all comparisons tie; the distribution must not notice."""
    drawn = normal(CoarseWords(73), 1, count)
    cells = range(-6, 6)
    counts = np.bincount(np.clip(drawn, cells[0], cells[-1]) - cells[0])
    cdf = [0, *(normal_cdf(cell / 2) for cell in cells[1:]), 1]
    assert_frequencies(counts, np.diff(cdf))
