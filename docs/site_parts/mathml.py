"""Formulas as MathML, which browsers typeset without a script, a font or a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="formula"))
    self.body.append(convert(node.astext(), display="block"))
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
