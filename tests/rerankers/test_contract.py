"""The contract of every kind of reranker, run against each registered kind."""

import shutil

import numpy as np
import pytest

from rankdash.core.base.errors import ScoringError
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers import Capabilities, Corpus, Request, create, kinds
from rankdash.core.rerankers.kinds.precomputed import Precomputed
from tests.approved import table
from tests.rerankers import models
from tests.rerankers.loopback import running
from tests.results import shown

DOCUMENTS = {
    "d1": "how to return an item and get a refund",
    "d2": "delivery time for every country",
    "d3": "退货需要时间",
    "d4": "",
    "d5": "the cat and the dog on the sofa " * 30,
    "d6": "\ud800 <script>alert(1)</script> \x00 ![x](http://x.invalid/i.png) \u202e ﷽ 🎁 {d!r}",
    "d7": "payment by card",
}
QUERIES = {
    "q1": "get a refund for the order",
    "q2": "退货 运费",
    "q3": "\ud800'; DROP TABLE runs; -- <b>{0}</b>",
    "q4": "shipping days " * 40,
}


def _ranking() -> Ranking:
    rows = [(query, doc) for query in QUERIES for doc in DOCUMENTS]
    scores = np.random.default_rng(0).normal(size=len(rows))
    return Ranking.from_columns([row[0] for row in rows], [row[1] for row in rows], scores)


@pytest.fixture(scope="module")
def loopback_url():
    with running() as server:
        yield server.url


NEURAL = {
    "bi-encoder": "bi_folder",
    "cross-encoder": "cross_folder",
    "late-interaction": "bi_folder",
    "cascade": "bi_folder",
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(kind.name, marks=[pytest.mark.model] if kind.name in NEURAL else [])
        for kind in kinds()
    ],
)
def make(request, loopback_url):
    """Make a new prepared reranker of one kind at each call."""
    of = NEURAL.get(request.param)
    model = None if of is None else request.getfixturevalue(of)
    free = {"base_url": loopback_url, "key_variable": "none"}
    neural = {"model": str(model), "batch_tokens": 40}
    settings = {
        "bm25": {},
        **dict.fromkeys(("bi-encoder", "cross-encoder", "late-interaction"), neural),
        "cascade": {"second_settings": f"model={model}\nbatch_tokens=40", "top": 3},
        "endpoint": free,
        **dict.fromkeys(("llm-pointwise", "llm-listwise", "llm-pairwise"), free | {"model": "any"}),
    }
    assert settings.keys() | {"precomputed"} == {kind.name for kind in kinds()}

    def prepared():
        own = settings.get(request.param)
        reranker = Precomputed(_ranking()) if own is None else create(request.param, own)
        reranker.prepare(Corpus(list(DOCUMENTS), list(DOCUMENTS.values())))
        return reranker

    return prepared


@pytest.fixture(scope="module")
def reranker(make):
    return make()


def ask(query, docs=tuple(DOCUMENTS)):
    return Request(query, QUERIES[query], list(docs), [DOCUMENTS[doc] for doc in docs])


def test_it_names_its_kind_and_settings(reranker):
    kind = next(kind for kind in kinds() if kind.name == reranker.name)
    assert set(reranker.settings) == {spec.name for spec in kind.settings}


def test_what_each_kind_can_do_is_as_approved(approved):
    cases = {kind.name: f"{shown(kind.capabilities)}, kept: {kind.capabilities.cacheable}"
             for kind in kinds()}  # fmt: skip
    approved("rerankers/capabilities", table(cases))


@pytest.mark.parametrize("kind", ["bm25", "bi-encoder", "cross-encoder", "late-interaction"])
def test_scoring_before_prepare_says_so(kind):
    with pytest.raises(ScoringError, match=r"prepare\(\)"):
        create(kind).score([ask("q1")])


@pytest.mark.parametrize("query", QUERIES)
def test_every_document_gets_a_finite_score_whatever_the_text(reranker, query):
    scored = reranker.score([ask(query)])[0]
    assert scored.error == ""
    assert scored.scores.shape == (len(DOCUMENTS),)
    assert scored.scores.dtype == np.float64
    assert np.isfinite(scored.scores).all()
    for extra in (scored.tokens, scored.full):
        assert extra is None or extra.shape == scored.scores.shape
    assert scored.index_seconds >= 0


def test_scores_do_not_depend_on_the_order_the_instance_or_what_was_asked_before(make, reranker):
    docs = list(DOCUMENTS)
    expected = reranker.score([ask("q1", docs)])[0].scores
    shuffled = np.random.default_rng(3).permutation(len(docs))
    for made, places in ((reranker, range(7)), (reranker, shuffled), (make(), range(7)[::-1])):
        scores = made.score([ask("q1", [docs[place] for place in places])])[0].scores
        np.testing.assert_allclose(scores, expected[list(places)], atol=1e-5)
    assert len(set(expected[[0, 1, 6]])) > 1, "documents are told apart"


def test_several_queries_at_once_equal_one_by_one(reranker):
    requests = [ask("q1"), ask("q2", ["d3"]), ask("q3", []), ask("q4", ["d7", "d5"])]
    together = reranker.score(requests)
    assert len(together) == len(requests)
    for request, scored in zip(requests, together, strict=True):
        alone = reranker.score([request])[0]
        np.testing.assert_allclose(scored.scores, alone.scores, atol=1e-5)
        if alone.tokens is not None:
            np.testing.assert_array_equal(scored.tokens, alone.tokens)
            np.testing.assert_array_equal(scored.full, alone.full)


@pytest.mark.model
@pytest.mark.parametrize("kind", ["bi-encoder", "late-interaction"])
def test_tokens_of_a_document_encoded_before_are_not_computed_again(bi_folder, kind):
    texts = ["order sofa sofa", "cat within cat days", "order sofa sofa"]
    reranker = models.prepared(kind, bi_folder)
    first, again = (models.score(reranker, "cat", texts) for _ in range(2))
    np.testing.assert_array_equal(first.tokens, again.tokens)
    query = again.tokens_computed
    assert first.tokens_computed == query + (first.tokens - query)[:2].sum()


@pytest.mark.model
def test_tokens_that_models_read_and_cut_are_as_approved(cross_folder, bi_folder, approved):
    """A length may exceed the declared length of a model but not the length that it can read."""
    cases, texts = {}, ["return item", "", models.LONG]
    folders = {
        "cross-encoder": cross_folder,
        "bi-encoder": bi_folder,
        "late-interaction": bi_folder,
    }
    for kind, folder in folders.items():
        for length in (0, 16, 48, 9_999):
            reranker = models.prepared(kind, folder, max_length=length)
            for query in ("refund order", "refund " * 200):
                scored = models.score(reranker, query, texts)
                said = f"{shown(scored.tokens)} of {shown(scored.full)}"
                cases[f"{kind}, length {length}, {query[:20]}"] = said
    approved("rerankers/tokens", table(cases))


@pytest.mark.model
@pytest.mark.parametrize(
    ("kind", "weights"),
    [("cross-encoder", "classifier.bias"), ("bi-encoder", "embeddings.word_embeddings.weight")],
)
def test_a_score_that_is_not_finite_fails_the_query(
    cross_folder, bi_folder, tmp_path, kind, weights
):
    from safetensors.numpy import load_file, save_file

    source = bi_folder if kind == "bi-encoder" else cross_folder
    file = shutil.copytree(source, tmp_path / "broken") / "model.safetensors"
    tensors = load_file(file)
    tensors[weights] = np.full_like(tensors[weights], np.nan)
    save_file(tensors, file, metadata={"format": "pt"})
    scored = models.score(models.prepared(kind, file.parent), models.QUERY, models.DOCUMENTS)
    assert scored.error == "Documents without a finite score from the model: 4 of 4."
    assert np.isnan(scored.scores).all()


def test_nothing_asked_nothing_answered(reranker):
    assert reranker.score([]) == []
    empty = reranker.score([ask("q1", [])])[0]
    assert empty.scores.shape == (0,)
    assert empty.error == ""


def test_a_score_is_kept_that_hangs_on_nothing_but_the_pair():
    assert Capabilities().cacheable
    assert Capabilities(needs_network=True, across_queries=True).cacheable
    for changed in ({"scope": "listwise"}, {"deterministic": False}, {"order_sensitive": True}):
        assert not Capabilities(**changed).cacheable
