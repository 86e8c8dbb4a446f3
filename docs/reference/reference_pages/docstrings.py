"""A Sphinx extension that reads the project's docstrings for autodoc.

It turns the sections `Parameters`, `Returns` and `Raises` into field lists, names between single backticks into links
or literals, and adds the example of each name from `docs/reference/examples`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

from .examples import EXAMPLES, examples
from .python_names import NOT_MADE, is_documented_here
from .python_pages import functions

FIELDS = {"Parameters": "param", "Raises": "raises"}


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", without_constructor)
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", resolve)
    app.connect("doctree-read", with_dashes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def process(app: Sphinx, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring by reStructuredText, and add the example."""
    text = list(to_rst(lines))
    found = examples(EXAMPLES).get(name.removeprefix("ldp_budget."))
    lines[:] = [*text, "", *_shown(found)] if found else text


def _shown(example: list[tuple[str, str]]) -> Iterator[str]:
    """An example as literal blocks."""
    yield from (".. rubric:: Example", "")
    for kind, code in example:
        yield from (f".. code-block:: {kind}", "", *(f"   {line}" for line in code.splitlines()), "")


def without_constructor(
    app: Sphinx, kind: str, name: str, value: Any, options: Any, signature: str, returned: str
) -> tuple[str, str] | None:
    """A protocol has no constructor."""
    return ("", "") if kind == "class" and name.rpartition(".")[2] in NOT_MADE else None


def skip(app: Sphinx, kind: str, name: str, member: Any, skipped: bool, options: Any) -> bool | None:
    """Skip fields, which the signature of their class shows, and constants."""
    if name.startswith("_"):
        return True
    return None if is_documented_here(member) or inspect.ismethod(member) else True


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element) -> nodes.Element | None:
    """Find a name that is written without its module, as in annotations; leave other packages' names as they are."""
    if node.get("refdomain") != "py":
        return None
    target: str = node["reftarget"]
    objects = env.domains.python_domain.objects
    ends = f".{target}"
    found = sorted((path for path in objects if path.endswith(ends)), key=len)
    if found:
        entry = objects[found[0]]
        return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, found[0])
    return None if target.startswith("ldp_budget.") and "." not in target.removeprefix("ldp_budget.") else content


def with_dashes(app: Sphinx, tree: nodes.document) -> None:
    """Sphinx writes `--` between a parameter and its text."""
    for node in [each for each in tree.findall(nodes.Text) if each == " -- "]:
        node.parent.replace(node, nodes.Text(" – "))


# -- docstrings ----------------------------------------------------------------------------------------------------


def to_rst(lines: list[str]) -> Iterator[str]:
    """The docstring with its sections as field lists and its names as links or literals."""
    section, code = "", False
    for position, line in enumerate(lines):
        before = lines[position - 1] if position else ""
        if re.fullmatch(r"(Parameters|Returns|Raises):", line):
            section = line[:-1]
            yield ""
        elif section and not line.startswith("    "):
            section = section if not line else ""
            yield inline(line)
        elif section == "Returns":
            yield f":returns: {inline(line[4:])}" if before == "Returns:" else f"   {inline(line.strip())}"
        elif section and line.startswith("        "):
            yield f"   {inline(line.strip())}"
        elif section:
            yield _field(FIELDS[section], line.strip())
        else:
            indented = line.startswith("    ") and not line.lstrip().startswith(("- ", "* "))
            if indented and not code and not before:
                code = True
                yield from (".. code-block:: text", "")
            code = code and (indented or not line)
            yield line if code else inline(line)


def _field(role: str, line: str) -> str:
    names, colon, meaning = line.partition(": ")
    if not colon or not re.fullmatch(r"\w+(, \w+)*", names):
        return f":{role}: {inline(line)}"
    return f":{role} {names}: {inline(meaning)}"


def inline(line: str) -> str:
    """A line of prose: code between backticks becomes a link or a literal; what RST reads as markup is escaped."""
    parts = re.split(r"(``.+?``|`[^`]+`)", line)
    return "".join(_code(part.strip("`")) if at % 2 else _escaped(part) for at, part in enumerate(parts))


def _code(text: str) -> str:
    """A link to a class, a method with its class, or a public function; other code, such as `spent`, is a literal."""
    if re.fullmatch(r"[A-Z]\w*(\.\w+)*", text) or text in functions():
        return f":py:obj:`{text}`"
    return f"``{text}``"


def _escaped(text: str) -> str:
    return re.sub(r"(\w)_(?=\W|$)", r"\1\\_", text.replace("\\", "\\\\").replace("*", r"\*").replace("|", r"\|"))
