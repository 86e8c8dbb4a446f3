"""Questionnaires: several questions in one report, the survey file that asks them, and their collection.

`questionnaire` is the mechanism, `surveys` the file, and `survey_collection` what a ledger stores of both.
A ledger finds the collection by the entry point `questionnaire`, so the accountant imports nothing from here.
"""
