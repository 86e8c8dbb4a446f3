"""The words of the search index: English ones by their stem, Korean ones also without their endings."""

from __future__ import annotations

import re
from typing import Any

from sphinx.search.en import SearchEnglish

_HANGUL = re.compile("[가-힣]{3,}")


class SearchEnglishAndKorean(SearchEnglish):
    """Korean attaches particles to a noun: 응답자 is in the page as 응답자는 or 응답자의, so each beginning is a word."""

    def split(self, input: str) -> list[str]:
        words = super().split(input)
        return words + [word[:end] for word in words if _HANGUL.fullmatch(word) for end in range(2, len(word))]


def setup(app: Any) -> dict[str, bool]:
    app.add_search_language(SearchEnglishAndKorean)  # in the place of Sphinx's English
    return {"parallel_read_safe": True, "parallel_write_safe": True}
