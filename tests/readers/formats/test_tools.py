"""What other tools write: each file in the shape of its tool, and each broken in the usual ways."""

import io
import json
import zipfile

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.errors import DataError, FormatError
from rankdash.loading import load
from rankdash.readers import MappingNeeded, Source, read
from rankdash.readers.formats import huggingface
from rankdash.readers.parse.limits import ReadLimits


def qrels(parsed) -> set[tuple[str, str, float]]:
    """(query text or id, document, label)"""
    told = parsed.queries.dropna(subset=["text"])
    texts = dict(zip(told["query_id"], told["text"], strict=True))
    rows = parsed.qrels.itertuples(index=False, name=None)
    return {(texts.get(query, query), doc, label) for query, doc, label in rows}


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
JUDGED_PAIRS = {
    ("red dress", "B077ZJXCTS", 3),
    ("red dress", "B071S6LTJJ", 0),
    ("laptop", "B01IDSPDJI", 0.75),
}
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


@pytest.mark.parametrize("written", ["lines", "parquet"])
def test_mteb_rows_are_binary_labels(parse, written):
    lines = "\n".join(map(json.dumps, MTEB))
    parsed = parse({"test": lines if written == "lines" else parquet(MTEB)})

    texts = dict(zip(parsed.documents["doc_id"], parsed.documents["text"], strict=True))
    assert {(query, texts[doc], label) for query, doc, label in qrels(parsed)} == {
        ("how to boot", "press F2", 1),
        ("how to boot", "use usb", 1),
        ("how to boot", "cook rice", 0),
        ("cook", "cook rice", 1),
        ("cook", "press F2", 0),
    }


def test_a_quepid_book_is_one_label_of_all_raters(parse, found):
    parsed = parse({"book_7_export.csv": BOOK})

    assert parsed.formats["book_7_export.csv"].startswith("Quepid book")
    # 3 and 2 are no majority, so the lower one.
    assert qrels(parsed) == {("star wars", "11", 2), ("star wars", "1891", 0), ("rambo", "7555", 3)}
    assert found(parsed, "annotators").params["raters"] == 3
    assert "alice@example.com, Bob, Unknown" in found(parsed, "read_as_raters").text
    assert found(parsed, "no_label").line == 5
    assert set(parsed.queries.columns) == {"query_id", "text"}


def test_the_ratings_of_one_person_alone_need_no_rule(parse, codes, found):
    parsed = parse({"book.csv": "query,docid,Bob\nstar wars,11,3\nrambo,7555,0\n"})
    assert qrels(parsed) == {("star wars", "11", 3), ("rambo", "7555", 0)}
    assert "Bob" in found(parsed, "read_as_raters").text
    assert not {"annotators", "annotators_rule"} & codes(parsed)


def test_a_quepid_case_has_ranks_texts_and_ratings(parse):
    parsed = parse({"case.csv": DETAIL})

    assert qrels(parsed) == {("star wars", "11", 3), ("rambo", "7555", 2), ("rambo", "1370", 0)}
    assert [parsed.candidates.documents_of(query)[0] for query in parsed.queries["query_id"]] == [
        ["11", "1891"],
        ["7555", "1370"],
    ]
    documents = parsed.documents.set_index("doc_id")
    assert documents.loc["11", "title"] == "Star Wars"
    assert documents.loc["11", "text"] == "A space, far away\nMark"
    assert set(parsed.queries.columns) == {"query_id", "text"}


def test_a_quepid_snapshot_is_a_ranking_and_one_of_several_is_taken(parse, found):
    parsed = parse({"snapshot.csv": SNAPSHOT, "ratings.csv": "query,docid,rating\ndog,doc-1,1\n"})

    assert parsed.candidates.documents_of("q1")[0] == ["doc-1", "doc-2"]
    assert found(parsed, "one_snapshot").params["taken"] == "(3/5/26) Weekly"


def test_scores_of_quepid_without_documents_say_what_to_export(parse):
    general = "Team Name,Case Name,Case ID,Query Text,Score,Count\nT,C,8,dog,30,\nT,C,8,cat,0,\n"
    with pytest.raises(FormatError, match="without documents") as refused:
        parse({"case.csv": general})
    assert "Detail" in refused.value.remedy


def test_wands_is_tabs_under_csv_with_words_as_labels(parse, found):
    parsed = parse(WANDS)

    assert qrels(parsed) == {
        ("salon chair", "0", 0),
        ("salon chair", "1", 2),
        ("smart coffee table", "1", 1),
    }
    assert parsed.documents.set_index("doc_id").loc["0", "text"] == 'a 12" bed'
    assert list(parsed.queries["query_class"]) == ["Massage Chairs", "Coffee Tables"]


@pytest.mark.parametrize("written", ["parquet", "csv"])
def test_esci_joins_products_by_id_and_locale_and_the_locale_is_a_segment(parse, codes, written):
    tables = {"shopping_queries_dataset_examples": EXAMPLES, "x_products": PRODUCTS}
    files = {
        name: parquet(rows) if written == "parquet" else pd.DataFrame(rows).to_csv().encode()
        for name, rows in tables.items()
    }

    parsed = parse(files)

    assert qrels(parsed) == {
        ("fan 80 cfm", "B000MOO21W_us", 0),
        ("fan 80 cfm", "B07X3Y6B1V_us", 3),
        ("ventilador", "B07X3Y6B1V_es", 2),
        ("ventilador", "B000MOO21W_es", 1),
    }
    documents = parsed.documents.set_index("doc_id")
    assert documents.loc["B07X3Y6B1V_es", "title"] == "Ventilador"
    assert documents.loc["B07X3Y6B1V_es", "text"] == "fuerte\nPanasonic\nWhite"
    assert set(parsed.queries.columns) == {"query_id", "text", "product_locale", "split"}
    assert list(parsed.queries["product_locale"]) == ["us", "es"]
    assert "repeated_id" not in codes(parsed)


def test_products_of_two_locales_stay_two_beside_examples_of_one(parse):
    tables = {"dataset_examples": EXAMPLES[:2], "x_products": PRODUCTS}

    parsed = parse({name: parquet(rows) for name, rows in tables.items()})

    assert qrels(parsed) == {
        ("fan 80 cfm", "B000MOO21W_us", 0),
        ("fan 80 cfm", "B07X3Y6B1V_us", 3),
    }
    titles = parsed.documents.set_index("doc_id")["title"]
    assert titles["B07X3Y6B1V_us"] == "Home fan"
    assert titles.get("B07X3Y6B1V_es", "Ventilador") == "Ventilador"


def test_esci_of_one_locale_keeps_its_ids(parse):
    rows = [row for row in EXAMPLES if row["product_locale"] == "us"]
    parsed = parse({"e": parquet(rows)})

    assert set(parsed.qrels["doc_id"]) == {"B000MOO21W", "B07X3Y6B1V"}


def test_the_gains_of_esci_are_a_choice(parse):
    gains = {"E": 1.0, "S": 0.1, "C": 0.01, "I": 0.0}
    parsed = parse({"e": parquet(EXAMPLES)}, words={"e": gains})

    assert sorted(parsed.qrels["label"]) == [0, 0.01, 0.1, 1]


@pytest.mark.parametrize(
    "document",
    [
        JUDGMENT,
        JUDGED,
        {"took": 1, "hits": {"total": {"value": 1}, "hits": [{"_id": "x", "_source": JUDGMENT}]}},
    ],
    ids=["put in", "the list", "the plugin's answer"],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_opensearch_judgments(parse, document, indent):
    parsed = parse({"judgments": json.dumps(document, indent=indent)})

    assert qrels(parsed) == JUDGED_PAIRS
    assert parsed.formats == {"judgments": "OpenSearch judgments"}


def test_rre_ratings_hold_for_every_query_of_a_group(parse):
    parsed = parse({"ratings.json": json.dumps(RRE, indent=1)})

    assert qrels(parsed) == {
        *(
            (query, doc, gain)
            for query in ("fender", "Fender bass")
            for doc, gain in (("1", 3), ("2", 2))
        ),
        ("white bass", "7", 3),
        ("white bass", "8", 3),
        ("white bass", "1", 0),
    }
    assert list(parsed.queries["query group"]) == ["brand search", "brand search", "colour"]
    assert parsed.queries["topic"].iloc[0] == "Fender basses"


def test_rre_ratings_as_quepid_writes_them(parse):
    parsed = parse({"case.json": json.dumps(RRE_OF_QUEPID)})

    assert qrels(parsed) == {
        ("star trek", "193", 1),
        ("star trek", "157", 2),
        ("star trek", "152", 2),
    }


def test_ranx_qrels_and_runs_are_told_apart_by_their_values(parse):
    parsed = parse({"a.json": json.dumps(RANX_QRELS), "b.json": json.dumps(RANX_RUN, indent=2)})

    assert qrels(parsed) == {("q_1", "doc_a", 1), ("q_1", "doc_b", 0), ("q_2", "doc_c", 2)}
    assert parsed.candidates.documents_of("q_1")[0] == ["doc_b", "doc_a"]


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


def test_letor_without_a_person_gives_labels(parse):
    parsed = parse({"fold1.txt": LETOR})

    assert qrels(parsed) == {("10", "GX029-35", 2), ("10", "GX030-77", 0), ("11", "GX029-35", 1)}
    assert parsed.candidates is None


def test_letor_asks_which_feature_is_the_score_and_a_missing_one_is_zero(parse):
    with pytest.raises(MappingNeeded) as asked:
        parse({"fold1.txt": LETOR}, ask=True)
    assert asked.value.columns[:3] == ["query_id", "doc_id", "label"]
    assert asked.value.columns[3:] == ["feature 1", "feature 2", "feature 5"]
    fields = {field: column for field, column in asked.value.guess.items() if column}
    assert set(fields) == {"query_id", "doc_id", "label"}

    parsed = parse(
        {"fold1.txt": LETOR}, ask=True, mapping={"fold1.txt": {**fields, "score": "feature 5"}}
    )

    assert parsed.candidates.documents_of("10")[0] == ["GX029-35", "GX030-77"]
    assert list(parsed.candidates.documents_of("10")[1]) == [3, 0]


def test_letor_without_documents_names_them_and_comments_may_name_queries(parse, found):
    text = "# qid:1: rambo\n# more\n3 qid:1 1:2.5\n0 qid:1 1:1.5\n1 qid:2 1:0.5\n"
    parsed = parse({"x": text})

    assert qrels(parsed) == {("rambo", "1-1", 3), ("rambo", "1-2", 0), ("2", "2-1", 1)}
    assert found(parsed, "made_doc_id").count == 3


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


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_of_the_hub_is_read_by_its_shards_and_one_split(parse, zipped, found, packed):
    parsed = parse({"set.zip": zipped(HUB)} if packed else HUB)

    assert qrels(parsed) == {("what", "d1", 1)}
    assert set(parsed.documents["doc_id"]) == {"d1", "d2"}
    split = found(parsed, "one_split")
    assert split.params["taken"] == "test"
    assert split.params["count"] == 1 + len(split.params["others"].split(", ")) == split.count + 1


def test_shards_of_rows_are_read_together_and_other_splits_left_aside(parse):
    row = {"document": "x", "label": 1}
    parsed = parse(
        {
            "data/test-00000-of-00002.parquet": parquet([{"query": "a", **row}]),
            "data/test-00001-of-00002.parquet": parquet([{"query": "b", **row}]),
            "data/train-00000-of-00001.parquet": parquet([{"query": "c", **row}]),
        }
    )

    assert list(parsed.queries["text"]) == ["a", "b"]


def test_a_data_set_saved_to_disk_is_arrow(parse):
    rows = [{"query": "a", "docs": ["x", "y"], "labels": [1, 0]}]
    parsed = parse(
        {
            "s/dataset_dict.json": '{"splits": ["train", "test"]}',
            "s/test/state.json": '{"_split": "test"}',
            "s/test/data-00000-of-00001.arrow": arrow(rows),
            "s/train/data-00000-of-00001.arrow": arrow([{**rows[0], "query": "b"}]),
        }
    )

    assert list(parsed.queries["text"]) == ["a"]
    assert sorted(parsed.qrels["label"]) == [0, 1]


def test_the_lists_of_candidates_of_the_hub_are_pairs(parse):
    ranked = [{"query-id": "q1", "corpus-ids": ["d2", "d1"]}]
    files = {**HUB, "set/top_ranked/test-00000-of-00001.parquet": parquet(ranked)}

    assert set(parse(files).pairs.itertuples(index=False, name=None)) == {
        ("q1", "d2"),
        ("q1", "d1"),
    }


# What is broken, where it is, and what is said.


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({"a.csv": "docid,alice,Bob\n11,3,2\n12,0,0\n"}, "query"),
        ({"a.csv": BOOK.replace("docid,", "film,")}, "document"),
        ({"a.csv": WANDS["WANDS/label.csv"].replace("label", "verdict")}, "label"),
        ({"a.jsonl": '{"query": "a", "score": 1}'}, "document"),
    ],
)
def test_a_missing_column_is_asked_for_by_name(parse, files, missing):
    with pytest.raises(MappingNeeded) as asked:
        parse(files)
    assert (asked.value.file, asked.value.missing) == (next(iter(files)), missing)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("book", BOOK.replace("11,3,2", "11,3,gut"), 2),
        ("label.csv", WANDS["WANDS/label.csv"].replace("Partial", "Passable"), 4),
        (
            "ratings.json",
            json.dumps(JUDGMENT, indent=1).replace('"0.000"', '"unsure"'),
            12,
        ),
        ("qrels.json", json.dumps(RANX_QRELS, indent=1).replace('"doc_b": 0', '"doc_b": "no"'), 4),
        ("rre.json", json.dumps(RRE_OF_QUEPID, indent=1).replace('"1": [', '"odd": ['), 12),
        ("letor", LETOR.replace("0 qid", "none qid"), 2),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_an_unknown_label_is_refused_with_file_line_and_remedy(parse, name, text, line):
    (refused,) = [f for f in parse({name: text}).findings if f.code == "bad_label"]
    assert (refused.file, refused.line) == (name, line)
    assert refused.remedy


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        (json.dumps({**JUDGMENT, "judgmentRatings": [*JUDGED, {"query": "x"}]}), 1, "no_documents"),
        (
            json.dumps(JUDGMENT, indent=1).replace('"docId": "B01IDSPDJI"', '"doc": "B0"'),
            21,
            "no_document",
        ),
        (json.dumps({**RANX_QRELS, "q_3": {}}, indent=1), 9, "no_documents"),
        (LETOR + "3 qid:12 1:2:3\nnothing at all\n", 4, "bad_line"),
        (LETOR + "1 qid:9\n1\n", 5, "bad_line"),
        # Cut off within "qid:95 1:0.4": with a line end it would be a row whose features are 0.
        (LETOR + "1 qid:9", 4, "bad_line"),
    ],
)
def test_a_row_without_what_it_needs_is_refused_by_line(parse, text, line, code):
    (refused,) = [f for f in parse({"file": text}).findings if f.code == code]
    assert (refused.file, refused.line) == ("file", line)
    assert refused.remedy


def test_more_bad_rows_than_good_ones_keep_nothing(parse):
    bad = json.dumps(JUDGMENT, indent=1).replace("docId", "doc", 2)
    with pytest.raises(FormatError, match="Rows that cannot be used: 2 of 3,") as refused:
        parse({"judgments": bad})
    assert refused.value.line == 8


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        ({"qrels.json": json.dumps(RANX_QRELS)}, "query_id,query\n1,a\n2,b\n"),
        ({"fold.txt": LETOR}, "query_id,query\nx,a\ny,b\n"),
        ({"label.csv": WANDS["WANDS/label.csv"]}, "query_id,query\nq0,a\nq1,b\n"),
    ],
)
def test_ids_that_match_nothing_are_told_with_file_line_and_remedy(parse, found, labels, texts):
    finding = found(parse({**labels, "queries.csv": texts}), "ids_match_nothing")

    assert finding.severity == "warning"
    assert finding.file in labels
    assert finding.line
    assert "queries.csv" in finding.text
    assert finding.remedy


def test_a_run_whose_ids_match_no_label_is_an_error():
    run = {"other": {"doc_a": 0.5, "doc_b": 0.25}}
    files = {"qrels.json": RANX_QRELS, "run.json": run}
    with pytest.raises(DataError, match="that have a label: none of 1") as refused:
        load([Source(name, json.dumps(value).encode()) for name, value in files.items()])
    assert refused.value.remedy


@pytest.mark.parametrize(
    "members",
    [
        HUB,
        {name: text.encode() for name, text in WANDS.items()},
        {"book.csv": BOOK.encode()},
        {"j.json": json.dumps(JUDGMENT).encode()},
        {"l.txt": LETOR.encode()},
    ],
    ids=["hub", "wands", "quepid", "opensearch", "letor"],
)
def test_a_truncated_zip_is_refused_whole(parse, zipped, members):
    whole = zipped(members)
    with pytest.raises(FormatError, match="damaged or cut short") as refused:
        parse({"set.zip": whole[: len(whole) * 2 // 3]})
    assert refused.value.file == "set.zip"
    assert refused.value.remedy
    assert zipfile.is_zipfile(io.BytesIO(whole))


@pytest.mark.parametrize("text", [json.dumps(d, indent=1) for d in (JUDGMENT, RRE, RANX_RUN)])
def test_cut_json_is_refused_with_a_line(parse, text):
    with pytest.raises(FormatError, match="JSON breaks") as refused:
        parse({"cut.json": text[:-20]})
    assert refused.value.line
    assert refused.value.remedy


@settings(max_examples=40)
@given(st.binary(max_size=60), st.integers(0, 400))
def test_damaged_arrow_is_refused_and_never_crashes(junk, at):
    data = bytearray(arrow([{"query": "a", "document": "x", "label": 1}]))
    data[at : at + len(junk)] = junk
    try:
        read([Source("x.arrow", bytes(data))])
    except DataError as refused:
        assert refused.file == "x.arrow"


def test_arrow_beyond_the_limits_is_refused(parse):
    rows = [{"query": "a", "document": str(n), "label": 1} for n in range(9)]
    with pytest.raises(DataError, match="more than 5 rows"):
        parse({"x": arrow(rows)}, limits=ReadLimits(rows=5))
    with pytest.raises(DataError, match="more than 2 columns"):
        parse({"x": arrow(rows)}, limits=ReadLimits(columns=2))
    assert len(parse({"x": arrow(rows)}, limits=ReadLimits(rows=9, columns=3)).qrels) == 9


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


def test_rows_of_a_snapshot_without_a_name_are_one_snapshot(parse, codes):
    rows = pd.read_csv(io.StringIO(SNAPSHOT))[:2].assign(**{"Snapshot Name": None})
    files = {"ratings.csv": "query,docid,rating\ndog,doc-1,1\n"}
    parsed = parse({"snapshot": parquet(rows.to_dict("records")), **files})
    assert parsed.candidates.documents_of("q1")[0] == ["doc-1", "doc-2"]
    assert "one_snapshot" not in codes(parsed)


def test_a_file_of_esci_that_has_titles_beside_its_queries_keeps_the_locale(parse):
    rows = [{**row, "product_title": f"title {at}"} for at, row in enumerate(EXAMPLES)]
    parsed = parse({"e": parquet(rows)})
    assert list(parsed.queries["product_locale"]) == ["us", "es"]
    assert list(parsed.documents["title"]) == ["title 0", "title 1", "title 2", "title 3"]


def test_a_product_without_a_locale_keeps_its_id(parse):
    rows = [*EXAMPLES[:3], {**EXAMPLES[3], "product_locale": None}]
    parsed = parse({"e": parquet(rows)})
    assert set(parsed.qrels["doc_id"]) == {
        "B000MOO21W_us", "B07X3Y6B1V_us", "B07X3Y6B1V_es", "B000MOO21W"
    }  # fmt: skip


@pytest.mark.parametrize(("there", "missing"), [(2, 1), (3, 0)])
def test_files_of_a_table_that_are_not_there_are_counted(parse, there, missing):
    names = [f"qrels/test-0000{at}-of-00003.parquet" for at in range(there)]
    rows = [{"query-id": "q", "corpus-id": name, "score": 1} for name in names]
    parsed = parse({name: parquet([row]) for name, row in zip(names, rows, strict=True)})
    found = [each.count for each in parsed.findings if each.code == "missing_shards"]
    assert found == ([missing] if missing else [])


def test_an_entry_of_opensearch_without_ratings_is_refused_by_line(parse, found):
    entries = [*JUDGED, {"query": "sofa", "ratings": []}]
    parsed = parse({"x": json.dumps({**JUDGMENT, "judgmentRatings": entries})})
    assert qrels(parsed) == JUDGED_PAIRS
    assert found(parsed, "no_documents").examples == ("sofa",)


def test_a_document_of_rre_may_have_a_rating_in_place_of_a_gain(parse):
    documents = {"1": {"rating": 2}, "2": {"gain": 3, "rating": 1}}
    entry = {"placeholders": {"$query": "fender"}, "relevant_documents": documents}
    parsed = parse({"x": json.dumps({"queries": [entry]})})
    assert qrels(parsed) == {("fender", "1", 2), ("fender", "2", 3)}


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
