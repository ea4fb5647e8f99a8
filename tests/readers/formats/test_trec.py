"""TREC qrels and runs, and their relatives without a header."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.errors import FormatError, LimitError
from rankdash.readers import ReadLimits, Source, read
from rankdash.readers.formats import trec
from rankdash.readers.formats.trec import shape_of
from rankdash.readers.parse.encoding import Decoded

RUN = "q1 Q0 d1 1 9.5 bm25\nq1 Q0 d2 2 8 bm25\nq2 Q0 d3 1 1e-3 bm25\n"
QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 -1\n"


def test_qrels_and_a_run(parse):
    parsed = parse({"labels": QRELS, "bm25.trec": RUN})

    assert parsed.qrels["label"].tolist() == [2.0, 0.0, -1.0]
    assert parsed.candidates.documents_of("q1")[0] == ["d1", "d2"]
    assert parsed.candidates.ties == "trec"
    assert parsed.formats == {"labels": "TREC qrels", "bm25.trec": "TREC run"}


@pytest.mark.parametrize("separator", ["\t", "  ", " \t ", "   "])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", " \n"])
def test_any_white_space_separates(parse, separator, line_end):
    def spread(text):
        return text.replace(" ", separator).replace("\n", line_end)

    parsed = parse({"a": spread(QRELS), "b": spread(RUN)})

    assert parsed.candidates.documents_of("q1")[0] == ["d1", "d2"]
    assert parsed.qrels["label"].tolist() == [2.0, 0.0, -1.0]


def test_qrels_with_words_as_labels(parse, found):
    parsed = parse({"q": "q1 0 d1 relevant\nq1 0 d2 irrelevant\n"})

    assert parsed.qrels["label"].tolist() == [1.0, 0.0]
    assert found(parsed, "word_labels")


def test_a_run_is_read_by_score_and_a_contradicting_rank_column_is_told(parse, found):
    run = "q1 Q0 d1 1 1.0 x\nq1 Q0 d2 2 5.0 x\nq2 Q0 d1 1 3.0 x\nq2 Q0 d2 2 3.0 x\n"

    parsed = parse({"q": QRELS, "run": run})

    assert parsed.candidates.documents_of("q1")[0] == ["d2", "d1"]
    finding = found(parsed, "rank_against_score")
    assert (finding.count, finding.params["queries"], finding.line) == (1, 2, 2)


def test_a_list_stored_worst_first_is_told_from_a_contradiction(parse, codes):
    run = "q1 Q0 d1 2 1.0 x\nq1 Q0 d2 1 5.0 x\n"

    parsed = parse({"q": QRELS, "run": run})

    assert parsed.candidates.documents_of("q1")[0] == ["d2", "d1"]
    assert "rank_against_score" not in codes(parsed)


def test_a_run_without_a_tag(parse):
    run = RUN.replace(" bm25", "")

    assert len(parse({"q": QRELS, "run": run}).candidates) == 3


def test_bad_lines_are_refused_by_line_and_the_others_kept(parse, found):
    lines = [f"q1 Q0 d{i} {i} {100 - i} x" for i in range(1, 31)]
    lines[4] = "q1 Q0 d5 5 x"
    lines[9] = "q1 Q0 d10 10 NaN x"
    lines[14] = "q1 Q0 d15 15 inf x"
    lines[19] = "q1 Q0 d1 20 80 x"
    lines[24] = "q1 Q0 d25 last 75 x"
    lines.insert(0, "")

    parsed = parse({"q": QRELS, "run": "\n".join(lines)})

    assert found(parsed, "field_count").line == 6
    assert found(parsed, "bad_score").params["lines"] == "11, 16"
    assert found(parsed, "ranked_twice").line == 21
    assert found(parsed, "bad_rank").line == 26
    assert len(parsed.candidates) == 25
    assert parsed.candidates.documents_of("q1")[1][0] == 99.0


def test_a_run_with_nothing_but_bad_scores_is_refused(parse):
    run = "".join(f"q1 Q0 d{i} {i} nan x\n" for i in range(9))

    with pytest.raises(FormatError, match="Rows that cannot be used: 9 of 9"):
        parse({"q": QRELS, "run": run})


def test_one_line_with_a_blank_too_many_shifts_nothing(parse, found):
    lines = [f"q1 Q0 d{i} {i} {50 - i} x" for i in range(1, 20)]
    lines[3] = "q1 Q0 d4 d4 4 46 x"

    parsed = parse({"q": QRELS, "run": "\n".join(lines)})

    assert found(parsed, "field_count").line == 4
    assert parsed.candidates.documents_of("q1")[0][3] == "d5"


def test_ids_may_hold_other_white_space_than_ascii(parse):
    parsed = parse({"q": "q1 0 d\u3000one 1\nq1 0 d\u00a0two 0\n"})

    assert parsed.documents["doc_id"].tolist() == ["d\u3000one", "d\u00a0two"]


def test_ids_may_hold_spaces_in_a_tab_separated_file(parse):
    parsed = parse({"q": "q 1\t0\tdoc one\t1\nq 1\t0\tdoc two\t0\n"})

    assert parsed.documents["doc_id"].tolist() == ["doc one", "doc two"]


def test_names_in_the_first_line_make_it_a_header_in_any_order(parse):
    parsed = parse({"q": "corpus-id\tquery-id\tscore\nd1\tq1\t2\nd2\tq1\t0\n"})

    assert parsed.qrels["query_id"].unique().tolist() == ["q1"]
    assert parsed.qrels["label"].tolist() == [2.0, 0.0]


def test_header_with_blanks_between(parse):
    parsed = parse({"q": "query_id doc_id label\nq1 d1 2\nq1 d2 0\n"})

    assert parsed.qrels["label"].tolist() == [2.0, 0.0]


def test_three_fields_that_count_up_are_a_ranking(parse):
    run = "".join(f"q{q}\td{q}{i}\t{i}\n" for q in range(3) for i in range(1, 8))

    parsed = parse({"q": "q1 0 d15 1\n", "run": run})

    assert parsed.candidates.documents_of("q1")[0][:2] == ["d11", "d12"]
    assert parsed.qrels["doc_id"].tolist() == ["d15"]


@pytest.mark.parametrize(("most", "ranks"), [(2, False), (4, False), (5, True)])
def test_labels_may_happen_to_count_up_to_four(parse, most, ranks):
    counted = "".join(f"q{q}\td{q}{i}\t{i}\n" for q in range(3) for i in range(1, most + 1))

    parsed = parse({"q": "q1 0 other 1\n", "counted": counted})

    assert len(parsed.qrels) == (1 if ranks else 1 + 3 * most)
    assert (parsed.candidates is not None) == ranks


@pytest.mark.parametrize(("most", "ranks"), [(1, False), (2, True)])
def test_behind_q0_counting_up_to_two_is_a_ranking(parse, most, ranks):
    counted = "".join(f"q{q} Q0 d{q}{i} {i}\n" for q in range(3) for i in range(1, most + 1))

    parsed = parse({"q": "q1 0 other 1\n", "counted": counted})

    assert len(parsed.qrels) == (1 if ranks else 1 + 3 * most)
    assert (parsed.candidates is not None) == ranks


def test_ties_are_settled_by_document_id_descending_as_trec_eval_does(parse):
    run = "".join(f"q1 Q0 d{i} {i} 1.0 x\n" for i in range(1, 12))

    parsed = parse({"q": QRELS, "run": run})

    assert parsed.candidates.documents_of("q1")[0][:3] == ["d9", "d8", "d7"]
    assert parsed.candidates.tied.all()


identity = st.text(st.sampled_from("aZ09_-./é文"), min_size=1, max_size=8)


@given(
    st.lists(
        st.tuples(identity, identity, st.floats(-1e6, 1e6)),
        min_size=1,
        max_size=20,
        unique_by=lambda row: row[:2],
    ),
    st.sampled_from([" ", "\t", "  "]),
)
def test_any_run_comes_back_as_it_was(rows, separator):
    text = "\n".join(
        separator.join([query, "Q0", doc, "1", repr(score), "x"]) for query, doc, score in rows
    )
    qrels = f"{rows[0][0]} 0 {rows[0][1]} 1"

    parsed = read([Source("q", qrels.encode()), Source("run", text.encode())])

    frame = parsed.candidates.frame()
    assert set(zip(frame["query_id"], frame["doc_id"], frame["score"], strict=True)) == set(rows)


def test_even_and_uneven_files_are_read_alike(parse):
    rng = np.random.default_rng(3)
    rows = [f"q{i // 10} Q0 d{i} {i % 10 + 1} {rng.normal():.6f} x" for i in range(200)]

    even = parse({"q": QRELS, "run": "\n".join(rows)})
    uneven = parse({"q": QRELS, "run": "\n\n".join(rows)})

    pd.testing.assert_frame_equal(even.candidates.frame(), uneven.candidates.frame())


def test_a_run_without_scores_and_tag_is_a_ranking_and_no_labels(parse):
    run = "q1 Q0 d1 1\nq1 Q0 d2 2\nq2 Q0 d2 1\nq2 Q0 d1 2\n"
    parsed = parse({"qrels": "q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 1\n", "run": run})

    assert len(parsed.qrels) == 3
    assert list(parsed.candidates.documents_of("q2")[0]) == ["d2", "d1"]


def test_labels_behind_q0_stay_labels(parse):
    parsed = parse({"qrels": "q1 Q0 d1 1\nq1 Q0 d2 0\nq2 Q0 d1 2\nq2 Q0 d2 1\n"})

    assert sorted(parsed.qrels["label"]) == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("good", "bad", "counts", "shape"),
    [
        ("q1 Q0 d1 1 2.5 x", "of another form", (1, 1), "run"),
        ("q1 Q0 d1 1 2.5 x", "of another form", (1, 2), None),
        ("q1 0 d1 1", "of another form", (1, 1), "qrels"),
        ("q1 0 d1 1", "of another form", (1, 2), None),
        ("q1 0 d1 superb", "of another form", (1, 1), "qrels"),
        ("q1 7 d1 superb", "of another form", (1, 1), None),
        ("q1 d1 1", "of another form", (8, 2), "plain"),
        ("q1 d1 1", "of another form", (7, 2), None),
    ],
)
def test_so_many_lines_of_a_form_are_enough(good, bad, counts, shape):
    """Half of the lines of runs and qrels, four fifths of three fields."""
    lines = [good] * counts[0] + [bad] * counts[1]
    assert shape_of("\n".join(lines)) == shape


@pytest.mark.parametrize(("header", "shape"), [("qid d0 1", "plain"), ("qid docid 1", None)])
def test_two_names_make_a_header(header, shape):
    assert shape_of("\n".join([header, *["q1 d1 1"] * 9])) == shape


@pytest.mark.parametrize("labels", [[1, 1, 3, 4, 5], [0, 2, 3, 4, 5], [1, 2, 3, 4, 6]])
def test_labels_that_leave_out_or_repeat_a_place_are_no_ranks(parse, labels):
    parsed = parse({"x": "".join(f"q1 d{at} {label}\n" for at, label in enumerate(labels))})

    assert parsed.qrels["label"].tolist() == labels
    assert parsed.candidates is None


def test_q0_in_some_lines_makes_no_ranks_of_labels(parse):
    parsed = parse({"x": "q1 Q0 d1 1\nq1 0 d2 2\n"})

    assert parsed.qrels["label"].tolist() == [1, 2]


@pytest.mark.parametrize(("tabbed", "whole"), [(8, True), (7, False)])
def test_ids_hold_blanks_where_four_fifths_of_the_lines_have_tabs(parse, tabbed, whole):
    lines = [f"q\t0\tdoc {at}\t1" for at in range(tabbed)]
    lines += [f"q 0 d{at} 1" for at in range(tabbed, 10)]
    table = trec.read(Decoded("\n".join(lines), "utf-8"), "qrels", "x", ReadLimits())

    found = set(table.frame["doc_id"])
    assert found == ({f"doc {at}" for at in range(8)} if whole else {"d7", "d8", "d9"})


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("q\t0\td1\t1\nq \t 0 \t d2 \t 1\n", ["q", "q"]),
        ("q a\t0\td1\t1\n\n", ["q a"]),
    ],
)
def test_one_padded_line_makes_blanks_separate(text, queries):
    table = trec.read(Decoded(text, "utf-8"), "qrels", "x", ReadLimits())

    assert table.frame["query_id"].tolist() == queries


@pytest.mark.parametrize("most", [3, 2])
def test_lines_that_are_refused_count_as_rows_of_the_file(parse, most):
    files = {"x": "q1 0 d1 1\nq1 0 d2 1\nq1 0 d3\n"}
    if most == 3:
        assert len(parse(files, limits=ReadLimits(rows=most)).qrels) == 2
    else:
        with pytest.raises(LimitError, match="more than 2 rows"):
            parse(files, limits=ReadLimits(rows=most))


@pytest.mark.parametrize(
    ("line", "shape"),
    [
        ("q1 Q0 d1 1 2.5 x", "run"),
        ("q1 any d1 1 2.5 x", "run"),
        ("q1 Q0 d1 one 2.5 x", None),
        ("q1 Q0 d1 1 high x", None),
        ("q1 Q0 d1 1 2.5", "run"),
        ("q1 q0 d1 one 2.5", "run"),
        ("q1 0 d1 1 2.5", "run"),
        ("q1 1 d1 1 2.5", None),
        ("q1 Q0 d1 1 high", None),
        ("q1 Q0 d1 1 2.5 x y", "run"),
        ("q1 d1 1", "plain"),
        (f"{'q' * 100} d1 1", "plain"),
        (f"{'q' * 101} d1 1", None),
        (f"q1 {'d' * 101} 1", None),
        ("q1\td 1\t1", None),
        ("文 d1 1", None),
        ("q1 d1 one", None),
        ("q1 d1 1 2", None),
        ("q1 0 d1 1", "qrels"),
        ("q1 12 d1 1", "qrels"),
        ("q1 q1 d1 2.5", "qrels"),
        ("q1 q1 d1 superb", None),
        ("q1 0 d1 superb", "qrels"),
        ("q1 7 d1 relevant", "qrels"),
        ("q1 x d1 1", None),
        ("q1 0 d1", None),
    ],
)
def test_a_line_has_the_fields_of_a_run_of_qrels_or_of_plain_labels(line, shape):
    """Two short ids and a number are plain labels; a label of qrels stands behind an iteration."""
    assert shape_of(line) == shape


@pytest.mark.parametrize("blank", [False, True])
def test_lines_and_limits_are_the_same_of_even_and_uneven_files(blank):
    text = "q1 0 d1 1\n" + "\n" * blank + "q1 0 doc2 0\n"
    table = trec.read(Decoded(text, "utf-8"), "qrels", "x", ReadLimits(rows=2, field_chars=4))
    assert table.lines.tolist() == [1, 2 + blank]
    assert table.frame.to_numpy().tolist() == [["q1", "d1", "1"], ["q1", "doc2", "0"]]
    with pytest.raises(LimitError, match="more than 1 row"):
        trec.read(Decoded(text, "utf-8"), "qrels", "x", ReadLimits(rows=1))
    with pytest.raises(LimitError, match="A field has"):
        trec.read(Decoded(text, "utf-8"), "qrels", "x", ReadLimits(field_chars=3))


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("behind", ["two", "a b c", "# 1.5 of 2"])
def test_text_behind_the_name_of_the_run_changes_nothing(parse, codes, behind, every):
    lines = RUN.splitlines()
    longer = "\n".join(
        f"{line} {behind}" if at % every == 0 else line for at, line in enumerate(lines)
    )

    plain, parsed = (parse({"l": QRELS, "bm25.trec": text}) for text in (RUN, longer))

    assert "field_count" not in codes(parsed)
    assert parsed.formats["bm25.trec"] == "TREC run"
    for query in ("q1", "q2"):
        documents, scores = parsed.candidates.documents_of(query)
        assert (documents, scores.tolist()) == (
            plain.candidates.documents_of(query)[0],
            plain.candidates.documents_of(query)[1].tolist(),
        )


def test_a_run_without_a_name_in_most_lines_keeps_those_with_one(parse, codes):
    run = "q1 Q0 d1 1 9.5\nq1 Q0 d2 2 8\nq2 Q0 d3 1 1e-3 a longer name\n"

    parsed = parse({"l": QRELS, "bm25.trec": run})

    assert "field_count" not in codes(parsed)
    assert len(parsed.candidates) == 3
