"""Rankings added to labels, to a data set or to each other: each with its name, by the same ids."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers import Source, read_beside
from rankdash.core.readers.loading import load
from rankdash.core.study.latency import timed
from rankdash.core.study.leaderboard import standings
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, systems_of
from tests.approved import table
from tests.readers.reading import lines_of, zipped

LABELS = "q1 0 a 1\nq1 0 b 0\nq2 0 c 2\n"
BM25 = "q1 Q0 b 1 2 bm25\nq1 Q0 a 2 1 bm25\nq2 Q0 c 1 3 bm25\n"
DENSE = "q1 Q0 a 1 2 dense\nq2 Q0 x 1 3 dense\n"
DATA = Dataset(
    "set",
    pd.DataFrame({"query_id": ["q1"], "text": ["how to boot"]}),
    pd.DataFrame({"doc_id": ["a", "b"], "title": "", "text": ["press F2", None]}),
    pd.DataFrame({"query_id": ["q1"], "doc_id": ["a"], "label": [1.0]}),
    Ranking.from_lists([("q1", ["a", "b"], [2.0, 1.0])]),
)


def told(beside: str | Dataset, files: Mapping[str, Path], **options: bool) -> Iterator[str]:
    """Yield each ranking by its name, and a description of the labels next to it."""
    sources = [Source("labels", beside.encode())] if isinstance(beside, str) else beside
    try:
        joined = read_beside(sources if beside else (), files, **options)
    except DataError as error:
        for each in getattr(error, "errors", [error]):
            yield f"refused: {each.file}: {each.message}"
        return
    for name, each in joined.rankings.items():
        lists = {query: each.ranking.documents_of(query)[0] for query in each.ranking.query_ids}
        yield f"{name} of {each.path.name}{', by text' * each.by_text}: {lists}"
    for finding in joined.findings:
        if finding.severity != "note":
            yield f"{finding.severity}: {finding.file}: {finding.code}"
    if isinstance(beside, str) and beside:
        yield from lines_of(joined.parsed(conflict="highest"))


def test_each_file_is_a_ranking_beside_labels_a_data_set_or_others(approved, tmp_path):
    both = {"one": ("one.run", BM25), "two": ("two.run", DENSE)}
    scored = "query_id,doc_id,label,score\nq1,a,0,8\nq1,b,5,9\n"
    systems = "query_id,doc_id,cohere_score,jina_score\nq1,a,0.2,0.9\nq1,b,0.7,0.1\n"
    texts = "query,document,label\nhow to boot,press F2,1\nhow to boot,cook rice,0\n"
    turned = "query,document,score\nhow to boot,cook rice,2\nhow to boot,press F2,1\n"
    scored_texts = (
        "query,document,label,score\nhow to boot,press F2,1,8\nhow to boot,cook rice,0,9\n"
    )
    by_text = ("one.csv", "query,doc_id,score\nhow to boot,b,1\n")
    packed = zipped({"bm25.run": BM25.encode(), "dense.run": DENSE.encode()})
    broken = BM25 + "q2 Q0 d\n"
    cases = {
        "beside labels": (LABELS, both),
        "beside each other": ("", both),
        "further scores are called by their column": (LABELS, {"mine": ("one.csv", systems)}),
        "labels in the file of a ranking do not count": (LABELS, {"mine": ("one.csv", scored)}),
        "a file of the data set may be its own ranking": (scored, {"mine": ("again.csv", scored)}),
        "told by their texts": (texts, {"one": ("one.csv", turned)}),
        "a file of the data set whose rows are told by their texts": (
            scored_texts, {"mine": ("again.csv", scored_texts)}
        ),
        "beside the tables of a data set": (
            DATA, {"ids": ("one.run", BM25[:34]), "texts": by_text}
        ),
        "another text of an id": (
            "query_id,query,doc_id,label\nq1,how to boot,a,1\n",
            {"one": ("one.csv", "query_id,query,doc_id,score\nq1,how to cook,a,1\n")},
        ),
        "an archive has a ranking of its name and others below it, a given name stays": (
            LABELS, {"all": ("runs.zip", packed), "all/dense": ("other.run", BM25)}
        ),
        "two files of one name": (
            LABELS, {"one": ("x/run.txt", broken), "two": ("y/run.txt", broken + "q2 Q0 e\n")}
        ),
        "files that cannot be used": (
            LABELS, {"one": ("one.run", "q1 Q0\n"), "two": ("two.bin", "")}
        ),
        "a file of labels alone": ("", {"one": ("more.qrels", LABELS)}),
    }  # fmt: skip
    said = {}
    for name, (beside, contents) in cases.items():
        files = {each: tmp_path / name / file for each, (file, _) in contents.items()}
        for each, (_, content) in contents.items():
            files[each].parent.mkdir(parents=True, exist_ok=True)
            files[each].write_bytes(content.encode() if isinstance(content, str) else content)
        lines = "\n".join(told(beside, files)).replace(str(tmp_path / name), "<folder>")
        said[name] = f"{lines}\n"
    files = {each: tmp_path / "beside labels" / file for each, (file, _) in both.items()}
    said["the first is what the data set starts from"] = "\n".join(told(LABELS, files, start=True))
    approved("readers/beside.en", table(said))


def test_timings_next_to_rankings_are_the_latencies_of_the_systems():
    """`rankdash fetch` writes such files; a zip file of its folder is read alike."""
    ids = [f"q{n}" for n in range(4)]
    rows = "query_id,query,doc_id,document,label\n" + "".join(
        f"{query},find {query},d{doc},text {doc},{doc}\n" for query in ids for doc in range(2)
    )
    files = {"rows.csv": rows}
    for name, step in (("initial", 1.0), ("vectors", 2.0)):
        files[f"{name}.trec"] = "".join(
            f"{query} Q0 d{doc} {doc + 1} {9 - doc} s\n" for query in ids[:3] for doc in range(2)
        )
        timings = [
            {"query_id": query, "state": "done", "reason": "", "latency_ms": step * place}
            for place, query in enumerate(ids[:3], 1)
        ]
        lost = {"query_id": "q3", "state": "failed", "reason": "time-out", "latency_ms": None}
        files[f"{name}.timings.json"] = json.dumps([*timings, lost, lost | {"query_id": "other"}])
    sources = [Source(name, text.encode()) for name, text in files.items()]
    packed = [Source("shop.zip", zipped({each.name: each.content for each in sources}))]
    for loaded in (load(sources), load(packed)):
        [run] = loaded.runs
        assert run.queries["latency_ms"].tolist()[:3] == [2.0, 4.0, 6.0]
        assert run.excluded == {"q3": "failed"}
        timings = loaded.dataset.timings
        assert timings["latency_ms"].tolist()[:3] == [1.0, 2.0, 3.0]
        assert timings["state"].tolist() == ["done"] * 3 + ["failed"]
        study = Study(loaded.dataset, systems_of(loaded.dataset, [run]), FIRST_STAGE, (run.id,))
        assert {each: times.summary.n for each, times in timed(study).items()} == {
            FIRST_STAGE: 3, run.id: 3,
        }  # fmt: skip
        # On the leaderboard, the first stage adds no latency.
        assert standings(study)[0].p95 in (0.0, None)
