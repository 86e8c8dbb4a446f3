"""Templates of `ldp-budget plugin new`: a distribution with a mechanism for one of k answers, or for a number."""

from __future__ import annotations

import keyword
import re
import sys
from string import Template

import click

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PREFIX = "ldp-budget-"

_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "$distribution"
version = "0.1.0"
description = "A mechanism for ldp-budget"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["ldp-budget$bounds"]

[project.optional-dependencies]
test = ["ldp-budget[testing]$bounds"]

# This is how ldp-budget finds the module that registers the mechanism.
[project.entry-points.ldp_budget]
$name = "$module"

[tool.hatch.build.targets.wheel]
packages = ["src/$module"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["src"]
"""

_FREQUENCY = '''\
"""$title: k-ary randomized response, to begin with."""

from fractions import Fraction
from functools import cached_property

from ldp_budget import Comparison, FrequencyMechanism, NotSupported, hookimpl
from ldp_budget.sdk.parameters import integer, real
from ldp_budget.guarantees import Pure
from ldp_budget.guarantees.fixed_point import exp_down
from ldp_budget.sampling import ONE, threshold


class $title(FrequencyMechanism):
    """The answer with probability p = e^ε/(e^ε+k-1), else one of the k-1 others, each as likely."""

    name = "$name"
    summary = "the answer, or now and then another one"
    source = "Warner, JASA 1965; Kairouz, Bonawitz and Ramage, ICML 2016"
    examples = ({"epsilon": 1, "domain_size": 5}, {"epsilon": "0.2", "domain_size": 2})

    epsilon = real("privacy loss of one report", at_least=1e-6, at_most=40)
    domain_size = integer("number of possible answers, k", at_least=2, at_most=10**6)

    @cached_property
    def keep(self):
        """p in units of 2**-64, rounded down, so that the loss is at most epsilon."""
        odds = Fraction(exp_down(self.epsilon))
        return threshold(odds / (odds + self.domain_size - 1), up=False)

    @property
    def answers(self):
        return self.domain_size

    @property
    def guarantee(self):
        return Pure(self.epsilon)

    @property
    def support_probabilities(self):
        p = Fraction(self.keep, ONE)
        return [(p, (1 - p) / (self.domain_size - 1))]

    def randomize(self, values, *, rng=None, secrets=None):
        """Reports are answers, integers (n,)."""
        import numpy as np

        from ldp_budget.sampling import bernoulli, integers, open_stream

        answers = self.domain.check(values)
        stream = open_stream(rng)
        kept = bernoulli(stream, self.keep, len(answers))
        others = integers(stream, self.domain_size - 1, len(answers))
        return np.where(kept, answers, others + (others >= answers))

    def client_program(self):
        """The same as data, for clients in any language."""
        from ldp_budget.sdk.client_program import Program, answers, record, whole

        steps = (
            ("kept", ["bit", whole(self.keep)]),
            ("others", ["below", self.domain_size - 1]),
            ("other", ["add", "others", ["ge", "others", "value"]]),
            ("report", ["where", "kept", "value", "other"]),
        )
        return Program(answers(self.domain), steps, record([["uint", "report", 8, 1]], "<i8", []))

    def support(self, reports):
        import numpy as np

        rows = np.asarray(reports)
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or not ((rows >= 0) & (rows < self.domain_size)).all():
            raise NotSupported(f"expected reports from 0 to {self.domain_size - 1}, shape (n,)")
        return len(rows), np.bincount(rows, minlength=self.domain_size)

    # What can be checked: how likely the first answer, the second and any other are as a report.

    def compare(self, first, second):
        [(p, q)] = self.support_probabilities
        return Comparison.rows([p, q, 1 - p - q], [q, p, 1 - p - q])

    def outcomes(self, reports, first, second):
        import numpy as np

        return np.select([reports == first, reports == second], [0, 1], 2)


@hookimpl
def register_mechanisms(register):
    register($title)
'''

_NUMERIC = '''\
"""$title: one bit for a number, to begin with."""

from fractions import Fraction
from functools import cached_property

from ldp_budget import Comparison, Factor, NumericMechanism, hookimpl
from ldp_budget.sdk.parameters import real
from ldp_budget.guarantees import Pure
from ldp_budget.guarantees.fixed_point import exp_down
from ldp_budget.sampling import ONE, threshold

POINTS = 2**20
"""Steps of the public grid from lower to upper; a value is taken at the nearest point."""


class $title(NumericMechanism):
    """A high number or a low one; the larger the value, the likelier the high one.

    Its probability is q = 1/(e^ε+1) for the value `lower`, 1 - q for `upper`, and linear between. The two numbers lie
    so far beyond the ends that a report is the value on average.
    """

    name = "$name"
    summary = "a high number or a low one, the value on average"
    source = "Duchi, Jordan and Wainwright, JASA 2018, section 3.2"
    examples = ({"epsilon": 1, "lower": 0, "upper": 10}, {"epsilon": "0.3", "lower": -1, "upper": 1})

    epsilon = real("privacy loss of one report", at_least=1e-6, at_most=30)
    lower = real("smallest value a user can have")
    upper = real("largest value a user can have")

    @property
    def guarantee(self):
        return Pure(self.epsilon)

    # What is drawn, in whole numbers: reports are never decided by floats.

    @cached_property
    def thresholds(self):
        """q, and what every step of the grid adds to it, in units of 2**-64; the loss is at most ε."""
        least = threshold(1 / (Fraction(exp_down(self.epsilon)) + 1), up=True)
        return least, (ONE - 2 * least) // POINTS

    def points(self, values):
        """The points of the grid, 0..POINTS, nearest to the values. Raises `OutsideDomain`."""
        import numpy as np

        lower, upper = self.interval.ends
        numbers = self.interval.check(values)
        return np.rint((numbers - lower) * (POINTS / (upper - lower))).astype(np.int64)

    def chance(self, point):
        """The probability of the high number, exactly as it is drawn."""
        least, growth = self.thresholds
        return Fraction(least + growth * int(point), ONE)

    def randomize(self, values, *, rng=None, secrets=None):
        """Reports are the low and the high number, float64 (n,)."""
        import numpy as np

        from ldp_budget.sampling import bernoulli, open_stream

        least, growth = self.thresholds
        points = self.points(values)
        chances = np.uint64(least) + points.astype(np.uint64) * np.uint64(growth)
        origin, step = self.grid()
        return origin + bernoulli(open_stream(rng), chances, len(points)) * step

    def client_program(self):
        """The same as data, for clients in any language."""
        from ldp_budget.sdk.client_program import Program, float64, nearest, whole

        lower, upper = self.interval.ends
        least, growth = self.thresholds
        steps = (("high", ["bit_at", ["add", whole(least), ["mul", "value", whole(growth)]]]),)
        return Program(nearest(self.interval, POINTS / (upper - lower), POINTS), steps, float64("high", *self.grid()))

    # What the server makes of them.

    def grid(self):
        """(origin, step): the low number, and how far above it the high one is, so that the mean is the value."""
        low, high = self.chance(0), self.chance(POINTS)
        step = (Fraction(self.upper) - Fraction(self.lower)) / (high - low)
        return float(Fraction(self.lower) - low * step), float(step)

    def error_at(self, value):
        """(bias, MSE) of one report: no bias, and the variance of the bit."""
        lower, upper = self.interval.ends
        low, high = float(self.chance(0)), float(self.chance(POINTS))
        one = low + (high - low) * (value - lower) / (upper - lower)
        return 0.0, self.grid()[1] ** 2 * one * (1 - one)

    def report_std(self, total):
        """That of a user with the mean value, which is the largest that users with this mean can have on average."""
        low, high = float(self.chance(0)), float(self.chance(POINTS))
        one = min(max(total.total / total.reports, low), high)
        return self.grid()[1] * (one * (1 - one)) ** 0.5

    # What can be checked: how likely the high number is for either value.

    def compare(self, first, second):
        return Comparison.of(Factor.bit(*(self.chance(point) for point in self.points([first, second]))))

    def outcomes(self, reports, first, second):
        import numpy as np

        origin, step = self.grid()
        return (np.asarray(reports) > origin + step / 2).astype(np.int64)


@hookimpl
def register_mechanisms(register):
    register($title)
'''

_TESTS = '''\
"""The contract that every mechanism keeps; add what yours promises beyond it."""

from $module import $title

from ldp_budget.testing import MechanismContract


class Test$title(MechanismContract):
    mechanism = $title
    targets = $title.examples
'''

_README = """\
# $distribution

The mechanism `$name` for ldp-budget. It gets every command from its fields:

```console
$$ pip install -e '.[test]'
$$ pytest
$$ ldp-budget mechanisms
$$ ldp-budget calibrate $name $options
$$ ldp-budget plugin check $module
```

Replace the mechanism in `src/$module/__init__.py` by your own. One that later draws or promises something else
for the same parameters needs another name, because reports of the old one may still arrive.
"""


def check_name(name: str) -> None:
    """Raise a usage error unless `name` can name a new module and a new mechanism."""
    from importlib.util import find_spec

    from ldp_budget.registry.plugins import registry

    module = _module(name)
    if not _NAME.fullmatch(name):
        raise click.UsageError(
            f"NAME must be lower-case words joined by hyphens, beginning with a letter, such as my-coin: got {name!r}"
        )
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in registry().reserved:
        raise click.UsageError(f"NAME: {name!r} has a meaning in Python or ldp-budget. Choose another name.")
    if name in {claim for plugin in registry().plugins for claim in plugin.claims}:
        raise click.UsageError(f"NAME: there is a mechanism named {name!r} already. Choose another name.")
    if find_spec(module) is not None:
        raise click.UsageError(f"NAME: a module {module!r} is installed already. Choose another name.")


def check_distribution(distribution: str) -> None:
    """Raise a usage error unless `distribution` can name a distribution that is not installed here."""
    from importlib import metadata

    if not _NAME.fullmatch(distribution):
        raise click.UsageError(
            f"--distribution must be lower-case words joined by hyphens, such as ldp-budget-coin: got {distribution!r}"
        )
    try:
        installed = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return
    raise click.UsageError(f"--distribution: {distribution} {installed} is installed already. Choose another name.")


def distribution_of(name: str) -> str:
    """Return the default name of a distribution with the mechanism `name`."""
    return name if name.startswith(_PREFIX) else _PREFIX + name


def files_of(name: str, distribution: str, *, numeric: bool) -> dict[str, str]:
    """Return the files of the distribution, by their paths within its folder."""
    module = _module(name)
    words = {
        "name": name,
        "distribution": distribution,
        "module": module,
        "title": "".join(word.capitalize() for word in name.split("-")),
        "bounds": _bounds(),
        "options": "--epsilon 1 --lower 0 --upper 10" if numeric else "--epsilon 1 --domain-size 5",
    }
    texts = {
        "pyproject.toml": _PYPROJECT,
        "README.md": _README,
        f"src/{module}/__init__.py": _NUMERIC if numeric else _FREQUENCY,
        "tests/test_contract.py": _TESTS,
    }
    return {path: Template(text).substitute(words) for path, text in texts.items()}


def _module(name: str) -> str:
    return name.replace("-", "_")


def _bounds() -> str:
    """Return the version range that keeps the hooks: this version and later ones with the same major version.

    A release candidate precedes its release, so it is named in full.
    """
    from ldp_budget import __version__

    major, minor, patch = __version__.split(".")
    least = f"{major}.{minor}" if patch.isdecimal() else __version__
    return f">={least},<{int(major) + 1}"
