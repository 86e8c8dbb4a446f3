"""The domain of a mechanism, for each family of mechanisms."""

from __future__ import annotations

import hashlib
import math
from decimal import Decimal
from typing import Any

import pytest

import ldp_budget
from ldp_budget import InvalidParameter, NotSupported, OutsideDomain
from ldp_budget.registry.collections import Collection
from ldp_budget.sdk.domain import Categories, Interval
from ldp_budget.sdk.frequency_oracle import choice_bits
from ldp_budget.sdk.parameters import real

FILTER = {"bits": 16, "hashes": 2, "cohorts": 4, "epsilon": 1, "epsilon_lifetime": 3}
SKETCH = {"epsilon": 1, "hashes": 8, "width": 16}


def made(name: str, **target: Any) -> ldp_budget.Mechanism:
    return ldp_budget.mechanism(name).calibrate(**target)


@pytest.mark.parametrize(
    ("mechanism", "domain"),
    [
        (made("oue", epsilon=1, domain_size=7), Categories(7)),
        (made("randomized-response", epsilon=1), Categories(2)),
        (made("d-bit-flip", epsilon=1, buckets=9, bits=2), Categories(9)),
        (made("cms", **SKETCH, domain_size=30), Categories(30)),
        (made("cms", **SKETCH), Categories(2**63, listed=False)),
        (made("rappor", **FILTER, domain_size=30), Categories(30)),
        (made("rappor", **FILTER), Categories(10**12, listed=False)),
        (made("laplace", epsilon=1, lower="0.5", upper=3), Interval(Decimal("0.5"), Decimal(3))),
        (made("one-bit-mean", epsilon=1, maximum=77), Interval(Decimal(0), Decimal(77))),
        (made("laplace", epsilon=1), None),
    ],
    ids=repr,
)
def test_domain_of_each_family_matches(mechanism: ldp_budget.Mechanism, domain: object) -> None:
    assert mechanism.domain == domain


def test_domain_of_a_mechanism_without_a_client_is_none() -> None:
    class Priced(ldp_budget.Mechanism):
        name = "priced"
        epsilon = real("privacy loss of one report", above=0)

    assert Priced(epsilon=1).domain is None
    with pytest.raises(NotSupported, match="no client"):
        Priced(epsilon=1).read_values(["1"])
    with pytest.raises(NotSupported, match="lower and upper"):
        made("laplace", epsilon=1).read_values(["1"])


def test_domain_in_words_describes_the_valid_answers() -> None:
    assert str(Categories(7)) == "whole numbers from 0 to 6"
    assert str(Interval(Decimal("-0.5"), Decimal(2))) == "numbers from -0.5 to 2"


def test_domain_reads_text_as_its_answers() -> None:
    assert Categories(3).read(["2", " 0 "]).tolist() == [2, 0]
    assert Interval(Decimal(0), Decimal(2)).read(["2", "5e-1"]).tolist() == [2.0, 0.5]
    for domain, text in ((Categories(3), "3"), (Categories(3), "1.0"), (Interval(Decimal(0), Decimal(2)), "2.1")):
        with pytest.raises(OutsideDomain, match="from 0 to 2"):
            domain.read(["1", text])


def test_domain_of_listed_answers_accepts_names() -> None:
    assert Collection("poll", made("rappor", **FILTER, domain_size=2), ("yes", "no")).categories == ("yes", "no")
    with pytest.raises(InvalidParameter, match="are whole numbers from 0 to 999999999999"):
        Collection("poll", made("rappor", **FILTER), ("yes", "no"))


def test_domain_reads_a_text_as_one_number_in_every_client() -> None:
    free = Categories(2**63, listed=False)
    assert free.read(["0", "12", "a"]).tolist() == [0, 12, 1569561202733858467]
    digest = hashlib.blake2b(b"a", digest_size=8, person=b"ldp-budget text").digest()
    assert free.number_of("a") == int.from_bytes(digest, "little") % 2**63
    assert len({free.number_of(text) for text in ("7", "07", "+7", "7.0", "seven", "Seven")}) == 6
    assert free.number_of(" 7\u200b") == 7
    assert free.check(["a", "12"]).tolist() == [free.number_of("a"), 12]
    for bad in ("", "-1", str(2**63)):
        with pytest.raises(OutsideDomain, match="at position 1"):
            free.read(["1", bad])
    with pytest.raises(OutsideDomain):
        Categories(3).check(["1"])


def test_choice_bits_number_every_set_and_every_sequence() -> None:
    for size in range(1, 33):
        for chosen in range(size + 1):
            assert choice_bits(size, chosen) == (math.comb(size, chosen) - 1).bit_length()
            assert choice_bits(size, chosen, ordered=True) == (math.perm(size, chosen) - 1).bit_length()
