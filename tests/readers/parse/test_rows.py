"""Rows of a file: a label without a rank or a score is a label all the same."""

import json

import pandas as pd
import pytest

import rankdash as rd
from rankdash.errors import FormatError
from rankdash.loading import load
from rankdash.readers import Source
from rankdash.readers.parse.skipped_rows import Refusals
from tests.readers.reading import shown
from tests.readers.samples import lines, parquet, shape

# Five questions of an FAQ. The search finds the answers of three among its first three, and those
# of two not at all.
FAQ = pd.DataFrame(
    [
        ("q1", "How do I return it?", "a1", "Send it back.", 1, 1),
        ("q1", "How do I return it?", "a9", "Our shops.", 0, 2),
        ("q2", "Where is my parcel?", "a9", "Our shops.", 0, 1),
        ("q2", "Where is my parcel?", "a2", "Follow it online.", 1, 2),
        ("q3", "Can I pay later?", "a9", "Our shops.", 0, 1),
        ("q3", "Can I pay later?", "a8", "Gift cards.", 0, 2),
        ("q3", "Can I pay later?", "a3", "Pay in 30 days.", 1, 3),
        ("q4", "Do you ship abroad?", "a9", "Our shops.", 0, 1),
        ("q4", "Do you ship abroad?", "a4", "To all of Europe.", 1, None),
        ("q5", "Is it in stock?", "a8", "Gift cards.", None, 1),
        ("q5", "Is it in stock?", "a5", "See the product page.", 1, None),
    ],
    columns=["query_id", "query", "doc_id", "document", "label", "rank"],
)


# An entry for each query, with lists; `initial_scores` fall with the rank.
ENTRIES = [
    {
        "query_id": query,
        "query": rows["query"].iloc[0],
        "docs": rows["document"].to_list(),
        "doc_ids": rows["doc_id"].to_list(),
        "true_scores": [None if pd.isna(x) else x for x in rows["label"]],
        "initial_scores": [None if pd.isna(x) else 10 - x for x in rows["rank"]],
    }
    for query, rows in FAQ.groupby("query_id", sort=False)
]
RECORDS = json.loads(FAQ.to_json(orient="records"))
SCORED = FAQ.assign(score=10 - FAQ["rank"]).drop(columns="rank")
FORMS = {
    "csv": {"faq.csv": FAQ.to_csv(index=False).encode()},
    "csv, scores": {"faq.csv": SCORED.to_csv(index=False).encode()},
    "json": {"faq.json": shape(RECORDS)},
    "json lines, keys left out": {
        "faq.jsonl": lines(
            [{name: cell for name, cell in row.items() if cell is not None} for row in RECORDS]
        )
    },
    "nested json": {"faq.json": shape(ENTRIES)},
    "parquet": {"faq.parquet": parquet(FAQ)},
    "nested parquet": {"faq.parquet": parquet(ENTRIES)},
    "mixed": {"one.csv": FAQ[:7].to_csv(index=False).encode(), "two.jsonl": lines(RECORDS[7:])},
}


def _means(data):
    found = rd.evaluate(data, metrics="hit@3, mrr, recall@3, map")
    return {spec: round(found.mean(spec), 6) for spec in ("hit@3", "mrr", "recall@3", "map")}


@pytest.mark.parametrize("files", FORMS.values(), ids=list(FORMS))
def test_a_label_without_a_rank_is_a_label_of_a_document_that_was_not_found(files):
    loaded = load([Source(name, data) for name, data in files.items()])

    data = loaded.dataset
    assert len(data.qrels) == 10
    assert len(data.candidates) == 9
    assert data.candidates.documents_of("q4")[0] == ["a9"]
    mrr = round((1 + 1 / 2 + 1 / 3) / 5, 6)
    assert _means(data) == {"hit@3": 0.6, "mrr": mrr, "recall@3": 0.6, "map": mrr}
    codes = {found.code: found for found in loaded.report.findings}
    assert codes["unranked_rows"].count == 2
    assert codes["unlabelled_rows"].count == 1
    assert not {"bad_rank", "bad_score", "no_label"} & codes.keys()


def test_a_query_of_which_nothing_was_found_counts_as_zero():
    text = "query_id,doc_id,label,rank\nq1,a,1,1\nq2,b,1,\n"
    data = load([Source("x", text.encode())]).dataset
    with pytest.warns(UserWarning, match="q2"):
        assert _means(data)["hit@3"] == 0.5


def test_rows_with_values_missing_or_bad(approved):
    def listed(columns: str, *rows: str) -> dict[str, str]:
        return {"x": f"query_id,doc_id,{columns}\n" + "".join(f"{row}\n" for row in rows)}

    cases = {
        **{
            f"{column} {value!r} is refused": listed(
                f"label,{column}", "q1,a,1,1", "q1,b,1,", f"q1,c,0,{value}", "q1,d,1,2"
            )
            for column, value in (("rank", "abc"), ("rank", "1.5"), ("score", "abc"))
        },
        "nothing but bad ranks": listed("label,rank", "q1,a,1,abc", "q1,b,0,def"),
        "a row with neither label nor rank": listed("label,rank", "q1,a,1,1", "q1,b,,"),
        "a row without a rank where no row has a label": {
            "q": "q1 0 a 1\n", **listed("rank", "q1,a,1", "q1,b,", "q1,c,2")
        },
        "a reranker that saw only the first documents loses no other": listed(
            "label,initial_score,pred_score", "q1,a,0,9,1", "q1,b,1,8,2", "q1,c,1,7,"
        ),
        "a reranked document that nobody judged keeps its place": listed(
            "label,pred_score", "q1,a,0,1", "q1,b,,3", "q1,c,1,2"
        ),
        "a column of ranks without any": listed("label,rank", "q1,b,1,", "q1,c,0,"),
        "ranks order where scores are missing": listed(
            "label,score,rank", "q1,a,1,0.5,2", "q1,b,0,,1", "q1,c,1,,"
        ),
        **{
            f"ranks {ranks}": listed(
                "label,rank", *(f"q1,d{at},1,{rank}" for at, rank in enumerate(ranks.split()))
            )
            for ranks in ("1 2 3", "0 1 2", "2 3", "1 3", "1 2 4")
        },
        **{
            f"ranks 1 and 2 with scores 2 and {second}": listed(
                "label,rank,score", "q1,a,1,1,2.0", f"q1,b,0,2,{second}", "q2,b,0,1,9"
            )
            for second in (2.0, 2.5)
        },
        **{
            f"{wide} of {wide + 1} rows of another width": {
                "x": "query,document,label\na,b,1\n" + "a,b,c,1\n" * wide
            }
            for wide in (1, 2)
        },
        "rows that are refused are neither unjudged nor unranked": listed(
            "label,score", "q1,a,1,3", "q1,b,,2", "q1,c,0,", "q1,,,1", "q1,,1,"
        ),
        **{
            f"{count} rows are refused": listed(
                "label", *(f"q,a{n},?" for n in range(count)), *(f"q,d{n},1" for n in range(22))
            )
            for count in (20, 21)
        },
    }  # fmt: skip
    approved("readers/rows.en", shown(cases))


def test_five_rows_are_shown_of_all_that_were_refused_for_one_reason():
    """As two tables of one file may be refused for it; in whatever order, the first is named."""
    made = Refusals("x.csv")
    made.add("bad_label", [4, 3, 2], ["a", "b", "c"])
    made.add("bad_label", [5, 6, 7], ["d", "e", "f"])
    made.add("no_query", [8], ["g"])
    assert [each.examples for each in made.findings()] == [("a", "b", "c", "d", "e"), ("g",)]
    with pytest.raises(FormatError) as stopped:
        made.stop_if_most(7)
    assert stopped.value.line == 2
