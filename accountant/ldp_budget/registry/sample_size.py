"""Sample sizes: how many respondents give a margin of error."""

from __future__ import annotations

from .._validation import check_instance, check_share
from ..sdk.frequency_oracle import FrequencyMechanism
from .margins import Precision, least_respondents


def respondents_for(mechanism: FrequencyMechanism, margin: float) -> int | None:
    """Return the least number of users for which every share has that margin of error, at 95 % confidence.

    The margin is about these users: the mechanism's noise and collisions, at the worst answer and share. It leaves out that
    the users may be a sample of others. None if no number of users is enough, as for a sketch with collisions.

    Parameters:
        mechanism: the mechanism of the reports.
        margin: half the width of the interval of a share, above 0 and below 1.

    Raises:
        InvalidParameter: `mechanism` is not a frequency mechanism, or `margin` is not between 0 and 1.
    """
    check_instance("mechanism", mechanism, FrequencyMechanism, "a frequency mechanism")
    check_share("margin", margin)
    precision = Precision.of(mechanism)
    return least_respondents(lambda users: precision.margin(users, (1, 1)) <= margin)
