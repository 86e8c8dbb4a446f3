"""Texts for respondents: plain strings, so that every language writes and hashes them alike."""

from __future__ import annotations

from ldp_budget import mechanism
from ldp_budget.guarantees import Memoised
from ldp_budget.registry.public_definition import guarantee_in_words


def test_public_guarantee_states_only_bounded_figures() -> None:
    """However many reports: of all there can be where that is bounded, else of those of one answer."""
    rappor = mechanism("rappor")(bits=32, hashes=2, cohorts=8, f="0.5", p="0.5", q="0.75")
    assert "However many reports of one and the same answer are sent" in guarantee_in_words(rappor.guarantee)["words"]
    bounded = Memoised(("1", "2"), "2", values=3)
    assert (
        "However many reports are sent, together they are at most 404 times" in guarantee_in_words(bounded)["words"]
    )
