"""Rows of a file: a label without a rank or a score still counts as a label."""

import io
import json

import pandas as pd
import pytest

from rankdash.core.base.errors import FormatError
from rankdash.core.readers.parse.limits import Refusals
from tests.readers.reading import shown
from tests.readers.samples import lines, parquet, shape

# Questions of an FAQ. The search finds the answer to the first question only.
FAQ = """query_id,query,doc_id,document,label,rank
q1,How do I return it?,a1,Send it back.,1,1
q1,How do I return it?,a9,Our shops.,0,2
q4,Do you ship abroad?,a9,Our shops.,0,1
q4,Do you ship abroad?,a4,To all of Europe.,1,
q5,Is it in stock?,a8,Gift cards.,,1
q5,Is it in stock?,a5,See the product page.,1,
"""
FRAME = pd.read_csv(io.StringIO(FAQ))
RECORDS = json.loads(FRAME.to_json(orient="records"))
# An entry for each query, with lists; `initial_scores` fall with the rank.
LISTS = {"document": "docs", "doc_id": "doc_ids", "label": "true_scores", "rank": "initial_scores"}
ENTRIES = [
    {"query_id": query, "query": text}
    | {LISTS[name]: json.loads(rows[name].to_json(orient="values")) for name in LISTS}
    for (query, text), rows in FRAME.assign(rank=10 - FRAME["rank"]).groupby(["query_id", "query"])
]
FORMS = {
    "csv": {"faq": FAQ},
    "csv, scores": {"faq": FAQ.replace("rank", "score")},
    "json": {"faq": shape(RECORDS)},
    "json lines, keys left out": {
        "faq": lines(
            [{key: cell for key, cell in row.items() if cell is not None} for row in RECORDS]
        )
    },
    "nested json": {"faq": shape(ENTRIES)},
    "parquet": {"faq": parquet(FRAME)},
    "nested parquet": {"faq": parquet(ENTRIES)},
    "mixed": {"one.csv": FRAME[:3].to_csv(index=False), "two.jsonl": lines(RECORDS[3:])},
}


def test_rows_with_values_missing_or_bad(approved):
    def listed(columns: str, *rows: str) -> dict[str, str]:
        return {"x": f"query_id,doc_id,{columns}\n" + "".join(f"{row}\n" for row in rows)}

    cases = {
        **{f"a label without a rank is a label, {form}": files for form, files in FORMS.items()},
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
    """For two tables of one file with the same reason; the first row is named, in any order."""
    made = Refusals("x.csv")
    made.add("bad_label", [4, 3, 2], ["a", "b", "c"])
    made.add("bad_label", [5, 6, 7], ["d", "e", "f"])
    made.add("no_query", [8], ["g"])
    assert [each.examples for each in made.findings()] == [("a", "b", "c", "d", "e"), ("g",)]
    with pytest.raises(FormatError) as stopped:
        made.stop_if_most(7)
    assert stopped.value.line == 2
