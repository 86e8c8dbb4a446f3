"""Decides on charges and keeps budgets: who has spent how much, and whether a report may still be sent.

It holds `Accountant`, policies and limits, plans, reservations, receipts, approvals and the administrative
log. It may import registry, sdk, composition, ledger, sampling and guarantees.
"""
