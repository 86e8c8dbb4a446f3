"""Texts and numbers have one form wherever they enter: in collections, surveys, candidates and public values."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp_budget
from case_files import case_table
from ldp_budget import Collection, InvalidParameter, OutsideDomain
from ldp_budget._number_parsing import is_number, number_in, value_of, whole_in
from ldp_budget._validation import canonical_text
from ldp_budget.guarantees.fixed_point import decimal
from ldp_budget.registry.collections import collection_of
from ldp_budget.reports.estimation import check_candidates
from ldp_budget.reports.public_attributes import canonical_value
from ldp_budget_surveys.questionnaires.surveys import Survey

GRR = ldp_budget.mechanism("grr")
CMS = ldp_budget.mechanism("cms")(epsilon=1, hashes=4, width=64)
NAMES = ("jürgen", "한국", "naïve")
AROUND = ("", " ", "\u00a0", "\u200b", "\ufeff", "\u00ad", "\t")

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(canonical_text)
spelled = st.builds(
    lambda name, form, before, after: before + unicodedata.normalize(form, name) + after,
    st.sampled_from(NAMES),
    st.sampled_from(["NFC", "NFD"]),
    st.sampled_from(AROUND),
    st.sampled_from(AROUND),
)


@given(st.lists(spelled, min_size=1, max_size=5))
def test_read_values_of_every_spelling_is_that_of_the_answer(texts: list[str]) -> None:
    made = Collection("c", GRR(epsilon=1, domain_size=3), tuple(unicodedata.normalize("NFD", each) for each in NAMES))
    expected = [NAMES.index(canonical_text(text)) for text in texts]
    assert made.read_values(texts).tolist() == expected


@given(words, st.sampled_from(AROUND), st.sampled_from(AROUND))
def test_unlisted_answer_has_one_number_in_every_form(word: str, before: str, after: str) -> None:
    made = Collection("c", CMS)
    texts = [before + unicodedata.normalize(form, word) + after for form in ("NFC", "NFD")]
    try:
        found = made.read_values([*texts, canonical_text(word)]).tolist()
    except OutsideDomain:
        return  # a whole number outside the domain
    assert len(set(found)) == 1


@given(words)
def test_public_value_and_user_have_the_same_form(word: str) -> None:
    try:
        value = canonical_value(f" {unicodedata.normalize('NFD', word)}\u200b")
    except InvalidParameter:
        return
    assert value == canonical_text(word)


def test_candidates_are_spelled_as_the_collection_spells_them() -> None:
    decomposed = tuple(unicodedata.normalize("NFD", each) for each in NAMES)
    listed = Collection("c", GRR(epsilon=1, domain_size=3), decomposed)
    assert check_candidates(listed, ["naïve ", "jürgen"]) == (decomposed[2], decomposed[0])
    assert check_candidates(Collection("c", CMS), [decomposed[0]]) == (NAMES[0],)
    assert check_candidates(Collection("c", GRR(epsilon=1, domain_size=3)), ["01"]) == ("1",)
    with pytest.raises(InvalidParameter, match="distinct answers"):
        check_candidates(Collection("c", CMS), [decomposed[0], NAMES[0]])


def test_estimate_of_candidates_in_another_form_counts_the_answers() -> None:
    made = Collection("c", ldp_budget.mechanism("hcms")(epsilon=8, hashes=64, width=512))
    reports = made.randomize(made.read_values(["jürgen", "naïve"] * 500))
    shares = made.estimate(reports, candidates=[unicodedata.normalize("NFD", "jürgen")]).counts / 1000
    assert shares[0] > 0.3


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("a\u0308", "ä"), r"U\+00E4 .* has U\+0061 .* U\+0308"),
        (("yes ", "yes"), "distinct"),
        (("\u200b", "yes"), "non-empty"),
        (("\udced\udc95\udc9c", "yes"), "LC_ALL=C.UTF-8"),
    ],
)
def test_categories_that_are_one_text_or_none_are_refused(names: tuple[str, str], why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        collection_of("c", GRR, {"epsilon": 1}, (*names, "b"))


def test_survey_file_has_its_texts_in_one_form(tmp_path: Path) -> None:
    place = tmp_path / "s.toml"
    text = '[survey]\nname = "s"\nepsilon = "1"\n[[question]]\nname = "café"\ncategories = ["naïve ", "b"]\n'
    place.write_text(unicodedata.normalize("NFD", text), encoding="utf-8")
    (question,) = Survey.from_toml(place).questions
    assert (question.name, question.categories) == ("café", ("naïve", "b"))


# -- numbers ---------------------------------------------------------------------------------------------------

NO_NUMBERS = case_table("text_forms", "NO_NUMBERS")


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_text_that_is_no_number_is_refused_by_every_reader(text: str) -> None:
    assert value_of(text) is None
    for reader in (number_in, whole_in, decimal):
        with pytest.raises(ValueError):  # noqa: PT011 - each reader has its own words
            reader(text)
    for made in (ldp_budget.mechanism("laplace")(epsilon=1, lower=0, upper=2000), GRR(epsilon=1, domain_size=2000)):
        with pytest.raises(OutsideDomain):
            Collection("c", made).read_values([text])


@given(st.decimals(-(10**6), 10**6, places=3))
def test_value_of_a_number_does_not_depend_on_its_notation(number: Decimal) -> None:
    plain = f"{number:f}"
    spelled = [plain, f"{plain}0", f" {plain} ", f"{number:E}", plain if number < 0 else f"+{plain}"]
    assert {value_of(each) for each in spelled} == {number}
    assert all(is_number(each.strip()) for each in spelled)


# -- yes and no ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("no", "yes"), ("Yes", "No")])
def test_yes_and_no_are_read_from_codes_and_truth_values(names: tuple[str, str]) -> None:
    made = Collection("c", GRR(epsilon=1, domain_size=2), names)
    yes = [each.casefold() for each in names].index("yes")
    assert made.read_values(["1", "true", "TRUE", "1.0"]).tolist() == [yes] * 4
    assert made.read_values(["0", "false", "False"]).tolist() == [1 - yes] * 3
    for other in ("2", "y", "10"):
        with pytest.raises(OutsideDomain):
            made.read_values([other])
