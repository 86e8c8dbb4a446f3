"""Options with a range of numbers, and with a share: their errors say in plain words what the option must be."""

from __future__ import annotations

import math
from typing import Any

import click

from ldp_budget._number_parsing import number_in, whole_in

ANY_NUMBER = "any"


def _expected(kind: str, limits: click.FloatRange | click.IntRange) -> str:
    """Return the range in words, such as `a number > 0 and <= 3660`."""
    low = None if limits.min is None else f"{'>' if limits.min_open else '>='} {limits.min}"
    high = None if limits.max is None else f"{'<' if limits.max_open else '<='} {limits.max}"
    return f"{kind} {' and '.join(filter(None, (low, high)))}".rstrip()


def _wrong(parameter: click.Parameter | None, expected: str, value: Any, ctx: click.Context | None) -> Exception:
    name = "the number" if parameter is None else parameter.opts[0]
    return click.UsageError(f"{name} must be {expected}: got {value!r}", ctx)


class NumberRange(click.FloatRange):
    """A number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(number_in(value) if isinstance(value, str) else value, param, ctx)
        except (click.BadParameter, ValueError):
            raise _wrong(param, _expected("a number", self), value, ctx) from None


class WholeRange(click.IntRange):
    """A whole number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(whole_in(value) if isinstance(value, str) else value, param, ctx)
        except (click.BadParameter, ValueError):
            raise _wrong(param, _expected("a whole number", self), value, ctx) from None


class _Whole(click.types.IntParamType):
    """A whole number in digits 0 to 9."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return whole_in(value) if isinstance(value, str) else value
        except ValueError:
            self.fail(f"{value!r} is not a valid integer.", param, ctx)


class _Number(click.types.FloatParamType):
    """A number in digits 0 to 9."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return number_in(value)
        except ValueError:
            self.fail(f"{value!r} is not a valid float.", param, ctx)


WHOLE, NUMBER = _Whole(), _Number()


def parse_margin(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Return a margin of error as a share: 0.03 and 3% are 3 percentage points."""
    if value is None:
        return None
    try:
        margin = number_in(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        margin = math.nan
    if not 0 < margin < 1 or value != "".join(value.split()):
        raise click.UsageError(
            f"{parameter.opts[0]} must be a share > 0 and < 1, such as 0.03 or 3%: got {value!r}", ctx
        )
    return margin


def parse_ticks(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | str | None:
    """Return the most ticks of a user: a whole number, or `any`."""
    if value is None or value == ANY_NUMBER:
        return value
    try:
        most = whole_in(value)
    except ValueError:
        most = 0
    if most < 1:
        raise _wrong(parameter, f"a whole number >= 1, or {ANY_NUMBER}", value, ctx)
    return most
