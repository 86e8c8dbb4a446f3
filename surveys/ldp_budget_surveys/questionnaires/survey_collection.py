"""Collections of surveys: a questionnaire with its texts, of which each user is asked some questions."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ldp_budget._tags import ANY
from ldp_budget._validation import check_instance, check_name, check_user, check_whole, shown
from ldp_budget.errors import InvalidParameter, NotSupported, UnknownName
from ldp_budget.registry.collections import Collection, with_seed

from .question_selection import chosen_questions, mask_of, random_seed, seed_of
from .questionnaire import Questionnaire, composed
from .surveys import Survey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.mechanism import Mechanism

_MOST_USERS = 10**7


@dataclass(frozen=True, repr=False)
class SurveyCollection(Collection):
    """The collection of a survey. Make one with `survey_collection`.

    Parameters:
        survey: the survey as people see it. Its minimum group is that of the collection, and the client's digest covers it.

    Raises:
        InvalidParameter: the survey has another name, or other questions, than the mechanism.
    """

    mechanism_type: ClassVar[type[Mechanism] | None] = Questionnaire
    mechanism: Questionnaire
    survey: Survey = field(kw_only=True)
    """The survey as people see it."""

    def __post_init__(self) -> None:
        check_instance("mechanism", self.mechanism, Questionnaire, "a questionnaire")
        check_instance("survey", self.survey, Survey, "a `Survey`")
        asks = [self.survey.name, *((each.name, each.categories, each.item_names) for each in self.survey.slots)]
        own = [(each.name, each.categories, each.items) for each in self.mechanism.questions]
        if asks != [self.name, *own]:
            raise InvalidParameter(
                "survey", "of the same name and questions as the collection", shown(self.survey.name)
            )
        object.__setattr__(self, "minimum_group", self.survey.minimum_group)
        super().__post_init__()

    def _more_json(self) -> dict[str, Any]:
        return {"survey": self.survey.to_json()}

    @classmethod
    def _more_in(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        return {"survey": Survey.from_json(data["survey"])}

    def _new_definition(self) -> dict[str, Any]:
        return self.survey.definition(self.fingerprint, self.mechanism)

    @functools.cached_property
    def losses(self) -> dict[str, Guarantee]:
        """What a row says about each tag: the composition of the questions that depend on it, or have no tags.

        The slots of a row are randomized one by one, and which are asked depends on no answer. So the tags are those of
        what each slot randomizes, such as all questions of a joint report.
        """
        asked = [
            (said.depends_on, question.mechanism.guarantee)
            for said, question in zip(self.survey.slots, self.mechanism.questions, strict=True)
        ]
        tags = sorted({tag for depends_on, _ in asked for tag in depends_on})
        parts = {tag: [each for depends_on, each in asked if not depends_on or tag in depends_on] for tag in tags}
        unknown = [each for depends_on, each in asked if not depends_on]
        if tags and unknown:
            parts[ANY] = unknown
        return {tag: composed(part, min(self.mechanism.ask, len(part))) for tag, part in parts.items()}

    def question(self, name: str) -> Collection:
        """A question of a survey as a collection of its own, for its estimate.

        Parameters:
            name: the name of the question.

        Raises:
            UnknownName: the collection has no such question.
            InvalidParameter: `name` is not a text.
        """
        check_name("name", name)
        asked = self.mechanism.views
        for question in asked:
            if question.name == name:
                return Collection(name, question.mechanism, question.categories, sandbox=self.sandbox)
        raise UnknownName("question", name, [question.name for question in asked])

    def select_questions(self, values: NDArray[Any], users: Sequence[str] | None = None) -> NDArray[Any]:
        """The same answers to a survey, with the questions that each respondent is asked; see `question_selection`.

        Parameters:
            values: the answers, as `read_values` returns them.
            users: the name of each respondent; None to draw the questions at random.

        Raises:
            InvalidParameter: `values` are not such answers, or `users` are not as many names.
        """
        expected = self.mechanism.value_type
        if getattr(values, "ndim", 0) != 1 or values.dtype != expected:
            raise InvalidParameter("values", "answers as `read_values` returns them", shown(values))
        masks = self.masks(len(values) if users is None else users)
        if len(masks) != len(values):
            raise InvalidParameter("users", f"{len(values)} names, one for each respondent", f"{len(masks)} names")
        chosen = values.copy()
        chosen["asked"] = masks
        return chosen

    def seed(self, user: str) -> bytes:
        """The seed that selects the questions of a user; see `question_selection`.

        Parameters:
            user: the name of the user.

        Raises:
            InvalidParameter: `user` is not a name.
        """
        return seed_of(bytes.fromhex(self.fingerprint), check_user(user))

    def masks(self, users: Sequence[str] | int) -> list[int]:
        """The bit mask of the questions that each user is asked; for a number, of as many users without a name.

        Parameters:
            users: the names of the users, or their number.

        Raises:
            InvalidParameter: `users` are neither names nor a number.
        """
        from ldp_budget._dataframes import check_texts

        questions, ask = len(self.mechanism.questions), self.mechanism.ask
        if isinstance(users, int):
            seeds = [random_seed() for _ in range(check_whole("users", users, most=_MOST_USERS))]
        else:
            seeds = [self.seed(user) for user in check_texts("users", users, "a list of user names, or their number")]
        return [mask_of(chosen_questions(seed, questions, ask)) for seed in seeds]

    def check_sender(self, user: str, report: bytes) -> None:
        super().check_sender(user, report)
        asked = int.from_bytes(report[: self.mechanism.mask_bytes], "little")
        if asked != self.masks([user])[0]:
            raise NotSupported(
                "the report answers other questions than the ones selected for this user",
                hint="Select the questions as docs/reference/questionnaires.md says.",
            )


def rotating(collection: Collection) -> Survey | None:
    """Return the survey of a collection if it has a rotation; else None.

    Parameters:
        collection: any collection.
    """
    return collection.survey if isinstance(collection, SurveyCollection) and collection.survey.rotate else None


def survey_collection(survey: Survey, known: Collection | None = None) -> SurveyCollection:
    """Return the collection of a survey: its questionnaire with the texts.

    Seeds of public hash functions are drawn from the operating system.

    Parameters:
        survey: the survey.
        known: the stored survey of this name, whose seeds are used again.

    Raises:
        InvalidParameter: a question has no mechanism, or its ε is above that of the survey.
    """
    check_instance("survey", survey, Survey, "a `Survey`")
    questionnaire = _with_seeds(survey.questionnaire(), None if known is None else known.mechanism)
    made = SurveyCollection(survey.name, questionnaire, None, survey.about(), survey=survey)
    return replace(made, client=made._new_definition()["digest"])


def _with_seeds(questionnaire: Questionnaire, known: Mechanism | None) -> Questionnaire:
    """Return a questionnaire with a seed for each question that needs one; a survey has no option for it.

    `known` is the questionnaire that is already stored.
    """
    stored = {question.name: question.mechanism for question in getattr(known, "questions", ())}
    questions = []
    for question in questionnaire.questions:
        drawn = with_seed(type(question.mechanism), {}, stored.get(question.name))
        questions.append(replace(question, mechanism=question.mechanism.replace(**drawn)) if drawn else question)
    return questionnaire.replace(questions=questions)
