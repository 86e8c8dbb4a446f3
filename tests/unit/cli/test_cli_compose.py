"""`compose`, `plan` and `compare`: what many reports cost, what each may cost, and which mechanism errs least."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ldp_budget
from ldp_budget import Accountant, Collection, InvalidParameter, Limit
from ldp_budget.registry import ranking as comparison
from ldp_budget.registry.plugins import mechanisms
from ldp_budget.registry.ranking import rank_frequency
from ldp_budget.sdk.numeric_mechanism import NumericMechanism
from ldp_budget.sdk.parameters import integer
from ldp_budget_mechanisms.unary_encoding import OptimizedUnaryEncoding

if TYPE_CHECKING:
    from command_line import CommandLine

PNG = b"\x89PNG\r\n\x1a\n"


def test_compose_fifty_reports_gives_the_known_totals(command: CommandLine) -> None:
    for words, zcdp, exact in (
        (("oue", "--domain-size", 10), 15.14, 13.85),
        (("sue", "--domain-size", 10), 15.28, 13.93),
        (("random-substitution", "--domain-size", 10), 10.31, 9.49),
        (("randomized-response",), 23.39, 20.30),
    ):
        result = command.json("compose", *words, "--epsilon", 0.5, "--reports", 50, "--total-delta", "1e-6")
        rules = result["rules"]
        assert (result["reports"], result["delta"]) == (50, 1e-6)
        assert rules["basic"] == {"epsilon": 25, "delta": 0, "filter": True}
        assert rules["zcdp"]["epsilon"] == pytest.approx(zcdp, abs=0.01)
        assert rules["zcdp"]["filter"]
        assert rules["gdp"]["filter"]
        assert rules["exact"]["epsilon"] == pytest.approx(exact, abs=0.01)
        assert rules["exact"]["lower"] <= rules["exact"]["epsilon"]
        assert not rules["exact"]["filter"]


def test_compose_rule_that_does_not_apply_is_null_with_a_reason(command: CommandLine) -> None:
    arguments = ("compose", "oue", "--epsilon", 1, "--domain-size", 4, "--reports", 3)
    rules = command.json(*arguments)["rules"]
    assert rules["zcdp"] is None
    assert rules["gdp"] is None
    assert rules["basic"]["epsilon"] == rules["exact"]["epsilon"] == 3
    shown = command(*arguments).stdout
    assert "Not shown: " in shown
    assert "delta" in shown


def test_compose_delta_defaults_to_the_sum_of_the_reports(command: CommandLine) -> None:
    arguments = ("compose", "gaussian", "--epsilon", 1, "--delta", "1e-8", "--reports", 20)
    own = command.json(*arguments)
    assert own["delta"] == pytest.approx(2e-7)
    assert own["rules"]["basic"] == {"epsilon": 20, "delta": pytest.approx(2e-7), "filter": True}
    more = command.json(*arguments, "--total-delta", "1e-6")
    assert more["rules"]["exact"]["epsilon"] < own["rules"]["exact"]["epsilon"] < 20


@pytest.mark.slow
def test_compose_takes_a_collection(command: CommandLine) -> None:
    command("collection", "add", "poll", "oue", "--epsilon", 0.5, "--domain-size", 10)
    by_name = command.json("compose", "poll", "--reports", 50, "--total-delta", "1e-6")
    in_full = command.json(
        "compose", "oue", "--epsilon", 0.5, "--domain-size", 10, "--reports", 50, "--total-delta", "1e-6"
    )
    assert by_name == in_full
    planned = command.json("plan", "poll", "--reports", 50, "--total-epsilon", 4, "--total-delta", "1e-6")
    assert planned["rules"]["basic"]["epsilon_per_report"] == 0.08


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp", "exact"])
def test_plan_fits_the_total_and_hardly_more_would(command: CommandLine, rule: str) -> None:
    result = command.json(
        "plan", "oue", "--domain-size", 10, "--reports", 50, "--total-epsilon", 4, "--total-delta", "1e-6"
    )
    row = result["rules"][rule]
    oue = ldp_budget.mechanism("oue")
    for epsilon, fits in ((row["epsilon_per_report"], True), (row["epsilon_per_report"] + 2e-9, False)):
        guarantee = oue(epsilon=epsilon, domain_size=10).guarantee
        total = ldp_budget.compose([(guarantee, 50)], delta="1e-6", rule=rule)
        assert (total.epsilon <= 4) == fits
    assert row["epsilon"] <= 4
    assert row["variance_per_user"] == pytest.approx(
        oue(epsilon=row["epsilon_per_report"], domain_size=10).utility()["variance_per_user"]
    )


@pytest.mark.slow
def test_plan_of_memoized_reports_shows_target_and_loss(command: CommandLine) -> None:
    bit = ("one-bit-mean", "--maximum", 10, "--rounding", 1, "--flip", 0.2)
    arguments = ("plan", *bit, "--reports", 50, "--total-epsilon", 4)
    rules = command.json(*arguments)["rules"]
    for rule, reported in (("basic", 0.2166525), ("exact", 0.0479836)):
        row = rules[rule]
        made = command.json("calibrate", *bit, "--epsilon", f"{row['epsilon_per_report']:.9f}")
        assert made["guarantee"]["epsilon"] == row["guaranteed_epsilon_per_report"] == pytest.approx(reported)
        assert row["epsilon_per_report"] > row["guaranteed_epsilon_per_report"]
        assert row["epsilon"] <= 4
    line = (
        "The ε per report is the value for --epsilon. One report alone then loses 0.216653 (basic), 0.0479837 (exact)"
    )
    assert line in command(*arguments).stdout.splitlines()


@pytest.mark.slow
def test_compose_memoized_reports_cost_at_most_all_their_values(command: CommandLine) -> None:
    """The two bits of a range that is one cell wide, the kept buckets, and the declared answers of RAPPOR."""
    bit = ("one-bit-mean", "--maximum", 10, "--rounding", 10)
    kept = ("d-bit-flip", "--buckets", 10, "--bits", 4, "--memoize")
    answers = ("rappor", "--bits", 16, "--hashes", 2, "--cohorts", 4, "--epsilon-lifetime", 4)
    for words, most in (
        ((*bit, "--epsilon", 0.5), 1),
        ((*kept, "--epsilon", 0.5), 2),
        ((*answers, "--epsilon", 0.5, "--domain-size", 5), 20),
    ):
        rules = command.json("compose", *words, "--reports", 365, "--total-delta", "1e-6")["rules"]
        assert rules["basic"]["epsilon"] == most
        assert 0.999 * most < rules["exact"]["epsilon"] <= most
        assert rules["renyi"]["epsilon"] <= most
    alone = command.json("compose", *answers, "--epsilon", 0.5, "--reports", 365)["rules"]["basic"]["epsilon"]
    assert alone == 182.5, "without a domain there may be any number of answers"
    labelled = command.json("plan", *kept, "--reports", 365, "--total-epsilon", 2)["rules"]["basic"]
    assert labelled["epsilon_per_report"] == 0.2, "a ledger charges each of the ten buckets by its label"
    planned = command.json("plan", *bit, "--reports", 365, "--total-epsilon", 1)["rules"]
    assert planned["basic"]["epsilon_per_report"] == 0.5
    assert planned["exact"]["epsilon_per_report"] == pytest.approx(1 / 365, rel=1e-5), "as a policy's plan prices it"
    shown = command("compose", *bit, "--epsilon", 0.5, "--reports", 365).stdout
    assert "at most 2 times the cap of one memoized value, ε = 0.5" in shown


@pytest.mark.slow
def test_ledger_admits_the_planned_memoized_reports(command: CommandLine) -> None:
    made = ldp_budget.mechanism("one-bit-mean")(epsilon="0.5", maximum=10, rounding=10)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        spent = [accountant.spend("alice", made, label=str(day % 2)).status for day in range(365)]
        assert set(spent) == {"spent"}
        unlabelled = accountant.spend("bob", made, reports=3)
        assert unlabelled.status == "spent", "two values of ε = 0.5 each bound all reports"
        assert unlabelled.cost.epsilon == 1
        assert accountant.spend("bob", made, reports=300).cost.epsilon == 0


@pytest.mark.slow
def test_compare_with_reports_shows_totals_under_every_rule(command: CommandLine) -> None:
    total = ("--reports", 365, "--total-delta", "1e-6")
    ranked = command.json("compare", "--epsilon", 1, "--domain-size", 5, "--users", 1000, *total)
    ranked += command.json("compare", "--epsilon", 1, "--lower", 0, "--upper", 1, *total)
    found = {row["mechanism"]: row.get("totals") for row in ranked}
    assert found.pop("constant-output") is None
    for words in (("oue", "--domain-size", 5), ("laplace", "--lower", 0, "--upper", 1)):
        alone = command.json("compose", *words, "--epsilon", 1, *total)
        assert found[words[0]] == alone
    for each in found.values():
        rules = {rule: row["epsilon"] for rule, row in each["rules"].items()}
        assert list(rules) == ["basic", "zcdp", "gdp", "renyi", "exact"]
        assert rules["basic"] == 365
        assert rules["exact"] == min(rules.values())
    assert found["bounded-laplace"]["rules"]["exact"]["epsilon"] == pytest.approx(109.6, abs=0.1)


@pytest.mark.slow
def test_compare_shows_totals_below_the_ranking(command: CommandLine) -> None:
    words = ("compare", "--epsilon", 1, "--lower", 0, "--upper", 1)
    lines = command(*words, "--reports", 3).stdout.splitlines()
    start = lines.index("Total ε of 3 reports of one user, by rule, at δ = 0")
    assert lines[start + 1].split() == ["mechanism", "basic", "zcdp", "gdp", "renyi", "exact"]
    assert ["laplace", "3", "-", "-", "-", "3"] in [line.split() for line in lines[start:]]
    assert "Not shown: zcdp, gdp, renyi need δ > 0. Add --total-delta 1e-6" in lines
    assert command(*words).stdout.splitlines() == lines[:start]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--total-delta", 0.1), "--total-delta needs --reports K."),
        (("--reports", "two"), "--reports must be a whole number >= 1: got two"),
        (("--reports", 0), "--reports must be a whole number >= 1: got 0"),
        (("--reports", 2, "--total-delta", 1), "--total-delta must be a number >= 0 and < 1: got 1"),
    ],
)
def test_compare_with_a_wrong_total_names_the_mistake(
    command: CommandLine, options: tuple[Any, ...], why: str
) -> None:
    result = command("compare", "--epsilon", 1, "--lower", 0, "--upper", 1, *options, code=2)
    assert why in result.stderr


@pytest.mark.slow
def test_plan_of_plain_reports_has_no_note(command: CommandLine) -> None:
    arguments = ("plan", "oue", "--domain-size", 4, "--reports", 8, "--total-epsilon", 8, "--total-delta", "1e-6")
    for row in command.json(*arguments)["rules"].values():
        assert row["guaranteed_epsilon_per_report"] == pytest.approx(row["epsilon_per_report"], rel=1e-12)
    assert "--epsilon takes" not in command(*arguments).stdout


@pytest.mark.slow
def test_compose_with_a_shuffler_adds_the_central_epsilon(command: CommandLine) -> None:
    """ε₀ = .5, ten thousand users: two answers .0181, unary encoding .0124; nothing of it is a limit's."""
    for words, central in ((("randomized-response",), 0.0182), (("oue", "--domain-size", 10), 0.0125)):
        arguments = ("compose", *words, "--epsilon", 0.5, "--reports", 1, "--total-delta", "1e-6")
        result = command.json(*arguments, "--shuffled", 10_000)
        found = result["shuffled"]
        assert 0.98 * central < found["epsilon"] < central
        assert found == {"users": 10_000, "epsilon": found["epsilon"], "delta": 1e-6, "local": 0.5, "enforced": False}
        assert {key: result[key] for key in ("reports", "delta", "rules")} == command.json(*arguments)
        shown = command(*arguments, "--shuffled", 10_000).stdout
        assert "with those of 10000 users" in shown
        assert "No limit uses this figure" in shown


def test_compose_without_a_shuffling_bound_says_why(command: CommandLine) -> None:
    arguments = ("compose", "gaussian", "--epsilon", 1, "--delta", "1e-6", "--reports", 1, "--shuffled", 1000)
    assert command.json(*arguments)["shuffled"] is None
    assert "Not shown: amplification by shuffling" in command(*arguments).stdout


def test_compose_says_why_basic_may_be_less_than_exact(command: CommandLine) -> None:
    bit = ("compose", "one-bit-mean", "--epsilon", 1, "--maximum", 10, "--rounding", 1, "--reports", 15)
    line = (
        "Rule basic counts each report as the first of a new memoized value, at ε = 0.569446. The other rules count the "
        "cap of a value, ε = 1"
    )
    assert line in command(*bit, "--flip", 0.2).stdout.splitlines()
    assert "Rule basic" not in command(*bit).stdout, "without a flip one report loses the cap"


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp"])
def test_ledger_admits_exactly_the_planned_reports(command: CommandLine, rule: str) -> None:
    rules = command.json(
        "plan", "sue", "--domain-size", 4, "--reports", 7, "--total-epsilon", 3, "--total-delta", "1e-5"
    )["rules"]
    report = ldp_budget.mechanism("sue")(epsilon=rules[rule]["epsilon_per_report"], domain_size=4)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", Decimal(3), Decimal("1e-5"), rule)])
        statuses = [accountant.spend("alice", report).status for _ in range(8)]
    assert statuses == ["spent"] * 7 + ["refused"]


def test_plan_offers_no_option_that_states_the_loss(command: CommandLine) -> None:
    shown = command("plan", "random-substitution", "--help").stdout
    assert "--domain-size" in shown
    for option in ("--epsilon ", "--gamma", "--rho1", "--rho2"):
        assert option not in shown


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("compose", "oue", "--epsilon", 1, "--domain-size", 4, "--reports", "two"), "--reports", 2),
        (("compose", "rr", "--epsilon", 1, "--reports", 2, "--total-delta", 1), "--total-delta", 2),
        (("plan", "oue", "--domain-size", 4, "--reports", 2, "--total-epsilon", 0), "--total-epsilon", 2),
        (("plan", "oue", "--domain-size", 1, "--reports", 2, "--total-epsilon", 1), "--domain-size", 2),
        (
            ("plan", "unary-encoding", "--domain-size", 4, "--reports", 2, "--total-epsilon", 1),
            "cannot be planned",
            1,
        ),
        (("compare", "--epsilon", 1), "--domain-size", 2),
        (("compare", "--epsilon", 1, "--domain-size", 4), "--users", 2),
        (("compare", "--epsilon", 1, "--domain-size", 4, "--lower", 0, "--upper", 1), "--users", 2),
        (("compare", "--epsilon", 1, "--users", 4), "--domain-size", 2),
        (("compare", "--epsilon", 1, "--lower", 0, "--users", 4), "--upper", 2),
        (("compare", "--epsilon", 1, "--lower", 0, "--upper", 1, "--users", 0), "--users", 2),
        (("compare", "--epsilon", 0, "--domain-size", 4, "--users", 9), "--epsilon", 2),
        (("compare", "--epsilon", 1, "--lower", 3, "--upper", 3), "--upper", 2),
    ],
)
def test_compose_and_plan_with_bad_input_name_it(
    command: CommandLine, arguments: tuple[object, ...], message: str, code: int
) -> None:
    assert message in command.error(*arguments, code=code)


@pytest.mark.slow
def test_compare_ranks_frequency_mechanisms_by_their_own_predictions(command: CommandLine) -> None:
    rows = command.json("compare", "--epsilon", 1, "--domain-size", 7, "--users", 944)
    errors = [row["mean_std_error"] for row in rows]
    assert errors == sorted(errors)
    plain = {"oue", "sue", "random-substitution", "subset-selection", "pgr"}
    assert {row["mechanism"] for row in rows} == plain | {"d-bit-flip", "cms", "hcms"}
    for row in rows:
        assert row["mean_std_error"] <= row["worst_std_error"]
        mechanism = ldp_budget.mechanism(row["mechanism"]).for_answers(1, 7)
        mean = math.sqrt(mechanism.utility()["total_variance_per_user"] / 7 / 944)
        assert row["mean_std_error"] == pytest.approx(mean, rel=1e-3), "but for the few collisions of a sketch"
        assert bool(row["setting"]) == (row["mechanism"] not in plain)


@pytest.mark.slow
def test_compare_shows_the_setting_of_each_mechanism(command: CommandLine) -> None:
    arguments = ("compare", "--epsilon", 1, "--domain-size", 7, "--users", 944)
    rows = {row["mechanism"]: row for row in command.json(*arguments)}
    assert rows["d-bit-flip"]["setting"] == "bits=7, buckets=7"
    assert rows["d-bit-flip"]["mean_std_error"] == pytest.approx(rows["sue"]["mean_std_error"]), "the same thing"
    assert rows["hcms"]["setting"] == "hashes=1024, width=1024"
    header, *lines = command(*arguments).stdout.splitlines()[2:]
    assert header.split()[-1] == "setting"
    assert "bits=7, buckets=7" in next(line for line in lines if line.startswith("d-bit-flip"))


class Loud(OptimizedUnaryEncoding):
    name = "loud"


class Awkward(Loud):
    """Its number of answers has another name."""

    name = "awkward"
    choices = integer("how many answers there are", at_least=2)
    domain_size = property(lambda self: self.choices)  # type: ignore[assignment]

    @classmethod
    def for_answers(cls, epsilon: Any, domain_size: int) -> Awkward:
        return cls.calibrate(epsilon=epsilon, choices=domain_size)


class Fixed(Loud):
    """Its loss does not depend on the request."""

    name = "fixed"
    epsilon = property(lambda self: Decimal(1))  # type: ignore[assignment]


def test_compare_includes_third_party_mechanisms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(comparison, "mechanisms", lambda: [Loud, Awkward, Fixed, ldp_budget.mechanism("oue")])
    rows = rank_frequency(1, 7, 944)
    settings = {row["mechanism"]: row["setting"] for row in rows}
    assert settings == {"awkward": "choices=7", "loud": "", "oue": ""}, "and none with a loss of its own"
    assert len({row["mean_std_error"] for row in rows}) == 1
    with pytest.raises(InvalidParameter, match="epsilon"):
        rank_frequency(0, 7, 944)


@pytest.mark.slow
def test_compare_two_answers_includes_randomized_response(command: CommandLine) -> None:
    rows = command.json("compare", "--epsilon", 1, "--domain-size", 2, "--users", 100)
    assert "randomized-response" in {row["mechanism"] for row in rows}


@pytest.mark.slow
def test_compare_puts_the_constant_output_among_the_numeric_mechanisms(command: CommandLine) -> None:
    """On heights nothing beats a constant at ε = 1, and everything bounded does at ε = 10 (Kim, Park and Lee)."""
    rows = command.json("compare", "--epsilon", 1, "--lower", 1.67, "--upper", 1.85)
    assert rows[0]["mechanism"] == "constant-output"
    assert rows[0]["mse_uniform_prior"] == pytest.approx(0.18**2 / 12)
    rows = command.json("compare", "--epsilon", 10, "--lower", 1.67, "--upper", 1.85)
    names = [row["mechanism"] for row in rows]
    assert names.index("bounded-staircase") < names.index("constant-output")
    assert names.index("bounded-laplace") < names.index("constant-output")


@pytest.mark.slow
def test_compare_numeric_with_users_ranks_by_the_error_of_the_mean(command: CommandLine) -> None:
    """A bias stays however many users there are, so what is best for one report may be worst for ten thousand."""
    arguments = ("compare", "--epsilon", 1, "--lower", 0, "--upper", 77)
    one = [row["mechanism"] for row in command.json(*arguments)]
    assert one[:2] == ["constant-output", "bounded-staircase"]
    rows = command.json(*arguments, "--users", 10_000)
    assert (rows[0]["mechanism"], rows[-1]["mechanism"]) == ("hybrid", "constant-output")
    errors = {row["mechanism"]: row["mean_error"] for row in rows}
    assert list(errors.values()) == sorted(errors.values())
    assert errors["constant-output"] == 38.5
    for row in rows:
        worst = max(
            math.sqrt(bias**2 + (row["mse"][place] - bias**2) / 10_000) for place, bias in row["bias"].items()
        )
        assert row["mean_error"] == pytest.approx(worst)
    shown = command(*arguments, "--users", 10_000).stdout.splitlines()
    assert shown[0].startswith("Error of the mean of 10000 users")
    assert shown[3].split()[:2] == ["hybrid", "0.797331"]


def test_compare_ranks_every_pure_numeric_mechanism(command: CommandLine) -> None:
    rows = command.json("compare", "--epsilon", 1, "--lower", 18, "--upper", 70, "--users", 10_000)
    numeric = {each.name for each in mechanisms() if issubclass(each, NumericMechanism)}
    assert {row["mechanism"] for row in rows} == numeric - {"gaussian"} | {"constant-output"}
    assert rows[0]["mechanism"] == "hybrid"


@pytest.mark.slow
def test_compare_answers_and_range_prints_both_tables(command: CommandLine) -> None:
    arguments = ("compare", "--epsilon", 1, "--domain-size", 7, "--users", 944, "--lower", 0, "--upper", 1)
    rows = command.json(*arguments)
    kinds = [row["kind"] for row in rows]
    assert set(kinds) == {"frequency", "numeric"}
    assert kinds == sorted(kinds)
    assert all("mean_error" in row for row in rows if row["kind"] == "numeric")
    shown = command(*arguments).stdout
    assert "standard error of a share" in shown
    assert "Error of the mean of 944 users" in shown


@pytest.mark.slow
@pytest.mark.some(7)
@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--epsilon", 1, "--lower", 0, "--upper", 1, "--users", 944),
        ("compare", "--epsilon", 1, "--domain-size", 7, "--users", 944, "--lower", 0, "--upper", 1),
        ("calibrate", "bounded-staircase", "--epsilon", 1, "--lower", 10, "--upper", 20, "--gamma", 0.3),
        ("calibrate", "laplace", "--epsilon", 1, "--lower", 0, "--upper", 1),
        ("calibrate", "gaussian", "--epsilon", 1, "--delta", "1e-5", "--lower", 0, "--upper", 1),
        ("calibrate", "oue", "--epsilon", 1, "--domain-size", 7),
        ("calibrate", "random-substitution", "--gamma", 10, "--domain-size", 50),
    ],
)
def test_plots_are_drawn(command: CommandLine, tmp_path: Path, arguments: tuple[object, ...]) -> None:
    pytest.importorskip("matplotlib")
    command(*arguments, "--plot", tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(PNG)


def test_plot_without_matplotlib_names_the_extra(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    message = command.error("calibrate", "oue", "--epsilon", 1, "--domain-size", 7, "--plot", tmp_path / "x.png")
    assert "pip install 'ldp-budget[plot]'" in message
    assert not (tmp_path / "x.png").exists()


@pytest.mark.slow
def test_demo_runs_in_an_empty_folder(command: CommandLine, tmp_path: Path) -> None:
    shown = command("demo", "--out", tmp_path / "demo").stdout
    for step in range(1, 8):
        assert f"{step}. " in shown
    assert "Charged 944 users, refused 0" in shown
    assert "repeated = True" in shown
    assert "refused: r0000" in shown
    assert (tmp_path / "demo" / "party.reports").exists()
    assert not command.ledger.exists(), "the demo creates no ledger of the user"


@pytest.mark.slow
def test_demo_where_all_are_refused_writes_no_report(command: CommandLine, tmp_path: Path) -> None:
    """`demo --epsilon 9` said "Charged 0 users, refused 944" and wrote 944 reports."""
    shown = command("demo", "--epsilon", 9, "--out", tmp_path / "demo").stdout
    assert "Charged 0 users, refused 944" in shown
    assert "so there is no report: one poll may cost ε = 8 at most" in shown
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == ["answers.csv", "parties.txt"]


@pytest.mark.slow
def test_demo_where_some_are_refused_randomizes_the_others_alone(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receipts were dropped: refused respondents were in the report file."""
    spend, randomized = Accountant.spend, list[int]()

    def poor(accountant: Accountant, user: str, *arguments: Any, **options: Any) -> Any:
        if user == "r0000":  # whose budget another poll has spent
            spend(accountant, user, ldp_budget.mechanism("rr")(epsilon=2))
        return spend(accountant, user, *arguments, **options)

    def counted(collection: Collection, texts: Any, *arguments: Any) -> Any:
        randomized.append(len(texts))
        return read_values(collection, texts, *arguments)

    read_values = Collection.read_values
    monkeypatch.setattr(Accountant, "spend", poor)
    monkeypatch.setattr(Collection, "read_values", counted)
    shown = command("demo", "--out", tmp_path / "demo").stdout
    assert "Charged 943 users, refused 1" in shown
    assert "943 reports in" in shown
    assert "A retry of r0001 with the same key: spent, repeated = True" in shown
    assert randomized == [943], "the answer of the refused user is not even read"


@pytest.mark.slow
def test_policy_set_for_expected_reports_takes_their_best_order(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=40")
    command("collection", "add", "poll", "random-substitution", "--epsilon", 1, "--domain-size", 100)
    best = command.json("compose", "collection:poll", "--reports", 52, "--total-delta", "1e-6")["rules"]["renyi"]
    limit = ("--limit", "lifetime=10.6,1e-6,renyi")
    [plain] = command.json("policy", "set", "plain", *limit)["limits"]
    [chosen] = command.json("policy", "set", "chosen", *limit, "--for", "poll=52")["limits"]
    assert chosen["rule"] == f"renyi:{best['order']:g}" == "renyi:3.2"
    assert plain["rule"] == "renyi:4"
    assert command.json("quote", "alice", "poll", "--policy", "chosen")["affordable_reports"] >= 52
    assert command.json("quote", "alice", "poll", "--policy", "plain")["affordable_reports"] < 52
    wrong = command("policy", "set", "other", *limit, "--for", "poll", code=2)
    assert "--for must be COLLECTION=COUNT" in wrong.stderr


def test_policy_set_with_delta_aside_shows_both_parts(command: CommandLine) -> None:
    shown = command("policy", "set", "default", "--limit", "lifetime=8,9e-7+1e-7,zcdp").stdout
    assert shown == "policy default, version 1: lifetime ε = 8 at δ = 1e-06 (9e-07 + 1e-07) (zcdp)\n"
    command("spend", "alice", "gaussian", "--sigma", 10)
    lines = [line.split() for line in command("balance", "alice").stdout.splitlines()[2:5]]
    assert lines[0][:7] == ["lifetime", "zcdp", "ε", "at", "δ", "=", "1e-06"]
    assert [line[:2] for line in lines[1:]] == [["δ", "1e-07"], ["ρ", "1.04544"]]
