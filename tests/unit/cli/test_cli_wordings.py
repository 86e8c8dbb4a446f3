"""Messages of the command line: each says in plain words what is wrong, shows the value, and says what to do."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from command_line import CommandLine

OUE = ["oue", "--epsilon", "0.5", "--domain-size", "3"]
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.fixture
def mood(command: CommandLine) -> CommandLine:
    """A ledger with a lifetime limit of 4, and the collection `mood` with the answers a, b and c."""
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("collection", "add", "mood", "grr", "--epsilon", "1", "--categories", "a,b,c")
    return command


def randomize(mood: CommandLine, source: Path, *more: object, column: str = "answer") -> str:
    """Return the error of `randomize`."""
    out = source.with_name("o.reports")
    done = mood("randomize", "mood", source, "--column", column, "--out", out, *more, code=1)
    assert not out.exists()
    return done.stderr


# -- tables -----------------------------------------------------------------------------------------------------


def test_table_with_an_unclosed_quote_names_the_line(mood: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text('user,answer\np1,a\np2,"b\np3,c\n')
    message = randomize(mood, tmp_path / "q.csv")
    assert "q.csv, line 3: unclosed quote" in message
    assert 'Add the missing ", or write "" for a quote inside a cell.' in message


@pytest.mark.parametrize("name", ["p.png", "p.csv"])
@pytest.mark.parametrize(
    ("content", "what"),
    [(PNG, "a PNG picture"), (b"%PDF-1.7\n", "a PDF file"), (b"PK\x03\x04\x14\0", "(.xlsx, .ods)")],
)
def test_table_that_is_another_kind_of_file_is_named(
    mood: CommandLine, tmp_path: Path, name: str, content: bytes, what: str
) -> None:
    (tmp_path / name).write_bytes(content)
    message = randomize(mood, tmp_path / name)
    assert what in message
    assert "and not a table. Save the table as CSV in UTF-8." in message


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_table_whose_column_holds_no_answers_asks_for_the_column(
    mood: CommandLine, tmp_path: Path, kind: str
) -> None:
    source = tmp_path / f"a.{kind}"
    if kind == "csv":
        source.write_text("user,answer\np1,a\np2,b\n")
    else:
        arrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
        parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: pip install 'ldp-budget[interop]'")
        parquet.write_table(arrow.table({"user": ["p1", "p2"], "answer": ["a", "b"]}), source)
    message = randomize(mood, source, column="user")
    assert "Name the column of the answers with --column. Columns: user, answer" in message
    assert "--skip-invalid" not in message


def test_table_with_one_wrong_answer_offers_to_skip_it(mood: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,answer\np1,x\np2,b\n")
    assert "add --skip-invalid" in randomize(mood, tmp_path / "a.csv")


def test_table_that_does_not_exist_says_where_to_look(mood: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("user,answer\np1,a\n")
    assert "Did you mean 'answers.csv'?" in randomize(mood, tmp_path / "answer.csv")
    assert f"To list the files there: ls {tmp_path}" in randomize(mood, tmp_path / "zzz.csv")


def test_table_that_is_empty_says_what_to_name(mood: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("")
    asked = ("randomize", "mood", tmp_path / "none.csv", "--column", "answer", "--out", tmp_path / "r")
    assert "Name a file with a header line and rows." in mood.error(*asked, code=2)
    assert "Name a file with a header line and rows." in mood.error("spend-many", tmp_path / "none.csv", "mood")


# -- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spend", [(), ("--spend", "--user-column", "user")])
def test_out_in_a_missing_folder_names_the_folder(mood: CommandLine, tmp_path: Path, spend: tuple[str, ...]) -> None:
    (tmp_path / "a.csv").write_text("user,answer\np1,a\n")
    out = tmp_path / "no where" / "o.reports"
    message = mood.error("randomize", "mood", tmp_path / "a.csv", "--column", "answer", "--out", out, *spend)
    assert f"--out: the folder {out.parent} does not exist. Nothing was written and no user was charged." in message
    assert f"mkdir -p '{out.parent}'" in message
    assert ".partial" not in message


def test_report_file_that_is_truncated_or_missing_says_what_to_do(mood: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,answer\np1,a\n")
    mood("randomize", "mood", tmp_path / "a.csv", "--column", "answer", "--out", tmp_path / "r")
    (tmp_path / "cut").write_bytes((tmp_path / "r").read_bytes()[:-1])
    assert "it is truncated. Copy it again from where it was written." in mood.error(
        "estimate", "mood", tmp_path / "cut"
    )
    assert "Check the name and the folder of the file." in mood.error("estimate", "mood", tmp_path / "none")


# -- the ledger -------------------------------------------------------------------------------------------------


def test_ledger_that_is_a_folder_is_named_as_one(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    said = f"ledger {tmp_path / 'folder'}: this is a folder, and a ledger is a file. Name a file, such as "
    assert said in command.error("--ledger", tmp_path / "folder", "balance", "alice")
    made = command("--ledger", tmp_path / "folder", "policy", "set", "default", "--limit", "lifetime=1", code=1)
    assert said in made.stderr
    assert not (tmp_path / "folder.key").exists()


def test_ledger_that_is_another_file_says_what_to_name(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("user,answer\np1,a\n")
    message = command.error("--ledger", tmp_path / "answers.csv", "balance", "alice")
    assert "this is not an ldp-budget ledger. Name a ledger, such as budget.db." in message


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
def test_ledger_whose_key_file_others_can_read_names_the_key_file(mood: CommandLine) -> None:
    os.chmod(f"{mood.ledger}.key", 0o644)
    key = f"{mood.ledger}.key"
    assert f"other users have access to its key file {key}. Run: chmod 600 {key}" in mood.error("balance", "alice")


def test_at_on_a_real_ledger_says_that_it_needs_a_sandbox(mood: CommandLine) -> None:
    message = mood.error("balance", "alice", "--at", "2027-01-01", code=2)
    assert (
        f"--at works with a sandbox ledger only, and {mood.ledger} is a real ledger. Nothing was changed." in message
    )
    assert "ldp-budget --ledger sandbox.db ledger init --sandbox" in message
    assert "was asked for" not in message


def test_unknown_policy_of_similar_spelling_offers_no_new_policy(mood: CommandLine) -> None:
    message = mood.error("balance", "alice", "--policy", "defualt")
    assert "Did you mean 'default'?" in message
    assert "policy set" not in message
    assert "Set one: ldp-budget policy set zzz --limit" in mood.error("balance", "alice", "--policy", "zzz")


# -- options ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serve", "--rate", "abc"), "--rate must be a number >= 0: got 'abc'"),
        (("serve", "--port", "70000"), "--port must be a whole number >= 0 and <= 65535: got '70000'"),
        (("invite", "mood", "u.csv", "--expires", "0"), "--expires must be a number > 0 and <= 3660: got '0'"),
    ],
)
def test_range_of_an_option_is_in_plain_words(command: CommandLine, words: tuple[str, ...], said: str) -> None:
    assert said in command.error(*words, code=2)


def test_missing_epsilon_of_grr_names_options_and_an_example(command: CommandLine) -> None:
    message = command.error("calibrate", "grr", "--domain-size", "3", code=2)
    assert (
        "Give --epsilon, or --gamma, or --rho1 and --rho2. Example: ldp-budget calibrate random-substitution"
        in message
    )


def test_number_with_a_decimal_comma_asks_for_a_point(command: CommandLine) -> None:
    message = command.error("calibrate", "grr", "--domain-size", "3", "--epsilon", "1,5", code=2)
    assert "got 1,5. Write a decimal point: 1.5" in message
    assert "decimal point" not in command.error("calibrate", "oue", "--domain-size", "3", "--epsilon", "x", code=2)


def test_compare_of_one_answer_is_refused(command: CommandLine) -> None:
    message = command.error("compare", "--epsilon", "1", "--domain-size", "1", "--users", "100", code=2)
    assert "--domain-size must be a whole number >= 2: got 1" in message


@pytest.mark.slow
def test_compare_margin_in_percent_is_the_same_share(command: CommandLine) -> None:
    asked = ("compare", "--epsilon", "1", "--domain-size", "4", "--users", "100", "--margin")
    assert command.json(*asked, "3%") == command.json(*asked, "0.03")
    for wrong in ("3 %", "3", "x", "0%", "nan"):
        assert "such as 0.03 or 3%: got" in command.error(*asked, wrong, code=2)


# -- policies ---------------------------------------------------------------------------------------------------


def test_policy_set_again_names_each_changed_limit(command: CommandLine) -> None:
    first = command("policy", "set", "default", "--limit", "lifetime=4", "--limit", "day=1", "--limit", "week=2")
    assert "→" not in first.stdout
    new = ("--limit", "lifetime=10", "--limit", "day=0.5", "--limit", "month=3")
    lines = command("policy", "set", "default", *new).stdout.splitlines()
    assert lines[-4:] == [
        "raised: lifetime ε = 4 → ε = 10",
        "lowered: day ε = 1 → ε = 0.5",
        "removed: week ε = 2 (basic)",
        "added: month ε = 3 (basic)",
    ]
    assert "→" not in command("policy", "set", "default", *new).stdout


def test_policy_set_with_another_delta_shows_both(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4,1e-6,zcdp")
    changed = command("policy", "set", "default", "--limit", "lifetime=4,1e-5,zcdp").stdout.splitlines()[-1]
    assert changed == "raised: lifetime ε = 4 at δ = 1e-06 → ε = 4 at δ = 1e-05"


@pytest.mark.slow
def test_policy_show_versions_lists_every_version(mood: CommandLine) -> None:
    mood("policy", "set", "default", "--limit", "lifetime=10")
    mood("policy", "set", "other", "--limit", "lifetime=1")
    header, *rows = mood("policy", "show", "default", "--versions").stdout.splitlines()
    assert header.split()[:2] == ["version", "set"]
    assert [row.split()[0] for row in rows] == ["2", "1"]
    assert "raised" in rows[0]
    assert "lifetime=10" in rows[0]
    assert "lifetime=4" in rows[1]
    found = mood.json("policy", "show", "default", "--versions")
    assert [(row["version"], row["limits"], row["by"]) for row in found] == [
        (2, ["lifetime=10"], None),
        (1, ["lifetime=4"], None),
    ]


# -- users and refusals -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_history_and_balance_of_an_unknown_user_say_so(mood: CommandLine) -> None:
    for words in (("history", "nobody"), ("balance", "nobody"), ("balance", "nobody", "--json")):
        assert "No charge of a user 'nobody' yet" in mood(*words).stderr
    mood("spend", "ann", "mood")
    for words in (("history", "ann"), ("balance", "ann")):
        assert "No charge" not in mood(*words).stderr
    mood("erase", "ann", "--yes")
    assert mood("balance", "ann").stderr == ""


def test_refusal_says_to_send_no_report(mood: CommandLine) -> None:
    refused = mood.error("spend", "ann", "mood", "--reports", "5", code=3)
    assert refused.startswith("refused: ann, 5 reports, ε = 5. Send no report\n")
    assert "Send no report" not in mood("quote", "ann", "mood", "--reports", "5", code=3).output
    assert "Send no report" not in mood("spend", "ann", "mood").output


@pytest.mark.slow
def test_spend_many_without_a_key_notes_that_a_repeat_charges_again(mood: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("user\nann\nben\n")
    note = "Note: without --key a second run charges everyone again. Add --key NAME"
    assert note in mood("spend-many", tmp_path / "u.csv", "mood").stderr
    assert note not in mood("spend-many", tmp_path / "u.csv", "mood", "--key", "round-2").stderr


def test_spend_many_with_refused_users_names_their_limits(command: CommandLine, tmp_path: Path) -> None:
    command("policy", "set", "default", "--limit", "lifetime=0.9", "--limit", "day=0.5")
    (tmp_path / "u.csv").write_text("user\nann\nben\n")
    command("spend-many", tmp_path / "u.csv", *OUE, "--key", "1")
    notes = command("spend-many", tmp_path / "u.csv", *OUE, "--key", "2").stderr
    assert "To see what a user has left: ldp-budget quote USER oue --domain-size 3 --epsilon 0.5\n" in notes
    assert "Refused by: lifetime limit: 2 users; day limit (resets at 20" in notes
    assert notes.rstrip().endswith(" 00:00 UTC): 2 users")


@pytest.mark.slow
def test_spend_many_with_many_refused_users_names_the_limits_of_the_first(mood: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("user\n" + "".join(f"u{number}\n" for number in range(102)))
    for key in "1234":
        mood("spend-many", tmp_path / "u.csv", "mood", "--key", key)
    notes = mood("spend-many", tmp_path / "u.csv", "mood", "--key", "5").stderr
    assert "Refused by (of the first 100): lifetime limit: 100 users" in notes


@pytest.mark.slow
def test_randomize_of_refused_users_names_no_estimate(mood: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,answer\nann,a\nben,b\n")
    asked = ("randomize", "mood", tmp_path / "a.csv", "--column", "answer", "--spend", "--user-column", "user")
    mood("policy", "set", "default", "--limit", "lifetime=1")
    assert "Next: ldp-budget estimate" in mood(*asked, "--out", tmp_path / "r1").stderr
    notes = mood(*asked, "--out", tmp_path / "r2").stderr
    assert "Next:" not in notes
    assert f"There is nothing to estimate: {tmp_path / 'r2'} holds no report, because all users were refused" in notes
    assert "Refused by: lifetime limit: 2 users" in notes


# -- estimates --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_estimate_table_says_what_the_counts_add_up_to_and_whose_intervals_these_are(
    mood: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("answer\n" + "a\n" * 50 + "b\n" * 20)
    mood("randomize", "mood", tmp_path / "a.csv", "--column", "answer", "--out", tmp_path / "r")
    for more in ((), ("--top", "1"), ("--candidates", "a,b")):
        shown = mood("estimate", "mood", tmp_path / "r", *more).stdout
        assert (
            "Consistent counts: at least 0; over all answers they add up to the reports. The intervals are" in shown
        )
        assert "those of the unbiased counts (last column)" in shown
    mood("collection", "add", "words", "cms", "--epsilon", "4", "--hashes", "8", "--width", "64")
    (tmp_path / "w.csv").write_text("word\n" + "a\n" * 50 + "b\n" * 50)
    mood("randomize", "words", tmp_path / "w.csv", "--column", "word", "--out", tmp_path / "w")
    shown = mood("estimate", "words", tmp_path / "w", "--candidates", "z").stdout
    assert "over all answers together at most the reports" in shown


@pytest.mark.slow
def test_estimate_consistent_csv_names_the_kind_of_each_column(mood: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("answer\na\nb\n")
    mood("randomize", "mood", tmp_path / "a.csv", "--column", "answer", "--out", tmp_path / "r")
    asked = ("estimate", "mood", tmp_path / "r")
    columns = mood(*asked, "--consistent", "--csv").stdout.splitlines()[0].split(",")
    assert {"consistent_count", "consistent_share", "unbiased_count", "unbiased_std_error"} <= set(columns)
    assert not {"count", "share", "std_error"} & set(columns)
    assert {"count", "share", "std_error"} <= set(mood(*asked, "--csv").stdout.splitlines()[0].split(","))
    row = json.loads(mood(*asked, "--consistent", "--json").stdout)["answers"][0]
    assert {"count", "raw_count", "std_error"} <= set(row)
