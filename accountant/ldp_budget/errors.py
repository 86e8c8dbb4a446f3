"""Error classes. Every error descends from `LdpBudgetError` and carries its data as attributes.

    LdpBudgetError
    ├── InvalidParameter (also ValueError)
    ├── OutsideDomain (also ValueError)
    ├── UnknownName (also LookupError)
    ├── UserErased
    ├── NameTaken
    ├── PluginError
    ├── NotSupported
    │   └── Unknown (in `sdk.report_law`)
    ├── LedgerError
    │   ├── LedgerMissing
    │   ├── LedgerMoved
    │   ├── LedgerKeyMissing
    │   ├── LedgerUpgraded
    │   ├── SandboxError
    │   ├── ClockError
    │   ├── PartitionsFailedError (in `ledger.storage`)
    │   └── UnstorableError (in `ledger.storage`)
    ├── KeyConflict
    ├── ReservationConflict
    ├── ApprovalNeeded
    ├── ApprovalConflict
    ├── RecordConflict
    ├── ReportFileError
    ├── TableError
    ├── BudgetExceeded (in `accounting.receipts`)
    ├── TooFewReports
    ├── PublicationError
    ├── ServiceProblem (in `api.problem_details`)
    ├── Broken (in `verification`, also AssertionError)
    └── NotChecked (in `verification`)

The HTTP service adds `ServiceError`.

A message reads `what is wrong: the value. What to do.` A wrong parameter reads "OPTION must be EXPECTED: got FOUND" or
"OPTION is missing: it must be EXPECTED". What to do is the error's `hint`, a sentence at the end of the message; without
a hint the message ends without a full stop. If a request could have changed something, the last sentence before the hint
says what was or was not changed.

The hint speaks to a Python caller. A front end that knows better what the reader can type shows `error.completed(hint)`,
which is the message with the front end's own hint in place of the error's. To spell an option as the reader types it, it
calls `InvalidParameter.describe`. A front end branches on the error's `code`, for example to choose an exit code.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


class LdpBudgetError(Exception):
    """Base class of the package's errors. Text and attributes survive pickling, for example in a process pool.

    Attributes: `code`, the name of the kind of error, which unlike the text never changes, and `hint`, what to do: a
    sentence at the end of the message, or empty.
    """

    code: ClassVar[str] = "error"
    hint: str = ""

    def __init__(self, problem: str = "", *, hint: str = "") -> None:
        self.hint = hint
        super().__init__(_sentences(problem, hint))

    def completed(self, hint: str) -> str:
        """The message with another hint in place of its own.

        Parameters:
            hint: what to do, as a sentence; empty for the message without a hint.
        """
        problem = str(self)
        return _sentences(problem.removesuffix(self.hint).rstrip() if self.hint else problem, hint)

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies the finished object. Exception would call the constructor with the text as its first argument.
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[LdpBudgetError], arguments: tuple[Any, ...]) -> LdpBudgetError:
    return kind.__new__(kind, *arguments)


def _sentences(problem: str, hint: str) -> str:
    """Join a problem and a hint to one message."""
    hint = hint if isinstance(hint, str) else _as_text(hint)
    if not problem or not hint:
        return problem or hint
    return f"{problem}{'' if problem.endswith(('.', '?', '!')) else '.'} {hint}"


class InvalidParameter(LdpBudgetError, ValueError):  # noqa: N818 - reads as what it is
    """A parameter is missing, malformed or outside its range.

    Attributes: `option` (the parameter's name in Python), `expected` (the range: words that complete "it must be …"),
    `found` (the value, or None if the parameter is missing), `hint`.
    """

    code = "invalid-parameter"

    def __init__(self, option: str, expected: str, found: object = None, *, hint: str = "") -> None:
        self.option = option
        self.expected = expected
        self.found = found
        super().__init__(self.describe(option, ""), hint=hint)

    def describe(self, option: str, hint: str | None = None) -> str:
        """The message with another spelling of the option: `epsilon` in Python, `--epsilon` on a command line.

        Parameters:
            option: the spelling.
            hint: what to do, in place of the error's own hint.
        """
        name = _as_text(option)
        if self.found is None:
            problem = f"{name} is missing: it must be {self.expected}"
        else:
            problem = f"{name} must be {self.expected}: got {_as_text(self.found)}"
        return _sentences(problem, self.hint if hint is None else hint)


def _as_text(found: object) -> str:
    """The value as text. Whole numbers of thousands of digits have no text."""
    try:
        return str(found)
    except Exception:
        return f"a {type(found).__name__} that cannot be shown"


class OutsideDomain(LdpBudgetError, ValueError):  # noqa: N818
    """A value to randomize is not in the declared domain. Nothing was randomized.

    Attributes: `domain` (in words), `found` (the value), `position` (its index in the input; None if the error concerns
    all values), `hint`.
    """

    code = "outside-domain"

    def __init__(self, domain: str, found: object, position: int | None = None, *, hint: str = "") -> None:
        self.domain = domain
        self.found = found
        self.position = position
        if position is None:
            problem = f"the values must be {domain}: got {_as_text(found)}"
        else:
            problem = f"the value at position {position} is outside the domain, {domain}: got {found!r}"
        super().__init__(problem, hint=hint)


class UnknownName(LdpBudgetError, LookupError):  # noqa: N818
    """No object of this kind has that name. Attributes: `kind`, `name`, `known` (the existing names), `hint`.

    The message lists the existing names, and the hint begins with those of similar spelling. If the existing names are
    confidential, such as the names of users, pass None for `known`. Then it stays empty. `why` is a sentence for an
    object that has ended, such as a revoked API key; it replaces the usual one.
    """

    code = "unknown-name"

    def __init__(self, kind: str, name: str, known: Sequence[str] | None, hint: str = "", *, why: str = "") -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known or ())
        if why or known is None:
            super().__init__(why or f"no {kind} is named {name!r}", hint=hint)
        else:
            problem = f"no {kind} is named {name!r}. {_listed(kind, self.known)}"
            super().__init__(problem, hint=f"{did_you_mean(name, self.known)} {hint}".strip())


_MOST_NAMES = 30


def _listed(kind: str, names: tuple[str, ...]) -> str:
    """Return a sentence with the existing names, the first ones if there are many."""
    many = f"{kind[:-1]}ies" if kind.endswith("y") and not kind.endswith("ey") else f"{kind}s"
    if not names:
        return f"There are no {many}."
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{many[0].upper()}{many[1:]}: {', '.join(names[:_MOST_NAMES])}{more}."


def did_you_mean(name: str, known: tuple[str, ...]) -> str:
    """Return a sentence with the known names of similar spelling; empty if there are none.

    Of a name that only looks like the given one, the sentence says in which code points it differs.
    """
    from difflib import get_close_matches

    from ._lookalikes import difference

    if apart := difference(name, known):
        return apart
    spelled = {each.lower(): each for each in known}
    same = [name.lower()] if name.lower() in spelled else []
    close = same or get_close_matches(name.lower().replace("_", "-"), list(spelled))
    return f"Did you mean {' or '.join(repr(spelled[each]) for each in close)}?" if close else ""


class UserErased(LdpBudgetError):  # noqa: N818
    """The user was erased: the ledger no longer knows which entries belong to this user. Attribute: `user`.

    The ledger does not keep the time of the erasure either, because that time would lead to the entries.
    """

    code = "user-erased"

    def __init__(self, user: str) -> None:
        self.user = user
        super().__init__(
            f"user {user!r} was erased. The ledger no longer knows which entries belong to this user, nor when the user "
            "was erased."
        )


class NameTaken(LdpBudgetError):  # noqa: N818
    """A name is already in use for something else. Nothing was changed. Attributes: `kind`, `name`, `hint`.

    The message is "KIND 'NAME' WHY", such as "round 'may' was already sealed".
    """

    code = "name-taken"

    def __init__(self, kind: str, name: str, why: str, *, hint: str = "") -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"{kind} {name!r} {why}", hint=hint)


class PluginError(LdpBudgetError):
    """A plugin is broken. Attributes: `plugin` (its distribution or module), `why`, `evidence`.

    `evidence`: of a client that loses too much, `pair` (two answers), `report` and `loss`; else empty.
    """

    code = "plugin-error"
    evidence: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, plugin: str, why: str, *, hint: str = "", evidence: Mapping[str, Any] | None = None) -> None:
        self.plugin = plugin
        self.why = why
        if evidence:
            self.evidence = dict(evidence)
        super().__init__(f"plugin {plugin}: {why}", hint=hint)


class NotSupported(LdpBudgetError):  # noqa: N818
    """The mechanism or rule exists, but does not support the request. The message gives the reason."""

    code = "not-supported"


class LedgerError(LdpBudgetError):
    """The ledger cannot be opened, read or trusted. It was left as it is.

    Attributes: `path`, `unknown` (True if it is unknown whether a user was charged; repeat the request with the
    same idempotency key to find out).
    """

    code = "ledger-error"

    def __init__(self, path: str, why: str, *, unknown: bool = False, hint: str = "") -> None:
        self.path = path
        self.unknown = unknown
        super().__init__(f"ledger {path}: {why}", hint=hint)


class LedgerMissing(LedgerError):  # noqa: N818
    """There is no ledger and no ledger key at this path, and the caller did not allow creating one.

    Attribute: `path`.
    """

    code = "ledger-missing"

    def __init__(self, path: str) -> None:
        hint = "Check the path. To create the ledger, open it once with create=True."
        super().__init__(path, "this ledger does not exist", hint=hint)


class LedgerMoved(LedgerError):  # noqa: N818
    """The ledger is closed, because it was moved to another place or is being moved. Nothing was charged.

    Attributes: `path`, `ledger` (the other place), `complete` (True if the other ledger is open).
    """

    code = "ledger-moved"

    def __init__(self, path: str, ledger: str, *, complete: bool) -> None:
        self.ledger = ledger
        self.complete = complete
        if complete:
            why, hint = f"it was moved to {ledger}", "Use that ledger."
        else:
            why = f"it is closed while it is moved to {ledger}"
            hint = "Wait until the move is complete. If the move was interrupted, start it again or abort it."
        super().__init__(path, f"{why}. Nothing was charged.", hint=hint)


class LedgerKeyMissing(LedgerError):  # noqa: N818
    """The ledger key was rotated to a secret that this process does not have. Nothing was charged.

    Attributes: `path`, `secret` (the number of the missing secret).
    """

    code = "ledger-key-missing"

    def __init__(self, path: str, secret: int) -> None:
        self.secret = secret
        why = (
            f"its key was rotated to secret {secret}, which this process does not have, or its counters were changed. "
            "Nothing was charged."
        )
        hint = "Copy the key file from the machine where the key was rotated, and open the ledger again."
        super().__init__(path, why, hint=hint)


class LedgerUpgraded(LedgerError):  # noqa: N818
    """The tables of the ledger were upgraded, and this process is of an earlier version. Nothing was charged.

    Attributes: `path`, `known` (the version of the tables that this process knows), `found` (the version now).
    """

    code = "ledger-upgraded"

    def __init__(self, path: str, known: int, found: int) -> None:
        self.known, self.found = known, found
        why = f"its tables were upgraded to version {found}, and this process knows version {known}. Nothing was charged."
        super().__init__(path, why, hint="Install the newer ldp-budget, and start this process again.")


class SandboxError(LedgerError):
    """A sandbox was opened as a real ledger, or a real ledger as a sandbox.

    Attributes: `path`, `sandbox` (True if the ledger is a sandbox).
    """

    code = "sandbox-error"

    def __init__(self, path: str, sandbox: bool) -> None:
        self.sandbox = sandbox
        kinds = "a real ledger", "a sandbox"
        why = f"this is {kinds[sandbox]}, and {kinds[not sandbox]} was asked for. Nothing was changed."
        super().__init__(path, why, hint=f"Open it with sandbox={sandbox}.")


class ClockError(LedgerError):
    """The system clock is not plausible. Nothing was charged.

    Attributes: `path`, `repairable` (True if a clock repair would help), `newest` (the time of the newest entry, if
    it is later than now).
    """

    code = "clock-error"

    def __init__(
        self, path: str, why: str, *, repairable: bool = False, newest: datetime | None = None, hint: str = ""
    ) -> None:
        self.repairable = repairable
        self.newest = newest
        super().__init__(path, why, hint=hint)


class KeyConflict(LdpBudgetError):  # noqa: N818
    """An idempotency key was used again with a different request. Nothing was charged. Attribute: `key`."""

    code = "key-conflict"

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"idempotency key {key!r} was already used for a different request. Nothing was charged.",
            hint="A key identifies one randomized output. Use a new key for a new report.",
        )


class ReservationConflict(LdpBudgetError):  # noqa: N818
    """A reservation has already ended in another way than requested. Nothing was changed.

    Attributes: `receipt`, `state`.
    """

    code = "reservation-conflict"

    def __init__(self, receipt: str, state: str, asked: str) -> None:
        self.receipt = receipt
        self.state = state
        super().__init__(f"reservation {receipt} is {state}, so it cannot be {asked}. Nothing was changed.")


class ApprovalNeeded(LdpBudgetError):  # noqa: N818
    """A policy change allows more charges, and no second principal has approved it. Nothing was changed.

    Attributes: `policy` (its name), `reasons` (why the new version allows more, in words).
    """

    code = "approval-needed"

    def __init__(self, policy: str, reasons: Sequence[str]) -> None:
        self.policy = policy
        self.reasons = tuple(reasons)
        super().__init__(
            f"this change of policy {policy!r} needs the approval of another key holder: "
            f"{'; '.join(self.reasons)}. Nothing was changed.",
            hint="Propose the change. On the machine of the ledger you can give the reason for an override instead.",
        )


class ApprovalConflict(LdpBudgetError):  # noqa: N818
    """A proposal cannot be approved, withdrawn or applied. Nothing was changed.

    Attributes: `proposal` (its number; None if the error concerns no single proposal), `why`.
    """

    code = "approval-conflict"

    def __init__(self, proposal: int | None, why: str) -> None:
        self.proposal = proposal
        self.why = why
        super().__init__(f"{'' if proposal is None else f'proposal {proposal}: '}{why}. Nothing was changed.")


class RecordConflict(LdpBudgetError):  # noqa: N818
    """Another writer has added a record in the meantime. Nothing was changed.

    Attributes: `expected` (the number of the newest record that the caller knew), `newest` (the number of the
    newest record in the ledger).
    """

    code = "record-conflict"

    def __init__(self, expected: int, newest: int) -> None:
        self.expected = expected
        self.newest = newest
        super().__init__(
            f"another writer added a record: the newest is {newest}, not {expected}. Nothing was changed.",
            hint="Read the records again, and repeat the change if it still applies.",
        )


class ReportFileError(LdpBudgetError):
    """A report file is truncated, has another format, or belongs to another collection. Attribute: `path`."""

    code = "report-file-error"

    def __init__(self, path: str, why: str, *, hint: str = "") -> None:
        self.path = path
        super().__init__(f"report file {path}: {why}", hint=hint)


class TooFewReports(LdpBudgetError):  # noqa: N818
    """Fewer reports than one group, so none were sealed. Attributes: `reports`, `least`."""

    code = "too-few-reports"

    def __init__(self, reports: int, least: int) -> None:
        self.reports = reports
        self.least = least
        super().__init__(
            f"too few reports to seal: {reports}. Nothing was sealed.", hint=f"Wait until there are {least} reports."
        )


class PublicationError(LdpBudgetError):
    """A survey cannot be published or proved as it is: limits, counts or earlier publications contradict it.

    Attribute: `reason` says why there is no proof: `not-published`, `no-charge` or `proofs-destroyed`. Else it is empty.
    """

    code = "publication-error"

    def __init__(self, why: str, *, hint: str = "", reason: str = "") -> None:
        self.reason = reason
        super().__init__(why, hint=hint)


class TableError(LdpBudgetError):
    """A file of answers or users cannot be read as a table, or not to its end. Attribute: `path`."""

    code = "table-error"

    def __init__(self, path: str, why: str, *, hint: str = "") -> None:
        self.path = path
        super().__init__(f"{path}: {why}", hint=hint)
