"""Which one? on page Run: the reason for each known model, the limits, and the choice."""

from dataclasses import replace

import pytest

from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers import catalogue
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.features.run import page_form, page_which
from tests.stored import keep_rows
from tests.ui.sessions import part

CROSS, E5 = "packaged/ms-marco-MiniLM-L12-v2", "packaged/multilingual-e5-small"
ZH = "query_id,query,doc_id,document,label,rank\n" + "".join(
    f"q{q},如何退货 {q},d{q}{d},退货说明 {d},{int(d == 1)},{d + 1}\n"
    for q in range(3)
    for d in range(3)
)


@pytest.fixture
def opened(stored, hand, workspace, monkeypatch):
    """Return the function that draws the form with its list of known models open."""
    for name in ("COHERE", "JINA", "VOYAGE", "MXBAI"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    monkeypatch.setattr(page_which, "fold", lambda title, key, icon, draw: draw())

    def drawn(rows="", lang="en", **state):
        data = keep_rows(workspace, rows, "rows") if rows else stored
        limits = {f"run.which.{name}": value for name, value in state.items()}
        return part(page_form.draw, data, lang=lang, state=limits)

    return drawn


def fits(app, column="Fit", model="Model"):
    rows = next(each.value for each in app.dataframe if model in each.value)
    return dict(zip(rows[model], rows[column], strict=True))


def test_each_model_has_its_reason(opened, monkeypatch):
    english = fits(opened())
    assert english[CROSS] == english["all-MiniLM-L6-v2"] == "preselected"
    assert english[E5] == "fits; not preselected: all-MiniLM-L6-v2 is the default"
    assert english["BAAI/bge-reranker-base"] == "fits; not preselected: needs a download"
    assert english["Cohere: rerank-v5.0-pro"].startswith("no key of Cohere on this server")
    assert "its provider recommends rerank-3" in english["Voyage: rerank-2.5"]
    assert english["jinaai/jina-reranker-v3.5"].startswith("needs code from its page")
    assert "ZeroEntropy: zerank-2" not in english
    chinese = fits(opened(ZH))
    assert chinese[E5] == "preselected"
    assert chinese[CROSS] == "reads English only; your texts are in Chinese"
    assert [each for each, reason in chinese.items() if reason == "preselected"] == [E5]
    shown = fits(opened(ZH, lang="zh"), "适合情况", "模型")
    assert shown[CROSS] == "只能读英语；您的文本为中文"
    monkeypatch.setenv("COHERE_API_KEY", "k")
    assert "sends your texts to Cohere" in fits(opened())["Cohere: rerank-v5.0-pro"]


def test_a_service_that_ended_is_not_in_the_form(opened, tmp_path, monkeypatch):
    """The runs of such a service open as before: only the form depends on the date."""
    text = catalogue.SHIPPED.read_text()
    start = text.index('id = "cohere"')
    file = tmp_path / "known.toml"
    file.write_text(text[:start] + "sunset = 2026-01-01\n" + text[start:])
    monkeypatch.setenv(catalogue.VARIABLE, str(file))
    catalogue.loaded.cache_clear()
    try:
        app = opened()
        app.multiselect(key="run.rerankers").set_value(["endpoint"]).run()
        service = app.selectbox(key="setting.endpoint.dialect")
        assert (service.value, "Cohere" in service.options) == ("jina", False)
        assert not any(each.startswith("Cohere") for each in fits(app))
        assert not app.exception
    finally:
        monkeypatch.undo()
        catalogue.loaded.cache_clear()


def test_limits_exclude_by_facts(opened, workspace):
    found = fits(opened(size=50, price=0.1))
    assert found["BAAI/bge-reranker-base"] == "larger than the limit, or of unpublished size"
    assert found[E5] == "larger than the limit, or of unpublished size"
    found = fits(opened(rate=5.0))
    assert found[CROSS] == "not measured on this machine yet"
    found = fits(opened(commercial=True))
    assert found["jinaai/jina-reranker-v3.5"] == "its licence forbids commercial use"
    assert found[CROSS] == "preselected"


def test_runs_with_windows_do_not_count_as_the_speed_of_a_model(opened, stored, workspace):
    for window, queries in ((0, 2), (100, 3)):
        lists = [(f"q{q}", ["d0"], [1.0]) for q in range(queries)]
        made = run_from_ranking(f"window {window}", stored, Ranking.from_lists(lists), "")
        measured = Measured(pairs=600 if window else 6000, seconds=100.0)
        settings = {"model": CROSS, "window": window}
        run = replace(made, reranker="cross-encoder", settings=settings, measured=measured)
        workspace.save_run(run)
    assert fits(opened(), "Pairs/s here")[CROSS] == 60.0


def test_the_fitting_models_are_set_in_the_form(opened):
    app = opened(size=50)
    app.multiselect(key="run.rerankers").set_value(["bm25"]).run()
    app.button(key="run.which.choose").click().run()
    assert app.multiselect(key="run.rerankers").value == ["bi-encoder", "cross-encoder"]
    assert app.selectbox(key="setting.cross-encoder.model").value == CROSS
    assert app.selectbox(key="setting.bi-encoder.model").value == "all-MiniLM-L6-v2"
    assert not app.exception
