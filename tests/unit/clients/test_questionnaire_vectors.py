"""Vectors for clients of surveys: the file is what Python makes today, and a client written from the page agrees."""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from client_cases import Bytes
from ldp_budget.registry.public_definition import digest_of
from ldp_budget.sdk.client_program import Program
from ldp_budget.sdk.interpreter import StreamDraws, read, run

FOLDER = Path(__file__).parents[3] / "clients" / "vectors"
SURVEYS: list[dict[str, Any]] = json.loads((FOLDER / "questionnaires.json").read_text())


def maker() -> Any:
    spec = importlib.util.spec_from_file_location("make_questionnaires", FOLDER / "make_questionnaires.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_file_is_what_the_maker_makes() -> None:
    assert json.loads(json.dumps(maker().made())) == SURVEYS


@pytest.mark.parametrize("survey", SURVEYS, ids=lambda survey: survey["definition"]["name"])
def test_selections_follow_the_page(survey: dict[str, Any]) -> None:
    definition = survey["definition"]
    assert definition["digest"] == digest_of(definition)
    for row in survey["selections"]:
        user = unicodedata.normalize("NFC", row["user"]).strip()
        key = bytes.fromhex(definition["selection"]["key"])
        seed = hmac.new(key, b"ldp-budget questions 1\n" + user.encode(), hashlib.sha256).digest()
        ranks = [hmac.new(seed, bytes([i]), hashlib.sha256).hexdigest() for i in range(len(definition["questions"]))]
        smallest = sorted(sorted(range(len(ranks)), key=ranks.__getitem__)[: definition["ask"]])
        assert (seed.hex(), smallest) == (row["seed"], row["asked"])


@pytest.mark.parametrize("survey", SURVEYS, ids=lambda survey: survey["definition"]["name"])
def test_rows_follow_the_page(survey: dict[str, Any]) -> None:
    """The row is laid out here from the definition alone, with the reference interpreter for each program."""
    definition = survey["definition"]
    for vector in survey["reports"]:
        row, stream = bytearray(definition["report"]["bytes"]), Bytes(bytes.fromhex(vector["stream"]))
        for place in vector["asked"]:
            question = definition["questions"][place]
            row[place // 8] |= 1 << place % 8
            answer = vector["answers"][question["name"]]
            program = Program.from_json(question)
            names = question["answers"]
            if "items" in question:
                chosen = [names.index(answer[item["name"]]) for item in question["items"]]
                value = sum(each * len(names) ** row for row, each in enumerate(chosen))
            else:
                value = read(program, answer if names is None else names.index(answer))
            start, size = question["slot"]
            row[start : start + size] = run(program, value, StreamDraws(stream))
        assert (bytes(row).hex(), stream.left) == (vector["report"], b"")
