"""The application of the FastAPI guide under load: each charged report is stored, once its device has retried."""

from __future__ import annotations

import importlib.util
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from fastapi.testclient import TestClient

from doc_blocks import blocks
from ldp_budget import Accountant

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "fastapi.md"


@pytest.fixture
def moods(tmp_path: Path) -> ModuleType:
    """The module that the guide writes."""
    [code] = [
        block.text for block in blocks(GUIDE.read_text(encoding="utf-8")) if block.text.startswith("# moods.py")
    ]
    path = tmp_path / "moods.py"
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("moods", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stored_and_charged(
    moods: ModuleType, folder: Path, users: int, threads: int, holder: Any
) -> tuple[int, int, int]:
    """Let devices report at the same time, each again until it is answered; reports, charges and answers of 503."""
    moods.TOKENS.update({f"token-{n}": f"user{n}" for n in range(users)})
    with Accountant(folder / "moods.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
    again = [0] * users
    with TestClient(moods.create_app(folder / "moods.db", folder / "reports.db")) as server:

        def report(number: int) -> None:
            headers = {"Authorization": f"Bearer token-{number}", "Idempotency-Key": "monday"}
            for _ in range(400):
                answer = server.post("/reports", json={"day": "monday", "report": number % 5}, headers=headers)
                if answer.status_code == 200:
                    return
                assert answer.status_code == 503, answer.text
                again[number] += 1
            raise AssertionError("never answered")

        with holder(folder / "reports.db"), ThreadPoolExecutor(threads) as devices:
            list(devices.map(report, range(users)))
        found = server.get("/results/monday").json()["reports"]
    with Accountant(folder / "moods.db") as accountant:
        return found, accountant.stats()["entries_by_kind"]["spent"], sum(again)


class Locked:
    """Another program that holds the write lock of the table until some requests have met it."""

    def __init__(self, path: Path) -> None:
        self._path, self._ended = path, threading.Event()

    def __enter__(self) -> None:
        locked = threading.Event()

        def hold() -> None:
            with closing(sqlite3.connect(self._path, isolation_level=None)) as store:
                store.execute("BEGIN IMMEDIATE")
                locked.set()
                self._ended.wait(0.5)
                store.execute("ROLLBACK")

        self._thread = threading.Thread(target=hold)
        self._thread.start()
        locked.wait()

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()


class Free:
    """No other program."""

    def __init__(self, path: Path) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


def test_fastapi_guide_with_a_locked_table_stores_every_charged_report(
    moods: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`database is locked` ended a request after the charge: 4,964 charged, 4,963 stored."""
    connect = sqlite3.connect

    def impatient(path: Any, *arguments: Any, **options: Any) -> Any:
        waits = {"timeout": 0.02} if str(path).endswith("reports.db") else {}  # no load is so heavy, so soon
        return connect(path, *arguments, **{**options, **waits})

    monkeypatch.setattr(sqlite3, "connect", impatient)
    found, charged, again = stored_and_charged(moods, tmp_path, 40, 8, Locked)
    assert found == charged == 40
    assert again > 0, "some requests met the lock after their charge, and were told to come again"


@pytest.mark.exhaustive
def test_fastapi_guide_under_load_stores_every_report_at_once(moods: ModuleType, tmp_path: Path) -> None:
    """Forty threads at a time: none of them gives up waiting for the table."""
    assert stored_and_charged(moods, tmp_path, 600, 40, Free) == (600, 600, 0)
