"""The steps of the image's recipe, run in a folder and a virtual environment of their own.

No container engine is needed. The folder takes the place of the root of the image, so the steps of `Containerfile` run
with its paths below that folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_recipe import BUILD, FINAL, ROOT, environment, health, is_ignored, values

sys.path.insert(0, str(ROOT / "tools"))
import release

# -- the steps -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that stands for the root of the image, after the steps of its first stage."""
    root = tmp_path_factory.mktemp("image")
    source, data = root / "source", root / "data"
    data.mkdir(mode=0o700)
    for path in release.context_files(ROOT):
        name = path.relative_to(ROOT).as_posix()
        if not is_ignored(name):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, source / name)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LDP_BUDGET_", "VIRTUAL"))
    }
    for step in values(BUILD, "RUN"):
        command = re.sub(r"^python ", f"{sys.executable} ", step).replace("/opt/", f"{root}/opt/")
        done = subprocess.run(
            command,
            shell=True,
            cwd=source,
            env=kept | {"PIP_NO_COMPILE": "no"},
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert done.returncode == 0, f"{step}: {done.stdout}{done.stderr}"
    return root


@pytest.fixture
def port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def placed(word: str, image: Path, port: int) -> str:
    """A word of an instruction, with the paths below the folder and a free port."""
    return re.sub(r"(?<![\w/.])/(opt|data)\b", rf"{image}/\1", word).replace("8000", str(port))


@pytest.fixture
def container(image: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """The command of the image as it runs, and its environment."""
    given = {"PATH": os.environ["PATH"], "HOME": str(image / "data")}
    for name, value in environment().items():
        given[name] = placed(value, image, port).replace("$PATH", os.environ["PATH"])
    words = [placed(word, image, port) for word in json.loads(values(FINAL, "CMD")[0])]
    program = shutil.which(words[0], path=given["PATH"])
    assert program == str(image / "opt" / "ldp-budget" / "bin" / "ldp-budget")
    running = subprocess.Popen(
        [program, *words[1:]],
        cwd=image / "data",
        env=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield running, given
    finally:
        running.kill()
        running.communicate()


def is_healthy(image: Path, port: int, given: dict[str, str]) -> bool:
    [program, *words] = health()
    command = [str(shutil.which(program, path=given["PATH"])), *(placed(word, image, port) for word in words)]
    return subprocess.run(command, env=given, capture_output=True, timeout=30, check=False).returncode == 0


def test_image_serves_a_ledger_in_its_volume_and_stops_at_sigterm(
    image: Path, port: int, container: tuple[subprocess.Popen[str], dict[str, str]]
) -> None:
    running, given = container
    for _ in range(300):
        if running.poll() is not None or is_healthy(image, port, given):
            break
        time.sleep(0.2)
    assert running.poll() is None, running.communicate()[0]
    assert is_healthy(image, port, given)
    made = {path.name: path.stat().st_mode & 0o777 for path in (image / "data").iterdir()}
    assert made["budget.db"] == made["budget.db.key"] == 0o600
    running.send_signal(signal.SIGTERM)
    told, _ = running.communicate(timeout=60)
    assert running.returncode == 0, told
    assert not is_healthy(image, port, given)


def test_image_has_the_driver_of_postgresql_and_no_test_tool(image: Path) -> None:
    python = image / "opt" / "ldp-budget" / "bin" / "python"
    code = "import importlib.util as u; print([u.find_spec(n) is not None for n in ('psycopg', 'psycopg_pool', 'pytest')])"
    done = subprocess.run([python, "-c", code], cwd=image, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[True, True, False]\n"
