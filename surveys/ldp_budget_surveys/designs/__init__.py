"""Surveys: estimates for a designed sample, from the contributions of the reports and their public attributes."""
