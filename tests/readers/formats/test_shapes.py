"""The shapes of JSON in which tutorials and frameworks write what was retrieved and is relevant: of
each the values are right, and the ids and names are those of the file.

Two queries. For the first the search found d3, d1 and d7, of which d1 is relevant, and not d9,
which is relevant too; for the second it found d2, which is relevant.
"""

import json
import re
from dataclasses import dataclass
from functools import cached_property

import pytest

import rankdash as rd
from rankdash.cli import main
from rankdash.errors import FormatError
from rankdash.loading import Loaded, load
from rankdash.metrics import parse_measure
from rankdash.readers import Source
from rankdash.store import Workspace
from tests.readers.reading import shown
from tests.readers.samples import lines
from tests.readers.samples import shape as shape_of

Q1, Q2 = QUERIES = ("how to return an item", "track my parcel")
TEXT = {
    "d3": "Our shops and opening hours",
    "d1": "Send it back within 30 days.",
    "d7": "Gift cards",
    "d9": "Exchanges and refunds",
    "d2": "Parcels can be followed online.",
}
# First stage: mean of MRR and recall@3, with what is relevant and was not found, and without.
WITH_D9 = {"mrr": 0.75, "recall@3": 0.75}
WITHOUT_D9 = {"mrr": 0.75, "recall@3": 1.0}
FOUND = (["d3", "d1", "d7"], ["d2"])
RELEVANT = (["d1", "d9"], ["d2"])
GRADES = ([0, 1, 0], [1])
ASKED = ("a7", "b8")


def texts(*docs):
    return [TEXT[doc] for doc in docs]


FOUND_TEXTS, RELEVANT_TEXTS = ([texts(*docs) for docs in lists] for lists in (FOUND, RELEVANT))


@dataclass(frozen=True)
class Shape:
    """data: the file's content. values: what the first stage scores. lines: an entry each."""

    name: str
    data: object
    values: dict[str, float]
    lines: bool = False

    @property
    def content(self) -> bytes:
        return lines(self.data) if self.lines else shape_of(self.data)

    @cached_property
    def loaded(self) -> Loaded:
        return load([Source("shape.json", self.content)], ask=True)

    @property
    def queries(self) -> list[str]:
        return list(self.loaded.dataset.queries["query_id"])

    @property
    def documents(self) -> list[str]:
        return list(self.loaded.dataset.documents["doc_id"])

    @property
    def systems(self) -> list[str]:
        return [run.name for run in self.loaded.runs]


def two(**values):
    """The entries of both queries; each value is one of the first and one of the second."""
    return [dict(zip(values, each, strict=True)) for each in zip(*values.values(), strict=True)]


def by_query(values):
    return dict(zip(ASKED, values, strict=True))


def both(value):
    return (value, value)


def documents(make, lists):
    return [[make(doc) for doc in docs] for docs in lists]


def page(doc):
    return {"page_content": TEXT[doc], "metadata": {"id": doc}, "type": "Document"}


def haystack(doc):
    return {"id": doc, "content": TEXT[doc], "meta": {}, "score": 0.5}


MARKS = [{"d1": 1, "d9": 1}, {"d2": 1}]
SCORES = ({"d3": 3.5, "d1": 2.5, "d7": 1}, {"d2": 9})
FRAME = {"query_id": "a7 a7 a7 b8", "doc_id": "d3 d1 d7 d2", "label": [0, 1, 0, 1],
         "rank": [1, 2, 3, 1]}  # fmt: skip
ROWS = {key: value.split() if isinstance(value, str) else value for key, value in FRAME.items()}
SHAPES = [
    Shape("by query, with grades", by_query(two(retrieved=FOUND, relevant=MARKS)), WITH_D9),
    Shape("by query, with ids", by_query(two(retrieved=FOUND, relevant=RELEVANT)), WITH_D9),
    *(
        Shape(
            f"{query}, {found}, {relevant}",
            two(**{"id": ASKED, query: QUERIES, found: FOUND, relevant: RELEVANT}),
            WITH_D9,
        )
        for query, found, relevant in (
            ("question", "retrieved_docs", "relevant_docs"),
            ("query", "retrieved", "relevant"),
            ("question", "retrieved", "ground_truth"),
            ("query", "retrieved_docs", "gold"),
        )
    ),
    Shape(
        "retrieved, gold, as texts",
        two(query=QUERIES, retrieved=FOUND_TEXTS, gold=(RELEVANT_TEXTS[0], TEXT["d2"])),
        WITH_D9,
    ),
    Shape(
        "retrieved, grades by document",
        two(query_id=ASKED, retrieved_docs=FOUND, relevance_scores=MARKS),
        WITH_D9,
    ),
    *(
        Shape(
            f"{labels}, {docs}, two score sets",
            two(
                **{"query": QUERIES, docs: FOUND_TEXTS, labels: GRADES},
                initial_scores=[[0, -1, -2], [0]],
                rerank_scores=[[0, 0.9, -0.2], [1]],
            ),
            WITHOUT_D9,
        )
        for labels, docs in (("gt_rels", "pred_docs"), ("relevance_labels", "documents"))
    ),
    Shape(
        "retrieved and reranked",
        two(id=ASKED, retrieved=FOUND, reranked=(["d1", "d3"], ["d2"]), relevant=RELEVANT),
        WITH_D9,
    ),
    Shape(
        "parallel lists of lists",
        {"query_ids": ASKED, "queries": QUERIES, "retrieved": FOUND, "relevant": RELEVANT},
        WITH_D9,
    ),
    Shape("parallel lists of rows", ROWS, WITHOUT_D9),
    Shape(
        "columns of a data frame",
        {key: dict(zip("0123", values, strict=True)) for key, values in ROWS.items()},
        WITHOUT_D9,
    ),
    Shape("lists of 0 and 1", GRADES, WITHOUT_D9),
    Shape("lists of grades", [[0, 3, 0], [2, 1]], WITHOUT_D9),
    Shape("one list of grades", [0, 3, 2], {"mrr": 0.5, "recall@3": 1.0}),
    Shape("lists of 0 and 1, a line each", GRADES, WITHOUT_D9, lines=True),
    Shape("lists by query", by_query(GRADES), WITHOUT_D9),
    Shape("pairs", [*zip(FOUND, RELEVANT, strict=True)], WITH_D9),
    Shape("one pair", [FOUND[0], RELEVANT[0]], {"mrr": 0.5, "recall@3": 0.5}),
    Shape("pairs by query", by_query([(FOUND[0], RELEVANT[0]), (FOUND[1], MARKS[1])]), WITH_D9),
    Shape("actual, predicted", {"actual": RELEVANT, "predicted": FOUND}, WITH_D9),
    Shape("y_true, y_score", {"y_true": GRADES, "y_score": [[0.9, 0.2, 0.1], [0.5]]}, WITHOUT_D9),
    Shape(
        "LlamaIndex",
        two(
            query=QUERIES,
            expected_ids=RELEVANT,
            expected_texts=both(None),
            retrieved_ids=FOUND,
            retrieved_texts=FOUND_TEXTS,
            mode=both("text"),
            metric_dict=both({"mrr": {"score": 0.5, "metadata": {}}}),
        ),
        WITH_D9,
    ),
    *(
        Shape(
            f"LlamaIndex, a data set and {name}",
            {
                "queries": by_query(QUERIES),
                "corpus": {**TEXT, "d5": {"title": "Jobs", "text": "Work with us"}},
                "relevant_docs": by_query([RELEVANT[0], MARKS[1]]),
                "retrieved": by_query(ranked),
                "mode": "text",
            },
            WITH_D9,
        )
        for name, ranked in (("lists", FOUND), ("scores", SCORES))
    ),
    Shape(
        "Ragas",
        two(
            user_input=QUERIES,
            retrieved_contexts=FOUND_TEXTS,
            reference_contexts=RELEVANT_TEXTS,
            response=both("an answer"),
            reference=both("the right answer"),
        ),
        WITH_D9,
        lines=True,
    ),
    Shape(
        "LangSmith, LangChain's documents",
        two(
            id=ASKED,
            inputs=two(question=QUERIES),
            outputs=two(documents=documents(page, FOUND)),
            reference_outputs=two(documents=documents(page, RELEVANT)),
        ),
        WITH_D9,
    ),
    Shape(
        "LangSmith, ids",
        two(
            inputs=two(question=QUERIES),
            outputs=two(retrieved_ids=FOUND),
            reference_outputs=two(relevant_ids=RELEVANT),
        ),
        WITH_D9,
    ),
    Shape(
        "Haystack",
        {
            "questions": QUERIES,
            "retrieved_documents": documents(haystack, FOUND),
            "ground_truth_documents": documents(haystack, RELEVANT),
        },
        WITH_D9,
    ),
    Shape(
        "Haystack, a run's result",
        {
            "run_name": "hybrid",
            "inputs": {
                "question": QUERIES,
                "contexts": FOUND_TEXTS,
                "ground_truth_contexts": RELEVANT_TEXTS,
            },
            "results": {},
        },
        WITH_D9,
    ),
]


def test_a_shape_keeps_its_ids_and_its_names(approved):
    approved(
        "readers/shapes.en", shown({each.name: {"shape.json": each.content} for each in SHAPES})
    )


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_keeps_its_values(shape):
    found = rd.evaluate(shape.loaded.dataset, metrics=list(shape.values))
    assert {spec: found.mean(spec) for spec in shape.values} == pytest.approx(shape.values)


@pytest.mark.parametrize("name", ["pairs by query", "retrieved and reranked", "Ragas"])
def test_a_shape_says_the_same_by_command_in_python_on_the_page_and_in_the_report(
    name, tmp_path, capsys
):
    [shape] = [each for each in SHAPES if each.name == name]
    file, report = tmp_path / "shape.json", tmp_path / "report.html"
    file.write_bytes(shape.content)
    specs = ",".join(shape.values)

    assert main(["evaluate", str(file), "--metrics", specs, "--format", "json"]) == 0

    said = json.loads(capsys.readouterr().out)
    assert next(iter(said["systems"].values()))["mean"] == pytest.approx(shape.values)
    # A page shows what was stored of an upload.
    workspace = Workspace(tmp_path / "home")
    stored = workspace.dataset(workspace.save_dataset(shape.loaded.dataset))
    for data in (rd.read(file), stored):
        found = rd.evaluate(data, metrics=specs)
        assert {spec: found.mean(spec) for spec in shape.values} == pytest.approx(shape.values)
    given = ["report", "--data", str(file), "--metrics", specs, "--out", str(report)]
    assert main([*given, "--sections", "systems"]) == 0
    rows = [re.findall(r">([^<]+)<", row) for row in report.read_text().split("<tr>")]
    name = stored.candidates_name or "First stage"
    means = {row[0]: row[2] for row in rows if row[1:2] == [name]}
    titled = {parse_measure(spec).title: f"{mean:.3f}" for spec, mean in shape.values.items()}
    assert {title: means[title] for title in titled} == titled


def test_shapes_that_are_not_known_are_told_with_their_keys(approved):
    entry = {"query": Q1, "retrieved": ["d1"], "relevant": ["d1"], "kind": "returns"}
    columns = [
        {"frage": "wer", "extra": {"a": at}, "seite": "ein Text", "tags": ["m", "n"], "urteil": at}
        for at in (0, 1)
    ]
    values = {
        "equal texts with different ids are two queries, an id is no kind": [
            {"id": 1, **entry}, {"id": 2, **entry}
        ],
        "answers are no documents": [
            {"question": Q1, "contexts": texts("d1"), "ground_truth": "Within a month."}
        ],
        "two keys of an entry": [{"alpha": 1, "beta": [1, 2]}],
        "two keys of an object": {"alpha": {"beta": [1, 2]}, "gamma": "x"},
        "two keys of entries": [{"alpha": {"beta": [1, 2]}, "gamma": at} for at in "xy"],
        "three": {"alpha": {"beta": [1, 2]}, "gamma": "x", "delta": "y"},
        "objects of texts": {"alpha": {"a": "m"}, "beta": {"b": "n"}},
        "texts": {"alpha": "x", "beta": "y"},
        "a query without documents": {"query": Q1, "hits": {"total": 3}},
        "a version": {"version": 3, "stuff": {"a": [1]}},
        "a number first": [1, "x", {}],
        "a text first": ["a", "b"],
        "a row without a label": [{"query": Q1, "document": "x y", "tags": ["m", "n"]}],
        "columns of lists and objects are not asked for": columns,
        "an empty object": {},
        "an empty entry": [{}],
        "two": [{}, {}],
        **{
            f"the cells {cells} are offered as labels where they can be": [
                {"query": Q1, "document": f"text {at}", "relevance_note": cell}
                for at, cell in enumerate(cells)
            ]
            for cells in (["it is so", "it is not"], ["2", "0"], ["gut", "gut"], [None, None])
        },
    }  # fmt: skip
    approved(
        "readers/unknown_shapes.en",
        shown({name: {"x.json": json.dumps(value)} for name, value in values.items()}),
    )


def test_the_example_of_a_known_shape_is_one(parse):
    with pytest.raises(FormatError) as refused:
        parse({"x.json": '[{"alpha": [1, 2]}]'})
    example = refused.value.params["example"]
    assert example in str(refused.value)
    assert len(parse({"x.json": str(example)}).qrels) == 1
