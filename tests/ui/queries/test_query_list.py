"""The list of queries: its first columns, its bars, its filters; and how documents are named."""

import re
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest

from rankdash import i18n
from rankdash.charts import style
from rankdash.study.queries import Text
from rankdash.study.query_table import Filters
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE
from rankdash.ui.queries import query_filters, query_ladder, query_list
from rankdash.ui.state import stored
from rankdash.ui.state.cache import cache


def rows(delta, **columns) -> pd.DataFrame:
    n = len(delta)
    usual = {
        "query_id": [f"q{place}" for place in range(n)],
        "text": [f"text {place}" for place in range(n)],
        "before": [0.0] * n,
        "after": delta,
        "delta": delta,
        "reason": ["rescued"] * n,
        "state": ["ok"] * n,
        "judged_before": [1.0] * n,
        "judged_after": [0.5] * n,
    }
    return pd.DataFrame(usual | columns)


def drawn(picture: str) -> tuple[float, float, str, float | None]:
    """(start, length and colour of the bar, where the ceiling is)."""
    svg = unquote(picture)
    start, wide, colour = re.search(
        r"<rect x='([\d.]+)' y='4' width='([\d.]+)' height='12' fill='(#\w+)'", svg
    ).groups()
    tick = re.search(r"<path d='M([\d.]+) 2V18'", svg)
    return float(start), float(wide), colour, float(tick[1]) if tick else None


def test_a_bar_is_as_long_as_the_change_and_on_its_side():
    found = query_list._bars(rows([0.5, -0.5, 1.0, 0.0, np.nan]), 1.0)
    up, down, whole, none, missing = (
        drawn(each) if isinstance(each, str) else None for each in found.tolist()
    )
    assert up[:2] == (32.0, 15.0) and down[:2] == (17.0, 15.0)
    assert whole[:2] == (32.0, 30.0) and none[:2] == (32.0, 0.0)
    assert (up[2], down[2], whole[2]) == (style.BETTER, style.WORSE, style.BETTER)
    assert missing is None
    assert [each[3] for each in (up, down, whole, none)] == [None] * 4


@pytest.mark.parametrize(("delta", "wide"), [(0.001, 0.9), (-0.001, 0.9), (0.0, 0.0)])
def test_the_smallest_change_is_seen(delta, wide):
    (picture,) = query_list._bars(rows([delta]), 1.0).tolist()
    start, found, _colour, _tick = drawn(picture)
    assert found == pytest.approx(wide)
    assert start == pytest.approx(32 - wide if delta < 0 else 32)


def test_the_ceiling_is_marked_as_far_as_what_is_left_from_the_value_before():
    found = query_list._bars(
        rows([0.25, 0.0, 0.0], before=[0.5, 1.0, 0.0], ceiling=[1.0, 1.0, np.nan]), 1.0
    )
    ticks = [drawn(each)[3] for each in found.tolist()]
    assert ticks == [32 + 15.0, 32.0, None]
    # An axis of no length stands for one of 1.
    assert drawn(query_list._bars(rows([0.0]), 0.0).tolist()[0])[1] == 0.0


@pytest.mark.parametrize(
    ("order", "states", "columns"),
    [
        ("hurt", ["ok"] * 2, ["query", "delta", "bar", "reason", "before", "after"]),
        ("latency", ["ok"] * 2,
         ["query", "delta", "bar", "latency_ms", "reason", "before", "after"]),
        ("hurt", ["ok", "failed"],
         ["query", "delta", "bar", "reason", "state", "before", "after"]),
        ("-judged_after", ["ok"] * 2,
         ["query", "delta", "bar", "judged_after", "reason", "before", "after"]),
        ("lowest", ["ok"] * 2, ["query", "delta", "bar", "before", "reason", "after"]),
    ],
)  # fmt: skip
def test_the_columns_to_begin_with_and_what_the_order_goes_by(order, states, columns):
    table = rows([0.1, 0.2], state=states, latency_ms=[1.0, 2.0])
    shown = query_list._shown(table, pd.DataFrame(), 1.0)
    assert query_list._columns(table, shown, order) == columns


def test_a_query_without_a_text_is_named_by_its_id_and_notes_stand_at_theirs():
    table = rows([0.1, 0.2, 0.3], text=["one", "", None])
    marks = pd.DataFrame({"query_id": ["q2", "gone"], "tags": ["ask", "x"], "note": ["why", "y"]})
    shown = query_list._shown(table, marks, 1.0)
    assert shown["query"].tolist() == ["one", "q1", "q2"]
    assert shown["tags"].tolist() == ["", "", "ask"]
    assert shown["note"].tolist() == ["", "", "why"]
    assert "tags" not in query_list._shown(table, marks.iloc[:0], 1.0)


@pytest.mark.parametrize(("count", "high"), [(1, 72), (9, 352), (10, 352), (8, 317)])
def test_a_short_list_is_as_high_as_its_rows(count, high):
    assert query_list.height(SimpleNamespace(ids=["q"] * count)) == high


NO_MARKS = pd.DataFrame(columns=["query_id", "tags", "note"], dtype=object)


def listed(request, wanted=None, order="hurt", marks=NO_MARKS, **changed) -> query_list.Rows:
    """The list of a study that is a new one each time."""
    dataset_id = request.getfixturevalue("stored")
    systems = stored.systems(dataset_id)
    study = Study(
        dataset=stored.dataset(dataset_id),
        systems=systems,
        baseline=FIRST_STAGE,
        challengers=(list(systems)[-1],),
        dataset_id=dataset_id,
        cache=cache,
        **changed,
    )
    return query_list.rows(study, study.challengers[0], wanted or Filters(), order, marks)


def test_a_list_is_made_once_for_all_who_see_it_alike(request):
    tagged = pd.DataFrame({"query_id": ["q3"], "tags": ["ask"], "note": [""]})
    first = listed(request)
    assert listed(request) is first
    assert first.ids == first.frame["query_id"].tolist()
    assert sorted(first.ids) == sorted(f"q{place}" for place in range(16))
    others = [
        listed(request, order="helped"),
        listed(request, Filters(text="return 1")),
        listed(request, Filters(segments={"kind": ("b",)})),
        listed(request, marks=tagged),
        listed(request, Filters(tags=("ask",)), marks=tagged),
        listed(request, cutoff=1),
    ]
    with i18n.speaking("zh"):
        others.append(listed(request))
    assert len({id(each) for each in [first, *others]}) == 8
    assert others[1].ids != first.ids
    assert {each.key for each in others if each.ids == first.ids} <= {first.key}
    assert others[4].ids == ["q3"]
    words = [each.shown.column("reason").to_pylist() for each in (first, others[-1])]
    assert words[0] != words[1]


# The filters.


def test_values_that_occur_are_offered_in_their_usual_order_and_then_the_commonest_first():
    listing = SimpleNamespace(occurring={"outcome": ("failed", "same", "helped", "lost")})
    assert query_filters._present(listing, "outcome", ("helped", "same", "hurt")) == [
        "helped", "same", "failed", "lost"
    ]  # fmt: skip


def test_kinds_of_queries_are_chosen_by_column_and_value():
    options = query_filters._segment_options({"kind": ("a", "b"), "a=b": ("c",)})
    assert list(options) == ["kind=a", "kind=b", "a=b=c"]
    assert query_filters._chosen_segments(["kind=b", "a=b=c", "kind=a"], options) == {
        "kind": ("b", "a"), "a=b": ("c",)
    }  # fmt: skip
    assert query_filters._chosen_segments([], options) == {}


# Where the documents went.


def test_a_document_is_named_by_its_title_by_its_opening_where_others_share_it_or_by_its_id():
    texts = {
        "a": Text("Returns", "Send it back."),
        "b": Text("Returns", "Ask first."),
        "c": Text("Fees", "None."),
        "d": Text("", "Untitled words."),
        "e": Text("Only a title", None),
        "f": Text("", None),
        "g": Text("Twice", None),
        "h": Text("Twice", "Its words."),
    }
    names = query_ladder._names(texts)
    assert [names[doc] for doc in "abcdefh"] == [
        *("Send it back.", "Ask first.", "Fees", "Untitled words.", "Only a title", "f"),
        "Its words.",
    ]
    assert names["g"].startswith("Twice")


@pytest.mark.parametrize(("drawn", "said"), [(3, 0), (2, 1), (4, 0)])
def test_documents_near_the_top_that_are_not_drawn_are_counted(drawn, said):
    ladder = SimpleNamespace(near=np.array([True, True, False, True]))
    found = query_ladder._left_out(ladder, drawn)
    assert len(found) == said
    if said:
        assert found == ["2 of the 3 documents that are relevant or near the top are drawn."]


def test_relevant_documents_that_nobody_ranks_are_counted_where_there_are_any():
    assert query_ladder._not_retrieved(0) == []
    assert query_ladder._not_retrieved(1) == ["1 relevant document is in none of these rankings."]
    assert query_ladder._not_retrieved(2) == ["2 relevant documents are in none of these rankings."]


def test_systems_without_a_result_are_named():
    study = SimpleNamespace(chosen=("a", "b", "c"), name={"a": "A", "b": "B*", "c": "C"}.get)
    assert query_ladder._without_result(study, SimpleNamespace(systems=("a", "c"))) == [
        "B\\* has no result here."
    ]
