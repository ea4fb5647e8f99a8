"""Files of other tools: each in the shape of its tool, and each broken in the usual ways."""

import io
import json

import pandas as pd

from rankdash.core.readers.formats import exports
from tests.readers.reading import shown
from tests.readers.samples import (
    BOOK,
    DETAIL,
    ESCI,
    EXAMPLES,
    HUB,
    JUDGED,
    JUDGMENT,
    LETOR,
    MTEB,
    PRODUCTS,
    RANX_QRELS,
    RANX_RUN,
    RRE,
    RRE_OF_QUEPID,
    SNAPSHOT,
    TITLES,
    WANDS,
    arrow,
    parquet,
    shape,
)


def test_what_other_tools_write_is_read(approved):
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
        "ESCI: products of two locales stay two beside examples of one": {
            "dataset_examples": parquet(EXAMPLES[:2]), "x_products": parquet(PRODUCTS)
        },
        "ESCI: one locale keeps its ids": {"e": parquet(EXAMPLES[:2])},
        "ESCI: a product without a locale keeps its id": {
            "e": parquet([*EXAMPLES[:3], {**EXAMPLES[3], "product_locale": None}])
        },
        "ESCI: titles beside the queries": {"e": parquet(titled)},
        **{
            f"ESCI: {why}": {"examples": f"{ESCI}fan,B1,us,E\n", "products": f"{TITLES}{more}"}
            for why, more in (
                ("a product of one locale keeps its id", "B1,Fan,Dyson,strong,us\n"),
                ("another id in another locale changes none", "B1,Fan,,,us\nB2,Fan,,,es\n"),
                ("nor does a row twice", "B1,Fan,,,us\nB1,Fan,,,us\n"),
                ("one id in two locales changes all", "B1,Fan,,,us\nB1,Abanico,,,es\nB2,N,,,\n"),
            )
        },
        **{
            f"ESCI: no table of {header}": {"x": f"{header},label\na,b,1\n"}
            for header in ("product_id,query", "query,product_locale")
        },
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
    cases = {
        "no query": {"a.csv": "docid,alice,Bob\n11,3,2\n12,0,0\n"},
        "no document": {"a.csv": BOOK.replace("docid,", "film,")},
        "no document in JSON": {"a.jsonl": '{"query": "a", "score": 1}'},
        "a rating without a document": {
            "file": shape(JUDGMENT).replace(b'"docId": "B01IDSPDJI"', b'"doc": "B0"')
        },
        "more ratings without a document than with one": {
            "file": shape(JUDGMENT).replace(b"docId", b"doc", 2)
        },
        "lines that are no LETOR": {"file": LETOR + "3 qid:12 1:2:3\nnothing at all\n"},
        "lines without features where others have some": {"file": LETOR + "1 qid:9\n1\n"},
        # With a line end it would be a row with all features 0.
        'cut off within "qid:95 1:0.4"': {"file": LETOR + "1 qid:9"},
        **{
            f"a column of {', '.join(cells)} beside one of ratings": {
                "x.csv": "query,docid,Ann,Bob\n"
                + "".join(f"gift {at},d{at},1,{cell}\n" for at, cell in enumerate(cells))
            }
            for cells in (
                ("1", "x"), ("1", "x", "y"), ("12a", "13b"), ("0", "100", ""), ("0", "101"),
                ("0.5",), ("", ""), tuple(map(str, range(12))), tuple(map(str, range(13))),
            )
        },
        "ids of LETOR that match no text": {"fold.txt": LETOR, **texts},
    }  # fmt: skip
    approved("readers/tools_lacking.en", shown(cases))


def test_a_shard_of_the_split_test_sets_the_split_train_of_its_folder_aside():
    train, of = "a/train-00000-of-00001.parquet", "-00000-of-00002.parquet"
    arrow_of = "data-00000-of-00002.arrow"
    tests = {f"a/{name}" for name in (f"test{of}", f"Test{of}", "TEST/0000.parquet")}
    tests |= {"a/test/0000.parquet", f"a/test/{arrow_of}"}
    others = {f"a/b/{arrow_of}", f"a/test/corpus{of}", f"a/corpus{of}", "a/b/0000.parquet"}
    for file in tests | others | {"a/test/rows.parquet"}:
        for listed in ([file, train], [train, file]):
            aside, notes = exports.other_splits(listed)
            expected = ({train}, [file]) if file in tests else (set(), [])
            assert (aside, list(notes)) == expected, listed
