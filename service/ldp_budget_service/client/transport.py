"""HTTP transport of the client: checks the URL and the API key, sends requests and repeats them.

A request whose result is unknown is repeated, within a bounded time and under one idempotency key. So it is charged
once, however often it is sent.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import random
import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit
from weakref import WeakSet

from ldp_budget._validation import check_instance, check_switch, shown, shown_with_type
from ldp_budget.accounting.batch import FAILED
from ldp_budget.errors import (
    ApprovalConflict,
    ApprovalNeeded,
    ClockError,
    InvalidParameter,
    KeyConflict,
    LdpBudgetError,
    LedgerError,
    LedgerKeyMissing,
    LedgerMissing,
    LedgerMoved,
    LedgerUpgraded,
    NameTaken,
    NotSupported,
    OutsideDomain,
    PluginError,
    RecordConflict,
    ReportFileError,
    ReservationConflict,
    SandboxError,
    TableError,
    UnknownName,
)

from ..api.problem_details import ServiceProblem, code_of, error_of
from ..api.schemas import missing_there

if TYPE_CHECKING:
    import httpx2


T = TypeVar("T")

_LOG = logging.getLogger("ldp_budget.client")

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_PRINTED = re.compile(r"[\x21-\x7e]*")
_KEY = re.compile(r"[\x21-\x7e]{1,500}")

_EXPECTED = "the URL of a service, such as https://budget.example.org, without a user name, a password or a query"


class Address(NamedTuple):
    """The normalized URL of the service, and True if the connection is encrypted."""

    url: str
    encrypted: bool


def checked(url: object, plain_http: bool) -> Address:
    """Return the address, if nothing in it is ambiguous. Raises `InvalidParameter`.

    Without encryption the host must be this machine, unless `plain_http` is set: an eavesdropper reads the API key.
    """
    check_switch("plain_http", plain_http)
    if not isinstance(url, str):
        raise InvalidParameter("url", _EXPECTED, shown_with_type(url))
    if not _PRINTED.fullmatch(url):
        raise InvalidParameter(
            "url", _EXPECTED, "characters that a URL cannot have"
        )  # some would be left out silently
    try:
        parts = urlsplit(url)
        host, port = parts.netloc.rpartition("@")[2], parts.port
    except ValueError:
        raise InvalidParameter("url", _EXPECTED, "a text that is not a URL") from None
    host = host if port is None else host[: -len(f":{port}")]
    if parts.scheme not in ("https", "http"):
        raise InvalidParameter("url", _EXPECTED, f"{parts.scheme or 'no scheme'}://…")
    path = parts.path.rstrip("/")
    if "@" in parts.netloc or parts.query or parts.fragment or not _HOST.fullmatch(host) or not _PATH.fullmatch(path):
        raise InvalidParameter("url", _EXPECTED, f"{parts.scheme}://…")  # the rest may be a password
    if parts.scheme == "http" and not plain_http and not _is_loopback(host):
        hint = "Without encryption, others on the network can read the API key. To accept that, set plain_http=True."
        raise InvalidParameter("url", "an https:// URL", f"http://{host}", hint=hint)
    return Address(f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}", parts.scheme == "https")


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def checked_key(key: object) -> str:
    """Return an API key that a header can hold. Raises `InvalidParameter`, which does not show the key."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        found = "a text that is not an API key" if isinstance(key, str) else f"a {type(key).__name__}"
        raise InvalidParameter("key", "an API key, as `ldp-budget api-key create` printed it", found)
    return key


HINT = "Install it: pip install 'ldp-budget[remote]'"

_UNREACHED = "cannot connect to the service"
_IN_DOUBT = "It is unknown whether the request was carried out."

FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
"""Seconds. A retry waits a random time up to the first; each further retry up to twice that, at most the longest."""
LONGEST = 86_400.0

# Statuses that a retry may cure, except for errors that an operator must fix and requests that were not begun.
_LATER = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_LASTING = tuple(
    kind.code
    for kind in (ClockError, SandboxError, LedgerMissing, PluginError, ReportFileError, TableError, LdpBudgetError)
)
# One instance may lack the ledger's new secret, have the moved ledger open or be of an earlier version; others are not.
_NOT_BEGUN = (
    "slow-request",
    "overloaded",
    "not-ready",
    LedgerKeyMissing.code,
    LedgerMoved.code,
    LedgerUpgraded.code,
)
# Codes that only the ledger itself sends: an earlier request under the same key was not done either.
_CONCLUSIVE = frozenset(
    kind.code
    for kind in (
        InvalidParameter,
        OutsideDomain,
        UnknownName,
        NameTaken,
        NotSupported,
        KeyConflict,
        ReservationConflict,
        RecordConflict,
        ApprovalNeeded,
        ApprovalConflict,
    )
)

# Problems of a line after which all lines are sent again.
_AGAIN = (LedgerError.code, "timeout")

# Clients inherited by a fork. Their sockets belong to the parent, so they are kept and never closed here.
_OF_PARENTS: list[Any] = []
_SERVICES: WeakSet[Service] = WeakSet()


class Answer(NamedTuple):
    """The service's answer: the HTTP status, the code of a problem, and the JSON."""

    status: int
    code: str
    data: Any
    headers: Mapping[str, str]
    wrote: bool = False
    """True if the request may have changed something."""
    doubtful: bool = False
    """True if an earlier attempt without an answer may have done it."""


class Failure(NamedTuple):
    """The reason to repeat a request."""

    reason: str
    """A short name: the status, or `connection`."""
    why: str
    doubt: bool
    """True if the request may have been done all the same."""
    wait: float = 0.0
    """The seconds that the service asks to wait."""


class Service:
    """One service, used with one API key. Threads may share it; after a fork it opens new connections.

    Parameters as those of `Client`.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float,
        patience: float,
        tls: ssl.SSLContext | None,
        plain_http: bool,
    ) -> None:
        self._address = checked(url, plain_http)
        self._key = checked_key(key)
        self._timeout = _seconds("timeout", timeout)
        self._patience = _seconds("patience", patience)
        if tls is not None:
            check_instance("tls", tls, ssl.SSLContext, "an `ssl.SSLContext` or None")
        self._tls = tls
        try:
            import httpx2
        except ImportError:
            raise NotSupported("the client needs the package httpx2", hint=HINT) from None
        self._http = httpx2
        self._closed = False
        self._made: httpx2.Client | None = None
        self._lock = threading.Lock()
        self.url = self._address.url
        self.repeated: Counter[str] = Counter()
        _SERVICES.add(self)

    def close(self) -> None:
        """Close the service; pending requests fail with an error."""
        with self._lock:
            self._closed = True
            made, self._made = self._made, None
        if made is not None:
            made.close()

    def forked(self) -> None:
        """Leave the parent's connections alone, in the child."""
        self._lock = threading.Lock()
        if self._made is not None:
            _OF_PARENTS.append(self._made)
            self._made = None

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
        writes: bool = False,
        accept: str = "",
        patience: float | None = None,
    ) -> Answer:
        """Return the answer to a request; with `accept`, a problem with that code counts as an answer.

        For a request that `writes`, an error says if it may have been done. Raises the error that the service
        reports.
        """
        tries = _Tries(self, writes, self._patience if patience is None else patience)
        while True:
            request = self._request(method, path, body, query, key, tries.left(self._timeout, patience))
            response = self._sent(request, tries)
            answer = None if response is None else self._answer(response, tries)
            if answer is not None and (answer.code in ("", accept)):
                return answer._replace(wrote=writes, doubtful=tries.doubt)
            if answer is not None:
                raise tries.settled(answer)

    def lines(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None
    ) -> NdjsonResponse:
        """Return the lines of an answer of any length, each a JSON value; repeated only before the first line."""
        tries = _Tries(self, False, self._patience)
        while True:
            request = self._request(method, path, body, query, None, tries.left(self._timeout, None))
            response = self._sent(request, tries, stream=True)
            if response is None:
                continue
            if response.status_code == HTTPStatus.OK:
                return NdjsonResponse(self, response)
            answer = self._answer(response, tries)
            if answer is not None:
                raise tries.settled(answer)

    def exchange(self, path: str, lines: Sequence[bytes], *, first: bytes = b"", key: str | None = None) -> list[Any]:
        """Send lines and return an answer to each, in order; all lines are resent until each has one.

        `first` is sent before them and has no answer.
        """
        tries = _Tries(self, True, self._patience)
        body = b"".join([first, *lines])
        while True:
            request = self._request("POST", path, body, None, key, tries.left(self._timeout, None))
            response = self._sent(request, tries)
            if response is None:
                continue
            if response.status_code != HTTPStatus.OK:
                answer = self._answer(response, tries)
                if answer is not None:
                    raise tries.settled(answer)
                continue
            try:
                rows = [json.loads(line) for line in response.content.split(b"\n") if line]
                ended = [row for row in rows if row.get("status") == FAILED and code_of(row["problem"]) in _AGAIN]
            except (ValueError, LookupError, TypeError, AttributeError):
                raise tries.error("the answer of the service cannot be read", True) from None
            if not ended and len(rows) == len(lines):
                return rows
            why = str(ended[0]["problem"].get("detail", "")) if ended else "the service did not answer every line"
            tries.again(Failure("lines", why, True))

    # -- requests ---------------------------------------------------------------------------------------

    def _sent(
        self, asked: tuple[httpx2.Client, httpx2.Request], tries: _Tries, *, stream: bool = False
    ) -> httpx2.Response | None:
        """Return the response, or for a stream its beginning; None if the request must be repeated.

        Raises `LedgerError` if no time is left to repeat it, or the service was closed.
        """
        client, request = asked
        try:
            response = client.send(request, stream=stream)
            if stream and response.status_code != HTTPStatus.OK:
                response.read()
        except self._http.TransportError as error:
            tries.again(self._lost(error, tries))
            return None
        except RuntimeError:
            raise self._closed_meanwhile(tries) from None
        return response

    def _request(
        self,
        method: str,
        path: str,
        body: Any,
        query: Mapping[str, Any] | None,
        key: str | None,
        timeout: float,
    ) -> tuple[httpx2.Client, httpx2.Request]:
        client = self._client()
        headers = {} if key is None else {"Idempotency-Key": key}
        content = None
        if body is not None:
            kind, content = (
                ("application/x-ndjson", body)
                if isinstance(body, bytes)
                else ("application/json", json.dumps(body, separators=(",", ":")).encode())
            )
            headers["Content-Type"] = kind
        request = client.build_request(
            method, self.url + path, params=query, content=content, headers=headers, timeout=timeout
        )
        return client, request

    def _client(self) -> httpx2.Client:
        """The HTTP client of this process."""
        with self._lock:
            if self._closed:
                raise LedgerError(self.url, "this client is closed", hint="Create a new `Client`.")
            if self._made is None:
                self._made = self._new_client()
            return self._made

    def _new_client(self) -> httpx2.Client:
        encrypted = self._address.encrypted
        return self._http.Client(
            headers={"Authorization": f"Bearer {self._key}", "User-Agent": "ldp-budget"},
            # Plain HTTP has no certificate to verify, and this client never uses an encrypted connection then.
            verify=(self._tls or True) if encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            # A proxy would see unencrypted data, including the API key.
            trust_env=encrypted,
            follow_redirects=False,
            limits=self._http.Limits(max_connections=None, max_keepalive_connections=100),
        )

    # -- answers ----------------------------------------------------------------------------------------

    def _answer(self, response: httpx2.Response, tries: _Tries) -> Answer | None:
        """Return the service's answer; None if the request must be repeated, after the wait."""
        data = _json(response)
        problem = data if isinstance(data, dict) and response.status_code >= HTTPStatus.BAD_REQUEST else {}
        answer = Answer(response.status_code, code_of(problem), data, response.headers)
        failure = _failure(answer)
        # A read that took too long will take too long again.
        if failure is not None and (tries.writes or answer.status != HTTPStatus.GATEWAY_TIMEOUT):
            tries.again(failure)
            return None
        if answer.status != HTTPStatus.OK and not answer.code:
            raise tries.error(
                f"the answer has HTTP status {answer.status} and is not from an ldp-budget service", True
            )
        if answer.status == HTTPStatus.OK and data is None:
            raise tries.error("the answer is not JSON, so it is not from an ldp-budget service", True)
        return answer

    def _lost(self, error: httpx2.TransportError, tries: _Tries) -> Failure:
        """Return the failure that a lost connection means."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise tries.error(
                    f"the certificate of the service cannot be verified: {cause.verify_message}"
                ) from None
            cause = cause.__cause__ or cause.__context__
        http = self._http
        nothing_sent = http.ConnectError, http.ConnectTimeout, http.PoolTimeout, http.ProxyError
        if isinstance(error, http.LocalProtocolError | http.UnsupportedProtocol):
            raise tries.error("this request cannot be sent to the service") from None
        if isinstance(error, nothing_sent):
            return Failure("connection", _UNREACHED, False)
        return Failure("connection", "the connection was lost before the service answered", True)

    def _closed_meanwhile(self, tries: _Tries) -> LedgerError:
        return tries.error("this client was closed in the meantime", True)


class NdjsonResponse:
    """The lines of an answer, to be read once."""

    def __init__(self, service: Service, response: httpx2.Response) -> None:
        self._service, self._response = service, response

    def __iter__(self) -> Iterator[Any]:
        rest = b""
        try:
            for chunk in self._response.iter_bytes():
                *whole, rest = (rest + chunk).split(b"\n")
                yield from map(self._row, filter(None, whole))
            if rest:
                yield self._row(rest)
        except (self._service._http.TransportError, ValueError):
            raise LedgerError(self._service.url, "the connection was lost before the end of the answer") from None
        finally:
            self._response.close()

    def _row(self, line: bytes) -> Any:
        """Return a row, or raise the error that ended the rows early."""
        row = json.loads(line)
        if isinstance(row, dict) and row.keys() == {"problem"}:
            problem = row["problem"]
            raise error_of(self._service.url, problem["status"], problem)
        return row


class _Tries:
    """The attempts of one request: their total time, and if one of them may have been done."""

    def __init__(self, service: Service, writes: bool, patience: float) -> None:
        self._service, self.writes = service, writes
        self._end = time.monotonic() + patience
        self._wait = FIRST_WAIT
        self.doubt = False

    def left(self, timeout: float, patience: float | None) -> float:
        """Return the time limit of the next attempt, in seconds."""
        most = timeout if patience is None else patience
        return max(0.001, min(most, self._end - time.monotonic()))

    def again(self, failure: Failure) -> None:
        """Wait for the next attempt; raises `LedgerError` if there is no time for one."""
        self.doubt |= failure.doubt
        # Randomized, so that clients with the same wait do not return at the same moment.
        wait = failure.wait + random.uniform(0, self._wait)
        self._wait = min(2 * self._wait, LONGEST_WAIT)
        if time.monotonic() + wait >= self._end:
            hint = "Check the URL, or start the service." if failure.why == _UNREACHED else ""
            raise self.error(failure.why, hint=hint)
        left = self._end - time.monotonic()
        _LOG.info("%s: %s. Retrying for %.0f s.", self._service.url, failure.why, left)
        self._service.repeated[failure.reason] += 1
        time.sleep(wait)

    def error(self, why: str, doubt: bool = False, hint: str = "") -> LedgerError:
        """Return the error for a missing answer. Its `unknown` is True if the request may have been done."""
        unknown = self.writes and (self.doubt or doubt)
        if self.writes:
            why = f"{why.rstrip('.')}. {_IN_DOUBT if unknown else 'Nothing was changed.'}"
        return LedgerError(self._service.url, why, unknown=unknown, hint=hint)

    def settled(self, answer: Answer) -> LdpBudgetError:
        """Return the error that the service reports."""
        if answer.code in ("not-found", "method-not-allowed"):
            error: LdpBudgetError = NotSupported(f"the service at {self._service.url} does not support this request")
        else:
            error = error_of(self._service.url, answer.status, answer.data)
        if isinstance(error, ServiceProblem) and answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return self.error(str(error), True)
        if not (self.writes and self.doubt) or answer.code in _CONCLUSIVE:
            return error
        # An earlier attempt may have been done, even if this one failed.
        if isinstance(error, ClockError | SandboxError) or type(error) is LedgerError:
            error.unknown = True
            return error
        return self.error(str(error))


def _failure(answer: Answer) -> Failure | None:
    """Return the reason to repeat a request with this answer; None if it must not be repeated."""
    status, wait = answer.status, _asked_to_wait(answer.headers)
    if answer.code == "in-flight":
        return Failure("409", "the same request is still in progress", True, wait)
    if answer.code == "position-not-reached":
        return Failure("409", "what was written cannot be read there yet", False, wait)
    if answer.code == "ledger-error":
        unknown = answer.data.get("unknown") is not False
        return Failure(str(status), str(answer.data.get("detail", "")), unknown, wait)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Failure(str(status), "the service received too many requests", False, wait)
    if status in _LATER and answer.code not in _LASTING:
        return Failure(
            str(status),
            answer.code or f"the service answered HTTP status {status}",
            answer.code not in _NOT_BEGUN,
            wait,
        )
    return None


def _asked_to_wait(headers: Mapping[str, str]) -> float:
    """Return the seconds of `Retry-After`: a number, or a date."""
    said = headers.get("Retry-After", "")
    if said.isascii() and said.isdigit() and len(said) < 10:
        return float(said)
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _json(response: httpx2.Response) -> Any:
    """Return the JSON of an answer; None if it is not JSON."""
    try:
        return response.json()
    except ValueError:
        return None


def _seconds(option: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LONGEST:
        raise InvalidParameter(option, f"a number of seconds > 0 and <= {LONGEST:g}", shown(value))
    return float(value)


def _forked() -> None:
    for service in list(_SERVICES):
        service.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


# -- errors for the caller -----------------------------------------------------------------------------------


class Rewording:
    """Rewords errors for the caller: names the plugin that the service lacks, or the key to repeat the request with."""

    def __init__(self, url: str, chosen: object, key: str | None = None) -> None:
        self._url, self._chosen, self._key = url, chosen, key

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UnknownName) and error.kind == "mechanism":
            raise missing_there(self._url, self._chosen) from None
        if self._key is None:
            return
        if isinstance(error, KeyConflict):
            raise KeyConflict(self._key) from None
        if isinstance(error, LedgerError) and error.unknown:
            vars(error)["key"] = self._key
            hint = f"Repeat the request with the key {self._key!r} to find out."
            error.args, error.hint = (error.completed(hint),), hint


async def in_thread(call: Callable[..., T], *arguments: Any, **more: Any) -> T:
    """Return what a call returns in a thread, while the event loop runs other tasks."""
    from asyncio import to_thread  # an event loop has imported it

    return await to_thread(call, *arguments, **more)
