"""The check report in words."""

from types import SimpleNamespace

import pytest

from rankdash.ui.data import check_view


@pytest.mark.parametrize(
    ("severity", "remedy", "shown"),
    [("error", "", True), ("warning", "", True), ("note", "", False), ("note", "Add texts.", True)],
)
def test_a_note_is_shown_with_the_warnings_where_something_can_be_done(severity, remedy, shown):
    assert check_view._actionable(SimpleNamespace(severity=severity, remedy=remedy)) is shown


@pytest.mark.parametrize(
    ("low", "high", "said"), [(5, 5, "the same for every query"), (4, 5, "4 to 5")]
)
def test_a_spread_is_said_where_there_is_one(low, high, said):
    assert check_view._range_of(SimpleNamespace(low=low, high=high)) == said
    assert check_view._range_of(None) == ""


@pytest.mark.parametrize(
    ("warnings", "said"),
    [(0, "No warnings."), (1, "1 warning: check it before you trust the numbers."),
     (2, "2 warnings: check them before you trust the numbers.")],
)  # fmt: skip
def test_warnings_are_counted(warnings, said):
    assert check_view._summary(SimpleNamespace(warnings=[None] * warnings)) == said
