"""An XLSForm (ODK, Kobo, SurveyCTO) as a survey file. What cannot be asked with noise is named with the reason, never dropped."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter, LdpBudgetError, NotSupported, TableError
from ldp_budget.guarantees.fixed_point import printed_up
from ldp_budget.registry.plugins import mechanism

from ..questionnaires.survey_questions import GRID, SCALE, TICK, YES_NO
from ..questionnaires.survey_tables import canonical, question_in
from ..questionnaires.surveys import FORMAT, VERSION, Survey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

MOST_ANSWERS = 1_000
MOST_STEPS = 12
"""The most answers of a range that is asked as a scale."""
_BOUND = re.compile(r"\(?\s*\.\s*(>=|<=|>|<)\s*(-?\d+(?:\.\d+)?)\s*\)?")
_TICKS = re.compile(r"\s*count-selected\(\s*\.\s*\)\s*(<=|<)\s*(\d+)\s*")
_TAG = re.compile(r"\(([A-Za-z]{2,3}(?:-[A-Za-z0-9]+)*)\)\s*$")
_ONE, _SEVERAL, _NUMBERS = "select one", "select all that apply", ("integer", "decimal", "range")
_PERSON = (
    "start",
    "end",
    "today",
    "deviceid",
    "phonenumber",
    "username",
    "email",
    "simserial",
    "subscriberid",
    "audit",
)


class _NotAskedError(Exception):
    """Why a question of the form cannot be asked."""


def read_xlsform(path: str | PathLike[str], epsilon: Decimal) -> tuple[str, list[str]]:
    """Return the text of a survey file with the questions of a form that can be asked, and notes on all else.

    Parameters:
        path: an XLSForm, `.xlsx` or `.xls`.
        epsilon: the ε of one person's answers.

    Raises:
        NotSupported: pyxform is not installed.
        TableError: the file is no XLSForm, or no question of it can be asked.
        InvalidParameter: the questions cannot be asked together at this ε.
    """
    try:
        from pyxform.errors import PyXFormError
        from pyxform.xls2json import workbook_to_json
        from pyxform.xls2json_backends import get_xlsform
    except ImportError:
        hint = "Install it: pip install 'ldp-budget[xlsform]'"
        raise NotSupported("XLSForms need the package pyxform", hint=hint) from None
    place = str(path)
    try:
        with open(path, "rb") as file:
            file.read(1)
        form = workbook_to_json(get_xlsform(path), fallback_form_name=Path(path).stem, warnings=[])
    except OSError as error:
        raise TableError(place, f"the form cannot be read: {error.strerror}") from None
    except (PyXFormError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TableError(place, f"this is no XLSForm: {' '.join(str(error).split())}") from None
    reader = _Reader(place, epsilon, form.get("default_language", ""))
    reader.read(form["children"], ())
    if not reader.questions:
        why = "".join(f"\n{note}" for note in reader.notes)
        raise TableError(place, f"no question of the form can be asked with noise{why}")
    head = {"name": re.sub(r"[^\w.-]+", "-", form["id_string"]).strip("-") or "form", "title": form.get("title", "")}
    head["epsilon"] = str(epsilon)
    definition = {"format": FORMAT, "version": VERSION, **head, "questions": canonical(reader.questions)}
    survey = Survey.from_json(definition, place).with_best_joint()  # as `survey add` reads the file
    survey.questionnaire()
    equal = printed_up(survey.epsilons()[0])
    return _toml(head, reader.questions), [*reader.notes, *(_one_sided(*each, equal) for each in reader.garbled)]


class _Reader:
    """Reader of the rows of a form: its `questions`, as tables of a survey file, `notes` on other rows, and garbled questions."""

    def __init__(self, place: str, epsilon: Decimal, language: str) -> None:
        self.place, self.epsilon, self.language = place, epsilon, language
        self.questions: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.garbled: list[tuple[str, Any]] = []

    def read(self, rows: Sequence[Mapping[str, Any]], path: tuple[str, ...]) -> None:
        """Take the questions of some rows, and note the others; `path` is their group."""
        for row in rows:
            name = "/".join((*path, row.get("name", "?")))
            try:
                if row["type"] == "group":
                    self._group(row, (*path, row["name"]), name)
                elif (table := self._question(row)) is not None:
                    self._take(table, name)
                    if row.get("garbling"):
                        self.garbled.append((name, row["garbling"]))
            except _NotAskedError as why:
                self.notes.append(f"not asked  {name}: {why}")

    def _take(self, table: dict[str, Any], name: str) -> None:
        """Take a question if a survey file takes it."""
        if any(table["name"] == each["name"] for each in self.questions):
            raise _NotAskedError("another question has this name: rename one of them")
        try:
            question_in(canonical(table), 1, self.place).build(self.epsilon)
        except LdpBudgetError as error:
            raise _NotAskedError(str(error).removeprefix(f"{self.place}: [[question]] 1 ")) from None
        self.questions.append(table)

    def _group(self, row: Mapping[str, Any], path: tuple[str, ...], name: str) -> None:
        if relevant := row.get("bind", {}).get("relevant"):
            raise _NotAskedError(_shown_only(relevant))
        rows = [each for each in row["children"] if each.get("control", {}).get("appearance") != "label"]
        items = [each for each in rows if each.get("control", {}).get("appearance") == "list-nolabel"]
        lists = {each.get("itemset") for each in items}
        if (
            len(items) < 2
            or len(lists) > 1
            or any(each["type"] != _ONE or _why_not(each) or each.get("garbling") for each in items)
        ):
            self.read(rows, path)
            return
        notes = [each for each in rows if each["type"] == "note"]
        asked, label = self._question(items[0]), row.get("label") or (notes[0].get("label") if notes else "")
        assert asked is not None
        words = self._words(label, items=items)
        for tag, own in asked["languages"].items():
            if "categories" in own:
                words.setdefault(tag, {})["categories"] = own["categories"]
        table = {"name": row["name"], "text": self._first(label), "kind": GRID}
        table |= {"items": [each["name"] for each in items], "categories": asked.get("categories", ["yes", "no"])}
        self._take(table | _optional(*items) | {"languages": words}, name)
        self.read([each for each in rows if each not in items and each not in notes], path)

    def _question(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the table of a question; None for a row that asks nothing. Raises `_NotAskedError`."""
        kind, bind, label = row["type"], row.get("bind", {}), row.get("label")
        if why := _why_not(row):
            raise _NotAskedError(why)
        if kind == "note" or row.get("name") == "instanceID":
            return None
        words, table = self._words(label), {"name": row["name"], "text": self._first(label)}
        if kind in (_ONE, _SEVERAL):
            choices = row["choices"]
            names = [str(each["name"]) for each in choices]
            if kind == _ONE and sorted(names) == ["no", "yes"]:
                table["kind"] = YES_NO
                choices = sorted(choices, key=lambda each: str(each["name"]), reverse=True)
            else:
                table |= {"categories": names} if kind == _ONE else {"kind": TICK, "categories": names}
            words = self._words(label, categories=choices)
            if (
                any(str(each.get("label", name)) != name for each, name in zip(row["choices"], names, strict=True))
                and not words
            ):
                self.notes.append(
                    f"not kept   {row['name']}: labels without a language: head their columns label::English (en)"
                )
            condition = str(bind.get("constraint", ""))
            if (limit := _TICKS.fullmatch(condition)) and kind == _SEVERAL:
                table["at_most"] = int(limit[2]) - (limit[1] == "<")
            elif condition:
                self.notes.append(f"not kept   {row['name']}: the condition {condition}")
            return table | _optional(row) | {"languages": words}
        low, high, step = _range(row)
        steps = (high - low) / step if step else Decimal(0)
        if not step or steps >= MOST_STEPS or steps != int(steps):
            if _optional(row):
                self.notes.append(
                    f"changed    {row['name']}: must be answered, because a number has no place for a blank"
                )
            table |= {"kind": "number", "lower": low, "upper": high}
        elif step == 1 and low == int(low):
            table |= {"kind": SCALE, "lower": low, "upper": high, "report": "shares"} | _optional(row)
        else:
            table |= {"categories": [f"{low + step * each:f}" for each in range(int(steps) + 1)]} | _optional(row)
        return table | {"languages": words}

    def _words(self, label: Any, **lists: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the table `languages` of a question: its label, and the labels of `categories` or `items` where all have one."""
        words: dict[str, dict[str, Any]] = {tag: {"text": text} for tag, text in self._texts(label).items()}
        for key, rows in lists.items():
            texts = [self._texts(each.get("label")) for each in rows]
            for tag in texts[0]:
                if all(tag in each for each in texts):
                    words.setdefault(tag, {})[key] = [each[tag] for each in texts]
        return words

    def _texts(self, label: Any) -> dict[str, str]:
        """Return the texts of a label by language tag."""
        given = label if isinstance(label, dict) else {self.language: label or ""}
        found = {
            (_TAG.search(self.language if name == "default" else name) or ("", ""))[1]: str(text)
            for name, text in given.items()
        }
        return {tag: text for tag, text in found.items() if tag and text}

    def _first(self, label: Any) -> str:
        return (
            str(label.get(self.language) or next(iter(label.values())))
            if isinstance(label, dict)
            else str(label or "")
        )


def _why_not(row: Mapping[str, Any]) -> str:
    """Return why a row cannot be asked; empty if it can, or asks nothing."""
    kind, bind = row["type"], row.get("bind", {})
    if "random()" in str(bind.get("calculate", "")):
        return "random() of a form can be predicted, and the form keeps the answer beside it: remove it"
    if kind in _PERSON:
        return f"{kind} would identify the respondent"
    if kind == "note" or row.get("name") == "instanceID":
        return ""
    if kind in ("repeat", "loop"):
        return "the number of repetitions would tell an answer: ask once, or ask for the number"
    if relevant := bind.get("relevant"):
        return _shown_only(relevant)
    if kind not in (_ONE, _SEVERAL, *_NUMBERS):
        return f"no mechanism randomizes the type {kind}: ask for a choice or for a number with both bounds"
    if kind in (_ONE, _SEVERAL) and (row.get("choice_filter") or not row.get("choices")):
        return "its choices depend on another answer or are in another file: list them in the form"
    if len(row.get("choices", ())) > MOST_ANSWERS:
        return f"{len(row['choices'])} answers are too many, at most {MOST_ANSWERS}: noise would cover all of them"
    return ""


def _shown_only(relevant: str) -> str:
    return f"it is shown only if {relevant}, so who answers tells an answer: ask everybody, with an answer such as 'does not apply'"


def _optional(*rows: Mapping[str, Any]) -> dict[str, bool]:
    required = all(
        str(each.get("bind", {}).get("required", "")).lower() in ("yes", "true", "true()") for each in rows
    )
    return {} if required else {"optional": True}


def _range(row: Mapping[str, Any]) -> tuple[Decimal, Decimal, Decimal | None]:
    """Return the ends of a number, and the step of a range. Raises `_NotAskedError`."""
    if row["type"] == "range":
        given = {"start": "1", "end": "10", "step": "1"} | row.get("parameters", {})
        return Decimal(given["start"]), Decimal(given["end"]), Decimal(given["step"])
    ends: dict[str, Decimal] = {}
    for part in str(row.get("bind", {}).get("constraint", "")).split(" and "):
        if (found := _BOUND.fullmatch(part.strip())) is None:
            ends = {}
            break
        one = 1 if row["type"] == "integer" and len(found[1]) == 1 else 0
        ends[found[1][0]] = Decimal(found[2]) + (one if found[1][0] == ">" else -one)
    if set(ends) != {"<", ">"}:
        raise _NotAskedError("a number needs both bounds and no other condition: constraint '. >= LOW and . <= HIGH'")
    return ends[">"], ends["<"], None


def _one_sided(name: str, garbling: Mapping[str, Any], equal: str) -> str:
    """Return what the form promised by garbling, and what is asked in its place."""
    kept = garbling.get("answer", "one answer")
    try:
        eta = printed_up(mechanism("one-sided")(g=str(garbling.get("rate"))).guarantee.eta)  # type: ignore[attr-defined]
        odds = f"η = ln(1/{garbling['rate']}) = {eta} for {kept!r}; ε = {eta} would give all answers these odds"
    except InvalidParameter:
        odds = f"but its rate is no probability: {garbling.get('rate')}"
    return (
        f"replaced   {name}: garbling turns other answers into {kept!r}, and a recorded other answer is certain: ε = ∞, which no "
        f"limit counts. One-sided: {odds}. Asked with noise in both directions, at ε = {equal}"
    )


def _toml(head: Mapping[str, Any], questions: Sequence[Mapping[str, Any]]) -> str:
    def value_of(key: str, value: Any) -> str:
        if isinstance(value, Decimal):
            return f"{value:f}"
        return str(value) if key == "epsilon" else json.dumps(value, ensure_ascii=False)

    def lines(table: Mapping[str, Any]) -> Iterator[str]:
        for key, value in table.items():
            if value != "":
                yield f"{key} = {value_of(key, value)}".replace("\x7f", "\\u007f")

    written = ["[survey]", *lines(head)]
    for each in questions:
        table = dict(each)
        languages, section = table.pop("languages"), "grid" if table.get("kind") == GRID else "question"
        if section == GRID:
            del table["kind"]
        written += ["", f"[[{section}]]", *lines(table)]
        for tag, words in languages.items():
            written += ["", f"[{section}.languages.{json.dumps(tag)}]", *lines(words)]
    return "\n".join(written) + "\n"
