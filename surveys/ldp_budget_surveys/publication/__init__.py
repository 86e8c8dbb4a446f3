"""Publications: a survey that its respondents can check.

A publication is a signed statement in a log. It commits to the totals of all accounts, the charges and the reports, and
states the maximum, the counts and the estimate. `docs/reference/formats/publication.md` specifies the files.
"""

from __future__ import annotations
