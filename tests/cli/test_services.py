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
