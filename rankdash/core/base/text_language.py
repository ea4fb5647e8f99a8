"""The language of texts, told by their letters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

# So many queries show in which letters all are written; the first letter after those of Latin.
_READ = 200
_AFTER_LATIN = "\u0250"
_SCRIPTS = {
    "han": re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"),
    "kana": re.compile("[\u3040-\u30ff]"),
    "hangul": re.compile("[\uac00-\ud7af]"),
}
# Japanese is Chinese characters with at least this share of kana among them.
_KANA = 0.1


def language_of(texts: Iterable[str]) -> str:
    """The language of texts as far as the letters of the first ones tell: "zh", "ja" or "ko";
    "latin" for all that are written in Latin letters, or have none; "other" for the rest."""
    letters = [each for each in "".join(islice(texts, _READ)) if each.isalpha()]
    if 2 * sum(each < _AFTER_LATIN for each in letters) >= len(letters):
        return "latin"
    shares = {
        name: sum(bool(script.match(each)) for each in letters) / len(letters)
        for name, script in _SCRIPTS.items()
    }
    if shares["kana"] >= _KANA:
        return "ja"
    if 2 * shares["han"] > 1:
        return "zh"
    return "ko" if 2 * shares["hangul"] > 1 else "other"
