"""The operators of client programs: a closed set, each defined in one sentence.

The sentences are the definition: `docs/reference/client-programs.md` is made of them, and a client in another
language is written from it. A vector is a list of whole numbers; bits are 0 and 1. Divisions round down.
"""

from __future__ import annotations

from typing import NamedTuple


class Operator(NamedTuple):
    """`kind`: draw (reads the stream), memo (reads the secret), hash, each (number by number) or whole."""

    kind: str
    arguments: tuple[str, ...] | None
    """What it takes; None for any number of whole numbers."""
    sentence: str
    labelled: bool = False
    """Whether its first argument is a text, and not an expression."""


def _draw(arguments: str, sentence: str) -> Operator:
    return Operator("draw", tuple(arguments.split()), sentence)


def _memo(arguments: str, sentence: str) -> Operator:
    return Operator("memo", ("label", *arguments.split()), sentence, labelled=True)


def _each(arguments: str, sentence: str) -> Operator:
    return Operator("each", tuple(arguments.split()), sentence)


def _whole(arguments: str, sentence: str) -> Operator:
    return Operator("whole", tuple(arguments.split()), sentence)


DRAWS = ("draw", "memo")
"""Kinds that stand alone at the top of a step."""

OPERATORS = {
    # from the stream
    "bit": _draw(
        "t",
        "One with probability t/2**64: nothing is read for t = 0 and t = 2**64, else one byte b, which is compared "
        "with the top byte of t, and where they are equal and the lower 56 bits of t are not all zero seven more, "
        "little-endian, which are compared with those.",
    ),
    "bits": _draw(
        "t n",
        "A vector of n bits as by `bit`: n bytes are read first, then seven for each tie, in order; of more than "
        "2**18 bits so many at a time, and then the next.",
    ),
    "bit_at": _draw(
        "t",
        "The same for a t < 2**64 that was worked out: one byte is always read, and seven more at every tie.",
    ),
    "bits_each": _draw("vector", "A bit, as by `bit`, for each threshold of a vector, one after the other."),
    "below": _draw(
        "b",
        "A whole number, uniform below b <= 2**63: words of 1, 2, 4 or 8 bytes, the fewest that hold b - 1, "
        "little-endian, are read one by one and cut to as many low bits as b - 1 has, until one is below b; "
        "for b = 1 one byte is read too.",
    ),
    "belows": _draw(
        "b n",
        "A vector of n such numbers, in the order in which they were drawn: as many words as are still missing are "
        "read together, and those below b are appended.",
    ),
    "belows_from": _draw("b n", "A vector of n numbers, the i-th (from 0) by `below` b + i."),
    "subset": _draw(
        "m n",
        "n different numbers below m, ascending: where 2n <= m, `belows` m n, sorted, and as long as some equal the "
        "one before, these are drawn again by one `belows` and all are sorted; else the numbers that `subset` m "
        "(m - n) leaves out.",
    ),
    "shuffle": _draw(
        "vector",
        "The vector in uniform order: from the last place down to the second, each is swapped with the place that "
        "`below` (place + 1) draws.",
    ),
    "geometric": _draw("t", "How many bits, as by `bit` t < 2**64, are one before the first that is zero."),
    "laplace": _draw(
        "k",
        "The whole part of 2**k times a Laplace deviate, k <= 40: its exponential magnitude by von Neumann's "
        "comparisons of 8-byte words, then a `bit` 2**63 that turns x into -x - 1; see [the stream](#the-stream).",
    ),
    "normal": _draw(
        "k",
        "The whole part of 2**k times a normal deviate, k <= 40, by Karney's Algorithm N, ten proposals side by "
        "side, of which the first that is accepted counts; see [the stream](#the-stream).",
    ),
    # from the secret
    "kept_bits": _memo(
        "v t n", "A vector of n bits: the i-th is 1 where the i-th word of the secret for v is below t."
    ),
    "kept_belows": _memo(
        "v b n", "A vector of n numbers: the i-th word (from 0) of the secret for v modulo b + i, b from 1 to 2**63."
    ),
    "kept_top": _memo("v k", "The k highest bits of the first word of the secret for v."),
    # public hashes
    "polynomial": Operator(
        "hash",
        ("seed", "j", "v", "m"),
        "h_j(v) = floor(m·y / 2**61) with y = (a·x + b)·x + c modulo P = 2**61 - 1, where x and (a, b, c) are words "
        "modulo P: under the key BLAKE2b(seed as text; 32 bytes, personalised `ldp-budget seed`), x is BLAKE2b(v as "
        "text; 8 bytes, personalised `value`) and (a, b, c) BLAKE2b(j as 8 bytes; 24 bytes, personalised "
        "`coefficients`).",
        labelled=True,
    ),
    "bloom": Operator(
        "hash",
        ("seed", "j", "v", "m", "n"),
        "A vector of m bits, 1 at each of the first n words, modulo m, of SHAKE-128 over the text "
        "`ldp-budget bloom 1:` seed `:` j `:` v.",
        labelled=True,
    ),
    # number by number, also over vectors of one length; a number beside a vector stands for each place
    "add": _each("a b", "a + b."),
    "sub": _each("a b", "a - b."),
    "mul": _each("a b", "a·b."),
    "div": _each("a b", "a divided by b, rounded down."),
    "mod": _each("a b", "What that division leaves, from 0 to b - 1."),
    "shr": _each("a k", "a divided by 2**k, rounded down."),
    "shl": _each("a k", "a·2**k."),
    "and": _each("a b", "The bits that both have, of numbers >= 0."),
    "xor": _each("a b", "The bits that one of them has alone, of numbers >= 0."),
    "min": _each("a b", "The smaller one."),
    "max": _each("a b", "The larger one."),
    "lt": _each("a b", "1 if a < b, else 0."),
    "ge": _each("a b", "1 if a >= b, else 0."),
    "eq": _each("a b", "1 if a = b, else 0."),
    "where": _each("c a b", "a where c is 1, b where it is 0."),
    "parity": _each("a", "1 if the number of ones in a >= 0 is odd, else 0."),
    # with whole vectors
    "list": Operator("whole", None, "The vector of its arguments."),
    "at": _whole("vector i", "Entry i of a vector, from 0, or row i of a table."),
    "put": _whole("vector i a", "The vector with a at place i."),
    "sort": _whole("vector", "The vector in ascending order."),
    "first": _whole("bits", "The place of the first 1, and 0 where there is none."),
    "rank": _whole("vector a", "How many entries of an ascending vector are <= a."),
    "onehot": _whole("i n", "n zeros with a 1 at place i."),
    "join": _whole("bits", "The number whose bits these are, the lowest first."),
    "floyd": _whole(
        "vector b",
        "The vector in which, from the left, an entry that stands before it already becomes b - 1 + its place.",
    ),
}
