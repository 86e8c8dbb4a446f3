"""CITATION.cff is what citation tools read: the keys of version 1.2.0 of the format, with today's version of ours."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
# The required keys of the format, and the allowed keys that are used here.
REQUIRED = {"cff-version", "message", "title", "authors"}
ALLOWED = REQUIRED | {
    "abstract",
    "date-released",
    "doi",
    "keywords",
    "license",
    "repository-code",
    "type",
    "url",
    "version",
}


def value(key: str) -> str:
    """Return the text of a key on one line."""
    [found] = re.findall(rf'^{key}: "?([^"\n]+)"?$', TEXT, flags=re.MULTILINE)
    return str(found)


def listed(key: str) -> list[str]:
    below = TEXT.partition(f"\n{key}:\n")[2]
    return re.findall(r"^  - (.+)$", re.split(r"^\S", below, maxsplit=1, flags=re.MULTILINE)[0], flags=re.MULTILINE)


def test_citation_keys_are_those_of_the_format() -> None:
    keys = re.findall(r"^([\w-]+):", TEXT, flags=re.MULTILINE)
    assert len(keys) == len(set(keys))
    assert set(keys) >= REQUIRED
    assert set(keys) <= ALLOWED
    assert "\t" not in TEXT


def test_citation_agrees_with_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert value("cff-version") == "1.2.0"
    assert value("type") == "software"
    assert value("title").startswith(project["name"])
    assert value("version") == project["version"]
    assert value("license") == project["license"]
    assert listed("keywords") == project["keywords"]
    assert listed("authors") == ['name: "ldp-budget contributors"']


def test_changelog_begins_with_the_version_of_the_citation() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    [newest, *_] = re.findall(r"^## (\S+)", changelog, flags=re.MULTILINE)
    assert newest == value("version")
