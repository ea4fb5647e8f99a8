"""`retrieve`, and the ladder that its files make."""

import json
import shutil
import subprocess

import pytest

from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers import retrieval
from tests.sets import SAMPLE


class First:
    """A bi-encoder that retrieves the first documents of the corpus."""

    def __init__(self, settings):
        self.settings = settings

    def prepare(self, corpus):
        pass

    def retrieve(self, queries, documents, depth):
        docs = list(documents)[:depth]
        scores = [-float(rank) for rank in range(len(docs))]
        return Ranking.from_lists((query, docs, scores) for query in queries)


@pytest.fixture
def by_meaning(monkeypatch):
    """Retrieve by vectors in this process, without a model."""

    def run(command, **how):
        return subprocess.CompletedProcess(command, retrieval.main(command[3:]))

    monkeypatch.setattr(retrieval, "require_packages", lambda: None)
    monkeypatch.setattr(retrieval.bi_encoder, "BiEncoder", First)
    monkeypatch.setattr(retrieval.subprocess, "run", run)


def lists_of(file):
    found: dict[str, list[str]] = {}
    for line in file.read_text().splitlines():
        query, _, doc, rank, _, _ = line.split()
        found.setdefault(query, []).append(doc)
        assert int(rank) == len(found[query])
    return found


def test_each_query_gets_the_best_of_all_documents(run, tmp_path):
    out, states = tmp_path / "bm25.trec", tmp_path / "bm25.json"
    done = run("retrieve", "--data", SAMPLE, "--depth", "7", "--out", out, "--timings", states)
    assert done.code == 0
    assert "168 queries retrieved, 0 failed." in done.err
    found = lists_of(out)
    # BM25 finds only documents that share a word with the query.
    assert len(found) == 168 and max(map(len, found.values())) == 7
    rows = json.loads(states.read_text())
    assert {(row["state"], row["latency_ms"]) for row in rows} == {("done", None)}


@pytest.mark.usefixtures("by_meaning")
def test_hybrid_fuses_words_and_vectors_and_can_be_reranked(run, tmp_path):
    files = {how: tmp_path / f"{how}.trec" for how in ("bm25", "bi-encoder", "hybrid")}
    for how, file in files.items():
        found = run("retrieve", "--data", SAMPLE, "--how", how, "--depth", "5", "--out", file)
        assert found.code == 0
    lists = {how: lists_of(file) for how, file in files.items()}
    for query, docs in lists["hybrid"].items():
        assert {*docs} <= {*lists["bm25"][query], *lists["bi-encoder"][query]}
    out, first = tmp_path / "again.trec", files["hybrid"]
    done = run(
        *("rerank", "--data", SAMPLE, first, "--first-stage", first.name),
        *("--reranker", "bm25", "--depth", "3", "--out", out),
    )
    assert done.code == 0
    for query, docs in lists_of(out).items():
        assert {*docs[:3]} == {*lists["hybrid"][query][:3]}
        assert docs[3:] == lists["hybrid"][query][3:]


def test_files_without_labels_are_enough(run, tmp_path):
    for name in ("corpus.jsonl", "queries.jsonl"):
        shutil.copy(SAMPLE / name, tmp_path / name)
    done = run("retrieve", "--data", tmp_path, "--out", tmp_path / "bm25.trec")
    assert (done.code, done.err.count("warning")) == (0, 0)


def test_queries_without_text_fail_and_those_without_a_match_are_counted(run, tmp_path):
    rows = {"q1": "return a gift", "q2": "vélo", "q3": ""}
    lines = [json.dumps({"_id": query, "text": text}) for query, text in rows.items()]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines))
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "d", "title": "", "text": "gift"}))
    (tmp_path / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{query}\td\t1\n" for query in rows)
    )
    out = tmp_path / "out.trec"
    done = run("retrieve", "--data", tmp_path, "--out", out)
    assert done.code == 1
    assert "failed: query q3: the query has no text" in done.err
    assert "2 queries retrieved, 1 of them without a match, 1 failed." in done.err
    assert lists_of(out) == {"q1": ["d"]}


def test_nothing_is_written_if_nothing_can_be_retrieved(run, tmp_path):
    out = tmp_path / "out.trec"
    qrels, first = SAMPLE / "qrels.tsv", SAMPLE / "initial.trec"
    for options, reason in (
        (("--data", qrels, first), "has no texts"),
        (("--data", SAMPLE, "--depth", "0"), "depth"),
        (("--data", SAMPLE, "--how", "magic"), "magic"),
    ):
        done = run("retrieve", *options, "--out", out)
        assert done.code == 2 and reason in done.err and not out.exists()
