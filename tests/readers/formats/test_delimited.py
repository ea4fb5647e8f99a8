"""CSV, TSV and relatives: separators, quotes, line breaks, headers, true line numbers."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankdash.errors import FormatError, LimitError
from rankdash.readers import MappingNeeded, ReadLimits, Source, read
from rankdash.readers.formats import delimited
from rankdash.readers.formats.delimited import sniff


def texts_of(parsed):
    return parsed.queries["text"].tolist(), parsed.documents["text"].tolist()


@pytest.mark.parametrize(
    "delimiter", [",", "\t", ";", "|", "^", "~", "@", "\x1f", "\x01", "¦", "，"]
)
def test_any_separator_is_found(parse, delimiter):
    lines = ["query,document,label", "a query; and | more,a passage,1", "b,c,0"]
    if delimiter in ";|":
        lines[1] = "a query,a passage,1"
    text = "\n".join(line.replace(",", delimiter) for line in lines)

    parsed = parse({"x": text})

    assert parsed.qrels["label"].tolist() == [1.0, 0.0]
    assert parsed.documents["text"].tolist() == ["a passage", "c"]


def test_tab_separated_file_named_csv(parse):
    parsed = parse({"labels.csv": "query\tdocument\tlabel\nred, blue\tone, two\t1\n"})

    assert texts_of(parsed) == (["red, blue"], ["one, two"])
    assert "TSV" in parsed.formats["labels.csv"]


def test_commas_quotes_and_line_breaks_inside_fields(parse):
    text = 'query,document,label\r\n"a, ""b""","line one\r\nline two\nline three",1\r\nc,d,0\r\n'

    parsed = parse({"x": text})

    assert texts_of(parsed) == (['a, "b"', "c"], ["line one\r\nline two\nline three", "d"])


def test_quoted_separators_of_another_kind_do_not_mislead(parse):
    rows = "".join(f'"a;b;c;{i}";"x,y,z,{i}";{i % 2}\n' for i in range(20))

    parsed = parse({"x": "query;document;label\n" + rows})

    assert parsed.documents["text"].iloc[3] == "x,y,z,3"


def test_line_numbers_are_physical_lines_also_after_quoted_line_breaks(parse, found):
    text = (
        "query,document,label\n"  # 1
        '"one\ntwo\nthree","a",1\n'  # 2-4
        "\n"  # 5
        "q,b,bad\n"  # 6
        '"q","x\ny",1\n'  # 7-8
        "q,c\n"  # 9
        "q,d,nan\n"  # 10
        "q,e,1\nq,f,1\nq,g,1\nq,h,1\n"
    )

    parsed = parse({"x": text})

    wrong = found(parsed, "bad_label")
    assert (wrong.line, wrong.count, wrong.params["lines"]) == (6, 2, "6, 10")
    assert wrong.examples == ("q | b | bad", "q | d | nan")
    short = found(parsed, "field_count")
    assert (short.file, short.line, short.examples) == ("x", 9, ("q,c",))
    assert len(parsed.qrels) == 6


def test_an_unclosed_quotation_mark_is_told_by_the_line_where_it_opens(parse):
    text = 'query,document,label\na,b,1\nc,"d,1\n' + "e,f,1\n" * 50

    with pytest.raises(FormatError, match="quotation marks") as refused:
        parse({"x.csv": text})

    assert (refused.value.file, refused.value.line) == ("x.csv", 3)


def test_a_field_that_does_not_end_is_read_no_further_than_a_field_may_be_long():
    limit_elsewhere = csv.field_size_limit()
    limits = ReadLimits(field_chars=40)
    text = 'query,label\na,1\n"b' + "words\n" * 50
    with pytest.raises(LimitError, match="more than 40 characters") as refused:
        delimited.read(text, ",", "x", limits)
    assert refused.value.line == 3
    # Where a mark may be a plain character, it is one.
    table = delimited.read(text.replace(",", "\t").replace("s\n", "s\t0\n"), "\t", "x", limits)
    assert (len(table), table.frame["query"][1]) == (51, '"bwords')
    assert csv.field_size_limit() == limit_elsewhere


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_file_larger_than_a_block_is_read_whole_and_in_order(end):
    """Longer than the text, and with more rows, than are read at once."""
    queries = [f"q{n}{end}{'words ' * 5}" for n in range(50_003)]
    text = end.join(["query,label", *(f'"{query}",{n}' for n, query in enumerate(queries))])
    table = delimited.read(text, ",", "x", ReadLimits())
    assert table.frame["query"].tolist() == queries
    assert table.frame["label"].tolist() == [str(n) for n in range(len(queries))]
    assert table.lines.tolist() == [2 * n for n in range(1, len(queries) + 1)]


def test_quotes_escaped_by_a_backslash_are_read_and_told(parse, codes):
    text = 'query,document,label\n"say \\"hi\\", now","b",1\n'

    parsed = parse({"x": text})

    assert parsed.queries["text"].tolist() == ['say "hi", now']
    assert "quotation_marks" in codes(parsed)


def test_quotation_marks_in_tab_separated_text_may_be_plain_characters(parse, codes):
    text = 'query\tdocument\tlabel\n"quoted" start\ta 5" screen\t1\n"open\tb\t0\n'

    parsed = parse({"x": text})

    assert texts_of(parsed) == (['"quoted" start', '"open'], ['a 5" screen', "b"])
    assert "quotation_marks" in codes(parsed)


def test_words_that_elsewhere_mean_missing_are_text(parse):
    words = ["NA", "nan", "null", "None", "N/A", "TRUE", "1e5", "-inf"]
    text = "query,document,label\n" + "".join(f"{word},{word},1\n" for word in words)

    assert texts_of(parse({"x": text})) == (words, words)


def test_excels_separator_hint_is_no_row_and_shifts_no_line(parse, found):
    parsed = parse({"x": "sep=;\r\nquery;document;label\r\na;b;1\r\nc;d;x\r\na;c;0\r\n"})

    assert len(parsed.qrels) == 2
    assert found(parsed, "bad_label").line == 4


def test_trailing_separators_of_a_spreadsheet_are_no_fields(parse):
    parsed = parse({"x": "query,document,label\na,b,1,,\nc,d,0,,\n"})

    assert len(parsed.qrels) == 2


def test_one_spreadsheet_column_too_many_is_refused_by_line(parse, found):
    parsed = parse({"x": "query,document,label\na,b,1\nc,d,e,0\nf,g,0\n"})

    assert found(parsed, "field_count").line == 3
    assert "separator" in found(parsed, "field_count").remedy


def test_a_file_of_which_most_rows_are_bad_is_not_trusted(parse):
    with pytest.raises(FormatError, match="Rows that cannot be used: 3 of 4") as refused:
        parse({"x": "query,document,label\na,b,?\nc,d,?\ne,f,?\ng,h,1\n"})
    assert refused.value.line == 2


def test_labels_without_a_header_are_read_when_they_are_ids_and_numbers(parse):
    parsed = parse({"x": "q1,d1,1\nq1,d2,0\nq2,d1,2\n"})

    assert parsed.qrels["label"].tolist() == [1.0, 0.0, 2.0]


def test_texts_without_a_header_need_a_mapping_and_lose_no_row(parse):
    text = "how to return,bring it,1\nopen on sunday,no we are not,0\n"
    with pytest.raises(MappingNeeded) as needed:
        parse({"x": text})

    assert needed.value.columns == ["column 1", "column 2", "column 3"]
    assert needed.value.guess["label"] == "column 3"
    mapping = {"x": {"query": "column 1", "document": "column 2", "label": "column 3"}}
    assert len(parse({"x": text}, mapping=mapping).qrels) == 2


def test_columns_of_the_same_name_and_columns_without_one_are_kept_apart(parse):
    parsed = parse({"x": "query,document,label,kind,kind,\na,b,1,x,y,z\n"})

    assert parsed.queries.iloc[0].to_dict() == {
        "query_id": "q1",
        "text": "a",
        "kind": "x",
        "kind (2)": "y",
        "column 6": "z",
    }


field = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(
    lambda text: text.strip() != ""
)


@given(
    st.lists(st.tuples(field, field, st.integers(-1, 4)), min_size=1, max_size=8),
    st.sampled_from(",;\t|"),
    st.sampled_from(["\n", "\r\n"]),
)
@example([('"', ",;\t|", 1), ("a\r", "\nb", 0)], ",", "\n")
@example([("\ufeff", "\x00", 1)], ",", "\n")
def test_any_text_comes_back_as_it_was(rows, delimiter, line_end):
    written = io.StringIO(newline="")
    writer = csv.writer(
        written, delimiter=delimiter, lineterminator=line_end, quoting=csv.QUOTE_ALL
    )
    writer.writerow(["query", "document", "label"])
    writer.writerows(rows)

    parsed = read([Source("x", written.getvalue().encode())])

    # A column of nothing but tokens such as "q1" holds ids, and then there is no text.
    queries = dict(
        zip(
            parsed.queries["query_id"],
            parsed.queries["text"].where(
                parsed.queries["text"].notna(), parsed.queries["query_id"]
            ),
            strict=True,
        )
    )
    documents = dict(
        zip(
            parsed.documents["doc_id"],
            parsed.documents["text"].where(
                parsed.documents["text"].notna(), parsed.documents["doc_id"]
            ),
            strict=True,
        )
    )
    assert list(queries.values()) == list(dict.fromkeys(row[0] for row in rows))
    assert list(documents.values()) == list(dict.fromkeys(row[1] for row in rows))
    best = {}
    for query, document, label in rows:
        best[query, document] = max(label, best.get((query, document), label))
    labels = parsed.qrels.itertuples(index=False, name=None)
    assert {(queries[q], documents[d]): label for q, d, label in labels} == best


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_in_words(data):
    try:
        read([Source("x", data)])
    except FormatError as refused:
        assert str(refused).startswith("x")


@pytest.mark.parametrize("separator", [",", ";", "|"])
def test_a_header_wins_over_white_space_that_looks_like_labels(parse, separator):
    rows = [f"q {i}{separator}doc {i}" for i in range(30)]

    with pytest.raises(MappingNeeded) as asked:
        parse({"x.csv": "\n".join([f"query{separator}document", *rows])})

    assert asked.value.columns == ["query", "document"]
    assert asked.value.missing == "label"


def test_every_refused_row_of_a_file_that_is_not_trusted_is_accounted_for(parse):
    rows = ["query,document,label", "a,b,", "a,c,", ",d,1", "a,e,1", "a,f,0"]

    with pytest.raises(FormatError) as refused:
        parse({"x": "\n".join(rows)})

    assert str(refused.value) == (
        "x, line 2: Rows that cannot be used: 3 of 5, so nothing was read. Rows excluded because "
        "the label is empty: 2 (lines 2, 3). For other reasons: 1 (line 4). Label the row. A row "
        "without a label is kept only where it has a first-stage score or rank."
    )


@pytest.mark.parametrize(("even", "found"), [(7, ","), (6, None)])
def test_without_names_seven_tenths_of_the_rows_have_as_many_fields(even, found):
    rows = ["one thing,another"] * even + ["nothing"] * (10 - even)
    assert sniff("\n".join(rows)) == found


@pytest.mark.parametrize(("header", "found"), [("query;label", ";"), ("query;words", None)])
def test_two_names_make_a_separator_whatever_the_rows_hold(header, found):
    assert sniff("\n".join([header, *["nothing"] * 9])) == found


def test_a_sample_that_was_cut_counts_whole_rows_only():
    rows = "one;two\nthree;four\n"
    assert sniff(rows + "x" * 300_000 + ";five\n") == ";"
    assert sniff(rows + "five\n") is None


def test_cells_beyond_the_header_are_cut_only_where_all_are_empty(parse, found):
    parsed = parse({"x": "query,document,label\na,b,1,,\nc,d,0,,z\ne,f,0\n"})

    assert len(parsed.qrels) == 2
    assert found(parsed, "field_count").line == 3


@pytest.mark.parametrize("most", [3, 2])
def test_rows_that_are_refused_count_as_rows_of_the_file(parse, most):
    files = {"x": "query,document,label\na,b,1\nc,d,1\ne,f\n"}
    if most == 3:
        assert len(parse(files, limits=ReadLimits(rows=most)).qrels) == 2
    else:
        with pytest.raises(LimitError, match="more than 2 rows"):
            parse(files, limits=ReadLimits(rows=most))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a,2024\nb,2023\n", False),
        ("a,2024\n", True),
        ("d1,some text\nd2,x y\nd3,z\n", False),
        ("d1,some text\nd1,x y\nd3,z\n", True),
    ],
    ids=["numbers below a number", "nothing below it", "an id of its own", "an id that repeats"],
)
def test_a_first_row_like_the_others_is_no_header(text, named):
    assert delimited.read(text, ",", "x", ReadLimits()).names == named


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("one,two", None),
        ("query,label", ","),
        ("one;two\nthree;four", ";"),
        ("one two\nthree four", None),
        ("query label\nthree four", " "),
        # Names first, then rows of the same width, then the wider.
        ("query|label,x,y\na|b,1,2\nc|d,3,4", "|"),
        ("a|b,c\nd|e,f\ng|h", "|"),
        ("a|b,c,d\ne|f,g,h", ","),
        ("\n\r\none;two\nthree;four", ";"),
        ("a_b-c.d\na_b-c.d", None),
    ],
)
def test_which_character_separates(text, found):
    assert sniff(text) == found


@pytest.mark.parametrize(
    ("text", "lines", "names"),
    [
        ("query,label\na,1\nb,2\n", [2, 3], True),
        ("query,label\na,1\n\nb,2\n", [2, 4], True),
        ('query,label\n"a\nb",1\nb,2\n', [2, 4], True),
        ("q1,d1,1\nq1,d2,0\nq2,d3,1\n", [1, 2, 3], False),
        ("sep=,\nquery,label\na,1\n", [3], True),
    ],
)
def test_a_row_is_called_by_its_line(text, lines, names):
    table = delimited.read(text, ",", "x", ReadLimits())
    assert (table.lines.tolist(), table.names) == (lines, names)


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("limit", ["columns", "rows"])
def test_as_many_columns_and_rows_as_allowed_are_read(limit, quoted):
    text = "query,label\na,1\nb,2\n".replace("a", '"a"' if quoted else "a", 1)
    assert len(delimited.read(text, ",", "x", ReadLimits(**{limit: 2}))) == 2
    with pytest.raises(LimitError, match="more than 1 "):
        delimited.read(text, ",", "x", ReadLimits(**{limit: 1}))


def test_a_first_row_that_is_no_header_stays_a_row_where_marks_stand_in_it():
    table = delimited.read('q1,"d1",1\nq1,d2,0\nq2\n', ",", "x", ReadLimits())
    assert table.frame.to_numpy().tolist() == [["q1", "d1", "1"], ["q1", "d2", "0"]]
    assert table.columns == ["column 1", "column 2", "column 3"]
    assert (table.lines.tolist(), table.names) == ([1, 2], False)
