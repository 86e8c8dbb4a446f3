"""The sidebar in groups that open and close; the group of the shown page is open."""

from __future__ import annotations

import re
from typing import Any

_GROUP = re.compile(
    r'<p class="caption" role="heading"><span class="caption-text">(.*?)</span></p>\s*(<ul.*?</ul>)\s*(?=<p |$)',
    re.DOTALL,
)


def grouped(tree: str) -> str:
    """The navigation tree with a `details` element for each caption."""

    def group(found: re.Match[str]) -> str:
        state = " open" if "current" in found[2] else ""
        return f'<details class="group"{state}><summary class="caption">{found[1]}</summary>\n{found[2]}</details>\n'

    return _GROUP.sub(group, tree.strip())


def _set_tree(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if "furo_navigation_tree" in context:
        context["furo_navigation_tree"] = grouped(context["furo_navigation_tree"])


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", _set_tree, priority=900)  # after the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
