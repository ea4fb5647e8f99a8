"""The list of queries: its filters, its rows, and the open query."""

from functools import partial

import pandas as pd
import pytest
import streamlit as st

from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.queries import page_filters, page_list, page_why
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.filters import Filters
from rankdash.kit.drawing import style
from rankdash.kit.widgets import address, view
from rankdash.kit.widgets import stored as widgets_stored
from rankdash.kit.widgets.cache import cache
from tests.ui.lives import lives, play
from tests.ui.parts import component, dataset_of, drawn, run_of, send, study_of

# Query → rank of its one relevant document before and after; 0: below the cutoff of MRR@10.
MOVED = {"up": (2, 1), "down": (1, 2), "whole": (0, 1), "none": (1, 1), "least up": (9, 8),
         "least down": (8, 9)}  # fmt: skip
DOCS = [f"d{n}" for n in range(12)]


def at(rank: int) -> list[str]:
    """Return the list with d0 at a rank."""
    docs = DOCS[1:]
    docs.insert((rank or 12) - 1, "d0")
    return docs


DATA = dataset_of(
    "query_id,query,doc_id,document,label,score,kind,a=b\n"
    + "".join(
        f"{query},{'' if query == 'none' else query + ' text'},{doc},text,{int(doc == 'd0')},"
        f"{20 - place},{'ab'['down' in query]},{'cd'['up' in query]}\n"
        for query, (before, _after) in MOVED.items()
        for place, doc in enumerate(at(before))
    )
)
STUDY = study_of(
    DATA,
    run_of(DATA, "run", {query: at(after) for query, (_before, after) in MOVED.items()}),
    metric="mrr",
    dataset_id="moved",
)
NO_MARKS = pd.DataFrame(columns=["query_id", "tags", "note"], dtype=object)
MARKS = pd.DataFrame(
    {"query_id": ["none", "gone"], "tags": ["ask, later", "x"], "note": ["why", "y"]}
)
TITLES = page_list.titles("B", "A")


def rows(
    order: str = "given",
    marks: pd.DataFrame = NO_MARKS,
    also: str | None = None,
    **wanted: object,
) -> page_list.Rows:
    return page_list.rows(STUDY, "run", Filters(**wanted), order, marks, also)


def window(order: str = "given", marks: pd.DataFrame = NO_MARKS, opened: str = "up") -> dict:
    """Return the data of the component."""

    def draw() -> None:
        page_list.show_window(rows(order, marks), opened)
        page_list.draw(rows(order, marks), queries_study.listing(STUDY, "run"), marks, order)

    data = component(drawn(draw), "query_list")
    return data | {"rows": {row[0]: row[1:] for row in data["rows"]}}


def test_a_row_has_its_text_both_values_on_one_axis_and_the_change_in_a_sign_and_a_word():
    data = window()
    said = [[*row[:4], row[4], data["words"]["said"][row[5]]] for row in data["rows"].values()]
    assert said == [
        ["up text", 500, 1000, "▲ +0.500", 0, "relevant moved up"],
        ["down text", 1000, 500, "▼ -0.500", 2, "irrelevant promoted"],
        ["whole text", 0, 1000, "▲ +1.000", 0, "relevant moved up"],
        ["none", 1000, 1000, "= 0.000", 1, "already ideal"],
        ["least up text", 111, 125, "▲ +0.014", 0, "relevant moved up"],
        ["least down text", 125, 111, "▼ -0.014", 2, "irrelevant promoted"],
    ]
    assert data["colours"] == [style.BETTER, style.FIRST_STAGE, style.WORSE]


def test_the_value_that_the_list_goes_by_and_remarks_are_beside_the_reason():
    def said(query: str, **given) -> str:
        data = window(**given)
        return data["words"]["said"][data["rows"][query][5]]

    assert said("none", marks=MARKS) == "already ideal · ask, later · ✎"
    assert said("up", marks=MARKS) == "relevant moved up"
    assert said("up", order="-judged_after") == "100% · relevant moved up"
    assert said("up", order="headroom") == "0.000 · relevant moved up"
    assert page_why.tags(MARKS) == {"none": ("ask", "later"), "gone": ("x",)}


def test_a_window_of_the_list_follows_the_open_query_and_a_scroll(monkeypatch):
    monkeypatch.setattr(page_list, "WINDOW", 2)
    place = {"opened": "up"}

    def draw() -> None:
        listed = rows()
        page_list.show_window(listed, place["opened"])
        page_list.draw(listed, queries_study.listing(STUDY, "run"), NO_MARKS, "given")

    def shown() -> list[str]:
        data = component(app, "query_list")
        assert (data["total"], data["size"], data["key"]) == (6, 2, rows().key)
        assert [row[0] for row in data["rows"]] == [*MOVED][data["first"] : data["first"] + 2]
        return [row[0] for row in data["rows"]]

    app = drawn(draw)
    assert shown() == ["up", "down"]
    for requested, first in ((3, "none"), (99, "least up"), (-5, "up")):
        app = send(app, "query_list", {"window": requested})
        assert shown()[0] == first
    for ignored in ({"window": "3"}, {"first": 3}, 3, [3], None):
        app = send(app, "query_list", ignored)
        assert shown()[0] == "up"
    place["opened"] = "least down"
    app = app.run()
    assert shown() == ["least up", "least down"]


def test_a_query_of_the_list_is_opened_and_no_other():
    app = drawn(lambda: page_list.follow(rows(), page_list.opened(lambda _also: rows(), ())[1]))
    for event, opened in (
        ({"open": "none"}, "none"), ({"open": "gone"}, "none"), ({"open": ["up"]}, "none"),
        ("up", "none"), ({"open": "down"}, "down"),
    ):  # fmt: skip
        app = send(app, "query_open", event)
        assert component(app, "query_open")["query"] == opened


def test_a_query_stays_open_while_the_filters_stay_and_not_with_others():
    wanted = {"text": ""}

    def draw() -> None:
        listed = partial(rows, text=wanted["text"])
        shown, query_id = page_list.opened(lambda also: listed(also=also), wanted["filters"])
        wanted["ids"], wanted["opened"] = shown.ids, query_id

    wanted["filters"] = "some"
    app = drawn(draw, q="down")
    # A correction makes it another kind of query.
    wanted["text"] = "least"
    app.run()
    assert (wanted["opened"], wanted["ids"]) == ("down", ["down", "least up", "least down"])
    wanted["filters"] = "others"
    app.run()
    assert (wanted["opened"], wanted["ids"]) == ("least up", ["least up", "least down"])


def test_bars_count_the_queries_and_a_click_on_a_part_filters_until_the_next():
    app = drawn(lambda: page_filters.tally(STUDY, queries_study.listing(STUDY, "run")))

    def shown() -> dict[str, dict[str, object]]:
        bars = component(app, "query_tally")["bars"]
        return {
            bar["field"]: {part["word"]: part["count"] for part in bar["parts"]} for bar in bars
        }

    def chosen() -> list[str]:
        bars = component(app, "query_tally")["bars"]
        return [part["value"] for bar in bars for part in bar["parts"] if part["chosen"]]

    assert shown() == {
        "outcome": {"helped ▲": "3", "same = (±0.005)": "1", "hurt ▼": "2"},
        "fault": {"reranker": "3", "perfect": "3"},
    }
    for field, value, left in (
        ("outcome", "hurt", ["hurt"]), ("fault", "none", ["hurt", "none"]),
        ("outcome", "hurt", ["none"]), ("fault", "hurt", ["none"]), ("state", "ok", ["none"]),
        ("fault", "reranker", ["reranker"]),
    ):  # fmt: skip
        app = send(app, "query_tally", {"field": field, "value": value})
        assert chosen() == left
    for event in (["outcome"], {"field": ["outcome"], "value": "hurt"}):
        app = send(app, "query_tally", event)
        assert chosen() == ["reranker"]


def test_a_list_is_made_once_for_all_who_see_it_alike(stored):
    data, systems = widgets_stored.dataset(stored), widgets_stored.systems(stored)

    def listed(wanted=None, order="hurt", marks=NO_MARKS, **changed) -> page_list.Rows:
        """Return the rows of a study, which is a new object each time."""
        study = Study(data, systems, FIRST_STAGE, (list(systems)[-1],), dataset_id=stored,
                      cache=cache, **changed)  # fmt: skip
        return page_list.rows(study, study.challengers[0], wanted or Filters(), order, marks)

    tagged = pd.DataFrame({"query_id": ["q3"], "tags": ["ask"], "note": [""]})
    first = listed()
    assert listed() is first
    assert sorted(first.ids) == sorted(f"q{place}" for place in range(16))
    others = [
        listed(order="helped"),
        listed(Filters(text="return 1")),
        listed(Filters(segments={"kind": ("b",)})),
        listed(marks=tagged),
        listed(Filters(tags=("ask",)), marks=tagged),
        listed(cutoff=1),
    ]
    assert len({id(each) for each in [first, *others]}) == 7
    assert {each.key for each in others if each.ids == first.ids} <= {first.key}
    assert others[1].ids != first.ids and others[4].ids == ["q3"]


@pytest.mark.parametrize("life", lives("queries"))
def test_a_life_of_the_list(life, approved, monkeypatch):
    found = {}
    monkeypatch.setattr(address, "publish", lambda: None)

    def filters():
        given = page_why.tags(MARKS), "Judged@10", TITLES, {"a=1": "First", "b": "Second"}
        listing = queries_study.listing(STUDY, "run")
        found["wanted"], found["order"] = page_filters.draw(listing, *given)
        found["lost"], found["in link"] = dict(address.lost()), address.several("values")

    def listed():
        text = address.one("text") or ""
        shown, found["opened"] = page_list.opened(lambda also: rows(text=text, also=also), text)
        found["lost"] = dict(address.lost())
        found["landing"] = st.session_state.get(view.LANDING)
        if found["opened"]:
            page_list.steps(shown, found["opened"])

    def opened(draw, *given):
        """Draw a part for an address, such as "q=up tag=ask"."""
        found.clear()
        params = {}
        for name, _, value in (each.partition("=") for each in given):
            params.setdefault(name, []).append(value)
        return drawn(draw, **params)

    def wanted():
        usual = vars(Filters())
        return {name: each for name, each in vars(found["wanted"]).items() if each != usual[name]}

    names = ("order", "lost", "in link") if "filters" in life else ("opened", "lost", "landing")
    facts = {name: partial(found.get, name) for name in names}
    if "filters" in life:
        facts["wanted"] = wanted
    acts = {"filters": partial(opened, filters), "list": partial(opened, listed)}
    approved(life, play(life, acts, facts))


@pytest.mark.parametrize(
    ("reach", "both_ways", "whole", "step"),
    [
        (1.0, False, (0.0, 1.0), 0.01),
        (1.0, True, (-1.0, 1.0), 0.1),
        (0.33, True, (-0.33, 0.33), 0.01),
        (0.0, False, (0.0, 0.1), 0.1),
        (12.0, False, (0.0, 12.0), 0.1),
    ],
)
def test_a_slider_goes_as_far_as_the_values_in_even_steps(reach, both_ways, whole, step):
    axis = page_filters.Axis.to(reach, both_ways=both_ways)
    assert axis.whole == pytest.approx(whole)
    assert axis.step == pytest.approx(step)
    assert axis.read(None) == axis.whole and axis.write(axis.whole) is None
    assert axis.write((0.0, 0.05)) == "0..0.05"
