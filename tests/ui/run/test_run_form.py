"""The form of a run: settings, keys, estimates, and the submitted jobs."""

import json
import math
from dataclasses import replace

import pandas as pd
import pytest
import streamlit as st

from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import SHIPPED_WITH
from rankdash.core.metrics import Conventions
from rankdash.core.rerankers import Capabilities, RerankerKind, SettingSpec, get
from rankdash.core.rerankers.kinds.endpoint import DIALECTS
from rankdash.core.runs import jobs
from rankdash.core.runs.jobs import StopRule
from rankdash.core.runs.plan import DEPTH, Variant
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.features.run import page_estimate, page_form
from rankdash.features.run.page_estimate import FormPlan, Wish
from rankdash.kit.widgets import settings_form
from tests.approved import table
from tests.results import shown
from tests.stored import keep_rows, keep_sample
from tests.ui.lives import lives, play
from tests.ui.page_text import page_text
from tests.ui.parts import unlike
from tests.ui.sessions import part

KEY = "sk-typed-4711"
HERE = {"base_url": "http://127.0.0.1:9"}
PLACE = {**HERE, "dialect": next(name for name, api in DIALECTS.items() if api.title)}


@pytest.fixture(autouse=True)
def worker(hand, monkeypatch):
    for name in ("COHERE", "OPENAI", "TEI", "VOYAGE", "JINA"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    return hand


@pytest.fixture
def form(stored):
    def opened(*kinds, data=stored, lang="en", **settings):
        chosen = {f"setting.{kinds[0]}.{name}": value for name, value in settings.items()}
        return part(page_form.draw, data, lang=lang, state={"run.rerankers": [*kinds]} | chosen)

    return opened


CHANGED = {
    "another model": ("cross-encoder", {"model": "BAAI/bge-reranker-base"}),
    "a service of one's own, whose price is not known": ("endpoint", {"dialect": "tei"}),
    # 16 queries with 4 documents: 64 pairs of about 4 tokens of query and 3 of document.
    "a price that is typed": ("endpoint", {"dialect": "voyage", "price_tokens": 50.0}),
    "a stage that needs a key": ("cascade", {"second": "endpoint"}),
    "an address that is none": ("endpoint", {"base_url": "ftp://x"}),
    "a variable that is none": ("endpoint", {"key_variable": "PATH"}),
}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_form_of_each_kind(form, approved, lang):
    kinds = ("bm25", "cross-encoder", "cascade", "endpoint", "llm-pairwise")
    found = {each: page_text(form(each, lang=lang)) for each in kinds}
    for why, (kind, settings) in CHANGED.items() if lang == "en" else ():
        found[why] = unlike(found[kind], page_text(form(kind, **settings)))
    approved(f"pages/run_form.{lang}", table(found))


def test_a_cascade_has_the_form_of_each_stage_and_sends_what_differs(form, monkeypatch):
    settings = []

    def noted(_dataset_id, wishes):
        settings.extend(each.variant.settings for each in wishes)

    monkeypatch.setattr(page_estimate, "say_total", noted)
    app = form("bm25", "cascade", "endpoint")
    assert [each["k1"] for each in settings if "k1" in each] == [1.5]
    assert {each.placeholder for each in app.text_input} >= {DIALECTS["cohere"].base_url}
    # The captions of the folded forms name the model and the address.
    service = f"{DIALECTS['cohere'].model} · api.cohere.com"
    assert service in [each.value.replace("\\", "") for each in app.caption]
    settings.clear()
    app.number_input(key="setting.cascade.first.bm25.k1").set_value(1.25).run()
    [cascade] = [each for each in settings if "first" in each]
    assert (json.loads(cascade["first_settings"]), cascade["second_settings"]) == ({"k1": 1.25}, "")
    assert [each["k1"] for each in settings if "k1" in each] == [1.5]


# Estimates of a run.

# Candidates of each of the four queries.
COUNTS = (10, 10, 2, 18)
UNEVEN = "query_id,query,doc_id,document,label,score\n" + "".join(
    f"q{q},ask {q},d{d},text {d},{int(d == 0)},{20 - d}\n"
    for q, n in enumerate(COUNTS)
    for d in range(n)
)
# Case → rerankers, depth and queries that are set, and a stored run of BM25.
ESTIMATES = {
    "all candidates are no limit": (["bm25"], 18, 4, {}),
    "one less is one": (["bm25"], 17, 4, {}),
    "both": (["bm25"], 5, 2, {}),
    "three of four queries": (["bm25"], 18, 3, {}),
    "measured here": (["bm25"], 18, 4, {"done": 4}),
    "too little": (["bm25"], 18, 4, {"done": 3}),
    "one of two was measured": (["bm25", "endpoint"], 18, 4, {"done": 4}),
    "packaged models are known in advance": (["bi-encoder", "cross-encoder"], 18, 4, {}),
    "another machine": (["endpoint"], 18, 4, {}),
    "nothing": ([], 18, 4, {}),
}


def keep(workspace, data, rate=10.0, done=40, load_ms=2000.0, p50=5.0, machine=(), **more):
    """Store a run with these times."""
    (old,) = [row for row in workspace.runs() if row.name == "better"] or [None]
    queries = pd.DataFrame({
        "query_id": [f"q{n}" for n in range(done)], "state": "done", "reason": "",
        "latency_ms": p50, "index_ms": math.nan, "pairs": 1, "tokens": math.nan,
        "truncated": math.nan,
    })  # fmt: skip
    run = replace(
        workspace.run(old.id), dataset_id=data, queries=queries, load_ms=load_ms,
        machine=dict(machine), measured=rate and Measured(pairs=int(10 * rate), seconds=10.0),
        **{"id": f"r{len(workspace.runs())}", "name": "kept", "reranker": "bm25"} | more,
    )  # fmt: skip
    workspace.save_run(run)


def test_what_runs_would_take(form, workspace, approved):
    found = {}
    for why, (kinds, depth, queries, run) in ESTIMATES.items():
        data = keep_rows(workspace, UNEVEN, "Uneven")
        for row in workspace.runs(data):
            workspace.delete_run(row.id)
        if run:
            keep(workspace, data, **run)
        app = form(*kinds, data=data)
        app.slider(key=f"run.depth.{data}").set_value(depth)
        next(each for each in app.slider if each.label == "Queries").set_value(queries)
        app.run()
        lines = [each.value for each in app.caption if " · " in each.value and "quer" in each.value]
        lines += [each.label for each in app.button]
        found[why] = "\n".join(lines)
    approved("pages/run_estimates.en", table(found))


def test_what_a_service_would_take(stored, approved):
    kind, found = get("endpoint"), {}
    settings = {each.name: each.default for each in kind.settings} | {"price_tokens": 50.0}
    settings |= {"dialect": "voyage", "model": "m"}
    for depth, n in ((None, 4), (None, 100), (1, 4), (2, 4)):
        plan = FormPlan(depth, None, n, 0)
        app = part(page_estimate.say, stored, kind, [(settings, depth)], plan)
        found[f"depth {depth}, {n} queries"] = app.caption[0].value
    approved("pages/service_estimates.en", table(found))


@pytest.mark.parametrize(
    ("rows", "queries", "seconds", "latency"),
    [
        ([], 4, None, None),
        ([{}], 4, 6.0, 0.005),
        ([{"load_ms": math.nan}], 4, 4.0, 0.005),
        ([{"rate": None}], 4, None, 0.005),
        # The pace is from the run over the most queries, with at least 30 or all queries.
        ([{}, {"done": 30, "rate": 1.0, "p50": 20.0, "load_ms": 4000.0}], 4, 6.0, 0.02),
        ([{"done": 30}], 100, 6.0, 0.005),
        ([{"done": 29}], 100, None, 0.005),
        ([{"p50": 0.0}], 4, 6.0, None),
        ([{"reranker": "bi-encoder"}], 4, None, None),
        ([{"settings": {"model": "large"}}], 4, None, None),
        # Times of another machine are not used.
        ([{"machine": {SHIPPED_WITH: "sample"}}], 4, None, None),
    ],
)
def test_how_long_a_run_takes_is_told_by_one_like_it(
    workspace, stored, rows, queries, seconds, latency
):
    for row in rows:
        keep(workspace, stored, **row)
    plan = FormPlan(None, None, queries, 40)
    assert page_estimate.measured_seconds("bm25", {}, plan) == seconds
    assert page_estimate.latency_seconds(["bm25"], {"bm25": {}}) == latency
    both = {"bm25": {}, "bi-encoder": {}}
    if all(row.get("reranker") != "bi-encoder" for row in rows):
        assert page_estimate.latency_seconds([*both], both) is None
    keep(workspace, stored, reranker="bi-encoder", p50=30.0)
    assert page_estimate.latency_seconds([*both], both) == (latency and 0.03)


def wish(kind, settings=None, differs=(), depth=None, sample=None):
    plan = FormPlan(depth, sample, 4, 40)
    return Wish(get(kind), Variant(settings or {}, depth, differs), {}, plan)


NAMES = {
    "by its kind": wish("bm25"),
    "no model": wish("bm25", {"model": ""}),
    "by its model": wish("cross-encoder", {"model": "owner/mini"}),
    "of a folder": wish("cross-encoder", {"model": "/models/mini/"}),
    "by its service": wish("endpoint", PLACE | {"base_url": "", "key_variable": ""}),
    "by the host in place of the service": wish("endpoint", PLACE | {"key_variable": ""}),
    "the model before the host": wish("endpoint", PLACE | {"model": "m"}),
    "by its stages": wish("cascade", {"first": "bm25", "second": "mini"}),
    "one model is asked in several ways": wish("llm-listwise", {"model": "gpt"}),
    "one model is read in several ways": wish("late-interaction", {"model": "m"}),
    "by its depth": wish("bm25", depth=5),
    "a depth that varies is told once": wish("bm25", differs=((DEPTH, 5),), depth=5),
    "by what varies": wish("bm25", differs=(("k1", 2.0), ("b", 0.25), ("method", "lucene"))),
    "by one query": wish("bm25", sample=1),
    "by depth and queries": wish("bm25", depth=5, sample=2),
    "taken by a run": wish("cross-encoder", {"model": "better"}),
    "taken by a job": wish("cross-encoder", {"model": "queued"}),
}


def test_a_run_is_called_by_its_model_and_by_what_makes_it_special(workspace, stored, approved):
    Queue(workspace).submit(dataset_id=stored, name="queued", reranker="bm25", settings={},
                            depth=None, sample=None, seed=0)  # fmt: skip
    names = {why: page_form.run_name(stored, each) for why, each in NAMES.items()}
    approved("pages/run_names.en", table(names))


# Buttons, and the jobs that they start.

# Model → share of unknown tokens.
UNKNOWN = {"packaged/multilingual-e5-small": 0.0, "BAAI/bge-m3": math.nan}


@pytest.mark.parametrize("life", lives("run_form"))
def test_a_life_of_the_form(life, approved, form, stored, workspace, worker, monkeypatch, request):
    sets = {}

    def opened(*words):
        kinds = [each for each in words if "=" not in each]
        given = dict(each.split("=", 1) for each in words if "=" in each)
        data = sets.get(given.pop("data", ""), stored)
        return form(*kinds, data=data, **given) if kinds else part(page_form.draw, data)

    def large():
        for name, value in (("ALL_SECONDS", 0), ("SAMPLE_SECONDS", 0), ("LEAST_QUERIES", 4)):
            monkeypatch.setattr(f"rankdash.core.rerankers.defaults.{name}", value)

    def secrets(name, value):
        of = type(st.secrets)
        monkeypatch.setattr(of, "load_if_toml_exists", lambda _self: True)
        monkeypatch.setattr(of, "get", lambda _self, key, other=None: {name: value}.get(key, other))

    def queued():
        return "\n".join(
            shown({"name": job.name, "depth": job.depth, "sample": job.sample, "fused": job.fused,
                   "without text": job.without_text, "on": job.actors, "timing": job.timing,
                   "of a grid": bool(job.grid), "key": job.settings.get("key_variable")})
            for job in jobs.list(workspace) if job.state == "queued"
        )  # fmt: skip

    acts = {
        "open": opened,
        "large": large,
        "file": lambda name, rows: sets.update({name: keep_rows(workspace, rows, name)}),
        "measured": lambda: keep(workspace, stored, p50=500.0),
        "cancel": lambda at: Queue(workspace).cancel(jobs.list(workspace)[int(at)].id),
        "set": lambda given: monkeypatch.setenv(*given.split("=", 1)),
        "secrets": secrets,
        "fields": lambda kind, *given: part(settings_form.draw, get(kind), *given),
        "unknown": lambda kind, language: part(
            settings_form.draw, get(kind), language, lambda each: UNKNOWN.get(each, 0.62)
        ),
        "without-models": lambda: request.getfixturevalue("no_models"),
    }
    facts = {"jobs": queued, "keys": lambda: [*map(dict, worker.keys.values())]}
    approved(life, play(life, acts, facts))
    files = [path for path in workspace.root.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in files)


# The fields of settings.


def spec(name, default, title, **more):
    return SettingSpec(name, default, title, f"Help on {name}.", **more)


OWN = RerankerKind("own", "Own", "For tests.", (
    spec("tick", True, "Ticked"), spec("empty", False, "Not ticked"),
    spec("choice", "y", "One of two", choices=("x", "y")),
    spec("titled", "x", "With titles", choices={"x": "First", "y": "Second"}),
    spec("text", "", "Default elsewhere"), spec("given", "c", "Default here"),
    spec("required", "", "Required", required=True),
    spec("whole", 3, "Whole", within=(1, 9)), spec("share", 0.5, "Share", within=(0, 1)),
    spec("hundred", 30.0, "From 100 on whole steps", within=(0, 100)),
    spec("ninety", 30.0, "Below, hundredths", within=(0, 99)), spec("free", 1.0, "No end"),
    spec("long", "a\nb", "Of lines", lines=2), spec("rare", 7, "Behind a fold", advanced=True),
), Capabilities(), lambda settings: None)  # fmt: skip


def test_a_setting_has_the_field_of_its_kind():
    app = part(settings_form.draw, OWN, "latin")
    assert app.session_state["found"] == {each.name: each.default for each in OWN.settings}
    assert [*map(type, app.session_state["found"].values())] == [each.type for each in OWN.settings]
    numbers = {each.label: (each.min, each.max, each.step) for each in app.number_input}
    assert numbers == {
        "Whole": (1, 9, 1), "Share": (0.0, 1.0, 0.01), "From 100 on whole steps": (0.0, 100.0, 1.0),
        "Below, hundredths": (0.0, 99.0, 0.01), "No end": (None, None, 0.01),
        "Behind a fold": (None, None, 1),
    }  # fmt: skip
    assert [box.options for box in app.selectbox] == [["x", "y"], ["First", "Second"]]
    hints = {each.label: each.placeholder for each in app.text_input}
    assert hints == {"Default elsewhere": "default", "Default here": "", "Required": ""}
    # Fields are three per row, with longer texts below; advanced settings are folded.
    rows = [[len(each.children) for each in block.children.values()]
            for block in app.main.children.values() if block.type == "flex_container"]  # fmt: skip
    assert rows == [[1, 1, 1]] * 4
    assert [each.label for each in app.expander] == ["More settings"]
    assert [each.label for each in app.expander[0].number_input] == ["Behind a fold"]
    # Settings of one language do not change the settings of another.
    app.number_input(key="setting.own.whole").set_value(4)
    app.text_input(key="setting.own.text").set_value(" b ")
    assert (app.run().session_state["found"]["whole"], app.session_state["found"]["text"]) == (
        4,
        " b ",
    )
    assert part(settings_form.draw, OWN, "zh").number_input(key="setting.own.zh.whole").value == 3


def test_the_choice_to_stop_early(workspace):
    data = keep_sample(workspace)
    lines = []
    for kind, settings in (("bm25", {}), ("endpoint", PLACE | {"price_searches": 2.0})):
        settings = {"key_variable": "none", "model": "m", **settings}
        state = {f"setting.{kind}.{name}": value for name, value in settings.items()}
        state["run.rerankers"] = [kind]
        app = part(page_form.draw, data, chosen={"k": "10"}, state=state)
        [choice] = [each for each in app.selectbox if each.label == "Stop early"]
        lines.append((kind, choice.value, choice.options))
        next(each for each in app.button if each.label == "Start 1 run").click().run()
    never, ask = jobs.list(workspace)
    assert [line[:2] for line in lines] == [("bm25", "never"), ("endpoint", "ask")]
    assert lines[0][2] == [
        "never: score all queries",
        "show the interim result; you can stop the run",
        "stop the run when its result is conclusive",
    ]
    assert never.stop is None
    rule = StopRule.from_mapping(ask.stop)
    assert (rule.metric, rule.level, rule.by_itself) == ("ndcg@10", 0.95, False)
    assert rule.conventions == Conventions()
    # 168 queries, each one search unit at $2 per 1,000.
    assert rule.dollars == pytest.approx(168 * 2 / 1000)


def test_too_few_labelled_queries_offer_no_early_stop(form):
    app = form("bm25")
    assert "Stop early" not in {each.label for each in app.selectbox}
