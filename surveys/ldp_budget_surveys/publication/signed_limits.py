"""Promises: the lifetime limit that a receipt says, signed with a key of the ledger.

A published statement lists the public keys of its ledger. So a checker can refuse a statement whose limit or measure is
not the one that was promised when the respondent was charged, and a receipt of another ledger. Each secret of the
ledger key gives one Ed25519 key. A receipt that was signed before a rotation of the ledger key stays valid.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ldp_budget._files import canonical_json
from ldp_budget.errors import NotSupported
from ldp_budget.ledger.snapshot import secret_of

if TYPE_CHECKING:
    from ldp_budget.ledger import Ledger
    from ldp_budget.ledger.keyed_hashing import Secret

_SIGNED = b"ldp-budget promise\n"


def signing_key(seed: bytes) -> Any:
    """Return the Ed25519 private key of a seed of 32 bytes. Raises `NotSupported` without `cryptography`."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise NotSupported(
            "publishing needs the package cryptography", hint="Run: pip install 'ldp-budget[fast]'"
        ) from None
    return Ed25519PrivateKey.from_private_bytes(seed)


def public_keys(ledger: Ledger) -> list[str]:
    """Return the public keys that sign the promises of a ledger, in hex: one for each secret up to the one in use."""
    secrets = [secret_of(ledger.key, number) for number in range(1, ledger.key.in_use.number + 1)]
    return [_key_of(secret).public_key().public_bytes_raw().hex() for secret in secrets]


def signed(ledger: Ledger, collection: str, client: str, measure: str, limit: int) -> dict[str, Any]:
    """Return the promise of a limit to the respondents of a collection, with the ledger's newest key.

    Parameters:
        client: the digest of the collection's definition.
        measure: epsilon, rho or mu_squared.
        limit: the lifetime limit, in units of the measure.
    """
    return _promise(_seed(ledger.key.in_use), collection, client, measure, limit)


@lru_cache(maxsize=256)  # respondents of one collection get the same promise
def _signature(seed: bytes, text: bytes) -> tuple[str, str]:
    key = signing_key(seed)
    return key.public_key().public_bytes_raw().hex(), key.sign(_SIGNED + text).hex()


def _promise(seed: bytes, collection: str, client: str, measure: str, limit: int) -> dict[str, Any]:
    said = {"client": client, "collection": collection, "limit": limit, "measure": measure}
    key, signature = _signature(seed, canonical_json(said).encode())
    return {"measure": measure, "limit": limit, "key": key, "signature": signature}


def _seed(secret: Secret) -> bytes:
    return secret.hash_outside(b"promise 1", "") + secret.hash_outside(b"promise 2", "")


def _key_of(secret: Secret) -> Any:
    return signing_key(_seed(secret))
