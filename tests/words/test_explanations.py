"""What happened to one query, in sentences: which one is said, of which documents, where lists end
and where numbers have to be named."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from rankdash.analysis.reasons.contributions import Split
from rankdash.analysis.reasons.reasons import CODES
from rankdash.analysis.reasons.statements import Statement
from rankdash.metrics import parse_measure
from rankdash.words.explanations import (
    evidence_text,
    first_text,
    reasoning,
    statement_text,
    without_result,
)
from rankdash.words.reasons import reason_meanings, reason_words

nan = math.nan


def said(kind, *moves, amount=-0.25, k=5):
    return statement_text(Statement(kind, ("",) * len(moves), moves, amount), k)


@pytest.mark.parametrize(
    ("kind", "k", "sentence"),
    [
        ("entered", 5, "1 relevant document entered the top 5 (7 → not ranked)."),
        ("entered", None, "1 relevant document is new in the list (7 → not ranked)."),
        ("left", 5, "1 relevant document dropped out of the top 5 (7 → not ranked)."),
        ("left", None, "1 relevant document is no longer in the list (7 → not ranked)."),
        ("rose", 5, "1 relevant document rose (7 → not ranked)."),
        ("fell", 5, "1 relevant document fell (7 → not ranked)."),
        ("held", 5, "1 relevant document kept its rank and counts differently for what is above "
                    "it."),
        ("first", 5, "The list no longer has a relevant document; one was at rank 7."),
        ("rest", 5, "1 further relevant document counts differently."),
    ],
)  # fmt: skip
def test_a_statement_says_its_share_first(kind, k, sentence):
    assert said(kind, (7.0, nan), k=k) == f"**-0.250** · {sentence}"


@pytest.mark.parametrize(
    ("kind", "what"),
    [("unjudged_above", "without a label was"), ("worse_above", "labelled as not relevant was")],
)
def test_a_cause_is_no_share_and_says_how_much_higher_the_value_would_be(kind, what):
    assert said(kind, (nan, 2.0)) == (
        f"1 document {what} promoted above relevant ones (to 2). Without it the value would be "
        "0.250 higher."
    )
    assert "(to 1 and 2). Without them the value would be" in said(kind, (4.0, 1.0), (nan, 2.0))


@pytest.mark.parametrize(
    ("count", "listed"),
    [
        (4, "1 → 2, 2 → 3, 3 → 4, and 4 → 5"),
        (5, "1 → 2, 2 → 3, 3 → 4, 4 → 5, and 5 → 6"),
        (6, "1 → 2, 2 → 3, 3 → 4, 4 → 5, and 2 more"),
    ],
)
def test_one_more_is_named_and_two_more_are_counted(count, listed):
    moves = [(float(place), place + 1.0) for place in range(1, count + 1)]
    assert said("fell", *moves) == f"**-0.250** · {count} relevant documents fell ({listed})."


def test_where_the_first_relevant_document_was_and_is():
    assert first_text(3.0, 1.0) == ("The first relevant document was at rank 3 and is at rank 1.")
    assert first_text(nan, 2.0) == "A first relevant document appeared, at rank 2."


def evidence(reason, spec="ndcg@5", after=7.0, share=-0.5, delta=-0.5, counts=(1, 2, 0)):
    row = pd.Series(
        {"reason": reason, "share": share, "label": 2.0, "rank_before": 1.0, "rank_after": after}
        | {"margin": 0.004, "read": 100, "full": 1400}
        | dict(zip(("worse", "unjudged", "other"), counts, strict=True))
    )
    return evidence_text(row, Split("q", parse_measure(spec), 1.0, 1 + delta, pd.DataFrame()), "A")


@pytest.mark.parametrize(
    ("spec", "after", "start"),
    [
        ("ndcg@5", 5.0, "Promoted above it: "),
        ("ndcg@5", 6.0, "In the top 5, promoted above it: "),
        ("ndcg@5", nan, "In the top 5, promoted above it: "),
        ("ndcg", 6.0, "Promoted above it: "),
    ],
)
def test_what_was_promoted_is_that_of_the_first_k_where_the_document_left_them(spec, after, start):
    own = "The document: “A”, label 2."
    assert evidence("buried", spec, after) == [
        own, f"{start}1 labelled as worse and 2 without a label."
    ]  # fmt: skip
    assert evidence("buried", spec, after, counts=(0, 0, 3)) == [own, f"{start}3 as relevant."]
    assert evidence("buried", spec, after, counts=(0, 0, 0)) == [own]


def test_a_document_that_is_not_the_whole_change_is_named_with_its_ranks_and_share():
    assert evidence("rescued", share=0.25, delta=0.75) == [
        "The largest contribution: “A”, label 2: rank 1 → 7, +0.250."
    ]
    assert evidence("rescued", "mrr@5", share=0.25, delta=0.75) == [first_text(1.0, 7.0)]
    assert evidence("idle", share=nan) == []


def test_what_a_near_tie_and_a_cut_text_rest_on_is_said_in_numbers():
    assert evidence("near_tie")[1:] == [
        "Its score and the one now at its former rank differ by 0.4% of the range of scores in "
        "the list."
    ]
    assert evidence("truncated")[1:] == [
        "The model read 100 of its 1,400 tokens.",
        "In the top 5, promoted above it: 1 labelled as worse and 2 without a label.",
    ]


def of_study(reason, documents=(), spec="ndcg@2", ranked=("a", "b"), labels=(), out=None):
    """What is said of query q, where the ranking `ranked` has it."""
    columns = ["doc_id", "label", "rank_before", "rank_after"]
    study = SimpleNamespace(
        baseline="a",
        dataset_id="d",
        once=lambda _name, make: make(),
        conventions=SimpleNamespace(threshold=1.0),
        dataset=SimpleNamespace(
            qrels=pd.DataFrame(labels, columns=["query_id", "doc_id", "label"]),
            names_of=lambda ids: {each: f"text of {each}" for each in ids},
        ),
        name=str.upper,
        excluded=lambda system: out or {},
        ranking=lambda system: SimpleNamespace(positions={"q": 0} if system in ranked else {}),
    )
    row = pd.Series({"reason": reason, "doc_id": None}, name="q")
    found = Split("q", parse_measure(spec), 0.0, 0.0, pd.DataFrame(documents, columns=columns))
    meaning, *rest = reasoning(study, "b", row, found, str.upper)
    assert meaning == reason_meanings()[reason]
    return rest


@pytest.mark.parametrize(
    ("grades", "said"),
    [
        ((1.0, 0.5, 2.0), "2 relevant documents, but the first stage did not retrieve them."),
        ((1.0, 0.5, 0.0), "1 relevant document, but the first stage did not retrieve it."),
    ],
)
def test_what_was_not_retrieved_is_counted_from_the_threshold_on(grades, said):
    labels = [("q", doc, grade) for doc, grade in zip("xyz", grades, strict=True)]
    labels.append(("other", "x", 3.0))
    assert of_study("no_relevant_candidate", labels=labels) == [f"Its labels name {said}"]


def test_each_side_without_a_result_is_named():
    assert of_study("missing", ranked=("b",)) == ["A does not rank it."]
    assert of_study("missing", ranked=()) == ["A does not rank it.", "B does not rank it."]
    assert of_study("failed", out={"q": "failed"}) == ["A failed on it.", "B failed on it."]
    assert without_result("A", "skipped") == "A was not run on it."


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        # The best label, then the nearest on either side.
        ([("x", 1.0, 3.0, 9.0), ("y", 2.0, 9.0, 8.0), ("z", 2.0, nan, 7.0)],
         ("Z", 2, "not ranked", 7)),
        # Below the cutoff on one side is enough; within it on both, or of no worth, is not below.
        ([("x", 3.0, 1.0, 2.0), ("y", 1.0, 2.0, 3.0), ("z", 0.0, 3.0, 3.0)], ("Y", 1, 2, 3)),
        ([("x", 3.0, 2.0, 1.0), ("y", 1.0, 3.0, 2.0)], ("Y", 1, 3, 2)),
        ([("x", 2.0, 9.0, 3.0), ("y", 2.0, 4.0, 5.0)], ("X", 2, 9, 3)),
    ],
)  # fmt: skip
def test_the_best_document_below_the_cutoff_is_named_the_nearest_of_equals(documents, told):
    name, label, before, after = told
    assert of_study("below_cutoff", documents) == [
        f"The nearest is “TEXT OF {name}”, label {label}: rank {before} → {after}."
    ]


def test_every_reason_has_a_word_and_a_meaning():
    assert set(reason_words()) == set(reason_meanings()) == set(CODES)
    assert len(set(reason_words().values())) == len(set(reason_meanings().values())) == len(CODES)
