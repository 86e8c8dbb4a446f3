"""`ldp-budget serve`: the HTTP service, which is the extra `service` and is imported by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ldp_budget_cli.app import given_time, ledger_path, place_for_ledger
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.number_types import NumberRange, WholeRange

if TYPE_CHECKING:
    from types import ModuleType

PROXIES = ("127.0.0.1", "::1")
"""The default addresses of a trusted proxy: this machine."""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=WholeRange(0, 65535),
    help="Listen on this port; 0 for any free port.",
)
@click.option(
    "--behind-tls-proxy",
    is_flag=True,
    help="Trust the X-Forwarded headers of a TLS proxy in front of the service; without --proxy, one at 127.0.0.1 or ::1",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="The address of the proxy, if it is another machine. Repeatable.",
)
@click.option("--rate", type=NumberRange(0), help="Limit the requests per second of one API key [default: no limit]")
@click.option("--burst", type=WholeRange(0), help="Requests of one API key beyond --rate at once [default: 100]")
@click.option(
    "--address-rate",
    type=NumberRange(0),
    help="Limit the requests per second from one address without a valid API key; 0: no limit [default: 100]",
)
@click.option("--address-burst", type=WholeRange(0), help="Requests beyond --address-rate at once [default: 1000]")
@click.option("--threads", type=WholeRange(1, 1000), help="Requests other than spends at a time [default: 64]")
@click.option(
    "--drain",
    default=30.0,
    show_default=True,
    type=NumberRange(1),
    help="Seconds in which running requests may finish at the end.",
)
@click.option("--open-metrics", is_flag=True, default=None, help="Show /metrics to this machine without an API key.")
@click.option("--tracing", is_flag=True, default=None, help="Send a span for each request (extra `tracing`).")
@click.option(
    "--verify-hours", type=NumberRange(0), help="Verify the ledger every so many hours [default: on request]"
)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Allow the pages of this web origin, such as https://app.example, to call the service from a browser. Repeatable.",
)
@click.option(
    "--publications",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Show the published survey in FOLDER, or in FOLDER/NAME, on the page /check.",
)
@click.option("--no-request-log", is_flag=True, help="Log no line for each request.")
@click.option("--in-memory", is_flag=True, help="Serve an empty ledger that ends with the process, for experiments.")
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    host: str,
    port: int,
    behind_tls_proxy: bool,
    proxies: tuple[str, ...],
    drain: float,
    no_request_log: bool,
    in_memory: bool,
    **given: Any,
) -> None:
    """Serve the ledger over HTTP until SIGTERM or Ctrl-C; running requests are finished first.

    The service listens on this machine only, unless you set --host. The log is JSON lines on stdout. A missing ledger
    is created. Clients need an API key: create one with `ldp-budget api-key create`.

    \b
    Example:
      ldp-budget serve --port 8000
    """
    if given_time(ctx) is not None:
        raise click.UsageError("--at does not go with serve: a service uses the clock. Leave --at out.")
    if proxies and not behind_tls_proxy:
        raise click.UsageError("--proxy needs --behind-tls-proxy.")
    service = _service()
    chosen = {name: value for name, value in given.items() if value not in (None, ())}
    service.serve(
        _ledger(ctx, in_memory),
        host,
        port,
        settings=service.Settings(**chosen),
        proxies=(proxies or PROXIES) if behind_tls_proxy else (),
        in_memory=in_memory,
        drain=drain,
        log_requests=not no_request_log,
        say=lambda text: print_note(text),
    )


def _ledger(ctx: click.Context, in_memory: bool) -> str:
    if not in_memory:
        return place_for_ledger(ctx)
    if ctx.find_root().obj and ledger_path(ctx) != ":memory:":
        raise click.UsageError(
            f"--in-memory uses no ledger file, but --ledger or LDP_BUDGET_LEDGER names {ledger_path(ctx)}. Leave "
            "--in-memory out, or unset the ledger."
        )
    return ":memory:"


def _service() -> ModuleType:
    """Return the module that runs the service. Raises `click.ClickException` if it is not installed."""
    try:
        return import_module("ldp_budget_service.server")
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing.startswith("ldp_budget"):
            raise
        why = f"The service needs {missing}. Install it: pip install 'ldp-budget[service]'"
        raise click.ClickException(why) from None
