"""Files on their way in: what a person is asked, and what the answer does."""

import gzip

import pytest

from rankdash.errors import LimitError
from rankdash.intake.keeping import keep
from rankdash.intake.process import REQUEST, Process
from rankdash.intake.reading import Progress
from rankdash.loading import load
from rankdash.readers import FORMATS, SHAPES
from rankdash.ui.data import column_choices, uploads
from tests.sets import ROOT

ROWS = "query,document,{names}\n" + "".join(
    f"query {q},text {q} {d},{{{(q + d) % 3}}}\n" for q in range(3) for d in range(3)
)
LETOR = "".join(f"{d % 2} qid:{q} 1:0.{d} 2:{9 - d} # doc{d}\n" for q in range(3) for d in range(4))


def rows(labels: tuple[str, str, str], names: str = "label") -> bytes:
    return ROWS.format(*labels, names=names).encode()


@pytest.fixture
def data(app):
    app.query_params["lang"] = "en"
    app.switch_page(str(ROOT / "pages" / "data.py")).run()
    return app


def drop(app, name: str, content: bytes) -> None:
    app.file_uploader[0].set_value((name, content, "text/plain")).run()


def read(app) -> None:
    next(button for button in app.button if button.label.startswith("Read")).click().run()
    assert not app.exception


def labels(workspace) -> list[float]:
    [row] = workspace.datasets()
    return sorted(workspace.dataset(row.id).qrels["label"].unique())


def test_the_uploader_names_every_format(data):
    assert all(name in data.file_uploader[0].help for name in (*FORMATS, *SHAPES))


def test_words_are_asked_for_with_the_scale_filled_in_and_the_answer_counts(data, workspace):
    drop(data, "shop.csv", rows(("Exact", "Partial", "Meh")))
    read(data)

    assert "are words. Which grade is each?" in data.warning[0].value
    grades = {field.label: field for field in data.number_input}
    assert {label: field.value for label, field in grades.items()} == {
        "Exact (3 rows)": 2,
        "Partial (3 rows)": 1,
        "Meh (3 rows)": None,
    }
    grades["Meh (3 rows)"].set_value(0.25)
    read(data)

    assert labels(workspace) == [0.25, 1, 2]


def test_an_answer_that_leaves_nothing_is_refused_and_can_be_mended(data, workspace):
    drop(data, "shop.csv", rows(("great", "soso", "awful")))
    read(data)
    read(data)
    assert "cannot be used" in data.error[0].value

    for grade, field in zip((0.0, 1.0, 2.0), data.number_input, strict=True):
        field.set_value(grade)
    read(data)
    assert labels(workspace) == [0, 1, 2]


def test_the_gains_of_esci_are_offered_for_its_words_alone(data, workspace):
    drop(data, "esci.csv", rows(("E", "S", "I")))
    read(data)
    data.radio[0].set_value("gains").run()
    read(data)

    assert labels(workspace) == [0, 0.1, 1]


def test_several_annotators_come_to_the_mean_where_that_is_chosen(data, workspace):
    drop(data, "shop.csv", rows(("1,2", "0,0", "2,2"), names="label_1,label_2"))
    next(box for box in data.selectbox if box.label == "Several annotators").set_value("mean")
    read(data)

    assert labels(workspace) == [0, 1.5, 2]


def test_which_feature_is_the_score_is_asked_for(data, workspace):
    drop(data, "fold.txt", LETOR.encode())
    read(data)
    next(box for box in data.selectbox if box.label == "First-stage score").set_value("feature 2")
    read(data)

    [row] = workspace.datasets()
    dataset = workspace.dataset(row.id)
    assert dataset.candidates.documents_of("0")[0] == ["doc0", "doc1", "doc2", "doc3"]


def test_the_files_can_be_forgotten_in_place_of_an_answer(data):
    drop(data, "shop.csv", rows(("Exact", "Partial", "Meh")))
    read(data)
    next(button for button in data.button if button.label == "Cancel").click().run()

    assert not data.warning
    assert data.file_uploader


def test_a_wrong_column_of_words_can_be_taken_back(data, workspace):
    table = "wer,was,wie_gut,art\n" + "".join(
        f"query {q},text {q} {d},{d % 2},{'rot' if d else 'blau'}\n"
        for q in range(3)
        for d in range(3)
    )
    drop(data, "daten.csv", table.encode())
    read(data)

    def choose(**columns: str) -> None:
        boxes = {box.label: box for box in data.selectbox}
        for field, column in columns.items():
            boxes[field.replace("_", " ")].set_value(column)
        read(data)

    choose(Query_text="wer", Document_text="was", Label="art")
    assert "are words" in data.warning[0].value
    next(button for button in data.button if button.label == "Back to the columns").click().run()
    choose(Query_text="wer", Document_text="was", Label="wie_gut")
    assert labels(workspace) == [0, 1]


def test_files_of_scores_are_named_systems_with_a_link_to_compare_them(data, workspace):
    entry = '[{"id": 7, "query": "a gift", "docs": ["one", "two"], "true_scores": [1, 0], %s}]'
    files = [
        (f"{name}.json", (entry % f'"pred_scores": {scores}').encode(), "application/json")
        for name, scores in (("bge", [1, 2]), ("minilm", [2, 1]), ("cohere", [3, 1]))
    ]
    data.file_uploader[0].set_value(files).run()
    read(data)

    [row] = workspace.datasets()
    runs = workspace.runs(row.id)
    assert {run.name for run in runs} == {"bge", "minilm", "cohere"}
    assert workspace.dataset(row.id).queries["query_id"].tolist() == ["7"]
    [said] = [each.value for each in data.caption if "systems came with the files" in each.value]
    assert said.startswith("3 systems") and all(run.name in said for run in runs)
    [link] = [each for each in data.get("page_link") if each.proto.label.startswith("Compare them")]
    assert all(f"system={run.id}" in link.proto.query_string for run in runs)


def test_the_order_of_the_rows_is_the_first_stage_once_a_person_says_so(data, workspace):
    body = "".join(f"q{q},d{d},{int(d == q)}\n" for q in range(3) for d in range(3))
    drop(data, "labels.csv", f"query_id,doc_id,label\n{body}".encode())
    read(data)

    assert "neither a first" in data.error[0].value.replace("\\", "")
    assert not workspace.datasets()
    chosen = next(box for box in data.selectbox if box.label == "First-stage ranking")
    assert chosen.options[:2] == ["Detect automatically", "labels.csv"]
    chosen.set_value(("", "rows"))
    read(data)

    [row] = workspace.datasets()
    assert row.first_stage == "rows"
    assert workspace.dataset(row.id).candidates.documents_of("q1")[0] == ["d0", "d1", "d2"]


RANKED = "query_id,doc_id,label,score\n" + "".join(
    f"q{q},d{d},{int(d == q)},{3 - d}\n" for q in range(3) for d in range(3)
)


def test_what_blocks_reranking_is_said_first_and_once(data, workspace):
    drop(data, "ranked.csv", RANKED.encode())
    read(data)

    why = "No document has a text. The rankings can be compared; nothing can be reranked."
    assert not data.success
    remedy = "Add the file with the texts, such as corpus.jsonl."
    stored = "ranked is stored: 3 queries and 3 documents."
    blocked = [each.value for each in data.warning if why in each.value]
    assert blocked == [f"{why} {remedy} {stored}"] == [data.warning[0].value]
    data.run()
    places = list(data.main.children.values())
    heading = next(at for at, each in enumerate(places) if each.type == "subheader")
    assert places[heading].value == "Check report: ranked"
    assert places[heading + 1].type == "warning"
    assert places[heading + 1].value == f"{why} {remedy}"


def test_a_set_with_texts_is_ready(data):
    drop(data, "shop.csv", rows(("2", "1", "0")))
    read(data)

    assert data.success[0].value == "shop is ready: 3 queries and 9 documents."
    assert not [each for each in data.warning if "reranked" in each.value]


def test_files_that_equal_a_stored_set_are_said_by_name_and_stored_once(data, workspace):
    for name, labels in (("shop.csv", ("2", "1", "0")), ("other.csv", ("1", "1", "0"))):
        drop(data, name, rows(labels))
        read(data)
    before = [(row.id, row.name) for row in workspace.datasets()]
    drop(data, "other.csv", rows(("2", "1", "0")))
    read(data)

    text = "These files equal shop, which is in this workspace. Nothing was stored."
    assert [each.value for each in data.info] == [text]
    assert [(row.id, row.name) for row in workspace.datasets()] == before
    assert data.selectbox(key="address.data").value == before[1][0]
    data.button(key="data.open_equal").click().run()
    assert data.selectbox(key="address.data").value == before[0][0]
    assert not data.exception


def test_a_new_system_of_a_stored_set_is_added_to_it(data, workspace):
    entry = '[{"id": 7, "query": "a gift", "docs": ["one", "two"], "true_scores": [1, 0], %s}]'
    scores = {"bge": [1, 2], "minilm": [2, 1]}
    files = [
        (f"{name}.json", (entry % f'"pred_scores": {each}').encode(), "application/json")
        for name, each in scores.items()
    ]
    data.file_uploader[0].set_value(files[:1]).run()
    read(data)
    data.file_uploader[0].set_value(files).run()
    read(data)

    [row] = workspace.datasets()
    assert sorted(run.name for run in workspace.runs(row.id)) == ["bge", "minilm"]
    said = f"These files equal {row.name}, which is in this workspace. New in it: minilm."
    assert [each.value for each in data.info] == [said]


def test_where_no_name_says_it_a_person_names_the_search_of_today(data, workspace):
    qrels = "".join(f"q{q} 0 d{q} 1\n" for q in range(4)).encode()
    files = [("qrels.txt", qrels, "text/plain")]
    for shift, name in enumerate("abcd"):
        rows = "".join(
            f"q{q} Q0 d{(d + shift) % 4} {d + 1} {4 - d} x\n" for q in range(4) for d in range(4)
        )
        files.append((f"dl_run_{name}.trec", rows.encode(), "text/plain"))
    data.file_uploader[0].set_value(files).run()
    read(data)

    assert not workspace.datasets()
    assert data.warning[0].value == "Which ranking is your search today?"

    def choice():
        return next(radio for radio in data.radio if len(radio.options) == 4)

    assert choice().value is None
    assert data.button(key="upload.baseline.read").disabled
    choice().set_value("dl_run_c").run()
    assert not data.button(key="upload.baseline.read").disabled
    read(data)

    [row] = workspace.datasets()
    assert row.candidates_name == "dl_run_c"
    assert {run.name for run in workspace.runs(row.id)} == {"dl_run_a", "dl_run_b", "dl_run_d"}
    data.switch_page(str(ROOT / "pages" / "overview.py")).run()
    base = next(box for box in data.selectbox if box.label == "Baseline")
    assert base.options == ["dl_run_c", "dl_run_a", "dl_run_b", "dl_run_d"]
    shown = " ".join(str(each.value) for each in (*data.markdown, *data.caption))
    assert "dl_run_c" in shown.replace("\\", "") and "First stage" not in shown
    assert not data.exception


class Held:
    """In place of a process that reads: it goes on until it is told to end."""

    def __init__(self, workspace, sources, **options):
        self.running, self.cancelled, self.seconds = True, False, 42.0
        self.progress = Progress("reading", 1_250_000, 30.0)
        self.ended = lambda: keep(workspace, load(sources, **options))

    def cancel(self):
        self.running, self.cancelled = False, True

    def result(self):
        return self.ended()


@pytest.fixture
def large(data, monkeypatch):
    """The page while a large file is being read."""
    monkeypatch.setattr(uploads, "is_large", lambda sources: True)
    monkeypatch.setattr(uploads, "Reading", Held)
    drop(data, "shop.csv", rows(("2", "1", "0")))
    data.text_input[0].set_value("Autumn")
    read(data)
    return data


def under_way(page) -> Held:
    return page.session_state["upload.reading"][1]


def test_a_large_file_shows_how_far_it_is_and_is_stored_at_its_end(large, workspace):
    assert r"**Reading shop\.csv**" in [each.value for each in large.markdown]
    assert large.caption[0].value == (
        "Step 1 of 4: reading rows · 1,250,000 rows read · 42 s so far · at most 30 s left for "
        "this step"
    )
    assert next(each for each in large.button if each.label == "Read 1 file").disabled
    under_way(large).progress = Progress("storing", 2_000_000)
    large.run()
    said = "Step 4 of 4: storing · 2,000,000 rows read · 42 s so far"
    assert large.caption[0].value == said
    assert large.button(key="upload.cancel").disabled
    assert workspace.datasets() == []

    under_way(large).running = False
    large.run()
    assert [each.value for each in large.success] == ["Autumn is ready: 3 queries and 9 documents."]
    assert [row.name for row in workspace.datasets()] == ["Autumn"]
    assert "upload.reading" not in large.session_state


def test_a_file_that_unpacks_to_too_much_is_refused_with_the_limit_and_how_to_raise_it(
    data, workspace
):
    bomb = gzip.compress(b"[" + b"1," * 40_000_000 + b"1]")
    drop(data, "labels.json.gz", bomb)
    read(data)
    [said] = [each.value.replace("\\", "") for each in data.error]
    assert said.startswith("labels.json.gz: Unpacked, the archive is more than 200 times as large.")
    assert "RANKDASH_MAX_UNPACKED_RATIO" in said
    assert workspace.datasets() == []

    # The page reads the next file.
    drop(data, "shop.csv", rows(("2", "1", "0")))
    read(data)
    assert labels(workspace) == [0, 1, 2]


def test_a_process_that_dies_while_it_reads_is_an_error_and_the_page_goes_on(
    data, workspace, monkeypatch
):
    send = Process.send

    def kill(self, folder):
        if "read" in (folder / REQUEST).read_text():
            self.stop()
        send(self, folder)

    drop(data, "shop.csv", rows(("2", "1", "0")))
    monkeypatch.setattr(Process, "send", kill)
    read(data)
    [said] = [each.value for each in data.error]
    assert "shop" in said and "maybe for lack of memory" in said
    assert workspace.datasets() == []


def test_cancelling_a_large_file_stores_nothing_and_keeps_it_to_read_again(large, workspace):
    large.button(key="upload.cancel").click().run()

    assert [each.value for each in large.info] == ["Cancelled. Nothing was stored."]
    assert workspace.datasets() == []
    assert not next(each for each in large.button if each.label == "Read 1 file").disabled


def test_an_error_and_a_question_of_a_large_file_are_those_of_a_small_one(large, workspace):
    def fail():
        raise LimitError("The file has {n} rows.", remedy="Load fewer.", file="shop.csv", n=9)

    held = under_way(large)
    held.ended, held.running = fail, False
    large.run()
    [said] = [each.value.replace("\\", "") for each in large.error]
    assert said == "shop.csv: The file has 9 rows. Load fewer."
    assert workspace.datasets() == []

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


@pytest.mark.parametrize(("most", "large"), [(1_000, False), (150, True)])
def test_the_guessed_columns_are_shown_and_the_preview_and_the_set_follow_a_change(
    most, large, data, workspace, monkeypatch
):
    monkeypatch.setattr(column_choices, "_MOST_BYTES", most)
    drop(data, "faq.csv", rows(("2,0,a", "1,1,b", "0,2,c"), names="relevance,second,why"))

    def box(label):
        return next(box for box in data.selectbox if box.label == label)

    def preview():
        return next(
            list(frame.value.columns) for frame in data.dataframe if "←" in frame.value.columns[0]
        )

    said = [each.value for each in data.caption]
    assert any("guessed from their first rows" in each for each in said) == large
    assert (box("Query text").value, box("Label").value) == ("query", "relevance")
    assert box("Label").options == ["not in this file", "relevance", "second", "why"]
    assert preview()[-1] == "Label ← relevance"
    box("Label").set_value("second").run()
    assert preview()[-1] == "Label ← second"
    read(data)

    [row] = workspace.datasets()
    own = workspace.dataset(row.id).qrels.groupby("label").size()
    assert dict(own) == {0.0: 3, 1.0: 3, 2.0: 3}
    assert "label = second" in workspace.check_report(row.id)
