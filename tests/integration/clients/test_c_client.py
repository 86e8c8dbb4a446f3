"""The C interface: its example under AddressSanitizer, and the library as Python calls it, which draws what Python draws."""

from __future__ import annotations

import ctypes
import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c_library import CLIENTS, built, compiled
from checker_vectors import VECTORS
from client_cases import CASES
from judged_definitions import REFUSED, in_python
from ldp_budget.registry.collections import Collection
from malformed_definitions import malformed

COUNT = 20_000
PARTY = Collection("party", CASES["oue"], ("democrat", "republican", "무소속", "other"))


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.getbasetemp() / "c-library")


@pytest.fixture(scope="module")
def example(libraries: Path) -> Path:
    """The C program of the example, linked to the static library."""
    words = [str(CLIENTS / "c" / "example.c"), str(libraries / "libldp_budget_c.a"), "-fsanitize=address,undefined"]
    return compiled(libraries / "example", *words)


def written(example: Path, folder: Path, digest: str, answer: str) -> subprocess.CompletedProcess[bytes]:
    path = folder / "party.json"
    path.write_text(json.dumps(PARTY.definition()))
    return subprocess.run([example, path, digest, answer, str(COUNT)], capture_output=True, check=False)


def test_c_example_writes_reports_with_the_law_of_the_mechanism(example: Path, tmp_path: Path) -> None:
    """Each bit of oue is 1 with a known chance; the bound of seven standard errors fails once in 10**11 runs."""
    done = written(example, tmp_path, PARTY.definition()["digest"], "무소속")
    assert (done.returncode, done.stderr) == (0, b"")
    reports = np.frombuffer(done.stdout, np.uint8).reshape(COUNT, -1)
    estimate = PARTY.mechanism.estimate(reports)
    expected = np.array([0, 0, COUNT, 0])
    assert (np.abs(estimate.counts - expected) < 7 * estimate.std_errors).all()


def test_c_example_refuses_another_digest(example: Path, tmp_path: Path) -> None:
    done = written(example, tmp_path, "0" * 64, "other")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"and not the agreed 0000" in done.stderr


def test_c_example_refuses_what_is_no_answer(example: Path, tmp_path: Path) -> None:
    done = written(example, tmp_path, PARTY.definition()["digest"], "unknown")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"none of the answers" in done.stderr


# -- the library as Python calls it --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(libraries: Path) -> ctypes.CDLL:
    found = ctypes.CDLL(str(libraries / "libldp_budget_c.so"))
    text, size, at = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
    found.ldp_client_new.restype = found.ldp_device_open.restype = at
    found.ldp_client_new.argtypes = [text, size, text, text, size]
    found.ldp_client_report_size.restype = size
    found.ldp_device_open.argtypes = [text, text, text, text, size]
    for name in ("ldp_client_free", "ldp_client_report_size", "ldp_device_free", "ldp_device_is_fresh"):
        getattr(found, name).argtypes = [at]
    for kind, answer in (("text", [text, size]), ("integer", [ctypes.c_uint64]), ("number", [ctypes.c_double])):
        getattr(found, f"ldp_client_{kind}").argtypes = [at, *answer, text, size, text, text, text, size]
        getattr(found, f"ldp_device_{kind}").argtypes = [at, at, text, *answer, text, text, text, size]
    found.ldp_device_settle.argtypes = [at, text, text, size]
    return found


def opened(library: ctypes.CDLL, text: str, digest: str) -> Any:
    data = text.encode("utf-8", "surrogatepass")
    return library.ldp_client_new(data, len(data), digest.encode("utf-8", "surrogatepass"), None, 0)


def drawn(library: ctypes.CDLL, client: Any, answer: Any, secret: bytes) -> tuple[str, str] | None:
    """The report and the label of an answer; None if it is refused."""
    size = library.ldp_client_report_size(client)
    report, label = ctypes.create_string_buffer(size), ctypes.create_string_buffer(33)
    kind = {str: "text", int: "integer", float: "number"}[type(answer)]
    data = answer.encode() if kind == "text" else answer
    given = [data, len(data)] if kind == "text" else [data]
    status = getattr(library, f"ldp_client_{kind}")(client, *given, secret, len(secret), report, label, None, 0)
    return (report.raw.hex(), label.value.decode()) if status == 0 else None


def test_c_library_agrees_with_python_on_answers_labels_and_kept_reports(library: ctypes.CDLL) -> None:
    kept = 0
    for case in json.loads((VECTORS / "devices.json").read_text())["answers"]:
        definition = case["definition"]
        client = opened(library, json.dumps(definition), definition["digest"])
        for row in case["rows"]:
            answer = row["answer"]
            if type(answer) not in (str, int, float) or (type(answer) is int and answer < 0):
                continue
            answer = float(answer) if definition["input"]["kind"] == "number" and type(answer) is int else answer
            found = drawn(library, client, answer, bytes.fromhex(row["secret"]))
            assert (found is None) == row.get("refused", False), row
            if found and definition["memo"]:
                assert found[1] == row["label"]
            if found and definition["memo"] and not row["stream"]:  # nothing but the secret decides
                kept += 1
                assert found[0] == row["report"]
        library.ldp_client_free(client)
    assert kept > 0


def test_c_library_refuses_the_malformed_definitions_that_python_refuses(library: ctypes.CDLL) -> None:
    for place, text in enumerate(itertools.islice(malformed(5), 2_000)):
        _, said = in_python(text, place)
        try:
            digest = str(json.loads(text)["digest"])
        except (ValueError, KeyError, TypeError):
            digest = ""
        client = opened(library, text, digest)
        assert (client is None) == (said == [REFUSED]), text
        library.ldp_client_free(client)


def test_c_device_charges_once_for_a_key_and_refuses_beyond_its_limit(library: ctypes.CDLL, tmp_path: Path) -> None:
    path, why = str(tmp_path / "device").encode(), ctypes.create_string_buffer(200)
    party, other = PARTY.definition(), Collection("other", CASES["oue of 100"]).definition()
    client, wider = (opened(library, json.dumps(each), each["digest"]) for each in (party, other))
    device = library.ldp_device_open(path, b"2", None, why, 200)
    assert library.ldp_device_is_fresh(device) == 1
    report = ctypes.create_string_buffer(64)

    def draws(key: bytes, answer: bytes = b"other") -> tuple[int, bytes]:
        status = library.ldp_device_text(device, client, key, answer, len(answer), report, None, why, 200)
        return status, report.raw[:1]

    first = draws(b"a")
    assert first[0] == 0
    assert [draws(b"a", b"democrat"), draws(b"a", b"no answer")] == [first] * 2
    assert draws(b"b", b"no answer")[0] == -1
    # A key of another definition, whose reports are longer, writes nothing.
    assert library.ldp_device_integer(device, wider, b"a", 3, report, None, why, 200) == -1
    assert draws(b"b")[0] == 0
    assert draws(b"c")[0] == -2
    assert why.value.startswith(b"over the budget of this device")
    assert library.ldp_device_settle(device, b"a", why, 200) == 0
    assert draws(b"a")[0] == 1
    library.ldp_device_free(device)
    again = library.ldp_device_open(path, b"9", None, why, 200)
    assert library.ldp_device_is_fresh(again) == 0
    library.ldp_device_free(again)
    Path(path.decode()).write_text("{}")
    assert library.ldp_device_open(path, b"9", None, why, 200) is None
    for each in (client, wider):
        library.ldp_client_free(each)
