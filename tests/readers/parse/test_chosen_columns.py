"""Which column is which: guessed, written down, and changed by command, in Python and by file."""

import json

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
    [({"label": "third"}, "has these columns: third"), ({"grade": "second"}, "grade")],
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


RIGHT = "Dok,Anfrage,Note,score\nd1,a,0,1\nd2,a,1,0\nd1,b,1,1\n"
FOUND = "Anfrage,Dok,s,score\na,d1,1,9\na,d2,2,7\nb,d1,3,8\n"
NAMES = ("query_id=Anfrage", "doc_id=Dok", "label=Note")


@pytest.mark.parametrize(
    ("columns", "mrr"),
    [
        (("score=s",), 1.0),
        # Also a column of the labels, which says nothing of the ranking.
        (("score=score",), 0.75),
        ((), 0.75),
    ],
)
def test_a_ranking_and_its_labels_each_take_the_columns_that_they_have(
    columns, mrr, tmp_path, capsys
):
    labels, run, other = (tmp_path / name for name in ("labels.csv", "run.csv", "other.csv"))
    labels.write_text(RIGHT)
    run.write_text(FOUND)
    other.write_text(FOUND)
    chosen = ("--columns", *NAMES, *columns, "-m", "mrr", "--json")

    def means(*arguments: str) -> list[float]:
        assert main([*arguments, *chosen]) == 0
        said = json.loads(capsys.readouterr().out)
        if "systems" in said:
            return [system["mean"]["mrr"] for system in said["systems"].values()]
        return [row["mean"] for row in said["comparisons"]]

    assert means("evaluate", str(labels), str(run)) == [mrr]
    pair = ("--qrels", str(labels), "--baseline", str(run), "--challenger", str(other))
    assert means("compare", *pair) == [mrr, mrr]
    gated = ["gate", *pair, "--columns", *NAMES, *columns, "--min", "mrr=0.1", "--json"]
    assert main(gated) == 1
    [seen] = json.loads(capsys.readouterr().out)["conditions"]
    assert (seen["value"], seen["reason"]) == (mrr, "too_few")


def test_one_file_of_labels_and_ranking_takes_all_columns(tmp_path, capsys):
    both = tmp_path / "both.csv"
    both.write_text(RIGHT.replace("score", "s"))
    chosen = ("--columns", *NAMES, "score=s", "-m", "mrr", "--json")
    assert main(["evaluate", str(both), *chosen]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["systems"]["both"]["mean"]["mrr"] == 0.75


def test_a_column_of_no_file_and_a_field_with_two_columns_are_refused(tmp_path, capsys):
    labels, run = tmp_path / "labels.csv", tmp_path / "run.csv"
    labels.write_text(RIGHT)
    run.write_text(FOUND)
    asked = ["evaluate", str(labels), str(run), "--columns", *NAMES]
    assert main([*asked, "score=points"]) == 2
    assert "No file has these columns: points." in capsys.readouterr().err
    assert main([*asked, "score=s", "score=score"]) == 2
    assert "--columns gives score two columns: s and score." in capsys.readouterr().err


def test_files_of_one_set_each_take_the_columns_that_they_have():
    sources = [
        Source("labels.csv", b"Anfrage,Dok,Note\na,d1,1\na,d2,0\n"),
        Source("queries.csv", b"Anfrage,Text\na,how to return\n"),
        Source("texts.csv", b"Dok,Inhalt\nd1,send it back\nd2,shops\n"),
    ]
    chosen = {"query_id": "Anfrage", "doc_id": "Dok", "label": "Note", "query": "Text"}
    found = load(sources, columns={**chosen, "document": "Inhalt"}).dataset
    assert found.queries.to_dict("list") == {"query_id": ["a"], "text": ["how to return"]}
    assert list(found.documents["text"]) == ["send it back", "shops"]
    assert list(found.qrels["label"]) == [1, 0]


def test_a_question_about_columns_names_the_guess(capsys, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text(TABLE.replace("query,document", "wer,was"))
    assert main(["check", str(path)]) == 1
    said = capsys.readouterr().err
    assert "Guessed: query = " in said and "--columns query=…" in said


@pytest.mark.parametrize(("first", "guessed"), [("abc", 0), ("1", 1)])
def test_labels_that_are_none_are_refused_and_not_guessed_away(first, guessed):
    rows = f"query,document,relevant\na,x y,{first}\na,z w,{first}{first}\n"
    source = Source("a.csv", rows.encode())
    assert len(guesses([source], 1_000)) == guessed
    if not guessed:
        with pytest.raises(DataError, match=r"number nor a known word: 2 \(lines 2, 3\)"):
            load([source])


def test_a_guess_holds_what_can_be_a_label_and_leaves_out_what_cannot():
    [guess] = guesses([Source("faq.csv", TABLE.encode())], 1_000)
    assert guess.fields == {"query": "query", "document": "document", "label": "relevance"}
    assert guess.labels == ("relevance", "second")
    assert list(guess.rows["query"])[:1] == ["how to return"]


@pytest.mark.parametrize(
    "data", [b"q1 0 d1 2\n", b"%PDF-1", b'{"q1": {"d1": 1}}', b"id,text\n1,a\n"]
)
def test_no_guess_is_shown_where_nothing_is_guessed(data):
    assert guesses([Source("file", data)], 1_000) == []


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (TABLE.encode(), 4),
        (TABLE.replace("send it back", '"send\nit\nback"').encode(), 4),
        (b'{"query": "q", "document": "\\"", "label": 1}\n', 1),
    ],
)
def test_of_a_large_file_the_beginning_is_looked_at_up_to_the_end_of_a_row(data, rows):
    start, repeated = data.split(b"\n", 1) if data[:1] == b"q" else (b"", data)
    many = b"\n".join(filter(None, [start, repeated * 50]))
    whole, sizes = guesses([Source("large", many)], len(many))[0], set()
    for most in range(len(data) + len(repeated), len(data) + 3 * len(repeated), 7):
        [part, other] = guesses(
            [Source("large", many), Source("packed", b"PK\x03\x04" + many), Source("b", many)], most
        )
        assert (part.fields, part.columns) == (whole.fields, whole.columns)
        assert (part.file, other.file) == ("large", "b")
        sizes.add(len(part.rows))
    assert max(sizes) > rows
    assert guesses([Source("large", b"[" + many)], 100) == []
