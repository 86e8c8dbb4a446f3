"""Collections whose answers are names or words that a client in another language may read in its own way, and such answers."""

from __future__ import annotations

from client_cases import CASES
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.public_definition import About

PARTY = Collection(
    "party",
    CASES["sue"],
    ("democrat", "republican", "무소속", "other", "none of “these” 😀\x7f"),
    About("A poll", "Which \\ party?\n", languages={"ko": {"title": "여론 조사"}}),
)
WORDS = Collection("words", CASES["cms of any text"])
NAMED: list[tuple[Collection, list[str]]] = [
    (PARTY, [*(PARTY.categories or ())]),
    (WORDS, ["서울", "naïve 😀", "007", "7", "-0", "+7", "٣", "7\n"]),
    (Collection("kept-words", CASES["rappor of any text"]), ["서울", "x", "0", "999999999999"]),
]
UNREADABLE_WORDS = ["", "-7", "9223372036854775808", "12345678901234567890123"]
"""Texts that are no words."""
