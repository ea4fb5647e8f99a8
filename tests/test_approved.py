"""An approved text is compared line by line, and written only on request."""

import pytest

from tests import approved


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(approved, "FOLDER", tmp_path)
    return tmp_path


def test_a_text_is_compared_with_what_was_approved(folder):
    assert "is not there" in approved.difference("words/costs.en", "one")
    assert list(folder.iterdir()) == []
    assert approved.difference("words/costs.en", "one\ntwo\n\n", renew=True) == ""
    assert (folder / "words" / "costs.en.txt").read_bytes() == b"one\ntwo\n"
    assert approved.difference("words/costs.en", "one\ntwo") == ""
    said = approved.difference("words/costs.en", "one\n two").splitlines()
    assert {"-two", "+ two"} <= {*said}
    assert "+three" in approved.difference("words/costs.en", "one\ntwo\nthree")
    assert "-two" in approved.difference("words/costs.en", "one")
    assert (folder / "words" / "costs.en.txt").read_bytes() == b"one\ntwo\n"


def test_cases_are_named_and_what_varies_is_masked():
    assert approved.table({"no labels": "a", "one": 2}) == "# no labels\na\n# one\n2"
    said = approved.masked("in /tmp/x/y.csv after 3.5 s", path=r"/tmp/\S+", time=r"[\d.]+ s")
    assert said == "in <path> after <time>"
