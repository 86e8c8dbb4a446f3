"""The drawing of the packages: floors and arrows from their imports, as a picture for `docs/explanation/architecture.md`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = {
    "ldp_budget_cli": ("cli", "the command line"),
    "ldp_budget_service": ("service", "HTTP service, client, pages"),
    "ldp_budget_surveys": ("surveys", "designs, planning, reports"),
    "ldp_budget_verify": ("verify", "proofs, audits, contract"),
    "ldp_budget_mechanisms": ("plugins", "the built-in mechanisms"),
    "ldp_budget_adapters": ("plugins", "other libraries' objects"),
    "ldp_budget_postgres": ("plugins", "the store on PostgreSQL"),
    "ldp_budget": ("accountant", "the accountant: guarantees, composition, ledger, budgets, report files"),
}
"""The folder of each package, and what it is."""
WIDTH, BOX, FLOOR, GAP = 960, 62, 132, 16


@cache
def imports() -> frozenset[tuple[str, str]]:
    """Which package imports which, also inside functions; names for type checkers and of the lazy table do not count."""
    return frozenset(
        (package, name)
        for package, (folder, _) in PACKAGES.items()
        for path in (ROOT / folder / package).rglob("*.py")
        for name in _imported(ast.parse(path.read_text(encoding="utf-8")))
        if name in PACKAGES and name != package
    )


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        yield from _imported(node)


def arrows() -> list[tuple[str, str]]:
    """The imports that do not follow from others: who imports the service imports what that imports."""
    return sorted((above, below) for above, below in imports() if below not in _reached(above, skipping=below))


def _reached(package: str, skipping: str) -> set[str]:
    """What a package imports by way of another one than `skipping`."""
    found, waiting = set[str](), [below for above, below in imports() if above == package and below != skipping]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [below for above, below in imports() if above == name]
    return found


def floors() -> list[list[str]]:
    """The packages from the top floor down; each stands above all that it imports."""

    @cache
    def height(package: str) -> int:
        return max((height(below) + 1 for above, below in imports() if above == package), default=0)

    heights = {package: height(package) for package in PACKAGES}
    return [[name for name in PACKAGES if heights[name] == at] for at in range(max(heights.values()), -1, -1)]


def drawing() -> str:
    """The picture as SVG."""
    boxes = {name: box for at, names in enumerate(floors()) for name, box in _placed(at, names)}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {FLOOR * len(floors()) - FLOOR + BOX + 8}" '
        'role="img" font-family="system-ui, sans-serif">',
        "<title>The packages of ldp-budget: an arrow leads to a package that is imported</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#6b7c8d"/></marker></defs>',
    ]
    for above, below in arrows():
        lines.append(_arrow(boxes[above], boxes[below]))
    for name, (x, y, width) in boxes.items():
        middle = x + width / 2
        lines += [
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{BOX}" rx="8" fill="#eef4f5" stroke="#1f6f78"/>',
            f'<text x="{middle:g}" y="{y + 26:g}" text-anchor="middle" font-size="13" font-weight="600" fill="#14202b">'
            f"{name}</text>",
            f'<text x="{middle:g}" y="{y + 46:g}" text-anchor="middle" font-size="12" fill="#3d4c5a">'
            f"{escape(PACKAGES[name][1], quote=False)}</text>",
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _placed(at: int, names: list[str]) -> Iterator[tuple[str, tuple[float, float, float]]]:
    width = (WIDTH - 2 - GAP * (len(names) - 1)) / len(names)
    for place, name in enumerate(names):
        yield name, (1 + place * (width + GAP), 4 + at * FLOOR, width)


def _arrow(above: tuple[float, float, float], below: tuple[float, float, float]) -> str:
    """From the lower edge of a box straight down, in the middle of the part that both boxes share."""
    (x, y, width), (to, down, other) = above, below
    middle = (max(x, to) + min(x + width, to + other)) / 2
    return (
        f'<path d="M{middle:g} {y + BOX:g}V{down - 1:g}" fill="none" stroke="#6b7c8d" stroke-width="1.5" '
        'marker-end="url(#tip)"/>'
    )
