"""Pages of the HTTP reference, from the OpenAPI description of the service and its recorded examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import ldp_budget
import ldp_budget_service
from ldp_budget_service import create_app
from ldp_budget_service.auth import ACCESS
from ldp_budget_service.error_codes import STATUSES

SUBJECTS = {
    "spending": ("Spending", "Charge users: in one step, in two, or in a batch."),
    "users": ("Users", "Balances, histories and reservations of users, and erasure."),
    "policies": ("Policies", "Limits, and the approval of changes by a second key holder."),
    "collections": ("Collections", "The set-ups that clients and server share."),
    "reports": ("Reports and estimates", "Take reports, close rounds and estimate."),
    "respondents": ("Respondents", "What a respondent with an invitation can see."),
    "questions": ("Calculations", "Calibrate, compose, plan and compare. Nothing is stored."),
    "ledger": ("Ledger", "Journal, administrative records, API keys, verification and checkpoints."),
    "overview": ("Overview", "Aggregate figures of the ledger, without users."),
    "officer": ("Privacy officer", "Policies, keys and records for the privacy officer."),
    "watching": ("Monitoring", "Health checks and Prometheus metrics."),
    "about": ("Problem types", "The meaning of an error code."),
}
"""The title and the subject of each tag of the OpenAPI description."""
PAGES = {
    "users": ("Charges, users and policies", ("spending", "users", "policies")),
    "collections": ("Collections, reports and calculations", ("collections", "reports", "respondents", "questions")),
    "ledger": ("Ledger and monitoring", ("ledger", "overview", "officer", "watching", "about")),
}
"""The pages: a title and the subjects of each."""
EXAMPLES = Path(ldp_budget_service.__file__).with_name("examples.json")
WIDTH = 100
MOST_LINES = 12
"""Of a response; of a longer one only the members are named."""
FEW = 4
"""Members of an answer whose rows are named too."""
COMMON = (
    "malformed",
    "invalid-parameter",
    "not-supported",
    "unauthorized",
    "forbidden",
    "unknown-name",
    "slow-request",
    "too-large",
    "too-many-requests",
    "overloaded",
    "ledger-error",
    "ledger-key-missing",
    "ledger-upgraded",
    "clock-error",
)
"""The error codes of every operation that needs an API key and the ledger."""
EVERYWHERE = {"Idempotency-Key": "idempotency-keys"}
"""Parameters that the conventions describe once, with the heading."""
POSITION = "min_position"
"""The parameter of reads. The conventions say which operations take it."""
NO_POSITION = ("/metrics", "/v1/ledger/checkpoint", "/v1/ledger/verifications")
"""The paths with the scope read or audit that do not take it."""
THERE = ("position-not-reached", "key-conflict")
"""The error codes of these parameters, which the conventions name."""
MEANINGS = {
    "user": "The user.",
    "users": "The users; for `compare` their number.",
    "mechanism": "A mechanism with its options: `name`, and those of the command line with `_` for `-`.",
    "collection": "The name of a collection, in place of `mechanism`.",
    "reports": "The number of reports of one user. Default: 1.",
    "policy": "The name of the policy. Default: `default`.",
    "receipt": "The receipt of a reservation.",
    "name": "The name of the object.",
    "number": "The number of the proposal.",
    "demanded": "True to require approvals.",
    "categories": "The possible answers, in order.",
    "title": "Title of the survey page.",
    "question": "The question that respondents answer.",
    "purpose": "The purpose of the survey, shown to respondents.",
    "contact": "The contact address, shown to respondents.",
    "if-none-match": "The `ETag` of an earlier response; 304 if nothing changed.",
    "round": "The name of the round.",
    "total_epsilon": "The ε of all reports together.",
    "total_delta": "The δ of all reports together. Default: 0.",
    "epsilon": "The ε of one report.",
    "domain_size": "The number of possible answers.",
    "lower": "The smallest value, for numeric mechanisms.",
    "upper": "The largest value, for numeric mechanisms.",
    "kind": "The kind of the record.",
    "body": "Any JSON object.",
    "expected": "The number of the newest record that you know.",
    "scopes": "The scopes of the API key.",
    "policies": "Bind the key to these policies.",
    "collections": "Bind the key to these collections.",
    "share": "Bind the key to this sub-limit.",
    "code": "The error code.",
}
"""The meaning of parameters and members whose schema has no description."""


@cache
def schema() -> dict[str, Any]:
    """The OpenAPI description, as `GET /openapi.json` returns it."""
    with ldp_budget.Accountant(":memory:") as accountant:
        return create_app(accountant).openapi()


def operations() -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Method, path and description of every operation, by subject."""
    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {tag: [] for tag in SUBJECTS}
    for path, methods in schema()["paths"].items():
        for method, operation in methods.items():
            found[operation.get("tags", ["about"])[0]].append((method.upper(), path, operation))
    return found


@cache
def examples() -> list[dict[str, Any]]:
    recorded: list[dict[str, Any]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return recorded


def pages() -> Iterator[tuple[str, Iterator[str]]]:
    """The path of each page and its lines."""
    found = operations()
    unlisted = set(found) ^ {tag for _, tags in PAGES.values() for tag in tags}
    assert not unlisted, f"PAGES has no page for these tags, or one too many: {', '.join(sorted(unlisted))}"
    for page, (title, tags) in PAGES.items():
        yield f"http/{page}.md", subjects_page(title, {tag: found[tag] for tag in tags if found[tag]})


def page_of(tag: str) -> str:
    return next(page for page, (_, tags) in PAGES.items() if tag in tags)


def table() -> Iterator[str]:
    """Every operation with a link, for the overview."""
    yield ""
    for tag, listed in operations().items():
        title, about = SUBJECTS[tag]
        links = (
            f"[`{method} {path}`](http/{page_of(tag)}.md#{anchor(f'{method} {path}')})" for method, path, _ in listed
        )
        yield f"- **{title}.** {about} {', '.join(links)}"
    yield ""


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def first_paragraph(operation: dict[str, Any]) -> str:
    text: str = operation.get("description", operation["summary"])
    return " ".join(text.partition("\n\n")[0].split())


# -- a subject -----------------------------------------------------------------------------------------------------


def subjects_page(title: str, subjects: dict[str, list[tuple[str, str, dict[str, Any]]]]) -> Iterator[str]:
    yield from (
        f"# HTTP: {title}",
        "",
        "[Conventions](../http.md) has authentication, idempotency keys and the problems of every operation. "
        "Requests are shown without the API key.",
        "",
    )
    shown: dict[str, str] = {}
    for listed in subjects.values():
        for method, path, operation in listed:
            yield from operation_section(method, path, operation, shown)


def operation_section(method: str, path: str, operation: dict[str, Any], shown: dict[str, str]) -> Iterator[str]:
    """The section of an operation. `shown` has the bodies and responses of the page so far, with their operations."""
    yield from (f"## {method} {path}", "")
    yield from description(f"{method} {path}", operation, shown)
    access = ACCESS[method, path]
    assert takes_position(operation) == (access.scope in ("read", "audit") and path not in NO_POSITION), (
        f"{method} {path}: docs/reference/http.md says otherwise of {POSITION}"
    )
    yield from (f"Scope {access.scope}; {bound_keys(access.policy, access.collection)}.", "")
    yield from parameter_list(operation)
    yield from body_list(f"{method} {path}", operation, shown)
    recorded = [example for example in examples() if (example["method"], example["route"]) == (method, path)]
    good = sorted(recorded, key=lambda example: (example["status"] >= 400, "dry_run" in str(example["body"])))
    assert good, f"{method} {path} has no example in examples.json"
    yield from request(good[0])
    yield from response(f"{method} {path}", good[0], shown)
    for example in recorded:
        if isinstance(example["body"], dict) and isinstance(good[0]["body"], str):
            yield from (f"With a JSON body: {example['title'][:1].lower()}{example['title'][1:]}.", "")
            yield from request(example)
    for example in recorded:
        if example["status"] >= 400 and example is not good[0]:
            yield from (f"Another response: {example['title'][:1].lower()}{example['title'][1:]}.", "")
            yield from response(f"{method} {path}", example, shown)
    yield from problems(operation)


def description(name: str, operation: dict[str, Any], shown: dict[str, str]) -> Iterator[str]:
    """The paragraphs of an operation, or a link to the operation above that has the same first one."""
    same = ""
    for place, text in enumerate(operation.get("description", operation["summary"]).split("\n\n")):
        paragraph = " ".join(text.split())
        above = shown.setdefault(paragraph, name)
        if place == 0 and above != name:
            same = above
            yield from (f"As [{above}](#{anchor(above)}).", "")
        elif above != same:
            yield from (paragraph, "")


def takes_position(operation: dict[str, Any]) -> bool:
    return any(one["name"] == POSITION for one in operation.get("parameters", []))


def bound_keys(policy: str, collection: str) -> str:
    """What keys that are bound to policies or collections may do."""
    if policy == collection:
        return f"bound keys: {policy}"
    return f"policy-bound key: {policy}; collection-bound key: {collection}"


def parameter_list(operation: dict[str, Any]) -> Iterator[str]:
    listed = [
        one
        for one in operation.get("parameters", [])
        if one["name"] not in (*EVERYWHERE, POSITION) and (one["in"] != "path" or one.get("description"))
    ]
    for one in listed:
        meaning = cell(one.get("description", "")) or MEANINGS[one["name"]]
        required = ", required" if one.get("required") else ""
        yield f"- `{one['name']}` ({one['in']}, {type_of(one['schema'])}{required}): {meaning}"
    if listed:
        yield ""
    links = [
        f"[`{one['name']}`](../http.md#{EVERYWHERE[one['name']]})"
        for one in operation.get("parameters", [])
        if one["name"] in EVERYWHERE
    ]
    if links:
        yield from (f"Also {', '.join(links)}.", "")


def body_list(name: str, operation: dict[str, Any], shown: dict[str, str]) -> Iterator[str]:
    """The members of a body; those that an operation above has with the same meaning are not repeated."""
    content = operation.get("requestBody", {}).get("content", {})
    for media, described in content.items():
        resolved = resolve(described.get("schema", {}))
        properties = resolved.get("properties")
        if not properties:
            yield from (f"Body: `{media}`.", "")
            continue
        rows = {}
        for member, one in properties.items():
            required = ", required" if member in resolved.get("required", ()) else ""
            meaning = cell(one.get("description", "")) or MEANINGS[member]
            rows[member] = f"- `{member}` ({type_of(one)}{required}): {meaning}"
        known: dict[str, list[str]] = {}
        for member, row in rows.items():
            if row in shown:
                known.setdefault(shown[row], []).append(member)
        above = max(known, key=lambda each: len(known[each]), default="")
        if len(known.get(above, ())) < 2:
            known, above = {}, ""
        if above:
            yield from (
                f"Body, as in [{above}](#{anchor(above)}): "
                + ", ".join(f"`{member}`" for member in known[above])
                + ("; and:" if len(known[above]) < len(rows) else "."),
                "",
            )
        new = [row for member, row in rows.items() if member not in known.get(above, ())]
        if new:
            kind = f" (`{media}`)" if len(content) > 1 else ""
            yield from (*((f"Body{kind}:", "") if not above else ()), *new, "")
        for row in rows.values():
            shown.setdefault(row, name)


def resolve(described: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in described:
        found: dict[str, Any] = schema()["components"]["schemas"][described["$ref"].rpartition("/")[2]]
        return found
    return described


def type_of(described: dict[str, Any]) -> str:
    """The type of a value in words."""
    if "anyOf" in described:
        names = [type_of(each) for each in described["anyOf"]]
        return " or ".join(dict.fromkeys(name for name in names if name != "null"))
    if "$ref" in described:
        return "object"
    if "enum" in described:
        return " or ".join(f"`{each}`" for each in described["enum"])
    if described.get("type") == "array":
        return f"array of {type_of(described.get('items', {}))}"
    if "const" in described:
        return f"`{described['const']}`"
    found: str = described.get("type", "any")
    return found


def cell(text: str) -> str:
    return " ".join(text.split())


# -- examples ------------------------------------------------------------------------------------------------------


def request(example: dict[str, Any]) -> Iterator[str]:
    path = example["route"]
    for name, value in example["path"].items():
        path = path.replace("{" + name + "}", quote(str(value), safe=""))
    query = f"?{urlencode(example['query'])}" if example["query"] else ""
    headers = [f"{name}: {value}" for name, value in example["headers"].items() if name != "Authorization"]
    body = example["body"]
    if not query and not headers and body is None:
        return  # the heading says all of it
    yield from ("```text", f"{example['method']} {path}{query}", *headers)
    if isinstance(body, str):
        yield from ("", *(readable(body).rstrip("\n").splitlines()))
    elif body is not None:
        yield from ("", *compact(body))
    yield from ("```", "")


def response(name: str, example: dict[str, Any], shown: dict[str, str]) -> Iterator[str]:
    answer = example["answer"]
    if answer is None:
        return
    kind = f"{example['status']} {shape(answer)}"
    if isinstance(answer, dict | list) and len(compact(answer)) > 3 and kind in shown:
        yield from (f"Response {example['status']}: as that of [{shown[kind]}](#{anchor(shown[kind])}).", "")
        return
    shown.setdefault(kind, name)
    if isinstance(answer, list) and answer:
        shown.setdefault(f"{example['status']} {shape(answer[0])}", name)
    if isinstance(answer, str):
        lines = readable(answer).splitlines()
        if all(line.startswith("{") for line in lines):
            lines = [line if len(line) <= 2 * WIDTH else line[: 2 * WIDTH] + " …" for line in lines]
        lines = cut(lines)
    else:
        lines = compact(answer)
        if len(lines) > MOST_LINES:
            yield from (f"Response {example['status']}: {members(answer)}.", "")
            return
    whole = not isinstance(answer, str) and not any("…" in line for line in lines)
    yield from (f"Response {example['status']}:", "", f"```{'json' if whole else 'text'}", *lines, "```", "")


def members(answer: Any) -> str:
    """The members of a long answer, or of its rows."""
    if isinstance(answer, list):
        return f"rows of {members(answer[0])}"
    inner = len(answer) <= FEW
    return ", ".join(
        f"`{name}` ({members(value)})"
        if inner and value and isinstance(value, list) and isinstance(value[0], dict)
        else f"`{name}`"
        for name, value in answer.items()
    )


def shape(value: Any) -> str:
    """The members of an answer, whatever their values are; a row stands for all rows."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {shape(value[name])}' for name in sorted(value))}}}"
    return f"[{shape(value[0])}]" if isinstance(value, list) and value else ""


def readable(text: str) -> str:
    """A body of bytes as their hexadecimal digits."""
    if text.isprintable() or text.startswith("{"):
        return text
    return f"({len(text)} bytes, in hexadecimal: {text.encode('latin-1').hex()})" if len(text) < 99 else text


def cut(lines: list[str]) -> list[str]:
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], "…"]


def compact(value: Any, indent: int = 0) -> list[str]:
    """JSON, in which an object or an array that fits a line has one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= WIDTH or not isinstance(value, dict | list) or not value:
        return [" " * indent + flat]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    lines = []
    for position, (name, each) in enumerate(items):
        inner = ["{…}"] if name == "units" else compact(each, indent + 2)
        key = f"{json.dumps(name, ensure_ascii=False)}: " if isinstance(value, dict) else ""
        inner[0] = " " * (indent + 2) + key + inner[0].lstrip()
        inner[-1] += "," if position < len(value) - 1 else ""
        lines += inner
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return [" " * indent + opening, *lines, " " * indent + closing]


def problems(operation: dict[str, Any]) -> Iterator[str]:
    """The error codes of an operation, without those that every operation has."""
    links = []
    for status, described in sorted(operation["responses"].items()):
        codes = described["description"].partition(": ")[2].split(", ") if int(status) >= 400 else []
        links += [f"{status} [{code}](../errors.md#{code})" for code in codes if code not in (*COMMON, *THERE)]
    if links:
        yield from (f"Problems: {', '.join(links)}.", "")


def common_problems() -> Iterator[str]:
    """The codes that every operation has."""
    listed = sorted(COMMON, key=lambda code: (STATUSES[code], code))
    yield from ("", ", ".join(f"{STATUSES[code]} [{code}](errors.md#{code})" for code in listed) + ".", "")
