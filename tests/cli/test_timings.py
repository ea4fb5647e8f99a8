"""The latencies of a run as a file, and a run with the latencies of a file. The output of `gate`
and `report` with them is in `approved/cli`."""

import json
import math
from dataclasses import replace

import pandas as pd
import pytest

from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import Ranking, Run
from rankdash.kit.commands.timings import Timings, timed, write_timings

QUERIES = pd.DataFrame(
    {
        "query_id": ["=a", "b", "c"], "state": ["done", "failed", "done"],
        "reason": ["", "=no luck", ""], "latency_ms": [2.0, math.nan, 4.0],
        "pairs": [3.0, math.nan, 3.0],
    }
)  # fmt: skip
RANKED = Ranking.from_lists([(query, ["d"], [1.0]) for query in ("=a", "c")])
RUN = Run("r", "run", "data", RANKED, "bm25", QUERIES)


def test_a_row_for_each_query_with_a_column_for_each_time(approved, tmp_path):
    measured = Measured(repeats=2, repeated_ms={"=a": (1.5, 2.5), "c": (4.0,)})
    repeated = replace(RUN, measured=measured)
    written = []
    for run, name in ((RUN, "once.json"), (repeated, "twice.JSON"), (repeated, "twice.CSV")):
        write_timings(run, tmp_path / name)
        written.append(f"# {name}\n{(tmp_path / name).read_text('utf-8-sig')}")
    approved("runs/timings", "".join(written))


def test_the_last_time_counts_and_an_id_may_have_the_apostrophe_of_a_spreadsheet():
    rows = [("'=a", "done", 9.0), ("'=a", "done", 7.0), ("c", "failed", 1.0), ("x", "skipped", 1.0)]
    table = pd.DataFrame(rows, columns=["query_id", "state", "latency_ms"]).assign(reason="")
    found = timed(RUN, Timings("times.csv", table), {"x"})
    assert found.excluded == {"b": "failed", "c": "failed", "x": "skipped"}
    assert list(found.ranking.query_ids) == ["=a"]
    latency = found.queries.set_index("query_id")["latency_ms"]
    assert latency.dropna().to_dict() == {"=a": 7.0}
    assert Timings("times.csv", table).named
    assert not Timings("times.csv", table.assign(query_id="")).named
    # Times of labelled queries that the ranking lacks do not belong to another run.
    assert timed(RUN, Timings("times.csv", table[3:]), {"x"}).excluded["x"] == "skipped"


@pytest.fixture
def failing(tmp_path):
    """Labels of six queries, and the rankings of two equal engines, each with another failed
    query."""
    ids = [f"q{n}" for n in range(6)]
    labels = [f"{query} 0 d{n % 2} 1\n" for n, query in enumerate(ids)]
    (tmp_path / "qrels.txt").write_text("".join(labels))
    for name, failed in (("a", "q0"), ("b", "q1")):
        done = [query for query in ids if query != failed]
        rows = [f"{query} Q0 {doc} 1 {2 - n} x\n" for query in done for n, doc in enumerate(DOCS)]
        (tmp_path / f"{name}.trec").write_text("".join(rows))
        states = [
            {"query_id": query, "state": "failed" if query == failed else "done", "latency_ms": 1}
            for query in ids
        ]
        (tmp_path / f"{name}.timings.json").write_text(json.dumps(states))
    return tmp_path


DOCS = ("d0", "d1")


@pytest.mark.parametrize("large", [False, True])
def test_the_failures_beside_a_ranking_are_excluded(run, failing, monkeypatch, large):
    if large:
        monkeypatch.setattr("rankdash.core.study.large.LARGE_BYTES", 0)
    qrels, a, b = (failing / name for name in ("qrels.txt", "a.trec", "b.trec"))
    scored = run("evaluate", qrels, a, b, "--metrics", "mrr")
    assert scored.err == ""
    assert "a: 5 of 6 queries counted; 1 failed (excluded)" in scored.out
    assert "b: 5 of 6 queries counted; 1 failed (excluded)" in scored.out
    command = ("--qrels", qrels, "--baseline", a, "--challenger", b, "--metric", "mrr")
    compared = run("compare", *command)
    assert compared.err == ""
    assert "Excluded from both rankings for b: 2 failed." in compared.out
    # The means are over other queries than the difference.
    assert "Over the 4 queries of the comparison, a has 0.7500 and b 0.7500." in compared.out
    for form in ("markdown", "latex"):
        assert "a has 0.7500 and b 0.7500." in run("compare", *command, "--format", form).out
    row = run("compare", *command, "--format", "json").json["comparisons"][1]
    assert (row["delta"], row["paired"], row["missing"]) == (0, 4, 0)
    timed = run("compare", *command, "--timings", failing / "b.timings.json")
    assert timed.out == compared.out


@pytest.mark.parametrize("first", ["a", "initial", "v1.2"])
def test_the_report_of_a_folder_excludes_the_failures_in_it(run, failing, first):
    for ending in ("trec", "timings.json"):
        (failing / f"a.{ending}").rename(failing / f"{first}.{ending}")
    out = failing / "report.html"
    assert "lacks" not in run("check", failing).out
    assert "lacks" not in run("report", "--data", failing, "--out", out).err
    text = out.read_text("utf-8")
    assert "2 queries are excluded from both rankings" in text
