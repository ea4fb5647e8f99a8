"""The check report: counts, refusals, matching ids, label direction, and its JSON."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.analysis.labels.check import CheckReport, check, relabelled
from rankdash.dataset import Dataset
from rankdash.findings import Finding
from rankdash.ranking.ranking import Ranking


def ranking(lists: dict[str, list[str]]) -> Ranking:
    rows = [
        (query, doc, -float(rank)) for query, docs in lists.items() for rank, doc in enumerate(docs)
    ]
    return Ranking.from_columns(*zip(*rows, strict=True), ties="trec")


def dataset(
    labels: list[tuple[str, str, float]],
    candidates: dict[str, list[str]],
    *,
    texts: dict[str, str] | None = None,
    queries: dict[str, str] | None = None,
) -> Dataset:
    query_ids = dict.fromkeys([*(q for q, _, _ in labels), *candidates, *(queries or {})])
    doc_ids = dict.fromkeys(
        [*(d for _, d, _ in labels), *(d for docs in candidates.values() for d in docs)]
    )
    return Dataset(
        "set",
        pd.DataFrame(
            {
                "query_id": list(query_ids),
                "text": [(queries or {}).get(query, f"about {query}") for query in query_ids],
            }
        ),
        pd.DataFrame(
            {
                "doc_id": list(doc_ids),
                "title": "",
                "text": [(texts or {}).get(doc, f"text {doc}") for doc in doc_ids],
            }
        ),
        pd.DataFrame(labels, columns=["query_id", "doc_id", "label"]),
        ranking(candidates),
    )


def report_of(data: Dataset, *findings: Finding, **rankings: Ranking) -> CheckReport:
    return check(data, findings, rankings)


def found(report: CheckReport, code: str) -> Finding:
    (finding,) = [finding for finding in report.findings if finding.code == code]
    return finding


def codes(report: CheckReport) -> set[str]:
    return {finding.code for finding in report.findings}


GOOD = dataset(
    [("q1", "a", 2), ("q1", "b", 0), ("q2", "c", 1)], {"q1": ["a", "b", "x", "y"], "q2": ["c"]}
)


def test_counts_lengths_and_judged():
    report = report_of(GOOD)

    assert (report.queries, report.documents, report.labels, report.labelled_queries) == (
        2,
        5,
        3,
        2,
    )
    spread = report.candidates_per_query
    assert (spread.low, spread.median, spread.high) == (1, 2.5, 4)
    assert [(bar.low, bar.high, bar.count) for bar in report.label_histogram] == [
        (0, 0, 1),
        (1, 1, 1),
        (2, 2, 1),
    ]
    assert (report.query_chars.low, report.document_chars.high) == (8, 6)
    assert report.judged_at_10 == pytest.approx((2 / 4 + 1) / 2)
    assert report.findings == ()


def test_many_different_labels_are_counted_in_ten_bins():
    labels = [("q", f"d{i}", i / 100) for i in range(100)]

    bars = report_of(dataset(labels, {"q": ["d0"]})).label_histogram

    assert len(bars) == 10
    assert sum(bar.count for bar in bars) == 100
    assert (bars[0].low, bars[-1].high) == (0, 0.99)


def test_findings_of_the_reader_come_along_errors_first():
    note = Finding("note", "n", "A note.")
    warning = Finding("warning", "w", "A warning.")

    report = report_of(GOOD, note, warning)

    assert report.findings == (warning, note)
    assert (report.warnings, report.notes, report.errors) == ((warning,), (note,), ())


def test_systems_are_checked_beside_the_first_stage():
    report = report_of(GOOD, other=ranking({"q1": ["b", "z"]}))

    assert [(system.name, system.queries, system.rows) for system in report.rankings] == [
        ("first stage", 2, 5),
        ("other", 1, 2),
    ]
    assert report.rankings[1].judged_at_10 == 0.5


@pytest.mark.parametrize(
    ("ranked", "labelled", "advice"),
    [
        ("1", "q1", "before the number"),
        ("q1", "Q1", "upper and lower case"),
        ("q1", "q1 ", "white space"),
        ("7", "007", "leading zeros"),
        ("alpha", "beta", "same data set"),
    ],
)
def test_ids_that_match_nothing_are_an_error_with_both_examples_and_what_would_help(
    ranked, labelled, advice
):
    data = dataset([(labelled, "a", 1)], {ranked: ["a"]})

    error = found(report_of(data), "queries_match_nothing")

    assert error.severity == "error"
    assert repr(ranked) in error.text
    assert repr(labelled) in error.text
    assert advice in error.remedy


def test_documents_that_match_nothing_are_an_error():
    data = dataset([("q", "D1", 1), ("q", "D2", 0)], {"q": ["d1", "d2"]})

    error = found(report_of(data), "documents_match_nothing")

    assert error.severity == "error"
    assert error.examples == ("d1", "D1")


def test_a_ranking_that_holds_nothing_is_an_error_and_no_crash():
    data = dataset([("q", "a", 1)], {"q": ["a"]})

    error = found(report_of(data, other=Ranking.from_lists([])), "empty_ranking")

    assert error.severity == "error"
    assert "other" in error.text and error.remedy


def test_some_labelled_queries_missing_is_a_warning_with_the_near_match():
    data = dataset([("q1", "a", 1), ("q2", "b", 1)], {"q1": ["a"], "Q2": ["b"]})

    warning = found(report_of(data), "labelled_not_ranked")

    assert (warning.severity, warning.count, warning.examples[0]) == ("warning", 1, "q2")
    assert "upper and lower case" in warning.remedy


def test_labels_under_the_wrong_query_are_a_warning():
    data = dataset([("q1", "b", 1), ("q2", "a", 1)], {"q1": ["a"], "q2": ["b"]})

    assert found(report_of(data), "pairs_match_nothing").severity == "warning"


def test_missing_texts_and_candidates_are_counted():
    data = dataset(
        [("q1", "a", 1)],
        {"q1": ["a", "b"]},
        texts={"b": ""},
        queries={"q1": "", "q3": "waiting"},
    )

    report = report_of(data)

    assert found(report, "candidates_without_text").examples == ("b",)
    assert found(report, "queries_without_text").examples == ("q1",)
    assert found(report, "queries_without_candidates").examples == ("q3",)


def test_no_labels_is_a_note_that_names_the_ways_to_some():
    data = dataset([], {"q": ["a"]})

    report = report_of(data)

    assert not report.errors and not report.warnings and not report.implausible
    note = found(report, "no_labels")
    assert "page Label" in note.remedy and "page Judge" in note.remedy
    assert report.label_histogram == ()
    assert report.judged_at_10 is None


def test_a_stored_warning_that_there_are_no_labels_is_a_note_today():
    old = Finding("warning", "no_labels", "There are no labels, so.", remedy="Add the file.")
    stored = replace(report_of(dataset([], {"q": ["a"]})), findings=(old,))

    read = CheckReport.from_json(stored.to_json())

    assert not read.warnings and "page Label" in found(read, "no_labels").remedy


def test_labels_given_in_rankdash_are_counted_in_the_report():
    bare = dataset([], {"q1": ["a", "b"], "q2": ["a"]})
    given = bare.relabelled(
        pd.DataFrame([("q1", "a", 1.0), ("q1", "b", 0.0)], columns=["query_id", "doc_id", "label"])
    )
    run = Ranking.from_lists([("q1", ["b"], [1.0])])
    report = check(bare, (), {"other": run})

    read = relabelled(report, given, {"other": run})

    assert (read.labels, read.labelled_queries) == (2, 1)
    assert [(each.low, each.count) for each in read.label_histogram] == [(0.0, 1), (1.0, 1)]
    assert [each.judged_at_10 for each in read.rankings] == [1.0, 1.0]
    assert "no_labels" not in codes(read)
    assert relabelled(read, bare, {"other": run}).rankings == report.rankings


def shuffled_labels(rng: np.random.Generator, *, sign: int, queries: int) -> Dataset:
    """Labels that follow the rank (sign 1: low labels on top), with noise."""
    labels, lists = [], {}
    for q in range(queries):
        docs = [f"d{q}-{i}" for i in range(10)]
        lists[f"q{q}"] = docs
        order = np.argsort(sign * (np.arange(10) + rng.normal(scale=4, size=10)))
        labels += [(f"q{q}", docs[d], float(1 + 3 * place // 9)) for place, d in enumerate(order)]
    return dataset(labels, lists)


def test_the_direction_of_labels_is_suspected_only_with_evidence():
    rng = np.random.default_rng(5)

    reversed_labels = report_of(shuffled_labels(rng, sign=1, queries=30))
    right_labels = report_of(shuffled_labels(rng, sign=-1, queries=30))
    few = report_of(shuffled_labels(rng, sign=1, queries=3))

    assert found(reversed_labels, "label_direction").text == (
        "Low labels sit at the top of the first stage in 29 of 30 queries: 1 seems to be the best "
        "grade."
    )
    assert "label_direction" not in codes(right_labels)
    assert "label_direction" not in codes(few)


def test_a_few_reversed_queries_among_others_are_no_evidence():
    ranks = {f"q{q}": [f"d{q}-{i}" for i in range(4)] for q in range(5)}
    low_on_top, high_on_top = [0, 1, 2, 3], [2, 3, 1, 0]
    labels = [
        (query, doc, float(label))
        for q, (query, docs) in enumerate(ranks.items())
        for doc, label in zip(docs, low_on_top if q < 3 else high_on_top, strict=True)
    ]

    assert "label_direction" not in codes(report_of(dataset(labels, ranks)))


def test_random_labels_are_hardly_ever_suspected():
    rng = np.random.default_rng(11)
    suspected = 0
    for _ in range(40):
        labels = [
            (f"q{q}", f"d{q}-{i}", float(rng.integers(0, 3))) for q in range(20) for i in range(10)
        ]
        lists = {f"q{q}": [f"d{q}-{i}" for i in range(10)] for q in range(20)}
        suspected += "label_direction" in codes(report_of(dataset(labels, lists)))

    assert suspected <= 2


def test_a_single_label_is_one_grade_and_no_scale_that_starts_at_1():
    assert codes(report_of(dataset([("q", "a", 1)], {"q": ["a"]}))) == {"one_grade"}


def test_one_grade_says_nothing_of_a_direction():
    labels = [(f"q{q}", f"d{q}", 1.0) for q in range(10)]

    report = report_of(dataset(labels, {f"q{q}": [f"d{q}", "x"] for q in range(10)}))

    assert "label_direction" not in codes(report)
    assert found(report, "one_grade").severity == "note"


params = st.dictionaries(
    st.sampled_from(["count", "name"]), st.one_of(st.integers(), st.text(), st.floats(-1, 1))
)
findings = st.builds(
    Finding,
    st.sampled_from(["error", "warning", "note"]),
    st.text(),
    st.text(),
    params,
    st.text(),
    st.text(),
    st.none() | st.integers(1),
    st.integers(0),
    st.lists(st.text()).map(tuple),
)


@given(st.lists(findings, max_size=4))
def test_the_report_survives_json(noticed):
    report = report_of(GOOD, *noticed)

    assert CheckReport.from_json(report.to_json()) == report


def test_numpy_numbers_in_a_finding_become_plain_json():
    report = report_of(GOOD, Finding("note", "n", "{count}", {"count": np.int64(3)}))

    assert json.loads(report.to_json())["findings"][0]["params"] == {"count": 3}
    assert CheckReport.from_json(report.to_json()).findings[0].text == "3"


def test_an_empty_ranking_and_absent_texts_can_be_reported():
    data = Dataset(
        "set",
        pd.DataFrame({"query_id": ["q"], "text": [None]}),
        pd.DataFrame({"doc_id": ["d"], "title": [None], "text": [None]}),
        pd.DataFrame({"query_id": ["q"], "doc_id": ["d"], "label": [1.0]}),
        Ranking.from_columns([], [], []),
    )

    report = report_of(data)

    assert report.query_chars is None
    assert report.judged_at_10 is None
    assert CheckReport.from_json(report.to_json()) == report


def shallow(labels_of_each: list[float], queries: int = 5) -> Dataset:
    """Queries with ten candidates, the first of which have these labels."""
    return dataset(
        [
            (f"q{q}", f"d{rank}", label)
            for q in range(queries)
            for rank, label in enumerate(labels_of_each)
        ],
        {f"q{q}": [f"d{rank}" for rank in range(10)] for q in range(queries)},
    )


def test_a_top_ten_that_is_mostly_unjudged_is_a_warning_with_its_way_out():
    finding = found(report_of(shallow([1, 0, 0])), "mostly_unjudged")

    assert finding.severity == "warning"
    assert "only 30% have a label" in finding.text
    assert "Overview > Documents without a label" in finding.remedy
    assert (
        "or choose Condensed lists (judged documents only) under Metric conventions"
        in finding.remedy
    )


def test_labels_that_were_added_end_the_warning_of_too_few():
    data = shallow([1, 0, 0])
    report = report_of(data)
    added = [(f"q{q}", f"d{rank}", 0.0) for q in range(5) for rank in range(3, 10)]
    full = data.relabelled(pd.DataFrame(added[:-1], columns=["query_id", "doc_id", "label"]))
    half = data.relabelled(pd.DataFrame(added[:5], columns=["query_id", "doc_id", "label"]))

    assert "mostly_unjudged" in codes(report)
    assert "mostly_unjudged" not in codes(relabelled(report, full, {}))
    assert "only 40% have a label" in found(relabelled(report, half, {}), "mostly_unjudged").text


def test_any_ranking_that_is_mostly_unjudged_is_named():
    data = shallow([1, 0, 0, 1, 0])
    new = Ranking.from_lists([("q0", [f"d{rank}" for rank in (0, 9, 8, 7, 6)], [5, 4, 3, 2, 1.0])])
    assert "mostly_unjudged" not in codes(report_of(data))

    finding = found(check(data, (), {"mine": new}), "mostly_unjudged")

    assert "of the ranking mine only 20% have a label" in finding.text
    assert "page Label" in finding.remedy


def test_a_stored_warning_of_the_first_stage_is_todays():
    of_today = found(report_of(shallow([1, 0, 0])), "mostly_unjudged")
    old = replace(
        of_today,
        template=of_today.template.replace("the ranking {name}", "the first stage"),
        params={key: each for key, each in of_today.params.items() if key != "name"},
        remedy="See Overview > Documents without a label for what they could change and which to "
        "label first, or choose Condensed lists (judged documents only) under Metric conventions.",
    )
    stored = replace(report_of(shallow([1, 0, 0])), findings=(old,))

    assert found(CheckReport.from_json(stored.to_json()), "mostly_unjudged") == of_today


def test_labels_of_relevant_documents_alone_cannot_be_condensed():
    remedy = found(report_of(shallow([1, 1, 2, 1])), "mostly_unjudged").remedy

    assert remedy == (
        "Label documents on the page Label, or see Overview > Documents without a label for what "
        "they could change. Condensed lists (judged documents only) need labels of not relevant "
        "documents, and here there are none."
    )


def test_one_relevant_document_a_query_is_how_a_set_was_made_and_a_note():
    report = report_of(shallow([1]))

    assert found(report, "sparse_labels").severity == "note"
    assert "1.0 per query" in found(report, "sparse_labels").text
    assert "Condensed lists (judged documents only)" not in found(report, "sparse_labels").remedy
    assert "mostly_unjudged" not in codes(report)


def test_a_top_ten_that_is_mostly_judged_is_nothing_to_say():
    report = report_of(shallow([1, 0, 0, 0, 2]))

    assert not codes(report) & {"mostly_unjudged", "sparse_labels"}
