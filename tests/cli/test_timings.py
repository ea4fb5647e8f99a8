"""The latencies of a run as a file, and a run with the latencies of a file. The output of `gate`
and `report` with them is in `approved/cli`."""

import math
from dataclasses import replace

import pandas as pd

from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import Ranking, Run
from rankdash.kit.commands.rankings import Timings, timed, write_timings

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
