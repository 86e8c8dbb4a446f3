"""Public attributes from a running service to `estimate --by`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from ldp_budget import Accountant
from ldp_budget_service.api_keys import ApiKeys
from service_farm import Caller, Farm

PATH = "/v1/collections/mood/reports"


def test_attributes_sent_over_http_are_groups_and_weights_of_the_estimate(
    farm: Farm, command: Any, tmp_path: Path
) -> None:
    command("policy", "set", "default", "--limit", "lifetime=8")
    command("collection", "add", "mood", "grr", "--epsilon", 8, "--categories", "good,bad")
    with Accountant(command.ledger) as accountant:
        secret = ApiKeys(accountant).create("app", ["admin"])[1]
        digest = accountant.collection("mood").definition()["digest"]
    server = farm.start(str(command.ledger))
    with Caller(server.port, secret) as caller:
        for number in range(90):
            region = ("north", "south", "south")[number % 3]
            body = {"report": "00" if region == "north" else "01", "public": {"region": region}}
            asked = {"X_User": f"u{number}", "Idempotency_Key": "1", "X_Collection": digest}
            assert caller.ask("POST", PATH, body, **asked).status == 200
        conflict = caller.ask("POST", PATH, {**body, "public": {"region": "north"}}, **asked)
        assert (conflict.status, conflict.json()["type"]) == (422, "/problems/key-conflict")
        sealed = caller.ask("POST", "/v1/collections/mood/rounds", {"round": "first"})
        assert sealed.json() == {"round": "first", "reports": 80}
        assert caller.ask("GET", "/v1/collections/mood/estimate").json()["reports"] == 80
    assert server.end() == 0

    out, weights = tmp_path / "mood.reports", tmp_path / "weights.csv"
    written = command("inbox", "seal", "mood", out, "--round", "first")
    assert "Public: region travels with each report, without noise. 2 combinations" in written.stderr
    weights.write_text("region,weight\nnorth,8\nsouth,1\n")
    estimated = command.json("estimate", "mood", out, "--by", "region", "--weights", weights)
    groups = {each["group"]: each for each in estimated["groups"]}
    sizes = {name: each["respondents"] for name, each in groups.items()}
    assert sizes == {"north": 27, "south": 53} == dict(Counter(("north", "south", "south")[i % 3] for i in range(80)))
    for region, answer in (("north", 0), ("south", 1)):
        assert groups[region]["answers"][answer]["share"] == pytest.approx(1, abs=0.01)
    assert estimated["answers"][0]["share"] == pytest.approx(8 * 27 / (8 * 27 + 53), abs=0.01)
