"""The layer for Java, through JNI: its reports, its texts in UTF-8, and the budget of a device."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from c_library import CLIENTS, built, compiled
from client_cases import CASES
from ldp_budget.registry.collections import Collection

JAVA = CLIENTS / "java"
PARTY = Collection("party", CASES["oue"], ("democrat", "😀", "무소속", "other"))
CHECK = r"""
import ldpbudget.Client;

public final class Check {
  public static void main(String[] words) throws Exception {
    String definition = java.nio.file.Files.readString(java.nio.file.Path.of(words[0]));
    try (Client client = new Client(definition, words[1])) {
      int[] ones = new int[4];
      for (int i = 0; i < 20_000; i++) {
        byte report = client.randomize("\ud83d\ude00", null).report()[0];
        for (int bit = 0; bit < 4; bit++) ones[bit] += report >> bit & 1;
      }
      System.out.println(java.util.Arrays.toString(ones));
      for (String answer : new String[] {"\ud83d", "\ud83d?", "other\0", "", "none"}) {
        try {
          client.randomize(answer, null);
          System.out.println("drawn");
        } catch (IllegalArgumentException error) {
          System.out.println("refused");
        }
      }
    }
    try {
      new Client(definition, "0".repeat(64));
    } catch (IllegalArgumentException error) {
      System.out.println(error.getMessage().contains("not the agreed"));
    }
  }
}
"""


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the classes and the library of the layer."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("no Java compiler on this machine")
    folder = tmp_path_factory.mktemp("java")
    include = Path(javac).resolve().parents[1] / "include"
    if not (include / "jni.h").exists():
        pytest.skip("no jni.h beside the Java compiler")
    library = built(tmp_path_factory.getbasetemp() / "c-library") / "libldp_budget_c.a"
    words = [
        str(JAVA / "ldp_budget_jni.c"),
        str(library),
        "-shared",
        "-fPIC",
        f"-I{include}",
        f"-I{include / 'linux'}",
    ]
    compiled(folder / "libldp_budget_jni.so", *words)
    (folder / "Check.java").write_text(CHECK)
    sources = [*(JAVA / "ldpbudget").glob("*.java"), JAVA / "Example.java", folder / "Check.java"]
    command = [javac, "-encoding", "UTF-8", "-Xlint:all", "-Werror", "-d", str(folder), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def run(classes: Path, name: str, *words: str) -> list[str]:
    """The lines that a class writes."""
    (classes / "party.json").write_text(json.dumps(PARTY.definition()), encoding="utf-8")
    definition = [str(classes / "party.json"), PARTY.definition()["digest"]]
    java = [
        "java",
        "-Xcheck:jni",
        "-Dfile.encoding=UTF-8",
        f"-Djava.library.path={classes}",
        "-cp",
        str(classes),
        name,
    ]
    done = subprocess.run([*java, *definition, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


def test_java_client_draws_the_law_of_the_mechanism_and_refuses_what_is_no_answer(classes: Path) -> None:
    """An own bit of oue is one with probability 1/2, another one with 1/(e + 1); nine standard errors fail never."""
    ones, *refused, pinned = run(classes, "Check")
    expected = [0.2689, 0.5, 0.2689, 0.2689]
    shares = [count / 20_000 for count in json.loads(ones)]
    assert all(abs(share - chance) < 0.032 for share, chance in zip(shares, expected, strict=True)), shares
    assert refused == ["refused"] * 5
    assert pinned == "true"


def test_java_device_sends_the_same_report_under_a_key_until_its_budget_is_spent(classes: Path) -> None:
    lines = run(classes, "Example", "other", str(classes / "device"))
    assert [len(line) for line in lines[:2]] == [2, 2]
    assert [line.split(":")[0] for line in lines[2:]] == ["over the budget of this device"] * 2
