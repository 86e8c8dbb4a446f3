"""The recipe of the service's image: the text of `Containerfile` and of its ignore file."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from container_recipe import BEFORE, BUILD, FINAL, ROOT, environment, health, is_ignored, values

# -- the text --------------------------------------------------------------------------------------------------------


def test_image_is_built_in_stages_from_the_base_of_python() -> None:
    [base] = values(BEFORE, "ARG")
    assert re.fullmatch(r"BASE=python:3\.13-slim-\w+@sha256:[0-9a-f]{64}", base)
    assert values(FINAL, "COPY") == ["--from=build /opt/ldp-budget /opt/ldp-budget"]


def test_image_runs_as_a_user_that_owns_the_volume() -> None:
    [made] = values(FINAL, "RUN")
    names = [name for name, _ in FINAL]
    [user] = values(FINAL, "USER")
    [volume] = values(FINAL, "VOLUME")
    assert re.search(rf"useradd --system .*\b{user}\b", made)
    assert f"install -d -o {user} -m 0700 {volume}" in made
    assert names.index("RUN") < names.index("USER") < names.index("CMD")
    assert environment()["LDP_BUDGET_LEDGER"].startswith(f"{volume}/")


def test_image_holds_no_secret_and_asks_for_none() -> None:
    for name, rest in (*BEFORE, *BUILD, *FINAL):
        if name in {"ARG", "ENV", "COPY", "ADD"}:
            assert not re.search(r"KEY|SECRET|TOKEN|PASSWORD|postgresql://", rest, flags=re.IGNORECASE), (name, rest)


def test_image_checks_its_health_at_the_port_that_it_serves() -> None:
    [port] = values(FINAL, "EXPOSE")
    assert json.loads(values(FINAL, "CMD")[0])[-2:] == ["--port", port]
    assert f"http://127.0.0.1:{port}/livez" in health()[-1]


# -- what is copied --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "budget.db",
        "budget.db.key",
        "service/app.key",
        ".env",
        ".git/config",
        "tests/conftest.py",
        "cli/x/__pycache__/a.pyc",
    ],
)
def test_ignore_file_keeps_out_ledgers_keys_and_tests(path: str) -> None:
    assert is_ignored(path)


@pytest.mark.parametrize(
    "path", ["pyproject.toml", "README.md", "LICENSE", "service/monitoring/rules.yml", "cli/a/b.py"]
)
def test_ignore_file_lets_in_the_sources(path: str) -> None:
    assert not is_ignored(path)


def test_ignore_file_lets_in_all_folders_that_the_wheel_includes() -> None:
    """The checkers were added to the wheel and not to the image: its build failed."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    for folder in (*wheel["force-include"], *wheel.get("packages", ())):
        kept = [path for path in (ROOT / folder).rglob("*.*") if "__pycache__" not in path.parts]
        assert kept, folder
        for path in kept:
            assert not is_ignored(path.relative_to(ROOT).as_posix()), path
