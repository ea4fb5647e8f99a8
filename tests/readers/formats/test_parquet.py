"""Parquet: types become text without loss, damage is refused."""

import io

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdash.errors import FormatError, LimitError
from rankdash.readers.formats import parquet
from rankdash.readers.parse.limits import ReadLimits


def written(frame: pd.DataFrame, **options: object) -> bytes:
    data = io.BytesIO()
    frame.to_parquet(data, **options)
    return data.getvalue()


def test_whole_numbers_as_ids_become_decimal_text_also_in_a_float_column(parse):
    frame = pd.DataFrame(
        {
            "query_id": pd.array([1, 2**60, 3]),
            "doc_id": [1.0, 2.0, float("nan")],
            "label": [0.5, 1, 2],
        }
    )

    parsed = parse({"x": written(frame)})

    assert list(parsed.qrels.itertuples(index=False, name=None)) == [
        ("1", "1", 0.5),
        (str(2**60), "2", 1.0),
    ]


def test_missing_labels_are_told_by_row_number(parse, found):
    frame = pd.DataFrame(
        {"query": list("aaaa"), "document": list("wxyz"), "label": [1, None, 0, float("inf")]}
    )

    parsed = parse({"x": written(frame)})

    assert found(parsed, "no_label").line == 2
    assert found(parsed, "bad_label").line == 4


def test_scores_keep_their_precision(parse):
    score = 0.1 + 2**-50
    frame = pd.DataFrame({"query_id": ["q"], "doc_id": ["d1"], "score": [score], "label": [1]})

    assert parse({"x": written(frame)}).candidates.scores.tolist() == [score]


def test_categories_booleans_and_bytes(parse):
    frame = pd.DataFrame(
        {
            "query": pd.Categorical(["a", "a"]),
            "document": [b"one", "二".encode()],
            "label": [True, False],
        }
    )

    parsed = parse({"x": written(frame)})

    assert parsed.documents["text"].tolist() == ["one", "二"]
    assert parsed.qrels["label"].tolist() == [1.0, 0.0]


def test_lists_in_cells_are_entries_as_in_json(parse):
    frame = pd.DataFrame(
        {"query": ["a"], "docs": [["x", "y"]], "true_scores": [[1, 0]], "pred_scores": [[0.1, 0.2]]}
    )

    parsed = parse({"x": written(frame)})

    assert parsed.qrels["label"].tolist() == [1.0, 0.0]
    assert parsed.rankings["x"].documents_of("q1")[0] == ["d2", "d1"]


@pytest.mark.parametrize("cut", [10, 200, -5])
def test_a_damaged_file_is_refused(parse, cut):
    data = written(pd.DataFrame({"query": ["a"] * 500, "document": "b", "label": 1}))

    with pytest.raises(FormatError, match="Parquet file is damaged or cut short") as refused:
        parse({"x": data[:cut]})
    assert refused.value.file == "x"


def test_an_empty_table_has_no_rows(parse):
    with pytest.raises(FormatError, match="no rows"):
        parse({"x": written(pd.DataFrame({"query": ["a"], "document": "b", "label": 1}).head(0))})


def test_two_columns_of_one_name_are_refused(parse):
    table = pa.table([["a"], ["b"], [1]], names=["query", "query", "label"])
    data = io.BytesIO()
    pq.write_table(table, data)

    with pytest.raises(FormatError, match="Two columns have the same name"):
        parse({"x": data.getvalue()})


@pytest.mark.parametrize(
    ("largest", "texts"),
    [
        (2.0**53 - 1, ["9007199254740991", "1"]),
        (2.0**53, ["9007199254740992.0", "1.0"]),
        (1.5, ["1.5", "1.0"]),
    ],
)
def test_whole_numbers_that_a_float_holds_exactly_are_written_whole(largest, texts):
    data = written(pd.DataFrame({"label": [largest, 1.0]}))
    assert parquet.read(data, "x", ReadLimits()).frame["label"].tolist() == texts


@pytest.mark.parametrize(("limit", "most"), [("rows", 2), ("columns", 3), ("field_chars", 4)])
def test_as_much_as_allowed_is_read(limit, most):
    columns = {"query": ["abcd", "b"], "doc_id": ["c", "d"], "label": [1, 0]}
    data = written(pd.DataFrame(columns))
    table = parquet.read(data, "x", ReadLimits(**{limit: most}))
    assert table.lines.tolist() == [1, 2]
    assert table.frame["label"].tolist() == ["1", "0"]
    with pytest.raises(LimitError):
        parquet.read(data, "x", ReadLimits(**{limit: most - 1}))
