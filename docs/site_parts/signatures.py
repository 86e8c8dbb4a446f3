"""Signatures whose defaults are readable: an object without a literal is shown as `...`."""

from __future__ import annotations

import re
from typing import Any


def readable(signature: str | None) -> str | None:
    """A signature without the `<built-in function time>` that Sphinx cannot take apart."""
    return signature and re.sub(r"= ?<[^<>]*>", "=...", signature)


def _process(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None
) -> Any:
    return readable(signature), returned


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-signature", _process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
