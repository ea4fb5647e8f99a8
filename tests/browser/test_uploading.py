"""Files that are uploaded in a real browser and refused in words."""

import io
import zipfile

from playwright.sync_api import expect

from .test_journeys import upload


def test_a_broken_file_and_a_bomb_are_refused_with_the_remedy_and_nothing_is_lost(visit):
    visit.open("data")
    row = b'{"query_id": "1", "query": "a", "doc_id": "d", "document": "x", "label": 1}\n'
    broken = row + b'{"query_id": \n'
    upload(visit, [{"name": "bro*ken*.jsonl", "mimeType": "text/plain", "buffer": broken}])
    error = visit.page.get_by_test_id("stAlertContentError")
    expect(error).to_contain_text("bro*ken*.jsonl, line 2")
    visit.sees("Check report: Help centre")
    heap = io.BytesIO()
    with zipfile.ZipFile(heap, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../evil.jsonl", b"{}")
    upload(visit, [{"name": "a.zip", "mimeType": "application/zip", "buffer": heap.getvalue()}])
    expect(error).to_contain_text("a.zip")
    visit.sees("Check report: Help centre")
    expect(visit.page.get_by_text("Traceback")).to_have_count(0)
