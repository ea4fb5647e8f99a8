"""Why a query changed, as the pages say it."""

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from rankdash.analysis.labels.check import check
from rankdash.analysis.reasons.reasons import CODES, counted
from rankdash.analysis.reasons.statements import Statement
from rankdash.dataset import Dataset
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.store import Workspace
from rankdash.words.explanations import statement_text
from rankdash.words.reasons import reason_meanings, reason_words
from tests.sets import ROOT

DOCS = [f"d{n}" for n in range(12)]
LABELS = {
    "hurt": {"d0": 2, "d3": 0},
    "helped": {"d9": 1},
    "none": {"d1": 0},
    "lost": {"x": 1, "d1": 0},
    "open": {"x": 1},
    "below": {"d10": 2, "d1": 0},
}
SCORES = [40.0, 33.0, 30.0, 24.0, 21.0, 17.0, 14.0, 9.0, 8.0, 5.0, 4.0, 1.0]


SAVED = """
import streamlit as st
from rankdash.ui.queries import query_export
from rankdash.ui.sidebar import view
from rankdash.ui.state import address, pickers
pickers.restore()
study = view.study("queries")
st.code(query_export.html(study, study.challengers[0], "hurt", "en").decode())
"""


@pytest.fixture
def shop(workspace: Workspace) -> str:
    """One query hurt (d0 from 1 to 3), one helped, one without relevant labels, one whose relevant
    document was not retrieved, one of which nothing else is judged, one with its relevant document
    just below the cutoff."""
    queries = pd.DataFrame({"query_id": list(LABELS), "text": [f"about {q}" for q in LABELS]})
    documents = pd.DataFrame(
        {
            "doc_id": [*DOCS, "x"],
            "title": [*[""] * 12, "About X"],
            "text": [f"*text* of {n}" for n in [*DOCS, "x"]],
        }
    )
    labels = [(q, doc, float(n)) for q, own in LABELS.items() for doc, n in own.items()]
    qrels = pd.DataFrame(labels, columns=["query_id", "doc_id", "label"])
    first = Ranking.from_lists((query, DOCS, SCORES) for query in LABELS)
    dataset = Dataset("Shop", queries, documents, qrels, first)
    workspace.save_dataset(dataset, report_json=check(dataset, (), {}).to_json())
    lists = dict.fromkeys(LABELS, DOCS)
    lists["hurt"] = ["d3", "d1", "d0", *DOCS[4:], "d2"]
    lists["helped"] = ["d9", *(doc for doc in DOCS if doc != "d9")]
    ranking = Ranking.from_lists(
        (query, docs, SCORES[: len(docs)]) for query, docs in lists.items()
    )
    workspace.save_run(run_from_ranking("new", dataset.id, ranking, "new"))
    return dataset.id


def shown(app: AppTest, query: str, **params: str) -> str:
    for key, value in {"q": query, **params}.items():
        app.query_params[key] = value
    app.switch_page(str(ROOT / "pages" / "queries.py")).run()
    assert not app.exception
    return "\n".join(str(each.value) for kind in (app.markdown, app.caption) for each in kind)


def test_a_hurt_query_says_which_document_fell_and_what_passed_it(app, shop):
    said = shown(app, "hurt")
    assert {*said.splitlines()} >= {
        "Why: **irrelevant promoted**. Documents labelled as worse were promoted above a relevant "
        "one. The document: “\\*text\\* of d0”, label 2. Promoted above it: 1 labelled as worse "
        "and 1 without a label.",
        "- **-0.500** · 1 relevant document fell (1 → 3).",
    }
    assert "*text*" not in said.replace(r"\*text\*", ""), "documents are no Markdown"


def test_a_helped_query_says_what_was_lifted(app, shop):
    assert {*shown(app, "helped", k="5").splitlines()} >= {
        "Why: **relevant moved up**. Relevant documents moved up. The document: “\\*text\\* of "
        "d9”, label 1.",
        "- **+1.000** · 1 relevant document entered the top 5 (10 → 1).",
    }


def test_mrr_speaks_of_the_first_relevant_document(app, shop):
    assert {*shown(app, "hurt", metric="mrr").splitlines()} >= {
        "Why: **irrelevant promoted**. Documents labelled as worse were promoted above a relevant "
        "one. The first relevant document was at rank 1 and is at rank 3. Promoted above it: 1 "
        "labelled as worse and 1 without a label.",
        "- **-0.667** · The first relevant document was at rank 1 and is at rank 3.",
    }


def test_what_the_retriever_missed_is_not_the_rerankers(app, shop):
    lost, none = shown(app, "lost"), shown(app, "none")
    assert {*lost.splitlines()} >= {
        "Why: **no relevant document retrieved**. Neither list holds a relevant document: the "
        "retriever missed it. Its labels name 1 relevant document, but the first stage did not "
        "retrieve it."
    }
    assert {*none.splitlines()} >= {
        "Why: **no relevant label**. Its labels name no relevant document at all."
    }
    assert "retriever" not in none, "nobody lost what is not there"


def test_the_fault_is_said_with_its_ground(app, shop):
    assert {*shown(app, "hurt").splitlines()} >= {
        "Fault: **reranker**. NDCG@10 is 0.500 below a perfect ranking: reranker 0.369, labels "
        "0.131. A better order of the same documents would gain it."
    }
    assert {*shown(app, "lost").splitlines()} >= {
        "Fault: **retriever**. NDCG@10 is 1.000 below a perfect ranking. 1 relevant "
        "document was not retrieved."
    }
    assert {*shown(app, "none").splitlines()} >= {
        "Fault: **labels**. No document is labelled as relevant, so nothing certain can be said of "
        "the value."
    }


def test_nothing_certain_is_said_where_nothing_is_judged(app, shop):
    said = shown(app, "open")
    assert {*said.splitlines()} >= {
        "**NDCG@10 0.000 → 0.000** · nothing judged, so the value says nothing",
        "Why: **nothing judged**. No document that either side shows has a label, so a value of 0 "
        "says nothing.",
        "Fault: **labels**. No document that is shown has a label, so nothing certain can be said "
        "of the value.",
    }
    assert "retriever's" not in said


def test_relevant_documents_that_were_not_retrieved_are_shown_with_their_text(app, shop):
    said = shown(app, "lost")
    assert "**Relevant documents that were not retrieved**" in said.splitlines()
    (cards,) = [each.proto.body for each in app.get("html") if "document x" in each.proto.body]
    assert "</mark> X" in cards
    assert "*text* of x" in cards
    assert "● 1 of 2" in cards
    assert "Relevant documents that were not retrieved" not in shown(app, "hurt")


def test_a_relevant_document_just_below_the_cutoff_is_named(app, shop):
    said = shown(app, "below")
    assert {*said.splitlines()} >= {
        "Why: **relevant below the cutoff**. The value stayed the same while a relevant document "
        "stands below the cutoff, where it does not count. The nearest is “\\*text\\* of d10”, "
        "label 2: rank 11 → 11.",
        "**NDCG@10 0.000 → 0.000** · 0.000 same = · best possible 1.000 · 0% of the potential "
        "gain realised",
    }
    assert "nothing to win" not in said


def test_the_folded_tables_sum_to_the_change_and_name_what_was_lifted(app, shop):
    app.session_state["queries.contributions"] = True
    shown(app, "hurt")
    parts = next(
        each.value for each in app.dataframe if "delta" in each.value and "label" in each.value
    )
    assert parts["delta"].iloc[:-1].sum() == pytest.approx(parts["delta"].iloc[-1])
    above = next(each.value for each in app.dataframe if "kind" in each.value)
    assert above["rank_after"].tolist() == [1, 2]
    assert above["kind"].tolist() == ["labelled as worse", "without a label"]


def test_in_chinese_too(app, shop):
    said = shown(app, "hurt", lang="zh")
    assert {*said.splitlines()} >= {
        "原因：**不相关文档被提前**。"
        "标注更差的文档被提前到相关文档之上。该文档：“\\*text\\* of d0”，标注 2。"
        "被提前到它之上的有：1 篇标注更差和 1 篇未标注。",
        "- **-0.500** · 1 篇相关文档下降（1 → 3）。",
    }


def test_every_reason_has_words_and_a_meaning(app):
    assert set(reason_words()) == set(reason_meanings()) == set(CODES)
    assert len(set(reason_words().values())) == len(CODES)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Statement("entered", ("a", "b"), ((14, 3), (31, 9)), 0.21),
         "**+0.210** · 2 relevant documents entered the top 10 (14 → 3 and 31 → 9)."),
        (Statement("left", ("a",), ((2, float("nan")),), -0.5),
         "**-0.500** · 1 relevant document dropped out of the top 10 (2 → not ranked)."),
        (Statement("unjudged_above", ("a", "b"), ((5, 1), (6, 2)), -0.3),
         "2 documents without a label were promoted above relevant ones (to 1 and 2). Without "
         "them the value would be 0.300 higher."),
        (Statement("rose", tuple("abcdefg"), tuple((n + 1, n) for n in range(1, 8)), 0.1),
         "**+0.100** · 7 relevant documents rose (2 → 1, 3 → 2, 4 → 3, 5 → 4, and 3 more)."),
    ],
)  # fmt: skip
def test_statements_in_words(said, words):
    assert statement_text(said, 10) == words


def test_the_overview_counts_reasons_and_what_they_add_to_the_mean(app, shop):
    app.run()
    assert not app.exception
    table = next(each.value for each in app.dataframe if "adds" in each.value.columns)
    rows = table.set_index("reason")
    assert rows.loc["relevant moved up", "queries"] == 1
    assert rows.loc["irrelevant promoted", "mean"] == pytest.approx(-0.5)
    # One has no relevant label; of the other the document was not retrieved.
    assert "no relevant label" not in rows.index, "no mean counts it"
    assert rows.loc["no relevant document retrieved", "queries"] == 1
    assert list(rows.index) == [
        reason_words()[code] for code in CODES if reason_words()[code] in rows.index
    ]


def test_what_reasons_add_sums_to_the_mean_change():
    codes = ["buried", "rescued", "rescued", "failed", "no_relevant_candidate"]
    reason = pd.Series(codes, index=list("abcde"))
    pairs = pd.DataFrame({"query_id": list("edcba"), "delta": [None, None, 0.2, 0.5, -0.4]})
    found = counted(reason, pairs.astype({"delta": float}))
    assert list(found.index) == ["buried", "rescued"], "the others are in no mean"
    assert found["queries"].sum() == 3
    assert found["adds"].sum() == pytest.approx(0.1)
    assert found.loc["rescued"].tolist() == pytest.approx([2, 0.35, 0.7 / 3])


def test_a_saved_query_says_what_its_reason_rests_on(workspace, shop):
    app = AppTest.from_string(SAVED, default_timeout=300)
    app.query_params["data"] = shop
    app.query_params["system"] = workspace.runs(shop)[0].id
    app.run()
    assert not app.exception
    said = app.code[0].value
    assert "<strong>irrelevant promoted</strong> · Documents labelled as worse" in said
    assert (
        "The document: “*text* of d0”, label 2. Promoted above it: 1 labelled as worse and 1"
        in said
    )
