"""The card of a mechanism: its parameters, client program, law, proof, vectors, an example and its source.

Program, law and vectors are those of one set of parameters: the first of the mechanism's examples, or that of its help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget.errors import LdpBudgetError
from ldp_budget.sdk.parameters import Flag

from .examples import example_options, example_text, example_values
from .tables import field_lines, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.mechanism import Mechanism
    from ldp_budget.sdk.parameters import Field

USES = {
    "gaussian": "numbers under a limit with δ > 0, above all many reports of one user",
    "laplace": "numbers without δ: the standard mechanism",
    "staircase": "numbers without δ: less noise than laplace at a large ε",
    "bounded-laplace": "numbers that must stay in their range; a mean of them is biased",
    "bounded-staircase": "numbers that must stay in their range, at a large ε; a mean of them is biased",
    "randomized-response": "questions with the answers yes and no",
    "unary-encoding": "probabilities p and q of your own; else prefer sue, oue or subset-selection",
    "sue": "many answers that are all frequent, in reports of one bit for each answer",
    "oue": "many answers, most of them rare, in reports of one bit for each answer",
    "random-substitution": "few answers: up to about 1.5 (e^ε + 1)",
    "subset-selection": "more answers than about 1.5 (e^ε + 1), with the least error",
    "matrix-substitution": "a channel of your own, as a matrix of probabilities",
    "cms": "words or URLs: more answers than you can list",
    "hcms": "words or URLs, in reports of a few bytes",
    "one-bit-mean": "the mean of a number, from one bit of each user",
    "d-bit-flip": "a histogram of buckets; with --memoize in repeated rounds",
    "rappor": "the same answer in every round, from a memoized Bloom filter",
    "declared": "a guarantee of another library: it is charged only",
}
"""The uses that each built-in mechanism suits."""
_VECTORS = 3
_BYTES = 24
"""The most hexadecimal digits of a stream or a report that the card prints."""


def card(mechanism: type[Mechanism], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the card as `mechanisms NAME --json` prints it. `row` is the row of the mechanism in `mechanisms --json`.

    `client`, `law` and `vectors` are null where the mechanism has no client program, or none at `example`.
    """
    values = example_values(mechanism)
    fields = [
        {"name": field.name, "expected": field.expected, "required": field.required, "meaning": field.help}
        for field in mechanism.fields.values()
    ]
    found = {**row, "use_for": USES.get(mechanism.name, ""), "fields": fields, "example": values}
    return {**found, **_drawn(mechanism, values)}


def _drawn(mechanism: type[Mechanism], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return client, law and vectors of a mechanism with these values."""
    from .program_text import program_lines

    try:
        made = mechanism(**{name: mechanism.fields[name].parse_option(str(value)) for name, value in values.items()})
        guarantee = made.guarantee.describe()
    except (LdpBudgetError, OSError) as error:
        return {"client": None, "law": {"problem": str(error)}, "vectors": None}
    try:
        program = made.client_program()
    except LdpBudgetError:
        return {"client": None, "law": {"rule": None, "guarantee": guarantee}, "vectors": None}
    return {"client": program_lines(program), "law": _law(made, guarantee), "vectors": list(_vectors(made, program))}


def _law(made: Mechanism, guarantee: dict[str, Any]) -> dict[str, Any]:
    """Return the rule that proves the law, the largest loss and the report that shows it; a declared law has no rule."""
    from ldp_budget.sdk.client_mechanism import worst_report
    from ldp_budget.sdk.domain import Categories
    from ldp_budget.sdk.report_law import law_of

    declared = {"rule": None, "guarantee": guarantee}
    if not isinstance(made.domain, Categories):
        return declared  # which two numbers are worst is declared, and a derivation takes seconds
    try:
        program = made.client_program()
        law = law_of(program)
        pair, report, loss = worst_report(program, law)
    except LdpBudgetError:
        return declared
    shown = {"pair": pair, "report": report, "loss": loss}
    return {"rule": law.rule, "every_pair": law.every_pair, **shown, "guarantee": guarantee}


def _vectors(made: Mechanism, program: Program) -> Iterator[dict[str, Any]]:
    """Yield a few answers with the bytes that a client reads, and the report that it makes of them."""
    from ldp_budget.sampling.rng import SeededStream, Stream
    from ldp_budget.sdk.interpreter import StreamDraws, read, run

    class Recorder(Stream):
        def __init__(self, seed: int) -> None:
            self.source, self.seen = SeededStream(seed), b""

        def read(self, count: int) -> bytes:
            found = bytes(self.source.read(count))
            self.seen += found
            return found

    secret = bytes(range(32)) if program.memo else None
    for seed, answer in enumerate(list(made.critical_inputs())[:_VECTORS]):
        stream = Recorder(seed)
        report = run(program, read(program, answer), StreamDraws(stream, secret, made.fingerprint))
        seen = {"answer": answer, "secret": secret and secret.hex(), "stream": stream.seen.hex()}
        yield {**seen, "report": report.hex()}


def card_lines(mechanism: type[Mechanism], row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the card."""
    found = card(mechanism, row)
    fields = {"name": mechanism.name, "aliases": row["aliases"], "definition": mechanism.summary}
    fields["use for"] = found["use_for"]
    width = terminal_width()
    yield from field_lines({name: value for name, value in fields.items() if value}, width)
    yield "parameters"
    yield from field_lines({_spelt(field): _described(field) for field in mechanism.fields.values()}, width, 2)
    options = example_options(mechanism, (name for name, field in mechanism.fields.items() if not field.derived))
    if found["client"]:
        yield f"client program, with {options}" if options else "client program"
        yield from (_cut(f"  {line}", width) for line in found["client"])
    checked = row["checked"] + (f": {row['proved']}" if row["proved"] else "")
    more = {"law": _law_text(found["law"]), "checked": checked, "vectors": _vector_text(found["vectors"])}
    more |= {"plugin": f"{row['plugin']} {row['plugin_version']}", "source": mechanism.source}
    yield from field_lines({name: value for name, value in more.items() if value}, width)
    yield ""
    yield example_text(f"calibrate {mechanism.name} {options}".strip())


def _law_text(law: Mapping[str, Any]) -> str:
    if "problem" in law:
        return ""
    promised = law["guarantee"]
    epsilon = "no finite ε" if promised["epsilon"] is None else f"ε = {promised['epsilon']:.9g}"
    kind = f"{epsilon} ({promised['kind']}; {promised['relation']})"
    if not law["rule"]:
        return f"declared: {kind}"
    lost = "without a bound" if law["loss"] is None else f"{law['loss']:.9g}"
    pairs = "every two answers" if law["every_pair"] else "some answers"
    shown = f"answers {law['pair'][0]} and {law['pair'][1]} with the report {law['report']}"
    return f"derived by the rule of {law['rule']}, for {pairs}: {kind}. The largest loss is {lost}: {shown}"


def _vector_text(vectors: list[dict[str, Any]] | None) -> str:
    if not vectors:
        return ""
    first = vectors[0]
    stream = first["stream"] if len(first["stream"]) <= _BYTES else f"{first['stream'][:_BYTES]}…"
    report = first["report"] if len(first["report"]) <= _BYTES else f"{first['report'][:_BYTES]}…"
    return f"answer {first['answer']} and the bytes {stream or '(none)'} give the report {report} ({len(vectors)} with --json)"


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _spelt(field: Field[Any]) -> str:
    return f"--{field.name.replace('_', '-')}"


def _described(field: Field[Any]) -> str:
    """Return the help of a field with its range, and its default if it has one."""
    kind = "" if isinstance(field, Flag) else f": {field.expected}"
    default = "" if field.default is None or isinstance(field, Flag) else f" [default: {field.default}]"
    return f"{field.help}{kind}{default}{' (required)' if field.required else ''}"
