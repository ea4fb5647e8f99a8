"""What other tools write: each file in the shape of its tool, and each broken in the usual ways."""

import io
import json

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.errors import DataError
from rankdash.loading import load
from rankdash.readers import MappingNeeded, Source, read
from rankdash.readers.formats import huggingface
from tests.readers.reading import shown


def parquet(rows: list[dict[str, object]]) -> bytes:
    written = io.BytesIO()
    pd.DataFrame(rows).to_parquet(written)
    return written.getvalue()


def arrow(rows: list[dict[str, object]]) -> bytes:
    """A stream, as `save_to_disk` of the `datasets` library writes it."""
    table = pa.Table.from_pylist(rows)
    written = io.BytesIO()
    with pa.ipc.new_stream(written, table.schema) as stream:
        stream.write_table(table)
    return written.getvalue()


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


def shape(value: object) -> bytes:
    """JSON, a line each for what is inside."""
    return json.dumps(value, indent=1).encode()


def test_what_other_tools_write_is_read(approved, zipped):
    row = {"document": "x", "label": 1}
    listed = [{"query": "a", "docs": ["x", "y"], "labels": [1, 0]}]
    ranked = [{"query-id": "q1", "corpus-ids": ["d2", "d1"]}]
    answer = {
        "took": 1,
        "hits": {"total": {"value": 1}, "hits": [{"_id": "x", "_source": JUDGMENT}]},
    }
    own = {"1": {"rating": 2}, "2": {"gain": 3, "rating": 1}}
    titled = [{**each, "product_title": f"title {at}"} for at, each in enumerate(EXAMPLES)]
    gains = {"words": {"e": {"E": 1.0, "S": 0.1, "C": 0.01, "I": 0.0}}}
    unnamed = pd.read_csv(io.StringIO(SNAPSHOT))[:2].assign(**{"Snapshot Name": None})
    rated = {"ratings.csv": "query,docid,rating\ndog,doc-1,1\n"}
    named = "# qid:1: rambo\n# more\n3 qid:1 1:2.5\n0 qid:1 1:1.5\n1 qid:2 1:0.5\n"
    score = {"query_id": "query_id", "doc_id": "doc_id", "label": "label", "score": "feature 5"}
    cases = {
        "MTEB: rows of lists are labels 1 and 0": {"test": "\n".join(map(json.dumps, MTEB))},
        "MTEB: Parquet": {"test": parquet(MTEB)},
        "Quepid: a book is one label of all raters, the lower one where none has a majority": {
            "book_7_export.csv": BOOK
        },
        "Quepid: the ratings of one person need no rule": {
            "book.csv": "query,docid,Bob\nstar wars,11,3\nrambo,7555,0\n"
        },
        "Quepid: a case has ranks, texts and ratings": {"case.csv": DETAIL},
        "Quepid: of several snapshots the first is taken": {"snapshot.csv": SNAPSHOT, **rated},
        "Quepid: rows without the name of a snapshot are one": {
            "snapshot": parquet(unnamed.to_dict("records")), **rated
        },
        "Quepid: scores without documents say what to export": {
            "case.csv": "Team Name,Case Name,Case ID,Query Text,Score,Count\nT,C,8,dog,30,\n"
        },
        "WANDS: tabs under csv, words as labels": WANDS,
        "ESCI: products are joined by id and locale": {
            "shopping_queries_dataset_examples": parquet(EXAMPLES), "x_products": parquet(PRODUCTS)
        },
        "ESCI: CSV": {
            "examples": pd.DataFrame(EXAMPLES).to_csv().encode(),
            "x_products": pd.DataFrame(PRODUCTS).to_csv().encode(),
        },
        "ESCI: products of two locales stay two beside examples of one": {
            "dataset_examples": parquet(EXAMPLES[:2]), "x_products": parquet(PRODUCTS)
        },
        "ESCI: one locale keeps its ids": {"e": parquet(EXAMPLES[:2])},
        "ESCI: a product without a locale keeps its id": {
            "e": parquet([*EXAMPLES[:3], {**EXAMPLES[3], "product_locale": None}])
        },
        "ESCI: titles beside the queries": {"e": parquet(titled)},
        "ESCI: the gains are a choice": ({"e": parquet(EXAMPLES)}, gains),
        "OpenSearch: what is put in": {"judgments": json.dumps(JUDGMENT)},
        "OpenSearch: the list": {"judgments": shape(JUDGED)},
        "OpenSearch: the plugin's answer": {"judgments": shape(answer)},
        "RRE: ratings hold for every query of a group": {"ratings.json": shape(RRE)},
        "RRE: as Quepid writes them": {"case.json": json.dumps(RRE_OF_QUEPID)},
        "RRE: a rating in place of a gain": {
            "x": shape({"queries": [{"placeholders": {"$query": "x"}, "relevant_documents": own}]})
        },
        "ranx: qrels and runs are told apart by their values": {
            "a.json": json.dumps(RANX_QRELS), "b.json": shape(RANX_RUN)
        },
        "LETOR: without a person there are labels only": {"fold1.txt": LETOR},
        "LETOR: a person is asked for the score": ({"fold1.txt": LETOR}, {"ask": True}),
        "LETOR: a feature is the score, 0 where it is missing": (
            {"fold1.txt": LETOR}, {"ask": True, "mapping": {"fold1.txt": score}}
        ),
        "LETOR: comments may name queries, and documents get names": {"x": named},
        "hub: shards and one split": HUB,
        "hub: packed": {"set.zip": zipped(HUB)},
        "hub: lists of candidates are pairs": {
            **HUB, "set/top_ranked/test-00000-of-00001.parquet": parquet(ranked)
        },
        "hub: shards of rows are read together, other splits left aside": {
            "data/test-00000-of-00002.parquet": parquet([{"query": "a", **row}]),
            "data/test-00001-of-00002.parquet": parquet([{"query": "b", **row}]),
            "data/train-00000-of-00001.parquet": parquet([{"query": "c", **row}]),
        },
        **{
            f"hub: {there} of 3 files of a table": {
                f"qrels/test-0000{at}-of-00003.parquet": parquet(
                    [{"query-id": "q", "corpus-id": f"d{at}", "score": 1}]
                )
                for at in range(there)
            }
            for there in (2, 3)
        },
        "hub: saved to disk as Arrow": {
            "s/dataset_dict.json": '{"splits": ["train", "test"]}',
            "s/test/state.json": '{"_split": "test"}',
            "s/test/data-00000-of-00001.arrow": arrow(listed),
            "s/train/data-00000-of-00001.arrow": arrow([{**listed[0], "query": "b"}]),
        },
    }  # fmt: skip
    approved("readers/tools.en", shown(cases))


def test_what_lacks_a_part_is_asked_for_or_refused_by_line(approved):
    texts = {"queries.csv": "query_id,query\nq0,a\nq1,b\n"}
    ranx, letor = shape(RANX_QRELS), LETOR
    cases = {
        "no query": {"a.csv": "docid,alice,Bob\n11,3,2\n12,0,0\n"},
        "no document": {"a.csv": BOOK.replace("docid,", "film,")},
        "no document in JSON": {"a.jsonl": '{"query": "a", "score": 1}'},
        "no label": {"a.csv": WANDS["WANDS/label.csv"].replace("label", "verdict")},
        "a word of RRE": {
            "rre.json": shape(RRE_OF_QUEPID).replace(b'"1": [', b'"odd": [')
        },
        "a word of LETOR": {"letor": letor.replace("0 qid", "none qid")},
        "an entry without ratings in one line": {
            "file": json.dumps({**JUDGMENT, "judgmentRatings": [*JUDGED, {"query": "x"}]})
        },
        "a rating without a document": {
            "file": shape(JUDGMENT).replace(b'"docId": "B01IDSPDJI"', b'"doc": "B0"')
        },
        "more ratings without a document than with one": {
            "file": shape(JUDGMENT).replace(b"docId", b"doc", 2)
        },
        "lines that are no LETOR": {"file": letor + "3 qid:12 1:2:3\nnothing at all\n"},
        "lines without features where others have some": {"file": letor + "1 qid:9\n1\n"},
        # With a line end it would be a row whose features are 0.
        'cut off within "qid:95 1:0.4"': {"file": letor + "1 qid:9"},
        "ids of ranx that match no text": {"qrels.json": ranx, **texts},
        "ids of LETOR that match no text": {"fold.txt": letor, **texts},
        "ids of WANDS that match no text": {"label.csv": WANDS["WANDS/label.csv"], **texts},
    }  # fmt: skip
    approved("readers/tools_lacking.en", shown(cases))


def test_a_run_whose_ids_match_no_label_is_an_error():
    files = {"qrels.json": RANX_QRELS, "run.json": {"other": {"doc_a": 0.5, "doc_b": 0.25}}}
    with pytest.raises(DataError, match="that have a label: none of 1") as refused:
        load([Source(name, shape(value)) for name, value in files.items()])
    assert refused.value.remedy


identities = st.text('abcdefgh_0123456789"\\é退\n', min_size=1, max_size=6).filter(
    lambda text: bool(text.strip())
)


@settings(max_examples=40)
@given(
    st.dictionaries(
        identities.map("q-{}".format),
        st.dictionaries(identities.map("d-{}".format), st.integers(0, 4), min_size=1, max_size=4),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([None, 1]),
)
def test_whatever_ranx_qrels_hold_is_read(document, indent):
    parsed = read([Source("x", json.dumps(document, indent=indent).encode())])
    assert {
        (query, doc, float(label))
        for query, labels in document.items()
        for doc, label in labels.items()
    } == set(parsed.qrels.itertuples(index=False, name=None))


values = st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 3), st.dictionaries(st.integers(1, 5), values)),
        min_size=1,
        max_size=8,
    )
)
def test_whatever_features_a_line_has_every_line_is_a_row(lines):
    text = "".join(
        f"{label} qid:{query} {' '.join(f'{k}:{v}' for k, v in vector.items())} # d{number}\n"
        for number, (label, query, vector) in enumerate(lines)
    )
    parsed = read([Source("x", text.encode())])
    assert set(parsed.qrels.itertuples(index=False, name=None)) == {
        (str(query), f"d{number}", float(label)) for number, (label, query, _) in enumerate(lines)
    }


@settings(max_examples=40)
@given(st.binary(max_size=60), st.integers(0, 400))
def test_damaged_arrow_is_refused_and_never_crashes(junk, at):
    data = bytearray(arrow([{"query": "a", "document": "x", "label": 1}]))
    data[at : at + len(junk)] = junk
    try:
        read([Source("x.arrow", bytes(data))])
    except DataError as refused:
        assert refused.file == "x.arrow"


@pytest.mark.parametrize(
    ("cells", "ratings"),
    [
        (["1", "x"], True),
        (["1", "x", "y"], False),
        (["12a", "13b"], False),
        (["0", "100", None], True),
        (["0", "101"], False),
        (["0.5"], False),
        ([str(n) for n in range(12)], True),
        ([str(n) for n in range(13)], False),
        ([None, ""], True),
    ],
)
def test_a_column_of_few_whole_numbers_is_one_of_ratings(parse, cells, ratings):
    rows = [f"gift {at},d{at},1,{cell or ''}" for at, cell in enumerate(cells)]
    files = {"x.csv": "\n".join(["query,docid,Ann,Bob", *rows])}
    if ratings:
        assert parse(files).formats["x.csv"].startswith("Quepid book")
    else:
        with pytest.raises(MappingNeeded):
            parse(files)


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("a/test-00000-of-00002.parquet", True),
        ("a/Test-00000-of-00002.parquet", True),
        ("a/TEST/0000.parquet", True),
        ("a/test/0000.parquet", True),
        ("a/test/data-00000-of-00002.arrow", True),
        ("a/b/data-00000-of-00002.arrow", False),
        ("a/test/corpus-00000-of-00002.parquet", False),
        ("a/corpus-00000-of-00002.parquet", False),
        ("a/b/0000.parquet", False),
        ("a/test/rows.parquet", False),
    ],
)
def test_a_shard_of_the_split_test_sets_the_split_train_of_its_folder_aside(file, test):
    train = "a/train-00000-of-00001.parquet"
    for listed in ([file, train], [train, file]):
        aside, notes = huggingface.other_splits(listed)
        assert (aside, list(notes)) == (({train}, [file]) if test else (set(), []))
