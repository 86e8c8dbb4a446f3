"""Templates of `ldp-budget plugin new`: a distribution with a mechanism for one of k answers, or for a number.

The files are in the folder `plugin_files`.
"""

from __future__ import annotations

import keyword
import re
import sys
from importlib.resources import files
from string import Template

import click

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PREFIX = "ldp-budget-"


def check_name(name: str) -> None:
    """Raise a usage error unless `name` can name a new module and a new mechanism."""
    from importlib.util import find_spec

    from ldp_budget.registry import taken_names
    from ldp_budget.registry.plugins import registry

    module = _module(name)
    if not _NAME.fullmatch(name):
        raise click.UsageError(
            f"NAME must be lower-case words joined by hyphens, beginning with a letter, such as my-coin: got {name!r}"
        )
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in taken_names():
        raise click.UsageError(f"NAME: {name!r} has a meaning in Python or ldp-budget. Choose another name.")
    if name in {claim for plugin in registry().plugins for claim in plugin.claims}:
        raise click.UsageError(f"NAME: there is a mechanism named {name!r} already. Choose another name.")
    if find_spec(module) is not None:
        raise click.UsageError(f"NAME: a module {module!r} is installed already. Choose another name.")


def check_distribution(distribution: str) -> None:
    """Raise a usage error unless `distribution` can name a distribution that is not installed here."""
    from importlib import metadata

    if not _NAME.fullmatch(distribution):
        raise click.UsageError(
            f"--distribution must be lower-case words joined by hyphens, such as ldp-budget-coin: got {distribution!r}"
        )
    try:
        installed = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return
    raise click.UsageError(f"--distribution: {distribution} {installed} is installed already. Choose another name.")


def distribution_of(name: str) -> str:
    """Return the default name of a distribution with the mechanism `name`."""
    return name if name.startswith(_PREFIX) else _PREFIX + name


def files_of(name: str, distribution: str, *, numeric: bool) -> dict[str, str]:
    """Return the files of the distribution, by their paths within its folder."""
    module = _module(name)
    words = {
        "name": name,
        "distribution": distribution,
        "module": module,
        "title": "".join(word.capitalize() for word in name.split("-")),
        "bounds": _bounds(),
        "options": "--epsilon 1 --lower 0 --upper 10" if numeric else "--epsilon 1 --domain-size 5",
    }
    texts = {
        "pyproject.toml": "pyproject.toml.txt",
        "README.md": "README.md.txt",
        f"src/{module}/__init__.py": "numeric.py.txt" if numeric else "categorical.py.txt",
        "tests/test_contract.py": "test_contract.py.txt",
    }
    folder = files(__package__) / "plugin_files"
    return {
        path: Template((folder / file).read_text(encoding="utf-8")).substitute(words) for path, file in texts.items()
    }


def _module(name: str) -> str:
    return name.replace("-", "_")


def _bounds() -> str:
    """Return the version range that keeps the hooks: this version and later ones with the same major version.

    A release candidate precedes its release, so it is named in full.
    """
    from ldp_budget import __version__

    major, minor, patch = __version__.split(".")
    least = f"{major}.{minor}" if patch.isdecimal() else __version__
    return f">={least},<{int(major) + 1}"
