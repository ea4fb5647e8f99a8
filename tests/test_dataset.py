"""`Dataset`: checked once, never changed, named by its content."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.dataset import Dataset
from rankdash.errors import DataError
from rankdash.ranking.ranking import Ranking
from rankdash.text_language import language_of


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


@pytest.mark.parametrize(
    ("labels", "grades"),
    [
        # Positive labels alone, as of many public sets.
        ([1, 1, 1], [0, 1]),
        ([3, 3, 1], [0, 1, 2, 3]),
        ([0, 0, 0], [0, 1]),
        ([2, 0.5, -1], [-1, 0, 0.5, 1, 2]),
        ([2.5, 0, 1], [0, 1, 2, 2.5]),
        ([1e9, 0, 1], [*range(101), 1e9]),
        ([], [0, 1]),
    ],
)
def test_every_grade_from_0_to_the_top_can_be_given_whatever_labels_there_are(labels, grades):
    qrels = tables()["qrels"].iloc[: len(labels)].assign(label=labels)
    assert dataset(qrels=qrels).grades == tuple(grades)


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


def changes(*rows: tuple[str, str, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def test_relabelled_has_the_other_labels_and_leaves_the_first_as_it_was():
    made = dataset()
    before = made.qrels
    other = made.relabelled(changes(("1", "d2", 2.0), ("007", "d1", np.nan), ("007", "d2", 1.0)))

    assert other.qrels.to_dict("records") == [
        {"query_id": "1", "doc_id": "d1", "label": 2.0},
        {"query_id": "1", "doc_id": "d2", "label": 2.0},
        {"query_id": "007", "doc_id": "d2", "label": 1.0},
    ]
    pd.testing.assert_frame_equal(made.qrels, before)
    assert other.candidates is made.candidates
    assert other.id == dataset(qrels=other.qrels).id != made.id


def test_relabelled_with_nothing_is_the_same_data_set():
    made = dataset()

    assert made.relabelled(changes()) == made
    assert made.relabelled(changes(("007", "d2", np.nan))) == made


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["1", "007"]), st.sampled_from(["d1", "d2"])),
        st.sampled_from([-1.0, 0.0, 0.5, 2.0, np.nan]),
    )
)
def test_relabelled_is_what_replacing_the_labels_by_hand_gives(wanted):
    made = dataset()
    by_hand = {(q, d): label for q, d, label in made.qrels.itertuples(index=False)} | wanted
    expected = {pair: label for pair, label in by_hand.items() if not np.isnan(label)}

    other = made.relabelled(changes(*((q, d, label) for (q, d), label in wanted.items())))

    found = {(q, d): label for q, d, label in other.qrels.itertuples(index=False)}
    assert found == expected
    assert len(other.qrels) == len(expected)


@pytest.mark.parametrize(
    "rows",
    [
        [("1", "d1", 1.0), ("1", "d1", 2.0)],
        [("nobody", "d1", 1.0)],
        [("1", "nothing", 1.0)],
        [("1", "d1", np.inf)],
    ],
)
def test_relabelled_refuses_what_the_data_set_does_not_know(rows):
    with pytest.raises(DataError):
        dataset().relabelled(changes(*rows))


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


def test_the_id_is_the_same_in_every_version():
    """Stored data sets are known by it."""
    assert dataset().id == "3c6505ba142e1b59"
    bare = pd.DataFrame({"query_id": [], "doc_id": [], "label": []})
    ranked = candidates(("007", "d2", 1.0), ("1", "d1", 2.0), ("1", "d2", 1.0))
    assert dataset(ranked=ranked, qrels=bare).id == "76275f5d677ae7bb"


def test_texts_of_some_documents_are_those_of_all():
    made = dataset()
    every = made.document_text()
    assert made.document_text(np.array([1, 0])).to_dict() == every[::-1].to_dict()
    assert list(made.document_text(np.array([1])).index) == ["d2"]
