"""Certificates: records of the mechanisms that were checked on this machine, bound to their installed form.

`ldp-budget plugin check` records its result. A record is bound to the distribution, its version, the mechanism and
the SHA-256 of all its source files (`source_digest`). So changed code counts as not checked.

Built-in mechanisms need no record. Every release passes the same checks, and three more:

- each guarantee is proved from the thresholds that are drawn, or from the density, over many settings
  (`tests/unit/verification/test_verification.py`);
- where a mechanism has finitely many reports, the distribution of whole reports is enumerated in fractions and
  equals that of the proof (`tests/unit/verification/test_drawn_laws.py`);
- the draws that a mechanism is made of have the distribution that they promise (`tests/unit/sampling`).

Each built-in mechanism has a client program. The client draws exactly what the program draws, to the last byte
(`tests/unit/sdk/test_client_programs.py`). The program's distribution is that of the proof
(`tests/unit/verification/test_program_laws.py`). A plugin in the short notation has no other client than its program,
and its guarantee follows from the law of that program. So it is "exact" once `plugin check` passed, for all parameters
of which a law is found; there is no guarantee for others. None of this is known of a plugin's client in Python, so that
is "audited" at most, with any program.

The records are a JSON file: `certificates.json` next to the default ledger, or the path in LDP_BUDGET_CERTIFICATES.
The file is a note for this machine's user, not a proof for others: a process that can write it can also change what
Python runs.

The module also holds the parameter ranges for which `verify` proves the guarantee of a built-in mechanism. They are
within the grid of the page *What `verify` proves*, and a test keeps them there. A built-in mechanism with other
parameters may keep its guarantee just as well, but counts as "audited" only. So does noise declared by its
sensitivity alone, which has no client program.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .._files import application_folder, replacing
from .._validation import check_instance
from ..guarantees.guarantees import AUDITED, EXACT, LEVELS, NO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..sdk.mechanism import Mechanism
    from .plugins import Plugin


# -- proved parameter ranges -----------------------------------------------------------------------------------


class Within(NamedTuple):
    """The smallest and the largest value of a field, both included."""

    least: Decimal | int
    most: Decimal | int


_EPSILON = {"epsilon": Within(Decimal("0.0001"), 20)}
_ANSWERS = {**_EPSILON, "domain_size": Within(2, 10**6)}
_SKETCH = {**_EPSILON, "hashes": Within(1, 64), "width": Within(8, 256)}

PROVED_RANGES: Mapping[str, Mapping[str, Within]] = {
    "gaussian": {
        **_EPSILON,
        "delta": Within(Decimal("1e-30"), Decimal("1e-3")),
        "sigma": Within(Decimal("0.00001"), 10**6),
    },
    "laplace": {**_EPSILON, "scale": Within(Decimal("0.001"), 10**4)},
    "staircase": {**_EPSILON, "gamma": Within(0, 1)},
    "bounded-laplace": {**_EPSILON, "scale": Within(Decimal("0.05"), 10**4)},
    "bounded-staircase": {**_EPSILON, "gamma": Within(0, 1)},
    "randomized-response": _EPSILON,
    "one-sided": {"g": Within(Decimal("0.01"), Decimal("0.99"))},
    "unary-encoding": {"domain_size": Within(2, 1000)},
    "sue": _ANSWERS,
    "oue": _ANSWERS,
    "random-substitution": {**_ANSWERS, "draws": Within(1, 3)},
    "subset-selection": {**_EPSILON, "domain_size": Within(3, 100)},
    "pgr": _ANSWERS,
    "cms": _SKETCH,
    "hcms": _SKETCH,
    "matrix-substitution": {},
    "rappor": {"bits": Within(8, 128), "hashes": Within(1, 4), "cohorts": Within(1, 64)},
    "d-bit-flip": {**_EPSILON, "buckets": Within(2, 20), "bits": Within(1, 4)},
    "one-bit-mean": _EPSILON,
    "hybrid": _EPSILON,
    "random-threshold": _EPSILON,
    "square-wave": _EPSILON,
    "rounded-response": _EPSILON,
    "loloha": {
        "epsilon_lifetime": Within(Decimal("0.5"), 5),
        "epsilon_first": Within(Decimal("0.1"), Decimal("2.5")),
        "domain_size": Within(6, 1000),
    },
    "heavy-hitters": {**_EPSILON, "length": Within(2, 20)},
    "olh": {**_EPSILON, "domain_size": Within(2, 10**6)},
    "grid": {**_EPSILON, "items": Within(2, 20), "domain_size": Within(2, 11)},
    "ticks": {**_EPSILON, "domain_size": Within(2, 100), "at_most": Within(1, 10)},
}
_MOST_ANSWERS = 60
"""Maximum number of answers of a matrix."""
_MOST_ROUNDED = 64
"""Maximum number of rounded values of a number."""


def in_proved_range(mechanism: Mechanism) -> bool:
    """True if the parameters are in the range in which the guarantee is proved, see the module."""
    if is_derived(type(mechanism)):
        return True
    ranges = PROVED_RANGES.get(mechanism.name)
    if ranges is None:
        return False
    given = {name: getattr(mechanism, name, None) for name in ranges}
    listed = all(_is_within(value, ranges[name]) for name, value in given.items())
    return listed and all(term.holds(mechanism) for term in _OTHER_TERMS.get(mechanism.name, ()))


def is_derived(mechanism: type[Mechanism]) -> bool:
    """True if the guarantee of a mechanism is the law of its client, and nothing is declared."""
    return getattr(mechanism, "derived", False) and "guarantee" not in set().union(
        *(vars(cls) for cls in mechanism.__mro__ if not cls.__module__.startswith("ldp_budget.sdk."))
    )


DERIVED_RANGE = "all parameters whose law is found; no others have a guarantee"


def proved_range(name: str) -> str:
    """The proved range in words; "" for a mechanism without one."""
    ranges = PROVED_RANGES.get(name)
    if ranges is None:
        return ""
    words = [f"{field} {within.least} to {within.most}" for field, within in ranges.items()]
    return ", ".join([*words, *(term.words for term in _OTHER_TERMS.get(name, ()))])


def _is_within(value: Any, within: Within) -> bool:
    return value is None or bool(within.least <= value <= within.most)


def _cells_are_apart(sketch: Any) -> bool:
    """True if some two answers share no cell.

    With more hashes than cells there may be none; 8 cells are enumerated.
    """
    return bool(sketch.hashes <= sketch.width or sketch.width == 8)


def _filters_are_apart(rappor: Any) -> bool:
    """True if there are enough bits per hash: with few bits, there may be no two disjoint Bloom filters."""
    return bool(rappor.bits >= 8 * rappor.hashes)


def _changes_alike(rappor: Any) -> bool:
    return not rappor.any_inputs


def _is_small(matrix: Any) -> bool:
    return bool(matrix.domain.size <= _MOST_ANSWERS)


def _values_are_few(mean: Any) -> bool:
    if mean.rounding is None:
        return True
    lower, upper = (Fraction(end) for end in (mean.interval.lower, mean.interval.upper))
    return not mean.any_inputs and (upper - lower) / Fraction(mean.rounding) < _MOST_ROUNDED


def _has_a_client(noise: Any) -> bool:
    """True if the noise has a client program to prove: noise declared by its sensitivity alone has none."""
    return noise.domain is not None


class _Term(NamedTuple):
    """A further condition on the parameters."""

    words: str
    holds: Callable[[Any], bool]


_CLIENT = _Term("lower and upper given", _has_a_client)
_CELLS_APART = _Term("hashes at most width unless width is 8", _cells_are_apart)

_OTHER_TERMS = {
    "gaussian": (_CLIENT,),
    "laplace": (_CLIENT,),
    "staircase": (_CLIENT,),
    "cms": (_CELLS_APART,),
    "hcms": (_CELLS_APART,),
    "rappor": (_Term("bits at least 8 times hashes", _filters_are_apart), _Term("not any_inputs", _changes_alike)),
    "matrix-substitution": (_Term(f"at most {_MOST_ANSWERS} answers", _is_small),),
    "one-bit-mean": (
        _Term(f"if rounding is given, less than {_MOST_ROUNDED} of it and not any_inputs", _values_are_few),
    ),
}


# -- certificates ----------------------------------------------------------------------------------------------

VARIABLE = "LDP_BUDGET_CERTIFICATES"

_FORMAT = "ldp-budget certificates 1"
_OWN = ("ldp_budget", "ldp_budget_mechanisms", "ldp_budget_adapters")
"""Packages of this project.

The digest covers all their files and their version, so their distribution's record is not read.
"""
_NOTES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
_BOUND_TO = ("distribution", "version", "mechanism", "sources")


_known: dict[type[Mechanism], str] = {}


def checked(mechanism: type[Mechanism]) -> str:
    """The level at which the guarantee of a mechanism class was checked: "exact", "audited" or "no".

    Built-in mechanisms are "exact", by the tests of every release (see this module); one without a proved range is
    "audited". A mechanism that is not
    installed is "no". So is every mechanism that holds a declared guarantee, which nothing can check
    (`Mechanism.checkable`).
    The result is cached for the life of the process.

    Parameters:
        mechanism: the class, such as ``mechanism("oue")``.

    Raises:
        InvalidParameter: `mechanism` is not a class.
    """
    check_instance("mechanism", mechanism, type, "a mechanism class")
    if mechanism not in _known:
        _known[mechanism] = _found(mechanism)
    return _known[mechanism]


def checked_at(mechanism: Mechanism) -> str:
    """The level of a mechanism with its parameters: "exact" only where its guarantee is proved for these parameters.

    A mechanism made of others has the lowest level of these.

    Parameters:
        mechanism: a mechanism with its parameters.

    Raises:
        InvalidParameter: `mechanism` is not a mechanism.
    """
    if mechanism.components:
        return min(map(checked_at, mechanism.components), key=LEVELS.index)
    return level_of(type(mechanism), in_proved_range(mechanism))


def level_of(kind: type[Mechanism], proved: bool) -> str:
    """The level of a mechanism of this class; `proved`: its parameters are in the range that was proved."""
    found = checked(kind)
    return AUDITED if found == EXACT and not proved else found


def forget() -> None:
    """Clear the cache of levels, for example after a change of the file."""
    _known.clear()


def _found(mechanism: type[Mechanism]) -> str:
    from .plugins import registry

    if not getattr(mechanism, "checkable", True):
        return NO
    plugin = registry().plugin_of(mechanism)
    if plugin is None:
        return NO
    if plugin.own:
        return EXACT if mechanism.name in PROVED_RANGES else AUDITED
    return _recorded(plugin.name, plugin.version, mechanism)


def record(certificate: dict[str, Any]) -> Path:
    """Store the result of `contract.certify`, replacing older records of its mechanisms; return the file's path.

    Raises OSError if the file cannot be written, or exists and cannot be read.
    """
    path = certificates_path()
    about = {name: value for name, value in certificate.items() if name != "mechanisms"}
    new = [{**about, **_short(found)} for found in certificate["mechanisms"]]
    replaced = {(entry["distribution"], entry["mechanism"]) for entry in new}
    kept = [entry for entry in _read(path) if (entry.get("distribution"), entry.get("mechanism")) not in replaced]
    _write(path, {"format": _FORMAT, "certificates": [*kept, *new]})
    forget()
    return path


def _short(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("mechanism", "checked", "sources")}


def _recorded(distribution: str, version: str, mechanism: type[Mechanism]) -> str:
    sources = source_digest(mechanism)
    bound = dict(zip(_BOUND_TO, (distribution, version, mechanism.name, sources), strict=True))
    try:
        entries = _read(certificates_path())
    except OSError as error:
        _warn(f"{certificates_path()} cannot be read: {error.strerror}")
        return NO
    for entry in entries:
        if sources is not None and all(entry.get(name) == value for name, value in bound.items()):
            found = entry.get("checked")
            return found if found in (EXACT, AUDITED) else NO
    return NO


# -- the sources ----------------------------------------------------------------------------------------------


def source_digest(mechanism: type[Mechanism]) -> str | None:
    """SHA-256 over all files that a class is made of; None if it has no files.

    For the class and each of its base classes these are: all files of the topmost package, including data files,
    and all files that its distribution installed. ldp-budget's own package and version are included too.
    """
    digest = hashlib.sha256()
    try:
        for name, file in _sources(mechanism):
            _add(digest, name.encode(), file.read_bytes())
    except (OSError, LookupError):
        return None
    _add(digest, b"ldp-budget", _own_version().encode())
    return digest.hexdigest()


def _add(digest: Any, *parts: bytes) -> None:
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)


def _own_version() -> str:
    from importlib import metadata

    return metadata.version("ldp-budget")


def _sources(mechanism: type[Mechanism]) -> list[tuple[str, Path]]:
    """Every file with a name that does not depend on the place of installation, in order.

    Raises LookupError without files.
    """
    modules = {cls.__module__ for cls in mechanism.__mro__}
    modules = {module for module in modules if module.partition(".")[0] not in sys.stdlib_module_names}
    packages = {package.__name__: package for package in map(_package_of, sorted(modules))}
    found: dict[str, Path] = {}
    for name, package in packages.items():
        path = Path(package.__file__)
        if path.stem == "__init__":
            found |= {f"{name}/{file.relative_to(path.parent).as_posix()}": file for file in _files_in(path.parent)}
        else:
            found[path.name] = path
    for distribution in _distributions_of(packages):
        found |= _recorded_files(distribution)
    return sorted(found.items())


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield every file that an author wrote, without files that Python or a tool generated."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not _is_left_over(name)]
        yield from (Path(place, name) for name in files if not _is_left_over(name))


def _is_left_over(name: str) -> bool:
    return name == "__pycache__" or name.startswith(".") or name.endswith((".pyc", ".pyo"))


def _distributions_of(packages: Iterable[str]) -> list[Any]:
    """The third-party distributions that installed these packages."""
    from importlib import metadata

    tops = {name.partition(".")[0] for name in packages} - set(_OWN)
    if not tops:
        return []
    by_package = metadata.packages_distributions()
    names = {name for top in tops for name in by_package.get(top, ())}
    return [metadata.distribution(name) for name in sorted(names)]


def _recorded_files(distribution: Any) -> dict[str, Path]:
    """The files that a distribution installed, without the installer's notes and compiled files."""
    found = {}
    for file in distribution.files or ():
        parts = file.parts
        left_over = any(map(_is_left_over, parts)) or file.name in _NOTES
        path = Path(distribution.locate_file(file))
        if not left_over and path.is_file():
            found[f"{distribution.name}:{file.as_posix()}"] = path
    return found


def _package_of(module: str) -> Any:
    """The topmost package of a module that has a file. Namespace packages above it have no owner and are skipped."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        found = sys.modules.get(".".join(parts[:length]))
        if getattr(found, "__file__", None) is not None:
            return found
    raise LookupError(module)


# -- the file -------------------------------------------------------------------------------------------------


def certificates_path() -> Path:
    """The path of the file that holds the records."""
    return Path(os.environ.get(VARIABLE) or application_folder() / "certificates.json")


def _read(path: Path) -> list[dict[str, Any]]:
    """The records; empty if there is no file, or, with a warning, if its content is invalid. Raises OSError."""
    try:
        data = json.loads(path.read_bytes())
        if data["format"] == _FORMAT and all(isinstance(entry, dict) for entry in data["certificates"]):
            return list(data["certificates"])
    except FileNotFoundError:
        return []
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    _warn(f"{path} holds no certificates; nothing counts as checked")
    return []


@functools.cache
def _warn(text: str) -> None:
    """Print a warning on stderr, once for each text."""
    print(f"Warning: {text}", file=sys.stderr)


def _write(path: Path, data: dict[str, Any]) -> None:
    """Write the whole file or nothing, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(json.dumps(data, indent=2).encode())


# -- the table of mechanisms -----------------------------------------------------------------------------------


def mechanism_rows() -> list[dict[str, Any]]:
    """The rows that `mechanisms --json` prints: every mechanism, and every failed plugin with the reason."""
    from .plugins import registry  # imported here, because a charge needs only `checked` and no plugins

    rows = [
        _row(mechanism.name, mechanism.aliases, plugin, checked(mechanism), mechanism.summary, mechanism.source)
        for mechanism, plugin in registry().items()
    ]
    return rows + [_row("-", (), plugin, "no", "", "") for plugin in registry().plugins if plugin.failed]


def _row(
    name: str, aliases: tuple[str, ...], plugin: Plugin, checked: str, summary: str, source: str
) -> dict[str, Any]:
    return {
        "name": name,
        "aliases": list(aliases),
        "plugin": plugin.name,
        "plugin_version": plugin.version,
        "status": f"failed: {plugin.failed}" if plugin.failed else "ok",
        "checked": checked,
        "proved": (proved_range(name) if plugin.own else DERIVED_RANGE) if checked == EXACT else "",
        "summary": summary,
        "source": source,
    }
