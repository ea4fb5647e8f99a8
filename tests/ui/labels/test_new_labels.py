"""What labels that came back did, in words."""

from types import SimpleNamespace

import pytest

from rankdash.ui.labels import new_labels, unjudged_view


def merged(**changes: object) -> SimpleNamespace:
    usual = {"added": 3, "changed": 2, "kept": 1, "same": 4, "unknown": 0}
    return SimpleNamespace(**(usual | changes), dataset=SimpleNamespace(name="Shop"))


def test_labels_are_counted_as_added_changed_and_unchanged():
    assert new_labels._summary(merged()) == "3 labels added, 2 changed, 5 unchanged"
    said = new_labels._summary(merged(unknown=1))
    assert said.endswith("5 unchanged, 1 not used: not a query and document of this data set")
    assert new_labels._named(merged()) == "Shop + 5 new labels"
    assert new_labels._named(merged(added=1, changed=0)) == "Shop + 1 new label"


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (None, "There is no difference that labels could settle."),
        (0, "It is settled which system is ahead, whatever the missing labels are."),
        (1, "1 label may be enough to settle which is ahead."),
        (2, "2 labels may be enough to settle which is ahead."),
    ],
)
def test_how_many_labels_settle_it_is_told_from_that_it_is_settled(needed, said):
    assert unjudged_view._needed(SimpleNamespace(labels_to_settle=lambda: needed)) == said
