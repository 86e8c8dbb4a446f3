"""The wheel, built from the source distribution, unpacked elsewhere and run there."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("accountant", "plugins", "cli", "service", "surveys", "verify")
PACKAGES = {path.parent.name for room in ROOMS for path in (ROOT / room).glob("*/__init__.py")}


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the source distribution. hatchling is there already, so nothing is downloaded."""
    folder = tmp_path_factory.mktemp("build")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder), cwd=ROOT)
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    source = folder / archive.name.removesuffix(".tar.gz")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=source)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    options = ("--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check", "--target", str(target))
    run(sys.executable, "-m", "pip", "install", *options, str(wheel), cwd=target)
    return target


def command(installed: Path, *arguments: str, cwd: Path) -> str:
    """Run the console script that was installed, in the copy that was installed."""
    script = str(installed / "bin" / "ldp-budget")
    return run(sys.executable, script, *arguments, cwd=cwd, PYTHONPATH=str(installed), MPLBACKEND="Agg")


def test_wheel_contains_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES
    assert len(tops) == len(PACKAGES) + 1
    for package in PACKAGES:
        assert f"{package}/py.typed" in names
    assert "ldp_budget_cli/data/anes96.csv" in names
    for folder in ("web/static", "web/texts"):
        for path in (ROOT / "service" / "ldp_budget_service" / folder).iterdir():
            assert f"ldp_budget_service/{folder}/{path.name}" in names
    for path in (ROOT / "service" / "monitoring").iterdir():
        assert f"ldp_budget_service/monitoring/{path.name}" in names
    for name in ("check.py", "check_law.py", "check_total.py", "check_total.mjs"):
        assert f"ldp_budget_verify/check/{name}" in names


def test_wheel_contains_every_source_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            assert path.relative_to(ROOT / room).as_posix() in names


def test_wheel_declares_its_dependencies(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        [metadata] = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        described = message_from_bytes(opened.read(metadata))
        licence = [name for name in opened.namelist() if name.endswith("LICENSE")]
        entry_points = opened.read(metadata.replace("METADATA", "entry_points.txt")).decode()
    needs = [need for need in described.get_all("Requires-Dist", []) if "extra ==" not in need]
    assert {need.split(">")[0] for need in needs} == {
        *("click", "numpy", "scipy", "platformdirs", "pluggy", "sqlite-utils")
    }
    assert described["Requires-Python"] == ">=3.11"
    assert described["License-Expression"] == "Apache-2.0"
    assert licence
    parsed = configparser.ConfigParser()
    parsed.read_string(entry_points)
    assert dict(parsed["console_scripts"]) == {"ldp-budget": "ldp_budget_cli:main"}
    assert dict(parsed["ldp_budget"]) == {
        "adapters": "ldp_budget_adapters",
        "mechanisms": "ldp_budget_mechanisms",
    }
