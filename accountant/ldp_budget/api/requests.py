"""What is asked of a service: checked here as the library does, so that nothing wrong is ever sent."""

from __future__ import annotations

import secrets
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .._checks import check_name, check_text, check_user, check_whole, shown
from ..accounting.idempotency import check_key
from ..accounting.policies import ANY_RELATION
from ..accounting.request import MOST_REPORTS, charge_of, check_digest, check_note, chosen_of, mechanism_of
from ..catalogue.collections import Collection
from ..catalogue.plugins import registry
from ..errors import InvalidParameter, NotSupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..accounting.shares import Share
    from ..authoring.base import Mechanism

Body = dict[str, Any]

_HASHED = "sha256:"
_LONGEST_KEY = 200
_TOGETHER, _BYTES_TOGETHER = 2_000, 1 << 19


def charge_body(
    user: str,
    chosen: Mechanism | Collection | object,
    *,
    reports: int,
    policy: str,
    label: str | None,
    digest: str | None = None,
    note: str | None = None,
) -> Body:
    """Who is charged for what. Raises `InvalidParameter` as `Accountant.spend` does."""
    body = {
        "user": sendable("user", check_user(user)),
        "reports": check_whole("reports", reports, 1, MOST_REPORTS),
        "policy": sendable("policy", check_name("policy", policy)),
        "label": None if label is None else sendable("label", check_text("label", label)),
        "digest": check_digest(digest),
        "note": check_note(note),
    }
    return {**{name: value for name, value in body.items() if value is not None}, **charged(chosen)}


def shares_form(shares: Sequence[Share]) -> dict[str, list[str]]:
    """The limits of shares as texts, by the name of the share."""
    return {share.name: [str(limit).partition(":")[2] for limit in share.limits] for share in shares}


def charged(chosen: Mechanism | Collection | object) -> Body:
    """A mechanism by its name and what was declared, a collection's name, and what one report costs at least.

    By the last the service can tell that its own copy of the mechanism promises as much.
    """
    return _charged(chosen_of(chosen))  # what is neither may not even have a hash


@lru_cache(maxsize=1024)
def _charged(chosen: Mechanism | Collection) -> Body:
    guarantee, mechanism = charge_of(chosen).guarantee, mechanism_of(chosen)
    named = {"collection": chosen.name} if isinstance(chosen, Collection) else {}
    return {**named, **asked_for(mechanism), "at_least": list(guarantee.least_costs())}


def asked_for(mechanism: Mechanism) -> Body:
    """A mechanism by its name and what was declared."""
    return {"mechanism": {"name": mechanism.name, **mechanism.declared}}


def collection_body(collection: Collection) -> Body:
    """A collection with all that was declared of it."""
    categories = {} if collection.categories is None else {"categories": list(collection.categories)}
    return {"name": collection.name, **asked_for(collection.mechanism), **categories, **collection.about.to_json()}


def missing_there(url: str, chosen: Mechanism | Collection | object) -> NotSupported:
    """That a service does not have the mechanism, and what brings it."""
    mechanism = mechanism_of(chosen)
    plugins = [str(plugin) for kind, plugin in registry().items() if isinstance(mechanism, kind)]
    brings = f"here {plugins[0]} brings it" if plugins else "no plugin that is installed here brings it either"
    return NotSupported(
        f"the service at {url} has no mechanism {mechanism.name!r}; {brings}, and the service needs that plugin too"
    )


def sendable(option: str, text: str) -> str:
    """`text`, if it can be written in UTF-8. Raises `InvalidParameter`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidParameter(option, "a text without halves of characters, as it is sent", shown(text)) from None
    return text


def header_of(key: str | None) -> str:
    """An idempotency key as it is sent, the same text always in the same way; a fresh one where there is none."""
    if key is None:
        return secrets.token_urlsafe(24)
    check_key(key)
    plain = key.isascii() and key.isprintable() and " " not in key and len(key) <= _LONGEST_KEY
    if plain and not key.startswith(_HASHED):
        return key
    return _HASHED + sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def chunks(users: Iterable[Any]) -> Iterator[list[str]]:
    """Users in lists that a service takes at a time. Raises `InvalidParameter` at one that is no text."""
    chunk: list[str] = []
    size = 0
    for user in users:
        length = len(sendable("user", check_user(user)))
        if chunk and (len(chunk) >= _TOGETHER or size + length > _BYTES_TOGETHER):
            yield chunk
            chunk, size = [], 0
        chunk.append(user)
        size += length
    if chunk:
        yield chunk


def user_body(user: str) -> Body:
    """Who is asked about."""
    return {"user": sendable("user", check_user(user))}


def policy_name(name: object) -> str:
    """The name of a policy, as a path needs it. Raises `InvalidParameter` where it is empty."""
    if not isinstance(name, str) or not name:
        raise InvalidParameter("name", "a name of at least one character", shown(name))
    return sendable("name", name)


def check_relation(relation: object) -> str | None:
    """The relation of a policy, as `Policy` checks it."""
    if relation is None or (isinstance(relation, str) and relation == ANY_RELATION):
        return ANY_RELATION if relation else None
    raise InvalidParameter("relation", ANY_RELATION, relation if isinstance(relation, str) else shown(relation))


def in_path(name: str) -> str:
    """A name as one segment of a path; dots alone would lead to another one."""
    quoted = quote(name, safe="")
    return quoted.replace(".", "%2E") if not quoted.strip(".") else quoted
