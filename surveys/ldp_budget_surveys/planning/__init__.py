"""Figures before anyone is asked: rankings of mechanisms, margins and sample sizes, and totals under every rule.

`shuffle_amplification` computes the central loss that a trusted shuffler would give; no limit uses it.
"""
