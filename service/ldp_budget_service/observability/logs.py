"""The log: a JSON object a line, and no word of what a caller sent.

The lines of this service are made of fields that were chosen, and what other packages say is cut down to what cannot
repeat a request: a message may hold any value that somebody thought worth showing.

What is kept of each request: one line of the log, and the figures.

Spans of OpenTelemetry: one for each request, named by the template of its route, and nothing else of it.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, TextIO

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, StatusCode

import ldp_budget

from .. import request_context
from ..http_middleware import identifier
from ..request_limits import describe

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from .metrics import Metrics


OURS = "ldp_budget_service"
SECONDS = 0.1
"""How long a line may wait for others."""
_TRUSTED = ("uvicorn.error",)
"""Whose messages, but for errors' own, tell of the server only; its access log is another."""


class JsonLines(logging.Formatter):
    """Makes a line of JSON of a record."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        said = {"time": _moment(record.created), "level": record.levelname.lower(), "logger": record.name}
        said["event"] = self._event(record)
        if record.name.partition(".")[0] == OURS:
            said.update(getattr(record, "said", {}))
            if (error := getattr(record, "error", None)) is not None:
                said["error"] = error
        if record.exc_info and record.exc_info[1] is not None:
            said["error"] = describe(record.exc_info[1])
        return json.dumps(said, ensure_ascii=False, default=str)

    @staticmethod
    def _event(record: logging.LogRecord) -> str:
        if record.name.partition(".")[0] == OURS or record.name in _TRUSTED:
            return record.getMessage().strip()
        return f"{record.levelname.lower()} in {record.module}, line {record.lineno}"


class Together(logging.StreamHandler[TextIO]):
    """Writes lines of a tenth of a second at once, and a warning with those before it at once.

    For each write a thread lets the others run, and comes back when they let it. A process that is killed takes the
    last lines with it; what it has charged stands in the ledger.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._woken = threading.Event()
        threading.Thread(target=self._write_on, name="ldp-budget log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line, or write it."""
        try:
            self._lines.append(self.format(record) + self.terminator)
            if record.levelno >= logging.WARNING:
                self.flush()
            elif not self._woken.is_set():
                self._woken.set()
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Write what was kept."""
        with self.lock or nullcontext():
            lines, self._lines = self._lines, []
            if lines:
                self.stream.write("".join(lines))
                self.stream.flush()

    def _write_on(self) -> None:
        while self._woken.wait():
            time.sleep(SECONDS)
            self._woken.clear()
            with suppress(OSError, ValueError):  # nobody reads it any more
                self.flush()


def configure(stream: TextIO, *, requests: bool = True) -> None:
    """Have this process log to a stream, in JSON lines alone; with `requests`, a line for each of these."""
    handler = Together(stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(logging.INFO if requests else logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "fastapi"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name != "uvicorn.access"


def _moment(seconds: float) -> str:
    whole, micros = divmod(round(seconds * 1e6), 10**6)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{micros:06}Z"


Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOGGER = "ldp_budget_service.requests"
UNKNOWN = "(unknown)"
"""Stands for the route of a request that goes to none; its path may say anything."""
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}

_log = logging.getLogger(LOGGER)


class Watched:
    """ASGI middleware, outside of all other, that tells log and metrics of every request.

    A request is named by its route's template, `/v1/users/{user}/balance`, and never by its path.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        told = request_context.RequestContext(identifier(scope["headers"]), count=self._metrics.count)
        request_context.begin(told)
        status, start = 499, time.perf_counter()  # where nobody is there any more to be answered

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, answer)
        finally:
            self._tell(scope, told, status, time.perf_counter() - start)

    def _tell(self, scope: Scope, told: request_context.RequestContext, status: int, seconds: float) -> None:
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
    """The template of the route that a request went to."""
    return getattr(scope.get("route"), "path", None) or UNKNOWN


class Traced:
    """ASGI middleware that makes a span of a request, within the one that its `traceparent` names.

    The usual instrumentation would put paths and query strings in there, in which users stand.
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
            request_context.current_request().trace = format(span.get_span_context().trace_id, "032x")
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
    """Send the spans of this process where the environment says (`OTEL_EXPORTER_OTLP_ENDPOINT` and the like).

    Raises ImportError where the exporter is not installed.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "ldp-budget"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
