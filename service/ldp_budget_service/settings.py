"""Settings of the service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ldp_budget.reports import LEAST_REPORTS


@dataclass(frozen=True)
class Settings:
    """Settings of the service.

    Parameters:
        reports: folder of the inboxes, one for each collection; None: reports are refused. Instances that share a
            ledger must share this folder too.
        least_reports: minimum number of reports for an estimate. Unsealed reports count in whole groups of this size.
        most_bytes: maximum bytes of a request body. Batches have no limit on their length.
        most_line: maximum bytes of one line of a batch.
        rate: sustained requests per second of one API key; 0: unlimited.
        burst: additional requests that may arrive at once.
        address_rate: sustained requests per second from one address without a valid API key; 0: unlimited. An IPv6
            address counts by its first 64 bits.
        address_burst: additional requests that may arrive at once.
        body_seconds: seconds within which a body must arrive; for a batch, the seconds until its next part.
        answer_seconds: seconds for a response after the body has arrived. Batches are exempt.
        most_in_flight: maximum number of concurrent requests; further requests are refused.
        threads: maximum number of threads that use the ledger. Spends are batched and do not count.
        question_processes: number of worker processes for calculations.
        question_seconds: maximum seconds of one calculation.
        open_metrics: True if `/metrics` needs no API key when it is requested from this machine.
        tracing: True to record each request as an OpenTelemetry span.
        respondent_rate: sustained requests per second with one invitation; 0: unlimited.
        respondent_burst: additional requests that may arrive at once.
        device_lifetime: ε that a respondent's device allows itself on this service's pages, as a decimal. The user
            of the device can lower it.
        device_day: ε per day that the device allows itself; None: no daily limit.
        alert_webhook: the address that alerts are sent to; None: no alerts are raised.
        alert_secret_file: the file with the secret that signs the alerts.
        alert_used: percentages of a limit that raise an alert, each once per window.
        alert_users: fraction of the users that must have reached the percentage.
        alert_refusals: fraction of the requests of one hour whose refusal raises an alert, at most once a day.
        alert_least: minimum number of requests in that hour.
        alert_seconds: seconds between two checks for alerts.
        verify_hours: hours between two verifications of the ledger; 0: only on request.
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
