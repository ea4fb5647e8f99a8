"""Segments of queries, and their changes with intervals."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.rules import FEWEST_QUERIES, StatisticsSettings
from rankdash.core.data.arrays import Floats
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.weights import Weights
from rankdash.core.metrics import Evaluation
from rankdash.core.statistics.alignment import direction, weights_in
from rankdash.core.statistics.inference import corrected, intervals, p_values
from rankdash.core.statistics.verdict import is_proven
from rankdash.core.statistics.weighted import has_few_effective
from rankdash.core.study.cache import part

if TYPE_CHECKING:
    from rankdash.core.study.study import Study

Texts = npt.NDArray[np.object_]

SMALL = 10
"""Segments with fewer paired queries are marked: their interval is only approximate."""

UNKNOWN = "unknown"
_MOST_VALUES = 30
OTHER = "other"


@dataclass(frozen=True)
class DerivedSegment:
    """A segment that rankdash derives from texts, labels or values.

    note: a caveat; "" if none. values: all possible values, in the order of charts.
    """

    name: str
    title: str
    meaning: str
    values: tuple[str, ...]
    note: str = ""


_LANGUAGES = ("Chinese or Japanese", "mixed scripts", "Latin script", "other script", UNKNOWN)
_WORDS = ("1–3 words", "4–8 words", "9 words or more")
_CHARACTERS = ("1–6 characters", "7–15 characters", "16 characters or more")
_RELEVANT = ("none relevant", "1 relevant", "2–3 relevant", "4–9 relevant", "10 or more relevant")
_DIFFICULTY = ("easy", "medium", "hard")

DERIVED_SEGMENTS = (
    DerivedSegment(
        "language",
        "Script of the query",
        "By the share of Chinese or Japanese characters among its letters: half or more, or some. "
        "Without them: Latin script if half of the letters or more are Latin.",
        _LANGUAGES,
    ),
    DerivedSegment(
        "query_length",
        "Length of the query",
        "In words, or in characters for queries with Chinese or Japanese text.",
        (*_WORDS, *_CHARACTERS, UNKNOWN),
    ),
    DerivedSegment(
        "relevant_documents",
        "Relevant documents",
        "The number of documents of the query that are labelled relevant, retrieved or not.",
        _RELEVANT,
    ),
    DerivedSegment(
        "difficulty",
        "First-stage difficulty",
        "By the baseline's own value: its lowest third of the queries, the middle, the highest. "
        "Queries with equal values stay together, so the thirds can be uneven.",
        _DIFFICULTY,
        note="Regression to the mean: queries selected because the baseline did badly on them "
        "gain on average by chance, and queries on which it did well lose. Compare systems "
        "within a third, not the thirds with each other.",
    ),
)
"""The segments of `of_texts`, then of `of_values`, in their order."""

_CJK = re.compile(
    r"[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U000323af]"
)
_LATIN = re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def of_texts(dataset: Dataset) -> pd.DataFrame:
    """Return the segments derived from the texts of queries: query_id, language, query_length, one
    row per query of the data set."""
    texts = dataset.query_text()
    shares = [cjk_share(text) for text in texts]
    lengths = [_length(text, share) for text, share in zip(texts, shares, strict=True)]
    return pd.DataFrame(
        {
            "query_id": texts.index.to_numpy(dtype=object),
            "language": [_language(text, share) for text, share in zip(texts, shares, strict=True)],
            "query_length": lengths,
        }
    )


def of_values(dataset: Dataset, baseline: Evaluation, spec: str) -> pd.DataFrame:
    """Return the segments derived from labels and values: query_id, relevant_documents, difficulty.

    baseline: its value of `spec` determines the difficulty of a query. Without a value, the
    difficulty is missing.

    Raises SpecError if `spec` was not evaluated.
    """
    texts = dataset.query_text()
    values = pd.Series(baseline.column(spec), index=baseline.query_ids).reindex(texts.index)
    labels = dataset.qrels
    relevant = labels.loc[labels["label"] >= baseline.conventions.threshold, "query_id"]
    counts = relevant.value_counts().reindex(texts.index, fill_value=0).to_numpy()
    return pd.DataFrame(
        {
            "query_id": texts.index.to_numpy(dtype=object),
            "relevant_documents": _bucket(counts, (0, 1, 3, 9), _RELEVANT),
            "difficulty": _thirds(values.to_numpy()),
        }
    )


def cjk_share(text: str) -> float:
    """Return the share of Chinese and Japanese characters among the letters; NaN without
    letters."""
    if text.isascii():
        return 0.0 if any(map(str.isalpha, text)) else math.nan
    cjk = len(_CJK.findall(text))
    letters = sum(map(str.isalpha, text))
    # The iteration mark and the zero of Chinese numerals are CJK without being letters.
    return cjk / max(letters, cjk) if letters or cjk else math.nan


def _language(text: str, share: float) -> str:
    chinese, mixed, latin, other, unknown = _LANGUAGES
    if math.isnan(share):
        return unknown
    if share > 0:
        return chinese if share >= 0.5 else mixed
    letters = sum(map(str.isalpha, text))
    return latin if 2 * len(_LATIN.findall(text)) >= letters else other


def _length(text: str, share: float) -> str:
    if not text.strip():
        return UNKNOWN
    if share > 0:
        characters = sum(1 for character in text if character.isalnum())
        return _CHARACTERS[bisect_left((6, 15), characters)]
    return _WORDS[bisect_left((3, 8), len(_WORD.findall(text)))]


def _bucket(
    counts: npt.NDArray[np.integer[Any]], edges: tuple[int, ...], names: tuple[str, ...]
) -> Texts:
    return np.array(names, dtype=object)[np.searchsorted(edges, counts)]


def _thirds(values: npt.NDArray[np.floating[Any]]) -> Texts:
    """Return (Q,) easy, medium or hard, by the rank of each value; equal values get the same
    difficulty, NaN gets None."""
    ranks = pd.Series(values).rank(pct=True, method="average").to_numpy()
    # The lowest third is the hardest.
    place = 2 - np.minimum(np.searchsorted((1 / 3 + 1e-9, 2 / 3 + 1e-9), ranks), 2)
    named: Texts = np.array([*_DIFFICULTY], dtype=object)[place]
    named[np.isnan(values)] = None
    return named


def by_segment(
    pairs: pd.DataFrame,
    segment: pd.Series[str],
    settings: StatisticsSettings | None = None,
    *,
    order: Sequence[str] = (),
    possible: tuple[float, float] = (-math.inf, math.inf),
) -> pd.DataFrame:
    """Return the paired difference for each value of a segment: the values in `order` first, then
    by size, descending.

    pairs: from `rankdash.core.statistics.alignment.paired`. segment: values, indexed by query id;
        queries without a value form the segment `UNKNOWN`. If there are more than 30 values, all
        but the 29 largest are merged into the segment `OTHER`. order: such as
        `DerivedSegment.values`. possible: the lowest and the highest change of the metric.

    Columns: segment; n (paired queries); left_out (queries of the segment without a difference);
    before, after, delta (means); low, high (interval of delta) and p, by the settings;
    p_corrected over the segments of the table, regardless of the setting `family`;
    helped, same, hurt; size: "enough", "small" (fewer than `SMALL` queries) or "too_few" (fewer
    than `FEWEST_QUERIES`, or such an effective number of weighted queries: low, high, p and
    p_corrected are NaN; without any query the means are NaN too).

    Segments are chosen after the results are known: an interval that excludes 0 in one of them is
    a reason to look closer, and p_corrected accounts for the number of segments.
    """
    settings = settings or StatisticsSettings()
    names = _named(pairs, segment)
    rows: list[dict[str, Any]] = []
    for name in pd.unique(names):
        members = pairs[names == name]
        valid = members.dropna(subset="delta")
        rows.append(
            {
                "segment": name,
                "n": len(valid),
                "left_out": len(members) - len(valid),
                **_change(valid, settings, possible),
                **_tally(valid["delta"].to_numpy(), settings.tie_band),
                "size": _size(len(valid), weights_in(valid)),
            }
        )
    place = {name: position for position, name in enumerate(order)}
    rows.sort(key=lambda row: (place.get(row["segment"], len(place)), -row["n"]))
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    raw = frame["p"].to_numpy(dtype=np.float64).tolist()
    frame["p_corrected"] = corrected(raw, settings.correction)
    return frame


_COLUMNS = (
    "segment",
    "n",
    "left_out",
    "before",
    "after",
    "delta",
    "low",
    "high",
    "p",
    "p_corrected",
    "helped",
    "same",
    "hurt",
    "size",
)


def mean_changes(pairs: pd.DataFrame, groups: pd.Categorical) -> pd.DataFrame:
    """Return n and delta of `by_segment`, indexed by segment, without the slow intervals and tests.
    groups: from `grouped` of the same pairs."""
    delta = pairs["delta"].to_numpy(dtype=np.float64)
    valid = ~np.isnan(delta)
    codes, size = groups.codes[valid], len(groups.categories)
    n = np.bincount(codes, minlength=size)
    weights = weights_in(pairs)
    searches = None if weights is None else weights.searches[valid]
    added = delta[valid] if searches is None else searches * delta[valid]
    with np.errstate(invalid="ignore"):
        means = np.bincount(codes, added, minlength=size) / (
            n if searches is None else np.bincount(codes, searches, minlength=size)
        )
    return pd.DataFrame({"n": n, "delta": means}, index=groups.categories)


def grouped(pairs: pd.DataFrame, segment: pd.Series[str]) -> pd.Categorical:
    """Return (pairs,) the segment of each query, as in `by_segment`."""
    return pd.Categorical(_named(pairs, segment))


def _named(pairs: pd.DataFrame, segment: pd.Series[str]) -> Texts:
    values = segment.reindex(pairs["query_id"]).astype(object)
    names = values.where(values.notna() & (values != ""), UNKNOWN).to_numpy(dtype=object)
    return _merge_rare(names)


def _merge_rare(names: Texts) -> Texts:
    counts = pd.Series(names, dtype=object).value_counts()
    if len(counts) <= _MOST_VALUES:
        return names
    frequent = set(counts.index[: _MOST_VALUES - 1])
    return np.array([name if name in frequent else OTHER for name in names], dtype=object)


def _change(
    valid: pd.DataFrame, settings: StatisticsSettings, possible: tuple[float, float]
) -> dict[str, float]:
    weights = weights_in(valid)
    means = {
        column: float(valid[column].mean())
        if weights is None
        else weights.mean(valid[column].to_numpy(dtype=np.float64))
        for column in ("before", "after", "delta")
    }
    deltas = valid[["delta"]].to_numpy(dtype=np.float64)
    (low,), (high,) = intervals(deltas, settings, possible=possible, weights=weights)
    (p,) = p_values(deltas, settings, weights=weights)
    return {**means, "low": low, "high": high, "p": p}


def _tally(deltas: npt.NDArray[np.float64], tie_band: float) -> dict[str, int]:
    sign = direction(deltas, tie_band)
    return {
        "helped": int((sign > 0).sum()),
        "same": int((sign == 0).sum()),
        "hurt": int((sign < 0).sum()),
    }


def _size(n: int, weights: Weights | None) -> str:
    if n < FEWEST_QUERIES or has_few_effective(weights):
        return "too_few"
    return "small" if n < SMALL else "enough"


# The change of each kind of queries, for caveats and decisions.

# Derived from values and labels: a router cannot recognise these kinds, and queries on which the
# baseline did badly gain by chance (regression to the mean).
_NO_KINDS = frozenset({"difficulty", "relevant_documents"})
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Group:
    """A kind of queries: column and value. n: its compared queries. delta: their mean change.
    proven: whether this change is proven, corrected for the kinds of its column."""

    column: str
    value: str
    n: int
    delta: float
    proven: bool


def groups(study: Study, challenger: str) -> list[Group]:
    """Return every kind with enough queries for an interval, of columns with at least two kinds.
    Queries without a value are excluded."""
    return _groups(study, challenger, _columns(study))


def turned(study: Study, challenger: str, change: float) -> list[Group]:
    """Return the `groups` of at least `SMALL` queries that change by more than the tie band in the
    direction opposite to `change`."""
    other_side, band = -math.copysign(1, change), study.statistics.tie_band

    def may(column: str) -> bool:
        means = mean_changes(study.pairs(challenger), _grouped(study, challenger, column))
        beyond = other_side * means["delta"] > band - _ROUNDING
        return bool((beyond & (means["n"] >= SMALL)).any())

    # Intervals and tests are slow: only columns with such a group need them.
    columns = [each for each in _columns(study) if may(each)]
    return [
        each
        for each in _groups(study, challenger, columns)
        if each.n >= SMALL and other_side * each.delta > band
    ]


@part("labels", "baseline", "metric", "conventions")
def contrasts(study: Study, challenger: str) -> dict[str, float]:
    """Return column → p of an F test that the mean changes of its groups are equal, for each column
    with at least two groups. Groups of fewer than `FEWEST_QUERIES` queries are excluded; p is NaN
    if fewer than two remain, and if means are per search. The smallest p is first; columns derived
    from values and labels are last."""
    pairs, kinds = study.pairs(challenger), _columns(study)
    by_column: dict[str, float] = {}
    for column in study.segments:
        derived = column not in kinds
        groups = (
            grouped(pairs, study.grouping(column))
            if derived
            else _grouped(study, challenger, column)
        )
        if (mean_changes(pairs, groups)["n"] > 0).sum() > 1:
            delta = pairs["delta"].to_numpy(dtype=np.float64)
            weighted = study.conventions.weighted
            by_column[column] = math.nan if weighted else _p_of_difference(delta, groups)
    order = sorted(
        by_column, key=lambda name: (name not in kinds, np.nan_to_num(by_column[name], nan=2.0))
    )
    return {name: by_column[name] for name in order}


def _p_of_difference(delta: Floats, groups: pd.Categorical) -> float:
    from scipy.special import fdtrc

    valid = ~np.isnan(delta)
    members = (delta[valid & (groups.codes == code)] for code in range(len(groups.categories)))
    samples = [each for each in members if len(each) >= FEWEST_QUERIES]
    if len(samples) < 2:
        return math.nan
    mean = np.concatenate(samples).mean()
    between = sum(len(each) * (each.mean() - mean) ** 2 for each in samples)
    within = sum(((each - each.mean()) ** 2).sum() for each in samples)
    free = len(samples) - 1, sum(map(len, samples)) - len(samples)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(fdtrc(*free, np.divide(between / free[0], within / free[1])))


def _grouped(study: Study, challenger: str, column: str) -> pd.Categorical:
    """Return the kind of each query of the pairs, for kinds not derived from labels or values."""
    # Unless queries that a system did not rank are excluded, all pairs have the same queries.
    both = study.conventions.queries == "both"
    pair = (study.baseline, challenger)
    key = ("grouped", study.dataset_id, column, *(pair if both else ()))
    return study.once(key, lambda: grouped(study.pairs(challenger), study.grouping(column)))


def _columns(study: Study) -> list[str]:
    derived = _NO_KINDS - set(study.dataset.segments)
    return [each for each in study.segments if each not in derived]


def _groups(study: Study, challenger: str, columns: Iterable[str]) -> list[Group]:
    groups = []
    for column in columns:
        table = study.segment(challenger, column)
        if (table["n"] > 0).sum() < 2:
            continue
        tested = table[(table["n"] >= FEWEST_QUERIES) & (table["segment"] != UNKNOWN)]
        for row in tested.to_dict("records"):
            proven = is_proven(row["low"], row["high"], row["p_corrected"], study.statistics.level)
            size = int(row["n"]), float(row["delta"])
            groups.append(Group(column, str(row["segment"]), *size, proven))
    return groups
