"""The list of queries and its filters: what is listed, how it is shown, and which one is open."""

import re
from urllib.parse import unquote

import pandas as pd
import pytest

from rankdash import i18n
from rankdash.charts import style
from rankdash.study import queries
from rankdash.study.query_table import Filters
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE
from rankdash.ui.queries import query_filters, query_list, query_notes
from rankdash.ui.sidebar import view
from rankdash.ui.state import address
from rankdash.ui.state import stored as stored_sets
from rankdash.ui.state.cache import cache
from tests.ui.page_text import page_text
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
TITLES = query_list.titles("B", "A")


def rows(order: str = "given", marks: pd.DataFrame = NO_MARKS, **wanted: object) -> query_list.Rows:
    return query_list.rows(STUDY, "run", Filters(**wanted), order, marks)


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
    assert query_notes.tags(MARKS) == {"none": ("ask", "later"), "gone": ("x",)}


def test_a_short_list_is_as_high_as_its_rows():
    high = [query_list.height(rows(text=text)) for text in ("none", "down", "")]
    assert high == [72, 107, 247]


@pytest.mark.parametrize(
    ("order", "marked"),
    [
        ("hurt", "↑ change"), ("helped", "↓ change"), ("lowest", "↑ B"), ("lowest_after", "↑ A"),
        ("-text", "↓ query"), ("text", "↑ query"), ("given", None),
    ],
)  # fmt: skip
def test_the_column_that_the_list_goes_by_has_an_arrow(order, marked):
    app = drawn(lambda: query_list.draw(rows(order), order, TITLES, "none"))
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
    query_list.sort_by(column, order)
    assert (address.one("sort"), address.one("q")) == (sort, query)


@pytest.mark.parametrize(
    ("wanted", "text", "found", "lost"),
    [("down", "", "down", None), ("gone", "", "up", "gone"), (None, "", "up", None),
     (None, "nothing like it", None, None)],
)  # fmt: skip
def test_the_query_of_the_address_is_opened_or_the_first(monkeypatch, wanted, text, found, lost):
    monkeypatch.setattr(address, "publish", lambda: None)
    made = []
    app = drawn(
        lambda: made.append((query_list.opened(rows(text=text)), address.lost().get("q"))),
        **{"q": wanted} if wanted else {},
    )
    assert made == [(found, lost)]
    assert (view.LANDING in app.session_state) is bool(wanted)
    assert not wanted or app.session_state[view.LANDING] == wanted
    none = ["No query matches these filters."] * (found is None)
    assert [each.value for each in app.info] == none


@pytest.mark.parametrize(
    ("opened", "disabled", "next_one", "said"),
    [
        ("up", [True, False], "down", "1 of 6"),
        ("down", [False, False], "whole", "2 of 6"),
        ("least down", [False, True], None, "6 of 6"),
    ],
)
def test_the_query_before_and_the_one_after(opened, disabled, next_one, said):
    app = drawn(lambda: query_list.steps(rows(), opened))
    assert [each.disabled for each in app.button] == disabled
    assert [each.value for each in app.caption] == [said]
    if next_one:
        app.button[1].click().run()
        assert app.session_state[view.LANDING] == next_one


def test_a_list_is_made_once_for_all_who_see_it_alike(stored):
    data, systems = stored_sets.dataset(stored), stored_sets.systems(stored)

    def listed(wanted=None, order="hurt", marks=NO_MARKS, **changed) -> query_list.Rows:
        """Of a study that is a new one each time."""
        study = Study(data, systems, FIRST_STAGE, (list(systems)[-1],), dataset_id=stored,
                      cache=cache, **changed)  # fmt: skip
        return query_list.rows(study, study.challengers[0], wanted or Filters(), order, marks)

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


# The filters.


class Filtered:
    """What the filters of the list want, drawn for a link."""

    def __init__(self, others: dict[str, str] | None = None, **params: object) -> None:
        self.others = others or {}
        self.app = drawn(self._draw, **params)

    def _draw(self) -> None:
        listing = queries.listing(STUDY, "run")
        given = query_notes.tags(MARKS), "Judged@10", TITLES, self.others
        self.wanted, self.order, _place = query_filters.draw(listing, *given)
        query_filters.left_line(3, 16)
        self.lost = dict(address.lost())

    def options(self, name: str) -> list[str]:
        return self.app.multiselect(key=f"address.{name}").options


def test_values_that_occur_are_offered_in_their_usual_order_and_then_the_commonest_first():
    shown = Filtered()
    assert shown.wanted == Filters() and shown.order == "hurt" and shown.lost == {}
    assert shown.options("outcome") == ["helped ▲", "same =", "hurt ▼"]
    assert shown.options("segment") == ["kind: a", "kind: b", "a=b: c", "a=b: d"]
    assert shown.options("tag") == ["ask", "later", "x"]
    # Every state is "ok", so there is none to choose.
    assert "address.state" not in [each.key for each in shown.app.multiselect]


def test_a_link_filters_by_column_and_value():
    shown = Filtered(segment=["kind=b", "a=b=c", "kind=a"], outcome="helped", tag="ask",
                     text="x", sort="-text", share="0.5")  # fmt: skip
    assert shown.wanted == Filters(
        segments={"kind": ("b", "a"), "a=b": ("c",)}, outcomes=("helped",), tags=("ask",),
        text="x", judged=0.5,
    )  # fmt: skip
    assert shown.order == "-text"


def test_a_filter_that_does_not_apply_is_lost_and_clearing_leaves_the_order():
    shown = Filtered(state=["a", "b"], sort="helped", text="x", share="7")
    assert shown.lost == {"state": "a, b", "share": "7"} and shown.wanted == Filters(text="x")
    [clear] = [each for each in shown.app.button if each.label == "Clear filters"]
    clear.click().run()
    assert shown.wanted == Filters() and shown.order == "helped"
    assert not [each for each in shown.app.button if each.label == "Clear filters"]
    assert "3 of 16 queries listed" in page_text(shown.app)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("-0.5..0.5", (-0.5, 0.5)),
        ("0.2..0.2", (0.2, 0.2)),
        ("-9..0.5", (-1.0, 0.5)),
        ("-99..99", None),
        # A range that is none, or that is no number, leaves every query in the list.
        ("0.3..0.2", None),
        ("nan..0.5", None),
        ("0.5", None),
    ],
)
def test_a_range_of_changes_that_cannot_be_is_said_and_filters_nothing(given, wanted):
    shown = Filtered(delta=given)
    assert shown.wanted.delta == wanted
    assert ("delta" in shown.lost) is (wanted is None)


def test_each_compared_system_has_a_range_of_values_that_a_link_carries():
    shown = Filtered({"a=1": "First", "b": "Second"},
                     values=["a=1=0.2..0.5", "gone=0..0.3", "b=0.9..0.1"])  # fmt: skip

    def ranges() -> tuple[dict, list[str]]:
        return dict(shown.wanted.values), shown.app.session_state["address.choices"]["values"]

    sliders = [each for each in shown.app.slider if "values" in str(each.key)]
    assert [each.label for each in sliders] == ["Value of First", "Value of Second"]
    assert [each.value for each in sliders] == [(0.2, 0.5), (0.0, 1.0)]
    # A system that is not compared, and a range that is none, are said.
    assert ranges() == ({"value a=1": (0.2, 0.5)}, ["a=1=0.2..0.5"])
    assert shown.lost["values"] == "gone=0..0.3, b=0.9..0.1"
    shown.app.slider(key="address.values.b").set_value((0.0, 0.3)).run()
    assert ranges()[1] == ["a=1=0.2..0.5", "b=0..0.3"] and "values" not in shown.lost
    shown.app.slider(key="address.values.a=1").set_value((0.0, 1.0)).run()
    assert ranges() == ({"value b": (0.0, 0.3)}, ["b=0..0.3"])


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
    axis = query_filters.Axis.to(reach, both_ways=both_ways)
    assert axis.whole == pytest.approx(whole)
    assert axis.step == pytest.approx(step)
    assert axis.read(None) == axis.whole and axis.write(axis.whole) is None
    assert axis.write((0.0, 0.05)) == "0..0.05"
