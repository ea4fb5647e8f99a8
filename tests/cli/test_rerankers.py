"""`rerankers`, and plugins: every kind with its settings."""

import pytest

from rankdash import rerankers
from tests import documented


@pytest.fixture
def plugin(tmp_path, no_plugin_stays):
    path = tmp_path / "shortest.py"
    path.write_text(documented.plugin())
    return path


def test_every_reranker_is_listed_with_its_settings(run, plugin):
    done, listed = run("rerankers"), run("rerankers", "--json").json
    assert done.code == 0 and done.err == ""
    for kind in rerankers.kinds():
        if kind.name != "precomputed":
            assert f"  {kind.name}: " in done.out
            assert all(f"    {spec.name}=" in done.out for spec in kind.settings)
            settings = listed[kind.name]["settings"]
            assert {each: settings[each]["default"] for each in settings} == {
                spec.name: spec.default for spec in kind.settings
            }
    assert "lucene" in listed["bm25"]["settings"]["method"]["choices"]


def test_a_plugin_from_a_file_is_listed_and_reranks_also_in_a_cascade(run, plugin, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("KIND = nothing")
    listed = run("rerankers", "--plugin", plugin, "--plugin", broken)
    assert listed.code == 0
    assert "shortest: Orders documents by their length." in listed.out
    (warning,) = listed.err.splitlines()
    assert warning.startswith("warning: The plugin") and "broken.py is not loaded" in warning
    data = tmp_path / "rows.csv"
    data.write_text(
        "query_id,query,doc_id,document,label,score\n"
        "q,card,d1,parking,0,3\nq,card,d2,pay by card and more,0,2\nq,card,d3,card,1,1\n"
    )
    cascade = ("cascade", "--set", "second=shortest", "--set", "top=2", "--set",
               "first_settings=k1=1.2")  # fmt: skip
    for reranker, order in ((("shortest",), "d3 d1 d2"), (cascade, "d3 d2 d1")):
        done = run(
            "rerank", "--data", data, "--plugin", plugin, "--out", "-", "--reranker", *reranker
        )
        assert done.code == 0, done.err
        assert [line.split()[2] for line in done.out.splitlines()] == order.split()
