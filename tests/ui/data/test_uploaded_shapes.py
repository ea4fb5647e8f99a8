"""Every shape of JSON dropped on the page Data: what is stored is what a command reads."""

import pytest

import rankdash as rd
from rankdash.loading import load
from rankdash.metrics import parse_metrics
from rankdash.readers import Source
from tests.readers.formats.test_shapes import SHAPES
from tests.sets import ROOT


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.filterwarnings("ignore:The files give neither a first-stage order")
def test_a_shape_that_is_uploaded_is_stored_as_a_command_reads_it(shape, app, workspace, tmp_path):
    app.query_params["lang"] = "en"
    app.switch_page(str(ROOT / "pages" / "data.py")).run()
    app.file_uploader[0].set_value(("shape.json", shape.content, "application/json")).run()
    next(each for each in app.button if each.label == "Read 1 file").click().run()

    assert not app.exception and not app.error
    [row] = workspace.datasets()
    assert app.selectbox(key="address.data").value == row.id
    stored, file = workspace.dataset(row.id), tmp_path / "shape.json"
    file.write_bytes(shape.content)
    assert stored.id == load([Source.from_path(file)]).dataset.id
    assert set(shape.queries) <= set(stored.queries["query_id"])
    assert set(shape.documents) <= set(stored.documents["doc_id"])
    assert sorted(run.name for run in workspace.runs(row.id)) == sorted(shape.systems)
    found = rd.evaluate(stored, metrics=parse_metrics(",".join(shape.values)).specs)
    assert {spec: found.mean(spec) for spec in shape.values} == pytest.approx(shape.values)
