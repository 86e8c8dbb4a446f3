"""`regress`: the regression of a formula, from report files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget._dataframes import Tabular
from ldp_budget.errors import InvalidParameter, NotSupported, UnknownName

from ..contributions import response_chances
from ..designs.questions import questions_of
from ..designs.survey_estimates import DesignOptions, SurveyFiles
from ..questionnaires.scales import IN_BOX
from .formulas import design_matrix, read_formula
from .hidden_covariate import hidden_covariate
from .likelihood import MultinomialModel
from .linear import by_normal_errors, linear
from .reading import read_respondents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ldp_budget.registry.collections import Collection

    from ..designs.questions import AskedQuestion
    from .linear import Coefficient
    from .reading import Respondents
    from .sample import Floats

LINEAR, LOGISTIC, MULTINOMIAL = MODELS = ("linear", "logistic", "multinomial")
MOST_ANSWERS = 50
"""The most answers of a multinomial model, and of a hidden term."""
_YES = ("yes", "true", "1", IN_BOX)


@dataclass(frozen=True)
class Regression(Tabular):
    """The result of a regression.

    Parameters:
        model: `linear`, `logistic` or `multinomial`.
        formula: the formula.
        outcome: what the coefficients are of: a question, or a public column.
        reports: the number of respondents who answered all questions of the formula.
        reference: the answer with which a logistic or multinomial model compares; None in a linear model.
        shares: the weighted share of each modelled answer of a hidden outcome, by moments: it needs no model.
        freedom: the degrees of freedom.
        coefficients: for each modelled answer (None of a number) its coefficients.
    """

    model: str
    formula: str
    outcome: str
    reports: int
    reference: str | None
    shares: dict[str, float]
    freedom: int
    coefficients: tuple[tuple[str | None, Coefficient], ...]

    @property
    def caption(self) -> str:
        """The model, its formula and the number of respondents."""
        return f"{self.formula}, {self.model}; {self.reports} respondents; 95 % intervals"

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each coefficient."""
        rows: list[dict[str, Any]] = self.to_json()["coefficients"]
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return what `regress --json` prints. An infinite end, and an infinite estimate with its error, is None."""
        several = len({answer for answer, _ in self.coefficients}) > 1
        rows: list[dict[str, Any]] = []
        for answer, each in self.coefficients:
            row = {name: value if np.isfinite(value) else None for name, value in list(each._asdict().items())[1:]}
            named = {} if answer is None else {"answer": answer, "term": each.name}
            rows.append({"name": f"{answer}: {each.name}" if several else each.name, **row, **named})
        whole = {name: value for name, value in vars(self).items() if name != "coefficients"}
        return {**whole, "coefficients": rows}


class _Outcome(NamedTuple):
    """The outcome: a question, perhaps one of its answers; or a public column."""

    question: AskedQuestion | None
    answer: str | None
    name: str


def regress(
    survey: Collection,
    files: Sequence[str],
    formula: str,
    *,
    model: str | None = None,
    design: DesignOptions | None = None,
    level: float = 0.95,
    mixed: bool = False,
) -> Regression:
    """Return the regression of a formula such as `smoke ~ age + region`.

    The outcome is a question of the survey, one of its answers (`QUESTION.ANSWER`; of a collection `ANSWER`), or a public column
    of numbers. The terms are public columns and, in a linear model, questions with categories.

    Parameters:
        survey: the collection or survey of the reports.
        files: paths or URLs of report files. Several files are of the same people, unless `design.independent`.
        formula: the formula, as R writes it.
        model: `linear`, `logistic` or `multinomial`; None for that of the outcome: logistic for two answers or a single one,
            multinomial for more, linear for a number or with a hidden term.
        design: weights, strata and clusters.
        level: the confidence level of the intervals.
        mixed: True to allow that some reports were charged to their users and others were not.

    Raises:
        InvalidParameter: the formula, the model or a column does not fit the reports.
        NotSupported: there are too few reports, a term depends on others, or a mechanism lacks what the model needs.
        UnknownName: the outcome is neither a question nor a public column.
        ReportFileError: a file cannot be read.
    """
    design = design or DesignOptions()
    if survey.mechanism.repeats and len(files) > 1:
        raise NotSupported(
            f"{survey.name} memoizes, so reports of the same users in several files are not independent",
            hint="Use each file by itself.",
        )
    source = SurveyFiles(survey, files, mixed=mixed)
    public, asked = source.public(), {each.name: each for each in questions_of(survey)}
    read = read_formula(formula, public, list(asked))
    outcome = _outcome(read.outcome, asked, public)
    hidden = [_hidden(asked[name], outcome) for name in read.hidden]
    chosen = _model(model, outcome, hidden=bool(hidden))
    questions = [*([] if outcome.question is None else [outcome.question]), *hidden]
    _check_apart(questions)
    if not questions:
        raise InvalidParameter("formula", f"a question as outcome or term ({', '.join(asked)})", formula)
    likely = chosen != LINEAR and outcome.answer is None
    found = read_respondents(source, questions, design, likely=likely)
    x, names = design_matrix(read, public, found.cells, found.people)
    x = x[found.cell]
    fitted = _linear if chosen == LINEAR else _logit
    reference, freedom, rows = fitted(found, x, names, outcome, hidden, level)
    shares = {} if outcome.question is None else _shares(found, outcome, {answer for answer, _ in rows})
    reports = int(found.sample.counts.sum())
    return Regression(chosen, formula, outcome.name, reports, reference, shares, freedom, tuple(rows))


# -- what to fit -----------------------------------------------------------------------------------------------------


def _outcome(name: str, asked: Mapping[str, AskedQuestion], public: Sequence[str]) -> _Outcome:
    if name in asked:
        return _Outcome(asked[name], None, name)
    for question in asked.values():
        start = "" if question.place is None else f"{question.name}."
        for answer in question.answers or ():
            if name in (start + answer, f"{question.name}.{answer}", f"{question.name}/{answer}"):
                return _Outcome(question, answer, name)
    if name in public:
        return _Outcome(None, None, name)
    raise UnknownName("outcome", name, (*asked, *public))


def _hidden(question: AskedQuestion, outcome: _Outcome) -> AskedQuestion:
    if outcome.question is question:
        raise InvalidParameter("formula", "an outcome that is not a term", question.name)
    if question.answers is None or not 2 <= len(question.answers) <= MOST_ANSWERS or _several(question):
        expected = f"hidden terms with 2 to {MOST_ANSWERS} answers, of which each respondent holds one"
        raise InvalidParameter("formula", expected, question.name)
    return question


def _check_apart(questions: Sequence[AskedQuestion]) -> None:
    """Raise `InvalidParameter` for two items of one grid: their noises depend on each other, so products are biased."""
    for place, each in enumerate(questions):
        for other in questions[:place]:
            if each.item is not None and each.place == other.place:
                expected = f"{other.name} and {each.name} in different formulas, because one report holds both"
                raise InvalidParameter("formula", expected, "both")


def _several(question: AskedQuestion) -> bool:
    """True if a respondent may hold several answers: ticks."""
    return hasattr(question.mechanism, "for_ticks")


def _model(model: str | None, outcome: _Outcome, *, hidden: bool) -> str:
    """Return the model of an outcome. Raises `InvalidParameter` if the requested one does not fit it."""
    question, answer = outcome.question, outcome.answer
    if model not in (None, *MODELS):
        raise InvalidParameter("model", f"one of {', '.join(MODELS)}", model)
    if question is None or question.answers is None or hidden or model == LINEAR:
        if model not in (None, LINEAR):
            raise InvalidParameter("model", f"linear with {'a hidden term' if hidden else 'a number'}", model)
        return LINEAR
    if answer is not None:
        [(p, _)] = response_chances(question.mechanism, len(question.answers))[question.answers.index(answer) :][:1]
        if model == MULTINOMIAL or (model == LOGISTIC and p is None):
            why = "" if p is not None else f", because a report says more of {answer} than 0 or 1"
            raise InvalidParameter("model", f"linear for one answer{why}", model)
        return LINEAR if p is None else LOGISTIC
    if _several(question):
        expected = (
            f"one answer as outcome, such as {question.name}.{question.answers[0]}, because people hold several"
        )
        raise InvalidParameter("formula", expected, question.name)
    if len(question.answers) > MOST_ANSWERS:
        expected = f"one answer as outcome, such as {question.name}.{question.answers[0]}, or a linear model"
        raise InvalidParameter("formula", expected, f"{question.name} with {len(question.answers)} answers")
    fits = LOGISTIC if len(question.answers) == 2 else MULTINOMIAL
    if model not in (None, fits, MULTINOMIAL):
        raise InvalidParameter("model", f"multinomial or linear for {len(question.answers)} answers", model)
    return fits


def _order(answers: Sequence[str]) -> list[int]:
    """Return the answers with the reference first: the first one, or of two the one that is not yes."""
    return [1, 0] if len(answers) == 2 and answers[0].casefold() in _YES else list(range(len(answers)))


# -- the models ------------------------------------------------------------------------------------------------------

_Rows = list[tuple[str | None, "Coefficient"]]


def _linear(
    found: Respondents,
    x: Floats,
    names: Sequence[str],
    outcome: _Outcome,
    hidden: Sequence[AskedQuestion],
    level: float,
) -> tuple[None, int, _Rows]:
    rows: _Rows = []
    freedom = 0
    for answer, y in _linear_outcomes(found, outcome):
        if hidden:
            parts, terms = [], []
            for each in hidden:
                order = _order(each.answers or ())[1:]
                parts.append(found.contributions[each.name][:, order])
                terms += [f"{each.name}[T.{(each.answers or ())[place]}]" for place in order]
            own, freedom = hidden_covariate(y, parts, x, found.sample, [*terms, *names], level)
        else:
            fit = linear(x, y, found.sample, names)
            own, freedom = by_normal_errors(fit, names, level), fit.freedom
        rows += [(answer, each) for each in own]
    return None, freedom, rows


def _linear_outcomes(found: Respondents, outcome: _Outcome) -> list[tuple[str | None, Floats]]:
    """Return the outcomes of the linear models: of two answers the second of `_order`, of more each one."""
    if outcome.question is None:
        return [(None, found.numbers(outcome.name))]
    z, answers = found.contributions[outcome.question.name], outcome.question.answers
    if answers is None:
        return [(None, z[:, 0])]
    if outcome.answer is not None:
        places = [answers.index(outcome.answer)]
    else:
        places = _order(answers)[1:] if len(answers) == 2 else list(range(len(answers)))
    return [(answers[place], z[:, place]) for place in places]


def _logit(
    found: Respondents,
    x: Floats,
    names: Sequence[str],
    outcome: _Outcome,
    hidden: Sequence[AskedQuestion],
    level: float,
) -> tuple[str | None, int, _Rows]:
    assert outcome.question is not None
    answers = outcome.question.answers or ()
    if outcome.answer is not None:
        place = answers.index(outcome.answer)
        p, q = response_chances(outcome.question.mechanism, len(answers))[place]
        assert p is not None
        assert q is not None
        says = np.rint(q + (p - q) * found.contributions[outcome.question.name][:, [place]])
        likelihood, reference, others = np.where(says == 1, (q, p), (1 - q, 1 - p)), f"not {outcome.answer}", [place]
    else:
        order = _order(answers)
        likelihood, reference, others = found.likelihood[:, order], answers[order[0]], order[1:]
    labels = [(answers[place], name) for place in others for name in names]
    model = MultinomialModel(likelihood, x, found.sample, [name for _, name in labels])
    rows: _Rows = [(answer, each) for (answer, _), each in zip(labels, model.coefficients(level), strict=True)]
    return reference, model.freedom, rows


def _shares(found: Respondents, outcome: _Outcome, modelled: set[str | None]) -> dict[str, float]:
    assert outcome.question is not None
    answers = outcome.question.answers or ()
    means = found.mean(found.contributions[outcome.question.name]).tolist()
    return {answer: share for answer, share in zip(answers, means, strict=False) if answer in modelled}
