"""The extras for developers: `dev` is light, `interop` has the other libraries, and tests without one of them say so."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def distributions(extra: str) -> set[str]:
    """The names that an extra brings, with those of the extras that it names."""
    found = set[str]()
    for need in EXTRAS[extra]:
        name, named = re.match(r"([\w-]+)(?:\[([\w,-]+)\])?", need).groups()  # type: ignore[union-attr]
        if name == "ldp-budget":
            found |= {each for other in named.split(",") for each in distributions(other)}
        else:
            found.add(name)
    return found


# The module of each distribution that only `interop` has, where its name is another.
MODULES = {
    "apache-beam": "apache_beam",
    "dask": "distributed",
    "dp-accounting": "dp_accounting",
    "scikit-learn": "sklearn",
}


def skips() -> Iterator[tuple[str, str, str]]:
    """Each `importorskip` of the tests: its file, the module, and the rest of the call."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for module, rest in re.findall(r'importorskip\(\s*"([\w.]+)"(.*)', path.read_text(encoding="utf-8")):
            yield path.relative_to(ROOT).as_posix(), module, rest


def test_dev_and_interop_share_no_library_of_others() -> None:
    shared = distributions("dev") & distributions("interop")
    assert shared <= {"opentelemetry-sdk"}


@pytest.mark.parametrize("heavy", ["apache-beam", "opendp", "pandas", "polars", "pyarrow", "ray", "scikit-learn"])
def test_heavy_libraries_are_in_interop_only(heavy: str) -> None:
    assert heavy in distributions("interop") - distributions("dev")


def test_tests_without_a_library_of_interop_name_the_extra() -> None:
    only = {MODULES.get(name, name) for name in distributions("interop") - distributions("dev")}
    silent = [
        f"{file}: importorskip({module!r}{rest}"
        for file, module, rest in skips()
        if module.split(".")[0] in only and "pip install 'ldp-budget[interop]'" not in rest
    ]
    assert silent == []
    assert {module.split(".")[0] for _, module, _ in skips()} & only >= {"pyarrow", "sklearn", "apache_beam"}
