"""The list of queries and the documents of one, in cases that `made_up` of `test_sample` lacks."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from rankdash.core.data.ranking import Ranking, Reading
from rankdash.core.metrics import Conventions
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.reasons.contributions import without
from rankdash.core.study.reasons.reasons import LABELS_SAY_TOO_LITTLE, Fault, fault
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.queries import study
from rankdash.features.queries.filters import Filters
from tests.study.builders import changed, data_of, small, study_on
from tests.study.parts import study as parts_study
from tests.study.parts import why

ONE = {"q": {"a": 1.0}}


def alone(first: str, *runs: str, labels: Mapping[str, float] = ONE["q"], **given) -> Study:
    """Return a study of one query."""
    return small({"q": first}, *({"q": docs} for docs in runs), labels={"q": labels}, **given)


@pytest.mark.parametrize(("values", "offered"), [(1, False), (2, True), (50, True), (51, False)])
def test_a_segment_is_a_filter_if_its_values_distinguish_queries(values, offered):
    ids = [f"q{n:02}" for n in range(60)]
    kinds = [f"kind {place % values}" for place in range(60)]
    data = data_of(dict.fromkeys(ids, "abc"), {query: {"a": 1.0} for query in ids}, kind=kinds)
    of = study_on(data, run_from_ranking("run", data.id, data.candidates, "run.trec"))
    expected = {"kind": tuple(sorted(set(kinds)))} if offered else {}
    assert study.listing(of, of.challengers[0]).segments == expected


def test_a_listing_is_filtered_also_by_the_values_of_other_systems():
    labels = {query: {"a": 1.0} for query in "qrs"}
    runs = {"q": "bacd", "r": "bcda", "s": "abcd"}, {"q": "bcda", "r": "abcd", "s": "bacd"}
    of = small(dict.fromkeys("qrs", "abcd"), *runs, labels=labels, metric="mrr")
    shown, other = of.challengers
    listing, tags = study.listing(of, shown), {"s": ("ask",), "q": ("ask",)}
    for wanted, order, ids in (
        ({}, "hurt", "rqs"),
        ({"outcomes": ("hurt",)}, "given", "qr"),
        ({"tags": ("ask",)}, "hurt", "qs"),
        ({"faults": ("labels",)}, "given", "qr"),
        ({"faults": ("retriever",)}, "given", ""),
        ({"values": {study.value_column(other): (0.2, 0.5)}}, "given", "qs"),
    ):
        assert listing.kept(Filters(**wanted), tags, order)["query_id"].tolist() == list(ids)
    assert study.others(of, other) == (shown,)
    assert listing.kept(Filters(faults=("none",)), tags, "given", "r")["query_id"].tolist() == [
        "r",
        "s",
    ]
    assert "latency_ms" not in listing.valued


def test_labels_are_those_of_the_query_in_any_order_of_rows():
    labels = {"q": {"a": 1.0, "b": 0.0, "c": 2.0}, "r": {"a": 3.0, "c": 2.0}}
    of = small(dict.fromkeys("qr", "ab"), dict.fromkeys("qr", "ba"), labels=labels)
    mixed = of.dataset.qrels.iloc[[0, 3, 1, 4, 2]]
    of = replace(of, dataset=changed(of.dataset, qrels=mixed))
    assert {query: study.label_of(of, query) for query in ("q", "r", "nobody")} == {
        **labels, "nobody": {}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("first", "lists", "labels", "baseline", "missed"),
    [
        # The highest label comes first, and a label below the threshold of 2 is not relevant.
        ("abc", ["bac"], {"a": 3, "c": 0, "d": 1, "e": 2, "f": 3}, None, [("f", None, 0),
                                                                     ("e", None, 0)]),
        ("abcd", ["bc"], {"a": 2}, None, [("a", "First stage", 1)]),
        # The system that ranks it highest, but first the baseline and the first stage.
        ("abcd", ["ab", "dbe", "ed"], {"e": 2}, None, [("e", "run 2", 1)]),
        ("bcda", ["bc", "ba", "ab"], {"a": 2}, None, [("a", "First stage", 4)]),
        ("bcda", ["bc", "ba", "ab"], {"a": 2}, 1, [("a", "run 1", 2)]),
    ],
)  # fmt: skip
def test_a_missed_document_names_the_system_that_ranks_it(first, lists, labels, baseline, missed):
    of = alone(first, *lists, labels=labels, conventions=Conventions(threshold=2.0))
    if baseline is not None:
        others = [each for each in of.challengers if each != of.challengers[baseline]]
        of = replace(of, baseline=of.challengers[baseline], challengers=tuple(others))
    _said, found, _blame = why(of, of.challengers[0], "q")
    told = [(each.doc_id, each.system and of.name(each.system), each.rank) for each in found]
    assert told == missed


def test_what_a_system_says_of_documents_is_of_their_rows_in_its_list():
    lists, scores = {"p": "ba", "q": "cab"}, {"p": [9.0, 8.0], "q": [3.5, 2.5, math.nan]}
    of = small(lists, lists, labels=ONE, texts={"c": "", "a": "first"})
    scored = Ranking.from_lists((query, list(docs), scores[query]) for query, docs in lists.items())
    read, full = (np.array(each, dtype=np.int32) for each in ([5, 6, 0, 7, -1], [5, 9, 0, 8, -1]))
    run = replace(of.run(of.challengers[0]), ranking=scored, reading=Reading(read, full))
    of = study_on(of.dataset, run, cutoff=None)
    nothing = (None, None, None)
    for system, query, docs, expected in (
        (run.id, "q", "acb", [("a", 2.5, 7, 8), ("c", 3.5, 0, 0), ("b", *nothing)]),
        (FIRST_STAGE, "q", "b", [("b", 1.0, None, None)]),
        (run.id, "nobody", "ab", [("a", *nothing), ("b", *nothing)]),
    ):
        found = study.listed(of, system, query, docs)
        assert found == [study.Listed(*each) for each in expected]
    texts = study.texts(of, ["d", "a", "c"])
    assert {doc: each.body for doc, each in texts.items()} == {"d": "d", "a": "first", "c": None}
    assert study.Text("A title", None).whole == "A title"
    assert study.Text("A title", "words").whole == "A title words"
    assert study.depth_shown(of) == 20


@pytest.mark.parametrize(("metric", "unlabelled"), [("ndcg", 1), ("mrr", 0)])
def test_a_document_without_a_label_is_above_one_that_counts_for_the_metric(metric, unlabelled):
    """Below the threshold a label counts for a graded metric, and for no other."""
    rules = Conventions(threshold=2.0)
    of = alone("ahb", "bha", labels={"a": 1.0, "b": 2.0}, metric=metric, conventions=rules)
    _said, _lacking, blame = why(of, of.challengers[0], "q")
    assert blame.unlabelled == unlabelled


RULES = (
    ("ndcg", 3, Conventions()), ("ndcg", None, Conventions(negative="unjudged")),
    ("map", None, Conventions()), ("mrr", 3, Conventions(missing="skip")),
    ("hit", 1, Conventions()),
    ("precision", 3, Conventions(judged_only=True)), ("rbp", None, Conventions(threshold=2)),
    ("err", 3, Conventions(queries="both")), ("f1", 3, Conventions()),
)  # fmt: skip


@pytest.mark.parametrize(("metric", "k", "rules"), RULES)
def test_the_faults_of_all_queries_are_those_of_each_query_alone(metric, k, rules):
    of = replace(parts_study(), metric=metric, cutoff=k, conventions=rules)
    for challenger in of.challengers:
        found = study.query_faults(of, challenger)
        assert len(found) > 15
        for row in study.table(of, challenger).to_dict("records"):
            alone = one_fault(of, challenger, row)
            if alone is None:
                assert row["query_id"] not in found.index and not isinstance(row["fault"], str)
                continue
            fault, unlabelled = alone
            each = found.loc[row["query_id"]]
            assert (row["fault"], each["fault"], each["unlabelled"]) == (
                fault.code, fault.code, unlabelled,
            )  # fmt: skip
            assert each["lost"] == pytest.approx(fault.lost, nan_ok=True)
            assert {part: each[part] for part in fault.parts} == pytest.approx(fault.parts)


def one_fault(of: Study, challenger: str, row: dict) -> tuple[Fault, int] | None:
    """Return the fault of one query, and the number of documents without a label above one that
    counts, from its documents. row: of the table."""
    if row["reason"] in ("no_relevant_label", "nothing_judged"):
        return LABELS_SAY_TOO_LITTLE, 0
    if row["reason"] == "failed" or math.isnan(row["delta"]):
        return None
    query_id, limits = row["query_id"], (row["ceiling"], row["perfect"])
    change = study.change(of, challenger, query_id)
    docs = change.documents[change.documents["rank_after"].notna()]
    counts = docs["label"] >= (of.conventions.threshold if of.measure.metric.binary else 1e-300)
    above = docs["label"].isna() & (docs["rank_after"] < docs.loc[counts, "rank_after"].max())
    above &= docs["rank_after"] <= (of.measure.k or math.inf)
    value = condensed = row["after"]
    if above.any():
        unlabelled = list(docs.loc[docs["label"].isna(), "doc_id"])
        top = replace(of.conventions, err_top_label=of.dataset.label_values[-1])
        condensed = without(change, unlabelled, study.labels(of, query_id), top)
    return fault(value, condensed, *limits, of.statistics.tie_band), int(above.sum())
