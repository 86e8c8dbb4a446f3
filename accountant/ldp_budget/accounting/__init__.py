"""Who has spent what, and may this be spent as well: policies, decisions, plans, reservations, receipts."""
