"""Which price goes without saying for which kind of reranker."""

import pytest

from rankdash.value.price_list import shipped, usual


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("bm25", "own-cpu"),
        ("cross-encoder", "own-gpu"),
        ("universal-sentence-encoder", "own-gpu"),
        ("rerank-service", "own"),
        ("", "own"),
    ],
)
def test_a_kind_is_priced_by_what_it_runs_on(kind, key):
    assert usual(kind, {each.key: each for each in shipped()}) == key


def test_a_shorter_list_has_the_nearest():
    prices = {each.key: each for each in shipped() if each.key in ("own", "own-gpu")}
    assert usual("bm25", prices) == "own-gpu"
    del prices["own-gpu"]
    assert usual("bm25", prices) == "own"
