"""Files on their way in, step by step: read at once or by a process, asked about, refused, kept."""

from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import pandas as pd
import pytest

from rankdash.errors import DataError, RefusedFilesError
from rankdash.readers import MappingNeeded, Source, WordsNeeded
from rankdash.ui.data import uploads

ROWS = pd.DataFrame({"x": ["1"], "query": ["how to return it"]})
COLUMNS = MappingNeeded("a.csv", ROWS, "document")
OTHER = MappingNeeded("b.csv", pd.DataFrame({"x": ["1"]}), "document")


def word(text: str, grade: float | None, gain: float | None = None, count: int = 1):
    return SimpleNamespace(text=text, grade=grade, gain=gain, count=count)


def words(*of: SimpleNamespace, file: str = "a.csv") -> WordsNeeded:
    return WordsNeeded(file, of)


def upload(name: str = "", first_stage: str = "") -> uploads._Upload:
    files = (SimpleNamespace(name="a.csv"),)
    return uploads._Upload(files, name, first_stage, None, "highest", "majority")


@pytest.fixture
def drawn(paper, session):
    found = paper(uploads)
    found.session_state = session
    return found


def refuse(error: Exception):
    def outcome():
        raise error

    return outcome


@pytest.mark.parametrize("was_here", [False, True])
def test_what_was_stored_is_opened_and_what_was_here_is_only_offered(
    drawn, session, monkeypatch, was_here
):
    opened = []
    monkeypatch.setattr(uploads.kept_view, "choose", opened.append)
    session[uploads._PENDING] = "a question"
    kept = SimpleNamespace(was_here=was_here, dataset_id="shop")
    uploads._settle(upload(), lambda: kept)
    assert opened == ([] if was_here else ["shop"])
    assert not uploads.asking() and session[uploads._SAID] is kept
    assert (session[uploads._GENERATION], len(drawn.of("rerun"))) == (1, 1)


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_refused_is_said_file_by_file_and_the_files_stay(drawn, session, count):
    errors = [DataError("x" * 5000, file=f"{n}.csv") for n in range(count)]
    uploads._settle(upload(), refuse(errors[0] if count == 1 else RefusedFilesError(errors)))
    [said] = drawn.of("error")
    head, *lines = said.replace("\\", "").split("\n- ")
    if count == 1:
        head, lines = "", [head, *lines]
    assert head == ("" if count == 1 else "Files that cannot be used: 3.")
    assert [line[:6] for line in lines] == [f"{n}.csv:"[:6] for n in range(count)]
    assert all(550 < len(line) <= 601 for line in lines)
    assert uploads._GENERATION not in session and not drawn.of("rerun")


@pytest.mark.parametrize(
    ("before", "question", "back"),
    [
        (None, COLUMNS, False),
        # Its columns were chosen a moment ago: they may be the reason of the next question.
        (COLUMNS, words(word("good", 1.0)), True),
        (COLUMNS, COLUMNS, True),
        (OTHER, words(word("good", 1.0)), False),
        (words(word("good", 1.0)), words(word("bad", 0.0)), False),
    ],
)
def test_a_question_leads_back_to_the_columns_of_the_same_file(
    drawn, session, before, question, back
):
    asked = (upload(), before, None)
    if before:
        session[uploads._PENDING] = asked
    made = upload("again")
    uploads._settle(made, refuse(question))
    assert session[uploads._PENDING] == (made, question, asked if back else None)
    assert uploads.asking() and drawn.of("rerun")


@pytest.mark.parametrize(
    ("question", "answer", "read"),
    [(COLUMNS, {"query": "x"}, "mapping"), (COLUMNS, None, None),
     (words(word("good", 1.0)), {"good": 2.0}, "words"), (words(word("good", 1.0)), None, None)],
)  # fmt: skip
@pytest.mark.parametrize("before", [None, ("earlier",)])
def test_an_answer_is_added_to_those_of_other_files(
    drawn, session, monkeypatch, question, answer, read, before
):
    given = uploads.replace(
        upload(), mapping={"z.csv": {"query": "y"}}, words={"z.csv": {"bad": 0.0}}
    )
    session[uploads._PENDING] = (given, question, before)
    monkeypatch.setattr(uploads, "_words_form", lambda *_a: answer)
    monkeypatch.setattr(uploads, "_mapping_form", lambda *_a: answer)
    sent = []
    monkeypatch.setattr(uploads, "_read", sent.append)
    uploads._question()
    assert drawn.of("button") == ["Back to the columns"] * bool(before)
    if read is None:
        assert sent == []
        return
    [found] = sent
    added = {"mapping": dict(given.mapping), "words": dict(given.words)}
    added[read]["a.csv"] = answer
    assert {"mapping": found.mapping, "words": found.words} == added


@pytest.mark.parametrize(
    ("name", "first", "given"), [("", "", (None, None)), ("  ", "b.csv", (None, "b.csv")),
                                 (" Shop ", "", ("Shop", None))]
)  # fmt: skip
def test_small_files_are_read_at_once_and_what_is_left_empty_is_found_out(
    drawn, monkeypatch, name, first, given
):
    seen = []
    monkeypatch.setattr(uploads, "is_large", lambda _files: False)
    monkeypatch.setattr(uploads, "workspace", lambda: None)
    monkeypatch.setattr(uploads, "Reading", Reading)
    monkeypatch.setattr(uploads, "_settle", lambda _upload, outcome: seen.append(outcome()))
    uploads._read(upload(name, first))
    how = Reading.how
    assert (how["name"], how["first_stage"]) == given
    assert (how["conflict"], how["annotators"], how["ask"]) == ("highest", "majority", True)
    assert seen == ["kept"]


def test_small_files_that_take_long_are_watched_like_large_ones(drawn, session, monkeypatch):
    monkeypatch.setattr(uploads, "is_large", lambda _files: False)
    monkeypatch.setattr(uploads, "workspace", lambda: None)
    monkeypatch.setattr(uploads, "Reading", Reading)
    monkeypatch.setattr(Reading, "running", True)
    drawn.__dict__["rerun"] = stop
    with pytest.raises(StopPageError):
        uploads._read(upload())
    assert session[uploads._READING][1].running


def test_a_limit_that_is_set_wrong_is_said(drawn, monkeypatch):
    monkeypatch.setattr(uploads, "workspace", lambda: SimpleNamespace(root="here"))
    monkeypatch.setenv("RANKDASH_MAX_ROWS", "many")
    uploads._read(replace(upload(), files=(Source("a.csv", b""),)))
    [said] = drawn.of("error")
    assert "MAX" in said and "whole number" in said


class StopPageError(Exception):
    """In place of a page that is drawn anew."""


def stop() -> None:
    raise StopPageError


class Reading:
    """A process that reads files."""

    cancelled = running = False
    how: ClassVar[dict[str, object]] = {}

    def __init__(self, *_given, **how) -> None:
        type(self).how = how

    def wait(self, _seconds) -> None:
        pass

    def result(self):
        return "kept"


@pytest.mark.parametrize("state", ["running", "cancelled", "done", "none"])
def test_large_files_are_watched_until_their_process_ends(drawn, session, monkeypatch, state):
    monkeypatch.setattr(uploads, "is_large", lambda _files: True)
    monkeypatch.setattr(uploads, "workspace", lambda: None)
    monkeypatch.setattr(uploads, "Reading", Reading)
    shown, settled = [], []
    monkeypatch.setattr(uploads.reading_panel, "draw", lambda _r, names: shown.extend(names))
    monkeypatch.setattr(uploads, "_settle", lambda _upload, outcome: settled.append(outcome()))
    drawn.__dict__["rerun"] = stop
    if state != "none":
        with pytest.raises(StopPageError):
            uploads._read(upload())
        _upload, reading = session[uploads._READING]
        reading.running, reading.cancelled = state == "running", state == "cancelled"
    assert uploads._still_reading() is (state == "running")
    assert shown == ["a.csv"] * (state == "running")
    assert (uploads._READING in session) is (state == "running")
    assert drawn.of("info") == ["Cancelled. Nothing was stored."] * (state == "cancelled")
    assert settled == ["kept"] * (state == "done")


@pytest.mark.parametrize(
    ("busy", "asking", "parts"),
    [(False, True, ["question"]), (True, True, []), (False, False, ["files"]),
     (True, False, ["files"])],
)  # fmt: skip
def test_a_question_stands_in_place_of_the_field_for_files(
    drawn, session, monkeypatch, busy, asking, parts
):
    found = []
    monkeypatch.setattr(uploads, "_still_reading", lambda: busy)
    monkeypatch.setattr(uploads, "_question", lambda: found.append("question"))
    if asking:
        session[uploads._PENDING] = "a question"
    monkeypatch.setattr(uploads, "uploader", lambda *_field, **_settings: found.append("files"))
    uploads._panel()
    assert found == parts


@pytest.mark.parametrize("sent", [True, False])
def test_columns_are_guessed_and_those_left_empty_are_not_in_the_file(drawn, session, sent):
    starts, offered = {}, {}

    def choose(label, columns, index, format_func, key):
        starts[label] = (index, format_func(""))
        offered[label] = columns
        return {"Query text": "query", "Document text": "x"}.get(label, "")

    drawn.__dict__["selectbox"] = choose
    drawn.answers["form_submit_button"] = sent
    found = uploads._mapping_form(COLUMNS)
    assert found == ({"query": "query", "document": "x"} if sent else None)
    # The third of what is offered, after none and x; what fits no column is none.
    assert starts["Query text"] == (2, "not in this file")
    assert starts["Document id"] == (0, "not in this file")
    # Words that few rows share are no labels.
    assert (offered["Label"], offered["Query text"]) == (["", "x"], ["", "x", "query"])


ESCI = (word("E", 3.0, 1.0), word("S", 2.0, 0.1), word("C", 1.0, 0.01))


@pytest.mark.parametrize(
    ("of", "asked", "scale", "step", "grades"),
    [
        (ESCI, True, "grades", 1.0, [3.0, 2.0, 1.0]),
        (ESCI, True, "gains", 0.01, [1.0, 0.1, 0.01]),
        # Two of its words may be those of another scale, and so may one among others.
        (ESCI[:2], False, "gains", 1.0, [3.0, 2.0]),
        ((*ESCI, word("other", None)), False, "gains", 1.0, [3.0, 2.0, 1.0, None]),
    ],
)
def test_words_have_the_grades_of_their_scale_and_gains_where_all_have_one(
    drawn, session, of, asked, scale, step, grades
):
    drawn.answers |= {"radio": scale, "form_submit_button": True}
    steps = set()

    def number(_label, value, step, **_settings):
        steps.add(step)
        return value

    drawn.__dict__["number_input"] = number
    found = uploads._words_form(words(*of))
    assert list(found.items()) == [
        (each.text, grade) for each, grade in zip(of, grades, strict=True)
    ]
    assert bool(drawn.of("radio")) is asked and steps == {step}
    drawn.answers["form_submit_button"] = False
    assert uploads._words_form(words(*of)) is None


@pytest.mark.parametrize(("primary", "kinds"), [(True, ["primary", "secondary"]),
                                                (False, ["secondary", "secondary"])])  # fmt: skip
def test_the_sample_of_the_interfaces_language_is_offered_first(
    drawn, session, monkeypatch, primary, kinds
):
    session[uploads.language.STATE] = "en"
    lacking = []

    def left(ids, own):
        lacking.append((ids, own))
        return ["en", "zh"]

    monkeypatch.setattr(uploads.samples, "lacking", left)
    uploads.sample_buttons({"x"}, primary=primary)
    assert lacking == [({"x"}, "en")]
    assert drawn.of("button") == ["Open the sample", "Open the sample in 中文"]
    assert [each["type"] for kind, _label, each in drawn.drawn if kind == "button"] == kinds
