"""Rankings of the sample, a plan to label them, and simulated annotators with the true labels."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from tests.sets import SAMPLE

DOCS = 10
Pairs = list[tuple[str, str]]


@cache
def truth() -> dict[tuple[str, str], str]:
    table = pd.read_csv(SAMPLE / "qrels.tsv", sep="\t", dtype=str)
    return {(query, doc): label for query, doc, label in table.itertuples(index=False)}


@cache
def lists() -> dict[str, list[str]]:
    """Return query → its documents in the first stage."""
    found: dict[str, list[str]] = {}
    for line in (SAMPLE / "initial.trec").read_text().splitlines():
        query, _, doc, *_ = line.split()
        found.setdefault(query, []).append(doc)
    return found


def rankings(folder: Path, queries: int | None = None) -> None:
    """Write `old.trec`, and `new.trec` with the first ten documents reversed."""
    kept = list(lists().items()) if queries is None else [
        each for each in lists().items() if len(each[1]) >= DOCS
    ][:queries]  # fmt: skip
    for name, step in (("old", 1), ("new", -1)):
        rows = (
            f"{query} Q0 {doc} {rank} {100 - rank} {name}\n"
            for query, docs in kept
            for rank, doc in enumerate(docs[:DOCS][::step], 1)
        )
        (folder / f"{name}.trec").write_text("".join(rows))


def graded(folder: Path) -> None:
    """Write `labels.csv` of 30 queries and `few.csv` of 9 of them, and grades of all queries:
    `grades.csv` with errors upwards, `likes.csv` with errors in favour of `new`."""
    chosen = list(np.random.default_rng(1).permutation(list(lists()))[:30])
    for name, count in (("labels", 30), ("few", 9)):
        rows = [(*pair, float(n)) for pair, n in truth().items() if pair[0] in chosen[:count]]
        table = pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])
        table.to_csv(folder / f"{name}.csv", index=False)
    pairs = [(query, doc) for query, docs in lists().items() for doc in docs[:DOCS]]
    table = pd.DataFrame(pairs, columns=["query_id", "doc_id"])
    grades = np.array([float(truth().get(pair, 0)) for pair in pairs])
    wrong = np.random.default_rng(2).random(len(grades)) < 0.2
    table.assign(grade=np.minimum(grades + wrong, 3)).to_csv(folder / "grades.csv", index=False)
    lifted = np.where(table.groupby("query_id").cumcount() >= DOCS // 2, 3.0, 0.0)
    table.assign(grade=lifted).to_csv(folder / "likes.csv", index=False)


def plan(run, folder: Path, *options: object, name: str = "plan", top: float = 3) -> dict:
    made = run(
        "label", "plan", "--run", folder / "old.trec", folder / "new.trec", "--top", top,
        "--metric", "dcg@10", "--out", folder / f"{name}.jsonl", "--json", *options,
    )  # fmt: skip
    assert made.code == 0, made.err
    return made.json


def next_pairs(run, file: Path, count: int) -> Pairs:
    cards = run("label", "next", file, "--count", count, "--json").json
    # No card contains a system, a rank or a score.
    assert all(set(card) == {"query_id", "doc_id"} for card in cards)
    return [(card["query_id"], card["doc_id"]) for card in cards]


def answers(folder: Path, pairs: Pairs, name: str = "answers", cannot_tell: int = -1) -> Path:
    """Write the true labels of the pairs; cannot_tell: the index of one without a label."""
    rows = [(*pair, truth().get(pair, "0")) for pair in pairs]
    if cannot_tell >= 0:
        rows[cannot_tell] = (*pairs[cannot_tell], "cannot tell")
    table = pd.DataFrame(rows, columns=["query_id", "doc_id", "label"]).assign(rater="robot")
    table.to_csv(folder / f"{name}.csv", index=False)
    return folder / f"{name}.csv"


def status(run, file: Path, *options: object) -> dict:
    return run("label", "status", file, "--json", *options).json
