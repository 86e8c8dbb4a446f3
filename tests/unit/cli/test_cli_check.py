"""`check`, and the options that write certificates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import CommandLine

COMPOSE = ("compose", "oue", "--epsilon", "0.5", "--domain-size", 7, "--reports", 50, "--total-delta", "1e-6")


@pytest.mark.slow
def test_compose_certificate_is_proved_by_check(command: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "total.json"
    made = command(*COMPOSE, "--rule", "exact", "--certificate", path)
    assert f"Next: ldp-budget check {path}" in made.stderr
    assert "basic" not in made.stdout
    found = command.json("check", path)
    assert (found["kind"], found["verdict"], found["reports"]) == ("total", "proved", 50)
    assert found["epsilon"] == "13.84709"
    assert "Proved: ε is at most 13.84709 at δ = 0.000001" in command("check", path).stdout


@pytest.mark.slow
def test_policy_set_certificate_certifies_the_plan(command: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    command("collection", "add", "mood", "oue", "--epsilon", "0.5", "--categories", "good,fair,bad")
    command("collection", "add", "sport", "grr", "--epsilon", "0.3", "--categories", "a,b,c")
    plan = ("--plan", "mood=30", "--plan", "sport=12", "--plan-delta", "1e-6")
    stated = command.json("policy", "set", "year", *plan, "--certificate", path)
    found = command.json("check", path)
    assert [charge["count"] for charge in found["charges"]] == [12, 30]
    price = float(stated["plan"]["epsilon"])
    assert price * 0.999999 <= float(found["epsilon"]) <= price * 1.001
    wrong = command("policy", "set", "year", "--limit", "lifetime=1", "--certificate", path, code=2)
    assert "Add --plan" in wrong.stderr


def test_check_definition_of_a_collection_proves_its_law(command: CommandLine, tmp_path: Path) -> None:
    command("collection", "add", "mood", "oue", "--epsilon", "0.5", "--categories", "good,fair,bad")
    path = tmp_path / "mood.json"
    path.write_text(command("collection", "show", "mood", "--client").stdout)
    found = command.json("check", path)
    assert (found["kind"], found["verdict"], found["name"], found["scope"]) == (
        "law",
        "proved",
        "mood",
        "every report",
    )


def test_check_false_claim_is_refused(command: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "total.json"
    command(*COMPOSE, "--certificate", path)
    claim = json.loads(path.read_text())
    path.write_text(json.dumps({**claim, "epsilon": "13.8"}, sort_keys=True, separators=(",", ":")) + "\n")
    assert "REFUSED" in command("check", path, code=1).stderr


def test_check_program_beyond_the_checker_is_named(command: CommandLine, tmp_path: Path) -> None:
    command("collection", "add", "age", "laplace", "--epsilon", "1", "--lower", 0, "--upper", 100)
    path = tmp_path / "age.json"
    path.write_text(command("collection", "show", "age", "--client").stdout)
    assert "cannot be checked" in command("check", path, code=1).stderr
