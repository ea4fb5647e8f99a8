"""Which column is guessed to be what, and what of it was chosen otherwise."""

from types import SimpleNamespace

import pandas as pd
import pytest

from rankdash.readers import FIELDS, Guess
from rankdash.ui.data import column_choices


def guess(**changes: object) -> Guess:
    rows = pd.DataFrame({"q": ["a"], "text": ["b"], "grade": ["1"], "other": ["2"]})
    usual = {
        "file": "x.csv",
        "columns": tuple(rows),
        "fields": {"query": "q", "document": "text", "label": "grade"},
        "labels": ("grade", "other"),
        "rows": rows,
    }
    return Guess(**(usual | changes))


def files(*sizes: int) -> list[SimpleNamespace]:
    return [
        SimpleNamespace(content=str(at), name=f"{at}.csv", size=size)
        for at, size in enumerate(sizes)
    ]


@pytest.fixture
def chosen(paper, session, monkeypatch):
    """What is offered for each field, which of it is set, and the answers by field."""
    drawn = paper(column_choices)
    drawn.session_state = session
    drawn.answers_to, drawn.offered = {}, {}
    drawn.answers["checkbox"] = False

    def selectbox(title, options, index, format_func, **_settings):
        drawn.offered[title] = (options, index, [format_func(each) for each in options])
        return drawn.answers_to.get(title, options[index])

    drawn.selectbox = selectbox
    monkeypatch.setattr(column_choices, "guessed", lambda _sources, most: drawn.found(most))
    drawn.found = lambda most: [guess()]
    return drawn


def test_the_guess_is_set_and_says_nothing_and_only_labels_are_offered_as_labels(chosen):
    assert column_choices.draw(files(10), str) == ({}, None)
    assert list(chosen.offered) == list(FIELDS)
    assert chosen.offered["query"][:2] == (["", "q", "text", "grade", "other"], 1)
    assert chosen.offered["label"][:2] == (["", "grade", "other"], 1)
    _options, index, shown = chosen.offered["query_id"]
    assert (index, shown[:2]) == (0, ["not in this file", "q"])
    (preview,) = chosen.of("dataframe")
    assert list(preview) == ["query ← q", "document ← text", "label ← grade"]
    assert preview["label ← grade"].tolist() == ["1"]


def test_what_is_chosen_otherwise_is_told_as_a_whole(chosen):
    chosen.answers_to = {"label": "other", "document": ""}
    assert column_choices.draw(files(10), str)[0] == {"x.csv": {"query": "q", "label": "other"}}


def test_a_guess_that_is_not_offered_is_set_to_none(chosen):
    chosen.found = lambda most: [guess(labels=("other",))]
    assert column_choices.draw(files(10), str)[0] == {"x.csv": {"query": "q", "document": "text"}}


@pytest.mark.parametrize("ticked", [False, True])
def test_a_tick_beside_the_label_column_says_that_1_is_best(chosen, ticked):
    chosen.checkbox = lambda label, **_settings: ticked and label == "1 is the best grade in grade"
    chosen.number_input = lambda _label, value, **_settings: value + 1
    chosen.found = lambda most: [guess(highest={"grade": 4.0})]

    assert column_choices.draw(files(10), str) == ({}, 5.0 if ticked else None)


@pytest.mark.parametrize(("sizes", "large"), [((3, 2), False), ((3, 3), True)])
def test_of_large_files_together_the_beginning_is_looked_at(chosen, monkeypatch, sizes, large):
    monkeypatch.setattr(column_choices, "_MOST_BYTES", 5)
    asked = []
    chosen.found = lambda most: asked.append(most) or []
    column_choices.draw(files(*sizes), str)
    column_choices.draw(files(*sizes), str)
    assert asked == [2], "the same files are looked at once"
    assert len(chosen.of("caption")) == (2 if large else 0)
    column_choices.draw(files(1), str)
    assert asked == [2, 5]
