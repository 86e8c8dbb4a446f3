"""Entries for the public registry of differential-privacy deployments.

`RECORD` holds the facts of the registry's schema: the names of a record, the types, and the values of fields that have
a list of values. Every other field is a text. The registry's own checks also want texts that are plain, quoted or `|`.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
from command_line import CommandLine
from ldp_budget import Accountant, Collection
from ldp_budget.errors import PublicationError
from ldp_budget_surveys.publication.registry_entry import Facts, registry_entry, to_fill_in, to_yaml

yaml = pytest.importorskip("yaml")

TEXT, TEXTS, NUMBER = str, list, (int, float)
RECORD: dict[str, Any] = {
    "url_slug": TEXT,
    "status": {"Converted", "Draft", "Pending", "Changes Required", "Approved"},
    "tier": {1, 2, 3},
    "deployment": {
        "basic": {
            "name": TEXT,
            "data_curators": TEXTS,
            "intended_use": TEXT,
            "data_product_type": {
                "Summary statistics",
                "Dataset",
                "Synthetic data",
                "Interactive API",
                "SQL queries",
            },
            "data_product_region": TEXT,
            "description": TEXT,
            "publication_date": TEXT,
        },
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER},
            "privacy_parameters_details": TEXT,
        },
        "deployment_model": {
            "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
            "model_name_details": TEXT,
            "actors": TEXT,
            "release_type": {"One release", "Many releases"},
            "release_type_details": TEXT,
            "data_source_type": {"Static", "Dynamic"},
            "data_source_type_details": TEXT,
            "access_type": {"Interactive", "Non-interactive"},
            "access_type_details": TEXT,
        },
        "accounting": {"post_processing": TEXT, "composition": TEXT},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT,
            "mechanisms": TEXT,
            "justification": TEXT,
        },
        "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors": TEXTS},
    },
}


def check(value: Any, expected: Any, path: str = "") -> None:
    """Fail unless a record is one of the third tier: every field is there, with a value of its kind, and no other."""
    if isinstance(expected, dict):
        assert list(value) == list(expected), path
        for name, each in expected.items():
            check(value[name], each, f"{path}.{name}")
    elif isinstance(expected, set):
        assert value in expected, path
    else:
        assert isinstance(value, expected), path
        assert value != [], path
        assert value != "", path


@pytest.fixture
def ledger(accountant: Accountant) -> Accountant:
    accountant.set_policy("default", ["lifetime=4,1e-6,zcdp", "day=1"])
    oue = ldp_budget.mechanism("oue")(epsilon=1, domain_size=3)
    accountant.add_collection(Collection("mood", oue, ["good", 'so "so"', "bad"]))
    accountant.spend("ann", accountant.collection("mood"))
    return accountant


def entry_of(ledger: Accountant, name: str = "mood", **options: Any) -> dict[str, Any]:
    return registry_entry(ledger, ledger.collection(name), **options)


def test_entry_read_back_from_yaml_is_valid(ledger: Accountant) -> None:
    made = entry_of(ledger)
    read = yaml.safe_load(to_yaml(made))
    check(read, RECORD)
    assert read == {**made, "deployment": {**made["deployment"], "privacy_loss": read["deployment"]["privacy_loss"]}}
    basic = read["deployment"]["basic"]
    assert datetime.date.fromisoformat(basic["publication_date"])
    slug = [re.sub(r"\W+", "_", part.lower()) for part in (basic["name"], "-".join(basic["data_curators"]))]
    assert read["url_slug"] == "_".join([*slug, basic["publication_date"][:4]]).replace("_", "-")


def test_scalars_are_quoted_or_plain_and_never_folded(ledger: Accountant) -> None:
    styles = {token.style for token in yaml.scan(to_yaml(entry_of(ledger))) if isinstance(token, yaml.ScalarToken)}
    assert styles == {None, '"'}


def test_lifetime_limit_is_the_loss_of_a_person(ledger: Accountant) -> None:
    loss = entry_of(ledger)["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "person"
    assert loss["privacy_parameters"] == {"epsilon": Decimal(4), "delta": Decimal("1e-6")}
    assert entry_of(ledger)["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"


def test_composition_states_every_limit_and_its_rule(ledger: Accountant) -> None:
    said = entry_of(ledger)["deployment"]["accounting"]["composition"]
    assert "Limit per lifetime: ε = 4, δ = 0.000001, by zero-concentrated DP" in said
    assert "Limit per day: ε = 1, by sequential composition" in said


def test_policy_without_a_lifetime_limit_has_a_smaller_unit(ledger: Accountant) -> None:
    ledger.set_policy("weekly", ["day=1", "week=3"], unbounded=True)
    ledger.add_collection(Collection("party", ldp_budget.mechanism("grr")(epsilon=1, domain_size=2), ["a", "b"]))
    found = entry_of(ledger, "party", policy="weekly")["deployment"]
    assert found["privacy_loss"]["privacy_unit"] == "person-week"
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": Decimal(3), "delta": Decimal(0)}
    assert found["dp_variant"]["variant_name"] == "Pure DP"
    assert "No lifetime limit" in found["deployment_model"]["release_type_details"]


def test_limit_that_was_lowered_below_what_was_spent_is_not_understated(ledger: Accountant) -> None:
    ledger.set_policy("default", ["lifetime=0.5,1e-6,zcdp"])
    assert entry_of(ledger)["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] >= 1


def test_collection_charged_under_two_policies_is_refused(ledger: Accountant) -> None:
    ledger.set_policy("other", ["lifetime=9"])
    ledger.spend("bob", ledger.collection("mood"), policy="other")
    with pytest.raises(PublicationError, match="charged under other"):
        entry_of(ledger)


def test_what_only_people_know_is_listed(ledger: Accountant) -> None:
    left = list(to_fill_in(entry_of(ledger)))
    assert "deployment.basic.data_product_region" in left
    known = Facts(curators=("City of Bern",), region="Bern", authors=("The statistics office",))
    fewer = list(to_fill_in(entry_of(ledger, facts=known)))
    assert {*left} - {*fewer} == {
        "deployment.basic.data_curators",
        "deployment.basic.data_product_region",
        "deployment.administrative.registry_authors",
    }


def test_survey_brings_its_own_texts(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        '[survey]\nname = "health"\ntitle = "Health of the staff"\norganisation = "Institute"\npurpose = "A report"\n'
        'epsilon = 2\n[[question]]\nname = "smoke"\ntext = "Do you smoke?"\nkind = "yes-no"\n',
        encoding="utf-8",
    )
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("survey", "add", tmp_path / "s.toml")
    result = command("publish", "registry", "health", "--author", "A. Writer")
    read = yaml.safe_load(result.stdout)
    check(read, RECORD)
    basic = read["deployment"]["basic"]
    assert (basic["name"], basic["data_curators"]) == ("Health of the staff", ["Institute"])
    assert basic["intended_use"] == "A report"
    assert "smoke" in read["deployment"]["dp_variant"]["data_domain"]
    assert "To fill in: deployment.basic.data_product_region" in result.stderr
    assert command.json("publish", "registry", "health")["tier"] == 3


def test_entry_of_repeated_draws_states_that_changes_of_an_answer_are_not_protected(ledger: Accountant) -> None:
    flip = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=3, bits=3, memoize=True)
    ledger.add_collection(Collection("database", flip, ["sqlite", "postgresql", "mysql"]))
    units = {
        name: registry_entry(ledger, ledger.collection(name))["deployment"]["privacy_loss"]["privacy_unit_details"]
        for name in ("mood", "database")
    }
    assert "any answers in place of any others" in units["mood"]
    assert "equal in the same places" in units["database"]
    assert "show when it changed" in units["database"]
