"""Files of reports: charge users, write and read their reports, and estimate from them.

It holds report files, Parquet partitions, partial aggregates, the inbox, charged releases and input tables.
It may import guarantees, sampling, ledger, composition, sdk, registry and accounting.
"""
