"""`rerank` with services, against one on 127.0.0.1."""

import pytest

from tests.rerankers.loopback import running

SHARED = ("how", "return")
ROWS = "query_id,query,doc_id,document,label,score\n" + "".join(
    f"q{q},how to return it,d{q}{d},a text {' '.join(SHARED[:d])},{int(d == 2)},{4 - d}\n"
    for q in range(3)
    for d in range(3)
)


@pytest.fixture
def data(tmp_path):
    file = tmp_path / "shop.csv"
    file.write_text(ROWS)
    return file


@pytest.mark.parametrize(
    ("kind", "billed"),
    [
        ("endpoint", "Calls: 3. Billed: 3 search_units"),
        ("llm-pointwise", "Calls: 9. Billed: "),
        ("llm-listwise", "Calls: 3. Billed: "),
        ("llm-pairwise", "Calls: 18. Billed: "),
    ],
)
def test_a_service_ranks_and_its_bill_is_told(run, data, tmp_path, monkeypatch, kind, billed):
    monkeypatch.setenv("RACK_API_KEY", "sk-rack-4711")
    out = tmp_path / "run.trec"
    with running(key="sk-rack-4711") as server:
        done = run(
            "rerank", "--data", str(data), "--reranker", kind, "--out", str(out),
            "--set", f"base_url={server.url}", "--set", "key_variable=RACK_API_KEY",
        )  # fmt: skip
    assert done.code == 0, done.err
    assert billed in done.err
    assert [line.split()[2] for line in out.read_text().splitlines()[::3]] == ["d02", "d12", "d22"]
    assert "sk-rack" not in done.err + done.out + out.read_text()


@pytest.mark.parametrize("dialect", ["cohere", "tei"])
def test_a_service_without_a_key_is_asked_only_when_told_that_it_needs_none(
    run, data, tmp_path, monkeypatch, dialect
):
    # The key of Cohere, which is not for this address: it would be left out without a word.
    monkeypatch.setenv("COHERE_API_KEY", "sk-cohere-4711")
    monkeypatch.delenv("TEI_API_KEY", raising=False)
    with running() as server:
        asked = (
            "rerank", "--data", str(data), "--reranker", "endpoint", "--out", str(tmp_path / "x"),
            "--set", f"base_url={server.url}", "--set", f"dialect={dialect}",
        )  # fmt: skip
        done = run(*asked)
        assert done.code == 2
        assert "The key of the service is missing" in done.err
        assert "key_variable=none" in done.err
        assert not (tmp_path / "x").exists()
        assert server.seen == []
        done = run(*asked, "--set", "key_variable=none")
    assert done.code == 0, done.err
    assert len(server.seen) == 3
    assert not any("Authorization" in headers for _, headers, _ in server.seen)


def test_a_refusal_is_told_without_the_key(run, data, tmp_path, monkeypatch):
    monkeypatch.setenv("RACK_API_KEY", "sk-wrong-4711")
    with running(key="sk-rack-4711") as server:
        done = run(
            "rerank", "--data", str(data), "--reranker", "endpoint", "--out", str(tmp_path / "x"),
            "--set", f"base_url={server.url}", "--set", "key_variable=RACK_API_KEY",
        )  # fmt: skip
    assert done.code == 2
    assert "refused the request (401): invalid api token: Bearer •••" in done.err
    assert "sk-wrong" not in done.err
    assert not (tmp_path / "x").exists()
