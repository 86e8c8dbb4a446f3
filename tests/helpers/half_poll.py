"""A ledger with a lifetime limit of 1, and a poll that costs half of it, made by commands."""

from __future__ import annotations

from command_line import CommandLine

OUE = ["oue", "--epsilon", "0.5", "--domain-size", "3"]
POLL = ["poll", "oue", "--epsilon", "0.5", "--categories", "yes,no,perhaps"]


def poll_of_a_half(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", *POLL)
