"""Sessions whose script is rerun after another session changed a name."""

from dataclasses import dataclass

import pytest

from rankdash.kit.widgets import redraw

SHOP, POST = ("s", "datasets", "s", "Shop"), ("p", "datasets", "p", "Post")
RUN = ("s", "runs", "r", "second")
BEFORE = {"p": (POST,), "s": (SHOP, RUN)}
OTHER_RUN = {"p": (POST,), "s": (SHOP, (*RUN[:3], "sharper"))}
OTHER_SET = {"p": ((*POST[:3], "Mail"),), "s": (SHOP, RUN)}
ADDED = {"n": (("n", "datasets", "n", "New"),), **BEFORE}
DELETED = {"p": (POST,)}


class Session:
    """A session of Streamlit: it has a runner during a run or while one is requested."""

    def __init__(self):
        self._scriptrunner = None
        self._client_state = "where it was"
        self.asked = []

    def request_rerun(self, state):
        self.asked.append(state)


class Tabs(dict):
    """Streamlit's runtime: id → session, of those with a tab."""

    get_app_session = dict.get

    def get_instance(self):
        return self


@dataclass
class Context:
    session_id: str


@pytest.fixture
def sessions(monkeypatch):
    tabs = Tabs()
    monkeypatch.setattr(redraw, "runtime", tabs)
    # Sessions of other tests are forgotten, because they have no tab.
    redraw.draw_again({}, set())
    return tabs


@pytest.fixture
def opened(sessions, monkeypatch):
    """Return a function that opens a tab with a data set and returns its session."""

    def tab(key, dataset_id, names=BEFORE):
        monkeypatch.setattr(redraw, "get_script_run_ctx", lambda: Context(key))
        redraw.shows(dataset_id, names)
        return sessions.setdefault(key, Session())

    return tab


@pytest.mark.parametrize(
    ("now", "asked"),
    [
        (BEFORE, []),
        (OTHER_RUN, ["shop"]),
        (OTHER_SET, ["shop", "post", "none"]),
        (ADDED, ["shop", "post", "none"]),
        (DELETED, ["shop", "post", "none"]),
    ],
)
def test_who_shows_what_changed_is_asked_once(opened, now, asked):
    tabs = {"shop": opened("a", "s"), "post": opened("b", "p"), "none": opened("c", None)}
    for _second in range(3):
        redraw.draw_again(now, set())
    assert [name for name, tab in tabs.items() if tab.asked == ["where it was"]] == asked
    assert sum(len(tab.asked) for tab in tabs.values()) == len(asked)


def test_a_run_that_is_under_way_is_not_cut_short(opened):
    tab = opened("a", "s")
    tab._scriptrunner = object()
    redraw.draw_again(OTHER_RUN, set())
    assert tab.asked == []
    tab._scriptrunner = None
    redraw.draw_again(OTHER_RUN, set())
    assert tab.asked == ["where it was"]


def test_who_made_the_change_is_not_asked(opened):
    tab = opened("a", "s")
    opened("a", "s", OTHER_RUN)
    redraw.draw_again(OTHER_RUN, set())
    assert tab.asked == []


def test_what_stands_on_a_page_is_left_until_its_next_run(opened):
    tab = opened("a", "s")
    redraw.pause()
    redraw.draw_again(OTHER_RUN, set())
    assert tab.asked == []
    opened("a", "s", OTHER_RUN)
    redraw.draw_again(ADDED, set())
    assert tab.asked == ["where it was"]


def test_a_session_without_a_tab_is_forgotten(opened, sessions):
    tab = opened("a", "s")
    sessions.clear()
    redraw.draw_again(BEFORE, set())
    sessions["a"] = tab
    redraw.draw_again(OTHER_RUN, set())
    assert tab.asked == []


def test_a_few_run_at_a_time_until_all_have(opened):
    tabs = {f"t{n}": opened(f"t{n}", "s") for n in range(10)}

    def asked():
        return [key for key, tab in tabs.items() if tab.asked]

    under_way = redraw.draw_again(OTHER_RUN, set())
    assert len(under_way) == len(asked()) == redraw.AT_ONCE
    for key in under_way:
        tabs[key]._scriptrunner = object()
    assert redraw.draw_again(OTHER_RUN, under_way) == under_way
    tabs[min(under_way)]._scriptrunner = None
    assert len(redraw.draw_again(OTHER_RUN, under_way)) == redraw.AT_ONCE
    assert len(asked()) == redraw.AT_ONCE + 1
    for tab in tabs.values():
        tab._scriptrunner = None
    for _turn in range(3):
        under_way = redraw.draw_again(OTHER_RUN, under_way)
    assert under_way == set()
    assert [tab.asked for tab in tabs.values()] == [["where it was"]] * 10
