"""Certificates: stored for exactly the checked code, without errors for a missing or broken file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ldp_budget.registry import certification
from ldp_budget.registry.certification import PROVED_RANGES, checked, forget, record, source_digest
from ldp_budget.registry.plugins import Plugin, Registry, mechanism, mechanisms, registry
from ldp_budget.sdk.mechanism import Mechanism

MODULE = """
from ldp_budget import Mechanism
from ldp_budget.sdk.parameters import real
from ldp_budget.guarantees import Pure

class Toy(Mechanism):
    name = "toy"
    epsilon = real("privacy loss of one report", above=0)
    guarantee = property(lambda self: Pure(self.epsilon))
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the certificates in this test."""
    path = tmp_path / "kept" / "certificates.json"
    monkeypatch.setenv(certification.VARIABLE, str(path))
    forget()
    yield path
    forget()


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Mechanism]]:
    """A third party's mechanism, from a package of two files that is installed as toy-plugin 1.2."""
    package = tmp_path / "site" / "toy_plugin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(MODULE)
    (package / "tables.py").write_text("ROWS = (1, 2)\n")
    monkeypatch.syspath_prepend(str(package.parent))
    from importlib import import_module

    found: type[Mechanism] = import_module("toy_plugin").Toy
    installed_as(monkeypatch, found, "1.2")
    yield found
    del sys.modules["toy_plugin"]


def installed_as(monkeypatch: pytest.MonkeyPatch, cls: type[Mechanism], version: str) -> None:
    plugins = Registry([*registry().plugins, Plugin("toy-plugin", version, (cls,))])
    monkeypatch.setattr("ldp_budget.registry.plugins.registry", lambda: plugins)
    forget()


def certificate(cls: type[Mechanism], verdict: str = "exact", **changed: Any) -> dict[str, Any]:
    found = {"mechanism": cls.name, "checked": verdict, "sources": source_digest(cls), "examples": []}
    return {"distribution": "toy-plugin", "version": "1.2", "python": "3.11", "mechanisms": [found], **changed}


# -- what counts as checked -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [cls for cls in mechanisms() if cls.checkable], ids=lambda cls: cls.name)
def test_certificate_of_built_ins_is_that_of_the_release(store: Path, cls: type[Mechanism]) -> None:
    assert checked(cls) == ("exact" if cls.name in PROVED_RANGES else "audited")
    assert not store.exists()


@pytest.mark.slow
def test_certificate_of_declared_is_never_checked(store: Path, toy: type[Mechanism]) -> None:
    assert [cls.name for cls in mechanisms() if not cls.checkable] == ["declared"]
    assert checked(mechanism("declared")) == "no"
    record(certificate(toy))
    toy.checkable = False
    assert checked(toy) == "no"


@pytest.mark.slow
def test_certificate_of_a_third_party_is_missing_until_a_check(store: Path, toy: type[Mechanism]) -> None:
    assert checked(toy) == "no"
    record(certificate(toy))
    assert checked(toy) == "exact"


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("verdict", ["exact", "audited", "no"])
def test_certificate_shows_the_result_of_the_check(store: Path, toy: type[Mechanism], verdict: str) -> None:
    record(certificate(toy, verdict))
    assert checked(toy) == verdict


# -- what a record is bound to --------------------------------------------------------------------------------


@pytest.mark.slow
def test_certificate_of_another_version_is_ignored(
    store: Path, toy: type[Mechanism], monkeypatch: pytest.MonkeyPatch
) -> None:
    record(certificate(toy))
    installed_as(monkeypatch, toy, "1.3")
    assert checked(toy) == "no"


def edit(package: Path) -> None:
    (package / "__init__.py").write_text(MODULE + "\n")


def edit_another(package: Path) -> None:
    (package / "tables.py").write_text("ROWS = (1, 3)\n")


def add(package: Path) -> None:
    (package / "more.py").write_text("")


def rename(package: Path) -> None:
    (package / "tables.py").rename(package / "table.py")


def remove(package: Path) -> None:
    (package / "tables.py").unlink()


def edit_data(package: Path) -> None:
    (package / "weights.csv").write_text("1,3\n")


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("change", [edit, edit_another, add, rename, remove, edit_data])
def test_certificate_of_changed_code_is_ignored(
    store: Path, toy: type[Mechanism], change: Callable[[Path], None]
) -> None:
    record(certificate(toy))
    assert checked(toy) == "exact"
    module = sys.modules[toy.__module__]
    change(Path(str(module.__file__)).parent)
    forget()
    assert checked(toy) == "no"


def install(site: Path, name: str, files: dict[str, str]) -> None:
    """A distribution with a RECORD of its files."""
    about = site / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    packages = sorted({file.partition("/")[0] for file in files})
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "top_level.txt").write_text("\n".join(packages))
    for file, text in files.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text)
    listed = [*files, f"{about.name}/METADATA", f"{about.name}/RECORD"]
    (about / "RECORD").write_text("".join(f"{file},,\n" for file in listed))


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize(
    "changed", ["heir/__init__.py", "heir_tables/rows.csv", "parent_plugin/__init__.py", "parent_plugin/q.csv"]
)
def test_source_digest_covers_the_record_and_the_classes_inherited_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """A table of the distribution, or the base class in another one, was changed: the certificate stayed "exact"."""
    site = tmp_path / "site"
    heir = "from parent_plugin import Toy\n\nclass Heir(Toy):\n    name = 'heir'\n"
    install(site, "heir-plugin", {"heir/__init__.py": heir, "heir_tables/rows.csv": "1\n"})
    install(site, "parent-plugin", {"parent_plugin/__init__.py": MODULE, "parent_plugin/q.csv": "1\n"})
    monkeypatch.syspath_prepend(str(site))
    from importlib import import_module, invalidate_caches

    invalidate_caches()
    cls = import_module("heir").Heir
    try:
        before = source_digest(cls)
        assert before is not None
        assert source_digest(cls) == before
        (site / changed).write_text((site / changed).read_text() + "\n")
        assert source_digest(cls) != before
    finally:
        for name in ("heir", "parent_plugin"):
            del sys.modules[name]


@pytest.mark.exhaustive
def test_source_digest_covers_the_version_and_the_files_of_ldp_budget(
    toy: type[Mechanism], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another release of ldp-budget draws and checks in another way; a certificate outlived it."""
    before = source_digest(toy)
    names = [name for name, _ in certification._sources(toy)]
    assert {"ldp_budget/sdk/mechanism.py", "ldp_budget/sampling/discrete.py", "toy_plugin/tables.py"} <= set(names)
    monkeypatch.setattr(certification, "_own_version", lambda: "99")
    assert source_digest(toy) != before


# -- the file -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(9)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"format": "something else", "certificates": []}',
        b'{"format": "ldp-budget certificates 1", "certificates": 7}',
        b'{"format": "ldp-budget certificates 1", "certificates": [7]}',
        b"[" * 100_000,
    ],
    ids=range(9),
)
def test_certificate_file_malformed_is_ignored(
    store: Path, toy: type[Mechanism], content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    store.parent.mkdir()
    store.write_bytes(content)
    assert checked(toy) == "no"
    assert f"Warning: {store} holds no certificates" in capsys.readouterr().err
    record(certificate(toy))
    assert checked(toy) == "exact"


@pytest.mark.slow
def test_certificate_file_unreadable_is_reported_once_and_never_replaced(
    store: Path, toy: type[Mechanism], capsys: pytest.CaptureFixture[str]
) -> None:
    store.mkdir(parents=True)  # a folder in its place
    assert checked(toy) == "no"
    forget()
    assert checked(toy) == "no"
    assert capsys.readouterr().err.count("cannot be read") == 1
    with pytest.raises(OSError, match="directory"):
        record(certificate(toy))
    assert store.is_dir()


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(
    "entry", [{}, {"distribution": "toy-plugin"}, {"distribution": [], "version": {}, "mechanism": 7}], ids=range(3)
)
def test_certificate_records_with_gaps_match_nothing(
    store: Path, toy: type[Mechanism], entry: dict[str, Any]
) -> None:
    store.parent.mkdir()
    store.write_text(json.dumps({"format": "ldp-budget certificates 1", "certificates": [entry]}))
    assert checked(toy) == "no"
