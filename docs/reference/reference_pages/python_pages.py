"""Pages of the Python reference: one for each group of classes or functions. Sphinx fills them in."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import ldp_budget
from ldp_budget import guarantees

from .examples import EXAMPLES, examples
from .python_names import ANSWERS, NO_MEMBERS, OVER_HTTP, PARTS, TEXTS, Names

FUNCTIONS = (
    ("Mechanisms, composition and checks", ("mechanism", "mechanisms", "compose", "guarantee_of", "hookimpl")),
    ("Verify and audit a mechanism", ("verify", "audit", "checked")),
    ("Compare mechanisms", ("rank_frequency", "rank_numeric", "adjusted")),
    ("Report files and aggregates", ("read_reports", "writer_to", "partitions_in", "open_partition")),
    ("Aggregate and release reports", ("aggregate", "aggregate_reports", "release")),
)
"""The sections of functions."""

CLASSES = {
    "ledger": (
        "Ledgers, charges and balances",
        "Open a ledger or a service, operate it, and manage who may call it. What a policy holds, and what a charge and a "
        "question about a budget return.",
        "Accountant BudgetClient Client LedgerOperations Integrity Overview Principal ApiKeys ApiKey Record "
        "Limit Plan Policy PolicyTerms PolicyOptions QuoteOptions ChargeOptions RunOptions SeriesOptions Receipt LimitState "
        "Amounts Balance Remaining BudgetPoint Binding Spend SpendResult BulkResult Bound",
    ),
    "mechanisms": (
        "Mechanisms, reports and estimates",
        "A mechanism and its checks, collections, files of reports, what is estimated from them, and all functions.",
        "Mechanism FrequencyMechanism NumericMechanism Comparison Case Factor Verification Audit "
        "Collection SurveyCollection CountEstimate MeanEstimate ConsistentEstimate CountAggregate SumAggregate Partial "
        "ReportWriter PartitionWriter Partition Released",
    ),
}
"""The pages of classes: title, first sentence, and the classes in the order in which a reader meets them."""


def pages() -> Iterator[tuple[str, Iterator[str]]]:
    """The path of each page and its lines."""
    yield "python.md", overview()
    for page in CLASSES:
        # The guarantees and the functions follow the mechanisms, the errors the ledger that raises them.
        more = (guarantees_section(), functions_section()) if page == "mechanisms" else (errors_section(),)
        yield f"python/{page}.md", itertools.chain(classes_page(page), *more)
    yield "python/plugins.md", plugins_page()


def everything() -> dict[str, Any]:
    """Every public name outside of `PARTS` and the guarantees, by the path to import it by."""
    found = {f"ldp_budget.{name}": getattr(ldp_budget, name) for name in ldp_budget.__all__}
    return {**found, **_listed(OVER_HTTP), **_listed(ANSWERS)}


def classes() -> list[tuple[str, Any]]:
    """Every public class but errors, in the order of the overview."""
    found = {
        short(path): (path, value)
        for path, value in everything().items()
        if inspect.isclass(value) and not issubclass(value, Exception)
    }
    ordered = [found.pop(name) for _, _, names in CLASSES.values() for name in names.split()]
    if found:
        raise ValueError(f"add each public class to CLASSES: {', '.join(found)} has no page")
    return ordered


@cache
def functions() -> dict[str, str]:
    """The path of every public function, by its name."""
    return {short(path): path for path, value in everything().items() if not inspect.isclass(value)}


def _listed(names: Names) -> dict[str, Any]:
    return {f"{module.__name__}.{name}": getattr(module, name) for module, listed in names for name in listed}


def short(path: str) -> str:
    return path.rpartition(".")[2]


def page_of(path: str) -> str:
    """The page and heading of a class: `CountEstimate` is at `mechanisms.md#countestimate`."""
    page = next(page for page, (_, _, names) in CLASSES.items() if short(path) in names.split())
    return f"{page}.md#{anchor(short(path))}"


# -- the overview --------------------------------------------------------------------------------------------------


def overview() -> Iterator[str]:
    yield from (
        "# Python",
        "",
        "Every public name. From `ldp_budget` you import the accountant, mechanisms and "
        "errors; names with a longer path are what calls take and return.",
        "",
        "Give privacy amounts (ε, δ and the like) as text, which is read as an exact decimal, or as a number. A float "
        'means its shortest decimal, so `0.1` and `"0.1"` are the same.',
        "",
        "```python",
        "from ldp_budget import Accountant, Limit, mechanism",
        "",
        'oue = mechanism("oue").calibrate(epsilon=1, domain_size=7)',
        'with Accountant(":memory:") as accountant:',
        '    accountant.set_policy("default", [Limit("lifetime", epsilon="4")])',
        '    print(accountant.spend("alice", oue).status)',
        "```",
        "",
        "```text",
        "spent",
        "```",
        "",
        "In a clone, run `python -m pydoc ldp_budget.Accountant`; the site has the same text. Other projects can link to "
        "every name with intersphinx (`objects.inv`).",
        "",
        "## Classes",
        "",
        "| page | classes |",
        "| --- | --- |",
    )
    for page, (title, _, _) in CLASSES.items():
        links = (
            f"[`{path}`](python/{page_of(path)})" for path, _ in classes() if page_of(path).startswith(f"{page}.md")
        )
        yield f"| [{title}](python/{page}.md) | {', '.join(links)} |"
    yield from ("", "## Functions", "", "| subject | functions |", "| --- | --- |")
    for title, names in function_sections():
        listed = ", ".join(f"`{functions()[name]}`" for name in names)
        yield f"| [{title}](python/mechanisms.md#{anchor(title)}) | {listed} |"
    yield from ("", "## Errors and guarantees", "", "| page | subject |", "| --- | --- |")
    yield "| [Error classes](python/ledger.md#error-classes) | Every error class; [errors by code](errors.md). |"
    yield "| [Guarantees](python/mechanisms.md#guarantees) | The closed set of privacy guarantees that a ledger can charge. |"
    yield from ("", "## For authors of plugins", "", "| page | names |", "| --- | --- |")
    for title, _, names in PARTS:
        listed = ", ".join(f"`{name}`" for _, group in names for name in group)
        yield f"| [{title}](python/plugins.md#{anchor(title)}) | {listed} |"
    yield from toctree("python/*")


def toctree(*pages: str) -> Iterator[str]:
    """The entry of these pages in the sidebar of the site."""
    yield from ("", "```{toctree}", ":hidden:", ":titlesonly:", ":glob:", "", *pages, "```")


def summary(value: Any) -> str:
    """The first sentence of a docstring."""
    first = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s", first, maxsplit=1)[0].rstrip(":").replace("|", "\\|")


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


# -- the pages -----------------------------------------------------------------------------------------------------


def classes_page(page: str) -> Iterator[str]:
    title, text, names = CLASSES[page]
    yield from (f"# {title}", "", text, "")
    paths = {short(path): path for path, _ in classes()}
    for name in names.split():
        yield from (f"## {name}", "", *directive(paths[name], "autoclass", members=name not in NO_MEMBERS))


def function_sections() -> list[tuple[str, list[str]]]:
    """The sections of functions; functions that no section names come last."""
    named = [name for _, names in FUNCTIONS for name in names]
    others = [name for name in functions() if name not in named]
    return [*((title, list(names)) for title, names in FUNCTIONS), *([("Other functions", others)] if others else [])]


def functions_section() -> Iterator[str]:
    for title, names in function_sections():
        yield from (f"## {title}", "")
        for name in names:
            yield from entry(functions()[name], everything()[functions()[name]])


def errors_section() -> Iterator[str]:
    yield from (
        "## Error classes",
        "",
        "All errors descend from `LdpBudgetError` and carry their data as attributes. The page "
        "[Errors by code](../errors.md) says what causes each and what to do.",
        "",
        "The examples need `from ldp_budget import Accountant, mechanism` and the error's class.",
        "",
    )
    for path, value in everything().items():
        if inspect.isclass(value) and issubclass(value, Exception):
            yield from directive(path, "autoexception", members=True, inheritance=True)


def guarantees_section() -> Iterator[str]:
    yield from (
        "## Guarantees",
        "",
        "A guarantee is what the accountant knows of a mechanism. The set is closed, so a ledger can be verified "
        "without the plugin that wrote it. Import the classes from `ldp_budget.guarantees`.",
        "",
        *directive("ldp_budget.guarantees.Guarantee", "autoclass", members=True),
    )
    for cls in guarantees.Guarantee.__subclasses__():
        yield from directive(f"{cls.__module__}.{cls.__name__}", "autoclass", members=False)


def plugins_page() -> Iterator[str]:
    yield from (
        "# Names for authors of plugins",
        "",
        "What a plugin may import from ldp-budget, in addition to the mechanism classes.",
        "",
    )
    for title, text, names in PARTS:
        yield from (f"## {title}", "", text, "")
        for path, value in _listed(names).items():
            yield from entry(path, value)


def entry(path: str, value: Any) -> Iterator[str]:
    name = short(path)
    if inspect.isclass(value) and name not in TEXTS:
        yield from directive(path, "autoclass", members=name not in NO_MEMBERS)
    elif name in TEXTS:
        kind = "py:function" if name == "hookimpl" else "py:data"
        yield from ("```{eval-rst}", f".. {kind}:: {path}", "", f"   {TEXTS[name].replace('`', '``')}", "```", "")
        for language, code in examples(EXAMPLES).get(path.removeprefix("ldp_budget."), []):
            yield from (f"```{language}", *code.splitlines(), "```", "")
    else:
        yield from directive(path, "autofunction", members=False)


def directive(path: str, kind: str, *, members: bool, inheritance: bool = False) -> Iterator[str]:
    yield from ("```{eval-rst}", f".. {kind}:: {path}")
    yield from ("   :members:",) if members else ()
    yield from ("   :show-inheritance:",) if inheritance else ()
    yield from ("```", "")
