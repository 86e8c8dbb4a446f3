"""Logging and tracing: one JSON object per line, without any content that a caller sent.

The service's own log lines consist of chosen fields. Lines of other packages are reduced to fields that cannot repeat
a request, because a message may contain any value. Each request gives one log line and its metrics. With tracing, each
request is one OpenTelemetry span. The span is named by the template of its route and has no other content.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TextIO

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, StatusCode

import ldp_budget

from .. import request_attributes
from ..request_limits import describe, identifier

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from .metrics import Metrics


OURS = "ldp_budget_service"
_TRUSTED = ("uvicorn.error",)
"""Loggers whose messages concern only the server. Their exceptions are still reduced; the access log is separate."""


_as_text = json.JSONEncoder(ensure_ascii=False, default=str).encode


class JsonLines(logging.Formatter):
    """Formatter that turns a record into one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without a line break."""
        said = {"time": _moment(record.created), "level": record.levelname.lower(), "logger": record.name}
        said["event"] = self._event(record)
        if record.name.partition(".")[0] == OURS:
            said.update(getattr(record, "said", {}))
            if (error := getattr(record, "error", None)) is not None:
                said["error"] = error
        if record.exc_info and record.exc_info[1] is not None:
            said["error"] = describe(record.exc_info[1])
        return _as_text(said)

    @staticmethod
    def _event(record: logging.LogRecord) -> str:
        if record.name.partition(".")[0] == OURS or record.name in _TRUSTED:
            return record.getMessage().strip()
        return f"{record.levelname.lower()} in {record.module}, line {record.lineno}"


@contextmanager
def logging_to(stream: TextIO, *, requests: bool = True) -> Iterator[None]:
    """Log to a stream as JSON lines only. With `requests`, log one line per request.

    A thread writes the lines: a stream that its reader does not read delays no request. The end of the block waits for
    the lines that are left.
    """
    handler = _LaterLines(stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(logging.INFO if requests else logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "fastapi"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name != "uvicorn.access"
    try:
        yield
    finally:
        handler.end()


class _LaterLines(logging.Handler):
    """Handler whose thread writes the lines of a moment together.

    A thread that is woken for each line takes turns with the event loop: that costs as much as a request.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: deque[str] = deque()
        self._some, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Hand the line of a record to the thread."""
        try:
            self._lines.append(self.format(record))
            if not self._some.is_set():
                self._some.set()
        except Exception:
            self.handleError(record)

    def end(self) -> None:
        """Write the lines that are left, and end the thread."""
        self._ended.set()
        self._some.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._ended.is_set():
            self._some.wait()
            self._ended.wait(_MOMENT_SECONDS)
            self._some.clear()
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            with suppress(Exception):  # the stream is closed, or its disk is full
                self._stream.write("".join([f"{line}\n" for line in lines]))
                self._stream.flush()


_MOMENT_SECONDS = 0.02


def _moment(seconds: float) -> str:
    whole, micros = divmod(round(seconds * 1e6), 10**6)
    return f"{_second(whole)}.{micros:06}Z"


@lru_cache(maxsize=2)
def _second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


# -- requests ----------------------------------------------------------------------------------------

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOGGER = "ldp_budget_service.requests"
UNKNOWN = "(unknown)"
"""Route name of a request without a route. The path itself may contain anything, so it is not logged."""
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}

_log = logging.getLogger(LOGGER)


class Watched:
    """Outermost ASGI middleware: reports every request to the log and the metrics.

    A request is named by its route's template, `/v1/users/{user}/balance`, and never by its path.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        told = request_attributes.RequestContext(identifier(scope["headers"]), count=self._metrics.count)
        request_attributes.CURRENT.set(told)
        status, start = 499, time.perf_counter()  # 499: the client has disconnected

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, answer)
        finally:
            self._tell(scope, told, status, time.perf_counter() - start)

    def _tell(self, scope: Scope, told: request_attributes.RequestContext, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else UNKNOWN
        route = route_of(scope)
        self._metrics.answered(method, route, status, seconds, told)
        if not _log.isEnabledFor(logging.INFO):
            return
        said = {"request": told.id, "method": method, "route": route, "status": status, "ms": round(seconds * 1e3, 2)}
        said["caller"], said["code"] = told.caller, told.code
        if told.trace is not None:
            said["trace"] = told.trace
        _log.info("request", extra={"said": said})


def route_of(scope: Scope) -> str:
    """Return the template of a request's route."""
    return getattr(scope.get("route"), "path", None) or UNKNOWN


# -- tracing -----------------------------------------------------------------------------------------


class Traced:
    """ASGI middleware that records a request as a span, within the parent span of its `traceparent`.

    The usual instrumentation would record paths and query strings, which contain users.
    """

    def __init__(
        self, app: Callable[[Scope, Receive, Send], Awaitable[None]], provider: TracerProvider | None = None
    ) -> None:
        self._app = app
        self._tracer = trace.get_tracer("ldp_budget_service", ldp_budget.__version__, provider)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        parents = [value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"]
        parent = propagate.extract({"traceparent": parents[-1]} if parents else {})
        method = scope["method"] if scope["method"] in METHODS else UNKNOWN
        with self._tracer.start_as_current_span(
            method, parent, SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        ) as span:
            request_attributes.CURRENT.get().trace = format(span.get_span_context().trace_id, "032x")
            span.set_attribute("http.request.method", method)

            async def answer(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            try:
                await self._app(scope, receive, answer)
            finally:
                route = route_of(scope)
                span.update_name(f"{method} {route}")
                span.set_attribute("http.route", route)


def export() -> None:
    """Send the spans of this process as the environment configures it (`OTEL_EXPORTER_OTLP_ENDPOINT` and others).

    Raises ImportError if the exporter is not installed.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "ldp-budget"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
