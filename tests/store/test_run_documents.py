"""Documents of a run that its data set lacks: stored, shown with the data set, and imported."""

import io
from dataclasses import replace

import pandas as pd
import pytest

from rankdash.core.base.errors import FormatError
from rankdash.core.data.ranking import RETRIEVAL, Ranking
from rankdash.core.readers.checks.check import check
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.notes import Corrections
from rankdash.core.workspace.workspace_file import archive, import_workspace

DOCUMENTS = pd.DataFrame(
    {"doc_id": ["new", "01"], "title": ["Neu", "Other"], "text": ["*fetched*", "filled in"]}
).astype("str")


@pytest.fixture
def stored(workspace, make_dataset, make_run):
    """The data set in `workspace`, with the run "run-1" and its check report."""
    dataset = make_dataset()
    workspace.save_dataset(dataset, report_json=check(dataset, [], {}).to_json())
    workspace.save_run(make_run(dataset))
    return dataset


@pytest.fixture
def fetched(workspace, stored, make_run):
    """A run with two documents: the data set lacks the first, and a text of the second."""
    ranking = Ranking.from_lists([("007", ["new", "01"], [2.0, 1.0])])
    run = replace(
        make_run(stored, "fetched", "Elastic"),
        ranking=ranking,
        reranker=RETRIEVAL,
        reading=None,
        documents=DOCUMENTS,
    )
    workspace.save_run(run)
    return run


def exported(workspace) -> io.BytesIO:
    target = io.BytesIO()
    archive.export(workspace, target, "1.2.3")
    return target


def test_the_documents_of_a_run_are_stored_and_complete_the_data_set(workspace, stored, fetched):
    pd.testing.assert_frame_equal(workspace.run("fetched").documents, DOCUMENTS)
    assert workspace.run("run-1").documents is None
    data = workspace.dataset(stored.id)
    texts = data.document_text()
    assert (data.id, data) == (stored.id, stored)
    assert (texts["new"], texts["01"], texts["1"]) == (
        "Neu *fetched*",
        "Other filled in",
        "One first\nline",
    )
    saved = workspace.saved_dataset(stored.id)
    pd.testing.assert_frame_equal(saved.documents, stored.documents)
    assert workspace.runs_with_documents(stored.id) == ("fetched",)
    workspace.delete_run("fetched")
    assert "new" not in workspace.dataset(stored.id).document_places


def test_damaged_documents_damage_the_run_and_not_the_data_set(workspace, stored, fetched):
    (file,) = (workspace.root / "runs").glob("fetched*/documents.parquet")
    file.write_bytes(file.read_bytes()[:-20])
    assert "new" not in workspace.dataset(stored.id).document_places
    assert set(Workspace(workspace.root).damaged_runs(stored.id)) == {"fetched"}


def test_documents_and_their_labels_are_exported_and_imported(workspace, stored, fetched, tmp_path):
    layer = Corrections(workspace)
    layer.correct(stored.id, ("007", "new"), 2.0, "Ann")
    # Its run was deleted before the export.
    layer.correct(stored.id, ("007", "deleted"), 1.0, "Ann")
    other = Workspace(tmp_path / "other")
    import_workspace.bring_in(other, exported(workspace), "shop.rankdash.zip")
    pd.testing.assert_frame_equal(other.run("fetched").documents, DOCUMENTS)
    assert other.dataset(stored.id).document_text()["new"] == "Neu *fetched*"
    assert {each.doc_id for each in Corrections(other).all(stored.id)} == {"new", "deleted"}


@pytest.mark.parametrize("harm", [{"doc_id": ["new", "new"]}, {"text": [1, 2]}])
def test_documents_of_another_form_are_refused(workspace, stored, fetched, tmp_path, harm):
    documents = DOCUMENTS.assign(**harm)
    workspace.save_run(replace(fetched, documents=documents))
    other = Workspace(tmp_path / "other")
    with pytest.raises(FormatError, match="Nothing was imported"):
        import_workspace.bring_in(other, exported(workspace), "shop.rankdash.zip")
    assert other.datasets() == []
