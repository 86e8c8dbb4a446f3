"""Marks that devices send with their reports, and the proofs of respondents in a publication."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Header
from pydantic import BaseModel

from ldp_budget import InvalidParameter, NotSupported
from ldp_budget.errors import PublicationError

from .error_codes import ServiceError

if TYPE_CHECKING:
    from ldp_budget import Accountant
    from ldp_budget.reports.inbox import Marks

_MARK = re.compile(r"[0-9a-fA-F]{32}")
_EXAMPLE = "b1946ac92492d2347c6235b4d2611184"

ReportMark = Annotated[
    str | None,
    Header(
        alias="Report-Mark",
        description="The mark of the report: 32 hexadecimal digits. Send it together with `Charge-Mark`.",
        examples=[_EXAMPLE],
    ),
]
ChargeMark = Annotated[
    str | None,
    Header(
        alias="Charge-Mark",
        description="The mark of the charge: 32 hexadecimal digits. Never send the secret of the marks.",
        examples=[_EXAMPLE],
    ),
]


ProofToken = Annotated[
    str | None,
    Header(alias="Proof-Token", description="The token of the receipt, `publication.proof`.", examples=[_EXAMPLE]),
]


class AccountProof(BaseModel):
    """The place of an account in the tree of accounts, and the salt and total of its leaf."""

    index: int
    path: str
    salt: str
    total: int


class ChargeProof(BaseModel):
    """The salt of a charge."""

    salt: str


class ProofAnswer(BaseModel):
    """The proof of a respondent, as `ldp-budget prove` prints it."""

    account: AccountProof
    charge: ChargeProof


def mark_in(header: str, digits: str) -> bytes:
    """Return the mark in a header. Raises `InvalidParameter`."""
    if not _MARK.fullmatch(digits):
        raise InvalidParameter(header, "a mark of 16 bytes, as 32 hexadecimal digits", digits)
    return bytes.fromhex(digits)


def marks_in(report: str | None, charge: str | None) -> Marks | None:
    """Return the marks of a report; None if it has none. Raises `InvalidParameter` for one mark without the other."""
    from ldp_budget.reports.inbox import Marks

    if report is None and charge is None:
        return None
    if report is None:
        raise InvalidParameter("Report-Mark", "a header together with `Charge-Mark`: send both marks, or none")
    if charge is None:
        raise InvalidParameter("Charge-Mark", "a header together with `Report-Mark`: send both marks, or none")
    if report.lower() == charge.lower():
        raise InvalidParameter("Charge-Mark", "another mark than `Report-Mark`: equal marks link charge and report")
    return Marks(mark_in("Report-Mark", report), mark_in("Charge-Mark", charge))


def promise_of(accountant: Accountant, collection: str, digest: str, policy: str) -> dict[str, Any] | None:
    """Return the signed promise for a receipt; None if the ledger cannot publish the limit of this policy."""
    try:
        return accountant.books.promise(collection, digest, policy)
    except (NotSupported, PublicationError):
        return None


def proof_of(accountant: Accountant, user: str | None, collection: str, mark: bytes) -> dict[str, Any]:
    """Return the proof of a user for one of her charges; None: of any user. Raises `ServiceError` if there is none."""
    from ldp_budget_surveys.publication.publisher import Publisher

    try:
        publisher = Publisher(accountant)
    except NotSupported:  # a ledger in memory
        raise ServiceError("not-published", f"collection {collection} is not published") from None
    try:
        if user is None:
            return publisher.prove_mark(collection, mark)
        return publisher.prove_to(user, collection, mark)
    except PublicationError as error:
        if not error.reason:
            raise
        raise ServiceError(error.reason, _WHY[error.reason].format(collection=collection)) from None


def has_proofs(accountant: Accountant, collection: str) -> bool:
    """True if respondents of the collection can get proofs in its newest publication."""
    from ldp_budget_surveys.publication.publisher import Publisher

    try:
        return Publisher(accountant).has_proofs(collection)
    except (NotSupported, PublicationError):  # a ledger in memory, or a damaged publication
        return False


_WHY = {
    "not-published": "collection {collection} is not published with this charge yet. Try again after the next "
    "publication.",
    "no-charge": "no charge of this respondent has this mark. An erased user has no proof.",
    "proofs-destroyed": "the secret of the newest publication of {collection} was destroyed. No proof can be made.",
}
