"""Plugins that several threads load at the same time, and what they print meanwhile."""

from __future__ import annotations

import io
import sys
import threading
from contextlib import redirect_stdout
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from contract.acts import in_threads
from ldp_budget import hookimpl
from ldp_budget.registry import imports_in
from ldp_budget.registry.plugins import GROUP, Plugin, Registry

THREADS = 4


@pytest.fixture
def chatty(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A plugin that prints while it is loaded; returns the standard outputs that its loads saw."""
    outputs: list[Any] = []
    together = threading.Barrier(THREADS)

    @hookimpl
    def register_mechanisms(register: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            together.wait(20)
        outputs.append(sys.stdout)
        print("a plugin that talks")

    module = ModuleType("a_chatty_plugin")
    vars(module).update(register_mechanisms=register_mechanisms)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return outputs


def load(_: int = 0) -> list[Plugin]:
    return Registry.collect([EntryPoint("chatty", "a_chatty_plugin", GROUP)]).plugins


def test_load_in_several_threads_leaves_standard_output_as_it_was(chatty: list[Any]) -> None:
    before = sys.stdout
    plugins = in_threads(THREADS, load)
    assert [plugin.failed for [plugin] in plugins] == [""] * THREADS
    assert sys.stdout is before
    assert all(seen is before for seen in chatty)


def test_load_in_a_thread_of_a_command_leaves_standard_output_as_it_was(chatty: list[Any]) -> None:
    before = sys.stdout
    with imports_in(lambda: redirect_stdout(sys.stderr)):
        in_threads(THREADS, load)
    assert sys.stdout is before
    assert all(seen is before for seen in chatty)


def test_load_in_the_main_thread_of_a_command_prints_to_its_context(chatty: list[Any]) -> None:
    aside = io.StringIO()
    with imports_in(lambda: redirect_stdout(aside)):
        load()
    load()
    assert aside.getvalue() == "a plugin that talks\n"
    assert chatty == [aside, sys.stdout]
