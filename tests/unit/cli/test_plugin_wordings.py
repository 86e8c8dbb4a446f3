"""Output of the commands for plugins: no empty heading, no hidden column, and what to do."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from ldp_budget import hookimpl
from ldp_budget.registry import plugins
from ldp_budget.registry.plugins import Plugin, load_plugin
from ldp_budget_cli import calculations
from ldp_budget_cli.plugin import _rows, _verdict


def loaded(monkeypatch: pytest.MonkeyPatch, **hooks: Any) -> Plugin:
    """The plugin of a module with these hooks."""
    module = ModuleType("a_test_plugin")
    vars(module).update(hooks)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return load_plugin(EntryPoint("a-test-plugin", module.__name__, plugins.GROUP), frozenset({"reports"}))


def test_misspelled_hook_lists_the_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    @hookimpl
    def register_mechanism(register: Any) -> None:
        pass

    failed = loaded(monkeypatch, register_mechanism=register_mechanism).failed
    assert "unknown hook 'register_mechanism'" in failed
    assert failed.endswith(
        "The hooks are register_mechanisms, register_commands, guarantee_of, source_of, declaration_of"
    )


def test_failed_plugin_is_listed_under_its_name(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"name": "-", "aliases": [], "plugin": "ldp-budget-coin", "plugin_version": "0.1.0", "checked": "no"}
    row |= {"status": "failed: it implements no hook", "summary": "", "source": "", "proved": ""}
    monkeypatch.setattr(calculations, "mechanism_rows", lambda: [row])
    result = command("mechanisms")
    assert result.stdout.splitlines()[1].split()[0] == "ldp-budget-coin"
    assert "Plugin ldp-budget-coin 0.1.0 failed: it implements no hook" in result.stderr


def test_calibration_without_derived_parameters_prints_the_given_ones(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It printed the heading `parameters` and nothing below, and an empty source."""
    kind = plugins.mechanism("oue")
    monkeypatch.setattr(kind, "parameters", property(lambda self: {}))
    monkeypatch.setattr(kind, "utility", lambda self, users=None: {})
    monkeypatch.setattr(kind, "source", "")
    lines = command("calibrate", "oue", "--epsilon", 1, "--domain-size", 7).stdout.splitlines()
    at = lines.index("parameters")
    assert sorted(line.split()[0] for line in lines[at + 1 : at + 3]) == ["domain_size", "epsilon"]
    assert not {"utility", "source"} & {line.split()[0] for line in lines}


@pytest.mark.parametrize(
    ("checked", "own", "said"),
    [
        ("audited", False, "passed: audited, the highest level for a client in Python"),
        ("exact", True, "passed: exact"),
        ("no", False, "not passed: see the lines that begin with failed, not audited or skipped"),
    ],
)
def test_verdict_of_a_check_says_if_it_passed(checked: str, own: bool, said: str) -> None:
    assert _verdict(checked, own) == said


def test_narrow_table_of_a_check_keeps_the_audited_column(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from ldp_budget_cli.plugin import _print_rows

    example = {
        "checked": "audited",
        "claimed": 0.5,
        "whole": True,
        "exact": {"verdict": "holds", "upper": 0.5},
        "audits": [{"lower_bound": 0.123456, "verdict": "passed"}],
        "checks": [],
        "declared": {"epsilon": "0.5"},
    }
    monkeypatch.setenv("COLUMNS", "80")
    _print_rows(_rows({"mechanism": "a-rather-long-name", "examples": [example], "chosen": []}))
    assert "audited  failed" in capsys.readouterr().out.splitlines()[0]
