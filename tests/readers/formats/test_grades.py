"""Grades are not ids: the example of scikit-learn in its usual forms, and numbers that could be
either."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import ndcg_score

from rankdash.core.base.errors import FormatError
from rankdash.core.metrics import evaluate, judge
from rankdash.core.readers import NumbersNeeded
from tests.readers.reading import parse

# The example of `ndcg_score`: true relevance and scores, and the orders of other tutorials.
EXAMPLES = {
    "documentation": ([10, 0, 0, 1, 5], [0.1, 0.2, 0.3, 4, 70], 0.6957),
    "other scores": ([10, 0, 0, 1, 5], [0.05, 1.1, 1.0, 0.5, 0.0], 0.4937),
    "tutorial": ([3, 2, 1, 0, 0], [0.9, 0.7, 0.8, 0.1, 0.2], 0.9725),
    "tutorial in order": ([3, 1, 2, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.5], 0.9725),
}
NAMES = (
    *(("true_relevance", "scores"), ("y_true", "y_score"), ("relevance", "predicted_scores")),
    *(("ground_truth", "scores"), ("labels", "predictions")),
)


def rows(grades, scores, names):
    return [dict(zip(names, each, strict=True)) for each in zip(grades, scores, strict=True)]


def csv(grades, scores, names):
    lines = [",".join(names), *(f"{g},{s}" for g, s in zip(grades, scores, strict=True))]
    return "\n".join(lines) + "\n"


def forms(grades, scores):
    """Return the usual forms of one query with its grades and scores."""
    for true, predicted in NAMES:
        for several in (False, True):
            whole = {true: [grades] if several else grades, predicted: [scores]}
            yield {**whole, predicted: [scores] if several else scores}
        yield [{true: grades, predicted: scores}]
        yield {"q1": {true: grades, predicted: scores}}
        if true != "ground_truth" and predicted != "predicted_scores":
            yield csv(grades, scores, (true, predicted))
            yield rows(grades, scores, (true, predicted))
    frame = pd.DataFrame({"y_true": grades, "y_score": scores})
    yield frame.to_json()
    yield frame.to_csv()
    yield [grades, scores]
    yield [[grades], [scores]]
    yield [[grades, scores]]
    yield {"q1": [grades, scores]}


def value(parsed):
    return evaluate(judge(parsed.candidates, parsed.qrels), ["ndcg"]).mean("ndcg")


def text(content):
    return content if isinstance(content, str) else json.dumps(content)


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_form_of_the_example_has_the_value_of_scikit_learn(name):
    grades, scores, rounded = EXAMPLES[name]
    expected = ndcg_score([grades], [scores])
    assert expected == pytest.approx(rounded, abs=5e-5)
    for form in forms(grades, scores):
        parsed = parse({"example.json": text(form)})
        assert value(parsed) == pytest.approx(expected, abs=1e-9), form
        assert parsed.qrels["label"].tolist() == grades, form
        assert len(parsed.queries) == 1


@pytest.mark.parametrize("names", NAMES[:2])
def test_several_queries_have_the_mean_of_scikit_learn(names):
    chosen = [EXAMPLES[name] for name in ("documentation", "tutorial")]
    grades, scores = ([each[at] for each in chosen] for at in (0, 1))
    expected = ndcg_score(grades, scores)
    pairs = [[each[0], each[1]] for each in chosen]
    lines = [f"query_id,{','.join(names)}"] + [
        f"{query},{grade},{score}"
        for query, (some, others, _) in zip("ab", chosen, strict=True)
        for grade, score in zip(some, others, strict=True)
    ]
    for form in (dict(zip(names, (grades, scores), strict=True)), [grades, scores], pairs,
                 "\n".join(lines)):  # fmt: skip
        parsed = parse({"x.json": text(form)})
        assert value(parsed) == pytest.approx(expected, abs=1e-9), form


@pytest.mark.parametrize(
    "lists",
    [
        [[3, 2, 1, 0, 0], [5, 4, 3, 2, 1]],
        [[3, 2, 1], [1, 0.5, 0]],
        [[[10, 0, 0, 1, 5]], [[1, 0, 0, 0, 1]]],
        [[[3, 1, 2], [1, 0, 1]]],
    ],
)
def test_lists_without_names_that_could_be_either_are_refused(lists):
    with pytest.raises(FormatError, match="have no names") as refused:
        parse({"x.json": json.dumps(lists)})
    assert (refused.value.file, refused.value.line) == ("x.json", 1)
    named = str(refused.value.params["example"])
    assert value(parse({"x.json": named})) == pytest.approx(
        ndcg_score([[3, 2, 0]], [[0.9, 0.7, 0.8]])
    )
    parse({"x.json": str(refused.value.params["labels"])})


def test_labels_of_several_queries_stay_labels():
    for lists in ([[0, 1, 1], [1, 0, 0]], [[0, 1, 1], [1, 0]], [[0, 1], [1, 0]], [[3, 1], [2, 2]]):
        parsed = parse({"x.json": json.dumps(lists)})
        assert parsed.qrels["label"].tolist() == [grade for each in lists for grade in each]
        assert parsed.candidates.documents_of("q2")[0][0] == "q2-1"


# Numbers that could be grades or ids.
EITHER = [
    {"query_id": "a", "retrieved": [3, 2, 1], "relevant": [0, 1, 2]},
    {"query_id": "b", "retrieved": [1, 3, 2], "relevant": [2, 1, 0]},
]
LAYOUTS = {
    "entries": EITHER,
    "texts of digits": [{**each, "retrieved": [*map(str, each["retrieved"])]} for each in EITHER],
    "by query": {each["query_id"]: {**each} for each in EITHER},
    "none of the numbers is retrieved": [
        {**each, "retrieved": [at + 10 for at in each["retrieved"]]} for each in EITHER
    ],
    "parallel lists": {key: [each[key] for each in EITHER] for key in EITHER[0]},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_numbers_that_could_be_grades_or_ids_are_asked_for(layout):
    files = {"x.json": json.dumps(LAYOUTS[layout])}
    with pytest.raises(NumbersNeeded, match=r"--columns label=.* doc_id=relevant") as asked:
        parse(files)
    needed = asked.value
    assert (needed.file, needed.key) == ("x.json", "relevant")
    assert needed.numbers == "0, 1, 2"
    assert needed.documents in ("3, 2, 1", "13, 12, 11")

    for options in (
        {"columns": {"label": "relevant"}}, {"mapping": {"x.json": {"label": "relevant"}}}
    ):  # fmt: skip
        graded = parse(files, **options)
        expected = ndcg_score([[0, 1, 2], [2, 1, 0]], [[3, 2, 1], [3, 2, 1]])
        assert value(graded) == pytest.approx(expected)
        assert graded.qrels["label"].tolist() == [0, 1, 2, 2, 1, 0]
    for options in (
        {"columns": {"doc_id": "relevant"}}, {"mapping": {"x.json": {"doc_id": "relevant"}}}
    ):  # fmt: skip
        named = parse(files, **options)
        assert set(named.qrels["label"]) == {1}
        assert set(named.qrels["doc_id"]) == {"0", "1", "2"}


@pytest.mark.parametrize(
    ("retrieved", "relevant", "labels"),
    [
        ([12, 11, 13], [0, 1, 0], [0, 1, 0]),
        (["a", "b", "c"], [3, 1, 2], [3, 1, 2]),
        ([12, 11, 13], [13], [1]),
        ([712, 711, 713], [713, 711, 5], [1, 1, 1]),
        (["712", "711", "713"], [713, 711, 712], [1, 1, 1]),
    ],
)
def test_numbers_that_can_only_be_one_are_read(retrieved, relevant, labels):
    entry = {"query_id": "a", "retrieved": retrieved, "relevant": relevant}
    parsed = parse({"x.json": json.dumps([entry])})
    assert sorted(parsed.qrels["label"]) == sorted(labels)


def test_an_answer_for_one_file_leaves_the_others_and_their_columns():
    other = "query_id,doc_id,gut,score\na,9,1,2.5\na,8,0,1.5\n"
    files = {"x.json": json.dumps(EITHER), "other.csv": other}
    parsed = parse(files, columns={"label": "gut"}, mapping={"x.json": {"label": "relevant"}})
    assert {"8", "9"} < set(parsed.qrels["doc_id"])
    assert np.isclose(parsed.qrels["label"].sum(), 7)
