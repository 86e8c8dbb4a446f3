"""Shell completion in Bash, which splits words at colons: `collection:mood` arrives as three words."""

from __future__ import annotations

from typing import Any

from click.shell_completion import BashComplete, CompletionItem, add_completion_class

PREFIX = "collection:"


class BashCompletion(BashComplete):
    """Joins the parts of `collection:NAME`, and offers what follows the colon."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the incomplete word."""
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in [*args, incomplete]:
            if words and (word == ":" or words[-1] == PREFIX) and words[-1] in (PREFIX, PREFIX[:-1]):
                words[-1] += word
            else:
                words.append(word)
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return a line for the shell, which replaces only the text after the colon."""
        value = str(item.value)
        return super().format_completion(CompletionItem(value.removeprefix(PREFIX), item.type, item.help))


def register() -> None:
    """Use this completion for Bash."""
    add_completion_class(BashCompletion, "bash")
