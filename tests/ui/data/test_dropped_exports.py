"""Exports of tools, dropped on the page Data: the stored rankings equal the documented ones."""

import pytest

from rankdash.features.data import page_upload
from tests.documented import DOCS, section
from tests.test_docs import FILE
from tests.ui.sessions import part, press

SECTIONS = section(DOCS / "data.md", "## Formats").split("\n### ")[1:]
# Format → the names of its systems, and the queries without a result of each.
SYSTEMS = {
    "OpenSearch experiments": {"experiment/hybrid": {}},
    "UBI": {},
    "OpenInference spans": {"spans/bge": {"failed"}},
    "Quepid": {},
}


@pytest.fixture
def panel(workspace, monkeypatch):
    monkeypatch.setattr(page_upload, "AT_ONCE_SECONDS", float("inf"))
    return part(page_upload.upload_panel)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_example_of_a_tool_is_stored_with_its_systems(panel, workspace, name):
    [shown] = [each for each in SECTIONS if each.splitlines()[0] == name]
    files = [(file, text.encode(), "text/plain") for file, text in FILE.findall(shown)]
    panel.file_uploader[0].set_value(files).run()
    press(panel, next(each.label for each in panel.button if each.label.startswith("Read")))
    [row] = workspace.datasets()
    runs = [workspace.run(each.id) for each in workspace.runs(row.id)]
    assert {run.name: {*run.excluded.values()} or {} for run in runs} == SYSTEMS[name]
    latencies = [run.queries["latency_ms"].dropna().tolist() for run in runs]
    assert latencies == ([[pytest.approx(120)]] if name.startswith("OpenI") else [[]] * len(runs))
    assert len(workspace.dataset(row.id).qrels) >= 2
