"""Texts of one query: its documents, the ends of its lists, and the cause of its change."""

import math
import re
import unicodedata
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.errors import DataError
from rankdash.core.base.i18n import (
    REASON_TEMPLATES,
    kind_of_failure,
    problem_text,
    reason_text,
    refused_text,
    speaking,
)
from rankdash.core.base.text import html_safe
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, parse_measure
from rankdash.core.rerankers.base import Request, Scored
from rankdash.core.runs.scoring import ask
from rankdash.core.study.reasons.contributions import Split, Statement
from rankdash.core.study.reasons.reasons import FAULTS, LABELS_SAY_TOO_LITTLE, LISTED, Fault, fault
from rankdash.core.study.study import Study
from rankdash.core.study.systems import System
from rankdash.core.words import queries
from rankdash.core.words.verdicts import reason_meanings, reason_words
from rankdash.features.queries.study import Blame, Missed
from rankdash.features.queries.words import (
    evidence_text,
    fault_words,
    first_text,
    ground,
    place,
    reasoning,
    statement_text,
    without_result,
)
from tests.roles import PACKAGE
from tests.study.best_or_worst import best_or_worst

nan = math.nan


def test_a_statement_says_its_share_first_and_a_cause_what_it_cost(texts):
    def said(kind: str, *moves: tuple[float, float], k: int | None = 5) -> str:
        return statement_text(Statement(kind, ("",) * len(moves), moves, -0.25), k)

    kinds = ["entered", "left", "rose", "fell", "held", "first", "rest"]
    gone, ways = (7.0, nan), {"one": 1, "two": 2}
    cases = {
        f"{kind}, {name}": said(kind, *[gone] * n) for kind in kinds for name, n in ways.items()
    }
    del cases["first, two"]
    cases |= {f"{kind}, of whole lists": said(kind, gone, k=None) for kind in ("entered", "left")}
    for kind in ("unjudged_above", "worse_above"):
        cases[f"{kind}, one"] = said(kind, (nan, 2.0))
        cases[f"{kind}, two"] = said(kind, (4.0, 1.0), (nan, 2.0))
    for n in (4, 5, 6):
        moves = [(float(at), at + 1.0) for at in range(1, n + 1)]
        cases[f"{n} of which five are named, or four and the rest counted"] = said("fell", *moves)
    cases["the first one moved"] = first_text(3.0, 1.0)
    cases["a first one appeared"] = first_text(nan, 2.0)
    texts("statements", cases)


def test_what_a_reason_rests_on_is_the_document_and_what_was_promoted_above_it(texts):
    def said(reason: str, spec: str = "ndcg@5", after: float = 7.0, **more: object) -> list[str]:
        usual = {"share": -0.5, "delta": -0.5, "counts": (1, 2, 0)} | more
        row = {"reason": reason, "label": 2.0, "rank_before": 1.0, "rank_after": after}
        row |= {"share": usual["share"], "margin": 0.004, "read": 100, "full": 1400}
        row |= dict(zip(("worse", "unjudged", "other"), usual["counts"], strict=True))
        found = Split("q", parse_measure(spec), 1.0, 1 + usual["delta"], pd.DataFrame())
        return evidence_text(pd.Series(row), found, "A")

    part = {"share": 0.25, "delta": 0.75}
    texts(
        "evidence",
        {
            "within k": said("buried", after=5.0),
            "below k": said("buried", after=6.0),
            "no longer ranked": said("buried", after=nan),
            "no k": said("buried", "ndcg", after=6.0),
            "below relevant ones": said("buried", counts=(0, 0, 3)),
            "below none": said("buried", counts=(0, 0, 0)),
            "a part of the change": said("rescued", **part),
            "of a metric that looks at the first one": said("rescued", "mrr@5", **part),
            "no document": said("idle", share=nan),
            "a near-tie": said("near_tie"),
            "a text cut": said("truncated"),
        },
    )


@pytest.fixture(scope="module")
def study() -> Study:
    """Return a study; each query's documents with label 1 are d4 and d5."""
    return best_or_worst(6, "ndcg@2", bool, bool, relevant=2)


def lacking(study: Study, *systems: str) -> Study:
    """Return the study without query q0 in the rankings of these systems."""
    made = {}
    for system in systems:
        ranking = study.ranking(system).without(["q0"])
        made[system] = System(system, study.name(system), ranking=ranking)
    return replace(study, systems={**study.systems, **made})


def test_the_reason_of_a_query_says_what_it_means_and_names_its_documents(study, texts):
    columns = ["doc_id", "label", "rank_before", "rank_after"]
    (challenger,) = study.challengers
    run = study.run(challenger)

    def said(of: Study, reason: str, documents=(), doc_id: str | None = None) -> list[str]:
        row = {"reason": reason, "doc_id": doc_id, "share": nan}
        documents = pd.DataFrame(documents, columns=columns)
        found = Split("q0", parse_measure("ndcg@2"), 0.0, 0.0, documents)
        meaning, *rest = reasoning(of, challenger, pd.Series(row, name="q0"), found, str.upper)
        assert meaning == reason_meanings()[reason]
        return rest

    lost = run.queries.assign(state="failed", reason="time-out")
    lost_run = replace(run, ranking=Ranking.from_lists([]), queries=lost)
    failed = System(challenger, "run", load=lambda: lost_run)
    below = {
        "the best label, then the nearest": [
            ("d1", 1.0, 3.0, 9.0), ("d2", 2.0, 9.0, 8.0), ("d3", 2.0, nan, 7.0)],
        # A document within the cutoff in both systems, or not relevant, is not below it.
        "below the cutoff on one side is enough": [
            ("d1", 3.0, 1.0, 2.0), ("d2", 1.0, 2.0, 3.0), ("d3", 0.0, 3.0, 3.0)],
        "or on the other": [("d1", 3.0, 2.0, 1.0), ("d2", 1.0, 3.0, 2.0)],
        "the nearest of equals": [("d1", 2.0, 9.0, 3.0), ("d2", 2.0, 4.0, 5.0)],
    }  # fmt: skip
    texts(
        "reasoning",
        {
            "the baseline lacks it": said(lacking(study, study.baseline), "missing"),
            "both lack it": said(lacking(study, study.baseline, challenger), "missing"),
            "the challenger failed": said(
                replace(study, systems={**study.systems, challenger: failed}), "failed"),
            "skipped": without_result("A", "skipped"),
            "labels from the threshold on": said(study, "no_relevant_candidate"),
            "labels below it": said(
                replace(study, conventions=Conventions(threshold=1.5)), "no_relevant_candidate"),
        }
        | {name: said(study, "below_cutoff", documents) for name, documents in below.items()}
        | {"reasons": [(word, reason_meanings()[code]) for code, word in reason_words().items()]},
    )  # fmt: skip


def test_every_reason_and_every_fault_has_its_own_word():
    for texts in (reason_words(), reason_meanings()):
        assert len({*texts.values()}) == len(texts) == len(LISTED)
    assert set(fault_words()) == set(FAULTS)


NOWHERE, FIRST, THIRD = Missed("a"), Missed("b", "first", 1), Missed("c", "dense", 3)


def test_a_fault_splits_the_loss_and_says_what_the_largest_part_comes_from(texts):
    lost = (0.2, 0.2, 0.4, 1.0)
    cases = {
        "not retrieved": (fault(*lost), (NOWHERE, NOWHERE), 0),
        "another system has it": (fault(*lost), (FIRST,), 0),
        "others have some": (fault(*lost), (THIRD, NOWHERE, FIRST), 0),
        "below the depth": (fault(*lost), (), 0),
        "a better order": (fault(0.2, 0.2, 1.0, 1.0), (), 0),
        "labels": (fault(0.2, 0.9, 1.0, 1.0), (), 1),
        "two labels": (fault(0.2, 0.9, 1.0, 1.0), (), 2),
        "a part that would be written as nothing": (fault(0.2, 0.2, 0.9996, 1.0), (NOWHERE,), 0),
        "a part that is just written": (fault(0.2, 0.2, 0.9994, 1.0), (NOWHERE,), 0),
        "mixed": (fault(0.2, 0.5, 0.7, 1.0), (NOWHERE,), 3),
        "nothing is lost": (fault(1.0, 1.0, 1.0, 1.0), (), 0),
    }

    def said(found: Fault, *given: object, relevant: int = 3) -> str:
        return ground(Blame(found, relevant, *given), "NDCG@10", str.upper)

    texts(
        "faults",
        {name: said(*given) for name, given in cases.items()}
        | {
            "nothing is labelled": said(LABELS_SAY_TOO_LITTLE, (), 0, relevant=0),
            "nothing that is shown is": said(LABELS_SAY_TOO_LITTLE, (NOWHERE,), 0, relevant=1),
            "where it is": [place(each, str.upper) for each in (NOWHERE, FIRST)],
            "words": list(fault_words().values()),
        },
    )


def test_queries_are_counted_and_a_label_of_0_is_a_label(texts):
    counts = {"failed": 2, "missing": 1}
    labels = [(each, queries.grade(each, 3.0), queries.label_words(each)) for each in (2.0, 0.0)]
    words = [queries.outcome_words(), queries.state_words(), queries.count_words()]
    texts(
        "queries",
        {
            "excluded": [queries.excluded_text(counts), *queries.excluded(counts)],
            "one excluded": queries.excluded_text({"failed": 1}),
            "none excluded": queries.excluded_text({}),
            "labels": [*labels, queries.grade(nan, 3.0), queries.label_words(None)],
            "judged": [queries.judged_title(None), queries.judged_title(5)],
            "metrics": [queries.metric_title(spec) for spec in ("ndcg@10", "map-graded")],
            "counts": [queries.query_count(n) for n in (0, 1, 2, 2000)],
            "words": [(key, word) for each in words for key, word in each.items()],
        },
    )


def test_a_quote_in_a_name_ends_no_attribute_and_what_cannot_be_seen_is_dropped():
    safe = html_safe("<a title='x' class=\"y\">&\x00\u202e\t")
    assert safe == "&lt;a title=&#x27;x&#x27; class=&quot;y&quot;&gt;&amp;\t"
    assert html_safe("a\tb") == "a\tb"
    # Left-to-right and right-to-left marks, embeddings, overrides and isolates.
    turning = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    signs = [chr(code) for code in range(0x3000) if unicodedata.bidirectional(chr(code)) in turning]
    assert html_safe("".join(["a", *signs, "\u200e\u200f", "b"])) == "ab" and len(signs) == 9


REASONS = {
    "no details": "no candidates",
    "a name": "document 'd 7' has no text",
    "a full stop": "The ranking does not contain this query.",
    "counts": "Documents without a finite score from the model: 2 of 5.",
    "as it was worded before": "The model gave no finite score for 2 of 5 documents.",
    "within another": "requests that failed: 1 of 1: time-out: no answer within 1 s.",
    "within two": "second stage: 2 of 9 requests failed: time-out: no answer within 30 seconds.",
    "attempts at the end": "there is no connection (refused) (after 3 attempts)",
    "an index": "documents with a score: 3 of 5: index 7 comes twice.",
    "a quote": "answers that could not be read: 1 of 1: the model said 'maybe'.",
    "brackets": "the service answered 503: over (and out)",
    "a capital letter": "Time-out: no answer within 1 s.",
    "of a run": "MiniLM: not in the sample",
    "of a run, within others": (
        "Fast: 2 of 9 requests failed: there is no connection (refused) (after 3 attempts)"
    ),
}
UNKNOWN = [
    *("KeyError: 'x'", "It is broken.", "", "{n}", "the service is"),
    # A number in the text of a service or model is not a count.
    *("index one comes twice", "the service answered badly: no", "the service said nothing"),
    "first stage: " * 100_000 + "no answer in time",
]


def test_a_known_reason_is_said_in_the_language_in_force_and_any_other_as_it_is(texts):
    kinds = ["rate_limit", "server_error", "time_out", "no_connection", "refused", "unreadable"]
    kinds += ["no_text", "elsewhere", "not_asked", "any other"]
    error = DataError("It failed: {reason}", remedy="Mend it.", reason=REASONS["counts"])
    texts(
        "failures",
        {name: reason_text(reason) for name, reason in REASONS.items()}
        | {"kinds": [kind_of_failure(each) for each in kinds]}
        | {
            "an error": problem_text(error),
            "a rate limit": [refused_text(1, 1), refused_text(300, 1200)],
        },
    )
    assert [reason_text(reason) for reason in UNKNOWN] == UNKNOWN
    with speaking("en"):
        assert [reason_text(each) for each in REASONS.values()] == [
            each.rstrip(".") for each in REASONS.values()
        ]


def test_what_the_runner_says_of_answers_it_cannot_use_is_known():
    class Fixed:
        def score(self, requests):
            return self.given

    request, reranker = Request("q", "ask", ["a", "b"], ["x", "y"]), Fixed()
    one, none, two = Scored(np.zeros(1)), Scored(np.full(2, nan)), Scored(np.ones(2))
    for reranker.given in ([one], [none], [], [two] * 2):
        (answer,) = ask(reranker, [request], int, int).answers
        with speaking("zh"):
            assert answer.error and reason_text(answer.error) != answer.error


def test_every_template_is_still_said_somewhere():
    """Otherwise a changed sentence would not be translated."""
    core = [
        PACKAGE / "core" / each
        for each in ("data", "rerankers", "runs", "readers", "search", "workspace")
    ]
    folders = [*core, PACKAGE / "features" / "judge", PACKAGE / "features" / "queries"]
    source = "".join(file.read_text() for each in folders for file in each.rglob("*.py"))
    gone = [
        template
        for template in REASON_TEMPLATES
        if not all(
            piece.strip(" (),") in source
            for piece in re.split(r"\{\w+\}|(?<=stage )\d|1 query", template)
        )
    ]
    assert gone == []
