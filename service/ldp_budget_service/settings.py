"""Everything that can be set about the service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ldp_budget.reports import LEAST_REPORTS


@dataclass(frozen=True)
class Settings:
    """How the service behaves.

    Parameters:
        reports: the folder of the inboxes, one for each collection; None: reports are not taken. Instances that share
            a ledger share this folder as well.
        least_reports: no estimate is made of fewer, and those that are not sealed yet count in groups of so many.
        most_bytes: of the body of a request, but for a batch, whose length nothing limits.
        most_line: bytes of one line of a batch.
        rate: requests a second that one caller may make in the long run; 0: any number.
        burst: how many more at once.
        address_rate: requests a second that may come from one address without a good API key; 0: any number. Of an
            IPv6 address the first 64 bits count.
        address_burst: how many more at once.
        body_seconds: how long a body may take to arrive; of a batch, the next part of it.
        answer_seconds: how long an answer may take once the body is there, but for a batch.
        most_in_flight: requests at a time; more are turned away.
        threads: how many requests may be at the ledger at a time, beside spends, which are gathered.
        question_processes: in how many processes beside this one questions are worked out.
        question_seconds: how long one may take.
        open_metrics: whether `/metrics` needs no API key when asked for from this machine.
        tracing: whether each request is a span of OpenTelemetry.
        respondent_rate: requests a second that may come with one invitation in the long run; 0: any number.
        respondent_burst: how many more at once.
        device_lifetime: ε that a respondent's device allows itself on this service's pages, as a decimal; whoever has
            the device can lower it.
        device_day: ε that it allows itself a day; None: no limit of a day.
        alert_webhook: the address that alerts are sent to; None: none are raised.
        alert_secret_file: the file with the secret that they are signed with.
        alert_used: how many percent of a limit are worth an alert, each once in a window.
        alert_users: of which share of the users that many must be used.
        alert_refusals: which share of what was asked in an hour must be refused for an alert, once a day.
        alert_least: of how many requests at least.
        alert_seconds: how often that is looked at.
        verify_hours: how often the ledger is verified; 0: only when somebody asks for it.
    """

    reports: Path | None = None
    least_reports: int = LEAST_REPORTS
    most_bytes: int = 1 << 20
    most_line: int = 1 << 16
    rate: float = 0
    burst: int = 100
    address_rate: float = 100
    address_burst: int = 1000
    body_seconds: float = 20
    answer_seconds: float = 60
    most_in_flight: int = 1000
    threads: int = 64
    question_processes: int = 1
    question_seconds: float = 10
    open_metrics: bool = False
    tracing: bool = False
    respondent_rate: float = 2
    respondent_burst: int = 60
    device_lifetime: str = "16"
    device_day: str | None = None
    alert_webhook: str | None = None
    alert_secret_file: Path | None = None
    alert_used: tuple[int, ...] = (80, 100)
    alert_users: float = 0.05
    alert_refusals: float = 0.5
    alert_least: int = 100
    alert_seconds: float = 60
    verify_hours: float = 0
