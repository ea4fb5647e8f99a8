"""Meanings of columns: guessed, reported, and changed by command, in Python and by file."""

import json

import pytest

import rankdash as rd
from rankdash.app.command import main
from rankdash.core.readers import Source, guesses
from rankdash.core.readers.loading import load
from tests.readers.reading import shown

TABLE = (
    "query,document,relevance,second,why\n"
    "how to return,send it back,2,0,it says so\n"
    "how to return,shops,0,1,it does not say so\n"
    "opening,shops,1,1,hours are there\n"
    "opening,gift,0,0,no hours there\n"
)


def read(**choices):
    return load([Source("faq.csv", TABLE.encode())], **choices)


def test_columns_are_as_guessed_or_as_chosen(approved):
    files = {
        "labels.csv": "Anfrage,Dok,Note\na,d1,1\na,d2,0\n",
        "queries.csv": "Anfrage,Text\na,how to return\n",
        "texts.csv": "Dok,Inhalt\nd1,send it back\nd2,shops\n",
    }
    german = {"query_id": "Anfrage", "doc_id": "Dok", "label": "Note", "query": "Text"}
    cases = {
        "as guessed": {"faq.csv": TABLE},
        **{
            f"chosen: {', '.join(f'{field} = {column}' for field, column in columns.items())}": (
                {"faq.csv": TABLE}, {"columns": columns}
            )
            for columns in (
                {"label": "second"}, {"document": "why", "rank": "", "label": "relevance"},
                {"label": "third"}, {"grade": "second"},
            )
        },
        "files of one set each take those that they have": (
            files, {"columns": {**german, "document": "Inhalt"}}
        ),
        **{
            f"labels of {first} and twice that": {
                "a.csv": f"query,document,relevant\na,x y,{first}\na,z w,{first}{first}\n"
            }
            for first in ("abc", "1")
        },
    }  # fmt: skip
    approved("readers/chosen_columns.en", shown(cases))
    for choices, code in (({}, "columns"), ({"columns": {"label": "second"}}, "columns_chosen")):
        [note] = [each for each in read(**choices).report.findings if each.code == code]
        label = choices.get("columns", {"label": "relevance"})["label"]
        assert note.text.endswith(f": query = query, document = document, label = {label}.")


def test_the_commands_and_python_take_the_same(tmp_path, capsys):
    path, odd = tmp_path / "faq.csv", tmp_path / "odd.csv"
    path.write_text(TABLE)
    odd.write_text(TABLE.replace("query,document", "wer,was"))
    with pytest.warns(UserWarning, match="BM25"):
        made = rd.read(path, columns={"label": "second"})
    assert made.id == read(columns={"label": "second"}).dataset.id
    assert main(["check", str(path), "--columns", "label=second"]) == 0
    assert "Columns, as chosen: query = query, document = document, label = second." in (
        capsys.readouterr().out
    )
    assert main(["check", str(path), "--columns", "label"]) == 2
    assert "--columns needs FIELD=COLUMN, not 'label'" in capsys.readouterr().err
    assert main(["check", str(odd)]) == 1
    said = capsys.readouterr().err
    assert "Guessed: query = " in said and "--columns query=…" in said


RIGHT = "Dok,Anfrage,Note,score\nd1,a,0,1\nd2,a,1,0\nd1,b,1,1\n"
FOUND = "Anfrage,Dok,s,score\na,d1,1,9\na,d2,2,7\nb,d1,3,8\n"
NAMES = ("--columns", "query_id=Anfrage", "doc_id=Dok", "label=Note")


def test_each_file_takes_the_columns_that_it_has_and_others_are_refused(tmp_path, capsys):
    contents = {"labels": RIGHT, "run": FOUND, "other": FOUND, "both": RIGHT.replace("score", "s")}
    for name, text in contents.items():
        (tmp_path / f"{name}.csv").write_text(text)
    labels, run, other, both = (str(tmp_path / f"{name}.csv") for name in contents)
    pair = ("--qrels", labels, "--baseline", run, "--challenger", other)

    def said(code: int, *arguments: str):
        assert main([*arguments, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    # A column of the labels does not affect the ranking.
    for columns, mrr in ((("score=s",), 1.0), (("score=score",), 0.75), ((), 0.75)):
        chosen = (*NAMES, *columns)
        [system] = said(0, "evaluate", labels, run, "-m", "mrr", *chosen)["systems"].values()
        assert system["mean"]["mrr"] == mrr
        rows = said(0, "compare", *pair, "-m", "mrr", *chosen)["comparisons"]
        assert [row["mean"] for row in rows] == [mrr, mrr]
        [seen] = said(1, "gate", *pair, "--min", "mrr=0.1", *chosen)["conditions"]
        assert (seen["value"], seen["reason"]) == (mrr, "too_few")
    alone = said(0, "evaluate", both, *NAMES, "score=s", "-m", "mrr")
    assert alone["systems"]["both"]["mean"]["mrr"] == 0.75
    for columns, message in (
        (["score=points"], "No file has these columns: points."),
        (["score=s", "score=score"], "--columns assigns two columns to score: s and score."),
    ):
        assert main(["evaluate", labels, run, *NAMES, *columns]) == 2
        assert message in capsys.readouterr().err


def test_a_guess_holds_what_can_be_a_label_and_none_is_shown_if_nothing_is_guessed():
    [guess] = guesses([Source("faq.csv", TABLE.encode())], 1_000)
    assert guess.fields == {"query": "query", "document": "document", "label": "relevance"}
    assert guess.labels == ("relevance", "second")
    assert guess.rows["query"][0] == "how to return"
    # Labels that are not numbers are refused; the guess does not ignore them.
    words = b"query,document,relevant\na,x y,abc\na,z w,abcabc\n"
    for data in (b"q1 0 d1 2\n", b"%PDF-1", b'{"q1": {"d1": 1}}', b"id,text\n1,a\n", words):
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
