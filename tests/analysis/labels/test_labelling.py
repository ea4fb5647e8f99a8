"""The to-label list is exported, filled in and read back, and its labels are merged."""

import csv
import io
import json
import re
from dataclasses import fields

import pandas as pd
import pytest

from rankdash.core.base.text import csv_bytes
from rankdash.core.data.dataset import Dataset
from rankdash.core.metrics import judge
from rankdash.core.readers import Source, read
from rankdash.core.readers.loading import load
from rankdash.core.study.labelling import CONFLICTS, merge_labels, to_label, to_label_jsonl
from rankdash.core.study.unjudged.system_bounds import RankedLabels, UnjudgedComparison
from tests.lists import ranking
from tests.results import results, several
from tests.sets import SETS, loaded

# Difficult ids and texts: formulas, digits, separators, marks, Chinese.
HOSTILE = ("=1+1", "'=1+1", "-5", "007", "@x", 'say "hi", twice', "+", "编号1", "it's")
HOSTILE += ("''", "a\tb")


def dataset(queries, documents, labels, candidates) -> Dataset:
    return Dataset(
        "made",
        pd.DataFrame(queries, columns=["query_id", "text"]),
        pd.DataFrame(documents, columns=["doc_id", "title", "text"]),
        pd.DataFrame(labels, columns=["query_id", "doc_id", "label"]),
        candidates,
    )


def hostile() -> tuple[Dataset, UnjudgedComparison]:
    docs = [*HOSTILE, "judged"]
    first, after = ranking(**{"=q": docs, "-1": docs}), ranking(**{"=q": docs[::-1], "-1": docs})
    made = dataset(
        [("=q", "=cmd|' /C calc'!A0"), ("-1", None)],
        [(doc, "", f"=HYPERLINK({doc})\nsecond line") for doc in docs],
        [("=q", "judged", 1.0), ("-1", "judged", 2.0)],
        first,
    )
    sides = [RankedLabels(each, judge(each, made.qrels)) for each in (first, after)]
    return made, UnjudgedComparison(sides[0], sides[1], "ndcg@20")


def small() -> tuple[Dataset, UnjudgedComparison]:
    first, after = ranking(p="uabv", q="abw"), ranking(p="abvu", q="wab")
    made = dataset(
        [("p", "first question"), ("q", "second question")],
        [(doc, "", f"text of {doc}" * 5) for doc in "abuvw"],
        [("p", "a", 2.0), ("q", "b", 1.0)],
        first,
    )
    sides = [RankedLabels(each, judge(each, made.qrels)) for each in (first, after)]
    return made, UnjudgedComparison(sides[0], sides[1], "ndcg@10")


def listed(names=("BM25", "MiniLM"), **rules) -> pd.DataFrame:
    return to_label(*small(), names, **rules)


def merged(rows: object, **rules) -> tuple[object, ...]:
    made, _ = small()
    if not isinstance(rows, pd.DataFrame):
        rows = pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])
    found = merge_labels(made, rows, **rules)
    assert len(made.qrels) == 2, "the first is left alone"
    counts = {each.name: getattr(found, each.name) for each in fields(found)}
    same = counts.pop("dataset").id == made.id
    assert found.dataset.candidates is made.candidates
    return counts, "the same set" if same else "another set", found.dataset.qrels


NEW = [("p", "a", 1.0), ("q", "b", 1.0), ("p", "v", 2.0)]
CASES = {
    "the label that could move the difference most comes first": listed,
    "two, with a long document cut, of systems with one name": lambda: listed(
        ("same", "same"), most=2, snippet=10
    ),
    **several("where labels differ: {}", lambda rule: merged(NEW, conflict=rule), CONFLICTS),
    "rows still empty": lambda: merged(listed()),
    "ids that the set lacks": lambda: merged(
        [("p", "u", 1.0), ("p", "nowhere", 1.0), ("nobody", "u", 1.0)]
    ),
    "ids that the set lacks, of a search engine": lambda: merged(
        [("p", "u", 1.0), ("p", "nowhere", 1.0), ("nobody", "u", 1.0)], unranked=True
    ),
    "no id that the set has": lambda: merged([("x", "y", 1.0)]),
    "two labels of a pair": lambda: merged([("p", "u", 1.0), ("p", "u", 2.0)]),
    "a word": lambda: merged([("p", "u", "maybe")]),
    "infinite": lambda: merged([("p", "u", float("inf"))]),
    "no labels": lambda: merged(pd.DataFrame({"query_id": ["p"], "doc_id": ["u"]})),
    "a file of labels": lambda: merged(read([Source("more.qrels", b"p 0 u 2\nq 0 w 0\n")]).qrels),
}


def test_what_to_label_and_what_becomes_of_labels(approved):
    approved("analysis/to_label", results(CASES))


def filled(data: bytes, labels: list[str]) -> bytes:
    """Return the file with labels in its label column, as an annotator types them in an editor."""
    if data.startswith(b"{"):
        rows = [json.loads(line) for line in data.decode().splitlines()]
        for row, label in zip(rows, labels, strict=False):
            row["label"] = float(label)
        return "\n".join(json.dumps(row) for row in rows).encode()
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    column = rows[0].index("label")
    for row, label in zip(rows[1:], labels, strict=False):
        row[column] = label
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8-sig")


@pytest.mark.parametrize("write", [csv_bytes, to_label_jsonl])
def test_labels_come_back_to_the_pairs_they_were_given_to(write):
    """An unfilled list is read as candidates without a label."""
    made, comparison = hostile()
    frame = to_label(made, comparison, ("=A", "B"))
    parsed = read([Source("to_label", write(frame))])
    assert (len(parsed.qrels), len(parsed.candidates)) == (0, len(frame))
    assert "unlabelled_rows" in {finding.code for finding in parsed.findings}
    assert not [finding for finding in parsed.findings if finding.severity == "error"]
    labels = [str(number % 3) for number in range(len(frame) - 3)]
    data = filled(write(frame), labels)
    merged = merge_labels(made, read([Source("to_label", data)]).qrels)
    assert (merged.added, merged.unknown, merged.changed) == (len(labels), 0, 0)
    own = frame.head(len(labels)).assign(label=[float(label) for label in labels])
    expected = pd.concat([made.qrels, own[["query_id", "doc_id", "label"]]])
    pairs = expected.set_index(["query_id", "doc_id"])["label"].to_dict()
    assert merged.dataset.qrels.set_index(["query_id", "doc_id"])["label"].to_dict() == pairs
    # With labels, the list itself is a data set.
    alone = load([Source("to_label", data)]).dataset
    assert len(alone.qrels) == len(labels)


@pytest.mark.parametrize("name", SETS)
def test_labelling_what_comes_first_settles_the_sign_and_one_label_less_does_not(name):
    data, lists = (
        loaded(name).dataset,
        (loaded(name).dataset.candidates, loaded(name).runs[-1].ranking),
    )

    def compared(qrels: pd.DataFrame) -> UnjudgedComparison:
        return UnjudgedComparison(
            *(RankedLabels(each, judge(each, qrels)) for each in lists), "ndcg@10"
        )

    open_ = compared(data.qrels)
    enough = open_.labels_to_settle
    assert 0 < enough < len(open_.pool)
    frame = to_label(data, open_, ("first", "other"), most=enough).assign(label=0.0)
    labels = frame[["query_id", "doc_id", "label"]]
    settled, before = (
        compared(pd.concat([data.qrels, labels[:n]])).bounds for n in (enough, enough - 1)
    )
    assert (settled.sign != "open", before.sign) == (True, "open")
    assert settled.delta == pytest.approx(open_.bounds.delta)


def test_no_cell_of_the_csv_runs_as_a_formula():
    made, comparison = hostile()
    frame = to_label(made, comparison, ("=A", "B"))
    read_back = pd.read_csv(
        pd.io.common.BytesIO(csv_bytes(frame)), dtype=str, keep_default_na=False
    )
    cells = [*read_back.columns, *read_back.drop(columns=["effect", "moves"]).to_numpy().ravel()]
    texts = [cell for cell in cells if not re.fullmatch(r"-?\d+", cell)]
    assert len(texts) < len(cells)
    assert not [cell for cell in texts if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]
    assert read_back["query"].iloc[0].startswith("'=cmd") or read_back["query"].iloc[0] == ""
