"""Play a year of a weekly staff survey in a sandbox, and compare its figures with the truth: python year.py [WEEKS]

The new folder `year` gets the ledger, the answers and the reports. The staff have a seed. The noise, and the week in which
each person's turn comes, have none: so figures differ a little between two runs.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

from people import FIGURES, QUESTIONS, Person, draw, truth

FOLDER, SURVEY = Path("year"), Path(__file__).parent / "pulse.toml"
WEEKS, TURN, STAFF = int(sys.argv[1]) if len(sys.argv) > 1 else 52, 13, 1200
ANSWERS = STAFF * 3 // 4  # three of four people answer
DOWN, TWICE, CANTEEN, PHYSICIAN = 10, 12, 36, 38  # the weeks in which these happen


def run(*words, at=None):
    """What a command prints with --json."""
    given = ["ldp-budget", *words, *(["--at", at] if at else []), "--json"]
    done = subprocess.run([str(word) for word in given], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else sys.exit(done.stderr)


def friday(week, later=0):
    return (date(2026, 1, 9) + timedelta(7 * (week - 1) + later)).isoformat()


def write(name, rows):
    with open(FOLDER / name, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return FOLDER / name


def intervals(found):
    """(low, estimate, high) of each figure, from the JSON of `estimate`."""
    for question, names in QUESTIONS.items():
        row = found[question]
        for name in names:
            if name not in row:  # a share of the listed answers
                of = next(each for each in row["answers"] if each["answer"] == name)
                yield of["share_low"], of["share"], of["share_high"]
            else:
                yield row["low"], row[name], row["high"]


def mean_of(rows):
    return [statistics.mean(column) for column in zip(*rows, strict=True)]


FOLDER.mkdir()
os.environ["LDP_BUDGET_LEDGER"] = str(FOLDER / "year.db")

# Design: ε = 8 a year of each person, spent on many answers or on few.
print("asked every  ε of an answer  a week: answers, margin  13 weeks: answers, margin")
for rotate in (1, 2, 4, TURN):
    line = f"{rotate:2} weeks    {8 * rotate / 52:15.3f}"
    for people in (ANSWERS // 4 // rotate, ANSWERS // 4 * TURN // rotate):  # one of four questions
        plan = run("plan", "--answers", 2, "--epsilon", f"{8 * rotate / 52:.3f}", "--respondents", people)
        line += f"  {people:9}  ± {100 * plan['margin']:4.1f} points"
    print(line)

# Limits, the survey, and the year.
limits = ["lifetime=9", "85d=3", "attribute:health:85d=2"]
run("ledger", "init", "--sandbox")
run("policy", "set", "default", *(word for limit in limits for word in ("--limit", limit)), at=friday(0))
run("survey", "add", SURVEY, at=friday(0))
staff = [Person() for _ in range(STAFF)]
first, truths, files, windows = list(staff), [], [], []
left, erased, reports, refused = 0, 0, 0, 0
print()
for week in range(1, WEEKS + 1):
    leaving = draw.sample(staff, 3)
    staff = [each for each in staff if each not in leaving] + [Person() for _ in leaving]
    left += len(leaving)
    if week % 4 == 0:  # one of twelve who leave asks for erasure
        run("erase", leaving[0].name, "--unknown", "--yes", at=friday(week, -4))
        erased += 1
    answers = [(person, person.answers(week)) for person in staff]
    truths.append(truth([given for _, given in answers]))
    rows = [(who.name, (week - 1) // TURN + 1, *given) for who, given in answers if who.responds(given)]
    again = draw.sample(rows, len(rows) // 25)  # phones that send their answer twice
    table = write(f"{week:02}.csv", [("user", "quarter", *QUESTIONS), *rows, *again])
    files.append(FOLDER / f"{week:02}.reports")
    ask = ["randomize", "pulse", table, "--user-column", "user", "--public", "quarter", "--spend", "--once"]
    ask += ["--period", friday(week), "--out"]
    found = run(*ask, files[-1], at=friday(week, 3 if week == DOWN else 0))
    reports, refused = reports + found["reports"], refused + found["refused"]
    if week == DOWN:
        print(f"week {week}: the service is down; on Monday, {found['reports']} of {found['asked']} send a report")
    if week == TWICE:
        found = run(*ask, FOLDER / "again.reports", at=friday(week, 1))
        print(
            f"week {week}: run twice by mistake; {found['refused']} of {found['asked']} are refused a second charge"
        )
    if week in (CANTEEN, PHYSICIAN):
        people = write("asked.csv", [("user",), *((who.name,) for who in draw.sample(staff, 300))])
        name, tag = ("canteen", "purpose:canteen") if week == CANTEEN else ("physician", "attribute:health")
        charge = ["spend-many", people, "randomized-response", "--epsilon", 1, "--tag", tag, "--key", name]
        for attempt in ("asks 300", "asks again, after a lost connection"):
            found = run(*charge, at=friday(week, 1))
            print(f"week {week}: {name} {attempt}:", ", ".join(f"{found[k]} {k}" for k in list(found)[:3]))
    if week >= TURN:
        found = run("estimate", "pulse", *files[-TURN:], "--population", STAFF)
        windows.append((list(intervals(found)), mean_of(truths[-TURN:])))
print(f"{WEEKS} weeks: {left} leave, {left} join, {erased} are erased; {reports} reports, {refused} refused")

# Precision: figures of 13 weeks, renewed each week; figures of single weeks; figures of the four quarters.
weeks = []
for start in range(0, WEEKS - TURN + 1, TURN):
    found = run("estimate", "pulse", *files[start : start + TURN], "--by-round")
    for place in range(TURN):
        one = {question: found[question]["groups"][place] for question in QUESTIONS}
        weeks.append((list(intervals(one)), truths[start + place]))
for title, kept, people in (("13 weeks", windows, ANSWERS), ("1 week", weeks, ANSWERS // TURN)):
    design = run("plan", "--survey", SURVEY, "--respondents", people)["designs"][0]["questions"]
    planned = {each["name"]: each["population_margin"] for each in design}
    print(f"\n{title:18} planned  printed  largest error  mean error  truth inside")
    for place, name in enumerate(FIGURES):
        errors = [found[place][1] - true[place] for found, true in kept]
        printed = statistics.mean((found[place][2] - found[place][0]) / 2 for found, _ in kept)
        inside = sum(found[place][0] <= true[place] <= found[place][2] for found, true in kept)
        cells = [planned[name.split()[0]], printed, max(map(abs, errors)), statistics.mean(errors)]
        shown = [f"{each:.2f}" if place == 0 else f"{100 * each:.1f}" for each in cells]
        print(f"{name:17}  {shown[0]:>7}  {shown[1]:>7}  {shown[2]:>13}  {shown[3]:>10}  {inside:5} of {len(kept)}")

print()
whole = files[: len(files) // TURN * TURN]
found = run("estimate", "pulse", *whole, "--by", "quarter", "--independent")
for number in range(len(whole) // TURN):
    figures = list(intervals({question: found[question]["groups"][number] for question in QUESTIONS}))
    true = mean_of(truths[number * TURN : (number + 1) * TURN])
    shown = []
    for place in (FIGURES.index("voice"), FIGURES.index("strain")):
        low, share, high = (round(100 * each) for each in figures[place])
        shown.append(f"{FIGURES[place]} {share} % ({low} to {high}), truth {100 * true[place]:.0f} %")
    print(f"quarter {number + 1}:", "; ".join(shown))
for each in found["voice"]["differences"]:
    if (each["group"], each["other"]) == ("2", "3"):
        change, most, least = (round(-100 * each[name]) for name in ("difference", "low", "high"))
        print(f"voice, from quarter 2 to quarter 3: {change} points ({least} to {most})")

# What each person paid and can see; the report; the check of the ledger.
end = friday(WEEKS, 3)
people = write("stayed.csv", [("user",), *((who.name,) for who in first if who in staff)])
spent = sorted(each["limits"][0]["spent"]["epsilon"] for each in run("balance", "--users", people, at=end))
name = next(who.name for who in first if who in staff and not who.silent)
charges = run("statement", name, "--out", FOLDER / "statement.html", at=end)["charges"]
paid = sum(each["cost"]["epsilon"] for each in charges)
run("report", "pulse", *files[-TURN:], "--population", STAFF, "--out", FOLDER / "report.html", at=end)
verified = run("ledger", "verify", at=end)
state = "no problem" if verified["ok"] else "PROBLEMS"
size = sum(path.stat().st_size for path in FOLDER.glob("year.db*")) / 1e6
used = os.times().children_user + os.times().children_system
middle = statistics.median(spent)
print(
    f"\nspent by {len(spent)} people of all weeks: least {spent[0]:g}, median {middle:g}, most {spent[-1]:g}; limit 9"
)
print(f"statement of {name}: charges {len(charges)}, paid {paid:g}")
print(f"ledger: {verified['entries']} entries, {size:.1f} MB, verified: {state}; {used:.0f} s of processor time")
