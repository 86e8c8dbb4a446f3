"""Settings of the service."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ldp_budget.errors import InvalidParameter

_ORIGIN = re.compile(r"https?://([a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(:[0-9]{1,5})?")


@dataclass(frozen=True)
class Settings:
    """Settings of the service.

    Parameters:
        most_bytes: maximum bytes of a request body. A batch has at most 8 MiB and 10,000 lines.
        rate: sustained requests per second of one API key; 0: unlimited.
        burst: additional requests that may arrive at once.
        address_rate: sustained requests per second from one address without a valid API key; 0: unlimited. An IPv6
            address counts by its first 64 bits.
        address_burst: additional requests that may arrive at once.
        body_seconds: seconds within which a body must arrive.
        most_in_flight: maximum number of concurrent requests; further requests are refused.
        threads: maximum number of threads that use the ledger. Single spends use none.
        question_processes: number of worker processes for calculations.
        question_seconds: maximum seconds of one calculation.
        estimate_processes: number of worker processes for estimates.
        estimate_seconds: maximum seconds of one estimate.
        open_metrics: True if `/metrics` needs no API key when it is requested from this machine.
        tracing: True to record each request as an OpenTelemetry span.
        respondent_rate: sustained requests per second with one invitation; 0: unlimited.
        respondent_burst: additional requests that may arrive at once.
        device_lifetime: ε that a respondent's device allows itself on this service's pages, as a decimal. The user
            of the device can lower it.
        device_day: ε per day that the device allows itself; None: no daily limit.
        usage_seconds: seconds for which the usage statistics are reused; those of a large ledger for longer. 0: never.
        verify_hours: hours between two verifications of the ledger; 0: only on request.
        origins: web origins whose pages may call the service from a browser, such as `https://app.example`; none by
            default. Every request still needs its API key or invitation.
        publications: the folder that `ldp-budget publish` wrote for a collection, or a folder of such folders, each with the
            name of its collection. The page `/check` fetches them. None: no publication is served.

    Raises:
        InvalidParameter: an origin is not `https://HOST` or `http://HOST`, with a port if it is not the usual one.
    """

    most_bytes: int = 1 << 20
    rate: float = 0
    burst: int = 100
    address_rate: float = 100
    address_burst: int = 1000
    body_seconds: float = 20
    most_in_flight: int = 1000
    threads: int = 64
    question_processes: int = 1
    question_seconds: float = 10
    estimate_processes: int = 1
    estimate_seconds: float = 120
    open_metrics: bool = False
    tracing: bool = False
    respondent_rate: float = 2
    respondent_burst: int = 60
    device_lifetime: str = "16"
    device_day: str | None = None
    usage_seconds: float = 5
    verify_hours: float = 0
    origins: tuple[str, ...] = ()
    publications: str | None = None

    def __post_init__(self) -> None:
        for origin in self.origins:
            # Browsers send an origin in lower case without a path; `*` would let every page in.
            if not _ORIGIN.fullmatch(origin):
                raise InvalidParameter("origin", "https://HOST or http://HOST, perhaps with a :PORT", origin)
