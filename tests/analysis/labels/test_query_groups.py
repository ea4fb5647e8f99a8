"""Differences by kind of query: every query in one segment, small ones marked, p corrected."""

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import evaluate, judge
from rankdash.core.statistics.inference import intervals, p_values
from rankdash.core.study.groups import (
    DERIVED_SEGMENTS,
    UNKNOWN,
    by_segment,
    cjk_share,
    grouped,
    mean_changes,
    of_texts,
    of_values,
)
from tests.results import results


def pairs(deltas, start=0) -> pd.DataFrame:
    """Return one row per query: q0, q1, …; NaN for a query without a difference."""
    deltas = np.asarray(deltas, dtype=float)
    before = np.where(np.isnan(deltas), np.nan, 0.4)
    return pd.DataFrame(
        {
            "query_id": [f"q{number}" for number in range(len(deltas))],
            "before": before,
            "after": before + deltas,
            "delta": deltas,
            "state": np.where(np.isnan(deltas), "failed", "paired"),
        }
    )


def segment(*names) -> pd.Series:
    return pd.Series(names, index=[f"q{number}" for number in range(len(names))], dtype=object)


RNG = np.random.default_rng(3)
GAIN = RNG.normal(0.2, 0.1, 40)
NOISE = RNG.normal(0.0, 0.1, 20)


GAIN_AND_NOISE = pairs([*GAIN, *NOISE]), segment(*["gain"] * 40, *["noise"] * 20)
SIZES = segment(*["ten"] * 10, *["seven"] * 7, *["one"] * 2)
LETTERS = segment("b", "b", "b", "a", "c", "c")
T = StatisticsSettings(test="t")
# If all queries have the same change, p does not depend on resampling.
CASES = {
    "a gain and noise": lambda: by_segment(*GAIN_AND_NOISE, T),
    "by size": lambda: by_segment(pairs([0.1] * 6), LETTERS, T),
    "in the order asked for, then by size": lambda: by_segment(
        pairs([0.1] * 6), LETTERS, T, order=("a", "c")
    ),
    # A segment without a test does not count as a comparison in the correction.
    "small ones are marked, the smallest has no interval": lambda: by_segment(
        pairs([0.1, 0.2] * 5 + [0.1] * 7 + [0.1, np.nan]), SIZES, T
    ),
    "without a difference": lambda: by_segment(
        pairs([0.1, np.nan, np.nan]), segment("a", "a", "b"), T
    ),
    "up, within the band and down": lambda: by_segment(
        pairs([0.1, 0.004, -0.004, -0.1, 0.0]), segment(*"aaaaa"), T
    ),
    "without a value": lambda: by_segment(pairs([0.1] * 4), segment("a", None, "", "a"), T),
    "not in the column": lambda: by_segment(pairs([0.1] * 4), segment("a", "a"), T),
    "equal differences": lambda: by_segment(pairs([0.0] * 12), segment(*"a" * 12), T),
    "no queries": lambda: by_segment(pairs([]), segment(), T),
    "many values": lambda: by_segment(
        pairs([0.1] * 81), segment(*[f"v{n}" for n in range(40) for _ in range(2)], "v7"), T
    )[["segment", "n"]].iloc[[0, 1, 2, -1]],
}


def test_each_segment_has_its_own_difference_and_a_p_that_is_corrected(approved):
    approved("analysis/segments", results(CASES))


@pytest.mark.parametrize(
    "changed", [{"test": "wilcoxon"}, {"interval": "percentile", "resamples": 500}, {"level": 0.8}]
)
def test_a_segment_is_tested_as_the_settings_say(changed):
    settings = StatisticsSettings(seed=1, **changed)
    found = by_segment(*GAIN_AND_NOISE, settings).set_index("segment").loc["noise"]
    (low,), (high,) = intervals(NOISE[:, None], settings)
    (p,) = p_values(NOISE[:, None], settings)
    assert found[["low", "high", "p"]].tolist() == pytest.approx([low, high, p], rel=1e-9)


TEXTS = (
    "How do I return a toaster?", "Où est ma commande ?", "điện thoại", "как вернуть товар",
    "الإرجاع", "반품 방법", "как вернуть iPad", "Gerät mit Ω", "如何退货", "42", "",
    "返品 policy for returns", "  ", "123 ?!", "BM25 是什么意思", "iPhone 充电", "二〇二六年",
    "ひらがなとカタカナ", "gift card", "how do I return a gift card",
    "where can I read what the terms of the club say",
    # Words and characters on either side of a boundary.
    "one two three", "one two three four", "1 2 3 4 5 6 7 eight", "1 2 3 4 5 6 7 8 nine",
    "六个汉字如何", "七个汉字如何退", "一二三四五六七八九十一二三四五",
    "一二三四五六七八九十一二三四五六",
    None,
)  # fmt: skip


def test_queries_are_described_by_script_length_and_what_they_have(approved):
    ids = [f"q{number}" for number in range(len(TEXTS))]
    lists = [
        # The relevant document is at rank 1, 2, 3, 4, 1, …
        (query, [*(f"x{n}" for n in range(at % 4)), "a"], [-float(n) for n in range(at % 4 + 1)])
        for at, query in enumerate(ids)
    ]
    # Two queries have another relevant document; the last query has none.
    labels = [(query, "a", 1.0) for query in ids[:-1]] + [(ids[-1], "a", 0.5)]
    labels += [(query, "x3", 1.0) for query in ids[:2]] + [(ids[0], "x2", 0.5)]
    # With these, four queries have 3, 4, 9 and 10 relevant documents.
    more = dict(zip(ids[2:6], (2, 3, 8, 9), strict=True))
    labels += [(query, f"y{n}", 1.0) for query, count in more.items() for n in range(count)]
    documents = ["a", *(f"x{n}" for n in range(4)), *(f"y{n}" for n in range(9))]
    data = Dataset(
        "made",
        pd.DataFrame({"query_id": ids, "text": TEXTS}),
        pd.DataFrame({"doc_id": documents, "title": "", "text": "t"}),
        pd.DataFrame(labels, columns=["query_id", "doc_id", "label"]),
        Ranking.from_lists(lists),
    )
    values = evaluate(judge(data.candidates, data.qrels), ["mrr", "hit"])
    parts = (of_texts(data), of_values(data, values, "mrr"))
    table = pd.concat([part.set_index("query_id") for part in parts], axis=1)
    for kind in DERIVED_SEGMENTS:
        assert set(table[kind.name].dropna()) <= set(kind.values)
    assert [kind.name for kind in DERIVED_SEGMENTS] == list(table.columns)
    # Queries of equal value are equally difficult.
    assert of_values(data, values, "hit")["difficulty"].dropna().nunique() == 1
    cases = dict(zip(map(repr, TEXTS), table.to_dict("records"), strict=True))
    shares = {f"{text!r} is Chinese or Japanese": cjk_share(text) for text in TEXTS if text}
    notes = {f"the note of {kind.name}": kind.note for kind in DERIVED_SEGMENTS}
    approved("analysis/kinds_of_queries", results(cases | shares | notes))


def test_means_alone_are_those_of_the_table():
    found = pairs([0.1, -0.3, np.nan, 0.2, 0.05, -0.1])
    kinds = pd.Series(["a", "b", "b", "", "a", "b"], index=found["query_id"])
    table = by_segment(found, kinds).set_index("segment")
    means = mean_changes(found, grouped(found, kinds))
    assert set(means.index) == set(table.index) == {"a", "b", UNKNOWN}
    for each in table.index:
        assert means.loc[each, "n"] == table.loc[each, "n"]
        assert means.loc[each, "delta"] == pytest.approx(table.loc[each, "delta"], abs=1e-15)
