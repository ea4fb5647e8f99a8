"""Text to numbers: scores, ranks and labels, also labels written as words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

Texts = npt.NDArray[np.object_]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# Word scales, the first that knows most words of a file wins. Sources: WANDS (Exact, Partial,
# Irrelevant), Amazon ESCI (Exact, Substitute, Complement, Irrelevant), TREC-style grades.
WORD_SCALES: tuple[dict[str, float], ...] = (
    {"exact": 2, "partial": 1, "irrelevant": 0},
    {"exact": 3, "substitute": 2, "complement": 1, "irrelevant": 0},
    {"e": 3, "s": 2, "c": 1, "i": 0},
    {
        "relevant": 1,
        "irrelevant": 0,
        "not relevant": 0,
        "non relevant": 0,
        "nonrelevant": 0,
        "not_relevant": 0,
        "non-relevant": 0,
    },
    {
        "highly relevant": 2,
        "very relevant": 2,
        "relevant": 1,
        "partially relevant": 1,
        "somewhat relevant": 1,
        "not relevant": 0,
        "irrelevant": 0,
        "non-relevant": 0,
    },
    {"true": 1, "false": 0},
    {"yes": 1, "no": 0, "y": 1, "n": 0},
    {"perfect": 4, "excellent": 3, "good": 2, "fair": 1, "bad": 0},
    {"相关": 1, "不相关": 0, "无关": 0},
    {
        "高度相关": 2,
        "完全相关": 2,
        "非常相关": 2,
        "部分相关": 1,
        "一般相关": 1,
        "不相关": 0,
        "无关": 0,
    },
    {"是": 1, "否": 0},
    {"正确": 1, "错误": 0},
)
_YES_NO = tuple(scale for scale in WORD_SCALES if scale.keys() & {"yes", "true", "是"})
_GRADE_AND_WORD = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*[-–—:：.、_)）=]\s*\D.*", re.DOTALL)
_ID = re.compile(r"[\w.:/#@-]*\d[\w.:/#@-]*", re.ASCII)
_LONGEST_ID = 100


def numbers(texts: Texts) -> Floats:
    """(N,) float64; NaN where the text is no number, is missing, or says "nan"."""
    parsed = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
    return np.asarray(parsed, dtype=np.float64)


def blank(texts: Texts) -> Flags:
    """(N,) whether a value is missing, empty, or only white space."""
    trimmed = pc.utf8_trim_whitespace(pa.array(texts, type=pa.string(), from_pandas=True))
    empty: Flags = pc.fill_null(pc.equal(trimmed, ""), True).to_numpy(zero_copy_only=False)
    return empty


def looks_like_ids(texts: pd.Series[Any]) -> bool:
    """Whether every value is one short ASCII token with a digit in it, such as `q12` or `007`."""
    told = False
    for text in pd.unique(texts.dropna()):
        if text and not text.isspace():
            if len(text) > _LONGEST_ID or not _ID.fullmatch(text):
                return False
            told = True
    return told


@dataclass(frozen=True, eq=False)
class Labels:
    """values: (N,) float64, NaN where a text is no label.

    words: word → value, for the words that were read by a scale or by their leading number.
    """

    values: Floats
    words: dict[str, float] = field(default_factory=dict)


def labels(texts: Texts) -> Labels:
    """Read labels: numbers as they are (fractions and negative ones too), `4-Excellent` by its
    number, and words by a scale where the column holds no plain numbers."""
    values = numbers(texts)
    left = np.flatnonzero(np.isnan(values) & ~blank(texts))
    if not len(left):
        return Labels(values)
    codes, unique = pd.factorize(texts[left])
    # A stray word among numbers is more likely a mistake than a grade, unless all that there is
    # says yes or no.
    said = set(values[np.isfinite(values)])
    scales = _YES_NO if said and said <= {0.0, 1.0} else () if said else WORD_SCALES
    scale = _scale({word.strip().casefold() for word in unique}, scales)
    words: dict[str, float] = {}
    for word in unique:
        graded = _GRADE_AND_WORD.fullmatch(word.strip())
        value = scale.get(word.strip().casefold())
        if value is None and graded:
            value = float(graded.group(1))
        if value is not None:
            words[word] = value
    values = values.copy()
    values[left] = np.array([words.get(word, np.nan) for word in unique], dtype=np.float64)[codes]
    return Labels(values, words)


def is_grade_word(text: str) -> bool:
    """Whether some scale knows the word."""
    return any(text.casefold() in scale for scale in WORD_SCALES)


def _scale(words: set[str], scales: Sequence[dict[str, float]]) -> dict[str, float]:
    """The one that knows most of the words, the first of several; {} where there is none."""
    return max(scales, key=lambda scale: len(words & scale.keys()), default={})
