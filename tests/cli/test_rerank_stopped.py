"""`rerank --stop-when-conclusive`, and the commands that read its files; `rd.rerank` likewise."""

import json
import re

import pytest

import rankdash as rd
from rankdash.core.runs import runner
from tests.sets import SAMPLE

METRIC = "ndcg@10"


@pytest.fixture(autouse=True)
def looks_after_every_query(monkeypatch):
    monkeypatch.setattr(runner, "BATCH_SECONDS", 0.0)


@pytest.fixture
def service(server):
    return {
        "dialect": "cohere",
        "base_url": server.url,
        "key_variable": "none",
        "model": "m",
        "concurrency": 1,
    }


def test_a_run_of_a_service_stops_and_every_command_reports_it_so(run, service, server, tmp_path):
    ranking, timings = tmp_path / "run.trec", tmp_path / "timings.json"
    settings = [f"--set={name}={value}" for name, value in service.items()]
    done = run(
        *("rerank", "--data", SAMPLE, "--reranker", "endpoint", *settings),
        *("--stop-when-conclusive", METRIC, "--timings", timings, "--out", ranking),
    )
    assert done.code == 0
    after = re.search(
        r"Conclusive after (\d+) of 168 queries: NDCG@10 -[\d.]+ \(95% .*anytime-valid\)", done.err
    )
    assert after is not None
    scored = int(after[1])
    assert len(server.seen) == scored < 168
    assert f"{scored} queries reranked, 0 failed, 0 without candidates" in done.err
    states = [row["state"] for row in json.loads(timings.read_text())]
    assert (states.count("done"), states.count("skipped")) == (scored, 168 - scored)
    files = ("--qrels", SAMPLE / "qrels.tsv", "--baseline", SAMPLE / "initial.trec")
    files = (*files, "--challenger", ranking, "--timings", timings)
    found = run("compare", *files, "--format", "json").json
    assert found["stopped"] == ["run"]
    row = next(row for row in found["comparisons"] if row["system"] == "run")
    assert row["p"] is row["p_corrected"] is None
    assert row["delta_high"] < 0
    assert row["left_out"]["skipped"] == 168 - scored
    assert "stopped by its result" in row["verdict"]["sentence"]
    limits = ("--min-gain", f"{METRIC}=-0.9", "--max-hurt", f"{METRIC}=0.9")
    gain, hurt = run("gate", *files, *limits, "--format", "json").json["conditions"]
    assert gain["passed"] and gain["p"] is None
    # At the gate's one-sided confidence of 95 %, its interval is the one at 90 %.
    assert row["delta_low"] < gain["low"] < gain["high"] < row["delta_high"]
    assert hurt["low"] is hurt["high"] is None
    refused = run("compare", *files, "--challenger", SAMPLE / "initial.trec")
    assert "There are 1 --timings for 2 --challenger" in refused.err


def test_a_run_that_cannot_stop_is_refused(run, tmp_path):
    out = ("--data", SAMPLE, "--reranker", "bm25", "--out", tmp_path / "run.trec")
    stop, timings = ("--stop-when-conclusive", METRIC), ("--timings", tmp_path / "t.json")
    few = tmp_path / "few.csv"
    few.write_text("query_id,query,doc_id,document,label,score\nq,ask,d,text,1,2\n")
    for options, message in (
        ((*out, *stop), "needs --timings"),
        ((*out, *stop, *timings, "--shard", "1/2"), "needs --timings"),
        ((*out, "--stop-when-conclusive", "nosuch", *timings), "Unknown metric 'nosuch'"),
        (
            ("--data", few, *out[2:], *stop, *timings),
            "needs at least 20 labelled queries, not 1",
        ),
    ):
        done = run("rerank", *options)
        assert done.code == 2 and message in done.err


@pytest.mark.filterwarnings("ignore:Labelled queries without a relevant document")
def test_the_package_stops_too(service):
    data = rd.read(SAMPLE)
    reranked = rd.rerank(data, "endpoint", stop_when_conclusive=METRIC, **service)
    assert 20 <= reranked.stopped.scored < 168
    evaluations = {"first": rd.evaluate(data), "service": rd.evaluate(data, reranked)}
    compared = rd.compare(evaluations)
    assert compared.stopped == {"service"}
    assert "stopped by its result" in compared.verdict("service", METRIC).sentence
    with pytest.raises(rd.RankdashError, match="Unknown metric"):
        rd.rerank(data, "bm25", stop_when_conclusive="nosuch")
