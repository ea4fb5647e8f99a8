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
from tests.sets import ROOT
from tests.ui.page_text import page_text
from tests.ui.sessions import button, page, part, press, said

ROWS = "query,document,{names}\n" + "".join(
    f"query {q},text {q} {d},{{{(q + d) % 3}}}\n" for q in range(3) for d in range(3)
)
LETOR = "".join(f"{d % 2} qid:{q} 1:0.{d} 2:{9 - d} # doc{d}\n" for q in range(3) for d in range(4))

UNRANKED = "query_id,doc_id,label\n" + "".join(
    f"{q},d{d},{int(d == q)}\n" for q in range(3) for d in range(3)
)


def rows(labels: tuple[str, str, str], names: str = "label") -> bytes:
    return ROWS.format(*labels, names=names).encode()


@pytest.fixture
def data(app):
    app.query_params["lang"] = "en"
    return app.switch_page(str(ROOT / "pages" / "data.py")).run()


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


def test_words_are_asked_for_with_the_scale_filled_in_and_the_answer_counts(panel, workspace):
    for again in (True, False):
        drop(panel, "shop.csv", rows(("Exact", "Partial", "Meh")))
        read(panel)
        assert "are words. Which grade is each?" in panel.warning[0].value
        assert {field.label: field.value for field in panel.number_input} == {
            "Exact (3 rows)": 2, "Partial (3 rows)": 1, "Meh (3 rows)": None,
        }  # fmt: skip
        if again:
            press(panel, "Cancel")
            assert not panel.warning and panel.file_uploader
    panel.number_input[2].set_value(0.25)
    read(panel)
    assert labels(workspace) == [0.25, 1, 2]


def test_an_answer_that_leaves_nothing_is_refused_and_can_be_mended(panel, workspace):
    drop(panel, "shop.csv", rows(("great", "soso", "awful")))
    read(read(panel))
    assert "cannot be used" in panel.error[0].value
    for grade, field in zip((0.0, 1.0, 2.0), panel.number_input, strict=True):
        field.set_value(grade)
    read(panel)
    assert labels(workspace) == [0, 1, 2]


@pytest.mark.parametrize(
    ("file", "asked_first", "label", "chosen", "found"),
    [
        (("a.csv", rows(("1,2", "0,0", "2,2"), names="label_1,label_2")), False,
         "Several annotators", "mean", [0, 1.5, 2]),
        (("a.csv", rows(("2,0,a", "1,1,b", "0,2,c"), names="relevance,second,why")), False,
         "Label", "second", [0, 1, 2]),
        # What is asked after the first reading: which feature is the score, or that the order of
        # the rows is the first stage.
        (("fold.txt", LETOR.encode()), True, "First-stage score", "feature 2",
         ["doc0", "doc1", "doc2", "doc3"]),
        (("labels.csv", UNRANKED.encode()), True, "First-stage ranking", ("", "rows"),
         ["d0", "d1", "d2"]),
    ],
)  # fmt: skip
def test_what_is_chosen_of_the_files_counts(
    panel, workspace, file, asked_first, label, chosen, found
):
    drop(panel, *file)
    if asked_first:
        read(panel)
        assert not workspace.datasets()
    box(panel, label).set_value(chosen)
    read(panel)
    [row] = workspace.datasets()
    if asked_first:
        assert workspace.dataset(row.id).candidates.documents_of("1")[0] == found
        assert (row.first_stage == "rows") is (label == "First-stage ranking")
    else:
        assert labels(workspace) == found
        assert (f"label = {chosen}" in workspace.check_report(row.id)) is (label == "Label")


def test_a_wrong_column_of_words_can_be_taken_back(panel, workspace):
    body = "".join(
        f"query {q},text {q} {d},{d % 2},{'rot' if d else 'blau'}\n"
        for q in range(3)
        for d in range(3)
    )
    drop(panel, "daten.csv", f"wer,was,wie_gut,art\n{body}".encode())
    read(panel)

    def choose(label):
        for field, column in (("Query text", "wer"), ("Document text", "was"), ("Label", label)):
            box(panel, field).set_value(column)
        read(panel)

    choose("art")
    assert "are words" in panel.warning[0].value
    press(panel, "Back to the columns")
    choose("wie_gut")
    assert labels(workspace) == [0, 1]


def scored(name, scores):
    entry = '[{"id": 7, "query": "a gift", "docs": ["one", "two"], "true_scores": [1, 0], %s}]'
    return f"{name}.json", (entry % f'"pred_scores": {scores}').encode()


def test_files_of_scores_are_named_systems_and_a_new_one_is_added_to_a_stored_set(panel, workspace):
    first, *others = [scored("bge", [1, 2]), scored("minilm", [2, 1]), scored("cohere", [3, 1])]
    drop(panel, first)
    read(panel)
    drop(panel, first, *others)
    read(panel)
    [row] = workspace.datasets()
    assert workspace.dataset(row.id).queries["query_id"].tolist() == ["7"]
    assert {run.name for run in workspace.runs(row.id)} == {"bge", "minilm", "cohere"}
    told = f"These files equal {row.name}, which is in this workspace. New in it: "
    assert panel.info[0].value.startswith(told) and "minilm" in panel.info[0].value
    assert "3 systems came with the files: " in said(panel)


def test_what_blocks_reranking_is_said_first_and_once(panel):
    body = "".join(f"q{q},d{d},{int(d == q)},{3 - d}\n" for q in range(3) for d in range(3))
    drop(panel, "ranked.csv", f"query_id,doc_id,label,score\n{body}".encode())
    read(panel)
    why = "No document has a text. The rankings can be compared; nothing can be reranked."
    remedy = "Add the file with the texts, such as corpus.jsonl."
    stored = "ranked is stored: 3 queries and 3 documents."
    blocked = [each.value for each in panel.warning if why in each.value]
    assert blocked == [f"{why} {remedy} {stored}"] and not panel.success
    panel.run()
    assert [each.value for each in panel.warning if why in each.value] == [f"{why} {remedy}"]


def test_files_that_equal_a_stored_set_are_said_by_name_and_stored_once(panel, workspace):
    for name, grades in (("shop.csv", ("2", "1", "0")), ("other.csv", ("1", "1", "0"))):
        drop(panel, name, rows(grades))
        read(panel)
    assert panel.success[0].value == "other is ready: 3 queries and 9 documents."
    before = [(row.id, row.name) for row in workspace.datasets()]
    drop(panel, "other.csv", rows(("2", "1", "0")))
    read(panel)
    text = "These files equal shop, which is in this workspace. Nothing was stored."
    assert [each.value for each in panel.info] == [text]
    assert [(row.id, row.name) for row in workspace.datasets()] == before
    assert "Check report: other" in said(panel)
    panel.button(key="data.open_equal").click().run()
    assert "Check report: shop" in said(panel)


def test_where_no_name_says_it_a_person_names_the_search_of_today(data, workspace):
    files = [("qrels.txt", "".join(f"q{q} 0 d{q} 1\n" for q in range(4)).encode())]
    for shift, name in enumerate("abcd"):
        ranked = "".join(
            f"q{q} Q0 d{(d + shift) % 4} {d + 1} {4 - d} x\n" for q in range(4) for d in range(4)
        )
        files.append((f"dl_run_{name}.trec", ranked.encode()))
    drop(data, *files)
    read(data)
    assert not workspace.datasets()
    assert data.warning[0].value == "Which ranking is your search today?"
    choice = next(radio for radio in data.radio if len(radio.options) == 4)
    assert choice.value is None and data.button(key="upload.baseline.read").disabled
    choice.set_value("dl_run_c").run()
    read(data)
    [row] = workspace.datasets()
    assert row.candidates_name == "dl_run_c"
    assert {run.name for run in workspace.runs(row.id)} == {"dl_run_a", "dl_run_b", "dl_run_d"}
    data.switch_page(str(ROOT / "pages" / "overview.py")).run()
    assert box(data, "Baseline").options == ["dl_run_c", "dl_run_a", "dl_run_b", "dl_run_d"]
    assert "dl_run_c" in said(data) and "First stage" not in said(data)
    assert not data.exception


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


@pytest.mark.parametrize(
    ("of", "scale", "step", "grades"),
    [
        ("ESC", "grades", 1.0, [3.0, 2.0, 1.0]),
        ("ESC", "gains", 0.01, [1.0, 0.1, 0.01]),
        # Two of its words may be those of another scale, and so may one among others.
        ("ES", None, 1.0, [3.0, 2.0]),
        (["E", "S", "C", "other"], None, 1.0, [3.0, 2.0, 1.0, None]),
    ],
)
def test_words_have_the_grades_of_their_scale_and_gains_where_all_have_one(
    asked, of, scale, step, grades
):
    app, told = asked(words(*of), HERE)
    assert [each.label for each in app.radio] == ["Scale"] * bool(scale)
    if scale:
        app.radio[0].set_value(scale).run()
    assert {each.step for each in app.number_input} == {step}
    read(app)
    assert told[-1]["words"]["a.csv"] == dict(zip(of, grades, strict=True))


@pytest.mark.parametrize(("name", "given"), [("", None), ("  ", None), (" Shop ", "Shop")])
def test_what_is_left_empty_is_found_out_from_the_files(panel, monkeypatch, name, given):
    told = []
    monkeypatch.setattr(uploads, "Reading", Asked([HERE], told))
    drop(panel, "a.csv", rows(("2", "1", "0")))
    panel.text_input[0].set_value(name)
    if given:
        next(box for box in panel.selectbox if box.label == "First-stage ranking").set_value(
            ("a.csv", None)
        )
    read(panel)
    [how] = told
    assert (how["name"], how["first_stage"]) == (given, given and "a.csv")
    assert (how["conflict"], how["annotators"], how["ask"]) == ("highest", "majority", True)


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


@pytest.mark.parametrize(
    ("choices", "changed", "worst"),
    [
        ({}, {}, None),
        ({"label": "other"}, {"query": "q", "document": "text", "label": "other"}, None),
        ({"document": ""}, {"query": "q", "label": "grade"}, None),
        ({"1 is the best": True}, {}, 4.0),
    ],
)
def test_a_choice_other_than_the_guess_is_told_as_a_whole(choices, changed, worst):
    body = "q,text,grade,other\n" + "".join(
        f"ask {q},text {q} {d},{d},{q}\n" for q in range(4) for d in range(5)
    )
    files = [Source("x.csv", body.encode())]
    app = part(column_choices.draw, files, str)
    boxes = {box.label: box for box in app.selectbox}
    # Only what can be a label is offered as one.
    assert boxes["query"].options == ["not in this file", "q", "text", "grade", "other"]
    assert boxes["label"].options == ["not in this file", "grade", "other"]
    assert [boxes[each].value for each in ("query", "document", "label", "query_id")] == [
        "q", "text", "grade", ""
    ]  # fmt: skip
    assert list(app.dataframe[0].value) == ["query ← q", "document ← text", "label ← grade"]
    for field, column in choices.items():
        if column is True:
            app.checkbox[0].set_value(True)
        else:
            boxes[field].set_value(column)
    app.run()
    assert app.session_state["found"] == ({"x.csv": changed} if changed else {}, worst)


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


# Data sets of collections, by name.


@pytest.fixture
def open_names(workspace, monkeypatch):
    """Types names on the page, for which a source is fetched or an error is raised."""
    monkeypatch.setattr(uploads, "AT_ONCE_SECONDS", float("inf"))

    def opened(outcome):
        asked = []

        def fetched(names, *, waiting):
            asked.extend(names)
            waiting()
            if isinstance(outcome, Exception):
                raise outcome
            return [outcome]

        monkeypatch.setattr(open_by_name, "sources_by_name", fetched)
        app = page("data", state={"data.by_name": True})
        [field] = names_field(app)
        field.set_value(" hf:me/it  hf:me/it-qrels ")
        press(app, "Open")
        assert asked == ["hf:me/it", "hf:me/it-qrels"]
        return app

    return opened


def names_field(app):
    return [field for field in app.text_input if field.label == "Names"]


def test_what_is_named_is_fetched_read_and_chosen(open_names, workspace):
    app = open_names(Source("it/rows.csv", b"query,document,label\na,b,1\na,c,0\n", "it"))
    (row,) = workspace.datasets()
    assert row.name == "it" and "it is ready" in app.success[0].value


def test_what_cannot_be_fetched_is_said_and_the_names_stay(open_names, workspace):
    app = open_names(DataError("The hub at {hub} fails.", remedy="Check it.", hub="*x*"))
    assert r"The hub at \*x\* fails\. Check it\." in app.error[0].value
    assert names_field(app)[0].value.strip() and not workspace.datasets()


def test_a_question_about_what_was_fetched_is_asked_in_place_of_the_field(open_names):
    app = open_names(Source("x.csv", b"eins,zwei,drei\na x,b y,1\na x,c z,0\n"))
    assert r"Which column of x\.csv is which?" in app.warning[0].value
    assert not names_field(app)
