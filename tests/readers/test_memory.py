"""Tables in memory: data frames, Arrow and dictionaries are read like files, and back."""

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

import rankdash as rd
from tests.reporting.exports.test_formats import data_sets, labels_of, lists_of

ROWS = {
    "query": ["how to return", "how to return", "退货"],
    "document": ["Send it back", "Opening hours", "三十天内"],
    "label": [2, 0, 1],
    "rank": [2, 1, 1],
}


class Stream:
    """An object with the Arrow stream only, with texts as views, as polars has them."""

    def __init__(self, rows: dict[str, list]) -> None:
        self.table = pa.table(rows)
        for place, field in enumerate(self.table.schema):
            if pa.types.is_string(field.type):
                view = self.table.column(place).cast(pa.string_view())
                self.table = self.table.set_column(place, field.name, view)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("made", [dict, pd.DataFrame, pa.table, Stream])
def test_a_table_is_read_like_a_file(made: Callable):
    data = rd.read(made(ROWS), name="shop")
    assert data.name == "shop"
    assert sorted(data.qrels["label"]) == [0, 1, 2]
    assert list(data.query_text()) == ["how to return", "退货"]
    assert set(data.document_text()) == set(ROWS["document"])
    first = data.candidates.documents_of(data.queries["query_id"].iloc[0])[0]
    assert [data.document_text()[doc] for doc in first] == ["Opening hours", "Send it back"]


def test_the_rows_of_a_filtered_frame_have_no_column_of_its_index():
    frame = pd.DataFrame(ROWS)
    data = rd.read(frame[frame["query"] == "how to return"])
    assert data.segments == []
    assert len(data.qrels) == 2
    frame.index = [7, 8, 9]
    assert rd.read(frame) == rd.read(ROWS)


def test_labels_and_runs_as_dictionaries_are_the_same_as_files(tmp_path):
    labels = {"q1": {"a": 2, "b": 0}, "q2": {"a": 0, "c": np.int64(1)}}
    scores = {"q1": {"b": 0.5, "a": np.float32(0.25)}, "q2": {"c": 1.5, "a": 0.75}}
    data = rd.read(labels, scores)
    assert labels_of(data) == {
        (q, d): float(v) for q, docs in labels.items() for d, v in docs.items()
    }
    assert lists_of(data.candidates) == {"q1": ["b", "a"], "q2": ["c", "a"]}
    better = {"q1": {"a": 0.9, "b": 0.1}, "q2": {"c": 0.8, "a": 0.2}}
    run = rd.read_run(better, data, name="better")
    assert run.name == "better"
    assert rd.evaluate(data, run, "ndcg@10").mean("ndcg@10") == 1.0
    (tmp_path / "qrels.txt").write_text("q1 0 a 2\nq1 0 b 0\nq2 0 a 0\nq2 0 c 1\n")
    assert labels_of(rd.read(tmp_path / "qrels.txt", scores)) == labels_of(data)


@given(data=data_sets())
def test_data_sets_rankings_and_evaluations_are_tables(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = rd.read(data)
        run = rd.read_run(data.candidates, data)
        found = rd.evaluate(data, run, "ndcg@10")
    assert labels_of(again) == labels_of(data)
    # Equal scores are in the order of a TREC file.
    by_id = lists_of(data.candidates.with_ties("trec"))
    assert lists_of(again.candidates) == lists_of(run.ranking) == by_id
    assert pa.table(data).to_pandas().equals(data.frame().reset_index(drop=True))
    assert pa.table(found).num_rows == len(found.query_ids)
    assert pa.table(run).column_names == ["query_id", "doc_id", "rank", "score"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"query": [1, "a"], "document": ["x", "y"]}, "cannot be converted to Arrow"),
        ({"query": ["a"], "document": ["x", "y"]}, "cannot be converted to Arrow"),
        (3, "must be text or a path or a dictionary, not a whole number"),
        (["a.csv"], "not a list"),
    ],
)
def test_other_values_are_refused_in_words(table, message):
    with pytest.raises(rd.RankdashError, match=message):
        rd.read(table)


def test_ids_with_the_same_text_are_refused():
    for labels in ({1: {"a": 1}, "1": {"b": 0}}, {"q": {1: 1, "1": 0}}):
        with pytest.raises(rd.RankdashError, match="Two ids have the same text '1'"):
            rd.read(labels)


def test_a_segment_with_the_name_of_a_column_is_another_column():
    grades = {"rating": [2, 0, 1], "label": ["x", "x", "y"]}
    rows = {name: ROWS[name] for name in ("query", "document", "rank")}
    data = rd.read({**rows, **grades}, columns={"label": "rating"})
    assert data.segments == ["label"]
    frame = data.frame()
    assert sorted(frame["label"]) == [0, 1, 2]
    assert set(frame["query label"]) == {"x", "y"}
