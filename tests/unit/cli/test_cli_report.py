"""`ldp-budget report`: the page holds what a board asks for, escapes all texts, and loads nothing."""

from __future__ import annotations

import re
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import pytest

from command_line import CommandLine

TITLE = 'Well-being at <b>&" the clinic'
HOSTILE = "<script>alert(1)</script>"


def clinic(command: CommandLine) -> None:
    """A survey of 60 people, of whom the day's limit refuses 20 when they answer again."""
    folder = Path(command.ledger).parent
    command("policy", "set", "staff", "--limit", "lifetime=4", "--limit", "day=1")
    texts = ["--title", TITLE, "--question", "How have you felt?", "--purpose", HOSTILE, "--contact", "a@example.org"]
    command("collection", "add", "mood", "grr", "--epsilon", "1", "--categories", 'good,fair <i>&",bad', *texts)
    for name, users in (("first", range(60)), ("second", range(40, 80))):
        rows = "".join(f"u{user},{'good' if user % 3 else 'bad'}\n" for user in users)
        (folder / f"{name}.csv").write_text(f"user,answer\n{rows}")
        out = ("--spend", "--policy", "staff", "--out", folder / f"{name}.reports")
        command("randomize", "mood", folder / f"{name}.csv", "--column", "answer", "--user-column", "user", *out)


@pytest.fixture
def survey_line(command: CommandLine, begun: Callable[..., None]) -> CommandLine:
    begun(clinic, command)
    return command


def files(command: CommandLine) -> list[Path]:
    return [Path(command.ledger).with_name(f"{name}.reports") for name in ("first", "second")]


class Parts(HTMLParser):
    """The tags, the attributes and the text of a page, and its terms with their descriptions."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._tag = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        self._tag = tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self._tag, data.strip()))

    def said(self, term: str) -> str:
        """Return the description of a term."""
        words = [text for _, text in self.texts]
        return words[words.index(term) + 1]


def page_of(command: CommandLine, *options: object, name: str = "mood") -> Parts:
    out = Path(command.ledger).with_name("page.html")
    command("report", name, *options, "--out", out)
    return Parts(out.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_report_page_has_all_parts(survey_line: CommandLine) -> None:
    page = page_of(survey_line, *files(survey_line), "--invited", "100", "--organisation", "Example Clinic")
    titles = [text for tag, text in page.texts if tag == "h2"]
    assert titles == [
        "How have you felt?",
        "Who asked",
        "Who answered",
        "Privacy budget: promised and used",
        "How each answer is protected",
        "Who guarantees what",
        "Record",
    ]
    assert ("h1", TITLE) in page.texts
    assert page.said("Organization") == "Example Clinic"
    assert page.said("Purpose") == HOSTILE
    assert page.said("Invited") == "100 people"
    assert page.said("Answered") == "80 (80.0 % of the invited)"
    assert page.said("Refused by the privacy budget") == "20 requests, over all surveys in the ledger"
    assert page.said("Charged in the ledger") == "80 accounts for 80 reports"
    assert page.said("Limit for each account") == "ε = 4 in all; ε = 1 a day"
    assert page.said("One response costs") == "at most ε = 1"
    assert page.said("Limits raised since the first answer") == "never"
    assert page.said("Used in all") == "at most ε = 1 by any one account, all surveys added up"
    assert page.said("Largest total of one account, of the limit") == "ε = 1 of 4 (25.0 %)"
    assert page.said("Ledger head") == survey_line.json("ledger", "stats")["head"]
    assert page.said("Verification") == "passed: no problem in 80 charges and 1 policy"
    text = " ".join(text for _, text in page.texts)
    for part in (
        "Unit of privacy",
        "Trust model",
        "Meaning of ε",
        "What the server sees",
        "Not covered",
        "NIST SP 800-226",
    ):
        assert part in text
    assert "one forged report moves an estimated number by at most 2.2 people" in text


def test_report_under_sliding_and_scoped_limits_says_what_they_count(survey_line: CommandLine) -> None:
    limits = ("lifetime=4", "28d=2", "attribute:mood:week=1", "purpose:care:lifetime=2")
    survey_line("policy", "set", "staff", *[part for limit in limits for part in ("--limit", limit)])
    page = page_of(survey_line, *files(survey_line))
    said = "ε = 4 in all; ε = 2 in any 28 days; attribute:mood: ε = 1 a week; purpose:care: ε = 2 in all"
    assert page.said("Limit for each account") == said
    assert page.said("Largest total of one account, of the limit (purpose:care)") == "ε = 1 of 2 (50.0 %)"


def test_report_page_escapes_texts_and_loads_nothing(survey_line: CommandLine) -> None:
    page = page_of(survey_line, *files(survey_line), "--organisation", HOSTILE)
    assert not [tag for tag, _ in page.tags if tag in ("script", "i", "link", "img", "iframe")]
    text = Path(survey_line.ledger).with_name("page.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<i>" not in text
    assert not re.search(r"https?://|url\(|@import|src=", text)
    assert [each["href"] for tag, each in page.tags if tag == "a"] == ["mailto:a@example.org"]


def test_report_intervals_are_those_of_estimate(survey_line: CommandLine) -> None:
    table = survey_line("estimate", "mood", *files(survey_line), "--consistent").stdout
    page = survey_line("report", "mood", *files(survey_line), "--markdown").stdout
    ends = re.findall(r"^\| (good|bad) \| [\d.]+ % \| ± [\d.]+ \| ([\d.]+ %) to ([\d.]+ %)", page, re.MULTILINE)
    assert len(ends) == 2
    for answer, low, high in ends:
        assert re.search(rf"^{answer} .* {re.escape(low)} +{re.escape(high)}", table, re.MULTILINE)


@pytest.mark.slow
def test_report_of_a_changed_ledger_warns_and_exits_with_1(survey_line: CommandLine) -> None:
    with closing(sqlite3.connect(survey_line.ledger)) as database, database:
        database.execute("UPDATE window_sums SET epsilon = 0 WHERE account = 3")
    result = survey_line("report", "mood", *files(survey_line), "--markdown", code=1)
    assert "Warning: the ledger failed its check" in result.stderr
    assert "**Verification:** FAILED" in result.stdout
    head = result.stdout.split("\n## ")[0]
    assert "**Do not rely on this report: the ledger failed its check.**" in head
    out = Path(survey_line.ledger).with_name("page.html")
    survey_line("report", "mood", *files(survey_line), "--out", out, code=1)
    top = out.read_text(encoding="utf-8").split("</header>")[0]
    assert "Do not rely on this report: the ledger failed its check." in top


@pytest.mark.slow
def test_report_of_two_rounds_counts_each_account_once(survey_line: CommandLine) -> None:
    folder = Path(survey_line.ledger).parent
    survey_line("policy", "set", "free", "--limit", "lifetime=9")
    out = [
        "--column",
        "answer",
        "--user-column",
        "user",
        "--spend",
        "--policy",
        "free",
        "--out",
        folder / "again.reports",
    ]
    survey_line("randomize", "mood", folder / "first.csv", *out)
    page = page_of(survey_line, *files(survey_line), folder / "again.reports", "--invited", "160")
    assert page.said("Answered") == "140 reports of 80 accounts (50.0 % of the invited)"
    assert page.said("Used in all") == "at most ε = 2 by any one account, all surveys added up"


@pytest.mark.slow
def test_report_out_is_private_and_never_replaced_without_overwrite(survey_line: CommandLine) -> None:
    reports = files(survey_line)
    out = Path(survey_line.ledger).with_name("page.html")
    survey_line("report", "mood", *reports, "--out", out, "--no-verify")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert "add --overwrite to replace it" in survey_line.error("report", "mood", *reports, "--out", reports[0])
    survey_line("report", "mood", *reports, "--out", out, "--no-verify", "--overwrite")
    assert "--out is missing" in survey_line.error("report", "mood", *reports, code=2)


@pytest.mark.slow
def test_report_names_the_verification_of_the_last_hour(
    survey_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = survey_line.json("ledger", "verify")["head"]
    with monkeypatch.context() as patch:
        patch.setattr(
            "ldp_budget.accounting.ledger_maintenance.verify", lambda *given, **more: pytest.fail("verified")
        )
        page = page_of(survey_line, *files(survey_line))
    assert page.said("Verified head") == head == page.said("Ledger head")
    assert page.said("Verification").startswith("passed: no problem in")
    survey_line("spend", "eve", "mood", "--policy", "staff")
    page = page_of(survey_line, *files(survey_line), "--overwrite")
    assert page.said("Verified head") == head != page.said("Ledger head")
    page = page_of(survey_line, *files(survey_line), "--overwrite", "--verify")
    assert page.said("Verified head") == page.said("Ledger head") != head


@pytest.mark.slow
def test_report_of_a_ledger_changed_after_its_verification_warns(survey_line: CommandLine) -> None:
    assert survey_line.json("ledger", "verify")["ok"]
    with closing(sqlite3.connect(survey_line.ledger)) as database, database:
        database.execute("UPDATE journal SET epsilon = 0 WHERE entry = 5")
    said = survey_line("report", "mood", *files(survey_line), "--markdown", code=1).stdout
    assert "**Verification:** FAILED" in said
    assert "The ledger failed its check, so this page states no limit and no total." in said
    assert "Used in all" not in said
    said = survey_line("report", "mood", *files(survey_line), "--markdown", "--no-verify", code=1).stdout
    assert "**Verification:** FAILED" in said
