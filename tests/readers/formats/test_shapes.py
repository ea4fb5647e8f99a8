"""The shapes of JSON in which tutorials and frameworks write what was retrieved and is relevant: of
each the values are right, and the ids and names are those of the file.

Two queries. For the first the search found d3, d1 and d7, of which d1 is relevant, and not d9,
which is relevant too; for the second it found d2, which is relevant.
"""

import json
import re
from dataclasses import dataclass

import pytest

import rankdash as rd
from rankdash.cli import main
from rankdash.errors import FormatError
from rankdash.loading import load
from rankdash.metrics import parse_measure
from rankdash.readers import MappingNeeded, Source
from rankdash.store import Workspace

Q1, Q2 = "how to return an item", "track my parcel"
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


def texts(*docs):
    return [TEXT[doc] for doc in docs]


@dataclass(frozen=True)
class Shape:
    """data: the file's content. values: what the first stage scores. queries, documents: the ids
    that the file gives, () where it gives none. systems: what is compared with the first stage."""

    name: str
    data: object
    values: dict[str, float]
    queries: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    lines: bool = False

    @property
    def content(self) -> bytes:
        if self.lines:
            return "".join(f"{json.dumps(entry)}\n" for entry in self.data).encode()
        return json.dumps(self.data, indent=1).encode()


FOUND = (["d3", "d1", "d7"], ["d2"])
IDS = ("d1", "d2", "d3", "d7", "d9")
RANKED = ("d1", "d2", "d3", "d7")
ASKED = ("a7", "b8")


def llama(query, expected, found):
    return {
        "query": query,
        "expected_ids": expected,
        "expected_texts": None,
        "retrieved_ids": found,
        "retrieved_texts": texts(*found),
        "mode": "text",
        "metric_dict": {"mrr": {"score": 0.5, "metadata": {}}},
    }


def page(doc):
    return {"page_content": TEXT[doc], "metadata": {"id": doc}, "type": "Document"}


def haystack(doc):
    return {"id": doc, "content": TEXT[doc], "meta": {}, "score": 0.5}


SHAPES = [
    Shape(
        "by query, with grades",
        {
            "a7": {"retrieved": FOUND[0], "relevant": {"d1": 1, "d9": 1}},
            "b8": {"retrieved": FOUND[1], "relevant": {"d2": 1}},
        },
        *(WITH_D9, ASKED, IDS),
    ),
    Shape(
        "by query, with ids",
        {
            "a7": {"retrieved": FOUND[0], "relevant": ["d1", "d9"]},
            "b8": {"retrieved": FOUND[1], "relevant": ["d2"]},
        },
        *(WITH_D9, ASKED, IDS),
    ),
    *(
        Shape(
            f"{query}, {found}, {relevant}",
            [
                {"id": "a7", query: Q1, found: FOUND[0], relevant: ["d1", "d9"]},
                {"id": "b8", query: Q2, found: FOUND[1], relevant: ["d2"]},
            ],
            *(WITH_D9, ASKED, IDS),
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
        [
            {"query": Q1, "retrieved": texts(*FOUND[0]), "gold": texts("d1", "d9")},
            {"query": Q2, "retrieved": texts(*FOUND[1]), "gold": TEXT["d2"]},
        ],
        WITH_D9,
        texts=(*texts(*IDS), Q1, Q2),
    ),
    Shape(
        "retrieved, grades by document",
        [
            {"query_id": "a7", "retrieved_docs": FOUND[0], "relevance_scores": {"d1": 1, "d9": 1}},
            {"query_id": "b8", "retrieved_docs": FOUND[1], "relevance_scores": {"d2": 1}},
        ],
        *(WITH_D9, ASKED, IDS),
    ),
    *(
        Shape(
            f"{labels}, {docs}, two score sets",
            [
                {
                    "query": query,
                    docs: texts(*found),
                    labels: grades,
                    "initial_scores": [-at for at, _ in enumerate(found)],
                    "rerank_scores": [grade - at / 10 for at, grade in enumerate(grades)],
                }
                for query, found, grades in ((Q1, FOUND[0], [0, 1, 0]), (Q2, FOUND[1], [1]))
            ],
            WITHOUT_D9,
            systems=("shape/rerank_scores",),
            texts=(*texts(*RANKED), Q1, Q2),
        )
        for labels, docs in (("gt_rels", "pred_docs"), ("relevance_labels", "documents"))
    ),
    Shape(
        "retrieved and reranked",
        [
            {"id": "a7", "retrieved": FOUND[0], "reranked": ["d1", "d3"], "relevant": ["d1", "d9"]},
            {"id": "b8", "retrieved": FOUND[1], "reranked": ["d2"], "relevant": ["d2"]},
        ],
        *(WITH_D9, ASKED, IDS, ("shape/reranked",)),
    ),
    Shape(
        "parallel lists of lists",
        {
            "query_ids": list(ASKED),
            "queries": [Q1, Q2],
            "retrieved": list(FOUND),
            "relevant": [["d1", "d9"], ["d2"]],
        },
        *(WITH_D9, ASKED, IDS),
        texts=(Q1, Q2),
    ),
    Shape(
        "parallel lists of rows",
        {
            "query_id": ["a7", "a7", "a7", "b8"],
            "doc_id": ["d3", "d1", "d7", "d2"],
            "label": [0, 1, 0, 1],
            "rank": [1, 2, 3, 1],
        },
        *(WITHOUT_D9, ASKED, RANKED),
    ),
    Shape(
        "columns of a data frame",
        {
            "query_id": {"0": "a7", "1": "a7", "2": "b8"},
            "doc_id": {"0": "d3", "1": "d1", "2": "d2"},
            "label": {"0": 0, "1": 1, "2": 1},
            "rank": {"0": 1, "1": 2, "2": 1},
        },
        *(WITHOUT_D9, ASKED, ("d1", "d2", "d3")),
    ),
    Shape("lists of 0 and 1", [[0, 1, 0], [1]], WITHOUT_D9),
    Shape("lists of grades", [[0, 3, 0], [2, 1]], WITHOUT_D9),
    Shape("one list of grades", [0, 3, 2], {"mrr": 0.5, "recall@3": 1.0}),
    Shape("lists of 0 and 1, a line each", [[0, 1, 0], [1]], WITHOUT_D9, lines=True),
    Shape("lists by query", {"a7": [0, 1, 0], "b8": [1]}, WITHOUT_D9, ASKED),
    Shape("pairs", [[FOUND[0], ["d1", "d9"]], [FOUND[1], ["d2"]]], WITH_D9, (), IDS),
    Shape("one pair", [FOUND[0], ["d1", "d9"]], {"mrr": 0.5, "recall@3": 0.5}, (), IDS[:1]),
    Shape(
        "pairs by query",
        {"a7": [FOUND[0], ["d1", "d9"]], "b8": [FOUND[1], {"d2": 1}]},
        *(WITH_D9, ASKED, IDS),
    ),
    Shape(
        "actual, predicted",
        {"actual": [["d1", "d9"], ["d2"]], "predicted": list(FOUND)},
        *(WITH_D9, (), IDS),
    ),
    Shape(
        "y_true, y_score",
        {"y_true": [[0, 1, 0], [1]], "y_score": [[0.9, 0.2, 0.1], [0.5]]},
        WITHOUT_D9,
    ),
    Shape(
        "LlamaIndex",
        [llama(Q1, ["d1", "d9"], FOUND[0]), llama(Q2, ["d2"], FOUND[1])],
        *(WITH_D9, (), IDS),
        texts=(Q1, Q2, *texts(*RANKED)),
    ),
    *(
        Shape(
            f"LlamaIndex, a data set and {name}",
            {
                "queries": {"a7": Q1, "b8": Q2},
                "corpus": {**TEXT, "d5": {"title": "Jobs", "text": "Work with us"}},
                "relevant_docs": {"a7": ["d1", "d9"], "b8": {"d2": 1}},
                "retrieved": ranked,
                "mode": "text",
            },
            *(WITH_D9, ASKED, (*IDS, "d5")),
            texts=(Q1, Q2, *texts(*IDS), "Work with us"),
        )
        for name, ranked in (
            ("lists", {"a7": FOUND[0], "b8": FOUND[1]}),
            ("scores", {"a7": {"d3": 3.5, "d1": 2.5, "d7": 1}, "b8": {"d2": 9}}),
        )
    ),
    Shape(
        "Ragas",
        [
            {
                "user_input": query,
                "retrieved_contexts": texts(*found),
                "reference_contexts": texts(*relevant),
                "response": "an answer",
                "reference": "the right answer",
            }
            for query, found, relevant in ((Q1, FOUND[0], ("d1", "d9")), (Q2, FOUND[1], ("d2",)))
        ],
        WITH_D9,
        texts=(Q1, Q2, *texts(*IDS)),
        lines=True,
    ),
    Shape(
        "LangSmith, LangChain's documents",
        [
            {
                "id": identity,
                "inputs": {"question": query},
                "outputs": {"documents": [page(doc) for doc in found]},
                "reference_outputs": {"documents": [page(doc) for doc in relevant]},
            }
            for identity, query, found, relevant in (
                ("a7", Q1, FOUND[0], ("d1", "d9")),
                ("b8", Q2, FOUND[1], ("d2",)),
            )
        ],
        *(WITH_D9, ASKED, IDS),
        texts=(Q1, Q2, *texts(*IDS)),
    ),
    Shape(
        "LangSmith, ids",
        [
            {
                "inputs": {"question": query},
                "outputs": {"retrieved_ids": found},
                "reference_outputs": {"relevant_ids": relevant},
            }
            for query, found, relevant in ((Q1, FOUND[0], ["d1", "d9"]), (Q2, FOUND[1], ["d2"]))
        ],
        *(WITH_D9, (), IDS),
        texts=(Q1, Q2),
    ),
    Shape(
        "Haystack",
        {
            "questions": [Q1, Q2],
            "retrieved_documents": [[haystack(doc) for doc in found] for found in FOUND],
            "ground_truth_documents": [[haystack("d1"), haystack("d9")], [haystack("d2")]],
        },
        *(WITH_D9, (), IDS),
        texts=(Q1, Q2, *texts(*IDS)),
    ),
    Shape(
        "Haystack, a run's result",
        {
            "run_name": "hybrid",
            "inputs": {
                "question": [Q1, Q2],
                "contexts": [texts(*FOUND[0]), texts(*FOUND[1])],
                "ground_truth_contexts": [texts("d1", "d9"), texts("d2")],
            },
            "results": {},
        },
        WITH_D9,
        texts=(Q1, Q2, *texts(*IDS)),
    ),
]


def checks(shape: Shape) -> dict[str, bool]:
    """Whether the values are right, the ids are kept and the names are kept."""
    loaded = load([Source("shape.json", shape.content)], ask=True)
    data = loaded.dataset
    found = rd.evaluate(data, metrics=list(shape.values))
    queries, documents = set(data.queries["query_id"]), set(data.documents["doc_id"])
    written = {*data.queries["text"], *data.documents["text"]}
    return {
        "values": {spec: found.mean(spec) for spec in shape.values} == pytest.approx(shape.values),
        "ids": documents >= set(shape.documents) and queries >= set(shape.queries),
        "names": tuple(run.name for run in loaded.runs) == shape.systems
        and written >= set(shape.texts),
    }


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_keeps_its_values_its_ids_and_its_names(shape):
    assert checks(shape) == {"values": True, "ids": True, "names": True}


# Scores of a system without a first stage have only the order of the labels beside them.
@pytest.mark.filterwarnings("ignore:The files give neither a first-stage order")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_says_the_same_by_command_in_python_on_the_page_and_in_the_report(
    shape, tmp_path, capsys
):
    file, report = tmp_path / "shape.json", tmp_path / "report.html"
    file.write_bytes(shape.content)
    specs = ",".join(shape.values)

    assert main(["evaluate", str(file), "--metrics", specs, "--format", "json"]) == 0

    said = json.loads(capsys.readouterr().out)
    assert next(iter(said["systems"].values()))["mean"] == pytest.approx(shape.values)
    found = rd.evaluate(rd.read(file), metrics=specs)
    assert {spec: found.mean(spec) for spec in shape.values} == pytest.approx(shape.values)
    # A page shows what was stored of an upload.
    loaded, workspace = (
        load([Source(file.name, shape.content)], ask=True),
        Workspace(tmp_path / "home"),
    )
    stored = workspace.dataset(workspace.save_dataset(loaded.dataset))
    found = rd.evaluate(stored, metrics=specs)
    assert {spec: found.mean(spec) for spec in shape.values} == pytest.approx(shape.values)
    given = ["report", "--data", str(file), "--metrics", specs, "--out", str(report)]
    assert main([*given, "--sections", "systems"]) == 0
    rows = [re.findall(r">([^<]+)<", row) for row in report.read_text().split("<tr>")]
    name = stored.candidates_name or "First stage"
    means = {row[0]: row[2] for row in rows if row[1:2] == [name]}
    titled = {parse_measure(spec).title: f"{mean:.3f}" for spec, mean in shape.values.items()}
    assert {title: means[title] for title in titled} == titled


def test_equal_texts_with_different_ids_stay_two_queries_and_an_id_is_no_group(parse):
    entry = {"query": Q1, "retrieved": ["d1"], "relevant": ["d1"], "kind": "returns"}

    parsed = parse({"x.json": json.dumps([{"id": 1, **entry}, {"id": 2, **entry}])})

    assert parsed.queries.to_dict("list") == {
        "query_id": ["1", "2"],
        "text": [Q1, Q1],
        "kind": ["returns", "returns"],
    }


def test_answers_are_no_documents():
    entry = {"question": Q1, "contexts": texts("d1"), "ground_truth": "Within a month."}

    assert not load([Source("x.json", json.dumps([entry]).encode())]).dataset.labelled_queries


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        ([{"alpha": 1, "beta": [1, 2]}], "alpha, beta"),
        ({"alpha": {"beta": [1, 2]}, "gamma": "x"}, "alpha, gamma"),
        ([{"alpha": {"beta": [1, 2]}, "gamma": at} for at in "xy"], "alpha, gamma"),
        ({"alpha": {"beta": [1, 2]}, "gamma": "x", "delta": "y"}, "alpha, gamma, delta"),
        ({"alpha": {"a": "m"}, "beta": {"b": "n"}}, "alpha, beta"),
        ({"alpha": "x", "beta": "y"}, "alpha, beta"),
        ({"query": Q1, "hits": {"total": 3}}, "query, hits"),
        ({"version": 3, "stuff": {"a": [1]}}, "version, stuff"),
        ([1, "x", {}], "1"),
        ([{"query": Q1, "document": "x y", "tags": ["m", "n"]}], "query, document, tags"),
    ],
)
def test_a_shape_that_is_not_known_is_told_with_its_keys_and_an_example(parse, data, seen):
    with pytest.raises(FormatError) as refused:
        parse({"x.json": json.dumps(data)})

    message = str(refused.value)
    assert f"valid JSON, but its shape is not known. It holds: {seen}." in message
    assert '"retrieved": ["d3", "d1"]' in message
    assert "breaks" not in message


def test_columns_of_lists_and_objects_are_not_asked_for_but_those_beside_them_are(parse):
    rows = [
        {"frage": "wer", "extra": {"a": at}, "seite": "ein Text", "tags": ["m", "n"], "urteil": at}
        for at in (0, 1)
    ]

    with pytest.raises(MappingNeeded) as needed:
        parse({"x.json": json.dumps(rows)})

    assert needed.value.columns == ["frage", "seite", "urteil"]
    given = {field: column for field, column in needed.value.guess.items() if column}
    assert given == {"query": "frage", "document": "seite", "label": "urteil"}


@pytest.mark.parametrize("data", [{}, [{}], [{}, {}]])
def test_entries_without_a_key_are_no_rows(parse, data):
    with pytest.raises(FormatError, match=r"^x\.json: The file holds no rows\."):
        parse({"x.json": json.dumps(data)})


def test_the_example_of_a_known_shape_is_one():
    with pytest.raises(FormatError) as refused:
        load([Source("x.json", b'[{"alpha": [1, 2]}]')])

    example = refused.value.params["example"]
    assert len(load([Source("x.json", str(example).encode())]).dataset.qrels) == 1


@pytest.mark.parametrize(
    ("cells", "offered"),
    [
        (["it is about returns", "it is not"], None),
        (["2", "0"], "relevance_note"),
        (["gut", "gut"], "relevance_note"),
        ([None, None], None),
    ],
)
def test_a_column_is_offered_as_the_label_only_where_its_cells_can_be_one(parse, cells, offered):
    rows = [
        {"query": Q1, "document": f"text {at}", "relevance_note": cell}
        for at, cell in enumerate(cells)
    ]

    with pytest.raises(MappingNeeded) as needed:
        parse({"x.json": json.dumps(rows)})

    assert needed.value.guess["label"] == offered
