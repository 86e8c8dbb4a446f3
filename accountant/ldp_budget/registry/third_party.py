"""Objects of other libraries: their guarantee for two values of one user, as plugins report it, and its charge.

Every working plugin is asked through its hook `guarantee_of`, the project's own plugins first. So a third-party
plugin cannot promise less for an object that the project has an adapter for. The ledger then charges a mechanism
that holds the guarantee itself, from the closed vocabulary, and a line about its source. So the ledger can be read,
priced and verified without the library and without the object, of which nothing is stored.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from unicodedata import category

from .._validation import shown
from ..errors import InvalidParameter, LdpBudgetError, PluginError
from ..guarantees import Guarantee
from ..sdk.mechanism import Mechanism
from ..sdk.parameters import MOST_TEXT
from .plugins import registry

if TYPE_CHECKING:
    from .plugins import Plugin

EXPECTED = "a mechanism with its parameters, a collection, or an object of a supported library"

_DIGEST = 16


def guarantee_of(thing: object) -> Guarantee:
    """The guarantee of a third-party object for two values of one user, as the installed plugins report it.

    A guarantee returns itself, and a mechanism its guarantee. So ``compose([(guarantee_of(thing), 50)],
    delta=1e-6)`` accepts everything that an accountant accepts.

    Parameters:
        thing: such as a measurement of OpenDP, a mechanism of diffprivlib, an event of dp-accounting.

    Returns:
        A guarantee of the closed vocabulary; `Unbounded` where nothing can be guaranteed.

    Raises:
        InvalidParameter: no plugin knows such an object.
        NotSupported: the object guarantees nothing for two values of one user; the message gives the reason.
        PluginError: the plugin is broken, or several plugins claim the object.
    """
    if isinstance(thing, Guarantee):
        return thing
    if issubclass(type(thing), Mechanism):  # its real class, not the `__class__` that it may claim
        promised: Guarantee = thing.guarantee  # type: ignore[attr-defined]
        return promised
    found = _answer(thing)
    if found is None:
        raise InvalidParameter("thing", EXPECTED, what_is(thing))
    return found[0]


def charged_for(thing: object) -> Mechanism | None:
    """The mechanism that a ledger charges for a third-party object; None if no plugin knows the object.

    Raises the same errors as `guarantee_of`.
    """
    found = _answer(thing)
    if found is None:
        return None
    guarantee, source = found
    for plugin in registry().plugins:
        if plugin.own and plugin.hooks is not None:
            mechanism: Any = plugin.hooks.declaration_of(guarantee=guarantee, source=source)
            if isinstance(mechanism, Mechanism):
                return mechanism
    raise PluginError(
        "ldp-budget", "its own plugin for declared guarantees is missing", hint="Install ldp-budget again."
    )


def what_is(thing: object) -> str:
    """An object as an error shows it.

    For third-party classes only the name, because their text may be long or private.
    """
    if isinstance(thing, type | Guarantee) or type(thing).__module__ == "builtins":
        return shown(thing)
    return f"an object of {class_name(type(thing))}"


def class_name(cls: type) -> str:
    """A class by its module and name."""
    return one_line(f"{cls.__module__}.{cls.__qualname__}")


def one_line(text: str) -> str:
    """A text as the journal stores it: on one line. The end of a text that is too long is replaced by a digest."""
    begins = text[: 2 * MOST_TEXT]
    plain = "".join(character if category(character)[0] not in "CZ" else " " for character in begins)
    plain = " ".join(plain.split()) or "?"
    if len(plain) <= MOST_TEXT and begins == text:
        return plain
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{plain[: MOST_TEXT - _DIGEST - 9]}… sha256:{digest}"


def _answer(thing: object) -> tuple[Guarantee, str] | None:
    """The guarantee of an object and its source. Only one third-party plugin may know the object."""
    answers: list[tuple[Plugin, Guarantee]] = []
    for plugin in registry().plugins:
        if answers and answers[0][0].own:
            break
        found = None if plugin.hooks is None else _asked(plugin, "guarantee_of", thing)
        if found is None:
            continue
        if not isinstance(found, Guarantee):
            told = f"its guarantee_of must return a guarantee of ldp_budget.guarantees: got {what_is(found)}"
            raise PluginError(str(plugin), told)
        answers.append((plugin, found))
    if not answers:
        return None
    if len(answers) > 1:
        who = " and ".join(str(plugin) for plugin, _ in answers)
        raise PluginError(who, f"both have a guarantee for {what_is(thing)}", hint="Uninstall one of them.")
    plugin, guarantee = answers[0]
    source = _asked(plugin, "source_of", thing)
    if not isinstance(source, str):
        source = f"{class_name(type(thing))}, as {plugin} says"
    return guarantee, one_line(source)


def _asked(plugin: Plugin, hook: str, thing: object) -> Any:
    """A plugin's result. Raises `PluginError` for any exception of the plugin that is not an `LdpBudgetError`."""
    try:
        return getattr(plugin.hooks, hook)(thing=thing)
    except LdpBudgetError:
        raise
    except Exception as error:
        why = " ".join(f"its {hook} raised {type(error).__name__} for {what_is(thing)}: {error}".split())
        raise PluginError(str(plugin), why) from error
