"""Differences by kind of query: every query in one segment, small ones marked, p corrected."""

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.labels.query_groups import (
    DERIVED_SEGMENTS,
    OTHER,
    UNKNOWN,
    by_segment,
    cjk_share,
    grouped,
    mean_changes,
    of_texts,
    of_values,
)
from rankdash.analysis.statistics.bootstrap import (
    Columns,
    bootstrap_means,
    percentile_interval,
)
from rankdash.analysis.statistics.inference import intervals, p_values
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.dataset import Dataset
from rankdash.metrics import evaluate, judge
from rankdash.ranking.ranking import Ranking


def pairs(deltas, start=0) -> pd.DataFrame:
    """One row a query: q0, q1, …; NaN for one that has no difference."""
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


def two() -> pd.DataFrame:
    deltas = pairs([*GAIN, *NOISE])
    return by_segment(deltas, segment(*["gain"] * 40, *["noise"] * 20)).set_index("segment")


def test_each_segment_has_its_own_difference_and_interval():
    table = two()
    assert table.loc["gain", "delta"] == pytest.approx(GAIN.mean())
    assert table.loc["gain", "before"] == pytest.approx(0.4)
    assert table.loc["gain", "after"] == pytest.approx(0.4 + GAIN.mean())
    assert table.loc["gain", "low"] > 0
    assert table.loc["noise", "low"] < 0 < table.loc["noise", "high"]
    low, high = percentile_interval(bootstrap_means(Columns.of(GAIN[:, None])))
    assert table.loc["gain", "low"] == pytest.approx(low[0], abs=0.01)
    assert table.loc["gain", "high"] == pytest.approx(high[0], abs=0.01)


def test_p_is_corrected_for_the_number_of_segments():
    table = two()
    small, large = table.loc["gain"], table.loc["noise"]
    assert small["p"] < 0.01
    assert small["p_corrected"] == pytest.approx(2 * small["p"])
    assert large["p_corrected"] == pytest.approx(large["p"])
    assert large["p"] > 0.05


@pytest.mark.parametrize(
    "changed",
    [
        {"test": "t"},
        {"test": "wilcoxon"},
        {"interval": "percentile"},
        {"resamples": 500},
        {"seed": 1},
        {"level": 0.8},
    ],
)
def test_a_segment_is_tested_as_the_settings_say(changed):
    settings = StatisticsSettings(**changed)
    noise = pairs([*GAIN, *NOISE])
    table = by_segment(noise, segment(*["gain"] * 40, *["noise"] * 20), settings)
    found = table.set_index("segment").loc["noise"]
    (low,), (high,) = intervals(NOISE[:, None], settings)
    (p,) = p_values(NOISE[:, None], settings)
    assert found[["low", "high", "p"]].tolist() == pytest.approx([low, high, p], rel=1e-9)


def test_segments_come_in_the_order_asked_for_then_by_size():
    deltas = pairs([0.1] * 6)
    names = segment("b", "b", "b", "a", "c", "c")
    assert list(by_segment(deltas, names)["segment"]) == ["b", "c", "a"]
    assert list(by_segment(deltas, names, order=("a", "c"))["segment"]) == ["a", "c", "b"]


def test_small_segments_are_marked_and_the_smallest_claim_no_interval():
    deltas = pairs([0.1, 0.2] * 5 + [0.1] * 7 + [0.1, np.nan])
    names = segment(*["ten"] * 10, *["seven"] * 7, *["one"] * 2)
    table = by_segment(deltas, names).set_index("segment")
    assert table["size"].to_dict() == {"ten": "enough", "seven": "small", "one": "too_few"}
    assert table.loc[["ten", "seven"], ["low", "high", "p", "p_corrected"]].notna().all(axis=None)
    assert table.loc["one", ["low", "high", "p", "p_corrected"]].isna().all()
    assert table.loc["one", "delta"] == pytest.approx(0.1)
    # The segment without a test is no comparison to correct for.
    p = table.loc["ten", "p"]
    assert table.loc["ten", "p_corrected"] == pytest.approx(min(1, 2 * p))


def test_queries_without_a_difference_are_counted_and_left_out():
    table = by_segment(pairs([0.1, np.nan, np.nan]), segment("a", "a", "b")).set_index("segment")
    assert table.loc["a", ["n", "left_out"]].tolist() == [1, 1]
    assert table.loc["b", ["n", "left_out", "helped", "same", "hurt"]].tolist() == [0, 1, 0, 0, 0]
    assert np.isnan(table.loc["b", "delta"])


def test_helped_same_and_hurt_add_up_to_the_queries():
    table = by_segment(pairs([0.1, 0.004, -0.004, -0.1, 0.0]), segment(*"aaaaa")).iloc[0]
    assert (table["helped"], table["same"], table["hurt"], table["n"]) == (1, 3, 1, 5)


def test_a_query_without_a_value_is_unknown_and_none_is_lost():
    table = by_segment(pairs([0.1] * 4), segment("a", None, "", "a")).set_index("segment")
    assert table["n"].to_dict() == {"a": 2, UNKNOWN: 2}
    one_missing = by_segment(pairs([0.1] * 4), segment("a", "a")).set_index("segment")
    assert one_missing["n"].to_dict() == {"a": 2, UNKNOWN: 2}


def test_a_column_of_many_values_keeps_the_largest():
    names = segment(*[f"v{number}" for number in range(40) for _ in range(2)], "v7")
    table = by_segment(pairs([0.1] * 81), names)
    assert len(table) == 30
    assert table["segment"].iloc[0] == OTHER
    assert table["n"].sum() == 81
    assert "v7" in set(table["segment"])


def test_equal_differences_are_no_trouble():
    table = by_segment(pairs([0.0] * 12), segment(*"aaaaaaaaaaaa")).iloc[0]
    assert (table["low"], table["high"], table["p"], table["same"]) == (0, 0, 1, 12)


def test_no_queries_give_an_empty_table():
    table = by_segment(pairs([]), segment())
    assert len(table) == 0
    assert "p_corrected" in table


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("how do I return a gift", 0),
        ("如何退货", 1),
        ("BM25 是什么意思", 5 / 7),
        ("iPhone 充电", 2 / 8),
        ("ひらがなとカタカナ", 1),
        ("二〇二六年", 1),
        ("한국어", 0),
    ],
)
def test_the_share_of_chinese_and_japanese_characters(text, share):
    assert cjk_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "  ", "123 ?!"])
def test_a_text_without_letters_has_no_script(text):
    assert np.isnan(cjk_share(text))


def made() -> tuple[Dataset, pd.DataFrame]:
    queries = {
        "q0": ("gift card", "axx"),
        "q1": ("how do I return a gift card", "xa"),
        "q2": ("where can I read what the terms of the club say", "xxa"),
        "q3": ("如何退货", "a"),
        "q4": ("iPhone 充电", "xxxa"),
        "q5": (None, "xa"),
        "q6": ("12", "x"),
    }
    documents = ["a", *[f"x{place}" for place in range(4)]]
    lists = [
        (
            query,
            ["a" if c == "a" else f"x{i}" for i, c in enumerate(docs)],
            [-float(i) for i in range(len(docs))],
        )
        for query, (_, docs) in queries.items()
    ]
    labels = [(query, "a", 1.0) for query in list(queries)[:6]] + [("q6", "x0", 0.0)]
    labels += [("q0", "x3", 1.0), ("q0", "x2", 0.5)]
    data = Dataset(
        "made",
        pd.DataFrame({"query_id": list(queries), "text": [text for text, _ in queries.values()]}),
        pd.DataFrame({"doc_id": documents, "title": "", "text": "t"}),
        pd.DataFrame(labels, columns=["query_id", "doc_id", "label"]),
        Ranking.from_lists(lists),
    )
    evaluation = evaluate(judge(data.candidates, data.qrels), ["mrr"])
    parts = (of_texts(data), of_values(data, evaluation, "mrr"))
    return data, pd.concat([part.set_index("query_id") for part in parts], axis=1)


def test_queries_are_described_by_script_and_length():
    _, table = made()
    assert table["language"].tolist() == [
        *["Latin script"] * 3,
        "Chinese or Japanese",
        "mixed scripts",
        UNKNOWN,
        UNKNOWN,
    ]
    assert table["query_length"].tolist() == [
        "1–3 words",
        "4–8 words",
        "9 words or more",
        "1–6 characters",
        "7–15 characters",
        UNKNOWN,
        "1–3 words",
    ]


def test_relevant_documents_are_counted_from_the_threshold_on():
    _, table = made()
    assert table["relevant_documents"].tolist() == [
        "2–3 relevant",
        *["1 relevant"] * 5,
        "none relevant",
    ]


def test_difficulty_splits_at_thirds_of_the_baselines_values():
    _, table = made()
    # Values 1, 1/2, 1/3, 1, 1/4, 1/2, and none where nothing is relevant.
    assert table["difficulty"].tolist()[:6] == ["easy", "medium", "hard", "easy", "hard", "medium"]
    assert table["difficulty"].isna().tolist() == [False] * 6 + [True]


def test_queries_of_equal_value_are_equally_difficult():
    data, _ = made()
    evaluation = evaluate(judge(data.candidates, data.qrels), ["hit"])
    assert of_values(data, evaluation, "hit")["difficulty"].dropna().nunique() == 1


def test_every_derived_value_is_announced_for_charts_and_translation():
    _, table = made()
    for kind in DERIVED_SEGMENTS:
        assert set(table[kind.name].dropna()) <= set(kind.values)
    assert [kind.name for kind in DERIVED_SEGMENTS] == list(table.columns)


def test_regression_to_the_mean_is_said_beside_difficulty():
    notes = {kind.name: kind.note for kind in DERIVED_SEGMENTS}
    assert notes["difficulty"] == (
        "Regression to the mean: queries picked because the baseline did badly on them gain on "
        "average by chance alone, and those it did well on lose. Compare systems within a third, "
        "not the thirds with each other."
    )


def test_means_alone_are_those_of_the_table():
    found = pairs([0.1, -0.3, np.nan, 0.2, 0.05, -0.1])
    kinds = pd.Series(["a", "b", "b", "", "a", "b"], index=found["query_id"])
    table = by_segment(found, kinds).set_index("segment")
    means = mean_changes(found, grouped(found, kinds))
    assert set(means.index) == set(table.index) == {"a", "b", UNKNOWN}
    for each in table.index:
        assert means.loc[each, "n"] == table.loc[each, "n"]
        assert means.loc[each, "delta"] == pytest.approx(table.loc[each, "delta"], abs=1e-15)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("How do I return a toaster?", "Latin script"),
        ("Où est ma commande ?", "Latin script"),
        ("điện thoại", "Latin script"),
        ("как вернуть товар", "other script"),
        ("الإرجاع", "other script"),
        ("반품 방법", "other script"),
        ("как вернуть iPad", "other script"),
        ("Gerät mit Ω", "Latin script"),
        ("如何退货", "Chinese or Japanese"),
        ("返品 policy for returns", "mixed scripts"),
        ("42", UNKNOWN),
    ],
)
def test_the_script_of_a_query_is_named(text, script):
    data = Dataset(
        "made",
        pd.DataFrame({"query_id": ["q"], "text": [text]}),
        pd.DataFrame({"doc_id": ["d"], "title": "", "text": "t"}),
        pd.DataFrame({"query_id": ["q"], "doc_id": ["d"], "label": [1.0]}),
        Ranking.from_lists([("q", ["d"], [1.0])]),
    )
    assert of_texts(data)["language"].tolist() == [script]
