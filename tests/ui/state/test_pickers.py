"""Widgets bound to choices, with a browser that lags behind: the tables of `pickers`, row by row,
without a browser."""

import threading

import pytest
from streamlit.runtime.scriptrunner import RerunData, RerunException, StopException

from rankdash.kit.widgets import pickers

UNSET = object()


class Browser:
    """The state of a browser: how far it is behind, its last language and the run's address."""

    behind = gone_back = language = False
    given: dict[str, list[str]] = {}  # noqa: RUF012 - replaced, never changed
    url, time = "", 100.0


@pytest.fixture
def browser(session, monkeypatch):
    now = Browser()
    monkeypatch.setattr(pickers, "gone_back", lambda: now.gone_back)
    monkeypatch.setattr(pickers.language, "changed", lambda: now.language)
    monkeypatch.setattr(pickers.language, "mark_drawn", lambda: None)
    return now


@pytest.fixture
def lag(browser, monkeypatch):
    monkeypatch.setattr(pickers, "behind", lambda: browser.behind)
    return browser


# Case → events: "a" draws the widget at a; "+a" is a move to a by the user, or a late report of the
# browser; "." ends the script; a word sets the state of the browser. After the arrow, the result of
# each letter: "sent", "starts" (start value only), "chosen", or "heard" (without effect).
STORIES = {
    "sent until the script ends, then it only starts there": "a a . a a → sent sent starts starts",
    "put elsewhere": "a . b . b → sent sent starts",
    "other words are sent anew": "a . language a → sent sent",
    # The widget is ready although the run that drew it did not end.
    "moved in step": "a +b b → sent chosen starts",
    "a late report is no move, and what was put there is sent again": (
        "a . b . behind +a b → sent sent heard sent"),
    # The browser may send another late report.
    "moved while something is under way": (
        "a . b . behind +a b +c c → sent sent heard sent chosen sent"),
    "in step again, the same value is a choice": (
        "a . b . behind +a b +c c . step +a behind a +b b → "
        "sent sent heard sent chosen sent chosen starts chosen starts"),
    "never put elsewhere, it is heard all the same": "a behind +b b → sent chosen starts",
    # After the back button, the address has priority over a widget.
    "after going back": "a . back +b =a a → sent heard sent",
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_a_widget_is_sent_its_value_as_seldom_as_possible(session, lag, story):
    happens, done = (each.split() for each in story.split(" → "))
    told, heard, chosen = [], [], []

    def widget(value=UNSET, key="", on_change=None):
        told.append("sent" if value is UNSET else "starts")
        heard.append(on_change)

    for each in happens:
        match each:
            case ".":
                pickers.mark_sent()
            case "language":
                lag.language = True
            case "behind" | "step":
                lag.behind = each == "behind"
            case "back":
                lag.gone_back = True
            case _ if each[0] in "+=":
                session["w"] = each[1]
                if each[0] == "+":
                    before = len(chosen)
                    heard[-1]()
                    told.append("chosen" if len(chosen) > before else "heard")
            case _:
                pickers.show(widget, "w", each, lambda: chosen.append(session["w"]))()
                assert session["w"] == each
    assert told == done


def test_changes_are_heard_one_at_a_time_though_their_runs_overlap(session, lag):
    """The older change is still being stored when the newer one arrives in another thread."""
    kept, heard, begun, free = [], [], threading.Event(), threading.Event()

    def drawn(value=UNSET, key="", on_change=None):
        heard.append(on_change)

    def keep():
        value = session["w"]
        if value == "b":
            begun.set()
            assert free.wait(60)
        kept.append(value)

    pickers.show(drawn, "w", "a", keep)()
    older, newer = (threading.Thread(target=heard[0]) for _ in range(2))
    session["w"] = "b"
    older.start()
    assert begun.wait(60)
    session["w"] = "c"
    newer.start()
    # Without the lock the newer thread ends here, and the older value would be stored last.
    newer.join(0.5)
    free.set()
    older.join()
    newer.join()
    assert kept == ["b", "c"]


@pytest.mark.parametrize("cut", [StopException, lambda: RerunException(RerunData())])
def test_a_change_that_was_cut_short_is_heard_when_the_widget_is_next_drawn(
    session, lag, monkeypatch, cut
):
    kept, heard, again = [], [], [cut()]

    def drawn(value=UNSET, key="", on_change=None):
        heard.append(on_change)

    def keep():
        for problem in again:
            raise problem
        kept.append(session["w"])

    monkeypatch.setattr(pickers.st, "rerun", lambda: kept.append("rerun"))
    pickers.show(drawn, "w", "a", keep)()
    session["w"] = "b"
    with pytest.raises(type(again[0])):
        heard[0]()
    again.clear()
    assert kept == []
    pickers.show(drawn, "w", "a", keep)()
    pickers.show(drawn, "w", "b", keep)()
    assert kept == ["b", "rerun"]


@pytest.mark.parametrize(("value", "given"), [(None, {"value": None}), (0.0, {}), ("", {})])
def test_an_empty_field_is_empty_and_not_at_its_least_value(session, lag, value, given):
    seen = {}

    def field(value=UNSET, key="", on_change=None):
        seen.update({"value": value} if value is not UNSET else {})

    pickers.show(field, "w", value, lambda: None)()
    assert seen == given
    pickers.mark_sent()
    pickers.show(field, "w", value, lambda: None)()
    assert seen == {"value": value}


# The address of a run.

NOW, BEFORE, NEW = {"k": ["5"]}, {"k": ["3"]}, {"k": ["9"]}


@pytest.fixture
def come(browser, session, monkeypatch):
    """Return a function that simulates a run with an address: the last written, an earlier or a new
    one. It returns how often the list of invalid fields was cleared."""
    forgotten = []
    for name, what in {
        "given": lambda: browser.given, "written": lambda: NOW, "take_over": lambda _given: None,
        "is_known": lambda given: given in (NOW, BEFORE),
        "forget_lost": lambda: forgotten.append(1),
    }.items():  # fmt: skip
        monkeypatch.setattr(pickers.address, name, what)
    monkeypatch.setattr(pickers, "time", browser)
    browser.monotonic = lambda: browser.time
    monkeypatch.setattr(pickers.st, "context", browser)

    def came(given, path="/queries", back=False):
        browser.given, browser.gone_back, browser.url = given, back, f"http://here{path}?x=1"
        pickers.restore()
        return len(forgotten)

    return came


def test_what_a_link_lost_is_said_until_another_page_or_the_bare_one(come):
    steps = [(NOW, "/queries"), (NEW, "/queries"), ({}, "/queries"), (NOW, "/run")]
    assert [come(*step) for step in steps] == [1, 1, 2, 3]


@pytest.mark.parametrize(
    ("first", "back", "later", "behind"),
    [(BEFORE, True, 0.0, True), (BEFORE, True, 4.99, True), (BEFORE, True, 5.0, False),
     (NEW, False, 0.0, False)],
)  # fmt: skip
def test_after_going_back_the_browser_counts_as_behind_for_a_while(
    come, browser, first, back, later, behind
):
    come(first, back=back)
    browser.given, browser.gone_back = NOW, False
    browser.time += later
    assert pickers.behind() is behind
