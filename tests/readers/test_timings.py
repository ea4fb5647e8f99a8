"""Latencies from a file: which cells are a time, which are none, and what names its line."""

import math

import pytest

from rankdash.errors import DataError, LimitError
from rankdash.readers import Source
from rankdash.readers.parse.limits import ReadLimits
from rankdash.readers.timings import read_timings

FULL = "query_id,state,reason,latency_ms\nq1,done,,12.5\nq2,failed,no answer,\nq3,skipped,,\n"


def timings(text: str, *column: str, **options: object):
    return read_timings(Source("times.csv", text.encode()), *column, **options)[0]


def test_a_table_of_queries_is_read_as_it_was_written():
    frame = timings(FULL)
    assert list(frame.columns) == ["query_id", "state", "reason", "latency_ms"]
    assert frame[["query_id", "state", "reason"]].to_numpy().tolist() == [
        ["q1", "done", ""], ["q2", "failed", "no answer"], ["q3", "skipped", ""],
    ]  # fmt: skip
    assert frame["latency_ms"].tolist() == pytest.approx([12.5, math.nan, math.nan], nan_ok=True)


def test_a_column_alone_is_of_queries_that_are_done_and_have_no_names():
    frame = timings("a, took \nx,3\ny,0\n", "took")
    assert frame[["query_id", "state", "reason"]].drop_duplicates().to_numpy().tolist() == [
        ["", "done", ""]
    ]
    assert frame["latency_ms"].tolist() == [3.0, 0.0]


@pytest.mark.parametrize("cell", ["", " ", "NaN", "null", "None", "N/A"])
def test_what_was_not_measured_is_no_latency(cell):
    frame = timings(f"query_id,state,latency_ms\nq1,,{cell}\nq2,done, 4 \n")
    assert frame["latency_ms"].tolist() == pytest.approx([math.nan, 4.0], nan_ok=True)
    assert frame["state"].tolist() == ["done", "done"]


@pytest.mark.parametrize("cell", ["-1", "-0.001", "inf", "fast", "1e999"])
def test_what_is_no_latency_is_named_by_its_line(cell):
    with pytest.raises(DataError) as caught:
        timings(f"query_id,latency_ms\nq1,0\nq2,{cell}\n")
    assert (caught.value.file, caught.value.line) == ("times.csv", 3)
    assert cell in str(caught.value)


def test_the_first_state_that_there_is_not_is_named_by_its_line():
    with pytest.raises(DataError, match=r"'gone' is no state.*done, failed, skipped") as caught:
        timings("state,latency_ms\ndone,1\ngone,1\nlost,1\n")
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [("query_id,ms\nq1,4\n", "Its columns: query_id, ms"), ("q1,4\nq2,5\n", "no column")],
)
def test_a_file_without_the_column_says_which_it_has(text, said):
    with pytest.raises(DataError, match=said) as caught:
        timings(text)
    assert caught.value.file == "times.csv"


def test_a_table_of_timings_has_a_limit_as_any_other():
    with pytest.raises(LimitError):
        timings(FULL, limits=ReadLimits(rows=2))
    assert len(timings(FULL, limits=ReadLimits(rows=3))) == 3
