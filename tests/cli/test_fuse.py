"""`fuse` and `rerankers`: rankings into one file, and every kind with its settings."""

import pytest

from rankdash import rerankers
from tests import documented

A = "q1 Q0 a 1 9 x\nq1 Q0 b 2 5 x\nq1 Q0 c 3 1 x\nq2 Q0 a 1 1 x\n"
B = "q1 Q0 c 1 0.4 x\nq1 Q0 d 2 0.3 x\nq1 Q0 a 3 0.2 x\n"


@pytest.fixture
def files(tmp_path):
    paths = tmp_path / "a.trec", tmp_path / "b.trec"
    for path, text in zip(paths, (A, B), strict=True):
        path.write_text(text)
    return paths


def lists(path):
    found = {}
    for line in path.read_text().splitlines():
        query, _, doc, _, _, tag = line.split()
        found.setdefault(query, []).append(doc)
    return found, tag


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), ["a", "c", "b", "d"]),
        (("--method", "minmax", "--weight", 2, 1), ["a", "b", "c", "d"]),
        (("--k", 0, "--weight", 1, "--weight", 3), ["c", "a", "d", "b"]),
    ],
)
def test_rankings_are_combined(run, files, tmp_path, options, expected):
    out = tmp_path / "fused.trec"
    done = run("fuse", "--run", files[0], "--run", files[1], *options, "--out", out)
    assert done.code == 0
    found, tag = lists(out)
    assert found == {"q1": expected}
    assert tag.startswith("fusion-")
    assert "1 of the queries of" in done.err and "such as q2" in done.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--weight", 1), "Weights and rankings differ in number: 1 and 2."),
        (("--weight", 1, -1), "above 0"),
        (("--method", "best"), "invalid choice"),
        (("--out", "nowhere/x.trec"), "There is no folder"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(run, files, tmp_path, options, reason):
    out = tmp_path / "fused.trec"
    done = run("fuse", "--run", *files, "--out", out, *options)
    assert done.code == 2
    assert reason in done.err and len(done.err.splitlines()) == 1
    assert not out.exists()


def test_one_ranking_is_not_enough_and_none_is_overwritten(run, files, tmp_path):
    out = tmp_path / "fused.trec"
    assert "At least two" in run("fuse", "--run", files[0], "--out", out).err
    assert run("fuse", "--run", *files, "--out", files[0]).code == 2
    assert files[0].read_text() == A


def test_rankings_of_different_queries_are_refused(run, files, tmp_path):
    files[1].write_text(B.replace("q1", "q9"))
    done = run("fuse", "--run", *files, "--out", tmp_path / "fused.trec")
    assert (done.code, "no query in common" in done.err) == (2, True)


# --- rerankers and plugins ------------------------------------------------------------------------


@pytest.fixture
def plugin(tmp_path, no_plugin_stays):
    path = tmp_path / "shortest.py"
    path.write_text(documented.plugin())
    return path


def test_every_reranker_is_listed_with_its_settings(run, plugin):
    done = run("rerankers")
    assert done.code == 0 and done.err == ""
    for kind in rerankers.kinds():
        if kind.name != "precomputed":
            assert f"  {kind.name}: " in done.out
            assert all(f"    {spec.name}=" in done.out for spec in kind.settings)


def test_a_plugin_from_a_file_is_listed_and_reranks(run, plugin, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("KIND = nothing")
    listed = run("rerankers", "--plugin", plugin, "--plugin", broken)
    assert listed.code == 0
    assert "shortest: Orders documents by their length." in listed.out
    (warning,) = listed.err.splitlines()
    assert warning.startswith("warning: The plugin") and "broken.py is not loaded" in warning
    data = tmp_path / "rows.csv"
    data.write_text(
        "query_id,query,doc_id,document,label,score\nq,a,d1,long text,0,2\nq,a,d2,text,1,1\n"
    )
    out = tmp_path / "out.trec"
    done = run("rerank", "--data", data, "--plugin", plugin, "--reranker", "shortest", "--out", out)
    assert done.code == 0
    assert lists(out)[0] == {"q": ["d2", "d1"]}


def test_a_cascade_reranks(run, tmp_path, plugin):
    data = tmp_path / "rows.csv"
    data.write_text(
        "query_id,query,doc_id,document,label,score\n"
        "q,card,d1,parking,0,3\nq,card,d2,pay by card and more,0,2\nq,card,d3,card,1,1\n"
    )
    out = tmp_path / "out.trec"
    done = run(
        *("rerank", "--data", data, "--plugin", plugin, "--reranker", "cascade", "--out", out),
        *("--set", "second=shortest", "--set", "first_settings=k1=1.2", "--set", "top=2"),
    )
    assert done.code == 0, done.err
    assert lists(out)[0] == {"q": ["d3", "d2", "d1"]}
