"""The shapes of JSON in which tutorials and frameworks write what was retrieved and is relevant.

Two queries. For the first the search found d3, d1 and d7, of which d1 is relevant, and not d9,
which is relevant too; for the second it found d2, which is relevant.
"""

from tests.readers.samples import lines, shape

QUERIES = ("how to return an item", "track my parcel")
TEXT = {
    "d3": "Our shops and opening hours",
    "d1": "Send it back within 30 days.",
    "d7": "Gift cards",
    "d9": "Exchanges and refunds",
    "d2": "Parcels can be followed online.",
}
FOUND = (["d3", "d1", "d7"], ["d2"])
RELEVANT = (["d1", "d9"], ["d2"])
GRADES = ([0, 1, 0], [1])
ASKED = ("a7", "b8")


def texts(*docs):
    return [TEXT[doc] for doc in docs]


FOUND_TEXTS, RELEVANT_TEXTS = ([texts(*docs) for docs in lists] for lists in (FOUND, RELEVANT))


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
_SHAPES: dict[str, object] = {
    "by query, with grades": by_query(two(retrieved=FOUND, relevant=MARKS)),
    "by query, with ids": by_query(two(retrieved=FOUND, relevant=RELEVANT)),
    **{
        f"{query}, {found}, {relevant}": two(
            **{"id": ASKED, query: QUERIES, found: FOUND, relevant: RELEVANT}
        )
        for query, found, relevant in (
            ("question", "retrieved_docs", "relevant_docs"),
            ("query", "retrieved", "relevant"),
            ("question", "retrieved", "ground_truth"),
            ("query", "retrieved_docs", "gold"),
        )
    },
    "retrieved, gold, as texts": two(
        query=QUERIES, retrieved=FOUND_TEXTS, gold=(RELEVANT_TEXTS[0], TEXT["d2"])
    ),
    "retrieved, grades by document": two(
        query_id=ASKED, retrieved_docs=FOUND, relevance_scores=MARKS
    ),
    **{
        f"{labels}, {docs}, two score sets": two(
            **{"query": QUERIES, docs: FOUND_TEXTS, labels: GRADES},
            initial_scores=[[0, -1, -2], [0]],
            rerank_scores=[[0, 0.9, -0.2], [1]],
        )
        for labels, docs in (("gt_rels", "pred_docs"), ("relevance_labels", "documents"))
    },
    "retrieved and reranked": two(
        id=ASKED, retrieved=FOUND, reranked=(["d1", "d3"], ["d2"]), relevant=RELEVANT
    ),
    "parallel lists of lists": {
        "query_ids": ASKED, "queries": QUERIES, "retrieved": FOUND, "relevant": RELEVANT
    },
    "parallel lists of rows": ROWS,
    "columns of a data frame": {
        key: dict(zip("0123", values, strict=True)) for key, values in ROWS.items()
    },
    "lists of 0 and 1": GRADES,
    "lists of grades": [[0, 3, 0], [2, 1]],
    "one list of grades": [0, 3, 2],
    "lists of 0 and 1, a line each": lines(GRADES),
    "lists by query": by_query(GRADES),
    "pairs": [*zip(FOUND, RELEVANT, strict=True)],
    "one pair": [FOUND[0], RELEVANT[0]],
    "pairs by query": by_query([(FOUND[0], RELEVANT[0]), (FOUND[1], MARKS[1])]),
    "actual, predicted": {"actual": RELEVANT, "predicted": FOUND},
    "y_true, y_score": {"y_true": GRADES, "y_score": [[0.9, 0.2, 0.1], [0.5]]},
    "LlamaIndex": two(
        query=QUERIES,
        expected_ids=RELEVANT,
        expected_texts=both(None),
        retrieved_ids=FOUND,
        retrieved_texts=FOUND_TEXTS,
        mode=both("text"),
        metric_dict=both({"mrr": {"score": 0.5, "metadata": {}}}),
    ),
    **{
        f"LlamaIndex, a data set and {name}": {
            "queries": by_query(QUERIES),
            "corpus": {**TEXT, "d5": {"title": "Jobs", "text": "Work with us"}},
            "relevant_docs": by_query([RELEVANT[0], MARKS[1]]),
            "retrieved": by_query(ranked),
            "mode": "text",
        }
        for name, ranked in (("lists", FOUND), ("scores", SCORES))
    },
    "Ragas": lines(
        two(
            user_input=QUERIES,
            retrieved_contexts=FOUND_TEXTS,
            reference_contexts=RELEVANT_TEXTS,
            response=both("an answer"),
            reference=both("the right answer"),
        )
    ),
    "LangSmith, LangChain's documents": two(
        id=ASKED,
        inputs=two(question=QUERIES),
        outputs=two(documents=documents(page, FOUND)),
        reference_outputs=two(documents=documents(page, RELEVANT)),
    ),
    "LangSmith, ids": two(
        inputs=two(question=QUERIES),
        outputs=two(retrieved_ids=FOUND),
        reference_outputs=two(relevant_ids=RELEVANT),
    ),
    "Haystack": {
        "questions": QUERIES,
        "retrieved_documents": documents(haystack, FOUND),
        "ground_truth_documents": documents(haystack, RELEVANT),
    },
    "Haystack, a run's result": {
        "run_name": "hybrid",
        "inputs": {
            "question": QUERIES,
            "contexts": FOUND_TEXTS,
            "ground_truth_contexts": RELEVANT_TEXTS,
        },
        "results": {},
    },
}  # fmt: skip
SHAPES = {name: each if isinstance(each, bytes) else shape(each) for name, each in _SHAPES.items()}
