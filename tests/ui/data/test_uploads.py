"""Files on their way in: what a person is asked, and what the answer does."""

import pytest

from rankdash.readers import FORMATS, SHAPES
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
    app.run()
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
