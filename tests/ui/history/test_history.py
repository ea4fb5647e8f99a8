"""History: runs on one line over the queries they share, a pinned baseline, notes, any two."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from rankdash.ranking.ranking import Ranking, Run
from rankdash.rerankers import kinds
from rankdash.rerankers.fusion import Fusion
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.rerankers.neural import packaged
from rankdash.runs.combining import CombinedRun, fuse
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.pins import Pins
from rankdash.store.notes.run_notes import RunNotes
from rankdash.study import history
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE
from rankdash.ui.history import history_pair, history_table
from rankdash.ui.history.history_table import ordered
from rankdash.ui.runs.run_records import setting_titles
from rankdash.ui.state import server
from rankdash.ui.state import stored as stored_sets
from rankdash.ui.state.cache import cache
from tests.sets import ROOT
from tests.stored import keep_sample
from tests.ui.test_pages import in_address, open_page, texts

HOSTILE = "=1+1 ![x](http://evil.invalid) <b>bold</b>"


def made(dataset_id: str, name: str, shift: int, **changes: object) -> Run:
    """A ranking whose relevant document stands at rank 1 + shift for every query."""
    lists = []
    for q in range(16):
        order = [f"d{d}" for d in range(4) if d != q % 4]
        order.insert(shift, f"d{q % 4}")
        lists.append((f"q{q}", order, [4.0, 3.0, 2.0, 1.0]))
    run = run_from_ranking(name, dataset_id, Ranking.from_lists(lists), f"{name}.trec")
    return replace(run, **changes)


def part(run: Run, first: int, end: int) -> Run:
    """The run as if it had been asked for these queries only."""
    whole = run.ranking
    ends = list(zip(whole.query_ids, whole.offsets[:-1], whole.offsets[1:], strict=True))
    few = Ranking.from_lists(
        [
            (query, [whole.doc_ids[d] for d in whole.docs[start:stop]], whole.scores[start:stop])
            for query, start, stop in ends[first:end]
        ]
    )
    asked = {query for query, _start, _stop in ends[first:end]}
    states = ["done" if query in asked else "skipped" for query in run.queries["query_id"]]
    return replace(run, ranking=few, queries=run.queries.assign(state=states))


@pytest.fixture
def several(workspace, stored) -> dict[str, str]:
    """Name → id of a history: "better" of the fixture (which failed on q15), and after it one made
    twice and one that was asked for four queries."""
    runs = {row.name: row.id for row in workspace.runs(stored)}
    settings = {"file": "x", "k": 1}
    for run in (
        made(stored, "old", 1, id="old", settings=settings, created="2026-11-01T10:00:00+00:00"),
        made(stored, "again", 2, id="again", settings=settings,
             created="2026-11-03T10:00:00+00:00", machine={"cpu": "another", "numpy": "2.0"}),
        part(made(stored, "look", 0, id="look", created="2026-11-05T10:00:00+00:00"), 0, 4),
    ):  # fmt: skip
        workspace.save_run(run)
        runs[run.name] = run.id
    return runs


def table(app) -> pd.DataFrame:
    return next(frame.value for frame in app.dataframe if "verdict" in frame.value.columns)


def by_name(app) -> pd.DataFrame:
    return table(app).set_index("name")


def press(app, label):
    (button,) = [button for button in app.button if button.label == label]
    return button.click().run()


def said(app) -> str:
    shown = [texts(app), *(str(item.value) for item in app.warning)]
    return "\n".join(shown).replace("\\", "")


def opened(app, **params):
    return open_page(app, "history", **params)


def test_without_a_run_there_is_one_next_step(app, workspace, stored):
    (row,) = workspace.runs(stored)
    workspace.delete_run(row.id)
    app = opened(app)
    assert "No run yet" in texts(app)
    assert not app.dataframe


def test_the_table_is_newest_first_and_numbered_as_the_chart(app, several):
    shown = table(opened(app, system=several["old"]))
    assert app.caption[0].value.endswith("4 runs"), "whatever is compared"
    assert list(shown["name"]) == ["better", "look", "again", "old", "First stage"]
    assert shown["number"].dropna().astype(int).tolist() == [4, 3, 2, 1]


def test_every_run_on_the_line_rests_on_the_same_queries_and_says_how_many(app, several):
    app = opened(app)
    rows = by_name(app)
    # "better" failed on q15, so that nobody's q15 counts; the quick look has its own four.
    assert rows.loc[["better", "old", "again", "First stage"], "queries"].unique().tolist() == [15]
    assert rows.loc["look", "queries"] == 4
    assert rows.loc["look", "verdict"] == "not compared"
    assert np.isnan(rows.loc["look", "change"])
    assert "use the same 15 of 16 queries" in said(app)
    assert "1 run answered too few of them and is listed separately" in said(app)
    assert rows.loc["better", "mean"] == 1.0
    assert rows.loc["better", "failed"] == 1


def test_a_quick_look_joins_the_line_when_asked_and_the_others_shrink_to_its_queries(app, several):
    rows = by_name(opened(app, line="every"))
    assert rows["queries"].unique().tolist() == [4]
    assert rows.loc["look", "verdict"] != "not compared"
    assert in_address(app, "line") == ["every"]


def test_runs_without_a_query_in_common_are_not_compared(app, several, workspace, stored):
    workspace.save_run(part(made(stored, "rest", 0, id="rest"), 4, 16))
    app = opened(app, base=several["look"], line="every")
    assert "No query was answered by every run on the line" in said(app)
    assert by_name(app)["change"].isna().all()
    assert "compared with" not in said(app)


def test_looks_are_counted_and_a_correction_is_offered(app, several):
    app = opened(app, correction="none")
    assert "**3 systems were compared with First stage on the same queries.**" in said(app)
    assert "about 0.2 would on average still look proven by chance" in said(app)
    assert "The p values below are not corrected." in said(app)
    before = by_name(app)["p"]
    press(app, "Correct for all 3")
    assert "corrected for all 3 (Holm)" in said(app)
    assert (by_name(app)["p"].dropna() >= before.dropna()).all()
    assert by_name(app).loc["better", "p"] > before["better"]


def test_a_selected_run_of_a_packaged_model_says_where_its_weights_come_from(
    app, several, workspace
):
    known = packaged.MODELS[0]
    old = workspace.run(several["old"])
    workspace.save_run(replace(old, machine={**old.machine, **known.provenance}))
    line = f"from the package {known.package} {known.released}, SHA-256 {known.sha256[:12]}"
    assert line in said(opened(app, runs=several["old"])).replace("\\", "")
    assert "Weights" not in said(opened(app, runs=several["better"]))


def test_a_pin_is_the_baseline_at_once_in_every_new_session_and_until_unpinned(
    app, several, workspace, stored
):
    app = opened(app, runs=several["old"])
    press(app, "Pin as baseline")
    assert Pins(workspace).of(stored) == several["old"]
    assert app.selectbox(key="address.base").value == several["old"]
    assert in_address(app, "base") == [several["old"]]
    assert "old (pinned)" in app.selectbox(key="address.base").options
    assert by_name(app).loc["old", ["role", "verdict"]].tolist() == ["pinned", "baseline"]

    fresh = AppTest.from_file(str(ROOT / "rankdash" / "ui" / "main.py"), default_timeout=300)
    fresh.run()
    assert fresh.selectbox(key="address.base").value == several["old"]
    linked = AppTest.from_file(str(ROOT / "rankdash" / "ui" / "main.py"), default_timeout=300)
    linked.query_params["base"] = FIRST_STAGE
    linked.run()
    assert linked.selectbox(key="address.base").value == FIRST_STAGE

    press(app, "Unpin")
    assert Pins(workspace).of(stored) is None
    assert app.selectbox(key="address.base").value == FIRST_STAGE


def test_a_run_that_answered_nothing_cannot_be_pinned(app, several, workspace, stored):
    """As a baseline it would leave every page without a comparison."""
    run = made(stored, "nothing", 0, id="nothing", created="2026-11-09T10:00:00+00:00")
    queries = run.queries.assign(state="failed", reason="no answer")
    workspace.save_run(replace(run, ranking=Ranking.from_lists([]), queries=queries))
    app = opened(app, runs="nothing")
    assert not app.exception
    assert "Pin as baseline" not in [button.label for button in app.button]
    assert "All queries failed in this run" in said(app)


def test_a_deleted_baseline_is_unpinned_and_the_first_stage_takes_its_place(
    app, several, workspace, stored
):
    Pins(workspace).pin(several["old"])
    assert opened(app).selectbox(key="address.base").value == several["old"]
    workspace.delete_run(several["old"])
    app.run()
    assert not app.exception
    assert app.selectbox(key="address.base").value == FIRST_STAGE
    assert "old" not in by_name(app).index


def test_another_data_set_starts_with_its_own_baseline(app, several, workspace, stored):
    keep_sample(workspace)
    Pins(workspace).pin(several["old"])
    sample = next(row.id for row in workspace.datasets() if row.id != stored)
    app = opened(app, data=sample)
    assert app.selectbox(key="address.base").value == FIRST_STAGE
    app.selectbox(key="address.data").set_value(stored).run()
    assert app.selectbox(key="address.base").value == several["old"]


def test_a_note_is_shown_as_it_was_typed_deleted_and_brought_back(app, several, workspace, stored):
    app = opened(app, runs=several["old"])
    (note,) = [area for area in app.text_area if area.label == "Note on this run"]
    note.set_value(HOSTILE).run()
    kept = RunNotes(workspace).of(several["old"])
    assert kept.text == HOSTILE
    assert by_name(app).loc["old", "note"] == HOSTILE
    # Nowhere does it reach a place that renders Markdown.
    assert "evil" not in said(app)
    assert "Saved " in said(app)
    press(app, "Delete the note")
    assert RunNotes(workspace).all(stored) == {}
    assert "Deleted" in said(app)
    press(app, "Undo")
    assert RunNotes(workspace).of(several["old"]).text == HOSTILE


def test_the_run_list_shows_note_pin_and_the_title_of_the_reranker(
    app, several, workspace, stored, monkeypatch
):
    monkeypatch.setattr("rankdash.ui.run.run_form.worker", lambda: None)
    RunNotes(workspace).keep(several["old"], "a new tokenizer")
    Pins(workspace).pin(several["old"])
    app = open_page(app, "run")
    shown = next(frame.value for frame in app.dataframe if "p95 ms" in frame.value.columns)
    shown = shown.set_index("name")
    assert shown.loc["old", ["note", "baseline"]].tolist() == ["a new tokenizer", "pinned"]
    assert shown["reranker"].unique().tolist() == ["Ranking from a file"]


def test_a_fused_run_takes_as_long_as_its_parts_together_and_a_long_name_is_cut_in_its_middle(
    app, several, workspace, stored, monkeypatch
):
    """On Latency its times are the sums of its parts', so they are here and on Run too."""
    dataset = workspace.dataset(stored)
    names = ["cross-encoder/" + "very-" * 30 + "long, half precision", "b"]
    runs = [made(stored, name, 1, id=f"part {n}") for n, name in enumerate(names)]
    for factor, run in enumerate(runs, 1):
        times = factor * np.arange(1.0, 17)
        workspace.save_run(replace(run, queries=run.queries.assign(latency_ms=times)))
    parts = [CombinedRun(run.name, run.ranking, run) for run in runs]
    fused = fuse(dataset, parts, Fusion(), "fused")
    workspace.save_run(fused)
    shown = by_name(opened(app, runs=["part 1", fused.id]))
    assert shown.loc["fused", "p95"] == pytest.approx(np.quantile(3 * np.arange(1.0, 17), 0.95))
    assert shown.loc["b", "p95"] == pytest.approx(np.quantile(2 * np.arange(1.0, 17), 0.95))
    (cut,) = (name for name in shown.index if "…" in name)
    assert cut.startswith("cross-encoder/ver")
    assert cut.endswith("half precision")
    differs = next(frame.value for frame in app.dataframe if "before" in frame.value.columns)
    assert differs.set_index("name").loc["p95 ms", ["before", "after"]].tolist() == ["30.5", "45.8"]
    monkeypatch.setattr("rankdash.ui.run.run_form.worker", lambda: None)
    listed = next(each.value for each in open_page(app, "run").dataframe if "p95 ms" in each.value)
    own = listed.set_index("name").loc["fused"]
    assert own["p50 ms"] == pytest.approx(3 * 8.5)
    assert own["p95 ms"] == shown.loc["fused", "p95"]


def test_two_runs_are_judged_and_what_differs_is_told(app, several):
    app = opened(app, runs=[several["old"], several["again"]])
    text = said(app)
    assert "again is worse than old: NDCG@10 falls by" in text
    assert "by the same amount for each of the 16 queries" in text
    assert "0 helped, 0 same, 16 hurt" in text
    assert "picked among 5 systems: corrected for all 10 possible pairs" in text
    differs = next(frame.value for frame in app.dataframe if "before" in frame.value.columns)
    told = differs.set_index("name")[["before", "after"]].to_dict("index")
    assert pd.isna(told["cpu"]["before"])
    assert told["cpu"]["after"] == "another"
    assert "k" not in told
    assert "reranker" not in told


def test_settings_that_differ_are_called_what_the_form_calls_them(app, several, workspace, stored):
    settings = {"model": "small", "max_length": 64, "query_prompt": ""}
    workspace.save_run(
        made(stored, "bi", 1, id="bi", reranker="bi-encoder", settings=settings,
             created="2026-11-08T10:00:00+00:00")
    )  # fmt: skip
    app = opened(app, runs=[several["old"], "bi"])
    differs = next(frame.value for frame in app.dataframe if "before" in frame.value.columns)
    names = set(differs["name"])
    assert {"Model", "Max. sequence length (0 = model's limit)"} <= names
    assert not {"model", "max_length", "query_prompt", "Query prompt"} & names


def test_no_two_settings_of_a_reranker_share_a_title():
    """By its title a setting of one run is joined with that of another."""
    for kind in kinds():
        titles = list(setting_titles(kind.name).values())
        assert len(set(titles)) == len(titles), kind.name


@pytest.mark.parametrize(
    ("pinned", "picked", "order"),
    [
        ("pin", ["new", "base", "old", "pin"], ["pin", "base", "old", "new"]),
        ("pin", [FIRST_STAGE, "pin"], ["pin", FIRST_STAGE]),
        (None, ["pin", "base"], ["base", "pin"]),
        ("base", ["old", "base"], ["base", "old"]),
        ("pin", ["new", "old"], ["old", "new"]),
    ],
)
def test_a_pair_is_compared_with_its_pin_else_its_baseline_else_the_older(pinned, picked, order):
    numbers = {FIRST_STAGE: 0, "old": 1, "base": 2, "pin": 3, "new": 4}
    past = SimpleNamespace(
        pinned=pinned, study=SimpleNamespace(baseline="base"), number=numbers.__getitem__
    )
    assert ordered(past, picked) == order


def test_the_pair_is_swapped_and_opened_on_overview(app, several):
    app = opened(app, runs=[several["old"], several["again"]])
    press(app, "Swap")
    assert in_address(app, "runs") == [several["again"], several["old"]]
    assert "old is better than again" in said(app)
    press(app, "Open on Overview")
    assert app.title[0].value == "Overview"
    assert in_address(app, "base") == [several["again"]]
    assert in_address(app, "system") == [several["old"]]
    assert "old is better than again" in said(app)


def test_runs_made_alike_with_the_same_result_say_so(app, several, workspace, stored):
    workspace.save_run(
        made(stored, "twin", 1, id="twin", settings={"file": "x", "k": 1},
             created="2026-11-07T10:00:00+00:00")
    )  # fmt: skip
    app = opened(app, runs=[several["old"], "twin"])
    assert {*said(app).splitlines()} >= {
        "twin and old score the same on every one of the 16 queries.",
        "No difference in their recorded settings and machine.",
    }


def test_what_a_link_names_and_is_not_there_is_left_out(app, several):
    app = opened(app, runs=["gone", several["old"]])
    assert [button.label for button in app.button].count("Pin as baseline") == 1
    assert "Runs “gone”" in said(app)


def test_corrected_labels_are_in_force_here_and_said(app, several, workspace, stored):
    before = by_name(opened(app))["mean"]
    Corrections(workspace).correct(stored, ("q0", "d0"), 0.0, "")
    Corrections(workspace).correct(stored, ("q0", "d1"), 1.0, "")
    app.run()
    assert "2 labels given or corrected" in said(app)
    assert by_name(app).loc["better", "mean"] < before["better"]
    app.segmented_control(key="address.labels").set_value("uploaded").run()
    assert "2 corrections excluded" in said(app)
    assert by_name(app).loc["better", "mean"] == before["better"]


def test_a_run_is_read_once_and_not_again_for_another_metric(several, stored, monkeypatch):
    read = []
    real = server.workspace().run
    monkeypatch.setattr(
        server.workspace(), "run", lambda run_id: read.append(run_id) or real(run_id)
    )
    for spec in ("ndcg@10", "mrr@10", "ndcg@3"):
        study = Study.on(
            spec,
            dataset=stored_sets.dataset(stored),
            systems=stored_sets.systems(stored),
            baseline=FIRST_STAGE,
            challengers=(),
            dataset_id=stored,
            cache=cache,
        )
        for system in study.systems:
            assert [each.spec for each in history.evaluation(study, system).measures] == [spec]
    assert sorted(read) == sorted(several.values())


def test_a_workspace_that_is_only_shown_shows_pin_and_note_and_changes_nothing(
    app, several, workspace, monkeypatch
):
    Pins(workspace).pin(several["old"])
    RunNotes(workspace).keep(several["old"], HOSTILE)
    for module in ("runs.run_note", "history.history_run"):
        monkeypatch.setattr(f"rankdash.ui.{module}.read_only", lambda: True)
    app = opened(app, runs=several["old"])
    labels = [button.label for button in app.button]
    assert not {"Unpin", "Pin as baseline", "Delete the note"} & set(labels)
    assert not [area for area in app.text_area if area.label == "Note on this run"]
    assert HOSTILE in [shown.value for shown in app.text]
    assert by_name(app).loc["old", "role"] == "pinned"


def test_it_speaks_chinese(app, several):
    app = opened(app, lang="zh", runs=[several["old"], several["again"]])
    assert app.title[0].value == "历史"
    assert "**差异**" in said(app)


def told(**row: object) -> SimpleNamespace:
    study = SimpleNamespace(baseline="base")
    return SimpleNamespace(study=study, pinned=row.get("pinned"))


@pytest.mark.parametrize(
    ("system", "pinned", "role"),
    [("base", None, "current"), ("base", "base", "pinned"), ("base", "pin", "current"),
     ("pin", "pin", "pinned"), ("other", "pin", None)],
)  # fmt: skip
def test_the_pinned_run_is_called_so_also_where_it_is_the_baseline(system, pinned, role):
    assert history_table._role(told(pinned=pinned), system) == role


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (0, []),
        (1, ["1 query without documents counts 0"]),
        (2, ["2 queries without documents count 0"]),
    ],
)
def test_queries_without_documents_are_a_remark_of_a_run(missing, said):
    assert history_table._remarks(None, pd.Series({"missing": missing})) == said


@pytest.mark.parametrize(
    ("text", "given"), [(None, None), (5, "5"), (0, "0"), ("", ""), (True, "True")]
)
def test_a_recorded_value_is_shown_as_it_is_and_none_as_nothing(text, given):
    assert history_pair._shown(text) == given
