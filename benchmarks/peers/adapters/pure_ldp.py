"""pure-ldp: frequency oracles, one report at a time."""

from __future__ import annotations

from typing import Any

from work import Collector, NotOfferedError

IMPORTS = ("pure_ldp.frequency_oracles",)
MISSING = {
    "calibrate": "no Gaussian noise",
    "compose": "does not compose",
    "spend": "has no account",
}


def collect(mechanism: str, shape: dict[str, int], epsilon: float) -> Collector:
    from pure_ldp import frequency_oracles as oracles

    answers = shape["answers"]
    own: dict[str, Any] = {"index_mapper": lambda value: value}
    if mechanism == "oue":
        client = oracles.UEClient(epsilon, answers, use_oue=True, **own)
        new = lambda: oracles.UEServer(epsilon, answers, use_oue=True, **own)  # noqa: E731
    elif mechanism in ("rr", "grr"):
        client = oracles.DEClient(epsilon, answers, **own)
        new = lambda: oracles.DEServer(epsilon, answers, **own)  # noqa: E731
    elif mechanism == "hcms":
        server = oracles.CMSServer(epsilon, shape["hashes"], shape["width"], is_hadamard=True)
        client = oracles.CMSClient(epsilon, server.get_hash_funcs(), shape["width"], is_hadamard=True)
        new = lambda: server  # noqa: E731
    elif mechanism == "rappor":
        client, new = _rappor(oracles, shape, epsilon, own)
    else:
        raise NotOfferedError("its RAPPOR says of itself that it has no second step, for many reports")

    def aggregate(reports: Any) -> Any:
        server = new()
        for report in reports:
            server.aggregate(report)
        return server

    def estimate(reports: Any) -> Any:
        return aggregate(reports).estimate_all(range(answers), suppress_warnings=True)

    return Collector(
        epsilon=epsilon,
        randomize=lambda values, secrets: [client.privatise(value) for value in values],
        rows=lambda reports: [_flat(report) for report in reports],
        aggregate=aggregate,
        estimate=estimate,
    )


def _rappor(oracles: Any, shape: dict[str, int], epsilon: float, own: dict[str, Any]) -> tuple[Any, Any]:
    sizes = shape["bits"], shape["hashes"], shape["answers"]

    def served(f: float) -> Any:
        return oracles.RAPPORServer(f, *sizes, num_of_cohorts=shape["cohorts"], **own)

    asked = oracles.RAPPORClient(0.5, shape["bits"], [], shape["cohorts"], **own).convert_eps_to_f(epsilon)
    server = served(asked)
    client = oracles.RAPPORClient(asked, shape["bits"], server.get_hash_funcs(), shape["cohorts"], **own)
    return client, lambda: server


def _flat(report: Any) -> list[int]:
    """A report of numbers, and lists of numbers, as one list."""
    if hasattr(report, "__len__"):
        return [number for part in report for number in _flat(part)]
    return [int(report)]
