"""Samples of logs: strata, probabilities, and estimates that are right on average."""

import numpy as np
import pyarrow as pa
import pytest

from rankdash.core.base.errors import DataError
from rankdash.core.readers.logs import Searches
from rankdash.core.sampling.log_sample import STRATA, id_of, sample_log


def pieces(counts, size=1_000):
    """Yield a log in which query i has `counts[i]` searches, in pieces."""
    texts = [f"query {at}" for at in range(len(counts))]
    for start in range(0, len(texts), size):
        yield Searches(
            pa.array(texts[start : start + size]),
            np.asarray(counts[start : start + size], dtype=float),
        )


def zipf(queries, exponent=1.0):
    return np.maximum(np.round(queries / np.arange(1, queries + 1) ** exponent), 1)


def test_strata_have_about_a_third_of_the_searches_each():
    counts = zipf(5_000)
    sample = sample_log(pieces(counts), 150)
    assert [each.name for each in sample.strata] == list(STRATA)
    assert sample.queries == 5_000 and sample.searches == counts.sum()
    for stratum in sample.strata:
        assert stratum.searches / sample.searches == pytest.approx(1 / 3, abs=0.1)
    # The most frequent queries are the head.
    least = sample.table.groupby("stratum")["frequency"].agg(["min", "max"])
    assert least.loc["head", "min"] > least.loc["torso", "max"]
    assert least.loc["torso", "min"] > least.loc["tail", "max"]


def test_the_sample_has_the_requested_size_and_known_probabilities():
    counts = zipf(5_000)
    sample = sample_log(pieces(counts), 150)
    table = sample.table
    assert len(table) == 150 == sum(each.sampled for each in sample.strata)
    assert table["text"].is_unique and table["query_id"].tolist() == [*map(id_of, table["text"])]
    numbers = table["text"].str.removeprefix("query ").astype(int)
    assert np.array_equal(table["frequency"], counts[numbers])
    rate = table["stratum"].map({each.name: each.rate for each in sample.strata})
    assert np.allclose(table["probability"], np.minimum(table["frequency"] * rate, 1))
    for name, rows in table.groupby("stratum"):
        stratum = next(each for each in sample.strata if each.name == name)
        # Weights add up to the searches of the stratum, up to the certain queries' rounding.
        weights = rows["frequency"] / rows["probability"]
        assert weights.sum() == pytest.approx(stratum.searches, rel=1e-9)


def test_each_query_is_sampled_as_often_as_its_probability():
    counts = np.append(zipf(60), [1] * 40)
    runs, seen = 200, np.zeros(100)
    probability = np.full(100, np.nan)
    for seed in range(runs):
        table = sample_log(pieces(counts), 20, seed).table
        at = table["text"].str.removeprefix("query ").astype(int)
        seen[at] += 1
        probability[at] = table["probability"]
    expected = runs * probability
    spread = np.sqrt(np.maximum(expected * (1 - probability), 0.25))
    known = ~np.isnan(probability)
    assert known.sum() > 95
    assert np.abs((seen - expected) / spread)[known].max() < 4.5


def test_a_small_log_is_taken_whole():
    sample = sample_log(pieces([5, 3, 1, 1]), 50)
    assert sorted(sample.table["frequency"]) == [1, 1, 3, 5]
    assert set(sample.table["probability"]) == {1.0}


def test_a_log_without_repeats_is_all_tail():
    sample = sample_log(pieces([1] * 500), 40)
    assert [each.name for each in sample.strata] == ["tail"]
    assert np.allclose(sample.table["probability"], 40 / 500)


def test_a_query_of_most_searches_is_certain():
    sample = sample_log(pieces([10_000, *[2] * 50, *[1] * 50]), 30)
    assert sample.table["text"].iloc[0] == "query 0"
    assert sample.table["probability"].iloc[0] == 1
    assert len(sample.table) == 30


def test_the_same_seed_gives_the_same_sample_in_any_order_of_the_log():
    counts = zipf(800)
    one = sample_log(pieces(counts), 60).table
    other = sample_log(reversed([*pieces(counts, 100)]), 60).table
    assert one.equals(other)
    assert set(sample_log(pieces(counts), 60, seed=3).table["text"]) != set(one["text"])


def test_spaces_do_not_make_another_query():
    texts = pa.array(["red  shoes", " red shoes ", "red\tshoes", "", "  "])
    sample = sample_log([Searches(texts, np.ones(5))], 6)
    assert sample.table[["text", "frequency"]].values.tolist() == [["red shoes", 3.0]]


def test_nothing_to_sample_is_refused():
    with pytest.raises(DataError, match="no query"):
        sample_log([], 50)
    with pytest.raises(DataError, match="at least 6"):
        sample_log(pieces([1, 2]), 3)


def test_a_log_that_does_not_fit_in_memory_gives_the_same_sample(monkeypatch):
    counts = zipf(3_000)
    one = sample_log(pieces(counts, 500), 90).table
    monkeypatch.setattr("rankdash.core.sampling.log_sample.BUFFERED_ROWS", 700)
    assert sample_log(pieces(counts, 500), 90).table.equals(one)
