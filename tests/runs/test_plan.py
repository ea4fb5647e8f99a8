import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.dataset import Dataset
from rankdash.errors import SettingError
from rankdash.ranking.ranking import Ranking
from rankdash.runs.plan import MOST_CLIENTS, Timing, drawn, plan, sample_queries


def changed(made, **parts):
    kept = {name: getattr(made, name) for name in ("queries", "documents", "qrels", "candidates")}
    return Dataset(made.name, **{**kept, **parts})


@pytest.mark.parametrize(("depth", "pairs"), [(1, 3), (2, 6), (None, 15)])
def test_the_first_candidates_are_planned_in_first_stage_order(make_dataset, depth, pairs):
    dataset = make_dataset(queries=3, depth=5)
    asked = plan(dataset, depth=depth)
    assert list(asked.documents) == ["q0", "q1", "q2"]
    for query, docs in asked.documents.items():
        assert docs == dataset.candidates.documents_of(query)[0][:depth]
    assert (asked.pairs, asked.skipped) == (pairs, {})


@pytest.mark.parametrize(
    ("wanted", "skipped"), [(["q1", "q2"], "q0 q3"), (["q2"], "q0 q3"), ([], "q0 q2 q3")]
)
def test_why_queries_are_left_out(make_dataset, wanted, skipped):
    """What could not be scored anyway was not left out by the sample."""
    asked = plan(make_dataset(queries=4, without_candidates=["q1"]), query_ids=wanted)
    assert list(asked.documents) == (["q2"] if wanted else [])
    missing = dict.fromkeys(skipped.split(), "not in the sample")
    assert asked.skipped == missing | {"q1": "no candidates"}


def test_wrong_wishes_are_refused(make_dataset):
    dataset = make_dataset()
    with pytest.raises(SettingError, match="depth must be at least 1, not 0"):
        plan(dataset, depth=0)
    with pytest.raises(SettingError, match="no query 'q99'"):
        plan(dataset, query_ids=["q0", "q99"])
    with pytest.raises(SettingError, match="at least 1 query"):
        sample_queries(dataset, 0, seed=1)
    with pytest.raises(SettingError, match="no rule 'drop'"):
        plan(dataset, without_text="drop")


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 20), order=st.permutations(range(20)))
def test_a_larger_sample_contains_the_smaller_one_whatever_the_order_of_the_files(
    make_dataset, seed, size, order
):
    made = make_dataset(queries=20)
    shuffled = changed(made, queries=made.queries.iloc[order].reset_index(drop=True))
    small, large = sample_queries(made, size, seed), sample_queries(made, size + 3, seed)
    assert set(small) <= set(large)
    assert len(set(small)) == size
    assert small == sample_queries(shuffled, size, seed)


def test_a_sample_is_drawn_from_the_queries_with_candidates(make_dataset):
    made = make_dataset(queries=10, without_candidates=["q3", "q4"])
    assert len(sample_queries(made, 4, seed=7)) == 4
    assert sorted(sample_queries(made, 100, seed=7)) == [
        f"q{number}" for number in range(10) if number not in (3, 4)
    ]
    assert len({frozenset(sample_queries(made, 4, seed)) for seed in range(20)}) > 10
    empty = Ranking.from_lists([("q0", ["d1"], [1.0]), ("q1", [], []), ("q2", ["d0"], [1.0])])
    listed = changed(make_dataset(queries=3), candidates=empty)
    assert sorted(sample_queries(listed, 100, seed=7)) == ["q0", "q2"]


@pytest.mark.parametrize(
    ("name", "most"),
    [("repeats", 100), ("sample", 100_000), ("seconds", 600), ("concurrency", MOST_CLIENTS)],
)
def test_a_timing_is_within_its_range_to_both_ends(name, most):
    for value in (1, most):
        value = (1, value) if name == "concurrency" else value
        assert getattr(Timing(**{name: value}), name) == value
    for beyond in (0, most + 1):
        value = (1, beyond) if name == "concurrency" else beyond
        with pytest.raises(SettingError, match=f"{name} must be from 1 to {most}"):
            Timing(**{name: value})


@pytest.mark.parametrize(
    ("texts", "options", "planned", "textless"),
    [
        (["a", " ", "b"], {"needs_text": False, "without_text": "exclude"}, [0, 1, 2], 0),
        (["a", " ", "b"], {"needs_text": True, "without_text": "exclude"}, [0, 2], 1),
        (["a", " ", "b"], {"needs_text": True, "without_text": "empty"}, [0, 1, 2], 1),
        # A query of which no candidate has a text stays.
        (["", ""], {"needs_text": True}, [0, 1], 2),
        # What is below the depth takes no place of what has no text.
        (["a", "", "b"], {"needs_text": True, "depth": 2}, [0], 1),
        (["a", "b"], {"depth": 1}, [0], 0),
    ],
)
def test_candidates_without_a_text_are_left_out_where_texts_are_read(
    make_dataset, texts, options, planned, textless
):
    size = len(texts)
    made = make_dataset(1, size, size, doc_text={f"d{n}": text for n, text in enumerate(texts)})
    ids = [f"d{n}" for n in range(size)]
    dataset = changed(made, candidates=Ranking.from_lists([("q0", ids, np.arange(size, 0.0, -1))]))
    asked = plan(dataset, **options)
    assert (asked.documents, asked.textless) == ({"q0": [ids[n] for n in planned]}, textless)
    assert asked.without_text == options.get("without_text", "exclude")
    assert asked.pairs == len(planned)


def test_a_timing_comes_back_from_what_was_kept_of_it_and_is_measured_in_one_of_four_ways():
    made = Timing("every", 3, 50, 7, (1, 4), 2.0)
    kept = json.loads(json.dumps(asdict(made)))
    assert Timing.from_mapping(kept) == made
    assert Timing.from_mapping({}) == Timing() == Timing("auto", 1, 200, 0, (), 5.0)
    with pytest.raises(SettingError, match="not 'sometimes'"):
        Timing("sometimes")


@pytest.mark.parametrize("seed", [0, 7])
def test_a_draw_is_the_permutation_of_the_ids_in_alphabetical_order(seed):
    order = np.random.default_rng(seed).permutation(5)
    assert drawn(iter("dbeac"), seed) == tuple("abcde"[place] for place in order)
    assert drawn((), seed) == ()
