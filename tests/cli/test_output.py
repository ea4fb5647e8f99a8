"""What commands write: in columns, on one line, to the last digit, never over what they read."""

import math

import pytest

from rankdash.cli.output import (
    aligned,
    columns,
    csv_line,
    exact,
    finding_line,
    one_line,
    or_null,
    place_name,
    printable,
    spare_the_input,
    target_of,
    warn,
)
from rankdash.cli.rankings import names_of
from rankdash.errors import DataError
from rankdash.findings import Finding


def test_a_character_takes_as_many_columns_as_a_terminal_gives_it():
    assert [columns(text) for text in ("", "a–é", "e\u0301", "退货", "ＡＢ")] == [0, 3, 1, 4, 4]


def test_the_first_columns_start_at_the_left_and_the_others_end_at_the_right():
    rows = [["退", "n", "value"], ["name", "12", "0.5"]]
    assert aligned(rows) == "退     n  value\nname  12    0.5\n"
    assert aligned(rows, left=2) == "退    n   value\nname  12    0.5\n"
    assert aligned([["a", ""], ["b", "1\n"]]) == "a\nb  1\\n\n"


def test_text_from_elsewhere_stays_on_its_line():
    assert printable("a\x1b[2J\n") == "a\\x1b[2J\\n"
    assert one_line(" a \n\t b\x1b ") == "a b\\x1b"


def test_numbers_keep_every_digit_and_what_is_none_is_nothing():
    assert (exact(0.1 + 0.2), exact(math.nan)) == ("0.30000000000000004", "")
    assert [or_null(each) for each in (math.nan, 0.5, "nan", 0)] == [None, 0.5, "nan", 0]
    assert csv_line(["=1+1", "a,b", "-0.5"]) == '\'=1+1,"a,b",-0.5\n'


def found(severity: str = "warning", examples: tuple[str, ...] = ()) -> Finding:
    return Finding(
        severity, "code", "{n} rows lack an id.", {"n": 4}, examples=examples, remedy="Add {n}."
    )  # fmt: skip


@pytest.mark.parametrize(
    ("examples", "told"), [("", ""), ("abc", " (such as a, b, c)"), ("abcd", " (such as a, b, c)")]
)
def test_a_finding_is_told_with_at_most_three_examples(examples, told):
    assert finding_line(found(examples=tuple(examples))) == f"4 rows lack an id. Add 4.{told}"


def test_errors_and_warnings_are_told_once_and_notes_are_not(capsys):
    warn([found("error"), found("warning"), found("note", ("x",))])
    assert capsys.readouterr().err == "warning: 4 rows lack an id. Add 4.\n"


def test_what_is_read_is_never_written(tmp_path):
    (tmp_path / "data" / "below").mkdir(parents=True)
    own, other = tmp_path / "data" / "below" / "rows.csv", tmp_path / "other.csv"
    for file in (own, other):
        file.touch()
    (tmp_path / "link.csv").symlink_to(own)
    for read in (own, tmp_path / "data", tmp_path / "link.csv"):
        with pytest.raises(DataError, match="belongs to the data set"):
            spare_the_input(own, [str(other), str(read)])
    spare_the_input(own, [str(other), "-", str(tmp_path / "gone")])
    spare_the_input(tmp_path / "new.csv", [str(tmp_path / "data")])


def test_a_target_lies_in_a_folder_that_is_there(tmp_path):
    assert target_of(str(tmp_path / "x.run")) == tmp_path / "x.run"
    assert [place_name(target_of(each)) for each in ("-", "x\x1b")] == ["standard output", "x\\x1b"]
    with pytest.raises(DataError, match="There is no folder"):
        target_of(str(tmp_path / "gone" / "x.run"))


def test_rankings_are_called_after_their_files_with_what_tells_them_apart(tmp_path):
    def names(*files: str) -> list[str]:
        return list(names_of([str(tmp_path / file) for file in files]))

    assert names("a/run.trec", "a/other.trec.gz") == ["run", "other"]
    assert names("a/run.trec", "b/run.trec", "b/c.trec") == ["a/run", "b/run", "c"]
    assert names("a/run.trec", "a/run.csv") == ["run.trec", "run.csv"]
    with pytest.raises(DataError, match="given twice"):
        names("a/run.trec", "a/../a/run.trec")
