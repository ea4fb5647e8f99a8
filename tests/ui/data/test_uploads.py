"""Files on their way in: what a person is asked, and what the answer does."""

import gzip

import numpy as np
import pandas as pd
import pytest

from rankdash.errors import DataError, LimitError, RefusedFilesError
from rankdash.intake.keeping import Kept, keep
from rankdash.intake.process import REQUEST, Process
from rankdash.intake.reading import Progress
from rankdash.loading import load
from rankdash.readers import FORMATS, SHAPES, MappingNeeded, Source, WordsNeeded
from rankdash.readers.parse.annotators import words_in
from rankdash.ui.data import check_view, column_choices, open_by_name, reading_panel, uploads
from rankdash.ui.state import address
from tests.approved import table
from tests.results import shown
from tests.ui.lives import lives, play
from tests.ui.page_text import page_text
from tests.ui.sessions import button, page, part, press, said

ROWS = "query,document,label\n" + "".join(
    f"query {q},text {q} {d},{{{(q + d) % 3}}}\n" for q in range(3) for d in range(3)
)


def rows(labels: tuple[str, str, str]) -> bytes:
    return ROWS.format(*labels).encode()


@pytest.fixture
def panel(workspace, monkeypatch):
    """The uploads alone, with the check report of what was stored."""
    monkeypatch.setattr(uploads, "AT_ONCE_SECONDS", float("inf"))

    def drawn():
        blocked = uploads.upload_panel()
        if chosen := address.one("data"):
            check_view.draw(chosen, blocking_said=chosen == blocked)

    return part(drawn)


def drop(app, *files):
    """files: a name and its content, or several such pairs."""
    pairs = [files] if isinstance(files[0], str) else files
    app.file_uploader[0].set_value([(*each, "text/plain") for each in pairs]).run()


def read(app):
    found = next(each.label for each in app.button if each.label.startswith("Read"))
    return press(app, found)


def box(app, label):
    return next(each for each in app.selectbox if each.label == label)


def labels(workspace):
    [row] = workspace.datasets()
    return sorted(workspace.dataset(row.id).qrels["label"].unique())


def test_the_uploader_names_every_format(panel):
    assert all(name in panel.file_uploader[0].help for name in (*FORMATS, *SHAPES))


@pytest.mark.parametrize("life", lives("uploads"))
def test_a_life_of_the_uploads(life, approved, panel, workspace, monkeypatch):
    files, asked = {}, []

    def named(name):
        """The page on which names are typed, for which a file is fetched, or "fails"."""

        def fetched(names, *, waiting):
            asked.extend(names)
            waiting()
            if name == "fails":
                raise DataError("The hub at {hub} fails.", remedy="Check it.", hub="*x*")
            return [Source(name, files[name].encode(), "it")]

        monkeypatch.setattr(open_by_name, "sources_by_name", fetched)
        return page("data", state={"data.by_name": True})

    opened = []

    def columns(name):
        """Which column is which, alone."""
        opened[:] = [part(column_choices.draw, [Source(name, files[name].encode())], str)]
        return opened[0]

    def sets():
        found = []
        for row in workspace.datasets():
            data, runs = workspace.dataset(row.id), {each.name for each in workspace.runs(row.id)}
            ranked = data.candidates.documents_of(str(data.queries["query_id"].iloc[0]))[0]
            told = {"name": row.name, "labels": sorted(data.qrels["label"].unique())}
            told |= {"first stage": row.first_stage, "called": row.candidates_name}
            told |= {"ranked": ranked, "runs": runs}
            found.append(shown(told))
        return "\n".join(found)

    acts = {
        "file": files.__setitem__,
        "panel": lambda: panel,
        "drop": lambda *names: drop(panel, *((name, files[name].encode()) for name in names)),
        "columns": columns,
        "named": named,
    }
    told = {"sets": sets, "asked": lambda: asked}
    facts = (
        {"found": lambda: opened and opened[0].session_state["found"]} if "guess" in life else told
    )
    approved(life, play(life, acts, facts))


class Held:
    """In place of a process that reads: it goes on until it is told to end."""

    def __init__(self, workspace, sources, **options):
        self.running, self.cancelled, self.seconds = True, False, 42.0
        self.progress = Progress("reading", 1_250_000, 30.0)
        self.ended = lambda: keep(workspace, load(sources, **options))

    def wait(self, _seconds):
        pass

    def cancel(self):
        self.running, self.cancelled = False, True

    def result(self):
        return self.ended()


@pytest.fixture
def large(panel, monkeypatch, request):
    """The page while a large file is being read, or a small one that takes long."""
    is_large = getattr(request, "param", True)
    monkeypatch.setattr(uploads, "is_large", lambda sources: is_large)
    monkeypatch.setattr(uploads, "Reading", Held)
    drop(panel, "shop.csv", rows(("2", "1", "0")))
    panel.text_input[0].set_value("Autumn")
    return read(panel)


def under_way(app):
    return app.session_state["upload.reading"][1]


@pytest.mark.parametrize("large", [True, False], indirect=True)
def test_a_large_file_shows_how_far_it_is_and_is_stored_at_its_end(large, workspace):
    assert r"**Reading shop\.csv**" in [each.value for each in large.markdown]
    assert button(large, "Read 1 file").disabled and workspace.datasets() == []
    under_way(large).progress = Progress("storing", 2_000_000)
    large.run()
    assert large.button(key="upload.cancel").disabled
    under_way(large).running = False
    large.run()
    assert [each.value for each in large.success] == ["Autumn is ready: 3 queries and 9 documents."]
    assert [row.name for row in workspace.datasets()] == ["Autumn"]
    assert "upload.reading" not in large.session_state


def test_cancelling_a_large_file_stores_nothing_and_keeps_it_to_read_again(large, workspace):
    large.button(key="upload.cancel").click().run()
    assert [each.value for each in large.info] == ["Cancelled. Nothing was stored."]
    assert workspace.datasets() == [] and not button(large, "Read 1 file").disabled


def test_an_error_and_a_question_of_a_large_file_are_those_of_a_small_one(large, workspace):
    def fail():
        raise LimitError("The file has {n} rows.", remedy="Load fewer.", file="shop.csv", n=9)

    held = under_way(large)
    held.ended, held.running = fail, False
    large.run()
    [told] = [each.value.replace("\\", "") for each in large.error]
    assert told == "shop.csv: The file has 9 rows. Load fewer." and workspace.datasets() == []
    drop(large, "words.csv", rows(("Exact", "Partial", "Meh")))
    read(large)
    under_way(large).running = False
    large.run()
    assert "are words. Which grade is each?" in large.warning[0].value
    next(field for field in large.number_input if field.label.startswith("Meh")).set_value(0.25)
    read(large)
    assert not large.number_input
    under_way(large).running = False
    large.run()
    assert labels(workspace) == [0.25, 1, 2]


@pytest.mark.thorough
def test_a_file_that_unpacks_to_too_much_or_kills_its_reader_is_refused_and_the_page_goes_on(
    panel, workspace, monkeypatch
):
    drop(panel, "labels.json.gz", gzip.compress(b"[" + b"1," * 40_000_000 + b"1]"))
    read(panel)
    [told] = [each.value.replace("\\", "") for each in panel.error]
    assert told.startswith("labels.json.gz: Unpacked, the archive is more than 200 times as large.")
    assert "RANKDASH_MAX_UNPACKED_RATIO" in told
    send = Process.send

    def kill(self, folder):
        if "read" in (folder / REQUEST).read_text():
            self.stop()
        send(self, folder)

    drop(panel, "shop.csv", rows(("2", "1", "0")))
    with monkeypatch.context() as patch:
        patch.setattr(Process, "send", kill)
        read(panel)
    [told] = [each.value for each in panel.error]
    assert "shop" in told and "maybe for lack of memory" in told and workspace.datasets() == []
    read(panel)
    assert labels(workspace) == [0, 1, 2]


# What the readers ask, step by step.

COLUMNS = MappingNeeded(
    "a.csv", pd.DataFrame({"x": ["1"], "query": ["how to return it"]}), "document"
)
OTHER = MappingNeeded("b.csv", pd.DataFrame({"x": ["1"]}), "document")


def words(*of, file="a.csv"):
    return WordsNeeded(file, words_in(np.array(of, dtype=object)))


# What was here before, so that nothing is opened.
HERE = Kept("x", was_here=True)


class Asked:
    """In place of a process that reads: it asks or refuses, and is told how to read."""

    def __init__(self, outcomes, told):
        self.outcomes, self.told = iter(outcomes), told
        self.running = self.cancelled = False

    def __call__(self, _workspace, _files, **how):
        self.told.append(how)
        return self

    def wait(self, _seconds):
        pass

    def result(self):
        outcome = next(self.outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@pytest.fixture
def asked(panel, monkeypatch):
    """The page after files were dropped about which the reader asks one thing after the other; and
    what it was told each time."""

    def on(*outcomes):
        told = []
        monkeypatch.setattr(uploads, "Reading", Asked(outcomes, told))
        drop(panel, "a.csv", rows(("2", "1", "0")))
        return read(panel), told

    return on


@pytest.mark.parametrize(
    ("first", "then", "back"),
    [
        # Its columns were chosen a moment ago: they may be the reason of the next question.
        (COLUMNS, words("good", "bad"), True),
        (COLUMNS, COLUMNS, True),
        (OTHER, words("good", "bad"), False),
        (words("good", "bad"), words("good", "bad"), False),
    ],
)
def test_a_question_leads_back_to_the_columns_of_the_same_file(asked, first, then, back):
    app, _told = asked(first, then)
    assert not app.file_uploader and "Back to the columns" not in labels_of(app)
    read(app)
    assert ("Back to the columns" in labels_of(app)) is back


def labels_of(app):
    return [each.label for each in app.button]


def test_an_answer_is_added_to_those_of_other_files(asked):
    app, told = asked(
        COLUMNS, words("good", "bad"), words("relevant", "irrelevant", file="b.csv"), HERE
    )
    # Columns are guessed, and those left empty are not in the file; words that few rows share are
    # no labels.
    boxes = {box.label: box for box in app.selectbox}
    assert (boxes["Query text"].value, boxes["Document id"].value) == ("query", "")
    assert (boxes["Label"].options, boxes["Query text"].options) == (
        ["not in this file", "x"], ["not in this file", "x", "query"]
    )  # fmt: skip
    boxes["Document text"].set_value("x")
    boxes["Label"].set_value("")
    read(app)
    for grades in ((1.0, 0.0), (2.0, 1.0)):
        for grade, field in zip(grades, app.number_input, strict=True):
            field.set_value(grade)
        read(app)
    assert [each["mapping"] for each in told][-1] == {"a.csv": {"query": "query", "document": "x"}}
    assert told[2]["words"] == {"a.csv": {"good": 1.0, "bad": 0.0}}
    assert told[3]["words"] == told[2]["words"] | {"b.csv": {"relevant": 2.0, "irrelevant": 1.0}}


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_refused_is_said_file_by_file_and_the_files_stay(asked, count):
    errors = [DataError("x" * 5000, file=f"{n}.csv") for n in range(count)]
    app, _told = asked(errors[0] if count == 1 else RefusedFilesError(errors))
    [told] = [each.value.replace("\\", "") for each in app.error]
    head, *lines = told.split("\n- ") if count > 1 else ("", told)
    assert head == ("" if count == 1 else "Files that cannot be used: 3.")
    assert [line[:6] for line in lines] == [f"{n}.csv:"[:6] for n in range(count)]
    assert all(550 < len(line) <= 601 for line in lines)
    assert "Read 1 file" in labels_of(app)


def test_a_limit_that_is_set_wrong_is_said(panel, monkeypatch):
    monkeypatch.setenv("RANKDASH_MAX_ROWS", "many")
    drop(panel, "a.csv", rows(("2", "1", "0")))
    read(panel)
    assert "RANKDASH_MAX_ROWS" in said(panel) and "whole number" in said(panel)


# Which column is which, before files are read.


@pytest.mark.parametrize(("sizes", "large"), [((30, 20), False), ((30, 30), True)])
def test_of_large_files_together_the_beginning_is_looked_at_once(monkeypatch, sizes, large):
    monkeypatch.setattr(column_choices, "MOST_BYTES", 50)
    looked = []
    monkeypatch.setattr(column_choices, "guessed", lambda _files, most: looked.append(most) or [])
    files = [Source(f"{at}.csv", f"{at}".encode() * size) for at, size in enumerate(sizes)]
    app = part(column_choices.draw, files, str).run()
    assert looked == [25] and bool(app.caption) is large


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_how_far_the_reading_is(approved, lang):
    told = {}
    for why, progress in {
        "nothing read yet": Progress(),
        "one row": Progress(rows=1),
        "time is left": Progress("reading", 2, 30.0),
        "less than a second is not said": Progress("joining", 9, 0.9),
        "checking": Progress("checking", 0, 0.0),
        "storing is not cancelled any more": Progress("storing"),
    }.items():
        held = Held(None, ())
        held.progress = progress
        told[why] = page_text(part(reading_panel.draw, held, ["a.csv", "b*.csv"], lang=lang))
    approved(f"pages/reading.{lang}", table(told))
