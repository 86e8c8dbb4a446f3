"""What a release is made of: fixed actions and images, constraints with hashes, and bills of materials."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from container_recipe import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import release_files


def item(name: str, version: str, needs: tuple[str, ...] = (), **info: Any) -> dict[str, Any]:
    """A package in a report of pip."""
    hashes = {"sha256": f"{abs(hash(name)):064x}"[:64]}
    found = {"url": f"https://files.example/{name}.whl", "archive_info": {"hashes": hashes}, **info}
    return {"metadata": {"name": name, "version": version, "requires_dist": [*needs]}, "download_info": found}


REPORT = {
    "install": [
        item("ldp-budget", "1.0.0", ("click>=8", "numpy"), dir_info={}),
        item("NumPy", "2.1.0"),
        item(
            "click",
            "8.5.1",
            ("Typing_Extensions>=4; python_version < '3.12'", "colorama ; platform_system=='Windows'"),
        ),
        item("typing_extensions", "4.12"),
    ]
}


def test_packages_of_a_report_have_hashes_and_no_address() -> None:
    packages = release_files.packages_in(REPORT)
    assert [(each.name, each.version) for each in packages] == [
        ("click", "8.5.1"),
        ("numpy", "2.1.0"),
        ("typing-extensions", "4.12"),
    ]
    lines = release_files.constraints([*packages, *packages]).splitlines()
    assert len(lines) == 3
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_package_without_a_hash_is_refused() -> None:
    report = {"install": [item("local", "1", archive_info={})]}
    with pytest.raises(ValueError, match="local has no SHA-256"):
        release_files.packages_in(report)


def test_bill_of_materials_lists_what_needs_what() -> None:
    packages = release_files.packages_in(REPORT)
    base = ("python", "3.13-slim", "sha256:" + "a" * 64)
    found = json.loads(json.dumps(release_files.bill("1.0.0", packages, kind="container", base=base)))
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    references = {each["bom-ref"] for each in found["components"]}
    assert references == {
        "pkg:pypi/click@8.5.1",
        "pkg:pypi/numpy@2.1.0",
        "pkg:pypi/typing-extensions@4.12",
        f"pkg:docker/python@{base[2]}?tag=3.13-slim",
    }
    needs = {each["ref"]: each["dependsOn"] for each in found["dependencies"]}
    assert needs["pkg:pypi/click@8.5.1"] == ["pkg:pypi/typing-extensions@4.12"]
    assert set(needs["pkg:pypi/ldp-budget@1.0.0"]) == references
    assert all(len(each["hashes"][0]["content"]) == 64 for each in found["components"])


def test_sums_name_every_file_but_themselves(tmp_path: Path) -> None:
    for name in ("b.whl", "a.txt", "SHA256SUMS"):
        (tmp_path / name).write_text(name)
    lines = release_files.sums(tmp_path).splitlines()
    assert [line.split("  ")[1] for line in lines] == ["a.txt", "b.whl"]
