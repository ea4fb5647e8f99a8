"""Groups of queries: by the columns of the data, and by rankdash's definitions."""

import re
import unicodedata
from collections.abc import Mapping

from tests.referee.given import Labels

Groups = dict[str, str]
"""Query → its group."""


def column(queries: Mapping[str, Mapping[str, object]], name: str) -> Groups:
    """Return the values in the data; several values of a query are joined."""
    return {
        query: "; ".join(value) if isinstance(value := row[name], list) else str(value)
        for query, row in queries.items()
    }


def thirds(values: Mapping[str, float]) -> Groups:
    """Group by rank among the values, ties at the mean of their ranks; low values are hard."""
    ordered, found = sorted(values.values()), {}
    for query, value in values.items():
        below, equal = ordered.index(value), ordered.count(value)
        share = (below + (equal + 1) / 2) / len(ordered)
        found[query] = ("hard" if share <= 1 / 3 + 1e-9 else
                        "medium" if share <= 2 / 3 + 1e-9 else "easy")  # fmt: skip
    return found


def relevant(labels: Labels, threshold: float) -> Groups:
    """Return the number of documents labelled relevant, retrieved or not."""
    names = ((0, "none relevant"), (1, "1 relevant"), (3, "2–3 relevant"), (9, "4–9 relevant"))
    found = {}
    for query, known in labels.items():
        count = sum(label >= threshold for label in known.values())
        found[query] = _named(count, names, "10 or more relevant")
    return found


def script(text: str) -> str:
    """Return the script by the share of Chinese or Japanese characters among the letters."""
    letters = [each for each in text if each.isalpha()]
    share = sum(map(_is_cjk, letters)) / len(letters)
    latin = sum("LATIN" in unicodedata.name(each) for each in letters) / len(letters)
    if share > 0:
        return "Chinese or Japanese" if share >= 0.5 else "mixed scripts"
    return "Latin script" if latin >= 0.5 else "other script"


def length(text: str) -> str:
    """Return the length in words, or in characters if a query has Chinese or Japanese ones."""
    if any(map(_is_cjk, text)):
        count = sum(each.isalnum() for each in text)
        return _named(
            count, ((6, "1–6 characters"), (15, "7–15 characters")), "16 characters or more"
        )
    count = len(re.findall(r"\w+(?:['’-]\w+)*", text))
    return _named(count, ((3, "1–3 words"), (8, "4–8 words")), "9 words or more")


def _is_cjk(character: str) -> bool:
    return unicodedata.name(character, "").startswith(("CJK UNIFIED", "HIRAGANA", "KATAKANA"))


def _named(count: int, names: tuple[tuple[int, str], ...], more: str) -> str:
    return next((name for most, name in names if count <= most), more)
