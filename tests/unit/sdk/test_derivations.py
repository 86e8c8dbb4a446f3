"""Derivations that are kept: in the process, in a file, and only for what they were derived from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ldp_budget.sdk import derivations
from ldp_budget.sdk.derivations import forget, kept


class Counted:
    """A derivation that counts its calls."""

    def __init__(self, result: Any) -> None:
        self.result, self.calls = result, 0

    def __call__(self) -> Any:
        self.calls += 1
        return self.result


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("LDP_BUDGET_CERTIFICATES", str(tmp_path / "certificates.json"))
    monkeypatch.setattr(derivations, "_MOMENT", -1.0)
    forget()
    yield
    forget()


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "derivations").glob("*.json"))


def test_kept_in_one_process_derives_once() -> None:
    derive = Counted({"threshold": "12"})
    assert [kept(["program", 1], derive) for _ in range(3)] == [{"threshold": "12"}] * 3
    assert derive.calls == 1


def test_kept_in_a_file_is_read_by_the_next_process(tmp_path: Path) -> None:
    kept(["program"], Counted("result"))
    forget()
    later = Counted("another")
    assert kept(["program"], later) == "result"
    assert later.calls == 0
    assert len(files(tmp_path)) == 1


def test_kept_of_another_program_or_question_is_derived() -> None:
    kept(["program", 1], Counted("result"))
    assert kept(["program", 2], Counted("another")) == "another"


def test_kept_with_changed_rules_is_derived_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept(["program"], Counted("result"))
    monkeypatch.setattr(derivations, "_rules", lambda: "changed")
    assert kept(["program"], Counted("another")) == "another"


@pytest.mark.parametrize(
    "change",
    [
        lambda data: {**data, "result": ["changed"]},
        lambda data: {**data, "key": "0"},
        lambda data: {**data, "format": "other"},
        lambda data: {"result": data["result"]},
        lambda data: [],
    ],
)
def test_kept_with_a_changed_file_is_derived_again(tmp_path: Path, change: Any) -> None:
    kept(["program"], Counted("result"))
    (path,) = files(tmp_path)
    path.write_text(json.dumps(change(json.loads(path.read_bytes()))))
    forget()
    assert kept(["program"], Counted("derived")) == "derived"


def test_kept_of_a_moment_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivations, "_MOMENT", 60.0)
    assert kept(["program"], Counted(1)) == 1
    assert not files(tmp_path)


def test_kept_without_a_writable_folder_is_derived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LDP_BUDGET_CERTIFICATES", str(tmp_path / "file" / "certificates.json"))
    assert kept(["program"], Counted(1)) == 1


def test_kept_of_a_failed_derivation_is_derived_again() -> None:
    with pytest.raises(ZeroDivisionError):
        kept(["program"], lambda: 1 // 0)
    assert kept(["program"], Counted(1)) == 1
