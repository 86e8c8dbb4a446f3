"""Registry of mechanisms: plugins, certificates, collections and rankings.

Holds plugin discovery, adapters for third-party objects, and the public definition that clients run.
May import from guarantees, sampling, ledger, composition and sdk.
"""
