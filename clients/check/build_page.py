#!/usr/bin/env python3
"""Build check.html: the checker in JavaScript, the page and its texts in one static file that loads nothing."""

import base64
import json
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent


def page() -> str:
    """Return the text of check.html."""
    checker = (HERE / "check_books.mjs").read_text(encoding="utf-8").partition("\nexport {")[0]
    texts = {
        name: json.loads((HERE / f"texts/{name}.json").read_text(encoding="utf-8")) for name in ("en", "de", "ko")
    }
    said = json.dumps(texts, ensure_ascii=False, indent=1).replace("<", "\\u003c")
    script = f"{checker}\nconst TEXTS = {said};\n\n{(HERE / 'page.mjs').read_text(encoding='utf-8')}"
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    return (HERE / "page.html").read_text(encoding="utf-8").replace("/*HASH*/", digest).replace("/*SCRIPT*/", script)


if __name__ == "__main__":
    (HERE / "check.html").write_text(page(), encoding="utf-8")
