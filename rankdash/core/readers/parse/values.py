"""Conversion of text to scores, ranks and labels, including labels written as words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rankdash.core.data.arrays import ArrowText, numbers_of, objects

Texts = npt.NDArray[np.object_]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# Word scales; the first one that contains most words of a file is used. Sources: WANDS (Exact,
# Partial, Irrelevant), Amazon ESCI (Exact, Substitute, Complement, Irrelevant), TREC-style grades.
WORD_SCALES: tuple[dict[str, float], ...] = tuple(
    {
        word: float(grade)
        for grade, words in enumerate(scale.split(" | "))
        for word in words.split(", ")
    }
    for scale in (
        "irrelevant | partial | exact",
        "irrelevant | complement | substitute | exact",
        "i | c | s | e",
        "irrelevant, not relevant, non relevant, nonrelevant, not_relevant, non-relevant "
        "| relevant",
        "not relevant, irrelevant, non-relevant | relevant, partially relevant, somewhat relevant "
        "| highly relevant, very relevant",
        "false | true",
        "no, n | yes, y",
        "bad | fair | good | excellent | perfect",
        "不相关, 无关 | 相关",
        "不相关, 无关 | 部分相关, 一般相关 | 高度相关, 完全相关, 非常相关",
        "否 | 是",
        "错误 | 正确",
    )
)
# The gains of the words in NDCG for Amazon's ESCI task (Reddy et al. 2022, section 4), which users
# may choose instead of the grades above.
WORD_GAINS: dict[str, float] = {
    name: gain
    for word, gain in zip(WORD_SCALES[1], (0.0, 0.01, 0.1, 1.0), strict=True)
    for name in (word, word[0])
}
_YES_NO = tuple(scale for scale in WORD_SCALES if scale.keys() & {"yes", "true", "是"})
_GRADE_AND_WORD = re.compile(r"([+-]?\d++(?:\.\d++)?)\s*+[-–—:：.、_)）=]\D.*", re.DOTALL)
_ID = re.compile(r"[A-Za-z_.:/#@-]*+\d[\w.:/#@-]*+", re.ASCII)
_LONGEST_ID = 100
# A column with more distinct words than this does not contain grades.
_MOST_WORDS = 20


def numbers(texts: Texts | ArrowText) -> Floats:
    """Convert (N,) texts (objects or Arrow text) to float64; NaN if a text is missing, "nan" or not
    a number."""
    if isinstance(texts, ArrowText):
        try:
            floats = texts.cast(pa.float64())
            return (
                floats.to_numpy(zero_copy_only=False) if floats.null_count else numbers_of(floats)
            )
        except pa.ArrowInvalid:
            texts = objects(texts)
    parsed = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
    return np.asarray(parsed, dtype=np.float64)


def blank(texts: Texts | ArrowText) -> Flags:
    """Return (N,) flags: True if a value is missing, empty or only white space."""
    if not isinstance(texts, ArrowText):
        texts = pa.array(texts, type=pa.string(), from_pandas=True)
    empty: Flags = numbers_of(pc.binary_length(pc.utf8_trim_whitespace(texts)), missing=0) == 0
    return empty


def looks_like_ids(texts: pd.Series[Any]) -> bool:
    """Return whether every value is one short ASCII token with a digit, such as `q12` or `007`,
    possibly with spaces around it."""
    has_ids = False
    for text in map(str.strip, pd.unique(texts.dropna())):
        if text:
            if len(text) > _LONGEST_ID or not _ID.fullmatch(text):
                return False
            has_ids = True
    return has_ids


@dataclass(frozen=True, eq=False)
class Labels:
    """Parsed labels.

    values: (N,) float64, NaN if a text is not a label.
    words: word → value, for the words that were read by a scale or by their leading number.
    """

    values: Floats
    words: dict[str, float] = field(default_factory=dict)


def labels(texts: Texts | ArrowText, chosen: Mapping[str, float | None] | None = None) -> Labels:
    """Read labels: numbers (including fractions and negative ones), `4-Excellent` by its number,
    and words by a scale if the column contains no plain numbers.

    chosen: word → label, set by the user instead of the scale; None if a word is not a label.
    """
    values = numbers(texts)
    if not np.isnan(values).any():
        return Labels(values)
    remaining = np.flatnonzero(np.isnan(values) & ~blank(texts))
    if not len(remaining):
        return Labels(values)
    if isinstance(texts, ArrowText):
        texts = objects(texts)
    codes, unique = pd.factorize(texts[remaining])
    if chosen is None:
        words = _guessed(unique, values)
    else:
        graded = {word: chosen.get(word.strip()) for word in unique}
        words = {word: float(value) for word, value in graded.items() if value is not None}
    values = values.copy()
    values[remaining] = np.array([words.get(word, np.nan) for word in unique], dtype=np.float64)[
        codes
    ]
    return Labels(values, words)


def _guessed(unique: Texts, values: Floats) -> dict[str, float]:
    """Return word → label, for words of a scale and words that begin with their number."""
    # A word in a column of numbers is more likely a mistake than a grade, unless all numbers are 0
    # or 1 and the words mean yes or no.
    numeric = set(values[np.isfinite(values)])
    scales = _YES_NO if numeric and numeric <= {0.0, 1.0} else () if numeric else WORD_SCALES
    plain_words = {word.strip().casefold() for word in unique}
    # The scale with most of the words, the first one on a tie.
    scale = max(scales, key=lambda scale: len(plain_words & scale.keys()), default={})
    words: dict[str, float] = {}
    for word in unique:
        graded = _GRADE_AND_WORD.fullmatch(word.strip())
        value = scale.get(word.strip().casefold())
        if value is None and graded:
            value = float(graded.group(1))
        if value is not None:
            words[word] = value
    return words


@dataclass(frozen=True)
class Word:
    """A label written as a word.

    text: without spaces around it. count: number of rows. grade: by the scales; None if unknown.
    gain: by `WORD_GAINS`; None if unknown."""

    text: str
    count: int
    grade: float | None
    gain: float | None


def words_in(texts: Texts) -> list[Word]:
    """Return the words of a label column, highest grade first, unknown ones last. Return [] if the
    user need not assign grades: no words, only yes and no, plain numbers (a word among them is a
    mistake), too many words for grades, or texts (unknown words that seldom repeat)."""
    values = numbers(texts)
    remaining = texts[np.isnan(values) & ~blank(texts)]
    counts = Counter(text.strip() for text in remaining)
    plain_words = {word.casefold() for word in counts}
    if (
        not counts
        or len(counts) > _MOST_WORDS
        or not np.isnan(values).all()
        or any(plain_words <= scale.keys() for scale in _YES_NO)
    ):
        return []
    guessed = _guessed(np.array(list(counts), dtype=object), values)
    if not guessed and 2 * len(counts) > len(remaining):
        return []
    entries = [
        Word(word, count, guessed.get(word), WORD_GAINS.get(word.casefold()))
        for word, count in counts.items()
    ]
    return sorted(entries, key=lambda word: (word.grade is None, -(word.grade or 0.0)))


def is_grade_word(text: str) -> bool:
    """Return whether a scale contains the word."""
    return any(text.casefold() in scale for scale in WORD_SCALES)
