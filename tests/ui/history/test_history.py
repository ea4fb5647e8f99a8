"""History: runs compared on their common queries, a pinned baseline, notes, and two runs."""

import functools
import re
from dataclasses import replace

import numpy as np
import pytest
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers import kinds
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.rerankers.neural import packaged
from rankdash.core.runs.combining import CombinedRun, fuse
from rankdash.core.study import history
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.workspace.notes import Pins, RunNotes
from rankdash.features.history import page as history_page
from rankdash.features.history.page_table import ordered
from rankdash.kit.widgets import stored as widgets_stored
from rankdash.kit.widgets import view
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.run_records import setting_titles
from tests.approved import table
from tests.stored import keep_rows
from tests.ui.conftest import ROWS, lists_at, opened_at
from tests.ui.page_text import page_text
from tests.ui.sessions import page, part

HOSTILE = "=1+1 ![x](http://evil.invalid) <b>bold</b>"
SETTINGS = {"file": "x", "k": 1}


def keep(workspace, dataset_id, name, shift, queries=range(16), state="skipped", ms=np.nan, **more):
    """Store a run with each relevant document at rank 1 + shift, over these queries. state: the
    state of the other queries."""
    lists = lists_at(shift)
    run = run_from_ranking(name, dataset_id, Ranking.from_lists(lists), f"{name}.trec")
    states = ["done" if q in queries else state for q in range(16)]
    asked = Ranking.from_lists([each for q, each in enumerate(lists) if q in queries])
    own = {"id": name, "queries": run.queries.assign(state=states, latency_ms=ms)} | more
    workspace.save_run(replace(run, ranking=asked, **own))


def day(number):
    return {"created": f"2026-11-{number:02}T10:00:00+00:00"}


def history_of(workspace, dataset_id):
    """Store "better", which failed on q15, a run repeated on another machine, and a run over four
    queries."""
    keep(workspace, dataset_id, "better", 0, range(15), state="failed", **day(9))
    keep(workspace, dataset_id, "old", 1, settings=SETTINGS, **day(1))
    other = {"machine": {"cpu": "another", "numpy": "2.0"}, **day(3)}
    keep(workspace, dataset_id, "again", 2, settings=SETTINGS, **other)
    keep(workspace, dataset_id, "look", 0, range(4), **day(5))


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Name → id of data sets that no test changes."""
    with opened_at(tmp_path_factory.mktemp("home")) as workspace:

        def rows(verb):
            return keep_rows(workspace, ROWS.replace("how to", verb), verb)

        found = {each: rows(each) for each in ("shop", "apart", "times", "pinned", "one", "twice")}
        history_of(workspace, found["shop"])
        keep(workspace, found["apart"], "first four", 0, range(4), **day(1))
        keep(workspace, found["apart"], "the rest", 0, range(4, 16), **day(2))
        for place, name in enumerate(("a", "b")):
            cpu = {"machine": {"cpu": name}, "ms": np.arange(16.0)}
            keep(workspace, found["times"], f"on {name}", 1 + place, **cpu, **day(1 + place))
        keep(workspace, found["times"], "untimed", 1, machine={"cpu": "c"}, **day(3))
        runs = [workspace.run(f"on {name}") for name in "ab"]
        parts = [CombinedRun(run.name, run.ranking, run) for run in runs]
        fused = fuse(workspace.dataset(found["times"]), parts, Fusion(), "fused")
        workspace.save_run(replace(fused, id="fused", machine={"cpu": "d"}, **day(4)))
        weights = {"runtime": "onnx"} | packaged.MODELS[0].provenance
        cached = {"measured": Measured(scored_pairs=1, cached_pairs=1), "machine": weights}
        keep(workspace, found["pinned"], "pin", 0, **cached, **day(1))
        keep(workspace, found["pinned"], "nothing", 0, (), state="failed", **day(2))
        long = "cross-encoder/" + "very-" * 30 + "long, half precision"
        other = {"model": "small", "max_length": 64, "query_prompt": ""}
        made = {"reranker": "bi-encoder", "depth": 5, "settings": other, **day(3)}
        keep(workspace, found["pinned"], "bi", 1, **made)
        keep(workspace, found["pinned"], "long", 3, reranker="gone", **day(4))
        workspace.rename_run("long", long)
        Pins(workspace).pin("pin")
        RunNotes(workspace).store("pin", HOSTILE)
        with workspace.database.writing() as db:
            db.execute("UPDATE run_notes SET changed = '2026-12-11T10:00:00+00:00'")
        for place, name in enumerate(("single", "twin"), 1):
            keep(workspace, found["one"], name, 0, settings=SETTINGS, **day(place))
        for place, shift in enumerate((2, 1), 1):
            again = {"id": f"nightly {place}", **day(place)}
            keep(workspace, found["twice"], "nightly", shift, **again)
        keep(workspace, found["twice"], "sharper", 0, **day(3))
        for place, (name, n) in enumerate({"lacks one": 15, "lacks two": 14}.items(), 5):
            keep(workspace, found["times"], name, 1, range(n), state="done", **day(place))
        yield found


CASES = {
    "usual, no correction": {"correction": "none"},
    "corrected, 90% intervals": {"correction": "bh", "level": "0.9"},
    "every run on the line": {"line": "every"},
    "two, and what differs": {"runs": ["old", "again"]},
    "a run and the first stage": {"runs": [FIRST_STAGE, "old"]},
    "three": {"runs": ["again", "old", "look"]},
    "what a link names and is not there": {"runs": ["gone", "old"]},
    "no query in common": {"of": "apart", "base": "first four", "line": "every"},
    "two machines, and a sum": {"of": "times"},
    "the first stage": {"of": "times", "runs": FIRST_STAGE},
    "the pinned run": {"of": "pinned", "base": "pin", "runs": "pin"},
    "one that answered nothing, a pin beside": {"of": "pinned", "base": "bi", "runs": "nothing"},
    "settings by what the form calls them": {"of": "pinned", "runs": ["pin", "bi"]},
    "a long name, a reranker that is gone, a note": {"of": "pinned"},
    "two runs of a name, then one of another": {"of": "twice"},
    "made alike, with the same result": {"of": "one", "runs": ["single", "twin"]},
}
IN_CHINESE = ("usual, no correction", "two, and what differs", "two machines, and a sum")


def shown(sets, of="shop", lang="en", **chosen):
    usual = {"data": sets[of], "base": FIRST_STAGE, "metric": "ndcg", "k": "10"}
    return page("history", lang=lang, chosen=usual | chosen)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_history_says(sets, approved, lang):
    cases = CASES if lang == "en" else {each: CASES[each] for each in IN_CHINESE}
    told = {why: page_text(shown(sets, lang=lang, **chosen)) for why, chosen in cases.items()}
    # The part above the table of selected runs is the same in these cases.
    above = re.compile(r"(?s)^.*?\[table\][^\n]*\n(  [^\n]*\n)*")
    told = {
        why: above.sub("", text) if "runs" in cases[why] else text for why, text in told.items()
    }
    approved(f"pages/history.{lang}", table(told))


def listed(app):
    return next(frame.value for frame in app.dataframe if "verdict" in frame.value.columns)


def by_name(app):
    return listed(app).set_index("name")


@pytest.mark.parametrize(("count", "rows"), [(1, 3), (14, 15)])
def test_the_table_is_as_high_as_its_rows_up_to_fourteen(
    workspace, stored, monkeypatch, count, rows
):
    run = workspace.run(workspace.runs(stored)[0].id)
    for each in range(count - 1):
        workspace.save_run(replace(run, id=f"r{each}"))
    heights, drawn = [], history_page.st.dataframe

    @functools.wraps(drawn)
    def noted(*given, **how):
        heights.append(how.get("height"))
        return drawn(*given, **how)

    monkeypatch.setattr("streamlit.dataframe", noted)
    shown({"shop": stored})
    assert heights[0] == 35 * rows + 3


@pytest.mark.parametrize(
    ("pinned", "baseline", "picked", "order"),
    [
        ("again", "old", ["better", "old", "again"], ["again", "old", "better"]),
        ("again", "old", [FIRST_STAGE, "again"], ["again", FIRST_STAGE]),
        (None, "old", ["again", FIRST_STAGE, "old"], ["old", FIRST_STAGE, "again"]),
        ("again", "look", ["better", "old"], ["old", "better"]),
    ],
)
def test_a_pair_is_compared_with_its_pin_else_its_baseline_else_the_older(
    sets, pinned, baseline, picked, order
):
    def past():
        return history_page.past(view.study("history"))

    found = part(past, chosen={"data": sets["shop"], "base": baseline}).session_state["found"]
    assert ordered(replace(found, pinned=pinned), picked) == order


def test_no_two_settings_of_a_reranker_share_a_title():
    """Settings of two runs are matched by title."""
    for kind in kinds():
        titles = list(setting_titles(kind.name).values())
        assert len(set(titles)) == len(titles), kind.name


@pytest.mark.parametrize(("seconds", "drawn_at"), [(0.5, []), (0.51, [0.8])])
def test_a_bar_is_drawn_where_evaluating_takes_its_time(sets, monkeypatch, seconds, drawn_at):
    class Clock:
        times = iter([*[0.0] * 5, seconds])

        def monotonic(self):
            return next(self.times)

    bars = []
    monkeypatch.setattr(history_page, "time", Clock())
    monkeypatch.setattr(DeltaGenerator, "progress", lambda _self, share, _text: bars.append(share))
    shown(sets, of="pinned")
    assert bars == drawn_at


@pytest.fixture
def several(workspace, stored):
    workspace.delete_run(workspace.runs(stored)[0].id)
    history_of(workspace, stored)
    return stored


def test_a_run_is_read_once_and_not_again_for_another_metric(workspace, several, monkeypatch):
    asked, real = [], workspace.run
    monkeypatch.setattr(workspace, "run", lambda run_id: asked.append(run_id) or real(run_id))
    for spec in ("ndcg@10", "mrr@10", "ndcg@3"):
        study = Study.on(
            spec, dataset=widgets_stored.dataset(several), systems=widgets_stored.systems(several),
            baseline=FIRST_STAGE, challengers=(), dataset_id=several, cache=cache,
        )  # fmt: skip
        for system in study.systems:
            assert [each.spec for each in history.evaluation(study, system).measures] == [spec]
    assert sorted(asked) == ["again", "better", "look", "old"]
