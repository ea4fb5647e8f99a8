"""Data sets of two rankings, and the plan to label the documents that distinguish them."""

import functools
import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from rankdash.core.readers import Source
from rankdash.core.readers.loading import Loaded, load
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.notes import Correction, Corrections, LabelPlans, Pair
from rankdash.kit.widgets import stored
from rankdash.kit.widgets.labels import plan
from rankdash.kit.widgets.labels.plan import LabelSettings

QUERIES, DOCS = 12, 12
BEGAN = datetime(2026, 11, 1, 10, tzinfo=UTC)


def trec(order: Iterable[int], queries: Iterable[int] = range(QUERIES), prefix: str = "") -> bytes:
    return "".join(
        f"q{query} Q0 {prefix}q{query}d{doc} {rank} {50 - rank} s\n"
        for query in queries
        for rank, doc in enumerate(order, start=1)
    ).encode()


def two_rankings(
    workspace: Workspace,
    second: bytes | None = None,
    *,
    queries: int = QUERIES,
    docs: int = DOCS,
    text: str = "a question",
    title: str = "T",
    prefix: str = "",
    labels: str = "",
) -> str:
    """Store a data set whose first stage ranks d0, d1, … for each query, and return its id.

    second: the ranking "turned"; None: the first one reversed. prefix: of the ids of
    documents. labels: the lines of a file of labels.
    """
    if second is None:
        second = trec([*reversed(range(docs))], range(queries), prefix)
    loaded = _loaded(second, queries, docs, text, title, prefix, labels)
    workspace.save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    for run in loaded.runs:
        workspace.save_run(run)
    return loaded.dataset.id


@functools.cache
def _loaded(
    second: bytes, queries: int, docs: int, text: str, title: str, prefix: str, labels: str
) -> Loaded:
    asked = [{"_id": f"q{n}", "text": f"question {n}"} for n in range(2 * queries)]
    documents = [
        {"_id": f"{prefix}q{n}d{doc}", "title": title and f"{title}{doc}", "text": text}
        for n in range(2 * queries)
        for doc in range(docs)
    ]
    files = {
        "queries.jsonl": "".join(f"{json.dumps(row)}\n" for row in asked).encode(),
        "corpus.jsonl": "".join(f"{json.dumps(row)}\n" for row in documents).encode(),
        "initial.trec": trec(range(docs), range(queries), prefix),
        "turned.trec": second,
    }
    if labels:
        files["qrels.tsv"] = f"query-id\tcorpus-id\tscore\n{labels}".encode()
    return load([Source(name, content) for name, content in files.items()], name="Two")


def begin(workspace: Workspace, dataset_id: str, guidelines: str = "", **changes: object) -> str:
    """Begin a plan for all systems and return its id. changes: of its settings."""
    systems = tuple(stored.systems(dataset_id))
    settings = asdict(LabelSettings(systems, "dcg@10", 1.0, 1.0, seed=7, share=0.2)) | changes
    return LabelPlans(workspace).begin(dataset_id, settings, guidelines)


def pairs(dataset_id: str) -> list[Pair]:
    """Return the pairs of the plan in its order."""
    found = plan.current(dataset_id)
    return [found.pair(place) for place in found.plan.order.tolist()]


def take_in(workspace: Workspace, dataset_id: str, who: str, labels: dict[Pair, float]) -> None:
    """Store the labels of a person, one every ten seconds."""
    rows = [
        Correction(*pair, label, who, str(BEGAN + timedelta(seconds=10 * place)))
        for place, (pair, label) in enumerate(labels.items())
    ]
    Corrections(workspace).take_in(dataset_id, rows)


def relevant(pair: Pair) -> float:
    """Return 1 for documents at the top of the first ranking."""
    return float(int(pair[1].rpartition("d")[2]) < 3)


def answer(workspace: Workspace, dataset_id: str, count: int) -> None:
    """Label the first documents of the plan as Ann."""
    labels = {pair: relevant(pair) for pair in pairs(dataset_id)[:count]}
    take_in(workspace, dataset_id, "Ann", labels)
