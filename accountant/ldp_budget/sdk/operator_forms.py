"""The forms of the operators of client programs: the kinds of their arguments and results, and the ranges of numbers.

`FORMS` has one entry for each operator of `client_program.OPERATORS`. `clients/check/check_law.py` and
`clients/js/src/syntax.js` have the same table; a test compares the three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

HUGE = 2**4096
"""Every number of a program is between -HUGE and HUGE, both left out."""
MOST = 2**23
"""The most entries of a vector."""
MOST_DEPTH = 100
"""The most operators within each other."""

NUMBER, VECTOR, ROWS = "number", "vector", "rows"
"""The kinds of values. `ROWS` are a table of vectors of one length."""


class Form(NamedTuple):
    """The kinds of the arguments of an operator, and of its result. The result `each` is a number or a vector."""

    takes: tuple[str, ...]
    gives: str


_TABLE = """
    bit:chance:number bits:chance,size:vector bit_at:odds:number bits_each:chances:vector below:bound:number
    belows:bound,size:vector belows_from:bound,size:vector subset:bound,size:vector shuffle:vector:vector
    geometric:odds:number laplace:places:number normal:places:number kept_bits:text,word,chance,size:vector
    kept_belows:text,word,bound,size:vector kept_top:text,word,top:number
    polynomial:text,function,number,bound:number bloom:text,number,number,filter,hashes:vector
    add:each,each:each sub:each,each:each mul:each,each:each div:each,divisor:each mod:each,divisor:each
    shr:each,shift:each shl:each,shift:each and:natural,natural:each xor:natural,natural:each min:each,each:each
    max:each,each:each lt:each,each:each ge:each,each:each eq:each,each:each where:choice,each,each:each
    parity:natural:each list:...:vector at:vector,number:number put:vector,number,number:vector sort:vector:vector
    first:flags:number rank:vector,number:number onehot:number,size:vector join:flags:number floyd:vector,number:vector
"""
FORMS = {
    name: Form(tuple(takes.split(",")), gives) for name, takes, gives in (row.split(":") for row in _TABLE.split())
}
RANGES: dict[str, tuple[int, int]] = {
    **{"chance": (0, 2**64), "chances": (0, 2**64), "odds": (0, 2**64 - 1), "bound": (1, 2**63), "size": (0, MOST)},
    **{"places": (0, 40), "word": (-(2**63), 2**63 - 1), "top": (0, 64), "function": (0, 2**64 - 1)},
    **{"filter": (1, MOST), "hashes": (0, 2**16), "divisor": (1, HUGE - 1), "shift": (0, 2**16)},
    **{"natural": (0, HUGE - 1), "choice": (0, 1), "flags": (0, 1)},
}
"""The least and the largest number of a kind of argument; of all others, any number."""
VECTORS = frozenset(("vector", "chances", "flags"))
"""Kinds of arguments that are vectors."""
EACH = frozenset(("each", "divisor", "shift", "natural", "choice"))
"""Kinds of arguments that are a number, or a vector of such numbers place by place."""


def kind_of_call(name: str, kinds: list[str]) -> str:
    """Return the kind of the result of an operator, whose text is left out.

    Raises ValueError if the operator does not take arguments of these kinds.
    """
    takes, gives = FORMS[name]
    takes = takes[takes[0] == "text" :]
    if name == "list":
        takes = (NUMBER,) * len(kinds)
    if name == "at" and kinds == [ROWS, NUMBER]:
        return VECTOR
    for kind, wanted in zip(kinds, takes, strict=True):
        fits = kind in (NUMBER, VECTOR) if wanted in EACH else kind == (VECTOR if wanted in VECTORS else NUMBER)
        if not fits:
            raise ValueError(f"{name} must have {_said(wanted)} as {wanted}: got a {kind}")
    if gives == "each":
        return VECTOR if VECTOR in kinds else NUMBER
    return gives


def _said(wanted: str) -> str:
    return "numbers or vectors" if wanted in EACH else "a vector" if wanted in VECTORS else "a number"


def check_ranges(name: str, given: Iterable[Any], most_size: int = MOST) -> None:
    """Raise ValueError unless all numbers are in the ranges that the operator is defined for."""
    takes = FORMS[name].takes
    for each, wanted in zip(given, takes[takes[0] == "text" :], strict=False):
        if wanted in RANGES:
            least, most = (0, most_size) if wanted == "size" else RANGES[wanted]
            for number in each if isinstance(each, list) else (each,):
                if not least <= number <= most:
                    raise ValueError(f"{name} must have a {wanted} from {least} to {most}: got {_shown(number)}")


def check_draw(name: str, given: list[Any], most_size: int = MOST) -> None:
    """Raise ValueError unless the arguments of a draw, without its label, are in their ranges.

    `most_size` is the longest vector that these draws make; those that are only counted have reasons of their own.
    """
    check_ranges(name, given, most_size)
    if name in ("belows_from", "kept_belows") and given[-2] + max(0, given[-1] - 1) > 2**63:
        raise ValueError(f"{name} must have bounds up to 2**63: got {given[-2]} + {given[-1] - 1}")
    if name == "subset":
        members, size = given
        if size > members or (2 * size > members and members > MOST):
            raise ValueError(
                f"subset must draw at most {members} numbers, below {MOST} if more than half: got {size}"
            )


def check_result(found: Any) -> None:
    """Raise ValueError unless a number, or each entry of a vector, is between -HUGE and HUGE."""
    numbers: Iterable[Any] = found if isinstance(found, list) else (found,)
    if not all(-HUGE < number < HUGE for number in numbers):
        raise ValueError("a number of a program must have at most 4096 bits")


def _shown(number: int) -> str:
    return str(number) if -HUGE < number < HUGE else "a number of more than 4096 bits"
