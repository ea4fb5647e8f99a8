"""Uploads in a real browser that are refused with a message."""

import io
import re
import zipfile

import pytest
from playwright.sync_api import expect

from tests.ui.data.tutorials import EXAMPLES


def upload(visit, files) -> None:
    box = visit.page.locator("input[type=file]")
    # The uploader of the previous files is being removed.
    expect(box).to_have_count(1)
    visit.settle()
    button = visit.page.get_by_role("button", name=re.compile(r"^Read \d+ file"))
    # Refused files remain, and so does their button until the new files are uploaded.
    refused = int(button.inner_text().split()[-2]) if button.count() else 0
    box.set_input_files(files)
    visit.page.get_by_role("button", name=re.compile(rf"^Read {refused + len(files)} file")).click()
    visit.settle()


def test_a_broken_file_and_a_bomb_are_refused_with_the_remedy_and_nothing_is_lost(visit):
    visit.open("data")
    row = b'{"query_id": "1", "query": "a", "doc_id": "d", "document": "x", "label": 1}\n'
    broken = row + b'{"query_id": \n'
    upload(visit, [{"name": "bro*ken*.jsonl", "mimeType": "text/plain", "buffer": broken}])
    error = visit.page.get_by_test_id("stAlertContentError")
    expect(error).to_contain_text("bro*ken*.jsonl, line 2")
    visit.sees("Current data set: Help centre")
    heap = io.BytesIO()
    with zipfile.ZipFile(heap, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../evil.jsonl", b"{}")
    upload(visit, [{"name": "a.zip", "mimeType": "application/zip", "buffer": heap.getvalue()}])
    expect(error).to_contain_text("a.zip")
    visit.sees("Current data set: Help centre")
    expect(visit.page.get_by_text("Traceback")).to_have_count(0)


@pytest.mark.parametrize("tool", ["ranx, usage", "Cohere, rerank", "Elasticsearch, _rank_eval"])
def test_an_example_of_another_tool_becomes_the_current_data_set(visit, tool):
    [example] = [each for each in EXAMPLES if each.tool == tool]
    visit.open("data")
    upload(
        visit,
        [
            {"name": name, "mimeType": "text/plain", "buffer": content.encode()}
            for name, content in example.files.items()
        ],
    )
    expect(visit.page.get_by_test_id("stAlertContentError")).to_have_count(0)
    expect(visit.page.get_by_text("Current data set: Help centre")).to_have_count(0)
    visit.sees("Current data set:")
