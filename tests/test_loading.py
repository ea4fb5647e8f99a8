"""`load`: from files to a data set, with real data and with all known faults of real files."""

from collections.abc import Iterator, Mapping

import pytest

from rankdash.core.base.errors import RankdashError
from rankdash.core.data.dataset import Dataset
from rankdash.core.metrics import Conventions, evaluate, judge, parse_measure
from rankdash.core.readers import Source, sources_from_path
from rankdash.core.readers.checks.check import check
from rankdash.core.readers.loading import Loaded, examine, load
from tests.approved import table
from tests.sets import SETS

Files = Mapping[str, str]


def sources(files: Files) -> list[Source]:
    return [Source(name, text.encode()) for name, text in files.items()]


def runs_of(queries: int, documents: int = 10, prefix: str = "") -> str:
    """Return a run in which document i of each query has rank i."""
    return "".join(
        f"{prefix}{q} Q0 d{q}-{i} {i} {documents - i}.5 x\n"
        for q in range(1, queries + 1)
        for i in range(1, documents + 1)
    )


def qrels_of(queries: int, label_of: dict[int, object], prefix: str = "") -> str:
    """Return labels of document i of each query."""
    return "".join(
        f"{prefix}{q} 0 d{q}-{i} {label}\n"
        for q in range(1, queries + 1)
        for i, label in label_of.items()
    )


@pytest.mark.parametrize("name", SETS)
def test_a_whole_set_loads_from_its_folder_twice_the_same(name, approved):
    result = load(sources_from_path(SETS[name]))
    data, conventions = result.dataset, Conventions.trec_eval()
    judged = judge(data.candidates, data.qrels, conventions)
    mean = evaluate(judged, [parse_measure("ndcg@10")], conventions).mean("ndcg@10")
    bars = (f"{bar.low:g} x{bar.count}" for bar in result.report.label_histogram)
    more = [
        f"{len(data.documents)} documents, each label: {', '.join(bars)}",
        f"segments: {', '.join(sorted(data.segments))}",
        f"NDCG@10 as trec_eval: {mean:.4f}",
    ]
    approved(f"readers/set_{name}.en", "\n".join([*_lines(result), *more]))

    again = load(sources_from_path(SETS[name]))
    assert again.dataset.id == data.id
    assert [run.id for run in again.runs] == [run.id for run in result.runs]


def told(files: Files, **chosen: object) -> str:
    """Return the first stage of the loaded data, its other rankings, and each finding of the check;
    or the error."""
    try:
        loaded = load(sources(files), **chosen)
    except RankdashError as error:
        return f"refused: {error}\n"
    return "".join(f"{line}\n" for line in _lines(loaded))


def _lines(loaded: Loaded) -> Iterator[str]:
    data, report = loaded.dataset, loaded.report
    ranked = data.candidates
    lists = ((query, ranked.documents_of(query)[0]) for query in ranked.query_ids[:3])
    yield f"{data.name}, first stage {data.first_stage}: " + "; ".join(
        f"{query}: {' '.join(docs[:6])}" for query, docs in lists
    )
    assert all(run.dataset_id == data.id for run in loaded.runs)
    if loaded.runs:
        yield "systems: " + ", ".join(f"{run.name}, {run.reranker}" for run in loaded.runs)
    judged = "nothing" if report.judged_at_10 is None else f"{report.judged_at_10:.3f}"
    yield (
        f"{len(data.queries)} queries, {data.labelled_queries} labelled; {report.labels} labels, "
        f"judged at 10: {judged}; candidates of a query: "
        f"{report.candidates_per_query.low:g} to {report.candidates_per_query.high:g}"
    )
    for found in report.findings:
        if found.code not in ("columns", "format", "made_query_id", "made_doc_id"):
            where = f"{found.where}: " if found.where else ""
            shown = f": {'; '.join(found.examples)}" if found.examples else ""
            yield f"{found.severity}: {where}{found.code} x{found.count}: {found.text}{shown}"
            if found.remedy and found.severity != "note":
                yield f"  {found.remedy.format(**found.params)}"


def test_traps_of_real_files_are_told(approved):
    best = {1: 1, 2: 1, 3: 2, 5: 3, 8: 4, 10: 4}
    twice = {"q": "1 0 d1-1 1\n1 0 d1-1 3\n", "run": runs_of(1)}
    ties = [f"1 Q0 d{i:02} {i} {1.0 if i > 3 else 9 - i} x" for i in range(1, 11)]
    rows = "query,document,label\n"
    in_order = "".join(f"q{q} 0 d{q}-{i} {i // 2}\n" for q in range(9) for i in range(6))
    cases = {
        "1 means best": told({"q": qrels_of(8, best), "run": runs_of(8)}),
        "turned, it does not": told(
            {"q": qrels_of(8, {rank: 5 - label for rank, label in best.items()}), "run": runs_of(8)}
        ),
        "the order of the file says nothing of it": told({"q": in_order}, retrieval="rows"),
        "grades from 1 to 4 make everything relevant": told(
            {"q": qrels_of(8, {1: 4, 5: 2, 9: 1}), "run": runs_of(8)}
        ),
        "one negative label a query": told(
            {"q": qrels_of(3, {1: 2, 2: -1, 3: 0}), "run": runs_of(3)}
        ),
        "half a label": told({"x": f"{rows}a,b,0.5\na,c,0\n"}),
        "topic numbers that match nothing": told(
            {"qrels": qrels_of(3, {1: 1}, prefix="q"), "run": runs_of(3)}
        ),
        "topic numbers that match the wrong query": told(
            {"qrels": "".join(f"{q + 1} 0 d{q}-1 1\n" for q in range(1, 6)), "run": runs_of(6)}
        ),
        "seven of ten scores tied": told({"q": "1 0 d01 1\n", "run": "\n".join(ties)}),
        **{
            f"a pair labelled twice, {conflict}": told(twice, conflict=conflict)
            for conflict in ("highest", "lowest", "refuse")
        },
        "queries with no relevant document": told(
            {"q": qrels_of(2, {1: 1}) + "3 0 d3-1 0\n3 0 d3-2 -1\n", "run": runs_of(3)}
        ),
        "runs that lack judged queries and hold others": told(
            {"q": qrels_of(5, {1: 1}), "run": runs_of(7).replace("\n3 ", "\nx3 ")}
        ),
        "lists shorter than k": told(
            {"q": qrels_of(2, {1: 1, 2: 0}), "run": runs_of(2, documents=3)}
        ),
        "lists stored worst first": told(
            {"q": "1 0 d1-1 1\n", "run": "\n".join(reversed(runs_of(1).splitlines()))}
        ),
        "queries and documents that nothing joins": told(
            {"c": '{"_id": "1", "title": "", "text": "a"}', "q": "query_id,query\n1,b\n"}
        ),
        "a ranking of other documents": told(
            {
                "q": qrels_of(2, {1: 1}), "initial": runs_of(2),
                "other": runs_of(2).replace("d", "D"),
            }
        ),
        "rows without ids beside a ranking of ids": told(
            {"rows.csv": f"{rows}return a gift,bring it back,1\n", "run": runs_of(3)}
        ),
        "one broken file among good ones": told(
            {"q": qrels_of(2, {1: 1}), "run": runs_of(2), "docs": '{"_id": "d1-1", "text": "x'}
        ),
        "rankings only": told(
            {"q": qrels_of(2, {1: 1}), "a.trec": runs_of(2), "b.trec": runs_of(2)}, name="mine"
        ),
        "no labels": told({"run": runs_of(2)}),
    }  # fmt: skip
    approved("readers/traps.en", table(cases))


def test_a_first_stage_is_made_where_none_is_given(approved):
    corpus = {
        "c": '{"_id": "a", "title": "Gift", "text": "return"}\n'
        '{"_id": "b", "title": "", "text": "x"}\n'
        '{"_id": "c", "title": "", "text": "a gift of a gift"}',
        "q": '{"_id": "1", "text": "gift"}',
        "qrels": "1\tb\t1\n1\ta\t0\n",
    }
    labels = {"x": "query_id,doc_id,label\n1,d3,1\n1,d1,0\n1,d2,0\n"}
    given = {"q": qrels_of(2, {1: 1}), "run": runs_of(2)}
    scored = "1,d0,0,9{}\n1,d1,1,8{}\n"

    def listed(second: int, **more: str) -> str:
        lines = ["query_id,query,doc_id,document,label", "q,gift,1,gift one two,1"]
        lines += [f"q,gift,2,gift one two three,{second}", "r,two,3,gift one two three four,1"]
        return told({"rows": "\n".join(lines), **more})

    cases = {
        "BM25 over each query's own documents": told(
            {
                "x": "query,document,label\nreturn a gift,We are open on sunday,0\n"
                "return a gift,How to return a gift you got,2\n"
                "opening hours,We are open on sunday,1\n"
            }
        ),
        # Documents without a common word are not retrieved.
        "beside a corpus BM25 retrieves from all documents": told(corpus),
        "and so many": told(corpus, retrieved=1),
        "at least one": told(corpus, retrieved=0),
        "the labelled documents of a corpus where asked to": told(corpus, retrieval="listed"),
        "where nothing shares a word the listed ones are left": told(
            corpus | {"q": '{"_id": "1", "text": "cadeau"}'}
        ),
        # Good and bad documents are a query's candidates; only good ones, answers among others.
        "rows with bad documents too are candidates": listed(0),
        "good ones alone are not": listed(1),
        "nor are they beside a corpus": listed(0, corpus="doc_id,document\n9,gift\n"),
        "labels alone": told(labels),
        "the order of the rows where asked for": told(labels, retrieval="rows"),
        **{
            f"{how} where there are no texts": told(labels, retrieval=how)
            for how in ("bm25", "listed")
        },
        "none beside one that is given": told(given, retrieval="rows"),
        "a reranker's score where none can be made": told(
            {"x.csv": "query_id,doc_id,label,rerank_score\n" + scored.format("", "")}
        ),
        "a reranker's score is none where one can be": told(
            {
                "x.csv": "query_id,doc_id,label,rerank_score,query,document\n"
                + scored.format(",gift,gift d0", ",gift,gift d1")
            }
        ),
        "ties of the order that rankdash made ask nothing": told(
            {"x.csv": "query,document,label\ngift,same text,1\ngift,other words,0\n"}
        ),
    }
    approved("readers/first_stage_made.en", table(cases))


def test_without_a_first_stage_the_check_report_is_still_whole():
    labels = "query_id,doc_id,label\n1,d3,1\n1,d1,0\n1,d2,0\n"
    report = examine(sources({"x": labels})).report
    assert [error.code for error in report.errors] == ["no_first_stage"]
    assert report.labels == 3


MIXED_UP = "".join(
    f"{q} 0 d{q}-{i} {label}\n"
    for q, i, label in [(1, 9, 3), (7, 1, 0), (2, 3, 0.5), (1, 1, 1), (2, 44, -1), (5, 2, 2)]
)


@pytest.mark.parametrize(
    "files",
    [
        {"q": qrels_of(9, {1: 3, 4: 1, 9: 0}), "a.trec": runs_of(9)},
        # The best label is the lowest; one query has one grade, another two labels below 0.
        {
            "q": qrels_of(9, {1: 1, 2: 1, 5: 2, 9: 3}) + "10 0 d10-2 1\n1 0 d1-7 -1\n",
            "a.trec": runs_of(11),
            "b.trec": runs_of(7, documents=14),
        },
        {"q": MIXED_UP, "a.trec": runs_of(3), "b.trec": runs_of(6, documents=2)},
        {"q": qrels_of(3, {1: 1}, prefix="q"), "a.trec": runs_of(3)},
        {"q": qrels_of(3, {77: 1}), "a.trec": runs_of(3)},
        {"a.trec": runs_of(3), "b.trec": runs_of(4)},
    ],
)
def test_labels_and_rankings_alone_are_checked_without_tables_as_with_them(files, monkeypatch):
    made = []
    of_labels = Dataset.of_labels

    def noted(name, labels, candidates, make, **also):
        return of_labels(name, labels, candidates, lambda: made.append(name) or make(), **also)

    monkeypatch.setattr(Dataset, "of_labels", noted)
    result = examine(sources(files))
    data = result.dataset
    assert made == []

    with_tables = Dataset("same", data.queries, data.documents, data.qrels, data.candidates)
    assert made == [data.name]
    of_reading = [each for each in result.report.findings if each.file]
    again = check(with_tables, of_reading, result.rankings)
    assert again.to_json() == result.report.to_json()
    assert with_tables == data
