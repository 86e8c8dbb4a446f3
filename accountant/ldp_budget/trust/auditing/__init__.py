"""Black-box audit: how much privacy a client certainly loses, seen from its reports alone.

An audit fixes two inputs x, x' and an event T, and then counts how often T holds among fresh reports of x and of x'.
From (ε, δ)-LDP follows P[T | x] ≤ e^ε P[T | x'] + δ, so with p_low below the first and q_up above the second
probability,

    ε ≥ ln( (p_low - δ) / q_up ).

Both are Clopper-Pearson ends, see `bounds`. Pair and event come from the channel that the mechanism declares, which
is not believed but only asked where to look (`declared`), or from a search over reports that are not used again
(`search`). Either way they are fixed before the reports that certify are drawn, so the bound exceeds the true loss
with probability at most 1 - confidence. The only assumption is that reports of different users are independent and
that users with the same value are alike.
"""

from __future__ import annotations

from ._report import Audit, audit

__all__ = ["Audit", "audit"]
