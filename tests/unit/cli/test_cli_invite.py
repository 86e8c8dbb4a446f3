"""`ldp-budget invite`: a link for each user of a file, and their end."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from ldp_budget import Accountant
from ldp_budget_service.invitations import Invitations


@pytest.fixture
def users(command: Any, tmp_path: Path) -> Path:
    adding = "collection", "add", "a/b", "randomized-response", "--epsilon", 1, "--categories", "no,yes"
    command(*adding)
    path = tmp_path / "users.csv"
    path.write_text("user,mail\nalice,a@example.org\n김철수,b@example.org\n")
    return path


def links(text: str) -> dict[str, str]:
    return {row["user"]: row["link"] for row in csv.DictReader(io.StringIO(text))}


def test_invite_link_names_collection_and_definition(command: Any, users: Path) -> None:
    made = links(command("invite", "a/b", users, "--service", "https://ask.example.org/", "--round", "2").stdout)
    assert list(made) == ["alice", "김철수"]
    with Accountant(command.ledger) as accountant:
        invitations, digest = Invitations(accountant), accountant.collection("a/b").client
        for user, link in made.items():
            found = re.fullmatch(r"https://ask\.example\.org/s/a%2Fb#([\w.-]+)~([0-9a-f]{32})", link)
            assert found
            invitation = invitations.find(found[1])
            assert invitation is not None
            assert (invitation.user, invitation.round) == (user, "2")
            assert digest is not None
            assert digest.startswith(found[2])


def test_invite_revoke_ends_the_links_so_far(command: Any, users: Path) -> None:
    first = links(command("invite", "a/b", users).stdout)
    assert command("invite", "a/b", "-", "--revoke", "--yes", input="user\nalice\n").stderr.endswith(
        "of 1 user so far\n"
    )

    def good() -> list[str]:
        with Accountant(command.ledger) as accountant:
            tokens = {user: link.partition("#")[2].partition("~")[0] for user, link in first.items()}
            return [user for user, token in tokens.items() if Invitations(accountant).find(token)]

    assert good() == ["김철수"]
    assert "there is no terminal to confirm it. Add --yes" in command.error("invite", "a/b", "--revoke", code=2)
    assert good() == ["김철수"], "the links of all users were ended by a command that did not ask"
    command("invite", "a/b", "--revoke", "--yes")
    assert good() == []
