"""The sidebar: choices and their defaults, invalid links, objects that another window deleted,
repairs; and pages that have nothing to show yet."""

from dataclasses import replace
from pathlib import Path

import pytest

from rankdash.app import sidebar
from rankdash.core.base.i18n import speaking
from rankdash.core.base.rules import CONVENTION_PRESETS, PRESET_SETTINGS
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.methods import key_of
from rankdash.core.workspace.notes import Corrections, Pins
from rankdash.core.workspace.repair import Repaired
from rankdash.features.data import page_damaged
from rankdash.kit.widgets import address, settings_form, sharing_link, view
from rankdash.kit.widgets import stored as widgets_stored
from rankdash.kit.widgets.labels import plan
from rankdash.kit.widgets.view import LARGEST_CUTOFF, PAGES, cutoff_of
from tests.approved import table
from tests.stored import keep_rows
from tests.ui.conftest import ROWS, lists_at, opened_at
from tests.ui.page_text import page_text
from tests.ui.sessions import page, part, press, said
from tests.ui.test_pages import open_page

EVERY = sorted(file.stem for file in PAGES.glob("*.py"))
NAMES = ("shop", "alone")


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Name → id of data sets that no test changes: one with five runs, of which b is the best, and
    one with the first stage only."""
    with opened_at(tmp_path_factory.mktemp("home")) as workspace:
        found = {name: keep_rows(workspace, ROWS.replace("how", name), name) for name in NAMES}
        for place, name in enumerate("abcde"):
            ranking = Ranking.from_lists(lists_at(int(name != "b")))
            run = run_from_ranking(name, found["shop"], ranking, name)
            when = f"2026-11-0{place + 1}T10:00:00+00:00"
            workspace.save_run(replace(run, id=name, created=when))
        yield found


def chosen_in(sets, of="shop", **more):
    return {"data": sets[of], "base": FIRST_STAGE, "metric": "ndcg", "k": "10"} | more


# A page with nothing to show yet.


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_is_said_without_data(workspace, approved, lang):
    told = {each: page_text(page(each, lang=lang)) for each in EVERY}
    approved(f"pages/empty.{lang}", table(told))


def next_of(app):
    return [each.label for each in app.button if each.key == "empty_page.next"]


def test_with_only_the_first_stage_or_no_system_there_is_one_way_on(sets, monkeypatch):
    went = []
    monkeypatch.setattr(view, "go", went.append)
    comparing = ["overview", "queries", "rank_shifts", "cost", "policy", "report"]
    for each in (*comparing, "latency", "history"):
        alone = page(each, chosen=chosen_in(sets, "alone"))
        assert next_of(alone) == ["Run a reranker"], each
        press(alone, "Run a reranker")
        assert went.pop() == "run"
    for each in comparing[1:]:
        none = page(each, chosen=chosen_in(sets, system=[]))
        assert "No system chosen" in said(none)
        press(none, "Compare the newest systems")
        assert "system" not in none.session_state["address.choices"], each


def test_a_page_that_only_shows_has_no_button(workspace, stored, only_shown):
    workspace.delete_run(workspace.runs(stored)[0].id)
    only_shown()
    app = page("queries", chosen=chosen_in({"shop": stored}))
    assert "This workspace is read-only" in said(app) and not next_of(app)


# The choices.


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_menu_is_in_the_order_of_work_and_the_choices_below_it(app, stored, approved, lang):
    open_page(app, "overview", lang=lang)
    links = [each.proto.page.rpartition("/")[2] for each in app.sidebar.get("page_link")]
    assert links == [
        *("data", "run", "label", "judge", "", "queries", "rank_shifts", "latency"),
        *("cost", "policy", "report", "history"),
    ]
    text = page_text(app, sidebar=True).partition("[title]")[0]
    approved(f"pages/sidebar.{lang}", text.replace(stored, "<id>"))


@pytest.mark.parametrize(
    ("skipped", "failed", "base", "default"),
    [
        ("", {}, FIRST_STAGE, "bcdefghi"),
        # A run over some queries is chosen only if there is no other.
        ("i", {}, FIRST_STAGE, "abcdefgh"),
        ("abcdefghi", {}, FIRST_STAGE, "bcdefghi"),
        ("", {}, "i", "abcdefgh"),
        # The retry of a run replaces it, if it has fewer failed queries.
        ("", {"g": 5, "h": 0}, FIRST_STAGE, "abcdefhi"),
        ("", {"g": 5, "h": 5}, FIRST_STAGE, "bcdefghi"),
        ("", {"g": 0, "h": 5}, FIRST_STAGE, "bcdefghi"),
    ],
)
def test_the_newest_whole_runs_are_compared_to_begin_with(
    workspace, stored, monkeypatch, skipped, failed, base, default
):
    run = workspace.run(workspace.runs(stored)[0].id)
    workspace.delete_run(run.id)
    monkeypatch.setattr(sidebar, "MOST_COMPARED", 8)
    for place, name in enumerate("abcdefghi"):
        lost = failed.get(name, 3 if name in skipped else 0)
        state = ["skipped" if name in skipped else "failed"] * lost + ["done"] * (16 - lost)
        workspace.save_run(replace(
            run, id=name, name=name.upper(), queries=run.queries.assign(state=state),
            reranker="bm25" if name in failed else f"of {name}", settings={},
            created=f"2026-11-26T10:0{place}:00+00:00",
        ))  # fmt: skip
    Pins(workspace).pin("d")
    opened = {"sidebar.settings": True}
    chosen = {"data": stored, "base": base, "k": "7"}
    app = part(sidebar.draw_sidebar, analysis=True, chosen=chosen, state=opened)
    assert app.session_state["address.choices"]["system"] == list(default)
    options = app.selectbox(key="address.base").options
    assert options[0] == "First stage" and options[4] == "D (pinned)"
    assert "Judged" not in app.selectbox(key="address.metric").options
    cutoffs = app.select_slider(key="address.k").options
    assert cutoffs == [*map(str, sorted({*sidebar.CUTOFFS, 7})), "all"]
    pinned = part(sidebar.draw_sidebar, analysis=True, chosen={"data": stored}, state=opened)
    assert pinned.selectbox(key="address.base").value == "d"


def test_which_labels_are_used_is_a_setting_once_some_are_corrected(workspace, stored):
    def drawn(**chosen):
        state = {"sidebar.settings": True}
        return part(sidebar.draw_sidebar, analysis=True, chosen=chosen, state=state)

    assert "address.labels" not in {each.key for each in drawn(data=stored).selectbox}
    Corrections(workspace).correct(stored, ("q1", "d3"), 1.0, "")
    app = drawn(data=stored)
    app.selectbox(key="address.labels").select("as uploaded").run()
    assert app.session_state["address.choices"]["labels"] == ["uploaded"]
    assert "1 setting changed" in [each.value for each in app.caption]


def test_a_preset_sets_the_conventions_of_a_tool_and_what_differs_is_counted(sets):
    """The baseline, a setting, counts even if the settings are folded."""
    app = part(sidebar.draw_sidebar, analysis=True, chosen=chosen_in(sets, threshold="2"))
    tools = app.selectbox(key="sidebar.tool")
    assert tools.options == ["rankdash", "trec_eval", "ranx", "scikit-learn", "BEIR"]
    assert app.session_state["address.choices"]["base"] == [FIRST_STAGE]
    counted = [each.value for each in app.caption]
    assert "1 setting changed" in counted
    tools.select("BEIR").run()
    chosen = {name: value[0] for name, value in app.session_state["address.choices"].items()}
    for each in PRESET_SETTINGS:
        of_tool = getattr(CONVENTION_PRESETS["BEIR"], each.name)
        assert chosen.get(each.name, key_of(each.default)) == key_of(of_tool)
    assert (chosen["threshold"], [each.value for each in app.caption]) == ("2", counted)
    own = chosen_in(sets, judged_only="True", base="a", resamples="2000")
    app = part(sidebar.draw_sidebar, analysis=True, chosen=own)
    tools = app.selectbox(key="sidebar.tool")
    assert (tools.value, tools.options[-1]) == ("", "custom settings")
    assert "3 settings changed" in [each.value for each in app.caption]
    tools.select("rankdash").run()
    assert "custom settings" not in app.selectbox(key="sidebar.tool").options
    assert "2 settings changed" in [each.value for each in app.caption]


@pytest.mark.parametrize(
    ("labels", "thresholds", "tops"),
    [
        ([0.0, 1.0], None, [1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 100.0]),
        ([-1.0, 0.0, 2.0, 4.0], [1.0, 2.0, 4.0], [4.0, 5.0, 10.0, 100.0]),
        ([0.0, 0.5], [0.5, 1.0], [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 100.0]),
        ([0.0], None, [1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 100.0]),
    ],
)
def test_grades_that_the_labels_have_are_offered_as_thresholds(labels, thresholds, tops):
    app = part(settings_form.draw_comparison_settings, labels)
    boxes = {box.key: box.options for box in app.selectbox}
    offered = boxes.get("address.threshold")
    assert offered is thresholds or [*map(float, offered)] == thresholds
    assert sorted(float(each) for each in boxes["address.err_top_label"][1:]) == tops


def sent(box):
    """Return the text that a box is set to; "" if the browser's value is not changed."""
    return box.proto.raw_value if box.proto.set_value else ""


def test_choices_are_sent_anew_in_the_words_of_the_other_language_and_once(app, stored):
    open_page(app, "run", lang="en")
    before = app.selectbox(key="run.latency").value
    app.query_params["lang"] = "zh"
    app.run()
    # Also for a choice that is not in the address.
    box = app.selectbox(key="run.latency")
    assert sent(box) in box.options and "the" not in sent(box) and box.value == before
    app.session_state["sidebar.settings"] = True
    app.switch_page(str(PAGES / "overview.py")).run()
    app.query_params["lang"] = "en"
    app.run()
    assert sent(app.selectbox(key="address.base")) == "First stage"
    app.run()
    assert sent(app.selectbox(key="address.base")) == ""


# The minimum practically relevant gain: none unless a user sets it, and 15 % with one click.

FIELD = "address.worthwhile"


def preset(app):
    return [each for each in app.button if each.label == "Set 15% (rule of thumb)"]


def test_one_click_sets_the_common_minimum():
    app = part(settings_form.draw_comparison_settings, [1.0])
    assert app.selectbox(key=FIELD).value == "auto"
    preset(app)[0].click().run()
    assert app.session_state["address.choices"]["worthwhile"] == ["0.15"]


@pytest.mark.parametrize(
    ("written", "chosen"),
    [(None, "auto"), ("0.15", "0.15"), ("0", "0"), ("auto", "auto"), ("much", "auto")],
)
def test_a_link_of_before_opens_and_what_it_does_not_name_is_not_set(written, chosen):
    """15 % was the former default, which links did not include."""
    given = {} if written is None else {"worthwhile": written}
    app = part(
        settings_form.draw_comparison_settings,
        [1.0],
        chosen=given,
    )
    assert app.selectbox(key=FIELD).value == chosen
    assert bool(preset(app)) is (chosen == "auto")
    assert address.FIELDS["worthwhile"] == "auto"


# The line below the title, and the system in focus.


class Sampled:
    metric = "DCG@10"


def test_the_line_below_the_title_says_what_is_compared(workspace, stored, monkeypatch, approved):
    with workspace.database.writing() as db:
        db.execute("UPDATE runs SET created = '2026-11-03T10:00:00+00:00'")
    run = workspace.run(workspace.runs(stored)[0].id)
    # The date is of the newest compared system, not of the newest run.
    workspace.save_run(replace(run, id="z", name="newer", created="2026-11-09T10:00:00+00:00"))

    def line(**more):
        chosen = chosen_in({"shop": stored}, system=[run.id]) | more
        drawn = lambda: view.caption(view.study("overview"), ["3 runs"])  # noqa: E731
        return page_text(part(drawn, chosen=chosen))

    told = {
        "usual": line(), "nothing but the baseline": line(system=[]),
        "only judged documents": line(judged_only="True"),
    }  # fmt: skip
    Corrections(workspace).correct(stored, ("q1", "d3"), 1.0, "")
    told |= {"one label corrected": line(), "and not used": line(labels="uploaded")}
    Corrections(workspace).correct(stored, ("q2", "d3"), 1.0, "")
    told |= {"two corrected": line(), "and neither used": line(labels="uploaded")}
    monkeypatch.setattr(plan, "sampled", lambda _id: Sampled())
    told["the labels are a sample"] = line()
    approved("pages/caption.en", table(told))


@pytest.mark.parametrize(
    ("challengers", "shown", "widget"),
    [("", FIRST_STAGE, None), ("a", "a", None), ("ab", "b", "button_group"),
     ("abcd", "b", "button_group"), ("abcde", "b", "selectbox")],
)  # fmt: skip
def test_the_best_of_several_challengers_is_shown_until_one_is_chosen(
    sets, challengers, shown, widget
):
    def drawn():
        return view.in_focus(view.study("overview"))

    app = part(drawn, chosen=chosen_in(sets, system=list(challengers)))
    assert app.session_state["found"] == shown
    found = [each.type for each in (*app.button_group, *app.selectbox) if each.key == "address.vs"]
    assert found == [widget] * bool(widget)
    app = part(drawn, chosen=chosen_in(sets, system=list(challengers), vs="a"))
    assert app.session_state["found"] == ("a" if widget else shown)


@pytest.mark.parametrize(
    ("value", "cutoff"),
    [
        ("1", 1), ("10", 10), (str(LARGEST_CUTOFF), 1000), (str(LARGEST_CUTOFF + 1), None),
        ("9" * 5000, None), ("0", None), ("-1", None), ("all", None), ("", None), (None, None),
        # A digit in Python, but not a number in an address.
        ("٣", None),
    ],
)  # fmt: skip
def test_a_cutoff_is_read_from_1_to_the_largest(value, cutoff):
    assert cutoff_of(value) == cutoff


class WholePageError(Exception):
    """Raised instead of drawing the whole page."""


@pytest.mark.parametrize("in_force", [True, False])
def test_a_fragment_goes_on_until_labels_are_corrected_and_holds_no_numbers(
    workspace, stored, monkeypatch, in_force
):
    def whole_page():
        raise WholePageError

    def drawn():
        layer = Corrections(workspace).layer(stored)
        corrected = in_force and layer.count
        shown = widgets_stored.with_corrections(stored, layer.revision) if corrected else stored
        return Study(
            dataset=widgets_stored.dataset(shown), systems=widgets_stored.systems(shown),
            baseline=FIRST_STAGE, challengers=(), corrections=layer.count, dataset_id=shown,
        )  # fmt: skip

    monkeypatch.setattr(view.st, "rerun", whole_page)
    for label in (0.0, 1.0):
        study = drawn()
        values = study.evaluations[FIRST_STAGE].values
        again = view.again(study)
        assert again is not study
        assert again.evaluations[FIRST_STAGE].values is not values
        assert (again.evaluations[FIRST_STAGE].values == values).all()
        Corrections(workspace).correct(stored, ("q1", "d3"), label, "")
        # Not in force, a second correction of the same pair changes nothing.
        if in_force or label == 0.0:
            with pytest.raises(WholePageError):
                view.again(study)
        else:
            view.again(study)


# Invalid fields of a link, and the link itself.

MANY = ("k", "metric", "sort", "text", "tag", "share")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_a_link_lost_is_said_and_of_a_lost_data_set_only_that(workspace, approved, lang):
    def lost(lost, **chosen):
        state = {"address.lost": lost}
        app = part(sharing_link.begin, lang=lang, chosen=chosen, state=state)
        return page_text(app, sidebar=True)

    told = {"a data set, and nothing is here": lost({"data": "x"})}
    stored = {"data": keep_rows(workspace, ROWS, "Shop*")}
    told |= {
        "a data set": lost({"data": "x"}, **stored),
        "what is of it is not there with it": lost({"data": "x", "q": "q7", "k": "0"}, **stored),
        "hostile": lost({"q": "q7", "nonsense": "*[x](http://y.z) <b>"}, **stored),
        "five are named": lost(dict.fromkeys(MANY[:5], "x"), **stored),
        "of six five": lost(dict.fromkeys(MANY, "x"), **stored),
    }
    approved(f"pages/lost.{lang}", table(told))


def test_every_field_of_a_link_has_a_name_in_words():
    """Also in Chinese. Readers do not see the name in the address."""
    titles = {field: sharing_link.title(field) for field in address.FIELDS}
    assert [field for field, title in titles.items() if title == field] == []
    with speaking("zh"):
        same = {field for field, title in titles.items() if sharing_link.title(field) == title}
    assert same <= {"k1", "b"}


@pytest.mark.parametrize(
    ("opened", "changed", "runs"), [(True, True, 2), (True, False, 1), (False, True, 1)]
)
def test_a_link_that_changed_below_it_is_drawn_again(opened, changed, runs):
    ran = []

    def drawn():
        ran.append(1)
        sharing_link.finish(sharing_link.begin())
        if changed:
            address.choose("k", "3")
        sharing_link.follow()

    app = part(drawn, state={"sharing.link": opened})
    assert len(ran) == runs
    # Programs that detect links in a text truncate http://host?data=….
    assert len(app.code) == opened and all("/" in each.value for each in app.code)


def test_what_a_repair_found_is_told(approved):
    rows = {"datasets": 1, "runs": 2, "notes": 1, "run_notes": 2, "corrections": 0}
    names = [f"n{place:02}*" for place in range(13)]
    bare = Repaired(rows=rows)
    every = replace(bare, copy_of="2026-11-01", unlisted=names[:10], gone=names[:11], changed=4,
                    trash=Path("/trash"))  # fmt: skip
    told = {"nothing odd": bare, "all": every, "three more": replace(bare, gone=names)}
    approved(
        "pages/repaired.en",
        table({why: "\n".join(page_damaged.came_back(found)) for why, found in told.items()}),
    )
