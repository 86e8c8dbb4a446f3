"""Files of reports: charge users, write and read their reports, and estimate from them.

It holds report files, partial aggregates, the inbox, charged releases and estimates.
It may import guarantees, sampling, ledger, composition, sdk, registry and accounting.
"""
