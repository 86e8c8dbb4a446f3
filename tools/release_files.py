"""Files of a release that say what it is made of: constraints with hashes, and bills of materials (SBOM).

    python tools/release_files.py dist

This writes to `dist`, which has the wheel and the source distribution already:

- `constraints.txt`: every package of the image with its version and the SHA-256 of its files, as pip resolved them on
  this machine, and those that build the wheel. It has no address of a file. Run it in the base image of `Containerfile`:
  other platforms have other files.
- `ldp-budget.cdx.json`, `ldp-budget-image.cdx.json`: what the wheel needs, and what the image holds (CycloneDX 1.5).
- `SHA256SUMS`: the digest of every file.

None of these is in the repository: a release makes them from what pip resolves then.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
NAME = "ldp-budget"
IMAGE_EXTRAS = ("service", "postgres")
SUMS = "SHA256SUMS"
_BASE = re.compile(r"^ARG BASE=(?P<name>[^:\s]+):(?P<tag>[^@\s]+)@(?P<digest>sha256:[0-9a-f]{64})$", re.MULTILINE)


class Package(NamedTuple):
    """A package that pip resolved."""

    name: str
    version: str
    sha256: str
    needs: tuple[str, ...]
    """The names of the packages that it requires, in the normal form."""


def normal(name: str) -> str:
    """Return the normal form of a package's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def packages_in(report: Mapping[str, Any]) -> list[Package]:
    """Return the packages of an installation report of pip, sorted by name; without the project itself.

    Raises `ValueError` for a package without a SHA-256.
    """
    found = []
    for item in report["install"]:
        name = normal(item["metadata"]["name"])
        if name == NAME:
            continue
        hashes = item["download_info"].get("archive_info", {}).get("hashes", {})
        if "sha256" not in hashes:
            raise ValueError(f"{name} has no SHA-256: {item['download_info']}. Install it from a package index.")
        needs = {
            normal(re.split(r"[^\w.-]", each.strip(), maxsplit=1)[0])
            for each in item["metadata"].get("requires_dist", ())
        }
        found.append(Package(name, item["metadata"]["version"], hashes["sha256"], tuple(sorted(needs))))
    return sorted(found)


def resolved(*requirements: str) -> list[Package]:
    """Return what pip would install for these requirements on this machine."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    done = subprocess.run(
        [*command, "--only-binary", ":all:", "--report", "-", *requirements],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return packages_in(json.loads(done.stdout))


def constraints(packages: Iterable[Package]) -> str:
    """Return the lines for `pip install --require-hashes -r`, one for each package."""
    return "".join(f"{each.name}=={each.version} --hash=sha256:{each.sha256}\n" for each in sorted(set(packages)))


def bill(
    version: str,
    packages: Iterable[Package],
    *,
    kind: str,
    digest: str | None = None,
    base: tuple[str, str, str] | None = None,
) -> dict[str, Any]:
    """Return a bill of materials of the project in CycloneDX 1.5.

    Parameters:
        version: the version of the project.
        packages: the packages that it needs or holds.
        kind: `library` for the wheel, `container` for the image.
        digest: the SHA-256 of the file; None for the image, which has none yet.
        base: name, tag and digest of the base image.
    """
    listed = sorted(set(packages))
    known = {each.name: _reference(each.name, each.version) for each in listed}
    main = {"type": kind, "bom-ref": _reference(NAME, version), "name": NAME, "version": version}
    main["purl"] = main["bom-ref"]
    if digest is not None:
        main["hashes"] = [{"alg": "SHA-256", "content": digest}]
    components = [
        {
            **{"type": "library", "bom-ref": known[each.name], "name": each.name, "version": each.version},
            **{"purl": known[each.name], "hashes": [{"alg": "SHA-256", "content": each.sha256}]},
        }
        for each in listed
    ]
    if base is not None:
        name, tag, content = base
        algorithm, _, hexadecimal = content.partition(":")
        assert algorithm == "sha256"
        reference = f"pkg:docker/{name}@{content}?tag={tag}"
        hashes = [{"alg": "SHA-256", "content": hexadecimal}]
        components.append(
            {
                "type": "container",
                "bom-ref": reference,
                "name": name,
                "version": tag,
                "purl": reference,
                "hashes": hashes,
            }
        )
    depends = [{"ref": main["bom-ref"], "dependsOn": sorted(each["bom-ref"] for each in components)}]
    for each in listed:
        needs = sorted(known[name] for name in each.needs if name in known and name != each.name)
        depends.append({"ref": known[each.name], "dependsOn": needs})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": main},
        "components": components,
        "dependencies": depends,
    }


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def base_image(recipe: str) -> tuple[str, str, str]:
    """Return name, tag and digest of the base image in the recipe of the image. Raises `ValueError` without a digest."""
    found = _BASE.search(recipe)
    if found is None:
        raise ValueError("Containerfile names its base image without a digest. Write ARG BASE=NAME:TAG@sha256:…")
    return found["name"], found["tag"], found["digest"]


def sums(folder: Path) -> str:
    """Return the lines of `SHA256SUMS` for the files of a folder."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def main(place: str) -> None:
    folder = Path(place)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = project["project"]["version"]
    [wheel] = folder.glob(f"ldp_budget-{version}-*.whl")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    base = base_image((ROOT / "Containerfile").read_text(encoding="utf-8"))
    needed, held = resolved(str(wheel.resolve())), resolved(f"{wheel.resolve()}[{','.join(IMAGE_EXTRAS)}]")
    builders = resolved(*project["build-system"]["requires"])
    written = {
        "constraints.txt": constraints([*held, *builders]),
        f"{NAME}.cdx.json": _text(bill(version, needed, kind="library", digest=digest)),
        f"{NAME}-image.cdx.json": _text(bill(version, [*held, *builders], kind="container", base=base)),
    }
    for name, content in written.items():
        (folder / name).write_text(content, encoding="utf-8")
    (folder / SUMS).write_text(sums(folder), encoding="utf-8")
    print(f"wrote {', '.join(written)} and {SUMS} to {folder}")


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    main(*sys.argv[1:])
