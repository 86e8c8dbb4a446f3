"""Publications of a ledger: what is refused, kept, forgotten and continued, and what cannot be linked."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import mpmath
import numpy as np
import pytest

from ldp_budget import Accountant, mechanism
from ldp_budget._files import canonical_json
from ldp_budget.errors import InvalidParameter, PublicationError, ReportFileError
from ldp_budget.reports.charged_release import release
from ldp_budget.reports.inbox import Inbox, Marks
from ldp_budget.reports.public_attributes import PublicAttributes
from ldp_budget_surveys.publication.estimate import estimate_of
from ldp_budget_surveys.publication.merkle import leaf_hash, path_of, root_of
from ldp_budget_surveys.publication.publisher import Publisher, charge_of
from ldp_budget_verify.shipped_checkers import checker
from published_survey import PublishedSurvey, a_collection

CHECKER = checker("check_books")


@pytest.fixture
def survey(tmp_path: Path) -> PublishedSurvey:
    return PublishedSurvey(tmp_path, asked=30, users=40)


def _check(survey: PublishedSurvey, site: Path, user: str, proof: Path) -> list[str]:
    lines: list[str] = CHECKER.check(site, [survey.key.verifier_key], [survey.receipt(user)], proof)
    return lines


@pytest.mark.slow
def test_publish_states_counts_maximum_and_estimate(survey: PublishedSurvey) -> None:
    statement = survey.published.statement
    assert (statement["accounts"], statement["charges"], statement["reports"]) == (40, 30, 30)
    assert (statement["limit"], statement["maximum"]) == (4_000_000_000, 1_500_000_000)
    estimate = survey.collection.mechanism.estimate(_reports(survey))
    assert np.allclose(np.array(statement["estimate"]["counts"]) / 1000, estimate.counts, atol=1e-3)


def _reports(survey: PublishedSurvey) -> np.ndarray:
    box = Inbox(survey.accountant, survey.collection)
    return np.concatenate([block for name in box.rounds() for block in box.round(name)])


@pytest.mark.slow
def test_every_respondent_can_check_her_part(survey: PublishedSurvey) -> None:
    for user in survey.names:
        assert "charges   30, as many as reports: yours is one of them, ε = 1" in _check(
            survey, survey.site, user, survey.write_proof(user)
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "answers", "epsilon"),
    [("oue", 3, "1"), ("sue", 9, "0.5"), ("grr", 4, "1"), ("grr", 300, "3"), ("randomized-response", 2, "1")],
)
def test_estimate_of_checker_equals_that_of_the_mechanism(
    tmp_path: Path, kind: str, answers: int, epsilon: str
) -> None:
    survey = PublishedSurvey(tmp_path, asked=40, users=40, collection=a_collection("q", kind, answers, epsilon))
    definition, width = survey.collection.definition(), survey.published.statement["width"]
    data = (survey.site / "reports.bin").read_bytes()
    found = CHECKER.estimate_of(definition, data, width)
    counts = survey.collection.mechanism.estimate(_reports(survey)).counts
    assert found == survey.published.statement["estimate"]
    assert np.allclose(np.array(found["counts"]) / 1000, counts, atol=1e-3)


@pytest.mark.slow
def test_estimate_of_a_program_that_the_checker_does_not_know_is_none(tmp_path: Path) -> None:
    survey = PublishedSurvey(tmp_path, asked=10, users=10, collection=a_collection("q", "pgr", 4))
    assert survey.published.statement["estimate"] is None
    lines = _check(survey, survey.site, "user1", survey.write_proof("user1"))
    assert lines[-1] == "estimate  none of this program is published"


@pytest.mark.slow
def test_memoised_reports_are_published_as_a_number(tmp_path: Path) -> None:
    from ldp_budget.registry.collections import Collection

    made = mechanism("loloha").calibrate(epsilon_lifetime="2", epsilon_first="1", domain_size=4)
    collection = Collection("rounds", made, ("a", "b", "c", "d"), minimum_group=1).agreed()
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.add_collection(collection)
        users = [f"user{place}" for place in range(5)]
        values, secrets = np.arange(5) % 4, [bytes([place]) * 32 for place in range(5)]
        out, receipts = tmp_path / "reports", tmp_path / "receipts"
        release(out, collection, accountant, values, users, policy="default", secrets=secrets, receipts=receipts)
        publisher = Publisher(accountant)
        key = publisher.new_key("log")
        statement = publisher.publish(collection, tmp_path / "site").statement
        proof = publisher.prove("rounds", json.loads((receipts / "user2.json").read_bytes()))
    assert (statement["reports"], statement["reports_root"], statement["estimate"]) == (5, None, None)
    assert (tmp_path / "site" / "reports.bin").read_bytes() == b""
    (tmp_path / "proof").write_text(canonical_json(proof))
    assert CHECKER.check(tmp_path / "site", [key.verifier_key], [receipts / "user2.json"], tmp_path / "proof")


@pytest.mark.slow
def test_private_files_are_readable_by_their_owner_only(survey: PublishedSurvey) -> None:
    folder = survey.publisher._folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"log.key", "entries", "0001.json", "0001.tree"} == set(modes)
    assert stat.S_IMODE(survey.receipt("user1").stat().st_mode) == 0o600


@pytest.mark.slow
def test_charge_without_report_is_refused(survey: PublishedSurvey) -> None:
    survey.accountant.spend("user35", survey.collection)
    with pytest.raises(PublicationError, match="31 charged reports, and the ledger stores 30"):
        survey.publisher.publish(survey.collection, survey.site)
    assert (survey.site / "checkpoint").read_text().split("\n")[1] == "1"


@pytest.mark.slow
def test_policy_without_lifetime_limit_is_refused(survey: PublishedSurvey) -> None:
    survey.accountant.set_policy("daily", ["day=1"], unbounded=True)
    with pytest.raises(PublicationError, match="no lifetime limit"):
        survey.publisher.publish(survey.collection, survey.site, policy="daily")


@pytest.mark.slow
def test_total_above_the_limit_is_refused(survey: PublishedSurvey) -> None:
    survey.accountant.set_policy("narrow", ["lifetime=1"])
    with pytest.raises(PublicationError, match="above the limit"):
        survey.publisher.publish(survey.collection, survey.site, policy="narrow")


@pytest.mark.slow
def test_second_publication_continues_the_log_in_any_folder(survey: PublishedSurvey, tmp_path: Path) -> None:
    seen, other = survey.site / "checkpoint", tmp_path / "other"
    assert survey.publisher.publish(survey.collection, other).number == 2
    proof = survey.write_proof("user1")
    key = [survey.key.verifier_key]
    assert CHECKER.check(other, key, [survey.receipt("user1")], proof, seen)


@pytest.mark.slow
def test_folder_with_another_log_is_refused(survey: PublishedSurvey, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    second = PublishedSurvey(tmp_path / "second", asked=5, users=5)
    with pytest.raises(PublicationError, match="not of this log"):
        survey.publisher.publish(survey.collection, second.site)


@pytest.mark.slow
def test_restored_private_folder_does_not_fork_the_log(survey: PublishedSurvey) -> None:
    entries = survey.publisher._folder / "entries"
    old = entries.read_bytes()
    survey.publisher.publish(survey.collection, survey.site)
    entries.write_bytes(old)
    with pytest.raises(PublicationError, match="not of this log"):
        survey.publisher.publish(survey.collection, survey.site)


@pytest.mark.slow
def test_erased_user_keeps_her_proof_and_gets_no_new_one(survey: PublishedSurvey) -> None:
    receipt, proof = json.loads(survey.receipt("user3").read_bytes()), survey.write_proof("user3")
    survey.accountant.erase("user3")
    assert _check(survey, survey.site, "user3", proof)
    with pytest.raises(PublicationError, match="no charge of commute belongs to this receipt"):
        survey.publisher.prove("commute", receipt)
    again = survey.publisher.publish(survey.collection, survey.site).statement
    assert (again["accounts"], again["charges"], again["reports"]) == (40, 30, 30)


@pytest.mark.slow
def test_maximum_after_a_void_is_that_of_the_earlier_statement(survey: PublishedSurvey) -> None:
    """A checker refuses a maximum below one that was published."""
    two = mechanism("oue").calibrate(epsilon="2", domain_size=4)
    held = survey.accountant.reserve("user0", two).receipt or ""
    first = survey.publisher.publish(survey.collection, survey.site).statement
    survey.accountant.void(held)
    again = survey.publisher.publish(survey.collection, survey.site).statement
    assert (first["maximum"], again["maximum"]) == (3_500_000_000, 3_500_000_000)


@pytest.mark.slow
def test_forget_destroys_secrets_and_leaves_roots(survey: PublishedSurvey) -> None:
    proof = survey.write_proof("user3")
    assert survey.publisher.forget(datetime.now(UTC) - timedelta(days=1)) == 0
    assert survey.publisher.has_proofs(survey.collection.name)
    assert survey.publisher.forget(datetime.now(UTC) + timedelta(days=1)) == 1
    assert not survey.publisher.has_proofs(survey.collection.name)
    assert {path.name for path in survey.publisher._folder.iterdir()} == {"log.key", "entries"}
    assert _check(survey, survey.site, "user3", proof)
    with pytest.raises(PublicationError, match="was destroyed"):
        survey.proof("user3")


@pytest.mark.slow
def test_proof_reads_the_tree_of_its_file(survey: PublishedSurvey, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two published surveys took turns in a cache of one tree, so each proof hashed all accounts again."""
    before = survey.proof("user3")
    with monkeypatch.context() as patched:
        patched.setattr("ldp_budget_surveys.publication.merkle.levels_of", lambda leaves: pytest.fail("hashed again"))
        assert survey.proof("user3") == before


@pytest.mark.slow
def test_proof_after_a_later_charge_states_the_published_total(survey: PublishedSurvey) -> None:
    before = survey.proof("user3")
    survey.accountant.spend("user3", mechanism("oue").calibrate(epsilon="0.25", domain_size=4))
    assert survey.proof("user3") == before


@pytest.mark.slow
def test_proof_of_a_respondent_who_joined_later_is_refused(survey: PublishedSurvey, tmp_path: Path) -> None:
    out, receipts = tmp_path / "more", tmp_path / "later"
    late = np.array([1]), ["late"]
    release(out, survey.collection, survey.accountant, *late, policy="default", receipts=receipts)
    with pytest.raises(PublicationError, match="made before the charge"):
        survey.publisher.prove("commute", json.loads((receipts / "late.json").read_bytes()))


@pytest.mark.slow
def test_unmarked_reports_of_an_inbox_are_published(tmp_path: Path) -> None:
    collection = a_collection()
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        box = Inbox(accountant, collection)
        for place in range(12):
            box.take(f"user{place}", "key", b"\1")
        box.seal("round")
        publisher = Publisher(accountant)
        key = publisher.new_key("log")
        statement = publisher.publish(collection, tmp_path / "site").statement
        assert next(iter(box.round("round"))).shape == (12, 1)
    assert (statement["charges"], statement["reports"]) == (12, 12)
    assert CHECKER.check(tmp_path / "site", [key.verifier_key])


# -- receipts ------------------------------------------------------------------------------------------------


def test_interrupted_release_draws_no_report_twice(tmp_path: Path) -> None:
    collection, users, values = a_collection(), [f"user{place}" for place in range(8)], np.arange(8) % 4
    out, folder = tmp_path / "reports", tmp_path / "receipts"
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.add_collection(collection)

        def stop(batch: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            release(out, collection, accountant, values, users, policy="default", on_batch=stop, receipts=folder)
        first = {path.name: path.read_bytes() for path in folder.glob("*.json")}
        done = release(out, collection, accountant, values, users, policy="default", receipts=folder)
        box = Inbox(accountant, collection)
        assert (done.reports, done.refused, len(box)) == (8, 0, 8)
        assert {path.name: path.read_bytes() for path in folder.glob("*.json")} == first
        assert sorted(path.name for path in folder.iterdir()) == sorted(first)
        with pytest.raises(ReportFileError, match="already exists"):
            release(out, collection, accountant, values, users, policy="default", receipts=folder)


def test_release_into_a_folder_that_cannot_be_created_charges_no_one(tmp_path: Path) -> None:
    collection, taken = a_collection(), tmp_path / "taken"
    taken.write_text("a file", encoding="utf-8")
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.add_collection(collection)
        with pytest.raises(ReportFileError, match="the folder cannot be created: File exists"):
            release(tmp_path / "out", collection, accountant, np.arange(1), ["ada"], policy="default", receipts=taken)
        assert accountant.stats()["users"] == 0
    assert not list(tmp_path.glob("out*"))


def test_release_interrupted_at_its_very_end_is_finished_by_a_repetition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ldp_budget.reports import charged_release

    collection, arguments = a_collection(), (np.arange(3), ["ada", "bob", "eve"])
    out, folder = tmp_path / "reports", tmp_path / "receipts"
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.add_collection(collection)

        def stop(run: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(charged_release._Store, "remove", stop)
            with pytest.raises(KeyboardInterrupt):
                release(out, collection, accountant, *arguments, policy="default", receipts=folder)
        first = out.read_bytes()
        done = release(out, collection, accountant, *arguments, policy="default", receipts=folder)
        assert (done.reports, len(Inbox(accountant, collection))) == (3, 3)
    assert len(out.read_bytes()) == len(first)
    assert sorted(path.name for path in folder.iterdir()) == ["ada.json", "bob.json", "eve.json"]


def test_interrupted_release_with_receipts_is_not_finished_without_them(tmp_path: Path) -> None:
    """Its reports would not be in the ledger, and its charges would have other keys."""
    collection, arguments = a_collection(), (np.arange(3), ["ada", "bob", "eve"])
    out, folder = tmp_path / "reports", tmp_path / "receipts"

    def stop(batch: int) -> None:
        raise KeyboardInterrupt

    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.add_collection(collection)
        for began, resumed in (({"receipts": folder}, {}), ({}, {"receipts": folder})):
            with pytest.raises(KeyboardInterrupt):
                release(out, collection, accountant, *arguments, policy="default", on_batch=stop, **began)
            head = accountant.position()
            with pytest.raises(ReportFileError, match="interrupted run with another"):
                release(out, collection, accountant, *arguments, policy="default", **resumed)
            assert accountant.position() == head
            Path(f"{out}.partial").unlink()


@pytest.mark.parametrize("fault", ["a receipt", "a receipt and an empty run", "a repeated user", "public attributes"])
def test_release_with_receipts_that_cannot_be_written_charges_nobody(tmp_path: Path, fault: str) -> None:
    collection, folder = a_collection(), tmp_path / "receipts"
    folder.mkdir()
    users = ["ada", "ada" if fault == "a repeated user" else "bob"]
    public = PublicAttributes.of(["region"], [["north"], ["south"]]) if fault == "public attributes" else None
    if fault not in ("a repeated user", "public attributes"):
        (folder / "bob.json").write_text("{}")
    if fault == "a receipt and an empty run":  # interrupted before its first line
        (tmp_path / "out.partial").touch()
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.add_collection(collection)
        head = accountant.position()
        with pytest.raises((InvalidParameter, ReportFileError)):
            release(
                tmp_path / "out",
                collection,
                accountant,
                np.arange(2),
                users,
                policy="default",
                receipts=folder,
                public=public,
            )
        assert accountant.position() == head
    assert not (tmp_path / "out.partial").exists()


def test_refused_user_gets_no_receipt(tmp_path: Path) -> None:
    collection, refused = a_collection(), []
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.spend("poor", mechanism("oue").calibrate(epsilon="3.5", domain_size=4))
        accountant.add_collection(collection)
        done = release(
            tmp_path / "reports",
            collection,
            accountant,
            np.array([0, 1]),
            ["rich", "poor"],
            policy="default",
            on_refused=refused.extend,
            receipts=tmp_path / "receipts",
        )
    assert (done.reports, done.refused, refused) == (1, 1, ["poor"])
    assert [path.name for path in (tmp_path / "receipts").iterdir()] == ["rich.json"]


# -- trees, estimates and links ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 64, 4097])
def test_path_of_every_leaf_leads_to_the_root(size: int) -> None:
    leaves = [place.to_bytes(4, "big") for place in range(size)]
    hashes = [leaf_hash(leaf) for leaf in leaves]
    root = root_of(hashes)
    assert root == CHECKER.tree_root(hashes)
    for index in {0, size // 2, size - 1}:
        assert CHECKER.root_from_path(leaves[index], index, size, path_of(hashes, index)) == root


def test_estimate_with_two_byte_answers_counts_each(tmp_path: Path) -> None:
    definition = a_collection("q", "grr", 300, "5").definition()
    records = np.zeros((3, 18), np.uint8)
    records[:, 16:] = [[44, 1], [43, 1], [0, 0]]  # little-endian 300, 299, 0; answer 300 does not exist
    with pytest.raises(CHECKER.Refused, match="does not exist"):
        CHECKER.estimate_of(definition, records.tobytes(), 2)
    records[0, 16] = 43
    found = estimate_of(definition, records)
    assert found is not None
    assert found == CHECKER.estimate_of(definition, records.tobytes(), 2)
    assert (found["first"], found["second"], found["fakes"]) == (299, 0, 1)


@pytest.mark.slow
def test_published_files_do_not_lead_from_a_name_to_a_leaf_or_report(tmp_path: Path) -> None:
    """Each guess hits as often as by chance: one of all, whatever their number."""
    survey = PublishedSurvey(tmp_path, asked=200, users=200)
    books, secret = survey.accountant.books, _secret(survey)
    charges = _list(survey.site / "charges.bin", 32)
    marks = [each[:16] for each in _list(survey.site / "reports.bin", 17)]
    leaves = _list(survey.publisher._folder / "0001.tree", 32)[:200]
    places = []
    for user in survey.names:
        mine = Marks.of(bytes.fromhex(json.loads(survey.receipt(user).read_bytes())["secret"]))
        charged = books.find(mine.charge)
        assert charged is not None
        account = json.loads(survey.proof(user))["account"]["index"]
        places.append((charges.index(charge_of(secret, charged, "epsilon")), marks.index(mine.report), account))
    charge, report, account = (list(column) for column in zip(*places, strict=True))
    order = list(range(200))
    guesses = [(order, charge), (order, report), (order, account), (charge, report), (account, charge)]
    for guess, truth in guesses:  # 10 hits of an expected 1 happen once in ten million runs
        assert sum(a == b for a, b in zip(guess, truth, strict=True)) < 10
        assert abs(np.corrcoef(guess, truth)[0, 1]) < 0.4
    public = b"".join(path.read_bytes() for path in survey.site.rglob("*") if path.is_file())
    for user in survey.names:
        for kind in (b"report", b"charge", b""):
            guess = sha256(b"ldp-budget " + kind + user.encode()).digest()[:16]
            assert guess not in public
        assert user.encode() not in public
    assert len(set(leaves)) == 200


@pytest.mark.slow
def test_leaves_of_two_publications_cannot_be_linked(survey: PublishedSurvey) -> None:
    folder = survey.publisher._folder
    before = set(_list(survey.site / "charges.bin", 32)) | set(_list(folder / "0001.tree", 32))
    survey.publisher.publish(survey.collection, survey.site)
    after = set(_list(survey.site / "charges.bin", 32)) | set(_list(folder / "0002.tree", 32))
    assert not before & after


def _secret(survey: PublishedSurvey) -> bytes:
    return bytes.fromhex(json.loads((survey.publisher._folder / "0001.json").read_bytes())["secret"])


def _list(path: Path, size: int) -> list[bytes]:
    data = path.read_bytes()
    return [data[place : place + size] for place in range(0, len(data), size)]


# -- several publications of one survey --------------------------------------------------------------------------------


def _more(survey: PublishedSurvey, folder: Path, users: list[str]) -> None:
    """Charge more users, with receipts in `folder`."""
    folder.mkdir()
    values = np.arange(len(users)) % 4
    made = (folder / "reports", survey.collection, survey.accountant, values, users)
    release(*made, policy="default", receipts=folder / "receipts")


@pytest.mark.slow
def test_growing_survey_is_accepted_after_each_publication(survey: PublishedSurvey, tmp_path: Path) -> None:
    key = [survey.key.verifier_key]
    for turn in range(3):
        _more(survey, tmp_path / f"more{turn}", [f"new{turn}-{place}" for place in range(1 + 7 * turn)])
        survey.publisher.publish(survey.collection, survey.site)
        lines = CHECKER.check(survey.site, key, [survey.receipt("user1")], survey.write_proof("user1"))
        assert f"history   {turn + 2} of {turn + 2} statements in the log are of this survey, and agree" in lines


@pytest.mark.slow
def test_growing_survey_of_copied_marks_is_accepted(tmp_path: Path) -> None:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        collection = a_collection()
        accountant.add_collection(collection)
        box, publisher = Inbox(accountant, collection), Publisher(accountant)
        key = publisher.new_key("log").verifier_key
        for turn in range(3):
            for place in range(3):
                copied = Marks(b"same mark of all", bytes([turn, place]) * 8)
                box.take(f"user{turn}{place}", "key", b"\1", marks=copied)
            publisher.publish(collection, tmp_path / "site")
            assert CHECKER.check(tmp_path / "site", [key])


@pytest.mark.slow
def test_publish_with_another_limit_than_before_is_refused(survey: PublishedSurvey) -> None:
    before = (survey.site / "checkpoint").read_bytes()
    survey.accountant.set_policy("default", ["lifetime=5"])
    with pytest.raises(PublicationError, match="was published with the limit 4000000000, and now has 5000000000"):
        survey.publisher.publish(survey.collection, survey.site)
    assert (survey.site / "checkpoint").read_bytes() == before
    survey.accountant.set_policy("as promised", ["lifetime=4"])
    assert survey.publisher.publish(survey.collection, survey.site, policy="as promised").number == 2


@pytest.mark.slow
def test_publish_after_the_clock_went_back_is_refused(
    survey: PublishedSurvey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(survey.accountant.books), "now", lambda books: 1_700_000_000)
    with pytest.raises(PublicationError, match="before the last publication"):
        survey.publisher.publish(survey.collection, survey.site)


@pytest.mark.slow
def test_receipt_from_before_a_key_rotation_is_accepted(survey: PublishedSurvey, tmp_path: Path) -> None:
    survey.accountant.ledger.rotate_key()
    survey.accountant.close()
    with Accountant(survey.folder / "budget.db") as accountant:
        survey.accountant, survey.publisher = accountant, Publisher(accountant)
        _more(survey, tmp_path / "more", ["late"])
        statement = survey.publisher.publish(survey.collection, survey.site).statement
        assert len(statement["receipt_keys"]) == 2
        assert _check(survey, survey.site, "user1", survey.write_proof("user1"))
        late = tmp_path / "more" / "receipts" / "late.json"
        proof = tmp_path / "late.proof"
        proof.write_text(canonical_json(survey.publisher.prove("commute", json.loads(late.read_bytes()))))
        assert CHECKER.check(survey.site, [survey.key.verifier_key], [late], proof)


@pytest.mark.slow
def test_receipt_promises_the_limit_of_its_policy(survey: PublishedSurvey) -> None:
    promise = json.loads(survey.receipt("user1").read_bytes())["promise"]
    assert (promise["measure"], promise["limit"]) == ("epsilon", 4_000_000_000)
    assert promise["key"] in survey.published.statement["receipt_keys"]


@pytest.mark.slow
def test_release_under_a_policy_that_cannot_be_promised_charges_nobody(tmp_path: Path) -> None:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["day=1"], unbounded=True)
        collection = a_collection()
        accountant.add_collection(collection)
        users = (accountant, np.array([1]), ["ada"])
        with pytest.raises(PublicationError, match="no lifetime limit"):
            release(tmp_path / "out", collection, *users, policy="default", receipts=tmp_path / "receipts")
        assert accountant.history("ada") == []


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "measure"), [("zcdp", "ρ (zCDP)"), ("gdp", "μ² (Gaussian DP)")])
def test_survey_under_another_measure_is_proved(tmp_path: Path, rule: str, measure: str) -> None:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", [f"lifetime=4,1e-6,{rule}"])
        collection = a_collection()
        accountant.add_collection(collection)
        users = (accountant, np.arange(6) % 4, [f"user{place}" for place in range(6)])
        release(tmp_path / "out", collection, *users, policy="default", receipts=tmp_path / "receipts")
        publisher = Publisher(accountant)
        key, receipt = publisher.new_key("log").verifier_key, tmp_path / "receipts" / "user1.json"
        publisher.publish(collection, tmp_path / "site")
        (tmp_path / "proof").write_text(canonical_json(publisher.prove("commute", json.loads(receipt.read_bytes()))))
        found = CHECKER.examine(tmp_path / "site", [key], [receipt], tmp_path / "proof")
        assert found.unchecked == []
        assert any(line.startswith(f"limit     {measure} = ") for line in found.lines)


# -- the losses of programs --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "2", "4", "6.3", "10", "20"])
@pytest.mark.parametrize(
    ("kind", "answers"), [("oue", 3), ("sue", 5), ("grr", 2), ("grr", 300), ("randomized-response", 2)]
)
def test_least_costs_of_a_checker_are_at_most_the_charged_ones(kind: str, answers: int, epsilon: str) -> None:
    collection = a_collection("q", kind, answers, epsilon)
    least, kept = CHECKER.check_program(collection.definition())
    charged = collection.mechanism.guarantee.costs()._asdict()
    assert kept is not None
    assert least["epsilon"] == charged["epsilon"]
    assert 0 < least["rho"] <= charged["rho"]
    assert 0 < least["mu_squared"] <= charged["mu_squared"] <= least["mu_squared"] * 1.000001 + 2


@pytest.mark.parametrize(("kind", "answers"), [("oue", 9), ("sue", 3), ("grr", 4), ("randomized-response", 2)])
def test_estimate_with_a_probability_below_2_to_the_minus_11_equals_that_of_the_checker(
    kind: str, answers: int
) -> None:
    """Such a threshold is a number in the program, and not a text."""
    definition = a_collection("q", kind, answers, "16").definition()
    width = CHECKER.law_of(definition).width
    records = np.random.default_rng(1).integers(0, 2, (50, 16 + width), np.uint8)
    assert CHECKER.estimate_of(definition, records.tobytes(), width) == estimate_of(definition, records)


@pytest.mark.slow
@pytest.mark.parametrize(("p", "q"), [("0.5", "0.2689"), ("0.9", "0.1"), ("0.999", "0.0001"), ("0.51", "0.49")])
def test_losses_of_two_coins_equal_those_of_high_precision(p: str, q: str) -> None:
    law = CHECKER.Law("yes", 2, 1, Fraction(p), Fraction(q))
    found, _ = CHECKER.least_losses(law)
    with mpmath.workdps(60):
        pairs = [(mpmath.mpf(a), mpmath.mpf(b)) for a, b in ((p, q), (q, p))]
        both = [[(a, b), (1 - a, 1 - b)] for a, b in pairs]
        epsilon = max(mpmath.log(a / b) for pair in both for a, b in pair)
        divergences = [mpmath.fsum(a * mpmath.log(a / b) for a, b in pair) for pair in both]
        for order in [1 + mpmath.mpf(k) / 4 for k in range(1, 65)]:
            sums = [mpmath.fsum(a**order * b ** (1 - order) for a, b in pair) for pair in both]
            divergences += [mpmath.log(each) / (order * (order - 1)) for each in sums]
        quantile = [mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(x) - 1) for x in (p, q)]
        exact = [epsilon * 10**9, max(divergences) * 10**12, (quantile[0] - quantile[1]) ** 2 * 10**12]
        assert list(found.values()) == [int(mpmath.ceil(each)) for each in exact]
