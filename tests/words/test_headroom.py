"""What is said of a ceiling holds of the documents that it is of, and never more than it shows."""

from dataclasses import replace

import pandas as pd
import pytest

from rankdash.dataset import Dataset
from rankdash.i18n import speaking
from rankdash.study.study import Study
from rankdash.words import headroom
from tests.study.test_headroom import QUERIES, study_of


def labelled(study: Study, *relevant: str) -> Study:
    """The same with only these documents relevant."""
    pairs = [(query, doc, 1.0) for query in QUERIES for doc in relevant]
    data = study.dataset
    qrels = pd.DataFrame(pairs, columns=["query_id", "doc_id", "label"])
    changed = Dataset("set", data.queries, data.documents, qrels, data.candidates)
    return Study(changed, study.systems, study.baseline, study.challengers)


def test_a_first_stage_that_found_everything_leaves_no_rest():
    study = labelled(study_of("reranked"), "d5")
    assert headroom.notes(study) == ["The first stage found every relevant document."]


def test_a_first_stage_that_found_a_part_leaves_the_rest():
    assert headroom.notes(study_of("reranked")) == [
        "On average, the first stage found 33% of a query's relevant documents; no reranker can "
        "bring back the rest."
    ]


@pytest.mark.parametrize(
    ("recall", "said"), [(0.994, "99%"), (0.996, "more than 99%"), (1 - 1e-12, "more than 99%")]
)
def test_less_than_everything_never_reads_as_everything(monkeypatch, recall, said):
    study = study_of("reranked")
    split = replace(study.headroom("reranked"), recall_ceiling=recall)
    monkeypatch.setattr(Study, "headroom", lambda *_: split)
    (note,) = headroom.notes(study)
    assert note == (
        f"On average, the first stage found {said} of a query's relevant documents; no reranker "
        "can bring back the rest."
    )


def test_nothing_is_said_where_no_query_tells_anything(monkeypatch):
    study = study_of("dense")
    split = study.headroom("dense")
    monkeypatch.setattr(Study, "headroom", lambda *_: replace(split, n=0))
    assert headroom.notes(study) == []
    lacking = replace(split, recall_ceiling=None, own=False)
    monkeypatch.setattr(Study, "headroom", lambda *_: lacking)
    assert headroom.notes(study) == []


def test_candidates_below_the_depth_are_not_called_lost():
    study = study_of("reranked", reranked=5)
    assert headroom.notes(labelled(study, "d5", "d4")) == [
        "On average, the candidates down to rank 5 hold 50% of a query's relevant documents; "
        "reranking no deeper cannot bring back the rest."
    ]
    assert headroom.notes(labelled(study, "d4")) == [
        "The top 5 candidates hold every relevant document."
    ]


def test_the_share_in_each_list_of_an_uploaded_run_is_named():
    assert headroom.notes(study_of("dense", "sparse")) == [
        "The lists of the systems contain these shares of a query's relevant documents on average: "
        "dense 67%, sparse 33%. A better order cannot bring back the rest."
    ]
    candidates, own = headroom.notes(study_of("reranked", "dense"))
    assert candidates.startswith("On average, the first stage found 33% of")
    assert own == (
        "The list of a system contains this share of a query's relevant documents on average: "
        "dense 67%. A better order cannot bring back the rest."
    )


def test_names_are_made_fit_for_where_they_stand():
    (note,) = headroom.notes(study_of("dense"), str.upper)
    assert "DENSE 67%" in note


def test_chinese_names_the_lists_too():
    with speaking("zh"):
        (note,) = headroom.notes(study_of("dense", "sparse"))
    assert note == (
        "各系统的列表平均包含每条查询相关文档的比例：dense 67%、sparse 33%。"
        "其余文档无法通过调整顺序找回。"
    )
