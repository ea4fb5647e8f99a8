"""Several annotators: how far they agree, and the one label they come to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.errors import DataError
from rankdash.readers import MappingNeeded, Source, read
from rankdash.readers.parse.annotators import kappa, settle

NAN = float("nan")


def rows(*labels: str, names: str = "label_1,label_2") -> str:
    lines = [f"a,text {number},{cells}" for number, cells in enumerate(labels)]
    return "\n".join([f"query,document,{names}", *lines]) + "\n"


def test_cohens_kappa_of_the_paper_it_is_taught_with():
    # 50 proposals: both yes 20, both no 15, yes and no 5, no and yes 10; κ = 0.4.
    values = np.repeat([[1.0, 1], [0, 0], [1, 0], [0, 1]], [20, 15, 5, 10], axis=0)

    assert kappa(values) == pytest.approx(0.4)


def test_fleiss_kappa_of_the_published_example():
    # Fleiss 1971 as worked on in textbooks: 14 raters, 10 subjects, 5 grades; κ = 0.210.
    counts = [
        (0, 0, 0, 0, 14),
        (0, 2, 6, 4, 2),
        (0, 0, 3, 5, 6),
        (0, 3, 9, 2, 0),
        (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0),
        (3, 2, 6, 3, 0),
        (2, 5, 3, 2, 2),
        (6, 5, 2, 1, 0),
        (0, 2, 2, 3, 7),
    ]
    values = np.array([np.repeat(np.arange(5.0), row) for row in counts])

    assert kappa(values) == pytest.approx(0.210, abs=5e-4)


grades = st.sampled_from([0.0, 1.0, 2.0, NAN])
tables = st.integers(2, 4).flatmap(
    lambda raters: st.lists(
        st.lists(grades, min_size=raters, max_size=raters), min_size=1, max_size=9
    )
)


@given(tables)
def test_kappa_is_at_most_one_and_one_only_where_all_agree(table):
    values = np.array(table)
    measured = kappa(values)
    shared = values[np.isfinite(values).sum(axis=1) >= 2]
    same = all(len(set(row[np.isfinite(row)])) == 1 for row in shared)

    assert np.isnan(measured) or measured <= 1 + 1e-12
    if not np.isnan(measured):
        assert (measured == pytest.approx(1)) == same


@given(tables)
def test_the_settled_label_does_not_hang_on_the_order_of_annotators(table):
    values = np.array(table)
    for rule in ("majority", "mean"):
        settled = settle(values, rule)
        np.testing.assert_allclose(settled, settle(values[:, ::-1], rule))
        np.testing.assert_array_equal(np.isnan(settled), np.isnan(values).all(axis=1))
    votes = [
        sorted(row[np.isfinite(row)], key=lambda g: (-list(row).count(g), g)) for row in values
    ]
    expected = [row[0] if row else NAN for row in votes]
    np.testing.assert_array_equal(settle(values, "majority"), expected)


@pytest.mark.parametrize(("rule", "labels"), [("majority", [1, 0, 2]), ("mean", [1.5, 0, 2])])
def test_label_columns_become_one_by_the_rule(parse, found, rule, labels):
    parsed = parse({"x": rows("1,2", "0,0", "2,")}, annotators=rule)

    assert parsed.qrels["label"].tolist() == labels
    finding = found(parsed, "annotators")
    assert finding.text == (
        "Rows that 2 annotators share: 2. They agree in 1; Cohen's kappa is 0.33."
    )
    assert ("mean" in found(parsed, "annotators_rule").text) == (rule == "mean")
    assert set(parsed.queries.columns) == {"query_id", "text"}


@pytest.mark.parametrize(
    "names", ["label_1,label_2", "annotator A,annotator B", "Rater1,Rater2", "标注员1,标注员2"]
)
def test_annotators_are_known_by_their_columns(parse, found, names):
    parsed = parse({"x": rows("1,1", "0,0", "1,0", names=names)})

    assert found(parsed, "annotators").params == {
        "raters": 2, "rows": 3, "same": 2, "kappa": pytest.approx(0.4)
    }  # fmt: skip
    assert parsed.qrels["label"].tolist() == [1, 0, 0]


def test_annotators_may_write_words(parse, found):
    parsed = parse({"x": rows("Exact,Partial", "Irrelevant,Irrelevant", "Exact,Exact")})

    assert parsed.qrels["label"].tolist() == [1, 0, 2]
    assert "Exact = 2" in found(parsed, "word_labels").text


def test_a_label_column_beside_the_annotators_decides(parse, found):
    text = rows("1,1,0", "0,0,0", names="label_1,label_2,label")

    parsed = parse({"x": text})

    assert parsed.qrels["label"].tolist() == [0, 0]
    assert "The column label decides" in found(parsed, "annotators_rule").text


def test_annotators_of_one_mind_everywhere_say_nothing_of_agreement(parse, found):
    assert found(parse({"x": rows("1,1", "1,1")}), "annotators").text == (
        "2 annotators gave the same label in every row they share (2), so their agreement cannot "
        "be measured."
    )


def test_annotators_who_disagree_are_a_warning_with_a_remedy(parse, found):
    finding = found(parse({"x": rows("1,0", "0,1", "1,1", "0,0")}), "annotators")

    assert finding.severity == "warning"
    assert finding.remedy
    assert "0.00" in finding.text


@pytest.mark.parametrize(("both_no", "severity"), [(15, "note"), (14, "warning")])
def test_a_kappa_of_just_0_4_is_enough(parse, found, both_no, severity):
    """50 rows as the paper has them: 0.4 exactly. One less in agreement is below."""
    labels = ["1,1"] * 20 + ["0,0"] * both_no + ["1,0"] * 5 + ["0,1"] * 10
    assert found(parse({"x": rows(*labels)}), "annotators").severity == severity


@pytest.mark.parametrize(("grades", "known"), [(12, True), (13, False)])
def test_columns_of_more_than_twelve_grades_are_no_annotators(parse, codes, grades, known):
    text = rows(*(f"{n},{n}" for n in range(grades)), names="label_1,label_2")
    if known:
        assert "annotators" in codes(parse({"x": text}))
    else:
        with pytest.raises(MappingNeeded):
            parse({"x": text})


def test_a_cell_that_is_no_label_is_refused_by_line(parse, found):
    assert found(parse({"x": rows("1,1", "0,inf", "2,2", "1,0")}), "bad_label").line == 3


def test_a_rule_that_does_not_exist_is_refused(parse):
    with pytest.raises(DataError, match="no rule 'median'"):
        parse({"x": rows("1,1")}, annotators="median")


def test_columns_called_by_people_are_asked_about_with_the_names_that_are_known():
    """label_anna is no name that can be told from label_source: who means annotators is told how
    to call them."""
    text = rows("1,0", "0,0", names="label_anna,label_bob")
    with pytest.raises(MappingNeeded) as told:
        read([Source("two.csv", text.encode())])
    assert told.value.remedy == (
        "Say which column is which (--columns query=… on the command line), or rename them: query "
        "(or query_id), document (or doc_id), label (label_1, label_2 … where several annotators "
        "labelled), and score or rank. A file that holds only one side is loaded together with the "
        "others of its data set."
    )


def test_one_column_with_a_number_is_no_column_of_annotators(parse):
    with pytest.raises(MappingNeeded, match="recognised as label"):
        parse({"x": "query,document,label_1\na,b,1\na,c,0\n"})


def test_of_many_words_the_first_twelve_are_told(parse, found):
    words = [f"grade{letter}" for letter in "abcdefghijklm"]
    rows = "".join(f"a,text {word},{word}\n" for word in words)
    told = {"x": {word: float(at) for at, word in enumerate(words)}}

    finding = found(parse({"x": f"query,document,label\n{rows}"}, words=told), "word_labels")

    assert finding.count == 13
    assert finding.params["table"] == ", ".join(
        f"{word} = {at}" for at, word in enumerate(words[:12])
    )
