"""Files of other tools: a small one in the shape of each."""

import io
import json

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


def shape(value: object) -> bytes:
    """Return JSON with a line for each inner value."""
    return json.dumps(value, indent=1).encode()


def lines(rows: list[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def csv(rows: list[dict[str, object]], **settings: object) -> bytes:
    return pd.DataFrame(rows).to_csv(index=False, **settings).encode()


def excel(frame: pd.DataFrame) -> bytes:
    written = io.BytesIO()
    frame.to_excel(written, index=False)
    return written.getvalue()


def workbook(**sheets) -> bytes:
    """Return a workbook with a sheet for each list of rows, in this order."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
        if title.startswith("hidden"):
            sheet.sheet_state = "hidden"
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def table(rows: pa.Table | list[dict[str, object]]) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(pd.DataFrame(rows))


def parquet(rows: pa.Table | list[dict[str, object]], **settings: object) -> bytes:
    written = io.BytesIO()
    pq.write_table(table(rows), written, **settings)
    return written.getvalue()


def arrow(
    rows: pa.Table | list[dict[str, object]],
    *,
    stream: bool = True,
    compression: str | None = None,
    most: int | None = None,
) -> bytes:
    """Return a stream, as `save_to_disk` of the `datasets` library writes it, or a file; in batches
    of `most` rows."""
    written, whole = io.BytesIO(), table(rows)
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with make(written, whole.schema, options=options) as writer:
        writer.write_table(whole, max_chunksize=most)
    return written.getvalue()


ROWS = [
    dict(zip(("query_id", "query", "doc_id", "document", "label"), row, strict=True))
    for row in (
        ("007", "return a gift", "d1", "Bring it back", 2),
        ("007", "return a gift", "d2", "Open hours", 0),
        ("8", "退货", "d1", "Bring it back", 0.5),
    )
]
NESTED = [
    {
        "query_id": query_id,
        "query": rows["query"].iloc[0],
        "docs": list(rows["document"]),
        "doc_ids": list(rows["doc_id"]),
        "true_scores": list(rows["label"]),
    }
    for query_id, rows in pd.DataFrame(ROWS).groupby("query_id", sort=False)
]
# Format → a file of the same rows.
SAME: dict[str, bytes] = {
    "CSV": csv(ROWS),
    "TSV": csv(ROWS, sep="\t"),
    "CSV (;)": csv(ROWS, sep=";"),
    "JSON lines": lines(ROWS),
    "JSON": json.dumps(ROWS, ensure_ascii=False, indent=2).encode(),
    "JSON, wrapped": json.dumps({"version": 1, "data": ROWS}).encode(),
    "nested JSON": json.dumps(NESTED).encode(),
    "nested JSON lines": lines(NESTED),
    "Parquet": parquet(ROWS),
    "Arrow": arrow([{**row, "label": float(row["label"])} for row in ROWS]),
}
MTEB = [
    {"query": "how to boot", "positive": ["press F2", "use usb"], "negative": ["cook rice"]},
    {"query": "cook", "positive": ["cook rice"], "negative": ["press F2"]},
]
BOOK = """query,docid,alice@example.com,Bob,Unknown
star wars,11,3,2,
star wars,1891,0,0,1
rambo,7555,3,3,3
rambo,1370,,,
"""
DETAIL = """Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating,overview,cast
OSC,Movies,8,star wars,11,1,Star Wars,3,"A space, far away",Mark
OSC,Movies,8,star wars,1891,2,Empire,,Ice,
OSC,Movies,8,rambo,7555,1,Rambo,2,Jungle,Sly
OSC,Movies,8,rambo,1370,2,Rocky,0,Boxing,Sly
"""
SNAPSHOT = """Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position,title
(3/5/26) Weekly,2026-03-05T12:00:00Z,8,dog,doc-2,2,Great dog
(3/5/26) Weekly,2026-03-05T12:00:00Z,8,dog,doc-1,1,Good dog
(3/6/26) Later,2026-03-06T12:00:00Z,8,dog,doc-2,1,Great dog
"""
WANDS = {
    "WANDS/query.csv": "query_id\tquery\tquery_class\n0\tsalon chair\tMassage Chairs\n"
    "1\tsmart coffee table\tCoffee Tables\n",
    "WANDS/product.csv": "product_id\tproduct_name\tproduct_class\tcategory hierarchy\t"
    "product_description\tproduct_features\trating_count\taverage_rating\treview_count\n"
    '0\tsolid wood bed\tBeds\tFurniture / Beds\ta 12" bed\tcolor:red\t15.0\t4.5\t15.0\n'
    "1\tchair\tChairs\tFurniture\t\tcolor:blue|legs:4\t\t\t\n",
    "WANDS/label.csv": "id\tquery_id\tproduct_id\tlabel\n0\t0\t0\tIrrelevant\n1\t0\t1\tExact\n"
    "2\t1\t1\tPartial\n",
}
EXAMPLES = [
    dict(
        zip(
            ("example_id", "query", "query_id", "product_id", "product_locale", "esci_label"),
            row,
            strict=True,
        ),
        small_version=0,
        large_version=1,
        split="test",
    )
    for row in (
        (0, "fan 80 cfm", 7, "B000MOO21W", "us", "I"),
        (1, "fan 80 cfm", 7, "B07X3Y6B1V", "us", "E"),
        (2, "ventilador", 9, "B07X3Y6B1V", "es", "S"),
        (3, "ventilador", 9, "B000MOO21W", "es", "C"),
    )
]
PRODUCTS = [
    {
        "product_id": product,
        "product_title": title,
        "product_description": None,
        "product_bullet_point": points,
        "product_brand": "Panasonic",
        "product_color": "White",
        "product_locale": locale,
    }
    for product, title, points, locale in (
        ("B000MOO21W", "Fan", "quiet", "us"),
        ("B07X3Y6B1V", "Home fan", "strong", "us"),
        ("B07X3Y6B1V", "Ventilador", "fuerte", "es"),
        ("B000MOO21W", "Abanico", "callado", "es"),
    )
]
ESCI = "query,product_id,product_locale,esci_label\n"
TITLES = "product_id,product_title,product_brand,product_description,product_locale\n"
JUDGED = [
    {
        "query": "red dress",
        "ratings": [
            {"docId": "B077ZJXCTS", "rating": "3.000"},
            {"docId": "B071S6LTJJ", "rating": "0.000"},
        ],
    },
    {"query": "laptop", "ratings": [{"docId": "B01IDSPDJI", "rating": 0.75}]},
]
JUDGMENT = {"name": "Imported", "type": "IMPORT_JUDGMENT", "judgmentRatings": JUDGED}
RRE = {
    "index": "core1",
    "corpora_file": "electric_basses.bulk",
    "id_field": "id",
    "topics": [
        {
            "description": "Fender basses",
            "query_groups": [
                {
                    "name": "brand search",
                    "queries": [
                        {"template": "only_q.json", "placeholders": {"$query": "fender"}},
                        {"template": "only_q.json", "placeholders": {"$query": "Fender bass"}},
                    ],
                    "relevant_documents": {"1": {"gain": 3}, "2": {"gain": 2}},
                }
            ],
        }
    ],
    "query_groups": [
        {
            "name": "colour",
            "queries": [{"placeholders": {"$lang": "en", "$query": "white bass"}}],
            "relevant_documents": {"3": ["7", "8"], "0": ["1"]},
        }
    ],
}
RRE_OF_QUEPID = {
    "id_field": "id",
    "index": "Movies",
    "template": "template.json",
    "queries": [
        {
            "placeholders": {"$query": "star trek"},
            "relevant_documents": {"1": ["193"], "2": ["157", "152"]},
        },
    ],
}
RANX_QRELS = {"q_1": {"doc_a": 1, "doc_b": 0}, "q_2": {"doc_c": 2}}
RANX_RUN = {"q_1": {"doc_a": 0.2, "doc_b": 0.9}, "q_2": {"doc_c": 3.5, "doc_d": 3.0}}
LETOR = """2 qid:10 1:0.031 2:0.5 5:3 #docid = GX029-35 inc = 1 prob = 0.08
0 qid:10 1:0.9 2:0.7 #docid = GX030-77 inc = 1 prob = 0.5
1 qid:11 1:0.4 2:0.1 #docid = GX029-35 inc = 1 prob = 0.5
"""
HUB = {
    "set/README.md": b"---\ndataset_info: {}\n---\n# A card",
    "set/dataset_infos.json": b'{"default": {"splits": {}}}',
    "set/corpus/corpus-00000-of-00002.parquet": parquet([{"_id": "d1", "title": "A", "text": "a"}]),
    "set/corpus/corpus-00001-of-00002.parquet": parquet([{"_id": "d2", "title": "B", "text": "b"}]),
    "set/queries/queries-00000-of-00001.parquet": parquet(
        [{"_id": "q1", "text": "what"}, {"_id": "q2", "text": "who"}]
    ),
    "set/qrels/test-00000-of-00001.parquet": parquet(
        [{"query-id": "q1", "corpus-id": "d1", "score": 1}]
    ),
    "set/qrels/train-00000-of-00001.parquet": parquet(
        [{"query-id": "q2", "corpus-id": "d2", "score": 1}]
    ),
}

# The shapes of JSON in which tutorials and frameworks write retrieved and relevant documents. The
# first query retrieves d3, d1 and d7, of which d1 is relevant, and misses d9, also relevant. The
# second query retrieves d2, which is relevant.
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
    """Return the entries of both queries; each value is a pair, one value per query."""
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
PARALLEL = {key: value.split() if isinstance(value, str) else value for key, value in FRAME.items()}
_SHAPES: dict[str, object] = {
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
    "parallel lists of rows": PARALLEL,
    "columns of a data frame": {
        key: dict(zip("0123", values, strict=True)) for key, values in PARALLEL.items()
    },
    "lists of grades": [[0, 3, 0], [2, 1]],
    "one list of grades": [0, 3, 2],
    "lists of 0 and 1, a line each": lines(GRADES),
    "pairs": [*zip(FOUND, RELEVANT, strict=True)],
    "one pair": [FOUND[0], RELEVANT[0]],
    "pairs by query": by_query([(FOUND[0], RELEVANT[0]), (FOUND[1], MARKS[1])]),
    "actual, predicted": {"actual": RELEVANT, "predicted": FOUND},
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
