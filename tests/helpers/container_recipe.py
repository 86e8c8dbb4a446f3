"""The recipe of the container image, `Containerfile`, and its ignore file, as data."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of the recipe, as a name and its text, by stage; those before the first stage come first."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = list[list[tuple[str, str]]]([[]])
    for line in filter(None, text.replace("\\\n", " ").splitlines()):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append((name, rest))
    return found


def values(stage: list[tuple[str, str]], name: str) -> list[str]:
    return [rest for each, rest in stage if each == name]


[BEFORE, BUILD, FINAL] = stages()


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in values(FINAL, "ENV")[0].split())


def health() -> list[str]:
    """The command of the health check."""
    [told] = values(FINAL, "HEALTHCHECK")
    found: list[str] = json.loads(told.partition(" CMD ")[2])
    return found


def is_ignored(path: str) -> bool:
    """True for a file that `.containerignore` keeps out; the last line that matches it or a folder above decides."""
    ignored = False
    above = ["/".join(path.split("/")[: n + 1]) for n in range(path.count("/") + 1)]
    for line in (ROOT / ".containerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.strip().removeprefix("!")
        if not pattern or pattern.startswith("#"):
            continue
        # `*` does not cross a slash; `**/` is any number of folders.
        regex = re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
        if any(re.fullmatch(regex, each) for each in above):
            ignored = not line.strip().startswith("!")
    return ignored
