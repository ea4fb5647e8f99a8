"""The page on rank shifts as a person uses it; what its parts say is in `test_shift_texts`."""

import pytest

from rankdash.study import study
from tests.stored import keep_lists
from tests.ui.test_pages import in_address, open_page, texts


def said(app) -> str:
    return "\n".join([texts(app), *(str(each.value) for each in app.warning)])


def test_without_a_second_ranking_the_page_says_what_to_do(app, workspace, stored):
    workspace.delete_run(workspace.runs(stored)[0].id)
    assert {*said(open_page(app, "rank_shifts")).splitlines()} >= {
        "There is only the baseline so far. Run a reranker to see what it changes."
    }


def test_margin_loss_documents_cell_and_price_are_in_the_link(app, stored):
    """Else whoever is sent the link sees neither the documents nor the saving."""
    chosen = {"margin": "edge", "loss": "0.05", "documents": "all", "paid": "1.5"}
    words = said(open_page(app, "rank_shifts", cell=["2–3", "1"], **chosen))
    assert "**From 2–3 to 1**: 8 documents" in words
    assert app.number_input(key="address.paid").value == 1.5
    app.number_input(key="address.paid").set_value(2.0).run()
    for name, value in (chosen | {"paid": "2"}).items():
        assert in_address(app, name) == [value]
    assert in_address(app, "cell") == ["2–3", "1"]


@pytest.mark.parametrize(
    ("cell", "paid"), [(["9", "1"], "much"), (["1"], "-1"), (["1", "1", "1"], "nan")]
)
def test_a_cell_or_a_price_that_cannot_be_is_said(app, stored, cell, paid):
    words = said(open_page(app, "rank_shifts", cell=cell, paid=paid))
    assert "Documents from one band of ranks to another “" in words
    assert "Price of reranking 1,000 searches “" in words
    assert "Click a row to open its query" not in words
    assert app.number_input(key="address.paid").value is None


def test_rankings_without_a_common_query_have_no_shifts(app, stored, workspace):
    for name, query in (("one", "q1"), ("two", "q2")):
        keep_lists(workspace, stored, [(query, ["d1", "d0"], [2.0, 1.0])], name)
    ids = {row.name: row.id for row in workspace.runs(stored)}
    words = said(open_page(app, "rank_shifts", base=ids["one"], system=ids["two"]))
    assert {*words.splitlines()} >= {"No query in common"}


@pytest.mark.parametrize(
    ("family", "others"), [("metric", set()), ("all", {"mrr@10", "recall@10"})]
)
def test_the_chosen_metric_alone_is_evaluated_unless_all_are_corrected_together(
    app, stored, monkeypatch, family, others
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
