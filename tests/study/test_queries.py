"""The list of queries and the documents of one: filters worth having, and who stands where."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.reasons.fault import LABELS_SAY_TOO_LITTLE
from rankdash.dataset import Dataset
from rankdash.metrics import Conventions
from rankdash.ranking.ranking import Ranking, Reading
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study import queries
from rankdash.study.cache import Cache, Key
from rankdash.study.query_table import Filters
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of

QUERIES = [f"q{n:02}" for n in range(60)]
DOCS = ["a", "b", "c"]


def study_of(challengers: int, segments: int | None = None) -> Study:
    """Every challenger turns the lists by one more. segments: how many values the column "kind"
    has; None for no such column."""
    texts = pd.DataFrame({"query_id": QUERIES, "text": QUERIES})
    if segments is not None:
        texts["kind"] = [f"kind {place % segments}" for place in range(len(QUERIES))]
    scores = np.arange(len(DOCS), 0, -1.0)
    data = Dataset(
        "set",
        texts,
        pd.DataFrame({"doc_id": DOCS, "title": DOCS, "text": DOCS}),
        pd.DataFrame({"query_id": QUERIES, "doc_id": "a", "label": 1.0}),
        Ranking.from_lists((query, DOCS, scores) for query in QUERIES),
    )
    runs = []
    for by in range(1, challengers + 1):
        turned = [*DOCS[by % 3 :], *DOCS[: by % 3]]
        ranking = Ranking.from_lists((query, turned, scores) for query in QUERIES)
        runs.append(run_from_ranking(f"by {by}", data.id, ranking, f"{by}.trec"))
    return Study(data, systems_of(data, runs), FIRST_STAGE, tuple(run.id for run in runs))


@pytest.mark.parametrize(("values", "offered"), [(1, False), (2, True), (50, True), (51, False)])
def test_a_segment_is_a_filter_where_its_values_tell_queries_apart(values, offered):
    study = study_of(1, values)
    segments = queries.listing(study, study.challengers[0]).segments
    expected = {"kind": tuple(sorted(f"kind {place}" for place in range(values)))}
    assert segments == (expected if offered else {})


@pytest.mark.parametrize(("focus", "order"), [(0, [0, 1, 2]), (1, [1, 0, 2]), (2, [2, 0, 1])])
def test_the_system_in_focus_stands_beside_the_baseline(focus, order):
    study = study_of(3)
    ladder = queries.ladder_of(study, study.challengers[focus], "q00")
    assert ladder.systems == (FIRST_STAGE, *(study.challengers[place] for place in order))


LETTERS = "abcdefgh"
Lists = Mapping[str, str]


def small(
    first: Lists,
    *runs: Lists,
    labels: Mapping[str, Mapping[str, float]],
    failed: tuple[str, ...] = (),
    texts: Mapping[str, str] | None = None,
    **changes: object,
) -> Study:
    """Lists of letters by query. failed: queries on which every run did."""

    def ranking(lists: Lists) -> Ranking:
        return Ranking.from_lists(
            (query, list(docs), np.arange(len(docs), 0, -1.0)) for query, docs in lists.items()
        )

    data = Dataset(
        "set",
        pd.DataFrame({"query_id": list(first), "text": list(first)}),
        pd.DataFrame(
            {
                "doc_id": list(LETTERS),
                "title": "",
                "text": [(texts or {}).get(d, d) for d in LETTERS],
            }
        ),
        pd.DataFrame(
            [(query, doc, label) for query, own in labels.items() for doc, label in own.items()],
            columns=["query_id", "doc_id", "label"],
        ),
        ranking(first),
    )
    made = []
    for place, lists in enumerate(runs):
        run = run_from_ranking(f"run {place}", data.id, ranking(lists), "run.trec")
        lost = pd.DataFrame({"query_id": failed, "state": "failed", "reason": "time-out"})
        made.append(replace(run, queries=pd.concat([run.queries, lost], ignore_index=True)))
    given = {"baseline": FIRST_STAGE, "challengers": tuple(run.id for run in made)}
    return Study(data, systems_of(data, made), **(given | changes))


def keeping(kept: dict[Key, Any] | None = None) -> Cache:
    """Keeps all that is made, as the pages do, in `kept` if that is given."""
    kept = {} if kept is None else kept

    def keep(key: Key, make: Callable[[], Any]) -> Any:
        if key not in kept:
            kept[key] = make()
        return kept[key]

    return keep


def missed_of(of: Study, query: str = "q") -> list[queries.Missed]:
    challenger = of.challengers[0]
    return queries.missed(of, challenger, query, queries.ladder_of(of, challenger, query))


def blamed(of: Study, query: str = "q") -> queries.Blame | None:
    challenger = of.challengers[0]
    change = queries.change(of, challenger, query)
    return queries.blame(of, challenger, change, missed_of(of, query))


# The table.


def test_a_row_says_how_much_of_each_side_is_judged_and_what_the_challengers_disagree_by():
    first = {"q": "abcd", "r": "abcd"}
    of = small(
        first,
        {"q": "cbad", "r": "abcd"},
        {"q": "cdba", "r": "abcd"},
        {"q": "cdab", "r": "abcd"},
        labels={"q": {"a": 1.0, "b": 0.0}, "r": {"a": 1.0}},
        metric="mrr",
        cutoff=2,
    )
    row = queries.listing(of, of.challengers[0]).row("q")
    assert (row["judged_before"], row["judged_after"]) == (1.0, 0.5)
    # Values of the challengers are 0, 0 and 0; the baseline's 1 is none of theirs.
    assert row["spread"] == 0.0
    deeper = replace(of, cutoff=4)
    row = queries.listing(deeper, of.challengers[0]).row("q")
    assert row["spread"] == pytest.approx(1 / 3 - 1 / 4)
    assert queries.listing(of, of.challengers[0]).row("nobody") is None
    alone = replace(of, challengers=of.challengers[:1])
    assert np.isnan(queries.listing(alone, of.challengers[0]).row("q")["spread"])


def test_the_value_of_each_other_challenger_stands_beside_that_of_the_one_shown():
    labels = {"q": {"a": 1.0}, "r": {"a": 1.0}}
    of = small(
        dict.fromkeys("qr", "abcd"), {"q": "bacd", "r": "abcd"}, {"q": "bcad", "r": "bacd"},
        {"q": "bcda", "r": "abcd"}, labels=labels, metric="mrr",
    )  # fmt: skip
    first, shown, last = of.challengers
    assert queries.others(of, shown) == (first, last)
    found = queries.listing(of, shown).table.set_index("query_id")
    assert found[queries.value_column(first)].to_dict() == {"q": 0.5, "r": 1.0}
    assert found[queries.value_column(last)].to_dict() == {"q": 0.25, "r": 1.0}
    wanted = Filters(values={queries.value_column(last): (0.2, 0.5)})
    listing = queries.listing(of, shown)
    assert listing.kept(wanted, {}, "given")["query_id"].tolist() == ["q"]


def test_what_filters_leave_of_a_listing_is_in_the_order_asked_for():
    labels = {"q": {"a": 1.0}, "r": {"a": 1.0}, "s": {"a": 1.0}}
    of = small(
        dict.fromkeys("qrs", "abcd"), {"q": "bacd", "r": "bcda", "s": "abcd"}, labels=labels,
        metric="mrr",
    )  # fmt: skip
    listing = queries.listing(of, of.challengers[0])
    assert listing.kept(Filters(), {}, "hurt")["query_id"].tolist() == ["r", "q", "s"]
    assert listing.kept(Filters(), {}, "helped")["query_id"].tolist() == ["s", "q", "r"]
    hurt = Filters(outcomes=("hurt",))
    assert listing.kept(hurt, {}, "hurt")["query_id"].tolist() == ["r", "q"]
    assert listing.kept(hurt, {}, "given")["query_id"].tolist() == ["q", "r"]
    tagged = listing.kept(Filters(tags=("ask",)), {"s": ("ask",), "q": ("ask",)}, "hurt")
    assert tagged["query_id"].tolist() == ["q", "s"]
    assert listing.occurring["outcome"] == ("hurt", "same")
    assert {"delta", "before", "after"} <= listing.valued
    assert "latency_ms" not in listing.valued


@pytest.mark.parametrize(("band", "outcome"), [(0.51, "same"), (0.49, "hurt")])
def test_an_outcome_follows_the_tie_band_of_the_study(band, outcome):
    of = small({"q": "ab"}, {"q": "ba"}, labels={"q": {"a": 1.0}}, metric="mrr")
    of = replace(of, statistics=replace(of.statistics, tie_band=band))
    assert queries.table(of, of.challengers[0])["outcome"].tolist() == [outcome]


@pytest.mark.parametrize(
    ("first", "after", "relevant", "metric", "reach"),
    [
        # From 1/3 to 1/2, where 1 is possible.
        ("bdac", "bacd", "a", "mrr", 2 / 3),
        # From 1 down to 1/4, where nothing is left to gain.
        ("abcd", "bcda", "a", "mrr", 3 / 4),
        ("bdac", "bdac", "a", "mrr", 2 / 3),
        # What the first stage did not find cannot be gained.
        ("abcd", "dcba", "g", "mrr", 0.0),
        # Without a ceiling the largest change is the end.
        ("bdac", "abcd", "a", "judged", 1.0),
    ],
)
def test_the_axis_of_changes_reaches_as_far_as_any_that_is_or_can_be(
    first, after, relevant, metric, reach
):
    labels = {"q": {relevant: 1.0}}
    cutoff = 1 if metric == "judged" else 10
    of = small({"q": first}, {"q": after}, labels=labels, metric=metric, cutoff=cutoff)
    found = queries.listing(of, of.challengers[0])
    assert found.reach == pytest.approx(reach)
    assert found.positions == {"q": 0}


def test_without_a_query_that_has_a_value_the_axis_has_no_length():
    of = small({"q": "ab", "r": "ab"}, {"r": "ba"}, labels={"q": {"a": 1.0}}, failed=("q",))
    of = replace(of, baseline=of.challengers[0], challengers=(FIRST_STAGE,))
    assert queries.compared(of, FIRST_STAGE).empty
    assert queries.listing(of, FIRST_STAGE).reach == 0.0


def test_queries_that_are_compared_have_a_change_if_only_one_of_nothing():
    first = {"q": "ab", "r": "ab", "s": "ab"}
    labels = {query: {"a": 1.0} for query in first}
    of = small(first, {"q": "ab", "s": "ba"}, labels=labels, failed=("r",))
    assert queries.compared(of, of.challengers[0])["query_id"].tolist() == ["q", "s"]


def test_what_labels_could_change_goes_from_the_lowest_to_the_highest():
    """Of "b" and "c" nobody knows whether they are relevant."""
    of = small({"q": "abc"}, {"q": "bac"}, labels={"q": {"a": 1.0}}, metric="mrr")
    assert queries.bounds(of, of.challengers[0]) == {"q": pytest.approx((-0.5, 0.0))}


# Labels, texts and lists.


def test_the_labels_of_a_query_are_its_own_in_whatever_order_the_rows_came():
    of = small({"q": "ab", "r": "ab"}, {"q": "ba", "r": "ba"}, labels={})
    rows = [("q", "a", 1.0), ("r", "a", 3.0), ("q", "b", 0.0), ("r", "c", 2.0), ("q", "c", 2.0)]
    data = of.dataset
    mixed = Dataset(
        data.name,
        data.queries,
        data.documents,
        pd.DataFrame(rows, columns=["query_id", "doc_id", "label"]),
        data.candidates,
    )
    of = replace(of, dataset=mixed)
    assert queries.label_of(of, "q") == {"a": 1.0, "b": 0.0, "c": 2.0}
    assert queries.label_of(of, "r") == {"a": 3.0, "c": 2.0}
    assert queries.label_of(of, "nobody") == {}


@pytest.mark.parametrize(("threshold", "lacking"), [(1.0, "fed"), (2.0, "fe"), (3.0, "f")])
def test_relevant_documents_that_no_ranking_holds_have_the_highest_label_first(threshold, lacking):
    labels = {"q": {"a": 3.0, "c": 0.0, "d": 1.0, "e": 2.0, "f": 3.0}}
    of = small({"q": "abc"}, {"q": "bac"}, labels=labels)
    of = replace(of, conventions=Conventions(threshold=threshold))
    assert missed_of(of) == [queries.Missed(doc) for doc in lacking]


@pytest.mark.parametrize(
    ("lists", "chosen", "expected"),
    [
        # The first stage ranks "a" first.
        (("bc",), (0,), ("a", FIRST_STAGE, 1)),
        # Also if it is not compared.
        (("bc", "dba"), (0, 1), ("a", FIRST_STAGE, 1)),
        # Another system ranks "e", which the first stage lacks.
        (("ab", "dbe"), (0, 1), ("e", "run 1", 3)),
        (("ab", "dbe", "ed"), (0, 1, 2), ("e", "run 2", 1)),
        (("ab", "dbe", "ed"), (0, 1), ("e", "run 1", 3)),
        (("ab",), (0,), ("e", None, 0)),
    ],
)
def test_a_document_that_a_run_lacks_names_the_system_that_ranks_it_highest(
    lists, chosen, expected
):
    doc, where, rank = expected
    of = small({"q": "abcd"}, *({"q": each} for each in lists), labels={"q": {doc: 1.0}})
    picked = [of.challengers[place] for place in chosen]
    of = replace(of, challengers=tuple(picked))
    (found,) = missed_of(of)
    name = None if found.system is None else of.name(found.system)
    first = of.name(FIRST_STAGE) if where == FIRST_STAGE else where
    assert (found.doc_id, name, found.rank) == (doc, first, rank)


def test_a_run_without_a_result_lacks_only_what_no_ranking_has():
    of = small({"q": "ab"}, {}, labels={"q": {"a": 1.0, "e": 1.0}}, failed=("q",))
    assert missed_of(of) == [queries.Missed("e")]


def test_texts_come_by_id_and_an_empty_one_is_none():
    of = small({"q": "ab"}, {"q": "ba"}, labels={"q": {"a": 1.0}}, texts={"c": "", "a": "first"})
    assert queries.texts(of, ["d", "a", "c"]) == {
        "d": queries.Text("", "d"),
        "a": queries.Text("", "first"),
        "c": queries.Text("", None),
    }
    assert queries.Text("A title", None).whole == "A title"
    assert queries.Text("", "words").whole == "words"
    assert queries.Text("A title", "words").whole == "A title words"


def test_what_a_system_says_of_documents_is_of_their_rows_in_its_list():
    lists = {"p": "ba", "q": "cab"}
    scores = {"p": [9.0, 8.0], "q": [3.5, 2.5, math.nan]}
    of = small(lists, lists, labels={"q": {"a": 1.0}})
    ranking = Ranking.from_lists(
        (query, list(docs), scores[query]) for query, docs in lists.items()
    )
    reading = Reading(
        read=np.array([5, 6, 0, 7, -1], dtype=np.int32),
        full=np.array([5, 9, 0, 8, -1], dtype=np.int32),
    )
    run = replace(of.run(of.challengers[0]), ranking=ranking, reading=reading)
    of = Study(of.dataset, systems_of(of.dataset, [run]), FIRST_STAGE, (run.id,))
    assert queries.listed(of, run.id, "q", "acb") == [
        queries.Listed("a", 2.5, 7, 8),
        queries.Listed("c", 3.5, 0, 0),
        queries.Listed("b", None, None, None),
    ]
    assert queries.listed(of, FIRST_STAGE, "q", "b") == [queries.Listed("b", 1.0, None, None)]
    assert queries.listed(of, run.id, "nobody", "ab") == [
        queries.Listed("a", None, None, None),
        queries.Listed("b", None, None, None),
    ]


@pytest.mark.parametrize(("cutoff", "shown"), [(None, 20), (3, 3)])
def test_a_list_is_looked_at_as_far_as_the_cutoff_or_twenty(cutoff, shown):
    of = small({"q": "ab"}, {"q": "ba"}, labels={"q": {"a": 1.0}}, cutoff=cutoff)
    assert queries.depth_shown(of) == shown


def test_a_system_without_a_result_stands_in_no_ladder():
    first = {"q": "ab", "r": "ab"}
    labels = {"q": {"a": 1.0}, "r": {"a": 1.0}}
    of = small(first, {"r": "ba"}, first, labels=labels)
    one, other = of.challengers
    assert queries.ladder_of(of, one, "q").systems == (FIRST_STAGE, other)
    assert queries.ladder_of(of, one, "r").systems == (FIRST_STAGE, one, other)
    assert queries.ladder_of(of, one, "nobody").systems == (FIRST_STAGE, one, other)


# Why one query changed.


@pytest.mark.parametrize("failing", ["baseline", "challenger"])
def test_a_query_that_failed_on_either_side_is_not_split(failing):
    first = {"q": "ab", "r": "ab"}
    labels = {query: {"a": 1.0} for query in first}
    of = small(first, {"r": "ba"}, labels=labels, failed=("q",))
    if failing == "baseline":
        of = replace(of, baseline=of.challengers[0], challengers=(FIRST_STAGE,))
    found = queries.change(of, of.challengers[0], "q")
    assert (found.why_not, len(found.documents)) == ("failed", 0)
    assert blamed(of) is None


@pytest.mark.parametrize(("top", "value"), [(None, 1 / 8), (3.0, 1 / 8), (4.0, 1 / 16)])
def test_a_query_is_read_on_the_scale_of_the_whole_set_unless_the_rules_name_its_top(top, value):
    """ERR of a document labelled 1 at the top is (2^1 - 1) / 2^top; "r" has a label of 3."""
    first = {"q": "ab", "r": "ab"}
    of = small(first, first, labels={"q": {"a": 1.0}, "r": {"a": 3.0}}, metric="err")
    of = replace(of, conventions=Conventions(err_top_label=top))
    challenger = of.challengers[0]
    found = queries.change(of, challenger, "q")
    assert found.after == pytest.approx(value)
    assert found.after == queries.by_query(of, challenger, of.spec)["q"]
    without_gain = small(first, first, labels={"q": {"a": 0.0}}, metric="err")
    assert queries.change(without_gain, without_gain.challengers[0], "q").why_not == "no_relevant"


@pytest.mark.parametrize(
    ("after", "labels", "rules", "expected"),
    [
        # x is without a label where the labels name the others.
        ("xa", {"a": 1}, {}, ("labels", 1, 1)),
        ("ax", {"a": 1}, {}, ("none", 1, 0)),
        # Above the lowest document that counts, not the highest.
        ("axb", {"a": 1, "b": 1}, {}, ("labels", 2, 1)),
        # What is labelled 0 counts for nothing.
        ("axb", {"a": 1, "b": 0}, {}, ("none", 1, 0)),
        # At the cutoff, and beyond it.
        ("bxa", {"a": 1, "b": 1}, {"cutoff": 2}, ("labels", 2, 1)),
        ("abxc", {"a": 1, "b": 1, "c": 1}, {"cutoff": 2}, ("none", 3, 0)),
        # Below the threshold a label counts for a graded metric, and for no other.
        ("bxa", {"a": 1, "b": 2}, {"threshold": 2.0}, ("labels", 1, 1)),
        ("bxa", {"a": 1, "b": 2}, {"threshold": 2.0, "metric": "mrr"}, ("none", 1, 0)),
        # What is lost is within the tie band.
        ("xa", {"a": 1}, {"tie_band": 0.38}, ("none", 1, 1)),
        ("xa", {"a": 1}, {"tie_band": 0.36}, ("labels", 1, 1)),
    ],
)
def test_whose_fault_a_low_value_is_and_how_many_documents_without_a_label_it_hangs_on(
    after, labels, rules, expected
):
    """ "x" stands for the letter without a label."""
    letters = {"q": after.replace("x", "h")}
    own = {"cutoff": rules.get("cutoff", 10), "metric": rules.get("metric", "ndcg")}
    of = small({"q": letters["q"][::-1]}, letters, labels={"q": labels}, **own)
    of = replace(of, conventions=Conventions(threshold=rules.get("threshold", 1.0)))
    band = rules.get("tie_band", of.statistics.tie_band)
    found = blamed(replace(of, statistics=replace(of.statistics, tie_band=band)))
    assert (found.fault.code, found.relevant, found.unlabelled) == expected
    assert found.missed == ()


@pytest.mark.parametrize(
    ("uploaded", "code", "parts"),
    [
        # "a" is relevant: the run ranks it last of its own documents, or lacks it.
        ("cba", "reranker", (0.0, 0.5)),
        ("cb", "retriever", (1.0, 0.0)),
        ("cbd", "retriever", (1.0, 0.0)),
        ("a", "none", (0.0, 0.0)),
    ],
)
@pytest.mark.parametrize("others", [(), ("ab",), ("ab", "ba", "cad")])
def test_an_uploaded_run_is_blamed_for_the_order_of_its_own_documents_alone(
    uploaded, code, parts, others
):
    """Whatever the first stage and the other systems rank."""
    every = (uploaded, *others)
    labels = {"q": {"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}}
    of = small({"q": "abcd"}, *({"q": each} for each in every), labels=labels)
    found = blamed(of)
    assert found.fault.code == code
    assert (found.fault.parts["retriever"], found.fault.parts["reranker"]) == pytest.approx(parts)
    lacking = () if "a" in uploaded else (queries.Missed("a", FIRST_STAGE, 1),)
    assert found.missed == lacking


def test_a_missed_document_is_looked_for_in_the_baseline_and_the_first_stage_first():
    labels = {"q": {"a": 1.0, "b": 0.0}}
    of = small({"q": "bcda"}, {"q": "bc"}, {"q": "ba"}, {"q": "ab"}, labels=labels)
    _, second, third = of.challengers
    assert missed_of(of) == [queries.Missed("a", FIRST_STAGE, 4)]
    of = replace(of, baseline=second, challengers=(of.challengers[0], third))
    assert missed_of(of) == [queries.Missed("a", second, 2)]
    of = small({"q": "bcd"}, {"q": "bc"}, {"q": "ba"}, {"q": "ab"}, labels=labels)
    assert missed_of(of) == [queries.Missed("a", of.challengers[2], 1)]


@pytest.mark.parametrize(
    ("labels", "relevant"), [({"a": 0.0}, 0), ({"g": 1.0}, 1), ({"g": 1.0, "h": 1.0}, 2)]
)
def test_labels_that_say_nothing_of_what_is_shown_are_the_fault(labels, relevant):
    of = small({"q": "ab"}, {"q": "ba"}, labels={"q": labels})
    found = blamed(of)
    assert found.fault == LABELS_SAY_TOO_LITTLE
    assert (found.relevant, len(found.missed), found.unlabelled) == (relevant, relevant, 0)


def test_nobody_is_to_blame_where_there_is_no_value_or_no_best_one():
    first = {"q": "ab", "r": "ab"}
    of = small(first, {"r": "ba"}, labels={query: {"a": 1.0} for query in first})
    of = replace(of, conventions=Conventions(missing="skip"))
    assert blamed(of) is None
    assert blamed(of, "r") is not None
    described = replace(of, metric="judged", conventions=Conventions())
    assert blamed(described, "r") is None
