"""The list of queries and the documents of one: filters worth having, and who ranks what."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from rankdash.analysis.reasons.fault import LABELS_SAY_TOO_LITTLE
from rankdash.metrics import Conventions
from rankdash.ranking.ranking import Ranking, Reading
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study import queries
from rankdash.study.query_table import Filters
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE
from tests.approved import table
from tests.study.builders import changed, data_of, shown, small, study_on

ONE = {"q": {"a": 1.0}}


def alone(first: str, *runs: str, labels: Mapping[str, float] = ONE["q"], **given) -> Study:
    """A study of one query."""
    return small({"q": first}, *({"q": docs} for docs in runs), labels={"q": labels}, **given)


def banded(of: Study, band: float) -> Study:
    return replace(of, statistics=replace(of.statistics, tie_band=band))


def turned(of: Study) -> Study:
    """The first challenger as the baseline."""
    return replace(of, baseline=of.challengers[0], challengers=(FIRST_STAGE,))


def missed_of(of: Study, query: str = "q") -> list[queries.Missed]:
    challenger = of.challengers[0]
    return queries.missed(of, challenger, query, queries.ladder_of(of, challenger, query))


def blamed(of: Study, query: str = "q") -> queries.Blame | None:
    challenger = of.challengers[0]
    change = queries.change(of, challenger, query)
    return queries.blame(of, challenger, change, missed_of(of, query))


# The table.


@pytest.mark.parametrize(("values", "offered"), [(1, False), (2, True), (50, True), (51, False)])
def test_a_segment_is_a_filter_where_its_values_tell_queries_apart(values, offered):
    ids = [f"q{n:02}" for n in range(60)]
    kinds = [f"kind {place % values}" for place in range(60)]
    data = data_of(dict.fromkeys(ids, "abc"), {query: {"a": 1.0} for query in ids}, kind=kinds)
    of = study_on(data, run_from_ranking("run", data.id, data.candidates, "run.trec"))
    expected = {"kind": tuple(sorted(set(kinds)))} if offered else {}
    assert queries.listing(of, of.challengers[0]).segments == expected


@pytest.mark.parametrize(("focus", "order"), [(0, [0, 1, 2]), (1, [1, 0, 2]), (2, [2, 0, 1])])
def test_the_system_in_focus_is_beside_the_baseline(focus, order):
    of = alone("abc", "bca", "cab", "abc")
    ladder = queries.ladder_of(of, of.challengers[focus], "q")
    assert ladder.systems == (FIRST_STAGE, *(of.challengers[place] for place in order))


def test_a_row_says_how_much_of_each_side_is_judged_and_what_the_challengers_disagree_by():
    labels = {"q": {"a": 1.0, "b": 0.0}, "r": {"a": 1.0}}
    runs = [{"q": docs, "r": "abcd"} for docs in ("cbad", "cdba", "cdab")]
    of = small(dict.fromkeys("qr", "abcd"), *runs, labels=labels, metric="mrr", cutoff=2)
    row = queries.listing(of, of.challengers[0]).row("q")
    assert (row["judged_before"], row["judged_after"]) == (1.0, 0.5)
    # Values of the challengers are 0, 0 and 0; the baseline's 1 is none of theirs.
    assert row["spread"] == 0.0
    row = queries.listing(replace(of, cutoff=4), of.challengers[0]).row("q")
    assert row["spread"] == pytest.approx(1 / 3 - 1 / 4)
    assert queries.listing(of, of.challengers[0]).row("nobody") is None
    single = replace(of, challengers=of.challengers[:1])
    assert np.isnan(queries.listing(single, of.challengers[0]).row("q")["spread"])


def test_the_value_of_each_other_challenger_is_beside_that_of_the_one_shown():
    runs = {"q": "bacd", "r": "abcd"}, {"q": "bcad", "r": "bacd"}, {"q": "bcda", "r": "abcd"}
    labels = {query: {"a": 1.0} for query in "qr"}
    of = small(dict.fromkeys("qr", "abcd"), *runs, labels=labels, metric="mrr")
    first, shown_, last = of.challengers
    assert queries.others(of, shown_) == (first, last)
    found = queries.listing(of, shown_).table.set_index("query_id")
    assert found[queries.value_column(first)].to_dict() == {"q": 0.5, "r": 1.0}
    assert found[queries.value_column(last)].to_dict() == {"q": 0.25, "r": 1.0}
    wanted = Filters(values={queries.value_column(last): (0.2, 0.5)})
    listing = queries.listing(of, shown_)
    assert listing.kept(wanted, {}, "given")["query_id"].tolist() == ["q"]


def test_what_filters_leave_of_a_listing_is_in_the_order_asked_for():
    labels = {query: {"a": 1.0} for query in "qrs"}
    run = {"q": "bacd", "r": "bcda", "s": "abcd"}
    of = small(dict.fromkeys("qrs", "abcd"), run, labels=labels, metric="mrr")
    listing = queries.listing(of, of.challengers[0])
    tags = {"s": ("ask",), "q": ("ask",)}
    for wanted, order, ids in (
        ({}, "hurt", "rqs"),
        ({}, "helped", "sqr"),
        ({"outcomes": ("hurt",)}, "hurt", "rq"),
        ({"outcomes": ("hurt",)}, "given", "qr"),
        ({"tags": ("ask",)}, "hurt", "qs"),
    ):
        assert listing.kept(Filters(**wanted), tags, order)["query_id"].tolist() == list(ids)
    assert listing.occurring["outcome"] == ("hurt", "same")
    assert {"delta", "before", "after"} <= listing.valued
    assert "latency_ms" not in listing.valued


@pytest.mark.parametrize(("band", "outcome"), [(0.51, "same"), (0.49, "hurt")])
def test_an_outcome_follows_the_tie_band_of_the_study(band, outcome):
    of = banded(alone("ab", "ba", metric="mrr"), band)
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
    cutoff = 1 if metric == "judged" else 10
    of = alone(first, after, labels={relevant: 1.0}, metric=metric, cutoff=cutoff)
    found = queries.listing(of, of.challengers[0])
    assert found.reach == pytest.approx(reach)
    assert found.positions == {"q": 0}


def test_only_queries_with_a_value_on_both_sides_are_compared():
    first, labels = dict.fromkeys("qrs", "ab"), {query: {"a": 1.0} for query in "qrs"}
    of = small(first, {"q": "ab", "s": "ba"}, labels=labels, failed=("r",))
    assert queries.compared(of, of.challengers[0])["query_id"].tolist() == ["q", "s"]
    of = turned(small(dict.fromkeys("qr", "ab"), {"r": "ba"}, labels=ONE, failed=("q",)))
    assert queries.compared(of, FIRST_STAGE).empty
    assert queries.listing(of, FIRST_STAGE).reach == 0.0


def test_what_labels_could_change_goes_from_the_lowest_to_the_highest():
    """Of "b" and "c" nobody knows whether they are relevant."""
    of = alone("abc", "bac", metric="mrr")
    assert queries.bounds(of, of.challengers[0]) == {"q": pytest.approx((-0.5, 0.0))}


# Labels, texts and lists.


def test_the_labels_of_a_query_are_its_own_in_whatever_order_the_rows_came():
    labels = {"q": {"a": 1.0, "b": 0.0, "c": 2.0}, "r": {"a": 3.0, "c": 2.0}}
    of = small(dict.fromkeys("qr", "ab"), dict.fromkeys("qr", "ba"), labels=labels)
    mixed = of.dataset.qrels.iloc[[0, 3, 1, 4, 2]]
    of = replace(of, dataset=changed(of.dataset, qrels=mixed))
    assert {query: queries.label_of(of, query) for query in ("q", "r", "nobody")} == {
        **labels, "nobody": {}
    }  # fmt: skip


@pytest.mark.parametrize(("threshold", "lacking"), [(1.0, "fed"), (2.0, "fe"), (3.0, "f")])
def test_relevant_documents_that_no_ranking_has_are_listed_the_highest_label_first(
    threshold, lacking
):
    labels = {"a": 3.0, "c": 0.0, "d": 1.0, "e": 2.0, "f": 3.0}
    of = alone("abc", "bac", labels=labels, conventions=Conventions(threshold=threshold))
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
    of = alone("abcd", *lists, labels={doc: 1.0})
    of = replace(of, challengers=tuple(of.challengers[place] for place in chosen))
    (found,) = missed_of(of)
    name = found.system if found.system in (None, FIRST_STAGE) else of.name(found.system)
    assert (found.doc_id, name, found.rank) == (doc, where, rank)


def test_a_missed_document_is_looked_for_in_the_baseline_and_the_first_stage_first():
    of = alone("bcda", "bc", "ba", "ab", labels={"a": 1.0, "b": 0.0})
    first, second, third = of.challengers
    assert missed_of(of) == [queries.Missed("a", FIRST_STAGE, 4)]
    of = replace(of, baseline=second, challengers=(first, third))
    assert missed_of(of) == [queries.Missed("a", second, 2)]
    of = alone("bcd", "bc", "ba", "ab", labels={"a": 1.0, "b": 0.0})
    assert missed_of(of) == [queries.Missed("a", of.challengers[2], 1)]
    # A run without a result lacks only what no ranking has.
    of = small({"q": "ab"}, {}, labels={"q": {"a": 1.0, "e": 1.0}}, failed=("q",))
    assert missed_of(of) == [queries.Missed("e")]


def test_texts_come_by_id_and_an_empty_one_is_none():
    of = alone("ab", "ba", texts={"c": "", "a": "first"})
    found = {"d": ("", "d"), "a": ("", "first"), "c": ("", None)}
    assert queries.texts(of, ["d", "a", "c"]) == {
        doc: queries.Text(*each) for doc, each in found.items()
    }
    for title, body, whole in (
        ("A title", None, "A title"),
        ("", "words", "words"),
        ("A title", "words", "A title words"),
    ):
        assert queries.Text(title, body).whole == whole


def test_what_a_system_says_of_documents_is_of_their_rows_in_its_list():
    lists, scores = {"p": "ba", "q": "cab"}, {"p": [9.0, 8.0], "q": [3.5, 2.5, math.nan]}
    of = small(lists, lists, labels=ONE)
    scored = Ranking.from_lists((query, list(docs), scores[query]) for query, docs in lists.items())
    read, full = (np.array(each, dtype=np.int32) for each in ([5, 6, 0, 7, -1], [5, 9, 0, 8, -1]))
    run = replace(of.run(of.challengers[0]), ranking=scored, reading=Reading(read, full))
    of = study_on(of.dataset, run)
    nothing = (None, None, None)
    for system, query, docs, expected in (
        (run.id, "q", "acb", [("a", 2.5, 7, 8), ("c", 3.5, 0, 0), ("b", *nothing)]),
        (FIRST_STAGE, "q", "b", [("b", 1.0, None, None)]),
        (run.id, "nobody", "ab", [("a", *nothing), ("b", *nothing)]),
    ):
        found = queries.listed(of, system, query, docs)
        assert found == [queries.Listed(*each) for each in expected]


@pytest.mark.parametrize(("cutoff", "shown_"), [(None, 20), (3, 3)])
def test_a_list_is_looked_at_as_far_as_the_cutoff_or_twenty(cutoff, shown_):
    assert queries.depth_shown(alone("ab", "ba", cutoff=cutoff)) == shown_


def test_a_system_without_a_result_is_in_no_ladder():
    first = dict.fromkeys("qr", "ab")
    of = small(first, {"r": "ba"}, first, labels={query: {"a": 1.0} for query in first})
    one, other = of.challengers
    for query, systems in (("q", (other,)), ("r", (one, other)), ("nobody", (one, other))):
        assert queries.ladder_of(of, one, query).systems == (FIRST_STAGE, *systems)


# Why one query changed.


@pytest.mark.parametrize("failing", ["baseline", "challenger"])
def test_a_change_that_failed_on_either_side_is_not_split(failing):
    labels = {query: {"a": 1.0} for query in "qr"}
    of = small(dict.fromkeys("qr", "ab"), {"r": "ba"}, labels=labels, failed=("q",))
    of = turned(of) if failing == "baseline" else of
    found = queries.change(of, of.challengers[0], "q")
    assert (found.why_not, len(found.documents)) == ("failed", 0)
    assert blamed(of) is None


@pytest.mark.parametrize(("top", "value"), [(None, 1 / 8), (3.0, 1 / 8), (4.0, 1 / 16)])
def test_a_query_is_read_on_the_scale_of_the_whole_set_unless_the_rules_name_its_top(top, value):
    """ERR of a document labelled 1 at the top is (2^1 - 1) / 2^top; "r" has a label of 3."""
    first, labels = dict.fromkeys("qr", "ab"), {"q": {"a": 1.0}, "r": {"a": 3.0}}
    of = small(
        first, first, labels=labels, metric="err", conventions=Conventions(err_top_label=top)
    )
    (challenger,) = of.challengers
    found = queries.change(of, challenger, "q")
    assert found.after == pytest.approx(value)
    assert found.after == queries.by_query(of, challenger, of.spec)["q"]
    bare = small(first, first, labels={"q": {"a": 0.0}}, metric="err")
    assert queries.change(bare, bare.challengers[0], "q").why_not == "no_relevant"


def judged(after: str, labels: Mapping[str, float], metric="ndcg", cutoff=10, threshold=1.0,
           band: float | None = None) -> Study:  # fmt: skip
    """The list after, which the first stage has turned round; "x" has no label."""
    docs = after.replace("x", "h")
    of = alone(docs[::-1], docs, labels=labels, metric=metric, cutoff=cutoff)
    of = replace(of, conventions=Conventions(threshold=threshold))
    return of if band is None else banded(of, band)


def uploaded(docs: str, *others: str) -> Study:
    return alone("abcd", docs, *others, labels={"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0})


def blames() -> dict[str, Study]:
    both = {"a": 1, "b": 1}
    return {
        "x has no label where the labels name the others": judged("xa", {"a": 1}),
        "it is below them": judged("ax", {"a": 1}),
        "above the lowest document that counts": judged("axb", both),
        "what is labelled 0 counts for nothing": judged("axb", {"a": 1, "b": 0}),
        "at the cutoff": judged("bxa", both, cutoff=2),
        "beyond the cutoff": judged("abxc", both | {"c": 1}, cutoff=2),
        "below the threshold a label counts for a graded metric": judged(
            "bxa", {"a": 1, "b": 2}, threshold=2.0
        ),
        "and for no other": judged("bxa", {"a": 1, "b": 2}, threshold=2.0, metric="mrr"),
        "what is lost is within the tie band of 0.38": judged("xa", {"a": 1}, band=0.38),
        "and beyond 0.36": judged("xa", {"a": 1}, band=0.36),
        **{
            f"a run of {docs}{' beside others' * bool(others)}, where a is relevant": uploaded(
                docs, *others
            )
            for docs in ("cba", "cb", "cbd", "a")
            for others in ((), ("ab", "ba", "cad"))
        },
    }


def test_who_is_to_blame_is_as_approved(approved):
    """An uploaded run for the order of its own documents alone, whatever the others rank."""
    found = {name: shown(blamed(of)) for name, of in blames().items()}
    approved("study/blame", table(found))


@pytest.mark.parametrize(
    ("labels", "relevant"), [({"a": 0.0}, 0), ({"g": 1.0}, 1), ({"g": 1.0, "h": 1.0}, 2)]
)
def test_labels_that_say_nothing_of_what_is_shown_are_the_fault(labels, relevant):
    found = blamed(alone("ab", "ba", labels=labels))
    assert found.fault == LABELS_SAY_TOO_LITTLE
    assert (found.relevant, len(found.missed), found.unlabelled) == (relevant, relevant, 0)


def test_nobody_is_to_blame_where_there_is_no_value_or_no_best_one():
    labels = {query: {"a": 1.0} for query in "qr"}
    of = small(dict.fromkeys("qr", "ab"), {"r": "ba"}, labels=labels,
               conventions=Conventions(missing="skip"))  # fmt: skip
    assert blamed(of) is None
    assert blamed(of, "r") is not None
    assert blamed(replace(of, metric="judged", conventions=Conventions()), "r") is None
