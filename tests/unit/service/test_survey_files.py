"""Files of the respondents' pages: texts in every language, an up-to-date bundle, and integrity digests."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget_service import Settings, create_app
from ldp_budget_service.html_pages import LANGUAGES, language
from survey_site import ledger, tokens

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "service" / "ldp_budget_service" / "web"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with ledger() as accountant:
        yield TestClient(create_app(accountant, Settings(device_lifetime="3", device_day="0.5")))


def texts(spoken: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((PAGES / "texts" / f"survey.{spoken}.json").read_text())
    return found


# -- texts ---------------------------------------------------------------------------------------------------------


def places(text: str) -> list[str]:
    return sorted(re.findall(r"\{([a-z_]+)\}", text))


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_texts_of_every_language_have_the_same_keys_and_placeholders(spoken: str) -> None:
    english, other = texts("en"), texts(spoken)
    assert list(other) == list(english)
    assert other["language"] == spoken
    for key, text in other.items():
        assert text.strip() == text != "", key
        assert places(text) == places(english[key]), key
        assert "<" not in text, key


@pytest.mark.parametrize(
    ("accepted", "spoken"),
    [
        ("", "en"),
        ("ko-KR,ko;q=0.9,en;q=0.8", "ko"),
        ("fr-FR, fr;q=0.9, de;q=0.5, en;q=0.4", "de"),
        ("de;q=0.3,en;q=0.7", "en"),
        ("fr", "en"),
        ("de;q=0, ko;q=0.1", "ko"),
        ("*", "en"),
        (";;,q=,de;q=x", "en"),
    ],
)
def test_page_language_is_the_preferred_one_of_the_browser(accepted: str, spoken: str) -> None:
    assert language(accepted) == spoken


# -- what is served ------------------------------------------------------------------------------------------------


def integrity(body: bytes) -> str:
    return f"sha384-{base64.b64encode(hashlib.sha384(body).digest()).decode()}"


@pytest.mark.parametrize("path", ["/s/commute", "/s/nix", "/me"])
@pytest.mark.parametrize("spoken", LANGUAGES)
def test_page_loads_only_local_files_with_integrity(client: TestClient, path: str, spoken: str) -> None:
    answer = client.get(f"{path}?lang={spoken}")
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "{{" not in answer.text
    tags = re.findall(r"<(?:script|link)\b[^>]*>", answer.text)
    loaded = [tag for tag in tags if 'rel="icon"' not in tag]
    assert len(loaded) == 2
    for tag in loaded:
        [(_, place)] = re.findall(r"(src|href)=\"([^\"]+)\"", tag)
        assert place.startswith("/static/")
        assert f'integrity="{integrity(client.get(place).content)}"' in tag
    assert re.findall(r"<script[^>]*>([^<]*)", answer.text) == [""]
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", answer.text)


@pytest.mark.parametrize("accepted", ["gzip", "br;q=1, gzip;q=0.8", "identity", "gzip;q=0", ""])
def test_file_is_compressed_for_browsers_that_take_gzip(client: TestClient, accepted: str) -> None:
    plain = client.get("/static/survey.js", headers={"Accept-Encoding": "identity"})
    answer = client.get("/static/survey.js", headers={"Accept-Encoding": accepted})
    is_gzipped = accepted.startswith(("gzip", "br")) and not accepted.endswith("q=0")
    assert answer.content == plain.content
    assert (answer.headers.get("Content-Encoding") == "gzip") == is_gzipped
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert (answer.headers["ETag"] == plain.headers["ETag"]) != is_gzipped
    if is_gzipped:
        assert int(answer.headers["Content-Length"]) < len(plain.content) / 2
    again = client.get(
        "/static/survey.js", headers={"Accept-Encoding": accepted, "If-None-Match": answer.headers["ETag"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == answer.headers["ETag"]


@pytest.mark.parametrize("spoken", LANGUAGES)
@pytest.mark.parametrize("name", ["commute", "start page", "many"])
def test_page_with_all_that_it_loads_is_below_80_kilobytes(client: TestClient, spoken: str, name: str) -> None:
    """Its first paint needs the page and its style only: the script is a module, which browsers defer."""
    page = client.get(f"/s/{name}?lang={spoken}")
    assert re.findall(r"<script\b[^>]*>", page.text)[0].startswith('<script type="module"')
    loaded = re.findall(r'<(?:script|link)\b[^>]*?(?:src|href)="([^"]+)"|data-texts="([^"]+)"', page.text)
    places = [one or other for one, other in loaded]
    assert len(places) == 4
    [token] = tokens(client.app.state.accountant, ["ana"], name)  # type: ignore[attr-defined]
    asked = {"Accept-Encoding": "gzip", "Authorization": f"Bearer {token}"}
    answers = [page, *(client.get(place, headers=asked) for place in (*places, f"/v1/collections/{name}", "/v1/me"))]
    assert all(answer.status_code == 200 for answer in answers)
    head = 900  # bytes of the headers of an answer
    assert sum(int(answer.headers["Content-Length"]) + head for answer in answers) < 80_000


def test_page_texts_are_those_of_the_digest_in_the_page(client: TestClient) -> None:
    shown = client.get("/s/commute?lang=ko")
    body = client.get("/static/texts/survey.ko.json").content
    assert f'data-texts="/static/texts/survey.ko.json" data-integrity="{integrity(body)}"' in shown.text
    assert shown.headers["Link"] == "</static/texts/survey.ko.json>; rel=preload; as=fetch; crossorigin"


def test_page_files_name_no_other_host(client: TestClient) -> None:
    page = client.get("/s/commute").text
    for text in (page, *(path.read_text() for path in (PAGES / "static").glob("survey*"))):
        assert set(re.findall(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]+", text)) <= {"http://www.w3.org"}, "an address"


@pytest.mark.parametrize("path", ["/s", "/s/", "/s/commute/", "/survey/commute", "/me/too", "/checks"])
def test_unknown_address_is_a_page_for_people_and_a_problem_for_programs(client: TestClient, path: str) -> None:
    people = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "Accept-Language": "ko"}
    shown = client.get(path, headers=people)
    assert (shown.status_code, shown.headers["Content-Security-Policy"]) == (404, POLICY)
    assert texts("ko")["missing.title"] in shown.text
    assert texts("de")["missing.title"] in client.get(f"{path}?lang=de", headers=people).text
    assert "{{" not in shown.text
    for headers in ({}, {"Accept": "application/json"}):
        asked = client.get(path, headers=headers)
        assert (asked.status_code, asked.headers["Content-Type"]) == (404, "application/problem+json")
    assert client.get(f"/v1{path}", headers=people).headers["Content-Type"] == "application/problem+json"


# -- the bundle ----------------------------------------------------------------------------------------------------
