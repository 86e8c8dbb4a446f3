"""From answers to report files, and from charged users to released reports."""

LEAST_REPORTS = 20
"""By default, the service and `ldp-budget inbox seal` take reports in whole groups of so many."""
