"""Output of commands: in columns, on one line, with all digits; inputs are never overwritten."""

import math

import pytest

from rankdash.core.base.errors import DataError, Finding
from rankdash.kit.commands import output


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        # The width of a character is its number of terminal columns.
        (
            [output.columns(text) for text in ("", "a–é", "e\u0301", "退货", "ＡＢ")],
            [0, 3, 1, 4, 4],
        ),
        # The first columns are left-aligned, the others right-aligned.
        (
            output.aligned([["退", "n", "value"], ["name", "12", "0.5"]]),
            "退     n  value\nname  12    0.5\n",
        ),
        (
            output.aligned([["退", "n", "value"], ["name", "12", "0.5"]], left=2),
            "退    n   value\nname  12    0.5\n",
        ),
        (output.aligned([["a", ""], ["b", "1\n"]]), "a\nb  1\\n\n"),
        # Text of files and services stays on its line.
        (output.printable("a\x1b[2J\n"), "a\\x1b[2J\\n"),
        (output.one_line(" a \n\t b\x1b "), "a b\\x1b"),
        # Numbers have all digits; NaN is empty.
        ((output.exact(0.1 + 0.2), output.exact(math.nan)), ("0.30000000000000004", "")),
        ([output.or_null(each) for each in (math.nan, 0.5, "nan", 0)], [None, 0.5, "nan", 0]),
        (output.csv_line(["=1+1", "a,b", "-0.5"]), '\'=1+1,"a,b",-0.5\n'),
    ],
)
def test_texts_and_numbers(made, expected):
    assert made == expected


def found(severity: str = "warning", examples: tuple[str, ...] = ()) -> Finding:
    return Finding(
        severity, "code", "{n} rows lack an id.", {"n": 4}, examples=examples, remedy="Add {n}."
    )  # fmt: skip


def test_a_finding_is_told_once_with_at_most_three_examples_and_a_note_is_not(capsys):
    for examples, told in (("", ""), ("abc", " (such as a, b, c)"), ("abcd", " (such as a, b, c)")):
        line = output.finding_line(found(examples=tuple(examples)))
        assert line == f"4 rows lack an id. Add 4.{told}"
    output.warn([found("error"), found("warning"), found("note", ("x",))])
    assert capsys.readouterr().err == "warning: 4 rows lack an id. Add 4.\n"


def test_what_is_read_is_never_written(tmp_path):
    (tmp_path / "data" / "below").mkdir(parents=True)
    own, other = tmp_path / "data" / "below" / "rows.csv", tmp_path / "other.csv"
    for file in (own, other):
        file.touch()
    (tmp_path / "link.csv").symlink_to(own)
    for read in (own, tmp_path / "data", tmp_path / "link.csv"):
        with pytest.raises(DataError, match="belongs to the data set"):
            output.spare_the_input(own, [str(other), str(read)])
    output.spare_the_input(own, [str(other), "-", str(tmp_path / "gone")])
    output.spare_the_input(tmp_path / "new.csv", [str(tmp_path / "data")])


def test_a_target_lies_in_a_folder_that_is_there(tmp_path):
    assert output.target_of(str(tmp_path / "x.run")) == tmp_path / "x.run"
    assert [output.place_name(output.target_of(each)) for each in ("-", "x\x1b")] == [
        "standard output",
        "x\\x1b",
    ]
    with pytest.raises(DataError, match="does not exist"):
        output.target_of(str(tmp_path / "gone" / "x.run"))
