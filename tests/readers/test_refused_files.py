"""Several files that cannot be used: each is named with its line and its remedy."""

import pytest

import rankdash as rd
from rankdash.cli import main
from rankdash.errors import FormatError, RefusedFilesError
from rankdash.i18n import error_text, speaking
from rankdash.readers import MappingNeeded, Source, read

GOOD = "query,document,label\na,b,1\n"
CUT = '[{"query": "a",\n "document": '
BAD_LABEL = "query,document,label\na,b,abc\n"
UNNAMED = "query,document,what\na,b,1\n"


def wheres(problem):
    return [each.where for each in problem.errors]


def test_every_refused_file_is_named(parse):
    files = {
        "good.csv": GOOD,
        "cut.json": CUT,
        "set.zip": b"PK\x03\x04 and no more",
        "letter.txt": "Dear all,\nplease find attached the labels.\n",
        "words.csv": BAD_LABEL,
    }

    with pytest.raises(RefusedFilesError) as refused:
        parse(files)

    assert wheres(refused.value) == [
        "set.zip",
        "cut.json, line 1",
        "letter.txt",
        "words.csv, line 2",
    ]
    assert all(error.remedy for error in refused.value.errors)
    message = str(refused.value)
    assert message.startswith("Files that cannot be used: 4. ")
    assert all(str(error) in message for error in refused.value.errors)
    with speaking("zh"):
        said = error_text(refused.value)
    assert said.startswith("无法使用的文件：4 个。") and "cut.json，第 1 行" in said


def test_one_refused_file_is_its_own_error(parse):
    with pytest.raises(FormatError, match="JSON breaks") as refused:
        parse({"good.csv": GOOD, "cut.json": CUT})

    assert not isinstance(refused.value, RefusedFilesError)
    assert refused.value.where == "cut.json, line 1"


def test_broken_json_is_told_by_its_place_in_the_language_of_the_reader(parse):
    with pytest.raises(FormatError) as refused:
        parse({"a.jsonl": b'{"query": "a"}\n{"query":\n "a\tb"}\n'})
    assert "(not readable from line 3, column 4 on)." in str(refused.value)
    with speaking("zh"):
        said = error_text(refused.value)
    assert "损坏（从第 3 行第 4 列起无法解读）。" in said and "control character" not in said


def test_a_question_waits_until_the_other_files_can_be_used(parse):
    with pytest.raises(FormatError, match="JSON breaks"):
        parse({"unnamed.csv": UNNAMED, "cut.json": CUT})
    with pytest.raises(MappingNeeded):
        parse({"unnamed.csv": UNNAMED})


def test_refused_rankings_are_all_named_by_command_and_in_python(tmp_path, capsys):
    for name, text in (("qrels", "q1 0 d1 1\n"), ("a.json", CUT), ("b.json", CUT)):
        (tmp_path / name).write_text(text)

    code = main(["evaluate", *(str(tmp_path / name) for name in ("qrels", "a.json", "b.json"))])

    said = capsys.readouterr().err
    assert code == 2
    assert "a.json, line 1:" in said and "b.json, line 1:" in said
    with pytest.raises(RefusedFilesError) as refused:
        rd.read(tmp_path / "qrels", tmp_path / "a.json", tmp_path / "b.json")
    assert wheres(refused.value) == ["a.json, line 1", "b.json, line 1"]


@pytest.mark.parametrize(("before", "line"), [("", 1), ("\n \n\t", 3)])
def test_markup_of_no_known_form_is_shown_from_where_it_begins(before, line):
    with pytest.raises(FormatError) as refused:
        read([Source("page.html", f"{before}<html>\n <body>".encode())])
    assert (refused.value.line, refused.value.params["start"]) == (line, "<html> <body>")
