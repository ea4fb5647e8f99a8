"""What another window deleted, said in words: a data set in place of the page, or runs."""

from types import SimpleNamespace

import pytest

from rankdash.study.systems import FIRST_STAGE
from rankdash.ui.sidebar import deleted_view
from rankdash.ui.state import address


@pytest.mark.parametrize(
    ("names", "data", "system", "said"),
    [
        ([], "shop", ["a"], []),
        (["Old"], None, ["a"], []),
        (["Old"], "shop", ["a"], ["Old was deleted in another window. Baseline now: First. Systems "
         "to compare: A."]),
        (["Old*", "Older"], "shop", ["a", "gone", "b"], [
         r"Old\*, Older were deleted in another window. Baseline now: First. Systems to compare: "
         "A, B."]),
        (["Old"], "shop", ["gone"], ["Old was deleted in another window. Baseline now: First. "
         "Systems to compare: none."]),
    ],
)  # fmt: skip
def test_runs_that_are_gone_are_named_with_what_is_compared_now(
    paper, session, monkeypatch, names, data, system, said
):
    systems = {FIRST_STAGE: "First", "a": "A", "b": "B"}
    monkeypatch.setattr(deleted_view.deleted, "runs", lambda: names)
    monkeypatch.setattr(
        deleted_view.stored, "systems",
        lambda _id: {each: SimpleNamespace(name=name) for each, name in systems.items()},
    )  # fmt: skip
    address.settle("data", data)
    address.choose("base", FIRST_STAGE)
    address.choose("system", system)
    drawn = paper(deleted_view)
    deleted_view.runs()
    assert drawn.of("warning") == said
    assert drawn.of("button") == ["Dismiss"] * len(said)


@pytest.mark.parametrize("others", [(), ("b",)])
def test_a_page_waits_for_another_data_set_where_there_is_one(paper, session, monkeypatch, others):
    rows = [SimpleNamespace(id=each) for each in others]
    monkeypatch.setattr(deleted_view, "workspace", lambda: SimpleNamespace(datasets=lambda: rows))
    address.choose("data", "gone")
    drawn = paper(deleted_view)
    assert deleted_view.dataset("Shop*") is bool(others)
    assert drawn.of("warning") == [r"Shop\* was deleted in another window."]
    assert drawn.of("button") == ["Open"] * len(others)
    # With nothing to wait for, the page is that of an empty workspace.
    assert address.one("data") == ("gone" if others else None)


def test_opening_another_data_set_forgets_what_was_chosen_within_the_last(session):
    session[deleted_view._OTHER] = "b"
    for name in address.OF_A_DATA_SET:
        address.choose(name, "old")
    address.choose("metric", "map")
    deleted_view._open()
    assert address.one("data") == "b" and address.one("metric") == "map"
    assert [address.several(name) for name in address.OF_A_DATA_SET] == [
        [] for _each in address.OF_A_DATA_SET
    ]
