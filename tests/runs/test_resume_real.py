"""The packaged cross-encoder, stopped and resumed, scores nothing twice."""

import pytest

from rankdash.rerankers import create, get
from rankdash.runs.jobs import Timing
from rankdash.runs.runner import rerank
from rankdash.store.score_cache import ScoreCache

pytestmark = pytest.mark.model


class Scoring:
    """A reranker whose texts of scored pairs are noted."""

    def __init__(self, reranker):
        self._reranker, self.pairs = reranker, []

    def __getattr__(self, name):
        return getattr(self._reranker, name)

    def score(self, requests):
        self.pairs += [(each.query, text) for each in requests for text in each.documents]
        return self._reranker.score(requests)


def test_the_packaged_cross_encoder_resumes_and_uses_the_score_cache(make_dataset, tmp_path):
    dataset = make_dataset(queries=30, depth=2)
    kind, cache = get("cross-encoder"), ScoreCache(tmp_path / "scores.sqlite")

    def scored(**given):
        reranker = Scoring(create(kind.name, {"runtime": "onnx"}))
        capabilities, timing = kind.capabilities, Timing(latency="never")
        run = rerank(dataset, reranker, capabilities=capabilities, timing=timing, **given)
        return run, reranker.pairs

    done = []

    def stop(results):
        done.extend(results)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scored(on_batch=stop)
    assert 0 < len(done) < 30
    resumed, pairs = scored(done=done, cache=cache)
    queries = {text for text, _ in pairs}
    assert len(queries) == 30 - len(done)
    assert not queries & {f"ask {result.query_id}" for result in done}
    whole, _ = scored()
    orders = [run.ranking.frame()["doc_id"].tolist() for run in (resumed, whole)]
    assert orders[0] == orders[1]
    again, pairs = scored(cache=cache)
    # The query of the first call, whose answer is thrown away, may be one that is not cached.
    assert again.measured.cached_pairs == 2 * len(queries)
    assert not queries & {text for text, _ in pairs}
    assert again.ranking.frame()["doc_id"].tolist() == orders[0]
