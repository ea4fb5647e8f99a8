"""The latencies of a run as a file, and a run with the latencies of a file."""

import json
import math

import pandas as pd
import pytest

from rankdash.cli.timings import Timings, timed, write_timings
from rankdash.errors import DataError
from rankdash.ranking.measured import Measured
from rankdash.ranking.ranking import Ranking, Run

nan = math.nan


def run(**fields) -> Run:
    queries = pd.DataFrame(
        {
            "query_id": ["a", "b", "c"],
            "state": ["done", "failed", "done"],
            "reason": ["", "=no luck", ""],
            "latency_ms": [2.0, nan, 4.0],
            "index_ms": nan,
            "pairs": [3.0, nan, 3.0],
            "tokens": nan,
            "truncated": nan,
        }
    )
    ranking = Ranking.from_lists([(query, ["d"], [1.0]) for query in "ac"])
    return Run("r", "run", "data", ranking, "bm25", queries, **fields)


def test_a_row_for_each_query_with_a_column_for_each_time_and_null_where_there_is_none(tmp_path):
    write_timings(run(), tmp_path / "x.json")
    rows = json.loads((tmp_path / "x.json").read_text())
    assert [list(row) for row in rows] == [
        ["query_id", "state", "reason", "latency_ms", "pairs"]
    ] * 3
    assert [row["latency_ms"] for row in rows] == [2.0, None, 4.0]
    measured = Measured(repeats=2, repeated_ms={"a": (1.5, 2.5), "c": (4.0,)})
    write_timings(run(measured=measured), tmp_path / "x.JSON")
    rows = json.loads((tmp_path / "x.JSON").read_text())
    assert [(row["repeat_1_ms"], row["repeat_2_ms"]) for row in rows] == [
        (1.5, 2.5), (None, None), (4.0, None)
    ]  # fmt: skip
    write_timings(run(measured=measured), tmp_path / "x.CSV")
    lines = (tmp_path / "x.CSV").read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "query_id,state,reason,latency_ms,pairs,repeat_1_ms,repeat_2_ms"
    assert lines[2] == "b,failed,'=no luck,,,,"


def table(*rows: tuple[str, str, float]) -> Timings:
    frame = pd.DataFrame(rows, columns=["query_id", "state", "latency_ms"])
    return Timings("times.csv", frame.assign(reason=""))


def test_what_failed_or_was_not_run_leaves_the_ranking_and_the_last_time_counts():
    times = table(
        ("a", "done", 9.0), ("a", "done", 7.0), ("c", "failed", nan), ("x", "skipped", nan)
    )
    found = timed(run(), times, {"a", "b", "c", "x"})
    assert found.left_out == {"b": "failed", "c": "failed", "x": "skipped"}
    assert list(found.ranking.query_ids) == ["a"]
    latency = found.queries.set_index("query_id")["latency_ms"]
    assert latency["a"] == 7.0
    assert latency.drop("a").isna().all()


def test_an_id_that_a_spreadsheet_spells_with_an_apostrophe_is_found():
    named = run()
    queries = named.queries.replace({"query_id": {"a": "=a"}})
    own = Run("r", "run", "data", named.ranking, "bm25", queries)
    found = timed(own, table(("'=a", "done", 7.0)), set())
    assert found.queries.set_index("query_id")["latency_ms"]["=a"] == 7.0


def test_times_of_other_queries_are_refused_and_a_bare_list_names_none():
    with pytest.raises(DataError, match="None of the queries that were timed is in the ranking"):
        timed(run(), table(("x", "done", 1.0)), {"y"})
    assert timed(run(), table(("y", "done", 1.0)), {"y"}).queries["latency_ms"].isna().all()
    assert table(("", "done", 1.0), ("a", "done", 1.0)).named
    assert not table(("", "done", 1.0)).named
