"""Defaults that depend on the data set."""

import math
from itertools import count

import numpy as np
import pytest

from rankdash.core.readers import Source
from rankdash.core.readers.loading import load
from rankdash.core.rerankers import defaults, get
from rankdash.core.rerankers.neural import packaged
from rankdash.core.rerankers.neural.tokenizer import unknown_share
from tests.results import results

E5 = packaged.MULTILINGUAL
CROSS = "packaged/ms-marco-MiniLM-L12-v2"


def data_of(query: str, document: str, queries: int = 3, documents: int = 4):
    fresh = count()
    rows = "query_id,query,doc_id,document,label,rank\n" + "".join(
        f"q{q},{query} {q},d{next(fresh)},{document},{int(d == 1)},{d + 1}\n"
        for q in range(queries)
        for d in range(documents)
    )
    return load([Source("rows.csv", rows.encode())]).dataset


def knows_all(_model: str) -> float:
    return 0.0


def test_what_is_preselected_is_as_approved(monkeypatch, approved):
    """A model with a tokenizer that knows the tokens, also for a script that no packaged model
    knows. A model that the user sets stays."""
    english, chinese = data_of("return an item", "how to return"), data_of("如何退货", "退货说明")
    across = data_of("return an item", "退货说明运费")
    shares = {
        "English": (english, knows_all),
        "Chinese": (chinese, knows_all),
        "English queries over Chinese": (across, lambda model: 0.0 if model == E5 else 0.62),
        "a tenth is unknown": (across, lambda model: 0.1),
        "more is unknown": (across, lambda model: 0.1001),
    }
    cases = {name: defaults.preselection(*each) for name, each in shares.items()}
    for name, given, data in (
        *(("bi-encoder", {}, data) for data in (across, chinese)),
        *(("bi-encoder", {"model": CROSS}, across), ("bm25", {"k1": 1.0}, across)),
        ("cross-encoder", {"max_length": 256}, english),
    ):
        cases[f"{name} {given}, {data.query_text().iloc[0]}"] = defaults.with_model(
            get(name), given, data
        )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    unread = defaults.preselection(
        chinese, lambda model: unknown_share(model, defaults.sample_texts(chinese))
    )
    approved("rerankers/preselected", results(cases | {"no package is installed": unread}))


def test_tokens_that_a_packaged_model_does_not_know_are_counted_without_loading_it():
    texts = defaults.sample_texts(data_of("return an item", "退货说明运费时间"))
    assert unknown_share(CROSS, texts) > 0.1
    assert unknown_share(E5, texts) < 0.1
    assert unknown_share(CROSS, ["return an item"]) == 0
    assert unknown_share(E5, ["𒀀𒀁𒀂 𒀀𒀁"]) > 0.1
    assert math.isnan(unknown_share("nobody/has-this", texts))


def test_the_sample_of_texts_is_spread_over_the_data_set():
    texts = defaults.sample_texts(data_of("ask", "text", queries=250, documents=4))
    assert len(texts) == 200
    assert texts[0] == "ask 0" and texts[99] == "ask 249"


def test_texts_that_take_long_are_sampled_but_for_a_few_queries():
    data = data_of("return an item", " ".join(["parcel"] * 400), queries=400, documents=10)
    queries = defaults.preselection(data, knows_all).queries
    work = defaults.Workload.of(data)

    def seconds(chosen: int) -> float:
        return sum(work.seconds(kind, chosen) for kind in ("bi-encoder", "cross-encoder"))

    assert seconds(400) > defaults.ALL_SECONDS
    assert defaults.LEAST_QUERIES <= queries < 400 and queries % 10 == 0
    assert seconds(queries) <= defaults.SAMPLE_SECONDS < seconds(queries + 11)
    few = data_of("return an item", " ".join(["parcel"] * 500), queries=40, documents=200)
    assert defaults.preselection(few, knows_all).queries == defaults.LEAST_QUERIES


def test_a_bi_encoder_reads_each_document_once():
    work = defaults.Workload(np.array([10, 10, 10, 10]), 8, 5.0, [40.0])
    of_a_token = work.seconds("cross-encoder", 4) / (40 * 45)
    assert work.seconds("cross-encoder", 4, depth=5) == pytest.approx(20 * 45 * of_a_token)
    assert work.seconds("bi-encoder", 4) == pytest.approx((8 * 40 + 4 * 5) * of_a_token)
    assert work.seconds("bm25", 4) is None
