"""The page on rank shifts: it counts what moved, and says when reranking may be skipped."""

import numpy as np
import pandas as pd
import pytest

from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study import study
from tests.stored import keep_lists, keep_rows
from tests.ui.test_pages import in_address, open_page, texts

QUERIES, DOCS = 60, 6


def said(app) -> str:
    return "\n".join([texts(app), *(str(each.value) for each in app.warning)])


@pytest.fixture
def decided(workspace) -> str:
    """A set whose first stage is right, and far ahead of its second, on every other query; the run
    "better" is right on all, and took 10 ms on each."""
    rows, lists = [], []
    for q in range(QUERIES):
        sure = q % 2 == 0
        right = 0 if sure else DOCS - 1
        # With a large gap after the first document, or nearly none.
        scores = [100.0 if sure else 50.1 + q / 100, *(50.0 - 10 * d for d in range(DOCS - 1))]
        rows += [f"q{q},find {q},d{d},text {d},{int(d == right)},{scores[d]}" for d in range(DOCS)]
        order = [right, *(d for d in range(DOCS) if d != right)]
        lists.append((f"q{q}", [f"d{d}" for d in order], np.arange(DOCS, 0.0, -1.0)))
    head = "query_id,query,doc_id,document,label,score\n"
    dataset_id = keep_rows(workspace, head + "\n".join(rows), "Sure")
    run = run_from_ranking("better", dataset_id, Ranking.from_lists(lists), "better")
    frame = run.queries.assign(latency_ms=10.0, pairs=float(DOCS))
    fields = {name: getattr(run, name) for name in type(run).__dataclass_fields__}
    workspace.save_run(type(run)(**{**fields, "queries": frame}))
    return dataset_id


def test_without_a_second_ranking_the_page_says_what_to_do(app, workspace, stored):
    workspace.delete_run(workspace.runs(stored)[0].id)
    assert {*said(open_page(app, "rank_shifts")).splitlines()} >= {
        "There is only the baseline so far. Run a reranker to see what it changes."
    }


def test_it_says_where_relevant_documents_went_and_what_is_left_out(app, stored):
    words = {*said(open_page(app, "rank_shifts", k="1")).splitlines()}
    # Relevant documents stand at ranks 1 to 4 in turn; the run, which fails on one, puts all first.
    assert words >= {
        "Of 15 relevant documents, **4** were in the top 1 before and **15** are after. 11 came "
        "in, 0 dropped out, 4 stayed.",
        "1 query has only one of the two rankings and is excluded.",
    }


def test_too_few_queries_choose_no_rule(app, stored):
    words = said(open_page(app, "rank_shifts"))
    assert {*words.splitlines()} >= {
        "Too few queries to choose a rule: 15. At least 20 are needed."
    }
    assert "nan" not in words.lower()


def test_a_sure_first_stage_can_skip_the_reranker(app, decided):
    saves = (
        "Saves **50%** of the calls and 50% of the query–document pairs. Reranking takes 10 → "
        "**5 ms** on average and 10 → 10 ms at p95, over 60 timed queries."
    )
    assert {*said(open_page(app, "rank_shifts", k="3")).splitlines()} >= {
        "**50% of the queries can skip reranking**: those with a margin of at least 0.556. On "
        "held-out queries NDCG@3 changes by 0.000 (95%: 0.000 … 0.000); the acceptable loss is "
        "0.010.",
        "The threshold was chosen on all queries. Its effect was estimated by 5-fold "
        "cross-validation (seed 20261121), which skipped 50% of the held-out queries.",
        saves,
    }
    app.number_input(key="address.paid").set_value(2.0).run()
    assert {*said(app).splitlines()} >= {f"{saves} 1,000 searches cost 1.0000 instead of 2.0000."}


@pytest.mark.parametrize(
    ("places", "loss", "answer"),
    [
        (
            [(2, 1)] * 20,
            "0.01",
            "**Rerank everything.** Skipping even a few of the queries with the largest score "
            "margin may lower NDCG@20 by more than 0.010.",
        ),
        (
            [(2, 1)] * 10 + [(1, 2)] * 10,
            "0.01",
            "**No safe rule, and no proven gain.** Skipping even a few of the queries with the "
            "largest score margin may lower NDCG@20 by more than 0.008; but it is not proven "
            "either that turned raises it.",
        ),
        (
            [(12, 11)] * 20,
            "0.05",
            "**The gain of turned is within the acceptable loss.** Without it NDCG@20 changes by "
            "-0.009 (95%: -0.009 … -0.009); the acceptable loss is 0.014.",
        ),
        (
            [(12, 11), (11, 12)] * 10,
            "0.05",
            "**No query needs turned.** Without it NDCG@20 changes by 0.000 (95%: -0.004 … "
            "+0.004); the acceptable loss is 0.014.",
        ),
    ],
)
def test_where_all_or_none_can_be_skipped_it_says_whether_a_gain_is_proven(
    app, workspace, places, loss, answer
):
    """places: of the relevant document before and after, the query decided most first."""
    rows, lists = [], []
    for q, (before, after) in enumerate(places):
        documents = [f"d{d}" for d in range(12)]
        right = documents.pop(before - 1)
        rows += [
            f"q{q},find {q},d{d},text {d},{int(d == before - 1)},{50 - d * d if d else 200 - 4 * q}"
            for d in range(12)
        ]
        documents.insert(after - 1, right)
        lists.append((f"q{q}", documents, np.arange(12, 0.0, -1.0)))
    head = "query_id,query,doc_id,document,label,score\n"
    keep_lists(workspace, keep_rows(workspace, head + "\n".join(rows), "Even"), lists, "turned")
    words = said(open_page(app, "rank_shifts", loss=loss, k="20")).splitlines()
    assert [line for line in words if line.startswith("**") and "." in line] == [answer]


def test_a_rule_that_does_not_hold_elsewhere_promises_no_saving(app, decided, monkeypatch):
    from rankdash.analysis.ranks.skipping import Skipping

    monkeypatch.setattr(Skipping, "holds", False)
    words = said(open_page(app, "rank_shifts", k="3"))
    assert {*words.splitlines()} >= {
        "**No safe rule.** Skipping 50% of the queries (margin of at least 0.556) looks harmless "
        "here, but on held-out queries NDCG@3 changes by 0.000 (95%: 0.000 … 0.000), and the "
        "acceptable loss is 0.010."
    }
    assert "Saves" not in words


def test_the_margin_and_the_tolerance_are_in_the_address(app, decided):
    open_page(app, "rank_shifts", margin="edge", loss="0.05", documents="all", k="3")
    assert in_address(app, "margin") == ["edge"]
    assert in_address(app, "loss") == ["0.05"]
    assert in_address(app, "documents") == ["all"]
    open_page(app, "rank_shifts", margin="edge", k="20")
    assert "60 queries have a list too short for this margin" in said(app)


def test_the_first_stage_itself_cannot_be_skipped(app, decided, workspace):
    run = workspace.runs(decided)[0].id
    words = said(open_page(app, "rank_shifts", base=run, system="first-stage"))
    assert {*words.splitlines()} >= {
        "Where reranking is skipped, the first stage is shown. Choose a reranker."
    }


@pytest.mark.parametrize("part", ["counts", "by_query", "farthest", "thresholds", "near"])
def test_every_folded_part_is_a_table_that_is_made_when_opened(app, decided, part):
    open_page(app, "rank_shifts")
    closed = len(app.dataframe)
    app.session_state[f"shifts.{part}"] = True
    app.run()
    assert not app.exception
    assert len(app.dataframe) > closed


def test_tables_hold_the_numbers_of_the_charts(app, decided):
    for part in ("counts", "by_query", "farthest", "near"):
        app.session_state[f"shifts.{part}"] = True
    open_page(app, "rank_shifts", k="1")
    counts, bands, sizes, agreement, by_query, farthest, near, told = (
        each.value for each in app.dataframe
    )
    assert counts.loc["6–10", "1"] == QUERIES / 2
    assert bands["came in from these ranks"].sum() == QUERIES / 2
    assert sizes["relevant"].sum() == QUERIES
    assert agreement["queries"].tolist() == [QUERIES]
    assert by_query["rbo"].is_monotonic_increasing
    assert len(by_query) == QUERIES
    assert (farthest["up"] == DOCS - 1).all()
    assert set(near["system"]) == {"First stage", "better"}
    assert told["a guide to which queries to skip"].iloc[0] == "yes"
    assert isinstance(told, pd.DataFrame)


def test_rankings_without_a_common_query_have_no_shifts(app, stored, workspace):
    lists = Ranking.from_lists([("q1", ["d1", "d0"], [2.0, 1.0])])
    other = Ranking.from_lists([("q2", ["d1", "d0"], [2.0, 1.0])])
    for name, ranking in (("one", lists), ("two", other)):
        workspace.save_run(run_from_ranking(name, stored, ranking, name))
    ids = {row.name: row.id for row in workspace.runs(stored)}
    words = said(open_page(app, "rank_shifts", base=ids["one"], system=ids["two"]))
    assert {*words.splitlines()} >= {"No query in common"}


def test_chinese_sentences_follow_each_other_without_a_space(app, stored):
    words = said(open_page(app, "rank_shifts", k="1", lang="zh"))
    assert {*words.splitlines()} >= {
        "15 篇相关文档中，原先有 **4** 篇在前 1 名，现在有 **15** 篇。"
        "11 篇进入，0 篇跌出，4 篇留下。"
    }
    assert "。 " not in words


SENTENCES = {
    "relevant": "It counts relevant documents only, so it needs labels that name some.",
    "skipping": "This needs labels: only they show what skipping reranking costs.",
}


@pytest.fixture
def turned(app, workspace):
    """Opens the page of three queries whose four documents a run turns round. label: of the first
    document; the others get 0, and none where it is empty."""

    def opened(label: str, **chosen: str) -> set[str]:
        labels = [label, *(["0" if label else ""] * 3)]
        rows = [f"q{q},find {q},d{d},text {d},{labels[d]},{9 - d}" for q in range(3)
                for d in range(4)]  # fmt: skip
        head = "query_id,query,doc_id,document,label,score\n"
        dataset_id = keep_rows(workspace, head + "\n".join(rows), "Turned")
        lists = [(f"q{q}", ["d3", "d2", "d1", "d0"], [4.0, 3.0, 2.0, 1.0]) for q in range(3)]
        keep_lists(workspace, dataset_id, lists, "turned")
        app.session_state["shifts.counts"] = True
        return {*said(open_page(app, "rank_shifts", **chosen)).splitlines()}

    return opened


NEED_LABELS = {
    *("address.documents", "address.margin", "address.loss", "address.paid", "shifts.flow"),
    "Relevant documents that moved farthest",
}


def offered(app) -> set[str]:
    """Those of `NEED_LABELS` that are on the page: keys of choices and charts, a folded part."""
    keys = {each.key for kind in ("button_group", "number_input") for each in app.get(kind)}
    charts = {each.proto.id.rsplit("-", 1)[-1] for each in app.get("plotly_chart")}
    folds = {each.label for each in app.get("expander")}
    return (keys | charts | folds) & NEED_LABELS


@pytest.mark.parametrize("documents", ["relevant", "all"])
@pytest.mark.parametrize(
    ("label", "sentence", "needs", "controls"),
    [
        ("", "There are no complete labels, so all documents are counted, relevant or not.",
         {"relevant", "skipping"}, set()),
        ("0", "The labels name no relevant document, so all documents are counted.",
         {"relevant"}, {"address.margin", "address.loss", "address.paid"}),
    ],
)  # fmt: skip
def test_without_a_relevant_document_all_are_counted(
    app, turned, label, sentence, needs, controls, documents
):
    words = turned(label, documents=documents)
    assert words >= {"Where the documents went", sentence}
    assert words & {*SENTENCES.values()} == {SENTENCES[each] for each in needs}
    assert offered(app) == controls
    counts = app.dataframe[0].value
    # Each query moves its first document to rank 4, and no table counts relevant ones beside it.
    assert (counts.loc["1", "4–5"], counts.to_numpy().sum()) == (3, 12)
    assert not any("came in from these ranks" in each.value for each in app.dataframe)


@pytest.mark.parametrize(("documents", "n"), [("relevant", 3), ("all", 12)])
def test_with_labels_relevant_documents_are_told_apart(app, turned, documents, n):
    words = turned("1", documents=documents)
    assert "Where relevant documents went" in words
    assert not words & {*SENTENCES.values()}
    assert offered(app) == NEED_LABELS
    assert app.dataframe[0].value.to_numpy().sum() == n


def test_a_run_of_some_depth_is_said_to_agree_below_it(app, workspace, stored):
    assert "below them it keeps" not in said(open_page(app, "rank_shifts"))
    lists = [(f"q{q}", ["d1", "d0", "d2", "d3"], [2.0, 1.0, np.nan, np.nan]) for q in range(16)]
    run = run_from_ranking("shallow", stored, Ranking.from_lists(lists), "shallow")
    fields = {name: getattr(run, name) for name in type(run).__dataclass_fields__}
    run_id = workspace.save_run(type(run)(**{**fields, "depth": 2}))
    assert {*said(open_page(app, "rank_shifts", system=run_id)).splitlines()} >= {
        "Means over queries. τ (τ-b, equal scores tied) counts pairs of documents in the same "
        "order: 0 is chance, -1 the reverse. RBO weighs the top: the first ten ranks hold 86% of "
        "it. shallow reranked the first 2 alone: below them it keeps the first stage's order, "
        "which brings its τ nearer to 1."
    }


def test_the_clicked_cell_and_the_price_are_in_the_link(app, stored):
    """Else whoever is sent the link sees neither the documents nor the saving."""
    words = said(open_page(app, "rank_shifts", cell=["2–3", "1"], paid="1.5"))
    assert "**From 2–3 to 1**: 8 documents" in words
    assert app.number_input(key="address.paid").value == 1.5
    app.number_input(key="address.paid").set_value(2.0).run()
    assert in_address(app, "paid") == ["2"]
    assert in_address(app, "cell") == ["2–3", "1"]


@pytest.mark.parametrize(("documents", "n"), [("all", QUERIES // 2), ("relevant", 0)])
def test_a_cell_lists_the_documents_that_it_counts(app, decided, documents, n):
    """What the relevant ones overtook is not relevant itself."""
    app.session_state["shifts.counts"] = True
    words = said(open_page(app, "rank_shifts", cell=["1", "2–3"], documents=documents))
    assert f"**From 1 to 2–3**: {n} documents" in words
    tables = [each.value for each in app.dataframe]
    (counts,) = [each for each in tables if "2–3" in each.columns]
    assert counts.loc["1", "2–3"] == n
    listed = [each for each in tables if "up" in each.columns]
    assert [len(each) for each in listed] == [n] * bool(n)


@pytest.mark.parametrize(
    ("cell", "paid"), [(["9", "1"], "much"), (["1"], "-1"), (["1", "1", "1"], "nan")]
)
def test_a_cell_or_a_price_that_cannot_be_is_said(app, stored, cell, paid):
    words = said(open_page(app, "rank_shifts", cell=cell, paid=paid))
    assert "Documents from one band of ranks to another “" in words
    assert "Price of reranking 1,000 searches “" in words
    assert "Click a row to open its query" not in words
    assert app.number_input(key="address.paid").value is None


@pytest.mark.parametrize(
    ("family", "others"), [("metric", set()), ("all", {"mrr@10", "recall@10"})]
)
def test_the_chosen_metric_alone_is_evaluated_unless_all_are_corrected_together(
    app, decided, monkeypatch, family, others
):
    evaluated: set[str] = set()
    made = study.evaluate

    def noted(judged, specs, *given):
        evaluated.update(specs)
        return made(judged, specs, *given)

    monkeypatch.setattr(study, "evaluate", noted)
    open_page(app, "rank_shifts", family=family)
    assert evaluated >= {"ndcg@10", *others}
    assert others or evaluated == {"ndcg@10"}
