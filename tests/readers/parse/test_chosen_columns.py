"""Which column is which: guessed, written down, and changed by command, in Python and by file."""

import pytest

import rankdash as rd
from rankdash.cli import main
from rankdash.errors import DataError
from rankdash.loading import load
from rankdash.readers import Source, guesses

TABLE = (
    "query,document,relevance,second,why\n"
    "how to return,send it back,2,0,it says so\n"
    "how to return,shops,0,1,it does not say so\n"
    "opening,shops,1,1,hours are there\n"
    "opening,gift,0,0,no hours there\n"
)


def note(report, code: str) -> str:
    [found] = [each for each in report.findings if each.code == code]
    return f"{found.file}: {found.text}"


def read(**choices):
    return load([Source("faq.csv", TABLE.encode())], **choices)


def test_what_each_column_was_read_as_is_written_down():
    assert note(read().report, "columns") == (
        "faq.csv: Columns: query = query, document = document, label = relevance."
    )


def test_one_column_is_changed_and_the_others_are_as_guessed():
    found = read(columns={"label": "second"})
    assert list(found.dataset.qrels["label"]) == [0, 1, 1, 0]
    assert note(found.report, "columns_chosen") == (
        "faq.csv: Columns, as chosen: query = query, document = document, label = second."
    )


def test_a_column_can_be_given_another_part_or_none():
    found = read(columns={"document": "why", "rank": "", "label": "relevance"})
    assert "hours are there" in set(found.dataset.documents["text"])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"label": "third"}, "all of the columns: third"),
        ({"grade": "second"}, "grade"),
    ],
)
def test_a_column_or_part_that_is_not_there_is_refused(columns, said):
    with pytest.raises(DataError, match=said):
        read(columns=columns)


def test_the_commands_and_python_take_the_same(tmp_path, capsys):
    path = tmp_path / "faq.csv"
    path.write_text(TABLE)
    with pytest.warns(UserWarning, match="BM25"):
        made = rd.read(path, columns={"label": "second"})
    assert made.id == read(columns={"label": "second"}).dataset.id
    assert main(["check", str(path), "--columns", "label=second"]) == 0
    assert "Columns, as chosen: query = query, document = document, label = second." in (
        capsys.readouterr().out
    )
    assert main(["check", str(path), "--columns", "label"]) == 2
    assert "--columns takes FIELD=COLUMN, not 'label'" in capsys.readouterr().err


def test_a_question_about_columns_names_the_guess(capsys, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text(TABLE.replace("query,document", "wer,was"))
    assert main(["check", str(path)]) == 1
    said = capsys.readouterr().err
    assert "Guessed: query = " in said and "--columns query=…" in said


def test_a_guess_holds_what_can_be_a_label_and_leaves_out_what_cannot():
    [guess] = guesses([Source("faq.csv", TABLE.encode())])
    assert guess.fields == {"query": "query", "document": "document", "label": "relevance"}
    assert guess.labels == ("relevance", "second")
    assert list(guess.rows["query"])[:1] == ["how to return"]


@pytest.mark.parametrize(
    "data", [b"q1 0 d1 2\n", b"%PDF-1", b'{"q1": {"d1": 1}}', b"id,text\n1,a\n"]
)
def test_no_guess_is_shown_where_nothing_is_guessed(data):
    assert guesses([Source("file", data)]) == []
