"""Resumed runs: resolved settings, and a file of results."""

import json

import numpy as np
import pytest

from rankdash.core.base.errors import DataError
from rankdash.core.runs.results import QueryResult, ResultsFile, with_runtime
from tests.full_disk import room_for


def test_stages_go_on_by_the_runtimes_that_they_began_with():
    settings = {"first": "bm25", "first_settings": "", "second_settings": "top=3\nruntime=auto"}
    details = {"second_runtime": "openvino", "second_device": "cpu", "second_threads": 2}
    found = with_runtime(settings, details)
    assert json.loads(str(found.pop("second_settings"))) == {
        "top": "3",
        "runtime": "openvino",
        "device": "cpu",
    }
    assert found == {"first": "bm25", "first_settings": ""}


def test_results_of_another_run_are_refused(tmp_path):
    kept, wish = tmp_path / "kept", {"data": "a", "settings": {"depth": 3}}
    file = ResultsFile(kept, wish)
    result = QueryResult("q1", "done", scores=np.array([0.1, 1 / 3]), read=np.array([5], np.int32))
    file.add([result, QueryResult("q2", "failed", "no")])
    (again,) = ResultsFile(kept, wish).results
    assert again.query_id == "q1" and again.scores.tolist() == [0.1, 1 / 3]
    assert again.read.dtype == np.int32 and np.isnan(again.latency_ms)
    for other, what in (({**wish, "data": "b"}, "data"), ({**wish, "settings": {}}, "settings")):
        with pytest.raises(DataError, match=rf"belong to another run \({what} differ\)"):
            ResultsFile(kept, other)
    for content in (kept.read_bytes().replace(b'"scores"', b'"stores"'), b"mine\n"):
        kept.write_bytes(content)
        with pytest.raises(DataError, match="not a resume file"):
            ResultsFile(kept, wish)
        assert kept.read_bytes() == content


def test_results_that_a_full_disk_has_no_room_for_are_an_error_and_those_before_stay(tmp_path):
    kept, wish = tmp_path / "kept", {"data": "a"}
    results = [QueryResult(f"q{n}", "done", scores=np.full(40, 1 / 3)) for n in range(4)]
    file = ResultsFile(kept, wish)
    file.add(results[:1])
    line = kept.stat().st_size
    with room_for(2 * line + 100), pytest.raises(DataError, match=r"kept: Not enough disk space"):
        file.add(results[1:])
    assert [each.query_id for each in ResultsFile(kept, wish).results] == ["q0", "q1"]
    file.add(results[2:])
    assert len(ResultsFile(kept, wish).results) == 4
    # A partial line after a kill is overwritten.
    kept.write_bytes(kept.read_bytes()[:-5])
    file = ResultsFile(kept, wish)
    assert [each.query_id for each in file.results] == ["q0", "q1", "q2"]
    file.add(results[3:])
    assert len(ResultsFile(kept, wish).results) == 4
