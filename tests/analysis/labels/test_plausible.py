"""Implausible data: each kind is detected, and plausible sets are not suspected."""

import random

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers import Source, read, sources_from_path
from rankdash.core.readers.checks.check import check
from rankdash.core.readers.loading import Loaded, checked, load
from tests.lists import ranking
from tests.results import results
from tests.sets import ROOT, SETS, loaded

IMPLAUSIBLE = {
    "labels_by_accident",
    "counted_queries",
    "label_direction",
    "unused_labels",
    "few_documents",
    "none_in_top",
}
CHINESE = ROOT / "assets" / "samples" / "helpcentre_zh"


def codes(report) -> set[str]:
    return {finding.code for finding in report.findings}


def data_of(name: str) -> Loaded:
    if name == CHINESE.name:
        return load(sources_from_path(CHINESE), first_stage="initial")
    return loaded(name)


def with_labels_of_others(data: Dataset, seed: int, own: int = 0) -> Dataset:
    """Return the data with labels swapped at random between queries, except for `own` queries."""
    ids = data.qrels["query_id"].unique()
    order = np.random.default_rng(seed).permutation(ids[own:])
    moved = dict(zip(ids[own:], np.roll(order, 1)[np.argsort(order)], strict=True))
    qrels = data.qrels.assign(
        query_id=data.qrels["query_id"].map(lambda each: moved.get(each, each))
    )
    return Dataset(data.name, data.queries, data.documents, qrels, data.candidates)


@pytest.mark.parametrize("name", [*SETS, CHINESE.name])
def test_labels_of_other_queries_are_noticed_and_a_set_that_is_right_is_not_suspected(name):
    right = data_of(name)
    assert not codes(right.report) & IMPLAUSIBLE
    assert (right.report.implausible, right.report.refused_rows) == ((), None)
    wrong = check(with_labels_of_others(right.dataset, 1, own=2), (), {})
    (found,) = [each for each in wrong.findings if each.code == "labels_by_accident"]
    assert found.severity == "warning"
    assert "--match order" in found.remedy


def test_queries_and_documents_that_share_no_language_are_not_suspected():
    queries = pd.DataFrame({"query_id": [f"q{n}" for n in range(40)]})
    queries["text"] = [f"问题{chr(0x4E00 + n)}{chr(0x5E00 + n)}" for n in range(40)]
    documents = pd.DataFrame({"doc_id": [f"d{n}" for n in range(40)], "title": ""})
    documents["text"] = [f"answer number{n} about thing{n}" for n in range(40)]
    qrels = pd.DataFrame({"query_id": queries["query_id"], "doc_id": documents["doc_id"]})
    run = Ranking.from_columns(qrels["query_id"], qrels["doc_id"], np.ones(40))
    data = Dataset("x", queries, documents, qrels.assign(label=1.0), run)
    assert "labels_by_accident" not in codes(check(data, (), {}))


def counted(ids: list[str], labelled: int | None = None) -> list[Source]:
    """Return queries with these ids, and labels that number them 1, 2, 3 … in their order."""
    draw = random.Random(3)
    words = [f"word{n}" for n in range(2000)]
    texts = [" ".join(draw.sample(words, 6)) for _ in ids]
    docs = [f"{text} {' '.join(draw.sample(words, 20))}" for text in texts]
    queries = "query_id,query\n" + "".join(
        f"{query},{text}\n" for query, text in zip(ids, texts, strict=True)
    )
    corpus = "doc_id,document\n" + "".join(f"d{at},{doc}\n" for at, doc in enumerate(docs, 1))
    qrels = "".join(f"{at} 0 d{at} 1\n" for at in range(1, (labelled or len(ids)) + 1))
    files = {"queries.csv": queries, "corpus.csv": corpus, "all.qrels": qrels}
    return [Source(name, text.encode()) for name, text in files.items()]


@pytest.mark.parametrize(("step", "labelled"), [(1, None), (2, None), (3, 30)])
def test_labels_that_count_the_queries_are_noticed_and_matched_by_order(step, labelled):
    """Labels equal to the numbers of the ids are not suspected."""
    sources = counted([str(1 + step * at) for at in range(50)], labelled)
    assert ("counted_queries" in codes(load(sources).report)) == (step > 1)
    right = load(sources, match="order" if step > 1 else "id")
    assert not codes(right.report) & IMPLAUSIBLE
    pairs = dict(zip(right.dataset.qrels["doc_id"], right.dataset.qrels["query_id"], strict=True))
    assert (pairs["d1"], pairs["d2"], pairs["d30"]) == ("1", str(1 + step), str(1 + step * 29))


def table(columns: dict[str, list[object]]) -> Loaded:
    text = pd.DataFrame(columns).to_csv(index=False)
    return checked(read([Source("rows.csv", text.encode())]))


QUERIES = [f"what is thing{n}" for n in range(6) for _ in range(4)]
DOCUMENTS = [f"text {n} of {place}" for n in range(6) for place in range(4)]
GRADES = [1, 2, 3, 4] * 6
SCORES = [4.5, 3.5, 2.5, 1.5] * 6


# Header → grades; the first row of each query has the lowest grade.
HEADERS = {
    # A scale in brackets does not hide a column of labels.
    **dict.fromkeys(("相关性评分（0-3）", "relevance (0 to 3)", "Label [1-4]", "相关度评分"), 1),
    # An unused column that resembles labels is reported.
    **dict.fromkeys(("relevance by Anna", "人工相关判断"), 1),
    # A header that marks 1 as the best grade is detected in any order; other grades are not.
    **dict.fromkeys(("grade (1 = best)", "rating (1 is the best)", "等级（1表示最好）"), -1),
    **dict.fromkeys(("grade (10 = best)", "grade (3 = best, 1 = worst)"), -1),
}


def headed(name: str) -> tuple[object, ...]:
    grades = GRADES[:: HEADERS[name]]
    found = table({"query": QUERIES, "document": DOCUMENTS, "bm25": SCORES, name: grades})
    labels = found.dataset.qrels["label"].tolist()
    said = [(each.code, each.params) for each in found.report.implausible]
    return labels == grades, f"best: {found.report.suspected_best!r}", said


def many(rows: int, documents: int, bad: int) -> tuple[object, ...]:
    """Return the sources of ten rows per query; `bad` of them have no label."""
    found = table(
        {
            "query": [f"query {at // 10}" for at in range(rows)],
            "document": [f"kind {at % documents}" for at in range(rows)],
            "label": ["?" if at < bad else at % 3 for at in range(rows)],
        }
    )
    return found.report.refused_rows, sorted(codes(found.report) & IMPLAUSIBLE)


def test_columns_and_rows_that_cannot_be_right_are_told(approved):
    cases = {name: lambda name=name: headed(name) for name in HEADERS}
    cases |= {
        f"{documents} documents in {rows} rows, {bad} refused": lambda each=each: many(*each)
        for each in ((1200, 20, 0), (1200, 600, 0), (1000, 1000, 400), (1000, 1000, 40))
        for rows, documents, bad in [each]
    }
    approved("analysis/plausible", results(cases))


@pytest.mark.parametrize(("queries", "place"), [(4, 10), (5, 9), (5, 10), (30, 10)])
def test_a_run_without_a_relevant_document_in_any_top_ten_is_told(queries, place):
    names = [f"q{at}" for at in range(queries)]
    run = ranking(**{name: [f"{name}d{rank}" for rank in range(20)] for name in names})
    ids = {"query_id": names, "doc_id": [f"{each}d{place}" for each in names]}
    docs = pd.DataFrame({"doc_id": run.documents.to_pylist(), "title": "", "text": None})
    texts = pd.DataFrame({"query_id": names, "text": None})
    report = check(
        Dataset("x", texts, docs, pd.DataFrame(ids).assign(label=1.0), run), (), {"other": run}
    )
    found = [each.params["name"] for each in report.findings if each.code == "none_in_top"]
    assert found == (["first stage", "other"] if place == 10 and queries >= 5 else [])
