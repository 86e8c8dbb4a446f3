"""Which partition of a ledger is a user's."""


def partition_of(user: bytes, partitions: int) -> int:
    """The partition of a user, known by a keyed hash, out of so many."""
    return int.from_bytes(user[:4]) % partitions
