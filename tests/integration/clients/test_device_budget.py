"""The device's own budget over a simulated store: its charges, and its behavior with damaged data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from case_files import case_text
from client_cases import CASES
from javascript import PACKAGE, answered, evaluated, run
from ldp_budget import Collection
from ldp_budget.registry.public_definition import digest_of

STORE = case_text("integration_device_budget.store.mjs")  # fmt: skip


def played(script: str, *definitions: dict[str, Any]) -> Any:
    given = f"const BUDGET = {json.dumps((PACKAGE / 'src' / 'budget.js').as_uri())};"
    made = f"const collections = {json.dumps(definitions)}.map((each) => new client.Client(each));"
    return evaluated(f"{given}{STORE}{made}{script}")


def definition(name: str, **guarantee: Any) -> dict[str, Any]:
    """That of a case, with other figures in its guarantee; None leaves one out."""
    made = Collection(name.replace(" ", "-"), CASES[name]).definition()
    figures = {**made["guarantee"], **guarantee}
    made["guarantee"] = {key: value for key, value in figures.items() if value is not ...}
    return {**made, "digest": digest_of(made)}


def test_memoized_answer_is_charged_once_if_all_its_reports_are_bounded() -> None:
    script = """
        const budget = await open({ lifetime: "9" });
        const said = [];
        for (const collection of collections) {
            for (let i = 0; i < 3; i++) await budget.randomize(collection, 3);
            said.push(await spent(budget));
        }
        console.log(JSON.stringify(said));
    """
    kept = definition("every kept bucket")
    of_one_report = definition("every kept bucket", answer_epsilon=...)
    assert played(script, kept, of_one_report) == ["1", "4"]


def test_another_definition_of_the_same_collection_is_charged_again() -> None:
    """Its program may be another one, of which nothing was charged."""
    again = definition("every kept bucket")
    again["title"] = "another"
    again["digest"] = digest_of(again)
    script = """
        const budget = await open({ lifetime: "9" });
        for (const collection of collections) await budget.randomize(collection, 3);
        console.log(JSON.stringify(await spent(budget)));
    """
    assert played(script, definition("every kept bucket"), again) == "2"


def test_budget_with_second_program_on_the_same_kept_draws_charges_nothing() -> None:
    """A definition with the fingerprint of another collection read the same kept draws: a report of each gave away
    the noise and the answer with it, for ε = 1 each."""
    script = """
        const budget = await open({ lifetime: "9" });
        const said = [];
        for (const collection of collections) said.push(await asks(budget, collection, 3));
        console.log(JSON.stringify([said, await spent(budget)]));
    """
    noise = definition("every kept bucket")
    noise["steps"] = [*noise["steps"][:-1], ["row", "flips"]]
    noise["digest"] = digest_of(noise)
    said, spent = played(script, definition("every kept bucket"), noise)
    assert said[0] == 1
    assert said[1].startswith("Unconfirmed: another program has read the draws")
    assert spent == "1"


def test_budget_with_program_without_noise_charges_nothing() -> None:
    """A definition that states ε = 1 and multiplies its noise by 0 was drawn and charged as ε = 1."""
    script = """
        const budget = await open({ lifetime: "9" });
        console.log(JSON.stringify([await asks(budget, collections[0], 3), await spent(budget)]));
    """
    leaks = definition("every kept bucket")
    leaks["steps"] = [*leaks["steps"][:-1], ["row", ["xor", ["onehot", "value", 5], ["mul", 0, "flips"]]]]
    leaks["digest"] = digest_of(leaks)
    said, spent = played(script, leaks)
    assert said.startswith("Unconfirmed: a report holds what is worked out of the answer without a draw")
    assert spent == "0"


UNREADABLE: list[dict[str, Any]] = [
    *({"delta": delta} for delta in (None, "", " ", [], "-0", "1", "2", 0, False, ...)),
    *({"epsilon": epsilon} for epsilon in (None, "", [], "0x1", " 1", True, {}, ...)),
    *({"answer_epsilon": epsilon} for epsilon in (None, "", "nan", "-1")),
]


@pytest.mark.parametrize("delta", ["1e-300", "1e-30", "1e-06", "0.5"])
def test_budget_counts_a_report_whatever_delta_is_stated(delta: str) -> None:
    script = """
        const budget = await open({ lifetime: "1.5" });
        const said = [];
        for (const answer of [3, 4]) said.push(await asks(budget, collections[0], answer));
        console.log(JSON.stringify([said, await spent(budget)]));
    """
    said, spent = played(script, definition("every bucket", delta=delta))
    assert said[0] == 1
    assert str(said[1]).startswith("OverBudget: over the budget of this device")
    assert spent == "1"


def test_guarantee_malformed_is_not_charged_and_nothing_is_drawn() -> None:
    definitions = [definition("every kept bucket", **each) for each in UNREADABLE]
    script = f"""
        const budget = await open({{ lifetime: "9" }});
        const said = [];
        for (const definition of {json.dumps(definitions)}) {{
            try {{
                said.push(await asks(budget, new client.Client(definition), 3));
            }} catch (error) {{
                said.push(`${{error.name}}: ${{error.message}}`);
            }}
        }}
        console.log(JSON.stringify([said, await spent(budget)]));
    """
    said, spent = played(script)
    assert [each for each in said if not str(each).startswith("TypeError: ")] == []
    assert (len(said), spent) == (len(UNREADABLE), "0")


DAMAGES = [
    "record.spent.lifetime = NaN",
    "record.spent.day = undefined",
    "record.spent = { lifetime: -1e9, day: -1e9, date: '2026-11-23' }",
    "record.limits.lifetime = '9'",
    "record.limits = {}",
    "record.spent = null",
    "record.spent.date = 7",
    "record.labels = undefined",
    "record.secret = 'zzzz'",
]


def test_record_damaged_refuses() -> None:
    script = f"""
        const said = [];
        for (const damage of {json.dumps(DAMAGES)}) {{
            stored.record = undefined;
            const budget = await open({{ lifetime: "9", day: "9" }});
            new Function("record", damage)(stored.record);
            const before = JSON.stringify(stored.record);
            said.push(await asks(budget, collections[0], 1));
            said.push(await open({{ lifetime: "9" }}).then(() => "opened", (error) => error.message));
            said.push(JSON.stringify(stored.record) === before);
        }}
        console.log(JSON.stringify(said));
    """
    said = played(script, definition("oue"))
    for place in range(len(DAMAGES)):
        asked, opened, same = said[3 * place : 3 * place + 3]
        assert "the record of this device's budget is damaged" in str(asked), DAMAGES[place]
        assert "the record of this device's budget is damaged" in opened
        assert same


def test_record_cleared_meanwhile_refuses_until_reopened() -> None:
    script = """
        const budget = await open({ lifetime: "1" });
        const first = await asks(budget, collections[0], 1);
        stored.record = undefined;
        const second = await asks(budget, collections[0], 1);
        const again = await open({ lifetime: "1" });
        console.log(JSON.stringify([first, second, budget.fresh, again.fresh]));
    """
    first, second, fresh, again = played(script, definition("oue"))
    assert (first, fresh, again) == (1, True, True)
    assert "the budget of this device was cleared" in second


def test_store_that_fails_draws_nothing() -> None:
    script = """
        const budget = await open({ lifetime: "9" });
        stored.fails = true;
        const full = await asks(budget, collections[0], 1);
        stored.fails = false;
        const before = await spent(budget);
        budget.close();
        console.log(JSON.stringify([full, before, await asks(budget, collections[0], 1)]));
    """
    full, before, closed = played(script, definition("oue"))
    assert (full, before) == ("QuotaExceededError: the disk is full", "0")
    assert closed.startswith("InvalidStateError")


def test_clock_restores_a_day_only_forward() -> None:
    script = """
        let today = "2026-11-23";
        const budget = await open({ lifetime: "9", day: "1" }, () => new Date(`${today}T10:00:00Z`));
        const said = [];
        for (today of ["2026-11-23", "2026-11-22", "1970-01-01", "2026-11-24", "2026-11-23"]) {
            said.push(await asks(budget, collections[0], 1) === 1);
        }
        today = "never";
        said.push((await asks(budget, collections[0], 1)).slice(0, 10));
        console.log(JSON.stringify(said));
    """
    assert played(script, definition("oue")) == [True, False, False, True, False, "RangeError"]


def test_secret_malformed_is_refused() -> None:
    secrets = ["zz" * 16, "0" * 33, "00" * 15, "", 7, "0 " * 32, None]
    asked = [{"answer": 3, "secret": secret} for secret in secrets]
    said = answered([{"collection": definition("every kept bucket")}, *asked])
    assert [each for each in said if "error" not in each] == []
    assert len(said) == len(secrets)


def test_label_needs_a_secret() -> None:
    source = f"""
        const made = new client.Client({json.dumps(definition("every kept bucket"))});
        const why = [];
        for (const secret of [undefined, null, new Uint8Array(15), "0123456789abcdef0123", [1, 2, 3]]) {{
            try {{ why.push(made.label(3, secret)); }} catch (error) {{ why.push(error.message); }}
        }}
        console.log(JSON.stringify(why));
    """
    said = evaluated(source)
    assert [each for each in said if "it needs a secret of at least 16 bytes, as a Uint8Array" not in each] == []


def test_device_vectors_agree() -> None:
    """Digests, answers, labels, amounts, and budgets; `test_browser.py` has the same with IndexedDB."""
    done = run(PACKAGE / "test" / "devices.mjs", PACKAGE.parent / "vectors" / "devices.json")
    assert done.stdout.endswith(" vectors, 0 wrong\n"), done.stdout + done.stderr
