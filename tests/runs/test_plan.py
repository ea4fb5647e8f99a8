import json
from dataclasses import asdict
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.runs.plan import MOST_CLIENTS, Timing, plan, random_order, sample_queries
from tests.results import results


def changed(made, **parts):
    kept = {name: getattr(made, name) for name in ("queries", "documents", "qrels", "candidates")}
    return Dataset(made.name, **{**kept, **parts})


def test_plans_and_timings_are_as_approved(make_dataset, approved):
    three, holes = make_dataset(queries=3), make_dataset(queries=4, without_candidates=["q1"])

    def with_texts(*texts):
        size = len(texts)
        ids = [f"d{n}" for n in range(size)]
        made = make_dataset(1, size, size, doc_text=dict(zip(ids, texts, strict=True)))
        in_order = Ranking.from_lists([("q0", ids, np.arange(size, 0.0, -1))])
        return changed(made, candidates=in_order)

    cases = {f"depth {depth}": partial(plan, three, depth) for depth in (1, 2, None, 0)}
    # Queries that cannot be scored are not counted as excluded by the sample.
    for wanted in (["q1", "q2"], ["q2"], [], ["q0", "q99"]):
        cases[f"asked for {wanted}"] = partial(plan, holes, 2, wanted)
    read, empty = {"needs_text": True}, {"without_text": "empty"}
    for name, texts, how in (
        ("no texts are read", ("a", " ", "b"), {}),
        ("texts are read", ("a", " ", "b"), read),
        ("an empty one too", ("a", " ", "b"), read | empty),
        ("a query of which no candidate has a text stays", ("", ""), read),
        ("what is below the depth takes no place", ("a", "", "b"), read | {"depth": 2}),
        ("another rule", ("a",), {"without_text": "drop"}),
    ):
        cases[name] = partial(plan, with_texts(*texts), **how)
    cases["a sample of none"] = partial(sample_queries, three, 0, seed=1)
    for name, most in (("repeats", 100), ("sample", 100_000), ("seconds", 600)):
        for value in (0, 1, most, most + 1):
            cases[f"{value} {name}"] = partial(Timing, **{name: value})
    for value in (0, 1, MOST_CLIENTS, MOST_CLIENTS + 1):
        cases[f"{value} clients"] = partial(Timing, concurrency=(1, value))
    cases["another way"] = partial(Timing, "sometimes")
    made = Timing("every", 3, 50, 7, (1, 4), 2.0)
    cases["kept"] = partial(Timing.from_mapping, json.loads(json.dumps(asdict(made))))
    cases["nothing kept"] = partial(Timing.from_mapping, {})
    approved("runs/plans", results(cases))


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
    assert sorted(sample_queries(made, 100, seed=7)) == [f"q{n}" for n in (0, 1, 2, *range(5, 10))]
    assert len({frozenset(sample_queries(made, 4, seed)) for seed in range(20)}) > 10
    empty = Ranking.from_lists([("q0", ["d1"], [1.0]), ("q1", [], []), ("q2", ["d0"], [1.0])])
    listed = changed(make_dataset(queries=3), candidates=empty)
    assert sorted(sample_queries(listed, 100, seed=7)) == ["q0", "q2"]


@pytest.mark.parametrize("seed", [0, 7])
def test_a_draw_is_the_permutation_of_the_ids_in_alphabetical_order(seed):
    order = np.random.default_rng(seed).permutation(5)
    assert random_order(iter("dbeac"), seed) == tuple("abcde"[place] for place in order)
    assert random_order((), seed) == ()
