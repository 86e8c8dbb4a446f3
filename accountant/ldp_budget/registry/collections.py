"""Collections: a mechanism and the names of its answers, agreed between clients and server."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, field, replace
from secrets import randbelow
from typing import TYPE_CHECKING, Any, ClassVar

from .._later import registered
from .._validation import canonical_text, check_instance, check_many, check_name, check_user, check_whole, shown
from ..errors import InvalidParameter, NotSupported, OutsideDomain, UnknownName
from ..sdk.domain import Categories, check_categories, codes_of
from ..sdk.mechanism import Mechanism, count_of
from .plugins import RESERVED_NAME
from .plugins import mechanism as find_mechanism
from .public_definition import MINIMUM_GROUP, MOST_GROUP, NOTHING, About

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ..guarantees import Guarantee
    from ..sdk.estimates import Estimate

FORMAT = "ldp-budget collection"
VERSION = 1

_SEEDS = 2**53
"""The number of public seeds: a JSON number of any programming language holds each of them."""
_FEW = 5
"""Number of categories that the repr of a collection shows."""


@dataclass(frozen=True)
class Collection:
    """A named mechanism and, for categorical answers, the names of its answers in order.

    The fingerprint covers all three. Clients put it on their reports, and the server refuses any other.

    Parameters:
        name: at least one character, and no colon.
        mechanism: a mechanism with its parameters.
        categories: the names of its answers, in order; None if the answers have no names.
        about: texts for the respondents.
        client: the digest of the agreed public definition; None before the agreement.
        sandbox: True if the collection belongs to a sandbox, whose reports count nowhere else.
        minimum_group: the least number of reports in a round, so that each report hides among as many.
        with_labels: True if services and devices charge reports with labels, although labels reveal which answers repeat.
            Only for a mechanism whose reports hide it.

    Raises:
        InvalidParameter: an argument has the wrong type, or the categories are not distinct names, one for each
            answer of the mechanism; or the mechanism has a class of collections of its own.
    """

    mechanism_type: ClassVar[type[Mechanism] | None] = None
    """The mechanism of all collections of this class; None for those of any mechanism."""
    name: str
    mechanism: Mechanism
    categories: tuple[str, ...] | None = None
    about: About = NOTHING
    """Texts for the respondents. The client's digest covers them, the fingerprint does not."""
    client: str | None = field(default=None, compare=False)
    """The digest of the agreed public definition; None without a client program, or before the agreement."""
    sandbox: bool = field(default=False, compare=False)
    """True if the collection belongs to a sandbox. Report files carry this flag and are refused elsewhere."""
    minimum_group: int = MINIMUM_GROUP
    """The least number of reports in a round. It never changes, and neither digest nor fingerprint covers it."""
    with_labels: bool = False
    """True if reports that hide what they repeat are charged with labels. The client's digest covers it."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or ":" in self.name:
            raise InvalidParameter("name", "a string of at least one character, without a colon", shown(self.name))
        check_name("name", self.name)
        check_instance("mechanism", self.mechanism, Mechanism, "a mechanism with its parameters")
        if self.categories is not None:
            categories = check_many("categories", self.categories, "None or a list of names")
            object.__setattr__(self, "categories", tuple(categories))
            check_categories(self.categories)
            self._check_answers(self.categories)
        check_instance("about", self.about, About, "an `About` object")
        self.about.check(self.categories)
        own = collection_type(self.mechanism.name)
        if not isinstance(self, own):
            raise InvalidParameter("mechanism", f"in a `{own.__name__}`", self.mechanism.name)
        check_whole("minimum_group", self.minimum_group, 1, MOST_GROUP)
        if self.with_labels and not self.mechanism.hides_repeats:
            expected = f"left out, because reports of {self.mechanism.name} hide no repeated answers"
            raise InvalidParameter("labels", expected, shown(self.with_labels))

    @property
    def losses(self) -> dict[str, Guarantee]:
        """What one report says about each tag, such as `attribute:health`; empty: it counts under every scope as a whole."""
        return {}

    def label_to_charge(self, label: str | None) -> str | None:
        """The label with which a service charges a report: None where it would reveal what the report hides.

        Parameters:
            label: the label that the client sent.
        """
        return label if self.with_labels else label_to_charge(self.mechanism, label)

    def __repr__(self) -> str:
        names = self.categories or ()
        named = f": {', '.join(names[:_FEW])}" + (f", … ({len(names)} answers)" if len(names) > _FEW else "")
        return f"<Collection {self.name}, {self.mechanism!r}{named if names else ''}>"

    def _check_answers(self, categories: tuple[str, ...]) -> None:
        """Raise `InvalidParameter` unless the mechanism lists as many answers as there are names."""
        name, domain = self.mechanism.name, self.mechanism.domain
        found = ", ".join(categories)
        if domain is None:
            expected = f"left out, because mechanism {name} has no client and cannot randomize answers"
            raise InvalidParameter("categories", expected, found)
        if not isinstance(domain, Categories):
            expected = f"left out, because the answers of {name} are numbers"
            raise InvalidParameter("categories", expected, found)
        if not domain.listed:
            expected = f"left out, because the answers of {name} are {domain}"
            raise InvalidParameter("categories", expected, found, hint="Name the answers when you estimate.")
        from ..sdk.grid_answers import GridAnswers  # a charge reads no grid

        if isinstance(domain, GridAnswers):
            raise InvalidParameter("categories", f"left out: {name} belongs into a survey, with [[grid]]", found)
        if domain.names != len(categories):
            expected = f"{domain.names} names, one for each answer of {name}"
            raise InvalidParameter("categories", expected, f"{len(categories)} names")

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
        """The JSON object that `collection show --json` prints and that a client in Python needs."""
        about = self.about.to_json()
        return {
            "format": FORMAT,
            "version": VERSION,
            **self._definition(),
            "fingerprint": self.fingerprint,
            "guarantee": self.mechanism.guarantee.describe(),
            **({"about": about} if about else {}),
            **self._more_json(),
            **({"labels": True} if self.with_labels else {}),
            # Last, so that it is the last line of what `collection add` prints, which a consent form takes.
            **({"client": self.client} if self.client else {}),
        }

    def _more_json(self) -> dict[str, Any]:
        """What a collection of this class adds to the JSON object."""
        return {} if self.minimum_group == MINIMUM_GROUP else {"minimum_group": self.minimum_group}

    def definition(self) -> dict[str, Any]:
        """The public definition that `collection show --client` prints: a client for any device, and its digest.

        Raises:
            NotSupported: the mechanism has no client program, or a different one from the agreed one.
        """
        definition = self._new_definition()
        if self.client not in (None, definition["digest"]):
            raise NotSupported(
                f"collection {self.name} was stored with the client {self.client}, and the installed version of "
                f"{self.mechanism.name} makes another client, {definition['digest']}",
                hint="Install the version of the plugin with which the collection was added.",
            )
        return definition

    def agreed(self) -> Collection:
        """The collection with the digest of its public definition, if the mechanism has a client program."""
        try:
            return replace(self, client=self._new_definition()["digest"])
        except NotSupported:
            return self

    def _new_definition(self) -> dict[str, Any]:
        from .public_definition import definition_of

        parts = self.name, self.fingerprint, self.mechanism, self.categories, self.about
        return definition_of(*parts, labels=self.with_labels)

    @classmethod
    def from_json(cls, data: Any) -> Collection:
        """A collection from the JSON object that `to_json` returned.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: `data` is not such an object, or was changed.
            NotSupported: its mechanism is not installed.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
            raise ValueError(f"not a {FORMAT} of version {VERSION}")
        try:
            own = collection_type(data["mechanism"])
            mechanism = _needed(data["mechanism"], data["name"])(**data["declared"])
            about, client, sandbox = About(**data.get("about", {})), data.get("client"), bool(data.get("sandbox"))
            more = about, client, sandbox, minimum_group_in(data), data.get("labels", False) is True
            collection = own(data["name"], mechanism, data["categories"], *more, **own._more_in(data))
            fingerprint = data["fingerprint"]
        except (LookupError, TypeError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"not a {FORMAT} of version {VERSION}: {what}") from None
        if collection.fingerprint != fingerprint:
            raise ValueError(f"the definition of collection {collection.name} does not match its fingerprint")
        return collection

    @classmethod
    def _more_in(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that a collection of this class reads from its JSON object, besides those of every collection."""
        return {}

    def read_values(self, texts: Any) -> NDArray[np.float64] | NDArray[np.int64]:
        """Users' answers as text, converted to values that the mechanism randomizes.

        Each text is first brought into Unicode normal form NFC, without spaces and invisible characters at its ends, as
        the answers of the collection are.

        Parameters:
            texts: one for each user, a list or a column of pandas, Polars or Arrow; for categorical answers, their
                names. Whole numbers in a column are read as their decimals.

        Returns:
            An array, shape (n,).

        Raises:
            OutsideDomain: a text is not an answer; raised for the first such text.
            InvalidParameter: `texts` are not texts.
            NotSupported: the mechanism has no client that reads text.
        """
        if self.mechanism.domain is not None:
            from .._dataframes import check_texts

            given = check_texts("texts", texts, "a list of strings, one for each user")
            texts = [canonical_text(text) if isinstance(text, str) else text for text in given]
        if self.categories is None:
            values: NDArray[np.float64] | NDArray[np.int64] = self.mechanism.read_values(texts)
            return values
        from ..sdk.tick_sets import TickSets  # a charge reads no ticks

        domain = self.mechanism.domain
        if isinstance(domain, TickSets):
            return domain.named(texts, self.categories)
        codes = codes_of(self.categories)
        for position, text in enumerate(texts):
            if not isinstance(text, str) or text not in codes:
                from .._lookalikes import difference

                hint = difference(text, self.categories)
                raise OutsideDomain(f"one of {', '.join(self.categories)}", text, position, hint=hint)
        assert isinstance(domain, Categories)
        return domain.check([codes[text] for text in texts])

    def randomize(self, values: Any, *, secrets: Any = None) -> Any:
        """The mechanism's reports of users' values.

        Draws from a secret are specific to this collection: they reveal nothing about the draws of another
        collection from the same secret, even with the same mechanism.

        Parameters:
            values: one for each user, as `read_values` returns them.
            secrets: for memoising mechanisms: bytes, or one bytes object for each value.

        Returns:
            The reports, an array whose first axis is the users.

        Raises:
            OutsideDomain: a value is not in the declared domain. Nothing was randomized.
            InvalidParameter: `values` are not an array or list, or `secrets` are not secrets.
            NotSupported: the mechanism has no client.
        """
        return self.mechanism.randomize(values, secrets=self._own(secrets, count_of(values)))

    def randomize_column(self, frame: Any, column: str, *, secrets: Any = None) -> Any:
        """The reports of the answers in a column of a DataFrame, in the order of its rows.

        Parameters:
            frame: a DataFrame of pandas or Polars, an Arrow table, or a mapping of columns.
            column: the name of the column.
            secrets: as for `randomize`.

        Returns:
            The reports, an array whose first axis is the rows.

        Raises:
            OutsideDomain: a cell is not an answer; `position` counts rows from 0. Nothing was randomized.
            InvalidParameter: `frame` is not a DataFrame, or does not have exactly one column of this name.
            NotSupported: the mechanism has no client.
        """
        from .._dataframes import column_of

        return self.randomize(self.read_values(column_of(frame, column)), secrets=secrets)

    def estimate(
        self, reports: Any, *, candidates: Sequence[str] | None = None, consistent: bool = False
    ) -> Estimate:
        """The mechanism's estimate, with the names of the answers.

        Parameters:
            reports: an array whose first axis is the users, as `randomize` returned it; or an aggregate of such
                reports.
            candidates: the answers to count, if the collection does not declare them.
            consistent: True for counts >= 0 that add up to the number of reports, which are biased; see
                `sdk.consistency`.

        Raises:
            NotSupported: `reports` are not reports of this mechanism, there are none, or the mechanism has no
                server side; or a consistent mean is asked for.
            OutsideDomain: a candidate is not an answer.
            InvalidParameter: `consistent` is neither True nor False.
        """
        from ..sdk.consistency import maybe_consistent

        return maybe_consistent(self._unbiased(reports, candidates), consistent)

    def _unbiased(self, reports: Any, candidates: Sequence[str] | None) -> Estimate:
        domain = self.mechanism.domain
        if candidates is None or (isinstance(domain, Categories) and domain.listed):
            estimate = self.mechanism.estimate(reports)
            return estimate if self.categories is None else estimate.named(self.categories)
        mechanism: Any = self.mechanism
        names = [canonical_text(each) if isinstance(each, str) else each for each in candidates]
        found: Estimate = mechanism.estimate(reports, candidates=self.read_values(names))
        return found.named(names)

    def labels(self, values: Any, secrets: Any) -> list[str]:
        """A label for the memoised draw that each report of `randomize` repeats, for `spend(label=...)`.

        Parameters:
            values: as for `randomize`.
            secrets: as for `randomize`.

        Returns:
            A label for each value.

        Raises:
            OutsideDomain: a value is not in the declared domain.
            InvalidParameter: `values` are not an array or list, or `secrets` are not secrets.
        """
        return self.mechanism.labels(values, self._own(secrets, count_of(values)))

    def _own(self, secrets: Any, count: int) -> list[bytes] | None:
        """The users' secrets, derived for this collection only."""
        from ..sampling.memoisation import secrets_within

        return None if secrets is None else secrets_within(secrets, f"collection {self.fingerprint}", count)

    def check_sender(self, user: str, report: bytes) -> None:
        """Raise `NotSupported` if this user may not send this report. A collection of one question takes it from anyone.

        Parameters:
            user: the name of the user who sends the report.
            report: the bytes of the report.

        Raises:
            NotSupported: the report answers other questions than those that its user is asked.
            InvalidParameter: `user` is not a name, or `report` is not bytes.
        """
        check_user(user)
        check_instance("report", report, bytes, "bytes")

    def answer_names(self, answers: int) -> list[str]:
        """The name of each answer: its category, or its number.

        Parameters:
            answers: the number of answers, if they have no names.

        Raises:
            InvalidParameter: `answers` is not a whole number >= 0.
        """
        numbers = range(check_whole("answers", answers))
        return list(self.categories) if self.categories is not None else [str(number) for number in numbers]


COLLECTIONS = "ldp_budget.collections"
"""The entry-point group of collections with a class of their own. The name of an entry point is that of their mechanism."""


@functools.cache
def collection_type(mechanism: str) -> type[Collection]:
    """The class of the collections of a mechanism. That of surveys comes from their package."""
    if mechanism == RESERVED_NAME:
        found: type[Collection] = registered(COLLECTIONS, mechanism)
        return found
    return Collection


def stored_mechanism(name: str) -> type[Mechanism]:
    """The mechanism that a stored definition or charge names: also one of surveys, which no plugin registers."""
    return collection_type(name).mechanism_type or find_mechanism(name)


def _needed(mechanism: str, collection: str) -> type[Mechanism]:
    """The mechanism that a collection was made with. Raises `NotSupported` if its plugin is missing."""
    try:
        return stored_mechanism(mechanism)
    except UnknownName as error:
        why = f"collection {collection} needs the mechanism {mechanism}, which no installed plugin provides"
        raise NotSupported(why, hint=error.hint or "Install its plugin.") from None


def minimum_group_in(definition: Mapping[str, Any]) -> int:
    """The minimum group in the JSON object of a collection, which has it in its survey if it is one."""
    group: int = definition.get("survey", definition).get("minimum_group", MINIMUM_GROUP)
    return group


def label_to_charge(mechanism: Mechanism, label: str | None) -> str | None:
    """The label with which a service charges a report of a mechanism, if no collection asks for labels."""
    return None if mechanism.hides_repeats else label


def collection_of(
    name: str,
    kind: type[Mechanism],
    options: Mapping[str, Any],
    categories: tuple[str, ...] | None = None,
    about: About = NOTHING,
    known: Collection | None = None,
    minimum_group: int = MINIMUM_GROUP,
    *,
    with_labels: bool = False,
) -> Collection:
    """A collection of a mechanism with these options. The number of categories is the default domain size.

    A seed of public hash functions that is not among the options is drawn from the operating system: estimates are
    unbiased over its draw. `known` is the stored collection of this name. Its seed is used again, so that the same
    options make the same collection again. Raises `InvalidParameter`.
    """

    if categories is not None:
        check_categories(categories)
        categories = tuple(map(canonical_text, categories))
        if "domain_size" in kind.fields and "domain_size" not in options:
            options = {**options, "domain_size": len(categories)}
    options = with_seed(kind, options, None if known is None else known.mechanism)
    terms = {"minimum_group": minimum_group, "with_labels": with_labels}
    return Collection(name, kind(**options), categories, about, **terms).agreed()  # type: ignore[arg-type]


def with_seed(kind: type[Mechanism], options: Mapping[str, Any], known: Mechanism | None) -> Mapping[str, Any]:
    """Return options with a seed, if the mechanism has a public seed and the options leave it out.

    A sketch is unbiased over the draw of its hash functions. With one seed for all collections, the same answers would
    be counted too high, or too low, in each of them. So each collection draws its seed from the operating system, and
    its definition stores it.

    `known` is the mechanism that is already stored. If it has the same class, its seed is used again.
    """
    seed = str(getattr(kind, "public_seed", ""))  # the name of the field that seeds public randomness
    if not seed or options.get(seed) is not None:
        return options
    return {**options, seed: getattr(known, seed) if type(known) is kind else randbelow(_SEEDS)}
