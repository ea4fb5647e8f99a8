"""`Dataset`: checked once, never changed, named by its content."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.dataset import Dataset
from rankdash.errors import DataError
from rankdash.ranking import Ranking


def tables() -> dict[str, pd.DataFrame]:
    return {
        "queries": pd.DataFrame(
            {"query_id": ["1", "007"], "text": ["gift return", None], "type": ["how", "what"]}
        ),
        "documents": pd.DataFrame(
            {"doc_id": ["d1", "d2"], "title": ["Returns", None], "text": ["Bring it back", "x"]}
        ),
        "qrels": pd.DataFrame(
            {"query_id": ["1", "1", "007"], "doc_id": ["d1", "d2", "d1"], "label": [2, 0.5, -1]}
        ),
    }


def candidates(*rows: tuple[str, str, float]) -> Ranking:
    rows = rows or (("1", "d1", 2.0), ("1", "d2", 1.0), ("007", "d2", 1.0))
    return Ranking.from_columns(*zip(*rows, strict=True))


def dataset(name: str = "set", ranked: Ranking | None = None, **changed: pd.DataFrame) -> Dataset:
    return Dataset(name, **{**tables(), **changed}, candidates=ranked or candidates())


def test_ids_stay_strings_and_labels_keep_fractions_and_signs():
    made = dataset()

    assert made.queries["query_id"].tolist() == ["1", "007"]
    assert made.qrels["label"].tolist() == [2.0, 0.5, -1.0]
    assert made.segments == ["type"]


def test_title_and_text_are_read_as_one_and_missing_text_is_empty():
    made = dataset()

    assert made.document_text().to_dict() == {"d1": "Returns Bring it back", "d2": "x"}
    assert made.query_text().to_dict() == {"1": "gift return", "007": ""}


def test_writing_to_a_frame_that_was_handed_out_changes_nothing_inside():
    made = dataset()
    before = made.id

    frame = made.qrels
    frame.loc[0, "label"] = 99.0

    assert made.qrels["label"].tolist() == [2.0, 0.5, -1.0]
    assert made.id == before == dataset().id


def test_changing_the_frames_it_was_made_from_changes_nothing_inside():
    given_tables = tables()
    made = Dataset("set", **given_tables, candidates=candidates())

    given_tables["qrels"].loc[0, "label"] = 99.0

    assert made.qrels["label"].tolist() == [2.0, 0.5, -1.0]


def test_the_id_is_of_the_content_and_not_of_the_name_or_the_row_order():
    made = dataset()
    reversed_rows = {name: frame.iloc[::-1] for name, frame in tables().items()}

    assert dataset("another name") == made
    assert dataset(**reversed_rows).id == made.id
    assert len({dataset("a"), dataset("b")}) == 1


def test_the_id_does_not_depend_on_the_order_of_queries_in_the_candidates():
    other = candidates(("007", "d2", 1.0), ("1", "d1", 2.0), ("1", "d2", 1.0))

    assert dataset(ranked=other).id == dataset().id


@pytest.mark.parametrize(
    "changed",
    [
        {"qrels": tables()["qrels"].assign(label=[2.0, 0.5, 0.0])},
        {"queries": tables()["queries"].assign(text=["gift return", ""])},
        {"queries": tables()["queries"].drop(columns="type")},
        {"documents": tables()["documents"].assign(title=["Returns", "x"])},
        {"ranked": candidates(("1", "d2", 2.0), ("1", "d1", 1.0), ("007", "d2", 1.0))},
        {"ranked": candidates(("1", "d1", 2.5), ("1", "d2", 1.0), ("007", "d2", 1.0))},
    ],
)
def test_any_change_of_content_is_another_id(changed):
    assert dataset(**changed).id != dataset().id


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=4), min_size=2, max_size=2))
def test_text_cannot_move_between_rows_without_a_new_id(texts):
    documents = tables()["documents"].assign(text=texts)
    swapped = documents.assign(text=texts[::-1])

    same = dataset(documents=documents).id == dataset(documents=swapped).id
    assert same == (texts[0] == texts[1])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_label_that_is_not_finite_is_refused(bad):
    with pytest.raises(DataError, match="label is not a finite number"):
        dataset(qrels=tables()["qrels"].assign(label=[1.0, bad, 0.0]))


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("queries", {"query_id": "1", "text": "again", "type": "how"}),
        ("documents", {"doc_id": "d1", "title": "", "text": "again"}),
        ("qrels", {"query_id": "1", "doc_id": "d1", "label": 2.0}),
    ],
)
def test_a_row_listed_twice_is_refused(table, row):
    twice = pd.concat([tables()[table], pd.DataFrame([row])])

    with pytest.raises(DataError, match=f"The {table} table lists .* twice"):
        dataset(**{table: twice})


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_id_is_refused(empty):
    with pytest.raises(DataError, match="empty query_id"):
        dataset(queries=tables()["queries"].assign(query_id=["1", empty]))


def test_a_missing_column_is_refused_by_name():
    with pytest.raises(DataError, match=r"documents table lacks \['title'\]"):
        dataset(documents=tables()["documents"].drop(columns="title"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"queries": tables()["queries"].iloc[:1]}, "qrels mention '007'.*queries"),
        ({"documents": tables()["documents"].iloc[1:]}, "qrels mention 'd1'.*documents"),
        ({"ranked": candidates(("9", "d1", 1.0))}, "candidates mention '9'.*queries"),
        ({"ranked": candidates(("1", "d9", 1.0))}, "candidates mention 'd9'.*documents"),
    ],
)
def test_an_id_that_no_table_knows_is_refused(changed, message):
    with pytest.raises(DataError, match=message):
        dataset(**changed)
