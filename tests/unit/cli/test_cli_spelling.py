"""Commands as people type them, and answers that say what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from command_line import CommandLine

OUE = ["oue", "--epsilon", "0.5", "--domain-size", "3"]
RENEWED = "the stored answer of this key"


@pytest.fixture
def budget(command: CommandLine) -> CommandLine:
    """A ledger with a lifetime limit of 1 and a poll that costs half of it."""
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", "Poll", "oue", "--epsilon", "0.5", "--categories", "yes,no")
    return command


# -- where options and names stand ------------------------------------------------------------------------------


@pytest.mark.slow
def test_ledger_option_after_the_command_is_used(budget: CommandLine, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    budget("policy", "set", "default", "--limit", "lifetime=1", "--ledger", other)
    budget("spend", "ann", *OUE, f"--ledger={other}")
    for words in (["balance", "ann", "--ledger", other], ["--ledger", other, "balance", "ann"]):
        assert budget.json(*words)["limits"][0]["spent"]["epsilon"] == 0.5
    assert budget.json("balance", "ann")["limits"][0]["spent"]["epsilon"] == 0
    assert budget.json("policy", "--ledger", other, "list")[0]["name"] == "default"
    message = budget.error("balance", "ann", "--ledger", code=2)
    assert "--ledger has no value. Write: --ledger budget.db" in message
    budget("erase", "--unknown", "--yes", "--", "--ledger")
    assert "May also follow the command" in " ".join(budget("--help").stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["OUE", "Oue", "Randomized_Response", "RR"])
def test_mechanism_name_in_any_spelling_is_found(budget: CommandLine, name: str) -> None:
    options = ["--epsilon", "0.5", *(["--domain-size", "3"] if name.lower() == "oue" else [])]
    assert budget.json("calibrate", name, *options)["mechanism"] in ("oue", "randomized-response")
    assert budget("spend", "ann", name, *options).stdout.startswith("spent: ann")


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (["spend", "oue", "--help"], "Usage: ldp-budget spend USER oue [OPTIONS]"),
        (["spend", "OUE", "-h"], "Usage: ldp-budget spend USER oue [OPTIONS]"),
        (["spend-many", "rr", "--help"], "Usage: ldp-budget spend-many FILE randomized-response [OPTIONS]"),
        (["collection", "add", "cms", "--help"], "Usage: ldp-budget collection add NAME cms [OPTIONS]"),
        (["spend", "ann", "oue", "--help"], "Usage: ldp-budget spend USER oue [OPTIONS]"),
        (["spend", "ann", "--help"], "Usage: ldp-budget spend USER MECHANISM [OPTIONS]"),
        (["spend", "--help"], "Usage: ldp-budget spend USER MECHANISM [OPTIONS]"),
        (["calibrate", "oue", "--help"], "Usage: ldp-budget calibrate oue [OPTIONS]"),
    ],
)
def test_help_after_a_mechanism_is_of_that_mechanism(budget: CommandLine, words: list[str], about: str) -> None:
    assert budget(*words).stdout.startswith(about)


@pytest.mark.parametrize(
    ("words", "code", "meant"),
    [
        (["comit", "x"], 2, "No such command 'comit'. Did you mean 'commit'?"),
        (["Spend-Mny"], 2, "Did you mean 'spend-many' or 'spend'?"),
        (["spend_many"], 2, "Did you mean 'spend-many' or 'spend'?"),
        (["policy", "lst"], 2, "'list'"),
        (["spend", "ann", "oeu"], 2, "Did you mean 'oue'"),
        (["spend", "ann", "gausian"], 2, "Did you mean 'gaussian'?"),
        (["spend", "ann", "Pol"], 2, "'Poll'"),
        (["collection", "show", "Pol"], 1, "no collection is named 'Pol'. Collections: Poll. Did you mean 'Poll'?"),
        (["policy", "show", "defalt"], 1, "Did you mean 'default'?\n"),
        (["spend", "ann", "oue", "--epsilom", "1"], 2, "No such option '--epsilom'. Did you mean '--epsilon'?"),
        (
            ["spend", "ann", "--epsilon", "1", "oue"],
            2,
            "--epsilon comes too early: USER and MECHANISM come first.",
        ),
    ],
)
def test_misspelled_word_suggests_the_right_one(budget: CommandLine, words: list[str], code: int, meant: str) -> None:
    assert meant in budget.error(*words, code=code)


def test_unlike_word_suggests_nothing(budget: CommandLine) -> None:
    assert budget.error("xyzzy", code=2).endswith("No such command 'xyzzy'.\n")
    assert "Did you mean" not in budget.error("spend", "ann", "xyzzy", code=2)


@pytest.mark.parametrize("reports", ["0", "-1", "many", "1.5"])
@pytest.mark.parametrize("words", [["compose", *OUE], ["plan", "oue", "--domain-size", "3", "--total-epsilon", "1"]])
def test_invalid_count_of_reports_names_the_option(budget: CommandLine, words: list[str], reports: str) -> None:
    message = budget.error(*words, "--reports", reports, code=2)
    assert f"--reports must be a whole number >= 1: got {reports}" in message


def test_spend_with_an_unreadable_ledger_names_the_ledger(budget: CommandLine) -> None:
    Path(budget.ledger).write_bytes(b"no ledger at all")
    message = budget.error("spend", "ann", "Poll")
    assert f"ledger {budget.ledger}: " in message
    assert "no mechanism" not in message
    assert budget.json("calibrate", *OUE)["mechanism"] == "oue", "which needs no ledger"


# -- answers that say what they are -----------------------------------------------------------------------------


@pytest.mark.slow
def test_spend_with_a_used_key_says_that_the_answer_is_stored(budget: CommandLine) -> None:
    first = budget("spend", "ann", *OUE, "--key", "k").stdout
    again = budget("spend", "ann", *OUE, "--key", "k").stdout
    assert RENEWED not in first
    assert again.startswith(first.rstrip())
    assert "Nothing was charged again." in again
    budget("spend", "ann", *OUE)
    refused = budget("spend", "ann", *OUE, "--key", "l", code=3).stderr
    assert RENEWED not in refused
    budget("policy", "set", "default", "--limit", "lifetime=9")
    stored = budget("spend", "ann", *OUE, "--key", "l", code=3).stderr
    assert stored == f"{refused}  This is {RENEWED}. A new key asks again.\n"
    assert budget("spend", "ann", *OUE, "--key", "m").stdout.startswith("spent: ann")


def test_commit_twice_says_that_it_was_committed(budget: CommandLine) -> None:
    receipt = budget.json("reserve", "ann", *OUE)["receipt"]
    assert budget("commit", receipt).stdout == f"committed: receipt {receipt}, ε = 0.5\n"
    assert budget("commit", receipt).stdout == f"committed: receipt {receipt}, ε = 0.5. It was already committed.\n"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["commit", "void"])
def test_commit_of_an_unknown_receipt_lists_the_open_reservations(budget: CommandLine, how: str) -> None:
    none = "No reservation is named 'x'. No reservation is open. Make one: ldp-budget reserve USER MECHANISM\n"
    assert none in budget.error(how, "x")
    receipts = [budget.json("reserve", user, *OUE)["receipt"] for user in ("ann", "bob", "cy", "dan")]
    budget("commit", receipts[0])
    budget("void", receipts[1])
    late = budget.json("reserve", "eve", *OUE, "--expires", "0.000001")["receipt"]
    spent = budget.json("spend", "fay", *OUE)["receipt"]
    for unknown in ("x", spent):
        message = budget.error(how, unknown)
        assert f"No reservation is named '{unknown}'. Open reservations, newest first:" in message
        listed = [line.split()[0] for line in message.splitlines()[1:]]
        assert listed == [receipts[3], receipts[2]]
        assert late not in message
    assert "oue, 1 report, ε = 0.5, until 20" in message


def test_refusal_of_a_report_with_delta_shows_the_delta(budget: CommandLine) -> None:
    gaussian = ["gaussian", "--epsilon", "0.5", "--delta", "1e-6", "--lower", "0", "--upper", "1"]
    message = budget("spend", "ann", *gaussian, code=3).stderr
    assert (
        "refused: ann, 1 report, ε = 0.5, δ = 1e-06. Send no report\n"
        "  lifetime (basic): ε = 0 of 1 spent, 1 left; δ = 0 of 0 spent\n" in message
    )
    assert "δ" not in budget("spend", "ann", *OUE, "--reports", "3", code=3).stderr, "where none was asked for"


def test_quote_without_a_counting_limit_shows_no_number(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=9,1e-6,gdp")
    kept = ["d-bit-flip", "--epsilon", "1", "--buckets", "4", "--bits", "2", "--memoize", "--label", "l"]
    command("spend", "ann", *kept)
    assert "it fits\n  fits: any number of reports of this kind\n" in command("quote", "ann", *kept).stdout
    assert command.json("quote", "ann", *kept)["affordable_reports"] is None


@pytest.mark.slow
def test_counts_of_one_are_singular(budget: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,answer\nann,yes\n")
    words = ["randomize", "Poll", tmp_path / "a.csv", "--column", "answer", "--out", tmp_path / "r"]
    assert "1 report written" in budget(*words).stderr
    assert budget("estimate", "Poll", tmp_path / "r").stdout.startswith("1 report; 95 %")
    assert budget("compose", *OUE, "--reports", 1).stdout.startswith("1 report of ")
    assert budget("plan", "oue", "--domain-size", 3, "--total-epsilon", 1, "--reports", 1).stdout.startswith(
        "1 report "
    )
    assert (
        "of 1 user who has one value"
        in budget("compare", "--epsilon", 1, "--lower", 0, "--upper", 1, "--users", 1).stdout
    )
    assert "a plan of 1 report;" in budget("policy", "set", "once", "--plan", "Poll=1").stdout


@pytest.mark.slow
def test_estimate_rounds_to_zero_without_a_sign(budget: CommandLine, tmp_path: Path) -> None:
    budget("collection", "add", "many", "oue", "--epsilon", "3", "--domain-size", "400")
    (tmp_path / "a.csv").write_text("answer\n" + "7\n" * 9)
    for name in "abc":
        budget("randomize", "many", tmp_path / "a.csv", "--column", "answer", "--out", tmp_path / name)
        printed = budget("estimate", "many", tmp_path / name).stdout.split()
        assert not {"-0", "-0.0"} & set(printed)
    assert json.loads(budget("estimate", "many", tmp_path / "a", "--json").stdout)["reports"] == 9


# -- policies ---------------------------------------------------------------------------------------------------


def test_policy_list_shows_plans(budget: CommandLine) -> None:
    budget("policy", "set", "year", "--plan", "Poll=5")
    budget("policy", "set", "both", "--plan", "Poll=2", "--limit", "lifetime=3")
    listed = {line.split()[0]: line for line in budget("policy", "list").stdout.splitlines()}
    assert "a plan of 5 reports; all plans so far cost ε = 2.5 at δ = 0" in listed["year"]
    assert "lifetime ε = 3 (basic); a plan of 2 reports" in listed["both"]
    assert "plan" not in listed["default"]


@pytest.mark.parametrize(
    ("limits", "warned"),
    [
        (
            ["lifetime=1", "day=2"],
            "the day limit of ε = 2 never binds: the lifetime limit of ε = 1 is smaller",
        ),
        (
            ["lifetime=9", "month=4", "day=5"],
            "the day limit of ε = 5 never binds: the month limit of ε = 4 is smaller",
        ),
        (
            ["month=2", "day=5", "lifetime=4"],
            "the day limit of ε = 5 never binds: the month limit of ε = 2 is smaller",
        ),
        (["lifetime=4,1e-6,zcdp", "week=5,1e-6,zcdp"], "the week limit of ε = 5 never binds: the lifetime limit"),
        (["lifetime=1", "day=1"], ""),
        (["lifetime=9", "month=4", "week=5"], ""),
        (["lifetime=4,1e-6,zcdp", "day=5"], ""),
        (["lifetime=1,1e-6", "day=2,1e-7"], ""),
    ],
)
def test_policy_set_with_an_idle_limit_warns(command: CommandLine, limits: list[str], warned: str) -> None:
    done = command("policy", "set", "p", *(word for limit in limits for word in ("--limit", limit)))
    assert done.stderr.count("Warning") == (1 if warned else 0)
    assert warned in done.stderr
    assert command.json("policy", "show", "p")["version"] == 1, "and stored all the same"
