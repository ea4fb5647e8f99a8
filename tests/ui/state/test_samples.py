"""The samples: opened complete, once, in the interface's language, without changes to others."""

import re
import shutil
from pathlib import Path

import pytest

from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.workspace import Workspace
from rankdash.features.data import page_samples
from rankdash.kit.widgets import stored as widgets_stored
from tests.stored import keep_rows
from tests.ui.parts import component
from tests.ui.sessions import press
from tests.ui.test_pages import in_address, open_page, texts

ROWS = "query,document,label,score\n" + "".join(
    f"如何退货 {q},第 {d} 篇文档,{int(d == q)},{4 - d}\n" for q in range(3) for d in range(3)
)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A workspace with the English sample and its runs."""
    folder = tmp_path_factory.mktemp("sample") / "home"
    page_samples.open_sample(Workspace.open(folder), "en")
    return folder


@pytest.fixture
def opened(home, workspace) -> str:
    """Return the id of the English sample, opened with its runs."""
    shutil.copytree(home, workspace.root, dirs_exist_ok=True)
    widgets_stored.workspace.cache_clear()
    return page_samples.ids()["en"]


@pytest.fixture
def chinese(opened, monkeypatch) -> str:
    """Return the id of a data set in Chinese that replaces the Chinese sample."""
    kept = keep_rows(widgets_stored.workspace(), ROWS, "商店")
    monkeypatch.setattr(page_samples, "ids", lambda: {"en": opened, "zh": kept})
    return kept


def data_in(app) -> str:
    return in_address(app, "data")[0]


def test_the_sample_is_a_finished_comparison_whose_times_were_not_measured_here(app, opened):
    names = {row.id: row.name for row in widgets_stored.workspace().runs(opened)}
    app = open_page(app, "overview")
    assert data_in(app) == opened
    assert in_address(app, "base") == [FIRST_STAGE]
    assert set(in_address(app, "system")) == set(names)
    drawn = "".join(each.proto.body for each in app.get("html"))
    assert "MiniLM cross-encoder is better than First stage" in drawn
    assert "The latency comes with the sample; it was not measured on this machine." in drawn
    board = " ".join(map(str, component(app, "leaderboard")["rows"]))
    assert re.search(r"BM25 without stemming.*?worse", board)
    # No price is set, so quality is drawn against latency only.
    assert "address.trade" not in {each.key for each in app.button_group}
    told = texts(open_page(app, "latency"))
    assert "From the sample data, not measured on this machine: " in told
    open_page(app, "run")
    listed = next(table.value for table in app.dataframe if "remarks" in table.value)
    assert listed["remarks"].str.contains("shipped with the sample").all()
    # Times of another machine are not used.
    assert "not measured on this machine yet" in texts(app)


def test_what_was_deleted_does_not_come_back_by_itself(workspace):
    page_samples.open_once(workspace)
    english = page_samples.ids()["en"]
    first, second, *others = workspace.runs(english)
    workspace.rename_run(first.id, "Mine")
    workspace.delete_run(second.id)
    page_samples.open_once(workspace)
    assert [row.id for row in workspace.runs(english)] == [first.id, *(row.id for row in others)]
    # Opening the sample again restores missing runs, and changes nothing else.
    before = len(workspace.datasets())
    assert page_samples.open_sample(workspace, "en") == english
    names = {row.id: row.name for row in workspace.runs(english)}
    assert names == {first.id: "Mine", **{row.id: row.name for row in (second, *others)}}
    assert len(workspace.datasets()) == before
    for row in workspace.datasets():
        workspace.delete_dataset(row.id)
    page_samples.open_once(workspace)
    assert workspace.datasets() == []


def test_beside_data_of_ones_own_no_sample_is_opened_by_itself(workspace, stored):
    page_samples.open_once(workspace)
    assert [row.id for row in workspace.datasets()] == [stored]
    workspace.delete_dataset(stored)
    page_samples.open_once(workspace)
    assert workspace.datasets() == []


def test_the_sample_of_an_earlier_version_keeps_its_runs_and_is_called_so(app, workspace, stored):
    workspace.rename_dataset(stored, "Help centre")
    workspace.set_setting("sample opened", "yes")
    with workspace.database.writing() as db:
        db.execute("UPDATE datasets SET source = 'sample'")
    before = [row.id for row in workspace.runs()]
    page_samples.open_once(workspace)
    assert [row.id for row in workspace.datasets()] == [stored]
    app = open_page(app, "data")
    assert data_in(app) == stored
    assert data_in(press(app, "Open the sample")) == page_samples.ids()["en"]
    assert set(app.selectbox(key="address.data").options) == {
        "Help centre (sample of an earlier version)", "Help centre (2) (sample)"
    }  # fmt: skip
    assert [row.id for row in workspace.runs(stored)] == before


def test_the_sample_follows_the_language_unless_the_data_set_was_chosen(app, opened, chinese):
    def speak(language):
        app.button_group(key="address.lang").set_value(language).run()
        return data_in(app)

    open_page(app, "data")
    assert (data_in(app), speak("zh"), speak("en")) == (opened, chinese, opened)
    app.selectbox(key="address.data").set_value(chinese).run()
    assert (speak("zh"), speak("en")) == (chinese, chinese)
    # A link also selects the sample.
    assert data_in(open_page(app, "data", lang="zh", data=opened)) == opened


def test_a_model_of_english_is_no_default_for_another_language(app, opened, chinese):
    app = open_page(app, "run", data=chinese)
    assert app.multiselect(key="run.rerankers.other_letters").value == ["bi-encoder"]
    (model,) = [box for box in app.selectbox if box.label == "Model"]
    assert model.value == "packaged/multilingual-e5-small"
    # One start, two results.
    assert [each.value for each in app.checkbox if each.key == "run.fused.True"] == [True]
    assert "Start 2 runs" in [each.label for each in app.button]
    app.selectbox(key="address.data").set_value(opened).run()
    assert app.multiselect(key="run.rerankers").value == ["bi-encoder", "cross-encoder"]
    assert [each.value for each in app.checkbox if each.key == "run.fused.False"] == [False]
