"""Files that are uploaded in a real browser: refused in words, or read once a person has said what
is in them."""

import io
import zipfile

import pytest
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


@pytest.mark.thorough
def test_a_large_file_is_read_when_the_server_no_longer_holds_it_and_after_a_question(visit):
    visit.open("data")
    text = "word " * 400
    rows = "".join(f"q {n // 4},{text}{n},{n % 2}\n" for n in range(1_200))
    table = f"wer,was,wie_gut\n{rows}".encode()
    assert len(table) > 2_000_000
    box = visit.page.locator("input[type=file]")
    box.set_input_files([{"name": "daten.csv", "mimeType": "text/csv", "buffer": table}])
    name = visit.page.get_by_role("textbox", name="Name")
    for word in ("Once", "Twice"):
        name.fill(word)
        name.press("Enter")
        visit.settle()
    visit.page.get_by_role("button", name="Read 1 file").click()
    visit.sees("Which column of daten.csv is which?")
    for field, column in (("Query text", "wer"), ("Document text", "was"), ("Label", "wie_gut")):
        visit.page.get_by_role("combobox", name=field).click()
        visit.page.get_by_role("option", name=column, exact=True).click()
    visit.page.get_by_role("button", name="Read", exact=True).click()
    visit.sees("300 queries and 1,200 documents")
    visit.sees("Twice")
