"""One reason for each query: every code by a case, one and only one by property."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.analysis.reasons.contributions import split
from rankdash.analysis.reasons.main_document import evidence
from rankdash.analysis.reasons.reasons import CODES, DECIDED, counted, reasons
from rankdash.analysis.statistics.pairs import TIE_BAND
from rankdash.analysis.unjudged.system_bounds import RankedLabels
from rankdash.errors import SpecError
from rankdash.metrics import Conventions, evaluate, judge, parse_measure, registry
from rankdash.ranking.ranking import Ranking, Reading
from tests.sets import SETS, loaded

QUALITY = [name for name, metric in registry.items() if metric.measures_quality]
# Scores with uneven steps: clear margins everywhere.
CLEAR = [20.0, 17.0, 15.0, 12.0, 11.0, 8.0, 7.0, 5.0, 4.0, 2.0, 1.5, 0.5]
CLEAR += [0.0, -2.0, -5.0, -6.0, -9.0, -9.5, -12.0, -13.0]


# A ranking of another query only.
UNRANKED = Ranking.from_lists([("r", ["a"], [1.0])])


def ranked(docs: str, scores: list[float] | None = None, query: str = "q") -> Ranking:
    return Ranking.from_lists([(query, list(docs), scores or CLEAR[: len(docs)])])


def table(labels: dict[str, float], query: str = "q") -> pd.DataFrame:
    rows = [(query, doc, float(label)) for doc, label in labels.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def reason(
    before: str | Ranking,
    after: str | Ranking,
    labels: dict[str, float],
    spec: str = "ndcg@5",
    *,
    left_out: dict[str, str] | None = None,
    left_out_before: dict[str, str] | None = None,
    reading: Reading | None = None,
    tie_band: float = TIE_BAND,
    **rules,
) -> pd.Series:
    conventions, qrels = Conventions(**rules), table(labels)
    ours, theirs = (ranked(each) if isinstance(each, str) else each for each in (before, after))
    sides = [RankedLabels(each, judge(each, qrels, conventions)) for each in (ours, theirs)]
    sides = [
        replace(side, left_out=out or {})
        for side, out in zip(sides, (left_out_before, left_out), strict=True)
    ]
    found = reasons(*sides, parse_measure(spec), conventions, tie_band=tie_band, reading=reading)
    return found.iloc[0]


def test_the_two_orders_hold_the_same_codes():
    assert sorted(CODES) == sorted(DECIDED)
    assert len(set(CODES)) == 15


def test_failed():
    out = {"q": "failed"}
    assert reason("ab", "ba", {"a": 1}, left_out=out)["reason"] == "failed"
    assert reason("ab", "ba", {"a": 1}, left_out_before=out)["reason"] == "failed"
    assert reason("ab", "ba", {"a": 1}, left_out={"r": "failed"})["reason"] != "failed"
    failed = reason("ab", UNRANKED, {"a": 1}, left_out={"q": "skipped"})
    assert failed["reason"] == "failed"
    assert np.isnan(failed["delta"])


@pytest.mark.parametrize("sides", [("ab", None), (None, "ab"), (None, None)])
def test_a_ranking_that_lacks_the_query_has_not_failed(sides):
    before, after = (UNRANKED if side is None else side for side in sides)
    value = [0.0 if side is None else 1.0 for side in sides]
    row = reason(before, after, {"a": 1})
    assert (row["reason"], row["delta"]) == ("missing", value[1] - value[0])
    for rules in ({"missing": "skip"}, {"queries": "both"}):
        row = reason(before, after, {"a": 1}, **rules)
        assert row["reason"] == "missing"
        assert np.isnan(row["delta"]), "nobody counts it"


def test_nothing_relevant_among_the_candidates():
    assert reason("abc", "cba", {"x": 1, "a": 0})["reason"] == "no_relevant_candidate"


@pytest.mark.parametrize("labels", [{"a": 0}, {"a": -1}, {"x": 0, "a": 0}])
def test_labels_without_a_relevant_document_are_no_loss_of_the_retriever(labels):
    assert reason("abc", "cba", labels)["reason"] == "no_relevant_label"


def test_what_the_metric_does_not_count_is_not_there():
    labels = {"a": 1, "b": 0}
    assert reason("ab", "ba", labels, "mrr", threshold=2)["reason"] == "no_relevant_label"
    assert reason("ab", "ba", {"x": 2, "a": 1}, "mrr", threshold=2)["reason"] == (
        "no_relevant_candidate"
    )
    assert reason("ab", "ba", labels, "ndcg", threshold=2)["reason"] == "distractor_lifted"


def test_already_ideal_and_kept():
    assert reason("abcd", "abdc", {"a": 2, "b": 1})["reason"] == "already_ideal"
    assert reason("abcd", "bacd", {"a": 1, "b": 1})["reason"] == "already_ideal"


def test_an_ideal_order_that_was_hurt_is_explained_by_what_hurt_it():
    assert reason("abcd", "cbad", {"a": 2, "c": 0})["reason"] == "distractor_lifted"


def test_idle():
    assert reason("bac", "bac", {"a": 1})["reason"] == "idle"
    assert reason("bacdefgh", "badcefhg", {"a": 1})["reason"] == "idle"


@pytest.mark.parametrize(
    ("before", "after", "labels", "spec", "expected"),
    [
        ("bcdefag", "bcdefga", {"a": 1}, "ndcg@5", "below_cutoff"),
        ("bcdefag", "bcdefga", {"a": 1}, "ndcg@6", "buried"),
        ("bcdefag", "bcdefga", {"a": 1, "b": 0}, "ndcg@5", "below_cutoff"),
        ("bcdefa", "bcdef", {"a": 1}, "ndcg@5", "below_cutoff"),  # One list is enough.
        ("bcdef", "bcdef", {"a": 1, "b": 0}, "ndcg@5", "no_relevant_candidate"),
        ("bacdea", "bacdea"[:5], {"a": 1}, "ndcg@5", "idle"),
        # As good as what is within k: nothing is missed.
        ("bac", "bac", {"a": 1, "c": 1}, "mrr@2", "idle"),
        ("bac", "bac", {"a": 1, "c": 1}, "recall@2", "below_cutoff"),
        ("abc", "abc", {"a": 2, "b": 1, "c": 1}, "ndcg@2", "already_ideal"),
    ],
)
def test_a_relevant_document_below_the_cutoff_is_no_idle(before, after, labels, spec, expected):
    before, after = (ranked("".join(dict.fromkeys(each))) for each in (before, after))
    assert reason(before, after, labels, spec)["reason"] == expected


def test_what_is_below_the_cutoff_would_add_more_than_the_tie_band():
    """The second relevant document would add half."""
    case = "bac", "bac", {"a": 1, "c": 1}, "recall@2"
    assert reason(*case, tie_band=0.5)["reason"] == "idle"
    assert reason(*case, tie_band=0.4999)["reason"] == "below_cutoff"


@pytest.mark.parametrize(
    ("labels", "spec", "rules", "expected"),
    [
        ({"x": 1}, "ndcg@2", {}, "nothing_judged"),
        ({"x": 1, "c": 0}, "ndcg@2", {}, "nothing_judged"),
        ({"x": 1, "b": 0}, "ndcg@2", {}, "no_relevant_candidate"),
        ({"x": 1, "c": 0}, "ndcg@3", {}, "no_relevant_candidate"),
        ({"x": 1, "c": 0}, "ndcg", {}, "no_relevant_candidate"),
        ({"x": 1, "c": 0}, "ndcg@2", {"judged_only": True}, "no_relevant_candidate"),
        ({"x": 1}, "ndcg@2", {"judged_only": True}, "nothing_judged"),
        ({"c": 1}, "ndcg@2", {}, "below_cutoff"),
        ({"x": 0}, "ndcg@2", {}, "no_relevant_label"),
    ],
)
def test_where_nothing_that_is_shown_is_judged_nothing_is_concluded(labels, spec, rules, expected):
    assert reason("abcd", "bacd", labels, spec, **rules)["reason"] == expected


@pytest.mark.parametrize("sides", [("abcd", "cdab"), ("cdab", "abcd")])
def test_a_judged_document_that_one_side_shows_is_enough_to_conclude(sides):
    assert reason(*sides, {"x": 1, "a": 0}, "ndcg@2")["reason"] == "no_relevant_candidate"


def test_a_value_of_0_is_not_already_ideal():
    assert reason("bc", "bcdefa", {"a": 1, "b": 0}, "ndcg@5")["reason"] == "below_cutoff"
    assert reason("bc", "bcdefa", {"a": 1, "b": 0}, "ndcg@5", tie_band=1.0)["reason"] == "idle"


def test_buried_leaves_the_first_k():
    row = reason("abcdefgh", "bcdefgha", {"a": 1, "b": 0})
    assert row["reason"] == "buried"
    assert row["doc_id"] == "a"
    assert (row["rank_before"], row["rank_after"], row["share"]) == (1, 8, -1)
    assert (row["worse"], row["unjudged"], row["other"]) == (1, 4, 0), "those within k"


def test_buried_without_a_cutoff_leaves_the_first_page():
    docs = "abcdefghijkl"
    assert reason(docs, docs[1:] + "a", {"a": 1}, "ndcg")["reason"] == "buried"
    assert reason(docs, "bcd" + "a" + docs[4:], {"a": 1}, "ndcg")["reason"] == "unjudged_lifted"


def test_a_relevant_document_that_the_list_no_longer_holds_is_buried():
    row = reason("abc", "bc", {"a": 1, "b": 0})
    assert (row["reason"], row["doc_id"]) == ("buried", "a")
    assert np.isnan(row["rank_after"])


def test_distractor_and_unjudged_by_what_overtook():
    assert reason("abcd", "bcad", {"a": 1, "b": 0, "c": 0})["reason"] == "distractor_lifted"
    assert reason("abcd", "bcad", {"a": 1, "b": 0})["reason"] == "distractor_lifted", (
        "half and half"
    )
    assert reason("abcde", "bcdae", {"a": 1, "b": 0})["reason"] == "unjudged_lifted"
    assert reason("abcd", "bcad", {"a": 1})["reason"] == "unjudged_lifted"


def test_a_lower_grade_lifted_over_a_higher_one_is_a_distractor_where_grades_count():
    row = reason("ab", "ba", {"a": 3, "b": 0.5})
    assert (row["reason"], row["worse"]) == ("distractor_lifted", 1)


def test_negative_labels_follow_their_convention():
    labels = {"a": 1, "b": -1}
    assert reason("abc", "bac", labels)["reason"] == "distractor_lifted"
    assert reason("abc", "bac", labels, negative="unjudged")["reason"] == "unjudged_lifted"


def test_among_judged_documents_nothing_unjudged_can_hurt():
    labels = {"a": 1, "b": 0}
    assert reason("abcde", "cdeba", labels, "ndcg@2")["reason"] == "buried"
    row = reason("abcde", "cdeba", labels, "ndcg@2", judged_only=True)
    assert row["reason"] == "distractor_lifted"
    assert (row["rank_after"], row["unjudged"]) == (2, 0)
    labels = {"a": 1, "b": 0, "c": 0, "d": 0}
    assert reason("abcd", "bcda", labels, "ndcg@2", judged_only=True)["worse"] == 2, "within k"


def reading_of(after: Ranking, cut: dict[str, tuple[int, int]]) -> Reading:
    pairs = [cut.get(doc, (50, 50)) for doc in after.doc_ids[after.docs]]
    read, full = (np.array(side, dtype=np.int32) for side in zip(*pairs, strict=True))
    return Reading(read, full)


def test_truncated_where_the_model_read_little_of_what_fell():
    after = ranked("bcdefgha")
    cut = reading_of(after, {"a": (100, 400)})
    row = reason("abcdefgh", after, {"a": 1}, reading=cut)
    assert (row["reason"], row["read"], row["full"]) == ("truncated", 100, 400)
    for read, full in ((399, 400), (-1, -1), (50, 50)):
        whole = reading_of(after, {"a": (read, full)})
        assert reason("abcdefgh", after, {"a": 1}, reading=whole)["reason"] == "buried"
    other = reading_of(after, {"b": (100, 400)})
    assert reason("abcdefgh", after, {"a": 1}, reading=other)["reason"] == "buried"


def test_reading_is_found_again_where_ties_are_settled_by_another_rule():
    after = ranked("bac", [3.0, 1.0, 1.0])
    cut = reading_of(after, {"a": (1, 9), "c": (7, 7)})
    labels = {"a": 1, "c": 1}
    row = reason("acb", after, labels, "ndcg@2", reading=cut, ties="trec")
    assert (row["doc_id"], row["read"], row["full"]) == ("a", 1, 9)


def test_rescued():
    row = reason("bcdefgha", "abcdefgh", {"a": 1})
    assert (row["reason"], row["rank_before"], row["rank_after"]) == ("rescued", 8, 1)
    assert reason("bac", "abc", {"a": 1})["reason"] == "rescued"
    labels = {"a": 2, "b": 1}
    assert reason("bcda", "abcd", labels)["reason"] == "rescued"
    perfect = reason("bac", "abc", {"a": 3, "b": 2.5})
    assert perfect["lost"] > 0.5 * perfect["gained"]
    assert perfect["reason"] == "rescued", "what fell made room for something better"


def test_near_tie_is_decided_by_a_sliver_of_the_score_range():
    close = [20.0, 19.9, 12.0, 3.0]
    labels = {"a": 1}
    assert reason("bacd", ranked("abcd", close), labels)["reason"] == "near_tie"
    assert reason("abcd", ranked("bacd", close), labels)["reason"] == "near_tie"
    assert reason("abcd", ranked("bcad", close), labels)["reason"] == "unjudged_lifted"
    row = reason("bacd", ranked("abcd", close), labels)
    assert row["margin"] == pytest.approx(0.1 / 17)


@settings(max_examples=20)
@given(scale=st.floats(1e-6, 1e6), shift=st.floats(-1e3, 1e3))
def test_a_near_tie_does_not_depend_on_the_scale_of_the_scores(scale, shift):
    close = [(score + shift) * scale for score in (20.0, 19.9, 12.0, 3.0)]
    assert reason("bacd", ranked("abcd", close), {"a": 1})["reason"] == "near_tie"


def test_ranks_in_disguise_make_no_near_tie():
    docs = [f"d{n}" for n in range(200)]
    after = Ranking.from_lists([("q", docs, [-float(n) for n in range(200)])])
    before = Ranking.from_lists([("q", [docs[1], docs[0], *docs[2:]], after.scores.tolist())])
    row = reason(before, after, {"d0": 1})
    assert row["reason"] == "rescued"
    assert np.isnan(row["margin"])


def test_ties_at_every_second_rank_are_no_ranks_in_disguise():
    """A straight line from first to last meets them at every quarter of the list."""
    docs = [f"d{n}" for n in range(49)]
    after = Ranking.from_lists([("q", docs, [-float((n + 1) // 2) for n in range(49)])])
    before = Ranking.from_lists([("q", [docs[0], docs[2], docs[1], *docs[3:]], range(0, -49, -1))])
    row = reason(before, after, {"d1": 1})
    assert (row["reason"], row["margin"]) == ("near_tie", 0.0)


def test_documents_below_the_depth_have_no_margin():
    nan = float("nan")
    after = Ranking.from_lists([("q", list("bcdae"), [9.0, 8.9, 3.0, nan, nan])])
    row = reason("abcde", after, {"a": 1})
    assert np.isnan(row["margin"])
    assert row["reason"] == "unjudged_lifted"


def test_the_range_of_scores_ends_at_the_depth_whatever_other_queries_have():
    nan = float("nan")
    lists = [("q", list("bacde"), [9.0, 8.9, 3.0, nan, nan]), ("r", ["a"], [1.0])]
    for order in (lists, lists[::-1]):
        row = reason("abcde", Ranking.from_lists(order), {"a": 1})
        assert row["margin"] == pytest.approx(0.1 / 6)


@pytest.mark.parametrize("scores", [[5.0, 1.0], [5.0, 5.0, 5.0], [5.0]])
def test_two_scores_and_equal_ones_have_no_margin(scores):
    row = reason("bac"[: len(scores)], ranked("abc"[: len(scores)], scores), {"a": 1, "b": 0})
    assert np.isnan(row["margin"])


def test_a_document_from_below_the_end_of_a_shorter_list_has_no_margin():
    row = reason("bcdea", "abc", {"a": 1})
    assert (row["reason"], row["rank_before"], row["rank_after"]) == ("rescued", 5, 1)
    assert np.isnan(row["margin"])


@pytest.mark.parametrize(("before", "margin"), [("bca", 1.0), ("bcda", np.nan)])
def test_the_score_at_its_old_place_is_of_the_same_list(before, margin):
    """The last place of the challenger's list, and the one below, where another query begins."""
    after = Ranking.from_lists([("q", list("abc"), [20.0, 17.0, 15.0]), ("r", ["a"], [1.0])])
    assert reason(before, after, {"a": 1})["margin"] == pytest.approx(margin, nan_ok=True)


def test_a_document_that_kept_its_place_has_no_margin_and_is_no_near_tie():
    """Another relevant one rose above it, which adds to its own precision."""
    row = reason("xyab", "xbay", {"a": 1, "b": 1}, "map")
    assert (row["rank_before"], row["rank_after"]) == (3, 3)
    assert row["delta"] > TIE_BAND
    assert np.isnan(row["margin"])
    assert row["reason"] != "near_tie"


def test_the_evidence_is_what_overtook_the_main_document_best_first():
    labels = {"a": 3.0, "b": 0.0, "d": 3.0}
    measure, rules = parse_measure("ndcg@5"), Conventions()
    row = reason("xabcd", "xdcbeya", labels)
    assert row["doc_id"] == "a"
    lists = ranked("xabcd"), ranked("xdcbeya")
    found = evidence(row, split(*lists, table(labels), "q", measure, rules), rules)
    assert [(each.doc_id, each.kind) for each in found] == [
        ("d", "other"), ("c", "unjudged"), ("b", "worse"), ("e", "unjudged")
    ]  # fmt: skip
    ranks = [(each.rank_before, each.rank_after) for each in found]
    np.testing.assert_array_equal(ranks, [(5, 2), (4, 3), (3, 4), (np.nan, 5)])
    np.testing.assert_array_equal([each.label for each in found], [3, np.nan, 0, np.nan])


@pytest.mark.parametrize(("before", "after"), [("xyabc", "xbcya"), ("xbcya", "xyabc")])
def test_the_main_document_moved_as_the_query_did_though_another_moved_more(before, after):
    """A gain of 2.26 in two documents against a loss of 2 in one, and the other way around."""
    row = reason(before, after, {"a": 4, "b": 2, "c": 2}, "dcg@3")
    assert (row["doc_id"], abs(row["share"])) == ("b", pytest.approx(2 / np.log2(3)))
    assert (row["delta"] > 0) == (row["share"] > 0) == (before == "xyabc")
    assert max(row["gained"], row["lost"]) > min(row["gained"], row["lost"]) == pytest.approx(2)


def test_a_document_that_is_gone_was_overtaken_by_all_that_stood_below_it():
    labels = {"a": 2, "b": 0, "x": 2}
    row = reason("xabcd", "xbcde", labels)
    assert (row["doc_id"], *row[["worse", "unjudged", "other"]]) == ("a", 1, 3, 0)
    cut = reason("xabcd", "xbcde", labels, "ndcg@3")
    assert (cut["doc_id"], *cut[["worse", "unjudged", "other"]]) == ("a", 1, 1, 0)


def test_without_a_main_document_nothing_overtook_it():
    labels = {"a": 1}
    for lists in (("bac", "bac"), ("bc", "cb")):
        row = reason(*lists, labels)
        own = split(*map(ranked, lists), table(labels), "q", parse_measure("ndcg@5"))
        assert row["doc_id"] is None
        assert evidence(row, own, Conventions()) == []


def test_mixed_where_gains_and_losses_are_of_one_size():
    labels = {"a": 1, "b": 1, "c": 1}
    row = reason("axbcde", "cxbade", labels, "recall@2")
    assert (row["reason"], row["delta"]) == ("mixed", 0)
    assert row["gained"] == row["lost"] == pytest.approx(1 / 3)
    # Of those that moved the value as much, the first of the baseline's list.
    assert (row["doc_id"], row["share"]) == ("a", pytest.approx(-1 / 3))
    more = reason("abcdefg", "dcefgab", {"a": 2, "d": 3}, "ndcg@5")
    assert more["reason"] == "mixed", "hurt, but nearly as much was gained"
    assert more["delta"] < 0


def test_in_mrr_the_first_relevant_document_is_the_one_that_moved():
    labels = {"a": 1, "d": 1, "b": 0}
    row = reason("abcdefgh", "bdcefgha", labels, "mrr@5")
    assert (row["rank_before"], row["rank_after"]) == (1, 2), "d took over: nothing was buried"
    assert (row["reason"], row["worse"], row["unjudged"]) == ("distractor_lifted", 1, 0)
    swapped = reason("abcd", "dbca", labels, "mrr@5")
    assert swapped["reason"] == "already_ideal", "another one is first, and the value is the same"


def moved(lost: int, gained: int, spare: int = 0) -> tuple[str, str, dict[str, float], str]:
    """So many relevant documents leave the first k and so many enter it; `spare` ranks hold
    nothing relevant before and after. Each counts as much as any other."""
    relevant = "abcdefghijklmnopqr"[: lost + gained]
    out, into, rest = relevant[:lost], relevant[lost:], "456789"
    k, fill = max(lost, gained), "0123"[:spare]
    before = fill + (out + rest)[:k] + into
    after = fill + (into + rest)[:k] + out
    return before, after, dict.fromkeys(relevant, 1.0), f"recall@{k + spare}"


@pytest.mark.parametrize(
    ("lost", "gained", "expected"),
    [(8, 4, "buried"), (9, 5, "mixed"), (4, 8, "rescued"), (5, 9, "mixed"), (0, 1, "rescued")],
)
def test_a_change_is_one_sided_where_the_other_side_is_at_most_half(lost, gained, expected):
    # A spare rank, for a list that cannot be better is a rescue whatever it lost.
    assert reason(*moved(lost, gained, spare=1))["reason"] == expected


@pytest.mark.parametrize(("second", "expected"), [(99.0, "near_tie"), (98.9, "rescued")])
def test_a_margin_of_exactly_a_hundredth_of_the_range_is_near(second, expected):
    row = reason("bacd", ranked("abcd", [100.0, second, 40.0, 0.0]), {"a": 1})
    assert (row["reason"], row["margin"]) == (expected, pytest.approx((100 - second) / 100))


@pytest.mark.parametrize(("lost", "expected"), [(2, "near_tie"), (3, "buried")])
def test_the_main_document_of_a_near_tie_makes_at_least_half_of_the_change(lost, expected):
    """Each of them makes half of it, or a third."""
    before, after, labels, spec = moved(lost, 0)
    scores = [100 - n / 1000 for n in range(len(after))]
    row = reason(before, ranked(after + "z", [*scores, 0.0]), labels, spec)
    assert (row["reason"], row["margin"] <= 0.01) == (expected, True)


def test_a_near_tie_is_one_sided():
    before, after, labels, spec = moved(2, 2, spare=1)
    labels["a"], labels["c"] = 3, 2.5
    scores = [100 - n / 1000 for n in range(len(after))]
    row = reason(
        before, ranked(after + "z", [*scores, 0.0]), labels, spec.replace("recall", "ndcg")
    )
    assert (row["reason"], row["margin"] <= 0.01, row["delta"] < -TIE_BAND) == ("mixed", True, True)


@pytest.mark.parametrize(
    ("read", "full", "expected"),
    [
        (200, 400, "truncated"),
        (201, 400, "buried"),
        (0, 400, "truncated"),
        (-1, 400, "buried"),  # Nobody knows how much was read.
        (0, 0, "buried"),  # There was nothing to read.
    ],
)
def test_a_document_is_truncated_where_at_most_half_of_it_was_read(read, full, expected):
    after = ranked("bcdefgha")
    cut = reading_of(after, {"a": (read, full)})
    assert reason("abcdefgh", after, {"a": 1}, reading=cut)["reason"] == expected


def test_a_document_that_rose_is_no_less_rescued_where_little_of_it_was_read():
    after = ranked("abcdefgh")
    cut = reading_of(after, {"a": (100, 400)})
    assert reason("bcdefgha", after, {"a": 1}, reading=cut)["reason"] == "rescued"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [("ab", "abx", "already_ideal"), ("abx", "ab", "below_cutoff"), ("ab", "ba", "already_ideal")],
)
def test_already_ideal_is_said_of_the_baseline_by_its_own_candidates(before, after, expected):
    """x is relevant and below the second place, in one of the lists."""
    assert reason(before, after, {"a": 1, "x": 1}, "hit@2")["reason"] == "already_ideal"
    assert reason(before, after, {"a": 1, "x": 1}, "recall@2")["reason"] == expected


@pytest.mark.parametrize(("spec", "page"), [("ndcg@5", 5), ("ndcg@11", 11), ("ndcg", 10)])
def test_a_document_is_buried_where_it_leaves_exactly_the_first_k_or_page(spec, page):
    def fell(start: int, end: int) -> str:
        docs = "bcdefghijklmn"
        before, after = (docs[: at - 1] + "a" + docs[at - 1 :] for at in (start, end))
        return str(reason(before, after, {"a": 1}, spec)["reason"])

    assert fell(page, page + 1) == "buried"
    assert fell(1, page) == "unjudged_lifted"
    # Below k nothing counts; in a whole list it falls from below the page.
    assert fell(page + 1, page + 2) == ("unjudged_lifted" if spec == "ndcg" else "below_cutoff")


def test_gains_and_losses_of_exactly_the_tie_band_are_idle():
    """A third is gained and a third lost."""
    case = "axbcde", "cxbade", {"a": 1, "b": 1, "c": 1}, "recall@2"
    assert reason(*case, tie_band=1 / 3)["reason"] == "idle"
    assert reason(*case, tie_band=0.3333)["reason"] == "mixed"


@pytest.mark.parametrize(("tie_band", "expected"), [(0.3, "idle"), (0.29, "mixed")])
def test_three_tenths_are_no_more_than_the_tie_band_of_three_tenths(tie_band, expected):
    """Though the computer adds them up to 0.30000000000000004."""
    assert 0.1 + 0.1 + 0.1 > 0.3
    labels = dict.fromkeys("abcdefghij", 1)
    row = reason("abcxdefghij", "defxabcghij", labels, "recall@4", tie_band=tie_band)
    assert (row["reason"], row["gained"]) == (expected, pytest.approx(0.3))


@pytest.mark.parametrize(("label", "told"), [(2, (0, 1, 1)), (1, (1, 1, 0)), (None, (0, 2, 0))])
def test_in_binary_metrics_the_threshold_says_what_is_worse(label, told):
    labels = {"a": 2, "c": 2, "b": label}
    known = {doc: each for doc, each in labels.items() if each is not None}
    row = reason("acbx", "bxac", known, "recall@2", threshold=2)
    assert (row["doc_id"], *row[["worse", "unjudged", "other"]]) == ("a", *told)


@pytest.mark.parametrize(
    ("earlier", "later", "case"),
    [
        ("failed", "no_relevant_label", lambda: reason(
            "ab", "ba", {"a": 0}, left_out={"q": "skipped"})),
        ("no_relevant_label", "no_relevant_candidate", lambda: reason("ab", "ba", {"a": 0})),
        ("no_relevant_label", "missing", lambda: reason("ab", UNRANKED, {"a": 0})),
        ("missing", "no_relevant_candidate", lambda: reason("ab", UNRANKED, {"x": 1})),
        ("nothing_judged", "no_relevant_candidate", lambda: reason("ab", "ba", {"x": 1})),
        ("already_ideal", "idle", lambda: reason("abc", "abc", {"a": 1})),
        ("below_cutoff", "idle", lambda: reason("abc", "abc", {"c": 1}, "ndcg@2")),
        ("near_tie", "buried", lambda: reason(
            "bcdeaf", ranked("bcdefa", [99.0, 8.0, 4.0, 1.5, 1.01, 1.0]), {"a": 1}, "ndcg@5")),
        ("truncated", "buried", lambda: reason(
            "abcdef", ranked("bcdefa"), {"a": 1}, "ndcg@5",
            reading=reading_of(ranked("bcdefa"), {"a": (1, 9)}))),
        ("buried", "distractor_lifted", lambda: reason("abc", "bca", {"a": 1, "b": 0, "c": 0},
                                                       "ndcg@2")),
    ],
)  # fmt: skip
def test_where_two_hold_the_earlier_decides(earlier, later, case):
    assert DECIDED.index(earlier) < DECIDED.index(later)
    assert case()["reason"] == earlier


def test_reasons_sum_to_the_queries_and_the_change_that_the_mean_counts():
    reason_of = pd.Series({"a": "mixed", "b": "failed", "c": "buried", "d": "mixed", "e": "idle"})
    pairs = pd.DataFrame(
        {"query_id": list("abcdx"), "delta": [0.2, float("nan"), -0.4, -0.1, float("nan")]}
    )
    found = counted(reason_of, pairs)
    assert list(found.index) == ["buried", "mixed"], "in the order of a list, and no other"
    assert found["queries"].tolist() == [1, 2]
    assert found["mean"].tolist() == pytest.approx([-0.4, 0.05])
    assert found["adds"].tolist() == pytest.approx([-0.4 / 3, 0.1 / 3])
    assert counted(reason_of, pairs.iloc[[1, 4]]).empty


def test_a_metric_that_is_no_sum_over_documents_has_no_reasons():
    with pytest.raises(SpecError, match="cannot be split"):
        reason("ab", "ba", {"a": 1}, "judged@5")


@pytest.mark.parametrize("name", SETS)
def test_on_whole_sets_the_reasons_agree_with_what_happened(name):
    data, run = loaded(name).dataset, loaded(name).runs[-1]
    measure = parse_measure("ndcg@10")
    sides = [RankedLabels(each, judge(each, data.qrels)) for each in (data.candidates, run.ranking)]
    found = reasons(*sides, measure)
    counts = found["reason"].value_counts()
    sparse = name != "helpcentre"
    relevant = data.qrels[data.qrels["label"] >= 1]
    ranked_pairs = data.candidates.frame().merge(relevant, on=["query_id", "doc_id"])
    nothing = ["no_relevant_candidate", "no_relevant_label", "nothing_judged"]
    without = found["reason"].isin(nothing)
    assert set(found["query_id"][~without]) == set(ranked_pairs["query_id"])
    means = found.groupby("reason")["delta"].mean()
    assert means["rescued"] > (0.3 if sparse else 0.2)
    assert means["buried"] < -0.2
    if sparse:
        assert counts["unjudged_lifted"] > 0, "labels are sparse in the real sets"
        assert "distractor_lifted" not in counts, "neither labels documents as not relevant"
    else:
        assert counts["distractor_lifted"] > 0, "the sample labels documents as not relevant"
    assert "truncated" not in counts, "these files do not say what the model read"
    assert counts.get("mixed", 0) < 0.25 * len(found)
    assert counts.get("near_tie", 0) < 0.1 * len(found)


DOCS = "abcdefghij"


@st.composite
def cases(draw):
    """Five queries, each in either ranking or not, with labels of its own."""
    sides, labels = ([], []), []
    for query in "vwxyz":
        for side in sides:
            docs = draw(st.lists(st.sampled_from(DOCS), unique=True))
            steps = draw(st.lists(st.sampled_from([0.0, 0.01, 1.0]), min_size=10, max_size=10))
            side += [
                (query, doc, -score)
                for doc, score in zip(docs, np.cumsum(steps)[: len(docs)], strict=True)
            ]
        own = draw(
            st.dictionaries(st.sampled_from(DOCS + "k"), st.sampled_from([-1, 0, 0.5, 1, 3]))
        )
        labels += [(query, doc, float(label)) for doc, label in own.items()]
    frames = [pd.DataFrame(side, columns=["q", "d", "s"]) for side in sides]
    rankings = [
        Ranking.from_columns(side["q"].astype("str"), side["d"].astype("str"), side["s"])
        for side in frames
    ]
    qrels = pd.DataFrame(labels, columns=["query_id", "doc_id", "label"])
    qrels = qrels.astype({"query_id": "str", "doc_id": "str", "label": float})
    return rankings, qrels


@pytest.mark.parametrize("name", QUALITY)
@settings(max_examples=10)
@given(
    case=cases(), k=st.sampled_from([None, 1, 3, 25]), judged_only=st.booleans(),
    ties=st.sampled_from(["as_ranked", "trec"]),
)  # fmt: skip
def test_every_labelled_query_has_one_reason_that_its_documents_bear_out(
    name, case, k, judged_only, ties
):
    rankings, qrels = case
    measure = parse_measure(name if k is None or not registry[name].has_cutoff else f"{name}@{k}")
    rules = Conventions(judged_only=judged_only, ties=ties)
    sides = [RankedLabels(each, judge(each, qrels, rules)) for each in rankings]
    found = reasons(*sides, measure, rules)
    assert list(found["query_id"]) == list(sides[0].judged.query_ids)
    assert set(found["reason"]) <= set(CODES)
    values = [evaluate(side.judged, [measure], rules).values[:, 0] for side in sides]
    delta = values[1] - values[0]
    known = ~np.isnan(delta) & (found["reason"] != "failed").to_numpy()
    np.testing.assert_allclose(found["delta"][known], delta[known], rtol=0, atol=1e-12)
    hurt = found["reason"].isin(["truncated", "buried", "distractor_lifted", "unjudged_lifted"])
    assert (found["delta"][hurt] < -0.005).all()
    assert (found["delta"][found["reason"] == "rescued"] > 0.005).all()
    still = found["reason"].isin(
        ["already_ideal", "idle", "no_relevant_candidate", "below_cutoff", "nothing_judged"]
    )
    assert (found["delta"][still].abs() <= 0.005 + 1e-9).all()
    for _, row in found.iterrows():
        own = split(*rankings, qrels, row["query_id"], measure, rules)
        if own.why_not or not np.isfinite(row["rank_before"]):
            continue
        counts = [each.kind for each in evidence(row, own, rules)]
        told = [counts.count(kind) for kind in ("worse", "unjudged", "other")]
        assert told == [row["worse"], row["unjudged"], row["other"]]
