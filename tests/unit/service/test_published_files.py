"""Files of published surveys over HTTP: hostile names, files and links are answered as missing ones."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant
from ldp_budget_service import Settings, create_app


def _status(folder: Path, path: str) -> int:
    with Accountant(":memory:") as accountant:
        client = TestClient(create_app(accountant, Settings(publications=str(folder))), raise_server_exceptions=False)
        return client.get(f"/publications/{path}").status_code


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "all" / "mood"
    place.mkdir(parents=True)
    (place / "checkpoint").write_text("public")
    (tmp_path / "all" / "checkpoint-of-others").write_text("secret")
    return place.parent


@pytest.mark.parametrize(
    "name",
    [
        "x" * 300,
        "x" * 255,
        "%F0%9F%98%80" * 70,
        "..",
        "%2e%2e",
        "..%2Fmood",
        "%2Fmood",
        "mood%00",
        "mood%5C..%5Cmood",
        ".",
    ],
)
def test_published_file_of_a_hostile_name_is_missing(folder: Path, name: str) -> None:
    assert _status(folder, f"{name}/checkpoint") == 404


@pytest.mark.parametrize(
    "file", ["..%2Fcheckpoint-of-others", "..%2Fmood%2Fcheckpoint", "checkpoint%0A", "tile/0/%D9%A1%D9%A1%D9%A1"]
)
def test_published_file_of_another_place_is_missing(folder: Path, file: str) -> None:
    assert _status(folder, f"mood/{file}") == 404


@pytest.mark.parametrize("written", ["[]", "3", "null", '{"name": 3}', "[" * 100_000, "{"])
def test_published_file_of_a_folder_with_broken_definition_is_missing(tmp_path: Path, written: str) -> None:
    (tmp_path / "checkpoint").write_text("public")
    (tmp_path / "client.json").write_text(written)
    assert _status(tmp_path, "mood/checkpoint") == 404


def test_published_file_that_is_a_link_out_of_its_folder_is_missing(folder: Path) -> None:
    (folder / "mood" / "reports.bin").symlink_to(folder / "checkpoint-of-others")
    assert _status(folder, "mood/reports.bin") == 404


def test_published_file_in_a_linked_folder_is_served(folder: Path) -> None:
    (folder / "diet").symlink_to(folder / "mood")
    assert _status(folder, "diet/checkpoint") == 200
