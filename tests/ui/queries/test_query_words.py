"""What one query says of itself, its documents and its score, where the words turn."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.reasons.occlusion import Explanation, Stage, TextPart
from rankdash.study.queries import Text
from rankdash.ui.queries import (
    occlusion_view,
    query_cards,
    query_detail,
    query_filters,
    query_list,
    query_notes,
)
from rankdash.ui.state import address
from rankdash.ui.widgets.highlight import terms


def study(**changes: object) -> SimpleNamespace:
    usual = {
        "measure": SimpleNamespace(title="NDCG@10"),
        "cutoff": 10,
        "baseline": "base",
        "headroom": lambda _system: SimpleNamespace(own=False),
        "name": str.upper,
    }
    return SimpleNamespace(**(usual | changes))


@pytest.mark.parametrize(
    ("ceiling", "before", "delta", "said"),
    [
        (math.nan, 0.5, 0.1, []),
        (0.0, 0.0, 0.0, ["no order of these documents scores above 0"]),
        (0.9, 0.9, 0.0, ["best possible 0.900", "the baseline is already the best possible"]),
        (0.8, 0.9, -0.1, ["best possible 0.800",
                          "the baseline is better than any order of these documents"]),
        (0.9, 0.5, 0.1, ["best possible 0.900", "25% of the potential gain realised"]),
        (0.9, 0.5, 0.0, ["best possible 0.900", "0% of the potential gain realised"]),
        (0.9, 0.5, -0.1, ["best possible 0.900", "potential gain 0.400, none realised"]),
    ],
)  # fmt: skip
def test_how_far_a_query_could_go(ceiling, before, delta, said):
    row = pd.Series({"ceiling": ceiling, "before": before, "delta": delta})
    assert query_detail._headroom(study(), "run", row) == said
    uploaded = study(headroom=lambda _system: SimpleNamespace(own=True))
    own = query_detail._headroom(uploaded, "run", row)
    assert own[1:] == said[1:]
    assert not said or ceiling == 0 or own[0] == f"{said[0]} (own list)"
    assert query_detail._headroom(study(headroom=lambda _system: None), "run", row) == []


@pytest.mark.parametrize(
    ("judged", "delta", "bounds", "said"),
    [
        ((0.5, 1.0), 0.1, (-0.2, 0.3), True),
        ((1.0, 0.5), 0.1, (-0.2, 0.3), True),
        ((1.0, 1.0), 0.1, (-0.2, 0.3), False),
        ((0.5, 1.0), math.nan, (-0.2, 0.3), False),
        ((0.5, 1.0), 0.1, (0.1, 0.1), False),
        ((0.5, 1.0), 0.1, None, False),
    ],
)
def test_bounds_are_said_where_missing_labels_can_alter_the_change(
    monkeypatch, judged, delta, bounds, said
):
    monkeypatch.setattr(query_detail.queries, "bounds", lambda *_a: {"q": bounds} if bounds else {})
    row = pd.Series(
        {"query_id": "q", "delta": delta, "judged_before": judged[0], "judged_after": judged[1]}
    )
    assert query_detail._bounds(study(), "run", row) == (
        "with all labels complete, the change could be anywhere from -0.200 to +0.300"
        if said else ""
    )  # fmt: skip


@pytest.mark.parametrize(
    ("state", "latency", "parts"),
    [
        ("ok", math.nan, ["Judged@10 50% → 100%", "query q"]),
        ("all_unjudged", 12.0, ["Judged@10 50% → 100%", "all unjudged", "12 ms", "query q"]),
    ],
)
def test_how_far_the_labels_of_a_query_go(monkeypatch, state, latency, parts):
    monkeypatch.setattr(query_detail.queries, "bounds", lambda *_a: {})
    row = pd.Series({"query_id": "q", "delta": 0.1, "judged_before": 0.5, "judged_after": 1.0,
                     "state": state, "latency_ms": latency})  # fmt: skip
    assert query_detail._trust(study(), "run", row) == parts


def test_the_reason_of_a_failure_is_that_of_the_challenger_first_and_of_no_query_that_is_done():
    def run(*rows: tuple[str, str, str]) -> SimpleNamespace:
        return SimpleNamespace(queries=pd.DataFrame(rows, columns=["query_id", "state", "reason"]))

    runs = {
        "run": run(("q", "failed", "no connection"), ("r", "done", "none"), ("s", "done", "")),
        "base": run(("q", "failed", "no answer in time"), ("r", "skipped", "not in the sample")),
    }
    found = study(run=runs.get)
    assert query_detail._failure(found, "run", "q") == "no connection"
    assert query_detail._failure(found, "run", "r") == "not in the sample"
    assert query_detail._failure(found, "run", "s") == ""
    assert query_detail._failure(study(run=lambda _system: None), "run", "q") == ""
    assert query_detail._text(pd.Series({"text": "", "query_id": "q"})) == "q"
    assert query_detail._text(pd.Series({"text": math.nan, "query_id": "q"})) == "q"
    assert query_detail._text(pd.Series({"text": "how", "query_id": "q"})) == "how"


# The cards of documents.


@pytest.mark.parametrize(
    ("own", "other", "arrow"),
    [(2.0, 5.0, "▲3"), (5.0, 2.0, "▼3"), (2.0, 2.0, "="), (2.0, math.nan, "▲")],
)
def test_an_arrow_points_up_where_a_document_rose(own, other, arrow):
    assert query_cards._arrow(own, other) == arrow


@pytest.mark.parametrize(
    ("length", "parts"),
    [
        (320, ["", ""]),
        (321, ["", "Whole text, 321 characters"]),
        (20_000, ["", "Whole text, 20,000 characters"]),
        (20_001, ["", "The first 20,000 of 20,001 characters"]),
    ],
)
def test_a_long_text_is_cut_and_folded_with_its_length(length, parts):
    html = query_cards._body(Text("", "w" * length), terms("none"))
    assert ("<details>" in html) is bool(parts[1])
    assert parts[1] in html
    assert html.partition("</p>")[0] == f"<p>{'w' * min(length, 320)}{' …' if parts[1] else ''}"
    assert ("</details>" in html and html.endswith("w …</p></details>")) is (length > 20_000)


def test_a_card_without_a_text_says_so_and_a_snippet_from_within_is_cut_at_both_ends():
    assert "The data has no text for it." in query_cards._body(Text("t", None), terms("x"))
    text = "a " * 400 + "gift " + "b " * 400
    html = query_cards._body(Text("", text), terms("gift")).partition("</p>")[0]
    assert html.startswith("<p>… ") and html.endswith(" …") and "<mark>gift</mark>" in html
    assert "rd-title" not in query_cards._card("", Text("", "x"), terms("x"), [], relevant=False)
    relevant = query_cards._card("", Text("A gift", "x"), terms("gift"), ["one"], relevant=True)
    assert "rd-relevant" in relevant and "A <mark>gift</mark>" in relevant


@pytest.mark.parametrize(
    ("label", "relevant", "chip"),
    [
        (2.0, True, "<span class='rd-chip rd-strong'>● 2 of 3</span>"),
        (0.0, False, "<span class='rd-chip'>0 of 3</span>"),
        (math.nan, False, "<span class='rd-chip rd-dashed'>not judged</span>"),
    ],
)
def test_a_label_is_marked_where_it_is_relevant_and_dashed_where_there_is_none(
    label, relevant, chip
):
    assert query_cards._grade(label, 3.0, relevant=relevant) == chip


def test_a_card_says_where_the_other_systems_have_its_document():
    ranks = {"base": np.array([4.0]), "run": np.array([1.0]), "third": np.array([np.nan])}
    ladder = SimpleNamespace(systems=("base", "run", "third"), column=ranks.__getitem__)
    cards = query_cards._Cards(study(), "run", ladder, terms("x"), 3.0)
    places = cards._places(0)
    assert "rd-strong' title='BASE'>▲3 BASE 4<" in places
    assert "rd-chip' title='THIRD'>▲ THIRD not listed<" in places and "RUN" not in places
    listed = SimpleNamespace(doc_id="d", score=1.5, read=8, full=20)
    assert cards._facts(listed) == [
        "document d", "score of RUN 1.5", "the model saw 8 of 20 tokens"
    ]  # fmt: skip
    listed = SimpleNamespace(doc_id="d", score=None, read=8, full=None)
    assert cards._facts(listed) == ["document d", "the model read 8 tokens"]
    listed = SimpleNamespace(doc_id="d", score=0.0, read=None, full=None)
    assert cards._facts(listed) == ["document d", "score of RUN 0"]


def test_more_cards_are_those_of_one_query_and_one_system(session):
    query_cards._show_more("q", "run", 40)
    assert query_cards._more("q", "run") == 40
    assert (query_cards._more("q", "base"), query_cards._more("r", "run")) == (0, 0)


# Why a score.


@pytest.mark.parametrize(
    ("effect", "step", "does"),
    [(1.0, 4, "raises ▲"), (0.8, 4, "raises ▲"), (0.79, 3, "raises ▲"), (-0.55, 3, "lowers ▼"),
     (-0.54, 2, "lowers ▼"), (0.3, 2, "raises ▲"), (0.1, 1, "raises ▲"),
     (0.09, 0, "close to zero ="), (0.0, 0, "close to zero ="), (math.nan, 0, "not known")],
)  # fmt: skip
def test_an_effect_is_as_strong_as_its_share_of_the_largest(effect, step, does):
    assert occlusion_view._step(effect, 1.0) == step
    assert occlusion_view._does(effect, 1.0) == does
    assert occlusion_view._step(effect, 0.0) == 0


def part(start: int, end: int) -> TextPart:
    return TextPart(((start, end),))


def test_effects_are_listed_with_the_largest_first_and_the_unknown_last(paper):
    drawn = paper(occlusion_view)
    parts = tuple(part(place, place + 1) for place in range(5))
    stage = Stage("term", parts, (0.2, math.nan, -0.9, 0.0, 0.2))
    occlusion_view._table(stage, "abcde", "alt")
    [table] = drawn.of("dataframe")
    assert table.data["part"].tolist() == ["c", "a", "e", "d", "b"]
    assert table.data["does"].tolist() == [
        "lowers ▼", "raises ▲", "raises ▲", "close to zero =", "not known"
    ]  # fmt: skip
    assert "places" in table.data
    occlusion_view._table(Stage("sentence", parts[:1], (0.2,)), "abcde", "alt")
    assert "places" not in drawn.of("dataframe")[1].data


LONGEST = occlusion_view.LONGEST_LOOKED_AT


@pytest.mark.parametrize(
    ("read", "full", "length", "effects", "said"),
    [
        (8, 8, LONGEST, (1.0,), []),
        (8, 9, 1, (1.0,), ["The model read 8 of 9 tokens."]),
        (None, 9, 1, (1.0,), []),
        (8, 8, LONGEST + 1, (1.0,), ["Only the first"]),
        (8, 8, 1, (math.nan, 1.0), ["1 part has no known effect"]),
    ],
)
def test_what_was_not_tried_is_said(read, full, length, effects, said):
    stage = Stage("term", tuple(part(0, 1) for _ in effects), effects)
    notes = occlusion_view._notes(Explanation(1.0, (stage,), read, full), "x" * length)
    assert len(notes) == len(said)
    assert all(note.startswith(start) for note, start in zip(notes, said, strict=True))


def test_a_pale_part_ends_where_the_text_does():
    assert occlusion_view._plain("abcdef", 1, 5, [(0, 2), (3, 9)]) == (
        "<span class='rd-faint'>b</span>c<span class='rd-faint'>de</span>"
    )
    assert occlusion_view._plain("abc", 0, 3, [(3, 5)]) == "abc"
    assert occlusion_view._mark("<x>", 0.05, 1.0) == "&lt;x&gt;"
    assert occlusion_view._mark("x", -1.0, 1.0).startswith("<mark class='rd-down rd-4'")


# The filters and the list.


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
    axis = query_filters._Axis.to(reach, both_ways=both_ways)
    assert axis.whole == pytest.approx(whole)
    assert axis.step == pytest.approx(step)
    assert axis.read(None) == axis.whole
    assert axis.write(axis.whole) is None
    assert axis.write((0.0, 0.05)) == "0..0.05"
    assert axis.read("-99..99") == axis.whole


def test_a_filter_that_does_not_apply_is_lost_and_clearing_leaves_the_order(session):
    address.take_over({"tag": ["a", "b"], "sort": ["helped"], "text": ["x"]})
    assert query_filters._in_force()
    assert query_filters._none("tag") == []
    assert address.lost() == {"tag": "a, b"} and not address.is_set("tag")
    query_filters._clear()
    assert not query_filters._in_force()
    assert address.one("sort") == "helped"


@pytest.mark.parametrize(
    ("kept", "total", "said"),
    [(1, 1, "1 of 1 query listed"), (3, 16, "3 of 16 queries listed")],
)
def test_the_list_says_how_many_are_left_and_offers_to_clear_what_is_in_force(
    paper, session, kept, total, said
):
    drawn = paper(query_filters)
    query_filters.left_line(kept, total)
    assert (drawn.of("caption"), drawn.of("button")) == ([said], [])
    address.choose("text", "x")
    query_filters.left_line(kept, total)
    assert drawn.of("button") == ["Clear filters"]


@pytest.mark.parametrize(
    ("wanted", "opened", "lost"),
    [("q1", "q1", {}), ("gone", "q0", {"q": "gone"}), (None, "q0", {})],
)
def test_the_query_of_the_address_is_opened_or_the_first(
    paper, session, monkeypatch, wanted, opened, lost
):
    monkeypatch.setattr(address, "publish", lambda: None)
    rows = SimpleNamespace(ids=["q0", "q1", "q2"])
    drawn = paper(query_list)
    drawn.session_state = session
    address.take_over({"q": [wanted]} if wanted else {})
    assert query_list.opened(rows) == opened
    assert address.lost() == lost
    assert session.get(query_list.view.LANDING) == wanted
    assert query_list.opened(SimpleNamespace(ids=[])) is None
    assert drawn.of("info") == ["No query matches these filters."]


@pytest.mark.parametrize(
    ("place", "disabled", "ids", "said"),
    [
        (0, [True, False], ["q0", "q1"], "1 of 3"),
        (1, [False, False], ["q0", "q2"], "2 of 3"),
        (2, [False, True], ["q1", "q2"], "3 of 3"),
    ],
)
def test_the_query_before_and_the_one_after(paper, place, disabled, ids, said):
    drawn = paper(query_list)
    query_list.steps(SimpleNamespace(ids=["q0", "q1", "q2"]), f"q{place}")
    buttons = [settings for kind, _label, settings in drawn.drawn if kind == "button"]
    assert [each["disabled"] for each in buttons] == disabled
    assert [each["args"][0] for each in buttons] == ids
    assert drawn.of("caption") == [said]


@pytest.mark.parametrize(
    ("column", "order", "sort", "query"),
    [("tags", "hurt", None, "q1"), ("note", "hurt", None, "q1"), ("before", "hurt", True, None)],
)
def test_a_heading_orders_the_list_and_closes_the_query_unless_nothing_goes_by_it(
    session, column, order, sort, query
):
    address.choose("q", "q1")
    query_list._sort_by(column, order)
    assert (address.one("sort") is not None) is bool(sort)
    assert address.one("q") == query


@pytest.mark.parametrize(
    ("order", "marked"),
    [
        ("hurt", {"delta": "↑ change"}),
        ("helped", {"delta": "↓ change"}),
        ("lowest", {"before": "↑ B"}),
        ("latency", {"latency_ms": "↓ ms"}),
        ("-text", {"query": "↓ query"}),
    ],
)
def test_the_column_that_the_list_goes_by_has_an_arrow(order, marked):
    titles = query_list.titles("B", "A")
    found = query_list._arrowed(titles, order)
    assert {name: title for name, title in found.items() if title != titles[name]} == marked


def test_tags_are_read_as_they_were_joined():
    marks = pd.DataFrame({"query_id": ["a", "b"], "tags": ["x, y", ""], "note": ["", "n"]})
    assert query_notes.tags(marks) == {"a": ("x", "y")}


@pytest.mark.parametrize(
    ("note", "captions"),
    [
        ({"tags": (), "text": "", "changed": "", "who": ""}, ["No note."]),
        ({"tags": ("a", "b"), "text": "t", "changed": "x", "who": ""}, ["a · b"]),
        ({"tags": (), "text": "t", "changed": "x", "who": "me"}, ["saved"]),
    ],
)
def test_a_note_that_is_only_shown_says_who_wrote_it(paper, monkeypatch, note, captions):
    monkeypatch.setattr(query_notes, "saved", lambda _note: "saved")
    drawn = paper(query_notes)
    query_notes._shown(SimpleNamespace(**note, unread=None))
    assert drawn.of("caption") == captions
    assert drawn.of("text") == ([note["text"]] if note["text"] else [])
