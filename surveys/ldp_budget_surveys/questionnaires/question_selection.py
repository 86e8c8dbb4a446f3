"""Selection of the questions that one respondent answers: k of m, by a keyed hash.

    seed = HMAC-SHA-256(key, "ldp-budget questions 1\n" + user)     key: the collection's fingerprint, 32 bytes
    rank of question i = HMAC-SHA-256(seed, byte i)                 i = 0 … m - 1

The respondent answers the k questions with the smallest ranks, compared as bytes. A respondent without a name, such as
a device without an invitation, draws 32 random bytes as the seed.

**Properties.** HMAC-SHA-256 is a pseudorandom function, so each of the subsets of k questions has the same probability.
A question is included with probability k/m, a pair of questions with k(k - 1)/(m(m - 1)). The choice depends on the
collection and the user's name only: not on the answers, and it is the same in every round. Respondents cannot choose
their questions where the server knows their names, because an inbox computes the choice too and refuses other reports.

**Limits.** The choice is public. A reader who knows a name can compute its questions, and can look for the report among
those of the same questions. So a report hides among about n/C(m, k) others, and no amplification by sampling is ever
claimed. Its guarantee does not rest on that: it holds for a reader who knows whose report it is.
"""

from __future__ import annotations

import hmac
import secrets

from ldp_budget._validation import canonical_text

MOST_QUESTIONS = 64
SEED_BYTES = 32
RULE = "hmac-sha256"
"""The name of the selection rule in a public definition."""

_DOMAIN = b"ldp-budget questions 1\n"


def seed_of(key: bytes, user: str) -> bytes:
    """Return the seed of a user for the collection with the fingerprint `key`."""
    return hmac.digest(key, _DOMAIN + canonical_text(user).encode("utf-8", "surrogatepass"), "sha256")


def random_seed() -> bytes:
    """Return the seed of a respondent without a name."""
    return secrets.token_bytes(SEED_BYTES)


def chosen_questions(seed: bytes, questions: int, ask: int) -> tuple[int, ...]:
    """Return the numbers of the `ask` questions, ascending, that the seed selects of `questions`."""
    ranks = sorted((hmac.digest(seed, bytes([place]), "sha256"), place) for place in range(questions))
    return tuple(sorted(place for _, place in ranks[:ask]))


def mask_of(places: tuple[int, ...]) -> int:
    """Return the questions as a bit mask: bit i is question i."""
    return sum(1 << place for place in places)
