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
import release


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
    packages = release.packages_in(REPORT)
    assert [(each.name, each.version) for each in packages] == [
        ("click", "8.5.1"),
        ("numpy", "2.1.0"),
        ("typing-extensions", "4.12"),
    ]
    lines = release.constraints([*packages, *packages]).splitlines()
    assert len(lines) == 3
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_package_without_a_hash_is_refused() -> None:
    report = {"install": [item("local", "1", archive_info={})]}
    with pytest.raises(ValueError, match="local has no SHA-256"):
        release.packages_in(report)


def test_bill_of_the_image_names_its_base_by_digest() -> None:
    base = ("python", "3.13-slim", "sha256:" + "a" * 64)
    found = release.with_base_image({"bomFormat": "CycloneDX", "components": [{"name": "click"}]}, base)
    assert [each["name"] for each in found["components"]] == ["click", "python"]
    assert found["components"][1]["purl"] == f"pkg:docker/python@{base[2]}?tag=3.13-slim"
    assert found["components"][1]["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]


def test_npm_package_has_no_link_and_no_script_that_needs_a_clone(tmp_path: Path) -> None:
    """Its README linked to pages outside the tarball, and `npm test` in an installed package ended in an error."""
    folder = tmp_path / "js"
    folder.mkdir()
    for name in ("README.md", "package.json"):
        (folder / name).write_bytes((ROOT / "clients/js" / name).read_bytes())
    release.detach_npm_package(folder)
    text = (folder / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert not [target for target in targets if target.startswith(".")]
    assert "Randomize on devices (`docs/guides/devices.md` in the repository) is" in text
    found = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    kept = json.loads((ROOT / "clients/js/package.json").read_text(encoding="utf-8"))
    assert "scripts" not in found
    assert found == {name: value for name, value in kept.items() if name not in ("scripts", "devDependencies")}


def test_bill_of_the_npm_package_refuses_a_dependency_that_it_does_not_list() -> None:
    package = json.loads((ROOT / "clients/js/package.json").read_text(encoding="utf-8"))
    assert release.npm_bill(package)["metadata"]["component"]["purl"].startswith("pkg:npm/ldp-budget@")
    with pytest.raises(ValueError, match="depends on left-pad"):
        release.npm_bill({**package, "dependencies": {"left-pad": "1"}})
