"""R's package survey reads a contributions file, and finds the estimates and errors of `estimate`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from doc_blocks import blocks, follow, page_environment

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guides" / "analyse-in-r.md"
LINK = ROOT / "clients" / "r" / "hidden_answer.R"


def run_r(folder: Path, text: str) -> str:
    """Return what R prints. Skips without R or its package survey."""
    if shutil.which("Rscript") is None:
        pytest.skip("no Rscript: apt-get install r-cran-survey")
    (folder / "script.R").write_text(f"options(digits = 15)\n{text}", encoding="utf-8")
    done = subprocess.run(
        ["Rscript", "--vanilla", "script.R"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    if "there is no package called" in done.stderr:
        pytest.skip("R has no package survey: apt-get install r-cran-survey")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_r_guide_typed_as_printed_finds_the_estimates_of_the_command_in_ten_digits(
    tmp_path: Path, programs: str
) -> None:
    assert follow(GUIDE, tmp_path, page_environment(tmp_path, programs)) == []
    means, logistic = (block.text for block in blocks(GUIDE.read_text(encoding="utf-8")) if block.kind == "r")
    assert LINK.read_text(encoding="utf-8") in logistic
    m = "m <- svymean(~good + fair + bad, s); cat('mean', coef(m), 'error', SE(m), 'end')\n"
    printed = run_r(tmp_path, means + m + logistic)
    found = json.loads((tmp_path / "estimate.json").read_text(encoding="utf-8"))["answers"]
    values = re.search("mean (.*) error (.*) end", printed)
    assert values is not None
    assert list(map(float, values[1].split())) == pytest.approx([each["share"] for each in found], rel=1e-10)
    assert list(map(float, values[2].split())) == pytest.approx(
        [each["share_std_error"] for each in found], rel=1e-10
    )
    assert "regionsouth" in printed


def test_r_link_of_the_hidden_answer_estimates_the_coefficients_of_the_true_answers(tmp_path: Path) -> None:
    printed = run_r(
        tmp_path,
        LINK.read_text(encoding="utf-8")
        + "set.seed(1); n <- 200000; x <- rnorm(n); y <- rbinom(n, 1, plogis(-1 + .8 * x)); p <- .7; q <- .2\n"
        "z <- rbinom(n, 1, ifelse(y == 1, p, q))\n"
        "family <- quasibinomial(link = hidden_answer(p, q))\n"
        "cat(coef(glm(z ~ x, family = family, start = c(0, 0))), coef(glm(z ~ x, family = binomial)))",
    )
    own, slope, _, naive = map(float, printed.split())
    assert (own, slope) == pytest.approx((-1, 0.8), abs=0.05)
    assert naive < 0.5


# The survey of the guide, regressed by R.
REGRESSED = """
strict <- glm.control(epsilon = 1e-15, maxit = 100)
one <- svyglm(good ~ region + w, design = s)
family <- quasibinomial(link = hidden_answer(p = 0.7869860421615985, q = 0.10650697891920075))
two <- svyglm(raw.good ~ region, design = s, family = family, start = c(0, 0, 0), control = strict)
cat("values", coef(one), SE(one), coef(two), SE(two), "end")
"""


def test_regress_equals_svyglm_in_ten_digits(tmp_path: Path, programs: str) -> None:
    pytest.importorskip("formulaic")
    assert follow(GUIDE, tmp_path, page_environment(tmp_path, programs)) == []
    means = next(block.text for block in blocks(GUIDE.read_text(encoding="utf-8")) if block.kind == "r")
    values = re.search("values (.*) end", run_r(tmp_path, LINK.read_text(encoding="utf-8") + means + REGRESSED))
    assert values is not None
    found = [
        each[part]
        for formula, model in (("good ~ region + w", "linear"), ("good ~ region", "logistic"))
        for part in ("estimate", "std_error")
        for each in regressed(tmp_path, programs, formula, model)
    ]
    # A model with a coefficient for each group fits it exactly, so R's expected information is the observed one.
    assert list(map(float, values[1].split())) == pytest.approx(found, rel=1e-10)


def regressed(folder: Path, programs: str, formula: str, model: str) -> list[dict[str, float]]:
    """Return the coefficients that `regress` prints."""
    words = [
        "regress",
        "mood",
        "mood.reports",
        formula,
        "--model",
        model,
        "--weights",
        "w",
        "--strata",
        "region",
        "--json",
    ]
    environment = {"PATH": programs, "LDP_BUDGET_LEDGER": str(folder / "budget.db"), "HOME": str(folder)}
    done = subprocess.run(
        ["ldp-budget", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, float]] = json.loads(done.stdout)["coefficients"]
    return found


# 1,000 weighted and stratified surveys of 2,000 people at ε = 1: how often the 95 % intervals hold -1 and 0.8.
COVERAGE = """suppressMessages(library(survey)); set.seed(1); R <- 1000; n <- 2000
q <- 1 / (exp(1) + 1); p <- 1 - q; hits <- c(0, 0)
family <- quasibinomial(link = hidden_answer(p, q))
for (r in 1:R) {
  x <- rnorm(n); st <- sample(1:4, n, TRUE); w <- st; y <- rbinom(n, 1, plogis(-1 + .8 * x))
  z <- rbinom(n, 1, ifelse(y == 1, p, q))
  s <- svydesign(ids = ~1, strata = ~st, weights = ~w, data = data.frame(x, st, w, z))
  m <- svyglm(z ~ x, design = s, family = family, start = c(0, 0))
  hits <- hits + (abs(coef(m) - c(-1, .8)) < 1.96 * SE(m))
}
cat("covers", hits / R, "end")
"""


def test_r_intervals_with_the_link_hold_the_coefficients_as_often_as_they_say(tmp_path: Path) -> None:
    found = re.search("covers (.*) end", run_r(tmp_path, LINK.read_text(encoding="utf-8") + COVERAGE))
    assert found is not None
    for share in map(float, found[1].split()):
        assert 0.93 <= share <= 0.97
