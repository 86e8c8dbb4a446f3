"""Sample sizes: how many respondents give a margin of error."""

from __future__ import annotations

from bisect import bisect_left

from .._validation import check_instance, check_share
from ..sdk.frequency_oracle import FrequencyMechanism

_MOST_RESPONDENTS = 10**15
_Z = 1.959963984540054
"""Of a 95 % confidence interval."""


def respondents_for(mechanism: FrequencyMechanism, margin: float) -> int | None:
    """Return the least number of users for which every share has that margin of error, at 95 % confidence.

    The margin is that of the mechanism's noise, at the worst answer and share: 1.96 times the largest standard error.
    It leaves out that the users may be a sample of others. None if no number of users is enough, as for a sketch with
    collisions.

    Parameters:
        mechanism: the mechanism of the reports.
        margin: half the width of the interval of a share, above 0 and below 1.

    Raises:
        InvalidParameter: `mechanism` is not a frequency mechanism, or `margin` is not between 0 and 1.
    """
    check_instance("mechanism", mechanism, FrequencyMechanism, "a frequency mechanism")
    check_share("margin", margin)

    def enough(users: int) -> bool:
        return _Z * mechanism.share_errors(users)[0] <= margin

    if not enough(_MOST_RESPONDENTS):
        return None
    return bisect_left(range(1, _MOST_RESPONDENTS), True, key=enough) + 1
