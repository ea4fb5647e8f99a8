"""Labels that look wrong: planted defects are listed, correct labels are not, and few labels get no
error rates."""

import random

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.judgements import Judgements
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers.checks.check import check, check_report
from rankdash.core.readers.checks.doubtful_labels import LabelCheck, doubtful_labels
from rankdash.core.readers.loading import load
from tests.analysis.labels.test_plausible import counted
from tests.lists import qrels, ranking
from tests.sets import SETS, loaded


def small(texts: dict[str, str], labels: pd.DataFrame, first: Ranking) -> Dataset:
    queries = pd.DataFrame({"query_id": sorted({*labels["query_id"], *first.query_ids})})
    documents = pd.DataFrame({"doc_id": list(texts), "title": "", "text": list(texts.values())})
    return Dataset("x", queries.assign(text="a query"), documents, labels, first)


def listed(found, reason):
    rows = found.candidates[found.candidates["reason"] == reason]
    return sorted(zip(rows["query_id"], rows["doc_id"], rows["twin"], strict=True))


TEXTS = {"a": "Blue  Shoes", "b": "blue shoes\n", "c": "red", "d": "BLUE SHOES", "e": " ", "f": ""}


def test_twins_with_another_label_or_none_are_listed():
    labels = qrels(q={"a": 2, "b": 1, "c": 1}, r={"a": 0}, s={"a": 1, "b": 1, "d": 1})
    data = small(TEXTS, labels, ranking(q="adc", r="bd", s="ad"))
    found = doubtful_labels(data, {"other": ranking(q="c", r="b")})
    assert listed(found, "twin_label") == [("q", "b", "a")]
    # The twin of a label of 0 counts as 0 already, and empty texts are not equal.
    assert listed(found, "twin_unlabelled") == [("q", "d", "a")]
    (row,) = found.candidates[found.candidates["reason"] == "twin_unlabelled"].itertuples()
    assert (row.twin_label, row.best_rank, row.worst_rank, np.isnan(row.label)) == (2, 2, 2, True)
    assert [each.listed for each in found.checks[:2]] == [1, 1]


def test_a_document_that_the_data_set_lacks_has_no_twin():
    data = small({"a": "red", "b": "blue", "c": "blue"}, qrels(q={"b": 1}), ranking(q="ab"))
    assert listed(doubtful_labels(data, {"other": ranking(q="xb")}), "twin_unlabelled") == []


def orders(*lists: str) -> list[Ranking]:
    return [ranking(q=each) for each in lists]


LONG = "abcdefghijkl"


@pytest.mark.parametrize(
    ("others", "low", "top"),
    [
        (["badcfehgjilk"], "ghijkl", "ab"),
        # Two rankings in the same order are one witness.
        ([LONG], "", ""),
        # One ranking that contradicts the others is enough.
        ([LONG, "lkjihgfedcba"], "", ""),
        # A ranking that lacks a document has it below its end.
        ([LONG[:10]], "ghijkl", "abc"),
        ([LONG[:11], LONG[1:]], "ghijkl", "bc"),
        # Short lists, and one ranking without a second witness, contradict no label.
        (["lkj"], "", ""),
        ([], "", ""),
    ],
)
def test_labels_that_every_ranking_contradicts_are_listed(others, low, top):
    first, *more = orders(LONG, *others)
    relevant, other = qrels(q=dict.fromkeys(LONG, 1)), qrels(q=dict.fromkeys(LONG, 0))
    systems = {str(at): each for at, each in enumerate(more)}
    texts = {each: f"text {each}" for each in LONG}
    found = doubtful_labels(small(texts, relevant, first), systems)
    assert [doc for _, doc, _ in listed(found, "ranked_low")] == list(low)
    assert listed(found, "ranked_top") == []
    found = doubtful_labels(small(texts, other, first), systems)
    assert [doc for _, doc, _ in listed(found, "ranked_top")] == list(top)


@pytest.mark.parametrize(
    ("grades", "low"), [({}, "ghijkl"), ({"j": 0, "k": 1}, "ghijl"), ({"l": 3}, "ghijk")]
)
def test_a_judge_that_agrees_with_a_label_clears_it(grades, low):
    table = pd.DataFrame({"query_id": "q", "doc_id": list(grades), "grade": [*grades.values()]})
    judges = [Judgements("j", (0, 3), table.assign(error=""))] if grades else []
    texts = {each: f"text {each}" for each in LONG}
    data = small(texts, qrels(q=dict.fromkeys(LONG, 1)), ranking(q=LONG))
    found = doubtful_labels(data, {"other": ranking(q="badcfehgjilk")}, judges)
    assert [doc for _, doc, _ in listed(found, "ranked_low")] == list(low)


def test_a_judge_is_a_second_witness_for_the_pairs_that_it_graded():
    table = pd.DataFrame({"query_id": "q", "doc_id": ["k", "b"], "grade": [0, 3], "error": ""})
    texts = {each: f"text {each}" for each in LONG}
    data = small(texts, qrels(q={"k": 1, "l": 1, "a": 0, "b": 0}), ranking(q=LONG))
    found = doubtful_labels(data, {}, [Judgements("j", (0, 3), table)])
    assert (listed(found, "ranked_low"), listed(found, "ranked_top")) == (
        [("q", "k", "")],
        [("q", "b", "")],
    )


def exchanged(data: Dataset, queries: list[str]) -> Dataset:
    """Return the data with the labels of each of these queries moved to the next one."""
    moved = dict(zip(queries, [*queries[1:], queries[0]], strict=True))
    labels = data.qrels.assign(query_id=data.qrels["query_id"].replace(moved))
    return Dataset(data.name, data.queries, data.documents, labels, data.candidates)


@pytest.mark.parametrize("name", list(SETS))
def test_queries_with_the_labels_of_others_are_listed_and_few_of_the_rest(name):
    data = loaded(name).dataset
    ids = sorted(data.qrels.loc[data.qrels["label"] > 0, "query_id"].unique())
    wrong = random.Random(3).sample(ids, 10)
    found = doubtful_labels(exchanged(data, wrong), {})
    names = {query for query, _, _ in listed(found, "few_words")}
    assert len(names & set(wrong)) >= 7
    assert len(names - set(wrong)) <= 0.12 * len(ids)
    (words,) = [each for each in found.checks if each.reason == "few_words"]
    assert words.listed == len(names) and 0.75 <= words.of_wrong <= 1
    # Both limits contain the truth.
    assert 10 / len(ids) <= words.wrong and len(names - set(wrong)) / len(ids) <= words.of_correct
    assert not found.like_others and found.shift is None


def shifted(data: Dataset, by: int) -> Dataset:
    ids = list(data.queries["query_id"])
    moved = {query: ids[(at + by) % len(ids)] for at, query in enumerate(ids)}
    labels = data.qrels.assign(query_id=data.qrels["query_id"].map(moved))
    return Dataset(data.name, data.queries, data.documents, labels, data.candidates)


@pytest.mark.parametrize("by", [1, -3])
@pytest.mark.parametrize("name", list(SETS))
def test_a_shift_of_all_ids_is_named_at_once(name, by):
    data = shifted(loaded(name).dataset, by)
    found = doubtful_labels(data, {})
    assert (found.shift.kind, found.shift.by) in [("row", -by), ("number", -by)]
    assert found.shift.fits > 2 * found.shift.now
    # No query is listed, because most are wrong.
    assert found.like_others and not listed(found, "few_words")
    (finding,) = [each for each in check(data, (), {}).findings if each.code == "labels_shifted"]
    assert finding == found.shift.finding and finding in check(data, (), {}).implausible
    assert check_report(check(data, (), {}).to_json()).findings


@pytest.mark.parametrize("start", [0, 1])
def test_labels_that_number_the_queries_by_position_are_recognised_from_the_texts(start):
    """The numbers of the topics have gaps, and labels count the topics, as in Cranfield."""
    ids = [str(1 + at + at // 3) for at in range(60)]
    right = load(counted(ids), match="order").dataset
    numbers = {query: str(at + start) for at, query in enumerate(ids)}
    labels = right.qrels.assign(query_id=right.qrels["query_id"].map(numbers))
    labels = labels[labels["query_id"].isin(ids)]
    data = Dataset("x", right.queries, right.documents, labels, right.candidates)
    shift = doubtful_labels(data, {}).shift
    assert (shift.kind, shift.by) == ("position", start)
    assert ("--match order" in shift.finding.remedy) == (start == 1)


def test_queries_and_documents_in_two_languages_are_not_compared():
    run = Ranking.from_lists((f"q{n}", [f"d{n}"], [1.0]) for n in range(40))
    queries = pd.DataFrame({"query_id": [f"q{n}" for n in range(40)]})
    queries["text"] = [f"问题{chr(0x4E00 + n)}" for n in range(40)]
    documents = pd.DataFrame({"doc_id": [f"d{n}" for n in range(40)], "title": ""})
    documents["text"] = [f"answer {n}" for n in range(40)]
    labels = pd.DataFrame({"query_id": queries["query_id"], "doc_id": documents["doc_id"]})
    data = Dataset("x", queries, documents, labels.assign(label=1.0), run)
    found = doubtful_labels(data, {})
    assert found.words is None and [each.reason for each in found.checks] == [
        "twin_label",
        "twin_unlabelled",
    ]


@pytest.mark.parametrize(("queries", "few"), [(19, True), (20, False)])
def test_labels_of_few_queries_get_no_rates(queries, few):
    assert LabelCheck("ranked_low", queries, 99, 0, 0.9).few is few


def test_the_limit_of_correct_labels_covers_their_share_in_19_of_20_samples():
    rng = np.random.default_rng(5)
    counts = rng.binomial(60, 0.05, size=2000).tolist()
    limits = [LabelCheck("few_words", 60, 60, each).of_correct for each in counts]
    assert np.mean(np.array(limits) >= 0.05) >= 0.94
    assert LabelCheck("few_words", 60, 60, 60).of_correct == 1
