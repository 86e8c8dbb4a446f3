"""A pretended Windows: what works there, and the one sentence about a ledger in a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import ldp_budget
from command_line import CommandLine
from ldp_budget import Accountant, Collection
from ldp_budget.accounting.charge_request import LOCAL
from pretended_windows import CONSOLE, PretendedWindows
from service_places import Keys, shared_service

SENTENCE = (
    "a ledger file needs file locks that this system does not have. Nothing was written. Use the Windows Subsystem for "
    "Linux (WSL), the container, PostgreSQL, or a service by its URL.\n"
)
COIN = ("rr", "--epsilon", "0.5")


class Shown(NamedTuple):
    stdout: str
    stderr: str


Run = Callable[..., Shown]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PretendedWindows]:
    made = PretendedWindows(tmp_path_factory.mktemp("windows"))
    yield made
    made.close()


@pytest.fixture
def windows(system: PretendedWindows, tmp_path: Path) -> Run:
    """Run a command on the pretended Windows, in the folder of the test; what programs read is UTF-8."""

    def run(*words: object, code: int = 0, **environment: str) -> Shown:
        home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "home")}
        done = system.run(*words, folder=tmp_path, environment={**home, **environment}, code=code)
        data = {"--json", "--csv"} & {*words}
        return Shown(done.stdout.decode("utf-8" if data else CONSOLE), done.stderr.decode(CONSOLE))

    return run


@pytest.fixture
def mood(tmp_path: Path) -> Path:
    """The file of a collection, a ledger of Linux that has it, and a table of answers next to it."""
    made = Collection("mood", ldp_budget.mechanism("grr")(epsilon=2, domain_size=3), ["good", "fair", "bad"])
    with Accountant(tmp_path / "linux.db") as accountant:
        accountant.add_collection(made)
    (tmp_path / "mood.json").write_text(json.dumps(made.to_json()), encoding="utf-8")
    (tmp_path / "a.csv").write_text("user,mood\nann,good\nbob,fair\nünal,bad\n", encoding="utf-8")
    return tmp_path / "mood.json"


@pytest.mark.parametrize(
    "words",
    [
        ("policy", "set", "default", "--limit", "lifetime=4"),
        ("spend", "ann", *COIN),
        ("balance", "ann"),
        ("ledger", "init"),
        ("ledger", "verify"),
        ("ledger", "restore", "copy.db", "--yes"),
        ("serve", "--port", "0"),
    ],
    ids=" ".join,
)
def test_ledger_file_on_windows_gives_one_sentence_and_writes_nothing(
    windows: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    done = windows(*words, code=1)
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ledger ")
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(SENTENCE)
    assert sorted(tmp_path.rglob("*")) == before


def test_demo_and_calculations_run_on_windows(windows: Run, tmp_path: Path) -> None:
    shown = windows("demo").stdout
    assert "the largest epsilon of one poll" in shown, "the console has no ε"
    assert "Nothing is charged twice." in shown
    assert json.loads(windows("calibrate", "oue", "--epsilon", 1, "--domain-size", 4, "--json").stdout)["parameters"]
    plan = ("plan", "--answers", 6, "--respondents", 3000, "--epsilon", 1, "--plot", "plan.png")
    assert "points" in windows(*plan).stdout
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    composed = ("compose", "oue", "--epsilon", 1, "--domain-size", 4, "--reports", 3, "--rule", "exact")
    windows(*composed, "--certificate", "total.json")
    assert (tmp_path / "total.json").exists()
    compared = windows("compare", "--epsilon", 1, "--domain-size", 4, "--users", 100, "--csv").stdout
    assert "oue" in compared


def test_reports_are_drawn_and_estimated_without_a_ledger_on_windows(windows: Run, mood: Path) -> None:
    place = r"C:\surveys\mood.reports"
    windows("randomize", mood, "a.csv", "--column", "mood", "--out", place)
    assert (mood.parent / place).exists()
    result = json.loads(windows("estimate", mood, place, "--json").stdout)
    assert result["reports"] == 3
    windows("report", mood, place, "--out", "page.html")
    assert "<html" in (mood.parent / "page.html").read_text(encoding="utf-8")
    windows("contributions", mood, place, "--out", "rows.csv")
    assert len((mood.parent / "rows.csv").read_text(encoding="utf-8").splitlines()) == 4
    assert not list(mood.parent.glob("*.new"))


def test_client_of_a_service_works_on_windows(windows: Run, mood: Path, tmp_path: Path) -> None:
    with Accountant(tmp_path / "linux.db") as ledger:
        keys = Keys()
        shared_service().serve(ledger, keys)
        there = {"LDP_BUDGET_API_KEY": keys.secret_of(LOCAL), "LDP_BUDGET_LEDGER": shared_service().url}
        windows("policy", "set", "default", "--limit", "lifetime=2", **there)
        assert json.loads(windows("spend", "ann", *COIN, "--key", "k", "--json", **there).stdout)["status"] == "spent"
        script = tmp_path / "script.py"
        script.write_text(
            "import os, ldp_budget\n"
            "from ldp_budget.client import Client\n"
            "with Client(os.environ['LDP_BUDGET_LEDGER'], os.environ['LDP_BUDGET_API_KEY']) as client:\n"
            "    receipt = client.spend('ann', ldp_budget.mechanism('rr')(epsilon='0.5'), key='k')\n"
            "print(receipt.repeated)\n",
            encoding="utf-8",
        )
        assert windows("--script", script, **there).stdout.split() == ["True"]
        assert [entry["kind"] for entry in ledger.history("ann")] == ["spent"]


def test_pretended_command_gives_the_result_of_a_real_one(windows: Run, tmp_path: Path) -> None:
    words = ("calibrate", "grr", "--epsilon", 1, "--domain-size", 4, "--json")
    assert json.loads(windows(*words).stdout) == CommandLine(tmp_path / "none.db").json(*words[:-1])
