"""The made-up staff of the study: who they are, who answers, and the true answers. All is drawn with one seed."""

import random
import statistics

QUESTIONS = {
    "workload": ["mean"],
    "voice": ["top_box"],
    "blocker": ["tools", "staffing", "meetings", "nothing"],
    "strain": ["yes"],
}
"""What is estimated of each question."""
FIGURES = [question if len(of) == 1 else f"{question} {each}" for question, of in QUESTIONS.items() for each in of]
REORGANIZED = 27
"""The week from which on the staff answer differently."""
draw = random.Random(2026)  # a seed is for made-up people, never for reports


class Person:
    """A member of staff. Dispositions stay; the answers of each week vary around them."""

    made = 0

    def __init__(self):
        Person.made += 1
        self.name = f"p{Person.made:04}"
        self.silent = draw.random() < 0.08  # never answers
        self.load, self.openness, self.health = (draw.gauss(0, 1) for _ in range(3))

    def answers(self, week):
        """The true answers to the four questions."""
        after = week >= REORGANIZED
        load = 6.2 - 0.9 * after + 1.6 * self.load + draw.gauss(0, 1.2)
        voice = 3.8 - 0.7 * after + 0.9 * self.openness + draw.gauss(0, 0.6)
        blocker = draw.choices(QUESTIONS["blocker"], (20, 40, 25, 15) if after else (25, 20, 25, 30))[0]
        strain = self.health + draw.gauss(0, 0.5) > (0.7 if after else 1.0)
        return round(min(10, max(0, load))), round(min(5, max(1, voice))), blocker, "yes" if strain else "no"

    def responds(self, answers):
        """True if the person answers if asked: people under strain do so less often."""
        return not self.silent and draw.random() < (0.70 if answers[3] == "yes" else 0.82)


def truth(answers):
    """The seven figures among all staff: a mean and six shares."""
    number = len(answers)
    shares = [sum(each[2] == name for each in answers) for name in QUESTIONS["blocker"]]
    shares = [sum(each[1] >= 4 for each in answers), *shares, sum(each[3] == "yes" for each in answers)]
    return [statistics.mean(each[0] for each in answers), *(share / number for share in shares)]
