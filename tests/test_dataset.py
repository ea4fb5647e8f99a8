"""`Dataset`: checked once, immutable, with an id from its content."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.base.errors import DataError
from rankdash.core.base.text import language_of
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking


def tables() -> dict[str, pd.DataFrame]:
    return {
        "queries": pd.DataFrame(
            {"query_id": ["1", "007"], "text": ["gift return", None], "type": ["how", "what"]}
        ),
        "documents": pd.DataFrame(
            {"doc_id": ["d1", "d2"], "title": ["Returns", None], "text": ["Bring it back", "x"]}
        ),
        "qrels": labels(("1", "d1", 2.0), ("1", "d2", 0.5), ("007", "d1", -1.0)),
    }


def labels(*rows: tuple[str, str, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def candidates(*rows: tuple[str, str, float]) -> Ranking:
    rows = rows or (("1", "d1", 2.0), ("1", "d2", 1.0), ("007", "d2", 1.0))
    return Ranking.from_columns(*zip(*rows, strict=True))


def dataset(name: str = "set", ranked: Ranking | None = None, **changed: pd.DataFrame) -> Dataset:
    return Dataset(name, **{**tables(), **changed}, candidates=ranked or candidates())


@pytest.mark.parametrize(
    ("given_labels", "grades"),
    [
        # Only positive labels, as in many public sets.
        ([1, 1, 1], [0, 1]),
        ([3, 3, 1], [0, 1, 2, 3]),
        ([0, 0, 0], [0, 1]),
        ([2, 0.5, -1], [-1, 0, 0.5, 1, 2]),
        ([2.5, 0, 1], [0, 1, 2, 2.5]),
        ([1e9, 0, 1], [*range(101), 1e9]),
        ([], [0, 1]),
    ],
)
def test_every_grade_from_0_to_the_top_can_be_given_whatever_labels_there_are(given_labels, grades):
    qrels = tables()["qrels"].iloc[: len(given_labels)].assign(label=given_labels)
    assert dataset(qrels=qrels).grades == tuple(grades)


def test_ids_stay_strings_labels_keep_fractions_and_signs_and_missing_text_is_empty():
    made = dataset()
    assert made.queries["query_id"].tolist() == ["1", "007"]
    assert made.qrels["label"].tolist() == [2.0, 0.5, -1.0]
    assert made.segments == ["type"]
    assert made.query_text().to_dict() == {"1": "gift return", "007": ""}
    every = made.document_text()
    assert every.to_dict() == {"d1": "Returns Bring it back", "d2": "x"}
    for some in ([1, 0], [1]):
        assert made.document_text(np.array(some)).equals(every.iloc[some])


def test_writing_to_a_frame_that_came_in_or_out_changes_nothing_inside():
    frames = tables()
    made = Dataset("set", **frames, candidates=candidates())
    for frame in (frames["qrels"], made.qrels):
        frame.loc[0, "label"] = 99.0
    assert made.qrels["label"].tolist() == [2.0, 0.5, -1.0]
    assert made.id == dataset().id


def test_the_id_is_of_the_content_and_not_of_the_name_or_the_order_of_rows_or_queries():
    other_order = {name: frame.iloc[::-1] for name, frame in tables().items()}
    ranked = candidates(("007", "d2", 1.0), ("1", "d1", 2.0), ("1", "d2", 1.0))
    assert dataset("another name") == dataset()
    assert dataset(**other_order).id == dataset(ranked=ranked).id == dataset().id
    assert len({dataset("a"), dataset("b")}) == 1
    # The id of a stored data set is the same in every version.
    assert dataset().id == "3c6505ba142e1b59"
    assert dataset(ranked=ranked, qrels=labels()).id == "76275f5d677ae7bb"


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


@settings(max_examples=30)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=4), min_size=2, max_size=2))
def test_text_cannot_move_between_rows_without_a_new_id(texts):
    documents = tables()["documents"].assign(text=texts)
    swapped = documents.assign(text=texts[::-1])
    same = dataset(documents=documents).id == dataset(documents=swapped).id
    assert same == (texts[0] == texts[1])


def with_row(table: str, **row: object) -> dict[str, pd.DataFrame]:
    return {table: pd.concat([tables()[table], pd.DataFrame([row])])}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        *(
            ({"qrels": labels(("1", "d1", bad))}, "label is not a finite number")
            for bad in (np.nan, np.inf)
        ),
        *(
            ({"queries": tables()["queries"].assign(query_id=["1", empty])}, "empty query_id")
            for empty in ("", None)
        ),
        (with_row("queries", query_id="1", text="again"), "The queries table lists .* twice"),
        (with_row("documents", doc_id="d1", title="", text=""), "The documents table lists .* tw"),
        (with_row("qrels", query_id="1", doc_id="d1", label=2.0), "The qrels table lists .* twice"),
        ({"documents": tables()["documents"].drop(columns="title")}, r"table lacks \['title'\]"),
        ({"queries": tables()["queries"].iloc[:1]}, "qrels mention '007'.*queries"),
        ({"documents": tables()["documents"].iloc[1:]}, "qrels mention 'd1'.*documents"),
        ({"ranked": candidates(("9", "d1", 1.0))}, "candidates mention '9'.*queries"),
        ({"ranked": candidates(("1", "d9", 1.0))}, "candidates mention 'd9'.*documents"),
    ],
)
def test_what_cannot_be_a_data_set_is_refused_by_table_and_id(changed, message):
    with pytest.raises(DataError, match=message):
        dataset(**changed)


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["1", "007"]), st.sampled_from(["d1", "d2"])),
        st.sampled_from([-1.0, 0.0, 0.5, 2.0, np.nan]),
    )
)
def test_relabelled_is_what_replacing_the_labels_by_hand_gives(wanted):
    """NaN removes a label; the first data set does not change."""
    made = dataset()
    before = made.qrels
    by_hand = {(q, d): label for q, d, label in before.itertuples(index=False)} | wanted
    expected = {pair: label for pair, label in by_hand.items() if not np.isnan(label)}
    other = made.relabelled(labels(*((q, d, label) for (q, d), label in wanted.items())))
    found = other.qrels
    assert {(q, d): label for q, d, label in found.itertuples(index=False)} == expected
    assert len(found) == len(expected)
    pd.testing.assert_frame_equal(made.qrels, before)
    assert other.candidates is made.candidates
    assert other.id == dataset(qrels=found).id
    assert (other == made) == found.equals(before)


@pytest.mark.parametrize("row", [("nobody", "d1", 1.0), ("1", "nothing", 1.0), ("1", "d1", np.inf)])
def test_relabelled_refuses_what_the_data_set_does_not_know(row):
    for rows in ([row], [("1", "d1", 1.0), ("1", "d1", 2.0)]):
        with pytest.raises(DataError):
            dataset().relabelled(labels(*rows))


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["How do I return it?", "Où est ma commande ?"], "latin"),
        (["怎么退货", "iPhone 15 怎么退款"], "zh"),
        (["返品の方法を教えてください", "送料はいくらですか"], "ja"),
        (["반품은 어떻게 하나요"], "ko"),
        (["Как вернуть товар"], "other"),
        (["???", "", "42"], "latin"),
    ],
)
def test_the_letters_of_the_queries_tell_their_language(texts, language):
    assert language_of(texts) == language
    queries = pd.DataFrame({"query_id": ["1", "007"], "text": [" ".join(texts), None]})
    assert dataset(queries=queries).language == language


def test_documents_of_an_engine_complete_the_data_set_under_the_same_id():
    made = dataset(
        documents=pd.DataFrame(
            {"doc_id": ["d1", "d2"], "title": ["Returns", ""], "text": ["Bring it back", None]}
        )
    )
    fetched = pd.DataFrame(
        {
            "doc_id": ["d3", "d2", "d1", "d3"],
            "title": [None, "Parcel", "Another", "second"],
            "text": ["new", "Send it", "Another", "second"],
        }
    )
    assert made.textless == {"d2"}
    more = made.with_documents(fetched)
    assert more.id == made.id and more.textless == frozenset()
    assert more.document_text().to_dict() == {
        "d1": "Returns Bring it back",
        "d2": "Parcel Send it",
        "d3": "new",
    }
    assert made.documents["text"].isna().tolist() == [False, True]
    # A fetch without texts does not hide texts of a later one.
    bare = fetched.assign(text=None)
    assert made.with_documents(pd.concat([bare, fetched])).textless == frozenset()
    relabelled = more.relabelled(labels(("1", "d3", 1.0)))
    assert made.added == made.with_documents(fetched.iloc[2:3]).added == ""
    copies = (relabelled, more.with_candidates(more.candidates, "other"))
    assert {each.added for each in copies} == {more.added} != {""}
    assert more.added == made.with_documents(fetched.iloc[[1, 0]]).added
    others = (fetched.iloc[1:3], fetched.iloc[:1], fetched.assign(text="other"))
    assert len({more.added, *(made.with_documents(each).added for each in others)}) == 4
    assert relabelled.qrels["doc_id"].tolist()[-1] == "d3"
    with pytest.raises(DataError, match="empty doc_id"):
        made.with_documents(fetched.assign(doc_id=""))
