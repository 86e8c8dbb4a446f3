"""Random changes of published files and of proofs: the checker accepts none."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from ldp_budget_verify.shipped_checkers import checker
from published_survey import PublishedSurvey, Witness, tampered

CHECKER = checker("check_books")


def _files(site: Path) -> list[str]:
    return sorted(str(path.relative_to(site)) for path in site.rglob("*") if path.is_file())


def _accepts(*arguments: Any) -> bool:
    try:
        CHECKER.check(*arguments)
    except Exception:
        return False
    return True


def _tamper(tmp_path: Path, times: int, seed: int) -> list[str]:
    """Return the files whose changes were accepted."""
    survey, witness = PublishedSurvey(tmp_path, asked=30, users=40), Witness()
    witness.cosign(survey.site)
    keys = [survey.key.verifier_key, witness.verifier_key]
    people = [(str(survey.receipt(user)), str(survey.write_proof(user))) for user in survey.names[:5]]
    chance, accepted, site = random.Random(seed), [], tmp_path / "changed"
    shutil.copytree(survey.site, site)
    assert all(_accepts(site, keys, [receipt], proof) for receipt, proof in people)
    done = 0
    while done < times:
        receipt, proof = chance.choice(people)
        name = chance.choice([*_files(survey.site), "proof"])
        path = Path(proof) if name == "proof" else site / name
        data = path.read_bytes()
        changed = tampered(data, chance)
        if changed == data:
            continue
        done += 1
        path.write_bytes(changed)
        if _accepts(site, keys, [receipt], proof):
            accepted.append(name)
        path.write_bytes(data)
    return accepted


@pytest.mark.slow
def test_checker_with_200_random_changes_accepts_none(tmp_path: Path) -> None:
    assert _tamper(tmp_path, 200, seed=1) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 12))
def test_checker_with_1000_more_random_changes_accepts_none(tmp_path: Path, seed: int) -> None:
    assert _tamper(tmp_path, 1000, seed) == []
