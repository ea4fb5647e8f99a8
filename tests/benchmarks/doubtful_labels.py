"""Labels that look wrong: planted defects that are found, and the time for 10,000 queries.

`python tests/benchmarks/doubtful_labels.py [SEEDS]`, from the root of the project.
"""

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2]))

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers.checks.doubtful_labels import doubtful_labels
from tests.sets import SETS, loaded

PLANTED = 10
Rankings = Mapping[str, Ranking]
# The data with defects, and the wrong pairs; a query with "" is wrong as a whole.
Planted = tuple[Dataset, Rankings, set[tuple[str, str]]]


def changed(data: Dataset, labels: pd.DataFrame, **other: pd.DataFrame | Ranking) -> Dataset:
    parts = {"documents": data.documents, "candidates": data.candidates} | other
    return Dataset(data.name, data.queries, parts["documents"], labels, parts["candidates"])


def relevant(data: Dataset) -> pd.DataFrame:
    return data.qrels[data.qrels["label"] > 0]


def exchanged(data: Dataset, rankings: Rankings, rng: np.random.Generator) -> Planted:
    """Exchange all labels of ten queries."""
    queries = rng.permutation(relevant(data)["query_id"].unique())[:PLANTED].tolist()
    moved = dict(zip(queries, [*queries[1:], queries[0]], strict=True))
    labels = data.qrels.assign(query_id=data.qrels["query_id"].replace(moved))
    return changed(data, labels), rankings, {(each, "") for each in queries}


def flipped(data: Dataset, rankings: Rankings, rng: np.random.Generator) -> Planted:
    """Exchange the label of a relevant document with a random one of the list, in ten queries."""
    labels, wrong = data.qrels.set_index(["query_id", "doc_id"])["label"].copy(), set()
    rows = relevant(data).sample(frac=1, random_state=int(rng.integers(1 << 30)))
    for row in rows.drop_duplicates("query_id").itertuples():
        if row.query_id not in data.candidates.positions or len(wrong) == 2 * PLANTED:
            continue
        docs = data.candidates.documents_of(row.query_id)[0]
        others = [each for each in docs if labels.get((row.query_id, each), 0) <= 0]
        if row.doc_id not in docs or not others:
            continue
        other = others[int(rng.integers(len(others)))]
        labels[row.query_id, row.doc_id], labels[row.query_id, other] = 0.0, row.label
        wrong |= {(row.query_id, row.doc_id), (row.query_id, other)}
    return changed(data, labels.rename("label").reset_index()), rankings, wrong


def twins(data: Dataset, rankings: Rankings, rng: np.random.Generator) -> Planted:
    """Copy ten relevant, ranked documents in other letters, next to the original in each ranking;
    five copies have the label 0, five have none."""
    ranked = data.candidates
    rows = [
        row
        for row in relevant(data).drop_duplicates("query_id").itertuples()
        if row.query_id in ranked.positions and row.doc_id in ranked.documents_of(row.query_id)[0]
    ]
    chosen = [rows[at] for at in rng.permutation(len(rows))[:PLANTED]]
    copies = {(row.query_id, row.doc_id): f"copy of {row.doc_id}" for row in chosen}
    known = data.documents.set_index("doc_id")
    documents = [
        {
            "doc_id": copy,
            "title": known.loc[doc, "title"].upper(),
            "text": f" {known.loc[doc, 'text']}\n",
        }
        for (_, doc), copy in copies.items()
    ]
    pairs = {copy: query for (query, _), copy in copies.items()}
    added = pd.DataFrame(documents).drop_duplicates("doc_id")
    wrong = {(query, copy) for (query, _), copy in copies.items()}
    none = pd.DataFrame(
        [(pairs[copy], copy, 0.0) for copy in sorted(pairs)[: PLANTED // 2]],
        columns=["query_id", "doc_id", "label"],
    )

    def with_copies(ranking: Ranking) -> Ranking:
        lists = []
        for query in ranking.query_ids:
            docs, scores = ranking.documents_of(query)
            every = [
                (each, score)
                for doc, score in zip(docs, scores.tolist(), strict=True)
                for each in (doc, copies.get((query, doc)))
                if each is not None
            ]
            lists.append((query, [doc for doc, _ in every], [score for _, score in every]))
        return Ranking.from_lists(lists)

    result = changed(
        data,
        pd.concat([data.qrels, none], ignore_index=True),
        documents=pd.concat([data.documents, added], ignore_index=True),
        candidates=with_copies(ranked),
    )
    return result, {name: with_copies(each) for name, each in rankings.items()}, wrong


def shifted(data: Dataset, by: int) -> Dataset:
    ids = list(data.queries["query_id"])
    moved = {query: ids[(at + by) % len(ids)] for at, query in enumerate(ids)}
    return changed(data, data.qrels.assign(query_id=data.qrels["query_id"].map(moved)))


# Defect → how to plant it, and the reasons that find it.
PLANTS: dict[str, tuple[Callable[..., Planted], tuple[str, ...]]] = {
    "labels of 10 queries exchanged": (exchanged, ("few_words",)),
    "10 labels exchanged within the list": (flipped, ("ranked_low", "ranked_top")),
    "10 twins": (twins, ("twin_label", "twin_unlabelled")),
}


def measure(name: str, seeds: int) -> None:
    found = loaded(name)
    for title, (plant, reasons) in PLANTS.items():
        hits = every = listed = 0
        for seed in range(seeds):
            data, rankings, wrong = plant(
                found.dataset, found.rankings, np.random.default_rng(seed)
            )
            rows = doubtful_labels(data, rankings).candidates
            rows = rows[rows["reason"].isin(reasons)]
            docs = "" if reasons == ("few_words",) else rows["doc_id"]
            pairs = rows.assign(doc_id=docs)[["query_id", "doc_id"]].itertuples(index=False)
            hits += sum(tuple(each) in wrong for each in pairs)
            every, listed = every + len(wrong), listed + len(rows)
        print(
            f"{name}: {title}: found {hits / every:.0%} of {every / seeds:.0f}, right "
            f"{hits / max(listed, 1):.0%} of {listed / seeds:.1f}"
        )
    shifts = [1, -1, 2, -3, 7]
    named = [doubtful_labels(shifted(found.dataset, by), {}).shift for by in shifts]
    right = sum(
        shift is not None and shift.by == -by for shift, by in zip(named, shifts, strict=True)
    )
    print(f"{name}: shift of all ids: named {right} of {len(shifts)}")


def large(queries: int = 10_000, depth: int = 100, docs: int = 100_000) -> None:
    """Print the time for 10,000 queries with 100 ranked and labelled documents in two rankings."""
    rng = np.random.default_rng(1)
    words = np.array([f"word{at}" for at in range(50_000)])
    texts = words[rng.zipf(1.2, size=(docs, 80)) % len(words)]
    query_ids = np.repeat([f"q{at}" for at in range(queries)], depth)
    doc = (rng.integers(docs, size=(queries, 1)) + np.arange(depth) * 977) % docs
    doc_ids = np.array([f"d{at}" for at in range(docs)], dtype=object)[doc.ravel()]
    labels = pd.DataFrame({"query_id": query_ids, "doc_id": doc_ids})
    labels["label"] = np.tile([2.0, 1.0, 1.0] + [0.0] * (depth - 3), queries)
    first, second = (
        Ranking.from_columns(query_ids, doc_ids, rng.random(len(query_ids))) for _ in range(2)
    )
    asked = [" ".join(rng.choice(texts[row], 6)) for row in doc[:, 0]]
    data = Dataset(
        "large",
        pd.DataFrame({"query_id": [f"q{at}" for at in range(queries)], "text": asked}),
        pd.DataFrame(
            {
                "doc_id": [f"d{at}" for at in range(docs)],
                "title": "",
                "text": [" ".join(row) for row in texts],
            }
        ),
        labels,
        first,
    )
    for what, current in (("right", data), ("shifted", shifted(data, 1))):
        start, used = time.perf_counter(), time.process_time()
        result = doubtful_labels(current, {"second": second})
        seconds, used = time.perf_counter() - start, time.process_time() - used
        assert result.words is not None
        print(
            f"{len(labels):,} labels, {what}: {seconds:.1f} s (processor {used:.1f} s), "
            f"{len(result.words.table):,} queries"
        )


if __name__ == "__main__":
    for each in SETS:
        measure(each, int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    large()
