"""`fetch`: from a search engine to a folder that every command reads."""

import gzip
import json

import pytest

from rankdash.core.readers import read, sources_at
from rankdash.core.search.endpoint import presets
from tests.rerankers.loopback import engine_at
from tests.sets import SAMPLE

KEY = "a-secret-key-0123456789"


@pytest.fixture
def engine(server, monkeypatch, tmp_path):
    """The endpoint of a search engine with the documents of the sample."""
    monkeypatch.setenv("SEARCH_KEY", KEY)
    server.forget(KEY)
    rows = map(json.loads, (SAMPLE / "corpus.jsonl").read_text().splitlines())
    server.documents = {row["_id"]: f"{row['title']} {row['text']}" for row in rows}
    file = tmp_path / "words.json"
    file.write_text(json.dumps(engine_at(server.url, name="Words")))
    return file


def text_of(body):
    return body["query"]["match"]["text"]


def test_the_sample_is_fetched_and_the_folder_is_a_data_set(run, engine, server, tmp_path):
    out = tmp_path / "out"
    command = ("fetch", engine, "--data", SAMPLE, "--depth", 20, "--out", out)
    done = run(*command)
    assert (done.code, done.out) == (0, "")
    assert "words: 168 queries fetched, 0 failed." in done.err
    assert len(server.seen) == 168
    again = run(*command)
    assert (again.code, len(server.seen)) == (0, 168)
    parsed = read(sources_at([str(out)]))
    assert len(parsed.queries) == 168
    assert len(parsed.qrels) == 4421
    assert len(parsed.candidates.query_ids) == 168
    summary = json.loads((out / "fetch.json").read_text())["endpoints"][0]
    assert (summary["done"], summary["failed"], summary["requests"]) == (168, [], 168)
    assert summary["endpoint"] == json.loads(engine.read_text())
    rows = json.loads((out / "words.timings.json").read_text())
    assert all(row["state"] == "done" and row["latency_ms"] > 0 for row in rows)
    gate = run(
        "compare", "--qrels", SAMPLE / "qrels.tsv", "--baseline", SAMPLE / "initial.trec",
        "--challenger", out / "words.trec", "--timings", out / "words.timings.json",
    )  # fmt: skip
    assert gate.code == 0
    for file in out.rglob("*"):
        assert file.is_dir() or KEY.encode() not in file.read_bytes()


def test_queries_alone_become_a_data_set_with_the_texts_of_the_engine(run, engine, tmp_path):
    queries = tmp_path / "queries.txt"
    queries.write_text("query\nreturn an item, unused\nreturn an item, unused\nzzz\n")
    out = tmp_path / "out"
    done = run("fetch", engine, "--queries", queries, "--depth", 3, "--out", out)
    assert done.code == 0
    assert "2 queries fetched, 1 of them without a hit, 0 failed." in done.err
    parsed = read(sources_at([str(out)]))
    # A query without a ranking or a label is not part of a data set.
    assert parsed.queries[["query_id", "text"]].to_numpy().tolist() == [
        ["q1", "return an item, unused"]
    ]
    assert len(parsed.documents) == 3
    assert parsed.documents["text"].str.len().min() > 100


def test_a_failed_query_is_reported_and_requested_again(run, engine, server, tmp_path):
    queries, out = tmp_path / "queries.csv", tmp_path / "out"
    queries.write_text("query_id,query,frequency\na,return,7\nb,refund,1\n")
    server.fault_of = lambda body: {"status": 422} if text_of(body) == "refund" else {}
    command = ("fetch", engine, "--queries", queries, "--out", out, "--concurrency", 1)
    done = run(*command)
    assert done.code == 1
    assert "failed: query b: the service answered 422" in done.err
    failed = json.loads((out / "fetch.json").read_text())["endpoints"][0]["failed"]
    assert [each["query_id"] for each in failed] == ["b"]
    states = {row["query_id"]: row["state"] for row in json.loads(
        (out / "words.timings.json").read_text()
    )}  # fmt: skip
    assert states == {"a": "done", "b": "failed"}
    assert {line.split()[0] for line in (out / "words.trec").read_text().splitlines()} == {"a"}
    server.fault_of = lambda body: {}
    assert run(*command).code == 0
    assert [text_of(body) for _, _, body in server.seen] == ["return", "refund", "refund"]
    assert json.loads((out / "fetch.json").read_text())["endpoints"][0]["requests"] == 3
    queries.write_text("query_id,query\na,changed\n")
    refused = run(*command)
    assert (refused.code, len(server.seen)) == (2, 3)
    assert "the text of query a was 'return' and is now 'changed'" in refused.err
    for option, message in ((("--depth", 7), "depth 100, now 7"), ((), "the endpoint has changed")):
        queries.write_text("query_id,query\na,return\n")
        engine.write_text(engine.read_text().replace("_source.text", "_source.title"))
        refused = run(*command, *option)
        assert (refused.code, len(server.seen)) == (2, 3)
        assert message in refused.err


def test_the_failures_of_every_endpoint_are_reported(run, engine, server, tmp_path):
    queries, other = tmp_path / "queries.csv", tmp_path / "other.json"
    queries.write_text("query_id,query\na,return\nb,refund\n")
    other.write_text(engine.read_text())
    server.fault_of = lambda body: {"status": 422} if text_of(body) == "refund" else {}
    out = tmp_path / "out"
    done = run("fetch", engine, other, "--queries", queries, "--out", out)
    assert done.code == 1
    assert "words: 1 query fetched, 1 failed." in done.err
    assert "other: 1 query fetched, 1 failed." in done.err
    assert done.err.count("failed: query b") == 2


def test_a_path_without_values_is_named(run, engine, tmp_path):
    wrong = json.loads(engine.read_text()) | {"text": "_source.txt", "title": "_source.name"}
    engine.write_text(json.dumps(wrong))
    shown = run("fetch", engine, "--test", "return an item", "--depth", 2)
    message = "0 of 2 hits have a value at {}, the path of {} in the endpoint."
    assert f"Warning: {message.format('_source.txt', 'text')}" in shown.out
    assert f"Warning: {message.format('_source.name', 'title')}" in shown.out
    assert "the path of score" not in shown.out
    queries = tmp_path / "queries.txt"
    queries.write_text("return an item\n")
    command = ("fetch", engine, "--queries", queries, "--depth", 2, "--out", tmp_path / "out")
    done = run(*command)
    assert done.code == 0
    assert f"warning: words: {message.format('_source.txt', 'text')}" in done.err


def test_repeated_fetches_show_how_much_the_top_changes(run, engine, server, tmp_path):
    queries, out = tmp_path / "queries.csv", tmp_path / "out"
    queries.write_text("query\nreturn\nzzz\n")
    other = {"hits": {"hits": [{"_id": "new", "_source": {"text": "new"}}]}}
    # The engine answers the fifth request differently.
    server.fault_of = lambda body: {"with": other} if len(server.seen) == 5 else {}
    done = run(
        "fetch", engine, "--queries", queries, "--out", out, "--repeat", 3, "--concurrency", 1
    )
    assert done.code == 0
    assert "Top 10 that changes from fetch to fetch: 25.0%." in done.err
    changes = json.loads((out / "fetch.json").read_text())["endpoints"][0]["churn"]
    assert [(each["mean"], each["changed"]) for each in changes] == [(0, 0), (0.5, 0.5)]


def test_ids_with_blanks_are_written_as_a_table(run, engine, server, tmp_path):
    queries, out = tmp_path / "queries.txt", tmp_path / "out"
    queries.write_text("return\n")
    server.documents = {"=a b": "return it at once", "c": "return" + " it" * 30}
    assert run("fetch", engine, "--queries", queries, "--out", out).code == 0
    ranking = read(sources_at([str(out)])).candidates
    assert ranking.documents_of("q1")[0] == ["=a b", "c"]


@pytest.mark.parametrize(
    "files", [["corpus.json"], ["Queries.json"], ["qrels.json"], ["fetch.json"],
              ["a/w.json", "b/w.json", "a-w.json"], ["w.json", "W.json"]]
)  # fmt: skip
def test_the_name_of_an_endpoint_is_unique_in_the_folder(run, engine, server, tmp_path, files):
    paths = [tmp_path / "in" / each for each in files]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(engine.read_text())
    (tmp_path / "q.txt").write_text("return\n")
    done = run("fetch", *paths, "--queries", tmp_path / "q.txt", "--out", tmp_path / "out")
    assert done.code == 2 and "is already used in the output folder" in done.err
    assert server.seen == []


def test_a_test_call_writes_nothing(run, engine, server, tmp_path):
    before = set(tmp_path.iterdir())
    done = run("fetch", engine, "--test", "return an item", "--depth", 2)
    assert done.code == 0
    assert "Authorization: ApiKey $SEARCH_KEY" in done.out
    assert "Hits: 2, in " in done.out
    server.key = "another"
    refused = run("fetch", engine, "--test", "return an item")
    assert refused.code == 1
    assert "Failed: the service answered 401" in refused.out
    assert KEY not in done.out + done.err + refused.out + refused.err
    assert set(tmp_path.iterdir()) == before


def test_presets_are_listed_and_printed(run, tmp_path):
    assert [line.split()[0] for line in run("fetch", "--presets").out.splitlines()] == [*presets()]
    file = tmp_path / "solr.json"
    file.write_text(run("fetch", "--preset", "solr").out)
    assert json.loads(file.read_text()) == presets()["solr"].as_dict()
    assert run("fetch", "--preset", "excel").code == 2


def test_a_table_may_have_the_columns_query_and_text(run, engine, tmp_path):
    queries, out = tmp_path / "queries.csv", tmp_path / "out"
    queries.write_text("query_id,query,text\n7,return,more\n8,zzz,words\n")
    assert run("fetch", engine, "--queries", queries, "--out", out).code == 0
    rows = map(json.loads, (out / "queries.jsonl").read_text().splitlines())
    assert [(row["_id"], row["text"]) for row in rows] == [("7", "return"), ("8", "zzz")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--queries", "{q}"], "--out"),
        (["--out", "{new}"], "one of --queries and --data"),
        (["--queries", "{q}", "--data", str(SAMPLE), "--out", "{new}"], "one of --queries and"),
        (["--queries", "{q}", "--out", "{new}", "--depth", "0"], "1 or more"),
        (["--queries", "{q}", "--out", "{full}"], "contains other files"),
        (["--queries", "{full}/a.csv", "--out", "{new}"], "No column is recognised as query"),
        (["--queries", "{full}/bad.csv.gz", "--out", "{new}"], "bad.csv.gz: "),
    ],
)
def test_what_is_missing_or_wrong_is_refused(run, engine, server, tmp_path, options, message):
    queries = tmp_path / "q.txt"
    queries.write_text("return\n")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "bad.csv.gz").write_bytes(gzip.compress(b"query\nreturn\n")[:-9])
    names = {"q": queries, "new": tmp_path / "new", "full": tmp_path}
    done = run("fetch", engine, *(each.format(**names) for each in options))
    assert done.code == 2
    assert message in done.err and "bug" not in done.err
    assert server.seen == []
