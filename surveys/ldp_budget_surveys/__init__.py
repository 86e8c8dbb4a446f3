"""Surveys: designs and weights, planning, the pages of a report, and publication, on top of the accountant.

`designs` estimates for a designed sample, `pages` writes what a reader of a survey sees, and `publication` lets
respondents check it. Planning predicts margins before anyone is asked.
It imports `ldp_budget`. The accountant imports nothing from here.
"""
