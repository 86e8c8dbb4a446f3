"""How sure one can be that a mechanism keeps its guarantee. Who found out, and when, is kept by `certificates`."""

from __future__ import annotations

EXACT = "exact"
"""Proved from the mechanism's channel or density, and its client is held to that by more than samples: of our own, by
the tests of every release. No check of a program that cannot be read comes to this."""
AUDITED = "audited"
"""Nothing speaks against it in what its client was seen to send."""
NO = "no"
"""Unknown, failed, or changed since it was checked."""

LEVELS = (NO, AUDITED, EXACT)
"""All of them, the weakest first; ledgers store a level by its place here."""
