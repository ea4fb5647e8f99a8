"""Widgets that show what is chosen, for a browser that lags behind: the tables of `pickers`, row by
row, without a browser."""

import threading
from types import SimpleNamespace

import pytest
from streamlit.runtime.scriptrunner import RerunData, RerunException, StopException

from rankdash.ui.state import pickers

UNSET = object()


@pytest.fixture
def lag(session, monkeypatch):
    """How far the browser is, and in which language it was last drawn."""
    now = SimpleNamespace(behind=False, gone_back=False, language=False)
    monkeypatch.setattr(pickers, "_behind", lambda: now.behind)
    monkeypatch.setattr(pickers, "_gone_back", lambda: now.gone_back)
    monkeypatch.setattr(pickers.language, "changed", lambda: now.language)
    monkeypatch.setattr(pickers.language, "shown", lambda: None)
    return now


class Widget:
    """One that is drawn at a value, and moved."""

    def __init__(self, session) -> None:
        self.session, self.chosen, self.heard = session, [], None

    def draw(self, value: str):
        """What it starts at, unless its value was sent; None then."""
        begun = []

        def drawn(value=UNSET, key="", on_change=None):
            begun.append(value)
            self.heard = on_change

        pickers.show(drawn, "w", value, lambda: self.chosen.append(self.session["w"]))()
        assert self.session["w"] == value
        return None if begun == [UNSET] else begun[0]

    def move(self, value: str) -> None:
        self.session["w"] = value
        self.heard()


@pytest.fixture
def widget(session, lag):
    return Widget(session)


def test_a_value_is_sent_until_the_script_ends_and_then_it_only_starts_there(widget):
    assert widget.draw("a") is None
    assert widget.draw("a") is None
    pickers.shown()
    assert widget.draw("a") == "a"
    assert widget.draw("a") == "a"


def test_a_widget_that_is_put_elsewhere_is_sent(widget):
    widget.draw("a")
    pickers.shown()
    assert widget.draw("b") is None
    pickers.shown()
    assert widget.draw("b") == "b"


def test_in_another_language_a_value_is_sent_anew(widget, lag):
    widget.draw("a")
    pickers.shown()
    lag.language = True
    assert widget.draw("a") is None


def test_what_a_person_moves_in_step_is_chosen_and_stays_where_it_is(widget):
    widget.draw("a")
    widget.move("b")
    assert widget.chosen == ["b"]
    # The run that drew it did not end, and the widget is ready all the same.
    assert widget.draw("b") == "b"


def test_a_browser_that_has_not_heard_of_a_value_does_not_take_it_back(widget, lag):
    widget.draw("a")
    pickers.shown()
    widget.draw("b")
    pickers.shown()
    lag.behind = True
    widget.move("a")
    assert widget.chosen == [], "nobody moved it"
    # It is sent again, and may be reported late once more.
    assert widget.draw("b") is None
    widget.move("c")
    assert widget.chosen == ["c"]
    assert widget.draw("c") is None, "what was sent before is still under way"
    pickers.shown()
    # In step again, the same value is a choice.
    lag.behind = False
    widget.move("a")
    assert widget.chosen == ["c", "a"]
    lag.behind = True
    assert widget.draw("a") == "a"
    widget.move("b")
    assert widget.chosen == ["c", "a", "b"]
    assert widget.draw("b") == "b", "nothing is under way any more"


def test_a_person_who_moves_what_was_never_put_elsewhere_is_heard_though_the_browser_lags(
    widget, lag
):
    widget.draw("a")
    lag.behind = True
    widget.move("b")
    assert widget.chosen == ["b"]
    assert widget.draw("b") == "b"


def test_after_going_back_the_address_says_more_than_a_widget(widget, lag):
    widget.draw("a")
    pickers.shown()
    lag.gone_back = True
    widget.move("b")
    assert widget.chosen == []
    widget.session["w"] = "a"
    assert widget.draw("a") is None


def test_changes_are_heard_one_at_a_time_though_their_runs_overlap(session, lag):
    """The older one is still being kept when the newer one comes, in another thread."""
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
    # Where it need not wait, it is done by then, and what is kept last is wrong.
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
    assert kept == ["b", "rerun"]
    pickers.show(drawn, "w", "b", keep)()
    assert kept == ["b", "rerun"]


@pytest.mark.parametrize(("value", "given"), [(None, {"value": None}), (0.0, {}), ("", {})])
def test_an_empty_field_is_empty_and_not_at_its_least_value(session, lag, value, given):
    seen = {}

    def field(value=UNSET, key="", on_change=None):
        seen.update({"value": value} if value is not UNSET else {})

    pickers.show(field, "w", value, lambda: None)()
    assert seen == given
    pickers.shown()
    pickers.show(field, "w", value, lambda: None)()
    assert seen == {"value": value}


@pytest.mark.parametrize(("value", "start"), [("a", 0), ("b", 1)])
def test_a_list_starts_at_the_place_of_its_value(session, lag, value, start):
    seen = {}

    def choice(options=(), index=None, key="", on_select=None):
        seen.update(index=index, heard=on_select is not None)

    pickers.show(choice, "w", value, lambda: None, ["a", "b"])()
    assert seen == {"index": None, "heard": True}
    pickers.shown()
    pickers.show(choice, "w", value, lambda: None, ["a", "b"])()
    assert seen["index"] == start


def test_a_list_of_which_nothing_is_chosen_is_given_no_value(session, lag):
    seen = []

    def choice(options=(), index=None, key="", on_change=None):
        seen.append(index)

    pickers.show(choice, "w", None, lambda: None, ["a", "b"])()
    assert seen == [None]


@pytest.mark.parametrize(
    ("changed", "stored", "sent"), [(True, "a", ["a"]), (False, "a", []), (True, None, [])]
)
def test_a_list_is_sent_in_the_words_of_another_language(monkeypatch, changed, stored, sent):
    sets = []

    class Session(dict):
        def __setitem__(self, key, value):
            sets.append(value)
            super().__setitem__(key, value)

    monkeypatch.setattr(pickers.st, "session_state", Session({"w": stored} if stored else {}))
    monkeypatch.setattr(pickers.language, "changed", lambda: changed)
    assert pickers.in_words("w") == "w"
    assert sets == sent


# The address that comes with a run.

NOW, BEFORE, NEW = {"k": ["5"]}, {"k": ["3"]}, {"k": ["9"]}


@pytest.fixture
def address(session, monkeypatch):
    """An address that was written last, one of before, and one that was never here."""
    told = SimpleNamespace(given={}, taken=[], forgotten=0, path="/queries", back=False, time=100.0)

    def forget() -> None:
        told.forgotten += 1

    for name, what in {
        "given": lambda: told.given,
        "written": lambda: NOW,
        "is_known": lambda given: given in (NOW, BEFORE),
        "take_over": lambda given: told.taken.append(given),
        "forget_lost": forget,
    }.items():
        monkeypatch.setattr(pickers.address, name, what)
    monkeypatch.setattr(pickers, "_gone_back", lambda: told.back)
    monkeypatch.setattr(pickers.time, "monotonic", lambda: told.time)
    context = SimpleNamespace(url="")
    monkeypatch.setattr(pickers, "st", SimpleNamespace(session_state=session, context=context))

    def come(given, path="/queries", back=False):
        told.given, told.back, context.url = given, back, f"http://here{path}?x=1"
        told.taken.clear()
        pickers.restore()
        return told.taken

    told.come = come
    return told


@pytest.mark.parametrize(
    ("given", "back", "taken"),
    [
        ({}, False, []), (NOW, False, []), (BEFORE, False, []), (NEW, False, [NEW]),
        ({}, True, []), (NOW, True, []), (BEFORE, True, [BEFORE]), (NEW, True, [NEW]),
    ],
)  # fmt: skip
def test_what_was_followed_typed_or_gone_back_to_is_chosen(address, given, back, taken):
    assert address.come(given, back=back) == taken


def test_what_a_link_lost_is_said_until_another_page_or_the_bare_one(address):
    address.come(NOW)
    assert address.forgotten == 1, "the first page"
    address.come(NEW)
    assert address.forgotten == 1
    address.come({})
    assert address.forgotten == 2
    address.come(NOW, "/run")
    assert address.forgotten == 3


@pytest.mark.parametrize(
    ("given", "behind"), [({}, False), (NOW, False), (BEFORE, True), (NEW, False)]
)
def test_the_browser_is_behind_where_a_click_has_an_address_of_before(address, given, behind):
    address.given = given
    assert pickers._behind() is behind
    pickers._under_way()["w"] = ["a"]
    address.come(given)
    assert bool(pickers._under_way()) is behind


@pytest.mark.parametrize(("later", "behind"), [(0.0, True), (4.99, True), (5.0, False)])
def test_after_going_back_the_browser_counts_as_behind_for_a_while(address, later, behind):
    address.come(BEFORE, back=True)
    address.given, address.back = NOW, False
    address.time += later
    assert pickers._behind() is behind


def test_going_forth_without_the_way_back_leaves_the_browser_in_step(address):
    address.come(NEW)
    address.given = NOW
    assert not pickers._behind()
