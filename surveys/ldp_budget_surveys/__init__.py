"""Surveys: designs and weights, planning, the pages of a report, and publication, on top of the accountant.

`designs` estimates for a designed sample, `pages` writes what a reader of a survey sees, and `publication` lets
respondents check it. Planning predicts margins before anyone is asked.
It imports `ldp_budget`, and for its commands `ldp_budget_cli`. The accountant imports nothing from here.
"""
