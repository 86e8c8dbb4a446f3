"""Spans of OpenTelemetry: one for each request, named by the template of its route, and nothing else of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, StatusCode

import ldp_budget

from .. import current
from .requests import METHODS, UNKNOWN, Message, Receive, Scope, Send, route_of

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


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
            current.told().trace = format(span.get_span_context().trace_id, "032x")
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
