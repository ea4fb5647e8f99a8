"""Every shape of JSON through what stands behind the upload: stored is what a command reads.

The uploader itself is one widget, so each shape goes to the function that it calls.
"""

import pytest

import rankdash as rd
from rankdash.loading import load
from rankdash.metrics import parse_metrics
from rankdash.readers import Source
from rankdash.ui.data import uploads
from rankdash.ui.state import address
from tests.readers.formats.test_shapes import SHAPES


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.filterwarnings("ignore:The files give neither a first-stage order")
def test_an_uploaded_shape_is_stored_as_a_command_reads_it(
    shape, workspace, session, monkeypatch, tmp_path
):
    chosen = {}
    monkeypatch.setattr(address, "choose", chosen.__setitem__)
    uploads.read_sources([Source("shape.json", shape.content)])

    [row] = workspace.datasets()
    assert chosen["data"] == row.id
    stored, file = workspace.dataset(row.id), tmp_path / "shape.json"
    file.write_bytes(shape.content)
    assert stored.id == load([Source.from_path(file)]).dataset.id
    assert set(shape.queries) <= set(stored.queries["query_id"])
    assert set(shape.documents) <= set(stored.documents["doc_id"])
    assert sorted(run.name for run in workspace.runs(row.id)) == sorted(shape.systems)
    found = rd.evaluate(stored, metrics=parse_metrics(",".join(shape.values)).specs)
    assert {spec: found.mean(spec) for spec in shape.values} == pytest.approx(shape.values)
