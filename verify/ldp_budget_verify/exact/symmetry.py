"""The symmetry of a client program: a proof from its steps that it treats all answers alike.

A program treats answers alike if every permutation of the answers corresponds to a lossless transformation of the
report: the report of the permuted answer has the law of the transformed report. Then all pairs of answers are equally
easy to distinguish, and one pair covers all. Each step gets a kind, which says how the permutation moves its value.
The proof gives up at a step of no known kind, such as a comparison of the answer with a number. Such a step may treat
one answer differently.

If the answer enters through one public hash alone, the cells of the hash are permuted, and the report must show the
function that was drawn. Two answers are then distinguished by the functions under which their cells differ, and under
each of these alike. Pairs of answers differ in the number of these functions, see `memoisation_checks`. If the parity
of some bits of a cell is sent, linear maps change the cells together with the draw that chooses the bits.

A program that reports a hyperplane of the affine space of all answers is recognized as a whole, see `linear_hashing`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget.sdk.law.totality import cannot_fail
from ldp_budget.sdk.linear_hashing import linear_law

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.sdk.client_program import Expression, Program

_FIXED = "fixed"
"""Not changed by the permutation."""
_ANSWER = "answer"
"""An answer, or a vector of answers: each is permuted."""
_ROW = "row"
"""A number for each answer: the places are permuted."""
_OTHERS = "others"
"""Numbers of the other answers: uniform and independent, or in uniform order, below one less than the answers."""
_OTHER_SET = "other set"
"""The same as an ascending set."""
_SET = "set"
"""An ascending set of answers."""
_PLACE = "place"
"""A uniform place in such a set."""
_LOOSE_SET = "loose set"
"""A set of answers, one of which has been replaced, before it is sorted."""
_BUCKETS = "buckets"
"""A uniform set of answers, in an order that is drawn without the answer."""
_OF_BUCKETS = "of buckets"
"""A number for each of the buckets."""
_DOUBLED = "doubled buckets"
"""2·bucket."""
_MARKED = "marked buckets"
"""2·bucket + bit."""
_MASKED = "masked cell"
"""Some bits of the cell of a hash."""
_BIT = "bit"
"""A bit that depends on the cell of a hash."""
_FLIPPED = "flipped bit"
"""Such a bit, flipped by a coin that is used for nothing else."""
_TOLD = "told bit"
"""2·mask + such a bit, with the draw that chose the bits of the cell."""

_SENT = {_FIXED, _ANSWER, _ROW, _SET, _BUCKETS, _DOUBLED, _MARKED, _TOLD}


class _Unknown(Exception):  # noqa: N818 - a reason to give up, no error
    pass


def answers_are_alike(program: Program) -> bool:
    """Return True if the steps show that one pair of answers covers every pair."""
    if linear_law(program) is not None:
        return True
    if program.input["kind"] != "answer" or not cannot_fail(program):
        return False
    kinds = _Kinds(program)
    try:
        for name, expression in program.steps:
            kinds.known[name] = kinds.of_step(name, expression)
    except _Unknown:
        return False
    sent = {part[1] for part in program.report["parts"]}
    return {kinds.known[name] for name in sent} <= _SENT and kinds.shows_function(sent)


def _names(expression: Expression) -> Iterator[str]:
    """Yield every text in an expression: names of steps and tables, operators, numbers."""
    if isinstance(expression, list):
        for each in expression:
            yield from _names(each)
    elif isinstance(expression, str):
        yield expression


class _Kinds:
    """The kind of each step so far."""

    def __init__(self, program: Program) -> None:
        steps = [expression for _, expression in program.steps]
        self._uses = Counter(name for step in steps for name in _names(step))
        self._uses.update(part[1] for part in program.report["parts"])
        self._hashed = [step for step in steps if isinstance(step, list) and OPERATORS[step[0]].kind == "hash"]
        labels = [step[1] for step in steps if isinstance(step, list) and OPERATORS[step[0]].kind == "memo"]
        if len(self._hashed) > 1 or len(labels) > len(set(labels)):
            self._answers = 0  # a value that no step can use
        else:
            self._answers = int(self._hashed[0][4] if self._hashed else program.input["count"])
        self.known = dict.fromkeys(program.tables, _FIXED)
        if not self._hashed:
            self.known["value"] = _ANSWER
        self._coins = set[str]()
        self._sizes: dict[str, int] = {}
        self._bounds: dict[str, list[int]] = {}
        self._set_of: dict[str, str] = {}
        self._below: dict[str, int] = {}

    def shows_function(self, sent: set[str]) -> bool:
        """Return True if the report shows the function that hashed the answer, or if nothing is hashed."""
        if not self._hashed:
            return True
        function = self._hashed[0][2]
        told = any(
            self.known[name] == _TOLD for name in sent
        )  # 2·mask is sent, and the function is computed from the mask
        return told if isinstance(function, list) else function in sent or _literal(function) is not None

    def of_step(self, name: str, expression: Expression) -> str:
        if not isinstance(expression, list):
            return self._of(expression)
        kind = OPERATORS[expression[0]].kind
        if kind in ("draw", "memo"):
            return self._drawn(name, expression)
        if kind == "hash":
            return self._of_hash(expression)
        found = self._of(expression)
        if expression[0] == "add" and found == _SET:
            self._sizes[name] = self._sizes[expression[1]]
        return found

    # -- draws -----------------------------------------------------------------------------------------------

    def _drawn(self, name: str, draw: list[Any]) -> str:
        operator, *arguments = draw
        if (
            operator == "kept_belows"
            and self._kind(arguments[1]) == _ANSWER
            and arguments[2:] == [self._answers - 1, 1]
        ):
            return _OTHERS  # kept for each answer
        if OPERATORS[operator].kind == "memo":
            arguments = arguments[
                2:
            ]  # without the label and the number; the words are uniform and independent for every answer
        if operator == "shuffle" and self._kind(arguments[0]) == _OTHER_SET:
            return _OTHERS
        if any(self._of(argument) != _FIXED for argument in arguments):
            raise _Unknown
        numbers = [_literal(argument) for argument in arguments]
        if operator == "below" and numbers[0] is not None:
            self._below[name] = numbers[0]
        if None in numbers or not self._answers:
            return _FIXED
        return self._of_draw(name, operator, [number for number in numbers if number is not None])

    def _of_draw(self, name: str, operator: str, numbers: list[int]) -> str:
        if operator in ("below", "belows") and numbers[0] == self._answers - 1:
            return _OTHERS
        if operator == "subset" and numbers[0] == self._answers - 1:
            self._sizes[name] = numbers[1]
            return _OTHER_SET
        if operator in ("bits", "kept_bits") and numbers[1] == self._answers:
            return _ROW
        if operator == "below" and numbers[0] in self._sizes.values():
            self._sizes[name] = numbers[0]
            return _PLACE
        if operator in ("bit", "bits", "kept_bits") and self._uses[name] == 1:
            self._coins.add(name)
        if operator in ("belows_from", "kept_belows") and self._uses[name] == 1:
            self._bounds[name] = numbers
        return _FIXED

    def _of_hash(self, hashed: list[Any]) -> str:
        """Return the kind of a hash: a number below m is one of m answers; a filter of m bits is a row."""
        name, _, function, value, *sizes = hashed
        if value != "value" or self._of(function) != _FIXED or _literal(sizes[0]) is None:
            raise _Unknown
        return _ANSWER if name == "polynomial" else _ROW

    # -- computed steps -----------------------------------------------------------------------------------------

    def _kind(self, expression: Expression) -> str | None:
        return self.known.get(expression) if isinstance(expression, str) else None

    def _of(self, expression: Expression) -> str:
        if isinstance(expression, int) or _literal(expression) is not None:
            return _FIXED
        if isinstance(expression, str):
            if expression not in self.known:
                raise _Unknown  # the answer itself, in a program that hashes it
            return self.known[expression]
        name, *arguments = expression
        if OPERATORS[name].kind == "hash":
            raise _Unknown
        if name == "add" and self._is_shifted(arguments):
            return _ANSWER if self._kind(arguments[0]) == _OTHERS else _SET
        if name == "mod" and self._is_turned(arguments):
            return _ANSWER
        if name == "floyd" and self._is_floyd(arguments):
            return _BUCKETS
        kinds = tuple(self._of(each) for each in arguments)
        if set(kinds) <= {_FIXED}:
            return _FIXED
        found = self._of_call(name, arguments, kinds)
        if found is None:
            raise _Unknown
        return found

    def _is_shifted(self, arguments: list[Any]) -> bool:
        """Return True for others + (others >= value), which turns numbers of the other answers into those answers."""
        first, second = arguments
        own = self._kind("value") == _ANSWER and second == ["ge", first, "value"]
        return own and self._kind(first) in (_OTHERS, _OTHER_SET)

    def _is_turned(self, arguments: list[Any]) -> bool:
        """Return True for (answer + step) mod answers, where the step is 0, or uniform from 1 to answers - 1.

        A coin that does not depend on the answer decides if it is 0. So the result is the answer, or uniform among the
        others. A number that makes the step must be used here alone.
        """
        match arguments:
            case [["add", str(answer), ["where", coin, 0, ["add", 1, str(others)]]], size]:
                known = self._kind(answer) == _ANSWER and self._kind(others) == _OTHERS and self._uses[others] == 1
                return known and _literal(size) == self._answers and self._of(coin) == _FIXED
        return False

    def _is_floyd(self, arguments: list[Any]) -> bool:
        """Return True for Floyd's sampling: of numbers drawn below m - n + 1, …, m, with m the answers."""
        drawn, least = arguments
        bounds = self._bounds.get(drawn) if isinstance(drawn, str) else None
        return bounds is not None and _literal(least) == bounds[0] and sum(bounds) - 1 == self._answers

    def _of_call(self, name: str, arguments: list[Any], kinds: tuple[str, ...]) -> str | None:
        if kinds[:2] == (_SET, _PLACE):
            return _OF_PLACE.get((name, kinds[2:])) if self._is_place_of(*arguments[:2]) else None
        if name == "mul" and kinds == (_FIXED, _BUCKETS):
            return _DOUBLED if _literal(arguments[0]) == 2 else None
        if name == "and" and kinds == (_FIXED, _ANSWER):
            return _MASKED if self._is_mask(arguments[0]) else None
        if name == "add" and kinds == (_FIXED, _FLIPPED):
            own = self._hashed[0][2]
            return _TOLD if isinstance(own, list) and arguments[0] == ["mul", 2, own[1]] else None
        if (name, kinds) in _BY_COIN:
            return _BY_COIN[name, kinds] if arguments[1] in self._coins else None
        return _CALLS.get((name, kinds))

    def _is_mask(self, mask: Any) -> bool:
        """Return True if the high bits of a draw give the function, and its low ones any bits of the cell alike.

        The draw must be used for these and for the sent value, and for nothing else.
        """
        bits = self._answers.bit_length() - 1
        if not self._hashed or not isinstance(mask, str) or self._answers != 1 << bits:
            return False
        whole = self._below.get(mask, 1) % self._answers == 0
        return whole and self._hashed[0][2] == ["shr", mask, bits] and self._uses[mask] == 3

    def _is_place_of(self, chosen: Any, place: Any) -> bool:
        """Return True if a place is a uniform one of this set, and of no other."""
        if not isinstance(chosen, str) or self._sizes.get(chosen) != self._sizes.get(place):
            return False
        return self._set_of.setdefault(place, chosen) == chosen


def _literal(argument: Expression) -> int | None:
    if isinstance(argument, int):
        return argument
    return int(argument) if isinstance(argument, str) and argument.isdecimal() else None


_OF_PLACE = {("at", ()): _ANSWER, ("put", (_ANSWER,)): _LOOSE_SET}

_BY_COIN: dict[tuple[str, tuple[str, ...]], str] = {
    ("xor", (_OF_BUCKETS, _FIXED)): _OF_BUCKETS,
    ("eq", (_BIT, _FIXED)): _FLIPPED,
}
"""Operators whose second argument has to be a name of bits that are used for nothing else."""

_CALLS: dict[tuple[str, tuple[str, ...]], str] = {
    ("eq", (_ANSWER, _ANSWER)): _FIXED,
    ("where", (_FIXED, _ANSWER, _ANSWER)): _ANSWER,
    ("at", (_ANSWER, _FIXED)): _ANSWER,
    ("at", (_OTHERS, _FIXED)): _OTHERS,
    ("put", (_ANSWER, _FIXED, _ANSWER)): _ANSWER,
    ("at", (_ROW, _ANSWER)): _FIXED,
    ("put", (_ROW, _ANSWER, _FIXED)): _ROW,
    ("onehot", (_ANSWER, _FIXED)): _ROW,
    ("xor", (_ROW, _ROW)): _ROW,
    ("where", (_ROW, _ROW, _ROW)): _ROW,
    ("sort", (_LOOSE_SET,)): _SET,
    ("eq", (_BUCKETS, _ANSWER)): _OF_BUCKETS,
    ("add", (_DOUBLED, _OF_BUCKETS)): _MARKED,
    ("parity", (_MASKED,)): _BIT,
}
