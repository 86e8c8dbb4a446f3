"""The ledger in one SQLite file, or in memory: the only place that speaks SQL."""
