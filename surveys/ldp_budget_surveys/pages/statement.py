"""Statement of one user: what was charged, when, for whom, what is left, and what follows from it, on one page.

It answers an access request or a court. Its figures are those of the ledger, which was verified within the last hour
and whose journal is confirmed again; what the ledger cannot know is said on the page. An erased user's charges are no
longer known, and the statement says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import LedgerError, UserErased
from ldp_budget.ledger.calendar import from_micros

from .summary_blocks import Code, Facts, Grid, Meter, Note, Section, certainty, loss
from .summary_page import html_document
from .translations import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from ldp_budget import Accountant
    from ldp_budget.accounting.receipts import Balance
    from ldp_budget.ledger.verification import Integrity

    from .translations import Texts


@dataclass(frozen=True)
class Statement:
    """What a ledger records of one user. `charges` and `limits` are rows; `erased` is True if the user was erased.

    `verified` is the result of the last verification, `verified_at` its time and `verified_head` its head. `head` is
    the newest one: the hashes of all entries up to it were computed again.
    """

    user: str
    ledger: str
    at: str
    erased: bool
    charges: tuple[dict[str, Any], ...] = ()
    limits: tuple[dict[str, Any], ...] = ()
    head: str = ""
    verified: bool = False
    verified_at: str = ""
    verified_head: str = ""
    problems: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls, accountant: Accountant, user: str, *, seconds: int = 3_600, verify: Callable[[], Integrity] | None = None
    ) -> Statement:
        """Return the statement of a user of a ledger that was verified.

        Parameters:
            accountant: the ledger.
            user: the user; one whom the ledger has never seen has no charges.
            seconds: the largest age of a verification that counts; 0 verifies now.
            verify: called for a verification if none is that recent; None for `accountant.ledger.verify`.

        Raises:
            InvalidParameter: `user` is not a text.
        """
        found = _confirmed(accountant, seconds) or _verified(accountant, verify or accountant.ledger.verify)
        at = _iso(accountant.now())
        try:
            rows = accountant.history(user)
        except UserErased:
            return cls(user, accountant.name, at, True, **found)
        charges = tuple(_charges(rows, _versions(accountant)))
        policies = list(dict.fromkeys(each["policy"] for each in charges if each["policy"]))
        limits = [row for name in policies for row in _limits(accountant.balance(user, name))]
        return cls(user, accountant.name, at, False, charges, tuple(limits), **found)

    def to_json(self) -> dict[str, Any]:
        """The output of `statement --json`."""
        return {
            "user": self.user,
            "ledger": self.ledger,
            "at": self.at,
            "erased": self.erased,
            "charges": list(self.charges),
            "limits": list(self.limits),
            "head": self.head,
            "verified": self.verified,
            "verified_at": self.verified_at,
            "verified_head": self.verified_head,
        }


def _confirmed(accountant: Accountant, seconds: int) -> dict[str, Any] | None:
    """Return the last verification with the newest head; None if there is none, or if an entry was changed since."""
    last = accountant.ledger.last_verification(seconds) if seconds else None
    if last is None:
        return None
    try:
        head = accountant.ledger.confirm(last.head)
    except LedgerError:
        return None
    return {"head": head, "verified": True, "verified_at": _iso(from_micros(last.at)), "verified_head": last.head}


def _verified(accountant: Accountant, verify: Callable[[], Integrity]) -> dict[str, Any]:
    at, found = accountant.now(), verify()
    problems = tuple(map(str, found.problems))
    verified = {"verified": found.ok, "verified_at": _iso(at), "verified_head": found.head}
    return {"head": found.head, **verified, "problems": problems}


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _versions(accountant: Accountant) -> dict[str, list[tuple[str, int]]]:
    """Return for each policy when each of its versions was set, oldest first."""
    found: dict[str, list[tuple[str, int]]] = {}
    for row in reversed(accountant.ledger.overview().policies()):
        found.setdefault(row["policy"], []).append((row["at"], row["version"]))
    return found


def _charges(rows: Sequence[dict[str, Any]], versions: dict[str, list[tuple[str, int]]]) -> Iterator[dict[str, Any]]:
    given_back = {row["resolves"] for row in rows if row["kind"] == "voided"}
    for row in rows:
        if row["kind"] not in ("spent", "reserved"):
            continue
        since = [version for at, version in versions.get(row["policy"], []) if at <= row["at"]]
        yield {
            "time": row["at"],
            "what": row["collection"] or row["mechanism"],
            "mechanism": row["mechanism"],
            "tags": row["tags"],
            "reports": row["reports"],
            "cost": {"epsilon": row["epsilon"], "delta": row["delta"]},
            "policy": row["policy"],
            "policy_version": since[-1] if since else None,
            "given_back": row["entry"] in given_back,
        }


def _limits(balance: Balance) -> Iterator[dict[str, Any]]:
    for row in balance.to_json()["limits"]:
        yield {"policy": balance.policy.name, **row}


# -- the page --------------------------------------------------------------------------------------------------------


def statement_page(statement: Statement, language: str = "en") -> str:
    """Return the statement as one HTML file that loads nothing.

    Parameters:
        statement: what the ledger records.
        language: the language of the page: en, ko or de.

    Raises:
        InvalidParameter: the page has no texts in this language.
    """
    say = texts(language)
    said = say("statement.erased") if statement.erased else "" if statement.charges else say("statement.none")
    warning = "" if statement.verified else f'<p class="note warning">{escape(say("statement.failed"))}</p>'
    charges = len(_kept(statement))
    return html_document(
        language=language,
        made=say.date(statement.at),
        title=say("statement.title", user=statement.user),
        asked_by=say("statement.kind"),
        purpose=said or say("statement.summary", charges=charges, ledger=statement.ledger),
        warnings=warning,
        sections=list(_sections(statement, say)),
    )


def _kept(statement: Statement) -> list[dict[str, Any]]:
    return [each for each in statement.charges if not each["given_back"]]


def _sections(statement: Statement, say: Texts) -> Iterator[Section]:
    if statement.charges:
        yield Section(
            "charges", say("statement.charged"), (_charged(statement, say), Note(say("statement.charged_note")))
        )
        yield Section("limits", say("statement.limits"), tuple(_meters(statement, say)))
        yield Section("meaning", say("statement.meaning"), _meaning(statement, say))
    yield Section("proof", say("statement.checked"), (_checked(statement, say),))
    yield Section(
        "limits-of-proof",
        say("statement.unproved"),
        tuple(Note(say(f"statement.not_proved.{each}")) for each in (1, 2, 3)),
    )


def _charged(statement: Statement, say: Texts) -> Grid:
    rows = []
    for each in statement.charges:
        cost = _cost(each["cost"]["epsilon"], each["cost"]["delta"])
        version = "" if each["policy_version"] is None else f", {say('statement.version')} {each['policy_version']}"
        rows.append(
            (
                _moment(each["time"]),
                each["what"]
                + (f", {', '.join(each['tags'])}" if each["tags"] else "")
                + (f" ({say('statement.given_back')})" if each["given_back"] else ""),
                str(each["reports"]),
                cost,
                f"{each['policy']}{version}",
            )
        )
    columns = ("time", "what", "reports", "lost", "policy")
    return Grid(tuple(say(f"statement.column.{each}") for each in columns), tuple(rows))


def _cost(epsilon: float | None, delta: float | None) -> str:
    text = f"ε = {loss(epsilon)}"
    return f"{text}, δ = {delta:.3g}" if delta else text


def _moment(time: str) -> str:
    """Return an ISO time in UTC to the minute."""
    return f"{time[:10]} {time[11:16]} UTC"


_NAMED = ("lifetime", "day", "week", "month")
"""The periods that a language names."""
_UNITS = {"epsilon": "ε", "rho": "ρ", "mu_squared": "μ²", "renyi": "D"}
"""The amounts that rules add up, with their symbols."""


def _meters(statement: Statement, say: Texts) -> Iterator[Meter]:
    """Yield the share of each limit that is spent, in the unit of its rule; and what the limit promises, in ε and δ."""
    for row in statement.limits:
        unit = next(each for each in _UNITS if each in row["capacity"])
        spent, most = row["spent"][unit], row["capacity"][unit]
        shown = say("statement.of", spent=loss(spent), most=loss(most))
        promise = "" if unit == "epsilon" else f" ({_cost(row['epsilon'], row['delta'])})"
        period = say(f"statement.period.{row['period']}") if row["period"] in _NAMED else row["period"]
        period = f"{row['scope']}, {period}" if "scope" in row else period
        share = min(1.0, spent / most) if most else 1.0
        yield Meter(f"{row['policy']}: {period}", share, f"{_UNITS[unit]}: {shown}{promise}")


def _meaning(statement: Statement, say: Texts) -> tuple[Note, ...]:
    """Say what ε means for a belief, of what holds for every report: charges and totals with δ = 0."""
    kept = _kept(statement)
    single = max((each["cost"]["epsilon"] for each in kept if not each["cost"]["delta"]), default=None)
    notes = [] if single is None else [Note(say("statement.belief", after=certainty(single), epsilon=loss(single)))]
    if any(each["cost"]["delta"] for each in kept):
        notes.append(Note(say("statement.with_delta")))
    else:
        exact = [
            row
            for row in statement.limits
            if row["period"] == "lifetime" and row["rule"] == "basic" and "scope" not in row
        ]
        total = max((row["spent"]["epsilon"] for row in exact), default=None)
        if total is not None:
            notes.append(Note(say("statement.belief_total", after=certainty(total), epsilon=loss(total))))
    if any("scope" in row for row in statement.limits):
        notes.append(Note(say("statement.inferred")))
    return tuple(notes)


def _checked(statement: Statement, say: Texts) -> Facts:
    at = _moment(statement.verified_at)
    rows = [
        (say("statement.ledger"), statement.ledger),
        (say("statement.made"), _moment(statement.at)),
        (
            say("statement.verification"),
            f"{at}: {say('statement.holds' if statement.verified else 'statement.failed')}",
        ),
    ]
    if statement.head != statement.verified_head:
        rows += [
            (say("statement.verified_head"), Code(statement.verified_head)),
            (say("statement.confirmation"), say("statement.confirmed")),
        ]
    return Facts((*rows, (say("statement.head"), Code(statement.head))))
