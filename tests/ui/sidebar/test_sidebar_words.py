"""What stands beside every page: what a link lost, what was found, and which system is shown."""

from types import SimpleNamespace

import pytest

from rankdash.study.systems import FIRST_STAGE
from rankdash.ui.sidebar import (
    comparison_settings,
    empty_page,
    repair_view,
    sharing_link,
    sidebar,
    view,
)
from rankdash.ui.state import address


class StopPageError(Exception):
    """In place of the end of a page."""


@pytest.mark.parametrize(
    ("lost", "chosen", "data", "others"),
    [
        ({"data": "x"}, "shop", ["The link names a data set that is not in this workspace; Shop is "
         "shown. Import the workspace file of the data set on the page Data."], []),
        ({"data": "x"}, None, ["The link names a data set that is not in this workspace, which is "
         "empty. Import the workspace file of the data set on the page Data."], []),
        # What is of the lost data set is not there with it.
        ({"data": "x", "q": "q7", "k": "0"}, "shop", None, ["Cutoff k “0”."]),
        ({"q": "q7", "nonsense": "*"}, "shop", [], ["query “q7” · nonsense “\\*”."]),
    ],
)  # fmt: skip
def test_what_a_link_lost_is_said_and_of_a_lost_data_set_only_that(
    paper, session, monkeypatch, lost, chosen, data, others
):
    rows = [SimpleNamespace(id="shop", name="Shop")] if chosen else []
    store = SimpleNamespace(datasets=lambda: rows)
    monkeypatch.setattr(sharing_link, "workspace", lambda: store)
    address.settle("data", chosen)
    session["address.lost"] = lost
    drawn = paper(sharing_link)
    sharing_link._say_lost()
    said = drawn.of("warning")
    start = "This link refers to things that are not here; defaults are shown for: "
    assert [each.removeprefix(start) for each in said if each.startswith(start)] == others
    if data is not None:
        assert [each for each in said if not each.startswith(start)] == data
    assert bool(drawn.of("page_link")) is ("data" in lost)


@pytest.mark.parametrize(("count", "more"), [(5, False), (6, True)])
def test_five_lost_choices_are_named(count, more):
    names = ("k", "metric", "sort", "text", "tag", "share")[:count]
    said = sharing_link._lost_others(dict.fromkeys(names, "x"))
    assert said.count("“x”") == 5
    assert ("…" in said) is more


@pytest.mark.parametrize(("drawn", "now", "again"), [(None, "a", 0), ("a", "a", 0), ("a", "b", 1)])
def test_a_link_that_changed_below_it_is_drawn_again(
    paper, session, monkeypatch, drawn, now, again
):
    on = paper(sharing_link)
    on.session_state = session
    if drawn:
        session[sharing_link._DRAWN] = drawn
    monkeypatch.setattr(sharing_link, "link", lambda: now)
    sharing_link.follow()
    assert len(on.of("rerun")) == again


@pytest.mark.parametrize(("names", "said"), [(10, 0), (11, 1), (13, 3)])
def test_ten_names_are_listed_after_a_repair_and_the_others_counted(names, said):
    found = repair_view._named([f"n{place:02}" for place in range(names)])
    assert ("more" in found) is bool(said)
    assert f"and {said} more" in found or not said
    assert "n09" in found and "n10" not in found


def test_what_a_repair_found_is_counted_with_the_notes_of_both_kinds():
    rows = {"datasets": 1, "runs": 2, "notes": 1, "run_notes": 2, "corrections": 0}
    bare = SimpleNamespace(rows=rows, copy_of="", unlisted=[], gone=[], changed=0, trash=None)
    assert repair_view._came_back(bare) == [
        "- Found: 1 data set, 2 runs, 3 notes, 0 label corrections."
    ]
    full = SimpleNamespace(
        rows=rows, copy_of="2026-11-01", unlisted=["a"], gone=["b"], changed=4, trash="/trash"
    )
    assert [line.partition(":")[0] for line in repair_view._came_back(full)[1:5]] == [
        "- Also used",
        "- Set apart, because they changed since they were written",
        "- Cannot be listed, stays where it is",
        "- Has no folder any more",
    ]
    assert len(repair_view._came_back(full)) == 6


@pytest.mark.parametrize(
    ("target", "shown_only", "asked"),
    [("data", False, True), ("data", True, False), ("", True, True), ("", False, True)],
)
def test_an_empty_page_that_is_only_shown_offers_nothing_to_add(
    paper, monkeypatch, target, shown_only, asked
):
    monkeypatch.setattr(empty_page, "read_only", lambda: shown_only)
    drawn = paper(empty_page)
    drawn.answers["button"] = True
    assert empty_page.draw("queries", "Title", "Why.", "Go", target) is asked
    assert bool(drawn.of("button")) is asked


@pytest.mark.parametrize(
    ("challengers", "shown", "way"),
    [((), "base", None), (("a",), "a", None), (("a", "b"), "b", "segmented_control"),
     (tuple("abcd"), "b", "segmented_control"), (tuple("abcde"), "b", "selectbox")],
)  # fmt: skip
def test_the_best_of_several_challengers_is_shown_until_one_is_chosen(
    monkeypatch, session, challengers, shown, way
):
    asked = []

    def pick(name, options, draw, default=None, **_settings):
        asked.append(draw.__name__)
        return address.one(name) or default

    monkeypatch.setattr(view.pickers, "pick_one", pick)
    monkeypatch.setattr(view, "best_challenger", lambda _study: "b")
    monkeypatch.setattr(view, "st", SimpleNamespace(
        selectbox=lambda: None, segmented_control=lambda: None))  # fmt: skip
    for name in ("selectbox", "segmented_control"):
        getattr(view.st, name).__name__ = name
    study = SimpleNamespace(challengers=challengers, baseline="base", name=str.upper)
    assert view.in_focus(study) == shown
    assert asked == ([way] if way else [])
    address.choose("vs", "a")
    assert view.in_focus(study) == ("a" if way else shown)


@pytest.mark.parametrize(
    ("challengers", "systems", "state", "stopped"),
    [((), 1, "empty_state", True), ((), 2, "chosen", True), (("a",), 2, None, False)],
)
def test_a_page_that_compares_needs_a_challenger(monkeypatch, challengers, systems, state, stopped):
    shown = []

    def stop():
        raise StopPageError

    monkeypatch.setattr(view, "st", SimpleNamespace(stop=stop))
    monkeypatch.setattr(view, "empty_state", lambda *_a: shown.append("empty_state"))
    monkeypatch.setattr(view.empty_page, "draw", lambda *_a: shown.append("chosen"))
    study = SimpleNamespace(challengers=challengers, systems=dict.fromkeys(range(systems)))
    if stopped:
        with pytest.raises(StopPageError):
            view.needs_challenger(study, "queries")
    else:
        view.needs_challenger(study, "queries")
    assert shown == ([state] if state else [])


@pytest.mark.parametrize(
    ("corrections", "corrected", "said"),
    [(1, True, "**1 label given or corrected**"), (2, True, "**2 labels given or corrected**"),
     (1, False, "1 correction excluded"), (3, False, "3 corrections excluded")],
)  # fmt: skip
def test_corrections_are_in_force_or_excluded(corrections, corrected, said):
    study = SimpleNamespace(corrections=corrections, corrected=corrected)
    assert view._corrections(study) == said


@pytest.mark.parametrize(
    ("judged_only", "corrections", "newest", "switch", "estimated"),
    [
        (False, 0, "", False, None),
        (True, 0, "c", False, None),
        (False, 2, "c", True, None),
        (False, 2, "c", True, "DCG@10"),
    ],
)
def test_the_line_below_the_title_says_what_is_compared(
    paper, monkeypatch, judged_only, corrections, newest, switch, estimated
):
    rows = {"a": SimpleNamespace(created="2026-11-01"), "c": SimpleNamespace(created="2026-11-03"),
            "z": SimpleNamespace(created="2026-11-09")}  # fmt: skip
    monkeypatch.setattr(view.stored, "rows", lambda _id: rows if newest else {})
    monkeypatch.setattr(view, "moment", lambda when: when)
    picked = []
    monkeypatch.setattr(view.pickers, "pick_one", lambda name, *_a, **_k: picked.append(name))
    plan = None if estimated is None else SimpleNamespace(metric=estimated)
    monkeypatch.setattr(view.label_plan, "sampled", lambda _id: plan)
    study = SimpleNamespace(
        dataset=SimpleNamespace(name="Shop", queries=[1] * 16), name=str.upper, baseline="base",
        challengers=("a", "c"), chosen=("base", "a", "c"), stored_id="shop",
        measure=SimpleNamespace(title="NDCG@10"), corrections=corrections, corrected=True,
        conventions=SimpleNamespace(judged_only=judged_only),
    )  # fmt: skip
    drawn = paper(view)
    view.caption(study, ["3 runs"])
    [line] = drawn.of("caption")
    parts = line.split(" · ")
    assert parts[:3] == ["Shop", "BASE → A, C", estimated or "NDCG@10"]
    assert ("**condensed lists (judged documents only)**" in parts) is judged_only
    assert parts[3 + judged_only : 5 + judged_only] == ["16 queries", "3 runs"]
    # The newest of the systems compared, not of all there are.
    assert ("newest run 2026-11-03 UTC" in parts) is bool(newest)
    assert "2026-11-09" not in line
    assert picked == ([view.LABELS] if switch else [])


@pytest.mark.parametrize(
    ("labels", "thresholds", "tops"),
    [
        ([0.0, 1.0], [1.0], [1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 100.0]),
        ([-1.0, 0.0, 2.0, 4.0], [2.0, 4.0], [4.0, 5.0, 10.0, 100.0]),
        ([0.0, 0.5], [0.5], [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 100.0]),
        ([0.0], [], [1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 100.0]),
    ],
)
def test_grades_that_the_labels_have_are_offered_as_thresholds(
    monkeypatch, labels, thresholds, tops
):
    offered = {}
    monkeypatch.setattr(comparison_settings, "fold", lambda _t, _k, _i, draw: draw())
    monkeypatch.setattr(
        comparison_settings, "_draw_settings", lambda _s, numbers: offered.update(numbers)
    )
    comparison_settings.draw(labels)
    assert sorted(offered["threshold"]) == thresholds
    assert sorted(offered["err_top_label"]) == tops


@pytest.mark.parametrize(
    ("skipped", "failed", "base", "default"),
    [
        ("", {}, FIRST_STAGE, "bcdefghi"),
        # A quick look over some queries is chosen only if there is nothing else.
        ("i", {}, FIRST_STAGE, "abcdefgh"),
        ("abcdefghi", {}, FIRST_STAGE, "bcdefghi"),
        ("", {}, "i", "abcdefgh"),
        # The retry of a run takes its place; a run with as many failed queries is no retry.
        ("", {"g": 5, "h": 0}, FIRST_STAGE, "abcdefhi"),
        ("", {"g": 5, "h": 5}, FIRST_STAGE, "bcdefghi"),
        ("", {"g": 0, "h": 5}, FIRST_STAGE, "bcdefghi"),
    ],
)
def test_the_newest_whole_runs_are_compared_to_begin_with(
    monkeypatch, session, skipped, failed, base, default
):
    names = [FIRST_STAGE, *"abcdefghi"]
    systems = {name: SimpleNamespace(name=name.upper()) for name in names}
    rows = {
        name: SimpleNamespace(
            queries_skipped=3 if name in skipped else 0,
            queries_failed=failed.get(name, 0),
            reranker="endpoint" if name in failed else name,
            settings={},
            depth=50,
            created=f"2026-11-26T10:0{place}",
        )
        for place, name in enumerate("abcdefghi")
    }
    monkeypatch.setattr(sidebar.stored, "systems", lambda _id: systems)
    monkeypatch.setattr(sidebar.stored, "rows", lambda _id: rows)
    monkeypatch.setattr(sidebar.deleted, "note_runs", lambda *_a: None)
    monkeypatch.setattr(sidebar.label_plan, "sampled", lambda _id: None)
    monkeypatch.setattr(sidebar.stored, "damaged", lambda _id: {})
    monkeypatch.setattr(sidebar, "workspace", lambda: None)
    monkeypatch.setattr(sidebar, "Pins", lambda _store: SimpleNamespace(of=lambda _id: "d"))
    asked = {}

    def one(name, options, _draw, default=None, **settings):
        asked[name] = (list(options), default, settings)
        return base if name == "base" else default

    def several(name, options, _draw, default=(), **settings):
        asked[name] = (list(options), list(default), settings)

    monkeypatch.setattr(sidebar.pickers, "pick_one", one)
    monkeypatch.setattr(sidebar.pickers, "pick_several", several)
    address.choose("k", "7")
    sidebar._draw_comparison("shop")
    options, chosen, _settings = asked["system"]
    assert chosen == list(default)
    assert base not in options and len(options) == len(names) - 1
    assert asked["base"][1] == "d"
    words = asked["base"][2]["format_func"]
    assert (words("d"), words("a")) == ("D (pinned)", "A")
    assert "judged" not in asked["metric"][0] and asked["metric"][1] == "ndcg"
    cutoffs, usual, _rest = asked["k"]
    assert usual == "10" and cutoffs[-1] == "all"
    assert [int(k) for k in cutoffs[:-1]] == sorted({*sidebar.CUTOFFS, 7})
