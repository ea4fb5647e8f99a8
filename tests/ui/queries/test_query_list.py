"""The list of queries and its filters: what is listed, how it is shown, and which one is open."""

import re
from functools import partial
from urllib.parse import unquote

import pandas as pd
import pytest
import streamlit as st

from rankdash.core.base import i18n
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.queries import page_filters, page_list, page_why
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.study import Filters
from rankdash.kit.drawing import style
from rankdash.kit.widgets import address, view
from rankdash.kit.widgets import stored as widgets_stored
from rankdash.kit.widgets.cache import cache
from tests.ui.lives import lives, play
from tests.ui.parts import dataset_of, drawn, run_of, study_of

# Query → rank of its one relevant document before and after, by MRR@10; 0: below the cutoff.
MOVED = {"up": (2, 1), "down": (1, 2), "whole": (0, 1), "none": (1, 1), "least up": (9, 8),
         "least down": (8, 9)}  # fmt: skip
DOCS = [f"d{n}" for n in range(12)]


def at(rank: int) -> list[str]:
    """The list with d0 at a rank."""
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


def rows(order: str = "given", marks: pd.DataFrame = NO_MARKS, **wanted: object) -> page_list.Rows:
    return page_list.rows(STUDY, "run", Filters(**wanted), order, marks)


def bar(picture: str) -> tuple[float, float, str, float | None]:
    """(start, length and colour of the bar, where the ceiling is)."""
    svg = unquote(picture)
    start, wide, colour = re.search(
        r"<rect x='([\d.]+)' y='4' width='([\d.]+)' height='12' fill='(#\w+)'", svg
    ).groups()
    tick = re.search(r"<path d='M([\d.]+) 2V18'", svg)
    return float(start), float(wide), colour, float(tick[1]) if tick else None


def test_a_bar_is_as_long_as_the_change_on_its_side_and_marks_the_ceiling():
    """On one axis to the largest change that is possible, from 32; the smallest one is seen."""
    found = dict(zip(rows().ids, map(bar, rows().shown.column("bar").to_pylist()), strict=True))
    assert found == {
        "up": (32.0, 15.0, style.BETTER, 47.0),
        "down": (17.0, 15.0, style.WORSE, 32.0),
        "whole": (32.0, 30.0, style.BETTER, 62.0),
        "none": (32.0, 0.0, style.WORSE, 32.0),
        "least up": (32.0, 0.9, style.BETTER, pytest.approx(32 + 30 * 8 / 9, abs=0.6)),
        "least down": (31.1, 0.9, style.WORSE, pytest.approx(32 + 30 * 7 / 8, abs=0.6)),
    }


@pytest.mark.parametrize(
    ("order", "columns"),
    [
        ("hurt", ["query", "delta", "bar", "reason", "before", "after", "ceiling"]),
        ("-judged_after",
         ["query", "delta", "bar", "judged_after", "reason", "before", "after", "ceiling"]),
        ("lowest", ["query", "delta", "bar", "before", "reason", "after", "ceiling"]),
    ],
)  # fmt: skip
def test_the_columns_to_begin_with_and_what_the_order_goes_by(order, columns):
    assert rows(order).columns == columns
    assert rows(order, MARKS).columns == [*columns, "tags", "note"]


def test_a_query_without_a_text_is_named_by_its_id_and_notes_stand_at_theirs():
    shown = rows(marks=MARKS).shown.to_pandas().set_axis(rows().ids)
    assert shown["query"]["none"] == "none" and shown["query"]["up"] == "up text"
    assert shown["tags"][shown["tags"] != ""].to_dict() == {"none": "ask, later"}
    assert shown["note"]["none"] == "why"
    assert "tags" not in rows().shown.column_names
    assert page_why.tags(MARKS) == {"none": ("ask", "later"), "gone": ("x",)}


def test_a_short_list_is_as_high_as_its_rows():
    high = [page_list.height(rows(text=text)) for text in ("none", "down", "")]
    assert high == [72, 107, 247]


@pytest.mark.parametrize(
    ("order", "marked"),
    [
        ("hurt", "↑ change"), ("helped", "↓ change"), ("lowest", "↑ B"), ("lowest_after", "↑ A"),
        ("-text", "↓ query"), ("text", "↑ query"), ("given", None),
    ],
)  # fmt: skip
def test_the_column_that_the_list_goes_by_has_an_arrow(order, marked):
    app = drawn(lambda: page_list.draw(rows(order), order, TITLES, "none"))
    assert re.findall('"label": "([↑↓][^"]*)"', unescaped(app)) == ([marked] if marked else [])


def unescaped(app) -> str:
    return app.dataframe[0].proto.columns.encode().decode("unicode_escape")


@pytest.mark.parametrize(
    ("column", "order", "sort", "query"),
    [("tags", "hurt", None, "q1"), ("note", "hurt", None, "q1"), ("query", "hurt", "text", None),
     ("bar", "helped", "hurt", None), ("bar", "hurt", "helped", None),
     ("before", "hurt", "lowest", None)],
)  # fmt: skip
def test_a_heading_orders_the_list_and_closes_the_query_unless_nothing_goes_by_it(
    session, column, order, sort, query
):
    address.choose("q", "q1")
    page_list.sort_by(column, order)
    assert (address.one("sort"), address.one("q")) == (sort, query)


def test_a_list_is_made_once_for_all_who_see_it_alike(stored):
    data, systems = widgets_stored.dataset(stored), widgets_stored.systems(stored)

    def listed(wanted=None, order="hurt", marks=NO_MARKS, **changed) -> page_list.Rows:
        """Of a study that is a new one each time."""
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
    with i18n.speaking("zh"):
        others.append(listed())
    assert len({id(each) for each in [first, *others]}) == 8
    assert {each.key for each in others if each.ids == first.ids} <= {first.key}
    assert others[1].ids != first.ids and others[4].ids == ["q3"]
    words = [each.shown.column("reason").to_pylist() for each in (first, others[-1])]
    assert words[0] != words[1]


@pytest.mark.parametrize("life", lives("queries"))
def test_a_life_of_the_list(life, approved, monkeypatch):
    found = {}
    monkeypatch.setattr(address, "publish", lambda: None)

    def filters():
        given = page_why.tags(MARKS), "Judged@10", TITLES, {"a=1": "First", "b": "Second"}
        listing = queries_study.listing(STUDY, "run")
        found["wanted"], found["order"], _place = page_filters.draw(listing, *given)
        page_filters.left_line(3, 16)
        found["lost"], found["in link"] = dict(address.lost()), address.several("values")

    def listed():
        shown = rows(text=address.one("text") or "")
        found["opened"] = page_list.opened(shown)
        found["lost"] = dict(address.lost())
        found["landing"] = st.session_state.get(view.LANDING)
        if found["opened"]:
            page_list.steps(shown, found["opened"])

    def opened(draw, *given):
        """What is drawn for an address, such as "q=up tag=ask"."""
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
