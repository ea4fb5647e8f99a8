"""Worked examples of other tools, uploaded on Data: the values, the ids and the names are right."""

import pytest

import rankdash as rd
from rankdash.features.data import page_upload
from tests.ui.data.tutorials import EXAMPLES
from tests.ui.sessions import part, press


def _means(data, run, values):
    return {name: rd.evaluate(data, run, [name]).means()[name] for name in values}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.tool)
def test_an_example_has_its_values_ids_and_names(example, workspace, monkeypatch):
    monkeypatch.setattr(page_upload, "AT_ONCE_SECONDS", float("inf"))
    app = part(page_upload.upload_panel)
    files = [(name, content.encode(), "text/plain") for name, content in example.files.items()]
    app.file_uploader[0].set_value(files).run()
    press(app, next(each.label for each in app.button if each.label.startswith("Read")))
    assert [each.value for each in app.error] == []
    [row] = workspace.datasets()
    data = workspace.dataset(row.id)
    assert _means(data, None, example.values) == pytest.approx(dict(example.values), abs=1e-9)
    assert set(example.queries) <= {*data.queries["query_id"], *data.queries["text"]}
    assert set(example.documents) <= {*data.documents["doc_id"], *data.documents["text"]}
    runs = {each.name: workspace.run(each.id) for each in workspace.runs(row.id)}
    assert {name: _means(data, runs[name], values) for name, values in example.other.items()} == {
        name: pytest.approx(dict(values), abs=1e-9) for name, values in example.other.items()
    }
