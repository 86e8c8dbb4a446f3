"""The version of the project: print it, or set it everywhere with the changelog.

    python tools/version.py            # print the version of pyproject.toml
    python tools/version.py 1.0.0      # set it in every file that names it, and close the section of the changelog

The version in `pyproject.toml` is the original; `PLACES` lists its copies.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?"
_STAGES = {"a": "alpha", "b": "beta", "rc": "rc"}


def npm_form(version: str) -> str:
    """Return a version as npm writes it: `1.0.0-rc.1` for `1.0.0rc1`."""
    return re.sub(r"(a|b|rc)(\d+)$", lambda found: f"-{_STAGES[found[1]]}.{found[2]}", version)


def _same(version: str) -> str:
    return version


# A pattern of file names, the text around the version (its only group), and how the version is written there.
PLACES: list[tuple[str, str, Callable[[str], str]]] = [
    ("pyproject.toml", r'^version = "(.+)"$', _same),
    ("accountant/ldp_budget/__init__.py", r'^__version__ = "(.+)"$', _same),
    ("CITATION.cff", r'^version: "(.+)"$', _same),
    ("clients/js/package.json", r'^  "version": "(.+)",$', npm_form),
    ("clients/c/Cargo.*", r'^version = "(.+)"$', npm_form),
    ("clients/rust/Cargo.*", r'^version = "(.+)"$', npm_form),
    ("docs/tutorials/*.md", rf"\bldp-budget(?:\[\w+\])?(?: |>=)({VERSION})", _same),
    ("docs/tutorials/examples/*/pyproject.toml", rf"\bldp-budget(?:\[\w+\])?>=({VERSION})", _same),
]


def current() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def copies() -> Iterator[tuple[Path, re.Match[str], Callable[[str], str]]]:
    """Yield each place that names the version: the file, the match, and how the version is written there."""
    for pattern, around, form in PLACES:
        for path in sorted(ROOT.glob(pattern)):
            for found in re.finditer(around, path.read_text(encoding="utf-8"), flags=re.MULTILINE):
                yield path, found, form


def set_copies(version: str) -> list[Path]:
    """Write a version to every place, and return the changed files."""
    changed = list[Path]()
    for path, found, form in reversed(
        list(copies())
    ):  # the last one of a file first, so that the others keep their place
        text = path.read_text(encoding="utf-8")
        new = text[: found.start(1)] + form(version) + text[found.end(1) :]
        if new != text:
            path.write_text(new, encoding="utf-8")
            changed.append(path)
    return sorted(set(changed))


def merged(changelog: str, draft: str, title: str) -> str:
    """Return the changelog, with the entries of a draft appended to the groups of its newest section.

    Parameters
    ----------
    changelog
        Text whose newest section is `(unreleased)`.
    draft
        The section that `towncrier build --draft` prints.
    title
        The new heading of the newest section.
    """
    before, heading, rest = re.split(r"^(## .+\n)", changelog, maxsplit=1, flags=re.MULTILINE)
    assert heading.rstrip().endswith("(unreleased)"), heading
    section, following, older = re.split(r"(^## .+\n|\Z)", rest, maxsplit=1, flags=re.MULTILINE)
    groups = re.split(r"^### (.+)\n", draft, flags=re.MULTILINE)[1:]
    for name, entries in zip(groups[::2], groups[1::2], strict=True):
        group = re.search(
            rf"^### {re.escape(name)}\n\n(?:(?!^### ).*\n)*?(?=\n*(?:^### |\Z))", section, flags=re.MULTILINE
        )
        if group is None:
            section = f"{section.rstrip()}\n\n### {name}\n\n{entries.strip()}\n"
        else:
            section = f"{section[: group.end()].rstrip()}\n{entries.strip()}\n{section[group.end() :]}"
    end = "\n\n" if following else "\n"
    return f"{before}## {title}\n{section.rstrip()}{end}{following}{older}"


def close_changelog(version: str) -> None:
    """Move the fragments into the section of a version, and date the section."""
    path = ROOT / "CHANGELOG.md"
    text = path.read_text(encoding="utf-8")
    fragments = [each for each in (ROOT / "changelog.d").iterdir() if each.name != "README.md"]
    day = datetime.now(tz=UTC).date().isoformat()
    if f"## {version} (unreleased)\n" not in text:
        _towncrier("--yes", "--version", version, "--date", day)
        return
    draft = _towncrier("--draft", "--version", version, "--date", day) if fragments else ""
    path.write_text(merged(text, draft, f"{version} ({day})"), encoding="utf-8")
    for fragment in fragments:
        fragment.unlink()


def _towncrier(*options: str) -> str:
    command = [sys.executable, "-m", "towncrier", "build", *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def main(*arguments: str) -> None:
    if not arguments:
        print(current())
        return
    [version] = arguments
    if not re.fullmatch(VERSION, version):
        raise SystemExit(f"{version!r} is not a version. Write it like 1.0.0 or 1.1.0rc2.")
    for path in set_copies(version):
        print(f"set {version} in {path.relative_to(ROOT)}")
    close_changelog(version)
    print(
        f"closed the section {version} of CHANGELOG.md. Next: python tests/helpers/service_examples.py; "
        "python docs/reference/generate.py; read the diff, commit, tag."
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
