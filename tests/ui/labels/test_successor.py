"""What is carried to a data set with other labels, and what of a second time."""

import pytest

from rankdash.dataset import Dataset
from rankdash.ui.labels import successor
from rankdash.ui.state import address


@pytest.fixture
def made(workspace, stored):
    old = workspace.dataset(stored)
    doubled = old.qrels.assign(label=old.qrels["label"] * 2)
    return Dataset(old.name, old.queries, old.documents, doubled, old.candidates)


def keep(stored, made, name):
    for field in ("base", "system", "vs", "metric"):
        address.choose(field, "x")
    successor.keep_beside(stored, made, (), name=name)


def test_runs_go_along_once_under_a_name_that_is_free(workspace, stored, made, session):
    keep(stored, made, "Shop")
    first, new = workspace.datasets()
    assert (first.id, first.name, new.name) == (stored, "Shop", "Shop (2)")
    assert address.one("data") == new.id
    found = [address.one(field) for field in ("base", "system", "vs", "metric")]
    assert found == [None, None, None, "x"]
    (run,) = workspace.runs(new.id)
    assert (run.name, run.dataset_id) == ("better", new.id)
    assert run.id != workspace.runs(stored)[0].id
    assert len(workspace.runs(stored)) == 1
    keep(stored, made, "Another")
    assert [row.name for row in workspace.datasets()] == ["Shop", "Shop (2)"]
    assert len(workspace.runs(new.id)) == 1


def test_a_data_set_that_is_the_same_is_opened_as_it_is(workspace, stored, session):
    keep(stored, workspace.dataset(stored), "Other")
    assert [row.name for row in workspace.datasets()] == ["Shop"]
    assert len(workspace.runs(stored)) == 1
    assert address.one("data") == stored
