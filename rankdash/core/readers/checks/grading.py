"""Checks of labels: their histogram, unusual grades, sparseness and direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base.errors import Finding
from rankdash.core.base.i18n import plain
from rankdash.core.data.arrays import Coded, Floats, Integers, arrow_integers, owners
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics.judged import labelled_rows
from rankdash.core.readers.parse.limits import counted

_THRESHOLD = 1.0
_MOST_BARS = 20
_BINS = 10
# Labels are suspected to be reversed if, over at least this many queries with two grades among
# their ranked documents, the mean correlation of label and rank reaches this value, and a sign test
# over queries exceeds z = 2 (in about 2 of 100 data sets by chance).
_FEWEST_QUERIES = 5
_CORRELATION = 0.15
_SIGN_TEST = 2.0
# Below this judged@10, most documents in the top ten are unlabelled.
_FEW_JUDGED = 0.5
# At most this many labels per query, all relevant, indicate a set with about one answer per query.
_ABOUT_ONE = 2.0


SPARSE = ("mostly_unjudged", "sparse_labels")
"""The codes of `sparse_labels`."""

NO_LABELS = Finding(
    "note",
    "no_labels",
    "There are no labels yet. Two rankings are enough to start: rankdash picks the documents to "
    "label.",
    remedy="Label documents on the page Label, let a language model grade them on the page Judge, "
    "or add a file of labels with a column label.",
)


@dataclass(frozen=True)
class LabelCount:
    """The number of labels from `low` to `high`; both are the label if the bar is one grade."""

    low: float
    high: float
    count: int


def histogram(labels: Floats) -> tuple[LabelCount, ...]:
    """Count labels: one bar per grade, or ten bars of equal width for more than 20 grades."""
    low, counts = np.unique(labels, return_counts=True)
    high = low
    if len(low) > _MOST_BARS:
        counts, edges = np.histogram(labels, bins=_BINS)
        low, high = edges[:-1], edges[1:]
    return tuple(map(LabelCount, low.tolist(), high.tolist(), counts.tolist()))


def label_findings(qrels: Mapping[str, Any]) -> list[Finding]:
    """Return findings about unusual labels. qrels: as `Dataset.labels`; not empty."""
    labels: Floats = qrels["label"]
    findings = []
    low, high = float(labels.min()), float(labels.max())
    if low == high:
        findings.append(
            Finding(
                "note",
                "one_grade",
                "Every label is {label}. Documents without a label count as not relevant.",
                {"label": plain(low)},
            )
        )
    elif low >= _THRESHOLD:
        findings.append(
            Finding(
                "warning",
                "all_relevant",
                "The lowest label is {low}, so every labelled document counts as relevant for "
                "metrics with a threshold of 1.",
                {"low": plain(low)},
                "If the lowest grade means not relevant, raise the threshold, or subtract it from "
                "all labels.",
            )
        )
    if high < _THRESHOLD:
        findings.append(
            Finding(
                "warning",
                "none_relevant",
                "The highest label is {high}, below the threshold of 1, so no document counts "
                "as relevant for metrics with a threshold.",
                {"high": plain(high)},
                "Lower the threshold, or use NDCG, which needs none.",
            )
        )
    negative = int((labels < 0).sum())
    if negative:
        template = "Negative labels: {count}. They count as judged and not relevant."
        findings.append(counted("note", "negative_labels", template, negative))
    fractional = int((labels != np.floor(labels)).sum())
    if fractional:
        template = "Labels with a fraction: {count}. They are used unchanged."
        findings.append(counted("note", "fractional_labels", template, fractional))
    return findings + _without_relevant(qrels["query_id"], labels)


def _without_relevant(queries: Coded, labels: Floats) -> list[Finding]:
    best = np.full(len(queries.texts), -np.inf)
    np.maximum.at(best, queries.codes, labels)
    none = np.flatnonzero(best < _THRESHOLD)
    if not len(none) or len(none) == len(best):
        return []
    return [
        counted(
            "warning",
            "no_relevant",
            "Labelled queries without a relevant document (label 1 or more): {count} of {all}.",
            len(none),
            "Such queries cannot show which ranking is better and are reported separately.",
            examples=queries.texts.take(arrow_integers(none[:5])).to_pylist(),
            all=len(best),
        )
    ]


def sparse_labels(
    qrels: Mapping[str, Any], rankings: Sequence[tuple[str, float | None]]
) -> list[Finding]:
    """Return a finding if most of a top ten has no label.

    qrels: as `Dataset.labels`. rankings: name and judged@10 of each (None if unknown), the first
    stage first. The finding is a warning; only for the first stage, a note if there is about one
    label per query and all are relevant, which is usual in sets made from questions and their
    passages.
    """
    few = [(name, share) for name, share in rankings if share is not None and share < _FEW_JUDGED]
    if not few:
        return []
    name, judged = few[0]
    per_query = len(qrels["label"]) / len(qrels["query_id"].texts)
    params = {"judged": judged, "labels": per_query}
    only_relevant = float(qrels["label"].min()) >= _THRESHOLD
    if only_relevant and per_query <= _ABOUT_ONE:
        if name != rankings[0][0]:
            return []
        return [
            Finding(
                "note",
                "sparse_labels",
                "Labels are sparse: about {labels:.1f} per query, all for relevant documents; "
                "{judged:.0%} of the first ten documents of the first stage have a label. "
                "Documents without a label count as not relevant.",
                params,
                "See Overview > Documents without a label for what they could change.",
            )
        ]
    return [
        Finding(
            "warning",
            "mostly_unjudged",
            "Only {judged:.0%} of the first ten documents of the ranking {name} have a label. "
            "Documents without a label count as not relevant, so a system that finds good new "
            "documents looks worse than it is.",
            {**params, "name": name},
            "Label documents on the page Label, or see Overview > Documents without a label for "
            "what they could change. Condensed lists (judged documents only) need labels of not "
            "relevant documents, which this data set does not have."
            if only_relevant
            else "Label documents on the page Label, see Overview > Documents without a label for "
            "what they could change, or choose Condensed lists (judged documents only) under "
            "Metric conventions.",
        )
    ]


def direction(ranking: Ranking, qrels: Mapping[str, Any]) -> list[Finding]:
    """Return a warning if low labels are at the top of the ranking, for example if 1 means best.
    qrels: as `Dataset.labels`.

    The test uses each query's Spearman correlation of rank and label over the labelled documents in
    the ranking; above 0, higher labels are ranked lower. Labels below 0 mean not relevant in either
    direction and are ignored.
    """
    at, pairs = labelled_rows(ranking, qrels["query_id"], qrels["doc_id"])
    labels = qrels["label"][pairs]
    order = np.argsort(at)
    order = order[labels[order] >= 0]
    at, labels = at[order], labels[order]
    if not len(at):
        return []
    correlation = _correlations(owners(ranking.offsets)[at], labels)
    deeper, higher = int((correlation > 0).sum()), int((correlation < 0).sum())
    if len(correlation) < _FEWEST_QUERIES or correlation.mean() < _CORRELATION:
        return []
    if (deeper - higher) / np.sqrt(max(deeper + higher, 1)) < _SIGN_TEST:
        return []
    best = float(labels.min())
    return [
        Finding(
            "warning",
            "label_direction",
            "Low labels are at the top of the first stage in {count} of {queries} queries: "
            "{best} seems to be the best grade.",
            {"count": deeper, "queries": len(correlation), "best": plain(best)},
            "A higher label must be better. If the lowest label is the best in your data, reverse "
            "the labels: on the page Data, or with --reverse-labels N, where N is the grade that "
            "means not relevant.",
            count=deeper,
        )
    ]


def _correlations(query: Integers, labels: Floats) -> Floats:
    """Return Spearman's correlation of rank and label per query, for queries with two labels.

    query: (N,) ascending; labels: (N,) in the order of the ranking.
    """
    rows = pd.DataFrame({"place": np.arange(len(query)), "grade": labels}).groupby(query)
    # Equal labels share their mean rank.
    ranks = rows.rank()
    ranks -= ranks.groupby(query).transform("mean")
    ranks = ranks.assign(both=ranks["place"] * ranks["grade"])
    ranks[["place", "grade"]] **= 2
    places, grades, both = ranks.groupby(query).sum().to_numpy().T
    varied = (places > 0) & (grades > 0)
    correlation: Floats = both[varied] / np.sqrt(places[varied] * grades[varied])
    return correlation
