"""How runs are called and started, and the fields of their settings, without the page."""

from types import SimpleNamespace

import pytest

from rankdash.errors import SettingError
from rankdash.rerankers import kinds
from rankdash.rerankers.remote.apis import DIALECTS
from rankdash.runs.jobs import Timing
from rankdash.runs.variants import DEPTH
from rankdash.ui.run import run_form
from rankdash.ui.run.run_estimate import FormPlan
from rankdash.ui.runs import settings_form
from rankdash.ui.widgets import action_errors


def kind(name: str = "bm25", group: str = "local", **more: object) -> SimpleNamespace:
    usual = {"title": name.upper(), "settings": (), "key": None,
             "able": lambda _s: SimpleNamespace(needs_network=group != "local")}  # fmt: skip
    return SimpleNamespace(name=name, group=group, **(usual | more))


def wish(
    of: SimpleNamespace, settings: dict | None = None, differs: tuple = (), **plan: object
) -> SimpleNamespace:
    usual = {"depth": None, "sample": None, "queries": 4, "pairs": 40}
    return SimpleNamespace(
        kind=of, variant=SimpleNamespace(settings=settings or {}, differs=differs, depth=None),
        keys={}, plan=FormPlan(**(usual | plan)),
    )  # fmt: skip


DIALECT, SERVICE, HOME = next(
    (name, api.title, api.base_url) for name, api in DIALECTS.items() if api.title
)
ENDPOINT = next(each for each in kinds() if each.name == "endpoint")


def asked_at(base_url: str) -> dict[str, str]:
    return {"dialect": DIALECT, "base_url": base_url, "key_variable": ""}


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (wish(kind()), "BM25"),
        (wish(kind(), {"model": ""}), "BM25"),
        (wish(kind(), {"model": "owner/mini"}), "mini"),
        (wish(kind(), {"model": "/models/mini/"}), "mini"),
        (wish(ENDPOINT, asked_at(HOME)), SERVICE),
        (wish(ENDPOINT, asked_at("http://127.0.0.1:9")), "127.0.0.1:9"),
        (wish(kind("hosted", "service"), {"dialect": DIALECT, "model": "m"}), "m"),
        (wish(kind("cascade"), {"first": "bm25", "second": "mini"}), "bm25 → mini"),
        # One model is asked in several ways.
        (wish(kind("listwise", "llm"), {"model": "gpt"}), "gpt · LISTWISE"),
        (wish(kind("late-interaction"), {"model": "m"}), "m · LATE-INTERACTION"),
        (wish(kind("cross-encoder"), {"model": "m"}), "m"),
        (wish(kind(), depth=5), "BM25 · top 5"),
        (wish(kind(), differs=((DEPTH, 5),), depth=5), "BM25 · top 5"),
        (wish(kind(), sample=1), "BM25 · 1 query"),
        (wish(kind(), depth=5, sample=2), "BM25 · top 5 · 2 queries"),
        (wish(kind("old")), "OLD (2)"),
        (wish(kind("queued")), "QUEUED (2)"),
    ],
)
def test_a_run_is_called_by_its_model_and_by_what_makes_it_special(monkeypatch, wanted, name):
    store = SimpleNamespace(runs=lambda _id: [SimpleNamespace(name="OLD")])
    monkeypatch.setattr(run_form, "workspace", lambda: store)
    monkeypatch.setattr(run_form.jobs, "list", lambda _store, _id: [SimpleNamespace(name="QUEUED")])
    assert run_form._run_name("shop", wanted) == name


def test_what_runs_here_is_offered_first_and_a_ranking_from_a_file_not_at_all(monkeypatch):
    made = [kind("a", "llm"), kind("b"), kind("precomputed"), kind("c", "service"), kind("d")]
    monkeypatch.setattr(run_form, "kinds", lambda: made)
    assert list(run_form._offered()) == ["b", "d", "c", "a"]


@pytest.mark.parametrize(
    ("textless", "asked", "rule"), [(set(), False, "exclude"), ({"z"}, False, "exclude"),
                                    ({"a", "z"}, True, "empty")]
)  # fmt: skip
def test_what_becomes_of_texts_that_lack_is_asked_where_a_candidate_lacks_one(
    paper, session, monkeypatch, textless, asked, rule
):
    data = SimpleNamespace(textless=textless, candidates=SimpleNamespace(doc_ids=["a", "b"]))
    monkeypatch.setattr(run_form.stored, "dataset", lambda _id: data)
    drawn = paper(run_form)
    drawn.answers["selectbox"] = "empty"
    assert run_form._without_text("shop") == rule
    assert bool(drawn.of("selectbox")) is asked


@pytest.fixture
def queued(monkeypatch):
    """The jobs that are submitted, and what else is done for them, in order."""
    done = []
    made = SimpleNamespace(
        ensure=lambda: done.append("ensure"),
        hand_over=lambda job, keys: done.append(("key", job, keys)),
    )
    count = iter("abcdefgh")
    monkeypatch.setattr(run_form, "worker", lambda: made)
    monkeypatch.setattr(run_form, "workspace", lambda: None)
    monkeypatch.setattr(run_form, "_run_name", lambda _id, wanted: wanted.kind.title)
    monkeypatch.setattr(run_form.jobs, "new_id", lambda: next(count))
    monkeypatch.setattr(run_form.jobs, "check", lambda *_a: None)
    monkeypatch.setattr(
        run_form.jobs, "submit", lambda _store, request, job: done.append((job, request))
    )
    monkeypatch.setattr(run_form.job_list, "watch", lambda job: done.append(("watch", job)))
    monkeypatch.setattr(run_form.key_field, "lend", lambda name, job: done.append((name, job)))
    return done


def test_several_variants_of_one_reranker_are_a_grid_and_one_is_none(paper, session, queued):
    drawn = paper(run_form)
    wishes = [wish(kind(), {"k": 1}, depth=5), wish(kind(), {"k": 2}), wish(kind("mini"), sample=2)]
    run_form._start("shop", wishes, Timing(), "exclude")
    requests = [each[1] for each in queued if hasattr(each[1], "reranker")]
    assert [each.reranker for each in requests] == ["bm25", "bm25", "mini"]
    assert [each.grid for each in requests] == ["a", "a", None]
    # Scores that a grid shares leave all but its first without a latency, unless it is asked for.
    assert [each.timing.latency for each in requests] == ["always", "always", "auto"]
    assert [each.depth for each in requests] == [5, None, None]
    assert [each.sample for each in requests] == [None, None, 2]
    assert {each.without_text for each in requests} == {"exclude"}
    assert [each for each in queued if each[0] == "watch"] == [
        ("watch", "b"), ("watch", "c"), ("watch", "d")
    ]  # fmt: skip
    assert queued[-1] == "ensure" and drawn.of("rerun") and not drawn.of("error")


def test_a_key_is_handed_over_for_the_run_that_needs_it(paper, session, queued):
    paper(run_form)
    far = wish(kind("far", "service"))
    far.keys = {"KEY": "secret"}
    run_form._start("shop", [wish(kind()), far], Timing(), "empty")
    assert [each for each in queued if each[0] in ("key", "far")] == [
        ("key", "b", {"KEY": "secret"}), ("far", "b")
    ]  # fmt: skip


def test_where_one_run_is_refused_none_is_queued(paper, session, monkeypatch, queued):
    def check(name, _settings):
        if name == "bad":
            raise SettingError("k is *wrong*.")

    monkeypatch.setattr(run_form.jobs, "check", check)
    drawn = paper(run_form, action_errors)
    run_form._start("shop", [wish(kind()), wish(kind("bad"))], Timing(), "exclude")
    assert queued == [] and not drawn.of("rerun")
    assert drawn.of("error") == [r"BAD\: k is \*wrong\*\."]


# The fields of settings.


def spec(name: str, type_: type = str, **more: object) -> SimpleNamespace:
    usual = {"type": type_, "title": name.upper(), "help": "", "lines": 1, "advanced": False,
             "choices": (), "choice_titles": (), "suggestions": (), "default": "",
             "required": False, "minimum": None, "maximum": None}  # fmt: skip
    return SimpleNamespace(name=name, **(usual | more))


@pytest.mark.parametrize(
    ("one", "answers", "widget", "settings", "value"),
    [
        (spec("a", bool, default=True), {"checkbox": False}, "checkbox", {}, False),
        (spec("a", str, choices=("x", "y"), default="y"), {"selectbox": "x"}, "selectbox",
         {"index": 1}, "x"),
        (spec("a"), {"text_input": " b "}, "text_input", {"placeholder": "default"}, " b "),
        (spec("a", default="c"), {"text_input": "c"}, "text_input", {"placeholder": None}, "c"),
        (spec("a", required=True), {"text_input": ""}, "text_input", {"placeholder": None}, ""),
        (spec("a", int, default=3, minimum=1, maximum=9), {"number_input": 4.0}, "number_input",
         {"min_value": 1, "max_value": 9, "value": 3, "format": None, "step": None}, 4),
        (spec("a", float, default=0.5, minimum=0, maximum=1), {"number_input": 0.7},
         "number_input", {"min_value": 0.0, "max_value": 1.0, "value": 0.5, "format": "%g",
                          "step": 0.01}, 0.7),
        (spec("a", float, default=30, maximum=600), {"number_input": 40}, "number_input",
         {"min_value": None, "max_value": 600.0, "step": 1.0}, 40.0),
    ],
)  # fmt: skip
def test_a_setting_has_the_field_of_its_kind(paper, session, one, answers, widget, settings, value):
    drawn = paper(settings_form)
    drawn.answers |= answers
    found = settings_form._widget("bm25", one)
    assert found == value and type(found) is type(value)
    [(kind_of, label, given)] = drawn.drawn
    assert (kind_of, label) == (widget, "A")
    assert {name: given[name] for name in settings} == settings


@pytest.mark.parametrize("default", [True, False])
def test_a_tick_begins_as_it_is_by_default(paper, session, default):
    paper(settings_form).__dict__["checkbox"] = lambda _label, value, **_settings: value
    assert settings_form._widget("bm25", spec("a", bool, default=default)) is default


@pytest.mark.parametrize("titles", [(), ("First", "Second")])
def test_a_choice_is_called_by_its_title_where_it_has_one(paper, session, titles):
    drawn = paper(settings_form)
    drawn.answers["selectbox"] = "x"
    settings_form._widget("bm25", spec("a", choices=("x", "y"), choice_titles=titles, default="x"))
    [(_kind, _label, given)] = drawn.drawn
    assert [given["format_func"](each) for each in "xy"] == list(titles or "xy")


def test_settings_stand_three_in_a_row_long_texts_below_and_the_rest_is_folded(
    paper, session, monkeypatch
):
    drawn, made = paper(settings_form), []
    drawn.answers["text_area"] = "long"

    def widget(_place, each):
        made.append(each.name)
        return each.name

    monkeypatch.setattr(settings_form, "_widget", widget)
    specs = [spec("a"), spec("text", lines=2), spec("z", advanced=True), *map(spec, "bcd")]
    found = settings_form.draw(SimpleNamespace(name="bm25", settings=specs), "latin")
    assert made == ["a", "b", "c", "d", "z"]
    # In the order in which they are declared.
    assert list(found.items()) == [("a", "a"), ("text", "long"), ("z", "z"),
                                   *((each, each) for each in "bcd")]  # fmt: skip
    assert drawn.of("text_area", "expander") == ["TEXT", "More settings"]
    drawn.drawn.clear()
    settings_form.draw(SimpleNamespace(name="bm25", settings=[spec("a")]), "latin")
    assert drawn.of("expander") == []


@pytest.mark.parametrize(("language", "place"), [("latin", "bm25"), ("zh", "bm25.zh")])
def test_what_is_set_for_one_language_is_not_set_for_another(
    paper, session, monkeypatch, language, place
):
    paper(settings_form)
    places = []
    monkeypatch.setattr(settings_form, "_widget", lambda at, _each: places.append(at))
    settings_form.draw(SimpleNamespace(name="bm25", settings=[spec("a")]), language)
    assert places == [place]


def test_a_typed_model_stands_first_and_a_known_one_is_described(paper, session):
    drawn = paper(settings_form)
    drawn.session_state = session
    one = spec("model", default="mini", suggestions=("mini", "large"), required=True)
    drawn.answers["selectbox"] = "mine"
    options = []
    drawn.__dict__["selectbox"] = lambda _label, given, **_k: options.append(given) or "mine"
    assert settings_form._suggested("Model", one, "key") == "mine"
    session["key"] = "mine"
    settings_form._suggested("Model", one, "key")
    assert options == [["mini", "large"], ["mine", "mini", "large"]]
    assert drawn.of("caption") == []
    known = settings_form.known_models()[0]
    drawn.__dict__["selectbox"] = lambda _label, _given, **_k: known.id
    settings_form._suggested("Model", one, "key")
    purpose, facts = drawn.of("caption")
    assert purpose == known.purpose and f"{known.max_length:,} tokens" in facts.replace(" ", " ")


@pytest.mark.parametrize(
    ("codes", "said"),
    [(("multi",), "many languages"), (("en",), "English"), (("zh", "en"), "Chinese, English")],
)
def test_the_languages_of_a_model_are_named(codes, said):
    assert settings_form._languages(codes) == said
