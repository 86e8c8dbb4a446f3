"""A collection: one agreed set-up for clients and server, a mechanism and the names of its answers."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..authoring.domain import Categories
from ..errors import InvalidParameter, NotSupported, OutsideDomain, UnknownName
from .plugins import mechanism as find_mechanism

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ..authoring.base import Mechanism

FORMAT = "ldp-budget collection"
VERSION = 1


@dataclass(frozen=True)
class Collection:
    """A name, a mechanism, and for categorical answers their names in order.

    The fingerprint covers all three; clients put it on their reports, and the server refuses any other.
    Raises `InvalidParameter` where the categories are not distinct names, one for each answer of the mechanism.
    """

    name: str
    mechanism: Mechanism
    categories: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.name or ":" in self.name:
            raise InvalidParameter("name", "a name of at least one character, without a colon", repr(self.name))
        if self.categories is not None:
            check_categories(self.categories)
            self._check_answers(self.categories)

    def _check_answers(self, categories: tuple[str, ...]) -> None:
        """Raise `InvalidParameter` unless the mechanism asks for one of as many answers as have names here."""
        name, domain = self.mechanism.name, self.mechanism.domain
        if not isinstance(domain, Categories):
            raise InvalidParameter("categories", f"none, as {name} asks for a number", ", ".join(categories))
        if not domain.listed:
            raise InvalidParameter("categories", f"none, as {name} asks for any {domain}", ", ".join(categories))
        if domain.size != len(categories):
            expected = f"as many names as {name} has answers, {domain.size}"
            raise InvalidParameter("categories", expected, len(categories))

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the canonical JSON of name, mechanism and categories."""
        return hashlib.sha256(json.dumps(self._definition(), sort_keys=True).encode()).hexdigest()

    def _definition(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "mechanism": self.mechanism.name,
            "declared": self.mechanism.declared,
            "categories": None if self.categories is None else list(self.categories),
        }

    def to_json(self) -> dict[str, Any]:
        """What `collection show --json` prints, and a client needs."""
        return {
            "format": FORMAT,
            "version": VERSION,
            **self._definition(),
            "fingerprint": self.fingerprint,
            "guarantee": self.mechanism.guarantee.describe(),
        }

    @classmethod
    def from_json(cls, data: Any) -> Collection:
        """Read back what `to_json` made.

        Raises ValueError if it is anything else, or was changed; `NotSupported` where its mechanism is missing.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
            raise ValueError(f"not a {FORMAT} of version {VERSION}")
        categories = data["categories"]
        collection = cls(
            data["name"],
            _needed(data["mechanism"], data["name"])(**data["declared"]),
            None if categories is None else tuple(categories),
        )
        if collection.fingerprint != data["fingerprint"]:
            raise ValueError(f"the definition of collection {collection.name} does not match its fingerprint")
        return collection

    def read_values(self, texts: Sequence[str]) -> NDArray[np.float64] | NDArray[np.int64]:
        """Users' answers as text, turned into what the mechanism randomizes. Raises `OutsideDomain`."""
        if self.categories is None:
            values: NDArray[np.float64] | NDArray[np.int64] = self.mechanism.read_values(texts)
            return values
        codes = {category: code for code, category in enumerate(self.categories)}
        for position, text in enumerate(texts):
            if text not in codes:
                raise OutsideDomain(f"one of {', '.join(self.categories)}", text, position)
        domain = self.mechanism.domain
        assert isinstance(domain, Categories)
        return domain.check([codes[text] for text in texts])

    def randomize(self, values: Any, *, secrets: Any = None) -> Any:
        """The mechanism's reports. `secrets`: bytes, or one for each value, for mechanisms that memoise.

        What is drawn from a secret here tells nothing of what another collection draws from it, though the two
        have the same mechanism.
        """
        return self.mechanism.randomize(values, secrets=self._own(secrets, len(values)))

    def labels(self, values: Any, secrets: Any) -> list[str]:
        """Which memoised draw each report of `randomize` repeats, for `spend(label=...)`."""
        return self.mechanism.labels(values, self._own(secrets, len(values)))

    def _own(self, secrets: Any, count: int) -> list[bytes] | None:
        """The users' secrets for this collection alone."""
        from ..randomness.memoisation import secrets_within

        return None if secrets is None else secrets_within(secrets, f"collection {self.fingerprint}", count)

    def answer_names(self, answers: int) -> list[str]:
        """What each answer is called: its category, or its number."""
        return list(self.categories) if self.categories is not None else [str(v) for v in range(answers)]


def _needed(mechanism: str, collection: str) -> type[Mechanism]:
    """The mechanism that a collection was made with. Raises `NotSupported` where its plugin is missing."""
    try:
        return find_mechanism(mechanism)
    except UnknownName as error:
        why = f"collection {collection} needs the mechanism {mechanism}, which no installed plugin brings"
        raise NotSupported(f"{why}. {error.hint}" if error.hint else why) from None


def check_categories(categories: Sequence[str]) -> None:
    """Raise `InvalidParameter` unless these are at least two distinct, non-empty names."""
    expected = "at least two distinct, non-empty names"
    if len(categories) < 2 or not all(categories):
        raise InvalidParameter("categories", expected, list(categories))
    for category, count in Counter(categories).items():
        if count > 1:
            raise InvalidParameter("categories", expected, f"{category!r} {count} times")
