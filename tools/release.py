"""All files of a release, from the newest commit: `python tools/release.py 1.0.0` fills `dist/`.

- the wheel, the source distribution and the npm tarball;
- `…-docs.tar.gz`: the site; `…-image.tar.gz`: the context of `Containerfile`, with `constraints.txt` in it;
- `constraints.txt`: every package of the image with its version and the SHA-256 of its files, as pip resolved them on this
  machine, and those that build the wheel. It has no address of a file. Other platforms have other files;
- a bill of materials (CycloneDX) for each of them: `NAME.cdx.json`;
- `provenance.json`: the commit, the command and the versions of the tools;
- `SHA256SUMS`: the digest of every file.

The command works in a copy of the commit, and sets the version there if the commit has another one. Two runs for one
commit, with the same tools and package index, write the same bytes. Nothing of it is in the repository.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Mapping
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
NAME = "ldp-budget"
IMAGE_EXTRAS = ("service", "postgres")
SUMS = "SHA256SUMS"
SBOM_TOOL = "cyclonedx-bom>=7.5"
_BASE = re.compile(r"^ARG BASE=(?P<name>[^:\s]+):(?P<tag>[^@\s]+)@(?P<digest>sha256:[0-9a-f]{64})$", re.MULTILINE)


# -- packages with hashes --------------------------------------------------------------------------------------------


class Package(NamedTuple):
    """A package that pip resolved."""

    name: str
    version: str
    sha256: str


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
        found.append(Package(name, item["metadata"]["version"], hashes["sha256"]))
    return sorted(found)


def resolved(*requirements: str) -> list[Package]:
    """Return what pip would install for these requirements on this machine."""
    options = ["--dry-run", "--ignore-installed", "--quiet", "--only-binary", ":all:", "--report", "-"]
    return packages_in(json.loads(_run(sys.executable, "-m", "pip", "install", *options, *requirements)))


def constraints(packages: Iterable[Package]) -> str:
    """Return the lines for `pip install --require-hashes -r`, one for each package."""
    return "".join(f"{each.name}=={each.version} --hash=sha256:{each.sha256}\n" for each in sorted(set(packages)))


def base_image(recipe: str) -> tuple[str, str, str]:
    """Return name, tag and digest of the base image in the recipe of the image. Raises `ValueError` without a digest."""
    found = _BASE.search(recipe)
    if found is None:
        raise ValueError("Containerfile names its base image without a digest. Write ARG BASE=NAME:TAG@sha256:…")
    return found["name"], found["tag"], found["digest"]


# -- bills of materials ----------------------------------------------------------------------------------------------


def bill(scratch: Path, environment: Path, project: Path, kind: str) -> dict[str, Any]:
    """Return the bill of materials of what an environment holds, in CycloneDX.

    Parameters:
        scratch: a folder; the tool is installed there once.
        environment: a virtual environment that holds the project and what it needs.
        project: the `pyproject.toml` of the project.
        kind: `library`, or `application`.
    """
    tool = scratch / "sbom"
    if not tool.exists():
        _environment(tool, SBOM_TOOL)
    text = _run(
        str(tool / "bin" / "cyclonedx-py"),
        *("environment", str(environment), "--pyproject", str(project), "--mc-type", kind, "--output-reproducible"),
    )
    found: dict[str, Any] = json.loads(text)
    # The wheel lies in a folder of this machine; what the file says is the same everywhere.
    for component in found.get("components", ()):
        component.pop("externalReferences", None)
    found["components"] = [each for each in found.get("components", ()) if normal(each["name"]) != NAME]
    return found


def with_base_image(found: Mapping[str, Any], base: tuple[str, str, str]) -> dict[str, Any]:
    """Return the bill of the image: its base image, given as name, tag and digest, is one more component."""
    name, tag, digest = base
    reference = f"pkg:docker/{name}@{digest}?tag={tag}"
    hashes = [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}]
    component = {"type": "container", "bom-ref": reference, "name": name, "version": tag, "purl": reference}
    return {**found, "components": [*found["components"], {**component, "hashes": hashes}]}


def npm_bill(package: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bill of materials of the npm package. Raises `ValueError` if it depends on another one."""
    if package.get("dependencies"):
        raise ValueError(f"the npm package depends on {', '.join(package['dependencies'])}; its bill must list them")
    purl = f"pkg:npm/{package['name']}@{package['version']}"
    about = {"type": "library", "bom-ref": purl, "name": package["name"], "version": package["version"], "purl": purl}
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    return {**head, "metadata": {"component": about}, "components": [], "dependencies": [{"ref": purl}]}


def sums(folder: Path) -> str:
    """Return the lines of `SHA256SUMS` for the files of a folder."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


# -- the npm package -------------------------------------------------------------------------------------------------

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)]+)\)")


def detach_npm_package(folder: Path) -> None:
    """Leave out of a copy of the npm package what works in a clone only: links to other folders, and scripts."""
    readme, about = folder / "README.md", folder / "package.json"
    readme.write_text(
        _OUTSIDE.sub(r"\1 (`\2` in the repository)", readme.read_text(encoding="utf-8")), encoding="utf-8"
    )
    package = json.loads(about.read_text(encoding="utf-8"))
    kept = {name: value for name, value in package.items() if name not in ("scripts", "devDependencies")}
    about.write_text(f"{json.dumps(kept, indent=2, ensure_ascii=False)}\n", encoding="utf-8")


# -- archives --------------------------------------------------------------------------------------------------------


def archive(target: Path, folder: Path, top: str, time: int) -> None:
    """Write a folder as `.tar.gz`: files by name, one time, no owner, so equal files give equal bytes."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as opened:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = tarfile.TarInfo(f"{top}/{path.relative_to(folder).as_posix()}")
            entry.size, entry.mtime, entry.mode = path.stat().st_size, time, 0o644
            if os.access(path, os.X_OK):
                entry.mode = 0o755
            with path.open("rb") as file:
                opened.addfile(entry, file)
    target.write_bytes(gzip.compress(raw.getvalue(), mtime=0))


def context_files(source: Path) -> Iterable[Path]:
    """Yield the files of a tree that `.containerignore` lets into the context of the image, and its recipe."""
    lines = (source / ".containerignore").read_text(encoding="utf-8").splitlines()
    yield source / "Containerfile"
    yield source / ".containerignore"
    for line in lines:
        if line.startswith("!"):
            path = source / line.removeprefix("!")
            yield from (
                (each for each in path.rglob("*") if each.is_file()) if path.is_dir() else filter(Path.exists, [path])
            )


# -- the release -----------------------------------------------------------------------------------------------------


def copy_of(commit: str, target: Path) -> None:
    """Write the files of a commit to a new folder."""
    done = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as opened:
        opened.extractall(target, filter="data")


def set_version(source: Path, version: str) -> None:
    """Set the version in a copy of the tree, as `just version` does."""
    about = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if about["version"] == version:
        return
    _run(sys.executable, "tools/version.py", version, cwd=source)
    rooms = ("accountant", "plugins", "cli", "service", "surveys", "verify")
    path = os.pathsep.join(str(source / room) for room in rooms)
    for script in ("tests/helpers/service_examples.py", "docs/reference/generate.py"):
        _run(sys.executable, script, cwd=source, PYTHONPATH=path)


def build(version: str, target: Path, scratch: Path) -> None:
    """Write all files of a release to a folder."""
    commit = _run("git", "rev-parse", "HEAD").strip()
    time = _run("git", "log", "-1", "--format=%ct").strip()
    os.environ |= {"SOURCE_DATE_EPOCH": time, "TZ": "UTC", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # compiled files differ between folders
    source = scratch / NAME
    copy_of(commit, source)
    set_version(source, version)
    about = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))

    _run(sys.executable, "-m", "hatchling", "build", "-d", str(target), cwd=source)
    detach_npm_package(source / "clients/js")
    _run("npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(target), cwd=source / "clients/js")
    _run(sys.executable, "-m", "sphinx", "-q", "-n", "docs", str(scratch / "site"), cwd=source)
    shutil.rmtree(scratch / "site" / ".doctrees", ignore_errors=True)
    archive(target / f"{NAME}-{version}-docs.tar.gz", scratch / "site", f"{NAME}-{version}-docs", int(time))

    [wheel], [sdist] = target.glob("*.whl"), target.glob("ldp_budget-*.tar.gz")
    [npm] = target.glob("*.tgz")
    builders = about["build-system"]["requires"]
    held = resolved(f"{wheel}[{','.join(IMAGE_EXTRAS)}]")
    (target / "constraints.txt").write_text(constraints([*held, *resolved(*builders)]), encoding="utf-8")
    image = target / f"{NAME}-{version}-image.tar.gz"
    _write_context(image, source, target / "constraints.txt", scratch / "context", int(time))

    bills = {
        wheel: _bill_of(scratch, "wheel", source, str(wheel)),
        sdist: _bill_of(scratch, "sdist", source, str(wheel), *builders),
        npm: npm_bill(json.loads((source / "clients/js/package.json").read_text(encoding="utf-8"))),
        image: with_base_image(
            _bill_of(scratch, "image", source, f"{wheel}[{','.join(IMAGE_EXTRAS)}]", kind="application"),
            base_image((source / "Containerfile").read_text(encoding="utf-8")),
        ),
    }
    for path, content in bills.items():
        _write_json(target / f"{path.name}.cdx.json", content)
    _write_json(target / "provenance.json", provenance(version, commit, time, scratch))
    (target / SUMS).write_text(sums(target), encoding="utf-8")


def provenance(version: str, commit: str, time: str, scratch: Path) -> dict[str, Any]:
    """Return what made the files: the commit, the command and the tools."""
    sbom = _run(str(scratch / "sbom" / "bin" / "cyclonedx-py"), "--version").strip()
    tools = {name: version_of(name) for name in ("pip", "hatchling", "sphinx", "furo", "myst-parser")}
    tools |= {"python": sys.version.split()[0], "npm": _run("npm", "--version").strip(), "cyclonedx-bom": sbom}
    return {
        "name": NAME,
        "version": version,
        "commit": commit,
        "command": f"just release {version}",
        "source_date_epoch": int(time),
        "platform": sys.platform,
        "tools": tools,
    }


def _write_context(target: Path, source: Path, pinned: Path, folder: Path, time: int) -> None:
    for path in context_files(source):
        copy = folder / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    shutil.copyfile(pinned, folder / "constraints.txt")
    archive(target, folder, target.name.removesuffix(".tar.gz"), time)


def _bill_of(scratch: Path, name: str, source: Path, *requirements: str, kind: str = "library") -> dict[str, Any]:
    place = scratch / f"environment-{name}"
    _environment(place, *requirements)
    return bill(scratch, place, source / "pyproject.toml", kind)


def _environment(place: Path, *requirements: str) -> None:
    """Make a virtual environment that holds these requirements and nothing else."""
    venv.create(place, with_pip=False)
    pip = (sys.executable, "-m", "pip", "--python", str(place), "install", "--quiet", "--no-compile")
    _run(*pip, *requirements)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _run(*command: str, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="such as 1.0.0")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder of the files [dist]")
    given = parser.parse_args(arguments)
    target = given.out.resolve()
    if target.exists() and any(target.iterdir()):
        raise SystemExit(
            f"{given.out} has files of another build. Remove them first, so that no old file is released."
        )
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        build(given.version, target, Path(scratch))
    print(f"wrote {len(list(target.iterdir()))} files to {given.out}")


if __name__ == "__main__":
    main()
